"""How often claims are ever wrong against an adversary who knows the truth and stops at the worst moment.

    python -m studies.games KIND --games 2000 --error 0.05        differences, days, blocks or runs

- differences: two policies of a table side by side, with rows visited more often that are furthest off;
- days: counts of days that are added, or of one log that grows, of a table and of a model with as many parameters;
- blocks: the likelihoods of blocks of parameters and of all parameters, with an end at which one is furthest off;
- runs: the mean of whole runs and the difference of two arms that were drawn, at all ends, of many pre-specified
numbers.

A game is lost if the claim is wrong at any end that the adversary looks at. That may happen in a share of the games
that is the error, so that more of them than the critical value (1 %, one-sided) refute the claim.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
from coverage_game import critical_value
from set_points import satisfies, set_of
from table_cases import BetMoments, Errors, of_class, paired_table, row_of_place, values_at

import plumdp as pl
from plumdp.base.errors import WhyNot
from plumdp.confidence.likelihood import LevelSet, likelihood_set
from plumdp.confidence.run_bets import Draws, difference_ends, mean_ends
from plumdp.confidence.sets import ModelCache
from plumdp.data.counts import TransitionCounts
from plumdp.data.pilots import moments_for, open_pilot
from plumdp.data.seen import Seen
from plumdp.tables.bracket import table_bounds
from studies.widths import agent, maintenance, walk

Rng = np.random.Generator
_LOOKS = 8  # of a difference
_CHUNKS = 6  # between looks, in which rows are chosen
_TRIED = 1  # ends of a game that are looked at, those that are furthest off


def loses_difference(rng: Rng, error: float) -> bool:
    """Return whether the bracket of a difference is ever wrong; rows are visited more often that are furthest off."""
    table, truth = paired_table(rng)
    chance, row = of_class(table, truth), row_of_place(table)
    values = values_at(table, truth)
    margin = 0.2 * np.abs(values).max() + 0.1
    known = table.chain.known
    lower, upper = min(values.min(), known.min()) - margin, max(values.max(), known.max()) + margin
    ahead, rows, focus = table.by_place(table.differences(values)), np.unique(row), rng.choice([0.0, 0.3, 0.7])
    errors = Errors(of_side=0.4 * error, rows=0.1 * error, ball=0.1 * error)
    first = len(rows) * np.exp(rng.uniform(*np.log([20, 400])))
    counts, seen, planned = np.zeros(table.n_places), list[Any](), first * float(rng.choice([10, 40]))

    def visit(place: int, n: float) -> None:
        own = np.flatnonzero(row == place)
        counts[own] += rng.multinomial(int(n), chance[own] / chance[own].sum())

    wrong = []
    for look in range(_LOOKS + 1):
        for _ in range(_CHUNKS):
            n = first * 1.7**look / _CHUNKS
            visits = np.maximum(np.bincount(row, counts, row.max() + 1)[rows], 1)
            off = np.abs(np.bincount(row, counts * ahead, row.max() + 1)[rows]) / np.sqrt(visits)
            if look:
                visit(rows[int(np.argmax(off))], focus * n)
            for each in rows:
                visit(each, np.ceil((1 - focus) * n / len(rows)))
        seen.append(counts.copy())
        about = (counts + chance) / (np.bincount(row, counts) + 1)[row]  # above zero, so that all runs end
        shares = np.where(table.place >= 0, about[table.place], truth)
        wrong.append(abs(table.start @ (values_at(table, shares) - values)) * counts.sum() ** 0.5)
    for end in 1 + np.argsort(wrong[1:])[-_TRIED:]:
        moments = BetMoments(tuple(seen[: end + 1]), tuple(float(each.sum()) for each in seen[:end]), planned)
        found = table_bounds(table, moments, errors, np.full(table.n, lower), np.full(table.n, upper))
        if isinstance(found, WhyNot):
            continue
        low = max([found.estimate - found.distance, *([] if found.low is None else [found.low.value])])
        high = min([found.estimate + found.distance, *([] if found.high is None else [found.high.value])])
        if not low - 1e-9 <= table.start @ values <= high + 1e-9:
            return True
    return False


@cache
def model_of_days() -> tuple[Any, Any, float]:
    """Return a walk of four places, the probabilities of its transitions and the value."""
    problem = walk(4)
    at = pl.stages.instantiate(problem.twin, problem.point)
    return problem, at.lower[at.expression], problem.true_value


def loses_sum_of_days(rng: Rng, error: float) -> bool:
    """Return whether a certificate from added days is ever wrong, at the ends at which the runs are furthest off."""
    is_table = bool(rng.integers(2))
    problem, chance, value = model_of_days()
    model = problem.model if is_table else problem.twin
    parts = [runs_of(model.graph, chance, int(rng.choice([5, 20, 60])), rng) for _ in range(int(rng.integers(5, 25)))]
    total, sums, is_one_log = None, [], rng.random() < 0.5
    for day, part in enumerate(parts):
        counts = counts_of_day(model, np.concatenate(parts[: day + 1]) if is_one_log else part, is_table=is_table)
        total = counts if total is None or is_one_log else total + counts
        sums.append(total)
    goal = np.isin(model.graph.successor, np.flatnonzero(model.labels["top"])) & (
        model.graph.state_of_choice()[model.graph.choice_of_transition()] != model.graph.successor
    )
    ended = np.cumsum([len(part) for part in parts])
    won = np.cumsum([part[:, goal].sum() for part in parts])
    off = np.abs(won - ended * value) / np.sqrt(ended)
    asked = pl.model.Question(model, pl.parse_property(problem.objective, model), policy="uniform")
    for end in np.argsort(off)[-_TRIED:].tolist():
        learned = pl.learn(model, sums[end], objectives=[asked], confidence=1 - error)
        if is_table:
            found = pl.conclude(learned, asked.objective, policy="uniform")
            if not found.lower <= value <= found.upper:
                return True
        elif not satisfies(set_of(learned), {name: Fraction(x) for name, x in problem.point.items()}):
            return True
    return False


def runs_of(graph: Any, chance: Any, n: int, rng: Rng) -> Any:
    """Return how often each of n runs of a chain took each transition (n, n_transitions)."""
    seen = np.zeros((n, graph.n_transitions), dtype=np.int64)
    first = graph.first_transition
    state = np.full(n, graph.initial_state)
    while True:
        open_runs = np.flatnonzero(first[state + 1] - first[state] > 1)
        if not len(open_runs):
            return seen
        at = first[state[open_runs]]
        taken = at + (rng.random(len(open_runs)) >= chance[at])  # a choice of two
        seen[open_runs, taken] += 1
        state[open_runs] = graph.successor[taken]


def counts_of_day(model: Any, runs: Any, *, is_table: bool) -> TransitionCounts:
    """Return the counts of a log of runs that may have ended at will."""
    n, total = len(runs), np.cumsum(runs, axis=0)
    moments = [Seen(total[size - 1]) for size in moments_for(n, is_table=is_table, is_planned=False)]
    pilot = open_pilot(moments, n, Seen(0 * total[0]), is_table=is_table)
    return TransitionCounts(model.graph, total[-1], "adaptive", pilot)


@cache
def model_of_blocks(name: str) -> tuple[ModelCache, Any, list[slice], Any]:
    """Return a model in blocks, the probabilities of its transitions, and those of the choices with several."""
    problem = maintenance() if name == "maintenance" else agent(tied=True)
    at, graph = pl.stages.instantiate(problem.twin, problem.point), problem.twin.graph
    rows = [slice(a, b) for a, b in pairwise(graph.first_transition) if b - a > 1]
    point = np.array([float(problem.point[each]) for each in problem.twin.space.names])
    return ModelCache(problem.twin), at.lower[at.expression], rows, point


def loses_blocks(rng: Rng, error: float) -> bool:
    """Return whether the likelihood of any block excludes the truth, where it is least likely."""
    cache, chance, rows, point = model_of_blocks(str(rng.choice(["maintenance", "agent"])))
    table, graph = cache.table, cache.model.graph
    counts, seen, focus = np.zeros(graph.n_transitions, dtype=np.int64), [], rng.choice([0.0, 0.5, 0.9])
    for end in np.geomspace(3, rng.choice([100, 1000, 10000]), 40):
        off = [
            abs(counts[row][0] - chance[row][0] * counts[row].sum()) / max(counts[row].sum(), 1) ** 0.5 for row in rows
        ]
        share = np.full(len(rows), (1 - focus) / len(rows))
        share[int(np.argmax(off))] += focus
        for row, n in zip(rows, rng.poisson(0.2 * end * share), strict=True):
            counts[row] += rng.multinomial(n, chance[row])
        seen.append(counts.copy())
    values = table.values(point)[0]
    lost = []
    for each in seen:
        pooled = table.pool(each)
        visits = table.visits(pooled)[table.group]
        share = np.where(pooled > 0, pooled, 1) / np.maximum(visits, 1)
        lost.append([(pooled * np.log(share / values))[is_about].sum() for _, is_about in table.blocks])
    ends = {*np.argmax(lost, axis=0).tolist(), int(np.argmax(np.sum(lost, axis=1)))}
    for end in ends:
        found = likelihood_set(cache.model, TransitionCounts(graph, seen[end], "adaptive"), error=error, cache=cache)
        likely = found.of_kind(LevelSet)
        assert len(likely) == 1 + len(table.blocks)
        if any(each.outcome_counts @ np.log(values) < each.threshold for each in likely):
            return True
    return False


def loses_runs(rng: Rng, error: float) -> bool:
    """Return whether bounds from whole runs are ever wrong: they are from all ends up to the last."""
    planned, n = int(rng.choice([20, 60, 200])), int(rng.choice([40, 150, 400]))
    if rng.random() < 0.5:
        mean = float(rng.choice([0.02, 0.1, 0.3, 0.5, 0.9]))
        worth = (rng.random(n) < mean).astype(float) if rng.random() < 0.7 else rng.beta(8 * mean, 8 - 8 * mean, n)
        low, high = mean_ends(worth, worth, error, planned)
        return not low <= mean <= high
    n_tasks, chance = int(rng.choice([1, 3])), float(rng.choice([0.2, 0.5, 0.8]))
    means = rng.random((2, n_tasks))
    task, is_first = rng.integers(n_tasks, size=n), rng.random(n) < chance
    worth = (rng.random(n) < np.where(is_first, means[0, task], means[1, task])).astype(float)
    low, high = difference_ends(worth, worth, Draws(is_first, np.full(n, chance), task), error, planned)
    return not low <= float((means[0] - means[1]).mean()) <= high


KINDS: Mapping[str, Callable[[Rng, float], bool]] = {
    "differences": loses_difference,
    "days": loses_sum_of_days,
    "blocks": loses_blocks,
    "runs": loses_runs,
}


def played(kind: str, error: float, games: int) -> Iterator[bool]:
    """Yield whether each of some games was lost."""
    total = 0
    for game in range(games):
        lost = KINDS[kind](np.random.default_rng([1, game]), error)
        total += lost
        if game % 100 == 99:
            print(f"{kind} at {error:g}: {total} of {game + 1} lost so far", file=sys.stderr, flush=True)
        yield lost


def main(words: list[str]) -> None:
    """Play games of one kind, and print how many were lost."""
    parser = argparse.ArgumentParser(prog="python -m studies.games", description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--games", type=int, default=2000)
    parser.add_argument("--error", type=float, default=0.05)
    options, start = parser.parse_args(words), time.process_time()
    lost = sum(played(options.kind, options.error, options.games))
    critical = critical_value(options.games, options.error)
    told = f"{options.kind} at {options.error:g}: {lost} of {options.games} games lost, refuted from {critical} on"
    print(f"{told}; {time.process_time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
