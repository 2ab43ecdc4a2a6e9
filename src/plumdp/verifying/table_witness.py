"""Makes the witness of a certificate of a table of unknown rows, which ``plumdp_verify/table_check.py`` checks.

Values are those of the solver, and bets those of ``tables/``: what was fixed before the data, and the centre of the
bracket, in the checker's order of nodes. Bounds on values within intervals, which a checker proves in exact fractions,
are those of the solver, which proves them by induction with each step rounded outward: so exact steps lead from them
inward as well.

If the policy draws its actions, the draw is a step of known numbers before the row of its choice, as in
``tables/values.py``. If the objective counts steps, and the policy does not, the chain does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.error_budget import equal_parts, favoured_parts
from plumdp.base.errors import DataError, WhyNot
from plumdp.confidence.bounds import events_of_rows
from plumdp.confidence.likelihood import order_of
from plumdp.data.counts import TransitionCounts
from plumdp.learning.learned import Learned
from plumdp.model.graph import BoolArray, FloatArray, Indices, read_only
from plumdp.model.objectives import Objective, Reach, Reward
from plumdp.model.parametric import ParametricMDP, RewardStructure
from plumdp.model.policy import Policy, as_choices, check_policy
from plumdp.model.question import Question
from plumdp.model.unmodelled_exits import places_out_of_table
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.result.certificate import Certificate
from plumdp.solver.problem import Problem
from plumdp.solver.reduce import reduce
from plumdp.solver.solve import solve
from plumdp.tables.bracket import BetMoments, Errors, TableBounds, table_bounds
from plumdp.tables.chain import OpenChain, pooled
from plumdp.tables.intervals import counted_rows
from plumdp.tables.plan import BettingPlan, Reference
from plumdp.tables.table_set import TableSet
from plumdp.tables.values import chain_of_policy
from plumdp.verifying.boundary import as_float
from plumdp.verifying.chain_part import Ends, relied_on, value_part
from plumdp.verifying.set_proof import shares_part
from plumdp_verify.reading import Part, Rejected
from plumdp_verify.table_chain import TableChain, read_counts, read_table_chain
from plumdp_verify.table_deviation import MOST_NODES as MOST_IN_BETS
from plumdp_verify.table_values import Intervals, read_intervals

_MOST_NODES = 5_000  # of which values against nature are found within a minute
_ROOM = 1e-12  # relative, as of the checker


def table_content(learned: Learned, question: Question, certificate: Certificate) -> dict[str, Any]:
    """Return the parts of a witness that are about a table: counts, chain, intervals, values and bets."""
    found, rows = learned.bounds.of_kind(TableSet)[0], TableRows.of(learned.model)
    chain, keys = table_chain_part(question, certificate.policy, rows)
    support = support_part(question.model, rows)
    used = {row[2] for row in chain["rows"] if row is not None and isinstance(row[2], int)} | {
        row for row, _ in support
    }
    content: dict[str, Any] = {
        "kind": "table",
        "budget": {"error": learned.error, "shares": shares_part(learned.budget)},
        **data_part(learned.model, learned.counts, found.moments, rows),
        "chain": chain,
        "intervals": intervals_part(learned, found, rows, used),
        "values": None,
        "bets": None,
        **({"support": support} if support else {}),
    }
    try:
        witness = Part(json.loads(json.dumps(content)), "witness")
        counts = read_counts(witness)
        read = read_table_chain(witness["chain"], counts)
        intervals = read_intervals(witness["intervals"], counts, read)
    except Rejected:  # which the checker says again
        return content
    refuse_unknown({f"chains of tables with more than {_MOST_NODES:,} open nodes": len(read.nodes) > _MOST_NODES})
    values = content["values"] = values_part(read, intervals)
    if read.initial is not None:
        lower, upper = certificate.lower, certificate.upper
        claimed = (1 - upper, 1 - lower) if read.complement else (lower, upper)
        start = np.array([values["lower"], [inf if x is None else x for x in values["upper"]]])
        if _needed(claimed, start[:, read.initial].tolist()):
            open_keys = [key for key, number in zip(keys, read.numbers, strict=True) if number is not None]
            policy = as_choices(question.model.graph, check_policy(question.model.graph, certificate.policy))
            content["bets"] = _bets_part(learned, question, policy, open_keys, start, claimed)
    return content


def refuse_unknown(unknown: Mapping[str, bool]) -> None:
    """Refuse the first thing that is so and that verify does not know."""
    for what, is_so in unknown.items():
        if is_so:
            raise DataError(f"verify does not know {what}, so there is no witness of this certificate")


def _needed(claimed: tuple[float, float], proved: Sequence[float]) -> set[int]:
    """Return the ends of a claim (-1 the lower, 1 the upper) that do not follow from those that are proved."""
    ends = zip((-1, 1), claimed, proved, strict=True)
    return {s for s, end, bound in ends if isfinite(end) and s * (bound - end) > _ROOM / 2 * abs(end)}


def _bets_part(
    learned: Learned,
    question: Question,
    policy: npt.NDArray[Any],
    keys: Sequence[Key],
    start: FloatArray,
    claimed: tuple[float, float],
) -> dict[str, Any] | None:
    """Return the bets that a bracket needs, or None if there are none.

    ``keys`` are the open nodes of the checker, and ``start`` (2, n) the bounds on them that intervals prove.
    """
    found = learned.bounds.of_kind(TableSet)[0]
    if found.moments is None:
        return None
    refuse_unknown({"bets in tables that runs may leave": bool(len(places_out_of_table(question.model)))})
    same = [each for each in found.about(question) if np.array_equal(each.policy, policy)]
    bounded = chain_of_policy(question.model, policy, question.objective)
    if not same or isinstance(bounded, WhyNot):
        return None
    chosen, table = max(same, key=lambda each: each.errors.of_side), bounded.table
    refuse_unknown({"tilted bets on values of a table": chosen.errors.are_tilted})
    refuse_unknown({f"bets on chains of tables with more than {MOST_IN_BETS:,} open nodes": table.n > MOST_IN_BETS})
    order = order_of_nodes(table, keys)
    low, high = (read_only(each[np.argsort(order)]) for each in start)
    made = table_bounds(table, found.moments, chosen.errors, low, high)
    if isinstance(made, WhyNot):
        return None
    prespecified = [each for each in found.prespecified if each.question is chosen.question]  # these divide its error
    shares = favoured_parts(1.0, len(prespecified))
    return {
        "questions": len(learned.questions),
        "shares": [str(Fraction(share).limit_denominator(10_000)) for share in shares],
        "policy": prespecified.index(chosen),
        "start": {"lower": start[0].tolist(), "upper": start[1].tolist()},
        **fixed_part(made.plan, made.near.reference, order),
        **_written(made, chosen.errors, order, claimed),
    }


def order_of_nodes(table: OpenChain, keys: Sequence[Key]) -> Indices:
    """Return the number in a table's chain of each open node of the checker."""
    number = {state: node for node, state in enumerate(table.chain.state[: table.n].tolist())}
    return np.array([number[state] for state, _ in keys])


