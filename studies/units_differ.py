"""What brackets say if units are of two kinds: by the model, which they break, and by whole runs, which need none.

    python -m studies.units_differ -o docs/images

Half of the units fail with a chance of 0.05 in each step, the others with 0.3; each is seen for 12 steps, or until it
fails. Asked is the share that fails. The model has one state in which a unit works, as nobody sees its kind.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import plumdp
from plumdp.certifying.pipeline import prespecifying
from plumdp.data import read_whole_runs
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import ask

SIZES, STEPS, HAZARDS, LOGS = (300, 1_000, 3_000, 10_000), 12, (0.05, 0.3), 5
TRUTH = 1 - sum((1 - hazard) ** STEPS for hazard in HAZARDS) / 2
ASKED = f'P=? [ F<={STEPS} "failed" ]'
PICTURES = {"model": "units_model.svg", "runs": "units_runs.svg"}


def unit() -> ParametricMDP:
    """Return the table of a unit that works or has failed."""

    def step(state: Any) -> Any:
        failed = state._replace(failed=True)
        return {"run": [(1, state)] if state.failed else plumdp.unknown(failed, state)}

    return plumdp.explore(step, {"failed": False}, labels={"failed": lambda state: state.failed})


def log_of(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return the rows of so many units, each step with what came of it."""
    life = rng.geometric(rng.choice(HAZARDS, n))
    made = np.minimum(life, STEPS)
    rows = pd.DataFrame({"unit": np.repeat(np.arange(n), made)})
    rows["step"] = rows.groupby("unit").cumcount()
    next_failed = rows.step + 1 == life[rows.unit]
    return rows.assign(failed=False, action="run", next_failed=next_failed)


def brackets(rows: pd.DataFrame, model: ParametricMDP) -> dict[str, tuple[float, float]]:
    """Return the bracket by the model, as if its premise were not tested, and that by whole runs."""
    columns, n = {"episode": "unit"}, int(rows.unit.max()) + 1
    counts = plumdp.read_log(model, rows, plumdp.LogFormat(columns=columns, form="transitions")).counts
    bare = plumdp.TransitionCounts(model.graph, counts.counts, "adaptive")  # without runs, in which memory shows
    runs = read_whole_runs(model, rows, plumdp.LogFormat(columns=columns, form="transitions"), expected=n)
    empty = plumdp.TransitionCounts(model.graph, 0 * counts.counts, "adaptive")
    found = {
        "model": plumdp.certify(model, bare, ASKED, confidence=0.95),
        "runs": plumdp.certify(model, empty, prespecifying(ask(ASKED, model), "run", runs=runs), confidence=0.95),
    }
    return {name: (each.lower, each.upper) for name, each in found.items()}


def draw(found: dict[int, list[dict[str, tuple[float, float]]]], name: str, title: str) -> Any:
    """Return the picture of brackets by the number of units; those that miss the truth are red."""
    figure, axes = plt.subplots(figsize=(5, 2.8), layout="constrained")
    for place, logs in enumerate(found.values()):
        for i, each in enumerate(logs):
            lower, upper = each[name]
            colour = "tab:blue" if lower <= TRUTH <= upper else "tab:red"
            axes.vlines(place + 0.12 * (i - len(logs) // 2), lower, upper, colors=colour, linewidth=4)
    axes.axhline(TRUTH, color="black", linestyle="--", label=f"truth, {TRUTH:.3f}")
    axes.set_xticks(range(len(found)), [f"{n:,} units" for n in found])
    axes.set(title=title, ylabel="share that fails", ylim=(0.55, 0.95))
    axes.legend(loc="upper right")
    return figure


def main() -> None:
    """Draw both pictures, and print how many brackets missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/images"))
    parser.add_argument("--logs", type=int, default=LOGS)
    given, model = parser.parse_args(), unit()
    found = {n: [brackets(log_of(n, np.random.default_rng([n, i])), model) for i in range(given.logs)] for n in SIZES}
    titles = {"model": "By the model: units are taken to be alike", "runs": "By whole runs: no model at all"}
    plt.rcParams |= {"svg.hashsalt": "units", "svg.fonttype": "none"}
    for name, file in PICTURES.items():
        draw(found, name, titles[name]).savefig(given.output / file, metadata={"Date": None})
        missed = {n: sum(not each[name][0] <= TRUTH <= each[name][1] for each in logs) for n, logs in found.items()}
        print(name, {n: f"{missed[n]} of {given.logs} missed, {logs[0][name]}" for n, logs in found.items()})


if __name__ == "__main__":
    main()
