"""A rule against practice, for 400 pumps of two brands over a year: widths over normal intervals, and what holds.

``python -m studies.pumps SEEDS PUMPS`` asks what ``plumdp start pumps.csv --cost cost --against practice`` and then
``plumdp certify pumps.csv --policy rule.py --against practice --confidence 0.95`` ask, without the command line; and
the same with the list of prices that ``start`` prints.
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


def bootstrap(log: pd.DataFrame, steps: int, n: int = 300) -> tuple[float, float]:
    """Return what 30 lines with 300 bootstrap samples of pumps say of the rule less practice, at 95 %."""
    rows = log.assign(s=log.condition.map(STATES.index), a=log.action.map(ACTIONS.index))
    rows["pump"] = pd.factorize(rows.pump)[0]
    each = rows.groupby("pump")
    follows = (each.date.shift(-1) - rows.date).dt.days == 7
    there, after = rows[follows], each.s.shift(-1)[follows].astype(int)
    size = int(rows.pump.max()) + 1
    made, paid, taken = np.zeros((size, 4, 3, 4)), np.zeros((size, 4, 3)), np.zeros((size, 4, 3))
    np.add.at(made, (there.pump, there.s, there.a, after), 1)
    np.add.at(paid, (rows.pump, rows.s, rows.a), rows.cost)
    np.add.at(taken, (rows.pump, rows.s, rows.a), 1)
    rng, found = np.random.default_rng(0), []
    for _ in range(n):
        weight = np.bincount(rng.integers(size, size=size), minlength=size)
        moves, cost, visits = (np.tensordot(weight, one, 1) for one in (made, paid, taken))
        chances, means = moves / np.maximum(moves.sum(2, keepdims=True), 1), cost / np.maximum(visits, 1)
        values = []
        for policy in (RULE, visits / visits.sum(1, keepdims=True)):
            ahead = np.zeros(4)
            for _ in range(steps):
                ahead = (policy * (means + chances @ ahead)).sum(1)
            values.append(ahead[0])
        found.append(values[0] - values[1])
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def answer(log: pd.DataFrame, confidence: float = 0.95, *, is_list: bool = False) -> Mapping[str, Any]:
    """Return the brackets of the rule, of practice and of the difference, and the normal intervals."""
    found = pl.start(log, cost="cost")
    found = pl.start(log, cost=found.prices) if is_list else found
    model, read, text = found.model, found.log, found.objective
    (asked,) = comparing(ask(text, model, memory=True), rule, "practice", prespecified=found.is_prespecified)
    learned = pl.learn(model, read, objectives=[asked], confidence=confidence)
    less = pl.difference(learned, text, rule, "practice")
    assert read.read_runs is not None
    runs, graph = read.read_runs(model), asked.model.graph
    made = outcomes_of(as_objective(text, model), model, runs, graph, normalised(graph, np.ones(graph.n_choices)))
    low, high = made.within
    normal = 2 * 1.96 * float(np.std(made.lower, ddof=1)) * (high - low) / np.sqrt(len(runs))
    return {"steps": found.within, "normal": normal, "less": less, "bootstrap": bootstrap(log, found.within)}


def told(seed: int, n: int, *, noisy: bool) -> tuple[float, ...]:
    """Print what is said of one log, and return widths over normal intervals, and whether all holds and is decided."""
    found = answer(log_of(seed, n, noisy=noisy), is_list=not noisy)
    less, steps, (low, high) = found["less"], found["steps"], found["bootstrap"]
    truth = {"rule": value(RULE, steps), "practice": value(PRACTICE, steps)}
    truth["less"] = truth["rule"] - truth["practice"]
    said = {"rule": less.first, "practice": less.second, "less": less}
    is_in = all(each.lower <= truth[name] <= each.upper for name, each in said.items())
    usual = [each[1] - each[0] for each in (less.first.beside.approximate, less.approximate)]
    normal = usual[0], found["normal"], usual[1]
    widths = [each.upper - each.lower for each in said.values()]
    is_decided = not less.lower <= 0 <= less.upper
    ends = "; ".join(f"{name} {each.lower:.0f} to {each.upper:.0f}" for name, each in said.items())
    print(f"{seed:2}: {ends} (truth {truth['less']:.0f}; bootstrap {low:.0f} to {high:.0f})", flush=True)
    ratios = [width / each for width, each in zip(widths, normal, strict=True)]
    return (*ratios, widths[2], normal[2], high - low, is_in, low <= truth["less"] <= high, is_decided)


def main(seeds: int = 20, n: int = 400) -> None:
    """Print a line for each log and then the table: so many seeds of n pumps, and 3 of a quarter and of four times."""
    lines = []
    for size, number in ((n, seeds), (n // 4, min(seeds, 3)), (4 * n, min(seeds, 3))):
        for noisy in (True, False):
            rows = np.array([told(seed, size, noisy=noisy) for seed in range(1, number + 1)], dtype=float)
            rule_, practice, less, width, normal, other, *_ = np.median(rows, axis=0)
            is_in, held, decided = rows[:, 6:].sum(axis=0)
            lines.append(
                f"| {size:,} | {'noisy' if noisy else 'price list'} | {rule_:.2f} | {practice:.2f} | {less:.2f} "
                f"| {width:,.0f} | {normal:,.0f} | {other:,.0f} | {is_in:.0f} | {held:.0f} | {decided:.0f} | {number} |"
            )
    heads = "pumps, costs, rule, practice, difference, width, normal, bootstrap, inside, its inside, decided, logs"
    print(f"| {heads.replace(', ', ' | ')} |\n|{'---|' * 12}")
    print("\n".join(lines))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
