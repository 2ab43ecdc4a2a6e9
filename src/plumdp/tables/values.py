"""Bounds on the value of a policy in a table, by bets on its chain, and estimates of it.

If the policy draws its actions, the draw is a step of known numbers before the row of its choice. So each state and
action that it may take is a node with an unknown row of its own, and each state is a node whose row is known.

**Differences.** Both chains stand side by side, and what is bounded is the value of one first node less that of the
other. Nodes whose rows are the same are tied, so that what both policies have in common cancels; nodes from which on
all is the same, whatever the table is, are one node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.combinations import Trait, why_not
from plumdp.base.error_budget import equal_parts
from plumdp.base.errors import UNSAID, WhyNot
from plumdp.base.rounding import ULP
from plumdp.model.graph import FloatArray, Graph, Indices, ranges, read_only
from plumdp.model.objectives import Kind, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import policy_weights
from plumdp.model.question import Question
from plumdp.model.unmodelled_exits import places_out_of_table
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.coupled import kernels
from plumdp.solver.coupled.bounds import Proof
from plumdp.solver.coupled.chain import PolicyChain, policy_chain
from plumdp.solver.problem import Problem
from plumdp.solver.reduce import Reduced, reduce
from plumdp.tables.bracket import BetMoments, Errors, TableBounds, table_bounds
from plumdp.tables.chain import KNOWN, PRIOR, OpenChain, pooled, regular_equations, table_chain
from plumdp.tables.coupling import CoupledChain, largest_difference
from plumdp.tables.plan import row_variances
from plumdp.tables.tilted import TiltedBounds, tilted_bounds

_HERS = (-(2**62), -(2**62) - 1)  # labels of what nature chooses, of either chain


@dataclass(frozen=True, eq=False)
class ChainOfPolicy:
    """The chain of a policy, and how its values are those that were asked in the states of a graph."""

    table: OpenChain
    reduced: Reduced[ParametricMDP]
    graph: Graph

    def labels(self, numbers: dict[Fraction, int], own: int) -> Indices:
        """Return a number for the probability of each transition: the same if that is the same, whatever the table is.

        ``numbers`` are those of known probabilities so far. What nature chooses where runs leave has that of ``own``.
        """
        polynomials = self.reduced.problem.mdp.expressions.polynomials
        known = [numbers.setdefault(Fraction(f.constant), len(numbers)) for f in polynomials]
        expression, place = np.asarray(self.table.chain.expression), self.table.place
        of_number = np.array([*(-1 - each for each in known), own])[np.minimum(expression, len(known))]
        return np.where(place == KNOWN, of_number, place)

    def start(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds (n) on the values of open nodes, given those (n_states) on the values that were asked.

        What a choice that was drawn is worth is bounded by its own reward, and the least and the largest value where it
        may lead.
        """
        lower, upper = self.reduced.bounds(lower, upper)
        graph, problem, state = self.graph, self.reduced.problem, self.table.chain.state[: self.table.n]
        if not self.reduced.keeps_states:
            own, starts = (
                problem.objective.terms(problem.mdp.graph).reward[graph.n_states :],
                graph.first_transition[:-1],
            )
            low = np.minimum.reduceat(lower[graph.successor], starts)
            high = np.maximum.reduceat(upper[graph.successor], starts)
            outward = 2 * ULP * (np.abs(own) + np.maximum(np.abs(low), np.abs(high)))
            lower, upper = np.concatenate([lower, own + low - outward]), np.concatenate([upper, own + high + outward])
        return lower[state], upper[state]

    def estimate(self, seen: FloatArray) -> float | None:
        """Return about the value that was asked, by smoothed frequencies, or None if these have none."""
        table, probability = self.table, self.table.frequencies(seen)
        equations = regular_equations(table, probability)
        if equations is None:
            return None
        values = equations.values()
        return self.reduced.value(float(values[table.chain.initial]))


