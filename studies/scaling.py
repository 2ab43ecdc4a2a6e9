"""The study of scaling: seconds of each stage and peak memory, as models grow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plumdp.base.compiled import Clock
from plumdp.case_studies import case_study
from plumdp.certifying.pipeline import compare
from plumdp.data.simulate import simulate
from plumdp.learning.learn import learn
from studies.experiment import RELAXATIONS
from studies.markdown import SYMBOLS, distinct, grouped, markdown_table, middle, short_seconds
from studies.plots import COLOURS, MARKERS, NAMES, WIDTH, fine_ticks, legend, new_figure, plain_ticks
from studies.study import Cell, Plan, Row, Study

_GROWING = (
    *("aircraft:20,10", "aircraft:50,10", "aircraft:100,20"),
    *("betting:25", "betting:50", "betting:100"),
    *("engagement:50", "engagement:100", "engagement:300"),
    *("rover:10,10", "rover:20,20,7", "rover:50,50"),
    *("glider:11,9", "glider:21,17", "glider:51,47"),
    *("parallel:5", "parallel:6", "parallel:10"),
)
_LARGE = (
    *("aircraft:200,40", "betting:150", "engagement:1000"),
    *("rover:75,75", "rover:125,125", "glider:71,67", "parallel:20"),
)
_SIX = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")  # one colour for each family


def _run(cell: Cell) -> list[Row]:
    """Return the seconds of each stage, from the model to the certificate, and the peak memory."""
    clock = Clock()
    study = case_study(cell.instance)
    clock.lap("model")
    model, steps = study.model, study.max_steps + 1
    counts = simulate(model, study.true_point, cell.runs, rng=cell.seed, max_steps=steps)
    clock.lap("runs")
    sizes: Row = {
        "states": model.graph.n_states,
        "transitions": model.graph.n_transitions,
        "expressions": len(model.expressions),
        "parameters": model.space.dimension,
    }
    certificates = compare(
        learn(model, counts, objectives=[study.objective], confidence_set="interval"),
        study.objective,
        relaxations=RELAXATIONS,
    )
    return [
        sizes
        | {"relaxation": name}
        | {f"{stage}_seconds": time for stage, time in (clock.laps | dict(c.how.seconds)).items()}
        for name, c in zip(RELAXATIONS, certificates, strict=True)
    ]


def _describe(rows: Sequence[Row]) -> list[str]:
    """Return a table of the seconds and the memory of each stage, by size of the model."""
    groups = grouped(rows, "instance", "relaxation")
    header = ["instance", "states", "transitions", "expressions", "model", "runs", "intervals", "region"]
    header += [f"{SYMBOLS[r]} and solver" for r in RELAXATIONS] + ["peak memory, GB"]
    lines = []
    for instance in sorted(distinct(rows, "instance"), key=lambda i: groups[i, "interval"][0]["transitions"]):
        first = groups[instance, "interval"]
        sizes = [f"{first[0][name]:,}" for name in ("states", "transitions", "expressions")]
        stages = [short_seconds(middle(first, f"{s}_seconds")) for s in ("model", "runs", "intervals", "region")]
        each = [
            short_seconds(sum(middle(groups[instance, r], f"{s}_seconds") for s in ("relaxation", "solver")))
            for r in RELAXATIONS
        ]
        lines.append([instance, *sizes, *stages, *each, f"{middle(first, 'memory') / 1e9:.2f}"])
    return [f"Seconds of each stage, {distinct(rows, 'runs')[-1]:,} runs.", markdown_table(header, lines)]


def _draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw seconds from counts to certificate, and memory, against the number of transitions."""
    families: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row["transitions"]):
        families.setdefault(row["instance"].partition(":")[0], []).append(row)
    with new_figure(folder / "scaling", (WIDTH, 2.4 * -(-len(families) // 2) + 0.9)) as figure:
        n_columns = min(2, len(families))
        shape = {"sharex": True, "sharey": True, "squeeze": False}
        cells = figure.subplots(-(-len(families) // 2), n_columns, **shape)
        panels = cells.flat
        for axes, (family, here) in zip(panels, sorted(families.items()), strict=False):
            for k, name in enumerate(NAMES):
                some = [row for row in here if row["relaxation"] == name]
                seconds = [_seconds_from_counts(row) for row in some]
                _draw_growth(axes, some, seconds, COLOURS[name], MARKERS[name], width=3.2 - 0.8 * k)
            axes.set_title(family)
        for axes in cells[-1]:
            axes.set_xlabel("transitions")
        for axes in cells[:, 0]:
            axes.set_ylabel("seconds from counts\nto certificate")
        legend(figure, [])
    with new_figure(folder / "memory", (WIDTH, 4.4)) as figure:
        axes = figure.add_subplot()
        for (family, here), colour in zip(sorted(families.items()), _SIX, strict=False):
            some = [row for row in here if row["relaxation"] == "expression"]
            _draw_growth(axes, some, [row["memory"] / 1e9 for row in some], colour, "o", label=family)
        axes.set_xlabel("transitions")
        axes.set_ylabel("peak memory of the process, GB")
        fine_ticks(axes.yaxis)
        axes.legend()
    return [folder / "scaling.png", folder / "memory.png"]


def _draw_growth(
    axes: Any, rows: list[Row], values: list[float], colour: str, marker: str, label: str = "", width: float = 1.4
) -> None:
    axes.loglog(
        [row["transitions"] for row in rows], values, marker=marker, ms=4.5, lw=width, color=colour, label=label or None
    )
    axes.grid(linewidth=0.3)
    plain_ticks(axes.xaxis, is_log=True, most=4)
    plain_ticks(axes.yaxis, is_log=True)


def _seconds_from_counts(row: Row) -> float:
    return float(sum(row[f"{stage}_seconds"] for stage in ("intervals", "region", "relaxation", "solver")))


SCALING = Study(
    name="scaling",
    summary="seconds and memory as models grow",
    plans={"quick": Plan(_GROWING, (1,), 10_000), "full": Plan((*_GROWING, *_LARGE), (1,), 10_000)},
    run=_run,
    describe=_describe,
    draw=_draw,
)
