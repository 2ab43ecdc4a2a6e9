"""Properties and numbers in plain words: they say what the parser reads, and bounds stay bounds."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from support.refusals import rows

import plumdp as pl
from plumdp.model.language.threshold import parse_threshold
from plumdp.model.language.words import threshold_in_words, value_in_words
from plumdp.result.printing import plain_bounds

WORDS = {
    'Pmin=? [ F "failed" ]': "the probability that the pump ever reaches “failed”",
    '"name": Pmax=? [ !"failed" U "season_over" ];': "the probability that the pump ever reaches “season over” "
    "without passing “failed” on the way",
    'Pmax=? [ !(x=1 | "failed") U<=5 (x=3) ]': "the probability that the pump reaches a state with x = 3 within 5 "
    "steps without passing a state with x = 1 or “failed” on the way",
    'Pmax=? [ !"failed" & x<3 U x=3 ]': "the probability that the pump ever reaches a state with x = 3, and until then "
    "stays in a state with not “failed” and x < 3",
    "Pmax=? [ true U x=3 ]": "the probability that the pump ever reaches a state with x = 3",
    'Pmax=? [ X "failed" ]': "the probability that the first step of the pump leads to “failed”",
    'Pmin=? [ G !"failed" ]': "the probability that the pump always stays in a state with not “failed”",
    "Pmaxmin=? [ (G<=1000 x<=2) ]": "the probability that the pump stays in a state with x ≤ 2 for 1,000 steps",
    "Pmax=? [ G[2,5] x<3 ]": "the probability that the pump is in a state with x < 3 at every step from 2 to 5",
    'R{"unit_cost"}min=? [ F x=3 ]': "the expected “unit cost” until the pump reaches a state with x = 3",
    "Rmax=? [ C ]": "the expected total reward",
    'R{"unit_cost"}min=? [ LRA ]': "the average “unit cost” of a step in the long run",
    "Smax=? [ x>0 ]": "the share of time that the pump spends in a state with x > 0 in the long run",
    "Rmax=? [ C<=9 ]": "the expected reward over the first 9 steps",
    "Rmax=? [ C<10 ]": "the expected reward over the first 9 steps",
    "Rmax=? [ C{0.9} ]": "the expected total reward, where each step counts 0.9 times as much as the one before",
    "Rmax=? [ Cdiscount=0.9 ]": "the expected total reward, where each step counts 0.9 times as much as the one before",
    "Rmax=? [ C<=9 discount=0.9 ]": "the expected reward over the first 9 steps, where each step counts 0.9 times as "
    "much as the one before",
}


@pytest.fixture(scope="module")
def model():
    def step(state):
        return {"go": [(1, state._replace(x=min(state.x + 1, 3)))], "stay": [(1, state)]}

    labels = {"failed": lambda state: state.x == 2, "season_over": lambda state: state.x == 3}
    rewards = {"unit_cost": lambda state: 1}
    return pl.explore(step, {"x": 0}, space=pl.ParameterSpace.unit(), labels=labels, rewards=rewards)


@pytest.mark.parametrize(("text", "words"), rows("words:missions"))
def test_missions_and_budgets_have_words(text, words):
    assert value_in_words(text) == f"the probability that {words}"


@pytest.mark.parametrize(("text", "words"), rows("words:other_missions"))
def test_missions_of_other_kinds_have_words(text, words):
    assert value_in_words(text) == words


@pytest.mark.parametrize("text", WORDS)
def test_every_kind_of_question_has_words_and_is_a_property(model, text):
    assert value_in_words(text, system="the pump") == WORDS[text]
    assert pl.parse_property(text, model)


@pytest.mark.parametrize(("bound", "words", "steps"), rows("words:steps"))
def test_bounds_on_steps_are_those_that_the_parser_reads(model, bound, words, steps):
    text = f'Pmax=? [ F{bound} "failed" ]'
    assert pl.parse_property(text, model).steps == tuple(steps)
    assert value_in_words(text) == f"the probability that the system {words.format('“failed”')}"


@pytest.mark.parametrize(
    "text", ["", "Pmax=? [", "[ F x ]", "<b>&", "P [ F ]", "Tmax=? [ x=1 ]", "Pmax=? [ x=1 ]", '"']
)
def test_what_is_not_a_property_has_no_words(text):
    assert value_in_words(text) == threshold_in_words(text) == ""


@pytest.mark.parametrize(("text", "words"), rows("words:thresholds"))
def test_a_threshold_asks_for_one_policy_or_about_all_as_the_parser_reads_it(model, text, words):
    text = f"{text} [ F x=3 ]"
    value = "the probability that the system ever reaches a state with x = 3"
    assert threshold_in_words(text) == words.format(value)
    assert parse_threshold(text, model).is_negated == ("whatever the policy" in words)
    assert threshold_in_words("Pmax=? [ F x=3 ]") == ""


# numbers in sentences

UNITS = {"%": 100, "in a million": 10**6}


def read_back(text):
    """Return the number that a text says, exactly."""
    number, _, unit = text.replace(",", "").partition(" ")
    if " 10" in unit:
        power = int(unit.partition(" 10")[2].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
        return Fraction(number) * Fraction(10) ** (-power if unit.startswith("in") else power)
    return Fraction(number) / UNITS.get(unit, 1)


@pytest.mark.parametrize("is_probability", [True, False])
def test_bounds_in_sentences_are_bounds_and_close_to_the_exact_ones(is_probability):
    rng = np.random.default_rng(1)
    for exponent in rng.uniform(-15, 0 if is_probability else 15, 300):
        lower = float(10**exponent)
        upper = min(lower * (1 + 10 ** rng.uniform(-9, 1)), 1.0 if is_probability else inf)
        low, high = map(read_back, plain_bounds(lower, upper, is_probability=is_probability))
        assert low <= Fraction(lower) <= Fraction(upper) <= high
        assert high - low <= 2 * Fraction(upper - lower) + Fraction(upper) / 5


def test_certainty_and_what_is_close_to_it_are_told_apart():
    assert plain_bounds(1 - 1e-9, 1.0, is_probability=True) == ("99.9999999 %", "100 %")
    assert plain_bounds(0.0, inf, is_probability=False) == ("0", "infinite")
