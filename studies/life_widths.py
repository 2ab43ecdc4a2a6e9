"""How wide bounds of life tables are, over normal intervals by Greenwood's formula.

    python -m studies.life_widths [logs]

Units run for 24 steps and fail for good, with a hazard of 0.02, one that grows from 0.005 to 0.04, or 0.005 and 0.08
for half of them each. None are cut off; or 30 % in a step that is drawn evenly; or all after 1 to 39 steps.
"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

from plumdp.confidence.life_bets import risk_ends
from plumdp.data.returns import Lives

STEPS, SIZES = 24, (100, 300, 1000, 3000)
HAZARDS = ("even", "growing", "two kinds")
CUTS = ("none", "some", "half")


def hazards(law: str, n: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return the hazard of each of n units in each step."""
    if law == "growing":
        return np.tile(np.linspace(0.005, 0.04, STEPS), (n, 1))
    own = np.where(rng.random(n) < 0.5, 0.005, 0.08) if law == "two kinds" else np.full(n, 0.02)
    return np.repeat(own[:, None], STEPS, axis=1)


def draw(law: str, cut: str, n: int, rng: np.random.Generator) -> Lives:
    """Return n units in their order."""
    happens = rng.random((n, STEPS)) < hazards(law, n, rng)
    event = np.where(happens.any(axis=1), happens.argmax(axis=1) + 1, STEPS + 1)
    some = np.where(rng.random(n) < 0.3, rng.integers(1, STEPS, n), STEPS)
    seen = {"none": np.full(n, STEPS), "some": some, "half": rng.integers(1, 40, n)}[cut]
    seen = np.minimum(seen, STEPS)
    return Lives(np.minimum(event, seen), event <= seen, STEPS, complement=False)


def normal_width(lives: Lives) -> float:
    """Return the width of the usual interval at 95 %."""
    at_risk, happened = lives.seen(0, len(lives.steps))
    variance = (happened / (at_risk * (at_risk - happened))).sum()
    return float(2 * 1.96 * (1 - happened / at_risk).prod() * np.sqrt(variance))


def main(logs: int = 12) -> None:
    """Print the table."""
    for n in SIZES:
        for law in HAZARDS:
            widths = []
            for cut in CUTS:
                rng = np.random.default_rng(n)
                some = [draw(law, cut, n, rng) for _ in range(logs)]
                ends = [risk_ends(each, 0.05, n) for each in some]
                ratios = [(high - low) / normal_width(each) for each, (low, high) in zip(some, ends, strict=True)]
                widths.append(float(np.mean(ratios)))
            print(f"| {n:,} | {law} | {' | '.join(f'{width:.2f}' for width in widths)} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
