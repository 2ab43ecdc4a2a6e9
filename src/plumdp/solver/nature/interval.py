"""Nature picks a distribution within the intervals of each row: backups rounded outward, and chains of best moves.

The backups work on a private copy of the rows (see ``layout.py``) and leave each row in the order in which nature fills
it: the order hardly changes from sweep to sweep, so that sorting costs next to nothing. Everything a backup needs is
written into it once, without helper functions that take arrays: those would cost reference counting on each call.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from plumdp.compiled import compiled, compiled_leaf
from plumdp.rounding import UNDERFLOW, UNIT
from plumdp.solver.chain_kernels import add_entry
from plumdp.solver.graph_kernels import add

ONE, TWO = np.uint64(1), np.uint64(2)  # unsigned, so that no index can be negative: signed ones cost a test each
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
    """Return value and error of a row with infinite values: infinite if they get mass, else that of the others.

    Nature that wants large values gives them mass if it can; else they get some only if the others cannot take all.
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
    """Return value and error of a row over its finite values, best for nature first; infinite values get no mass."""
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


@partial(compiled, small=150_000)
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
    room_for_a_row: Any,
) -> tuple[int, float]:
    """Write one more step of both players at their best, for the states from ``start`` to ``end``.

    Agent and nature are +1 (want large values) or -1. Each expectation is the value that nature prefers plus
    differences to it, so that its rounding scales with the differences (a row whose mass stays on equal values is
    exact), and the rounding is added to the given side. With side -1 a state only takes a larger value; with side +1 it
    takes the new value plus the lift, but at most the cap. Values may be infinite: they count where they must get mass
    or nature wants them to.

    If ``source`` is ``result`` the states see the new values of those before. Returns how many states got a larger
    value, and the largest relative change.
    """
    first_choice, first, successor, expression, lower, upper, reward, discount, agent, nature = rows
    buffer = room_for_a_row
    n_larger, change = 0, 0.0
    for k in range(end - start):
        i = np.uint64(start + k if step > 0 else end - 1 - k)
        best, chosen = -agent * np.inf, np.uint64(first_choice[i])
        for row in range(first_choice[i], first_choice[i + ONE]):
            c = np.uint64(row)
            a, b = np.uint64(first[c]), np.uint64(first[c + ONE])
            value, error = source[successor[a]], 0.0
            if b - a == TWO:
                other = source[successor[a + ONE]]
                if nature * value < nature * other:  # rare: the order is that of the last sweep
                    value, other = other, value
                    successor[a], successor[a + ONE] = successor[a + ONE], successor[a]
                    expression[a], expression[a + ONE] = expression[a + ONE], expression[a]
                f, g = expression[a], expression[a + ONE]
                rest, p = 1.0 - upper[f], lower[g]  # what the preferred successor cannot take, the other one gets
                p = rest if rest > p else p
                difference = other - value
                if abs(difference) < np.inf:
                    # both are known up to one rounding, unless no distribution fits: then bounds are rounded numbers
                    uncertain = p if p <= upper[g] else p + 1.0
                    if uncertain != 0.0 and difference != 0.0:
                        value += p * difference
                        error = UNIT * (10.0 * uncertain * abs(difference) + 2.0 * abs(value)) + UNDERFLOW
                else:
                    value, error = infinite_row(
                        np.int64(a), np.int64(b), successor, expression, lower, upper, source, nature, buffer
                    )
            elif b - a > TWO:
                free = 1.0 - lower[expression[a]]
                buffer[0] = last = value
                for number in range(a + ONE, b):  # insertion sort, in place: what nature prefers first
                    t = np.uint64(number)
                    f, target = expression[t], successor[t]
                    v = source[target]
                    free -= lower[f]
                    if nature * last < nature * v:
                        j = t
                        while j > a and nature * buffer[j - a - ONE] < nature * v:
                            buffer[j - a] = buffer[j - a - ONE]
                            successor[j] = successor[j - ONE]
                            expression[j] = expression[j - ONE]
                            j -= ONE
                        buffer[j - a] = v
                        successor[j], expression[j] = target, f
                    else:
                        buffer[t - a] = last = v
                value, marginal = buffer[0], 0.0
                if np.isinf(value) or np.isinf(buffer[b - ONE - a]):
                    value, error = infinite_row(
                        np.int64(a), np.int64(b), successor, expression, lower, upper, source, nature, buffer
                    )
                else:
                    f = expression[a]
                    room = upper[f] - lower[f]
                    slack = 2.0 * UNIT * float(b - a)  # how far off the sum of bounds may be
                    filled = room > free + slack or upper[f] == 1.0  # the preferred successor takes all that is free
                    free -= room
                    total, mass = 0.0, 0.0
                    for number in range(a + ONE, b):
                        t = np.uint64(number)
                        f = expression[t]
                        p = lower[f]
                        difference = buffer[t - a] - value
                        if not filled:
                            room = upper[f] - p
                            filled = room > free + slack
                            if filled:  # gets what is left, known up to the rounding of sums
                                if free > NEGLIGIBLE or not sum_is_one(a, t, b, expression, lower, upper):
                                    marginal = abs(difference)
                                    p += free if free > 0.0 else 0.0
                            else:
                                if room > 0.0 and room > free - slack:  # perhaps less than its upper bound is left
                                    marginal = abs(difference)
                                p = upper[f]
                                free -= room
                        total += p * difference
                        mass += p if difference != 0.0 else 0.0
                    if mass != 0.0 or marginal != 0.0:
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
                value += side * error
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
    room_for_a_row: Any,
) -> int:
    """Write the Markov chain of the given rows and nature's best moves; return its number of entries.

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
