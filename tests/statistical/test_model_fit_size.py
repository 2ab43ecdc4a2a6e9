"""The test of a model rejects right ones at most as often as it says, p-values are not too small, mutants are found.

Refuted is what happens in so many repetitions that this has a probability of at most 1 %. Seeds are fixed, so that a
test passes always or never.
"""

from dataclasses import replace
from functools import cache, partial
from itertools import product
from math import log

import numpy as np
import pytest
from coverage_game import critical_value
from fit_game import Game, Linear, Played, Sizes, independent, play, prepare, three_coins, value_bets, worst_moments
from fit_processes import (
    cell_processes,
    cells_of,
    drift_bets,
    gains_of_plan,
    largest_by_kind,
    largest_cell,
    largest_of_rest,
    package_bets,
    pilot_view,
    plans_of,
)
from scipy.stats import kstest
from tiers import TIER, size
from wrong_models import machine

import plumdp as pl
from plumdp.confidence.constants import find_fixed_numbers
from plumdp.confidence.contrasts import find_contrasts
from plumdp.confidence.likelihood import likelihood_budget, likelihood_set
from plumdp.confidence.sets import ModelCache
from plumdp.fit import model_fit as model_fit
from plumdp.fit.cell_tests import cell_tests
from plumdp.fit.drift import drift_tests


def is_any_missed(game: Game, pilot: np.ndarray, main: np.ndarray, error: float) -> bool:
    """Return whether the bracket of some objective misses the true value of its policy, given data up to a moment."""
    case, counts = game.case, game.counts(pilot, main)
    truth = pl.stages.instantiate(case.model, case.true_point)
    learned = pl.learn(
        case.model,
        counts,
        confidence=1 - error,
        confidence_set="likelihood",
        objectives=list(game.objectives),
    )
    for objective in game.objectives:
        certificate = pl.conclude(learned, objective, relaxation="coupled")
        value = pl.stages.evaluate(truth, certificate.policy, objective)
        initial = game.graph.initial_state
        if value.upper[initial] < certificate.lower or value.lower[initial] > certificate.upper:
            return True
    return False


def p_value_at(game: Game, pilot: np.ndarray, main: np.ndarray, *, error: float, sampling: str = "adaptive") -> float:
    """Return the p-value that comes with a certificate for the game's objectives, from data up to some moment."""
    model, counts = game.case.model, game.counts(pilot, main, sampling)
    of_set = likelihood_budget(ModelCache(model), counts.pilot, has_directions=True).error_of_set(error)
    found = likelihood_set(model, counts, error=of_set, directions=game.directions)
    return model_fit.fit_model(model, counts, error=error, found=found, fixed=find_fixed_numbers(model)).p_value


def p_values(game: Game, n: int, *, seed: int, is_worst: bool, error: float) -> np.ndarray:
    """Return p-values (n) at the planned end of trajectories, or at the worst moment that an adversary chose."""
    rng, found = np.random.default_rng(seed), []
    place, collect = partial(package_bets, error=error), "adversary" if is_worst else "trajectories"
    for first in range(0, n, 250):
        played = play(game, min(250, n - first), rng, place, collect=collect)
        largest = largest_by_kind(game, played).together
        moments = worst_moments(largest) if is_worst else np.full(len(largest), largest.shape[1] - 1)
        sampling = "adaptive" if is_worst else "trajectories"
        for r, b in enumerate(moments.tolist()):
            main = played.batches[r, : b + 1].sum(axis=0)
            found.append(p_value_at(game, played.pilots[r], main, error=error, sampling=sampling))
    return np.array(found)


def superuniformity(p: np.ndarray) -> float:
    """Return how likely a law at least as large as the uniform is to have so many small values (Kolmogorov–Smirnov).

    >>> superuniformity(np.linspace(0, 1, 100)) > 0.5, superuniformity(np.linspace(0, 0.8, 100)) < 0.01
    (True, True)
    """
    return float(kstest(p, "uniform", alternative="greater").pvalue)


def largest_in_hindsight(game: Game, played: Played, *, error: float, every: int = 4) -> np.ndarray:
    """Return the largest process at looks (repetitions, looks) of drift tests whose bets come from what judges them.

    The numbers of the cells of a contrast are those in the direction in which the data have drifted.
    """
    return _at_looks(played, every, lambda seen: _hindsight(game, seen, error))


def _at_looks(played: Played, every: int, place) -> np.ndarray:
    looks = np.arange(every - 1, played.batches.shape[1], every)
    found = []
    for batches in played.batches:
        until = np.cumsum(batches, axis=0, dtype=np.float64)[looks]
        linear = [place(seen) for seen in until]
        found.append([(own.gains @ seen + own.log_weights).max() for own, seen in zip(linear, until, strict=True)])
    return np.array(found)


