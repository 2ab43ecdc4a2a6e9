"""``verify`` accepts comparisons of two policies as they were written, and rejects each change in its layer."""

import json
import shutil
from copy import deepcopy
from dataclasses import replace

import pytest
from support.verified_results import (
    COST,
    PROPERTY,
    broken_by,
    changed_at,
    compared,
    cut_end,
    functions_of,
    pieces_of,
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


def told(**content):
    """Change what the certificate says of the comparison."""
    return lambda witness, certificate: certificate["comparison"].update(content)


def said(old, new):
    """Change the sentence of the comparison."""

    def change(witness, certificate):
        before = certificate["comparison"]["sentence"]
        certificate["comparison"]["sentence"] = before.replace(old, new)
        assert certificate["comparison"]["sentence"] != before

    return change


def at(*path, to):
    """Change one number or text of the other policy's part of the witness, or by a function."""

    return lambda witness, certificate: changed_at(witness, *path, to=to)


def other_functions(witness):
    return functions_of(witness, 1)


def moved(end, by):
    def change(witness, certificate):
        certificate["comparison"]["difference"][end] += by

    return change


def exchanged(*names):
    """Exchange parts of both policies in the witness."""

    def change(witness, certificate):
        if "chain" in names:
            other = witness["comparison"]
            witness["chain"], other["chain"] = other["chain"], witness["chain"]
        for piece in pieces_of(witness):
            for name in {"values", "brackets"} & set(names) & set(piece):
                piece[name][:2] = piece[name][1::-1]

    return change


def opposite(witness, certificate):
    """Say that the second policy is the better one, with numbers and bounds that fit."""
    comparison = certificate["comparison"]
    comparison["sentence"] = comparison["sentence"].replace("The first", "The second")
    low, high = comparison["difference"]
    comparison["difference"] = [-high, -low]


def both_from_another_state(witness, certificate):
    """Take the value of another state in place of the initial one of the other chain."""
    chain = witness["comparison"]["chain"]
    chain["initial"] = next(i for i, row in enumerate(chain["rows"]) if row is not None and i != chain["initial"])


def another_target(witness, certificate):
    """The other policy is asked to reach the states that it should avoid."""
    chain = witness["comparison"]["chain"]
    chain["target"], chain["avoid"] = chain["avoid"], chain["target"]


def wide_margins(witness, certificate):
    """Functions of the other policy that hold, but are too far apart; its own bracket needs no proof."""
    values = other_functions(witness)
    values["margins"] = [0.05 / max(values["margins"]) * margin for margin in values["margins"]]
    certificate["comparison"]["second"] = [0.0, 1.0]


def same_chain(witness, certificate):
    """Pretend that the other policy does the same."""
    witness["comparison"]["chain"] = deepcopy(witness["chain"])


TAMPERING = {
    "a part that is missing": ("files", lambda w, c: c["comparison"].pop("difference")),
    "which policy is not said": ("files", lambda w, c: c["comparison"].pop("policy")),
    "the other policy as the own": ("files", told(policy="second")),
    "a third policy": ("files", told(policy="third")),
    "other bounds of the own policy": ("files", told(first=[0.69, 0.7])),
    "ends in the wrong order": ("files", told(difference=[0.6, 0.5])),
    "an end that is not a number": ("files", told(difference=["a lot", 0.6])),
    "one name for both": ("files", told(names=["it", "it"])),
    "a sentence in a name": ("files", told(names=["x is best with confidence 100 %. y", "z"])),
    "a line in a name": ("files", told(names=["a\nb", "z"])),
    "a comparison without a witness": ("counts", lambda w, c: w.pop("comparison")),
    "a witness of no comparison": ("files", lambda w, c: c.pop("comparison")),
    "another probability in the other chain": ("counts", at("comparison", "chain", "expressions", 0, to="1/2*p")),
    "another kind of value": ("counts", at("comparison", "chain", "kind", to="total")),
    "one minus the other value": ("counts", at("comparison", "chain", "complement", to=True)),
    "another initial state": ("counts", both_from_another_state),
    "another target": ("counts", another_target),
    "states without values": ("counts", at("comparison", "chain", "states", "x", to=[])),
    "an entry of the other chain": ("values", at("comparison", "chain", "rows", 0, 1, to=lambda nodes: nodes[::-1])),
    "a coefficient of the other function": ("values", at(other_functions, "functions", 0, 0, to=lambda x: x + 1e-3)),
    "a slope of the other function": ("values", at(other_functions, "functions", 0, 1, to=lambda x: x + 1e-3)),
    "no margin of the other function": ("values", at(other_functions, "margins", 0, to=0.0)),
    "a negative margin": ("values", at(other_functions, "margins", 0, to=-1e-9)),
    "too few steps of the other chain": ("values", at(other_functions, "steps", 0, to=0.5)),
    "chains exchanged": ("values", exchanged("chain")),
    "the chain of the own policy": ("values", same_chain),
    "functions exchanged": ("values", exchanged("values")),
    "chains and functions exchanged": ("bracket", exchanged("chain", "values")),
    "both sides exchanged": ("bracket", exchanged("chain", "values", "brackets")),
    "a larger lower end of the difference": ("bracket", moved(0, 1e-3)),
    "a smaller upper end of the difference": ("bracket", moved(1, -1e-3)),
    "a narrower bracket of the other policy": ("bracket", lambda w, c: c["comparison"].update(second=[0.16, 0.18])),
    "margins of the other policy that are too wide": ("bracket", wide_margins),
    "no multipliers of the difference": ("bracket", at(cut_end("lower", 2), "multipliers", to=[])),
    "a negative multiplier": ("bracket", at(cut_end("upper", 2), "cube", 0, to=-1.0)),
    "the difference with the opposite sign": ("bracket", opposite),
    "the wrong policy is called better": ("sentence", said("The first policy", "The second policy")),
    "the wrong side is called better": ("sentence", said("larger", "smaller")),
    "a larger number": ("sentence", said("at least 0.50", "at least 0.51")),
    "a smaller number": ("sentence", said("at most 0.53", "at most 0.52")),
    "more confidence": ("sentence", said("99.9 %", "99.99 %")),
    "another name": ("sentence", said("The first policy", "The best policy")),
    "something else": ("sentence", said("its value is larger", "its value and its cost are larger")),
    "another order of the policies": (
        "sentence",
        told(sentence="Not yet known: the value of the second policy less that of the first policy lies between "
             "-0.6 and 0.6, with confidence 99.9 %."),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", TAMPERING)
def test_tampering_is_rejected_in_its_layer(result, kind):
    layer, change = TAMPERING[kind]
    assert broken_by(result, change) == layer


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
    assert verify(tmp_path / "result").broken is None
    rewrite(
        tmp_path / "result",
        change_certificate=lambda certificate: certificate["comparison"].update(difference=[1e-9, 1e-8]),
    )
    assert verify(tmp_path / "result").broken.layer == "bracket"


def test_false_differences_of_one_minus_a_value_are_rejected(tmp_path):
    """Such values have the opposite sign in a difference of functions."""
    folder = tmp_path / "result"
    compared(folder, "twice", "near", NEVER)
    for change in (opposite, moved(0, 2e-3), moved(1, -2e-3)):
        before = (folder / "certificate.json").read_text()
        assert verify(folder).broken is None
        rewrite(folder, change_certificate=lambda certificate, change=change: change(None, certificate))
        assert verify(folder).broken.layer == "bracket"
        (folder / "certificate.json").write_text(before)


def test_folders_keep_the_other_policy(saved):
    assert (saved / "rival.csv").read_text().splitlines()[0] == (saved / "policy.csv").read_text().splitlines()[0]
    assert "twice" in (saved / "rival.csv").read_text()
    assert plumdp.read_result(saved).comparison["policy"] == "first"


def test_both_policies_are_needed():
    learned = plumdp.learn(small_model(), small_counts(), objectives=[PROPERTY])
    found = plumdp.difference(learned, PROPERTY, "near", "near").with_comparison()
    with pytest.raises(DataError, match="both policies of a comparison"):
        make_witness(learned, replace(found, rival=None))
