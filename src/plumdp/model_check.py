"""The test of a model as a thing of its own: a p-value, what is wrong in words, and residuals as a table."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from plumdp.confidence.constants import find_fixed_numbers
from plumdp.confidence.contrasts import Contrast
from plumdp.confidence.likelihood import likelihood_set
from plumdp.confidence.residuals import ClassOutcomes, Residuals, cell_residuals, class_residuals, row_residuals
from plumdp.data.counts import TransitionCounts, require_same_graph
from plumdp.data.logs import Log
from plumdp.diagnosis import Examination, examine, first_of_best, in_words
from plumdp.errors import DataError
from plumdp.learning import error_of
from plumdp.model.graph import Indices, read_only
from plumdp.model.language.property import as_objective
from plumdp.model.objective import Objective
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.text import html_table, number_of, one_line
from plumdp.model_fit import fit_model
from plumdp.policy_search import value_directions
from plumdp.result.certificate import outward, percent
from plumdp.result.data_quality import DataQuality
from plumdp.shares import CONFIDENCE_SET
from plumdp.solver.at_points import PointSolver

_MOST_ROWS = 20  # of classes and of single rows that a table shows
_STANDS_OUT = 10.0  # nats of evidence for an explanation that is worth a look though the model is not contradicted
_FAINT = 2.0  # nats: residuals with less are not shown
_SHOWN = 5  # residuals of the table in the text


@dataclass(frozen=True, eq=False)
class CellResiduals:
    """How often a change happened in each cell of a state variable or action, and how often it was expected."""

    kind: str  # "variable" or "action"
    name: str
    change: str  # such as "money goes up"
    cells: tuple[str, ...]  # (n)
    residuals: Residuals  # (n)


@dataclass(frozen=True, eq=False)
class ModelCheck:
    """Whether data contradict a model: a p-value that is valid at any time, what is wrong, and residuals.

    ``p_value`` is None if the log shows what the graph says cannot happen: that contradicts the model without a test.
    ``diagnosis`` is empty unless the model is contradicted; its first sentence is the finding, its last what to try.
    ``suspicion`` is what stands out if the model is not contradicted, which may be worth a look; mostly it is empty.
    ``residuals`` are at the most likely parameters, the most telling first: by evidence, less the logarithm of how many
    there are of their kind. They say where to look; they are not tests.
    """

    p_value: float | None
    confidence: float
    diagnosis: tuple[str, ...]
    suspicion: str
    residuals: tuple[Mapping[str, Any], ...]
    cells: tuple[CellResiduals, ...]  # the residuals of variables and actions, for pictures
    estimate: Mapping[str, float]  # name → most likely value, if the model were right
    is_inside: bool  # whether the estimate is in the parameter space
    data_quality: DataQuality

    @property
    def is_contradicted(self) -> bool:
        """Whether the data contradict the model at this confidence."""
        return self.p_value is None or self.p_value <= 1 - self.confidence

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        if self.p_value is None:
            n_rows = self.data_quality.contradicting
            rows = "1 row of the data shows" if n_rows == 1 else f"{n_rows:,} rows of the data show"
            return f"MODEL CONTRADICTED: {rows} what the model says cannot happen."
        p_value = f"p = {outward(self.p_value, 1, 2).lower()}"
        share = percent(self.confidence)
        if self.is_contradicted:
            return f"MODEL CONTRADICTED with confidence {share} ({p_value}): no parameters explain the data."
        return f"The data do not contradict the model at confidence {share} ({p_value})."

    def facts(self) -> list[tuple[str, str]]:
        """Return what was found: labels and texts."""
        finding, advice = (self.diagnosis[:-1], self.diagnosis[-1]) if self.diagnosis else ((), "")
        facts = [("because", text) for text in finding]
        if advice:
            facts.append(("try", advice.removeprefix("what to try: ")))
        if self.suspicion:
            facts.append(("look at", f"{self.suspicion} (not enough to contradict the model)"))
        if self.estimate:
            point = ", ".join(f"{name} = {value:.6g}" for name, value in self.estimate.items())
            outside = "" if self.is_inside else "; this is outside of its parameter space"
            facts.append(("estimate", f"{point} (most likely, if the model is right{outside})"))
        facts.append(("data", str(self.data_quality)))
        shown = self.residuals[:_SHOWN] if self.is_contradicted else ()
        facts += [("residual", describe_residual(record)) for record in shown if record["evidence"] > _FAINT]
        return facts

    def __repr__(self) -> str:
        told = "contradicted" if self.is_contradicted else "not contradicted"
        p_value = "" if self.p_value is None else f"p = {self.p_value:.3g}"
        return one_line(self, told, p_value, f"confidence {self.confidence:.10g}", *self.diagnosis[:1])

    def __str__(self) -> str:
        return "\n".join([self.headline, *(f"  {label:12} {text}" for label, text in self.facts())])

    def _repr_html_(self) -> str:
        records = [list(record.values()) for record in self.residuals[:_MOST_ROWS]]
        table = html_table(records, list(self.residuals[0])) if records else ""
        return f"<p><b>{html.escape(self.headline)}</b></p>{html_table(self.facts())}{table}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "contradicted": self.is_contradicted,
            "p_value": self.p_value,
            "confidence": self.confidence,
            "diagnosis": list(self.diagnosis),
            "suspicion": self.suspicion,
            "estimate": dict(self.estimate),
            "residuals": [dict(record) for record in self.residuals],
            "data_quality": self.data_quality.to_dict(),
        }

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)


def check_model(
    model: ParametricMDP,
    data: TransitionCounts | Log,
    *,
    confidence: float = 0.999,
    objectives: Sequence[Objective | str] = (),
) -> ModelCheck:
    """Return whether the data contradict the model, with a p-value, and what is wrong if they do.

    The p-value is valid at any time: whenever the data stopped, and whatever chose the actions. Drifts of the
    parameters with state variables, and between actions, are looked for if the data have a pilot.

    Parameters
    ----------
    confidence
        How sure it must be that the model is wrong, to say so.
    objectives
        What the model is for. Tests are then sharp where the values of these depend on the parameters.

    Examples
    --------
    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> print(check_model(study.model, counts).headline)
    The data do not contradict the model at confidence 99.9 % (p = 1).
    """
    require_model("check_model", model)
    error = error_of(confidence)
    counts = data.counts if isinstance(data, Log) else data
    if not isinstance(counts, TransitionCounts):
        raise DataError(
            f"data of type {type(data).__name__}: give TransitionCounts(model.graph, counts, sampling), or the log "
            "that read_log returns"
        )
    require_same_graph(model.graph, counts.graph)
    solvers = {asked: PointSolver(model, asked) for asked in (as_objective(o, model) for o in objectives)}
    directions = value_directions(model, solvers) if solvers else None
    found = likelihood_set(model, counts, error=CONFIDENCE_SET * error, directions=directions)
    fit = fit_model(model, counts, error=error, found=found, fixed=find_fixed_numbers(model))
    point = fit.point if found.estimate is None else found.estimate
    return _checked(examine(model, counts, point), fit.p_value, confidence)


def _checked(examination: Examination, p_value: float, confidence: float) -> ModelCheck:
    rows = examination.rows
    quality = DataQuality(rows.counts.total, rows.counts.report)
    told: tuple[str, ...] = ()
    if quality.contradicting:
        told = (quality.contradiction, "what to try: add these transitions to the model, or correct these rows")
    elif p_value <= 1 - confidence:
        told = in_words(examination)
    cells = tuple(_by_cell(examination)) if len(rows.choice) else ()
    return ModelCheck(
        p_value=None if quality.contradicting else p_value,
        confidence=confidence,
        diagnosis=told,
        suspicion="" if told else _suspicion(examination),
        residuals=tuple(_records(examination, cells)),
        cells=cells,
        estimate=dict(zip(rows.model.space.names, rows.point.tolist(), strict=True)),
        is_inside=examination.is_inside,
        data_quality=quality,
    )


def _suspicion(examination: Examination) -> str:
    """Return the best explanation in words if it has so much evidence that it is hardly chance, or nothing."""
    explanations = examination.explanations
    return in_words(examination)[0] if explanations and explanations[0].evidence > _STANDS_OUT else ""


def _by_cell(examination: Examination) -> list[CellResiduals]:
    """Return for each variable, and for all actions, how often a change happened: the one that differs most."""
    rows = examination.rows
    parts: list[tuple[str, str, tuple[str, ...], Indices]] = []
    joined: dict[tuple[str, str], list[Contrast]] = {}
    for contrast in examination.contrasts:
        if contrast.name in rows.model.graph.states and contrast.kind == "variable":
            parts.append((contrast.kind, contrast.name, contrast.cells, contrast.cell[rows.choice]))
        else:  # each action, and each word that a variable may be, has a contrast of its own
            name = "action" if contrast.kind == "action" else contrast.name.partition(" = ")[0]
            joined.setdefault((contrast.kind, name), []).append(contrast)
    for (kind, name), each in joined.items():
        cell = np.max([np.where(one.cell[rows.choice] == 1, i, -1) for i, one in enumerate(each)], axis=0)
        parts.append((kind, name, tuple(one.cells[1] for one in each), cell))
    found = []
    for kind, name, cells, cell in parts:
        changed = [(change, cell_residuals(rows, change, cell, len(cells))) for change in examination.visible]
        best = first_of_best(changed, [float(residuals.evidence.sum()) for _, residuals in changed])
        if best is not None:
            found.append(CellResiduals(kind, name, best[0].text, cells, best[1]))
    return found


def _records(examination: Examination, cells: Sequence[CellResiduals]) -> list[dict[str, Any]]:
    """Return the residuals of all cells, and the most evident of classes and rows, as records; telling ones first."""
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
    found = [(record["evidence"] - log(n), record) for records, n in kinds for record in records]
    return [record for _, record in sorted(found, key=lambda pair: -pair[0])]


def _class_records(examination: Examination, outcomes: ClassOutcomes) -> list[dict[str, Any]]:
    model, found = examination.rows.model, []
    size = np.bincount(outcomes.row_class)[outcomes.row_class]
    is_second = (size == 2) & (np.diff(outcomes.row_class, prepend=-1) == 0)  # it mirrors the first
    for i in _largest(_of_several(outcomes)):
        if is_second[i]:
            continue
        text = f"{outcomes.n_rows[i]:,} rows such as {model.graph.describe_choice(int(outcomes.example[i]))}"
        expression = str(model.expressions.polynomials[outcomes.expression[i]])
        found.append(_record("expression", text, f"an outcome of probability {expression}", outcomes.residuals, i))
    return found


def _of_several(outcomes: ClassOutcomes) -> Residuals:
    """Return the residuals of classes, without the deviations of those that are a single row."""
    own, is_several = outcomes.residuals, outcomes.n_rows > 1
    return Residuals(own.observed, own.expected, own.observations, read_only(np.where(is_several, own.deviation, 0.0)))


def _row_records(examination: Examination) -> list[dict[str, Any]]:
    rows, graph = examination.rows, examination.rows.model.graph
    found, residuals = [], row_residuals(rows)
    size = np.bincount(rows.choice)[rows.choice]
    is_second = (size == 2) & (np.diff(rows.choice, prepend=-1) == 0)  # it mirrors the first
    for i in _largest(residuals):
        if is_second[i]:
            continue
        successor = graph.describe_state(int(graph.successor[rows.transition[i]]))
        found.append(
            _record("row", graph.describe_choice(int(rows.choice[i])), f"successor ({successor})", residuals, i)
        )
    return found


def _largest(residuals: Residuals) -> list[int]:
    """Return the residuals with the most evidence, without those that cannot differ."""
    order = np.argsort(-residuals.evidence, kind="stable")[:_MOST_ROWS]
    found: list[int] = order[residuals.deviation[order] > 0].tolist()
    return found


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
    seen = number_of(record["observations"], "observation")
    return (
        f"{record['where']}, {record['what']}: {abs(record['difference']):.3g} {more} probable than the model says "
        f"({seen}, {abs(record['standardised']):.3g} standard deviations)"
    )
