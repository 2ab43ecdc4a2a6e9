"""The policies that bets on a value are placed on: those that the pilot leads to expect the best bounds of.

Bounds on the value of a policy are narrow if the data visit all rows that it uses. The best policy by the frequencies
of the pilot may use rows that are hardly ever visited: then it is best by chance, and little can be proved of it. If it
uses no such rows, bets are on its value. Otherwise there are more proposals:

- cautious policies, which are best if nature chooses the rows that are visited less often than some number of times;
- today's practice, which is what the pilot does, so that its rows are those that are visited.

For each, bounds are predicted as if all data were like the pilot. The two with the best predictions are the candidates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import WhyNot
from plumdp.data.counts import CountArray
from plumdp.data.practice import practice_of
from plumdp.model.graph import BoolArray, FloatArray, Indices, IntArray, owners, read_only
from plumdp.model.objectives import Kind
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import as_choices
from plumdp.model.question import Question
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.coupled.chain import policy_chain
from plumdp.solver.evaluate import evaluate_all
from plumdp.solver.problem import Problem
from plumdp.solver.reduce import reduce
from plumdp.solver.solve import solve
from plumdp.tables.bracket import BetMoments, Errors
from plumdp.tables.chain import smooth
from plumdp.tables.intervals import row_intervals
from plumdp.tables.tilted import shape_of
from plumdp.tables.values import chain_of_policy, estimate_value, value_bounds

_ENOUGH = (250.0, 80.0, 25.0)  # visits of a row, for each unit of ln(1 / error): its mean is then known to a tenth, …
_N_CANDIDATES = 2
_LAST = 0.875  # of the data, after which the last bets are placed
_PRECISION = 1e-6
_NARROWER = 0.9  # than other bets, as predicted, from which on tilted ones are taken


@dataclass(frozen=True, eq=False)
class Outlook:
    """What the pilot counted, what data are planned, and the errors of bets on one policy and of intervals."""

    counts: CountArray  # (n_transitions), of the counted model
    seen: FloatArray  # (n_free): the same by places
    length: float
    planned: float
    errors: Errors
    of_intervals: float

    @property
    def growth(self) -> float:
        """How many times as long as the pilot all data are planned to be."""
        return self.planned / self.length

    @property
    def moments(self) -> BetMoments:
        """What is expected to be seen at the moments at which bets are placed, and in all."""
        lengths = (self.length, _LAST * self.planned)
        counts = (self.seen, _LAST * self.growth * self.seen, self.growth * self.seen)
        return BetMoments(counts, lengths, self.planned)


def candidates_of(question: Question, outlook: Outlook) -> tuple[npt.NDArray[Any], ...]:
    """Return the policies to bet on, the favourite first."""
    frequency = smoothed(question.model, outlook.seen)
    best = _best(question, frequency, frequency)
    trusted = _trusted(question.model, outlook)
    used = best[_used(question, best)]
    if trusted[0][used].all():
        return (best,)
    proposals = [best]
    for is_trusted in trusted:
        known = _expressions_of(question.model, is_trusted)
        proposals.append(_best(question, np.where(known, frequency, 0.0), np.where(known, frequency, 1.0)))
    if question.objective.kind is not Kind.DISCOUNTED:  # a policy that draws has no discounted value yet
        proposals.append(as_choices(question.model.graph, practice_of(outlook.counts, question.model)))
    distinct = {policy.tobytes(): read_only(policy) for policy in proposals}.values()
    return tuple(_best_predicted(question, outlook, distinct))[:_N_CANDIDATES]


def _best_predicted(
    question: Question, outlook: Outlook, policies: Iterable[npt.NDArray[Any]]
) -> list[npt.NDArray[Any]]:
    """Return policies in the order of their predicted bounds; those that cannot be among the best are left out."""
    uncertain = _expected_intervals(question, outlook)
    estimated = [(estimate_value(question, policy, outlook.seen), policy) for policy in policies]
    found: list[tuple[float, npt.NDArray[Any]]] = []
    for estimate, policy in sorted(estimated, key=lambda pair: -pair[0]):
        if not found or estimate > max(found, key=lambda pair: pair[0])[0]:
            low, high = _predicted(question, outlook, uncertain, policy, outlook.errors)[0]
            found.append((low if question.objective.direction == "max" else -high, policy))
    return [policy for _, policy in sorted(found, key=lambda pair: -pair[0])]


def with_narrower_bets(question: Question, outlook: Outlook, policy: npt.NDArray[Any], errors: Errors) -> Errors:
    """Return the errors, for tilted bets if these are predicted to leave much less than others of a policy's value."""
    chain = chain_of_policy(question.model, policy, question.objective)
    if isinstance(chain, WhyNot) or shape_of(chain.table) is None:
        return errors
    uncertain, tilted = _expected_intervals(question, outlook), replace(errors, are_tilted=True)
    plain, other = _predicted(question, outlook, uncertain, policy, errors, tilted)
    return tilted if other[1] - other[0] < _NARROWER * (plain[1] - plain[0]) else errors


