"""Certificates of models with unknown rows beside expressions miss at most as often as they say, in either view.

Models, points and the number of runs are drawn at random. By day a few games are played, at night many; what an error
of 0.1 allows is refuted by bets on the frequency of misses, with a level of 10^-4 (``evidence``).
"""

import numpy as np
import pytest
from evidence import until_refuted
from mixed_models import REACH, random_model, random_point
from tiers import size

import plumdp as pl
from plumdp.model.question import ask
from studies.experiment import held_against_truth

ERROR = 0.1


def is_missed(seed, kind):
    """Play a game, and return whether the bracket misses the value of the only policy, or the model is rejected."""
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    truth, n_runs = random_point(model, rng), int(np.exp(rng.uniform(np.log(20), np.log(20_000))))
    counts = pl.simulate(model, truth, n_runs, rng=seed, max_steps=80, stop=model.labels["end"])
    found = pl.certify(model, counts, REACH, confidence=1 - ERROR, confidence_set=kind)
    is_held = held_against_truth(model, truth, ask(REACH, model).objective, found)["holds"]
    return found.status == "model rejected" or not is_held


@pytest.mark.night
@pytest.mark.parametrize("kind", ["table", "likelihood"])
def test_brackets_miss_no_more_often_than_they_say(kind):
    games = (is_missed(seed, kind) for seed in range(size(3, 400)))
    assert not until_refuted(games, rate=ERROR).is_refuted
