"""Compiled backups, rounded outward, and chains of best moves where nature picks within the intervals of each row.

The backups work on a private copy of the rows (see ``layout.py``) and leave each row in the order in which nature fills
it. The masses that nature gives depend on this order alone, which hardly changes from sweep to sweep. So they are kept:
a sweep checks the order, and adds up masses times differences of values, as in the product of a sparse matrix and a
vector. Values are asked for some rows ahead, since successors may be far apart in memory.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from plumdp.base.compiled import compiled, compiled_leaf, prefetch
from plumdp.base.rounding import UNDERFLOW, UNIT
from plumdp.solver.chain_kernels import add_entry
from plumdp.solver.graph_kernels import add

ZERO, ONE, TWO = (np.uint64(number) for number in range(3))  # unsigned: signed indices cost a test each
AHEAD, BEHIND = np.uint64(64), np.uint64(2**64 - 64)  # transitions between a value that is read and one asked for
NEGLIGIBLE = 1e-12  # a sum of bounds that misses 1 by less is taken as 1: nature may do more, never less


@compiled_leaf
def sum_is_one(a: Any, middle: Any, b: Any, expression: Any, lower: Any, upper: Any) -> bool:
    """Return whether the upper bounds up to ``middle`` and the lower ones from there sum to one, without rounding."""
    total, residue = 0.0, 0.0
    for t in range(a, b):
        total, error = add(total, 0.0, upper[expression[t]] if t < middle else lower[expression[t]])
        residue += abs(error)
    return total == 1.0 and residue == 0.0


@compiled_leaf
def infinite_row(
    a: Any, b: Any, successor: Any, expression: Any, lower: Any, upper: Any, source: Any, nature: float, buffer: Any
) -> tuple[float, float]:
    """Return value and error of a row with infinite values.

    The value is infinite if these get mass, else that of the others. Nature that wants large values gives them mass if
    it can. Otherwise they get some only if the others cannot take all.
    """
    most, more, least, less = 0.0, 0.0, 0.0, 0.0
    can_hit = False
    for t in range(a, b):
        f = expression[t]
        least, less = add(least, less, lower[f])
        if not np.isinf(source[successor[t]]):
            most, more = add(most, more, upper[f])
        elif lower[f] > 0.0:
            return np.inf, 0.0
        else:
            can_hit = can_hit or upper[f] > 0.0
    if can_hit and ((most - 1.0) + more < 0.0 or (nature > 0.0 and (least - 1.0) + less < 0.0)):
        return np.inf, 0.0
    free = max(1.0 - least, 0.0)
    value, error = finite_part(a, b, successor, expression, lower, upper, source, nature, buffer, free)
    return value, error


@compiled_leaf
def finite_part(
    a: Any,
    b: Any,
    successor: Any,
    expression: Any,
    lower: Any,
    upper: Any,
    source: Any,
    nature: float,
    buffer: Any,
    free: float,
) -> tuple[float, float]:
    """Return value and error of a row over its finite values, best for nature first.

    Infinite values get no mass.
    """
    base, total, weight = np.inf, 0.0, 0.0
    takes_all = False
    for i in range(b - a):
        buffer[i] = 0.0  # not yet taken
    for _ in range(b - a):
        best, place = -nature * np.inf, -1
        for i in range(b - a):
            v = source[successor[a + i]]
            if buffer[i] == 0.0 and not np.isinf(v) and (place < 0 or nature * v > nature * best):
                best, place = v, i
        if place < 0:
            break
        buffer[place] = 1.0
        f = expression[a + place]
        extra = min(upper[f] - lower[f], free)
        free -= extra
        p = lower[f] + extra
        if np.isinf(base):
            base = best
            takes_all = upper[f] == 1.0
        elif p > 0.0 or not takes_all:
            total += p * (best - base)
            weight += abs(best - base)
    if weight == 0.0:
        return base, 0.0
    return base + total, UNIT * ((4.0 * float(b - a) + 8.0) * weight + 2.0 * abs(base + total)) + UNDERFLOW


@partial(compiled, inline="always")
def sort_row(
    a: Any, b: Any, successor: Any, expression: Any, source: Any, nature: float, ahead: Any, room: Any
) -> None:
    """Sort a row by nature's preference for its successors, by insertion, and write their values into the room."""
    last = source[successor[a]]
    room[0] = last
    for number in range(a + ONE, b):
        t = np.uint64(number)
        prefetch(source, successor[t + ahead])
        f, target = expression[t], successor[t]
        v = source[target]
        if nature * last < nature * v:
            j = t
            while j > a and nature * room[j - a - ONE] < nature * v:
                room[j - a] = room[j - a - ONE]
                successor[j] = successor[j - ONE]
                expression[j] = expression[j - ONE]
                j -= ONE
            room[j - a] = v
            successor[j], expression[j] = target, f
        else:
            room[t - a] = last = v


