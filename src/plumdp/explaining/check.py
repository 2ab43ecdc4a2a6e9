"""Tests a model alone, with a p-value, an explanation in words if it is wrong, and a table of residuals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any, ClassVar

import numpy as np

from plumdp.base.errors import DataError
from plumdp.base.progress import working
from plumdp.base.vocabulary import Assumption, ToTry
from plumdp.confidence.contrasts import Contrast
from plumdp.data.quality import DataQuality
from plumdp.fit.diagnosis import Examination, examine, first_of_best, in_words
from plumdp.fit.fit_record import ModelFit
from plumdp.fit.residual_counts import CellResiduals, Residuals
from plumdp.fit.residuals import ClassOutcomes, cell_residuals, class_residuals, row_residuals
from plumdp.learning.assumptions import about_memory
from plumdp.learning.learned import Learned, of_learned
from plumdp.model.graph import Indices, read_only
from plumdp.model.text import listing, number_of, one_line
from plumdp.result.printing import outward, passed, percent
from plumdp.result.show import Page, as_html, as_json, as_text

_MOST_RECORDS = 20  # of classes and of single rows that a table shows


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
    order = np.argsort(-residuals.evidence, kind="stable")[:_MOST_RECORDS]
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


_MOST_ROWS = 20  # of a table in a notebook
_STANDS_OUT = 10.0  # nats of evidence for an explanation that is worth a look though the model is not contradicted
_FAINT = 2.0  # nats: residuals with less are not shown
_SHOWN = 5  # residuals of the table in the text


@dataclass(frozen=True, eq=False)
class ModelCheck:
    """The result of a test of a model, with a p-value that is valid at any time, a diagnosis, and residuals.

    ``p_value`` is None if the log shows transitions that the graph says cannot happen, which needs no test.
    ``diagnosis`` is empty unless the model is contradicted. Its first sentence is the finding, the others what to try.
    ``suspicion`` is an explanation that stands out if the model is not contradicted. Mostly it is empty. ``residuals``
    are at the most likely parameters, in the order of their evidence less the logarithm of how many there are of their
    kind. They say where to look, but they are not tests. ``memory`` says whether the test looked at what came before in
    runs, or why not.
    """

    picture: ClassVar = "residuals"

    p_value: float | None
    confidence: float
    diagnosis: tuple[str, ...]
    suspicion: str
    residuals: tuple[Mapping[str, Any], ...]
    cells: tuple[CellResiduals, ...]  # the residuals of variables and actions, for pictures
    estimate: Mapping[str, float]  # most likely values in the region, or anywhere if the model is contradicted
    is_inside: bool  # whether the estimate is in the parameter space
    data_quality: DataQuality
    memory: str = ""
    assumptions: tuple[str, ...] = ()
    visible_error: float | None = None  # of a row, below which the test hardly shows it, about: an estimate
    unknown: str = "parameters"  # what the model leaves open: its parameters, or its rows

    @property
    def is_contradicted(self) -> bool:
        """Whether the data reject the model at this confidence."""
        return self.p_value is None or self.p_value <= 1 - self.confidence

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        if self.p_value is None:
            n_rows = self.data_quality.contradicting
            rows = "1 row of the data shows" if n_rows == 1 else f"{n_rows:,} rows of the data show"
            return f"Model rejected: {rows} what the model says cannot happen."
        p_value = f"p = {outward(self.p_value, 1, 2).lower()}"
        share = percent(self.confidence)
        if self.is_contradicted:
            return f"Model rejected with confidence {share} ({p_value}): no {self.unknown} explain the data."
        return f"Model test {passed(self.p_value, self.visible_error)}; confidence {share}."

    def facts(self) -> list[tuple[str, str]]:
        """Return the findings as pairs of a label and a sentence."""
        facts, label = [], "because"
        for sentence in self.diagnosis:
            facts.append(("try", sentence.action) if isinstance(sentence, ToTry) else (label, sentence))
            label = "or" if isinstance(sentence, ToTry) else label
        if self.suspicion:
            facts.append(("look at", f"{self.suspicion} (not enough to reject the model)"))
        if self.estimate:
            point = listing([f"{name} {value:.3g}" for name, value in self.estimate.items()])
            outside = "" if self.is_inside else "; this is outside of its parameter space"
            facts.append(("estimate", f"{point} (most likely, if the model is right{outside})"))
        if self.memory:
            facts.append(("memory", self.memory))
        facts.append(("data", str(self.data_quality)))
        facts += [("assuming", Assumption.of(each)) for each in self.assumptions]
        shown = self.residuals[:_SHOWN] if self.is_contradicted else ()
        facts += [("residual", describe_residual(record)) for record in shown if record["evidence"] > _FAINT]
        return facts

    def __repr__(self) -> str:
        result = "rejected" if self.is_contradicted else "not rejected"
        p_value = "" if self.p_value is None else f"p = {self.p_value:.3g}"
        return one_line(self, result, p_value, f"confidence {self.confidence:.10g}", *self.diagnosis[:1])

    def page(self) -> Page:
        """Return the result, what may be wrong, what it rests on, and the most telling residuals."""
        rows = [[*map(str, record.values())] for record in self.residuals[:_MOST_ROWS]]
        more = f"{len(rows)} of {number_of(len(self.residuals), 'residual')}, the most telling first"
        table = [Page(more, header=list(self.residuals[0]), rows=rows)] if rows else []
        return Page(self.headline, facts=self.facts(), folded=table)

    SCHEMA: ClassVar[str] = "plumdp/check/1"
    TOLD: ClassVar[str] = (
        "rejected=is_contradicted p_value visible_error confidence diagnosis suspicion estimate residuals "
        "memory assumptions data_quality"
    )
    __str__ = as_text
    _repr_html_ = as_html
    to_dict = as_json

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)


@of_learned
@working("testing the model")
def check_model(learned: Learned) -> ModelCheck:
    """Return whether the data reject the model, with a p-value and a diagnosis.

    The p-value is valid whenever the data stopped, and whatever chose the actions. The test looks for drifts of the
    parameters with state variables and between actions if the data have a pilot, and for memory if the order within
    runs is known. It is sharp where the values of the pre-specified objectives depend on the parameters.

    Parameters
    ----------
    learned
        What ``learn`` returned.

    Returns
    -------
    ModelCheck
        The verdict, the p-value and the diagnosis.

    Examples
    --------
    >>> from plumdp import case_study, learn, simulate
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> print(check_model(learn(study.model, counts)).headline)  # doctest: +ELLIPSIS
    Model test passed (p = 1); misses errors below about 0.0... in the most visited distribution; confidence 99.9 %.
    """
    if learned.fit is None:
        raise DataError("the model was not tested: learning while acting tests only the numbers that it fixes")
    if learned.model.is_table:
        return _check_of_table(learned, learned.fit)
    conflict, examination = learned.conflict, examine(learned.model.counted, learned.counts, learned.best_point)
    rows, findings = examination.rows, () if conflict is None else conflict.findings
    point = learned.shown_estimate if conflict is None else learned.best_point
    quality = DataQuality(rows.counts.total, rows.counts.report)
    if quality.contradicting:
        findings = (quality.contradiction, ToTry.of("add these transitions to the model, or correct these rows"))
    cells = tuple(residuals_by_cell(examination)) if len(rows.choice) else ()
    return ModelCheck(
        p_value=None if quality.contradicting else learned.fit.p_value,
        confidence=1 - learned.error,
        diagnosis=findings,
        suspicion="" if findings else _suspicion(examination),
        residuals=tuple(residual_records(examination, cells)),
        cells=cells,
        estimate={} if point is None else dict(zip(rows.model.space.names, point.tolist(), strict=True)),
        is_inside=conflict is None or examination.is_inside,
        data_quality=quality,
        memory=about_memory(learned.counts),
        assumptions=learned.assumptions_of_test,
        visible_error=learned.visible_error,
    )


def _check_of_table(learned: Learned, fit: ModelFit) -> ModelCheck:
    """Return the check of a table, which has no expressions that counts could be compared with."""
    quality = DataQuality(learned.counts.total, learned.counts.report)
    findings = () if learned.conflict is None else (*learned.conflict.numbers, *learned.conflict.findings)
    return ModelCheck(
        p_value=None if quality.contradicting else fit.p_value,
        confidence=1 - learned.error,
        diagnosis=(quality.contradiction,) if quality.contradicting else findings,
        suspicion="",
        residuals=(),
        cells=(),
        estimate={},
        is_inside=True,
        data_quality=quality,
        memory=about_memory(learned.counts),
        assumptions=learned.assumptions_of_test,
        unknown="rows",
    )


def _suspicion(examination: Examination) -> str:
    """Return the best explanation in words if it has so much evidence that it is hardly chance, or an empty text."""
    explanations = examination.explanations
    return in_words(examination)[0] if explanations and explanations[0].evidence > _STANDS_OUT else ""
