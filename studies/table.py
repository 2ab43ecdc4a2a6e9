"""The study of the published table: bounds from 10^5 runs with four relaxations, and the published figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from plumdp.result.printing import outward
from studies.experiment import RELAXATIONS, bounded, prepare
from studies.markdown import (
    SYMBOLS,
    Key,
    brackets_held,
    distinct,
    grouped,
    markdown_table,
    middle,
    published_figure,
    short,
    short_seconds,
    total_seconds,
)
from studies.plots import draw_dots
from studies.published import INSTANCES, PUBLISHED, SMALL_INSTANCES, look_up
from studies.study import Cell, Plan, Row, Study

_PAPER = "published-interval"
_OURS = "interval"
LOOSER = 1.25  # times the published gap: from here on an entry is listed


def _run(cell: Cell) -> list[Row]:
    """Return rows of the published table, with the published intervals and with those that have a guarantee."""
    experiment = prepare(cell.instance)
    counts = experiment.draw(cell.runs, cell.seed)
    return [row for sets in (_PAPER, _OURS) for row in bounded(experiment, counts, sets)]


def _describe(rows: Sequence[Row]) -> list[str]:
    """Return tables of our figures and the published ones."""
    groups = grouped(rows, "sets", "instance", "relaxation")
    instances = distinct(rows, "instance")
    header = ["instance", "true value", *SYMBOLS.values()]

    def grid(entry: Callable[[str, str], str]) -> str:
        lines = ([i, f"{middle(groups[_PAPER, i, 'interval'], 'value'):.5g}"] for i in instances)
        return markdown_table(header, ([*line, *(entry(line[0], r) for r in RELAXATIONS)] for line in lines))

    def gap(instance: str, relaxation: str) -> str:
        ours = short(middle(groups[_PAPER, instance, relaxation], "gap"))
        return f"{ours} / {published_figure(PUBLISHED, instance, relaxation, 'gap')}"

    def seconds(instance: str, relaxation: str) -> str:
        ours = short_seconds(total_seconds(groups[_PAPER, instance, relaxation]))
        return f"{ours} / {published_figure(PUBLISHED, instance, relaxation, 'seconds')}"

    def bracket(instance: str, relaxation: str) -> str:
        group = groups[_OURS, instance, relaxation]
        low, high = (outward(middle(group, name), side, 4) for name, side in (("lower", -1), ("upper", 1)))
        return f"[{low}, {high}]".replace("infinity", "∞")

    memory = ([i, f"{middle(groups[_PAPER, i, 'interval'], 'memory') / 1e9:.2f}"] for i in instances)
    n_seeds = len(distinct(rows, "seed"))
    return [
        "## Relative gap, ours / published",
        "Published intervals (Clopper–Pearson, which random numbers of trials do not vouch for) from runs of our own, "
        "and the policy that is optimal at the true point. ∞: nothing bounds the value, since some expression was "
        "never tried; TO: time-out at two hours.",
        grid(gap),
        "## Seconds for construction and both solutions, ours / published",
        grid(seconds),
        "## Certified bounds",
        "The same runs with the intervals that plumdp vouches for: valid for runs, complements merged, factors used"
        + (f" (medians over {n_seeds} seeds)." if n_seeds > 1 else "."),
        grid(bracket),
        "## Memory of the whole process",
        markdown_table(["instance", "peak memory, GB"], memory),
        "## Held against the published figures",
        _verdict(rows, groups),
    ]


def _verdict(rows: Sequence[Row], groups: Mapping[Key, list[Row]]) -> str:
    ratios = {
        key[1:]: middle(group, "gap") / PUBLISHED[key[1]][key[2]].gap
        for key, group in groups.items()
        if key[0] == _PAPER and key[1] in PUBLISHED and not PUBLISHED[key[1]][key[2]].is_time_out
    }
    solved = sum(p.is_time_out for i in {k[1] for k in groups} & PUBLISHED.keys() for p in PUBLISHED[i].values())
    looser = [f"{i} {SYMBOLS[r]} ({ratio:.3g} times)" for (i, r), ratio in ratios.items() if ratio > LOOSER]
    lines = [
        f"- {brackets_held(rows, 'instance', 'relaxation')}",
        f"- Gaps at most {LOOSER:g} times the published ones: {len(ratios) - len(looser)} of {len(ratios)}."
        + (f" Others: {', '.join(looser)}." if looser else ""),
        f"- Published time-outs that have a result here: {solved}.",
    ]
    return "\n".join(lines)


def _draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw gaps and seconds of all instances, ours filled and published ones hollow."""
    paper = [row for row in rows if row["sets"] == _PAPER]

    def published(row: Row, name: str) -> float:
        entry = look_up(PUBLISHED, row["instance"], row["relaxation"])
        return float("nan") if entry is None else float(getattr(entry, name))

    def seconds(row: Row) -> float:
        return float(row["build_seconds"] + row["solve_seconds"])

    gaps = "relative gap; filled: ours, hollow: published"
    draw_dots(paper, folder / "gaps", lambda row: row["gap"], lambda row: published(row, "gap"), gaps)
    what = "seconds for construction and solution;\nfilled: ours, hollow: published (at 7200: time-out)"
    draw_dots(paper, folder / "seconds", seconds, lambda row: published(row, "seconds"), what)
    return [folder / "gaps.png", folder / "seconds.png"]


TABLE = Study(
    name="table",
    summary="the published table beside ours",
    plans={"quick": Plan(SMALL_INSTANCES, (1,), 100_000), "full": Plan(INSTANCES, (1,), 100_000)},
    run=_run,
    describe=_describe,
    draw=_draw,
)
