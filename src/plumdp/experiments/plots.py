"""Pictures of the studies. The only importer of matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.experiments.published import PUBLISHED, look_up
from plumdp.experiments.studies import Row

LABELS = {
    "interval": r"$\mathcal{P}_I$",
    "parameter": r"$\mathcal{P}_\Theta$",
    "expression": r"$\mathcal{P}_\Lambda$",
    "rectangular": r"$\mathcal{P}_R$",
}
COLOURS = {"interval": "#999999", "parameter": "#e69f00", "expression": "#0072b2", "rectangular": "#d55e00"}
MARKERS = {"interval": "s", "parameter": "D", "expression": "o", "rectangular": "^"}
_SIX = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_BEYOND = 2e4  # what is larger is drawn at the edge: nobody cares how much
_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "plumdp",  # the same picture is the same file
}


def draw_online(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw learning curves: certified bounds dashed, true values of their policies solid, and seconds below."""
    instances = list(dict.fromkeys(row["instance"] for row in rows))
    n_columns = min(3, len(instances))
    n_bands = -(-len(instances) // n_columns)
    with _figure(folder / "online", (3.4 * n_columns, 3.6 * n_bands + 0.5)) as figure:
        grid = figure.add_gridspec(2 * n_bands, n_columns, height_ratios=[4, 1] * n_bands)
        for k, instance in enumerate(instances):
            band, column = divmod(k, n_columns)
            here = [row for row in rows if row["instance"] == instance]
            _draw_curves(figure.add_subplot(grid[2 * band, column]), here)
            _draw_seconds(figure.add_subplot(grid[2 * band + 1, column]), here)
        lines = [_line("-", "true value of the certified policy"), _line("--", "certified bound")]
        _legend(figure, [*lines, _line("-", "best value", width=0.6)], marked=False)
    return [folder / "online.png"]


def _draw_curves(axes: Any, rows: list[Row]) -> None:
    value, direction = rows[0]["value"], rows[0]["direction"]
    grid = np.unique(np.geomspace(10, max(row["episodes"] for row in rows), 120).astype(int))
    shown = []
    for relaxation in LABELS:
        seeds = _curves(rows, relaxation)
        for name, style, alpha in (("true_value", "-", 0.25), ("bound", "--", 0.15)):
            steps = np.array([_at(seed, name, grid) for seed in seeds])
            low, middle, high = np.quantile(steps, (0.0, 0.5, 1.0), axis=0, method="nearest")
            axes.plot(grid, _finite(middle), style, color=COLOURS[relaxation], linewidth=1.4)
            axes.fill_between(grid, low, high, where=np.isfinite(high), color=COLOURS[relaxation], alpha=alpha, lw=0)
            shown.append(middle)
    axes.axhline(value, color="black", linewidth=0.6)
    axes.set_ylim(*_limits(np.array(shown), value))
    axes.set_xscale("log")
    axes.set_xlim(grid[0], grid[-1])
    better = "higher" if direction == "max" else "lower"
    axes.set_title(f"{rows[0]['instance']} ({better} is better)")


def _limits(curves: npt.NDArray[np.float64], value: float) -> tuple[float, float]:
    """Return what to show of curves that may start far off: what they reach in the second half of the picture."""
    late = curves[:, curves.shape[1] // 2 :]
    late = late[np.isfinite(late) & (np.abs(late) < 2.5 * abs(value))]
    low, high = min(late.min(initial=value), value), max(late.max(initial=value), value)
    margin = 0.06 * (high - low)
    return low - margin, high + margin


def _draw_seconds(axes: Any, rows: list[Row]) -> None:
    """Draw the total seconds of each relaxation."""
    names = list(LABELS)
    totals = [[seed[-1]["seconds"] for seed in _curves(rows, name)] for name in names]
    middles = np.array([np.median(t) for t in totals])
    spread = np.array([[m - min(t), max(t) - m] for m, t in zip(middles, totals, strict=True)]).T
    bars = axes.barh(range(4), middles, xerr=spread, color=[COLOURS[n] for n in names], error_kw={"lw": 0.8})
    axes.bar_label(bars, [f" {m:.1f} s" for m in middles], fontsize=7, padding=2)
    axes.set_yticks(range(4), [LABELS[name] for name in names], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.35 * max(max(t) for t in totals))
    axes.tick_params(axis="x", labelsize=7)
    axes.set_xlabel("episodes (above), seconds of learning (here)", fontsize=7)


def _curves(rows: list[Row], relaxation: str) -> list[list[Row]]:
    """Return the rows of each seed, in order."""
    seeds: dict[int, list[Row]] = {}
    for row in rows:
        if row["relaxation"] == relaxation:
            seeds.setdefault(row["seed"], []).append(row)
    return [sorted(seed, key=lambda row: row["episodes"]) for seed in seeds.values()]


def _at(curve: list[Row], name: str, grid: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the values of a curve, which holds each value until the next update."""
    episodes = np.array([row["episodes"] for row in curve])
    return np.array([row[name] for row in curve])[np.searchsorted(episodes, grid, side="right") - 1]


def draw_table(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw gaps and seconds of all instances, ours filled and published ones hollow."""
    paper = [row for row in rows if row["paper"]]

    def published(row: Row, name: str) -> float:
        entry = look_up(PUBLISHED, row["instance"], row["relaxation"])
        return float("nan") if entry is None else float(getattr(entry, name))

    def seconds(row: Row) -> float:
        return float(row["build_seconds"] + row["solve_seconds"])

    gaps = "relative gap; filled: ours, hollow: published"
    _draw_dots(paper, folder / "gaps", lambda row: row["gap"], lambda row: published(row, "gap"), gaps)
    what = "seconds for construction and solution; filled: ours, hollow: published (at 7200: time-out)"
    _draw_dots(paper, folder / "seconds", seconds, lambda row: published(row, "seconds"), what)
    return [folder / "gaps.png", folder / "seconds.png"]


def draw_ellipsoid(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw the gaps of intervals (filled) and ellipsoids (hollow), both with guarantee."""
    gaps = {(r["instance"], r["relaxation"]): r["gap"] for r in rows if r["sets"] == "ellipsoid" and not r["paper"]}
    shown = [r for r in rows if r["sets"] == "interval" and r["relaxation"] != "interval"]
    what = "relative gap; filled: intervals, hollow: ellipsoid"
    _draw_dots(shown, folder / "ellipsoid", lambda r: r["gap"], lambda r: gaps[r["instance"], r["relaxation"]], what)
    return [folder / "ellipsoid.png"]


def _draw_dots(
    rows: Sequence[Row], path: Path, filled: Callable[[Row], float], hollow: Callable[[Row], float], label: str
) -> None:
    """Draw one line of dots per instance on a logarithmic axis."""
    instances = list(dict.fromkeys(row["instance"] for row in rows))
    names = [name for name in LABELS if any(row["relaxation"] == name for row in rows)]
    with _figure(path, (7.0, 0.32 * len(instances) + 1.4)) as figure:
        axes = figure.add_subplot()
        for row in rows:
            k = names.index(row["relaxation"])
            height = instances.index(row["instance"]) + 0.16 * (k - (len(names) - 1) / 2)
            look = {"color": COLOURS[row["relaxation"]], "marker": MARKERS[row["relaxation"]], "markersize": 5}
            axes.plot(_finite(filled(row)), height, linestyle="none", **look)
            axes.plot(_finite(hollow(row)), height, linestyle="none", markerfacecolor="white", **look)
            if filled(row) > _BEYOND:
                edge = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "center"}
                text = "∞" if filled(row) == np.inf else "→"
                axes.annotate(text, (1.0, height), color=COLOURS[row["relaxation"]], **edge)
        axes.set_xscale("log")
        axes.set_xlim(right=min(axes.get_xlim()[1], _BEYOND))
        axes.set_yticks(range(len(instances)), instances)
        axes.set_ylim(len(instances) - 0.5, -0.5)
        axes.grid(axis="x", linewidth=0.3)
        axes.set_xlabel(label)
        _legend(figure, [], names)


def draw_scaling(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw seconds from counts to certificate, and memory, against the number of transitions."""
    families: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row["transitions"]):
        families.setdefault(row["instance"].partition(":")[0], []).append(row)
    with _figure(folder / "scaling", (9.0, 5.0)) as figure:
        panels = figure.subplots(2, 3, sharex=True, sharey=True, squeeze=False).flat
        for axes, (family, here) in zip(panels, sorted(families.items()), strict=False):
            for name in LABELS:
                some = [row for row in here if row["relaxation"] == name]
                _draw_growth(axes, some, [_seconds_from_counts(row) for row in some], COLOURS[name], MARKERS[name])
            axes.set_title(family)
        figure.supxlabel("transitions")
        figure.supylabel("seconds from counts to certificate")
        _legend(figure, [])
    with _figure(folder / "memory", (5.0, 3.4)) as figure:
        axes = figure.add_subplot()
        for (family, here), colour in zip(sorted(families.items()), _SIX, strict=False):
            some = [row for row in here if row["relaxation"] == "expression"]
            _draw_growth(axes, some, [row["memory"] / 1e9 for row in some], colour, "o", label=family)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_xlabel("transitions")
        axes.set_ylabel("peak memory of the process, GB")
        axes.legend(fontsize=8)
    return [folder / "scaling.png", folder / "memory.png"]


def _draw_growth(axes: Any, rows: list[Row], values: list[float], colour: str, marker: str, label: str = "") -> None:
    axes.loglog(
        [row["transitions"] for row in rows], values, marker=marker, ms=4, lw=1.0, color=colour, label=label or None
    )
    axes.grid(linewidth=0.3)


def _seconds_from_counts(row: Row) -> float:
    return float(sum(row[f"{stage}_seconds"] for stage in ("intervals", "region", "relaxation", "solver")))


def _finite(values: Any) -> npt.NDArray[np.float64]:
    """Return the values without those that no axis can show."""
    values = np.asarray(values, dtype=float)
    return np.where(np.isfinite(values), values, np.nan)


def _line(style: str, label: str, *, colour: str = "black", marker: str = "", width: float = 1.4) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, linestyle=style, marker=marker, markersize=5, linewidth=width, label=label)


def _legend(figure: Any, lines: list[Any], names: Sequence[str] = tuple(LABELS), *, marked: bool = True) -> None:
    """Draw one legend for all panels, above them."""
    marks = [_line("-", LABELS[name], colour=COLOURS[name], marker=MARKERS[name] if marked else "") for name in names]
    figure.legend(handles=[*marks, *lines], loc="outside upper center", ncols=len(marks) + len(lines))


@contextmanager
def _figure(path: Path, size: tuple[float, float]) -> Iterator[Any]:
    """Give a figure, and write it as PNG and SVG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        figure.savefig(path.with_suffix(".png"), dpi=160)
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
