"""Certificates against an adversary who moves all rows by the model tolerance, in the data and in the value."""

from dataclasses import dataclass

import numpy as np

import plumdp as pl
from plumdp.case_studies import CaseStudy
from plumdp.data.counts import TransitionCounts
from plumdp.data.pilots import planned_moments, planned_pilot
from plumdp.data.seen import Seen
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.result.certificate import Certificate

KINDS = ("at random", "upward", "downward", "changing")
CONFIDENCE = 0.9
ROUNDS = 12
WITHIN = (
    1 - 1e-9
)  # share of the model tolerance that rows are moved by: more than rounding leaves no doubt that they may be


@dataclass(frozen=True, eq=False)
class Game:
    """A case study, its rows at the true point, and the policy that is best there."""

    study: CaseStudy
    rows: np.ndarray  # (n_transitions)
    policy: np.ndarray  # (n_states)


@dataclass(frozen=True, eq=False)
class Played:
    """A certificate, and bounds on true values of its policy (one for each truth) up to the precision of the solver."""

    certificate: Certificate
    truths: list[tuple[float, float]]

    @property
    def is_missed(self):
        return any(high < self.certificate.lower or low > self.certificate.upper for low, high in self.truths)


def prepare(name):
    """Return the game of a case study."""
    study = pl.case_study(name)
    best = pl.stages.solve(pl.stages.instantiate(study.model, study.true_point), study.objective)
    return Game(study, study.model.probabilities(study.true_point)[study.model.expression], best.policy)


def moved(graph, rows, rank, model_tolerance):
    """Return rows with mass moved to the successor of the largest rank from others, those of the least rank first."""
    choice = graph.choice_of_transition()
    order = np.lexsort((rank, choice))  # by choice, then by rank
    sorted_rows, first = rows[order], graph.first_transition[:-1]
    is_last = np.zeros(len(rows), dtype=bool)
    is_last[graph.first_transition[1:] - 1] = True
    taken = np.where(is_last, 0.0, sorted_rows)
    before = np.cumsum(taken) - taken
    before -= np.repeat(before[first], np.diff(graph.first_transition))
    taken = np.clip(model_tolerance * WITHIN - before, 0, taken)
    found = np.empty(len(rows))
    given = np.repeat(np.add.reduceat(taken, first), np.diff(graph.first_transition))
    found[order] = sorted_rows - taken + np.where(is_last, given, 0.0)
    return found


def moved_against(game, policy, model_tolerance, side):
    """Return rows that make the value of a policy as large (side 1) or small (-1) as an adversary can, about."""
    graph, found = game.study.model.graph, game.rows
    for _ in range(ROUNDS):
        worth = pl.stages.evaluate(known(graph, found), policy, game.study.objective).upper
        worth = np.where(np.isfinite(worth), worth, 1e9)
        new = moved(graph, game.rows, side * worth[graph.successor], model_tolerance)
        if (new == found).all():
            break
        found = new
    return found


def known(graph, rows):
    """Return the Markov decision process of rows."""
    return IntervalMDP(graph, np.arange(graph.n_transitions, dtype=np.int32), rows, rows)


def rows_of_data(game, kind, model_tolerance, rng):
    """Return the rows that data come from: moved at random, or to make the best policy worth more, or less."""
    graph = game.study.model.graph
    if kind == "at random":
        return moved(graph, game.rows, rng.random(graph.n_transitions), model_tolerance)
    side = {"upward": 1, "downward": -1, "changing": 1 if rng.random() < 0.5 else -1}[kind]
    return moved_against(game, game.policy, model_tolerance, side)


def data_of(game, rows, n_runs, rng):
    """Return counts of runs with random actions and the given rows, with bets after the first of them."""
    graph, cumulated = game.study.model.graph, np.cumsum(rows)
    before = np.concatenate([[0], cumulated])[graph.first_transition]
    stage = np.searchsorted(planned_moments(n_runs), np.arange(n_runs), side="right")
    parts = np.zeros((len(planned_moments(n_runs)) + 1, graph.n_transitions), dtype=np.int64)
    state = np.full(n_runs, graph.initial_state)
    for _ in range(game.study.max_steps):
        choice = rng.integers(graph.first_choice[state], graph.first_choice[state + 1])
        drawn = np.searchsorted(cumulated, before[choice] + rng.random(n_runs), side="right")
        transition = np.clip(drawn, graph.first_transition[choice], graph.first_transition[choice + 1] - 1)
        np.add.at(parts, (stage, transition), 1)
        state = graph.successor[transition]
    *moments, counts = parts.cumsum(axis=0)
    pilot = planned_pilot([*map(Seen, moments)], n_runs, sizes=planned_moments(n_runs))
    return TransitionCounts(graph, counts, "trajectories", pilot)


def play(game, kind, model_tolerance, *, n_runs, seed, relaxation="coupled", tolerated=None):
    """Return a certificate from rows that are off, and true values of its policy.

    With "changing" rows, those of the value are others than those of the data: the worst for the policy of the
    certificate, on both sides. ``tolerated`` is the tolerance that the certificate is asked for, if it is another.
    """
    rng = np.random.default_rng(seed)
    model, objective = game.study.model, game.study.objective
    rows = rows_of_data(game, kind, model_tolerance, rng)
    found = pl.certify(
        model,
        data_of(game, rows, n_runs, rng),
        objective,
        confidence=CONFIDENCE,
        confidence_set="likelihood",
        relaxation=relaxation,
        model_tolerance=model_tolerance if tolerated is None else tolerated,
    )
    policy = found.policy.choice
    truths = [rows]
    if kind == "changing":
        truths += [moved_against(game, policy, model_tolerance, side) for side in (1, -1)]
    return Played(found, [value(game, truth, policy) for truth in truths])


def value(game, rows, policy):
    """Return bounds on the value of a policy, given the rows."""
    graph, objective = game.study.model.graph, game.study.objective
    found = pl.stages.evaluate(known(graph, rows), policy, objective)
    return float(found.lower[graph.initial_state]), float(found.upper[graph.initial_state])
