"""The interval model that certificates rest on, with labels and rewards, so that other tools can check them."""

from __future__ import annotations

from plumdp.base.errors import DataError
from plumdp.certifying.pipeline import relax
from plumdp.learning.learned import Learned, of_learned
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.space import Point
from plumdp.model.unmodelled_exits import elsewhere_of
from plumdp.relaxation.intervals import IntervalModel, instantiate
from plumdp.relaxation.relax import Relaxation


@of_learned
def interval_model(learned: Learned, *, relaxation: Relaxation = "rectangular") -> IntervalModel:
    """Return the interval model that was learned from data, with the labels and rewards of the model.

    With the confidence of what was learned, the true probabilities lie in its intervals. What it says of a policy
    therefore holds with that confidence, whichever tool calculates it. ``solve`` also uses the region inside the
    intervals; a file holds the intervals alone, so that another tool finds wider bounds: those of the
    relaxation "expression". If the data contradict the model, the intervals rest on the graph alone. A table from a log
    that runs may leave is refused, as no intervals say what holds where they go.

    >>> from plumdp import case_study, learn, simulate
    >>> from plumdp.stages import solve
    >>> study = case_study("betting:5")
    >>> learned = learn(study.model, simulate(study.model, study.true_point, 1000, rng=1, max_steps=6))
    >>> model = interval_model(learned)
    >>> bool(solve(model, study.objective).lower[0] > 0)
    True
    >>> model
    IntervalModel(225 states, 624 choices, 1,023 transitions, labels 'end', rewards 'money')
    """
    model = learned.model
    if elsewhere_of(model.counted) is not None:
        raise DataError(
            "runs may leave this table, and no intervals tell another tool what may hold where they go: ask certify or "
            "decide"
        )
    return IntervalModel(relax(learned, relaxation), model.labels, model.rewards, model.constants)


def model_at(model: ParametricMDP, point: Point) -> IntervalModel:
    """Return the model at a point of its parameters, as intervals of width 0, with labels and rewards.

    >>> from plumdp import case_study
    >>> study = case_study("betting:5")
    >>> model_at(study.model, study.true_point)
    IntervalModel(225 states, 624 choices, 1,023 transitions, labels 'end', rewards 'money')
    """
    require_model("model_at", model)
    return IntervalModel(instantiate(model, point), model.labels, model.rewards, model.constants)
