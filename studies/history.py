"""The performance history: ratios of processor time, ours divided by a yardstick's, in dated Parquet files.

    python -m studies.history                     the small set (under a minute), into studies/history/
    python -m studies.history --all               the large set too (an hour, needs Storm)
    python -m studies.history --show              the history as a table
    python -m studies.history --picture FILE      and as a picture
    python -m studies.history --check             fails if a ratio of the small set has grown by half; writes nothing
    python -m studies.history --baseline          makes today's ratios those that are checked against

Both sides of a ratio take turns. ``ratio`` is that of the shortest times; ``median``, ``least`` and ``most`` are those
of all pairs. The check fails only if both ratio and median have grown by half, and still have after more rounds.
Ratios depend on the processor, but much less than seconds do: there is one baseline for each kind of machine, and where
there is none the check says so and passes. ``--planted 2`` does our work twice, to see that the check fails.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from plumdp.base.compiled import compile_at_once
from plumdp.data.duckdb_engine import write_parquet
from studies import ratios
from studies.timing import Clock, Ratio, used_seconds

HERE = Path(__file__).parent
BASELINE = HERE / "baseline.json"
GROWTH = 1.5  # of a ratio, that fails the check
REPEATS = 7
AGAIN = 3  # times that a ratio is measured again before it fails
Cases = Mapping[str, Callable[[], ratios.Sides]]


@dataclass(frozen=True)
class Grown:
    """A ratio that is above its limit."""

    ratio: Ratio
    baseline: float


def is_grown(ratio: Ratio, baseline: float) -> bool:
    """Return whether the shortest times and the median agree that a ratio has grown by half."""
    return min(ratio.least, ratio.median) > GROWTH * baseline


def grown(cases: Cases, baseline: Mapping[str, float], *, clock: Clock = used_seconds) -> dict[str, Grown]:
    """Return the ratios that have grown by half, after more rounds than the first; prints each as it is measured."""
    found = {}
    for name, make in cases.items():
        limit = baseline.get(name, float("inf"))
        rounds = ratios.warm(make, REPEATS, clock)
        ratio = rounds()
        for _ in range(AGAIN):
            ratio = ratio + rounds() if is_grown(ratio, limit) else ratio
        print(f"{name}: {ratio}; baseline {limit:.3g}", flush=True)
        if is_grown(ratio, limit):
            found[name] = Grown(ratio, limit)
    return found


def planted(cases: Cases, factor: int) -> Cases:
    """Return the cases with our side done several times."""

    def slower(make: Callable[[], ratios.Sides]) -> ratios.Sides:
        ours, theirs = make()
        return ratios.times(factor, ours), theirs

    return {name: partial(slower, make) for name, make in cases.items()}


def platform_key() -> str:
    """Return the kind of machine that a baseline is for."""
    return f"{platform.system()} {platform.machine()}"


def read_baseline(key: str) -> dict[str, float]:
    """Return the baseline of a kind of machine; empty if there is none."""
    known: dict[str, dict[str, float]] = json.loads(BASELINE.read_text(encoding="utf-8")) if BASELINE.exists() else {}
    return known.get(key, {})


def write_baseline(cases: Cases) -> None:
    """Make today's ratios the baseline of this kind of machine, each as it is measured."""
    for name, make in cases.items():
        ratio = ratios.warm(make, 2 * REPEATS)()
        print(f"{name}: {ratio}", flush=True)
        known = json.loads(BASELINE.read_text(encoding="utf-8")) if BASELINE.exists() else {}
        known.setdefault(platform_key(), {})[name] = float(f"{ratio.least:.3g}")
        BASELINE.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def check(cases: Cases) -> int:
    """Return 1 if a ratio has grown by half, and say which."""
    baseline = read_baseline(platform_key())
    if not baseline:
        print(f"no baseline for {platform_key()}: python -m studies.history --baseline makes one")
    failed = grown(cases, baseline)
    for name, case in failed.items():
        print(f"slower by half or more: {name}: {case.ratio}, the baseline is {case.baseline:.3g}")
    return int(bool(failed))


