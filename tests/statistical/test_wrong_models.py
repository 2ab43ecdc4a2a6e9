"""Where the model is wrong, certificates of the new default say so; those of the old one, or untested ones, are wrong.

A short version of the table that ``studies/wrong_models.py`` prints: errors large enough to matter, few repetitions.
Seeds are fixed, so that a test passes always or never.
"""

from functools import cache

import numpy as np
import pytest
import wrong_models
from tiers import size
from wrong_models import OLD, TESTED, UNTESTED, right, smooth_error, wrong_channel, wrong_row

import plumdp as pl

pytestmark = pytest.mark.slow

N_RUNS, N_REPETITIONS = 20_000, size(1, 4)

WRONG = {
    "betting, smooth": lambda: smooth_error("betting:25", 0.02),
    "rover, smooth": lambda: smooth_error("rover:10,10", 0.01),
    "engagement, smooth": lambda: smooth_error("engagement:20", 0.02),
    "aircraft, smooth": lambda: smooth_error("aircraft:20,10", 0.02),
    "parallel, smooth": lambda: smooth_error("parallel:5", 0.04),
    "betting, one row": lambda: wrong_row("betting:25", 0.2),
    "rover, one row": lambda: wrong_row("rover:10,10", 0.2),
    "glider, one row": lambda: wrong_row("glider:11,9", 0.05),
    "rover, one channel": lambda: wrong_channel(1.1),
    "machine, one constant": lambda: wrong_models.one_constant(0.02),
}
SILENT = [
    "betting, smooth",
    "rover, smooth",
    "engagement, smooth",
    "aircraft, smooth",
    "rover, one row",
]  # without the test of the model


@cache
def outcomes(kind):
    return wrong_models.repeat(WRONG[kind](), N_RUNS, N_REPETITIONS)


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_model_is_found_and_no_bracket_misses_in_silence(kind):
    found = outcomes(kind)[TESTED]
    assert all(outcome.has_conflict for outcome in found)
    assert not any(outcome.is_silent_miss for outcome in found)


@pytest.mark.parametrize("kind", SILENT)
def test_without_the_test_of_the_model_tight_brackets_miss_in_silence(kind):
    found = outcomes(kind)
    assert sum(outcome.is_silent_miss for outcome in found[UNTESTED]) >= N_REPETITIONS / 2


@pytest.mark.night
@pytest.mark.parametrize("kind", ["betting, smooth", "rover, smooth", "engagement, smooth"])
def test_the_old_default_misses_in_silence(kind):
    assert any(outcome.is_silent_miss for outcome in outcomes(kind)[OLD])


def test_the_diagnosis_names_what_is_wrong():
    """In at least nine of ten cases: the variable, the action, the row or the number."""
    kinds = size(["engagement, smooth", "machine, one constant"], WRONG)
    found = [outcome for kind in kinds for outcome in outcomes(kind)[TESTED] if outcome.has_conflict]
    unnamed = [outcome.first_sentence for outcome in found if not outcome.is_named]
    assert len(unnamed) <= 0.1 * len(found), unnamed


@pytest.mark.parametrize("name", [*wrong_models.SMOOTH, "machine"])
def test_right_models_are_not_contradicted(name):
    case = wrong_models.machine() if name == "machine" else pl.case_study(name)
    for found in wrong_models.repeat(right(case), N_RUNS, N_REPETITIONS).values():
        assert not any(outcome.has_conflict or outcome.has_missed for outcome in found)


# The wrong processes are what they say


@pytest.mark.night
@pytest.mark.parametrize("kind", WRONG)
def test_rows_of_wrong_processes_sum_to_one_and_differ_from_the_model_where_they_say(kind):
    wrong = WRONG[kind]()
    graph, right_ones = wrong.graph, wrong_models.true_probabilities(wrong.case)
    assert graph.sum_by_choice(wrong.probability) == pytest.approx(np.ones(graph.n_choices), abs=1e-12)
    assert ((wrong.probability >= 0) & ((wrong.probability > 0) == (right_ones > 0))).all()
    changed = np.unique(graph.choice_of_transition()[wrong.probability != right_ones])
    assert len(changed) == 1 if "row" in kind else len(changed) > 1


def test_the_true_value_of_a_policy_in_a_wrong_process_is_that_of_a_calculation_by_hand():
    """One shift of work from new: the machine earns 6 whatever happens, then 6 or 5 with the wrong chance 0.3 + 0.1."""
    case = wrong_models.machine(shifts=2)
    graph = case.model.graph
    chances = wrong_models.shifted(case, np.where(wrong_models.is_unknown(case.model), 0.1, 0.0))
    work = graph.first_choice[:-1]
    low, high = wrong_models.Wrong(case, chances, ()).value(work)
    assert low <= 6 + 0.6 * 6 + 0.4 * 5 <= high
    assert high - low < 1e-5


def test_counts_of_a_wrong_process_have_its_frequencies():
    wrong = smooth_error("betting:25", 0.04)
    counts = wrong.simulate(100_000, 3)
    first = wrong.graph.first_transition
    choice = int(np.argmax(np.where(np.diff(first) > 1, counts.visits, 0)))
    seen, visits, chance = counts.counts[first[choice]], counts.visits[choice], wrong.probability[first[choice]]
    assert abs(seen - visits * chance) < 5 * np.sqrt(visits * chance * (1 - chance))
    assert 0 < counts.pilot.total < counts.total / 10
