"""Certificates that tolerate a model tolerance hold the truth if all rows are off by it; mutants of their sets do not.

Seeds are fixed, so that a test passes always or never. ``studies/misfit.py`` has 1,000 brackets on six case studies.
"""

from functools import cache
from itertools import islice

import misfit_game as game_of
import numpy as np
import pytest
from constraints import half_spaces_of, strips_of
from tiers import size

from plumdp.confidence.bets import Direction
from plumdp.confidence.bounds import ExpressionBounds
from plumdp.confidence.likelihood import LinearConstraints
from plumdp.confidence.tolerant import tolerant_set

pytestmark = pytest.mark.slow

NAMES = ("betting:5", "aircraft:20,10", "parallel:5", "rover:10,10", "glider:11,9")
MODEL_TOLERANCE = 0.02


@cache
def prepared(name):
    return game_of.prepare(name)


@pytest.mark.parametrize("kind", game_of.KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_no_bracket_misses_the_value_if_all_rows_are_off_by_the_misfit(name, kind):
    for seed, relaxation in enumerate(("coupled", "rectangular", *size(0, 1) * ["coupled"])):
        played = game_of.play(prepared(name), kind, MODEL_TOLERANCE, n_runs=1000, seed=seed, relaxation=relaxation)
        assert played.certificate.status == "certified"
        assert not played.is_missed, (seed, played)


def test_certificates_without_a_misfit_miss_values_of_rows_that_are_off():
    """Otherwise the tests above would say nothing."""
    games = (
        game_of.play(prepared(name), kind, MODEL_TOLERANCE, n_runs=1000, seed=0, tolerated=0.0)
        for name in NAMES
        for kind in game_of.KINDS
    )
    missed = (one for one in games if one.is_missed or one.certificate.status == "model rejected")
    n = size(2, 5)
    assert len([*islice(missed, n)]) == n


def excluded(name, side, seed):
    """Return whether the half-spaces, and whether the intervals, exclude the true point if rows are off all one way."""
    game, rng = prepared(name), np.random.default_rng(seed)
    model, point = game.study.model, game.study.true_point
    truth = np.array([float(point[x]) for x in model.space.names])
    rows = game_of.moved_against(game, game.policy, MODEL_TOLERANCE, side)
    counts = game_of.data_of(game, rows, 20_000, rng)
    found = tolerant_set(
        model, counts, error=0.1, directions=lambda at: [Direction(d) for d in np.eye(len(at))]
    ).widened(MODEL_TOLERANCE)
    values = np.array([float(f.evaluate(model.space.point(point))) for f in strips_of(found).events.polynomials])
    outside = (values < strips_of(found).event_lower) | (values > strips_of(found).event_upper)
    return bool((half_spaces_of(found).rows @ truth > half_spaces_of(found).offsets).any()), bool(outside.any())


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("name", NAMES)
def test_the_true_point_is_in_all_sets_if_all_rows_are_off_by_the_misfit(name, side):
    assert {excluded(name, side, seed) for seed in range(size(1, 3))} == {(False, False)}


def is_caught(which):
    """Return whether half-spaces, or intervals, exclude the true point of so many models, and look at no more."""
    n = size(1, 3)
    return len([*islice((name for name in NAMES if excluded(name, 1, 0)[which]), n)]) == n


def test_half_spaces_that_are_not_moved_are_caught(monkeypatch):
    monkeypatch.setattr(LinearConstraints, "widened", lambda found, model_tolerance: found)
    assert is_caught(0)


def test_intervals_that_are_not_widened_are_caught(monkeypatch):
    monkeypatch.setattr(ExpressionBounds, "widened", lambda found, model_tolerance: found)
    assert is_caught(1)