def _hindsight(game: Game, seen: np.ndarray, error: float) -> Linear:
    """Return drift tests of contrasts whose numbers are the mean scores of the cells at the true point."""
    view = replace(pilot_view(game, seen), ratio=1.0)
    contrasts = [replace(contrast, levels=_scores(game, seen, contrast.cell)) for contrast in game.contrasts]
    plans = plans_of(game, view, contrasts)
    weight = 1 / max(2 * len(plans), 1)
    scale = np.sqrt(-2 * log(weight * error))
    found = [gains_of_plan(game, plan, side * scale / plan.spread) for plan in plans for side in (1, -1)]
    return Linear(np.array(found).reshape(-1, len(seen)), np.full(len(found), log(weight)), ())


def _scores(game: Game, seen: np.ndarray, cell: np.ndarray) -> np.ndarray:
    """Return for each cell how far the first parameter that its outcomes show has moved away from the truth."""
    table, graph = game.table, game.graph
    of_choice = cell[graph.choice_of_transition()]
    levels = np.zeros(int(cell.max()) + 1)
    for i in range(len(levels)):
        pooled = table.pool(np.where(of_choice == i, seen, 0.0))
        scores = table.coefficients / (table.constants + table.coefficients @ game.truth)[:, None]
        information = pooled @ scores**2
        levels[i] = (pooled @ scores / np.maximum(information, 1e-9)).sum()
    return levels


pytestmark = pytest.mark.slow

ERROR = 0.1
N_PLAYED, N_JOINTLY = 80, size(150, 300)
COLLECTED = ["independent", "trajectories", "adaptive", "adversary"]
CASES = ["betting:5", "engagement:5", "rover:3,3,2", "parallel:2,1", "glider:4,3,3,2", "machine"]
SMALL = Sizes(100, 20, 40)


@cache
def game_of(name):
    case = machine() if name == "machine" else pl.case_study(name)
    return prepare(case, sizes=SMALL, n_runs=1000)


@cache
def played(name, place=drift_bets, collect="adversary"):
    """Return a game and its repetitions: with an adversary against drift tests alone, unless something else is said."""
    game, rng, bets = game_of(name), np.random.default_rng(1), partial(place, error=ERROR)
    if collect == "independent":
        return game, independent(game, N_PLAYED, rng, bets)
    return game, play(game, N_PLAYED, rng, bets, collect=collect)


def largest_linear(data):
    return np.array([data.processes(r).max(axis=1) for r in range(len(data.linear))])


def n_exceeded(largest, error=ERROR):
    return int((largest.max(axis=1) >= -log(error)).sum())


# Size


@pytest.mark.parametrize(
    ("name", "collect"), [pair for i, pair in enumerate(product(CASES, COLLECTED)) if i % 3 == 2 or TIER == "night"]
)
def test_tests_of_each_kind_reject_a_right_model_at_most_as_often_as_they_say(name, collect):
    """Ever, at any look, at the true point: more often than by any p-value, and than at the end."""
    game, data = played(name, collect=collect)
    critical = critical_value(N_PLAYED, ERROR)
    assert n_exceeded(largest_linear(data)) < critical
    for kind in ("row", "class"):
        assert n_exceeded(largest_cell(cells_of(game, kind), data)) < critical, kind


@pytest.mark.parametrize("name", CASES)
def test_all_tests_together_reject_a_right_model_at_most_as_often_as_they_say(name):
    """And no p-value is below what the tests say at the true point: it is the best over all points."""
    game, data = played(name, place=package_bets)
    largest = largest_by_kind(game, data).together
    assert n_exceeded(largest) < critical_value(N_PLAYED, ERROR)
    for r, b in list(enumerate(worst_moments(largest).tolist()))[:10]:
        pilot, main = data.pilots[r], data.batches[r, : b + 1].sum(axis=0)
        at_truth = np.exp(-max(largest[r, b], largest_of_rest(game, pilot, main, error=ERROR)))
        assert p_value_at(game, pilot, main, error=ERROR) >= min(1.0, at_truth) * (1 - 1e-9)


# What is counted is what the package uses


