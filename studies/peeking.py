"""How often an interval was wrong at some look, if one looks again and again: plumdp beside the bootstrap.

    python -m studies.peeking -o docs/images/peeking.svg --games 300

A game is a log that grows from 20 to 2,000 runs of a machine that wears out, and is looked at 12 times. Asked is the
probability that it fails within five weeks, at a confidence of 95 %. The bootstrap resamples whole runs 400 times and
takes percentiles of the estimate; plumdp is told that runs are numbered in the order in which they were made.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pandas as pd

import plumdp
from plumdp.model.parametric import ParametricMDP

Values: TypeAlias = npt.NDArray[np.float64]
LOOKS = np.unique(np.geomspace(20, 2_000, 12).astype(int))
CONFIDENCE, RESAMPLES, WEEKS = 0.95, 400, 5
TRUTH = {"wear": 0.2, "fail": 0.3}
ASKED = f'P=? [ F<={WEEKS} condition="failed" ]'


def machine() -> ParametricMDP:
    """Return the machine: good, then worn, then failed."""
    wear, fail = plumdp.parameters("wear", "fail")

    def week(state: Any) -> Any:
        if state.condition == "failed":
            return {"run": [(1, state)]}
        chance, after = (wear, "worn") if state.condition == "good" else (fail, "failed")
        return {"run": [(chance, state._replace(condition=after)), (1 - chance, state)]}

    return plumdp.explore(week, {"condition": "good"}, space=plumdp.ParameterSpace.unit("wear", "fail"))


def value(wear: Values, fail: Values) -> Values:
    """Return the probability to fail within five weeks, of arrays of both numbers."""
    good, worn = np.ones_like(wear), np.zeros_like(wear)
    for _ in range(WEEKS):
        good, worn = good * (1 - wear), worn * (1 - fail) + good * wear
    return 1 - good - worn


def misses(rng: np.random.Generator, model: ParametricMDP) -> npt.NDArray[np.bool_]:
    """Return at which looks of a game both intervals miss the truth, first those of plumdp."""
    runs = plumdp.data.record(model, TRUTH, int(LOOKS[-1]), rng=rng, max_steps=WEEKS)
    rows = pd.DataFrame(runs.columns("trajectories"))
    before = rows.condition.shift(-1).where(rows.episode.shift(-1) == rows.episode)
    seen = [
        ((rows.condition == a) & (before == b))
        for a, b in (("good", "worn"), ("good", "good"), ("worn", "failed"), ("worn", "worn"))
    ]
    by_run = np.array(
        [
            rows.episode[each].value_counts().reindex(range(rows.episode.min(), rows.episode.max() + 1), fill_value=0)
            for each in seen
        ]
    )
    truth, wrong = float(value(*np.array([[chance] for chance in TRUTH.values()]))[0]), []
    for n in LOOKS:
        log = plumdp.read_log(model, rows[rows.episode < rows.episode.min() + n], order="runs")
        found = plumdp.certify(model, log, ASKED, confidence=CONFIDENCE)
        picks = rng.integers(n, size=(RESAMPLES, n))
        sums = by_run[:, :n][:, picks].sum(axis=2)
        drawn = value(sums[0] / (sums[0] + sums[1]), sums[2] / np.maximum(sums[2] + sums[3], 1))
        low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        wrong.append((not found.lower <= truth <= found.upper, not low <= truth <= high))
    return np.array(wrong).T


def main() -> None:
    """Play games, draw the share that was wrong at some look so far, and print where it ends."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--games", type=int, default=150)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/images/peeking.svg"))
    given = parser.parse_args()
    model = machine()
    games = np.array([misses(np.random.default_rng([1, game]), model) for game in range(given.games)])
    ever = 100 * np.maximum.accumulate(games, axis=2).mean(axis=0)
    plt.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "peeking", "font.size": 11}
    figure, axes = plt.subplots(figsize=(5.6, 3.0), layout="constrained")
    for shares, name, colour in ((ever[1], "bootstrap", "#d55e00"), (ever[0], "plumdp", "#0072b2")):
        axes.plot(LOOKS, shares, "o-", color=colour, markersize=4)
        axes.annotate(
            f"{name}, {shares[-1]:.1f} %",
            (LOOKS[-1], shares[-1]),
            (0, 6),
            textcoords="offset points",
            ha="right",
            color=colour,
        )
    axes.axhline(100 * (1 - CONFIDENCE), color="#808080", linewidth=1, linestyle="--")
    axes.annotate(
        "5 %, as promised", (LOOKS[0], 100 * (1 - CONFIDENCE)), (0, 4), textcoords="offset points", color="#606060"
    )
    axes.set(
        xscale="log",
        xlabel="runs so far",
        ylabel="wrong at some look, %",
        ylim=(-1, None),
        xticks=[20, 100, 500, 2_000],
        xticklabels=["20", "100", "500", "2,000"],
    )
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(given.output, metadata={"Date": None})
    wrong = np.maximum.accumulate(games, axis=2)[:, :, -1].sum(axis=0)
    print(
        f"{given.games} games, {len(LOOKS)} looks: wrong at some look in {wrong[0]} by plumdp, {wrong[1]} by bootstrap"
    )
    print(f"at one look alone, the bootstrap is wrong in {games[:, 1].mean():.1%}")


if __name__ == "__main__":
    main()
