"""Half-spaces from bets: valid at all times for one coin, never too narrow, and rounded outward."""

from decimal import localcontext
from fractions import Fraction
from itertools import product
from math import fsum, log

import numpy as np
import pytest
from bet_tables import (
    COIN,
    COINS,
    DIGITS,
    MIXED,
    RARE,
    SQUARE,
    SUM,
    TABLES,
    decimal,
    exact_process,
    is_outside,
    p,
    place_bets,
    random_counts,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from row_models import row_model
from tiers import examples

import plumdp as pl
from plumdp.base.linear_algebra import solve_nearly
from plumdp.base.rounding import UNIT
from plumdp.confidence import bets as method
from plumdp.confidence.bets import half_space
from plumdp.confidence.estimates import information
from plumdp.confidence.likelihood_table import likelihood_table


def bets_of_a_coin(pilot_heads, pilot, *, error, side, ratio=10):
    point = np.array([pilot_heads / pilot])
    ahead = ratio * information(COIN, np.array([pilot_heads, pilot - pilot_heads], dtype=float), point)
    return place_bets(COIN, point, ahead, np.ones(1), error=error, side=side)


# One coin, exactly


def first_excluded(factors, side, chance, error, n, copies):
    """Return from how many heads on (side +1), or down to how many (-1), the truth is excluded after n throws.

    The tangent at the true point is the worst for it: any other half-space is larger there.
    """

    def is_missed(heads):
        seen = copies * np.array([heads, n - heads], dtype=float)
        return is_outside(half_space(COIN, seen, factors, near=np.array([chance]), error=error), [chance])

    inside, outside = (-1, n + 1) if side > 0 else (n + 1, -1)
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        inside, outside = (inside, middle) if is_missed(middle) else (middle, outside)
    return outside


def ever_missed(bets, chance, error, *, n_throws=400, copies=1):
    """Return the probability that a coin's half-spaces, one per (factors, side), ever exclude its true chance."""
    alive, missed = np.zeros(n_throws + 2), 0.0
    alive[0] = 1
    for n in range(1, n_throws + 1):
        alive[1:], alive[0] = chance * alive[:-1] + (1 - chance) * alive[1:], (1 - chance) * alive[0]
        heads = np.arange(n_throws + 2)
        for factors, side in bets:
            limit = first_excluded(factors, side, chance, error, n, copies)
            is_out = heads >= limit if side > 0 else heads <= limit
            missed += alive[is_out].sum()
            alive[is_out] = 0
    return missed


@pytest.mark.slow
@pytest.mark.parametrize("chance", [0.5, 0.2, 0.05])
@pytest.mark.parametrize("side", [1, -1])
def test_one_coin_ever_leaves_its_half_space_with_a_probability_of_at_most_the_error(chance, side):
    """A pilot of 40 throws that showed about the truth, and up to 400 more: by dynamic programming."""
    error = 0.1
    factors = bets_of_a_coin(max(1, round(40 * chance)), 40, error=error, side=side)
    assert error / 4 <= ever_missed([(factors, side)], chance, error) <= error


@pytest.mark.slow
@pytest.mark.parametrize("pilot_heads", [1, 8, 20, 39])
def test_one_coin_is_covered_whatever_the_pilot_showed(pilot_heads):
    """Both sides together; most of these pilots are far from the truth."""
    chance, error = 0.4, 0.1
    bets = [(bets_of_a_coin(pilot_heads, 40, error=error / 2, side=side), side) for side in (1, -1)]
    assert ever_missed(bets, chance, error / 2) <= error


@pytest.mark.slow
@pytest.mark.parametrize("copies", [2, 3])
def test_a_coin_that_counts_every_throw_more_than_once_is_missed_too_often(copies):
    """The check can fail."""
    factors = bets_of_a_coin(20, 40, error=0.1, side=1)
    assert ever_missed([(factors, 1)], 0.5, 0.1, copies=copies) > 0.1


# The half-space against the process, in many digits


def random_bets(table, rng):
    point = rng.uniform(0.02, 0.98, len(table.names))
    root = rng.normal(size=(len(point), len(point) + 2)) * 10 ** rng.uniform(0, 3)
    gradient = rng.normal(size=len(point))
    error, side = float(10 ** rng.uniform(-4, -0.4)), int(rng.choice([-1, 1]))
    return place_bets(table, point, root @ root.T, gradient, error=error, side=side), error


def on_the_boundary(table, seen, factors, error, rng):
    """Return a point of the space at which the process is just below ln(1 / error); None if none was found."""
    level, d = -decimal(error).ln(), len(table.names)
    tried = np.concatenate([rng.random((8, d)), list(product([0, 1], repeat=d))]).tolist()
    points = [[Fraction(x) for x in row] for row in tried]
    height = [exact_process(table, seen, factors, point) for point in points]
    inner, outer = points[height.index(min(height))], points[height.index(max(height))]
    if not min(height) < level <= max(height):
        return None
    for _ in range(70):
        middle = [(a + b) / 2 for a, b in zip(inner, outer, strict=True)]
        if exact_process(table, seen, factors, middle) < level:
            inner = middle
        else:
            outer = middle
    return inner


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("most", [30, 10**4, 10**9])
def test_the_half_space_has_all_points_of_the_space_at_which_bets_have_not_won_too_much(name, most):
    """Also where it is as narrow as it can be: at points on the boundary of the process that the tangent touches."""
    table, rng, n_near = TABLES[name], np.random.default_rng([len(name), most]), 0
    for _ in range(12):
        factors, error = random_bets(table, rng)
        seen = random_counts(table, rng, most)
        near = rng.uniform(-0.5, 1.5, len(table.names))  # may be outside the space
        found = half_space(table, seen, factors, near=near, error=error)
        points = [[Fraction(x) for x in row] for row in rng.random((6, len(table.names))).tolist()]
        boundary = on_the_boundary(table, seen, factors, error, rng)
        if boundary is not None:
            tight = half_space(table, seen, factors, near=np.array([float(x) for x in boundary]), error=error)
            assert not is_outside(tight, boundary)
            points.append(boundary)
            n_near += 1
        level = -decimal(error).ln()
        for point in points:
            if exact_process(table, seen, factors, point) < level:
                assert not is_outside(found, point)
    assert n_near > 0 or most == 30  # ten throws may exclude nothing


def test_a_tangent_beyond_the_space_is_moved_to_where_means_can_be():
    """At p = 3 the coin's mean of factors is negative; clipped, the half-space is finite and has what it must have."""
    factors = np.exp([-0.5, 0.5])
    for near in ([3.0], [-3.0], [1e9]):
        found = half_space(COIN, np.array([30.0, 10.0]), factors, near=np.array(near), error=0.1)
        assert np.isfinite(found.row).all()
        assert np.isfinite(found.offset)
        for chance in np.linspace(0, 1, 101).tolist():
            if exact_process(COIN, [30, 10], factors, [Fraction(chance)]) < -decimal(0.1).ln():
                assert not is_outside(found, [chance])


def test_classes_never_visited_and_bets_of_one_change_nothing():
    factors, error = np.array([1.2, 0.9, 1.1, 0.8, 1.0, 1.0]), 0.05
    seen = np.array([7.0, 5.0, 0.0, 0.0, 40.0, 2.0])
    found = half_space(COINS, seen, factors, near=np.array([0.5, 0.5]), error=error)
    alone = half_space(COIN, seen[:2], factors[:2], near=np.array([0.5]), error=error)
    assert found.row.tolist() == [alone.row[0], 0.0]
    assert found.offset == pytest.approx(alone.offset, rel=1e-14)


def test_a_coin_has_the_half_space_of_a_hand_calculation():
    """Ten heads of ten throws, factors 2 and 1/2, tangent at 1/2, where Z = 5/4:

    10 (2 p + (1 - p)/2) / (5/4) >= 10 (1 - ln(5/4)) + 10 ln 2 + ln 0.1, so 12 p >= 6 - 10 ln(5/4) + 10 ln 2 + ln 0.1.
    """
    found = half_space(COIN, np.array([10.0, 0.0]), np.array([2.0, 0.5]), near=np.array([0.5]), error=0.1)
    assert found.row == pytest.approx([-12.0], rel=1e-15)
    assert found.offset == pytest.approx(-(6 - 10 * log(1.25) + 10 * log(2) + log(0.1)), rel=1e-13)


# Rounding


def exact_half_space(table, seen, factors, error, means):
    """Return row and offset of the half-space with these tangent points, the row and the constant in fractions."""
    with localcontext(prec=DIGITS):
        row, offset = [Fraction(0)] * len(table.names), -decimal(error).ln()
        for group in range(len(table.is_class)):
            members = np.flatnonzero(table.group == group).tolist()
            visits = sum(int(seen[j]) for j in members)
            if not visits or all(factors[j] == 1 for j in members):
                continue
            offset -= visits * (1 - decimal(float(means[group])).ln())
            for j in members:
                weight = visits * Fraction(float(factors[j])) / Fraction(float(means[group]))
                constant, slopes = pl.model.space.affine_coefficients(table.outcomes[j], table.names)
                row = [a - weight * b for a, b in zip(row, slopes, strict=True)]
                offset += decimal(weight * constant) - int(seen[j]) * decimal(float(factors[j])).ln()
        return row, Fraction(offset)


def room(table, seen, factors, error, near, found):
    """Return by how much the offset is larger than rounding of the row asks for, over the whole box; exact."""
    (means,) = method._tangent_points(table, factors[None], table.chances(near))
    row, offset = exact_half_space(table, seen, factors, error, means)
    off = [Fraction(a) - b for a, b in zip(found.row.tolist(), row, strict=True)]
    ends = zip(table.lower.tolist(), table.upper.tolist(), strict=True)
    most = sum(
        (max(a * Fraction(low), a * Fraction(high)) for a, (low, high) in zip(off, ends, strict=True)), Fraction(0)
    )
    return Fraction(found.offset) - offset - most


@settings(max_examples=examples(60))
@given(st.sampled_from(sorted(TABLES)), st.integers(0, 10**6), st.sampled_from([5, 10**3, 10**9, 10**12]))
def test_row_and_offset_are_rounded_outward(name, seed, most):
    table, rng = TABLES[name], np.random.default_rng(seed)
    factors, error = random_bets(table, rng)
    seen, near = random_counts(table, rng, most), rng.uniform(-0.2, 1.2, len(table.names))
    found = half_space(table, seen, factors, near=near, error=error)
    slack = room(table, seen, factors, error, near, found)
    assert 0 <= slack <= Fraction(1, 10**14) * int(10 * seen.sum() + 20)


def test_without_the_step_outward_half_spaces_would_be_too_narrow(monkeypatch):
    """The check can fail: nearest numbers are wrong about half of the time."""
    monkeypatch.setattr(method, "UNIT", 0.0)
    rng, slack = np.random.default_rng(3), []
    for _ in range(40):
        factors, error = random_bets(RARE, rng)
        seen, near = random_counts(RARE, rng, 10**9), rng.uniform(0, 1, 2)
        found = half_space(RARE, seen, factors, near=near, error=error)
        slack.append(room(RARE, seen, factors, error, near, found))
    assert min(slack) < 0


# What is bet on


def test_nothing_is_bet_on_factors():
    """b², 2b(1 - b), (1 - b)² are factors, which do not sum to one."""
    rng = np.random.default_rng(1)
    is_factor = ~MIXED.is_class[MIXED.group]
    assert is_factor.any()
    for _ in range(20):
        factors, _ = random_bets(MIXED, rng)
        assert (factors[is_factor] == 1).all()
        assert (factors[~is_factor] != 1).any()


def test_there_are_no_bets_along_a_gradient_that_no_outcome_depends_on():
    information_of_both = np.eye(2)
    assert place_bets(COIN, np.array([0.5]), np.eye(1), np.zeros(1), error=0.1, side=1) is None
    assert place_bets(SUM, np.full(2, 0.5), information_of_both, np.zeros(2), error=0.1, side=1) is None
    only_p = likelihood_table(row_model([[p, 1 - p]], SQUARE))
    assert place_bets(only_p, np.full(2, 0.5), information_of_both, np.array([0.0, 1.0]), error=0.1, side=1) is None


def test_there_are_no_bets_across_the_row_space_even_if_it_is_oblique():
    """Only p + 2q is seen, and the gradient is that of 2p - q; in floats the product with the basis may not be zero."""
    for scale in (1.0, 1e-3, 1 / 3, 1e5):
        assert place_bets(SUM, np.full(2, 0.5), np.eye(2), scale * np.array([2.0, -1.0]), error=0.1, side=1) is None


@pytest.mark.parametrize("sizes", [(40.0, 1e26), (1.0, 1.0), (np.inf, 1.0)])
def test_information_that_floats_find_singular_still_gives_a_step(sizes):
    """I = (a 0 0; 0 b b; 0 b b): its shortest solution for g = (1, 1, 1) is (1/a, 1/(2b), 1/(2b)), if it is finite."""
    a, b = sizes
    matrix = np.array([[a, 0, 0], [0, b, b], [0, b, b]])
    step = solve_nearly(matrix, np.ones(3))
    assert step == pytest.approx([1 / a, 1 / (2 * b), 1 / (2 * b)] if a < np.inf else [np.nan] * 3, nan_ok=True)


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1.0, 1e150, 1e300])
def test_bets_do_not_depend_on_the_size_of_the_gradient(size):
    expected = place_bets(COINS, np.full(2, 0.4), np.eye(2) * 100, np.array([1.0, -0.3]), error=0.1, side=1)
    found = place_bets(COINS, np.full(2, 0.4), np.eye(2) * 100, size * np.array([1.0, -0.3]), error=0.1, side=1)
    assert found == pytest.approx(expected, rel=1e-12)


