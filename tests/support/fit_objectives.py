"""Brackets of several objectives from one ``learn``, held against true values."""

import numpy as np
from fit_game import Game

import plumdp as pl


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
