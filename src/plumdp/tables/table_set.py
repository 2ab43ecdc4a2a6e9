"""The confidence set of a table: intervals of all rows, and bets on the values of policies that the pilot chose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from plumdp.base.error_budget import ErrorBudget, Share, equal_parts, favoured_parts
from plumdp.base.errors import UNSAID, WhyNot
from plumdp.base.vocabulary import Assumption, Group, Guarantee
from plumdp.confidence.bets import Direction, HalfSpace
from plumdp.confidence.likelihood import PRESPECIFIED, guarantee_of
from plumdp.confidence.sets import MEMORY, NOT_PRESPECIFIED, OF_SET, TESTS, Constraint, Counted, Evidence, graph_alone
from plumdp.data.counts import N_TABLE_PILOTS, Pilot, TransitionCounts
from plumdp.data.pilots import pilot_assumption
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, as_choices, check_policy
from plumdp.model.question import Question
from plumdp.model.space import ParameterSpace
from plumdp.region.conflict import Conflict
from plumdp.region.shapes import Box, Region
from plumdp.solver.coupled.bounds import Proof
from plumdp.tables.bracket import BetMoments, Errors
from plumdp.tables.candidates import Outlook, candidates_of, with_narrower_bets
from plumdp.tables.chain import pooled
from plumdp.tables.intervals import table_intervals
from plumdp.tables.values import estimate_value, value_bounds

_BESIDE = 0.25  # of the error of bets on a question about a difference: for the values of both policies
_GIVEN = Assumption(
    "you chose the policy before looking at these data, or from those before the first bets only (as you stated)",
    Group.PLAN,
    "policy",
)


@dataclass(frozen=True, eq=False)
class Prespecified:
    """A policy that bets are placed on, the question whose value they are about, and their errors."""

    question: Question
    policy: npt.NDArray[Any]  # choices (n_states), or probabilities of them (n_choices)
    errors: Errors
    less: npt.NDArray[Any] | None = None  # the policy whose value is taken off, if bets are on a difference

    @property
    def policies(self) -> tuple[npt.NDArray[Any], ...]:
        """The policy, and the one whose value is taken off."""
        return (self.policy,) if self.less is None else (self.policy, self.less)


@dataclass(frozen=True, eq=False)
class TableSet:
    """Intervals of the probabilities of all rows, and what bets on the values of pre-specified policies need.

    The intervals hold for all policies. Bets are made for the policy that was given with a question, or for a few that
    the pilot names. All of it holds at once with probability at least 1 - ``error``.
    """

    lower: FloatArray  # (n_expressions)
    upper: FloatArray  # (n_expressions)
    error: float
    guarantee: Guarantee
    moments: BetMoments | None  # what had been seen when bets were placed; None if there are none
    prespecified: tuple[Prespecified, ...] = ()
    rests_on: tuple[str, ...] = ()
    conflict: Conflict | None = None  # if the model is a view, and the data exclude the space of its parameters

    def about(self, question: Question, *, differences: bool = False) -> list[Prespecified]:
        """Return the policies that bets were placed on for a question, on their values or on differences."""
        found = (each for each in self.prespecified if each.question.digest == question.digest)
        return [each for each in found if (each.less is not None) == differences]

    @property
    def method(self) -> str:
        """The method by which the set was made, in words."""
        return "beta-binomial for each row" if self.moments is None else "bets on temporal differences"

    @property
    def intervals(self) -> tuple[FloatArray, FloatArray]:
        """The lower and the upper bound of each expression."""
        return self.lower, self.upper

    def half_spaces(self, names: tuple[str, ...]) -> tuple[HalfSpace, ...]:
        """Return none, as there are no parameters."""
        return ()

    def widened(self, by: float) -> None:
        """Return None: rows that are unknown cannot be off."""

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The policies whose values are bet on."""
        nothing = read_only(np.zeros(0))
        texts = (
            f"{'the value' if each.less is None else 'a difference in the value'} of "
            f"{each.question.objective.text or 'the objective'}"
            for each in self.prespecified
        )
        return tuple(Direction(nothing, each.policy, text) for each, text in zip(self.prespecified, texts, strict=True))


def region_of_table(
    space: ParameterSpace, expressions: ExpressionTable, constraints: Sequence[Constraint]
) -> Region | Conflict:
    """Return the region of no parameters."""
    return cast("TableSet", constraints[0]).conflict or Box((), read_only(np.zeros(0)), read_only(np.zeros(0)))


