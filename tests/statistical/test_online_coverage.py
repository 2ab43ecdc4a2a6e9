"""Bounds of online learning against an adversary who stops at the worst moment.

Every run is watched from its first update on, and counts as a miss if at any of them the certified bound is above the
true value of its policy, or the bound on all policies below the best value. Actions are chosen by what was seen.
"""

from dataclasses import replace

import pytest
from evidence import until_refuted
from repetitions import guesses
from tiers import size

import plumdp as pl
from plumdp.online import loop

pytestmark = pytest.mark.slow

LARGE_ERROR = 0.5  # shows in few runs that bounds miss more often


@pytest.fixture(scope="module")
def game():
    return guesses()


def is_missed(model, objective, seed, *, error, episodes=300, spacing=3.0):
    """Return whether a bound of any update is wrong: each policy wins with one half."""
    stop = model.graph.states["at"] > 0
    environment = pl.online.simulator(model, {"p": 0.5, "q": 0.5}, rng=seed, max_steps=1, stop=stop)
    options = {"episodes": episodes, "confidence": 1 - error, "spacing": spacing, "exploration": 0.3}
    records = pl.learn_online(model, environment, objective, **options)
    return any(record.bound > 0.5 + 1e-9 or record.optimistic_bound < 0.5 - 1e-9 for record in records)


@pytest.mark.night
@pytest.mark.parametrize("error", [0.1, LARGE_ERROR])
def test_bounds_hold_at_all_updates_of_a_run_at_once(game, error):
    games = (is_missed(*game, seed, error=error) for seed in range(size(6, 300)))
    assert not until_refuted(games, rate=error).is_refuted


@pytest.mark.night
def test_the_published_construction_fails(game, monkeypatch):
    """Clopper–Pearson intervals hold for a number of trials that is fixed beforehand, not at the worst of all times."""

    def published(model, counts, **options):
        counts = replace(counts, sampling="independent", pilot=None)
        return pl.learn(model, counts, confidence_set="interval", confidence=options["confidence"])

    monkeypatch.setattr(loop, "learn", published)
    games = (is_missed(*game, seed, error=LARGE_ERROR, episodes=1000, spacing=1.25) for seed in range(400))
    assert until_refuted(games, rate=LARGE_ERROR, level=0.01).is_refuted
