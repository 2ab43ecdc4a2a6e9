"""Shares of the error, and half-spaces across all outcomes when there are many parameters."""

from dataclasses import replace

import numpy as np
import pytest

import plumdp as pl
from plumdp.confidence.bets import Direction
from plumdp.confidence.likelihood import _shares, likelihood_set
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.experiments.layered import layered_model
from plumdp.region.ellipsoid import Ellipsoid
from plumdp.region.likelihood_region import build_likelihood_region

MEASURED, STRIPS = 92.5 / 100, 2.5 / 100  # of the whole error; the rest is for tests and for the graph alone


@pytest.fixture(scope="module")
def made():
    return layered_model("sparse", 24, n_rows=60, n_layers=8, width=20)


def truth(made):
    return np.array([float(made.true_point[name]) for name in made.model.space.names])


def learned(made, *, pilot=0.2, runs=2_000, seed=1):
    counts = pl.simulate(made.model, made.true_point, runs, rng=seed, max_steps=made.max_steps, pilot=pilot)
    return likelihood_set(made.model, counts, directions=lambda point: [Direction(np.ones(len(point)))])


@pytest.mark.parametrize("has_pilot", [True, False])
@pytest.mark.parametrize("name", ["betting:5", "many"])
def test_all_shares_of_the_error_sum_to_one(name, has_pilot, made):
    model = made.model if name == "many" else pl.case_study(name).model
    shares = _shares(likelihood_table(model), has_pilot=has_pilot)
    assert sum(shares) * MEASURED + STRIPS == pytest.approx(MEASURED)
    assert (shares.outcomes > 0) is (name == "many" and has_pilot)


def test_many_parameters_have_half_spaces_across_every_direction_of_an_outcome(made):
    found = learned(made)
    n_directions = int(found.table.direction.max()) + 1
    assert found.table.basis.shape[1] == 24
    assert len(found.outcome_offsets) == 2 * n_directions
    assert len(found.offsets) == 2


@pytest.mark.parametrize("seed", range(5))
def test_the_true_point_is_in_all_half_spaces_and_in_the_region(seed, made):
    """At an error of one in a thousand, five draws that miss would be five too many."""
    found, point = learned(made, seed=seed), truth(made)
    assert (found.outcome_rows @ point <= found.outcome_offsets).all()
    assert (found.rows @ point <= found.offsets).all()
    region = build_likelihood_region(made.model.space, made.model.expressions, found)
    assert isinstance(region, Ellipsoid)
    assert (region.rows @ point <= region.offsets).all()
    directions = np.random.default_rng(seed).normal(size=(200, 24))
    assert (region.minimise(directions) <= directions @ point).all()


def test_half_spaces_across_outcomes_make_their_ranges_narrower(made):
    found = learned(made)
    region = build_likelihood_region(made.model.space, made.model.expressions, found)
    box = made.model.space.lower, made.model.space.upper
    bare = replace(region, lower=box[0], upper=box[1], rows=region.rows[:0], offsets=region.offsets[:0])
    slopes = np.ascontiguousarray(found.table.coefficients[found.table.direction >= 0])
    inside, outside = (-one.minimise(-slopes) - one.minimise(slopes) for one in (region, bare))
    assert (inside <= outside * (1 + 1e-9)).all()
    assert np.median(inside / outside) < 0.75


def test_without_a_pilot_there_are_no_bets(made):
    found = learned(made, pilot=0)
    assert (len(found.offsets), len(found.outcome_offsets), found.directions) == (0, 0, ())
