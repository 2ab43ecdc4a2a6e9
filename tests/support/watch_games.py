"""What a watch multiplies and sums up, in exact fractions, for throws of one coin that are divided into parts."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np

from plumdp.data.seen import Seen
from plumdp.watching.detectors import pilot_of
from plumdp.watching.rows import WatchedRows
from plumdp.watching.stream import Stream

HALF, EIGHT, EIGHTH = Fraction(1, 2), 8, Fraction(1, 8)
COIN_ROWS = WatchedRows(np.array([0, 2]), np.array([0, 1]), ("p", "1 - p"))


def sequences(n):
    return product((0, 1), repeat=n)


def chance_of(throws, chance):
    return prod((chance if heads else 1 - chance for heads in throws), start=Fraction(1))


def mean_over(n, chance, value):
    """Return the mean of a function of n throws, in fractions."""
    return sum((chance_of(throws, chance) * value(throws) for throws in sequences(n)), Fraction(0))


def counted(throws):
    return (sum(throws), len(throws) - sum(throws))


def average(seen, weights):
    """Return the probability of one order of what was seen, averaged over Dirichlet's law with these weights."""
    total, value = sum(weights), Fraction(1)
    for weight, n in zip(weights, seen, strict=True):
        value *= prod((weight + k for k in range(n)), start=Fraction(1))
    return value / prod((total + k for k in range(sum(seen))), start=Fraction(1))


def weights_after(before):
    """Return the weights of the law after a change, given what came before it."""
    heads = (before[0] + HALF) / (sum(before) + 1)
    return [EIGHT * ((1 - EIGHTH) * mean + EIGHTH * HALF) for mean in (heads, 1 - heads)]


def weights_beside(chance):
    return [EIGHT * ((1 - EIGHTH) * mean + EIGHTH * HALF) for mean in (chance, 1 - chance)]


def changed(parts, i, below, pilot=None):
    """Return the wealth of a change after part i, over a function of the throws after the pilot."""
    m = pilot_of(i) if pilot is None else pilot
    early, late, first = (counted([x for part in some for x in part]) for some in (parts[:i], parts[i:], parts[:m]))
    predicted = average(early, [HALF, HALF]) / average(first, [HALF, HALF])
    return predicted * average(late, weights_after(early)) / below([x for part in parts[m:] for x in part])


def outside(parts, i, chance):
    """Return the wealth of a start after part i, against a known chance."""
    late = [x for part in parts[i:] for x in part]
    return average(counted(late), weights_beside(chance)) / chance_of(late, chance)


def largest(throws):
    """Return the largest probability that any chance gives to throws."""
    return chance_of(throws, Fraction(sum(throws), len(throws))) if len(throws) else Fraction(1)


def streamed(parts):
    """Return the parts as the package keeps them."""
    stream = Stream(COIN_ROWS)
    for number, throws in enumerate(parts, start=1):
        stream = stream.add(f"part {number}", Seen(np.array(counted(throws), dtype=np.int64)))
    return stream


def cut_by(throws, *rules):
    """Return throws in parts; each rule says, given what came before, how many of the throws left are in the next."""
    parts, start = [], 0
    for rule in rules:
        end = min(start + rule(throws[start:], throws[:start]), len(throws))
        parts.append(throws[start:end])
        start = end
    return [*parts, throws[start:]]
