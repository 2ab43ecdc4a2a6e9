"""Values of policies with memory lie within their bounds often enough; data that count once for each memory do not."""

from functools import cache

import pytest
from evidence import until_refuted
from row_models import listed
from tiers import size

import plumdp as pl
from plumdp.learning import learn as learning

pytestmark = pytest.mark.slow
ERROR, REPETITIONS, WITHIN = 0.1, size(20, 2000), "Pmax=? [ F<=100 x=1 ]"


@cache
def tries():
    """Return a model in which trying reaches the goal with p."""
    (p,) = pl.parameters("p")

    return listed({0: {"wait": [(1, 0)], "try": [(p, 1), (1 - p, 0)]}}, at="x")


def misses(seed):
    """Return whether the value 1 - 0.98^100 of trying a hundred times is not within the bounds."""
    model = tries()
    counts = pl.simulate(model, {"p": "0.02"}, 40, rng=seed, max_steps=100)
    found = pl.certify(model, counts, WITHIN, confidence=1 - ERROR, confidence_set="interval")
    return not found.lower <= 1 - 0.98**100 <= found.upper


def test_values_are_missed_seldom_enough():
    assert not until_refuted(map(misses, range(REPETITIONS)), rate=ERROR).is_refuted


def test_data_that_count_once_for_each_memory_are_found(monkeypatch):
    """As if the product were what was counted: in each of thirty steps the same data."""
    right = learning.counts_of

    def for_each_memory(*given, **more):
        counts = right(*given, **more)
        return pl.TransitionCounts(counts.graph, 101 * counts.counts, counts.sampling)

    monkeypatch.setattr(learning, "counts_of", for_each_memory)
    assert until_refuted(map(misses, range(REPETITIONS)), rate=ERROR).is_refuted
