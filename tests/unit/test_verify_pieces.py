"""Witnesses by pieces: an honest one holds, and each forged step of one is told."""

import json
from functools import cache

import numpy as np
import pytest
from flint import arb, fmpq
from shorthand import altered
from support.refusals import rows
from support.tampering import let_pass
from support.verified_results import PROPERTY, pieces_of, small_counts, small_model, verdict
from tiers import size

import plumdp
import plumdp.verifying.pieces_part
import plumdp_verify.enclosure as enclosure
from plumdp.base.errors import DataError
from plumdp.decisions import make_witness
from plumdp.verifying.cube_bounds import Cuts, bound_on_cube
from plumdp.verifying.witness import propose_witness
from plumdp_verify.bets import stages_of
from plumdp_verify.bracket import is_nonnegative
from plumdp_verify.check import exactly, half_spaces_of
from plumdp_verify.claim import WITNESS
from plumdp_verify.counts import read_data
from plumdp_verify.enclosure import Cut, Enclosure
from plumdp_verify.evidence import read_likelihood
from plumdp_verify.half_spaces import is_inside
from plumdp_verify.pieces import half, read_pieces
from plumdp_verify.polynomials import halved, monomials, size_of
from plumdp_verify.reading import Part, Rejected, read_json
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
    narrow = altered(certificate, lower=0.9 * certificate.lower + 0.1 * certificate.upper)
    with pytest.raises(DataError, match=r"no witness \(bracket: they do not hold at some point of the set"):
        make_witness(learned, narrow)


@cache
def honest():
    """Bounds from ten runs, which are too wide for functions on one cube: the certificate and its witness."""
    learned = plumdp.learn(small_model(), small_counts(10), objectives=[PROPERTY])
    certificate = plumdp.conclude(learned, PROPERTY)
    text, broken = propose_witness(learned, certificate)
    assert broken is None
    return json.dumps(certificate.to_dict()), text


def last_cut(witness):
    """Return the number of the parabola of the last tangent."""
    part = Part(witness, WITNESS)
    with exactly():
        data = read_data(part)
        likelihoods = [read_likelihood(each, data) for each in part["set"]["likelihoods"]]
        n = len(half_spaces_of(part, data, likelihoods, stages_of(part["set"]["bets"], data)))
    return n + len(witness["set"]["tangents"]) - 1


@pytest.mark.slow
def test_few_runs_have_a_witness_by_pieces_that_holds():
    certificate, witness = map(json.loads, honest())
    assert min(len([each for each in pieces_of(witness) if part in each]) for part in ("brackets", "values")) > 1
    assert verdict(witness, certificate) == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("row", rows("tampering:pieces"), ids=lambda row: row[1])
def test_a_forged_step_is_told(row):
    certificate, witness = map(json.loads, honest())
    assert not let_pass(row, [witness, certificate], last_cut=last_cut(witness))


@pytest.mark.slow
def test_what_is_no_number_is_refused():
    text = honest()[1].replace('"sides":[[[', '"sides":[[[NaN,', 1)
    with pytest.raises(Rejected, match="NaN is not a number"):
        read_json(text.encode(), WITNESS)


def check_points_of_the_set():
    part = read_json(honest()[1].encode(), WITNESS)
    with exactly():
        data = read_data(part)
        likelihoods = [read_likelihood(each, data) for each in part["set"]["likelihoods"]]
        half_spaces = half_spaces_of(part, data, likelihoods, stages_of(part["set"]["bets"], data))
        pieces = [each.cube for each in read_pieces(part["pieces"], data, half_spaces) if each.is_whole]
        n_inside = 0
        for v in np.random.default_rng(1).integers(1, 20, (200, 2)):
            point = [fmpq(int(a), 20) for a in v]
            if not is_inside(point, data, half_spaces, likelihoods):
                continue
            n_inside += 1
            places = [(cube, at) for cube in pieces if (at := coordinates(cube, point)) is not None]
            assert places
            for cube, at in places:
                assert all(value_of(cube.cuts[i].left, at) > -1e-20 for i in range(len(cube.cuts)))
    assert n_inside > 20


@pytest.mark.slow
def test_points_of_the_set_are_in_some_piece_and_in_all_that_cuts_it():
    check_points_of_the_set()


@pytest.mark.slow
def test_parabolas_that_hold_at_the_centre_alone_are_found(monkeypatch):
    monkeypatch.setattr(enclosure, "sums", lambda sizes: arb(0))
    with pytest.raises((AssertionError, Rejected)):
        check_points_of_the_set()