def _expected_intervals(question: Question, outlook: Outlook) -> IntervalMDP:
    """Return the model with the intervals of its rows if all data are like the pilot."""
    expected = np.round(outlook.growth * outlook.counts).astype(np.int64)
    lower, upper = row_intervals(question.model.counted, expected, error=outlook.of_intervals)
    return IntervalMDP(question.model.graph, question.model.expression, lower, upper)


def _predicted(
    question: Question, outlook: Outlook, uncertain: IntervalMDP, policy: npt.NDArray[Any], *errors: Errors
) -> list[tuple[float, float]]:
    """Return bounds on the value of a policy if all data are like the pilot, for bets with each of the errors."""
    objective, start = question.objective, question.model.graph.initial_state
    ends = evaluate_all([uncertain], policy, objective, ("robust", "optimistic"), precision=_PRECISION)
    low, high = ends if objective.direction == "max" else ends[::-1]
    within = low.lower, high.upper
    plain = float(within[0][start]), float(within[1][start])
    found = [value_bounds(outlook.moments, each, question.model, objective, (policy, *within)) for each in errors]
    return [plain if isinstance(each, WhyNot) else (each.lower, each.upper) for each in found]


def _trusted(model: ParametricMDP, outlook: Outlook) -> list[BoolArray]:
    """Return, by rules from strict to lax, whether the row of each choice is visited often enough (n_choices).

    The choice of a state whose row is visited most is trusted by all of them.
    """
    graph, visits = model.graph, _row_visits(model, outlook.seen)
    is_most = visits == np.maximum.reduceat(visits, graph.first_choice[:-1])[graph.state_of_choice()]
    logarithm = np.log(6 * graph.n_choices / outlook.errors.rows)
    return [((outlook.growth - 1) * visits >= enough * logarithm) | is_most for enough in _ENOUGH]


def _best(question: Question, lower: FloatArray, upper: FloatArray) -> IntArray:
    """Return the best policy against nature, given bounds on the probabilities of all expressions."""
    mdp = IntervalMDP(question.model.graph, question.model.expression, read_only(lower), read_only(upper))
    return solve(mdp, question.objective, precision=_PRECISION).policy


def _used(question: Question, policy: IntArray) -> Indices:
    """Return the states whose choice matters to the value of a policy."""
    objective = reduce(Problem(question.model, question.objective)).problem.objective
    chain = policy_chain(question.model, policy, objective)
    return np.arange(len(policy)) if isinstance(chain, WhyNot) else chain.state[: chain.n_open]


def _row_visits(model: ParametricMDP, seen: FloatArray) -> FloatArray:
    """Return the visits to the row of each choice (n_choices), infinite if its numbers are known."""
    n_known, expression = len(model.expressions.polynomials), np.asarray(model.expression)
    is_free = expression >= n_known
    return model.graph.sum_by_choice(np.where(is_free, seen[np.where(is_free, expression - n_known, 0)], np.inf))


def _expressions_of(model: ParametricMDP, is_trusted: BoolArray) -> BoolArray:
    """Return for each expression whether it is a number or belongs to the row of a trusted choice (n_expressions)."""
    result = np.zeros(len(model.expressions), dtype=np.bool_)
    result[: len(model.expressions.polynomials)] = True
    result[np.asarray(model.expression)[is_trusted[model.graph.choice_of_transition()]]] = True
    return result


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