def fixed_part(plan: BettingPlan, reference: Reference, order: Indices) -> dict[str, Any]:
    """Return the part of the bets on each open node that the pilot fixed."""
    first, probability = plan.table.chain.first, reference.probability
    return {
        "kept": np.flatnonzero((plan.is_kept & plan.table.is_free)[order]).tolist(),
        "reference": [probability[first[s] : first[s + 1]].tolist() for s in order.tolist()],
        "sizes": np.array(reference.sizes).T[order].tolist(),
        "spread": reference.spread[order].tolist(),
        "cut": reference.cut[order].tolist(),
        "mixed": np.flatnonzero(reference.is_mixed[order]).tolist(),
    }


def _written(made: TableBounds, errors: Errors, order: Indices, claimed: tuple[float, float]) -> dict[str, Any]:
    """Return the quantities that a bracket was made with."""
    near = made.near

    def nodes(chosen: BoolArray) -> list[int]:
        return np.flatnonzero(chosen[order]).tolist()

    def numbers(of_node: FloatArray) -> list[float]:
        return list(map(float, of_node[order]))

    asked = _needed(claimed, [made.estimate - made.distance, made.estimate + made.distance])
    ends = zip((-1, 1), ("lower", "upper"), (made.low, made.high), strict=True)
    sides = {
        name: None
        if sign not in asked or end is None
        else {
            "weights": [numbers(stage.weight) for stage in end.stages],
            "scale": end.scale,
        }
        for sign, name, end in ends
    }
    return {
        "errors": {"side": errors.of_side, "rows": errors.rows, "ball": errors.ball},
        "known": nodes(near.is_known),
        "ball": nodes(near.rows.in_ball),
        "sides": sides,
    }