def chain_of_policy(
    model: ParametricMDP, policy: npt.NDArray[Any], objective: Objective, *, side: int = -1
) -> ChainOfPolicy | WhyNot:
    """Return the chain of a policy, or in words why there is none.

    Runs that leave the table are worth the least (side -1) or the most (side 1) that they may be, so that the values of
    the chain are constants.
    """
    is_average = objective.kind is Kind.AVERAGE
    asked = objective.n_steps is not None and Trait.STEPS, is_average and Trait.AVERAGE
    if no_bets := why_not(Trait.TABLE_BETS, *asked):
        return WhyNot(no_bets)
    nature, reduced = places_out_of_table(model), reduce(Problem(model, objective, policy))
    problem = reduced.problem
    assert problem.policy is not None
    chain = policy_chain(problem.mdp, problem.policy, problem.objective)
    if isinstance(chain, WhyNot):
        return chain
    if chain.n_open == 0:
        return WhyNot("the value is known")
    table = table_chain(problem.mdp, chain)
    if len(nature):
        is_hers = np.isin(table.place, nature)
        chosen = table.place == nature[0 if side < 0 else 1]
        place, number = np.where(is_hers, KNOWN, table.place), np.where(is_hers, chosen, table.number)
        table = replace(table, place=read_only(place), number=read_only(number.astype(np.float64)))
    return ChainOfPolicy(table, reduced, model.graph)


Bounded: TypeAlias = tuple[npt.NDArray[Any], FloatArray, FloatArray]
"""A policy, and bounds (n_states) on its values from below and above that hold jointly with the bets."""


def value_bounds(
    moments: BetMoments, errors: Errors, model: ParametricMDP, objective: Objective, *policies: Bounded
) -> Proof | WhyNot:
    """Return bounds by bets on the value of a policy, or of one less another, or in words why there are none.

    If runs may leave the table, the ends are those of two chains, each with bets on its rows, and the lower end of a
    difference has the first policy at its worst outside, and the second at its best.
    """
    sides = (-1, 1) if len(places_out_of_table(model)) else (-1,)
    errors = replace(errors, rows=equal_parts(errors.rows, len(sides)), ball=equal_parts(errors.ball, len(sides)))
    found = list[TableBounds | TiltedBounds]()
    for side in sides:
        made = _chains(model, objective, [policy for policy, *_ in policies], side)
        if isinstance(made, WhyNot):
            return made
        chains, table, own = made
        starts = [chain.start(*values) for chain, (_, *values) in zip(chains, policies, strict=True)]
        lower, upper = starts[0]
        if len(chains) > 1:
            lower, upper = (np.append(each, more[own]) for each, more in zip(*starts, strict=True))
        if not table.start.any():
            return Proof(0.0, 0.0, 0.0, 0.0, 0.0, "the same chain")
        bounds: TiltedBounds | TableBounds | WhyNot
        if errors.are_tilted:
            bounds = tilted_bounds(table, moments, errors)
        else:
            bounds = table_bounds(table, moments, errors, lower, upper)
        if isinstance(bounds, WhyNot):
            return bounds
        found.append(bounds)
    low, high = found[0].low, found[-1].high
    first, last = (each.distance + 2 * ULP * (each.size + each.distance) for each in (found[0], found[-1]))
    least = max([found[0].estimate - first, *([] if low is None else [low.value])])
    most = min([found[-1].estimate + last, *([] if high is None else [high.value])])
    reduced, ends = chains[0].reduced, [end for end in (low, high) if end is not None]
    if len(chains) > 1:
        least, most = (least, most) if reduced.sign > 0 else (-most, -least)
    else:  # each end is the better one of the bets, the rows and the intervals
        least, most = reduced.bounds(max(least, float(table.start @ lower)), min(most, float(table.start @ upper)))
    return Proof(
        least,
        most,
        float(sum(end.statistics for end in ends)),
        float(sum(end.curvature + end.mismatch for end in ends)),
        0.0,
        "bets on temporal differences",
    )


