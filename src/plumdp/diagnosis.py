"""What is wrong with a model that the data contradict, in words."""

from __future__ import annotations

from plumdp.data.counts import TransitionCounts
from plumdp.model.parametric import ParametricMDP
from plumdp.model_fit import ModelFit


def diagnose(model: ParametricMDP, counts: TransitionCounts, fit: ModelFit) -> tuple[str, ...]:
    """Return where model and data differ, in sentences, the most telling first."""
    strongest = next((test for test in fit.tests if test.multiplier > 0 and test.kind != "likelihood"), fit.tests[0])
    where = f" where {strongest.subject} is large" if strongest.kind == "drift" else f": {strongest.subject}"
    return (f"the data fit other parameters{where}",)
