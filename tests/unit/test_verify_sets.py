"""Intervals are redone from the counts, and what a witness changes about them is rejected."""

import json
import shutil
from dataclasses import replace
from fractions import Fraction

import pytest
from flint import arb, fmpq
from support.tampering import rejected
from support.verified_results import (
    COST,
    PROPERTY,
    coins,
    rehash,
    small_counts,
    small_model,
    stages,
    witnessed,
)

import plumdp
from plumdp.data.counts import TransitionCounts
from plumdp.decisions import make_witness, verify
from plumdp.verifying.witness import propose_witness
from plumdp_verify.check import exactly, half_spaces_of
from plumdp_verify.counts import read_data
from plumdp_verify.half_spaces import is_inside
from plumdp_verify.reading import Part

pytestmark = pytest.mark.slow

FIXED = "finite-sample, fixed N"


def independent():
    return TransitionCounts(small_model().graph, small_counts().counts, "independent")


KINDS = {
    "once": {"confidence_set": "interval"},
    "walk": {"confidence_set": "interval"},
    "fixed": {"confidence_set": "interval", "counts": independent()},
    "twins": {"confidence_set": "interval", "text": "Rmax=? [ C ]"},
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder, models = tmp_path_factory.mktemp("results"), {"once": stages(), "twins": coins()}
    for name, given in KINDS.items():
        options = {"text": PROPERTY, **given}
        if name in models:
            true = {"p": 0.6, "q": 0.3} if name == "once" else {"p": 0.5, "q": 0.5}
            counts = plumdp.simulate(models[name], true, 2_000, rng=1, max_steps=4)
            sampling = "trajectories" if name == "once" else "adaptive"
            options |= {"model": models[name], "counts": replace(counts, sampling=sampling)}
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
    methods = [sets[name]["intervals"]["method"] for name in ("once", "fixed")]
    assert methods == ["clopper-pearson", "clopper-pearson"]


@pytest.mark.parametrize("kind", ["l1", "ellipsoid"])
def test_other_kinds_of_sets_have_no_witness(kind):
    learned = plumdp.learn(small_model(), small_counts(), confidence_set=kind)
    with pytest.raises(plumdp.DataError) as refused:
        make_witness(learned, plumdp.conclude(learned, PROPERTY))
    assert str(refused.value) == (
        f"verify does not know {kind!r} sets (those of the kinds 'likelihood' and 'interval', and tables, have "
        "witnesses), so there is no witness of this certificate"
    )


@pytest.mark.parametrize("name", KINDS)
def test_tampering_is_rejected_in_its_layer(saved, name):
    rejected(name, saved / name, {"guarantee": FIXED})  # which assumes most


@pytest.mark.parametrize("name", ["once", "fixed"])
def test_numbers_that_were_fixed_need_a_certificate_that_says_so(saved, tmp_path, name):
    shutil.copytree(saved / name, tmp_path / "result")
    certificate = json.loads((tmp_path / "result" / "certificate.json").read_text())
    assert certificate["guarantee"] == FIXED
    rehash(tmp_path / "result", certificate | {"guarantee": "finite-sample, planned"})
    assert verify(tmp_path / "result").broken.layer == "budget"


def test_a_point_must_be_in_what_is_curved_as_well(saved):
    """A point of the set is in all of it; of one that only a curved side excludes, nothing is known."""
    witness, data, half_spaces = drawn(saved, "walk")
    root = witness["pieces"]["root"]
    point = root["inside" if "inside" in root else "centre"].numbers(2)
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
                Part(witness.value | {"set": witness["set"].value | {"bets": None, "tangents": []}}, ""), data, [], []
            ),
        )


def test_every_half_space_holds_at_the_true_point(saved):
    """Each is one of those that hold with confidence, whatever its direction, so that none of these data breaks one."""
    true = {"twins": ("1/2", "1/2")}
    for name in KINDS:
        _, _, half_spaces = drawn(saved, name)
        point = [fmpq(*map(int, text.split("/"))) for text in true.get(name, ("3/5", "3/10"))]
        for each in half_spaces:
            assert bool(arb(below_at(each, point)) <= arb(each.offset))


def test_a_rare_outcome_that_many_rows_share_is_verified(tmp_path):
    """Each of six ages has a known mortality besides the unknown one, and a pilot sees no death at most of them."""
    mortality = plumdp.parameters("mortality")[0]

    def age(state):
        if state.dead or state.age == 6:
            return {"end": [(1, state)]}
        known = Fraction(state.age + 1, 1000)
        older = state._replace(age=state.age + 1)
        return {"live": [(dies := known + (1 - known) * mortality, older._replace(dead=1)), (1 - dies, older)]}

    space = plumdp.ParameterSpace.unit("mortality")
    model = plumdp.explore(age, {"age": 0, "dead": 0}, space=space, labels={"dead": lambda state: state.dead == 1})
    counts = plumdp.simulate(model, {"mortality": 0.0001}, 400, rng=1, max_steps=7)
    witnessed(tmp_path / "ages", model=model, counts=counts, text='P=? [ F "dead" ]')
    report = verify(tmp_path / "ages")
    assert report.broken is None, report.broken


@pytest.mark.parametrize("runs", [1, 10, 60])
def test_bounds_from_few_data_have_a_witness(runs):
    """They are proved on pieces of the region, and so is their witness; to ask for one changes nothing."""
    counts = small_counts(runs)
    narrow = plumdp.learn(small_model(), counts, objectives=[COST])
    learned = plumdp.learn(small_model(), counts, objectives=[COST], witness=True)
    certificate, other = plumdp.conclude(learned, COST), plumdp.conclude(narrow, COST)
    assert (certificate.lower, certificate.upper) == pytest.approx((other.lower, other.upper), rel=1e-9)
    assert propose_witness(learned, certificate)[1] is None