def difference_by_intervals(
    model: ParametricMDP, objective: Objective, uncertain: IntervalMDP, first: Bounded, second: Bounded
) -> Proof | WhyNot:
    """Return bounds on the value of one policy less another by the intervals of all rows, or why there are none.

    There are no words if the policies are too large for a look at pairs of their nodes.
    """
    ends, n_known = list[float](), len(model.expressions.polynomials)
    for side in (-1, 1):
        made = _apart(model, objective, [first[0], second[0]], side)
        if isinstance(made, WhyNot):
            return made
        chains, labels = made
        coupled = list[CoupledChain]()
        for chain, label, (_, *values) in zip(chains, labels, (first, second), strict=True):
            table, expression = chain.table, np.maximum(chain.table.place, 0) + n_known
            low, high = (
                np.where(table.place == KNOWN, table.number, each[expression])
                for each in (uncertain.lower, uncertain.upper)
            )
            coupled.append(CoupledChain(table, low, high, label, *chain.start(*values)))
        found = largest_difference(*(coupled if side > 0 else coupled[::-1]))
        if found is None:
            return UNSAID
        ends.append(side * found)
    least, most = ends if chains[0].reduced.sign > 0 else (-ends[1], -ends[0])
    return Proof(least, most, most - least, 0.0, 0.0, "runs that move together")


def _apart(
    model: ParametricMDP, objective: Objective, policies: Sequence[npt.NDArray[Any]], side: int
) -> tuple[list[ChainOfPolicy], list[Indices]] | WhyNot:
    """Return the chains of two policies, or of one, and labels of their transitions, or in words why there are none."""
    is_drawn = any(policy.dtype.kind == "f" for policy in policies)  # then the nodes of both are choices, too
    chains = list[ChainOfPolicy]()
    for policy, end in zip(policies, (side, -side), strict=False):
        written = policy_weights(model.graph, policy) if is_drawn else policy
        chain = chain_of_policy(model, written, objective, side=end)
        if isinstance(chain, WhyNot):
            return chain
        chains.append(chain)
    numbers: dict[Fraction, int] = {}
    # what nature chooses is never the same: it is the least for one policy, and the most for the other
    return chains, [each.labels(numbers, own) for each, own in zip(chains, _HERS, strict=False)]


def _chains(
    model: ParametricMDP, objective: Objective, policies: Sequence[npt.NDArray[Any]], side: int
) -> tuple[list[ChainOfPolicy], OpenChain, Indices] | WhyNot:
    """Return the chains of policies, the first less the second as one chain, and the nodes that are the second's own.

    Or, in words, why there are none.
    """
    made = _apart(model, objective, policies, side)
    if isinstance(made, WhyNot):
        return made
    chains, labels = made
    if len(chains) == 1:
        return chains, chains[0].table, np.arange(0)
    return chains, *side_by_side(chains[0].table, chains[1].table, *labels)


def normal_values(question: Question, counts: Indices, *policies: npt.NDArray[Any]) -> list[tuple[float, float]]:
    """Return the value of a policy, or of one less another, by what was seen, and its variance to first order.

    If runs may leave the table, it is that at its least and at its most. There are none where there are no chains.
    """
    model, found = question.model, []
    seen = pooled(model.counted, counts)
    for side in (-1, 1) if len(places_out_of_table(model)) else (-1,):
        made = _chains(model, question.objective, policies, side)
        if isinstance(made, WhyNot):
            return []
        chains, table, _ = made
        probability = table.frequencies(seen)
        equations = regular_equations(table, probability)
        if equations is None:
            return []
        values, occupancy = equations.values(), equations.solve_transposed(table.start)
        of_visit = row_variances(table, probability, occupancy, table.ahead(values))
        variance = float((of_visit / (table.visits(seen)[table.one_of_each] + PRIOR)).sum())
        value, reduced = float(table.start @ values), chains[0].reduced
        found.append((reduced.sign * value if len(chains) > 1 else reduced.value(value), variance))
    return found


