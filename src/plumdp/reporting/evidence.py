"""Sections of a report about data, model and policy, and the order of all sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.data.censoring import WHAT_TO_DO, CensoredStep, told
from plumdp.data.report import KINDS, IngestionReport, Kind
from plumdp.model.text import number_of
from plumdp.plots.draw import cells_in
from plumdp.plots.lists import draw_residuals
from plumdp.plots.style import styled, svg_of
from plumdp.reporting.sections import (
    InlinePicture,
    Section,
    TableOf,
    better,
    expressions,
    ladder,
    methods,
    parameters,
    picture,
    reasons,
    region,
    sentence,
    what_limits,
)
from plumdp.result.certificate import Certificate
from plumdp.result.facts import verdict
from plumdp.result.findings import Findings
from plumdp.result.printing import outward

_MOST_ROWS = 5_000  # of the policy in a page
_MOST_RESIDUALS = 10
_MOST_STEPS = 24  # in which runs are censored
_PANELS = 12  # of residuals
_CELLS = 60  # values of a variable in a picture of residuals
_FAINT = 2.0  # nats: residuals with less are not shown
_BY_CHANCE = (
    "In the pictures, a grey dot is within two standard deviations of what the model says. A triangle is outside: it "
    "points up if things happened more often, and down if less often. If the model is right, about 1 in 20 is outside "
    "by chance; the test above takes all of them into account."
)
_KINDS: dict[Kind, str] = {
    "matched": "a transition of the model: used",
    "last row": "the end of a run, which shows no step",
    "censored": "the end of a run, with an action whose outcome is not shown",
    "copy": "the same run, step and values as another row: not counted again",
    "outside the table": "a state and action that do not occur in the data that made the table: not used",
    "unknown state": "the log shows a state that the model does not have",
    "unknown next state": "the step leads to a state that the model does not have",
    "unknown action": "the model has no such action in this state",
    "impossible transition": "the model says that this step cannot happen",
    "unreadable state": "a value is missing, or is not one of its variable",
    "gap in steps": "a step of the run is missing before or after",
    "repeated step": "a step of the run occurs twice",
    "no episode or step": "the row does not say to which run or step it belongs",
}


def data(certificate: Certificate, findings: Findings) -> Section | None:
    """Return the section on data: how many rows were used, and why others were not."""
    quality = certificate.rests_on.data_quality
    if quality is None:
        return None
    steps = number_of(quality.steps, "step")
    intro = [
        f"The claim rests on {steps}." if certificate.claim.claims_bounds else f"The data have {steps} of the model."
    ]
    if quality.absence:
        intro = [sentence(quality.absence)]
    report = quality.report
    if report is None:
        intro.append("They came as counts, without a record of the log they were counted from.")
        return Section("data", "The data", intro)
    intro.append(_summary(report))
    header = ("rows", "number", "meaning", "examples")
    kinds = [kind for kind in KINDS if report.rows[kind]]
    rows = [(kind, f"{report.rows[kind]:,}", _KINDS[kind], "; ".join(report.worst.get(kind, ()))) for kind in kinds]
    tables = [TableOf("data-table", "Rows of the log", header, rows, ("number",))]
    if notable := report.censored_runs.notable():
        intro.append(sentence(f"{told(notable)}; {WHAT_TO_DO}"))
        tables.append(_cut_steps(notable))
    return Section("data", "The data", intro, tables=tables)


def _cut_steps(steps: Sequence[CensoredStep]) -> TableOf:
    """Return the steps in which many runs are censored."""
    rows = [
        (f"{each.step}", f"{each.n_begun:,}", f"{each.n_cut:,}", f"{100 * each.n_cut / each.n_begun:.2g} %")
        for each in steps[:_MOST_STEPS]
    ]
    header = ("step", "runs that began it", "censored in it", "share")
    return TableOf("cut-off-table", "Steps in which runs are censored", header, rows, header)


def _summary(report: IngestionReport) -> str:
    if not report.rejected:
        return f"The log has {number_of(report.total, 'row')}; none was rejected."
    share = 100 * report.rejected / report.total
    return f"The log has {number_of(report.total, 'row')}; {report.rejected:,} of them were rejected ({share:.2g} %)."


def test(certificate: Certificate, findings: Findings) -> Section | None:
    """Return whether the data reject the model, and where they differ."""
    (tested, _), found = verdict(certificate.claim, certificate.rests_on, certificate.beside), findings.residuals
    if not tested and not found:
        return None
    intro = [sentence(tested)] if tested else []
    if certificate.beside.p_value is None and not certificate.claim.claims_bounds:
        intro = ["No: the data show what the model says cannot happen, which no probabilities explain."]
    if tested and certificate.beside.p_value is not None:
        intro.append(
            f"The p-value is {outward(certificate.beside.p_value, 1, 2)}. The test is anytime-valid: it holds however "
            "often you look, whenever the data stopped, and 1 means no evidence against the model. A right model has a "
            "p-value below 0.001 at most once in 1,000."
        )
    points = [] if certificate.claim.reason else list(found.get("diagnosis", ()))  # which are said above
    if found.get("suspicion"):
        points.append(f"Worth a look, though not enough to reject the model: {found['suspicion']}")
    records = [record for record in found.get("residuals", ())[:_MOST_RESIDUALS] if record["evidence"] > _FAINT]
    tables = [_residuals(records)] if records and (found.get("rejected") or found.get("suspicion")) else []
    points, drawn = [sentence(text) for text in points], _panels(findings)
    return Section("test", "Is the model right?", intro, points, drawn, tables, [_BY_CHANCE] if drawn else [])


def _panels(findings: Findings) -> list[InlinePicture]:
    """Return by how much the data differ from the model, over each state variable and over the actions."""
    shown = [each for each in cells_in(findings)[:_PANELS] if len(each.cells) <= _CELLS]
    with styled():
        drawn = [(draw_residuals(None, [each], ""), f"residuals over {each.name}") for each in shown]
    return [InlinePicture(svg_of(figure, label=label)) for figure, label in drawn]


def _residuals(records: list[Mapping[str, Any]]) -> TableOf:
    header = ("where", "what", "observations", "difference", "standard deviations")
    rows = [
        (
            record["where"],
            record["what"],
            f"{record['observations']:,}",
            f"{record['difference']:+.3g}",
            f"{record['standardised']:+.3g}",
        )
        for record in records
    ]
    note = "How much more or less often things happened than the model says at its most likely parameters:"
    return TableOf("residual-table", "Residuals", header, rows, header[2:], note)


def _in_words(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return truth values as the rest of the page writes them."""
    return np.where(values, "true", "false") if values.dtype.kind == "b" else values


