"""The confidence set of a table: intervals of all rows, and bets on the values of policies that the pilot chose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.error_budget import ErrorBudget, equal_parts
from plumdp.base.rounding import ULP
from plumdp.base.vocabulary import Sets
from plumdp.confidence.bets import Direction
from plumdp.confidence.likelihood import ANNOUNCED, WITH_POLICIES
from plumdp.confidence.model_cache import ModelCache
from plumdp.confidence.sets import Guarantee
from plumdp.data.counts import N_TABLE_PILOTS, Pilot, TransitionCounts
from plumdp.data.pilots import pilot_assumption
from plumdp.model.graph import FloatArray, owners, read_only
from plumdp.model.objective import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import as_choices, check_policy
from plumdp.model.question import Question
from plumdp.model.table_model import elsewhere_of
from plumdp.region.conflict import Conflict
from plumdp.region.shapes import Box, Region
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.coupled.bounds import CoupledBounds
from plumdp.solver.solve import solve
from plumdp.tables.bounds import Errors, Moments, TableBounds, table_bounds
from plumdp.tables.chain import pooled, smooth
from plumdp.tables.intervals import table_intervals
from plumdp.tables.policies import chain_of_policy

_MAIN_PER_PILOT = 3  # at least, if the length of the data was planned
_PRECISION = 1e-6


@dataclass(frozen=True, eq=False)
class TableSet:
    """Intervals of the probabilities of all rows, and what bets on the values of announced policies need.

    The intervals hold for all policies. Bets are made for one policy for each question, which was given, or is the best
    one by the pilot. All of it holds at once with probability at least 1 - ``error``.
    """

    lower: FloatArray  # (n_expressions)
    upper: FloatArray  # (n_expressions)
    error: float
    guarantee: Guarantee
    moments: Moments | None  # what had been seen when bets were placed; None if there are none
    bets: Errors | None  # of one policy
    questions: tuple[Question, ...] = ()
    policies: tuple[npt.NDArray[Any], ...] = ()  # one for each question: choices (n_states), or probabilities of them
    rests_on: tuple[str, ...] = ()
    conflict: Conflict | None = None  # if the model is a view, and the data exclude the space of its parameters
    kind: Sets = "table"
    estimate: None = None

    @property
    def method(self) -> str:
        """The method by which the set was made, in words."""
        return "beta-binomial for each row" if self.moments is None else "bets on temporal differences"

    @property
    def intervals(self) -> tuple[FloatArray, FloatArray]:
        """The lower and the upper bound of each expression."""
        return self.lower, self.upper

    @property
    def region(self) -> Region | Conflict:
        """The region of the parameters, of which there are none."""
        return self.conflict or Box((), read_only(np.zeros(0)), read_only(np.zeros(0)))

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The policies whose values are bet on."""
        nothing = read_only(np.zeros(0))
        texts = (f"the value of {question.objective.text or 'the objective'}" for question in self.questions)
        return tuple(Direction(nothing, policy, text) for policy, text in zip(self.policies, texts, strict=True))


def table_budget(pilot: Pilot | None, *, is_asked: bool) -> ErrorBudget:
    """Return the division of the error of a table, given the pilot and whether values are asked for.

    Data that may end at will have bets, also if they ended before any were placed: otherwise whoever ends them early
    would have all of the error for intervals, and whoever goes on would have that of bets as well.
    """
    has_bets = is_asked and pilot is not None and (bool(pilot.moments) or not pilot.is_planned)
    return ErrorBudget.of_table(has_bets=has_bets)


def table_set(
    model: ParametricMDP,
    counts: TransitionCounts,
    *,
    error: float,
    budget: ErrorBudget,
    cache: ModelCache,
    questions: Sequence[Question] = (),
) -> TableSet:
    """Return intervals of all rows, and bets on the values of the questions' policies, from counts of a table."""
    assert cache.model is model  # all that is kept of it are its distinct rows
    of_intervals = budget.error_in_set("intervals", error)
    found = table_intervals(model, counts, error=of_intervals)
    plain = TableSet(found.lower, found.upper, error, Guarantee.ANYTIME, None, None, conflict=found.conflict)
    if counts.pilot is None or not budget.value_bets:
        return plain
    first = first_moment(counts.pilot)
    moments = None if first is None else moments_of(model, counts, counts.pilot, first)
    if first is None or moments is None:
        return plain
    n_pilots = 1 if counts.pilot.is_planned else N_TABLE_PILOTS  # that there might have been, if data end at will
    of_policy = equal_parts(equal_parts(error, n_pilots), len(questions))
    policies = tuple(_policy(question, moments.counts[0]) for question in questions)
    announced = WITH_POLICIES if any(question.has_policies for question in questions) else ANNOUNCED
    return replace(
        plain,
        guarantee=Guarantee.PLANNED if counts.pilot.is_planned else Guarantee.ANYTIME,
        moments=moments,
        bets=Errors(
            equal_parts(budget.error_in_set("value_bets", of_policy), 2),  # on either side
            budget.error_in_set("row_bets", of_policy),
            budget.error_in_set("joint_bets", of_policy),
        ),
        questions=tuple(questions),
        policies=policies,
        rests_on=(pilot_assumption(counts.pilot, first), announced),
    )


