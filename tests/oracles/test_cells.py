"""Bets in cells of the space on data without an order leave all points that their wealths leave.

Wealths are calculated here by themselves, at points, from factors and weights that no data have a part in.
"""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom
from tiers import size

import plumdp as pl
from plumdp.base.errors import DataError
from plumdp.confidence import cells as method
from plumdp.confidence.bets import Direction
from plumdp.confidence.cells import LENGTHS, WEIGHTS, Cells
from plumdp.confidence.likelihood import PRESPECIFIED, LevelSet, likelihood_set
from plumdp.data.counts import TransitionCounts
from plumdp.learning import learn as learning
from plumdp.region.find import find_region
from plumdp.region.likelihood_region import around_cells
from studies.widths import maintenance

ERROR = 0.05
TRUTH = np.array([0.12, 0.2, 0.3])
EVERY = np.arange(len(LENGTHS))


@cache
def problem():
    return maintenance()


def value(v):
    """Return the cost of a month in the long run: that of a cycle over its length, by hand."""
    return (20 / v[1] + 60 / v[2] + 2000) / (1 / v[0] + 1 / v[1] + 1 / v[2] + 1)


def gradient(v):
    return np.array([value(v + step) - value(v - step) for step in 1e-6 * np.eye(3)]) / 2e-6


@cache
def learned_from(runs, seed):
    truth = dict(zip("abc", TRUTH, strict=True))
    seen = pl.simulate(problem().model, truth, runs, rng=[seed, 0], max_steps=44, pilot=False)
    counts = TransitionCounts(problem().model.graph, seen.counts, "adaptive")
    return likelihood_set(problem().model, counts, error=ERROR, directions=lambda point: [Direction(gradient(point))])


def own_cell(v):
    """Return the cell of a point: half a logit wide, between the bounds of the parameters."""
    logits = np.log((v - 0.001) / (0.999 - v))
    low = np.floor(logits / 0.5) * 0.5
    lower, upper, centre = (0.001 + 0.998 / (1 + np.exp(-x)) for x in (low, low + 0.5, low + 0.25))
    return method.Cell(lower, upper, centre)


PLACE = Cells.place  # as it is without planted errors


def bets_of(cells, v, known):
    """Return logarithms of weights and factors of all bets in the cell of a point, and of the likelihood's weight."""
    cell = own_cell(v)
    key = tuple(cell.lower)
    if key not in known:
        placed = [each for _, each in PLACE(cells, cell, gradient(cell.centre)[None], EVERY)]
        weights = np.concatenate([each.weights[:-1] for each in placed])
        factors = np.array([e for each in placed for e in each.factors])
        known[key] = np.log(weights), np.log(factors), np.log(placed[0].weights[-1])
    return known[key]


def log_wealth(cells, v, known):
    """Return the logarithm of the wealth of a point's own cell at the point."""
    table, counts = cells.partition.table, cells.pooled.outcome_counts
    weights, factors, of_likelihood = bets_of(cells, v, known)
    f = table.values(v)[0]
    means = np.array([np.bincount(table.group, f * e)[table.group] for e in np.exp(factors)])
    bets = weights + (factors - np.log(means)) @ counts
    return np.logaddexp.reduce([*bets, of_likelihood + cells.log_evidence - counts @ np.log(f)])


def misses(runs, seed, n):
    """Return how many of the points that bets of their cell leave are cut off, and how many of the others are."""
    found = learned_from(runs, seed)
    (cells,), whole = found.of_kind(Cells), next(each for each in found.of_kind(LevelSet) if not each.block)
    model, rng = problem().model, np.random.default_rng(seed)
    ellipsoid = find_region(model, [whole])
    left = around_cells(cells, ellipsoid)
    x = rng.normal(size=(n, 3))
    x *= (rng.random(n) ** 0.2 / np.linalg.norm(x, axis=1))[:, None]
    points = ellipsoid.centre + ellipsoid.radius * x @ ellipsoid.root.T
    points = points[((points > 0.002) & (points < 0.998)).all(axis=1)]
    is_cut = (points @ left.rows.T > left.offsets).any(axis=1)
    known = {}
    is_left = np.array([log_wealth(cells, v, known) < -np.log(cells.total) for v in points])
    return int((is_left & is_cut).sum()), int((~is_left & is_cut).sum()), int(is_left.sum())


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "seed"), [(30, 1), (100, 2), (1000, 3)])
def test_half_spaces_hold_all_points_that_the_bets_of_their_cell_leave(runs, seed):
    wrong, excluded, left = misses(runs, seed, size(400, 4000))
    assert wrong == 0
    assert left > 20
    assert excluded > 20


def only_the_cell_of_the_estimate(patch):
    meeting = method.Partition.meeting
    best = learned_from(100, 2).estimate
    patch.setattr(method.Partition, "meeting", lambda own, *_: meeting(own, best, best))


