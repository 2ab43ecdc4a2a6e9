"""The search for a proof: it finds the best multipliers, also with many parameters, and it ends."""

from dataclasses import replace

import numpy as np
import pytest
from support.verified_results import PROPERTY, small_counts, small_model
from tiers import size

import plumdp
import plumdp.verifying.pieces_part
from plumdp.base.errors import DataError
from plumdp.decisions import make_witness
from plumdp.verifying.cube_bounds import Cuts, bound_on_cube
from plumdp_verify.polynomials import monomials
from studies.layered import layered_model


def balls(radii, centres):
    """The balls about some points, as what cuts a cube."""
    n, k = centres.shape
    offsets = radii**2 - (centres**2).sum(axis=1)
    return Cuts(-2 * centres, offsets, np.broadcast_to(np.eye(k), (n, k, k)), ({},) * n)


@pytest.mark.parametrize("k", [2, 5, 12])
def test_multipliers_prove_the_least_value_of_a_linear_function_on_a_ball(k):
    """On the ball of radius r about c, g·x is at least g·c - r|g|. Other balls and half-spaces leave this one whole."""
    rng = np.random.default_rng(k)
    centre, slope = rng.uniform(-0.2, 0.2, k), rng.normal(size=k)
    around = balls(np.array([0.4, 0.9, 1.1]), np.vstack([centre, centre + 0.1 / k, centre - 0.1 / k]))
    given = dict(zip(monomials(k, 1), [0.0, *slope.tolist()], strict=True))
    found = bound_on_cube(given, around, enough=np.inf)
    least = slope @ centre - 0.4 * np.linalg.norm(slope)
    assert least - 1e-8 <= found.bound <= least + 1e-12


def test_multipliers_prove_the_least_value_of_a_saddle_on_a_ball():
    """On the unit ball x² - y² is at least -1, in two points, where no matrix is definite: the hard case."""
    found = bound_on_cube({(2, 0): 1.0, (0, 2): -1.0}, balls(np.ones(1), np.zeros((1, 2))), enough=np.inf)
    assert found.bound == pytest.approx(-1, abs=1e-8)


def test_where_no_point_is_left_every_bound_is_proved():
    """No point has x <= -0.5 and x >= 0.5."""
    cuts = Cuts(np.array([[1.0], [-1.0]]), np.array([-0.5, -0.5]), np.zeros((2, 1, 1)), ({}, {}))
    assert bound_on_cube({(1,): 1.0}, cuts, enough=5.0).bound >= 5


@pytest.mark.slow
def test_bounds_with_many_parameters_have_a_witness():
    d = size(6, 12)
    made = layered_model("mixture", d, n_rows=20, n_layers=d // 2, width=d)
    counts = plumdp.simulate(made.model, made.true_point, 3_000, rng=1, max_steps=made.max_steps)
    learned = plumdp.learn(made.model, counts, objectives=[made.objective])
    assert make_witness(learned, plumdp.conclude(learned, made.objective))


def test_a_search_without_end_is_given_up_and_says_so(monkeypatch):
    learned = plumdp.learn(small_model(), small_counts(10), objectives=[PROPERTY])
    certificate = plumdp.conclude(learned, PROPERTY)
    monkeypatch.setattr(plumdp.verifying.pieces_part, "_MOST_WORK", 3e5)
    with pytest.raises(DataError, match=r"\(bracket: the search was given up after [0-9]+ parts of the set\)"):
        make_witness(learned, certificate)


def test_bounds_that_do_not_hold_have_no_witness():
    learned = plumdp.learn(small_model(), small_counts(100), objectives=[PROPERTY])
    certificate = plumdp.conclude(learned, PROPERTY)
    narrow = replace(certificate, lower=0.9 * certificate.lower + 0.1 * certificate.upper)
    with pytest.raises(DataError, match=r"no witness \(bracket: they do not hold at some point of the set"):
        make_witness(learned, narrow)
