"""``verify`` accepts answers about all policies, which one function bounds, and rejects each change in its layer."""

import shutil
from dataclasses import replace

import pytest
from flint import fmpq
from support.verified_results import (
    answered,
    brackets_of,
    broken_by,
    changed_at,
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


def said(old, new):
    def change(witness, certificate):
        before = certificate["answer"]["sentence"]
        certificate["answer"]["sentence"] = before.replace(old, new)
        assert certificate["answer"]["sentence"] != before

    return change


def at(*path, to):
    """Change one number or text of the part about all policies, or by a function."""

    return lambda witness, certificate: changed_at(witness, *path, to=to)


def of_all(witness):
    return functions_of(witness, -1)


def a_better_action(witness, certificate):
    """One more action, which surely leads to the target."""
    part = witness["all_policies"]
    chain = part["chain"]
    chain["expressions"].append("1")
    part["others"].append([chain["initial"], [0.0, chain["target"][:1], [len(chain["expressions"]) - 1]]])


def all_below_zero(witness, certificate):
    """A function that no action raises, but which is below zero."""
    values = of_all(witness)
    values["functions"] = [[-1.0, *([0.0] * (len(row) - 1))] for row in values["functions"]]


TAMPERING = {
    "another end of the sentence": ("most", "bracket", said("0.70381", "0.703")),
    "a larger number for the least": ("least", "bracket", said("0.158", "0.159")),
    "the other side": ("most", "values", said("more", "less")),
    "more confidence": ("most", "sentence", said("99.9 %", "99.99 %")),
    "a threshold that is not excluded": (
        "most", "sentence", lambda w, c: c["answer"].update(question='P>=0.7 [ F "goal" ]')),
    "another verdict": ("most", "files", lambda w, c: c["answer"].update(verdict="yes")),
    "a part that is missing": ("most", "counts", lambda w, c: w.pop("all_policies")),
    "another target": (
        "most", "counts", lambda w, c: w["all_policies"]["chain"]["avoid"].append(
            w["all_policies"]["chain"]["target"].pop())),
    "another initial state": ("most", "counts", at("all_policies", "chain", "initial", to=1)),
    "an action that does not sum to one": (
        "most", "counts", at("all_policies", "others", 0, 1, 2, to=lambda f: [*f[:-1], f[0]])),
    "an action where runs are over": (
        "most", "counts", lambda w, c: w["all_policies"]["others"][0].__setitem__(0, w["chain"]["target"][0])),
    "a reward of an action": ("most", "counts", at("all_policies", "others", 0, 1, 0, to=1.0)),
    "one minus the value": ("most", "counts", at("all_policies", "chain", "complement", to=True)),
    "a better action": ("most", "values", a_better_action),
    "another action elsewhere": ("most", "values", at("all_policies", "others", 0, 1, 1, to=lambda nodes: nodes[::-1])),
    "a smaller coefficient": ("most", "values", at(of_all, "functions", 0, 0, to=lambda x: x - 1e-3)),
    "no margin": ("most", "values", at(of_all, "margins", 0, to=0.0)),
    "a function below zero": ("most", "values", all_below_zero),
    "too few steps": ("least", "values", at(of_all, "steps", 0, to=0.5)),
    "a larger coefficient for the least": (
        "least", "values", at(of_all, "functions", 0, 0, to=lambda x: x + 1e-3)),
    "no multipliers": ("most", "bracket", at(lambda w: brackets_of(w, -1)[0]["upper"], "cube", to=[0.0, 0.0])),
}  # fmt: skip


@pytest.mark.parametrize("kind", TAMPERING)
def test_tampering_is_rejected_in_its_layer(results, kind):
    name, layer, change = TAMPERING[kind]
    assert broken_by(results / name, change) == layer


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
