"""Writes a table for a checker: unknown rows with their counts and intervals, and the Markov chain of a policy.

If the policy draws its actions, the draw is a step of known numbers before the row of its choice, as in
``tables/values.py``. If the objective counts steps, and the policy does not, the chain does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.confidence.bounds import events_of_rows
from plumdp.confidence.likelihood import order_of
from plumdp.data.counts import TransitionCounts
from plumdp.learning.learned import Learned
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, as_choices, check_policy
from plumdp.model.question import Question
from plumdp.solver.problem import Problem
from plumdp.solver.reduce import reduce
from plumdp.tables.bracket import BetMoments
from plumdp.tables.chain import pooled
from plumdp.tables.intervals import counted_rows
from plumdp.tables.table_set import TableSet
from plumdp.verifying.chain_part import Ends, relied_on, value_part

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