def table_evidence(given: Counted) -> Evidence:
    """Return the evidence of counts about a table: intervals of all rows, and bets on pre-specified values."""
    known = {"is_asked": bool(given.questions), "has_contexts": bool(given.counts.contexts)}
    budget = given.divided(table_budget(given.counts.pilot, **known))
    error = budget.error_of_set(given.error)
    found = table_set(given.model, given.counts, error=error, budget=budget, questions=given.questions)
    evidence = Evidence.of("table", found, budget)
    return replace(evidence, directions=found.directions, rests_on=found.rests_on)


def table_budget(pilot: Pilot | None, *, is_asked: bool, has_contexts: bool = False) -> ErrorBudget:
    """Return the division of the error of a table, given the pilot, whether values are asked for, and of contexts.

    Data that may end at will have bets, also if they ended before any were placed: otherwise whoever ends them early
    would have all of the error for intervals, and whoever goes on would have that of bets as well.
    """
    has_bets = is_asked and pilot is not None and (bool(pilot.moments) or not pilot.is_planned)
    return table_shares(has_bets=has_bets, has_contexts=has_contexts)


def table_shares(*, has_bets: bool, has_contexts: bool = False) -> ErrorBudget:
    """Return the budget of a table of unknown rows: intervals of all rows, and bets if it is known what came first.

    Intervals keep so much that they are at most a few per cent wider than alone, for where bets say nothing. If
    contexts are counted, the test of the model has a share of what the set has without.
    """
    memory = MEMORY if has_contexts else Fraction(0)
    left = (OF_SET - memory) / OF_SET
    values, rows = (Fraction(1, 2), Fraction(1, 20)) if has_bets else (Fraction(0), Fraction(0))
    of_set = (
        Share("intervals", left * (OF_SET - values - 2 * rows), "intervals of probabilities"),
        Share("value_bets", left * values, "bets on the values of a table"),
        Share("row_bets", left * rows, "bets on single rows of a table"),
        Share("joint_bets", left * rows, "bets on all rows of a table together"),
    )
    return ErrorBudget(of_set, (Share("model_test", TESTS + memory, "test of the model"),), graph_alone())


def table_set(
    model: ParametricMDP,
    counts: TransitionCounts,
    *,
    error: float,
    budget: ErrorBudget,
    questions: Sequence[Question] = (),
) -> TableSet:
    """Return intervals of all rows, and bets on the values of the questions' policies, from counts of a table."""
    of_intervals = budget.error_in_set("intervals", error)
    found = table_intervals(model, counts, error=of_intervals)
    plain = TableSet(found.lower, found.upper, error, Guarantee.ANYTIME, None, conflict=found.conflict)
    if counts.pilot is None or not budget["value_bets"]:
        return plain
    first = counts.pilot.first_bets
    moments = None if first is None else moments_of(model, counts, counts.pilot, first)
    if first is None or moments is None:
        return plain
    is_given = any("given" in question.prespecified.values() for question in questions)
    return replace(
        plain,
        guarantee=guarantee_of(counts),
        moments=moments,
        prespecified=tuple(_prespecified(counts.pilot, first, moments, questions, budget, error)),
        rests_on=(pilot_assumption(counts.pilot, first), PRESPECIFIED, *((_GIVEN,) if is_given else ())),
    )


def _prespecified(
    pilot: Pilot, first: int, moments: BetMoments, questions: Sequence[Question], budget: ErrorBudget, error: float
) -> Iterator[Prespecified]:
    """Yield the policies that bets are placed on: those that were given, and candidates that the pilot names."""
    n_pilots = 1 if pilot.is_planned else max(pilot.n_pilots, N_TABLE_PILOTS)  # also of data that were read for others
    of_question = equal_parts(equal_parts(error, n_pilots), len(questions))
    outlook = Outlook(
        pilot.moments[first],
        moments.counts[0],
        moments.lengths[0],
        moments.planned,
        _errors(budget, of_question),
        budget.error_in_set("intervals", error),
    )
    for question in questions:
        given, rival = (_choices(question, each) for each in (question.policy, question.against))
        policies = candidates_of(question, outlook) if given is None else (given,)
        of_value = of_question if rival is None else _BESIDE * of_question
        of_one = of_value if rival is None else equal_parts(of_value, 2)
        of_pair = of_question - of_value
        for policy, *errors in zip(
            policies, favoured_parts(of_one, len(policies)), favoured_parts(of_pair, len(policies)), strict=True
        ):
            yield Prespecified(
                question, policy, with_narrower_bets(question, outlook, policy, _errors(budget, errors[0]))
            )
            if rival is not None:
                yield Prespecified(question, policy, _errors(budget, errors[1]), rival)
        if rival is not None:
            yield Prespecified(question, rival, with_narrower_bets(question, outlook, rival, _errors(budget, of_one)))