def first_moment(pilot: Pilot) -> int | None:
    """Return at which moment of a pilot the first bets are placed, or None if it is too early for any.

    If the length was planned, it is the largest one that leaves three times as much. Otherwise it is the one that the
    data come with, whose error pays for all that there might have been.
    """
    lengths, n = pilot.lengths, len(pilot.lengths)
    if not pilot.is_planned:
        return next((i for i in range(n) if np.array_equal(pilot.moments[i], pilot.counts)), None)
    planned = pilot.expected or (1 + pilot.ratio) * lengths[-1]
    return max((i for i in range(n) if (1 + _MAIN_PER_PILOT) * lengths[i] <= planned), default=None)


def moments_of(model: ParametricMDP, counts: TransitionCounts, pilot: Pilot, first: int) -> Moments | None:
    """Return what had been seen when bets were placed, at the first moment and later, or None if nothing came later."""
    lengths = pilot.lengths
    planned = pilot.expected or (1 + pilot.ratio) * lengths[-1 if pilot.is_planned else first]
    cumulative = [pooled(model, each) for each in (*pilot.moments[first:], counts.counts)]
    is_later = [True, *(bool((after > before).any()) for before, after in pairwise(cumulative))]
    kept = [each for each, later in zip(cumulative, is_later, strict=True) if later]
    if len(kept) < 2:
        return None
    later_lengths = [each for each, later in zip(lengths[first:], is_later, strict=False) if later]
    return Moments(tuple(kept), tuple(later_lengths[: len(kept) - 1]), float(planned))


def _policy(question: Question, seen: FloatArray) -> npt.NDArray[Any]:
    """Return the policy that is bet on: the one that was given, or the best one by the frequencies of the pilot."""
    model, objective = question.model, question.objective
    if question.policy is not None:
        return read_only(as_choices(model.graph, check_policy(model.graph, question.policy)))
    probability = smoothed(model, seen)
    mdp = IntervalMDP(model.graph, model.expression, probability, probability)
    return solve(mdp, objective, precision=_PRECISION).policy


def smoothed(model: ParametricMDP, seen: FloatArray) -> FloatArray:
    """Return known numbers, and smoothed frequencies of the places of free rows (n_expressions)."""
    rows, table = model.counted.rows, model.expressions
    n_known = len(table.polynomials)
    expression = np.asarray(model.counted.expression)[rows.transition]
    size, owner = np.diff(rows.first), owners(rows.first)
    is_free = expression >= n_known
    count = np.where(is_free, seen[np.where(is_free, expression - n_known, 0)], 0.0)
    visits = np.add.reduceat(count, rows.first[:-1])[owner]
    result = np.array([*(float(f.constant) for f in table.polynomials), *np.zeros(table.n_free)])
    result[expression[is_free]] = smooth(count, visits, size[owner])[is_free]
    return read_only(result)


def bounds_of_policy(
    bounds: TableSet, question: Question, policy: npt.NDArray[Any], lower: FloatArray, upper: FloatArray
) -> CoupledBounds | str:
    """Return bounds on the value of a policy by bets, or in words why there are none.

    ``lower`` and ``upper`` (n_states) are bounds on its values by the intervals of the set.
    """
    if bounds.moments is None or bounds.bets is None:
        return "no bets were placed, as it is not known which data came first"
    if question.model.lift is not None and elsewhere_of(question.model.counted) is not None:
        return "runs may come to states that the table does not have, whose memory is not known"
    if not _is_announced(bounds, question, policy):
        return "bets were placed on the value of another policy, before the data were looked at"
    return _valued(bounds.moments, bounds.bets, question.model, policy, question.objective, lower, upper)


def _is_announced(bounds: TableSet, question: Question, policy: npt.NDArray[Any]) -> bool:
    pairs = zip(bounds.questions, bounds.policies, strict=True)
    return any(each.digest == question.digest and np.array_equal(planned, policy) for each, planned in pairs)


def _valued(
    moments: Moments,
    errors: Errors,
    model: ParametricMDP,
    policy: npt.NDArray[Any],
    objective: Objective,
    lower: FloatArray,
    upper: FloatArray,
) -> CoupledBounds | str:
    flipped = objective.flipped()
    if flipped is not None:
        other = _valued(moments, errors, model, policy, flipped, 1 - upper - ULP, 1 - lower + ULP)
        if isinstance(other, str):
            return other
        return replace(other, lower=1 - other.upper - ULP, upper=1 - other.lower + ULP)
    bounded = chain_of_policy(model, policy, objective, lower, upper)
    if isinstance(bounded, str):
        return bounded
    table = bounded.table
    found = table_bounds(table, moments.padded(table.n_places), errors, bounded.lower, bounded.upper)
    if isinstance(found, str):
        return found
    start = model.graph.initial_state
    return _as_bounds(found, float(lower[start]), float(upper[start]))


def _as_bounds(found: TableBounds, lower: float, upper: float) -> CoupledBounds:
    """Return the better of the bracket by bets and of bounds by intervals and rows, each end by itself."""
    low, high = found.low, found.high
    distance = found.distance + 2 * ULP * (abs(found.estimate) + found.distance)  # outward
    ends = [
        max([lower, found.estimate - distance, *([] if low is None else [low.value])]),
        min([upper, found.estimate + distance, *([] if high is None else [high.value])]),
    ]
    statistics = sum(end.statistics for end in (low, high) if end is not None)
    remainder = sum(end.curvature + end.mismatch for end in (low, high) if end is not None)
    return CoupledBounds(
        float(ends[0]), float(ends[1]), float(statistics), float(remainder), 0.0, "bets on temporal differences"
    )
