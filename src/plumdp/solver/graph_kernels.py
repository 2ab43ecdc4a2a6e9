"""Compiled loops on the graph of a game that find its components, and the states that players can reach.

Rows are choices. Row ``c`` has the transitions ``first[c]`` up to ``first[c + 1]``, with bounds
``lower[expression[t]]`` and ``upper[expression[t]]``. Only the support of nature's distributions matters here, and sums
of bounds are compared with one exactly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plumdp.base.compiled import compiled, compiled_leaf


class GameRows(NamedTuple):
    """The rows of a game's model, with the sets of transitions that can vanish at once (see ``zero_sets``)."""

    first_choice: Any  # (n_states + 1)
    first: Any  # (n_choices + 1)
    successor: Any  # (n_transitions)
    expression: Any  # (n_transitions)
    lower: Any  # (n_expressions)
    upper: Any  # (n_expressions)
    first_mask: Any  # (n_choices + 1): row c has the masks first_mask[c] up to first_mask[c + 1]; unused without masks
    masks: Any


class Predecessors(NamedTuple):
    """State ``s`` is a successor of the states ``source[offset[s]:offset[s + 1]]``."""

    offset: Any  # (n_states + 1)
    source: Any  # (n_transitions)


class Helpers(NamedTuple):
    """The players who want to reach something and choose their moves for it, against the others."""

    agent: bool
    nature: bool


class BackwardSearch(NamedTuple):
    """The states from which the helpers have a chance to reach some states, as far as the search has come."""

    is_undecided: Any  # (n_states): only these are searched
    inside: Any  # (n_states): states that must not be left
    reached: Any  # (n_states): grows
    winning_row: Any  # (n_choices): rows that are as good as reaching, as long as they stay inside
    won: Any  # (n_states): a chance of one of these is as good as reaching, inside or not
    everywhere: Any  # (n_states): all true
    helper: Any  # (n_states): gets the row with which a helping agent keeps its chance


@compiled
def search(first: Any, successor: Any, start: int, waiting: Any, reached: Any) -> None:
    """Mark the states that can be reached from one whose successors, those of all choices, lie from ``first`` on."""
    waiting[0], reached[start], n_waiting = start, True, 1
    while n_waiting:
        n_waiting -= 1
        state = waiting[n_waiting]
        for t in range(first[state], first[state + 1]):
            s = successor[t]
            if not reached[s]:
                reached[s] = True
                waiting[n_waiting] = s
                n_waiting += 1


