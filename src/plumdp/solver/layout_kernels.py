"""Compiled loops that copy the rows of a game into solving order."""

from __future__ import annotations

from typing import Any

from plumdp.base.compiled import compiled


@compiled
def lay_out(
    order: Any,
    position: Any,
    first_choice: Any,
    first: Any,
    successor: Any,
    expression: Any,
    new_first_choice: Any,
    new_first: Any,
    new_successor: Any,
    new_expression: Any,
    choice: Any,
    has_loop: Any,
    number: Any,
    used: Any,
) -> int:
    """Copy the rows of the states in ``order``, with successors renamed to their positions, and mark self-loops.

    Expressions are numbered as they are met: ``number`` is -1 for each of them before, and ``used`` gets their old
    numbers. If ``number`` is empty they keep their numbers. Returns how many were used.
    """
    n_rows = n_transitions = n_used = 0
    for i in range(len(order)):
        s = order[i]
        new_first_choice[i] = n_rows
        for c in range(first_choice[s], first_choice[s + 1]):
            choice[n_rows] = c
            new_first[n_rows] = n_transitions
            n_rows += 1
            for t in range(first[c], first[c + 1]):
                target, f = position[successor[t]], expression[t]
                if len(number) > 0:
                    if number[f] < 0:
                        number[f] = n_used
                        used[n_used] = f
                        n_used += 1
                    f = number[f]
                has_loop[i] = has_loop[i] or target == i
                new_successor[n_transitions] = target
                new_expression[n_transitions] = f
                n_transitions += 1
    new_first_choice[len(order)] = n_rows
    new_first[n_rows] = n_transitions
    return n_used
