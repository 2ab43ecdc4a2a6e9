"""How often brackets are wrong, and how wide they are, from 30 to 3,000 runs: by a model, and by whole runs alone.

    python -m studies.coverage -o docs/images/coverage.svg --games 100

The machine of ``studies.peeking`` wears out, and asked is the probability that it fails within five weeks, at errors of
0.5 and 0.05, with a number of runs that was announced. The yardstick of widths is the normal interval that an estimate
by the model, or by shares of runs, would have at the truth. A bracket of an error that large is of no use to anyone:
it shows whether the promise is kept where chance errors are frequent.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import plumdp
from plumdp.confidence.run_bets import mean_ends
from studies.peeking import ASKED, TRUTH, WEEKS, machine, value

RUNS, ERRORS, STEP = (30, 100, 300, 1000, 3000), (0.5, 0.05), 1e-6
STYLES = ("--", "-")  # of both errors
COLOURS = {"model": "#0072b2", "whole runs": "#e69f00"}


def deviations() -> dict[str, float]:
    """Return the standard deviation, times the root of the number of runs, of both estimates at the truth."""
    wear, fail = TRUTH.values()
    good = (1 - wear) ** np.arange(WEEKS)
    worn = [sum(wear * (1 - wear) ** i * (1 - fail) ** (t - 1 - i) for i in range(t)) for t in range(WEEKS)]
    visits, at = (float(np.sum(good)), float(np.sum(worn))), np.array([[wear], [fail]])
    slopes = [(value(*(at + STEP * unit)) - value(*at)).item() / STEP for unit in np.eye(2)[:, :, None]]
    terms = zip(slopes, (wear, fail), visits, strict=True)
    truth = value(*at).item()
    by_model = np.sqrt(sum(slope**2 * p * (1 - p) / n for slope, p, n in terms))
    return {"model": float(by_model), "whole runs": float(np.sqrt(truth * (1 - truth)))}


def main() -> None:
    """Play games, print shares and widths, and draw both."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/images/coverage.svg"))
    given = parser.parse_args()
    model, like, deviation = machine(), None, deviations()
    truth = value(*np.array([[each] for each in TRUTH.values()])).item()
    wrong, wide = {}, {}
    for error in ERRORS:
        for n in RUNS:
            ends: dict[str, list[tuple[float, float]]] = {"model": [], "whole runs": []}
            for game in range(given.games):
                counts = plumdp.simulate(model, TRUTH, n, rng=game * RUNS[-1] + n, max_steps=WEEKS)
                learned = plumdp.learn(model, counts, objectives=[ASKED], confidence=1 - error, like=like)
                like, found = like or learned, plumdp.conclude(learned, ASKED)
                ends["model"].append((found.lower, found.upper))
                failed = (np.random.default_rng([1, game, n]).random(n) < truth).astype(float)
                ends["whole runs"].append(mean_ends(failed, failed, error, n))
            for way, brackets in ends.items():
                lower, upper = np.transpose(brackets)
                wrong[way, error, n] = np.mean((truth < lower) | (upper < truth))
                yardstick = 2 * norm.isf(error / 2) * deviation[way] / np.sqrt(n)
                wide[way, error, n] = np.mean(upper - lower) / yardstick
                shown = f"{100 * wrong[way, error, n]:.0f} % wrong, {wide[way, error, n]:.2f} times the normal interval"
                print(f"{way}, error {error}, {n} runs: {shown}", flush=True)
    plt.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "coverage", "font.size": 11}
    figure, panels = plt.subplots(1, 2, figsize=(9.0, 3.2), layout="constrained")
    for axes, figures, scale in zip(panels, (wrong, wide), (100, 1), strict=True):
        for (way, colour), (error, style) in product(COLOURS.items(), zip(ERRORS, STYLES, strict=True)):
            line = [scale * figures[way, error, n] for n in RUNS]
            axes.plot(RUNS, line, "o" + style, color=colour, markersize=4, label=f"{way}, error {error}")
        axes.set(xscale="log", xlabel="runs", xticks=RUNS, xticklabels=[f"{n:,}" for n in RUNS])
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
    for error, style in zip(ERRORS, STYLES, strict=True):
        panels[0].axhline(100 * error, color="#808080", linewidth=1, linestyle=style)
    panels[0].set(ylabel="wrong brackets, % (grey: allowed)", ylim=(-1, None))
    panels[1].set(ylabel="width over the normal interval", ylim=(0, None))
    panels[1].legend(frameon=False, fontsize=9)
    figure.savefig(given.output, metadata={"Date": None})


if __name__ == "__main__":
    main()