@pytest.mark.parametrize("name", CASES)
def test_drift_tests_exclude_the_true_point_where_their_processes_say_so(name):
    """With tangents at the true point, a half-space is as far from it as the process is from its bound."""
    game, data = played(name)
    for r in range(3):
        pilot, main = data.pilots[r], data.batches[r].sum(axis=0)
        counts = game.counts(pilot, main)
        view = pilot_view(game, counts.pilot.counts)
        found = drift_tests(view, counts, find_contrasts(game.case.model), near=game.truth, error=ERROR)
        beyond = [drift.left.row @ game.truth - drift.left.offset for drift in found]
        expected = data.processes(r)[-1] + log(ERROR)
        assert beyond == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_tests_of_rows_have_the_wealths_of_their_definition(name):
    game, data = played(name)
    table, cells = game.table, cells_of(game, "row")
    seen = (data.pilots[0] + data.batches[0].sum(axis=0)).astype(np.int64)
    found = cell_tests(table, table.pool_by_choice(seen))
    wealths = found.values(np.log(table.constants + table.coefficients @ game.truth))
    of_all = cell_processes(cells, seen[None, :].astype(float))[0]
    is_seen = (seen @ cells.items @ cells.pairs @ cells.cells) > 0
    assert wealths == pytest.approx(of_all[is_seen], abs=1e-6)


# What must be found


@pytest.mark.parametrize("name", CASES)
def test_an_error_that_is_not_divided_between_drifts_is_found(name):
    game = game_of(name)
    data = play(game, N_PLAYED, np.random.default_rng(2), partial(drift_bets, error=ERROR, divided=False))
    assert n_exceeded(largest_linear(data)) >= critical_value(N_PLAYED, ERROR)


@pytest.mark.parametrize("name", ["betting:5", "machine", "parallel:2,1"])
def test_ten_times_the_error_is_found(name):
    data = play(game_of(name), N_PLAYED, np.random.default_rng(3), partial(drift_bets, error=10 * ERROR))
    assert n_exceeded(largest_linear(data), 10 * ERROR) >= critical_value(N_PLAYED, ERROR)


@pytest.mark.parametrize("name", ["betting:5", "machine", "parallel:2,1"])
def test_drifts_in_the_direction_that_the_data_have_taken_are_found(name):
    """Numbers of cells, estimate and size of the bets come from the data that judge them."""
    game, data = played(name)
    assert n_exceeded(largest_in_hindsight(game, data, error=ERROR, every=5)) >= critical_value(N_PLAYED, ERROR)


@pytest.mark.parametrize("name", ["betting:5", "rover:3,3,2", "parallel:2,1", "machine"])
def test_an_error_that_is_not_divided_between_rows_is_found(name):
    game, data = played(name)
    largest = largest_cell(cells_of(game, "row"), data, weight=1)
    assert n_exceeded(largest) >= critical_value(N_PLAYED, ERROR)


@pytest.mark.parametrize("name", ["parallel:2,1", "glider:4,3,3,2"])
def test_the_largest_likelihood_in_place_of_a_mean_is_found(name):
    game, data = played(name)
    found = [n_exceeded(largest_cell(cells_of(game, kind), data, is_mixed=False)) for kind in ("row", "class")]
    assert max(found) >= critical_value(N_PLAYED, ERROR)


# p-values


@pytest.mark.parametrize("is_worst", [False, True])
@pytest.mark.parametrize("name", ["machine", "engagement:5"])
def test_p_values_of_right_models_are_not_smaller_than_uniform(name, is_worst):
    assert superuniformity(p_values(game_of(name), size(30, 60), seed=5, is_worst=is_worst, error=ERROR)) > 0.01


def test_p_values_of_rows_that_each_have_the_whole_error_are_found_to_be_too_small(monkeypatch):
    game = game_of("betting:5")
    monkeypatch.setattr(model_fit, "_at_share", lambda tests, error: replace(tests, gained=tests.gained + log(ERROR)))
    assert superuniformity(p_values(game, 30, seed=5, is_worst=True, error=ERROR)) < 0.01


# Several objectives


@cache
def three_objectives(share=None):
    case = three_coins()
    game = prepare(case, case.objectives, Sizes(100, 60, 20))
    return game, play(game, N_JOINTLY, np.random.default_rng(6), partial(value_bets, error=ERROR, share=share))


def test_bets_on_three_objectives_miss_jointly_at_most_as_often_as_they_say():
    assert n_exceeded(largest_linear(three_objectives()[1])) < critical_value(N_JOINTLY, ERROR)


def test_three_objectives_at_the_whole_error_each_are_found():
    assert n_exceeded(largest_linear(three_objectives(share=0.5)[1])) >= critical_value(N_JOINTLY, ERROR)


def test_the_worst_of_three_brackets_misses_at_most_as_often_as_all_may():
    game, data = three_objectives()
    moments = worst_moments(largest_linear(data))[: size(10, 25)]
    missed = [
        is_any_missed(game, data.pilots[r], data.batches[r, : b + 1].sum(axis=0), ERROR)
        for r, b in enumerate(moments.tolist())
    ]
    assert sum(missed) < critical_value(len(missed), ERROR)
