"""How often sets of parameters ever miss the true point, while an adversary chooses the data and looks after each
batch.

A repetition is a pilot under the uniform policy and then batches of runs. Before each batch the adversary, who knows
the truth, chooses between the uniform and a nearly greedy policy: the one that moves the process which is closest to a
miss more if that process is ahead, and less if it is behind; in a fifth of the batches at random. After each batch it
looks, and the repetition counts as missed if the true point was outside at any look.

Runs are drawn in large pools and counted per batch and outcome of the likelihood table at once. No run is part of two
repetitions. All repetitions are played side by side: arrays start with the axis of repetitions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from typing import Protocol

import numpy as np
from bet_tables import place_bets
from scipy.sparse import csr_array
from scipy.stats import binom

import plumdp as pl
from plumdp.confidence.estimates import SPACE_AS_DATA, information, law_of_pilot, law_of_space, marginal_precision
from plumdp.confidence.evidence import log_evidence
from plumdp.confidence.likelihood_table import LikelihoodTable, likelihood_table
from plumdp.data.runs import make_plan as plan_runs
from plumdp.data.trajectories import recorded_blocks
from plumdp.model.graph import read_only
from plumdp.model.objectives import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.at_points import move_inside
from plumdp.solver.coupled.gradient import policy_gradient

ERROR = 0.1
SIDES = (1, -1)
UNIFORM, GREEDY = 0, 1


class Case(Protocol):
    """What is played on: a case study or another model with an objective and a hidden point."""

    model: ParametricMDP
    objective: Objective
    true_point: dict
    max_steps: int


@dataclass(frozen=True)
class Sizes:
    """Numbers of runs and batches of one repetition; the likelihood is looked at after every so many batches."""

    pilot: int = 60
    batches: int = 30
    batch: int = 20
    look: int = 5

    @property
    def ratio(self):
        """The planned amount of main data per run of the pilot."""
        return self.batches * self.batch / self.pilot

    @property
    def looks(self):
        """The last batch before each look at the likelihood."""
        return np.arange(self.look - 1, self.batches, self.look)


SIZES = Sizes()


@dataclass(frozen=True, eq=False)
class Game:
    """A case with all that the adversary knows."""

    case: Case
    sizes: Sizes
    table: LikelihoodTable
    truth: np.ndarray  # (d)
    chances: np.ndarray  # (n): of the outcomes at the true point
    policies: tuple  # uniform, nearly greedy
    expected: np.ndarray  # (2, n): how often each outcome is seen in a run, on average
    space: tuple  # mean and precision of the space
    gradient: Callable  # of the value of the policy that is best at a point


def prepare(case: Case, sizes: Sizes = SIZES, *, n_runs: int = 4000) -> Game:
    """Return the game for a case; expected numbers of outcomes come from so many runs of their own."""
    model, table = case.model, likelihood_table(case.model)
    point = model.space.point(case.true_point)
    truth = np.array([float(point[name]) for name in table.names])
    policies = ("uniform", _nearly_greedy(case))
    expected = [
        table.pool(pl.simulate(model, point, n_runs, rng=i, max_steps=case.max_steps, policy=p, pilot=False).counts)
        for i, p in enumerate(policies)
    ]
    chances = np.array([float(f.evaluate(point)) for f in table.outcomes])

    def gradient(point):
        at = move_inside(model, point, table.middle)
        chances = read_only(model.expressions.evaluate(at[None, :])[:, 0].clip(0, 1))
        known = IntervalMDP(model.graph, model.expression, chances, chances)
        best = pl.stages.solve(known, case.objective, precision=1e-6, max_sweeps=1000).policy
        return policy_gradient(model, best, case.objective, at)[1]

    average = np.array(expected) / n_runs
    return Game(case, sizes, table, truth, chances, policies, average, law_of_space(model), gradient)


def _nearly_greedy(case: Case, greed: float = 0.9):
    """Return the probabilities of choices: mostly the best at the true point, otherwise any."""
    graph = case.model.graph
    best = pl.stages.solve(pl.stages.instantiate(case.model, case.true_point), case.objective).policy
    sizes = np.diff(graph.first_choice)
    weights = np.repeat((1 - greed) / sizes, sizes)
    weights[best] += greed
    return weights


def draw_pool(game: Game, policy: int, n_batches: int, batch: int, rng) -> np.ndarray:
    """Return how often each outcome was seen (n_batches, n) in batches of so many runs."""
    table, case = game.table, game.case
    n_tied = len(table.first) - 1
    ways = csr_array((table.multiple, table.counts_for, table.first), shape=(n_tied, len(table.outcomes)))
    found = np.zeros((n_batches, len(table.outcomes)), dtype=np.float32)
    n_runs = n_batches * batch
    plan = plan_runs(case.model, case.true_point, n_runs, rng, case.max_steps, game.policies[policy], None)
    for block in recorded_blocks(plan):
        number = block.episode // batch
        first, last = int(number[0]), int(number[-1]) + 1
        key = (number - first) * n_tied + table.tied[block.transition]
        tied = np.bincount(key, minlength=(last - first) * n_tied).reshape(last - first, n_tied)
        found[first:last] += tied @ ways
    return found


@dataclass(frozen=True, eq=False)
class Plan:
    """What the pilot of one repetition has decided."""

    pilot: np.ndarray  # (n)
    law: tuple  # mean and precision
    ahead: np.ndarray  # (d, d): information that is expected
    gradient: np.ndarray  # (d)

    def factors(self, table: LikelihoodTable, error: float) -> np.ndarray:
        """Return the factors (2, n) of the bets on both sides; one where there are none."""
        found = [
            place_bets(table, self.law[0], self.ahead, self.gradient, error=error / 2, side=side) for side in SIDES
        ]
        return np.array([np.ones(len(table.outcomes)) if f is None else f for f in found])


def make_plan(game: Game, pilot: np.ndarray) -> Plan:
    """Return what ``likelihood_set`` would make of a pilot."""
    law = law_of_pilot(game.table, pilot, game.space)
    ahead = game.sizes.ratio * information(game.table, pilot, law.mean) + SPACE_AS_DATA * game.space.precision
    return Plan(pilot, law, ahead, game.gradient(law.mean))


def gains(game: Game, factors: np.ndarray) -> np.ndarray:
    """Return ln e[j] - ln Z[r](θ) of each outcome (…, n): what a process gains at the true point when it is seen."""
    flat = factors.reshape(-1, factors.shape[-1])
    n_groups = len(game.table.is_class)
    by_group = csr_array(
        (np.ones(len(game.chances)), (np.arange(len(game.chances)), game.table.group)),
        shape=(len(game.chances), n_groups),
    )
    means = np.where(game.table.is_class, (flat * game.chances) @ by_group, 1.0)
    return (np.log(flat) - np.log(means)[:, game.table.group]).reshape(factors.shape)


@dataclass(frozen=True, eq=False)
class Played:
    """The data of all repetitions."""

    plans: Sequence[Plan]
    batches: np.ndarray  # (repetitions, batches, n)

    def pilots(self) -> np.ndarray:
        return np.array([plan.pilot for plan in self.plans])

    def until(self, batches: np.ndarray) -> np.ndarray:
        """Return how often each outcome was seen up to some batches (repetitions, len(batches), n), without pilots."""
        return np.cumsum(self.batches, axis=1, dtype=np.float64)[:, batches]


def play(game: Game, n_repetitions: int, rng: np.random.Generator, *, error: float = ERROR) -> Played:
    """Return the data that the adversary has chosen, in view of bets at an error on both sides together."""
    sizes = game.sizes
    pilots = draw_pool(game, UNIFORM, n_repetitions, sizes.pilot, rng).astype(np.float64)
    plans = [make_plan(game, pilot) for pilot in pilots]
    shape = (n_repetitions, sizes.batches, len(game.chances))
    pools = [
        draw_pool(game, p, n_repetitions * sizes.batches, sizes.batch, rng).reshape(shape) for p in (UNIFORM, GREEDY)
    ]
    wins = gains(game, np.array([plan.factors(game.table, error) for plan in plans]))
    spread = wins**2 @ game.expected.T  # (repetitions, side, policy)
    process = np.zeros((n_repetitions, 2))
    rows, chosen = np.arange(n_repetitions), np.empty(shape, dtype=np.float32)
    for i in range(sizes.batches):
        leader = process.argmax(axis=1)
        wilder = spread[rows, leader].argmax(axis=1)
        policy = np.where(process[rows, leader] > 0, wilder, 1 - wilder)
        at_random = rng.random(n_repetitions) < 0.2
        policy = np.where(at_random, rng.integers(0, 2, n_repetitions), policy)
        chosen[:, i] = np.where((policy == UNIFORM)[:, None], pools[UNIFORM][:, i], pools[GREEDY][:, i])
        process += np.einsum("rsj,rj->rs", wins, chosen[:, i])
    return Played(plans, chosen)


def processes(game: Game, played: Played, factors: np.ndarray) -> np.ndarray:
    """Return the processes (repetitions, batches, sides) of bets (repetitions, sides, n) at the true point."""
    return np.cumsum(np.einsum("rsj,rbj->rbs", gains(game, factors), played.batches), axis=1)


def out_of_half_spaces(game: Game, played: Played, error: float) -> np.ndarray:
    """Return after which batches (repetitions, batches) the bets of the pilot exclude the true point."""
    factors = np.array([plan.factors(game.table, error) for plan in played.plans])
    return (processes(game, played, factors) >= log(2 / error)).any(axis=2)


def log_likelihoods(game: Game, seen: np.ndarray) -> np.ndarray:
    """Return the logarithm of the likelihood of the true point (…), given how often outcomes were seen (…, n)."""
    return seen @ np.log(np.where(game.chances > 0, game.chances, 1.0))


def evidence_above_truth(
    game: Game, seen: np.ndarray, laws: Sequence[tuple], *, least: float = -np.inf
) -> tuple[np.ndarray, int]:
    """Return ln evidence - ln likelihood at the true point (rows) for rows of seen outcomes, each with a law.

    Where an upper bound on the evidence says that this is less than ``least``, it is not calculated and minus infinity
    is returned. The second result is how often it was calculated.
    """
    truth = log_likelihoods(game, seen)
    needed = upper_evidence(game, seen, laws) - truth >= least if least > -np.inf else np.ones(len(seen), dtype=bool)
    found = np.full(len(seen), -np.inf)
    for i in np.flatnonzero(needed).tolist():
        found[i] = log_evidence(game.table, seen[i], *laws[i]) - truth[i]
    return found, int(needed.sum())


def upper_evidence(game: Game, seen: np.ndarray, laws: Sequence[tuple], *, n_steps: int = 12) -> np.ndarray:
    """Return upper bounds on the logarithm of the evidence (rows), from any point y by real arithmetic.

    ln(1 + s) <= s - κ s² / 2 for s <= t with κ = 2 (t - ln(1 + t)) / t². An outcome of a class has a probability of at
    most one wherever the prior counts, so t = 1 / f - 1; for factors the tangent, κ = 0, will do. With the gradient g
    of ℓ(y) - |y|²_h / 2 and A = h + Σ count κ β βᵀ / f², the integral over all z is that of a normal law:

        ln evidence <= ℓ(y) - |y|²_h / 2 + |g|²_{A⁻¹} / 2 + ½ ln det h - ½ ln det A.
    """
    table = game.table
    slopes = table.coefficients @ table.basis
    k = slopes.shape[1]
    outer = (slopes[:, :, None] * slopes[:, None, :]).reshape(len(slopes), k * k)
    known: dict[int, np.ndarray] = {}
    for law in laws:
        known.setdefault(id(law), marginal_precision(law[1], table.basis))
    h = np.array([known[id(law)] for law in laws])
    means = np.array([law[0] for law in laws])
    y, start = (game.truth - means) @ table.basis, table.constants + means @ table.coefficients.T

    def expand(y):
        f = np.where(seen > 0, start + y @ slopes.T, 1.0)
        return f, (seen / f) @ slopes - np.einsum("rij,rj->ri", h, y)

    for _ in range(n_steps):
        f, gradient = expand(y)
        second = h + ((seen / f**2) @ outer).reshape(-1, k, k)
        step = np.linalg.solve(second, gradient[:, :, None])[:, :, 0]
        fall = np.where(seen > 0, -(step @ slopes.T) / f, 0.0).max(axis=1)
        y = y + step * np.minimum(1.0, 0.8 / np.maximum(fall, 1e-9))[:, None]
    f, gradient = expand(y)
    t = np.maximum(1 / f - 1, 1e-3)
    curvature = np.where(table.is_class[table.group] & (f <= 1), 2 * (t - np.log1p(t)) / t**2, 0.0)
    matrix = h + ((seen * curvature / f**2) @ outer).reshape(-1, k, k)
    value = (seen * np.log(f)).sum(axis=1) - np.einsum("ri,rij,rj->r", y, h, y) / 2
    rest = np.einsum("ri,ri->r", gradient, np.linalg.solve(matrix, gradient[:, :, None])[:, :, 0])
    return value + rest / 2 + np.linalg.slogdet(h)[1] / 2 - np.linalg.slogdet(matrix)[1] / 2


@dataclass(frozen=True, eq=False)
class Misses:
    """In which repetitions the true point was ever outside each set, and at the end."""

    ever: dict[str, np.ndarray]
    at_end: dict[str, np.ndarray]
    n_evidence: int  # how often evidence was calculated

    def __add__(self, other):
        return Misses(
            {name: np.append(found, other.ever[name]) for name, found in self.ever.items()},
            {name: np.append(found, other.at_end[name]) for name, found in self.at_end.items()},
            self.n_evidence + other.n_evidence,
        )


HALF_SPACES, WITH_PILOT, WITHOUT_PILOT, DESIGN = "half-spaces", "likelihood, pilot", "likelihood, no pilot", "design"
ERRORS = {HALF_SPACES: ERROR, WITH_PILOT: ERROR, WITHOUT_PILOT: ERROR, DESIGN: 0.9 * ERROR}


def judge(game: Game, played: Played) -> Misses:
    """Return in which repetitions each of four sets missed: three alone, and the design of 80 % and 10 %."""
    looks = game.sizes.looks
    half_spaces = out_of_half_spaces(game, played, ERROR)
    design = out_of_half_spaces(game, played, 0.8 * ERROR)
    main = played.until(looks)
    shape, rows = main.shape[:2], (-1, main.shape[2])
    laws = [plan.law for plan in played.plans for _ in looks]
    pilot, n_pilot = evidence_above_truth(game, main.reshape(rows), laws, least=-log(ERROR))
    everything = (main + played.pilots()[:, None]).reshape(rows)
    space, n_space = evidence_above_truth(game, everything, [game.space] * len(everything), least=-log(ERROR))
    pilot, space = pilot.reshape(shape), space.reshape(shape)
    outside = {
        HALF_SPACES: half_spaces,
        WITH_PILOT: pilot > -log(ERROR),
        WITHOUT_PILOT: space > -log(ERROR),
        DESIGN: design | np.repeat(pilot > -log(0.1 * ERROR), game.sizes.look, axis=1),
    }
    ever = {name: found.any(axis=1) for name, found in outside.items()}
    return Misses(ever, {name: found[:, -1] for name, found in outside.items()}, n_pilot + n_space)


def count_misses(game: Game, n_repetitions: int, *, seed: int, chunk: int = 250) -> Misses:
    """Return the misses of many repetitions, played in chunks to save memory."""
    rng = np.random.default_rng(seed)
    total = None
    for first in range(0, n_repetitions, chunk):
        found = judge(game, play(game, min(chunk, n_repetitions - first), rng))
        total = found if total is None else total + found
    return total


def critical_value(n_repetitions: int, error: float, level: float = 0.01) -> int:
    """Return the least number of misses that is too many: more of them have a probability of at most ``level``.

    >>> critical_value(400, 0.1), critical_value(2000, 0.1), critical_value(400, 0.01)
    (56, 233, 10)
    """
    return int(binom.isf(level, n_repetitions, error)) + 1
