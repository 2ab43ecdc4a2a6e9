"""Writes a table for a checker: unknown rows with their counts and intervals, and the Markov chain of a policy.

If the policy draws its actions, the draw is a step of known numbers before the row of its choice, as in
``tables/values.py``. If the objective counts steps, and the policy does not, the chain does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.confidence.likelihood import order_of
from plumdp.confidence.untied import events_of_rows
from plumdp.data.counts import TransitionCounts
from plumdp.learning.learned import Learned
from plumdp.model.elsewhere import elsewhere_of
from plumdp.model.graph import BoolArray
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import policy_weights
from plumdp.model.question import Question
from plumdp.result.policy_table import PolicyTable
from plumdp.solver.problem import Problem
from plumdp.solver.reduce import reduce
from plumdp.tables.bracket import Moments
from plumdp.tables.chain import pooled
from plumdp.tables.table_set import TableSet
from plumdp.verifying.chain_part import KINDS, Ends, relied_on, shares_in

Key: TypeAlias = tuple[int, int, int]
"""A state, the choice that was drawn in it or -1, and a step."""


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
        return TableRows([places.tolist() for places, is_free in zip(each, _is_counted(model), strict=True) if is_free])

    def number(self) -> dict[int, int]:
        """Return the number of the row of each place that is the first of one."""
        return {places[0]: i for i, places in enumerate(self.places)}


def _is_counted(model: ParametricMDP) -> BoolArray:
    """Return which rows are unknown and counted: of what happens elsewhere nothing ever is."""
    is_counted, elsewhere = model.is_free_row.copy(), elsewhere_of(model)
    if elsewhere is not None:
        is_counted[model.rows.number[model.graph.first_choice[elsewhere]]] = False
    return is_counted


def data_part(model: ParametricMDP, counts: TransitionCounts, moments: Moments | None, rows: TableRows) -> Any:
    """Return what is known of the order of the data, and how often each place was seen."""
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
    number = int(events_of_rows(model.rows.first, _is_counted(model)).sum())
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


def table_chain_part(question: Question, policy: PolicyTable, rows: TableRows) -> tuple[dict[str, Any], list[Key]]:
    """Return the chain of the policy with all states that it reaches, and what each of its nodes is."""
    model, graph, objective = question.model, question.model.graph, question.objective
    weights, draws = policy_weights(graph, policy), policy.weights is not None
    reduced, drawn = (reduce(Problem(model, objective, given)) for given in (None, weights if draws else None))
    asked, steps = reduced.problem.objective, drawn.problem
    ends = Ends(asked, model)
    row_of, n_known, elsewhere = rows.number(), len(model.expressions.polynomials), elsewhere_of(model)
    reward = steps.objective.terms(steps.mdp.graph).reward
    found: list[Key] = [(graph.initial_state, -1, 0)]
    numbers = {found[0]: 0}

    def number(key: Key) -> int:
        if key not in numbers:
            numbers[key] = len(found)
            found.append(key)
        return numbers[key]

    written: list[list[Any] | None] = []
    over: dict[bool, list[int]] = {True: [], False: []}
    for node, (state, choice, step) in enumerate(found):  # which grows on the way
        if choice < 0 and ends.is_over(state, step):
            written.append(None)
            over[ends.is_target(state, step)].append(node)
            continue
        shares = dict(shares_in(model, weights, state))
        if choice < 0 and draws:
            taken = [number((state, drawn, step)) for drawn in shares]
            written.append([float(reward[state]), taken, [str(share) for share in shares.values()]])
            continue
        if state == elsewhere:
            written.append([0.0, [], "any"])
            continue
        (taken_choice,) = shares if choice < 0 else (choice,)
        first, last = graph.first_transition[taken_choice : taken_choice + 2].tolist()
        expressions = np.asarray(model.expression)[first:last].tolist()
        after = step + 1 if ends.counts else 0
        successors = [number((successor, -1, after)) for successor in graph.successor[first:last].tolist()]
        row: int | list[str] = (
            row_of[expressions[0] - n_known]
            if expressions[0] >= n_known
            else [str(model.expressions.polynomials[f].constant) for f in expressions]
        )
        paid = reward[graph.n_states + taken_choice if draws else taken_choice]
        written.append([float(paid), successors, row])
    kind, discount = KINDS[asked.kind], getattr(asked, "discount", None)
    states = np.array([state for state, _, _ in found])
    return {
        "kind": "until" if kind == "total" and ends.counts else kind,
        "complement": reduced.sign < 0,
        "discount": "1" if discount is None else str(discount),
        "initial": 0,
        "target": over[True],
        "avoid": over[False],
        "rows": written,
        "states": {name: values[states].tolist() for name, values in graph.states.items()},
        "choices": [_action(model, choice) for _, choice, _ in found] if draws else None,
        "step": [step for _, _, step in found] if ends.counts else None,
    }, found


def _action(model: ParametricMDP, choice: int) -> str | None:
    return None if choice < 0 else model.graph.action_names[model.graph.action[choice]]
