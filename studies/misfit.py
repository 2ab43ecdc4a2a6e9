"""Certificates that tolerate a tolerance, from data whose rows are off by it: misses, and width against the tolerance.

    python -m studies.misfit [--repetitions 21] [--plot FILE.png] [name …]

Each bracket is that of a coupled certificate at the confidence 0.9 from 2,000 runs of a case study. All rows are off by
the tolerance from those at the true point: at random; such that the best policy is worth as much, or as little, as can
be; or one of these for the data, and for the value what is worst for the very policy of the certificate, on both sides
("changing"). True values are those of the certificate's policy with the moved rows. A bracket that does not hold one
of them is a miss. The last column has how many of these certificates miss if they are asked for no model tolerance.

The second table, and the picture, have the width of the bracket against the tolerance, from data at the true point.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import misfit_game
import numpy as np

import plumdp as pl

NAMES = ("betting:25", "aircraft:20,10", "parallel:5", "rover:10,10", "glider:11,9", "engagement:20")
MISFITS = (0.003, 0.02)
WIDTHS = (0.0, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
RUNS, RUNS_FOR_WIDTHS = 2000, 20_000


def misses(names: list[str], repetitions: int) -> None:
    """Print how many brackets miss, for each case study, model tolerance and adversary."""
    print(
        "| model | model tolerance | "
        + " | ".join(misfit_game.KINDS)
        + " | brackets | missed | without model tolerance | seconds |"
    )
    print("|" + "---|" * (len(misfit_game.KINDS) + 6), flush=True)
    total, missed = 0, 0
    for name in names:
        game = misfit_game.prepare(name)
        for model_tolerance in MISFITS:
            start, cells, plain = time.perf_counter(), [], 0
            for kind in misfit_game.KINDS:
                played = [
                    misfit_game.play(game, kind, model_tolerance, n_runs=RUNS, seed=seed) for seed in range(repetitions)
                ]
                cells.append(sum(one.is_missed for one in played))
                few = range(min(repetitions, 3))
                plain += sum(
                    misfit_game.play(game, kind, model_tolerance, n_runs=RUNS, seed=seed, tolerated=0.0).is_missed
                    for seed in few
                )
            n, seconds = repetitions * len(cells), time.perf_counter() - start
            total, missed = total + n, missed + sum(cells)
            of_plain = f"{plain} of {len(few) * len(cells)}"
            row = [name, model_tolerance, *cells, n, sum(cells), of_plain, f"{seconds:.0f}"]
            print("| " + " | ".join(map(str, row)) + " |", flush=True)
    print(f"\n{missed} of {total} brackets miss.\n", flush=True)


def widths(names: list[str]) -> dict[str, list[float]]:
    """Print and return the width of the bracket for each model tolerance."""
    print(
        "| model | "
        + " | ".join(f"{model_tolerance:g}" for model_tolerance in WIDTHS)
        + " |\n|"
        + "---|" * (len(WIDTHS) + 1)
    )
    found: dict[str, list[float]] = {}
    for name in names:
        study = pl.case_study(name)
        counts = pl.simulate(study.model, study.true_point, RUNS_FOR_WIDTHS, rng=1, max_steps=study.max_steps)
        options: dict[str, Any] = {"confidence_set": "likelihood", "relaxation": "coupled"}
        policy = pl.certify(study.model, counts, study.objective, **options).policy.choice
        made = [
            pl.certify(study.model, counts, study.objective, policy=policy, model_tolerance=model_tolerance, **options)
            for model_tolerance in WIDTHS
        ]
        found[name] = [one.upper - one.lower for one in made]
        print(f"| {name} | " + " | ".join(f"{width:.3g}" for width in found[name]) + " |", flush=True)
    return found


def plot(found: dict[str, list[float]], path: Path) -> None:
    """Draw the widths, relative to those without a model tolerance."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for name, of_name in found.items():
        relative = np.array(of_name) / of_name[0]
        axes.plot(WIDTHS[1:], relative[1:], marker="o", markersize=3.5, label=name)
    axes.set(xscale="log", yscale="log", xlabel="model tolerance (total variation of every row)")
    axes.set_ylabel(f"width of the bracket, relative to model tolerance 0\n({RUNS_FOR_WIDTHS:,} runs, same policy)")
    axes.axhline(1, color="0.7", linewidth=0.8, zorder=0)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=150)


def main() -> None:
    """Read the command line and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=21)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("names", nargs="*", default=list(NAMES))
    given = parser.parse_args()
    if given.repetitions:
        misses(given.names, given.repetitions)
    found = widths(given.names)
    if given.plot is not None:
        plot(found, given.plot)


if __name__ == "__main__":
    main()
