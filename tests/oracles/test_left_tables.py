"""Brackets of tables from logs hold the value of the policy at the truth, whatever happens outside of the table."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from left_tables import FALL, exact_values, questions, random_system
from tiers import size

import plumdp as pl
from plumdp import DataError, ModelError
from plumdp.model import memory, unmodelled_exits
from plumdp.tables import values

N_KINDS = 24
N_BY_DAY = 22  # averages in the long run, which come last, take long


def outcomes(seeds, folder):
    """Return how many questions were refused, hold or miss, and which miss: a question of another kind each time."""
    found, missed = Counter(), []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        system = random_system(rng)
        asked = questions(rng, folder)[seed % N_KINDS]
        text = asked.text.replace(" [", f"{rng.choice(['max', 'min'])}=? [", 1)
        model, counts = system.table()
        try:
            with pytest.MonkeyPatch.context() as patch:  # in half of the cases, products are found at once
                patch.setattr(memory, "_MANY", 3 if seed // N_KINDS % 2 else memory._MANY)
                certificate = pl.certify(model, counts, text, confidence=1 - 1e-6)
        except (DataError, ModelError) as error:
            missed += [(seed, text, str(error))] if "lifted" in str(error) else []  # a product with other rows
            found["refused", asked.kind] += 1
            found[str(error)[:60]] += 1
            continue
        low, high = exact_values(system, asked, certificate.policy)
        off = {"average": 5e-3}.get(asked.kind, 1e-6 + FALL) * (1 + min(abs(low), 1e6))
        holds = certificate.lower <= low + off and high - off <= certificate.upper
        found["holds" if holds else "misses", asked.kind] += 1
        found["informative"] += certificate.upper - certificate.lower < (1 if asked.kind in ("reach", "often") else 1e9)
        missed += [] if holds else [(seed, text, (certificate.lower, certificate.upper), (low, high))]
    return found, missed


@pytest.mark.slow
def test_the_value_at_the_truth_lies_in_the_bracket_or_the_question_is_refused(tmp_path):
    seeds = [seed for seed in range(size(2 * N_KINDS, 1_000)) if seed % N_KINDS < size(N_BY_DAY, N_KINDS)]
    found, missed = outcomes(seeds, tmp_path)
    assert missed == []
    assert found["informative"] > 0


def elsewhere_costs_a_step(patch):
    patch.setattr("plumdp.model.memory.elsewhere_of", lambda model: None)


def labels_are_false_elsewhere(patch):
    patch.setattr("plumdp.model.unmodelled_exits.ended", lambda model, objective: objective)


def products_forget_what_is_not_known(patch):
    plain = unmodelled_exits.ended
    patch.setattr(
        "plumdp.model.unmodelled_exits.ended",
        lambda model, objective: objective if model.graph.memory is not None else plain(model, objective),
    )
    patch.setattr("plumdp.model.objectives.mission.ended", lambda model, objective: objective)


def labels_that_no_state_has_are_impossible(patch):
    patch.setattr("plumdp.model.language.mission.ELSEWHERE", "nowhere")


def steps_elsewhere_cost_nothing(patch):
    plain = unmodelled_exits._earned

    def earned(model, state, objective, reward):
        found = plain(model, state, objective, reward)
        outside = np.arange(model.graph.n_choices) >= model.graph.first_choice[state]
        return found.without(outside)

    patch.setattr("plumdp.model.unmodelled_exits._earned", earned)


def discounts_count_what_nature_chooses(patch):
    plain = unmodelled_exits._earned

    def earned(model, state, objective, reward):
        return plain(model, state, replace(objective, discount=None, steps=objective.steps or 1), reward)

    patch.setattr("plumdp.model.unmodelled_exits._earned", earned)


def bets_take_one_end_for_both(patch):
    plain = values.chain_of_policy
    patch.setattr("plumdp.tables.values.chain_of_policy", lambda *given, side=-1: plain(*given, side=-1))


MUTANTS = {  # with a few systems that find them
    elsewhere_costs_a_step: (112, 137),
    labels_are_false_elsewhere: (48, 169),
    products_forget_what_is_not_known: (7, 31),
    labels_that_no_state_has_are_impossible: (80, 176),
    steps_elsewhere_cost_nothing: (40, 41),
    discounts_count_what_nature_chooses: (138, 186),
    bets_take_one_end_for_both: (28, 169),
}


@pytest.mark.parametrize("plant", MUTANTS, ids=lambda plant: plant.__name__)
def test_a_planted_error_is_found(plant, monkeypatch, tmp_path):
    plant(monkeypatch)
    assert outcomes(MUTANTS[plant], tmp_path)[1]
