"""What bounds on a difference prove, given a margin: all of it, nothing else, and in words that ``verify`` checks."""

import json
import re
import shutil
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from shorthand import altered
from support.verified_results import COST, PROPERTY, compared, rewrite, small_counts, small_model

import plumdp as pl
from plumdp.base.errors import DataError
from plumdp.certifying.difference import plain_margin, standings
from plumdp.decisions import verify

UNIT = 0.125  # exact as a float, and so are its multiples
LATTICE = [
    (low * UNIT, high * UNIT, margin * UNIT, direction)
    for low in range(-4, 5)
    for high in range(low, 5)
    for margin in range(4)
    for direction in ("max", "min")
]


def proved(lower, upper, margin, direction):
    """Return what is so for every difference between the bounds, in steps of half the lattice."""
    steps = range(round(2 * lower / UNIT), round(2 * upper / UNIT) + 1)
    gains = [step * UNIT / 2 * (1 if direction == "max" else -1) for step in steps]
    so = {
        "better": all(gain > 0 for gain in gains),
        "worse": all(gain < 0 for gain in gains),
        "the same within the margin": all(abs(gain) < margin for gain in gains),
        "not worse by more than the margin": margin > 0 and all(gain > -margin for gain in gains),
    }
    return tuple(name for name, holds in so.items() if holds) or ("inconclusive",)


def wrong(verdicts):
    """Return the places of the lattice at which something else is said than what is proved."""
    return [
        (lower, upper, margin, direction)
        for lower, upper, margin, direction in LATTICE
        if verdicts(lower, upper, margin, direction=direction) != proved(lower, upper, margin, direction)
    ]


def test_all_that_is_proved_is_said_and_nothing_else():
    assert wrong(standings) == []
    assert {len(standings(*place[:3], direction=place[3])) for place in LATTICE} == {1, 2, 3}


PLANTED = {
    "costs are wanted": lambda low, high, margin, *, direction: standings(low, high, margin, direction="max"),
    "one end for both": lambda low, high, margin, *, direction: standings(low, low, margin, direction=direction),
    "margins on both sides of zero": lambda low, high, margin, *, direction: standings(
        low + margin, high + margin, 0, direction=direction
    ),
    "no margin": lambda low, high, margin, *, direction: standings(low, high, 0, direction=direction),
    "twice the margin": lambda low, high, margin, *, direction: standings(low, high, 2 * margin, direction=direction),
}


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_in_verdicts_is_found(error):
    assert wrong(PLANTED[error])


@pytest.fixture(scope="module")
def known():
    learned = pl.learn(small_model(), small_counts(), objectives=[PROPERTY, COST], confidence=0.95)
    return {text: pl.difference(learned, text, "near", "twice", names=("A", "B")) for text in (PROPERTY, COST)}


def numbers(sentence):
    return [Fraction(each) for each in re.findall(r"-?\d+(?:\.\d+)?", sentence.replace(" %", ""))]


@pytest.mark.slow
def test_the_words_say_what_is_proved_and_the_printed_bracket_is_that_of_the_confidence(known):
    """Whatever the margin, the ends that are printed are those at 95 %: no verdict is given more of the error."""
    for (lower, upper, margin, direction), text in product(LATTICE, known):
        if known[text].first.claim.direction != direction:
            continue
        found = replace(known[text], lower=lower, upper=upper, margin=margin)
        sentence, verdicts = found.comparison["sentence"], found.verdicts
        assert sentence.endswith(", with confidence 95 %.")
        assert ("is better" in sentence) == ("better" in verdicts or "worse" in verdicts)
        assert sentence.startswith("A is better") == ("better" in verdicts)
        assert sentence.startswith("Inconclusive") == (verdicts == ("inconclusive",))
        said = numbers(sentence)
        is_within = "within" in sentence or "by more than" in sentence
        assert is_within == (len(said) == 4)
        assert is_within == bool(
            {"the same within the margin", verdicts[0]} & {*verdicts[:2]} - {"better", "worse", "inconclusive"}
        )
        ends = {abs(Fraction(lower)), abs(Fraction(upper))}
        assert {abs(each) for each in said[-3:-1]} == ends
        assert not is_within or said[0] == Fraction(margin)


