"""The studies in words: Markdown tables of their rows, beside the published figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any, TypeAlias

import numpy as np

from plumdp.experiments.published import ELLIPSOIDS, PUBLISHED, Table, look_up
from plumdp.experiments.studies import RELAXATIONS, Row, Study
from plumdp.pipeline import relaxations_for
from plumdp.result.certificate import outward

Key: TypeAlias = tuple[Any, ...]

SYMBOLS = {"interval": "P_I", "parameter": "P_Θ", "expression": "P_Λ", "rectangular": "P_R"}
LOOSER = 1.25  # times the published gap: from here on an entry is listed


def describe(study: Study, rows: Sequence[Row]) -> list[str]:
    """Return the parts of a report on the rows of a study."""
    return _TEXTS[study](rows)


def _table(rows: Sequence[Row]) -> list[str]:
    """The published table beside ours."""
    paper = _by(rows, "paper", "instance", "relaxation")
    instances = _distinct(rows, "instance")
    header = ["instance", "true value", *SYMBOLS.values()]

    def grid(entry: Callable[[str, str], str]) -> str:
        lines = ([i, f"{_middle(paper[1, i, 'interval'], 'value'):.5g}"] for i in instances)
        return markdown_table(header, ([*line, *(entry(line[0], r) for r in RELAXATIONS)] for line in lines))

    def gap(instance: str, relaxation: str) -> str:
        ours = _short(_middle(paper[1, instance, relaxation], "gap"))
        return f"{ours} / {_published(PUBLISHED, instance, relaxation, 'gap')}"

    def seconds(instance: str, relaxation: str) -> str:
        ours = _seconds(_total(paper[1, instance, relaxation]))
        return f"{ours} / {_published(PUBLISHED, instance, relaxation, 'seconds')}"

    def bracket(instance: str, relaxation: str) -> str:
        group = paper[0, instance, relaxation]
        low, high = (outward(_middle(group, name), side, 4) for name, side in (("lower", -1), ("upper", 1)))
        return f"[{low}, {high}]".replace("infinity", "∞")

    memory = ([i, f"{_middle(paper[1, i, 'interval'], 'memory') / 1e9:.2f}"] for i in instances)
    n_seeds = len(_distinct(rows, "seed"))
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
        _verdict(rows, paper),
    ]


def _verdict(rows: Sequence[Row], paper: Mapping[Key, list[Row]]) -> str:
    ratios = {
        key[1:]: _middle(group, "gap") / PUBLISHED[key[1]][key[2]].gap
        for key, group in paper.items()
        if key[0] and key[1] in PUBLISHED and not PUBLISHED[key[1]][key[2]].is_time_out
    }
    solved = sum(p.is_time_out for i in {k[1] for k in paper} & PUBLISHED.keys() for p in PUBLISHED[i].values())
    looser = [f"{i} {SYMBOLS[r]} ({ratio:.3g} times)" for (i, r), ratio in ratios.items() if ratio > LOOSER]
    lines = [
        f"- {_held(rows, 'instance', 'relaxation')}",
        f"- Gaps at most {LOOSER:g} times the published ones: {len(ratios) - len(looser)} of {len(ratios)}."
        + (f" Others: {', '.join(looser)}." if looser else ""),
        f"- Published time-outs that have a result here: {solved}.",
    ]
    return "\n".join(lines)


def _held(rows: Sequence[Row], *names: str) -> str:
    """Return in how many brackets the true value lies, and of what the others are."""
    missed = [" ".join(row[name] for name in names) for row in rows if not row["holds"]]
    others = f"; not in those of {', '.join(missed)}" if missed else ""
    return f"The true value lies in {len(rows) - len(missed)} of {len(rows)} brackets{others}."


def _ellipsoid(rows: Sequence[Row]) -> list[str]:
    """The kinds of sets beside each other."""
    groups = _by(rows, "sets", "paper", "instance", "relaxation")
    kinds = [("interval", 0), ("l1", 0), ("ellipsoid", 0), ("ellipsoid", 1)]
    names = ["intervals", "L1", "ellipsoid", "ellipsoid as published"]
    parts = []
    for relaxation in relaxations_for("ellipsoid"):
        lines = []
        for instance in _distinct(rows, "instance"):
            ours = [_short(_middle(groups[(*kind, instance, relaxation)], "gap")) for kind in kinds]
            lines.append([instance, *ours, _published(ELLIPSOIDS, instance, relaxation, "gap")])
        header = ["instance", *names, "published figure"]
        parts += [f"## Relative gap, {SYMBOLS[relaxation]}", markdown_table(header, lines)]
    seconds = [
        [instance, *(_seconds(_total(groups[(*kind, instance, "expression")])) for kind in kinds)]
        for instance in _distinct(rows, "instance")
    ]
    return [
        "The first three kinds of sets are valid for runs. The ellipsoid as published counts every outcome as a trial "
        "of its own, so it misses more often than it says (see the page on confidence). The last column is what was "
        "published for it; the published formula, as we read it, gives smaller gaps.",
        *parts,
        "## Seconds, P_Λ",
        markdown_table(["instance", *names], seconds),
        _held(rows, "instance", "sets", "relaxation"),
    ]


def _online(rows: Sequence[Row]) -> list[str]:
    """Where learning ends, and how many episodes the same bound takes."""
    runs = _by(rows, "instance", "relaxation", "seed")
    header = ["instance", "best value", "relaxation", "certified bound", "true value of its policy", "no policy beats"]
    header += ["seconds", "updates", "episodes for the last bound of P_I"]
    lines = []
    for instance in _distinct(rows, "instance"):
        seeds = sorted({key[2] for key in runs if key[0] == instance})
        for relaxation in RELAXATIONS:
            group = [runs[instance, relaxation, seed] for seed in seeds]
            last = [max(run, key=lambda row: row["episodes"]) for run in group]
            target = [max(runs[instance, "interval", seed], key=lambda row: row["episodes"]) for seed in seeds]
            reached = median(_episodes_until(run, goal) for run, goal in zip(group, target, strict=True))
            figures = (_short(_middle(last, name)) for name in ("bound", "true_value", "hope"))
            seconds = _seconds(_middle(last, "seconds"))
            updates = f"{median(map(len, group)):.0f}"
            best = f"{_middle(last, 'value'):.5g}"
            lines.append([instance, best, SYMBOLS[relaxation], *figures, seconds, updates, _episodes(reached)])
    n_seeds = len(_distinct(rows, "seed"))
    violations = sum(_sign(row) * row["bound"] > _sign(row) * row["true_value"] + _precision(row) for row in rows)
    return [
        f"Medians over {n_seeds} seeds after {_distinct(rows, 'runs')[-1]:,} episodes, confidence 99.9 %.",
        markdown_table(header, lines),
        f"Bounds that the true value of their policy does not keep: {violations} of {len(rows)} updates.",
    ]


def _episodes_until(run: Sequence[Row], goal: Row) -> float:
    """Return after how many episodes a run has certified what another one has at its end."""
    good = [row["episodes"] for row in run if _sign(row) * row["bound"] >= _sign(goal) * goal["bound"]]
    return float(min(good, default=np.inf)) if np.isfinite(goal["bound"]) else np.nan


def _precision(row: Row) -> float:
    """Return how well a true value is known."""
    return 1e-6 * max(1.0, abs(float(row["true_value"])))


def _sign(row: Row) -> int:
    return 1 if row["direction"] == "max" else -1


def _scaling(rows: Sequence[Row]) -> list[str]:
    """What each stage costs as models grow."""
    groups = _by(rows, "instance", "relaxation")
    header = ["instance", "states", "transitions", "expressions", "model", "runs", "intervals", "region"]
    header += [f"{SYMBOLS[r]} and solver" for r in RELAXATIONS] + ["peak memory, GB"]
    lines = []
    for instance in sorted(_distinct(rows, "instance"), key=lambda i: groups[i, "interval"][0]["transitions"]):
        first = groups[instance, "interval"]
        sizes = [f"{first[0][name]:,}" for name in ("states", "transitions", "expressions")]
        stages = [_seconds(_middle(first, f"{s}_seconds")) for s in ("model", "runs", "intervals", "region")]
        each = [
            _seconds(sum(_middle(groups[instance, r], f"{s}_seconds") for s in ("relaxation", "solver")))
            for r in RELAXATIONS
        ]
        lines.append([instance, *sizes, *stages, *each, f"{_middle(first, 'memory') / 1e9:.2f}"])
    return [f"Seconds of each stage, {_distinct(rows, 'runs')[-1]:,} runs.", markdown_table(header, lines)]


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown writes it.

    >>> print(markdown_table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    body = [header, ["---"] * len(header), *lines]
    return (
        "\n".join("| " + " | ".join(line) + " |" for line in body).replace("| --- |", "|---|").replace(" --- |", "---|")
    )


def _by(rows: Iterable[Row], *names: str) -> dict[Key, list[Row]]:
    """Return the rows in groups."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def _distinct(rows: Iterable[Row], name: str) -> list[Any]:
    return list(dict.fromkeys(row[name] for row in rows))


def _middle(rows: Sequence[Row], name: str) -> float:
    return float(median(float(row[name]) for row in rows))


def _total(rows: Sequence[Row]) -> float:
    return _middle(rows, "build_seconds") + _middle(rows, "solve_seconds")


def _published(table: Table, instance: str, relaxation: str, what: str) -> str:
    entry = look_up(table, instance, relaxation)
    if entry is None:
        return "–"
    return "TO" if entry.is_time_out else _short(getattr(entry, what))


def _short(number: float) -> str:
    """Return three significant digits, in words that a table likes."""
    if not np.isfinite(number):
        return "∞" if number > 0 else "–"
    if abs(number) >= 1e5:
        return f"{number:.1e}"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def _episodes(number: float) -> str:
    return "–" if np.isnan(number) else "not reached" if number == np.inf else f"{number:,.0f}"


def _seconds(seconds: float) -> str:
    return "< 0.01" if seconds < 0.01 else f"{seconds:.2g}" if seconds < 10 else f"{seconds:,.0f}"


_TEXTS: Mapping[Study, Callable[[Sequence[Row]], list[str]]] = {
    "table": _table,
    "online": _online,
    "ellipsoid": _ellipsoid,
    "scaling": _scaling,
}
