"""Makes the table of residuals of a model by state variables, actions, expressions and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np

from plumdp.confidence.contrasts import Contrast
from plumdp.fit.diagnosis import Examination, first_of_best
from plumdp.fit.residuals import ClassOutcomes, Residuals, cell_residuals, class_residuals, row_residuals
from plumdp.model.graph import Indices, read_only
from plumdp.model.text import number_of

_MOST_ROWS = 20  # of classes and of single rows that a table shows


@dataclass(frozen=True, eq=False)
class CellResiduals:
    """Counts of a change in each cell of a state variable or action, beside expected counts."""

    kind: str  # "variable" or "action"
    name: str
    change: str  # such as "money goes up"
    cells: tuple[str, ...]  # (n)
    residuals: Residuals  # (n)


def residuals_by_cell(examination: Examination) -> list[CellResiduals]:
    """Return residuals over each variable, and over the actions, of the change that differs most."""
    rows = examination.rows
    parts: list[tuple[str, str, tuple[str, ...], Indices]] = []
    joined: dict[tuple[str, str], list[Contrast]] = {}
    for contrast in examination.contrasts:
        if contrast.name in rows.model.graph.states and contrast.kind == "variable":
            parts.append((contrast.kind, contrast.name, contrast.cells, contrast.at(rows.choice)))
        else:  # each action, and each value of a text variable, has a contrast of its own
            name = "action" if contrast.kind == "action" else contrast.name.partition(" = ")[0]
            joined.setdefault((contrast.kind, name), []).append(contrast)
    for (kind, name), contrasts in joined.items():
        in_cells = [np.where(contrast.at(rows.choice) == 1, i, -1) for i, contrast in enumerate(contrasts)]
        parts.append((kind, name, tuple(contrast.cells[1] for contrast in contrasts), np.max(in_cells, axis=0)))
    by_cell = []
    for kind, name, cells, cell in parts:
        every = [(change, cell_residuals(rows, change, cell, len(cells))) for change in examination.visible]
        changed = [pair for pair in every if (pair[1].observations > 0).sum() > 1]  # one cell says nothing of others
        best = first_of_best(changed, [float(residuals.evidence.sum()) for _, residuals in changed])
        if best is not None:
            by_cell.append(CellResiduals(kind, name, best[0].text, cells, best[1]))
    return by_cell


def residual_records(examination: Examination, cells: Sequence[CellResiduals]) -> list[dict[str, Any]]:
    """Return the residuals of all cells, and the most evident of classes and rows, as records in order of evidence."""
    if not len(examination.rows.choice):
        return []
    of_cells = [
        _record(of.kind, text, of.change, of.residuals, i)
        for of in cells
        for i, text in enumerate(of.cells)
        if of.residuals.observations[i]
    ]
    outcomes, rows = class_residuals(examination.rows), examination.rows
    kinds = (
        (of_cells, len(of_cells)),
        (_class_records(examination, outcomes), len(outcomes.n_rows)),
        (_row_records(examination), len(rows.choice)),
    )
    ranked = [(record["evidence"] - log(n), record) for records, n in kinds for record in records]
    return [record for _, record in sorted(ranked, key=lambda pair: -pair[0])]


def _class_records(examination: Examination, outcomes: ClassOutcomes) -> list[dict[str, Any]]:
    model, records = examination.rows.model, []
    size = np.bincount(outcomes.row_class)[outcomes.row_class]
    is_second = (size == 2) & (np.diff(outcomes.row_class, prepend=-1) == 0)  # it mirrors the first
    for i in _largest(_of_several(outcomes)):
        if is_second[i]:
            continue
        rows = number_of(int(outcomes.n_rows[i]), "row")
        where = f"{rows} such as {model.graph.describe_choice(int(outcomes.example[i]))}"
        expression = str(model.expressions.polynomials[outcomes.expression[i]])
        records.append(_record("expression", where, f"an outcome of probability {expression}", outcomes.residuals, i))
    return records


def _of_several(outcomes: ClassOutcomes) -> Residuals:
    """Return the residuals of classes, without the deviations of those that are a single row."""
    residuals = outcomes.residuals
    return replace(residuals, deviation=read_only(np.where(outcomes.n_rows > 1, residuals.deviation, 0.0)))


def _row_records(examination: Examination) -> list[dict[str, Any]]:
    rows, graph = examination.rows, examination.rows.model.graph
    records, residuals = [], row_residuals(rows)
    size = np.bincount(rows.choice)[rows.choice]
    is_second = (size == 2) & (np.diff(rows.choice, prepend=-1) == 0)  # it mirrors the first
    for i in _largest(residuals):
        if is_second[i]:
            continue
        successor = graph.describe_state(int(graph.successor[rows.transition[i]]))
        where = graph.describe_choice(int(rows.choice[i]))
        records.append(_record("row", where, f"successor ({successor})", residuals, i))
    return records


def _largest(residuals: Residuals) -> list[int]:
    """Return the indices of the residuals with the most evidence, without those that cannot differ."""
    order = np.argsort(-residuals.evidence, kind="stable")[:_MOST_ROWS]
    return [int(i) for i in order if residuals.deviation[i] > 0]


def _record(kind: str, where: str, what: str, residuals: Residuals, i: int) -> dict[str, Any]:
    return {
        "kind": kind,
        "where": where,
        "what": what,
        "observations": int(residuals.observations[i]),
        "observed": int(residuals.observed[i]),
        "expected": round(float(residuals.expected[i]), 1),
        "difference": float(f"{residuals.difference[i]:.3g}"),
        "standardised": float(f"{residuals.standardised[i]:.3g}"),
        "evidence": float(f"{residuals.evidence[i]:.3g}"),
    }


def describe_residual(record: Mapping[str, Any]) -> str:
    """Return the residual of a record in words.

    >>> record = {"where": "money = 3", "what": "money goes up", "observations": 1000, "difference": -0.02}
    >>> describe_residual(record | {"standardised": -1.3})
    'money = 3, money goes up: 0.02 less probable than the model says (1,000 observations, 1.3 standard deviations)'
    """
    more = "more" if record["difference"] > 0 else "less"
    observations = number_of(record["observations"], "observation")
    return (
        f"{record['where']}, {record['what']}: {abs(record['difference']):.3g} {more} probable than the model says "
        f"({observations}, {abs(record['standardised']):.3g} standard deviations)"
    )
