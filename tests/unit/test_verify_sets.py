"""Intervals, balls and ellipsoids are redone from the counts, and what a witness changes about them is rejected."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from flint import arb, fmpq
from support.verified_results import (
    COST,
    PROPERTY,
    coins,
    rehash,
    small_counts,
    small_model,
    stages,
    witnessed,
    worn,
    worn_counts,
)

import plumdp
from plumdp.data.counts import TransitionCounts
from plumdp.decisions import verify
from plumdp.published.least_squares import least_squares
from plumdp.published.multinomial import dirichlet, weissman
from plumdp_verify.balls import _SQUARE
from plumdp_verify.check import exactly, half_spaces_of
from plumdp_verify.counts import read_data
from plumdp_verify.inside import is_inside
from plumdp_verify.least_squares import _ellipsoid
from plumdp_verify.reading import Part

FIXED = "finite-sample, fixed N"


def independent():
    return TransitionCounts(small_model().graph, small_counts().counts, "independent")


KINDS = {
    "once": {"confidence_set": "interval"},
    "walk": {"confidence_set": "interval"},
    "balls": {"confidence_set": "l1", "text": COST, "policy": "uniform"},
    "products": {"confidence_set": "ellipsoid"},
    "ellipsoid": {"confidence_set": "ellipsoid", "text": "Rmax=? [ C<=9 ]", "model": worn(), "counts": worn_counts()},
    "hoeffding": {"confidence_set": "interval", "interval_method": "hoeffding", "counts": independent()},
    "fixed": {"confidence_set": "interval", "counts": independent()},
    "weissman": {"confidence_set": "l1", "counts": independent()},
    "twins": {"confidence_set": "l1", "text": "Rmax=? [ C ]"},
    "groups": {"confidence_set": "ellipsoid", "text": "Rmax=? [ C ]"},
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder, models = tmp_path_factory.mktemp("results"), {"once": stages(), "twins": coins(), "groups": coins()}
    for name, given in KINDS.items():
        options = {"text": PROPERTY, **given}
        if name in models:
            true = {"p": 0.6, "q": 0.3} if name == "once" else {"p": 0.5, "q": 0.5}
            counts = plumdp.simulate(models[name], true, 2_000, rng=1, max_steps=4)
            options |= {"model": models[name], "counts": counts}
        witnessed(folder / name, **options)
    return folder


@pytest.mark.parametrize("name", KINDS)
def test_sets_of_every_kind_are_verified(saved, name):
    report = verify(saved / name)
    assert report.broken is None, report.broken
    assert any("no run tries an event twice" in text for text in report.trusted) == (name == "once")


def test_the_witness_says_which_method_each_kind_has(saved):
    sets = {name: json.loads((saved / name / "witness.json").read_text())["set"] for name in KINDS}
    assert all(item["once"] for item in sets["once"]["intervals"]["list"])
    assert not any(item["once"] for item in sets["walk"]["intervals"]["list"])
    methods = [sets[name]["intervals"]["method"] for name in ("once", "hoeffding", "fixed")]
    assert methods == ["clopper-pearson", "hoeffding", "clopper-pearson"]
    assert [sets[name]["balls"]["method"] for name in ("balls", "weissman")] == ["dirichlet", "weissman"]
    assert sets["ellipsoid"]["ball"]["ellipsoid"] is not None
    assert sorted(map(len, sets["groups"]["ellipsoid"]["rows"][0])) == [1, 1]  # a coin each
    assert [len(sets[name]["quotients"]) > 0 for name in ("once", "walk", "balls", "products")] == [
        False,
        True,
        True,
        True,
    ]


def at(*path, to):
    def change(witness):
        part = witness
        for name in path[:-1]:
            part = part[name]
        part[path[-1]] = to(part[path[-1]]) if callable(to) else to

    return change


def called_once(witness):
    witness["set"]["intervals"]["method"] = "clopper-pearson"
    for item in witness["set"]["intervals"]["list"]:
        item["once"] = True


def curved_in_a_product(witness):
    """Put the upper side of the first event that is a product in place of a half-space."""
    events = witness["set"]["intervals"]["list"]
    first = next(
        i for i, item in enumerate(events) if "*p*" in f"*{item['polynomial']}*" and "p*q" in item["polynomial"]
    )
    witness["set"]["ball"]["products"][0][0] = len(witness["space"]) + 2 * first


def both_sets(witness):
    witness["set"]["ellipsoid"] = {"error": 1e-9, "ridge": 0.01, "rows": [None] * len(witness["rows"]), "list": []}


def never_visited(witness):
    for row in witness["rows"]:
        row["seen"] = {name: [0 for _ in seen] for name, seen in row["seen"].items()}


def a_row_left_out(witness):
    """Of the event of a single coin, which two rows try."""
    item = next(item for item in witness["set"]["intervals"]["list"] if len(item["trials"]) > 1)
    item["trials"].pop()


def in_product(change, change_multiplier=lambda y: y):
    """Change the first product of two cuts that has a multiplier."""

    def change_witness(witness):
        ends = (item for end in ("lower", "upper") for item in witness["bracket"][end]["multipliers"])
        item = next(item for item in ends if isinstance(item[0], list))
        item[:] = [change(item[0]), change_multiplier(item[1])]

    return change_witness


INTERVALS, BALLS, ELLIPSOID, QUOTIENTS = (("set", name) for name in ("intervals", "balls", "ellipsoid", "quotients"))
ITEM = (*INTERVALS, "list", 0)
TAMPERING = {
    "a narrower interval of runs": ("once", "set", at(*ITEM, "lower", to=lambda x: x + 0.02)),
    "a narrower interval by Hoeffding": ("hoeffding", "set", at(*ITEM, "upper", to=lambda x: x - 0.001)),
    "a narrower interval of a fixed number": ("fixed", "set", at(*ITEM, "upper", to=lambda x: x - 0.001)),
    "runs that were not planned": ("once", "set", at("data", "sampling", to="adaptive")),
    "samples that were not fixed": ("fixed", "set", at("data", "sampling", to="trajectories")),
    "an event that a run tries twice": ("walk", "set", called_once),
    "a method that is not known": ("walk", "set", at(*INTERVALS, "method", to="wald")),
    "an end beyond one": ("walk", "set", at(*ITEM, "lower", to=1.5)),
    "a row that is tried twice": ("walk", "set", at(*ITEM, "trials", to=lambda trials: [*trials, trials[0]])),
    "a row that is left out": ("walk", "set", a_row_left_out),
    "outcomes of another probability": ("walk", "set", at(*ITEM, "trials", 0, 1, to=lambda places: [1 - places[0]])),
    "an outcome that does not exist": ("walk", "set", at(*ITEM, "trials", 0, 1, to=[9])),
    "an event twice": ("walk", "set", at(*INTERVALS, "list", to=lambda items: items + items)),
    "too few events": ("walk", "set", at(*INTERVALS, "number", to=2)),
    "more error of intervals": ("walk", "budget", at(*INTERVALS, "error", to=lambda x: 2 * x)),
    "a share for two sets": ("walk", "budget", both_sets),
    "a product as a half-space": ("walk", "set", curved_in_a_product),
    "more error of balls": ("balls", "budget", at(*BALLS, "error", to=lambda x: 2 * x)),
    "too few rows": ("balls", "set", at(*BALLS, "number", to=1)),
    "a radius for samples": ("balls", "set", at(*BALLS, "method", to="weissman")),
    "a ball that is not known": ("balls", "set", at(*BALLS, "method", to="l2")),
    "an outcome of no row": ("balls", "set", at(*BALLS, "list", 0, 1, to=[7])),
    "a row of no model": ("balls", "set", at(*BALLS, "list", 0, 0, to=9)),
    "a row that was never visited": ("weissman", "set", never_visited),
    "more error of the ellipsoid": ("ellipsoid", "budget", at(*ELLIPSOID, "error", to=lambda x: 2 * x)),
    "no ridge": ("ellipsoid", "set", at(*ELLIPSOID, "ridge", to=0)),
    "a row without groups": ("ellipsoid", "set", at(*ELLIPSOID, "rows", to=lambda rows: rows[1:])),
    "outcomes that count in full": ("ellipsoid", "set", at(*ELLIPSOID, "rows", 0, to=[[[0]], [[1]]])),
    "events that depend on each other": ("groups", "set", at(*ELLIPSOID, "rows", 0, to=[[[0]], [[1]], [[2]], [[3]]])),
    "a group that counts nothing": ("products", "set", at(*ELLIPSOID, "rows", 0, to=[])),
    "another term of a direction": ("products", "set", at(*ELLIPSOID, "list", 0, to="p^2*q")),
    "a space without an end": ("ellipsoid", "set", at("space", to=lambda sides: sides[1:])),
    "another cut in place of the ellipsoid": ("ellipsoid", "set", at("set", "ball", "ellipsoid", "index", to=0)),
    "an ellipsoid with a negative weight": ("ellipsoid", "set", at("set", "ball", "ellipsoid", "weight", to=-1.0)),
    "an ellipsoid with more weight": ("ellipsoid", "set", at("set", "ball", "ellipsoid", "weight", to=lambda x: 9 * x)),
    "an ellipsoid of products in a ball": (
        "products",
        "set",
        lambda w: w["set"]["ball"].update(ellipsoid={"index": len(w["space"]), "weight": 1.0}),
    ),
    "a product of three": ("twins", "bracket", in_product(lambda pair: [*pair, pair[0]])),
    "a product with a cut that does not exist": ("twins", "bracket", in_product(lambda pair: [pair[0], 10**6])),
    "a negative multiplier of a product": ("twins", "bracket", in_product(lambda pair: pair, lambda y: [-1.0, *y[1:]])),
    "a quotient of another bound": ("walk", "set", at(*QUOTIENTS, 0, "bound", to=0)),
    "a quotient that is no factor": ("walk", "set", at(*QUOTIENTS, 0, "quotient", to="1/2*q")),
    "another divisor": ("walk", "set", at(*QUOTIENTS, 0, "divisors", 0, 0, to="q")),
    "ends of a divisor the wrong way round": (
        "walk",
        "set",
        at(*QUOTIENTS, 0, "divisors", 0, to=lambda divisor: [divisor[0], divisor[2], divisor[1]]),
    ),
    "a bound that comes later": ("walk", "set", at(*QUOTIENTS, 0, "divisors", 0, 1, to=10**6)),
}


@pytest.mark.parametrize("kind", TAMPERING)
def test_tampering_is_rejected_in_its_layer(saved, tmp_path, kind):
    name, layer, change = TAMPERING[kind]
    shutil.copytree(saved / name, tmp_path / "result")
    witness = json.loads((tmp_path / "result" / "witness.json").read_text())
    change(witness)
    (tmp_path / "result" / "witness.json").write_text(json.dumps(witness))
    certificate = json.loads((tmp_path / "result" / "certificate.json").read_text())
    rehash(tmp_path / "result", certificate | {"guarantee": FIXED})  # which assumes most
    broken = verify(tmp_path / "result").broken
    assert broken is not None
    assert broken.layer == layer, broken


@pytest.mark.parametrize("name", ["once", "hoeffding", "fixed", "weissman"])
def test_numbers_that_were_fixed_need_a_certificate_that_says_so(saved, tmp_path, name):
    shutil.copytree(saved / name, tmp_path / "result")
    certificate = json.loads((tmp_path / "result" / "certificate.json").read_text())
    assert certificate["guarantee"] == FIXED
    rehash(tmp_path / "result", certificate | {"guarantee": "finite-sample, planned"})
    assert verify(tmp_path / "result").broken.layer == "budget"


@pytest.mark.parametrize("name", ["walk", "balls", "products", "ellipsoid"])
def test_a_point_must_be_in_what_is_curved_as_well(saved, name):
    """A point of the set is in all of it; of one that only a curved side excludes, nothing is known."""
    witness, data, half_spaces = drawn(saved, name)
    ball = witness["set"]["ball"]
    point = ball["inside" if "inside" in ball else "centre"].numbers(2)
    with exactly():
        assert is_inside(point, data, half_spaces, [])
        bent = next(each for each in half_spaces if each.curved)
        left = below_at(bent, point)
        assert not is_inside(point, data, [replace(bent, offset=left - fmpq(1, 10**9))], [])
        assert is_inside(point, data, [replace(bent, offset=left + fmpq(1, 10**9))], [])


def below_at(half_space, point):
    """Return the left side of a half-space, curved or not, at a point of two parameters."""
    value = sum((b * x for b, x in zip(half_space.row, point, strict=True)), start=fmpq(0))
    return value + sum((c * point[0] ** e[0] * point[1] ** e[1] for e, c in half_space.curved.items()), start=fmpq(0))


def drawn(saved, name):
    """Return the content of a witness, its counts and its half-spaces."""
    witness = Part(json.loads((saved / name / "witness.json").read_text()), "witness")
    data = read_data(witness)
    with exactly():
        return (
            witness,
            data,
            half_spaces_of(
                Part(witness.value | {"set": witness["set"].value | {"bets": None, "tangents": []}}, ""), data, []
            ),
        )


@pytest.mark.parametrize(
    ("name", "model", "counts"), [("products", small_model, small_counts), ("ellipsoid", worn, worn_counts)]
)
def test_the_ellipsoid_is_that_of_least_squares(saved, name, model, counts):
    """Both are calculated from the counts, here in fractions and there in floats with rounding to the safe side."""
    witness, data, half_spaces = drawn(saved, name)
    with exactly():
        found = _ellipsoid(witness["set"]["ellipsoid"], data, half_spaces[: len(witness["space"])])
        error = witness["set"]["ellipsoid"]["error"].number()
    theirs = least_squares(model(), counts(), error=float(arb(error)))
    order = [found.monomials.index(tuple(e)) for e in theirs.exponents.tolist()]
    centre = np.array([int(c.p) / int(c.q) for c in found.centre])[order]
    matrix = np.array([[int(c.p) / int(c.q) for c in row] for row in found.matrix])[np.ix_(order, order)]
    assert np.allclose(centre, theirs.centre, rtol=0, atol=1e-10)
    assert np.allclose(matrix, theirs.matrix, rtol=1e-12)
    radius = float(found.radius.mid())
    assert radius <= theirs.radius <= radius * (1 + 1e-6)


def test_radii_of_balls_are_those_of_the_methods():
    seen = [120, 30, 0, 50]
    for name, theirs in (("weissman", weissman), ("dirichlet", dirichlet)):
        mine = (2 * (_SQUARE[name](seen) - arb(0.01).log()) / sum(seen)).sqrt()
        assert float(mine.mid()) == pytest.approx(float(theirs(seen, [sum(seen)], np.array([0, 4]), 0.01)[0]), rel=1e-9)


def test_every_half_space_holds_at_the_true_point(saved):
    """Each is one of those that hold with confidence, whatever its direction, so that none of these data breaks one."""
    true = {"ellipsoid": ("3/10", "2/5"), "twins": ("1/2", "1/2"), "groups": ("1/2", "1/2")}
    for name in KINDS:
        _, _, half_spaces = drawn(saved, name)
        point = [fmpq(*map(int, text.split("/"))) for text in true.get(name, ("3/5", "3/10"))]
        for each in half_spaces:
            assert bool(arb(below_at(each, point)) <= arb(each.offset))
