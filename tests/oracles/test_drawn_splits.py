"""Splits of samples without an order: bets on the rest are fair over data and draw, and nearly so over data alone.

For one coin, expectations are sums over all outcomes of the data, and over all draws that there are.
"""

from functools import cache
from math import log

import numpy as np
import pytest
from row_models import row_model
from scipy.stats import binom, hypergeom
from tiers import size

import plumdp as pl
from plumdp.confidence.bets import factors_along
from plumdp.confidence.estimates import law_of_space
from plumdp.confidence.sets import ModelCache
from plumdp.confidence.staged_bets import find_horizons, find_stages, steps_of_stage
from plumdp.data import pilots
from plumdp.data.counts import Pilot, TransitionCounts

SHARE = 0.04  # of the error, for one direction


@cache
def coin():
    """Return a model of one coin, and the transitions of heads and tails."""
    (p,) = pl.parameters("p")
    model = row_model([[p, 1 - p]], pl.ParameterSpace.unit("p"))
    graph = model.graph
    first = graph.choice_of_transition() == graph.first_choice[graph.initial_state]
    heads, tails = (int(np.flatnonzero(first & (graph.states["at"][graph.successor] == x))[0]) for x in (1, 2))
    return ModelCache(model), law_of_space(model), heads, tails


def tossed(heads, n):
    """Return how often each transition was seen, after so many heads in n tosses."""
    cache_, _, up, down = coin()
    counts = np.zeros(cache_.model.graph.n_transitions, dtype=np.int64)
    counts[up], counts[down] = heads, n - heads
    return counts


def wealths(heads, n, pilot, truth):
    """Return what bets on either side have made of one at the truth; one if nothing is drawn."""
    if pilot is None:
        return np.ones(2)
    cache_, space, *_ = coin()
    table, data = cache_.table, TransitionCounts(cache_.model.graph, tossed(heads, n), "independent", pilot)
    horizons = find_horizons(pilot, n)
    sizes = np.sqrt(-2 * (horizons.log_weight - log(2) + log(SHARE)))
    won = np.zeros((2, len(sizes)))
    for stage in find_stages(table, data, space):
        steps = steps_of_stage(table, stage, np.ones((1, 1)), horizons.length, space)
        for side, i in np.ndindex(*won.shape):
            step = (1 - 2 * side) * sizes[i] * steps[i]
            (factors,) = factors_along(table, stage.point, step, stage.sharpness)
            means = np.bincount(table.group, table.values(np.array([truth]))[0] * factors, len(table.is_class))
            won[side, i] += stage.outcome_counts @ np.log(factors)
            won[side, i] -= table.visits(stage.outcome_counts) @ np.log(means)
    return np.exp(horizons.log_weight + won).sum(axis=1)


def over_data(n, truth, of):
    """Return the expectation over all data of what a function of the number of heads returns."""
    shares = binom.pmf(np.arange(n + 1), n, truth)
    return sum(share * of(heads) for heads, share in enumerate(shares) if share > 1e-9)


def expected_over_draws(heads, n, truth):
    """Return the expectation over all draws: 4 of 64 tosses are the pilot, and one of these four comes first.

    A quarter of one is one in a quarter of all cases, and then two moments have one length, so that nothing is drawn.
    """
    total = np.zeros(2)
    for four in range(max(0, 4 - n + heads), min(4, heads) + 1):
        for one in range(max(0, four - 3), min(1, four) + 1):
            weight = hypergeom.pmf(four, n, heads, 4) * hypergeom.pmf(one, 4, four, 1)
            moments = (tossed(one, 1), tossed(four, 4))
            pilot = Pilot(moments[1], ratio=n / 4 - 1, moments=moments, lengths=(1.0, 4.0), expected=float(n))
            total += weight * wealths(heads, n, pilot, truth)
    return 0.75 * total + 0.25


def own_draw(heads, n):
    return pilots.drawn_pilot(TransitionCounts(coin()[0].model.graph, tossed(heads, n), "independent"))


@pytest.mark.slow
@pytest.mark.parametrize("truth", size([0.5], [0.5, 0.1]))
def test_bets_by_a_drawn_part_are_fair_over_all_data_and_all_draws(truth):
    """With all horizons they would be exactly fair; those that are left out have not won."""
    expected = over_data(64, truth, lambda heads: expected_over_draws(heads, 64, truth))
    assert (expected <= 1 + 1e-8).all()
    assert (expected > 0.9).all()


@pytest.mark.slow
def test_over_all_data_alone_bets_by_a_drawn_part_are_all_but_fair():
    expected = over_data(200, 0.5, lambda heads: wealths(heads, 200, own_draw(heads, 200), 0.5))
    assert (expected < 1.1).all()


@pytest.mark.slow
def test_one_draw_for_all_data_is_found(monkeypatch):
    """Of 24 seeds, one makes three of one."""
    make = np.random.default_rng
    monkeypatch.setattr(pilots.np.random, "default_rng", lambda _: make(8))
    assert over_data(200, 0.5, lambda heads: wealths(heads, 200, own_draw(heads, 200), 0.5)).max() > 2
