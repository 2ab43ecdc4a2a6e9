"""How large a change over time must be to be found: the p-value of a coin that changes, and where it seems to change.

    python -m studies.changes [repetitions] [runs]

A coin is thrown so many times, read in order as data that may have ended at will, with confidence 99.9 %. Its chance is
0.1 at first and another one later. "Found": the share of repetitions with a p-value of at most 0.001. "Missed": those
in which the bracket of all data misses the last chance and nothing is said. "From run": the median of the runs from
which on the diagnosis says that it changed.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
from coin_model import COIN
from time_games import read_over_time

import plumdp
from plumdp.region.conflict import Conflict

CHANGES = [(0.1, 0.5), (0.12, 0.5), (0.13, 0.5), (0.14, 0.5), (0.15, 0.5), (0.2, 0.5), (0.3, 0.5)]
CHANGES += [(0.15, 0.9), (0.2, 0.9), (0.3, 0.9), (0.2, 0.98), (0.3, 0.98), (0.2, 0.1)]


def play(n: int, later: float, start: float, seed: int) -> tuple[float, bool, int | None]:
    """Return the p-value, whether the bracket misses in silence, and from which run on it seems to have changed."""
    is_late = np.arange(n) >= start * n
    heads = np.random.default_rng(seed).random(n) < np.where(is_late, later, 0.1)
    learned = plumdp.learn(COIN, read_over_time(heads), objectives=['P=? [ F "heads" ]'])
    certificate = plumdp.conclude(learned, 'P=? [ F "heads" ]')
    assert learned.fit is not None
    run = None
    if isinstance(learned.region, Conflict) and learned.fit.change:
        run = int(learned.fit.change.partition("about run ")[2].partition(" ")[0].replace(",", ""))
    is_missed = certificate.status == "certified" and not certificate.lower <= later <= certificate.upper
    return learned.fit.p_value, is_missed, run


def main(repetitions: int = 20, n: int = 20_000) -> None:
    """Print the table."""
    print(f"{'0.1 to':>8}{'after':>10}{'found':>8}{'missed':>8}{'median p':>12}{'from run':>12}   ({n:,} runs)")
    for later, start in CHANGES:
        found = [play(n, later, start, seed) for seed in range(repetitions)]
        p_values = [p for p, *_ in found]
        since = [run for *_, run in found if run is not None]
        shown = f"{np.median(since):,.0f}" if since else "-"
        share = np.mean([p <= 0.001 for p in p_values]), np.mean([missed for _, missed, _ in found])
        print(
            f"{later:8.2f}{start * n:10,.0f}{share[0]:8.2f}{share[1]:8.2f}{np.median(p_values):12.2g}{shown:>12}",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
