"""How good advice on more data is: predicted widths beside measured ones, and how many runs sampling by advice saves.

    python -m studies.advise [instance …]

*Doubling.* 5,000 runs with uniform choices, then as many again. Predicted is how wide the bounds on the value of the
policy will be that is certified by the first ones; measured is what they are. Likewise for as many runs again under the
advised policy, used in the way that is advised.

*Runs for the same width.* The width that 20,000 runs with uniform choices give; and how many runs give the same if they
are sampled by advice, or by the policy that is best with nature at its best, as in learning online. Both policies come
from 1,000 first runs with uniform choices, which are charged to them and not used again. All widths are those of the
policy that the first runs certify.

Policies stay fixed because certificates from more data may choose another one: on rover:10,10, in two of three seeds,
one whose bounds are better but twice as far apart, which no prediction for the first one can foresee (54 % off).

All certificates are coupled, with the likelihood and a planned pilot, at the confidence 99.9 %; mean over three seeds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import plumdp as pl
from plumdp.case_studies import CaseStudy
from plumdp.certifying.pipeline import relax
from plumdp.learning.learned import Learned
from plumdp.model.graph import FloatArray, IntArray

INSTANCES = ("glider:11,9", "rover:10,10", "betting:25", "parallel:5", "aircraft:20,10", "engagement:20")
SEEDS = (1, 2, 3)
RUNS, FIRST, TARGET = 5_000, 1_000, 20_000
_ROUNDS = 4


class Doubling(NamedTuple):
    """The width now, and after as many runs again: predicted and measured, in the same way and as advised."""

    now: float
    predicted: float
    measured: float
    advised_predicted: float
    advised_measured: float


def sample(study: CaseStudy, runs: int, seed: int, policy: FloatArray | str = "uniform") -> pl.TransitionCounts:
    """Return counts of runs under a policy."""
    steps = study.max_steps + 1
    return pl.simulate(study.model, study.true_point, runs, rng=seed, max_steps=steps, policy=policy)


def learn(study: CaseStudy, counts: pl.TransitionCounts) -> Learned:
    """Return what likelihood sets say about the study's objective."""
    return pl.learn(study.model, counts, confidence_set="likelihood", objectives=[study.objective])


def width(study: CaseStudy, counts: pl.TransitionCounts, policy: IntArray) -> float:
    """Return the distance of the certified bounds on the value of a policy."""
    certificate = pl.conclude(learn(study, counts), study.objective, relaxation="coupled", policy=policy)
    return certificate.upper - certificate.lower


def doubling(study: CaseStudy, seed: int, runs: int = RUNS) -> Doubling:
    """Return predicted and measured widths after as many runs again."""
    counts = sample(study, runs, seed)
    advice = pl.advise(learn(study, counts), study.objective, runs=runs)
    by = {prediction.sampling: prediction for prediction in advice.predictions}
    measured = width(study, counts + sample(study, runs, seed + 100), advice.policy)
    new, advised = sample(study, runs, seed + 200, advice.sampling), by["advised"]
    found = width(study, new if advised.is_alone else counts + new, advice.policy)
    return Doubling(advice.width, by["like these"].width, measured, advised.width, found)


class Samplings(NamedTuple):
    """The policy whose value is asked for, and those that are compared, from first runs."""

    certified: IntArray
    by_name: dict[str, Any]


def samplings(study: CaseStudy, seed: int, first: int = FIRST) -> Samplings:
    """Return what first runs propose."""
    learned = learn(study, sample(study, first, seed + 300))
    optimistic = pl.stages.solve(relax(learned, "rectangular"), study.objective, nature="optimistic").policy
    advice = pl.advise(learned, study.objective, runs=TARGET)
    return Samplings(advice.policy, {"uniform": "uniform", "optimistic": optimistic, "advised": advice.sampling})


def runs_for(target: float, measure: Callable[[int], float], start: int) -> float:
    """Return about how many runs give a width: each try corrects the last by the rule that widths fall like a root."""
    runs, tried = start, []
    for _ in range(_ROUNDS):
        found = measure(runs)
        tried.append((abs(np.log(found / target)), runs * (found / target) ** 2))
        runs = round(min(max(tried[-1][1], 200), 100 * start))
        if tried[-1][0] < 0.02:
            break
    return min(tried)[1]


def needed(
    study: CaseStudy, seeds: Sequence[int] = SEEDS, target: int = TARGET, first: int = FIRST
) -> dict[str, float]:
    """Return how many runs each policy needs for the width of ``target`` uniform runs, first ones included."""
    of_seed = {seed: samplings(study, seed, first) for seed in seeds}
    found = {"uniform": float(target)}

    def mean_width(name: str, runs: int) -> float:
        widths = []
        for seed, (certified, by_name) in of_seed.items():
            widths.append(width(study, sample(study, runs, seed + 400, by_name[name]), certified))
        return float(np.mean(widths))

    aim = mean_width("uniform", target)
    for name in ("optimistic", "advised"):
        found[name] = first + runs_for(aim, partial(mean_width, name), target // 2)
    return found


def doubling_table(names: Sequence[str]) -> None:
    """Print predicted widths beside measured ones."""
    print("| instance | now | predicted | measured | off by at most | advised: predicted | measured | off by at most |")
    print("|---" * 8 + "|")
    for name in names:
        rows = np.array([doubling(pl.case_study(name), seed) for seed in SEEDS])
        off = np.abs(rows[:, [1, 3]] / rows[:, [2, 4]] - 1).max(axis=0)
        now, *rest = (f"{each:.3g}" for each in rows.mean(axis=0))
        cells = [name, now, *rest[:2], f"{off[0]:.1%}", *rest[2:], f"{off[1]:.1%}"]
        print("| " + " | ".join(cells) + " |", flush=True)


def needed_table(names: Sequence[str]) -> None:
    """Print how many runs each way of sampling needs for the same width."""
    print("\n| instance | uniform | optimistic | advised | uniform / advised | optimistic / advised | seconds |")
    print("|---" * 7 + "|")
    for name in names:
        began = time.perf_counter()
        found = needed(pl.case_study(name))
        ratios = [f"{found[other] / found['advised']:.2f}" for other in ("uniform", "optimistic")]
        cells = [name, *(f"{runs:,.0f}" for runs in found.values()), *ratios, f"{time.perf_counter() - began:.0f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    chosen = sys.argv[1:] or INSTANCES
    doubling_table(chosen)
    needed_table(chosen)
