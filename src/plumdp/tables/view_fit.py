"""The test of a model that is seen as a table: that of the table, and one of what its parameters tie beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumdp.base.rounding import UP
from plumdp.confidence.model_cache import ModelCache
from plumdp.data.counts import TransitionCounts
from plumdp.fit.model_fit import FitTest, ModelFit, fit_model
from plumdp.model.parametric import ParametricMDP
from plumdp.model.views import ties_rows
from plumdp.tables.expression_rows import visits_of, with_expressions_alone
from plumdp.tables.fit import table_fit

_LN_2 = float(np.log(2))


def view_fit(model: ParametricMDP, counts: TransitionCounts) -> ModelFit:
    """Return the p-value of a table, or of the model that it is a view of, and the tests that speak against it most.

    A model with parameters is tested twice: its rows as those of a table, and the rows that have expressions by these.
    Either has half of the error.
    """
    fit, source = table_fit(model, counts), model.source
    if source is None or not ties_rows(source):
        return fit
    part, is_kept = with_expressions_alone(source)
    cache = ModelCache(part)
    own = fit_model(part, visits_of(counts, is_kept), fixed=cache.fixed, cache=cache)
    of_expressions = (replace(test, kind="row", subject=_words(test)) for test in own.tests)
    halves = (replace(test, evidence=test.evidence - _LN_2) for test in (*fit.tests, *of_expressions))
    strongest = sorted(halves, key=lambda test: -test.evidence)
    p_value, of_time, without = (
        min(1.0, 2 * min(getattr(fit, name), getattr(own, name)) * UP)
        for name in ("p_value", "p_of_time", "p_without_time")
    )
    change = own.change if own.p_of_time < fit.p_of_time else fit.change
    told = {"p_value": p_value, "p_of_time": of_time, "p_without_time": without, "change": change}
    return replace(fit, **told, tests=tuple(strongest))


def _words(test: FitTest) -> str:
    return f"{test.parameter} differs with {test.subject}" if test.kind == "drift" else test.subject
