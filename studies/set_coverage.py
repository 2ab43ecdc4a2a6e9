"""How often likelihood sets and half-spaces ever miss the true point, against an adversary: the full protocol.

    python -m studies.set_coverage [repetitions] [name …]

Error 0.1; a pilot, then batches of runs whose policy an adversary picks who knows the truth and looks after each batch
(``tests/support/coverage_game.py``). The first table has the sets that must miss in fewer repetitions than the critical
value (1 %, one-sided): half-spaces alone, the likelihood alone with and without a pilot, and the design in which
half-spaces have 80 % of the error and the likelihood has 10 %. "Ever (at the end)". The second table has mutants, which
must miss in at least that many, and the third one coin whose throws end at the worst moment.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import coin_ends
import coverage_game as play_ground
import coverage_mutants as mutants
import numpy as np

import plumdp as pl
from studies.layered import layered_model

STUDIES = ("engagement:20", "glider:11,9", "rover:10,10", "parallel:5", "betting:25", "aircraft:20,10")
LAYERED = ("sparse 8", "mixture 20", "bilinear 8")
RARE = "rare 8"  # takes half a second per repetition, so that it is played only if it is named
LONG = play_ground.Sizes(200, 20, 100, 5)
N_ENDS = 400


def prepared(name: str) -> Any:
    """Return the game of a case study, or of a layered model by its kind and number of parameters."""
    if name in (*LAYERED, RARE):
        kind, d = name.split()
        return play_ground.prepare(layered_model(kind, int(d), n_rows=30, n_layers=8, width=12), LONG)
    return play_ground.prepare(pl.case_study(name))


def sets_table(names: list[str], repetitions: int) -> None:
    """Print how often each set missed."""
    critical = {name: play_ground.critical_value(repetitions, e) for name, e in play_ground.ERRORS.items()}
    print("| model | " + " | ".join(critical) + " | seconds |\n|" + "---|" * (len(critical) + 2))
    print("| critical value | " + " | ".join(map(str, critical.values())) + " | |", flush=True)
    for name in names:
        start = time.perf_counter()
        found = play_ground.count_misses(prepared(name), repetitions, seed=1)
        cells = [f"{found.ever[key].sum()} ({found.at_end[key].sum()})" for key in critical]
        print(f"| {name} | " + " | ".join(cells) + f" | {time.perf_counter() - start:.0f} |", flush=True)


def mutants_table(names: list[str], repetitions: int) -> None:
    """Print how often mutants of the bets missed."""
    print(f"\nMutants, {repetitions} repetitions, critical value {play_ground.critical_value(repetitions, 0.1)}:\n")
    print(
        "| model | ten times the error | bets from main data: direction in hindsight | gradient | pilots from the end |"
    )
    print("|---|---|---|---|---|", flush=True)
    for name in names:
        game = prepared(name)
        played = play_ground.play(game, repetitions, np.random.default_rng(2))
        found = [
            play_ground.out_of_half_spaces(game, played, 10 * play_ground.ERROR).any(axis=1),
            mutants.bets_from_main_data(game, played),
            mutants.bets_from_main_data(game, played, in_hindsight=False),
            mutants.pilots_from_the_end(game, played),
        ]
        print(f"| {name} | " + " | ".join(str(missed.sum()) for missed in found) + " |", flush=True)


def coin_table(repetitions: int) -> None:
    """Print how often one coin is missed at the worst end."""
    print("\n| pilot of a coin (0.5), ends from 40 to 200,000 throws | missed |\n|---|---|", flush=True)
    for name, rule in coin_ends.RULES.items():
        rate = coin_ends.miss_rate(rule, 0.5, error=0.1, n_repetitions=repetitions, n_ends=N_ENDS)
        print(f"| {name} | {100 * rate:.1f} % |", flush=True)


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    chosen = sys.argv[2:] or [*STUDIES, *LAYERED]
    sets_table(chosen, n)
    mutants_table([name for name in ("engagement:20", "sparse 8", "mixture 20") if name in chosen], min(n, 300))
    coin_table(n)
