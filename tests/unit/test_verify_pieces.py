"""Witnesses by pieces: an honest one holds, and each forged step of one is told."""

import copy
import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from flint import arb, fmpq
from support.verified_results import PROPERTY, pieces_of, small_counts, small_model

import plumdp
import plumdp_verify.enclosure as enclosure
from plumdp.verifying.witness import propose_witness
from plumdp_verify.bets import stages_of
from plumdp_verify.bracket import is_nonnegative
from plumdp_verify.check import check_claim, exactly, half_spaces_of
from plumdp_verify.claim import CERTIFICATE, WITNESS, read_claim
from plumdp_verify.counts import read_data
from plumdp_verify.enclosure import Cut, Enclosure
from plumdp_verify.evidence import read_likelihood
from plumdp_verify.half_spaces import is_inside
from plumdp_verify.pieces import half, read_pieces
from plumdp_verify.polynomials import halved, monomials, size_of
from plumdp_verify.reading import Part, Rejected, read_json
from plumdp_verify.report import Report


@cache
def honest():
    """Bounds from ten runs, which are too wide for functions on one cube: the certificate and its witness."""
    learned = plumdp.learn(small_model(), small_counts(10), objectives=[PROPERTY])
    certificate = plumdp.conclude(learned, PROPERTY)
    text, broken = propose_witness(learned, certificate)
    assert broken is None
    return json.dumps(certificate.to_dict()), text


def checked(witness, closer=0):
    """Return the report on a witness, perhaps of ends that are closer by some percent of the width."""
    part = read_json(json.dumps(witness).encode(), WITNESS)
    claim = read_claim(read_json(honest()[0].encode(), CERTIFICATE), part)
    less = fmpq(closer) * (claim.upper - claim.lower) / 100
    report = Report()
    with exactly():
        check_claim(replace(claim, lower=claim.lower + less, upper=claim.upper - less), part, report)
    return report


def proved(witness):
    """The parts that have multipliers."""
    return [each for each in pieces_of(witness) if "brackets" in each]


def with_functions(witness):
    return [each for each in pieces_of(witness) if "values" in each]


def first_halved(witness):
    return next(each for each in pieces_of(witness) if "halves" in each)["halves"]


def sides(witness):
    return witness["pieces"]["root"]["sides"]


def negative_side(witness):
    sides(witness)[0][0][1] *= -1


def loose_side(witness):
    for pair in sides(witness)[0]:
        pair[1] *= 1.1


def idle_side(witness):
    sides(witness)[0].clear()  # so that a cube would prove itself


def no_side(witness):
    sides(witness).pop()


def curved_side(witness):
    sides(witness)[0][0][0] = last_cut(witness)


def last_cut(witness):
    """The number of the parabola of the last tangent."""
    part = Part(witness, WITNESS)
    with exactly():
        data = read_data(part)
        likelihoods = [read_likelihood(each, data) for each in part["set"]["likelihoods"]]
        n = len(half_spaces_of(part, data, likelihoods, stages_of(part["set"]["bets"], data)))
    return n + len(witness["set"]["tangents"]) - 1


def small_root(witness):
    root = witness["pieces"]["root"]
    root["axes"] = (np.array(root["axes"]) * 0.9).tolist()


def other_root(witness):
    root = witness["pieces"]["root"]
    root["centre"] = (np.array(root["centre"]) + 0.3 * np.array(root["axes"][0])).tolist()


def flat_root(witness):
    witness["pieces"]["root"]["axes"][0] = [0.0, 0.0]


def small_ball(witness):
    root = witness["pieces"]["root"]
    root["ball"] = {"radius": 0.5, "multipliers": [], "cube": [1.0, 1.0]}


def one_half(witness):
    first_halved(witness).pop()


def no_such_axis(witness):
    first_halved(witness)[0] = 2


def other_axis(witness):
    halves = first_halved(witness)
    halves[0] = 1 - halves[0]


def traded_halves(witness):
    halves = first_halved(witness)
    halves[1:] = halves[:0:-1]


def nothing(witness):
    first_halved(witness)[1] = {}


def no_functions(witness):
    for each in with_functions(witness)[-1:]:
        each.pop("values")


def called_empty(witness):
    first_halved(witness)[1] = {"empty": {"multipliers": [], "cube": [0.0, 0.0]}}


