"""Compares ``improve`` with the rule of SPIBB on two of its published benchmarks, which are made anew here.

Laroche, Trichelair and Tachet des Combes (2019): Safe Policy Improvement with Baseline Bootstrapping, ICML. Both of
their rules know the baseline, estimate the model by frequencies, and let the policy differ from the baseline only where
a state and action was seen at least ``n_min`` times. Π_b keeps the baseline's probability of all others, Π_≤b may also
lower it. The models are a gridworld with 25 cells, and random MDPs with 50 states and four actions, each of which leads
to four states. A run ends at the goal, which is worth 0.95^(steps - 1); baselines are half as good as the best policy,
counted from the uniform one. Here the discount is a chance of 0.05 to stop before each further step, which is known.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from time import process_time
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import plumdp as pl
from plumdp.data.pilots import planned_pilot, table_moments
from plumdp.data.seen import Seen
from plumdp.decisions import improve
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import policy_weights
from plumdp.model.question import Question

Floats: TypeAlias = npt.NDArray[np.float64]
DISCOUNT, ERROR, MOST_STEPS, PER_MODEL = Fraction(19, 20), 0.1, 500, 10
ASKED = 'Pmax=? [ F "goal" ]'
WALLS = {(2, 0), (2, 1), (2, 2), (3, 2), (3, 3)}  # between (x, y) and (x + 1, y)


@dataclass(frozen=True)
class World:
    """An MDP in which runs from the first state end at the goal, and a baseline."""

    moves: Floats  # (n, 4, n)
    goal: int
    baseline: Floats  # (n, 4)

    def values(self, moves: Floats, policy: Floats) -> tuple[Floats, Floats]:
        """Return the values of states (n) and of their actions (n, 4) under a policy."""
        n, gamma, is_goal = len(moves), float(DISCOUNT), np.arange(len(moves)) == self.goal
        chain = np.einsum("sa,sat->st", policy, moves) * ~is_goal[:, None]
        at = np.linalg.solve(np.eye(n) - gamma * chain * ~is_goal, chain[:, self.goal])
        return at, moves @ np.where(is_goal, 1.0, gamma * at)

    def value(self, policy: Floats) -> float:
        """Return the true value of a policy."""
        return float(self.values(self.moves, policy)[0][0])

    def best(self, moves: Floats, n: Floats, n_min: int, *, may_lower: bool) -> Floats:
        """Return the best policy of a model among those that the rule of SPIBB allows, by policy iteration."""
        policy, is_rare = self.baseline, n < n_min
        for _ in range(100):
            worth = self.values(moves, policy)[1]
            new = np.where(is_rare, 0.0 if may_lower else self.baseline, 0.0)
            for action in np.argsort(-worth, axis=1, kind="stable").T:
                at = np.arange(len(n)), action
                left = 1 - new.sum(axis=1)
                new[at] += np.where(is_rare[at], np.minimum(left, self.baseline[at]) if may_lower else 0.0, left)
            # what is left if all actions are rare goes to them as in the baseline
            new = np.where(is_rare.all(axis=1, keepdims=True), self.baseline, new)
            if np.allclose(new, policy):
                break
            policy = new
        return policy


def with_baseline(moves: Floats, goal: int, rng: np.random.Generator) -> World:
    """Return the world with a baseline: a softmax of the best values, made worse until it is half as good."""
    even = np.full(moves.shape[:2], 0.25)
    world = World(moves, goal, even)
    everything = np.ones(moves.shape[:2])
    best = world.best(moves, everything, 0, may_lower=False)
    worth, top, least = world.values(moves, best)[1], world.value(best), world.value(even)
    policy, sharp = best, 1e4
    while world.value(policy) > least + 0.75 * (top - least):
        sharp *= 0.9
        policy = np.exp(sharp * (worth - worth.max(axis=1, keepdims=True)))
        policy /= policy.sum(axis=1, keepdims=True)
    while world.value(policy) > least + 0.5 * (top - least):
        state = rng.integers(len(moves))
        policy[state, worth[state].argmax()] *= 0.9
        policy[state] /= policy[state].sum()
    return World(moves, goal, policy)


def grid(rng: np.random.Generator) -> World:
    """Return the gridworld: three of four moves go where they should, one in twenty back, the others to the sides."""
    ways, moves = [(0, 1), (1, 0), (0, -1), (-1, 0)], np.zeros((25, 4, 25))
    for x, y in np.ndindex(5, 5):
        for way, (dx, dy) in enumerate(ways):
            is_wall = dx != 0 and (min(x, x + dx), y) in WALLS
            to = (x, y) if is_wall or not (0 <= x + dx < 5 and 0 <= y + dy < 5) else (x + dx, y + dy)
            for action in range(4):
                moves[x + 5 * y, action, to[0] + 5 * to[1]] += (0.75, 0.1, 0.05, 0.1)[(way - action) % 4]
    return with_baseline(moves, 24, rng)


def random_world(rng: np.random.Generator) -> World:
    """Return a random MDP, whose goal is the state that is hardest to come to."""
    moves = np.zeros((50, 4, 50))
    for state, action in np.ndindex(50, 4):
        cuts = np.sort(rng.uniform(size=3))
        moves[state, action, rng.choice(50, 4, replace=False)] = np.diff([0, *cuts, 1])
    best = []
    for goal in range(1, 50):
        world = World(moves, goal, np.full((50, 4), 0.25))
        best.append(world.value(world.best(moves, np.ones((50, 4)), 0, may_lower=False)))
    values = np.array(best)
    return with_baseline(moves, 1 + int(np.where(values > 0.95**50, values, 2).argmin()), rng)


def table_of(world: World) -> ParametricMDP:
    """Return the table of a world, which knows the chance to stop, and which moves are possible, and nothing else."""
    stop = (-1, 0)

    def step(state: Any) -> Any:
        cell, is_deciding = state
        if state == stop or cell == world.goal:
            return {"end": [(1, state)]}
        if not is_deciding:
            return {"go on": [(DISCOUNT, state._replace(deciding=1)), (1 - DISCOUNT, state._replace(cell=-1))]}
        after = (np.flatnonzero(world.moves[cell, action]).tolist() for action in range(4))
        rows = ([state._replace(cell=to, deciding=0) for to in each] for each in after)
        return {str(a): pl.unknown(*row) if len(row) > 1 else [(1, row[0])] for a, row in enumerate(rows)}

    return pl.explore(step, {"cell": 0, "deciding": 1}, labels={"goal": lambda state: state.cell == world.goal})


def runs(world: World, n_runs: int, rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], ...]:
    """Return the number of the run, the state, the action and the next state of all steps under the baseline."""
    run, state, steps = np.arange(n_runs), np.zeros(n_runs, dtype=np.int64), []
    policy, moves = world.baseline.cumsum(axis=1), world.moves.cumsum(axis=2)
    for _ in range(MOST_STEPS):
        action = (rng.random((len(run), 1)) > policy[state]).sum(axis=1).clip(0, 3)
        after = (rng.random((len(run), 1)) > moves[state, action]).sum(axis=1).clip(0, len(moves) - 1)
        steps.append((run, state, action, after))
        goes_on = after != world.goal
        run, state = run[goes_on], after[goes_on]
    return tuple(np.concatenate(each) for each in zip(*steps, strict=True))


def counts_of(model: ParametricMDP, n_runs: int, steps: tuple[npt.NDArray[np.int64], ...]) -> pl.TransitionCounts:
    """Return counts of the table at all moments, in the order of the runs."""
    graph = model.graph
    cell, choice = graph.states["cell"], graph.choice_of_transition()
    name = np.array([int(name) if name.isdecimal() else 9 for name in graph.action_names])[graph.action]
    number = np.full((51, 10, 51), -1)  # of the transition; choices of other names are never counted
    number[cell[graph.state_of_choice()[choice]], name[choice], cell[graph.successor]] = np.arange(graph.n_transitions)
    run, transition = steps[0], number[steps[1:]]
    ends = (*table_moments(n_runs, is_planned=True), n_runs)
    seen = [np.bincount(transition[run < end], minlength=graph.n_transitions) for end in ends]
    return pl.TransitionCounts(
        graph, seen[-1], "adaptive", planned_pilot([*map(Seen, seen[:-1])], n_runs, sizes=ends[:-1])
    )


def improved(world: World, model: ParametricMDP, n_runs: int, steps: tuple[npt.NDArray[np.int64], ...]) -> Floats:
    """Return the policy of ``improve`` over the baseline."""
    graph, policy = model.graph, world.baseline.copy()
    name = np.array([int(name) if name.isdecimal() else 9 for name in graph.action_names])[graph.action]
    at = graph.states["cell"][graph.state_of_choice()]
    baseline = np.where(name < 4, world.baseline[at, np.minimum(name, 3)], 1.0)
    counts = counts_of(model, n_runs, steps)
    asked = Question(model, pl.parse_property(ASKED, model), against=baseline)
    found = improve(pl.learn(model, counts, objectives=[asked], confidence=1 - ERROR), ASKED, over=baseline)
    weights = policy_weights(graph, found.policy)
    policy[at[name < 4], name[name < 4]] = weights[name < 4]
    return policy


def spibb(world: World, steps: tuple[npt.NDArray[np.int64], ...], n_min: int, *, may_lower: bool) -> Floats:
    """Return the policy of a rule of SPIBB."""
    moves = np.zeros(world.moves.shape)
    np.add.at(moves, steps[1:], 1.0)
    n = moves.sum(axis=2)
    return world.best(moves / np.maximum(n, 1)[:, :, None], n, n_min, may_lower=may_lower)


def main(repetitions: int) -> None:
    """Print a table: how often each rule returns a policy that is worse than the baseline, and how much it gains.

    The repetitions of each model are divided among three amounts of data.
    """
    print(f"{repetitions} repetitions for each model, at the error {ERROR}")
    print("| model | runs | repetitions | rule | worse than the baseline | other than it | gain | CPU s |")
    print("|---|---|---|---|---|---|---|---|")
    for make in (grid, random_world):
        for n_runs, share in ((20, 0.4), (1_000, 0.4), (10_000, 0.2)):
            for rule, found in compare(make, n_runs, round(share * repetitions)).items():
                worse, other, gain, seconds = np.mean(found, axis=0)
                row = f"{worse:.1%} | {other:.0%} | {gain:+.2f} | {seconds:.2g} |"
                print(
                    f"| {make.__name__.removesuffix('_world')} | {n_runs:,} | {len(found)} | {rule} | {row}", flush=True
                )


def compare(make: Any, n_runs: int, repetitions: int) -> dict[str, list[tuple[float, ...]]]:
    """Return for each rule and repetition whether it is worse, whether it differs, its gain and its time.

    The gain is the part of the way from the baseline to the best policy. There are ten repetitions for each model.
    """
    rng = np.random.default_rng(1)
    results: dict[str, list[tuple[float, ...]]] = {}
    for repetition in range(repetitions):
        if repetition % PER_MODEL == 0:
            world = make(rng)
            model = table_of(world)
            best = world.best(world.moves, np.ones(world.baseline.shape), 0, may_lower=False)
            least, top = world.value(world.baseline), world.value(best)
        steps = runs(world, n_runs, rng)
        rules = {"improve": partial(improved, world, model, n_runs, steps)}
        for n_min in (5, 50):
            rules[f"Π_b-SPIBB, n_min = {n_min}"] = partial(spibb, world, steps, n_min, may_lower=False)
            rules[f"Π_≤b-SPIBB, n_min = {n_min}"] = partial(spibb, world, steps, n_min, may_lower=True)
        for rule, find in rules.items():
            began = process_time()
            policy = find()
            seconds, value = process_time() - began, world.value(policy)
            differs = bool(np.abs(policy - world.baseline).max() > 1e-9)
            found = (value < least - 1e-9, differs, (value - least) / (top - least), seconds)
            results.setdefault(rule, []).append(found)
    return results


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
