"""Mean and covariance of parameter spaces, against closed forms and sampling."""

import numpy as np
import pytest

import plumdp as pl
from plumdp.confidence import space_moments
from plumdp.confidence.space_moments import _analytic_centre, is_nonnegative, moments

p, q, r = pl.parameters("p", "q", "r")


def sampled(space, n=400_000):
    """Return mean and covariance of the uniform law, by rejection."""
    points = np.random.default_rng(1).uniform(space.lower, space.upper, (n, space.dimension))
    rows, offsets = space.inequalities
    inside = points[(points @ rows.T <= offsets).all(axis=1)]
    return inside.mean(axis=0), np.cov(inside.T)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 50])
def test_a_simplex_has_the_moments_of_dirichlet(d):
    """Of d + 1 weights with the Dirichlet law of ones, the mean is 1/(d+1), and Cov = (p [i=j] - p²)/(d+2)."""
    mean, covariance = moments(pl.ParameterSpace.simplex(*(f"w{i}" for i in range(d))))
    share = 1 / (d + 1)
    assert mean == pytest.approx(np.full(d, share))
    assert covariance == pytest.approx((share * np.eye(d) - share**2) / (d + 2))


def test_a_box_with_fifty_parameters_needs_no_corners():
    mean, covariance = moments(pl.ParameterSpace.box({f"w{i}": (0, i + 1) for i in range(50)}))
    assert mean == pytest.approx((np.arange(50) + 1) / 2)
    assert covariance == pytest.approx(np.diag((np.arange(50) + 1.0) ** 2 / 12))


def test_constraints_that_say_nothing_change_nothing():
    simplex = pl.ParameterSpace.simplex("p", "q", "r")
    for space, more in ((simplex, [2 - p - q, 1 - p / 2 - r / 3]), (pl.ParameterSpace.unit("p", "q"), [2 - p - q])):
        for one, other in zip(moments(space), moments(space.cut(more)), strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "constraints",
    [[1 - p - q, p - q], [p + q - 1], [p + q - r, p - q / 2, r - q], [1 - p - q - r, 3 * p + q - r - 1 / 4]],
    ids=str,
)
def test_other_spaces_have_about_the_moments_of_their_points(constraints):
    """The barrier gives an inner point, and a covariance within a factor of three in every direction."""
    space = pl.ParameterSpace.unit("p", "q", "r").cut(constraints)
    mean, covariance = moments(space)
    expected, spread = sampled(space)
    assert space.contains([float(x.round(12)) for x in mean])
    assert (mean - expected) @ np.linalg.solve(spread, mean - expected) < 1
    ratios = np.linalg.eigvals(np.linalg.solve(spread, covariance)).real
    assert 1 / 3 < ratios.min() <= ratios.max() < 3


def test_the_barrier_of_a_simplex_and_a_box_is_what_theory_says():
    """(d+2)/(d+1) times the covariance for a simplex without its upper bounds, 1.5 times for a box."""
    d = 3
    rows, offsets = np.vstack([-np.eye(d), np.ones((1, d))]), np.append(np.zeros(d), 1.0)
    centre, covariance = _analytic_centre(rows, offsets, np.full(d, 0.1))
    mean, expected = moments(pl.ParameterSpace.simplex("p", "q", "r"))
    assert centre == pytest.approx(mean)
    assert covariance == pytest.approx(expected * (d + 2) / (d + 1))
    rows, offsets = np.vstack([-np.eye(d), np.eye(d)]), np.append(np.zeros(d), np.ones(d))
    assert _analytic_centre(rows, offsets, np.full(d, 0.1))[1] == pytest.approx(1.5 * np.eye(d) / 12)


def test_flat_spaces_and_known_parameters_have_a_covariance_that_can_be_inverted():
    line = pl.ParameterSpace.unit("p", "q").cut([p - q, q - p])
    known = pl.ParameterSpace.box({"p": (0, 1), "q": ("1/4", "1/4")})
    point = pl.ParameterSpace.box({"p": ("1/2", "1/2"), "q": ("1/4", "1/4")})
    short = pl.ParameterSpace.unit("p", "q").cut([p + q - 0.5, 0.5 - p - q])
    for space, middle in ((line, (0.5, 0.5)), (known, (0.5, 0.25)), (point, (0.5, 0.25)), (short, (0.25, 0.25))):
        mean, covariance = moments(space)
        assert mean.tolist() == list(middle)
        assert np.linalg.eigvalsh(covariance).min() > 0


def test_signs_over_a_space_are_shown_or_not_claimed():
    simplex = pl.ParameterSpace.simplex("p", "q")
    assert all(is_nonnegative(f, simplex) for f in (p, 1 - p, 1 - p - q, 2 - 2 * p - 2 * q, 1 - p / 2 - q))
    assert not any(is_nonnegative(f, simplex) for f in (p - q, -p, 1 - 2 * p - q, p - 1))
    large = pl.ParameterSpace.simplex(*(f"w{i}" for i in range(30)))  # too many corners to list
    weights = pl.parameters(*large.names)
    assert is_nonnegative(1 - sum(weights, 0 * weights[0]), large)
    assert not is_nonnegative(1 - 2 * sum(weights, 0 * weights[0]), large)


def pair(first, second):
    """Return constraints that tie two parameters, so that neither a box nor a simplex is left."""
    return [1 - first / 2 - second, first + second / 3 - 1 / 8, 2 - first - 3 * second / 2]


def test_a_product_of_blocks_has_the_moments_of_the_whole_searched_at_once(monkeypatch):
    """Two pairs and a single parameter: the barrier is a sum, so its minimum and its curvature are those of blocks."""
    u, v, w, x = pl.parameters("u", "v", "w", "x")
    space = pl.ParameterSpace.unit("u", "p", "v", "w", "x").cut([*pair(u, v), *pair(w, x)])
    in_blocks = moments.__wrapped__(space)
    monkeypatch.setattr(space_moments, "independent_blocks", whole)
    at_once = moments.__wrapped__(space)
    for one, other in zip(in_blocks, at_once, strict=True):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12)
    alone = moments(pl.ParameterSpace.unit("u", "v").cut(pair(u, v)))
    assert in_blocks[0][[0, 2]] == pytest.approx(alone[0], rel=1e-12)
    assert in_blocks[1][np.ix_([0, 2], [0, 2])] == pytest.approx(alone[1], rel=1e-9)


def whole(rows):
    return [(np.arange(rows.shape[1]), np.arange(len(rows)))]


def test_a_product_with_a_flat_block_is_flat():
    u, v = pl.parameters("u", "v")
    space = pl.ParameterSpace.unit("p", "q", "u", "v").cut([p - q, q - p, *pair(u, v)])
    mean, covariance = moments(space)
    assert space.contains([float(x.round(12)) for x in mean])
    assert np.linalg.eigvalsh(covariance).min() > 0