@compiled
def strong_components(
    first_choice: Any, first: Any, successor: Any, is_undecided: Any, order: Any, component: Any
) -> int:
    """Write the undecided states into ``order`` by components, successors first, and return their number.

    This is Tarjan's algorithm without recursion. ``component`` gets the number of each undecided state's component, and
    those numbers grow along ``order``: a component leads to components with smaller numbers only.
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
def acyclic_order(first_choice: Any, first: Any, successor: Any, is_undecided: Any, order: Any, has_loop: Any) -> int:
    """Write the undecided states into ``order``, successors last, and which have loops, and return their number.

    They are fewer than the undecided states if and only if there is a cycle that is not a loop. States follow when all
    their predecessors have (Kahn 1962), and so they stay close to their neighbours.
    """
    waits_for = np.zeros(len(is_undecided), dtype=np.int32)  # transitions to it from states that are not written yet
    for s in range(len(is_undecided)):
        if is_undecided[s]:
            for t in range(first[first_choice[s]], first[first_choice[s + 1]]):
                waits_for[successor[t]] += 1
                if successor[t] == s:
                    has_loop[s] = True
                    waits_for[s] -= 1
    n_order = 0
    for s in range(len(is_undecided)):
        if is_undecided[s] and waits_for[s] == 0:
            order[n_order] = s
            n_order += 1
    head = 0
    while head < n_order:
        state = order[head]
        head += 1
        for t in range(first[first_choice[state]], first[first_choice[state + 1]]):
            target = successor[t]
            waits_for[target] -= 1
            if waits_for[target] == 0 and is_undecided[target] and target != state:
                order[n_order] = target
                n_order += 1
    return n_order


@compiled
def predecessors(first_choice: Any, first: Any, successor: Any, offset: Any, source: Any) -> None:
    """Write the states with a transition to each state, ``source[offset[s]:offset[s + 1]]``."""
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
    """Return the sum and the error of its rounding (Knuth), so that sums compare with one exactly."""
    new = total + x
    shift = new - total
    return new, residue + ((total - (new - shift)) + (x - shift))


@compiled_leaf
def can_vanish(c: int, rows: Any, states: Any, is_inside: bool) -> bool:
    """Return whether all transitions of the row to the states (or to all others) may lose their probability at once.

    The masks are those of ``zero_sets``. Without any, only intervals tell, and nothing is excluded here.
    """
    _, first, successor, _, _, _, first_mask, masks = rows
    # without masks the intervals alone decide
    if len(masks) == 0 or first_mask[c] == first_mask[c + 1]:
        return True
    wanted = np.uint64(0)
    for t in range(first[c], first[c + 1]):
        if states[successor[t]] == is_inside:
            wanted |= np.uint64(1) << np.uint64(t - first[c])
    vanishes = False
    for k in range(first_mask[c], first_mask[c + 1]):
        vanishes = vanishes or wanted & ~masks[k] == np.uint64(0)
    return vanishes


@compiled_leaf
def row_may(inside: Any, aim: Any, c: int, rows: Any) -> bool:
    """Return whether some distribution of the row stays inside and gives the aim, a part of it, a positive chance."""
    _, first, successor, expression, lower, upper, _, _ = rows
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
    if leaves and (most - 1.0) + more < 0.0:  # the successors inside cannot take all
        return False
    if leaves and not can_vanish(c, rows, inside, np.bool_(False)):
        return False
    for t in range(start, end):
        f = expression[t]
        # a positive probability is possible if some is certain, or if lower bounds leave some free
        if aim[successor[t]] and upper[f] > 0.0 and (lower[f] > 0.0 or (least - 1.0) + less < 0.0):
            return True
    return False


@compiled_leaf
def row_must(inside: Any, aim: Any, c: int, rows: Any) -> bool:
    """Return whether every distribution of the row stays inside and gives the aim a positive chance."""
    _, first, successor, expression, lower, upper, _, _ = rows
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
    # bounds may sum to less than 1 by rounding; without a transition to the aim there is no chance of it all the same
    if surely or (can_hit and (not can_miss or (elsewhere - 1.0) + more < 0.0)):
        return True
    return can_hit and not can_vanish(c, rows, aim, np.bool_(True))


@compiled_leaf
def row_helps(inside: Any, aim: Any, nature_helps: bool, c: int, rows: Any) -> bool:
    """Return whether the row stays inside and gives the aim a chance, by one distribution or, against nature, by all.

    Most rows are told without sums of their bounds.
    """
    _, first, successor, expression, lower, upper, _, _ = rows
    leaves = surely = can_hit = False
    for t in range(first[c], first[c + 1]):
        f, s = expression[t], successor[t]
        leaves = leaves or (upper[f] > 0.0 and not inside[s])
        if aim[s]:
            surely = surely or lower[f] > 0.0
            can_hit = can_hit or upper[f] > 0.0
    if not can_hit or (surely and not leaves):
        return can_hit
    return bool(row_may(inside, aim, c, rows)) if nature_helps else bool(row_must(inside, aim, c, rows))


@compiled_leaf
def is_attracted(s: int, rows: Any, helps: Any, search: Any, any_won: bool) -> bool:
    """Return whether the helpers can stay inside and may reach, or take a winning row, as ``attract`` has it."""
    inside = search.inside
    for c in range(rows.first_choice[s], rows.first_choice[s + 1]):
        aim = inside if search.winning_row[c] else search.reached
        is_helpful = row_helps(inside, aim, helps.nature, c, rows)
        if not is_helpful and any_won:
            is_helpful = row_helps(search.everywhere, search.won, helps.nature, c, rows)
        if helps.agent and is_helpful:
            search.helper[s] = c
            return True
        if not helps.agent and not is_helpful:
            return False
    return not helps.agent


@compiled
def attract_in_order(rows: Any, scan: Any, helps: Any, search: Any, rank: Any) -> None:
    """Do what ``attract`` does where there are no cycles but loops, by one pass over ``scan``, successors first.

    Rows that are told without sums of their bounds are told here, as a call costs more than most rows.
    """
    first_choice, first, successor, expression, lower, upper, _, _ = rows
    inside, reached, winning_row = search.inside, search.reached, search.winning_row
    any_won = search.won.any()
    for i in range(len(scan)):
        s = np.int64(scan[i])
        if reached[s] or not (search.is_undecided[s] and inside[s]):
            continue
        is_helpful = False
        for c in range(first_choice[s], first_choice[s + 1]):
            leaves = surely = can_hit = False
            for t in range(first[c], first[c + 1]):
                f, target = expression[t], successor[t]
                leaves = leaves or (upper[f] > 0.0 and not inside[target])
                if reached[target] or (winning_row[c] and inside[target]):
                    surely = surely or lower[f] > 0.0
                    can_hit = can_hit or upper[f] > 0.0
            is_helpful = can_hit
            if can_hit and (leaves or not surely):
                is_helpful = row_helps(inside, inside if winning_row[c] else reached, helps.nature, c, rows)
            if not is_helpful and any_won:
                is_helpful = row_helps(search.everywhere, search.won, helps.nature, c, rows)
            if is_helpful == helps.agent:
                search.helper[s] = c if helps.agent else search.helper[s]
                break
        if is_helpful:
            reached[s], rank[s] = True, float(i + 1)


@compiled
def attract(rows: Any, before: Any, helps: Any, search: Any, rank: Any, queue: Any) -> None:
    """Extend ``reached`` to the undecided states from which the helpers can stay inside and have a chance to reach it.

    For a player that helps one suitable option is enough. For one that does not, all its options must be suitable. A
    winning row counts as reaching, as long as it stays inside. So does a row with a chance of a state that is won.
    ``rank`` numbers the states as they are reached, each after those that give it a chance. ``before`` are the
    predecessors of all states.
    """
    n_queue = 0
    reached, is_searched = search.reached, search.is_undecided & search.inside
    any_won = search.won.any()
    may_win = any_won or search.winning_row.any()
    for s in range(len(reached)):
        if may_win and not reached[s] and is_searched[s]:
            reached[s] = is_attracted(s, rows, helps, search, any_won)
        if reached[s]:
            queue[n_queue] = s
            n_queue += 1
            rank[s] = 0.0
    head = 0
    while head < n_queue:
        target = queue[head]
        head += 1
        for k in range(before.offset[target], before.offset[target + 1]):
            other = np.int64(before.source[k])
            if reached[other] or not is_searched[other]:
                continue
            reached[other] = is_attracted(other, rows, helps, search, any_won)
            if reached[other]:
                rank[other] = float(n_queue)
                queue[n_queue] = other
                n_queue += 1


@compiled
def remove_leaving(
    rows: Any, before: Any, helps: Any, is_undecided: Any, inside: Any, lost: Any, policy: Any, queue: Any
) -> None:
    """Take undecided states out of ``inside``, and into ``lost``, if the helpers cannot stay there any more.

    Given are the states lost before. ``policy`` gets the row with which an agent that does not help leaves.
    """
    first_choice = rows.first_choice
    n_queue = 0
    for s in range(len(lost)):
        if lost[s]:
            queue[n_queue] = s
            n_queue += 1
    head = 0
    while head < n_queue:
        target = queue[head]
        head += 1
        for k in range(before.offset[target], before.offset[target + 1]):
            s = before.source[k]
            if not inside[s] or not is_undecided[s]:
                continue
            stays, decisive = not helps.agent, first_choice[s]
            for c in range(first_choice[s], first_choice[s + 1]):
                if row_helps(inside, inside, helps.nature, c, rows) == helps.agent:
                    stays, decisive = helps.agent, c
                    break
            if stays:
                continue
            if not helps.agent:
                policy[s] = decisive
            inside[s], lost[s] = False, True
            queue[n_queue] = s
            n_queue += 1


@compiled
def escape_rows(rows: Any, inside: Any, reached: Any, nature_helps: bool, wins: Any, lost: Any, policy: Any) -> None:
    """Write for the lost states a row, not a winning one, with which an agent that does not help avoids ``reached``."""
    for s in range(len(lost)):
        if not lost[s]:
            continue
        for c in range(rows.first_choice[s], rows.first_choice[s + 1]):
            if not wins[c] and not row_helps(inside, reached, nature_helps, c, rows):
                policy[s] = c
                break