@partial(compiled, inline="always")
def fill_row(a: Any, b: Any, expression: Any, lower: Any, upper: Any, mass: Any, at: Any) -> float:
    """Write the mass that nature gives to each successor of a row but the first, which gets the rest.

    The row is in nature's order. Returns the number of the last successor whose mass is known only up to the rounding
    of a sum, 0 if there is none. It is written instead of the first one's mass.
    """
    f, doubtful = expression[a], 0.0
    if b - a == TWO:
        g = expression[a + ONE]
        rest, p = 1.0 - upper[f], lower[g]  # what the preferred successor cannot take, the other one gets
        p = rest if rest > p else p
        # both are known up to one rounding, unless no distribution fits: then bounds are rounded numbers
        doubtful = 0.0 if p <= upper[g] else 1.0
        mass[at + ONE] = p
    else:
        free = 1.0 - lower[f]
        for number in range(a + ONE, b):
            free -= lower[expression[np.uint64(number)]]
        room = upper[f] - lower[f]
        slack = 2.0 * UNIT * float(b - a)  # how far off the sum of bounds may be
        filled = room > free + slack or upper[f] == 1.0  # the preferred successor takes all that is free
        free -= room
        for number in range(a + ONE, b):
            t = np.uint64(number)
            f = expression[t]
            p = lower[f]
            if not filled:
                room = upper[f] - p
                filled = room > free + slack
                if filled:  # gets what is left, known up to the rounding of sums
                    if free > NEGLIGIBLE or not sum_is_one(a, t, b, expression, lower, upper):
                        doubtful = float(t - a)
                        p += free if free > 0.0 else 0.0
                else:
                    if room > 0.0 and room > free - slack:  # perhaps less than its upper bound is left
                        doubtful = float(t - a)
                    p = upper[f]
                    free -= room
            mass[at + (t - a)] = p
    mass[at] = doubtful
    return doubtful


