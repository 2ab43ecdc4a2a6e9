"""Ways to be wrong about bets and priors that a count of misses must find; each returns where the truth is missed."""

from math import log

import numpy as np
from coverage_game import ERROR, Game, Plan, Played, evidence_above_truth, gains

from plumdp.confidence.estimates import SPACE_AS_DATA, estimate_inside, information, law_of_pilot


def bets_from_main_data(game: Game, played: Played, *, in_hindsight: bool = True) -> np.ndarray:
    """Return the misses of bets whose estimate, information and direction are taken from the data that judge them.

    In hindsight, the direction is that in which the main data have moved away from the truth; otherwise it is the
    gradient of the value at the estimate of the main data.
    """
    table, missed = game.table, np.zeros(len(played.plans), dtype=bool)
    for seen in played.until(game.sizes.looks).swapaxes(0, 1):
        factors = []
        for row in seen:
            point, _ = estimate_inside(table, row, prior=game.space)
            matrix = information(table, row, point) + SPACE_AS_DATA * game.space.precision
            gradient = matrix @ (point - game.truth) if in_hindsight else game.gradient(point)
            factors.append(Plan(row, (point, matrix), matrix, gradient).factors(table, ERROR))
        missed |= _is_missed(game, np.array(factors), seen)
    return missed


def pilots_from_the_end(game: Game, played: Played) -> np.ndarray:
    """Return the misses of bets by the last runs before each look, as many as a pilot, on all runs before them.

    The information to come is that of the runs before, which the pilot's is scaled to.
    """
    sizes, missed = game.sizes, np.zeros(len(played.plans), dtype=bool)
    n = sizes.pilot // sizes.batch
    so_far = played.until(np.arange(sizes.batches)) + played.pilots()[:, None]
    for look in range(n, sizes.batches):
        main, factors = so_far[:, look - n], []
        ratio = (sizes.pilot + (look - n + 1) * sizes.batch) / sizes.pilot
        for pilot, plan in zip(so_far[:, look] - main, played.plans, strict=True):
            law = law_of_pilot(game.table, pilot, game.space)
            ahead = ratio * information(game.table, pilot, law.mean) + SPACE_AS_DATA * game.space.precision
            factors.append(Plan(pilot, law, ahead, plan.gradient).factors(game.table, ERROR))
        missed |= _is_missed(game, np.array(factors), main)
    return missed


def prior_from_main_data(game: Game, played: Played) -> np.ndarray:
    """Return the misses of the likelihood at the end, against a prior that was made from the same data."""
    seen = played.until(game.sizes.looks)[:, -1]
    laws = [law_of_pilot(game.table, row, game.space) for row in seen]
    return evidence_above_truth(game, seen, laws, least=-log(ERROR))[0] > -log(ERROR)


def _is_missed(game: Game, factors: np.ndarray, seen: np.ndarray) -> np.ndarray:
    process = np.einsum("rsj,rj->rs", gains(game, factors), seen)
    return (process >= log(2 / ERROR)).any(axis=1)
