"""Certificates against an opponent who moves all rows by the misfit, in the data and in the value."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from misfit_rows import known_mdp, model_of_rows, moved_against, moved_at_random, rows_at

import plumdp as pl

KINDS = ("at random", "upward", "downward", "changing")
CONFIDENCE = 0.9


@dataclass(frozen=True, eq=False)
class Game:
    """A case study, its rows at the true point, and the policy that is best there."""

    study: pl.CaseStudy
    rows: list[Fraction]
    policy: np.ndarray


@dataclass(frozen=True, eq=False)
class Played:
    """A certificate, and bounds on true values of its policy (one for each truth) up to the precision of the solver."""

    certificate: pl.Certificate
    truths: list[tuple[float, float]]

    @property
    def is_missed(self):
        return any(high < self.certificate.lower or low > self.certificate.upper for low, high in self.truths)


def prepare(name):
    """Return the game of a case study."""
    study = pl.case_study(name)
    best = pl.solve(pl.instantiate(study.model, study.true_point), study.objective)
    return Game(study, rows_at(study.model, study.true_point), best.policy)


def rows_of_data(game, kind, misfit, rng):
    """Return the rows that data come from: moved at random, or to make the best policy worth more, or less."""
    model, objective = game.study.model, game.study.objective
    if kind == "at random":
        return moved_at_random(rng, model.graph, game.rows, misfit)
    side = {"upward": 1, "downward": -1, "changing": 1 if rng.random() < 0.5 else -1}[kind]
    return moved_against(model, game.rows, game.policy, objective, misfit, side)


def data_of(game, rows, n_runs, seed):
    """Return counts of runs with the given rows, as data of the model."""
    moved = model_of_rows(game.study.model, rows)
    return pl.simulate(moved, {}, n_runs, rng=seed, max_steps=game.study.max_steps, threads=1)


def play(game, kind, misfit, *, n_runs, seed, relaxation="coupled", tolerated=None):
    """Return a certificate from rows that are off, and true values of its policy.

    With "changing" rows, those of the value are others than those of the data: the worst for the policy of the
    certificate, on both sides. ``tolerated`` is the misfit that the certificate is asked for, if it is another.
    """
    rng = np.random.default_rng(seed)
    model, objective = game.study.model, game.study.objective
    rows = rows_of_data(game, kind, misfit, rng)
    found = pl.certify(
        model,
        data_of(game, rows, n_runs, seed),
        objective,
        confidence=CONFIDENCE,
        confidence_set="likelihood",
        relaxation=relaxation,
        misfit=misfit if tolerated is None else tolerated,
    )
    policy = found.policy.choice
    truths = [rows]
    if kind == "changing":
        truths += [moved_against(model, game.rows, policy, objective, misfit, side) for side in (1, -1)]
    return Played(found, [value(game, truth, policy) for truth in truths])


def value(game, rows, policy):
    """Return bounds on the value of a policy, given the rows."""
    graph, objective = game.study.model.graph, game.study.objective
    found = pl.evaluate(known_mdp(graph, rows), policy, objective)
    return float(found.lower[graph.initial_state]), float(found.upper[graph.initial_state])
