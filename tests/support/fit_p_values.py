"""p-values of right models, and how to tell that they are too small."""

from functools import partial

import numpy as np
from fit_game import Game, play, worst_moments
from fit_processes import largest_by_kind, package_bets
from scipy.stats import kstest

from plumdp.confidence.constants import find_fixed_numbers
from plumdp.confidence.likelihood import likelihood_budget, likelihood_set
from plumdp.confidence.sets import ModelCache
from plumdp.fit import model_fit as model_fit


def p_value_at(game: Game, pilot: np.ndarray, main: np.ndarray, *, error: float, sampling: str = "adaptive") -> float:
    """Return the p-value that comes with a certificate for the game's objectives, from data up to some moment."""
    model, counts = game.case.model, game.counts(pilot, main, sampling)
    of_set = likelihood_budget(ModelCache(model), counts.pilot, has_directions=True).error_of_set(error)
    found = likelihood_set(model, counts, error=of_set, directions=game.directions)
    return model_fit.fit_model(model, counts, error=error, found=found, fixed=find_fixed_numbers(model)).p_value


def p_values(game: Game, n: int, *, seed: int, is_worst: bool, error: float) -> np.ndarray:
    """Return p-values (n) at the planned end of trajectories, or at the worst moment of data that an opponent chose."""
    rng, found = np.random.default_rng(seed), []
    place, collect = partial(package_bets, error=error), "opponent" if is_worst else "trajectories"
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
