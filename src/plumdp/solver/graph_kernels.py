"""Compiled loops on the graph of a game: components, and what the players can bring about at all.

Rows are choices: row ``c`` has the transitions ``first[c]`` up to ``first[c + 1]``, with bounds
``lower[expression[t]]`` and ``upper[expression[t]]``. Only the support of nature's distributions matters here, and sums
of bounds are compared with one exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plumdp.compiled import compiled, compiled_leaf


@compiled
def strong_components(
    first_choice: Any, first: Any, successor: Any, is_undecided: Any, order: Any, component: Any
) -> int:
    """Write the undecided states into ``order``, component by component, successors first; return their number.

    Tarjan's algorithm without recursion. ``component`` gets the number of each undecided state's component, and those
    numbers grow along ``order``: everything a component can leave to has a smaller number.
    """
    n = len(is_undecided)
    index = np.full(n, -1, dtype=np.int32)
    low = np.zeros(n, dtype=np.int32)
    stack = np.empty(n, dtype=np.int32)
    path = np.empty(n, dtype=np.int32)
    position = np.zeros(n, dtype=np.int64)
    n_stack = n_path = n_index = n_order = n_components = 0
    for root in range(n):
        if not is_undecided[root] or index[root] >= 0:
            continue
        path[0] = root
        n_path = 1
        while n_path:
            state = path[n_path - 1]
            if index[state] < 0:
                index[state] = low[state] = n_index
                n_index += 1
                stack[n_stack] = state
                n_stack += 1
                position[state] = first[first_choice[state]]
            end = first[first_choice[state + 1]]
            descended = False
            while position[state] < end:
                target = successor[position[state]]
                position[state] += 1
                if not is_undecided[target]:
                    continue
                if index[target] < 0:
                    path[n_path] = target
                    n_path += 1
                    descended = True
                    break
                if component[target] < 0:
                    low[state] = min(low[state], index[target])
            if descended:
                continue
            n_path -= 1
            if n_path:
                parent = path[n_path - 1]
                low[parent] = min(low[parent], low[state])
            if low[state] == index[state]:
                while True:
                    n_stack -= 1
                    member = stack[n_stack]
                    component[member] = n_components
                    order[n_order] = member
                    n_order += 1
                    if member == state:
                        break
                n_components += 1
    return n_components


@compiled
def predecessors(first_choice: Any, first: Any, successor: Any, offset: Any, source: Any) -> None:
    """Write for each state the states with a transition to it: ``source[offset[s]:offset[s + 1]]``."""
    for t in range(len(successor)):
        offset[successor[t] + 1] += 1
    for s in range(len(offset) - 1):
        offset[s + 1] += offset[s]
    place = offset.copy()
    for s in range(len(first_choice) - 1):
        for t in range(first[first_choice[s]], first[first_choice[s + 1]]):
            source[place[successor[t]]] = s
            place[successor[t]] += 1


@compiled_leaf
def add(total: float, residue: float, x: float) -> tuple[float, float]:
    """Return the sum and what its rounding has left out (Knuth), so that sums compare with one exactly."""
    new = total + x
    shift = new - total
    return new, residue + ((total - (new - shift)) + (x - shift))


@compiled_leaf
def can_vanish(c: int, first: Any, successor: Any, first_mask: Any, masks: Any, states: Any, is_inside: bool) -> bool:
    """Return whether all transitions of the row to the states (or to all others) may lose their probability at once.

    The masks are those of ``zero_sets``; without any, only intervals tell, and nothing is excluded here.
    """
    if len(masks) == 0 or first_mask[c] == first_mask[c + 1]:
        return True
    wanted = np.uint64(0)
    for t in range(first[c], first[c + 1]):
        if states[successor[t]] == is_inside:
            wanted |= np.uint64(1) << np.uint64(t - first[c])
    found = False
    for k in range(first_mask[c], first_mask[c + 1]):
        found = found or wanted & ~masks[k] == np.uint64(0)
    return found


@compiled_leaf
def row_may(
    inside: Any, aim: Any, c: int, first: Any, successor: Any, expression: Any, lower: Any, upper: Any, first_mask: Any,
    masks: Any,
) -> bool:  # fmt: skip
    """Return whether some distribution of the row stays inside and gives the aim (a part of it) a positive chance."""
    start, end = first[c], first[c + 1]
    most, more, least, less = 0.0, 0.0, 0.0, 0.0
    leaves = False
    for t in range(start, end):
        f = expression[t]
        if inside[successor[t]]:
            most, more = add(most, more, upper[f])
            least, less = add(least, less, lower[f])
        elif lower[f] > 0.0:
            return False
        else:
            leaves = leaves or upper[f] > 0.0
    if leaves and (most - 1.0) + more < 0.0:
        return False
    if leaves and not can_vanish(c, first, successor, first_mask, masks, inside, False):
        return False
    for t in range(start, end):
        f = expression[t]
        if aim[successor[t]] and upper[f] > 0.0 and (lower[f] > 0.0 or (least - 1.0) + less < 0.0):
            return True
    return False


@compiled_leaf
def row_must(
    inside: Any, aim: Any, c: int, first: Any, successor: Any, expression: Any, lower: Any, upper: Any, first_mask: Any,
    masks: Any,
) -> bool:  # fmt: skip
    """Return whether every distribution of the row stays inside and gives the aim a positive chance."""
    start, end = first[c], first[c + 1]
    elsewhere, more, least, less = 0.0, 0.0, 0.0, 0.0
    surely = can_hit = can_miss = False
    for t in range(start, end):
        f = expression[t]
        least, less = add(least, less, lower[f])
        if not aim[successor[t]]:
            elsewhere, more = add(elsewhere, more, upper[f])
            can_miss = can_miss or upper[f] > 0.0
        else:
            surely = surely or lower[f] > 0.0
            can_hit = can_hit or upper[f] > 0.0
    for t in range(start, end):
        f = expression[t]
        if not inside[successor[t]] and upper[f] > 0.0 and (lower[f] > 0.0 or (least - 1.0) + less < 0.0):
            return False
    # what rounding leaves out of a row goes nowhere: without a way to the aim there is no chance of it
    if surely or (can_hit and (not can_miss or (elsewhere - 1.0) + more < 0.0)):
        return True
    return can_hit and not can_vanish(c, first, successor, first_mask, masks, aim, True)


@compiled_leaf
def row_helps(
    inside: Any, aim: Any, nature_helps: bool, c: int, first: Any, successor: Any, expression: Any, lower: Any,
    upper: Any, first_mask: Any, masks: Any,
) -> bool:  # fmt: skip
    """Return whether the row stays inside and gives the aim a chance: by one distribution, or by all against nature."""
    row = (inside, aim, c, first, successor, expression, lower, upper, first_mask, masks)
    return bool(row_may(*row)) if nature_helps else bool(row_must(*row))


@compiled
def is_attracted(
    s: int,
    first_choice: Any,
    first: Any,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    first_mask: Any,
    masks: Any,
    inside: Any,
    agent_helps: bool,
    nature_helps: bool,
    reached: Any,
    winning_row: Any,
    won: Any,
    any_won: bool,
    everywhere: Any,
    helper: Any,
) -> bool:
    """Return whether the helpers can stay inside and have a chance to reach, or take a winning row: see ``attract``."""
    for c in range(first_choice[s], first_choice[s + 1]):
        row = (c, first, successor, expression, lower, upper, first_mask, masks)
        aim = inside if winning_row[c] else reached
        helps = row_helps(inside, aim, nature_helps, *row)
        if not helps and any_won:
            helps = row_helps(everywhere, won, nature_helps, *row)
        if agent_helps and helps:
            helper[s] = c
            return True
        if not agent_helps and not helps:
            return False
    return not agent_helps


@compiled
def attract(
    first_choice: Any,
    first: Any,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    first_mask: Any,
    masks: Any,
    offset: Any,
    source: Any,
    is_undecided: Any,
    inside: Any,
    agent_helps: bool,
    nature_helps: bool,
    reached: Any,
    winning_row: Any,
    won: Any,
    everywhere: Any,
    rank: Any,
    helper: Any,
    queue: Any,
) -> None:
    """Extend ``reached`` to the undecided states from which the helpers can stay inside and have a chance to reach it.

    A player that helps needs one option that does, one that does not is stopped only if all its options do. A winning
    row is as good as reaching, as long as it stays inside; so is a row with a chance of a state that is won already.
    ``rank`` numbers the states as they are reached, each after those that give it a chance; ``helper`` gets the row
    with which a helping agent keeps it.
    """
    n_queue = 0
    any_won = won.any()
    may_win = any_won or winning_row.any()
    for s in range(len(reached)):
        if may_win and not reached[s] and is_undecided[s] and inside[s]:
            reached[s] = is_attracted(
                s, first_choice, first, successor, expression, lower, upper, first_mask, masks, inside, agent_helps,
                nature_helps, reached, winning_row, won, any_won, everywhere, helper,
            )  # fmt: skip
        if reached[s]:
            queue[n_queue] = s
            n_queue += 1
            rank[s] = 0.0
    head = 0
    while head < n_queue:
        target = queue[head]
        head += 1
        for k in range(offset[target], offset[target + 1]):
            s = source[k]
            if reached[s] or not is_undecided[s] or not inside[s]:
                continue
            reached[s] = is_attracted(
                s, first_choice, first, successor, expression, lower, upper, first_mask, masks, inside, agent_helps,
                nature_helps, reached, winning_row, won, any_won, everywhere, helper,
            )  # fmt: skip
            if reached[s]:
                rank[s] = float(n_queue)
                queue[n_queue] = s
                n_queue += 1


@compiled
def shed(
    first_choice: Any,
    first: Any,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    first_mask: Any,
    masks: Any,
    offset: Any,
    source: Any,
    is_undecided: Any,
    inside: Any,
    agent_helps: bool,
    nature_helps: bool,
    lost: Any,
    policy: Any,
    queue: Any,
) -> None:
    """Take undecided states out of ``inside``, and into ``lost``, if the helpers cannot stay there any more.

    Given are the states lost before. ``policy`` gets the row with which an agent that does not help gets out.
    """
    n_queue = 0
    for s in range(len(lost)):
        if lost[s]:
            queue[n_queue] = s
            n_queue += 1
    head = 0
    while head < n_queue:
        target = queue[head]
        head += 1
        for k in range(offset[target], offset[target + 1]):
            s = source[k]
            if not inside[s] or not is_undecided[s]:
                continue
            stays, decisive = not agent_helps, first_choice[s]
            for c in range(first_choice[s], first_choice[s + 1]):
                row = (c, first, successor, expression, lower, upper, first_mask, masks)
                if row_helps(inside, inside, nature_helps, *row) == agent_helps:
                    stays, decisive = agent_helps, c
                    break
            if stays:
                continue
            if not agent_helps:
                policy[s] = decisive
            inside[s], lost[s] = False, True
            queue[n_queue] = s
            n_queue += 1


@compiled
def escape_rows(
    first_choice: Any,
    first: Any,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    first_mask: Any,
    masks: Any,
    inside: Any,
    reached: Any,
    nature_helps: bool,
    wins: Any,
    lost: Any,
    policy: Any,
) -> None:
    """Write for the lost states a row with which an agent that does not help kept out of ``reached``, not winning."""
    for s in range(len(lost)):
        if not lost[s]:
            continue
        for c in range(first_choice[s], first_choice[s + 1]):
            row = (c, first, successor, expression, lower, upper, first_mask, masks)
            if not wins[c] and not row_helps(inside, reached, nature_helps, *row):
                policy[s] = c
                break
