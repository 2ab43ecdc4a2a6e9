"""Compiled loops of the solver: components, qualitative games, and backups that are rounded outward.

Rows are choices: row ``c`` has the transitions ``first[c]`` up to ``first[c + 1]``, with bounds ``lower[expression[t]]``
and ``upper[expression[t]]``. Nature picks a distribution within them.

The backups work on the private copy of a board (see ``board.py``) and leave each row in the order in which nature fills
it: the order hardly changes from sweep to sweep, so that sorting costs next to nothing. Everything a backup needs is
written into it once, without helper functions that take arrays: those would cost reference counting on each call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plumdp.compiled import compiled

UNIT = 2.0**-53  # relative error of one rounding
NEGLIGIBLE = 1e-12  # a sum of bounds that misses 1 by less is taken as 1: nature may do more, never less


@compiled
def strong_components(first_choice: Any, first: Any, successor: Any, is_open: Any, order: Any, component: Any) -> int:
    """Write the open states into ``order``, component by component, successors first; return the number of components.

    Tarjan's algorithm without recursion. ``component`` gets the number of each open state's component, and those numbers
    grow along ``order``: everything a component can leave to has a smaller number.
    """
    n = len(is_open)
    index = np.full(n, -1, dtype=np.int32)
    low = np.zeros(n, dtype=np.int32)
    stack = np.empty(n, dtype=np.int32)
    path = np.empty(n, dtype=np.int32)
    position = np.zeros(n, dtype=np.int64)
    n_stack = n_path = n_index = n_order = n_components = 0
    for root in range(n):
        if not is_open[root] or index[root] >= 0:
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
                if not is_open[target]:
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


@compiled
def row_may(
    start: int, end: int, successor: Any, expression: Any, lower: Any, upper: Any, inside: Any, aim: Any
) -> bool:
    """Return whether some distribution of the row stays inside and gives the aim (a part of inside) a positive chance."""
    most, least = 0.0, 0.0
    for t in range(start, end):
        f = expression[t]
        if inside[successor[t]]:
            most += upper[f]
            least += lower[f]
        elif lower[f] > 0.0:
            return False
    if most < 1.0 - NEGLIGIBLE:
        return False
    for t in range(start, end):
        f = expression[t]
        if aim[successor[t]] and upper[f] > 0.0 and (lower[f] > 0.0 or least < 1.0):
            return True
    return False


@compiled
def row_must(
    start: int, end: int, successor: Any, expression: Any, lower: Any, upper: Any, inside: Any, aim: Any
) -> bool:
    """Return whether every distribution of the row stays inside and gives the aim a positive chance."""
    least, elsewhere = 0.0, 0.0
    surely = False
    for t in range(start, end):
        f = expression[t]
        least += lower[f]
        if not aim[successor[t]]:
            elsewhere += upper[f]
        elif lower[f] > 0.0:
            surely = True
    for t in range(start, end):
        f = expression[t]
        if not inside[successor[t]] and upper[f] > 0.0 and (lower[f] > 0.0 or least < 1.0):
            return False
    return surely or elsewhere < 1.0 - NEGLIGIBLE


@compiled
def attract(
    first_choice: Any,
    first: Any,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    offset: Any,
    source: Any,
    is_open: Any,
    inside: Any,
    agent_helps: bool,
    nature_helps: bool,
    reached: Any,
    pending: Any,
) -> None:
    """Extend ``reached`` to the open states from which the helpers can stay inside and reach it with positive chance.

    A player that helps needs one option that does, one that does not is stopped only if all its options do.
    """
    n_pending = 0
    for s in range(len(reached)):
        if reached[s]:
            pending[n_pending] = s
            n_pending += 1
    while n_pending:
        n_pending -= 1
        target = pending[n_pending]
        for k in range(offset[target], offset[target + 1]):
            s = source[k]
            if reached[s] or not is_open[s] or not inside[s]:
                continue
            good = not agent_helps
            for c in range(first_choice[s], first_choice[s + 1]):
                if nature_helps:
                    helps = row_may(first[c], first[c + 1], successor, expression, lower, upper, inside, reached)
                else:
                    helps = row_must(first[c], first[c + 1], successor, expression, lower, upper, inside, reached)
                if agent_helps and helps:
                    good = True
                    break
                if not agent_helps and not helps:
                    good = False
                    break
            if good:
                reached[s] = True
                pending[n_pending] = s
                n_pending += 1


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


@compiled
def backup(
    start: int,
    end: int,
    step: int,
    first_choice: Any,
    first: Any,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    reward: Any,
    discount: float,
    agent: float,
    nature: float,
    side: float,
    lift: float,
    cap: float,
    source: Any,
    result: Any,
    best_row: Any,
    buffer: Any,
) -> tuple[int, float]:
    """Write one more step of both players at their best, for the states from ``start`` to ``end``; the core of it all.

    Agent and nature are +1 (want large values) or -1. Each expectation is the value that nature likes best plus
    differences to it, so that its rounding scales with the differences (a row whose mass stays on equal values is exact),
    and the rounding is added to the given side. With side -1 a state only takes a larger value; with side +1 it takes the
    new value plus the lift, but at most the cap. Values may be infinite: they count where they must get mass or nature
    wants them to.

    If ``source`` is ``result`` the states see the new values of those before. Returns how many states got a larger value,
    and the largest relative change.
    """
    n_larger, change = 0, 0.0
    i = start if step > 0 else end - 1
    for _ in range(end - start):
        best, chosen = -agent * np.inf, first_choice[i]
        for c in range(first_choice[i], first_choice[i + 1]):
            a, b = first[c], first[c + 1]
            n = b - a
            value, error = source[successor[a]], 0.0
            if n == 2:
                other = source[successor[a + 1]]
                f, g = expression[a], expression[a + 1]
                if nature * value < nature * other:
                    value, other = other, value
                    f, g = g, f
                free = max(1.0 - lower[f] - lower[g], 0.0)
                extra = min(upper[f] - lower[f], free)
                p = lower[g] + min(upper[g] - lower[g], free - extra)
                saturated = extra >= upper[f] - lower[f] and upper[f] < 1.0
                if np.isinf(value):
                    if lower[f] + extra <= NEGLIGIBLE:
                        value = other
                elif np.isinf(other):
                    if p > NEGLIGIBLE:
                        value = other
                elif value != other and (p > 0.0 or saturated):
                    difference = other - value
                    value += p * difference
                    error = UNIT * (10.0 * (p + saturated) * abs(difference) + 2.0 * abs(value))
            elif n > 2:
                free = 1.0 - lower[expression[a]]
                buffer[0] = value
                last = value
                for k in range(1, n):  # insertion sort, in place: what nature prefers first
                    t = a + k
                    v, f, target = source[successor[t]], expression[t], successor[t]
                    free -= lower[f]
                    if nature * last < nature * v:
                        j = k
                        while j > 0 and nature * buffer[j - 1] < nature * v:
                            buffer[j] = buffer[j - 1]
                            successor[a + j] = successor[a + j - 1]
                            expression[a + j] = expression[a + j - 1]
                            j -= 1
                        buffer[j] = v
                        successor[a + j] = target
                        expression[a + j] = f
                    else:
                        buffer[k] = v
                        last = v
                free = max(free, 0.0)
                value = np.inf
                total, weight, marginal = 0.0, 0.0, 0.0
                saturated, infinite = False, 0.0
                for k in range(n):
                    f = expression[a + k]
                    room = upper[f] - lower[f]
                    extra = min(room, free)
                    free -= extra
                    p = lower[f] + extra
                    v = buffer[k]
                    if np.isinf(v):
                        if p > NEGLIGIBLE:
                            infinite = v
                    elif np.isinf(value):
                        value = v
                    else:
                        difference = v - value
                        total += p * difference
                        weight += p * abs(difference)
                        if extra > 0.0 or saturated:
                            marginal = max(marginal, abs(difference))
                    saturated = extra >= room and free <= NEGLIGIBLE and upper[f] < 1.0  # the next may get some mass
                if infinite != 0.0:
                    value = infinite
                elif total != 0.0 or marginal != 0.0:
                    value += total
                    error = UNIT * ((n + 8.0) * weight + (2.0 * n + 6.0) * marginal + 2.0 * abs(value))
            if discount != 1.0:
                value *= discount
                error += 2.0 * UNIT * abs(value)
            if reward[c] != 0.0:
                value += reward[c]
                error += 2.0 * UNIT * abs(value)
            if error != 0.0:
                value += side * error
            if agent * value > agent * best:
                best, chosen = value, c
        old = result[i]
        if side < 0.0:
            if best > old:
                result[i] = best
                n_larger += 1
                change = max(change, (best - old) / max(1.0, abs(best)))
                if agent > 0.0:
                    best_row[i] = chosen
        else:
            new = min(best + lift * max(1.0, abs(best)), cap)
            if new > old:
                n_larger += 1
            if new != old:
                change = max(change, abs(new - old) / max(1.0, abs(new)))
                result[i] = new
            if agent < 0.0:
                best_row[i] = chosen
        i += step
    return n_larger, change


@compiled
def is_inductive(
    start: int,
    end: int,
    values: Any,
    stepped: Any,
    side: float,
) -> bool:
    """Return whether one more step moved every value strictly back from the given side.

    For side +1 the values are then an upper bound; for side -1 a lower bound (values that are zero need no proof).
    """
    for i in range(start, end):
        if not side * stepped[i] < side * values[i] and not (side < 0.0 and values[i] == 0.0):
            return False
    return True


@compiled
def chain_of_best(
    start: int,
    end: int,
    first: Any,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    reward: Any,
    nature: float,
    values: Any,
    best_row: Any,
    offset: Any,
    column: Any,
    entry: Any,
    constant: Any,
) -> int:
    """Write the Markov chain of the given rows and nature's best moves; return its number of entries.

    Rows must stand in nature's order, as a backup leaves them. Row i of the chain is state ``start + i``: probabilities
    to members of the component in ``entry``, everything else in ``constant``.
    """
    n_entries = 0
    for i in range(start, end):
        c = best_row[i]
        a, b = np.int64(first[c]), np.int64(first[c + 1])
        free = 1.0
        for j in range(a, b):
            free -= lower[expression[j]]
        free = max(free, 0.0)
        constant[i - start] = reward[c]
        swapped = b - a == 2 and nature * values[successor[a]] < nature * values[successor[a + 1]]
        for k in range(b - a):
            t = b - 1 - k if swapped else a + k
            f = expression[t]
            extra = min(upper[f] - lower[f], free)
            free -= extra
            p = lower[f] + extra
            target = np.int64(successor[t])
            if p > 0.0 and start <= target and target < end:
                column[n_entries] = target - start
                entry[n_entries] = p
                n_entries += 1
            elif p > 0.0:
                constant[i - start] += p * values[target]
        offset[i - start + 1] = n_entries
    return n_entries
