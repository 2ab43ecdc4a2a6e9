"""Tests a model alone, with a p-value, an explanation in words if it is wrong, and a table of residuals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from plumdp.base.errors import DataError
from plumdp.base.progress import working
from plumdp.data.whole_runs import WholeRuns
from plumdp.explaining.residual_table import CellResiduals, describe_residual, residual_records, residuals_by_cell
from plumdp.fit.diagnosis import ADVICE, Examination, examine, in_words
from plumdp.fit.model_fit import ModelFit
from plumdp.fit.proposed import ProposalTest, memory_test, tie_tests
from plumdp.learning.learned import Learned, of_learned
from plumdp.model.text import listing, number_of, one_line
from plumdp.result.certificate import outward, percent
from plumdp.result.data_quality import DataQuality
from plumdp.result.printing import hidden, weak_evidence
from plumdp.result.show import Page, as_html, as_json, as_text

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
    kind. They say where to look, but they are not tests. ``proposals`` are the tests of ties that were proposed, each
    with a p-value of its own, and that of memory, which is part of the model's.
    """

    p_value: float | None
    confidence: float
    diagnosis: tuple[str, ...]
    suspicion: str
    residuals: tuple[Mapping[str, Any], ...]
    cells: tuple[CellResiduals, ...]  # the residuals of variables and actions, for pictures
    estimate: Mapping[str, float]  # most likely values in the region, or anywhere if the model is contradicted
    is_inside: bool  # whether the estimate is in the parameter space
    data_quality: DataQuality
    proposals: tuple[ProposalTest, ...] = ()
    assumptions: tuple[str, ...] = ()
    visible_error: float | None = None  # of a row, below which the test hardly shows it, about: an estimate
    unknown: str = "parameters"  # what the model leaves open: its parameters, or its rows

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
            return f"MODEL CONTRADICTED with confidence {share} ({p_value}): no {self.unknown} explain the data."
        weak = f"{hidden(self.visible_error)} ({weak_evidence(self.p_value)})"
        return f"The data do not contradict the model at confidence {share}{weak}."

    def facts(self) -> list[tuple[str, str]]:
        """Return the findings as pairs of a label and a sentence."""
        facts, label = [], "because"
        for sentence in self.diagnosis:
            is_advice = sentence.startswith(ADVICE)
            facts.append(("try" if is_advice else label, sentence.removeprefix(ADVICE)))
            label = "or" if is_advice else label
        if self.suspicion:
            facts.append(("look at", f"{self.suspicion} (not enough to contradict the model)"))
        if self.estimate:
            point = listing([f"{name} = {value:.6g}" for name, value in self.estimate.items()])
            outside = "" if self.is_inside else "; this is outside of its parameter space"
            facts.append(("estimate", f"{point} (most likely, if the model is right{outside})"))
        facts += [("proposal", test.sentence(self.confidence)) for test in self.proposals]
        facts.append(("data", str(self.data_quality)))
        facts += [("assuming", each) for each in self.assumptions]
        shown = self.residuals[:_SHOWN] if self.is_contradicted else ()
        facts += [("residual", describe_residual(record)) for record in shown if record["evidence"] > _FAINT]
        return facts

    def __repr__(self) -> str:
        result = "contradicted" if self.is_contradicted else "not contradicted"
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
        "contradicted=is_contradicted p_value visible_error confidence diagnosis suspicion estimate residuals "
        "proposals assumptions data_quality"
    )
    __str__ = as_text
    _repr_html_ = as_html
    to_dict = as_json

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)


@of_learned
@working("testing the model")
def check_model(learned: Learned, *, ties: Sequence[str] = (), runs: WholeRuns | None = None) -> ModelCheck:
    """Return whether the data contradict the model, with a p-value and a diagnosis.

    The p-value is valid whenever the data stopped, and whatever chose the actions. The test looks for drifts of the
    parameters with state variables, and between actions, if the data have a pilot. It is sharp where the values of the
    objectives that were announced to ``learn`` depend on the parameters.

    Parameters
    ----------
    ties
        Ties to test that the model does not have: a state variable, such as "x", that rows might not depend on, or two
        actions, such as "walk = run", whose rows might be the same. They are no part of the test of the model, and
        divide an error of their own.
    runs
        The runs of these data (``plumdp.data.read_whole_runs``), to test whether the next state depends on the step
        before as well. This test then has half of the error.

    Examples
    --------
    >>> from plumdp import case_study, learn, simulate
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> print(check_model(learn(study.model, counts)).headline)  # doctest: +ELLIPSIS
    The data do not contradict the model at confidence 99.9 %, though an error of less than about ...
    """
    proposed = tie_tests(learned.model.counted.graph, learned.counts, ties)
    check = replace(_checked(learned), proposals=proposed)
    return check if runs is None else _with_memory(check, memory_test(learned.model, runs))


def _with_memory(check: ModelCheck, memory: ProposalTest) -> ModelCheck:
    """Return the check with the test of memory, each of both at half of the error."""
    memory = replace(memory, p_value=min(1.0, 2 * memory.p_value))
    check = replace(check, proposals=(*check.proposals, memory))
    if check.p_value is None:
        return check
    both = replace(check, p_value=min(2 * check.p_value, memory.p_value))
    if memory.p_value > 1 - check.confidence:
        return both
    advice = f"{ADVICE}add what matters of the step before to the state"
    return replace(both, diagnosis=(*check.diagnosis, memory.sentence(check.confidence), advice), suspicion="")


def _checked(learned: Learned) -> ModelCheck:
    """Return the result of the model test in ``learn``."""
    if learned.fit is None:
        raise DataError("the model was not tested: learning while acting tests only the numbers that it fixes")
    if learned.model.is_table:
        return _check_of_table(learned, learned.fit)
    conflict, examination = learned.conflict, examine(learned.model.counted, learned.counts, learned.best_point)
    rows, findings = examination.rows, () if conflict is None else conflict.findings
    point = learned.shown_estimate if conflict is None else learned.best_point
    quality = DataQuality(rows.counts.total, rows.counts.report)
    if quality.contradicting:
        findings = (quality.contradiction, f"{ADVICE}add these transitions to the model, or correct these rows")
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
        assumptions=learned.assumptions_of_test,
        unknown="rows",
    )


def _suspicion(examination: Examination) -> str:
    """Return the best explanation in words if it has so much evidence that it is hardly chance, or an empty text."""
    explanations = examination.explanations
    return in_words(examination)[0] if explanations and explanations[0].evidence > _STANDS_OUT else ""
