"""How often the test of a model rejects a right one, against an opponent: the full protocol.

    python -m studies.fit_size [repetitions] [part …]

Error 0.1. ``size``: tests of each kind at the whole error, and all of them with the shares of the package, for
independent samples, trajectories, adaptive data and an opponent who knows the truth, picks the policy of each batch and
stops at the worst moment (``tests/support/fit_game.py``). What must stay below the critical value (1 %, one-sided) is
how often the largest process exceeds its bound *at the true point*, which is more than the p-value can; "p" is how
often the p-value is at most 0.1 at the worst moment. ``mutants`` must be above the critical value. ``p-values``: their
law over data sets that end as planned, and at the worst moment. ``objectives``: three objectives from one ``learn``;
the opponent stops at the worst moment and reports the worst of three brackets.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import fit_game as game_of
import fit_mutants as mutants
import fit_processes as tests
import numpy as np
import wrong_models
from coverage_game import critical_value
from fit_objectives import is_any_missed
from fit_p_values import p_value_at, p_values, superuniformity

import plumdp as pl

ERROR = 0.1
CHUNK = 200
STUDIES = ("machine", "engagement:5", "rover:3,3,2", "betting:4", "parallel:2,1")
SIZES = game_of.Sizes(100, 30, 40)
WAYS = ("independent", "trajectories", "adaptive", "opponent")
PARTS = ("size", "mutants", "p-values", "objectives")


def case_of(name: str) -> Any:
    """Return a case by name."""
    own = {"machine": wrong_models.machine, "three coins": game_of.three_coins}
    return own[name]() if name in own else pl.case_study(name)


def play(game: Any, n: int, rng: Any, place: Any, way: str) -> Any:
    """Return repetitions of a way to collect data."""
    if way == "independent":
        return game_of.independent(game, n, rng, place)
    return game_of.play(game, n, rng, place, collect=way)


def exceeds(largest: Any, way: str, error: float = ERROR) -> Any:
    """Return in which repetitions the bound was exceeded: ever by an opponent, otherwise at the end."""
    at = largest.max(axis=1) if way == "opponent" else largest[:, -1]
    return at >= -np.log(error)


def largest_linear(played: Any) -> Any:
    """Return the largest of the linear processes (repetitions, batches)."""
    return np.array([played.processes(r).max(axis=1) for r in range(len(played.linear))])


def sizes_of(name: str, way: str, repetitions: int) -> list[int]:
    """Return how often each kind of test exceeded its bound, alone and all together, and how often p <= 0.1."""
    game, rng = game_of.prepare(case_of(name), sizes=SIZES), np.random.default_rng(1)
    total = np.zeros(6, dtype=int)
    for first in range(0, repetitions, CHUNK):
        n = min(CHUNK, repetitions - first)
        played = play(game, n, rng, partial(tests.package_bets, error=ERROR), way)
        found = tests.largest_by_kind(game, played)
        at_truth, p = p_values_of(game, played, found.together, way)
        alone = [exceeds(kind, way) for kind in (found.values, found.drifts, found.rows, found.classes)]
        total += [int(each.sum()) for each in (*alone, at_truth <= ERROR, p <= ERROR)]
    return [int(n) for n in total]


def p_values_of(game: Any, played: Any, largest: Any, way: str) -> tuple[Any, Any]:
    """Return exp(-largest process) at the true point and the p-value, at the end or at the worst moment.

    A p-value cannot be below the former, so that it is only calculated where that is at most 0.1.
    """
    moments = game_of.worst_moments(largest) if way == "opponent" else np.full(len(largest), largest.shape[1] - 1)
    at_truth, p = np.empty(len(largest)), np.ones(len(largest))
    for r, b in enumerate(moments.tolist()):
        pilot, main = played.pilots[r], played.batches[r, : b + 1].sum(axis=0)
        rest = tests.largest_of_rest(game, pilot, main, error=ERROR, least=-np.log(ERROR))
        at_truth[r] = np.exp(-max(largest[r, b], rest))
        if at_truth[r] <= ERROR:
            p[r] = p_value_at(game, pilot, main, error=ERROR, sampling="adaptive" if way == "opponent" else way)
    return at_truth, p


def size_table(repetitions: int) -> None:
    """Print how often right models were rejected."""
    print(f"Size, {repetitions} repetitions, critical value {critical_value(repetitions, ERROR)}:\n")
    columns = "values", "drift", "rows", "classes", "all, at the truth", "p <= 0.1", "seconds"
    print("| model | data | " + " | ".join(columns) + " |\n|" + "---|" * 9, flush=True)
    for way in reversed(WAYS):
        for name in STUDIES:
            start = time.perf_counter()
            cells = " | ".join(map(str, sizes_of(name, way, repetitions)))
            print(f"| {name} | {way} | {cells} | {time.perf_counter() - start:.0f} |", flush=True)


def mutants_table(repetitions: int) -> None:
    """Print how often mutants rejected right models, against an opponent."""
    n = min(repetitions, 200)
    print(f"\nMutants, {n} repetitions, critical value {critical_value(n, ERROR)}:\n")
    print(
        "| model | drift: not divided | ten times the error | numbers of cells in hindsight | bets from main data "
        "| rows: not divided | largest likelihood | classes: largest likelihood |\n|" + "---|" * 8,
        flush=True,
    )
    for name in STUDIES:
        game, rng = game_of.prepare(case_of(name), sizes=SIZES), np.random.default_rng(2)
        undivided = play(game, n, rng, partial(tests.drift_bets, error=ERROR, divided=False), "opponent")
        bold = play(game, n, rng, partial(tests.drift_bets, error=10 * ERROR), "opponent")
        played = play(game, n, rng, partial(tests.drift_bets, error=ERROR), "opponent")
        rows, classes = (tests.cells_of(game, kind) for kind in ("row", "class"))
        found = [
            exceeds(largest_linear(undivided), "opponent"),
            exceeds(largest_linear(bold), "opponent", 10 * ERROR),
            exceeds(mutants.largest_in_hindsight(game, played, error=ERROR), "opponent"),
            exceeds(mutants.largest_of_main_bets(game, played, error=ERROR), "opponent"),
            exceeds(tests.largest_cell(rows, played, weight=1), "opponent"),
            exceeds(tests.largest_cell(rows, played, is_mixed=False), "opponent"),
            exceeds(tests.largest_cell(classes, played, is_mixed=False), "opponent"),
        ]
        print(f"| {name} | " + " | ".join(str(int(each.sum())) for each in found) + " |", flush=True)


def p_values_table(repetitions: int) -> None:
    """Print the law of p-values: shares at most some levels, and the one-sided test against the uniform law."""
    n = min(repetitions, 1000)
    levels = (0.01, 0.05, 0.1, 0.2, 0.5, 0.9)
    print(
        f"\np-values of {n} data sets of right models: shares of p at most a level; KS: one-sided, against uniform:\n"
    )
    print("| model | end | " + " | ".join(map(str, levels)) + " | KS |\n|" + "---|" * (len(levels) + 3), flush=True)
    for name in STUDIES:
        game = game_of.prepare(case_of(name), sizes=SIZES)
        for end in ("planned", "worst moment"):
            p = p_values(game, n, seed=3, is_worst=end == "worst moment", error=ERROR)
            shares = " | ".join(f"{(p <= level).mean():.3f}" for level in levels)
            print(f"| {name} | {end} | {shares} | {superuniformity(p):.3g} |", flush=True)


def objectives_table(repetitions: int, seconds: float = 180) -> None:
    """Print how often some bracket of three missed, and how often the processes of the bets exceeded their bounds."""
    case = case_of("three coins")
    game = game_of.prepare(case, case.objectives, game_of.Sizes(100, 100, 12))
    print("\nThree objectives, an opponent who stops at the worst moment and reports the worst:\n")
    print(
        "| bets | repetitions | critical value | processes at the truth | brackets missed | of |\n" + "|---" * 6 + "|"
    )
    for text, place in (
        ("as the package divides the error", partial(game_of.value_bets, error=0.8 * ERROR)),
        ("the whole error for all of them, divided", partial(game_of.value_bets, error=ERROR)),
        ("mutant: the whole error for each objective", partial(game_of.value_bets, error=ERROR, share=0.5)),
    ):
        rng, error = np.random.default_rng(4), 0.8 * ERROR if "package" in text else ERROR
        largest, missed, start = [], [], time.perf_counter()
        for first in range(0, repetitions, CHUNK):
            played = game_of.play(game, min(CHUNK, repetitions - first), rng, place)
            now = largest_linear(played)
            largest.append(now.max(axis=1) >= -np.log(error))
            for r, b in enumerate(game_of.worst_moments(now).tolist()):
                if "package" in text and time.perf_counter() - start < seconds:
                    missed.append(is_any_missed(game, played.pilots[r], played.batches[r, : b + 1].sum(axis=0), ERROR))
        critical = critical_value(repetitions, error)
        exceeded = int(np.concatenate(largest).sum())
        print(f"| {text} | {repetitions} | {critical} | {exceeded} | {sum(missed)} | {len(missed)} |", flush=True)


if __name__ == "__main__":
    n_repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    for part in sys.argv[2:] or PARTS:
        table = {
            "size": size_table,
            "mutants": mutants_table,
            "p-values": p_values_table,
            "objectives": objectives_table,
        }
        table[part](n_repetitions)
