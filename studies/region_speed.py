"""CPU seconds for regions and projections: from intervals of expressions to vertices and back, with peak memory.

    python -m studies.region_speed            all figures (about a minute, most of it to write the expressions)
    python -m studies.region_speed --quick    without the 185,209 expressions

Intervals are what data would give: around the true value, five standard deviations to either side, for numbers of
trials between 1 and 10^6; one expression in five was never tried. Compiled code is loaded before the clock starts.
"""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

import plumdp as pl
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.region.build import Conflict, build_region, project
from plumdp.region.shapes import Polytope
from studies.timing import timed

NAMES = ("a", "b", "c", "d", "e", "f")


def peak_memory(function: Callable[[], object]) -> float:
    """Return the most memory that a call holds at a time, in MB."""
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def mixtures(d: int, n: int, *, n_families: int) -> list[Polynomial]:
    """Return n distinct mixtures of d + 1 modes, in families that move from one end to another, as on a grid."""
    rng = np.random.default_rng(d * n)
    weights = pl.parameters(*NAMES[:d])
    modes = (*weights, 1 - sum(weights, Polynomial(0)))
    per_family = -(-n // n_families)
    found: list[Polynomial] = []
    for _ in range(n_families):
        near, far = rng.integers(1, 1000, size=(2, d + 1))
        for i in range(per_family):
            rates = [
                Fraction(int(x) * (per_family - i) + int(y) * i, 1000 * per_family)
                for x, y in zip(near, far, strict=True)
            ]
            found.append(sum((m * r for m, r in zip(modes, rates, strict=True)), Polynomial(0)))
    return found[:n]


def data_like(table: ExpressionTable, point: Mapping[str, object], seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds around the true values; [0, 1] where there are no trials."""
    rng = np.random.default_rng(seed)
    true = table.evaluate(np.array([[float(Fraction(str(point[name]))) for name in table.names]]))[:, 0]
    trials = 10 ** rng.uniform(0, 6, len(table))
    deviation = np.sqrt(true * (1 - true) / trials) + 1 / trials
    middle = true + deviation * rng.normal(size=len(table)).clip(-4, 4)
    tried = rng.random(len(table)) < 0.8
    lower = np.where(tried, middle - 5 * deviation, 0).clip(0, 1)
    upper = np.where(tried, middle + 5 * deviation, 1).clip(0, 1)
    return lower, upper


def measure(name: str, space: pl.ParameterSpace, table: ExpressionTable, point: Mapping[str, object]) -> Polytope:
    """Print one line of the table: seconds of region and projection, sizes, and how much intervals shrink."""
    lower, upper = data_like(table, point)
    build, region = timed(lambda: build_region(space, table, lower, upper))
    if isinstance(region, Conflict):
        raise SystemExit(f"{name}: {region}")
    projection, (low, high) = timed(lambda: project(region, table))
    closing, vertices = timed(lambda: region.table)
    width = np.median((high - low)[table.is_unknown] / (upper - lower)[table.is_unknown])
    memory = peak_memory(lambda: project(build_region(space, table, lower, upper), table))  # type: ignore[arg-type]
    print(
        f"| {name} | {space.dimension} | {len(table):,} | {build:.3f} | {projection:.3f} | {closing:.3f} "
        f"| {len(region.rows)} | {len(vertices):,} | {width:.3f} | {memory:.0f} |",
        flush=True,
    )
    return region


def supports(region: Polytope) -> None:
    """Print microseconds per minimum: objectives never seen, changed by 1 %, the same again, and certified."""
    rng = np.random.default_rng(3)
    new = rng.normal(size=(200_000, len(region.names)))
    scaled = new * region.scale
    near = scaled * (1 + rng.normal(size=new.shape) / 100)
    cold, (position, _) = timed(lambda: region.graph.walk(scaled))
    drifted, _ = timed(lambda: region.graph.walk(near, position))
    same, _ = timed(lambda: region.graph.walk(scaled, position))
    certified, _ = timed(lambda: region.minimise(new))
    figures = " | ".join(f"{seconds / len(new) * 1e6:.3f}" for seconds in (cold, drifted, same, certified))
    print(f"| {len(region.names)} | {len(region.rows)} | {len(region.table):,} | {figures} |", flush=True)


def main() -> None:
    """Print all figures as tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="leave out the 185,209 expressions")
    quick = parser.parse_args().quick
    warm = ExpressionTable.build(mixtures(2, 30, n_families=3), NAMES[:2])
    region = build_region(pl.ParameterSpace.simplex(*NAMES[:2]), warm, *data_like(warm, {"a": 0.3, "b": 0.5}))
    assert isinstance(region, Polytope)
    assert len(project(region, warm)[0]) == 30
    assert len(region.table)

    print("| expressions of | d | expressions | region, s | projection, s | all vertices, s | rows | vertices ", end="")
    print("| width, after / before | memory, MB |")
    regions = []
    synthetic = [(5, 750, 2), (5, 9000, 2), (6, 750, 2), (6, 9000, 2), (6, 9000, 300)]
    for d, n, n_families in ([] if quick else [(3, 185_209, 4)]) + synthetic:
        names = NAMES[:d]
        table = ExpressionTable.build(mixtures(d, n, n_families=n_families), names)
        point = dict.fromkeys(names, Fraction(1, d + 2))
        regions.append(measure(f"{n_families} families", pl.ParameterSpace.simplex(*names), table, point))
    for name in ("rover:50,50", "betting:100", "aircraft:100,20", "engagement:100"):
        study = pl.case_study(name)
        regions.append(measure(name, study.model.space, study.model.expressions, study.true_point))

    print("\n| d | rows | vertices | new, µs | 1 % noise, µs | same, µs | new and certified, µs |")
    for region in regions:
        supports(region)


if __name__ == "__main__":
    main()
