"""What the performance history measures: for each name, ours and a yardstick, the work of both in one process.

A name says what is divided by what. Yardsticks are other people's code that does comparable work: SciPy's product of a
sparse matrix and a vector, a running sum by NumPy, DuckDB's aggregate, Storm's build and check. They are repeated
until both sides take about as long. Both sides are made, and called once, before the clock starts.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import plumdp as pl
from plumdp.model.expressions.table import ExpressionTable
from plumdp.region.build import build_region, project
from plumdp.solver.solve import solve
from studies import building, log_speed, peers, region_speed, timing

Work = Callable[[], object]
Sides = tuple[Work, Work]  # ours, theirs


def times(n: int, work: Work) -> Work:
    """Return work that is done several times."""

    def repeated() -> None:
        for _ in range(n):
            work()

    return repeated


@cache
def numpy_pass() -> Work:
    """Return running sums of a million numbers in parts of 10^4: one addition after the other, within a cache."""
    numbers = np.random.default_rng(7).random(10_000)
    total = np.empty_like(numbers)
    return times(100, lambda: np.cumsum(numbers, out=total))


def sweep(least: int, most: int, n_transitions: int = 200_000) -> Sides:
    """Return a sweep over rows of some sizes, and SciPy's product."""
    ours, product = peers.sweep_and_product(peers.local_model(n_transitions, least, most))
    repeats = max(1, 4_000_000 // n_transitions)
    return times(repeats, ours), times(2 * repeats, product)


def solved(make: Callable[[int], peers.Problem], n_transitions: int, products: int) -> Sides:
    """Return the robust solution of a model to 10^-6, and SciPy's product with a matrix of as many entries."""
    problem = make(n_transitions)
    _, product = peers.sweep_and_product(peers.local_model(n_transitions, 4, 4))
    ours = partial(solve, problem.imdp, problem.objective, nature="robust", precision=1e-6)
    return ours, times(products, product)


def engagement(levels: int, passes: int) -> Sides:
    """Return the robust solution of Engagement, and a running sum."""
    problem = peers.engagement(levels)
    ours = partial(solve, problem.imdp, problem.objective, nature="robust", precision=1e-6)
    return ours, times(passes, numpy_pass())


def built(name: str) -> Sides:
    """Return the model of a case study, and a running sum."""
    return building.python(name), times(20, numpy_pass())


def certified(name: str, runs: int, passes: int, **options: Any) -> Sides:
    """Return what ``certify`` does with counts of some runs, and a running sum."""
    study = pl.case_study(name)
    counts = pl.simulate(study.model, study.true_point, runs, rng=1, max_steps=study.max_steps + 1)
    return lambda: pl.certify(study.model, counts, study.objective, **options), times(passes, numpy_pass())


def sampled(name: str, runs: int, passes: int) -> Sides:
    """Return the simulation of some runs, and a running sum."""
    study = pl.case_study(name)
    ours = partial(pl.simulate, study.model, study.true_point, runs, rng=1, max_steps=study.max_steps + 1)
    return ours, times(passes, numpy_pass())


def projected() -> Sides:
    """Return region and projection of 2,000 expressions of three parameters, and a running sum."""
    names = region_speed.NAMES[:3]
    table = ExpressionTable.build(region_speed.mixtures(3, 2_000, n_families=20), names)
    bounds = region_speed.data_like(table, dict.fromkeys(names, 0.2))
    space = pl.ParameterSpace.simplex(*names)

    def ours() -> None:
        project(build_region(space, table, *bounds), table)  # type: ignore[arg-type]

    return ours, times(20, numpy_pass())


@cache
def log_folder() -> Path:
    """Return a folder with a log of 10^6 transitions, which lives as long as this process."""
    _KEPT.append(tempfile.TemporaryDirectory())
    folder = Path(_KEPT[-1].name)
    log_speed.write_transitions(folder, 1_000_000)
    return folder


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def counted() -> Sides:
    """Return the counting of a log, and DuckDB's aggregate of the same file."""
    file = f"{log_folder()}/transitions.parquet"
    return log_speed.reader(file), log_speed.bare(file)


def started() -> Sides:
    """Return the start of Python with plumdp, and with NumPy alone."""
    ours, theirs = ([sys.executable, "-c", code] for code in ("import plumdp; plumdp.certify", "import numpy"))
    return partial(subprocess.run, ours, check=True), partial(subprocess.run, theirs, check=True)


def read(name: str) -> Sides:
    """Return the reading of a PRISM file, and Storm's bare build of it."""
    return building.prism(name), building.storm(name)


SMALL: dict[str, Callable[[], Sides]] = {
    "sweep, rows of 2 / 2 SciPy products": partial(sweep, 2, 2),
    "sweep, rows of 2 to 16 / 2 SciPy products": partial(sweep, 2, 16),
    "solve, layers of 3e5 transitions / 40 SciPy products": partial(solved, peers.layered, 300_000, 40),
    "solve, grid of 2e4 transitions with traps / 5000 SciPy products": partial(solved, peers.trap_grid, 20_000, 5000),
    "solve, Engagement (100) / 10 NumPy passes": partial(engagement, 100, 10),
    "build, Betting (10) / 20 NumPy passes": partial(built, "betting:10"),
    "read_prism, Rover (10,10) / Storm's build": partial(read, "rover:10,10"),
    "certify, Rover (10,10), P_Λ / 40 NumPy passes": partial(
        certified, "rover:10,10", 1_000, 40, relaxation="expression", confidence_set="interval"
    ),
    "certify, Aircraft (20,10), default / 100 NumPy passes": partial(certified, "aircraft:20,10", 1_000, 100),
    "simulate, Aircraft (20,10) / 10 NumPy passes": partial(sampled, "aircraft:20,10", 50_000, 10),
    "region and projection, 2000 expressions / 20 NumPy passes": projected,
    "read_log, 1e6 rows / DuckDB's aggregate": counted,
    "import plumdp / import numpy": started,
}


def small_set() -> dict[str, Callable[[], Sides]]:
    """Return the small set, without what needs Storm where there is none."""
    has_storm = find_spec("stormpy") is not None
    return {name: make for name, make in SMALL.items() if has_storm or "Storm" not in name}


def against_storm(name: str, repeats: int) -> timing.Ratio:
    """Return the solution of a large model against Storm's check."""
    runs = peers.peer_runs(peers.MODELS[name][0](peers.MODELS[name][1]), name, repeats)
    return timing.ratio_of(runs["ours"], runs["storm"])


def build_against_storm(way: str, name: str, repeats: int) -> timing.Ratio:
    """Return the building of a large model against Storm's bare build."""
    runs = building.runs(name, {"now": building.HERE}, [way, building.STORM], repeats)
    return timing.ratio_of(runs[way, "now"], runs[building.STORM, ""])


def warm(
    make: Callable[[], Sides], repeats: int, clock: timing.Clock = timing.used_seconds
) -> Callable[[], timing.Ratio]:
    """Return the measurement of some rounds in this process; both sides are made, and called once, before."""
    ours, theirs = make()
    ours()
    theirs()
    return partial(timing.compare, ours, theirs, repeats=repeats, clock=clock)


def in_turns(make: Callable[[], Sides], repeats: int) -> timing.Ratio:
    """Return the ratio of two sides in this process."""
    return warm(make, repeats)()


LARGE: dict[str, Callable[[int], timing.Ratio]] = {
    **{f"solve, {name} / Storm's check": partial(against_storm, name) for name in peers.MODELS},
    **{
        f"{way}, {name} / Storm's build": partial(build_against_storm, way, name)
        for name in building.INSTANCES
        for way in ("case_study", "read_prism")
    },
    **{
        f"sweep, 4e6 transitions, rows of {least} to {most} / 2 SciPy products": partial(
            in_turns, partial(sweep, least, most, 4_000_000)
        )
        for least, most in ((2, 2), (4, 4), (9, 9), (2, 16))
    },
    "certify, Rover (125,125), P_Λ / 1000 NumPy passes": partial(
        in_turns,
        partial(certified, "rover:125,125", 10_000, 1000, relaxation="expression", confidence_set="interval"),
    ),
}
