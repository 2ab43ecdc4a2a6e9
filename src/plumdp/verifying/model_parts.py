"""Writes for a checker what follows from the model alone: shares of the error, the space, and the policy's chain."""

from __future__ import annotations

from typing import Any

import numpy as np

from plumdp.base.error_budget import ErrorBudget
from plumdp.model.expressions.polynomial import parameters
from plumdp.model.objective import Kind, Objective
from plumdp.model.question import Question
from plumdp.model.space import ParameterSpace
from plumdp.result.policy_table import PolicyTable
from plumdp.solver.coupled.chain import reached_chain

KINDS = {Kind.END: "reach", Kind.UNTIL_END: "until", Kind.FOREVER: "total", Kind.DISCOUNTED: "discounted"}


def shares_part(budget: ErrorBudget) -> dict[str, str]:
    """Return the shares of the error that are spent if the model is right, by their names."""
    names = budget.__dataclass_fields__
    shares = {name: getattr(budget, name) for name in names if name != "graph_alone"}
    return {name: str(share) for name, share in shares.items() if share}


def space_part(space: ParameterSpace) -> list[str]:
    """Return affine polynomials that are at least zero on the space."""
    sides: list[Any] = []
    for name, (low, high) in zip(space.names, space.bounds, strict=True):
        (p,) = parameters(name)
        sides += [p - low, high - p]
    return [str(side) for side in (*sides, *space.constraints)]


def chain_part(question: Question, policy: PolicyTable) -> dict[str, Any]:
    """Return the chain of the policy, with all states that it reaches."""
    model, flipped = question.model, question.objective.flipped()
    objective: Objective = question.objective if flipped is None else flipped
    terms = objective.terms(model.graph)
    chain, expressions = reached_chain(model, policy.choice, terms, terms.is_end).with_own_expressions()
    n, ends = chain.n_open, chain.state[chain.n_open :]
    first, successor, expression = chain.first.tolist(), chain.successor.tolist(), chain.expression.tolist()
    rows = [
        [chain.reward[s].item(), successor[first[s] : first[s + 1]], expression[first[s] : first[s + 1]]]
        for s in range(n)
    ]
    is_target = terms.value[ends] > 0 if objective.kind == Kind.END else np.ones(len(ends), dtype=bool)
    states = {name: values[chain.state].tolist() for name, values in model.graph.states.items()}
    discount = getattr(objective, "discount", None)
    return {
        "kind": KINDS[objective.kind],
        "complement": flipped is not None,
        "discount": "1" if discount is None else str(discount),
        "initial": chain.initial,
        "target": (n + np.flatnonzero(is_target)).tolist(),
        "avoid": (n + np.flatnonzero(~is_target)).tolist(),
        "expressions": [str(model.expressions.polynomials[f]) for f in expressions.tolist()],
        "rows": rows + [None] * len(ends),
        "states": states,
    }
