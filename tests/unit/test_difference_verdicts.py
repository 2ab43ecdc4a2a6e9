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
from plumdp.decisions import verify
from plumdp.result.headlines import plain_margin, standings

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
    "the middle of both ends": lambda low, high, margin, *, direction: standings(
        (low + high) / 2, (low + high) / 2, margin, direction=direction
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
        sentence, verdicts = found.headline, found.verdicts
        assert verdicts == proved(lower, upper, margin, direction)
        assert sentence.endswith(" (confidence 95 %).")
        assert sentence.startswith("Inconclusive") == (verdicts == ("inconclusive",))
        is_within = "within" in sentence or "by more than" in sentence
        assert is_within == bool(
            {"the same within the margin", verdicts[0]} & {*verdicts[:2]} - {"better", "worse", "inconclusive"}
        )
        if verdicts[0] in ("better", "worse"):
            better, other = ("A", "B") if verdicts[0] == "better" else ("B", "A")
            side = "higher" if direction == "max" else "lower"
            assert re.search(rf"{side} under {better} than under {other}\b", sentence), sentence


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


SAID = {  # of a difference of about 0.5 to 0.53, wanted large: difference and margin, and what verify says of them
    ((0.375, 0.625), 0.7): '"A" is better than "B", but only within 0.7: under "A"',
    ((0.375, 0.625), 0.52): '"A" is better than "B": under "A" the value is 37.5 to 62.5 percentage points larger than',
    (
        (-0.375, 0.625),
        0.7,
    ): '"A" and "B" are the same within 0.7: under "A" the value is between 37.5',
    ((-0.375, 0.75), 0.7): '"A" is not worse than "B" by more than 0.7: under "A"',
    ((-0.375, 0.625), 0.3): 'Inconclusive: under "A"',
    ((-0.6, -0.5), 0.3): "bracket",
    ((0.375, 0.625), -0.6): "files",
    ((0.375, 0.625), "nothing"): "files",
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
        assert '"A" is better than "B", but only within 100: ' in report.sentence


@pytest.mark.parametrize(("change", "says"), SAID.items())
def test_what_is_said_of_a_margin_follows_from_it_or_is_rejected(saved, tmp_path, change, says):
    result = shutil.copytree(saved[PROPERTY], tmp_path / "result")
    told = {"difference": list(change[0]), "margin": change[1]}
    rewrite(result, change_certificate=lambda certificate: certificate["comparison"].update(told))
    report = verify(result)
    assert report.sentence.startswith(says) if report.broken is None else report.broken.layer == says


def test_the_margin_of_a_cost_counts_on_the_side_of_larger_costs(saved, tmp_path):
    """A costs less than B, or at most 1 more than B."""
    result = shutil.copytree(saved[COST], tmp_path / "result")
    lower, upper = json.loads((result / "certificate.json").read_text())["comparison"]["difference"]
    assert upper < 0
    told = {"difference": [lower, 1.0], "margin": 1.5}
    rewrite(result, change_certificate=lambda certificate: certificate["comparison"].update(told))
    assert verify(result).sentence.startswith(
        '"A" is not worse than "B" by more than 1.5: under "A" the value is between '
    )
