"""Several objectives from one set: they divide the error of the half-spaces, hold jointly, and say so."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from constraints import half_spaces_of
from refusals import refused
from row_models import listed
from shorthand import certify_all

import plumdp as pl
from plumdp.confidence.likelihood import likelihood_set
from plumdp.learning.learned import value_directions
from plumdp.model.question import ask

P, Q = pl.parameters("p", "q")
POINT = {"p": Fraction(1, 2), "q": Fraction(1, 3)}
TEXTS = ['Pmax=? [ F "both" ]', 'Pmin=? [ F "one" ]', 'R{"throws"}max=? [ F "end" ]']


def coins(after_q=Q):
    """Return a model of two throws: p and then q, or q and then another coin. The goal is to win both."""
    rows = {0: {"go": [(P, 1), (1 - P, 5)], "other": [(Q, 2), (1 - Q, 5)]}, 1: {"go": [(Q, 3), (1 - Q, 4)]}}
    labels = {"both": 3, "one": 4, "end": (3, 4, 5)}
    rows |= {2: {"go": [(after_q, 3), (1 - after_q, 4)]}}
    return listed(rows, "p q", labels=labels, rewards={"throws": lambda s: s.at < 3})


MODEL = coins()
COUNTS = pl.simulate(MODEL, POINT, 4000, rng=1, max_steps=2)


@pytest.mark.slow
def test_all_certificates_are_those_of_one_learn_in_the_order_of_the_objectives():
    found = certify_all(MODEL, COUNTS, TEXTS, confidence=0.99)
    learned = pl.learn(MODEL, COUNTS, confidence=0.99, objectives=TEXTS)
    assert [each.claim.objective for each in found] == TEXTS
    for each, text in zip(found, TEXTS, strict=True):
        alone = pl.conclude(learned, text)
        assert (each.lower, each.upper) == (alone.lower, alone.upper)
        assert each.status == "certified"
        assert each.rests_on.jointly == alone.rests_on.jointly == tuple(other for other in TEXTS if other != text)
        assert each.rests_on.parameters == found[0].rests_on.parameters  # one region


@pytest.mark.slow
def test_the_true_value_of_each_policy_lies_in_its_bracket():
    for each in certify_all(MODEL, COUNTS, TEXTS):
        objective = pl.parse_property(each.claim.objective, MODEL)
        worth = pl.stages.evaluate(pl.stages.instantiate(MODEL, POINT), each.policy, objective, precision=1e-9)
        assert each.lower <= worth.upper[0]
        assert worth.lower[0] <= each.upper


@pytest.mark.slow
def test_each_objective_has_an_equal_part_of_the_error_of_half_spaces():
    """Half-spaces of three objectives at an error are those of each alone at a third of it: bets are the same."""
    confidence = 0.99
    learned = pl.learn(MODEL, COUNTS, confidence=confidence, objectives=TEXTS)
    found = half_spaces_of(learned.bounds)
    error, sides = learned.budget.error_of_set(1 - confidence), found.bets.sides
    assert {(side.direction, side.sign) for side in sides} == {*product(range(3), (1, -1))}
    for number, text in enumerate(TEXTS):
        same = value_directions([ask(text, MODEL)], {})
        alone = half_spaces_of(likelihood_set(MODEL, COUNTS, error=error / 3, directions=same))
        its = [i for i, side in enumerate(sides) if side.direction == number]
        assert found.rows[its] == pytest.approx(alone.rows, rel=1e-9)
        assert found.offsets[its] == pytest.approx(alone.offsets, rel=1e-9)


@pytest.mark.night
def test_more_objectives_make_each_bracket_wider_but_not_by_much():
    """ln(1/error) grows from ln(2/0.00086) by ln 3: roots of both are to each other as 1 to 1.07."""
    alone = [pl.certify(MODEL, COUNTS, text) for text in TEXTS]
    for one, several in zip(alone, certify_all(MODEL, COUNTS, TEXTS), strict=True):
        assert 1 < (several.upper - several.lower) / (one.upper - one.lower) < 1.15
        assert one.rests_on.jointly == ()


def test_a_question_that_was_not_prespecified_holds_with_all_that_were():
    learned = pl.learn(MODEL, COUNTS, objectives=TEXTS[:2])
    assert pl.conclude(learned, TEXTS[2]).rests_on.jointly == tuple(TEXTS[:2])
    other = pl.conclude(learned, TEXTS[0].replace('"both"', '("both")'))  # the same question in other words
    assert other.rests_on.jointly == (TEXTS[1],)


@pytest.mark.night
@pytest.mark.parametrize("sets", ["interval", "l1", "ellipsoid"])
def test_other_sets_hold_jointly_without_any_division(sets):
    found = certify_all(MODEL, COUNTS, TEXTS, confidence_set=sets)
    for each, text in zip(found, TEXTS, strict=True):
        alone = pl.certify(MODEL, COUNTS, text, confidence_set=sets)
        assert (each.lower, each.upper) == (alone.lower, alone.upper)
        assert len(each.rests_on.jointly) == 2


@pytest.mark.slow
def test_a_contradicted_model_is_contradicted_for_all_jointly():
    """After p, q shows heads always; after q, a coin of 1 - q/2 does so too."""
    model = coins(after_q=1 - Q / 2)
    counts, graph = np.zeros(model.graph.n_transitions, dtype=np.int64), model.graph
    for at in (1, 2):
        counts[graph.first_transition[graph.first_choice[int(np.flatnonzero(graph.states["at"] == at)[0])]]] = 1000
    found = certify_all(model, pl.TransitionCounts(graph, counts, "adaptive"), TEXTS)
    assert {(each.status, len(each.rests_on.jointly)) for each in found} == {("model rejected", 2)}


# Misuse


def test_questions_that_make_no_sense_are_refused():
    refused("objectives:several", lambda objectives: pl.learn(MODEL, COUNTS, objectives=eval(objectives)))