def estimate_value(question: Question, policy: npt.NDArray[Any], seen: FloatArray) -> float:
    """Return about the value of a policy by smoothed frequencies, such that a larger one is better.

    It is infinite if these frequencies have none.
    """
    objective = question.objective
    reduced = reduce(Problem(question.model, objective)).problem.objective
    side = -1 if reduced.direction == "max" else 1  # the worst outside of the table
    chain = chain_of_policy(question.model, policy, objective, side=side)
    value = None if isinstance(chain, WhyNot) else chain.estimate(seen)
    return np.inf if value is None else value if objective.direction == "max" else -value


def side_by_side(one: OpenChain, other: OpenChain, of_one: Indices, of_other: Indices) -> tuple[OpenChain, Indices]:
    """Return the chain of the first policy less the second, and the nodes of the second that are its own.

    They come after the open nodes of the first. ``of_one`` and ``of_other`` have a number for the
    probability of each transition: if it is the same, so are these, whatever the table is.
    """
    assert (one.n_places, one.discount) == (other.n_places, other.discount)  # of one model
    a, b = one.chain, other.chain
    same = _same_nodes(a, b, of_one, of_other)
    is_own = same < 0
    own, own_closed = np.flatnonzero(is_own[: other.n]), np.flatnonzero(is_own[other.n :])
    n = one.n + len(own)
    node = np.where(same < one.n, same, same + len(own))  # closed nodes come after all open ones
    node[own] = one.n + np.arange(len(own))
    node[other.n + own_closed] = n + len(a.known) + np.arange(len(own_closed))
    kept, sizes = ranges(b.first[own], b.first[own + 1]), np.diff(b.first)[own]
    successor = np.where(a.successor < one.n, a.successor, a.successor + len(own))
    chain = replace(
        a,
        state=_joined(a.state[: one.n], b.state[own], a.state[one.n :], b.state[other.n + own_closed]),
        first=_joined(a.first, a.first[-1] + np.cumsum(sizes)),
        successor=_joined(successor, node[b.successor[kept]]),
        expression=_joined(a.expression, b.expression[kept]),
        reward=_joined(a.reward, b.reward[own]),
        known=_joined(a.known, b.known[own_closed]),
        is_ordered=False,
    )
    signed = np.zeros(n)
    signed[a.initial] += 1.0
    signed[node[b.initial]] -= 1.0
    place, number = _joined(one.place, other.place[kept]), _joined(one.number, other.number[kept])
    return OpenChain(chain, place, number, one.n_places, read_only(signed)), own


def _joined(*parts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return read_only(np.concatenate(parts).astype(parts[0].dtype))


def _same_nodes(a: PolicyChain, b: PolicyChain, of_a: Indices, of_b: Indices) -> Indices:
    """Return for each node of the second chain the one of the first with the same future, whatever the table is, or -1.

    These have the same state and reward, the same probabilities in the same order, and successors that are the same.
    """
    n = b.n_open
    of_state = np.full(int(max(a.state.max(), b.state.max())) + 1, -1)
    of_state[a.state] = np.arange(a.n_nodes)
    same = of_state[b.state]
    (end_a, pay_a), (end_b, pay_b) = (_ends(each) for each in (a, b))
    differs = (same < 0) | (end_a[same] != end_b) | (pay_a[same] != pay_b)
    alike = np.flatnonzero(~differs[:n])
    in_a, in_b = (ranges(c.first[at], c.first[at + 1]) for c, at in ((a, same[alike]), (b, alike)))
    is_off = (of_a[in_a] != of_b[in_b]) | (same[b.successor[in_b]] != a.successor[in_a])
    differs[np.repeat(alike, np.diff(b.first)[alike])[is_off]] = True
    kernels.mark_ahead(b.first, b.successor, differs)  # what leads to nodes that differ has another future
    return np.where(differs, -1, same)


def _ends(chain: PolicyChain) -> tuple[Indices, FloatArray]:
    """Return the number of transitions of each node, none of closed ones, and what it pays or is worth."""
    return np.append(np.diff(chain.first), np.zeros(len(chain.known), dtype=np.int64)), np.append(
        chain.reward, chain.known
    )
