"""Ways to be wrong about tests of a model that a count of rejections must find."""

from dataclasses import replace
from math import log

import numpy as np
from fit_game import Game, Linear, Played
from fit_processes import drift_bets, gains_of_plan, pilot_view, plans_of


def largest_of_main_bets(game: Game, played: Played, *, error: float, every: int = 4) -> np.ndarray:
    """Return the largest process at looks (repetitions, looks) of drift tests whose bets come from what judges them.

    Estimate, centre and size of the bets are those of the main data up to the look.
    """
    return _at_looks(played, every, lambda seen: _main_bets(game, seen, error))


def largest_in_hindsight(game: Game, played: Played, *, error: float, every: int = 4) -> np.ndarray:
    """Return the same with the numbers of the cells of a contrast in the direction in which the data have drifted."""
    return _at_looks(played, every, lambda seen: _hindsight(game, seen, error))


def _at_looks(played: Played, every: int, place) -> np.ndarray:
    looks = np.arange(every - 1, played.batches.shape[1], every)
    found = []
    for batches in played.batches:
        until = np.cumsum(batches, axis=0, dtype=np.float64)[looks]
        linear = [place(seen) for seen in until]
        found.append([(own.gains @ seen + own.log_weights).max() for own, seen in zip(linear, until, strict=True)])
    return np.array(found)


def _main_bets(game: Game, seen: np.ndarray, error: float) -> Linear:
    return drift_bets(game, seen, error=error, view=replace(pilot_view(game, seen), ratio=1.0))


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