def test_a_margin_is_printed_with_all_of_its_digits_and_must_be_a_size(known):
    assert [plain_margin(each) for each in (0.1, 3, 1e-7, 0.12345678, 250.0)] == [
        "0.1", "3", "0.0000001", "0.12345678", "250",
    ]  # fmt: skip
    learned = pl.learn(small_model(), small_counts(), objectives=[PROPERTY])
    for margin in (-0.1, float("nan"), float("inf")):
        with pytest.raises(DataError, match="margin="):
            pl.difference(learned, PROPERTY, "near", "twice", margin=margin)


def test_nothing_is_said_of_policies_if_the_data_contradict_the_model(known):
    found = known[PROPERTY]
    contradicted = replace(found, first=altered(found.first, status="model rejected"), margin=10.0)
    assert contradicted.verdicts == ("inconclusive",)


def test_json_has_the_margin_and_all_verdicts(known):
    content = json.loads(json.dumps(replace(known[PROPERTY], margin=5.0).to_dict()))
    assert content["margin"] == 5
    assert content["verdicts"] == ["better", "the same within the margin", "not worse by more than the margin"]


SAID = {  # of a difference of about 0.5 to 0.53, wanted large
    "A is better, but only within the margin of 0.6: its value is larger by at least 0.4 and at most 0.6": True,
    "A is better, but only within the margin of 0.52: its value is larger by at least 0.4 and at most 0.6": False,
    "A and B are the same within 0.6: the value of A less that of B lies between 0.4 and 0.6": True,
    "A and B are the same within 0.5: the value of A less that of B lies between 0.4 and 0.6": False,
    "A is not worse than B by more than 0.01: the value of A less that of B lies between 0.4 and 0.6": True,
    "A is not worse than B by more than -0.6: the value of A less that of B lies between 0.4 and 0.6": False,
    "B is not worse than A by more than 0.6: the value of A less that of B lies between 0.4 and 0.6": False,
    "A is not worse than B by more than nothing: the value of A less that of B lies between 0.4 and 0.6": False,
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folders of comparisons of a value that is wanted large, and of a cost."""
    folders = {}
    for text in (PROPERTY, COST):
        folders[text] = tmp_path_factory.mktemp("compared") / "result"
        compared(folders[text], text=text, names=("A", "B"), margin=100.0)
    return folders


@pytest.mark.slow
def test_a_comparison_with_a_margin_is_verified(saved):
    for folder in saved.values():
        report = verify(folder)
        assert report.broken is None, report.broken
        assert '"A" is better, but only within the margin of 100: its value is' in report.sentence


@pytest.mark.parametrize("sentence", SAID)
def test_what_is_said_of_a_margin_follows_or_is_rejected(saved, tmp_path, sentence):
    result = shutil.copytree(saved[PROPERTY], tmp_path / "result")
    rewrite(
        result,
        change_certificate=lambda certificate: certificate["comparison"].update(
            sentence=f"{sentence}, with confidence 99.9 %."
        ),
    )
    broken = verify(result).broken
    assert (broken is None) == SAID[sentence], broken
    assert broken is None or broken.layer == "sentence"


@pytest.mark.parametrize(("margin", "holds"), [(0.001, True), (-100, False)])
def test_the_margin_of_a_cost_counts_on_the_side_of_larger_costs(saved, tmp_path, margin, holds):
    """A costs less than B, so that A is not worse."""
    result = shutil.copytree(saved[COST], tmp_path / "result")

    def change(certificate):
        told = certificate["comparison"]
        lower, upper = told["difference"]
        assert upper < 0
        told["sentence"] = (
            f"A is not worse than B by more than {margin}: the value of A less that of B lies between "
            f"{lower - 1:.3f} and {upper + 1:.3f}, with confidence 99.9 %."
        )

    rewrite(result, change_certificate=change)
    assert (verify(result).broken is None) == holds
