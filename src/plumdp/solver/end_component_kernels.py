"""Compiled loops on a graph whose edges nature cannot remove: which of them exist, and where the agent can stay."""

from __future__ import annotations

from typing import Any

from plumdp.compiled import compiled
from plumdp.solver.graph_kernels import add


@compiled
def mark_possible(first: Any, expression: Any, lower: Any, upper: Any, possible: Any) -> None:
    """Mark the transitions that may have a positive probability; a row whose lower bounds sum to one has no other."""
    for c in range(len(first) - 1):
        least, less = 0.0, 0.0
        for t in range(first[c], first[c + 1]):
            least, less = add(least, less, lower[expression[t]])
        has_room = (least - 1.0) + less < 0.0
        for t in range(first[c], first[c + 1]):
            f = expression[t]
            possible[t] = lower[f] > 0.0 or (has_room and upper[f] > 0.0)


@compiled
def peel(
    queue: Any, n_queue: int, state_of_choice: Any, offset: Any, incoming: Any, inner: Any, n_inner: Any, inside: Any
) -> None:
    """Take out the queued states, then each inner row that may lead to one, and each state left without inner rows."""
    for i in range(n_queue):
        inside[queue[i]] = False
    head = 0
    while head < n_queue:
        target = queue[head]
        head += 1
        for k in range(offset[target], offset[target + 1]):
            c = incoming[k]
            if not inner[c]:
                continue
            inner[c] = False
            s = state_of_choice[c]
            n_inner[s] -= 1
            if n_inner[s] == 0 and inside[s]:
                inside[s] = False
                queue[n_queue] = s
                n_queue += 1
