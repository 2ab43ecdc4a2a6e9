"""Finds a function that no action raises, or lowers, which bounds the values of all policies. The checker decides.

It is about the value of the policy that was found, in all states, and a margin for what other actions may add to that
anywhere on the cube.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from plumdp.base.errors import DataError
from plumdp.base.rounding import UNDERFLOW
from plumdp.model.graph import FloatArray, Indices
from plumdp.model.question import Question
from plumdp.result.policy_table import PolicyTable
from plumdp.solver.problem import Problem
from plumdp.solver.reduce import reduce
from plumdp.verifying.chain_part import chain_part
from plumdp.verifying.cube_bounds import sizes_of
from plumdp.verifying.expansion import Expansion, expand, radius_of, step_matrices
from plumdp_verify.chain import Chain
from plumdp_verify.enclosure import Enclosure
from plumdp_verify.polynomials import Exponents, monomials

_ROUNDS = 20_000
_SPARE, _LEAST = 1e-3, 1e-14  # of what is added in a step: relative, and to the largest value


def all_actions_part(question: Question, policy: PolicyTable) -> dict[str, Any]:
    """Return the chain of a policy with all states that any reaches, and every other action that there is in them."""
    if not _has_all_actions(question):
        raise DataError(
            "there is no witness of this certificate: verify cannot check an answer about all policies if the memory "
            "keeps only some actions"
        )
    others: list[list[Any]] = []
    return {"chain": chain_part(question, policy, others), "others": others}


def _has_all_actions(question: Question) -> bool:
    """Return whether the product with memory, if there is one, has all actions wherever a run goes on."""
    graph, objective = question.model.graph, reduce(Problem(question.model, question.objective)).problem.objective
    if graph.memory is None:
        return True
    kept, there = np.diff(graph.first_choice), np.diff(graph.memory.graph.first_choice)[graph.memory.state]
    return bool((kept == there)[~objective.terms(graph).is_end].all())


def expand_all(chain: Chain, enclosure: Enclosure, degree: int, sign: int) -> Expansion | None:
    """Return an expansion with margins that no action breaks on one side, or None if there are none."""
    expansion = expand(chain, enclosure, degree)
    if expansion is None:
        return None
    place = {node: i for i, node in enumerate(chain.open)}
    nodes = np.array([place[node] for node, _ in chain.open_steps()], dtype=np.int64)
    matrices, earned = step_matrices(chain, enclosure)
    zero, n = (0,) * enclosure.dimension, len(nodes)
    change = {e: values.copy() for e, values in earned.items()}
    for b, u in zip(monomials(enclosure.dimension, expansion.degree), expansion.coefficients.T, strict=True):
        change[b] = change.get(b, 0.0) - u[nodes]
        for a, matrix in matrices.items():
            both = tuple(x + y for x, y in zip(a, b, strict=True))
            change[both] = change.get(both, 0.0) + matrix @ u
    added = np.maximum(sign * change.pop(zero, np.zeros(n)) + sizes_of(change, n, radius_of(enclosure)), 0.0)
    least = _LEAST * float(np.abs(expansion.coefficients[:, 0]).max(initial=0.0))
    stays = np.array([set(step.successors) == {node} and chain.discount == 1 for node, step in chain.open_steps()])
    is_free = stays & (added <= least)  # exactly, however often it is done
    margins = _sums(np.where(is_free, 0.0, added + least), nodes, matrices, zero, radius_of(enclosure))
    steps = _sums(np.ones(n), nodes, matrices, zero, radius_of(enclosure))
    if margins is None:
        return None
    return replace(expansion, margins=margins, steps=np.zeros(len(margins)) if steps is None else steps)


def _sums(
    added: FloatArray, nodes: Indices, matrices: dict[Exponents, Any], zero: Exponents, radius: float | None
) -> FloatArray | None:
    """Return the largest expected sum of what is added in each step, over all policies and points; None if endless."""
    n_states = int(nodes.max(initial=-1)) + 1
    total, spared = np.zeros(n_states), added * (1 + _SPARE)
    for _ in range(_ROUNDS):
        after = matrices[zero] @ total + sizes_of(
            {e: matrix @ total for e, matrix in matrices.items()}, len(nodes), radius
        )
        if (added + after <= total[nodes]).all():
            return total
        new = np.zeros(n_states)
        np.maximum.at(new, nodes, spared + after)
        if not np.isfinite(new).all() or new.max(initial=0.0) > 1e12 * max(float(spared.max(initial=0.0)), UNDERFLOW):
            return None
        total = new
    return None