def policy(certificate: Certificate, findings: Findings) -> Section | None:
    """Return the policy as a map and as a table that can be searched, unless there is only one."""
    if certificate.claim.is_of_chain:
        return None
    columns = {name: _in_words(values) for name, values in certificate.policy.listed().items()}
    n_rows, thing = len(next(iter(columns.values()))), "row" if certificate.policy.weights is not None else "state"
    rows = list(zip(*(values[:_MOST_ROWS].tolist() for values in columns.values()), strict=True))
    numeric = [name for name, values in columns.items() if values.dtype.kind in "if"]
    note = f"{number_of(n_rows, thing)}" if n_rows <= _MOST_ROWS else f"the first {_MOST_ROWS:,} of {n_rows:,}"
    table = TableOf("policy-table", "Policy", tuple(columns), rows, numeric, note, is_searchable=True)
    intro = [
        "What to do in each state. Search for values, such as "
        + ", ".join(f"{name}={values[0]}" for name, values in list(columns.items())[:1])
        + ", or for actions; a click on a heading sorts."
    ]
    notes = [f"Only the first {_MOST_ROWS:,} of {n_rows:,} {thing}s are in this file; policy.csv has all."]
    return Section(
        "policy",
        "The policy",
        intro,
        pictures=[picture("policy", certificate, findings)] if findings.variables else [],
        tables=[table],
        notes=notes if n_rows > _MOST_ROWS else ["On paper, only the first 40 rows are shown."] if n_rows > 40 else [],
    )


def provenance(certificate: Certificate, findings: Findings) -> Section:
    """Return the section with the hashes, versions and files that a result comes from."""
    titles = {  # command and files come before these
        "steps": "steps counted",
        "counts": "hash of the counts",
        "model": "hash of the model's graph",
        "expressions": "hash of model, expressions and space",
        "objective": "hash of the question",
        "date": "certified at",
        "plumdp": "version of plumdp",
        "python": "version of Python",
        "numpy": "version of NumPy",
    }
    last = list(titles)
    entries = sorted(
        _flat(certificate.rests_on.provenance), key=lambda entry: last.index(entry[0]) if entry[0] in last else -1
    )
    rows = [(titles.get(name, name), text) for name, text in entries]
    seconds = ", ".join(f"{stage} {time:.2f} s" for stage, time in certificate.how.seconds.items())
    rows.append(("time", seconds))
    table = TableOf("provenance-table", "Provenance", ("what", "value"), rows)
    return Section("provenance", "Provenance", tables=[table], is_folded=True)


def _flat(content: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Return the entries of nested mappings and lists as names and texts."""
    rows: list[tuple[str, str]] = []
    for name, value in content.items():
        if isinstance(value, Mapping):
            rows += _flat(value, f"{before}{name}: ")
        elif isinstance(value, list | tuple):
            for number, each in enumerate(value, 1):
                rows += _flat({f"{name} {number}": each}, before)
        else:
            rows.append((f"{before}{name}", f"{value}"))
    return rows


SECTIONS = (
    reasons, better, policy, data, test, parameters, what_limits,
    methods, ladder, region, expressions, provenance,
)  # fmt: skip
"""The sections in the order of the page, folded ones last. Each returns None if it has nothing to show."""
