"""Widths of bounds by whole runs over normal intervals: of a mean, of a table on policy, and of two arms that ran.

``python -m studies.run_widths`` prints both tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import plumdp as pl
from plumdp.certifying.pipeline import prespecifying
from plumdp.confidence.bounded_means import Tally, mean_bounds
from plumdp.confidence.run_bets import mean_ends
from plumdp.data import read_whole_runs, record
from plumdp.model import Question
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import as_objective, ask

GOAL, UP, SEEDS = 'Pmax=? [ F "goal" ]', {"walk": 0.5, "run": 0.6}, 6
TRUTH = {name: 1 / (1 + ((1 - p) / p) ** 2) for name, p in UP.items()}  # the gambler's ruin, from 2 of 4
NORMAL = 2 * 1.96


def walk() -> tuple[ParametricMDP, Any]:
    """Return a walk from 2 to 0 or 4 whose rows are unknown, and the true probabilities."""

    def step(state: Any) -> Any:
        if state.x in (0, 4):
            return {"stay": [(1, state)]}
        up, down = state._replace(x=state.x + 1), state._replace(x=state.x - 1)
        return {"walk": pl.unknown(up, down), "run": pl.unknown(up, down)}

    table = pl.explore(step, {"x": 2}, labels={"goal": lambda s: s.x == 4, "end": lambda s: s.x in (0, 4)})
    graph = table.graph
    action = np.array(graph.action_names)[graph.action[graph.choice_of_transition()]]
    goes_up = (
        graph.states["x"][graph.successor] > graph.states["x"][graph.state_of_choice()[graph.choice_of_transition()]]
    )
    up = np.array([UP.get(name, 1.0) for name in action])
    return table, np.where(action == "stay", 1.0, np.where(goes_up, up, 1 - up))


def log_of(table: ParametricMDP, truth: Any, n: int, seed: int, chance: float) -> pd.DataFrame:
    """Return a log of runs, each of the arm "run" with a chance, and else of "walk"."""
    is_first, parts = np.random.default_rng(seed).random(n) < chance, []
    for arm, own, p in (("run", is_first, chance), ("walk", ~is_first, 1 - chance)):
        if own.any():
            rng, stop = 10 * seed + len(arm), table.labels["end"]
            made = record(table, truth, int(own.sum()), rng=rng, max_steps=300, policy=arm, stop=stop)
            frame = pd.DataFrame(made.columns("transitions"))
            parts.append(frame.assign(episode=np.flatnonzero(own)[frame.episode], arm=arm, p=p))
    return pd.concat(parts).sort_values(["episode", "step"], ignore_index=True)


def widths_of(n: int) -> dict[str, float]:
    """Return mean widths over normal intervals, by the table and beside whole runs."""
    table, truth = walk()
    of_value = NORMAL * np.sqrt(TRUTH["run"] * (1 - TRUTH["run"]) / n)
    of_difference = NORMAL * np.sqrt(sum(p * (1 - p) for p in TRUTH.values()) / (n / 2))
    found: dict[str, list[float]] = {}
    for seed in range(SEEDS):
        on_policy, both = log_of(table, truth, n, seed, 1.0), log_of(table, truth, n, seed, 0.5)
        counts = pl.read_log(table, on_policy, sampling="trajectories", order="runs")
        own = read_whole_runs(table, on_policy, expected=n)
        arms = read_whole_runs(table, both, pl.LogFormat(columns={"arm": "arm", "chance": "p"}), expected=n).of(
            "run", "walk"
        )
        of_both = pl.read_log(table, both, order="runs", expected=n)
        ways: tuple[tuple[str, Any, Any], ...] = (("table", None, None), ("with runs", own, arms))
        for name, runs, pair in ways:
            value = pl.certify(table, counts, prespecifying(ask(GOAL, table), "run", runs=runs), confidence=0.95)
            asked = Question(table, as_objective(GOAL, table), policy="run", against="walk", runs=pair)
            learned = pl.learn(table, of_both, objectives=[asked], confidence=0.95)
            less = pl.difference(learned, GOAL, "run", "walk")
            found.setdefault(f"value, {name}", []).append((value.upper - value.lower) / of_value)
            found.setdefault(f"difference, {name}", []).append((less.upper - less.lower) / of_difference)
    return {name: float(np.mean(each)) for name, each in found.items()}


def main() -> None:
    """Print widths over normal intervals."""
    rng = np.random.default_rng(1)
    for n in (30, 100, 300, 1000, 3000):
        widths = []
        for values in (rng.random((40, n)) < 0.77).astype(float):
            seen = Tally.of(values)
            ends = mean_ends(values, values, 0.05, n), mean_bounds(seen, seen, 0.05)
            widths.append([(upper - lower) / (NORMAL * np.sqrt(0.77 * 0.23 / n)) for lower, upper in ends])
        told = "{:.2f} as pre-specified, {:.2f} with nothing pre-specified".format(*np.mean(widths, axis=0))
        print(f"coin 0.77, {n} runs: {told}", flush=True)
    for n in (100, 300):
        print(f"{n} runs:", ", ".join(f"{name} {width:.2f}" for name, width in widths_of(n).items()), flush=True)


if __name__ == "__main__":
    main()
