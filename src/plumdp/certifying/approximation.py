"""The usual approximate interval, estimate ± z standard errors, which nothing proves: shown beside bounds for scale."""

from __future__ import annotations

from math import isfinite, log, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plumdp.base.error_budget import equal_parts
from plumdp.base.linear_algebra import solve_nearly
from plumdp.confidence.bets import sharpened
from plumdp.confidence.estimates import law_of_space
from plumdp.data.contexts import ContextKind
from plumdp.learning.learned import Learned
from plumdp.learning.methods import SETS
from plumdp.learning.run_ends import RunEnds
from plumdp.model.graph import FloatArray
from plumdp.model.question import Question
from plumdp.solver.coupled.gradient import policy_gradient

_HALF = 0.5  # of a step
_ROUNDING = 1e-12  # relative: widths that are that of floats
_UNSEEN = 1e-6  # share of a gradient that rows without a likelihood may have


class NormalInterval(NamedTuple):
    """The estimate of a value, or of a difference, with its usual interval."""

    value: float  # at the estimate
    interval: tuple[float, float] | None  # with the confidence of what was learned, or None if there is none


def approximate(learned: Learned, question: Question, *policies: npt.NDArray[Any]) -> NormalInterval | None:
    """Return the value of a policy, or of one less another, at the estimate with its normal interval, if there is one.

    It is that of the delta method, and takes no account of when collecting stopped, of curvature, or of how a policy
    was chosen. There is none from rows that mix what the chances of arms depend on.
    """
    of_set, is_mixed = SETS[learned.kind].normal_values, any(e.stand_alone for e in learned.bounds.of_kind(RunEnds))
    if learned.conflict is not None or is_mixed or (of_set is None and learned.with_points(question.model) is None):
        return None
    counts = learned.counts.counts
    found = _by_parameters(learned, question, *policies) if of_set is None else of_set(question, counts, *policies)
    if not found or not all(isfinite(value) for value, _ in found):
        return None
    z = NormalDist().inv_cdf(1 - equal_parts(learned.error, 2))
    ends = [(value - z * sqrt(max(variance, 0.0)), value + z * sqrt(max(variance, 0.0))) for value, variance in found]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    middle = sum(value for value, _ in found) / len(found)
    is_wide = isfinite(high - low) and high - low > _ROUNDING * (1 + abs(middle))  # else the data have no part in it
    return NormalInterval(middle, (low, high) if is_wide and learned.counts.total else None)


def hidden_by_memory(learned: Learned, value: float | None, interval: tuple[float, float] | None) -> float | None:
    """Return about how much memory may move a probability and hardly show yet, given its normal interval, or None.

    Whole runs and pooled rows both estimate the value if rows do not remember, and their difference has the variance
    v (1 - v) / n less that of the better estimate (Hausman 1978). Bets along it reach their level where the difference
    is √(2 ln(1 / share)) times its standard error.
    """
    step = next((each for each in learned.counts.contexts if each.kind == ContextKind.STEP), None)
    budget, error = learned.budget, learned.error
    share = budget.error_of("memory_bets", error) or budget.error_of("model_test", error)
    if step is None or value is None or interval is None or not 0 < value < 1 or not 0 < share < 1:
        return None
    n_runs = int(step.count[step.value == 0].sum())
    of_rows = ((interval[1] - interval[0]) / 2 / NormalDist().inv_cdf(1 - equal_parts(error, 2))) ** 2
    left = value * (1 - value) / max(n_runs, 1) - of_rows
    return sqrt(-2 * log(share) * left) if left > 0 else None


def narrowed(interval: tuple[float, float], confidence: float, smaller: float) -> tuple[float, float]:
    """Return the normal interval of a smaller confidence, given that of a larger one.

    >>> narrowed((8.0, 12.0), 0.9544997361036416, 0.6826894921370859)
    (9.0, 11.0)
    """
    middle, half = (interval[0] + interval[1]) / 2, (interval[1] - interval[0]) / 2
    more, fewer = (NormalDist().inv_cdf(1 - equal_parts(1 - each, 2)) for each in (confidence, smaller))
    return middle - half * fewer / more, middle + half * fewer / more


def _by_parameters(learned: Learned, question: Question, *policies: npt.NDArray[Any]) -> list[tuple[float, float]]:
    """Return the value at the estimate and its variance, which is infinite if it depends on rows without likelihood."""
    is_found = learned.bounds.estimate is not None  # by the confidence set, so that it takes no further search
    point = learned.shown_estimate if is_found else None
    if point is None or not learned.model.space.names:
        return []
    signed = [policy_gradient(question.model, policy, question.objective, point) for policy in policies]
    value, gradient = signed[0] if len(signed) == 1 else (signed[0][0] - signed[1][0], signed[0][1] - signed[1][1])
    return [(float(value), _variance(learned, point, gradient))]


def _variance(learned: Learned, point: FloatArray, gradient: FloatArray) -> float:
    table = learned.bet_table
    point, n = table.lifted(point), len(point)
    basis = table.basis_near(point)
    slope = basis[:n].T @ gradient
    if not np.linalg.norm(gradient - basis[:n] @ slope) <= _UNSEEN * np.linalg.norm(gradient):
        return np.inf
    # an outcome that was never seen has a probability of about half of one in the visits of its row
    weights = sharpened(table, *table.pool_seen(learned.counts.seen))
    visits = table.visits(weights)[table.group]
    values = np.maximum(table.chances(point), _HALF / np.maximum(visits, _HALF))
    scaled = (
        table.coefficients / values[:, None] * np.sqrt(np.where(visits > 0, np.maximum(weights, _HALF), 0.0))[:, None]
    )
    scaled, prior = scaled @ basis, basis[:n].T @ law_of_space(learned.model).precision @ basis[:n]
    return float(slope @ solve_nearly(scaled.T @ scaled + prior, slope))