def coordinates(cube, point):
    """The coordinates of a point of a cube with two axes, or None."""
    (a, b), (c, d) = cube.axes
    x, y = (p - q for p, q in zip(point, cube.centre, strict=True))
    at = (x * d - y * c) / (a * d - b * c), (a * y - b * x) / (a * d - b * c)
    return at if all(abs(z) <= 1 for z in at) else None


def value_of(polynomial, at):
    return sum((c * arb(at[0]) ** e[0] * arb(at[1]) ** e[1] for e, c in polynomial.items()), start=arb(0)).mid()


def test_halves_of_a_cube_cover_it_and_no_more():
    cube = Enclosure([fmpq(1), fmpq(2)], [[fmpq(1), fmpq(1)], [fmpq(-1), fmpq(2)]], [], [])
    for x, y in np.random.default_rng(2).uniform(-1.5, 1.5, (100, 2)).tolist():
        x, y = fmpq(*x.as_integer_ratio()), fmpq(*y.as_integer_ratio())
        point = [1 + x - y, 2 + x + 2 * y]
        held = [coordinates(half(cube, 1, side), point) is not None for side in (-1, 1)]
        assert any(held) == (abs(x) <= 1 and abs(y) <= 1)
        assert held[0] == (abs(x) <= 1 and -1 <= y <= 0)


def test_a_polynomial_that_is_proved_to_be_nonnegative_is_so_at_points_of_the_cube():
    rng, order, n_proved = np.random.default_rng(3), monomials(2, 3), 0
    for _ in range(400):
        scale = np.array([rng.uniform(0, 4), *rng.uniform(-1, 1, len(order) - 1)])
        cut = dict(zip(order[:3], [arb(float(c)) for c in rng.uniform(-1, 1, 3)], strict=True))
        cube = Enclosure([fmpq(0)] * 2, [[fmpq(1), fmpq(0)], [fmpq(0), fmpq(1)]], [], [Cut(cut)])
        polynomial = dict(zip(order, [arb(float(c)) for c in scale], strict=True))
        given = {
            "multipliers": [[0, [float(rng.uniform(0.6, 1)), *(0.3 * rng.uniform(-1, 1, 2)).tolist()]]],
            "cube": rng.uniform(0, 1, 2).tolist(),
        }
        if is_nonnegative(polynomial, Part(given, "end"), cube):
            n_proved += 1
            for at in rng.uniform(-1, 1, (100, 2)).tolist():
                assert value_of(cut, at) < 0 or value_of(polynomial, at) >= 0
    assert n_proved > 20


def check_halves(on_half):
    rng, order = np.random.default_rng(4), monomials(2, 4)
    polynomial = dict(zip(order, [arb(float(c)) for c in rng.uniform(-1, 1, len(order))], strict=True))
    for side in (-1, 1):
        for x, y in rng.uniform(-1, 1, (20, 2)).tolist():
            there = value_of(on_half(polynomial, 1, side), (x, y))
            assert abs(there - value_of(polynomial, (x, (side + y) / 2))) < 1e-12


def test_a_polynomial_on_a_half_has_the_values_of_the_polynomial_on_the_cube():
    check_halves(halved)


def test_functions_of_the_other_half_are_found():
    with pytest.raises(AssertionError):
        check_halves(lambda polynomial, axis, side: halved(polynomial, axis, -side))


def check_sizes(size):
    rng, order = np.random.default_rng(5), monomials(2, 4)
    for radius in (0.7, 1.0, 1.3):
        for _ in range(20):
            numbers = rng.uniform(-1, 1, len(order)) * (rng.uniform(size=len(order)) < 0.4)
            polynomial = dict(zip(order, [arb(float(c)) for c in numbers], strict=True))
            for at in rng.uniform(-1, 1, (100, 2)).tolist():
                off = abs(value_of(polynomial, at) - float(numbers[0]))
                assert off <= size(polynomial, None)
                assert np.hypot(*at) > radius or off <= size(polynomial, arb(radius))


@pytest.mark.slow
def test_no_polynomial_differs_from_its_constant_by_more_than_its_size():
    """The size is reached by a square on the cube, and by a linear function on the ball."""
    check_sizes(size_of)
    assert size_of({(2, 0): arb(3)}, None) == 3
    assert abs(size_of({(1, 0): arb(3), (0, 1): arb(4)}, arb(1)) - 5) < 1e-12


@pytest.mark.parametrize("radius", [0.9, None])
def test_sizes_on_a_smaller_ball_are_found(radius):
    """That of a half, with the radius of the whole; and that of a cube, by the norms of a ball."""
    with pytest.raises(AssertionError):
        check_sizes(lambda polynomial, given: size_of(polynomial, arb(1) if given is None else given * (radius or 1)))
