"""The smallest misfit of rows at which data do not contradict a model, which is reported with a conflict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plumdp.confidence.bets import Directions
from plumdp.confidence.constants import excluded_numbers, find_fixed_numbers
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.sets import with_fixed_numbers
from plumdp.confidence.tolerant import tolerant_budget, tolerant_set
from plumdp.data.counts import TransitionCounts
from plumdp.fit.drift import Drift, drift_constraints
from plumdp.model.parametric import ParametricMDP
from plumdp.region.conflict import Conflict
from plumdp.region.find import find_region

_TWO_DIGITS = tuple(float(f"{digits}e{power}") for power in (-6, -5, -4, -3, -2) for digits in range(10, 100))


def smallest_misfit(
    model: ParametricMDP,
    counts: TransitionCounts,
    *,
    error: float,
    directions: Directions | None = None,
    drifts: Sequence[Drift] = (),
) -> float:
    """Return the least misfit at which the data do not contradict the model, rounded up to two digits.

    At every misfit below, a certificate with the error ``error`` would be a conflict, as no point of the space is
    within all half-spaces, intervals of events and intervals of single choices, or a constant is excluded. It is zero
    if there is no conflict, and one if there is one at every misfit. All sets grow with the misfit, so that it is found
    by bisection. ``drifts`` are drift tests at their own share of the error, such as those that contradict the model
    without a misfit.

    >>> import numpy as np
    >>> from plumdp import ParameterSpace, explore, parameters
    >>> (p,) = parameters("p")
    >>> def toss(state):
    ...     return {"toss": [(p, state._replace(heads=True)), (1 - p, state._replace(heads=False))]}
    >>> coin = explore(toss, {"heads": False}, space=ParameterSpace.unit("p"))
    >>> seen = TransitionCounts(coin.graph, np.array([6000, 4000, 4000, 6000]), "adaptive")
    >>> smallest_misfit(coin, seen, error=0.01)  # 60 % after tails, 40 % after heads: each off by about a tenth
    0.074
    """
    budget = with_fixed_numbers(tolerant_budget(counts.pilot, has_directions=directions is not None))
    of_set, of_numbers = budget.error_of_set(error), budget.error_of("fixed_numbers", error)
    measured = tolerant_set(model, counts, error=of_set, directions=directions, budget=budget)
    cuts = drift_constraints(model, counts, likelihood_table(model), drifts, budget.error_of("drifts", error))
    measured = replace(measured, constraints=(*measured.constraints, cuts))
    fixed = find_fixed_numbers(model).constants_only()

    def is_contradicted(misfit: float) -> bool:
        tolerant = measured.widened(misfit)
        assert tolerant is not None
        region = find_region(model.space, model.expressions, tolerant.constraints)
        return isinstance(region, Conflict) or bool(
            excluded_numbers(model, fixed, counts, error=of_numbers, confidence=1 - error, misfit=misfit)
        )

    if not is_contradicted(0.0):
        return 0.0
    low, high = -1, len(_TWO_DIGITS)  # contradicted, and not (or one)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_contradicted(_TWO_DIGITS[middle]) else (low, middle)
    return _TWO_DIGITS[high] if high < len(_TWO_DIGITS) else 1.0