def the_likelihood_has_all_of_the_weight(patch):
    def placed(own, *arguments):
        for where, each in PLACE(own, *arguments):
            yield where, each._replace(weights=np.append(each.weights[:-1], 1e3))

    patch.setattr(Cells, "place", placed)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [only_the_cell_of_the_estimate, the_likelihood_has_all_of_the_weight])
def test_a_planted_error_is_found(mutant, monkeypatch):
    mutant(monkeypatch)
    assert misses(100, 2, 400)[0] > 0


# Games at the truth, next to the corner of eight cells


def excluded_in_games(error, n_games, *, weights=WEIGHTS, looks=40, runs=5, steps=44):
    """Return how often the bets of the truth's cell ever exclude the truth, for an adversary who looks 40 times."""
    truth = 0.001 + 0.998 / (1 + np.exp([2.0, 1.5, 1.0])) + 1e-9
    found = learned_from(30, 1).of_kind(Cells)[0]
    cells, cell = replace(found, error=error, of_likelihood=0.0), own_cell(truth)
    placed = [each for _, each in cells.place(cell, gradient(cell.centre)[None], EVERY)]
    table = cells.partition.table
    factors = np.array([e for each in placed for e in each.factors])
    logs = np.log(np.concatenate([weights / 2] * 2))
    f = table.values(truth)[0]
    gains = np.log(factors / np.array([np.bincount(table.group, f * e)[table.group] for e in factors]))
    of_parameter = [
        [int(np.flatnonzero(table.coefficients[:, i] == side)[0]) for side in (1.0, -1.0)] for i in range(3)
    ]
    rng, ever = np.random.default_rng(5), np.zeros(n_games, dtype=bool)
    counts = np.zeros((n_games, len(f)))
    for _ in range(looks):
        wear = np.zeros((n_games, runs), dtype=int)
        for _ in range(steps):
            moves = rng.random(wear.shape) < np.append(truth, 1.0)[wear]
            for i, side in product(range(3), (0, 1)):
                counts[:, of_parameter[i][side]] += ((wear == i) & (moves == (side == 0))).sum(axis=1)
            wear = np.where(wear == 3, 0, wear + moves)
        ever |= np.logaddexp.reduce(counts @ gains.T + logs, axis=1) >= -np.log(error)
    return int(ever.sum())


@pytest.mark.slow
@pytest.mark.parametrize("error", [0.5, 0.05])
def test_the_truth_is_excluded_as_often_as_the_error_allows_at_most(error):
    n = size(300, 2000)
    assert excluded_in_games(error, n) <= binom.isf(0.01, n, error)


@pytest.mark.slow
def test_bets_without_weights_are_found_out():
    n = 300
    assert excluded_in_games(0.5, n, weights=np.ones(len(WEIGHTS))) > binom.isf(0.01, n, 0.5)


# What comes of it


@pytest.mark.slow
def test_data_without_an_order_are_bet_on_and_a_witness_of_that_is_refused(monkeypatch):
    truth = dict(zip("abc", TRUTH, strict=True))
    counts = pl.simulate(problem().model, truth, 300, rng=1, max_steps=44, pilot=False)
    asked = {"objectives": [problem().objective], "confidence": 0.95}
    provable = {"objectives": ['R{"cost"}min=? [ F wear=3 ]'], "confidence": 0.95, "witness": True}
    with pytest.raises(DataError, match="witness=True: the bounds would rest on bets in cells of the space"):
        pl.learn(problem().model, counts, **provable)
    widths = []
    for has_cells in (True, False):
        if not has_cells:
            monkeypatch.setattr(learning, "uses_cells", lambda *_: False)
            assert not pl.learn(problem().model, counts, **provable).bounds.of_kind(Cells)
        learned = pl.learn(problem().model, counts, **asked)
        assert bool(learned.bounds.of_kind(Cells)) is has_cells
        assert any(PRESPECIFIED in each for each in learned.assumptions) is has_cells
        found = pl.conclude(learned, problem().objective)
        assert found.lower <= value(TRUTH) <= found.upper
        widths.append(found.upper - found.lower)
    assert widths[0] < 0.8 * widths[1]


def test_every_point_of_a_box_is_in_a_cell_that_meets_it():
    partition = learned_from(30, 1).of_kind(Cells)[0].partition
    rng = np.random.default_rng(1)
    for _ in range(200):
        point = rng.uniform(0.001, 0.999, 3) ** rng.choice([1, 8])
        point = np.clip(point, 0.001, 0.999)
        found = partition.meeting(np.maximum(point - 0.01, 0.001), np.minimum(point + 0.01, 0.999))
        if found is not None:
            assert any(((cell.lower <= point) & (point <= cell.upper)).all() for cell in found)