def all_empty(witness):
    witness["pieces"]["tree"] = {"empty": {"multipliers": [], "cube": [-1.0, -1.0]}}


def no_inside(witness):
    witness["pieces"]["root"]["inside"] = [0.95, 0.5]


def moved(by):
    def change(witness):
        for each in with_functions(witness):
            for function in each["values"][0]["functions"]:
                function[0] += by

    return change


def of_values(name, number):
    def change(witness):
        for each in with_functions(witness):
            each["values"][0][name] = [number] * len(each["values"][0][name])

    return change


def of_end(name, number, which="lower"):
    def change(witness):
        for leaf in proved(witness):
            part = leaf["brackets"][0][which]
            if name == "cube":
                part["cube"] = [number] * len(part["cube"])
            else:
                part["multipliers"] = [[i, [number * c for c in y]] for i, y in part["multipliers"]]

    return change


def touches(number):
    def change(witness):
        for each in witness["set"]["tangents"]:
            each["point"][0] = number

    return change


FORGERIES = {
    "a negative multiplier of a side": (negative_side, "set", "negative"),
    "a side that does not follow": (loose_side, "set", "does not hold all points"),
    "a side that proves itself": (idle_side, "set", "does not hold all points"),
    "a side without a proof": (no_side, "set", "two sides"),
    "a parabola where no cube is known yet": (curved_side, "set", "no half-space"),
    "a cube that is too small": (small_root, "set", "does not hold all points"),
    "a cube somewhere else": (other_root, "set", "does not hold all points"),
    "a cube without volume": (flat_root, "set", "not a basis"),
    "a smaller ball": (small_ball, "set", "the ball does not hold"),
    "one half of a cube": (one_half, "set", "two halves"),
    "an axis that is not there": (no_such_axis, "set", "whole number below 2"),
    "nothing on one half": (nothing, "bracket", "no functions|missing"),
    "multipliers without functions": (no_functions, "bracket", "no functions"),
    "halves along another axis": (other_axis, "values|bracket", "in one step|does not follow|runs end"),
    "halves that trade places": (traded_halves, "values|bracket", "in one step|runs end|does not follow"),
    "a piece that is called empty": (called_empty, "set", "no point of the set is here"),
    "an empty set by negative multipliers": (all_empty, "set", "negative"),
    "a point that is not in the set": (no_inside, "set", "no point is known"),
    "larger functions": (moved(0.01), "values", "below the value"),
    "smaller functions": (moved(-0.01), "values", "the value in one step"),
    "no margins": (of_values("margins", 0.0), "values", "in one step"),
    "negative margins": (of_values("margins", -1e-3), "values", "negative"),
    "runs that need not end": (of_values("steps", 1.0), "values", "runs end"),
    "negative numbers of steps": (of_values("steps", -1.0), "values", "negative"),
    "negative multipliers of cuts": (of_end("multipliers", -1.0), "bracket", "negative"),
    "no multipliers of cuts": (of_end("multipliers", 0.0), "bracket", "does not follow"),
    "large multipliers of cuts": (of_end("multipliers", 1e3, "upper"), "bracket", "does not follow"),
    "negative multipliers of the cube": (of_end("cube", -1.0), "bracket", "negative"),
    "no multipliers of the cube": (of_end("cube", 0.0), "bracket", "does not follow"),
    "a tangent where a probability is negative": (touches(1.5), "set", "not positive"),
    "a tangent that touches elsewhere": (
        touches(0.5),
        "set|bracket",
        "does not hold all points|does not follow|no point of the set is here",
    ),
}


@pytest.mark.slow
def test_few_runs_have_a_witness_by_pieces_that_holds():
    witness = json.loads(honest()[1])
    assert len(proved(witness)) > 1
    assert len(with_functions(witness)) > 1
    assert checked(witness).passed[-3:] == ["values", "bracket", "sentence"]


@pytest.mark.slow
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_step_is_told(name):
    change, layer, words = FORGERIES[name]
    witness = copy.deepcopy(json.loads(honest()[1]))
    change(witness)
    with pytest.raises(Rejected, match=words) as error:
        checked(witness)
    assert error.value.layer in layer.split("|")


@pytest.mark.slow
def test_closer_ends_do_not_follow():
    with pytest.raises(Rejected, match="does not follow"):
        checked(json.loads(honest()[1]), closer=5)


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