_PRECISION = 1e-13


def values_part(chain: TableChain, intervals: Intervals) -> dict[str, Any]:
    """Return lower and upper values of all open nodes, and what proves that runs end."""
    mdp, objective, reward = _interval_mdp(chain, intervals), *_objective(chain)
    lower = solve(mdp, objective, nature="robust", precision=_PRECISION).lower
    upper = solve(mdp, objective, nature="optimistic", precision=_PRECISION).upper
    is_open = np.arange(len(reward)) < len(chain.nodes)
    is_positive = is_open & (lower > 0) if chain.is_never_negative else is_open
    least = float(reward[is_positive].min(initial=np.inf))
    paid = 2 / least if chain.is_never_negative and least > 0 else 0.0
    steps, more, is_discounted = np.zeros(len(reward)), np.zeros(len(reward)), chain.kind == "discounted"
    if not is_discounted and paid == 0:
        steps = _steps(mdp, ~is_positive)
    if not is_discounted and not (chain.kind in ("reach", "total") and chain.is_never_negative):
        more = _steps(mdp, ~(is_open & np.isfinite(upper)))
    written = {"steps_lower": steps, "lower": lower, "steps_upper": more, "upper": upper}
    return {"paid": paid} | {
        name: [x if np.isfinite(x) else None for x in values[is_open].tolist()] for name, values in written.items()
    }


def _interval_mdp(chain: TableChain, intervals: Intervals) -> IntervalMDP:
    """Return the chain with a state for each open node, and two in which runs are over, worth one and nothing."""
    n, first, successor = len(chain.nodes), [0], list[int]()
    lower, upper = list[float](), list[float]()
    for node in chain.nodes:
        low, high = (node.numbers, node.numbers) if node.row is None else intervals[node.row]
        lower += map(as_float, low)
        upper += map(as_float, high)
        successor += [n + (x == 0) if s is None else s for s, x in zip(node.successors, node.known, strict=True)]
        first.append(len(successor))
    first, successor = [*first, first[-1] + 1, first[-1] + 2], [*successor, n, n + 1]
    return IntervalMDP.from_arrays(range(n + 3), first, successor, [*lower, 1.0, 1.0], [*upper, 1.0, 1.0])


def _objective(chain: TableChain) -> tuple[Objective, FloatArray]:
    """Return the objective of the chain, and the reward of each state."""
    reward = np.array([*(as_float(node.reward) for node in chain.nodes), 0.0, 0.0])
    is_one, is_nothing = (np.arange(len(reward)) == len(reward) - k for k in (2, 1))
    if chain.kind == "reach":
        return Reach(is_one, is_nothing, "max"), reward
    return Reward(
        RewardStructure(reward, None),
        "max",
        target=is_nothing if chain.kind == "until" else None,
        steps=None if chain.is_never_negative or chain.kind == "discounted" else len(reward),  # they are counted
        discount=Fraction(str(chain.discount)) if chain.kind == "discounted" else None,
    ), reward


def _steps(mdp: IntervalMDP, is_outside: BoolArray) -> FloatArray:
    """Return numbers of steps until runs leave some states, whatever nature does."""
    counted = RewardStructure(np.where(is_outside, 0.0, 1.0), None)
    return solve(mdp, Reward(counted, "max", target=is_outside), nature="optimistic").upper


Key: TypeAlias = tuple[int, int]
"""A state, of the model in which the policy draws in steps of their own, and a step."""


@dataclass(frozen=True)
class TableRows:
    """The unknown rows of a table, and their places among its free expressions."""

    places: list[list[int]]

    @staticmethod
    def of(model: ParametricMDP) -> TableRows:
        """Return all unknown rows of a model."""
        rows, n_known = model.rows, len(model.expressions.polynomials)
        expression = np.asarray(model.expression)[rows.transition]
        each = np.split(expression - n_known, rows.first[1:-1])
        return TableRows(
            [places.tolist() for places, is_free in zip(each, counted_rows(model), strict=True) if is_free]
        )

    def number(self) -> dict[int, int]:
        """Return the number of the row of each place that is the first of one."""
        return {places[0]: i for i, places in enumerate(self.places)}