def test_outcomes_without_a_probability_at_the_estimate_are_not_bet_on_and_bets_are_limited():
    for point in ([1.0], [1.2], [0.0], [1e-12]):
        factors = place_bets(COIN, np.array(point), np.eye(1), np.ones(1), error=0.1, side=1)
        values = COIN.values(np.array(point))[0]
        assert (factors[values <= 1e-12] == 1).all()
        assert (np.abs(np.log(factors)) <= 0.5 + 1e-15).all()


def test_the_bets_on_a_coin_are_those_of_the_formula():
    """z = √(2 ln(1/δ)) / √I, ln e = z/p for heads and -z/(1 - p) for tails."""
    step = np.sqrt(2 * -np.log(0.05) / 400)
    found = place_bets(COIN, np.array([0.25]), np.array([[400.0]]), np.array([7.0]), error=0.05, side=1)
    expected = {p: step / 0.25, 1 - p: -step / 0.75}
    assert np.log(found) == pytest.approx([expected[f] for f in COIN.outcomes], rel=1e-12)
    mirror = place_bets(COIN, np.array([0.25]), np.array([[400.0]]), np.array([7.0]), error=0.05, side=-1)
    assert np.log(mirror) == pytest.approx(-np.log(found), rel=1e-12)


# Parts together