def machine() -> str:
    """Return processor, cores, memory, system and versions, without any name of the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    return f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GB, {platform_key()}, {versions}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"


def commit() -> str:
    """Return the commit of this checkout, with a plus if files have changed since."""
    git = partial(subprocess.run, cwd=HERE, capture_output=True, text=True, check=False)
    known = git(["git", "rev-parse", "--short=12", "HEAD"]).stdout.strip() or "unknown"
    return known + "+" * bool(git(["git", "status", "--porcelain", "--untracked-files=no"]).stdout.strip())


def write_history(folder: Path, found: Mapping[str, Ratio]) -> Path:
    """Write one row for each ratio into a new file that is named by date and commit."""
    now = datetime.datetime.now(datetime.UTC)
    values = found.values()
    columns: dict[str, Any] = {
        "date": [now.strftime("%Y-%m-%d %H:%M:%S")] * len(found),
        "commit": [commit()] * len(found),
        "machine": [machine()] * len(found),
        "name": [*found],
        "ratio": [ratio.least for ratio in values],
        "median": [ratio.median for ratio in values],
        "least": [ratio.spread[0] for ratio in values],
        "most": [ratio.spread[1] for ratio in values],
        "repeats": [len(ratio.ours) for ratio in values],
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{now:%Y-%m-%d-%H%M%S-%f}.parquet"
    write_parquet(path, [{name: np.array(column) for name, column in columns.items()}])
    return path


def read_history(folder: Path) -> dict[str, Any]:
    """Return all rows of the history as columns, by date."""
    with duckdb.connect() as connection:
        columns: dict[str, Any] = connection.execute(
            f"SELECT * FROM '{folder}/*.parquet' ORDER BY date, name"
        ).fetchnumpy()
    return columns


def print_history(runs: Mapping[str, Any]) -> None:
    """Print the first, the least and the last ratio of each name, and the baseline."""
    baseline = read_baseline(platform_key())
    print("| ratio | runs | first | least | last | median of last | last / baseline | commit of last |")
    print("|---|---|---|---|---|---|---|---|")
    for name in dict.fromkeys(runs["name"]):
        own = runs["name"] == name
        ratio, median, at = (runs[column][own] for column in ("ratio", "median", "commit"))
        against = f"{ratio[-1] / baseline[name]:.2f}" if name in baseline else "–"
        figures = f"{ratio[0]:.3g} | {ratio.min():.3g} | {ratio[-1]:.3g} | {median[-1]:.3g} | {against}"
        print(f"| {name} | {len(ratio)} | {figures} | {at[-1]} |")


def draw_history(runs: Mapping[str, Any], path: Path) -> None:
    """Draw each ratio over the runs in a small panel of its own, with the range of its pairs."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    names = [*dict.fromkeys(runs["name"])]
    rows = -(-len(names) // 3)
    figure, panels = pyplot.subplots(rows, 3, figsize=(12, 2.2 * rows), squeeze=False, layout="constrained")
    for axes, name in zip(panels.flat, names, strict=False):
        draw_ratio(axes, name, {column: values[runs["name"] == name] for column, values in runs.items()})
    for axes in panels.flat[len(names) :]:
        axes.set_visible(False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def draw_ratio(axes: Any, name: str, runs: Mapping[str, Any]) -> None:
    """Draw one ratio over its runs, which are named by their dates; the dashed line is the limit of the check."""
    place = np.arange(len(runs["ratio"]))
    axes.vlines(place, runs["least"], runs["most"], alpha=0.3, linewidth=4)
    axes.plot(place, runs["ratio"], marker="o", markersize=3)
    limit = GROWTH * read_baseline(platform_key()).get(name, float("nan"))
    axes.axhline(limit, linestyle="--", color="tab:red", linewidth=1)
    axes.set_title(name, fontsize=7)
    axes.set_ylim(bottom=0)
    shown = place[:: max(1, len(place) // 4)]
    axes.set_xticks(shown, [str(runs["date"][i])[5:10] for i in shown], fontsize=7)


def run(large: bool) -> dict[str, Ratio]:
    """Return the ratios of the small set, and of the large one if asked for; prints each as it is measured."""
    found = {}
    small = {name: partial(ratios.in_turns, make) for name, make in ratios.small_set().items()}
    cases: dict[str, Callable[[int], Ratio]] = {**small, **(ratios.LARGE if large else {})}
    for name, take in cases.items():
        found[name] = take(REPEATS)
        print(f"{name}: {found[name]}", flush=True)
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Do what is asked for; returns 1 if the check has failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="the large set too")
    parser.add_argument("--check", action="store_true", help="fail if a ratio of the small set has grown by half")
    parser.add_argument("--baseline", action="store_true", help="check against today's ratios from now on")
    parser.add_argument("--show", action="store_true", help="print the history")
    parser.add_argument("--picture", type=Path, help="draw the history")
    parser.add_argument("--folder", type=Path, default=HERE / "history", help="where the history is kept")
    parser.add_argument("--planted", type=int, default=1, help="do our work several times, for --check")
    parser.add_argument("--only", default="", help="names that contain this, for --check and --baseline")
    options = parser.parse_args(words)
    chosen = {name: make for name, make in ratios.small_set().items() if options.only in name}
    if options.check:
        return check(planted(chosen, options.planted))
    if options.baseline:
        write_baseline(chosen)
    elif options.show or options.picture:
        runs = read_history(options.folder)
        print_history(runs)
        if options.picture:
            draw_history(runs, options.picture)
    else:
        print(f"written to {write_history(options.folder, run(options.all))}")
    return 0


if __name__ == "__main__":
    compile_at_once()  # no round has to compile anything
    sys.exit(main())
