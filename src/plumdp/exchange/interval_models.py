"""The interval model that certificates rest on, with labels and rewards, so that other tools can check them."""

from __future__ import annotations

from plumdp.base.errors import DataError
from plumdp.certifying.pipeline import relax
from plumdp.certifying.sources import LearnedSource
from plumdp.learning.learn import Learned
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.space import Point
from plumdp.relaxation.interval_model import IntervalModel
from plumdp.relaxation.intervals import instantiate
from plumdp.relaxation.relax import Relaxation
from plumdp.result.certificate import Certificate


def interval_model(learned: Learned | Certificate, *, relaxation: Relaxation = "rectangular") -> IntervalModel:
    """Return what was learned from data as an interval model, with the labels and rewards of the model.

    A certificate may be given in place of what it was concluded from, unless it was read from a folder or pickled.

    With the confidence of what was learned, the true probabilities lie in its intervals. What it says of a policy
    therefore holds with that confidence, whichever tool calculates it. ``solve`` also uses the region inside the
    intervals; a file holds the intervals alone, so that another tool finds wider bounds: those of the
    relaxation "expression". If the data contradict the model, the intervals rest on the graph alone.

    >>> from plumdp import case_study, conclude, learn, simulate, solve
    >>> study = case_study("betting:5")
    >>> learned = learn(study.model, simulate(study.model, study.true_point, 1000, rng=1, max_steps=6))
    >>> model = interval_model(learned)
    >>> bool(solve(model, study.objective).lower[0] > 0)
    True
    >>> interval_model(conclude(learned, study.objective))
    IntervalModel(225 states, 624 choices, 1,023 transitions, labels 'end', rewards 'money')
    """
    known = _learned(learned)
    model = known.model
    return IntervalModel(relax(known, relaxation), model.labels, model.rewards, model.constants)


def _learned(given: Learned | Certificate) -> Learned:
    if isinstance(given, Learned):
        return given
    if isinstance(given, Certificate):
        if isinstance(given.source, LearnedSource):
            return given.source.learned
        raise DataError("this certificate has its data no more: give interval_model what learn(model, counts) returns")
    raise DataError(
        f"interval_model takes a certificate, or what learn(model, counts) returns, not {type(given).__name__}"
    )


def model_at(model: ParametricMDP, point: Point) -> IntervalModel:
    """Return the model at a point of its parameters, as intervals of width 0, with labels and rewards.

    >>> from plumdp import case_study
    >>> study = case_study("betting:5")
    >>> model_at(study.model, study.true_point)
    IntervalModel(225 states, 624 choices, 1,023 transitions, labels 'end', rewards 'money')
    """
    require_model("model_at", model)
    return IntervalModel(instantiate(model, point), model.labels, model.rewards, model.constants)
