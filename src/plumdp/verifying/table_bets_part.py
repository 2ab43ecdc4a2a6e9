"""Writes bets on temporal differences for a checker: what was fixed before the data, and the centre of the bracket.

The bracket is made again, from bounds on the values of all nodes that the checker proves, in its order of nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from plumdp.base.error_budget import favoured_parts
from plumdp.base.errors import DataError
from plumdp.base.rounding import ULP
from plumdp.certifying.pipeline import relax
from plumdp.certifying.valuation import with_looser
from plumdp.learning.learned import Learned
from plumdp.model.elsewhere import places_elsewhere
from plumdp.model.graph import BoolArray, FloatArray, Indices, read_only
from plumdp.model.policy import as_choices, check_policy
from plumdp.model.question import Question
from plumdp.result.certificate import Certificate
from plumdp.solver.evaluate import evaluate_all
from plumdp.tables.bounds import Errors, TableBounds, table_bounds
from plumdp.tables.bracket import bracket_end
from plumdp.tables.chain import TableChain
from plumdp.tables.policies import BoundedChain, chain_of_policy
from plumdp.tables.rows import Reference
from plumdp.tables.table_set import TableSet
from plumdp.verifying.table_chain_part import Key
from plumdp_verify.table_joint import MOST_NODES as MOST_IN_NORM
from plumdp_verify.table_near import MOST_NODES

_ROOM = 1e-12  # relative, as of the checker


def unknown_error(what: str) -> DataError:
    """Return the refusal of what verify does not know."""
    return DataError(f"verify does not know {what}, so there is no witness of this certificate")


@dataclass(frozen=True)
class Ends:
    """Both ends of what is claimed of the chain, and what intervals prove of its first node."""

    lower: float
    upper: float
    proved_lower: float
    proved_upper: float

    def need(self, sign: int, bound: float) -> bool:
        """Return whether an end (-1 the lower, 1 the upper) does not follow from a bound."""
        end = self.upper if sign > 0 else self.lower
        return bool(np.isfinite(end)) and sign * (bound - end) > _ROOM / 2 * abs(end)


def bets_part(
    learned: Learned,
    question: Question,
    certificate: Certificate,
    keys: Sequence[Key],
    values: tuple[FloatArray, FloatArray],
    ends: Ends,
) -> dict[str, Any] | None:
    """Return the bets that the bracket needs, or None if intervals prove it, or there are no bets.

    ``keys`` are the open nodes of the checker, and ``values`` the bounds on them that intervals prove.
    """
    needed = [s for s, bound in ((-1, ends.proved_lower), (1, ends.proved_upper)) if ends.need(s, bound)]
    found, graph = cast("TableSet", learned.bounds), question.model.graph
    policy = as_choices(graph, check_policy(graph, certificate.policy))
    if not needed or found.moments is None:
        return None
    if len(places_elsewhere(question.model)):
        raise unknown_error("bets in tables that runs may leave")
    same = [each for each in found.announced if each.question.digest == question.digest]
    same = [each for each in same if np.array_equal(each.policy, policy)]
    if not same:
        return None
    chosen = max(same, key=lambda each: each.errors.of_side)
    announced = [each for each in found.announced if each.question is chosen.question]  # these divide its error
    place = announced.index(chosen)
    bounded = _bounded(learned, question, policy)
    if isinstance(bounded, str) or not np.isfinite(values).all():
        return None
    if bounded.table.n > MOST_NODES:
        raise unknown_error(f"bets on chains of tables with more than {MOST_NODES:,} open nodes")
    order = order_of_nodes(bounded, question, policy, keys)
    low, high = bounded.lower.copy(), bounded.upper.copy()
    low[order] = np.minimum(low[order], values[0])
    high[order] = np.maximum(high[order], values[1])
    made = table_bounds(bounded.table, found.moments, chosen.errors, read_only(low), read_only(high))
    if isinstance(made, str):
        return None
    start = {"lower": low[order].tolist(), "upper": high[order].tolist()}
    shares = [str(Fraction(share).limit_denominator(10_000)) for share in favoured_parts(1.0, len(announced))]
    about = {"questions": len(learned.questions), "shares": shares, "policy": place, "start": start}
    written = _written(made, chosen.errors, order, needed, ends)
    return about | {"reference": reference_rows(made.near.reference, bounded.table, order)} | written


def _bounded(learned: Learned, question: Question, policy: npt.NDArray[Any]) -> BoundedChain | str:
    """Return the chain of the policy with bounds on its values by intervals, as ``value_policy`` has them."""
    objective, uncertain = question.objective, relax(learned, "interval", question.model)
    within = learned.at_points(question).prepared
    solved = evaluate_all(with_looser(uncertain), policy, objective, ("robust", "optimistic"), within=within)
    low, high = solved if objective.direction == "max" else solved[::-1]
    lower, upper, flipped = low.lower, high.upper, objective.flipped()
    if flipped is not None:
        objective, lower, upper = flipped, 1 - upper - ULP, 1 - lower + ULP
    return chain_of_policy(question.model, policy, objective, lower, upper)


def order_of_nodes(bounded: BoundedChain, question: Question, policy: npt.NDArray[Any], keys: Sequence[Key]) -> Indices:
    """Return the number in a table's chain of each open node of the checker."""
    graph, table, number = question.model.graph, bounded.table, {}
    owner = graph.state_of_choice()
    for node, state in enumerate(table.chain.state[: table.n].tolist()):
        choice = state - graph.n_states
        number[(state, -1, 0) if choice < 0 else (int(owner[choice]), choice, 0)] = node
    return np.array([number[key] for key in keys])


