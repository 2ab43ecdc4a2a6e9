"""Risks with a hazard ratio: widths over normal intervals, and how often bounds ever miss the truth.

    python -m studies.hazards                       widths and CPU seconds with 100, 1,000 and 5,000 units
    python -m studies.hazards --games 200 --error 0.5

Half of the units are treated, and a month of theirs has ``ratio`` times the risk of the others. Units enter over three
years, and a year after the last one the data end: so all months to come of a unit are known when it enters.
"""

from __future__ import annotations

import argparse
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
import pandas as pd
from set_points import satisfies, set_of

import plumdp as pl
from plumdp.model import Question
from plumdp.model.question import as_objective

ARMS = ("observe", "treat", "ratio")
RATIO, RISKS, SPLIT, LAST = 0.6, (0.04, 0.015), 12, 36
ASKED, NORMAL, LARGEST = "Pmax=? [ F event ]", 2 * 1.96, 5
LOOKS = (0.25, 0.5, 0.75, 1.0)  # shares of the units after which games look


def model_of(n_risks: int) -> Any:
    """Return the model with one risk, or with two: an early and a late one."""
    (ratio,) = pl.parameters("ratio")
    risks = pl.parameters(*("early", "late")[:n_risks])

    def month(state: Any) -> Any:
        if state.month == -1:
            return {arm: [(1, state._replace(month=0, arm=arm))] for arm in ARMS}
        if state.month == LAST:
            return {"wait": [(1, state)]}
        risk = risks[int(state.month >= SPLIT) % n_risks]
        risk = {"observe": risk, "treat": ratio * risk, "ratio": ratio / LARGEST}[state.arm]
        well = state._replace(month=LAST if state.arm == "ratio" else state.month + 1)
        return {"wait": [(risk, state._replace(month=LAST, event=True)), (1 - risk, well)]}

    bounds: dict[str, tuple[Any, Any]] = dict.fromkeys(("early", "late")[:n_risks], (0, "0.2"))
    bounds["ratio"] = ("0.2", LARGEST)
    start = {"arm": "none", "month": -1, "event": False}
    return pl.explore(month, start, space=pl.ParameterSpace.box(bounds))


def risks_of(n_risks: int) -> Any:
    """Return the true risk of each month without treatment (LAST)."""
    return np.array([RISKS[int(m >= SPLIT) % n_risks] for m in range(LAST)])


def log_of(n: int, n_risks: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return the months of units, in the order in which they entered."""
    treated, followed = rng.random(n) < 0.5, rng.integers(12, 49, n)
    risks = risks_of(n_risks) * np.where(treated, RATIO, 1.0)[:, None]
    happens = rng.random((n, LAST)) < risks
    first = np.where(happens.any(1), happens.argmax(1), LAST)
    months = np.minimum(np.minimum(first + 1, followed), LAST)
    unit = np.repeat(np.arange(n), months)
    month = np.arange(len(unit)) - np.repeat(np.cumsum(months) - months, months)
    event, arm = month == first[unit], np.where(treated, "treat", "observe")[unit]
    seen = {"episode": unit, "step": month, "arm": arm, "month": month, "event": False, "action": "wait"}
    return pd.DataFrame(seen | {"next_arm": arm, "next_month": np.where(event, LAST, month + 1), "next_event": event})


def learned_from(model: Any, frame: pd.DataFrame, error: float, **claims: Any) -> tuple[Any, list[Question]]:
    """Return what months tell if both arms, and the ratio, were pre-specified; and these questions."""
    asked = as_objective(ASKED, model)
    policies = [lambda state, arm=arm: arm if state.month < 0 else "wait" for arm in ARMS]
    questions = [Question(model, asked, policy=policy) for policy in policies]
    log = pl.read_log(model, frame, pl.LogFormat(form="transitions"), **claims)
    return pl.learn(model, log, objectives=questions, confidence=1 - error), questions


def widths_of(n: int, n_risks: int, seeds: int) -> dict[str, float]:
    """Return mean widths over those of the usual approximate intervals, and CPU seconds."""
    model, found = model_of(n_risks), list[dict[str, float]]()
    for seed in range(seeds):
        frame, start = log_of(n, n_risks, np.random.default_rng(seed)), time.process_time()
        learned, questions = learned_from(model, frame, 0.05, sampling="trajectories")
        certificates = [pl.conclude(learned, each.objective, policy=each.policy) for each in questions]
        seconds = time.process_time() - start
        usual = [each.beside.approximate or (np.nan, np.nan) for each in certificates]
        pairs = zip(ARMS, certificates, usual, strict=True)
        widths = {arm: (each.upper - each.lower) / (high - low) for arm, each, (low, high) in pairs}
        found.append({**widths, "CPU seconds": seconds})
    return {str(name): float(mean) for name, mean in pd.DataFrame(found).mean().items()}


def misses(n: int, n_risks: int, error: float, seed: int) -> bool:
    """Return whether the set ever misses the true point, if one stops at the worst of several looks."""
    model, point = model_of(n_risks), dict(zip(("early", "late"), map(str, RISKS[:n_risks]), strict=False))
    truth = {name: Fraction(value) for name, value in {**point, "ratio": str(RATIO)}.items()}
    frame = log_of(n, n_risks, np.random.default_rng([seed, 7]))
    for share in LOOKS:
        learned, _ = learned_from(model, frame[frame.episode < share * n], error, order="runs")
        if not satisfies(set_of(learned), truth):
            return True
    return False


def main() -> None:
    """Print widths, or how many games were missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=0)
    parser.add_argument("--error", type=float, default=0.5)
    parser.add_argument("--units", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    for n_risks in (1, 2):
        if given.games:
            missed = sum(misses(given.units, n_risks, given.error, seed) for seed in range(given.games))
            print(
                f"{n_risks} risks, {given.units} units: {missed} of {given.games} missed at {given.error}", flush=True
            )
        for n in () if given.games else (100, 1_000, 5_000):
            shown = ", ".join(f"{k} {v:.3g}" for k, v in widths_of(n, n_risks, given.seeds).items())
            print(f"{n_risks} risks, {n:,} units: {shown}", flush=True)


if __name__ == "__main__":
    main()
