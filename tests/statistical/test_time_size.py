"""How often tests over time contradict the truth, if an adversary ends the parts, picks the coins and the end."""

import numpy as np
import pytest
from tiers import size
from time_games import Throws, largest_test, play

from plumdp.fit import time_tests

ERROR = 0.2


def refuted(adversary, n_games, *, n_throws, every=30):
    """Return how many games contradict the truth."""
    rng = np.random.default_rng(7)
    truth = 0.3 if adversary == "at random" else 0.1
    return sum(play(rng, truth, adversary, n_throws=n_throws, error=ERROR, every=every) for _ in range(n_games))


@pytest.fixture
def all_terms(monkeypatch):
    """Look at boundaries that promise nothing as well, which is the harder game."""
    monkeypatch.setattr(time_tests, "_PROMISE", -np.inf)
    monkeypatch.setattr(time_tests, "_MOST", 1)


@pytest.mark.slow
@pytest.mark.parametrize("adversary", ["heads", "after tails", "at random"])
def test_an_opponent_contradicts_the_truth_at_most_as_often_as_the_error_allows(adversary, all_terms):
    n_games = size(5, 700)
    assert refuted(adversary, n_games, n_throws=size(120, 300)) <= ERROR * n_games


def test_outcomes_that_are_filed_a_part_later_are_found():
    """Nothing changes, and heads are slow: the first part has none, which no coin explains that the others have."""
    rng, found = np.random.default_rng(3), 0
    for _ in range(size(5, 100)):
        thrown, late, parts = rng.random((8, 100)) < 0.5, 0, []
        for part in thrown:
            parts.append([(0, 0)] * int((~part).sum()) + [(0, 1)] * late)
            late = int(part.sum())
        found += largest_test(Throws(parts), 0.5, 0.001) >= 0
    assert found == size(5, 100)
