"""Brackets of a difference by runs and rows together miss at most as often as they say, whenever somebody stops.

Practice remembers what it did. The opponent looks after several numbers of runs, fewer and more than were planned, and
calls it a miss if any bracket is wrong.
"""

from fractions import Fraction

import numpy as np
import pytest
from controlled_runs import NOTHING, VARIES, all_runs, as_data, chain, true_difference
from evidence import until_refuted
from tiers import size

from plumdp.tables.control import difference_by_runs

STEPS, PLANNED, LOOKS = 6, 100, (30, 60, 100, 160)
TABLE = chain(STEPS)
KINDS = [  # true rows, the last of which are lost rarely, as the pilot may not have seen
    [Fraction(n, 100) for n in (90, 10, 70, 29, 1)],
    [Fraction(n, 100) for n in (70, 30, 60, 30, 10)],
]
PAYS = (NOTHING, VARIES)  # what mending costs beyond the mean that the chain has
LAWS = [list(all_runs(truth, STEPS, paid)) for truth, paid in zip(KINDS, PAYS, strict=True)]
CHANCES = [np.array([float(c) for *_, c in runs]) for runs in LAWS]
DIFFERENCES = [true_difference(TABLE, truth, STEPS, paid) for truth, paid in zip(KINDS, PAYS, strict=True)]


def chances(runs):
    """Return the probability of each run."""
    found = np.array([float(c) for *_, c in runs])
    return found / found.sum()


def drawn(rng, kind, n):
    """Return runs of machines of a kind."""
    return [LAWS[kind][i] for i in rng.choice(len(LAWS[kind]), size=n, p=CHANCES[kind] / CHANCES[kind].sum())]


def is_missed(seed, kept=1.0):
    """Play a game, and return whether a bracket, or that part of it around its middle, misses at any look."""
    rng = np.random.default_rng(seed)
    kind = int(rng.integers(2))
    runs = drawn(rng, kind, LOOKS[-1])
    for look in LOOKS:
        low, high = difference_by_runs(TABLE, *as_data(runs[:look], STEPS, PAYS[kind]), 0.5, float(PLANNED))
        if abs(DIFFERENCES[kind] - (low + high) / 2) > kept * (high - low) / 2:
            return True
    return False


@pytest.mark.night
def test_brackets_miss_no_more_often_than_they_say():
    assert not until_refuted((is_missed(seed) for seed in range(size(20, 200))), rate=0.5).is_refuted


@pytest.mark.slow
def test_brackets_that_are_a_fifteenth_as_wide_are_found_out():
    assert until_refuted((is_missed(seed, 1 / 15) for seed in range(40)), rate=0.5).is_refuted


def test_two_kinds_of_machines_that_the_table_takes_for_one():
    """The table is wrong then, as rows mix both kinds; the difference is inside all the same, as it hardly matters."""
    laws, truth = [list(all_runs(truth, STEPS)) for truth in KINDS], [true_difference(TABLE, p, STEPS) for p in KINDS]
    for seed in range(size(4, 40)):
        rng = np.random.default_rng(seed)
        runs = [
            laws[int(kind)][int(rng.choice(len(laws[int(kind)]), p=chances(laws[int(kind)])))]
            for kind in rng.integers(2, size=300)
        ]
        low, high = difference_by_runs(TABLE, *as_data(runs, STEPS), 0.05, 300.0)
        assert low <= sum(truth) / 2 <= high