def _choices(question: Question, policy: Policy | None) -> npt.NDArray[Any] | None:
    """Return a policy as choices, or probabilities of them, if there is one."""
    graph = question.model.graph
    return None if policy is None else read_only(as_choices(graph, check_policy(graph, policy)))


def _errors(budget: ErrorBudget, error: float) -> Errors:
    """Return the errors of the bets on one policy, given its share of the error of the set."""
    return Errors(
        equal_parts(budget.error_in_set("value_bets", error), 2),  # on either side
        budget.error_in_set("row_bets", error),
        budget.error_in_set("joint_bets", error),
    )


def moments_of(model: ParametricMDP, counts: TransitionCounts, pilot: Pilot, first: int) -> BetMoments | None:
    """Return the counts at the moments when bets were placed, or None if no data came later."""
    lengths = pilot.lengths
    planned = pilot.expected or (1 + pilot.ratio) * lengths[-1 if pilot.is_planned else first]
    cumulative = [pooled(model, each) for each in (*pilot.moments[first:], counts.counts)]
    is_later = [True, *(bool((after > before).any()) for before, after in pairwise(cumulative))]
    kept = [each for each, later in zip(cumulative, is_later, strict=True) if later]
    if len(kept) < 2:
        return None
    later_lengths = [each for each, later in zip(lengths[first:], is_later, strict=False) if later]
    return BetMoments(tuple(kept), tuple(later_lengths[: len(kept) - 1]), float(planned))


def bounds_by_bets(
    evidence: Evidence,
    question: Question,
    policies: Sequence[npt.NDArray[Any]],
    bounds_on: Callable[[npt.NDArray[Any]], tuple[FloatArray, FloatArray]],
) -> Proof | WhyNot:
    """Return bounds by bets on the value of a policy, or of one less another, or in words why there are none.

    There are no words if sets place no bets. ``bounds_on`` says of a policy between which bounds (n_states) its values
    are by the intervals of the set.
    """
    found = next(iter(evidence.of_kind(TableSet)), None)
    if found is None:
        return UNSAID
    if found.moments is None:
        return WhyNot("no bets were placed, as the order of the data is not known")
    orders = (policies, policies[::-1])  # bounds on a difference are those of the turned one, turned
    prespecified = [
        each
        for each in found.about(question, differences=len(policies) > 1)
        if any(all(map(np.array_equal, each.policies, order)) for order in orders)
    ]
    if not prespecified:
        return NOT_PRESPECIFIED
    best = max(prespecified, key=lambda each: each.errors.of_side)
    about = best.errors, question.model, question.objective
    proof = value_bounds(found.moments, *about, *((policy, *bounds_on(policy)) for policy in best.policies))
    is_turned = not np.array_equal(best.policy, policies[0])
    return replace(proof, lower=-proof.upper, upper=-proof.lower) if is_turned and isinstance(proof, Proof) else proof


def prespecified_policies(evidence: Evidence, question: Question) -> list[tuple[float, npt.NDArray[Any]]] | None:
    """Return the policies that bets were placed on for a question, and estimates of their values by all data.

    The sign of an estimate is such that larger ones are better, and the best comes first. If there is none, it is
    infinite. None of sets that place no bets on values.
    """
    bounds = next(iter(evidence.of_kind(TableSet)), None)
    if bounds is None:
        return None
    if bounds.moments is None:
        return []
    seen, policies = bounds.moments.counts[-1], {each.policy.tobytes(): each.policy for each in bounds.about(question)}
    found = [(estimate_value(question, policy, seen), policy) for policy in policies.values()]
    return sorted(found, key=lambda pair: -pair[0])
