"""Compiled loops that copy the rows of a game into solving order."""

from __future__ import annotations

from typing import Any

from plumdp.compiled import compiled


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
) -> None:
    """Copy the rows of the states in ``order``, with successors renamed to their positions."""
    n_rows = n_transitions = 0
    for i in range(len(order)):
        s = order[i]
        new_first_choice[i] = n_rows
        for c in range(first_choice[s], first_choice[s + 1]):
            choice[n_rows] = c
            new_first[n_rows] = n_transitions
            n_rows += 1
            for t in range(first[c], first[c + 1]):
                new_successor[n_transitions] = position[successor[t]]
                new_expression[n_transitions] = expression[t]
                n_transitions += 1
    new_first_choice[len(order)] = n_rows
    new_first[n_rows] = n_transitions


@compiled
def mark_loops(first_choice: Any, first: Any, successor: Any, has_loop: Any) -> None:
    """Mark the positions with a transition to themselves."""
    for i in range(len(has_loop)):
        for t in range(first[first_choice[i]], first[first_choice[i + 1]]):
            if successor[t] == i:
                has_loop[i] = True
                break
