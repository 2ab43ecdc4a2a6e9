"""``verify`` accepts results as they were written, and rejects each kind of change in the layer that it belongs to."""

import shutil

import pytest
from support.tampering import ANSWER, rejected
from support.verified_results import (
    COST,
    PROPERTY,
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


def claimed(**numbers):
    return lambda witness: witness["claim"].update(numbers)


def claimed_by_certificate(**numbers):
    return lambda certificate: certificate.update(numbers)


def test_tampering_is_rejected_in_its_layer(saved):
    rejected("values", saved / "chance")
    rejected("cost", saved / "cost")


def test_an_answer_that_is_right_is_verified(result):
    rewrite(result, change_certificate=lambda certificate: certificate.update(answer=ANSWER))
    assert verify(result).sentence == ANSWER["sentence"]


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
    rejected("averages", tmp_path / "result")


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
