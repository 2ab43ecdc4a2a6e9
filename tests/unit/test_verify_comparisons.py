"""``verify`` accepts comparisons of two policies as they were written, and rejects each change in its layer."""

import json
import shutil
from dataclasses import replace

import pytest
from support.tampering import rejected
from support.verified_results import (
    COST,
    PROPERTY,
    compared,
    rewrite,
    small_counts,
    small_model,
)

import plumdp
from plumdp.base.errors import DataError
from plumdp.decisions import make_witness, verify

pytestmark = pytest.mark.slow

NEVER = 'Pmax=? [ G !"goal" ]'


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The certificate of the better of two policies, with a comparison to the other."""
    folder = tmp_path_factory.mktemp("compared") / "result"
    compared(folder)
    return folder


@pytest.fixture
def result(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "result")


def test_a_comparison_is_verified_with_both_sentences(saved):
    report = verify(saved)
    assert report.broken is None
    certificate = json.loads((saved / "certificate.json").read_text())
    value, told = report.sentence.split(" The first policy ")
    assert value.startswith("The policy's value lies between 0.68")
    assert certificate["comparison"]["sentence"] == f"The first policy {told}"
    assert told.startswith("is better: its value is larger by at least 0.5")


@pytest.mark.parametrize(
    ("first", "second", "text", "of", "begins"),
    [
        ("twice", "near", "Rmax=? [ C{0.9} ]", "second", "The first policy is better: its value is larger"),
        ("near", "twice", COST, "second", "The first policy is better: its value is smaller"),
        ("near", "uniform", 'Pmax=? [ F<=3 "goal" ]', "first", "The first policy is better"),
    ],
)
def test_other_comparisons_are_verified(tmp_path, first, second, text, of, begins):
    found = compared(tmp_path / "result", first, second, text, of=of)
    report = verify(tmp_path / "result")
    assert report.broken is None, report.broken
    assert found.sentence.startswith(begins)
    assert report.sentence.endswith(found.sentence)


def test_tampering_is_rejected_in_its_layer(saved):
    rejected("comparison", saved)


def test_a_sentence_that_says_less_is_accepted(result):
    """It is wider than what is proved, and does not name the better policy."""
    words = "Not yet known: the value of the first policy less that of the second policy lies between"
    rewrite(
        result,
        change_certificate=lambda certificate: certificate["comparison"].update(
            sentence=f"{words} 0.5 and 0.6, with confidence 99.9 %."
        ),
    )
    assert verify(result).broken is None


def test_no_policy_is_better_if_the_difference_may_be_zero(result):
    """The ends hold, but a policy is called better by at least less than nothing."""
    sentence = (
        "The first policy is better: its value is larger by at least -0.1 and at most 0.6, with confidence 99.9 %."
    )
    rewrite(
        result,
        change_certificate=lambda certificate: certificate["comparison"].update(
            difference=[-0.1, 0.6], sentence=sentence
        ),
    )
    broken = verify(result).broken
    assert (broken.layer, str(broken)) == (
        "sentence",
        "certificate.json: comparison: it does not follow that a policy is better",
    )


def test_policies_that_do_the_same_differ_by_nothing_exactly(tmp_path):
    """Margins would be far wider than the claim, but both chains are one."""
    found = compared(tmp_path / "result", "near", "near", COST)
    assert -1e-100 < found.lower <= 0 <= found.upper < 1e-100
    rejected("same_policies", tmp_path / "result")


def test_false_differences_of_one_minus_a_value_are_rejected(tmp_path):
    compared(tmp_path / "result", "twice", "near", NEVER)
    rejected("complements", tmp_path / "result")


def test_the_other_policy_without_a_comparison_is_rejected(result):
    rewrite(result, change_certificate=lambda certificate: certificate.pop("comparison"))
    assert verify(result).broken.layer == "files"


def test_folders_keep_the_other_policy(saved):
    assert (saved / "rival.csv").read_text().splitlines()[0] == (saved / "policy.csv").read_text().splitlines()[0]
    assert "twice" in (saved / "rival.csv").read_text()
    assert plumdp.read_result(saved).comparison["policy"] == "first"


def test_both_policies_are_needed():
    learned = plumdp.learn(small_model(), small_counts(), objectives=[PROPERTY])
    found = plumdp.difference(learned, PROPERTY, "near", "near").with_comparison()
    with pytest.raises(DataError, match="both policies of a comparison"):
        make_witness(learned, replace(found, rival=None))
