"""How often processes that test a model exceed their bound at the true point, while an adversary chooses the data.

As ``coverage_game``, but counts are kept per transition, since tests of a model look at single rows, and there may be
more than two policies to choose from. A repetition is a pilot under the uniform policy and then batches of runs.

A *linear* process gains a fixed number whenever a transition is seen: ln e[t] - ln Z[c](θ) with factors e that the
pilot has fixed and Z[c](θ) = Σ p[t] e[t] over the transitions of the choice c. Its exponential is a martingale,
whatever picks the actions. Each process has a weight, and weights sum to at most one: the largest of (process + ln
weight) exceeds ln(1 / error) at some time with probability at most the error (Ville 1939).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from bet_tables import place_bets
from wrong_models import true_probabilities

import plumdp as pl
from plumdp.confidence.contrasts import find_contrasts
from plumdp.confidence.estimates import SPACE_AS_DATA, information, law_of_pilot, law_of_space
from plumdp.confidence.likelihood_table import LikelihoodTable, likelihood_table
from plumdp.data.counts import Pilot, TransitionCounts
from plumdp.data.runs import make_plan as plan_runs
from plumdp.data.trajectories import recorded_blocks
from plumdp.learning.learned import value_directions
from plumdp.model.question import Question

SIDES = (1, -1)


@dataclass(frozen=True)
class Sizes:
    """Numbers of runs and batches of one repetition."""

    pilot: int = 100
    batches: int = 40
    batch: int = 40

    @property
    def ratio(self):
        """The planned amount of main data per run of the pilot."""
        return self.batches * self.batch / self.pilot


SIZES = Sizes()


@dataclass(frozen=True, eq=False)
class Game:
    """A case with all that the adversary knows."""

    case: object  # model, objective, true_point, max_steps
    objectives: tuple
    sizes: Sizes
    table: LikelihoodTable
    truth: np.ndarray  # (d)
    chances: np.ndarray  # (T): of transitions at the true point
    policies: tuple
    expected: np.ndarray  # (n_policies, T): how often each transition is seen in a run, on average
    directions: Callable  # of the values of the objectives, at a point

    @property
    def graph(self):
        return self.case.model.graph

    @cached_property
    def law_of_space(self):
        return law_of_space(self.case.model)

    @cached_property
    def contrasts(self):
        return find_contrasts(self.case.model)

    def counts(self, pilot: np.ndarray, main: np.ndarray, sampling="adaptive") -> TransitionCounts:
        """Return the data of one repetition up to some moment, as the package takes them."""
        pilot, main = pilot.astype(np.int64), main.astype(np.int64)
        return TransitionCounts(self.graph, pilot + main, sampling, Pilot(pilot, ratio=self.sizes.ratio))


def prepare(case, objectives=None, sizes: Sizes = SIZES, *, policies=None, n_runs: int = 4000) -> Game:
    """Return the game for a case; unless given, policies are the uniform one and one greedy for each objective."""
    objectives = tuple(objectives or (case.objective,))
    model, table = case.model, likelihood_table(case.model)
    known = pl.stages.instantiate(model, case.true_point)
    policies = policies or ("uniform", *(_nearly(model.graph, pl.stages.solve(known, o).policy) for o in objectives))
    expected = [
        pl.simulate(model, case.true_point, n_runs, rng=i, max_steps=case.max_steps, policy=p, pilot=False).counts
        for i, p in enumerate(policies)
    ]
    truth = np.array([float(model.space.point(case.true_point)[name]) for name in table.names])
    directions = value_directions([Question(model, objective) for objective in objectives], {})
    parts = case, objectives, sizes, table, truth, true_probabilities(case)
    return Game(*parts, tuple(policies), np.array(expected) / n_runs, directions)


def _nearly(graph, policy, greed: float = 0.9):
    """Return the probabilities of choices: mostly those of a policy, otherwise any."""
    sizes = np.diff(graph.first_choice)
    weights = np.repeat((1 - greed) / sizes, sizes)
    weights[policy] += greed
    return weights


def draw_pool(game: Game, policy: int, n_batches: int, batch: int, rng) -> np.ndarray:
    """Return how often each transition was seen (n_batches, T) in batches of so many runs."""
    case, n = game.case, game.graph.n_transitions
    found = np.zeros((n_batches, n), dtype=np.float32)
    n_runs = n_batches * batch
    plan = plan_runs(case.model, case.true_point, n_runs, rng, case.max_steps, game.policies[policy], None)
    for block in recorded_blocks(plan):
        number = block.episode // batch
        first, last = int(number[0]), int(number[-1]) + 1
        key = (number - first) * n + block.transition
        found[first:last] += np.bincount(key, minlength=(last - first) * n).reshape(last - first, n)
    return found


def gains(game: Game, factors: np.ndarray) -> np.ndarray:
    """Return ln e[t] - ln Z[c](θ) of factors e of transitions (…, T)."""
    first, lengths = game.graph.first_transition[:-1], np.diff(game.graph.first_transition)
    means = np.add.reduceat(factors * game.chances, first, axis=-1)
    return np.log(factors) - np.repeat(np.log(means), lengths, axis=-1)


@dataclass(frozen=True, eq=False)
class Linear:
    """Linear processes that a pilot has placed."""

    gains: np.ndarray  # (m, T), at the true point
    log_weights: np.ndarray  # (m)
    names: tuple[str, ...]  # (m)
    kind: np.ndarray | None = None  # (m): which kind each is of, if several were put together


def value_bets(game: Game, pilot: np.ndarray, *, error: float, share: float | None = None) -> Linear:
    """Return the processes of the bets across the gradients of all objectives, as ``likelihood_set`` places them.

    The error is that of all half-spaces together; ``share`` is the weight of each process, unless it is the one that
    the package gives it.
    """
    table, space = game.table, game.law_of_space
    seen = table.pool(pilot)
    law = law_of_pilot(table, seen, space)
    ahead = game.sizes.ratio * information(table, seen, law.mean) + SPACE_AS_DATA * space.precision
    directions = game.directions(law.mean)
    found, names = [], []
    for direction in directions:
        for side in SIDES:
            each = error / (2 * len(directions)) if share is None else share * error
            factors = place_bets(table, law.mean, ahead, direction.gradient, error=each, side=side)
            if factors is not None:
                found.append(of_transitions(game, gains_of_outcomes(game, factors)))
                names.append(f"{direction.text} {side:+d}")
    weight = 1 / (2 * len(directions)) if share is None else share
    shape = (-1, game.graph.n_transitions)
    return Linear(np.array(found).reshape(shape), np.full(len(found), np.log(weight)), tuple(names))


def gains_of_outcomes(game: Game, factors: np.ndarray) -> np.ndarray:
    """Return ln e[j] - ln Z[r](θ) of factors of the outcomes of the likelihood table (n)."""
    table = game.table
    chances = table.constants + table.coefficients @ game.truth
    means = np.bincount(table.group, factors * chances, len(table.is_class))
    return np.log(factors) - np.where(table.is_class, np.log(means), 0.0)[table.group]


def of_transitions(game: Game, of_outcomes: np.ndarray) -> np.ndarray:
    """Return for each transition (T) the sum over the outcomes of the likelihood table that it counts for."""
    table = game.table
    ways = of_outcomes[table.counts_for] * table.multiple
    of_tied = np.add.reduceat(np.append(ways, 0.0), table.first[:-1]) * (np.diff(table.first) > 0)
    return of_tied[table.tied]


@dataclass(frozen=True, eq=False)
class Played:
    """The data of all repetitions."""

    pilots: np.ndarray  # (repetitions, T)
    batches: np.ndarray  # (repetitions, batches, T)
    linear: Sequence[Linear]

    def processes(self, repetition: int, linear: Linear | None = None) -> np.ndarray:
        """Return linear processes plus the logarithms of their weights (batches, m)."""
        linear = self.linear[repetition] if linear is None else linear
        return np.cumsum(self.batches[repetition] @ linear.gains.T, axis=0) + linear.log_weights


def play(
    game: Game,
    n_repetitions: int,
    rng: np.random.Generator,
    place: Callable[[Game, np.ndarray], Linear],
    *,
    collect: str = "adversary",
) -> Played:
    """Return the data of repetitions: an "adversary" chooses policies, or they are "trajectories", or "adaptive".

    The adversary wants the largest of the processes that ``place`` makes to rise: in each batch it moves the leading
    process more if it is ahead, and less if it is behind; in a fifth of the batches it chooses at random. Adaptive data
    come from one who does not know the truth: it follows the policy whose last batch had the largest share of first
    outcomes, and tries another in a fifth of the batches. Trajectories are all uniform.
    """
    sizes, n_policies = game.sizes, len(game.policies)
    pilots = draw_pool(game, 0, n_repetitions, sizes.pilot, rng).astype(np.float64)
    linear = [place(game, pilot) for pilot in pilots]
    shape = (n_repetitions, sizes.batches, game.graph.n_transitions)
    n_batches, used = n_repetitions * sizes.batches, 1 if collect == "trajectories" else n_policies
    pools = [draw_pool(game, p, n_batches, sizes.batch, rng).reshape(shape) for p in range(used)]
    chosen = np.empty(shape, dtype=np.float32)
    choosers = {"adversary": _opponent, "adaptive": _follower, "trajectories": lambda *_: _Always(0)}
    for r, own in enumerate(linear):
        chooser = choosers[collect](game, own)
        for i in range(sizes.batches):
            is_random = n_policies > 1 and collect != "trajectories" and rng.random() < 0.2
            policy = int(rng.integers(n_policies)) if is_random else chooser.choose()
            chosen[r, i] = pools[policy][r, i]
            chooser.see(policy, chosen[r, i])
    return Played(pilots, chosen, linear)


@dataclass
class _Always:
    policy: int

    def choose(self) -> int:
        return self.policy

    def see(self, policy: int, batch: np.ndarray) -> None:
        pass


@dataclass
class _Opponent:
    """Knows the processes at the true point, and how much each policy moves them."""

    linear: Linear
    spread: np.ndarray  # (m, n_policies)
    process: np.ndarray  # (m)

    def choose(self) -> int:
        leader = int(self.process.argmax())
        is_ahead = self.process[leader] > self.linear.log_weights[leader]
        return int(self.spread[leader].argmax() if is_ahead else self.spread[leader].argmin())

    def see(self, policy: int, batch: np.ndarray) -> None:
        self.process += self.linear.gains @ batch


def _opponent(game: Game, linear: Linear) -> _Opponent:
    return _Opponent(linear, linear.gains**2 @ game.expected.T, linear.log_weights.copy())


@dataclass
class _Follower:
    """Sees outcomes only: which policy had the largest share of first outcomes when it was last tried."""

    is_first: np.ndarray  # (T)
    is_open: np.ndarray  # (T): in rows with several outcomes
    share: np.ndarray  # (n_policies)

    def choose(self) -> int:
        return int(self.share.argmax())

    def see(self, policy: int, batch: np.ndarray) -> None:
        self.share[policy] = batch[self.is_first].sum() / max(batch[self.is_open].sum(), 1)


def _follower(game: Game, _: Linear) -> _Follower:
    first = game.graph.first_transition
    is_open = np.repeat(np.diff(first) > 1, np.diff(first))
    is_first = np.zeros(len(is_open), dtype=bool)
    is_first[first[:-1]] = True
    return _Follower(is_first & is_open, is_open, np.ones(len(game.policies)))


def independent(
    game: Game, n_repetitions: int, rng: np.random.Generator, place: Callable, *, visits: int = 4
) -> Played:
    """Return repetitions of a fixed number of samples of each choice: the pilot five times as many as a batch."""
    shape = (n_repetitions, game.sizes.batches, game.graph.n_transitions)
    pilots, batches = np.empty((n_repetitions, shape[2])), np.empty(shape, dtype=np.float32)
    for first, last in pairwise(game.graph.first_transition.tolist()):
        row = game.chances[first:last] / game.chances[first:last].sum()
        pilots[:, first:last] = rng.multinomial(5 * visits, row, size=n_repetitions)
        batches[:, :, first:last] = rng.multinomial(visits, row, size=shape[:2])
    return Played(pilots, batches, [place(game, pilot) for pilot in pilots])


def worst_moments(largest: np.ndarray) -> np.ndarray:
    """Return the batch after which an adversary stops (repetitions), given the largest process after each batch."""
    return largest.argmax(axis=1)


# A case with three objectives that have nothing in common


def three_coins(throws: int = 3):
    """Return a model in which one of three coins is thrown some times, and for each the objective of mostly heads."""
    chances = pl.parameters("p", "q", "r")

    def step(s):
        if s.coin == 0:
            return {f"take{i}": [(1, s._replace(coin=i))] for i in (1, 2, 3)}
        if s.thrown == throws:
            return {"done": [(1, s)]}
        later, p = s._replace(thrown=s.thrown + 1), chances[s.coin - 1]
        return {"throw": [(p, later._replace(heads=s.heads + 1)), (1 - p, later)]}

    def is_won(coin):
        return lambda s: s.coin == coin and 2 * s.heads > throws

    model = pl.explore(
        step,
        {"coin": 0, "thrown": 0, "heads": 0},
        space=pl.ParameterSpace.unit("p", "q", "r"),
        labels={f"won{i}": is_won(i) for i in (1, 2, 3)},
    )
    objectives = tuple(pl.parse_property(f'Pmax=? [ F "won{i}" ]', model) for i in (1, 2, 3))
    truth = {"p": "0.5", "q": "0.3", "r": "0.6"}
    return SimpleNamespace(
        model=model, objective=objectives[0], objectives=objectives, true_point=truth, max_steps=throws + 1
    )
