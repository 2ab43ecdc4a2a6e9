"""Practice as a policy: what the data do, wherever a policy is given."""

import re

import numpy as np
import pandas as pd
import pytest
from arms import WINS, chances, row_of_arms
from in_format import in_format

import plumdp as pl
from plumdp.base.errors import DataError
from plumdp.data.practice import about_practice, practice_of
from plumdp.decisions import improve

MODEL = row_of_arms(3)
COUNTS = pl.simulate(MODEL, chances(3, b0=0.8, a1=0.45), 300, rng=1, max_steps=4)
SEEN = practice_of(COUNTS.counts, MODEL)
SAID = "practice takes each action as often as these data do in the same state"


@pytest.mark.slow
def test_the_value_of_practice_is_that_of_the_policy_that_the_data_show():
    """Up to the last bit, and with what it assumes beside."""
    asked, given = (pl.certify(MODEL, COUNTS, WINS, policy=policy) for policy in ("practice", SEEN))
    assert (asked.lower, asked.upper) == (given.lower, given.upper)
    (more,) = {*asked.rests_on.assumptions} - {*given.rests_on.assumptions}
    assert more.startswith(SAID)
    assert asked.how.options["practice"]
    assert not given.how.options["practice"]


@pytest.mark.parametrize("pair", [("b", "practice"), ("practice", "b")])
def test_either_of_two_policies_may_be_practice(pair):
    learned = pl.learn(MODEL, COUNTS, objectives=[WINS])
    found = pl.difference(learned, WINS, *pair)
    same = pl.difference(learned, WINS, *(SEEN if each == "practice" else each for each in pair))
    assert (found.lower, found.upper) == (same.lower, same.upper)
    assert any(text.startswith(SAID) for text in found.assumptions)
    assert "practice acts as in the log" in " ".join(str(found).split())
    assert not any(text.startswith(SAID) for text in same.assumptions)
    kept = found.with_comparison()
    assert [
        text for text in (*kept.rests_on.assumptions, *kept.comparison.difference["assuming"]) if text.startswith(SAID)
    ]


def test_a_policy_is_not_compared_with_itself():
    """In all data "b" is taken; where it does not lead, nobody knows what practice does."""
    counts = pl.simulate(MODEL, chances(3, b0=0.8, a1=0.45), 300, rng=1, max_steps=4, policy="b")
    learned = pl.learn(MODEL, counts, objectives=[WINS])
    found = pl.difference(learned, WINS, "b", "practice")
    assert (
        found.headline
        == "Certified: the first policy and the second policy do the same wherever they lead; the difference is 0."
    )
    assert found.verdicts == ("the same within the margin",)
    assert found.with_comparison().decided.startswith("Inconclusive: ")
    assert not pl.difference(learned, WINS, "a", "practice").is_same
    assert f"query           {WINS}" in str(found)  # what was asked
    best = improve(learned, WINS, over=found.first.policy)
    assert not any(np.array_equal(each.policy.choice, found.first.policy.choice) for each in [best.difference.first])


def test_what_practice_does_outside_of_a_closed_table_is_told():
    """Five rows have an action that the first rows had in no state, or in another one."""
    frame = pd.DataFrame({"x": [0] * 8 + [1] * 4, "action": [*"aaaaabbcbbaa"], "next_x": [1] * 8 + [2] * 4})
    first, options = frame.iloc[[0, 8]], {"states": ["x"], "initial": {"x": 0}}
    table = pl.data.model_from_log(first, closed=True, ends=lambda s: s.x == 2, **in_format(**options))
    counts = pl.read_log(table, frame, on_unmatched="report").counts
    (said,) = about_practice(pl.model.Question(table, pl.parse_property("Pmax=? [ F x=2 ]", table)), counts, "practice")
    assert said.endswith("; 5 rows whose state or action the table does not have are no part of it")


def test_nobody_prespecifys_what_the_data_do():
    with pytest.raises(
        DataError, match=r"^prespecified=True: practice is what the data do; leave it out, or name a policy$"
    ):
        pl.certify(MODEL, COUNTS, WINS, policy="practice", prespecified=True)


@pytest.mark.slow
def test_in_a_table_bets_are_placed_on_practice_without_anybodys_word():
    """Bounds on it are no wider than those of the same policy as one of several that bets are placed on."""
    found = pl.certify(MODEL, COUNTS, WINS, policy="practice", confidence_set="table")
    (said,) = (
        text
        for text in found.rests_on.assumptions
        if text.startswith("practice takes each action as often as the first ")
    )
    assert "steps of these data do in the same state" in said
    given = pl.certify(MODEL, COUNTS, WINS, policy=np.array(found.policy.weights), confidence_set="table")
    assert not found.how.not_coupled
    assert found.upper - found.lower <= given.upper - given.lower


def test_sentences_are_in_units_with_digits_that_matter():
    objective = pl.parse_property(WINS, MODEL, unit="wins a day")
    counts = pl.simulate(MODEL, chances(3, b0=0.8, a1=0.45), 2000, rng=1, max_steps=4)
    learned = pl.learn(MODEL, counts, objectives=[objective])
    better = pl.difference(learned, objective, "b", "a", names=("b", "a"))
    sentence = r"Certified: b yields ([\d.]+) to ([\d.]+) wins a day more than a \(confidence 99.9 %\)."
    low, high = map(float, re.fullmatch(sentence, better.headline).groups())
    assert 0 < better.lower - 0.01 < low <= better.lower
    assert better.upper <= high < better.upper + 0.01
    unknown = pl.difference(learned, objective, lambda s: "a" if s.at else "b", "b", names=("one", "other"))
    assert unknown.lower < 0 < unknown.upper
    sentence = r"Inconclusive: one yields between [\d.]+ wins a day less and [\d.]+ wins a day more than other \(.*"
    assert re.fullmatch(sentence, unknown.headline)
    sentence = r"Certified: the recommended policy yields [\d.]+ to [\d.]+ wins a day more than the baseline \(.*"
    assert re.fullmatch(sentence, improve(learned, objective, over="a").headline)
    assert pl.conclude(learned, objective).headline.endswith(" wins a day (confidence 99.9 %).")


def test_probabilities_have_no_unit():
    with pytest.raises(pl.ModelError, match=r"^unit='€': .* is a probability, which has no unit; leave it out$"):
        pl.parse_property('Pmax=? [ F "end" ]', MODEL, unit="€")
