"""A rule against practice, for 400 pumps of two brands over a year: widths over normal intervals, and what holds.

``python -m studies.pumps SEEDS PUMPS`` asks what ``plumdp start pumps.csv --cost cost --against practice`` and then
``plumdp certify pumps.csv --policy rule.py --against practice --confidence 0.95`` ask, without the command line.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

import plumdp as pl
from plumdp.certifying.pipeline import comparing
from plumdp.data.returns import outcomes_of
from plumdp.model.policy import normalised
from plumdp.model.question import as_objective, ask
from plumdp.result.rungs import Ground

STATES, ACTIONS = ("good", "worn", "bad", "failed"), ("none", "service", "replace")
WEAR = (
    np.array([[0.94, 0.055, 0, 0.005], [0, 0.88, 0.10, 0.02], [0, 0, 0.82, 0.18], [0, 0, 0, 1]]),
    np.array([[0.86, 0.13, 0, 0.01], [0, 0.72, 0.23, 0.05], [0, 0, 0.65, 0.35], [0, 0, 0, 1]]),
)
SERVICE = np.array([[0.99, 0.01, 0, 0], [0.70, 0.28, 0.02, 0], [0.25, 0.45, 0.25, 0.05], [0.5, 0.3, 0.2, 0]])
REPLACE = np.tile([0.97, 0.03, 0, 0], (4, 1))
COST = np.array([[0, 260, 900], [0, 260, 900], [0, 260, 900], [0, 1500, 2600]], dtype=float)  # means
PRACTICE = np.array([[0.95, 0.05, 0], [0.6, 0.3, 0.1], [0.25, 0.4, 0.35], [0, 0.07, 0.93]])
RULE = np.array([[1.0, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]])
NOISE, MISSED, WEEKS = 0.35, 0.01, 52


def value(policy: Any, steps: int) -> float:
    """Return the exact mean of what a pump costs in so many weeks, half of which are of each brand."""
    total = 0.0
    for wear in WEAR:
        rows, at = np.stack([wear, SERVICE, REPLACE], axis=1), np.array([1.0, 0, 0, 0])
        for _ in range(steps):
            taken = at[:, None] * policy
            total, at = total + (taken * COST).sum() / 2, np.einsum("sa,sat->t", taken, rows)
    return total


def log_of(seed: int, n: int, *, noisy: bool = True) -> pd.DataFrame:
    """Return a year of weekly inspections of pumps, one in a hundred of which is missed."""
    rng, rows = np.random.default_rng([seed, 58]), []
    for pump in range(n):
        wear, state, monday = WEAR[rng.integers(2)], 0, pd.Timestamp("2025-01-06") + pd.Timedelta(days=rng.integers(5))
        for week in range(WEEKS):
            action = rng.choice(3, p=PRACTICE[state])
            cost = COST[state, action] * (rng.lognormal(-(NOISE**2) / 2, NOISE) if noisy else 1.0)
            if week == 0 or rng.random() >= MISSED:
                seen = STATES[state], ACTIONS[action], round(cost, 2)
                rows.append((f"P{pump:04}", monday + pd.Timedelta(weeks=week), *seen))
            state = rng.choice(4, p=(wear, SERVICE, REPLACE)[action][state])
    return pd.DataFrame(rows, columns=["pump", "date", "condition", "action", "cost"])


def rule(state: Any) -> str:
    """Return the action of the rule, to replace whatever is not good."""
    return "none" if state.condition == "good" else "replace"


def answer(log: pd.DataFrame, confidence: float = 0.95) -> Mapping[str, Any]:
    """Return the brackets of the rule, of practice and of the difference, and the normal intervals."""
    found = pl.start(log, cost="cost")
    model, read, text = found.model, found.log, found.objective
    (asked,) = comparing(ask(text, model, memory=True), rule, "practice", prespecified=False)
    learned = pl.learn(model, read, objectives=[asked], confidence=confidence)
    less = pl.difference(learned, text, rule, "practice")
    alone = pl.certify(model, read, text, policy="practice", confidence=confidence)
    assert read.read_runs is not None
    runs, graph = read.read_runs(model), asked.model.graph
    made = outcomes_of(as_objective(text, model), model, runs, graph, normalised(graph, np.ones(graph.n_choices)))
    low, high = made.within
    normal = 2 * 1.96 * float(np.std(made.lower, ddof=1)) * (high - low) / np.sqrt(len(runs))
    return {
        "steps": found.within, "cap": found.run_cap, "runs": len(runs), "normal": normal, "less": less, "alone": alone,
    }  # fmt: skip


def main(seeds: int = 20, n: int = 400) -> None:
    """Print a line for each log, and what holds of all."""
    rows = []
    for seed in range(1, seeds + 1):
        found = answer(log_of(seed, n))
        less, alone, steps = found["less"], found["alone"], found["steps"]
        ends = {each.ground: each for each in less.rungs}
        apart, by_rows, runs = ends[Ground.RIVAL_RUNS], ends[Ground.ROWS], alone.claim.rungs[0]
        truth = {"rule": value(RULE, steps), "practice": value(PRACTICE, steps)}
        truth["less"] = truth["rule"] - truth["practice"]
        is_in = [
            each.lower <= truth[name] <= each.upper
            for name, each in (("practice", runs), ("rule", less.first), ("less", apart), ("less", by_rows))
        ]
        usual = less.approximate[1] - less.approximate[0]
        widths = [each.upper - each.lower for each in (runs, less.first, apart, by_rows)]
        rows.append((*widths, widths[0] / found["normal"], widths[2] / usual, widths[3] / usual, all(is_in)))
        told = {"practice": runs, "rule": less.first, "less by runs": apart, "less by rows": by_rows}
        print(
            f"{seed:2}:", "; ".join(f"{name} {each.lower:.0f} to {each.upper:.0f}" for name, each in told.items()),
            f"(truth {truth['less']:.0f}, {found['runs']} runs, cap {found['cap']:.0f}; inside: {all(is_in)})",
            flush=True,
        )  # fmt: skip
    middle = np.median(np.array(rows, dtype=float), axis=0)
    print("medians: practice {:.0f}, rule {:.0f}, less {:.0f} by runs and {:.0f} by rows".format(*middle[:4]))
    print("over normal: practice {:.2f}, less {:.2f} by runs and {:.2f} by rows".format(*middle[4:7]))
    print(f"all inside in {sum(row[-1] for row in rows)} of {len(rows)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
