"""Bounds of a model that is chosen after looking hold with the confidence, and without a division of the error not.

All candidates are right, and an opponent takes the one whose lower bound is the highest: the best-looking one.
"""

from functools import cache

import numpy as np
import pytest
from coin_model import COIN
from evidence import until_refuted

import plumdp
from plumdp.certifying import model_choice

ERROR, TRUTH, N_TOSSES, HEADS = 0.1, 0.5, 60, 'Pmax=? [ F "heads" ]'
NAMES = [f"model {number}" for number in range(20)]


@pytest.fixture(autouse=True)
def certified_once(monkeypatch):
    """Certify each number of heads once, as the same counts have the same certificate."""
    certify = cache(
        lambda heads, confidence: plumdp.certify(
            COIN, tosses(heads), HEADS, confidence=confidence, confidence_set="interval"
        )
    )
    monkeypatch.setattr(
        model_choice,
        "certify",
        lambda model, counts, objective, **options: certify(counts.counts[0], options["confidence"]),
    )


def misses(n_games):
    """Yield whether the highest of all lower bounds is above the truth."""
    rng = np.random.default_rng(1)
    for _ in range(n_games):
        counts = {name: tosses(rng.binomial(N_TOSSES, TRUTH)) for name in NAMES}
        chosen = plumdp.compare_models(
            dict.fromkeys(NAMES, COIN), counts, HEADS, confidence=1 - ERROR, confidence_set="interval"
        )
        yield max(each.lower for each in chosen.certificates.values()) > TRUTH


def tosses(heads):
    """Return the counts of all tosses, of which so many were heads."""
    of_transition = np.zeros(COIN.graph.n_transitions, dtype=np.int64)
    of_transition[:2] = heads, N_TOSSES - heads
    return plumdp.TransitionCounts(COIN.graph, of_transition, sampling="independent")


@pytest.mark.slow
def test_the_best_looking_model_misses_at_most_as_often_as_is_said():
    assert not until_refuted(misses(500), rate=ERROR).is_refuted


@pytest.mark.slow
def test_without_a_division_of_the_error_the_best_looking_model_misses_more_often(monkeypatch):
    monkeypatch.setattr(model_choice, "confidence_of_each", lambda confidence, n_models: confidence)
    assert until_refuted(misses(500), rate=ERROR).is_refuted
