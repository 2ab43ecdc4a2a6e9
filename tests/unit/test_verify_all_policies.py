"""``verify`` accepts answers about all policies, which one function bounds, and rejects each change in its layer."""

import shutil
from dataclasses import replace

import pytest
from flint import fmpq
from support.tampering import rejected
from support.verified_results import (
    answered,
    functions_of,
    rewrite,
    small_counts,
    worn,
    worn_counts,
)

from plumdp.base.errors import DataError
from plumdp.decisions import verify
from plumdp_verify.chain import read_chain
from plumdp_verify.claim import check_sentence, read_files
from plumdp_verify.reading import Part, Rejected

pytestmark = pytest.mark.slow

NO, LEAST = 'P>=0.9 [ F "goal" ]', 'P<=0.1 [ F "goal" ]'


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The answer that no policy has as much, and the answer that none has as little."""
    folder = tmp_path_factory.mktemp("all")
    answered(folder / "most", NO)
    answered(folder / "least", LEAST, counts=small_counts(seed=1))
    return folder


@pytest.fixture
def results(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "results")


@pytest.mark.parametrize(
    ("name", "begins"),
    [("most", "No: no policy has more than 0.70381"), ("least", "No: no policy has less than 0.158")],
)
def test_what_was_written_is_verified(saved, name, begins):
    report = verify(saved / name)
    assert report.broken is None, report.broken
    assert report.sentence.startswith(begins)


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ('P>=0.69 [ F "goal" ]', "Not yet known: the policy found has at least 0.68"),
        ('Pmax<=0.9 [ F "goal" ]', "Yes: no policy has more than 0.7"),
        ('P>=0.9 [ G !"goal" ]', "No: no policy has more than 0.84"),
        ('P>=0.9 [ F<=3 "goal" ]', "No: no policy has more than"),
        ("R>=9 [ C{0.9} ]", "No: no policy has more than 4.9"),
    ],
)
def test_other_answers_about_all_policies_are_verified(tmp_path, text, begins):
    answer = answered(tmp_path / "result", text)
    report = verify(tmp_path / "result")
    assert report.broken is None, report.broken
    assert answer.sentence.startswith(begins)
    assert report.sentence == answer.sentence


def of_all(witness):
    return functions_of(witness, -1)


@pytest.mark.parametrize("name", ["most", "least"])
def test_tampering_is_rejected_in_its_layer(saved, name):
    rejected(name, saved / name)


def test_the_value_of_one_policy_excludes_no_threshold_for_all(tmp_path):
    """The policy found has more than 3.57, but what is proved of all policies is 3.55."""
    folder = tmp_path / "result"
    answer = answered(folder, 'R<=3 [ F "end" ]')
    assert answer.limit < 3.57 < answer.certificate.lower
    question = 'R<=3.57 [ F "end" ]'
    rewrite(folder, change_certificate=lambda certificate: certificate["answer"].update(question=question))
    broken = verify(folder).broken
    assert (broken.layer, str(broken)[-40:]) == ("sentence", "verdict does not follow from the bracket")


def test_what_is_printed_of_all_policies_is_what_is_proved(saved):
    """An end that is wider by rounding is not the one that is printed."""
    claim, witness = read_files(saved / "most")
    check_sentence(claim, witness)
    wider = replace(claim, all_policies=(None, claim.all_policies[1] + fmpq(1, 10**13)))
    with pytest.raises(Rejected, match="a smaller upper end"):
        check_sentence(wider, witness)


def test_a_policy_that_never_ends_hides_no_action():
    """The policy stays where it is, so that its own value is zero, but another action reaches the target."""
    chain = {
        "kind": "reach", "complement": False, "discount": "1", "initial": 0, "target": [1], "avoid": [],
        "expressions": ["1", "p", "-p + 1"], "rows": [[0.0, [0], [0]], None], "states": {"x": [0, 1]}, "step": None,
    }  # fmt: skip
    assert read_chain(Part(chain, "chain"), ["p"]).known == {0: 0, 1: 1}
    others = Part([[0, [0.0, [0, 1], [1, 2]]]], "others")
    assert read_chain(Part(chain, "chain"), ["p"], others).known == {1: 1}
    with pytest.raises(Rejected, match="nothing can be done"):
        read_chain(Part(chain, "chain"), ["p"], Part([[1, [0.0, [0], [0]]]], "others"))


def test_averages_of_all_policies_are_refused_by_name(tmp_path):
    with pytest.raises(DataError, match="verify does not know averages of all policies"):
        answered(tmp_path / "result", "R>=2 [ LRA ]", model=worn(), counts=worn_counts())


def test_runs_need_not_end_if_nothing_is_below_zero(results):
    """Then numbers of steps say nothing. For the least value of all policies, they must be right."""
    for name, layer in (("most", None), ("least", "values")):
        rewrite(results / name, lambda witness: of_all(witness).update(steps=[0.0] * 3))
        broken = verify(results / name).broken
        assert (None if broken is None else broken.layer) == layer, broken