def common_by_loops(table, parts, near, bound):
    """Return row and offset of ``common_half_space``, part by part and bet by bet."""
    values, weights, terms = table.chances(near), np.zeros(len(table.constants)), [-bound]
    for part in parts:
        visits = table.visits(part.outcome_counts)
        for share, factors in zip(part.shares, part.factors, strict=True):
            members = [np.flatnonzero(table.group == r) for r in range(len(visits))]
            is_open = [visits[r] > 0 and (factors[members[r]] != 1).any() for r in range(len(visits))]
            for r in np.flatnonzero(is_open):
                e = factors[members[r]]
                mean = np.clip(table.by_group(values * factors)[r], e.min(), e.max())
                weights[members[r]] += share * (visits[r] / mean) * e
                terms += [share * visits[r], -(share * visits[r]) * np.log(mean)]
            terms += (share * (part.outcome_counts * np.log(factors))).tolist()
    terms += (-weights * table.constants).tolist()
    size = fsum(map(abs, terms[: -len(weights)])) + fsum((weights * table.sizes).tolist())
    n = sum(len(part.shares) for part in parts)
    return -(weights @ table.coefficients), -fsum(terms) + (16 + n) * UNIT * size


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("n_parts", [1, 3])
def test_bets_on_several_parts_leave_the_half_space_of_a_loop(name, n_parts):
    table = TABLES[name]
    rng, n = np.random.default_rng(n_parts), len(table.constants)
    parts = []
    for m in rng.integers(1, 4, n_parts).tolist():
        shares, factors = rng.dirichlet(np.ones(m)), np.exp(rng.uniform(-0.5, 0.5, (m, n)))
        factors[:, table.group == table.group[-1]] = 1.0  # no bet on this class
        parts.append(method.PartialBets(shares, rng.integers(0, 5, n).astype(float), factors))
    found = method.common_half_space(table, parts, near=table.middle, bound=3.0)
    row, offset = common_by_loops(table, parts, table.middle, 3.0)
    assert found.row == pytest.approx(row, rel=1e-14, abs=1e-13)
    assert found.offset == pytest.approx(offset, rel=1e-14, abs=1e-13)
