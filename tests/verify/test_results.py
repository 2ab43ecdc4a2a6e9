"""``verify`` accepts results of every kind as they were written, and rejects each kind of change in its layer."""

from functools import partial

import pytest
from shorthand import altered
from support.results import copy_of, files_of, result_of
from support.tampering import ANSWER, rejected
from support.verified_results import (
    PROPERTY,
    answered,
    functions_of,
    rehash,
    rewrite,
    small_counts,
    small_model,
    witnessed,
    worn,
    worn_counts,
)

import plumdp
from plumdp.base.errors import DataError
from plumdp.decisions import make_witness, verify

pytestmark = pytest.mark.slow

WORN = {"model": worn(), "counts": worn_counts()}
COUNTS_TRUSTED = "that the counts are those of the data"
SAID = {  # how the sentence of a result begins, and what it is said to trust
    "chance": ("Pmax=? [", COUNTS_TRUSTED),
    "cost": ("Rmin=? [", COUNTS_TRUSTED),
    "once": ("", "no run tries an event twice"),
    "walk": ("", COUNTS_TRUSTED),
    "fixed": ("", COUNTS_TRUSTED),
    "twins": ("", COUNTS_TRUSTED),
    "rewards": ("", "the sums of rewards: that values lie within their ranges"),
    "compared": (
        "the first policy is better than the second policy: under the first policy the value is 50",
        COUNTS_TRUSTED,
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_results_as_they_were_written_are_verified_in_all_layers(name):
    report, (begins, *trusted) = verify(result_of(name)), SAID[name]
    assert report.broken is None, report.broken
    assert report.passed == ["files", "budget", "counts", "bets", "set", "values", "bracket", "sentence"]
    assert report.sentence.startswith(begins)
    assert all(any(words in text for text in report.trusted) for words in trusted)
    assert report.trusted[-1] in str(report)
    assert any("no run tries an event twice" in text for text in report.trusted) == (name == "once")


TAMPERED = {  # tables of tests/texts/tampering.toml, with the result that is changed
    "values": "chance",
    "same_policies": "the same",
    "comparison": "compared",
} | {name: name for name in ("cost", "rewards", "once", "walk", "fixed", "twins", "complements")}


@pytest.mark.parametrize("table", TAMPERED)
def test_tampering_is_rejected_in_its_layer(table):
    assumes_most = {"guarantee": "finite-sample, fixed N"} if table in ("once", "walk", "fixed", "twins") else None
    rejected(table, result_of(TAMPERED[table]), assumes_most)


def kind(text, **options):
    return pytest.param(partial(witnessed, text=text, **options), text, id=text)


# Values


def claimed(folder, **numbers):
    """Let witness and certificate claim other numbers."""
    rewrite(folder, lambda witness: witness["claim"].update(numbers), lambda certificate: certificate.update(numbers))


def test_an_answer_that_is_right_is_verified(tmp_path):
    folder = copy_of("chance", tmp_path)
    rewrite(folder, change_certificate=lambda certificate: certificate.update(answer=ANSWER))
    words = "the recommended policy has at least 68.2 % and at most 70.4 %"
    assert verify(folder).sentence == f'Yes (confidence 99.9 %): {words}; Pmax>=0.6 [ F "goal" ] was asked.'


@pytest.mark.parametrize("name", ["certificate.json", "policy.csv", "witness.json"])
def test_a_file_that_was_changed_is_rejected_by_its_hash(tmp_path, name):
    folder = copy_of("chance", tmp_path)
    (folder / name).write_text((folder / name).read_text().replace("2", "3", 1))
    assert verify(folder).broken.layer == "files"
    assert f"{name} was changed" in str(verify(folder).broken)


def test_files_that_are_missing_or_not_listed_are_rejected(tmp_path):
    folder = copy_of("chance", tmp_path)
    (folder / "more.txt").write_text("")
    assert str(verify(folder).broken) == "the certificate does not list more.txt"
    (folder / "more.txt").unlink()
    (folder / "policy.csv").unlink()
    assert str(verify(folder).broken) == "policy.csv is listed, but not there"


def test_a_target_that_is_surely_reached_has_the_value_one_exactly(tmp_path):
    """The chain has cycles, and one step keeps the value, so that no function is strictly below it."""
    witnessed(tmp_path / "result", 'Pmax=? [ F "down" ]', **WORN)
    claimed(tmp_path / "result", lower=1.0)
    assert verify(tmp_path / "result").broken is None
    rewrite(tmp_path / "result", lambda witness: functions_of(witness)["functions"][0].__setitem__(0, 1 + 2**-50))
    assert verify(tmp_path / "result").broken.layer == "values"


def test_a_certificate_of_an_objective_that_was_not_prespecified_is_proved_by_the_same_set(tmp_path):
    learned = plumdp.learn(small_model(), small_counts(), objectives=["Rmax=? [ LRA ]"])
    certificate = plumdp.conclude(learned, PROPERTY)
    plumdp.write_result(certificate, tmp_path / "result", witness=make_witness(learned, certificate))
    assert verify(tmp_path / "result").broken is None
    claimed(tmp_path / "result", lower=certificate.lower + 1e-3)
    assert verify(tmp_path / "result").broken.layer == "bracket"


def test_certificates_of_other_data_or_of_objectives_without_a_text_are_refused():
    learned = plumdp.learn(small_model(), small_counts(), objectives=[])
    other = plumdp.learn(small_model(), small_counts(runs=100), objectives=[PROPERTY])
    is_goal = small_model().graph.states["x"] == 4
    nameless = plumdp.model.Reach(is_goal, ~is_goal & is_goal, "max")
    for certificate in (plumdp.conclude(other, PROPERTY), plumdp.conclude(learned, nameless)):
        with pytest.raises(DataError, match="make_witness takes what learn returned"):
            make_witness(learned, certificate)


def test_numbers_that_were_fixed_need_a_certificate_that_says_so(tmp_path):
    for name in ("once", "fixed"):
        folder = copy_of(name, tmp_path / name)
        certificate = files_of(folder)[1]
        assert certificate["guarantee"] == "finite-sample, fixed N"
        rehash(folder, certificate | {"guarantee": "finite-sample, planned"})
        assert verify(folder).broken.layer == "budget"


# Comparisons


def told(folder, **content):
    """Let a certificate tell something else of a comparison, and return the first step that is broken, if any."""
    rewrite(folder, change_certificate=lambda certificate: certificate["comparison"].update(content))
    return verify(folder).broken


def test_a_wider_bracket_is_verified_and_says_less(tmp_path):
    """The ends hold, and no policy is called better by at least less than nothing."""
    folder = copy_of("compared", tmp_path)
    assert told(folder, difference=[-0.125, 0.625]) is None
    words = "Inconclusive: under the first policy the value is between 12.5 percentage points smaller and 62.5"
    assert verify(folder).sentence.startswith(words)


def test_policies_that_do_the_same_differ_by_nothing_exactly():
    """Margins would be far wider than the claim, but both chains are one."""
    low, high = files_of(result_of("the same"))[1]["comparison"]["difference"]
    assert -1e-100 < low <= 0 <= high < 1e-100


def test_the_other_policy_without_a_comparison_is_rejected(tmp_path):
    folder = copy_of("compared", tmp_path)
    rewrite(folder, change_certificate=lambda certificate: certificate.pop("comparison"))
    assert verify(folder).broken.layer == "files"


def test_folders_keep_the_other_policy():
    policy, rival = ((result_of("compared") / name).read_text() for name in ("policy.csv", "rival.csv"))
    assert rival.splitlines()[0] == policy.splitlines()[0]
    assert "twice" in rival
    assert plumdp.read_result(result_of("compared")).comparison.difference["policy"] == "first"


def test_both_policies_are_needed():
    learned = plumdp.learn(small_model(), small_counts(), objectives=[PROPERTY])
    found = plumdp.difference(learned, PROPERTY, "near", "near").with_comparison()
    with pytest.raises(DataError, match="both policies of a comparison"):
        make_witness(learned, altered(found, rival=None))


def test_answers_about_all_policies_averages_and_tolerances_are_refused_by_name(tmp_path):
    with pytest.raises(DataError, match="verify does not know a model tolerance"):
        witnessed(tmp_path / "result", model_tolerance=0.01)
    with pytest.raises(DataError, match="verify does not know answers about all policies"):
        answered(tmp_path / "result", 'P>=0.9 [ F "goal" ]')
    with pytest.raises(DataError, match="verify does not know averages in the long run"):
        witnessed(tmp_path / "result", "Rmax=? [ LRA ]", **WORN)
