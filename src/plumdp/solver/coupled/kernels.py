"""Compiled loops on the chain of a policy, for the states it reaches, their order, and solutions by substitution."""

from __future__ import annotations

from functools import partial
from typing import Any

from plumdp.base.compiled import compiled


@compiled
def visit(
    initial: int, policy: Any, first_transition: Any, successor: Any, is_over: Any, colour: Any, stack: Any,
    position: Any, order: Any, ends: Any,
) -> tuple[int, int, bool]:  # fmt: skip
    """Write the states that a policy reaches, and return how many go on, how many are over, and whether none repeats.

    ``order`` gets the states that go on as a depth-first search leaves them, which is successors first if no state can
    come back to itself except at once. ``colour`` starts as zeros, and is 1 while a state is on the stack, 2
    afterwards.
    """
    n_open, n_ends, is_ordered, depth = 0, 0, True, 0
    if is_over[initial]:
        ends[0] = initial
        return 0, 1, True
    stack[0], position[0], colour[initial] = initial, first_transition[policy[initial]], 1
    while depth >= 0:
        state, at = stack[depth], position[depth]
        if at == first_transition[policy[state] + 1]:
            colour[state], order[n_open] = 2, state
            n_open += 1
            depth -= 1
            continue
        position[depth] += 1
        to = successor[at]
        if colour[to] == 1 and to != state:
            is_ordered = False
        if colour[to] != 0:
            continue
        if is_over[to]:
            colour[to], ends[n_ends] = 2, to
            n_ends += 1
            continue
        depth += 1
        stack[depth], position[depth], colour[to] = to, first_transition[policy[to]], 1
    return n_open, n_ends, is_ordered


@partial(compiled, small=50_000)
def mark_ahead(first: Any, successor: Any, is_ahead: Any) -> None:
    """Mark all nodes from which a marked one can be reached."""
    changed = True
    while changed:
        changed = False
        for s in range(len(first) - 1):
            if is_ahead[s]:
                continue
            for t in range(first[s], first[s + 1]):
                if is_ahead[successor[t]]:
                    is_ahead[s] = changed = True
                    break


@partial(compiled, small=20_000)
def substitute(first: Any, successor: Any, probability: Any, values: Any) -> None:
    """Replace right-hand sides (n, k) by the solution of x = right + P x, if successors come before their states."""
    n, k = values.shape
    for s in range(n):
        stay = 0.0
        for t in range(first[s], first[s + 1]):
            to, p = successor[t], probability[t]
            if to == s:
                stay += p
            elif to < n:
                for j in range(k):
                    values[s, j] += p * values[to, j]
        for j in range(k):
            values[s, j] /= 1.0 - stay


@compiled
def substitute_transposed(first: Any, successor: Any, probability: Any, values: Any) -> None:
    """Replace right-hand sides (n) by the solution of x = right + x P, if successors come before their states."""
    n = len(values)
    for i in range(n):
        s = n - 1 - i
        stay = 0.0
        for t in range(first[s], first[s + 1]):
            if successor[t] == s:
                stay += probability[t]
        values[s] /= 1.0 - stay
        for t in range(first[s], first[s + 1]):
            to = successor[t]
            if to < n and to != s:
                values[to] += probability[t] * values[s]
