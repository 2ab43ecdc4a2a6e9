"""``verify`` accepts results as they were written, and rejects each kind of change in the layer that it belongs to."""

import shutil

import numpy as np
import pytest
from support.verified_results import (
    COST,
    PROPERTY,
    broken_by,
    changed_at,
    cut_end,
    functions_of,
    rewrite,
    small_counts,
    small_model,
    witnessed,
    worn,
    worn_counts,
)

import plumdp
from plumdp.base.errors import DataError
from plumdp.data.counts import TransitionCounts
from plumdp.decisions import make_witness, verify


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of a result with a probability, and that of one with an expected cost."""
    folder = tmp_path_factory.mktemp("results")
    for name, text in (("chance", PROPERTY), ("cost", COST)):
        witnessed(folder / name, text)
    return folder


@pytest.fixture
def result(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "results")
    return tmp_path / "results" / "chance"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chance", "cost"])
def test_results_as_they_were_written_are_verified_in_all_layers(saved, name):
    report = verify(saved / name)
    assert report.broken is None
    assert report.passed == ["files", "budget", "counts", "bets", "set", "values", "bracket", "sentence"]
    assert report.sentence.startswith("The policy's value lies between ")
    assert "trusted: that the counts are those of the data" in str(report)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("Rmax=? [ C ]", {}),
        ("Rmax=? [ C{0.9} ]", {}),
        ("Rmax=? [ LRA ]", {"model": worn(), "counts": worn_counts()}),
        ("Rmax=? [ LRA ]", {"model": worn(), "counts": worn_counts(), "policy": "uniform"}),
        ("Rmax=? [ C<=9 ]", {"model": worn(), "counts": worn_counts()}),
        ('Pmax=? [ F "down" ]', {"model": worn(), "counts": worn_counts()}),
        ('Pmax=? [ G !"goal" ]', {}),
        ('Pmax=? [ x>0 U "goal" ]', {}),
        (PROPERTY, {"confidence_set": "interval", "relaxation": "interval"}),
        (PROPERTY, {"policy": "uniform"}),
        ('Pmax=? [ F<=4 "goal" ]', {}),
        ('Pmax=? [ F<=4 "goal" ]', {"memory": False}),
        ("Rmax=? [ C<=4 ]", {"memory": False, "policy": "uniform"}),
        ("Rmax=? [ C{0.9}<=4 ]", {"memory": False}),
        ("Pmax=? [ (F x=3) & (F x=1) ]", {}),
        (PROPERTY, {"counts": TransitionCounts(small_model().graph, small_counts().counts, "adaptive")}),
    ],
)
def test_other_kinds_of_results_are_verified(tmp_path, text, options):
    witnessed(tmp_path / "result", text, **options)
    report = verify(tmp_path / "result")
    assert report.broken is None, report.broken


def claim(**numbers):
    """Change the claim in both files, so that it is only the proof that does not fit."""

    def change(witness, certificate):
        certificate |= numbers
        witness["claim"] |= numbers

    return change


def at(*path, to):
    """Change one number or text of the witness, or a number by a function."""

    return lambda witness, certificate: changed_at(witness, *path, to=to)


def claimed(**numbers):
    return lambda witness: witness["claim"].update(numbers)


def claimed_by_certificate(**numbers):
    return lambda certificate: certificate.update(numbers)


def certified(**content):
    return lambda witness, certificate: certificate.update(content)


SHARE = "with confidence 99.9 %."
ANSWER = {
    "question": 'Pmax>=0.6 [ F "goal" ]',
    "verdict": "yes",
    "sentence": f"Yes: the policy found has at least 0.68, {SHARE}",
}


def answered(**content):
    """Add an answer to a threshold, of which some part is not right."""
    return certified(answer=ANSWER | content)


def less_likely(witness, certificate):
    """Add 300 steps to one outcome."""
    witness["rows"][0]["seen"]["all"][0] += 300


def without_last(part):
    return part[:-1]


SET, BETS, ROOT, CHAIN, VALUES = ("set",), ("set", "bets"), ("pieces", "root"), ("chain",), (functions_of,)
SIDE, LAW = (*BETS, "list", 0), ("set", "likelihoods", 0)


def other_steps(side):
    """Return bets on the same side whose first ones are twice as large."""
    first, *later = side["steps"]
    return side | {"steps": [[[2 * x for x in step] for step in first], *later]}


def larger(stage, name="steps"):
    """Change bets of a stage, or units of them, wherever their side is looked at, into larger ones."""

    def change(witness, certificate):
        for side in witness["set"]["bets"]["list"]:
            if stage < side["until"]:
                side[name][stage] = (1.01 * np.array(side[name][stage])).tolist()

    return change


TAMPERING = {
    "another lower end in the certificate": ("files", certified(lower=0.69)),
    "another confidence in the certificate": ("files", certified(confidence=0.9999)),
    "another property": ("files", certified(objective='Pmax=? [ F "end" ]')),
    "another direction": ("files", certified(direction="min")),
    "another format": ("files", at("format", to="plumdp/witness/0")),
    "a misfit": ("files", certified(misfit=0.01)),
    "evidence from elsewhere": ("counts", lambda w, c: c["options"].update(evidence={"p": [1, 2]})),
    "a contradicted model": ("files", certified(status="model contradicted")),
    "a comparison with another policy": ("files", certified(comparison={"sentence": "It is better."})),
    "an answer about all policies": (
        "counts",
        answered(
            sentence=f"No: no policy has more than 0.71, {SHARE}", verdict="no", question='Pmax>=0.9 [ F "goal" ]'
        ),
    ),
    "an answer about a policy that was not given": (
        "files",
        answered(sentence=f"Yes: this policy has at least 0.6, {SHARE}"),
    ),
    "an answer to a question about all policies": ("files", answered(question='Pmin>=0.6 [ F "goal" ]')),
    "an answer to another question": ("files", answered(question='Pmax>=0.6 [ F "end" ]')),
    "another verdict": ("files", answered(verdict="no")),
    "a threshold that is not reached": ("sentence", answered(question='Pmax>=0.69 [ F "goal" ]')),
    "a larger number in an answer": (
        "sentence",
        answered(sentence=f"Yes: the policy found has at least 0.69, {SHARE}"),
    ),
    "more confidence in an answer": (
        "sentence",
        answered(sentence="Yes: the policy found has at least 0.68, with confidence 99.99 %."),
    ),
    "a confidence of one": ("files", claim(confidence=1.0)),
    "ends in the wrong order": ("files", claim(lower=0.8, upper=0.7)),
    "an infinite lower end": ("files", claim(lower="infinity", upper="infinity")),
    "more confidence": ("budget", claim(confidence=0.9999)),
    "a larger error": ("budget", at("budget", "error", to=0.002)),
    "a larger share": ("budget", at("budget", "shares", "half_spaces", to="9/10")),
    "a share that is missing": ("budget", lambda w, c: w["budget"]["shares"].pop("half_spaces")),
    "a larger error of bets": ("budget", at(*BETS, "error", to=0.01)),
    "a larger error of the likelihood": ("budget", at(*LAW, "error", to=0.01)),
    "a larger error of intervals": ("budget", at("set", "intervals", "error", to=0.01)),
    "a share of another part": ("budget", at("set", "intervals", "part", to="half_spaces")),
    "an end of the data that was not planned": ("budget", at("data", "order", to="open")),
    "a row that does not sum to one": ("counts", at("rows", 0, "outcomes", 0, to="-1/2*p + 1")),
    "a class that does not sum to one": ("counts", at("classes", 0, 0, to="1/2*p")),
    "two equal outcomes of a class": ("counts", at("classes", 0, to=["1/2*p", "1/2*p", "-p + 1"])),
    "a way to another outcome": ("counts", at("rows", 0, "ways", to=lambda ways: ways[::-1])),
    "the same row twice": ("counts", at("rows", to=lambda rows: [*rows, rows[0]])),
    "a pilot with more than all data": ("counts", at("rows", 0, "seen", "pilot", 0, to=10**6)),
    "moments that go back": ("counts", at("rows", 0, "seen", "moment 0", 0, to=lambda n: n + 5000)),
    "a probability in the chain": ("counts", at(*CHAIN, "expressions", 0, to="q")),
    "a successor that is missing": ("counts", at(*CHAIN, "rows", 0, 1, to=without_last)),
    "a target where runs go on": ("counts", at(*CHAIN, "target", to=lambda nodes: [*nodes, 0])),
    "a reward of a probability": ("counts", at(*CHAIN, "rows", 0, 0, to=1.0)),
    "a kind of value that is not known": ("counts", at(*CHAIN, "kind", to="average")),
    "a discount": ("counts", at(*CHAIN, "discount", to="9/10")),
    "a state that is missing": ("counts", at(*CHAIN, "rows", to=lambda rows: rows[1:])),
    "lengths that do not grow": ("counts", at("data", "lengths", 1, to=1.0)),
    "a law of another mean": ("bets", at(*LAW, "mean", 0, to=lambda x: x + 0.1)),
    "a law of another precision": ("bets", at(*LAW, "precision", 0, 0, to=lambda x: 2 * x)),
    "a law that is not positive definite": ("bets", at(*LAW, "precision", 0, 0, to=-1.0)),
    "bets about another point": ("bets", at(*BETS, "points", 0, 0, to=lambda x: x + 0.05)),
    "a horizon twice": ("bets", at(*SIDE, "horizons", to=lambda numbers: [*numbers, numbers[0]])),
    "a horizon that does not exist": ("bets", at(*SIDE, "horizons", 0, to=99)),
    "a third side": ("bets", at(*BETS, "list", to=lambda sides: [*sides, sides[0] | {"sign": 2}])),
    "a side with two fortunes": ("bets", at(*BETS, "list", to=lambda sides: [*sides, other_steps(sides[0])])),
    "a first size that no weight asks for": ("bets", larger(0)),
    "a size that does not follow from what was won": ("bets", larger(7)),
    "units that are longer": ("bets", larger(7, "units")),
    "a moment after the end": ("bets", at(*SIDE, "until", to=99)),
    "a direction that was not announced": ("bets", at(*SIDE, "direction", to=1)),
    "a negative share": ("bets", at(*SIDE, "shares", 0, to=-0.1)),
    "a stage without steps": ("bets", at(*SIDE, "steps", to=without_last)),
    "other counts": ("set", less_likely),
    "too few events": ("set", at("set", "intervals", "number", to=1)),
    "a width above one": ("set", at(*LAW, "widths", 0, to=1.5)),
    "an interval that is too narrow": ("set", at("set", "intervals", "list", 0, "lower", to=lambda x: x + 0.01)),
    "trials of another event": ("set", at("set", "intervals", "list", 0, "polynomial", to="q")),
    "a tangent outside": ("set", at("set", "tangents", 0, "point", to=[2.0, 0.5])),
    "a smaller cube": ("set", at(*ROOT, "axes", 0, to=lambda row: [x / 2 for x in row])),
    "a cube elsewhere": ("set", at(*ROOT, "centre", 0, to=lambda x: x + 0.01)),
    "axes that are not a basis": ("set", at(*ROOT, "axes", to=lambda rows: [rows[0], rows[0]])),
    "another multiplier of a side": ("set", at(*ROOT, "sides", 0, 0, 1, to=lambda x: 2 * x)),
    "a ball that is too small": ("set", at(*ROOT, "ball", to={"radius": 0.5, "multipliers": [], "cube": [1.0, 1.0]})),
    "a radius below zero": ("set", at(*ROOT, "ball", to={"radius": -2.0, "multipliers": [], "cube": [1.0, 1.0]})),
    "a coefficient": ("values", at(*VALUES, "functions", 0, 0, to=lambda x: x + 1e-3)),
    "a slope": ("values", at(*VALUES, "functions", 0, 1, to=lambda x: x + 1e-3)),
    "a margin of zero": ("values", at(*VALUES, "margins", 0, to=0.0)),
    "a negative margin": ("values", at(*VALUES, "margins", 0, to=-1e-9)),
    "too few steps": ("values", at(*VALUES, "steps", 0, to=0.5)),
    "a function that is missing": ("values", at(*VALUES, "functions", to=without_last)),
    "a degree that is far too high": ("values", at(*VALUES, "degree", to=17)),
    "another degree": ("values", at(*VALUES, "degree", to=1)),
    "a successor elsewhere": ("values", at(*CHAIN, "rows", 0, 1, to=lambda nodes: nodes[::-1])),
    "a larger lower end": ("bracket", claim(lower=0.69)),
    "a smaller upper end": ("bracket", claim(upper=0.7035)),
    "a negative multiplier": ("bracket", at(cut_end("lower"), "multipliers", 0, 1, 0, to=-1.0)),
    "no multipliers": ("bracket", at(cut_end("upper"), "multipliers", to=[])),
    "another initial state": ("bracket", at(*CHAIN, "initial", to=1)),
    "one minus the value": ("bracket", at(*CHAIN, "complement", to=True)),
    "a larger number in the sentence": ("sentence", at("claim", "sentence", to=lambda s: s.replace("0.682", "0.683"))),
    "more confidence in the sentence": ("sentence", at("claim", "sentence", to=lambda s: s.replace("99.9", "99.99"))),
    "an infinite sentence": ("sentence", at("claim", "sentence", to=lambda s: s.replace("0.70", "infinity"))),
    "another sentence": ("sentence", at("claim", "sentence", to="The policy is the best one.")),
    "another status": ("sentence", certified(status="nothing certified")),
}


@pytest.mark.parametrize("kind", TAMPERING)
def test_tampering_is_rejected_in_its_layer(result, kind):
    layer, change = TAMPERING[kind]
    assert broken_by(result, change) == layer


def test_an_answer_that_is_right_is_verified(result):
    rewrite(result, change_certificate=lambda certificate: certificate.update(answer=ANSWER))
    assert verify(result).sentence == ANSWER["sentence"]


def test_every_layer_has_tampering():
    assert len(TAMPERING) >= 40
    assert {layer for layer, _ in TAMPERING.values()} >= {"files", "budget", "counts", "bets", "set", "values"}


@pytest.mark.parametrize("name", ["certificate.json", "policy.csv", "witness.json"])
def test_a_file_that_was_changed_is_rejected_by_its_hash(result, name):
    content = (result / name).read_text()
    (result / name).write_text(content.replace("2", "3", 1))
    assert verify(result).broken.layer == "files"
    assert f"{name} was changed" in str(verify(result).broken)


def test_files_that_are_missing_or_not_listed_are_rejected(result):
    (result / "more.txt").write_text("")
    assert str(verify(result).broken) == "the certificate does not list more.txt"
    (result / "more.txt").unlink()
    (result / "policy.csv").unlink()
    assert str(verify(result).broken) == "policy.csv is listed, but not there"


def test_a_changed_cost_of_a_state_is_rejected(result):
    cost = result.parent / "cost"
    rewrite(cost, lambda witness: witness["chain"]["rows"][0].__setitem__(0, 1.1))
    assert verify(cost).broken.layer == "values"


@pytest.mark.slow
def test_a_target_that_is_surely_reached_has_the_value_one_exactly(tmp_path):
    """The chain has cycles, and one step keeps the value, so that no function is strictly below it."""
    witnessed(tmp_path / "result", 'Pmax=? [ F "down" ]', model=worn(), counts=worn_counts())
    rewrite(tmp_path / "result", claimed(lower=1.0), claimed_by_certificate(lower=1.0))
    assert verify(tmp_path / "result").broken is None
    rewrite(tmp_path / "result", lambda witness: functions_of(witness)["functions"][0].__setitem__(0, 1 + 2**-50))
    assert verify(tmp_path / "result").broken.layer == "values"


@pytest.mark.slow
def test_an_average_that_is_off_is_rejected(tmp_path):
    witnessed(tmp_path / "result", "Rmax=? [ LRA ]", model=worn(), counts=worn_counts())
    before = (tmp_path / "result" / "witness.json").read_text()
    changes = {
        "average": lambda values: values["average"].__setitem__(0, values["average"][0] + 1e-2),
        "a slope of it": lambda values: values["average"].__setitem__(1, values["average"][1] + 1e-2),
        "margin": lambda values: values["margins"].__setitem__(0, 0.0),
        "function": lambda values: values["functions"][1].__setitem__(0, values["functions"][1][0] + 1e-2),
    }
    for change in changes.values():
        rewrite(tmp_path / "result", lambda witness, change=change: change(functions_of(witness)))
        assert verify(tmp_path / "result").broken.layer == "values"
        (tmp_path / "result" / "witness.json").write_text(before)


def test_a_certificate_of_an_objective_that_was_not_announced_is_proved_by_the_same_set(tmp_path):
    learned = plumdp.learn(small_model(), small_counts(), objectives=["Rmax=? [ LRA ]"])
    certificate = plumdp.conclude(learned, PROPERTY)
    certificate.save(tmp_path / "result", witness=make_witness(learned, certificate))
    assert verify(tmp_path / "result").broken is None
    narrower = {"lower": certificate.lower + 1e-3}
    rewrite(tmp_path / "result", claimed(**narrower), claimed_by_certificate(**narrower))
    assert verify(tmp_path / "result").broken.layer == "bracket"


def test_certificates_of_other_data_or_of_objectives_without_a_text_are_refused():
    learned = plumdp.learn(small_model(), small_counts(), objectives=[])
    other = plumdp.learn(small_model(), small_counts(runs=100), objectives=[PROPERTY])
    is_goal = small_model().graph.states["x"] == 4
    nameless = plumdp.model.Reach(is_goal, ~is_goal & is_goal, "max")
    for certificate in (plumdp.conclude(other, PROPERTY), plumdp.conclude(learned, nameless)):
        with pytest.raises(DataError, match="make_witness takes what learn returned"):
            make_witness(learned, certificate)
