"""Coins over time: games of an adversary who ends parts and picks coins, and coins that change.

Two coins have the probabilities p and p/2. The adversary sees everything, and ends parts when that misleads most.
"""

from dataclasses import dataclass, field

import numpy as np
from coin_model import COIN
from row_models import row_model

import plumdp as pl
from plumdp.confidence.estimates import law_of_space
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.data.pilots import moments_of, open_pilot
from plumdp.data.seen import Seen
from plumdp.data.time_parts import Recorder, TimeParts, runs_of_parts
from plumdp.fit import time_tests

(p,) = pl.parameters("p")
COINS = row_model([[p, 1 - p], [p / 2, 1 - p / 2]], pl.ParameterSpace.unit("p"))
TABLE, SPACE = likelihood_table(COINS), law_of_space(COINS)
FIRST = COINS.graph.first_transition  # of both coins: heads, then tails


@dataclass
class Throws:
    """What was thrown in each part, (coin, heads) by (coin, heads)."""

    parts: list = field(default_factory=lambda: [[]])

    def end(self):
        if self.parts[-1]:
            self.parts.append([])

    @property
    def all(self):
        return [throw for part in self.parts for throw in part]

    def counted(self):
        """Return the parts and what was seen in all."""
        entries = [(i, FIRST[coin] + 1 - heads, 1) for i, part in enumerate(self.parts) for coin, heads in part]
        n, columns = len(self.parts), np.array(entries, dtype=np.int64).reshape(-1, 3).T
        time = TimeParts(n, tuple(range(1, n)), tuple(f"part {i}" for i in range(2, n + 1)), columns)
        return time, TABLE.pool(np.bincount(columns[1], minlength=COINS.graph.n_transitions))


def largest_test(throws, truth, error):
    """Return the largest test over time at the truth: it contradicts the truth at the error if it is not below zero."""
    time, total = throws.counted()
    tests = time_tests.time_tests(TABLE, time, total, space=SPACE, near=np.array([truth]), error=error)
    with np.errstate(divide="ignore"):
        values = tests.cells.values(np.log(TABLE.values(np.array([truth]))[0]))
    return max(tests.constant, values.max(initial=-np.inf))


def play(rng, truth, adversary, *, n_throws, error, every):
    """Return whether the truth is ever contradicted, in one game against an adversary."""
    throws = Throws()
    for t in range(1, n_throws + 1):
        last = throws.all[-1][1] if throws.all else 0
        coin = {"heads": 0, "after tails": 1 - last, "at random": int(rng.random() < 0.5)}[adversary]
        heads = int(rng.random() < truth / (1 + coin))
        throws.parts[-1].append((coin, heads))
        if heads or len(throws.parts[-1]) == 16 or (adversary == "after tails" and len(throws.parts[-1]) > 3):
            throws.end()
        if t % every == 0 and largest_test(throws, truth, error) >= 0:
            return True
    return False


def read_over_time(heads):
    """Return throws of one coin, read in their order as a log that may have ended at will."""
    first, n = COIN.graph.first_transition[0], len(heads)

    def seen(start, end):
        counts = np.zeros(COIN.graph.n_transitions, dtype=np.int64)
        counts[first], counts[first + 1] = heads[start:end].sum(), (end - start) - heads[start:end].sum()
        return counts

    moments = moments_of(n)
    recorder = Recorder(runs_of_parts(n, moments, COIN.graph.n_transitions))
    for part, (start, end) in enumerate(zip([0, *recorder.ends], recorder.ends, strict=False)):
        recorder.add(part, np.arange(first, first + 2), seen(start, end)[first : first + 2])
    pilot = open_pilot([Seen(seen(0, moment)) for moment in moments], n, Seen(0 * seen(0, 1)))
    return pl.TransitionCounts(COIN.graph, seen(0, n), "adaptive", pilot, time=recorder.parts(n))
