"""The sections of a report in words and tables; pictures come from ``pictures.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plumdp.checking.diagnosis import ADVICE
from plumdp.data.report import CONTRADICTING, KINDS, IngestionReport, Kind
from plumdp.model.text import number_of
from plumdp.reporting import pictures
from plumdp.reporting.limits import limits
from plumdp.reporting.parts import Section, TableOf
from plumdp.result.certificate import Certificate, Status, outward
from plumdp.result.findings import Findings, Rung

_MOST_ROWS = 5_000  # of the policy in a page
_MOST_PARAMETERS = 200
_LONG = 20  # rows of a table that can be searched
_MOST_RESIDUALS = 10
_FAINT = 2.0  # nats: residuals with less are not shown
_NATURES = {
    "interval": "each transition has any probability in its own interval",
    "parameter": "each transition has its own parameters, from the box around the region",
    "expression": "each transition has its own parameters, from the region",
    "rectangular": "each state and action has its own parameters, from the region",
    "coupled": "all states have the same parameters, from the region",
}
_KINDS: dict[Kind, str] = {
    "matched": "a transition of the model: used",
    "last row": "the end of a run, which shows no step",
    "unknown state": "the log shows a state that the model does not have",
    "unknown next state": "the step leads to a state that the model does not have",
    "unknown action": "the model has no such action in this state",
    "impossible transition": "the model says that this step cannot happen",
    "unreadable state": "a value is missing, or is not one of its variable",
    "gap in steps": "a step of the run is missing before or after",
    "repeated step": "a step of the run occurs twice",
    "no episode or step": "the row does not say to which run or step it belongs",
}


def assumptions(certificate: Certificate, findings: Findings) -> Section:
    """Return what the claim rests on."""
    intro = ["The claim holds if all of this is true:"] if certificate.assumptions else []
    if certificate.status == Status.NO_GUARANTEE:
        intro = ["The estimate presumes all of this. Even if it is true, nothing proves how sure the numbers are:"]
    if not certificate.assumptions:
        intro = ["Nothing is claimed, so there is nothing that a claim could rest on."]
    facts = dict(certificate.facts())
    if not certificate.claims_bounds:
        return Section("assumptions", "What the claim rests on", intro)
    how = [f"Method: {facts['confidence set']}.", f"Relaxation: {facts['relaxation']}."]
    if "jointly" in facts:
        how.append(f"This certificate {facts['jointly']}.")
    return Section("assumptions", "What the claim rests on", intro, certificate.assumptions, notes=how)


def reasons(certificate: Certificate, findings: Findings) -> Section | None:
    """Return why nothing, or not what was hoped for, is certified."""
    texts = [text for text in certificate.reason.split("; ") if text]
    quality = certificate.data_quality
    if quality is not None and quality.report is not None and quality.contradicting:
        texts = [*quality.report.reasons(CONTRADICTING), f"{ADVICE}add these steps to the model, or correct the rows"]
    if not texts:
        return None
    tried = [text.removeprefix(ADVICE) for text in texts if text.startswith(ADVICE)]
    why = [sentence(text) for text in texts if not text.startswith(ADVICE)]
    notes = [f"What to try: {text}." for text in tried]
    title = "Why the model is contradicted" if certificate.status == Status.CONTRADICTED else "Why"
    return Section("why", title, points=why, notes=notes)


def sentence(text: str) -> str:
    """Return a text that begins as a sentence does, and ends as one.

    >>> sentence("no parameters fit"), sentence("Why?")
    ('No parameters fit.', 'Why?')
    """
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', '!')) else '.'}"


def ladder(certificate: Certificate, findings: Findings) -> Section | None:
    """Return what each relaxation certifies."""
    rungs = findings.ladder
    if not rungs:
        return None
    header: tuple[str, ...] = ("relaxation", "lower", "upper", "width", "which parameters the bounds allow for")
    rows: list[tuple[str, ...]] = [(rung.relaxation, *_bounds(rung), _width(rung), _meaning(rung)) for rung in rungs]
    if any(rung.status != Status.CERTIFIED for rung in rungs):
        header, rows = (*header, "status"), [(*row, rung.status) for row, rung in zip(rows, rungs, strict=True)]
    table = TableOf("ladder-table", "Bounds of each relaxation", header, rows, header[1:4])
    safe = "None has a proof" if certificate.status == Status.NO_GUARANTEE else "All of them hold with this confidence"
    intro = [
        f"From the same data, from loose to tight. {safe}; the looser ones allow for cases that cannot happen. Each is "
        "about the policy that is best for it."
    ]
    return Section(
        "ladder",
        "What each relaxation gives" if certificate.status == Status.NO_GUARANTEE else "What each relaxation certifies",
        intro,
        pictures=pictures.ladder(certificate, findings),
        tables=[table],
    )


def _bounds(rung: Rung) -> tuple[str, str]:
    return outward(rung.lower, -1), outward(rung.upper, 1)


def _width(rung: Rung) -> str:
    return outward(rung.upper - rung.lower, 1, 3).lower()


def _meaning(rung: Rung) -> str:
    return _NATURES.get(rung.relaxation, "")


def what_limits(certificate: Certificate, findings: Findings) -> Section | None:
    """Return what limits the result and where to sample next."""
    advice = findings.advice
    points = limits(certificate, findings)
    if not points and not advice.get("sentences"):
        return None
    tables, notes = [], []
    if advice.get("choices"):
        tables.append(_choices(advice["choices"]))
    elif advice.get("none"):
        why = advice["none"].replace("say with max_steps how long a run may be", "plumdp advise --max-steps says more")
        notes.append(f"There is no advice on where to sample next: {why}.")
    drawn = pictures.advice(findings)
    if advice.get("sentences"):
        points.append("What more data would do, as estimates:")
    said = [text for text in advice.get("sentences", ()) if not text.startswith("The bounds on the policy's value are")]
    return Section("limits", "What limits the result, and where to sample next", points, said, drawn, tables, notes)


def _choices(choices: list[Mapping[str, Any]]) -> TableOf:
    header = ("state", "action", "visits so far", "visits per advised run", "width falls per visit")
    rows = [
        (
            ", ".join(f"{name}={value}" for name, value in choice["state"].items()),
            choice["action"],
            f"{choice['visits']:,}",
            f"{choice['visits_per_run']:.3g}",
            f"{100 * choice['rate']:.2g} %",
        )
        for choice in choices
    ]
    note = "Where one more run helps most, if it is sampled as advised:"
    return TableOf("advice-table", "Choices at which more data help most", header, rows, header[2:], note)


def parameters(certificate: Certificate, findings: Findings) -> Section | None:
    """Return what is known of the parameters."""
    if not certificate.parameters:
        return None
    shown = list(certificate.parameters.items())[:_MOST_PARAMETERS]
    rows = []
    for name, (low, high) in shown:
        guess = certificate.estimate.get(name)
        rows.append((name, outward(low, -1), outward(high, 1), "" if guess is None else f"{guess:.6g}"))
    header = ("parameter", "lower", "upper", "estimate")
    left_out = len(certificate.parameters) - len(shown)
    note = f"{left_out:,} more parameters are in certificate.json." if left_out else ""
    table = TableOf("parameter-table", "Bounds of the parameters", header, rows, header[1:], note)
    intro = [
        *_unproved(certificate),
        "All parameters that explain the data form a region; these are the ends of the box around it. The estimate is "
        "where the data are most likely: not a bound.",
    ]
    return Section(
        "region", "What is known of the parameters", intro, pictures=pictures.region(findings), tables=[table]
    )


def _unproved(certificate: Certificate) -> list[str]:
    return ["Nothing proves these numbers."] if certificate.status == Status.NO_GUARANTEE else []


def expressions(certificate: Certificate, findings: Findings) -> Section | None:
    """Return what is known of the unknown probabilities."""
    rows = findings.expressions
    if not rows:
        return None
    header = ("probability", "lower", "upper", "estimate", "share seen", "trials")
    cells = [
        (
            row.text,
            outward(row.lower, -1),
            outward(row.upper, 1),
            "" if row.estimate is None else f"{row.estimate:.4g}",
            f"{row.successes / row.trials:.4g}" if row.trials else "never tried",
            f"{row.trials:,}",
        )
        for row in rows
    ]
    left_out = findings.n_expressions - len(rows)
    note = f"Those that matter most; {left_out:,} more are left out." if left_out > 0 else ""
    table = TableOf(
        "expression-table", "Unknown probabilities", header, cells, header[1:], note, is_searchable=len(cells) > _LONG
    )
    intro = _unproved(certificate) or [
        "The unknown probabilities of the model. All bounds hold at once, with the confidence of the claim."
    ]
    return Section(
        "expressions", "What is known of the probabilities", intro, pictures=pictures.forest(findings), tables=[table]
    )


def data(certificate: Certificate, findings: Findings) -> Section | None:
    """Return what became of the rows of the data."""
    quality = certificate.data_quality
    if quality is None:
        return None
    steps = number_of(quality.steps, "step")
    intro = [f"The claim rests on {steps}." if certificate.claims_bounds else f"The data have {steps} of the model."]
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
    return Section(
        "data", "The data", intro, tables=[TableOf("data-table", "Rows of the log", header, rows, ("number",))]
    )


def _summary(report: IngestionReport) -> str:
    if not report.rejected:
        return f"The log has {number_of(report.total, 'row')}; none was rejected."
    share = 100 * report.rejected / report.total
    return f"The log has {number_of(report.total, 'row')}; {report.rejected:,} of them were rejected ({share:.2g} %)."


def test(certificate: Certificate, findings: Findings) -> Section | None:
    """Return whether the data contradict the model, and where they differ."""
    verdict = dict(certificate.facts()).get("model test")
    found = findings.residuals
    if verdict is None and not found:
        return None
    intro = [sentence(verdict)] if verdict else []
    if not certificate.claims_bounds:
        intro = ["No: the data show what the model says cannot happen, which no probabilities explain."]
    if verdict and certificate.p_value is not None:
        intro.append(
            "The p-value is valid whenever the data stopped: a right model has one below 0.001 at most once in 1,000."
        )
    points = [] if certificate.reason else list(found.get("diagnosis", ()))  # which are said above
    if found.get("suspicion"):
        points.append(f"Worth a look, though not enough to contradict the model: {found['suspicion']}")
    records = [record for record in found.get("residuals", ())[:_MOST_RESIDUALS] if record["evidence"] > _FAINT]
    tables = [_residuals(records)] if records and (found.get("contradicted") or found.get("suspicion")) else []
    points = [sentence(text) for text in points]
    return Section("test", "Is the model right?", intro, points, pictures.residuals(findings), tables)


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


def policy(certificate: Certificate, findings: Findings) -> Section:
    """Return the policy as a map and as a table that can be searched."""
    columns = certificate.policy.columns()
    *variables, action = columns
    n_states = len(certificate.policy)
    rows = list(zip(*(values[:_MOST_ROWS].tolist() for values in columns.values()), strict=True))
    numeric = [name for name in variables if columns[name].dtype.kind == "i"]
    note = f"{number_of(n_states, 'state')}" if n_states <= _MOST_ROWS else f"the first {_MOST_ROWS:,} of {n_states:,}"
    table = TableOf("policy-table", "Policy", (*variables, action), rows, numeric, note, is_searchable=True)
    intro = [
        "What to do in each state. Search for values, such as "
        + ", ".join(f"{name}={values[0]}" for name, values in list(columns.items())[:1])
        + ", or for actions; a click on a heading sorts."
    ]
    notes = [f"Only the first {_MOST_ROWS:,} of {n_states:,} states are in this file; policy.csv has all."]
    return Section(
        "policy",
        "The policy",
        intro,
        pictures=pictures.policy_map(certificate, findings),
        tables=[table],
        notes=notes
        if n_states > _MOST_ROWS
        else ["On paper, only the first 40 rows are shown."]
        if n_states > 40
        else [],
    )


def model(certificate: Certificate, findings: Findings) -> Section | None:
    """Return a small model as a graph."""
    drawn = pictures.model(findings)
    return (
        Section("model", "The model", ["States, transitions and what the policy does."], pictures=drawn)
        if drawn
        else None
    )


def provenance(certificate: Certificate, findings: Findings) -> Section:
    """Return where everything comes from."""
    known = {  # command and files come before these
        "steps": "steps counted",
        "counts": "hash of the counts",
        "model": "hash of the model's graph",
        "expressions": "hash of model, expressions and space",
        "date": "certified at",
        "plumdp": "version of plumdp",
        "python": "version of Python",
        "numpy": "version of NumPy",
    }
    last = list(known)
    entries = sorted(_flat(certificate.provenance), key=lambda entry: last.index(entry[0]) if entry[0] in last else -1)
    rows = [(known.get(name, name), text) for name, text in entries]
    seconds = ", ".join(f"{stage} {time:.2f} s" for stage, time in certificate.seconds.items())
    rows.append(("time", seconds))
    table = TableOf("provenance-table", "Provenance", ("what", "value"), rows)
    return Section("provenance", "Where this comes from", tables=[table])


def _flat(content: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Return the entries of nested mappings and lists as names and texts."""
    found: list[tuple[str, str]] = []
    for name, value in content.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{before}{name}: ")
        elif isinstance(value, list | tuple):
            for number, each in enumerate(value, 1):
                found += _flat({f"{name} {number}": each}, before)
        else:
            found.append((f"{before}{name}", f"{value}"))
    return found


SECTIONS = (
    reasons, assumptions, ladder, what_limits, parameters, expressions, data, test, policy, model, provenance,
)  # fmt: skip
