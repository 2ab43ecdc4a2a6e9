"""Writes the Markov chain of a policy for a checker, whatever the policy remembers, counts or draws.

A state of a product with memory is a state like others. Where the policy draws its action, probabilities and rewards
are means with exact weights. If the objective counts steps, and the policy does not, the chain does: there is a state
for each step, and runs are over after the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from plumdp.model.expressions.polynomial import Polynomial, polynomial
from plumdp.model.graph import BoolArray
from plumdp.model.objectives import Kind, Objective
from plumdp.model.objectives.protocol import Payoff
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, policy_weights
from plumdp.model.question import Question
from plumdp.solver.coupled.chain import fixed_states

KINDS = {
    Kind.END: "reach",
    Kind.UNTIL_END: "until",
    Kind.FOREVER: "total",
    Kind.DISCOUNTED: "discounted",
}


def chain_part(question: Question, policy: Policy) -> dict[str, Any]:
    """Return the chain of the policy, with all states that it reaches."""
    model, flipped = question.model, question.objective.flipped()
    objective: Objective = question.objective if flipped is None else flipped
    rows, ends = _Rows(model, objective, policy), Ends(objective, model)
    numbers, found = {(model.graph.initial_state, 0): 0}, [(model.graph.initial_state, 0)]
    written: list[list[Any] | None] = []
    targets: list[int] = []
    avoided: list[int] = []
    for node, (state, step) in enumerate(found):  # which grows on the way
        if ends.is_over(state, step):
            written.append(None)
            (targets if ends.is_target(state, step) else avoided).append(node)
            continue
        after = step + 1 if ends.counts else 0
        reward, successors, expressions = rows.row(rows.taken(state))
        for successor in successors:
            if (successor, after) not in numbers:
                numbers[successor, after] = len(found)
                found.append((successor, after))
        written.append([reward, [numbers[successor, after] for successor in successors], expressions])
    states = np.array([state for state, _ in found])
    return {
        **value_part(question),
        "initial": 0,
        "target": targets,
        "avoid": avoided,
        "expressions": list(rows.texts),
        "rows": written,
        "states": {name: values[states].tolist() for name, values in model.graph.states.items()},
        "step": [step for _, step in found] if ends.counts else None,
    }


def value_part(question: Question) -> dict[str, Any]:
    """Return the payoff of a run of the chain, by the objective."""
    flipped = question.objective.flipped()
    objective: Objective = question.objective if flipped is None else flipped
    kind, discount = KINDS[objective.kind], getattr(objective, "discount", None)
    return {
        "kind": "until" if kind == "total" and objective.n_steps is not None else kind,
        "complement": flipped is not None,
        "discount": "1" if discount is None else str(discount),
    }


class Ends:
    """The states in which runs are over, at each step if the objective counts steps."""

    def __init__(self, objective: Objective, model: ParametricMDP) -> None:
        self._objective, self._n = objective, model.graph.n_states
        self._terms = objective.terms(model.graph)
        self._is_over: dict[int, BoolArray] = {}
        self.counts = objective.n_steps is not None

    def is_over(self, state: int, step: int) -> bool:
        """Return whether a run that is in a state at a step is over."""
        if not self.counts:
            return bool(self._terms.is_end[state])
        if step not in self._is_over:
            self._is_over[step] = fixed_states(self._objective, self._n, step)
        return step == self._objective.n_steps or bool(self._is_over[step][state])

    def is_target(self, state: int, step: int) -> bool:
        """Return whether a run that is over has reached its target, which all have that collect rewards."""
        if self._objective.kind != Kind.END:
            return True
        values = self._objective.at_step(np.zeros(self._n), step) if self.counts else self._terms.value
        return bool(values[state] > 0)


@dataclass
class _Rows:
    """The rows of a policy in the states of a model, and the texts of their probabilities, which are numbered."""

    model: ParametricMDP
    objective: Objective
    policy: Policy
    texts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._weights, self._terms = (
            policy_weights(self.model.graph, self.policy),
            self.objective.terms(self.model.graph),
        )
        self._of_expression: dict[int, int] = {}

    def taken(self, state: int) -> list[tuple[int, Fraction]]:
        """Return the choices that the policy takes in a state, and the share of each."""
        return list(shares_in(self.model, self._weights, state))

    def row(self, taken: list[tuple[int, Fraction]]) -> tuple[float | str, list[int], list[int]]:
        """Return the reward of what is done, its successors, and the numbers of their probabilities."""
        graph = self.model.graph
        if len(taken) == 1:
            transitions = slice(*graph.first_transition[taken[0][0] : taken[0][0] + 2].tolist())
            numbers = [self._numbered(f) for f in self.model.expression[transitions].tolist()]
            return self._reward(taken), graph.successor[transitions].tolist(), numbers
        row: dict[int, Polynomial] = {}
        for choice, share in taken:
            for t in range(*graph.first_transition[choice : choice + 2].tolist()):
                part = self.model.expressions.polynomials[int(self.model.expression[t])] * share
                successor = int(graph.successor[t])
                row[successor] = row[successor] + part if successor in row else part
        return self._reward(taken), list(row), [self._number(str(f)) for f in row.values()]

    def _number(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def _numbered(self, expression: int) -> int:
        if expression not in self._of_expression:
            self._of_expression[expression] = self._number(str(self.model.expressions.polynomials[expression]))
        return self._of_expression[expression]

    def _reward(self, taken: list[tuple[int, Fraction]]) -> float | str:
        """Return the expected reward of a step, a number if it is one, and otherwise as text."""
        learned = self._terms.learned
        if len(taken) == 1 and (learned is None or learned.coin[taken[0][0]] < 0):
            return float(self._terms.reward[taken[0][0]])
        return str(expected_reward(self._terms, taken, self.model.expressions.polynomials))


def expected_reward(terms: Payoff, taken: Sequence[tuple[int, Fraction]], known: Sequence[Polynomial]) -> Polynomial:
    """Return the mean reward of choices with shares, exactly; that of a learned reward is an expression."""
    total, learned = polynomial(0), terms.learned
    for choice, share in taken:
        coin = -1 if learned is None else int(learned.coin[choice])
        total = total + share * Fraction(float(terms.reward[choice]))
        if learned is not None and coin >= 0:
            total = total + known[int(learned.expression[coin, 0])] * (share * learned.span[coin])
    return total


def shares_in(model: ParametricMDP, weights: Any, state: int) -> Iterator[tuple[int, Fraction]]:
    """Yield the choices that a policy takes in a state, with shares that sum to one exactly."""
    choices = range(*model.graph.first_choice[state : state + 2].tolist())
    given = {choice: Fraction(float(weights[choice])) for choice in choices if weights[choice]}
    total = sum(given.values())
    return ((choice, weight / total) for choice, weight in given.items())