@partial(compiled_leaf, is_helper=False, small=150_000)
def backup(
    start: int,
    end: int,
    step: int,
    rows: Any,
    side: float,
    lift: float,
    cap: float,
    source: Any,
    result: Any,
    best_row: Any,
    room: Any,
    kept: Any,
) -> tuple[int, float]:
    """Write one more step of both players at their best, for the states from ``start`` to ``end``.

    Agent and nature are +1 (want large values) or -1. Each expectation is the value that nature prefers plus
    differences to it, so that its rounding scales with the differences (a row whose mass stays on equal values is
    exact), and the rounding is added to the given side. With side -1 a state only takes a larger value. With side +1 it
    takes the new value plus the lift, but at most the cap. Values may be infinite: they count where they must get mass
    or nature wants them to.

    If ``source`` is ``result`` the states see the new values of those before. ``room`` is for the values and masses of
    the longest row. ``kept`` has the masses of each row as nature last gave them, negative at the first transition of a
    row of which they are not known. If it is empty they are found anew. Returns how many states got a larger value, and
    the largest relative change.
    """
    first_choice, first, successor, expression, lower, upper, reward, discount, agent, nature = rows
    n_transitions, is_kept = np.uint64(len(successor)), len(kept) > 0
    mass, half = kept if is_kept else room, np.uint64(len(room) // 2)
    shift = AHEAD if step > 0 else BEHIND
    n_larger, change = 0, 0.0
    for k in range(end - start):
        i = np.uint64(start + k if step > 0 else end - 1 - k)
        best, chosen = -agent * np.inf, np.uint64(first_choice[i])
        for row in range(first_choice[i], first_choice[i + ONE]):
            c = np.uint64(row)
            a, b = np.uint64(first[c]), np.uint64(first[c + ONE])
            ahead = shift if a >= AHEAD and b + AHEAD <= n_transitions else ZERO
            prefetch(source, successor[a + ahead])
            value, error = source[successor[a]], 0.0
            if b - a > ONE:
                at = a if is_kept else half
                last, total = value, 0.0
                doubtful = mass[at] if is_kept else -1.0
                if doubtful >= 0.0:
                    for number in range(a + ONE, b):
                        t = np.uint64(number)
                        prefetch(source, successor[t + ahead])
                        v = source[successor[t]]
                        if nature * last < nature * v:  # rare: the order is that of the last sweep
                            doubtful = -1.0
                            break
                        total += mass[t] * (v - value)
                        last = v
                if doubtful < 0.0:
                    sort_row(a, b, successor, expression, source, nature, ahead, room)
                    doubtful = fill_row(a, b, expression, lower, upper, mass, at)
                    value, last, total = room[0], room[b - ONE - a], 0.0
                    for number in range(ONE, b - a):
                        j = np.uint64(number)
                        total += mass[at + j] * (room[j] - value)
                spread = last - value
                if not abs(spread) < np.inf:
                    value, error = infinite_row(
                        np.int64(a), np.int64(b), successor, expression, lower, upper, source, nature, room
                    )
                elif spread != 0.0:
                    marginal = abs(source[successor[a + np.uint64(doubtful)]] - value) if doubtful > 0.0 else 0.0
                    moves = total != 0.0 or marginal != 0.0
                    if not moves:  # mass that is too small to move the value counts as well
                        for number in range(ONE, b - a):
                            j = np.uint64(number)
                            moves = moves or (mass[at + j] > 0.0 and source[successor[a + j]] != value)
                    if moves:
                        value += total
                        n = float(b - a)
                        error = UNIT * ((n + 8.0) * abs(total) + (4.0 * n + 8.0) * marginal + 2.0 * abs(value))
                        error += UNDERFLOW
            if discount != 1.0 and value != 0.0:
                value *= discount
                error += 2.0 * UNIT * abs(value) + UNDERFLOW
            if reward[c] != 0.0 and abs(value) < np.inf:
                value += reward[c]
                error += 2.0 * UNIT * abs(value)
            if error != 0.0:
                value += side * error  # outward: below for lower bounds, above for upper ones
            better = agent * value > agent * best
            best = value if better else best  # selections, not branches: which row is better is hard to predict
            chosen = c if better else chosen
        old = result[i]
        scale = abs(best) if abs(best) > 1.0 else 1.0
        if side < 0.0:
            if best > old:
                result[i] = best
                n_larger += 1
                if best - old > change * scale:
                    change = (best - old) / scale
                if agent > 0.0:
                    best_row[i] = chosen
        else:
            new = best + lift * scale
            new = new if new < cap else cap
            if new > old:
                n_larger += 1
            if new != old:
                if not abs(new - old) <= change * scale:
                    change = abs(new - old) / scale
                result[i] = new
            if agent < 0.0:
                best_row[i] = chosen
    return n_larger, change


@compiled
def chain_of_best(
    start: int,
    end: int,
    rows: Any,
    judge: Any,
    low: Any,
    high: Any,
    best_row: Any,
    offset: Any,
    column: Any,
    entry: Any,
    constants: Any,
    room: Any,
    kept: Any,
) -> int:
    """Write the Markov chain of the given rows and nature's best moves, and return its number of entries.

    Rows must be in nature's order, as a backup leaves them. Row i of the chain is state ``start + i``: probabilities
    to members of the component in ``entry``, everything else in ``constants``, once with the lower and once with the
    upper values outside.
    """
    _, first, successor, expression, lower, upper, reward, _, _, nature = rows
    n_entries = 0
    for i in range(start, end):
        c = best_row[i]
        a, b = np.int64(first[c]), np.int64(first[c + 1])
        free = 1.0
        for j in range(a, b):
            free -= lower[expression[j]]
        free = max(free, 0.0)
        constants[i - start, 0] = constants[i - start, 1] = reward[c]
        swapped = b - a == 2 and nature * judge[successor[a]] < nature * judge[successor[a + 1]]
        for k in range(b - a):
            t = b - 1 - k if swapped else a + k
            f = expression[t]
            extra = min(upper[f] - lower[f], free)
            free -= extra
            p = lower[f] + extra
            target = np.int64(successor[t])
            n_entries = add_entry(p, target, i, start, end, low, high, column, entry, constants, n_entries)
        offset[i - start + 1] = n_entries
    return n_entries
