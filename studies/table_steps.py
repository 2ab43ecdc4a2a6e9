"""Counts the steps until bounds in tables of unknown rows are a tenth, and a twentieth, apart: ours and intervals.

Models of the literature on statistical model checking, with nothing tied: the shared coin of two processes (Aspnes and
Herlihy 1990) as in PRISM's case study with K = 2, a slippery gridworld, and a queue that must not overflow. Intervals
are anytime-valid confidence sequences of all transitions, with all of the error and the same data. Data are runs under
uniform choices; their number grows by a quarter until the bounds are near enough. If the package confseq is installed,
there is a column for its intervals (Howard et al. 2021), each tuned to the number of visits that its row had in the
end, which nobody knows beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from math import nan
from time import process_time
from typing import Any
from unittest import mock

import numpy as np

import plumdp as pl
from plumdp.confidence import bounds
from plumdp.model.parametric import ParametricMDP

GAPS, GROWTH, CONFIDENCE = (0.1, 0.05), 1.25, 0.95
_FEWEST = 200.0  # trials that confseq is tuned to: for fewer, it may fail
Table = tuple[ParametricMDP, Callable[[Any, str, int], float], str, int]  # weight of a place, property, longest run


def coin() -> Table:
    """Return the shared coin: each process flips, moves the counter, and looks whether it has left the middle."""

    def step(s: Any) -> Any:
        moves = {f"process{i}": _process(s, i) for i in (1, 2) if s._asdict()[f"at{i}"] < 3}
        return moves or {"done": [(1, s)]}

    ends = {"ones": lambda s: s.at1 == s.at2 == 3 and s.coin1 == s.coin2 == 1, "end": lambda s: s.at1 == s.at2 == 3}
    model = pl.explore(step, {"counter": 6, "at1": 0, "coin1": 0, "at2": 0, "coin2": 0}, labels=ends)
    return model, lambda s, action, place: 1.0, 'Pmin=? [ F "ones" ]', 2000


def _process(s: Any, i: int) -> Any:
    at, heads = s._asdict()[f"at{i}"], s._asdict()[f"coin{i}"]
    if at == 0:
        return pl.unknown(*(s._replace(**{f"at{i}": 1, f"coin{i}": side}) for side in (0, 1)))
    if at == 1:
        moved = min(max(s.counter + (1 if heads else -1), 0), 12)
        return [(1, s._replace(counter=moved, **{f"at{i}": 2, f"coin{i}": 0}))]
    if 2 < s.counter < 10:
        return [(1, s._replace(**{f"at{i}": 0}))]
    return [(1, s._replace(**{f"at{i}": 3, f"coin{i}": int(s.counter >= 10)}))]


def grid(size: int = 5) -> Table:
    """Return a gridworld in which one in five moves goes to a side, and one in 50 into a pit; two cells are pits."""
    pits, ways = {(1, 3), (3, 1)}, {"east": (1, 0), "north": (0, 1), "west": (-1, 0), "south": (0, -1)}

    def step(s: Any) -> Any:
        if (s.x, s.y) in pits or (s.x, s.y) == (size - 1, size - 1):
            return {"stay": [(1, s)]}
        rows = {}
        for name, (dx, dy) in ways.items():
            aims = [(dx, dy), (dy, dx), (-dy, -dx)]
            cells = [s._replace(x=min(max(s.x + a, 0), size - 1), y=min(max(s.y + b, 0), size - 1)) for a, b in aims]
            rows[name] = pl.unknown(*dict.fromkeys([*cells, s._replace(x=1, y=3)]))
        return rows

    def corner(s: Any) -> bool:
        return bool(s.x == s.y == size - 1)

    labels = {"goal": corner, "end": lambda s: corner(s) or (s.x, s.y) in pits}
    model = pl.explore(step, {"x": 0, "y": 0}, labels=labels)
    return model, lambda s, action, place: (8.0, 1.0, 1.0, 0.2)[place], 'Pmax=? [ F "goal" ]', 400


def queue(capacity: int = 10) -> Table:
    """Return a queue that is served at one of two speeds, until it is empty or overflows; fast servers may fail."""

    def step(s: Any) -> Any:
        if s.n in (0, capacity):
            return {"stay": [(1, s)]}
        more, less = s._replace(n=s.n + 1), s._replace(n=s.n - 1)
        return {"slow": pl.unknown(more, s, less), "fast": pl.unknown(more, s, less, s._replace(n=capacity))}

    labels = {"full": lambda s: s.n == capacity, "end": lambda s: s.n in (0, capacity)}
    model = pl.explore(step, {"n": capacity // 2}, labels=labels)
    weights = {"slow": (3.0, 4.0, 3.0), "fast": (3.0, 3.0, 3.9, 0.1)}
    return model, lambda s, action, place: weights[action][place], 'Pmin=? [ F "full" ]', 400


def point_of(model: ParametricMDP, weight: Callable[[Any, str, int], float]) -> np.ndarray[Any, Any]:
    """Return the true probabilities, in proportion to weights of the places of each row."""
    graph, truth = model.graph, np.ones(model.graph.n_transitions)
    for choice in range(graph.n_choices):
        first, last = graph.first_transition[choice : choice + 2]
        name = graph.action_names[graph.action[choice]]
        if last - first > 1:
            truth[first:last] = [weight(graph.state_of(choice), name, i) for i in range(last - first)]
        truth[first:last] /= truth[first:last].sum()
    return truth


def of_confseq(successes: Any, trials: Any, error: float) -> tuple[Any, Any]:
    """Return confidence sequences by confseq where ``beta_binomial`` would have its own."""
    from confseq.boundaries import bernoulli_confidence_interval

    ends = [
        bernoulli_confidence_interval(float(k), int(n), error, max(float(n), _FEWEST), error) if n else (0.0, 1.0)
        for k, n in zip(successes, trials, strict=True)
    ]
    lower, upper = np.array(ends).reshape(-1, 2).T
    return lower, upper


def steps_until(table: Table, *, with_bets: bool) -> list[int]:
    """Return how many steps were needed for each gap."""
    model, weight, asked, longest = table
    found: list[int] = []
    truth, runs = point_of(model, weight), 100.0
    while len(found) < len(GAPS):
        counts = pl.simulate(model, truth, round(runs), rng=1, max_steps=longest, stop=model.labels["end"])
        data = counts if with_bets else replace(counts, pilot=None, sampling="adaptive")
        certificate = pl.certify(model, data, asked, confidence=CONFIDENCE)
        gap = certificate.upper - certificate.lower if certificate.status == "certified" else np.inf
        found += [counts.total] * sum(gap <= wanted for wanted in GAPS[len(found) :])
        runs *= GROWTH
    return found


def main() -> None:
    """Print a table of the steps that all kinds of bounds need."""
    has_confseq = find_spec("confseq") is not None
    print("| model | unknown rows | gap | ours | intervals | ratio | confseq | ratio | CPU s |\n|" + "---|" * 9)
    for make in (coin, grid, queue):
        began, table = process_time(), make()
        ours, theirs = (steps_until(table, with_bets=bets) for bets in (True, False))
        tuned = [nan] * len(GAPS)
        if has_confseq:
            with mock.patch.object(bounds, "beta_binomial", of_confseq):
                tuned = [float(steps) for steps in steps_until(table, with_bets=False)]
        rows, seconds = int(table[0].is_free_row.sum()), process_time() - began
        for gap, one, other, third in zip(GAPS, ours, theirs, tuned, strict=True):
            compared = f"{other:.2g} | {one / other:.2f} | {third:.2g} | {one / third:.2f}"
            print(f"| {make.__name__} | {rows} | {gap:g} | {one:.2g} | {compared} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
