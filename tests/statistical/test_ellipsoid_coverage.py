"""How often the least-squares ellipsoid misses the true point, calculated exactly in one dimension: no randomness.

A row has the probabilities a + b p and a - b p, and the rest has none of p. What least squares makes of n visits is
linear in the difference of the first two counts, so that the ellipsoid is missed where that difference is too small or
too large. It is a walk with steps 1, -1 and 0, whose distribution is known.

Two independent coins a + b p and c + b p are such a walk as well: with both heads it goes up, with both tails down, and
otherwise it stays.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from row_models import row_model
from tiers import size

import plumdp as pl
from plumdp.data.counts import TransitionCounts
from studies import least_squares as method
from studies.least_squares import least_squares
from studies.observations import observations
from studies.published_sets import published_ellipsoid

pytestmark = pytest.mark.slow

TRUE = Fraction(1, 2)
N = size(200, 600)


def row(*, slope, share):
    """Return a model of one row: two outcomes of about this share each that depend on p, and perhaps a third one."""
    (p,) = pl.parameters("p")
    shift = slope * (p - TRUE)
    outcomes = [share + shift, share - shift] + [1 - 2 * share] * (share < Fraction(1, 2))
    return row_model([outcomes], pl.ParameterSpace.unit("p"))


def two_coins(*, slope):
    """Return a model of one row: heads with 1/2 and with 2/5 at the true point, independently of each other."""
    (p,) = pl.parameters("p")
    g, h = (share + slope * (p - TRUE) for share in (Fraction(1, 2), Fraction(2, 5)))
    return row_model([[g * h, (1 - g) * (1 - h), g * (1 - h), (1 - g) * h]], pl.ParameterSpace.unit("p"))


ROWS = {
    "coin": row(slope=Fraction(1, 10), share=Fraction(1, 2)),
    "flat coin": row(slope=Fraction(1, 20), share=Fraction(1, 2)),
    "three-sided": row(slope=Fraction(1, 10), share=Fraction(12, 25)),
}
COINS = two_coins(slope=Fraction(1, 10))


def ellipsoid(model, first, second, error, paper):
    counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
    counts[:2] = first, second
    measure = published_ellipsoid if paper else least_squares
    return measure(model, TransitionCounts(model.graph, counts, "adaptive"), error=error)


def accepted(model, error, paper):
    """Return the least and the largest difference after 1, 2, … N visits at which the true point is not missed."""
    ends = []
    for n in range(1, N + 1):
        found, mirror = ellipsoid(model, n, 0, error, paper), ellipsoid(model, 0, n, error, paper)
        reach = found.radius / np.sqrt(found.matrix[0, 0])
        per_step = (found.centre[0] - mirror.centre[0]) / (2 * n)
        middle = (found.centre[0] + mirror.centre[0]) / 2
        ends.append(sorted((float(TRUE) + side * reach - middle) / per_step for side in (-1, 1)))
    return np.array(ends)


def misses(model, error, *, paper):
    """Return the largest probability of a miss after a fixed number of visits, and that of a miss at some time."""
    probability = model.probabilities({"p": TRUE})[model.expression]
    up, down = probability[0], probability[1]
    everyone, alive = np.zeros((2, 2 * N + 3))
    everyone[N + 1] = alive[N + 1] = 1
    difference = np.arange(-N - 1, N + 2)
    at_once, ever = 0.0, 0.0
    for low, high in accepted(model, error, paper):
        everyone, alive = (
            up * np.roll(walk, 1) + down * np.roll(walk, -1) + (1 - up - down) * walk for walk in (everyone, alive)
        )
        is_missed = (difference < low) | (high < difference)
        at_once = max(at_once, everyone[is_missed].sum())
        ever += alive[is_missed].sum()
        alive[is_missed] = 0
    return at_once, ever


@pytest.mark.parametrize("error", [0.05, 1e-3])
def test_two_coins_ever_miss_the_true_point_with_at_most_their_error(error):
    at_once, ever = misses(COINS, error, paper=False)
    assert at_once <= ever <= error
    assert ever >= error / 100


def test_two_coins_that_count_twice_miss_too_often(monkeypatch):
    """The check can fail."""

    def twice(model, counts):
        seen = observations(model, counts)
        return replace(seen, trials=2 * seen.trials, successes=2 * seen.successes)

    monkeypatch.setattr(method, "observations", twice)
    at_once, ever = misses(COINS, 1e-3, paper=False)
    assert at_once > 1e-3
    assert ever > 10e-3


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("error", [0.05, 1e-3])
def test_the_ellipsoid_ever_misses_the_true_point_with_at_most_its_error(name, error):
    at_once, ever = misses(ROWS[name], error, paper=False)
    assert at_once <= ever <= error
    assert ever >= error / 100  # neither is it too wide


@pytest.mark.parametrize("name", ROWS)
def test_with_the_published_constants_it_misses_too_often(name):
    """The check can fail: about twice as often as it says after a fixed number of visits, and far more at some time."""
    at_once, ever = misses(ROWS[name], 1e-3, paper=True)
    assert at_once > 1.4e-3
    assert ever > 10e-3
