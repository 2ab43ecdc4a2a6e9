"""The least value of objectives over ellipsoids cut by a space, against Clarabel's second-order cone programs."""

import clarabel
import numpy as np
import pytest
from scipy.sparse import csc_array

import plumdp as pl
from plumdp.region.conflict import Conflict
from plumdp.region.ellipsoid import build_ellipsoid

NAMES = ("a", "b", "c", "d", "e", "f")
CLOSE, SAFE = 1e-7, 1e-9  # Clarabel's own values are right to about 1e-10


def cone_program(objective, centre, matrix, radius, polytope):
    """Return Clarabel's solution of: minimise objective @ v over the polytope with |chol(v - centre)| <= radius."""
    d, chol = len(objective), np.linalg.cholesky(matrix).T
    rows = np.vstack([polytope.rows, np.zeros((1, d)), -chol])
    right = np.concatenate([polytope.offsets, [radius], -chol @ centre])
    cones = [clarabel.NonnegativeConeT(len(polytope.offsets)), clarabel.SecondOrderConeT(d + 1)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    nothing = csc_array((d, d))
    return clarabel.DefaultSolver(nothing, objective, csc_array(rows), right, cones, settings).solve()


def random_matrix(rng, d):
    """Return a matrix like that of counted observations: few directions, of very different weights."""
    seen = rng.normal(size=(d + 2, d)) * 10 ** rng.uniform(-1.5, 1.5, size=(d + 2, 1))
    return 0.01 * np.eye(d) + seen.T @ seen


def random_space(rng, d):
    return pl.ParameterSpace.simplex(*NAMES[:d]) if rng.random() < 0.5 else pl.ParameterSpace.unit(*NAMES[:d])


def objectives(rng, d):
    """Return the axes, which meet the sides of the box head-on, small whole numbers, and some at random."""
    small = rng.integers(-1, 2, size=(4, d))
    return np.vstack([np.eye(d), -np.eye(d), small[small.any(axis=1)], rng.normal(size=(4, d))])


@pytest.mark.parametrize("d", range(1, 7))
def test_minima_agree_with_cone_programs_and_are_on_the_safe_side(d):
    rng = np.random.default_rng([60, d])
    n_cut = n_empty = 0
    for _ in range(40):
        polytope = pl.stages.build_region(random_space(rng, d), (), (), ())
        centre, matrix = rng.uniform(-0.1, 0.8, d), random_matrix(rng, d)
        radius = 10 ** rng.uniform(-2, 1)
        region = build_ellipsoid(centre, matrix, radius, within=polytope)
        if isinstance(region, Conflict):
            assert str(cone_program(np.zeros(d), centre, matrix, radius, polytope).status) == "PrimalInfeasible"
            n_empty += 1
            continue
        n_cut += len(region.rows) > 0
        asked = objectives(rng, d)
        for objective, least in zip(asked, region.minimise(asked), strict=True):
            solution = cone_program(objective, centre, matrix, radius, polytope)
            assert str(solution.status) in ("Solved", "AlmostSolved")
            assert -SAFE <= solution.obj_val - least <= CLOSE
    assert n_cut >= 10
    assert n_empty < 20


@pytest.mark.parametrize("d", range(1, 7))
def test_an_ellipsoid_inside_the_space_needs_no_half_space(d):
    rng = np.random.default_rng([61, d])
    polytope = pl.stages.build_region(pl.ParameterSpace.unit(*NAMES[:d]), (), (), ())
    centre, matrix = np.full(d, 0.5), np.eye(d) + random_matrix(rng, d)
    region = build_ellipsoid(centre, matrix, 0.25, within=polytope)
    assert len(region.rows) == 0
    asked = rng.normal(size=(200, d))
    closed_form = asked @ centre - 0.25 * np.sqrt(np.einsum("kd,kd->k", asked, np.linalg.solve(matrix, asked.T).T))
    assert np.abs(region.minimise(asked) - closed_form).max() < 1e-10


def test_an_ellipsoid_can_cut_a_polytope_that_intervals_have_cut():
    """Both at once: the region of two confidence sets, each at half the error."""
    rng = np.random.default_rng(62)
    a, b, c = pl.parameters("a", "b", "c")
    space = pl.ParameterSpace.simplex("a", "b", "c")
    polytope = pl.stages.build_region(space, [a + b, b - c, a], [0.3, -0.1, 0.1], [0.5, 0.1, 0.3])
    centre, matrix = np.array([0.2, 0.2, 0.2]), 100 * np.eye(3) + random_matrix(rng, 3)
    region = build_ellipsoid(centre, matrix, 1.0, within=polytope)
    asked = objectives(rng, 3)
    alone = polytope.minimise(asked)
    for objective, least, without in zip(asked, region.minimise(asked), alone, strict=True):
        solution = cone_program(objective, centre, matrix, 1.0, polytope)
        assert -SAFE <= solution.obj_val - least <= CLOSE
        assert least >= without - SAFE