def reference_rows(reference: Reference, table: TableChain, order: Indices) -> list[list[float]]:
    """Return the reference of each open node."""
    first = table.chain.first
    return [reference.probability[first[s] : first[s + 1]].tolist() for s in order.tolist()]


def _written(made: TableBounds, errors: Errors, order: Indices, needed: Sequence[int], ends: Ends) -> dict[str, Any]:
    table, near, plan, joint = made.plan.table, made.near, made.plan, made.joint
    reference = near.reference

    def nodes(chosen: BoolArray) -> list[int]:
        return np.flatnonzero(chosen[order]).tolist()

    def numbers(of_node: FloatArray) -> list[float]:
        return list(map(float, of_node[order]))

    asked = [s for s in needed if ends.need(s, made.estimate + s * made.distance)]
    plain = {s: bracket_end(plan, made.stages[s], near, s) for s in asked}
    best = {-1: made.low, 1: made.high}
    needs_joint = joint is not None and any(end is None or ends.need(s, end.value) for s, end in plain.items())
    if needs_joint and table.n > MOST_IN_NORM:
        raise unknown_error(f"norms of tables with more than {MOST_IN_NORM:,} open nodes")
    chosen = {s: best[s] if needs_joint else plain[s] for s in asked}
    sides = {
        name: None
        if (end := chosen.get(sign)) is None
        else {
            "weights": [numbers(stage.weight) for stage in made.stages[sign]],
            "centre": numbers(end.centre),
            "scale": end.scale,
        }
        for name, sign in (("lower", -1), ("upper", 1))
    }
    return {
        "errors": {"side": errors.of_side, "rows": errors.rows, "ball": errors.ball},
        "kept": nodes(plan.is_kept & table.is_free),
        "sizes": [[float(size[s]) for size in reference.sizes] for s in order],
        "spread": numbers(reference.spread),
        "cut": numbers(reference.cut),
        "mixed": nodes(reference.is_mixed),
        "known": nodes(near.is_known),
        "ball": nodes(near.rows.in_ball),
        "joint": {"core": nodes(joint.core), "unit": numbers(joint.unit)}
        if needs_joint and joint is not None
        else None,
        "sides": sides,
    }