def data_part(model: ParametricMDP, counts: TransitionCounts, moments: BetMoments | None, rows: TableRows) -> Any:
    """Return the known order of the data, and the count of each place."""
    seen = [*([] if moments is None else moments.counts[:-1]), pooled(model, counts.counts)]
    about = {
        "order": order_of(counts.pilot),
        "sampling": counts.sampling,
        "lengths": [] if moments is None else list(moments.lengths),
        "expected": None if moments is None else moments.planned,
    }
    return {
        "data": about,
        "rows": [[[int(each[place]) for place in places] for each in seen] for places in rows.places],
    }


def intervals_part(learned: Learned, found: TableSet, rows: TableRows, used: set[int]) -> dict[str, Any]:
    """Return the intervals of the rows that are used, and among how many events their error is divided."""
    model, lower, upper = learned.model, found.lower, found.upper
    n_known = len(model.expressions.polynomials)
    number = int(events_of_rows(model.rows.first, counted_rows(model)).sum())
    listed = []
    for row in sorted(used):
        at = n_known + np.array(rows.places[row])
        listed.append({"row": row, "lower": lower[at].tolist(), "upper": upper[at].tolist()})
    error = equal_parts(learned.budget.error_in_set("intervals", found.error), number)
    return {"error": error, "number": number, "list": listed}


def support_part(model: ParametricMDP, rows: TableRows) -> list[list[int]]:
    """Return the unknown probabilities that a mission needs to be positive: rows, and places in them."""
    n_known = len(model.expressions.polynomials)
    place_of = {place: [row, i] for row, places in enumerate(rows.places) for i, place in enumerate(places)}
    return [place_of[f - n_known] for f in relied_on(model) if f >= n_known]


def table_chain_part(question: Question, policy: Policy, rows: TableRows) -> tuple[dict[str, Any], list[Key]]:
    """Return the chain of the policy with all states that it reaches, and what each of its nodes is."""
    graph = question.model.graph
    given = as_choices(graph, check_policy(graph, policy))
    problem = reduce(Problem(question.model, question.objective, given)).problem
    assert problem.policy is not None
    steps, expressions, ends = problem.mdp.graph, problem.mdp.expressions, Ends(problem.objective, problem.mdp)
    row_of, n_known, reward = rows.number(), len(expressions.polynomials), problem.objective.terms(steps).reward
    found: list[Key] = [(graph.initial_state, 0)]
    numbers = {found[0]: 0}
    written: list[list[Any] | None] = []
    over: dict[bool, list[int]] = {True: [], False: []}
    for node, (state, step) in enumerate(found):  # which grows on the way
        if ends.is_over(state, step):
            written.append(None)
            over[ends.is_target(state, step)].append(node)
            continue
        choice = int(problem.policy[state])
        places = slice(*steps.first_transition[choice : choice + 2].tolist())
        first, *others = problem.mdp.expression[places].tolist()
        if first >= n_known and first - n_known not in row_of:  # of what happens elsewhere nothing is known
            written.append([0.0, [], "any"])
            continue
        ahead = [(successor, step + ends.counts) for successor in steps.successor[places].tolist()]
        for key in ahead:
            if key not in numbers:
                numbers[key] = len(found)
                found.append(key)
        known = [str(expressions.polynomials[f].constant) for f in (first, *others) if f < n_known]
        written.append([float(reward[choice]), [numbers[key] for key in ahead], known or row_of[first - n_known]])
    states, n = np.array([state for state, _ in found]), graph.n_states
    names = [graph.action_names[action] for action in graph.action]
    return {
        **value_part(question),
        "initial": 0,
        "target": over[True],
        "avoid": over[False],
        "rows": written,
        "states": {name: values[states].tolist() for name, values in steps.states.items()},
        "choices": None if steps is graph else [None if s < n else names[s - n] for s in states.tolist()],
        "step": [step for _, step in found] if ends.counts else None,
    }, found
