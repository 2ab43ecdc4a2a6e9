"""Intervals are redone from the counts, and what a witness changes about them is rejected."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from support.results import files_of, result_of
from support.verified_results import (
    COST,
    PROPERTY,
    small_counts,
    small_model,
    witnessed,
)

import plumdp
from plumdp.decisions import make_witness, verify
from plumdp.model.question import ask
from plumdp.verifying.look import Own
from plumdp.verifying.verify import look_again
from plumdp.verifying.witness import propose_witness
from plumdp_verify.bets import _more
from plumdp_verify.check import exactly, half_spaces_of
from plumdp_verify.counts import read_data
from plumdp_verify.half_spaces import is_inside
from plumdp_verify.reading import Part

pytestmark = pytest.mark.slow

KINDS = ("once", "walk", "fixed", "twins")


def test_the_witness_says_which_method_each_kind_has():
    sets = {name: files_of(result_of(name))[0]["set"] for name in KINDS}
    assert all(item["once"] for item in sets["once"]["intervals"]["list"])
    assert not any(item["once"] for item in sets["walk"]["intervals"]["list"])
    methods = [sets[name]["intervals"]["method"] for name in ("once", "fixed")]
    assert methods == ["clopper-pearson", "clopper-pearson"]


def test_a_point_must_be_in_what_is_curved_as_well():
    """A point of the set is in all of it; of one that only a curved side excludes, nothing is known."""
    witness, data, half_spaces = drawn("walk")
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


def drawn(name):
    """Return the content of a witness, its counts and its half-spaces."""
    witness = Part(files_of(result_of(name))[0], "witness")
    data = read_data(witness)
    with exactly():
        return (
            witness,
            data,
            half_spaces_of(
                Part(witness.value | {"set": witness["set"].value | {"bets": None, "tangents": []}}, ""), data, [], []
            ),
        )


def test_every_half_space_holds_at_the_true_point():
    """Each is one of those that hold with confidence, whatever its direction, so that none of these data breaks one."""
    true = {"twins": ("1/2", "1/2")}
    for name in KINDS:
        _, _, half_spaces = drawn(name)
        point = [fmpq(*map(int, text.split("/"))) for text in true.get(name, ("3/5", "3/10"))]
        for each in half_spaces:
            assert bool(arb(below_at(each, point)) <= arb(each.offset))


@pytest.mark.night
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


@pytest.mark.night
@pytest.mark.parametrize("runs", [10, 60])
def test_bounds_from_few_data_have_a_witness(runs):
    """They are proved on pieces of the region, and so is their witness; to ask for one changes nothing."""
    counts = small_counts(runs)
    narrow = plumdp.learn(small_model(), counts, objectives=[COST])
    learned = plumdp.learn(small_model(), counts, objectives=[COST], witness=True)
    certificate, other = plumdp.conclude(learned, COST), plumdp.conclude(narrow, COST)
    assert (certificate.lower, certificate.upper) == pytest.approx((other.lower, other.upper), rel=1e-9)
    assert propose_witness(learned, certificate)[1] is None


def test_rewards_with_unknown_means_are_two():
    assert len(files_of(result_of("rewards"))[0]["rewards"]) == 2


def test_bets_win_no_more_than_single_values_do():
    """By what each of some random values wins, in balls; if all values are equal, nothing is lost."""
    ctx.prec, rng = 128, np.random.default_rng(2)
    for n in (1, 5, 50):
        values = [Fraction(int(k), 64) for k in rng.integers(0, 65, n)]
        for factors in ((0.7, 1.6), (1.2, 0.9)):
            one, other = map(arb, factors)
            won = sum(((other + ball(x) * (one - other)).log() for x in values), start=arb(0))
            total, mixed = sum(values), sum(x * (1 - x) for x in values)
            coins = ball(total) * one.log() + ball(n - total) * other.log()
            more = _more((exact(total), one), (exact(n - total), other), exact(mixed)) if mixed else arb(0)
            assert not coins + more > won
            assert more >= 0
            assert n > 1 or not mixed or (coins + more - won).contains(0)


def exact(number):
    return fmpq(Fraction(number).numerator, Fraction(number).denominator)


def ball(number):
    return arb(exact(number))


def test_a_witness_never_changes_an_answer_or_is_refused_with_what_to_type(tmp_path):
    p, q = plumdp.parameters("p", "q")
    paths = plumdp.explore(
        lambda s: {"go": [(p * q, s._replace(x=1)), (1 - p * q, s._replace(x=2))]} if s.x == 0 else {"stay": [(1, s)]},
        {"x": 0}, space=plumdp.ParameterSpace.unit("p", "q"), labels={"one": lambda s: s.x == 1},
    )  # fmt: skip
    counts = plumdp.simulate(paths, {"p": 0.5, "q": 0.5}, 100, rng=1, max_steps=2)
    asked = 'Pmax=? [ F "one" ]'
    with pytest.raises(plumdp.DataError, match=r"likelihood of hidden paths.*; say confidence_set='interval'"):
        plumdp.learn(paths, counts, objectives=[asked], witness=True)
    plumdp.learn(paths, counts, objectives=[asked], witness=True, confidence_set="interval")
    study, file = plumdp.case_study("betting:2"), tmp_path / "runs.csv"
    asked = study.objective
    plumdp.data.write_runs(study.model, study.true_point, 100, file, rng=1, max_steps=3)
    for order in ("runs", None):
        read = plumdp.read_log(study.model, file, order=order)
        one, other = (
            plumdp.conclude(plumdp.learn(study.model, read, objectives=[asked], witness=witness), asked)
            for witness in (False, True)
        )
        assert (one.lower, one.upper) == (other.lower, other.upper)


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "rival"), [("near", "twice"), (None, "twice"), ("near", "practice")])
def test_a_difference_that_is_prespecified_is_the_same_with_a_witness_and_made_again_from_a_log(
    policy, rival, tmp_path
):
    model, counts = small_model(), small_counts(2000)
    asked = replace(ask(PROPERTY, model, memory=False), policy=policy, against=rival)
    learned, other = (plumdp.learn(model, counts, objectives=[asked], witness=each) for each in (True, False))
    found = plumdp.difference(learned, PROPERTY, "near", rival)
    without = plumdp.difference(other, PROPERTY, "near", rival)
    assert (found.lower, found.upper, found.first.lower) == (without.lower, without.upper, without.first.lower)
    certificate, folder = found.with_comparison(), tmp_path / "result"
    plumdp.write_result(certificate, folder, witness=make_witness(learned, certificate))
    report = verify(folder)
    look_again(folder, report, Own(model, counts))
    is_listed = policy is not None and rival != "practice"
    assert ("directions" in report.passed) == is_listed, report
    assert report.broken is None or not report.broken.is_broken, report


def test_bets_in_cells_have_no_witness(monkeypatch, tmp_path):
    monkeypatch.setattr("plumdp.learning.learn.uses_cells", lambda *_: True)
    study, file = plumdp.case_study("betting:2"), tmp_path / "runs.csv"
    plumdp.data.write_runs(study.model, study.true_point, 100, file, rng=1, max_steps=3)
    with pytest.raises(plumdp.DataError, match=r"bets in cells .*='interval', .*, or, if that is so, order='runs'"):
        plumdp.learn(study.model, plumdp.read_log(study.model, file), objectives=[study.objective], witness=True)
