"""The study of the paper's learning curves: certified bounds and true values of their policies, over episodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.online.environments import simulator
from studies.experiment import RELAXATIONS, prepare
from studies.interval_learning import learn_by_intervals
from studies.markdown import SYMBOLS, distinct, grouped, markdown_table, middle, short, short_seconds
from studies.plots import COLOURS, NAMES, WIDTH, finite, legend, line, new_figure, plain_ticks
from studies.study import Cell, Plan, Row, Study

EXPLORATION = 0.1  # share of other choices than the optimistic one; the paper gives none
_INSTANCES = ("aircraft:20,10", "betting:25", "engagement:50", "rover:10,10", "glider:11,9", "parallel:6")


def _run(cell: Cell) -> list[Row]:
    """Return one row per update; each relaxation collects its own data."""
    experiment = prepare(cell.instance)
    study, rows = experiment.study, []
    for relaxation in RELAXATIONS:
        environment = simulator(
            study.model, study.true_point, rng=cell.seed, max_steps=study.max_steps + 1, stop=experiment.stop
        )
        asked = study.model, environment, study.objective
        for record in learn_by_intervals(*asked, episodes=cell.runs, relaxation=relaxation, exploration=EXPLORATION):
            row: Row = {"relaxation": relaxation, "direction": study.objective.direction, "value": experiment.value}
            row |= {name: getattr(record, name) for name in ("episodes", "steps", "bound")}
            row |= {"hope": record.optimistic_bound, "status": str(record.certificate.status)}
            assert record.true_value is not None
            rows.append(row | {"true_value": record.true_value, "seconds": record.seconds})
    return rows


def _describe(rows: Sequence[Row]) -> list[str]:
    """Return a table of the last bounds, and of the episodes that reach the same bound."""
    runs = grouped(rows, "instance", "relaxation", "seed")
    header = ["instance", "best value", "relaxation", "certified bound", "true value of its policy", "no policy beats"]
    header += ["seconds", "updates", "episodes for the last bound of P_I"]
    lines = []
    for instance in distinct(rows, "instance"):
        seeds = sorted({key[2] for key in runs if key[0] == instance})
        for relaxation in RELAXATIONS:
            group = [runs[instance, relaxation, seed] for seed in seeds]
            last = [max(run, key=lambda row: row["episodes"]) for run in group]
            target = [max(runs[instance, "interval", seed], key=lambda row: row["episodes"]) for seed in seeds]
            reached = median(_episodes_until(run, goal) for run, goal in zip(group, target, strict=True))
            figures = (short(middle(last, name)) for name in ("bound", "true_value", "hope"))
            seconds = short_seconds(middle(last, "seconds"))
            updates = f"{median(map(len, group)):.0f}"
            best = f"{middle(last, 'value'):.5g}"
            lines.append([instance, best, SYMBOLS[relaxation], *figures, seconds, updates, _episodes(reached)])
    n_seeds = len(distinct(rows, "seed"))
    violations = sum(_sign(row) * row["bound"] > _sign(row) * row["true_value"] + _precision(row) for row in rows)
    return [
        f"Medians over {n_seeds} seeds after {distinct(rows, 'runs')[-1]:,} episodes, confidence 99.9 %.",
        markdown_table(header, lines),
        f"Bounds that the true value of their policy does not keep: {violations} of {len(rows)} updates.",
    ]


def _episodes_until(run: Sequence[Row], goal: Row) -> float:
    """Return after how many episodes a run has certified what another one has at its end."""
    good = [row["episodes"] for row in run if _sign(row) * row["bound"] >= _sign(goal) * goal["bound"]]
    return float(min(good, default=np.inf)) if np.isfinite(goal["bound"]) else np.nan


def _episodes(number: float) -> str:
    return "–" if np.isnan(number) else "not reached" if number == np.inf else f"{number:,.0f}"


def _precision(row: Row) -> float:
    """Return how well a true value is known."""
    return 1e-6 * max(1.0, abs(float(row["true_value"])))


def _sign(row: Row) -> int:
    return 1 if row["direction"] == "max" else -1


def _draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw learning curves: certified bounds dashed, true values of their policies solid, and seconds below."""
    instances = list(dict.fromkeys(row["instance"] for row in rows))
    n_columns = min(2, len(instances))
    n_bands = -(-len(instances) // n_columns)
    with new_figure(folder / "online", (WIDTH, 4.3 * n_bands + 1.1)) as figure:
        grid = figure.add_gridspec(2 * n_bands, n_columns, height_ratios=[5, 2] * n_bands)
        for k, instance in enumerate(instances):
            band, column = divmod(k, n_columns)
            here = [row for row in rows if row["instance"] == instance]
            curves = figure.add_subplot(grid[2 * band, column])
            bars = figure.add_subplot(grid[2 * band + 1, column])
            _draw_curves(curves, here)
            _draw_seconds(bars, here, named=column == 0)
            if column == 0:
                curves.set_ylabel("value")
        lines = [line("-", "true value of the policy", width=2), line((0, (4, 2)), "certified bound", width=2)]
        legend(figure, [*lines, line("-", "best value", width=0.8)], marked=False, columns=3)
    return [folder / "online.png"]


def _draw_curves(axes: Any, rows: list[Row]) -> None:
    """Draw the curves of each relaxation; those that come later are narrower, so that equal ones can all be seen."""
    value, direction = rows[0]["value"], rows[0]["direction"]
    grid = np.unique(np.geomspace(10, max(row["episodes"] for row in rows), 120).astype(int))
    shown = []
    for relaxation, width in zip(NAMES, (4.2, 3.0, 1.9, 0.9), strict=True):
        seeds, colour = _curves(rows, relaxation), COLOURS[relaxation]
        for name, style, alpha in (("true_value", "-", 0.2), ("bound", (0, (4, 2)), 0.12)):
            steps = np.array([_at(seed, name, grid) for seed in seeds])
            low, middle, high = np.quantile(steps, (0.0, 0.5, 1.0), axis=0, method="nearest")
            axes.plot(grid, finite(middle), linestyle=style, color=colour, linewidth=width, dash_capstyle="butt")
            axes.fill_between(grid, low, high, where=np.isfinite(high), color=colour, alpha=alpha, lw=0)
            shown.append(middle)
    axes.axhline(value, color="black", linewidth=0.8)
    axes.set_ylim(*_limits(np.array(shown), value))
    axes.set_xscale("log")
    axes.set_xlim(grid[0], grid[-1])
    plain_ticks(axes.xaxis, is_log=True, most=4)
    plain_ticks(axes.yaxis)
    axes.set_xlabel("runs")
    better = "higher" if direction == "max" else "lower"
    axes.set_title(f"{rows[0]['instance']}\n({better} is better)")


def _limits(curves: npt.NDArray[np.float64], value: float) -> tuple[float, float]:
    """Return the limits of an axis, from the second half of curves that may start far from their end."""
    late = curves[:, curves.shape[1] // 2 :]
    late = late[np.isfinite(late) & (np.abs(late) < 2.5 * abs(value))]
    low, high = min(late.min(initial=value), value), max(late.max(initial=value), value)
    margin = 0.06 * (high - low)
    return low - margin, high + margin


def _draw_seconds(axes: Any, rows: list[Row], *, named: bool) -> None:
    """Draw the total seconds of each relaxation."""
    totals = [[seed[-1]["seconds"] for seed in _curves(rows, name)] for name in NAMES]
    middles = np.array([np.median(t) for t in totals])
    spread = np.array([[m - min(t), max(t) - m] for m, t in zip(middles, totals, strict=True)]).T
    bars = axes.barh(range(len(NAMES)), middles, xerr=spread, color=[COLOURS[n] for n in NAMES], error_kw={"lw": 0.8})
    axes.bar_label(bars, [f" {m:.1f} s" for m in middles], fontsize=9, padding=2)
    axes.set_yticks(range(len(NAMES)), NAMES if named else [""] * len(NAMES))
    axes.invert_yaxis()
    axes.set_xlim(0, 1.45 * max(max(t) for t in totals))
    plain_ticks(axes.xaxis)
    axes.set_xlabel("seconds of learning")


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


ONLINE = Study(
    name="online",
    summary="learning curves over episodes",
    plans={"quick": Plan(_INSTANCES, (1, 2), 10_000), "full": Plan(_INSTANCES, (1, 2, 3, 4, 5), 100_000)},
    run=_run,
    describe=_describe,
    draw=_draw,
)
