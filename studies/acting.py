"""Episodes until the gap between certified and optimistic bound is small: ``learn_online``, and intervals as before.

    python -m studies.acting [instance …]

An instance is a case study, or ``table`` and a case study, whose rows are then unknown. A gap is told in parts of the
best value. Medians over the seeds; "–" if it was not reached. Bounds that a true value does not keep are counted at all
updates. The last column is CPU seconds for each update, at most.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import plumdp as pl
from studies.experiment import prepare
from studies.interval_learning import learn_by_intervals

FAMILIES = ("aircraft:20,10", "betting:25", "engagement:20", "glider:7,6,5,4", "parallel:5", "rover:10,10")
TABLES = ("table betting:5", "table aircraft:6,4,1")
SEEDS, EPISODES, SPACING, EXPLORATION = (1, 2, 3), 2**18, 2**0.5, 0.1
SHARES = (0.2, 0.1, 0.05, 0.02)


def curves(instance: str) -> tuple[float, dict[str, Callable[[int], Iterator[Any]]]]:
    """Return the best value of an instance, and its ways to learn."""
    experiment = prepare(instance.removeprefix("table "))
    study, is_table = experiment.study, instance.startswith("table ")
    model = pl.model.free_rows(study.model) if is_table else study.model
    point: Any = study.model.probabilities(study.true_point)[study.model.expression] if is_table else study.true_point
    objective = pl.parse_property(study.objective.text, model)

    def learn(by: Callable[..., Iterator[Any]], seed: int) -> Iterator[Any]:
        steps, stop = study.max_steps + 1, experiment.stop
        environment = pl.online.simulator(model, point, rng=seed, max_steps=steps, stop=stop)
        return by(model, environment, objective, episodes=EPISODES, spacing=SPACING, exploration=EXPLORATION)

    by_intervals = partial(learn_by_intervals, relaxation="interval" if is_table else "rectangular")
    return experiment.value, {
        "learn_online": partial(learn, pl.learn_online),
        "intervals": partial(learn, by_intervals),
    }


def measure(instance: str) -> None:
    """Print a line for each way to learn."""
    value, ways = curves(instance)
    for way, records in ways.items():
        reached: list[list[float]] = []
        n_wrong, slowest = 0, 0.0
        for seed in SEEDS:
            until, began = dict.fromkeys(SHARES, float("inf")), time.process_time()
            for record in records(seed):
                slowest, began = max(slowest, time.process_time() - began), time.process_time()
                sign = 1 if record.certificate.claim.direction == "max" else -1
                gap = sign * (record.optimistic_bound - record.bound)
                n_wrong += sign * (record.true_value - record.bound) < -1e-6 * abs(value)
                n_wrong += sign * (record.optimistic_bound - value) < -1e-6 * abs(value)
                until |= {share: min(until[share], record.episodes) for share in SHARES if gap <= share * abs(value)}
                if gap <= SHARES[-1] * abs(value):
                    break
            reached.append([*until.values()])
        cells = [median(column) for column in zip(*reached, strict=True)]
        shown = " | ".join("–" if cell == float("inf") else f"{cell:,.0f}" for cell in cells)
        print(f"| {instance} | {value:.4g} | {way} | {shown} | {n_wrong} | {slowest:.1f} |", flush=True)


if __name__ == "__main__":
    header = ["instance", "best value", "way", "20 %", "10 %", "5 %", "2 %", "wrong", "CPU s"]
    print(f"| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for name in sys.argv[1:] or (*FAMILIES, *TABLES):
        measure(name)
