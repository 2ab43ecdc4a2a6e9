"""Sections of a report about the claim: what it rests on, what limits it, and what is known of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plumdp.base.json_values import python_value
from plumdp.base.vocabulary import REJECTIONS, Status, ToTry, findings_in
from plumdp.certifying.net_benefit import NetBenefit
from plumdp.data.report import CONTRADICTING
from plumdp.model.language.words import is_probability
from plumdp.plots.draw import draw
from plumdp.plots.style import svg_of
from plumdp.relaxation.relax import RELAXATIONS
from plumdp.result.advice import CHOICE_COLUMNS, choice_cells
from plumdp.result.certificate import Certificate
from plumdp.result.findings import Findings, Relaxed
from plumdp.result.printing import outward, plain_bounds, plain_number
from plumdp.result.rungs import Ground
from plumdp.watching.watch import Watch

_LABELS = {  # for those who do not see the picture
    "ladder": "bounds of each relaxation",
    "difference": "bounds of both policies and of their difference",
    "advice": "where one more run helps most",
    "region": "region of the parameters",
    "expressions": "bounds of unknown probabilities",
    "policy": "policy over the variables that it depends on most",
}


@dataclass(frozen=True)
class InlinePicture:
    """An inline SVG, whose ``svg`` is markup that we drew."""

    svg: str
    is_wide: bool = False


def picture(
    kind: str, certificate: Certificate, findings: Findings | None = None, *, is_wide: bool = False
) -> InlinePicture:
    """Return a picture of a certificate for a page."""
    drawn = draw(kind, certificate, findings).figure
    return InlinePicture(svg_of(drawn, label=_LABELS[kind]), is_wide=is_wide)


@dataclass(frozen=True)
class TableOf:
    """A table with a header; ``numeric`` names the columns that are aligned to the right."""

    id: str
    label: str
    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    numeric: Sequence[str] = ()
    note: str = ""
    is_searchable: bool = False


@dataclass(frozen=True)
class Section:
    """A heading with what is below it, in this order; empty parts are not shown."""

    id: str
    title: str
    intro: Sequence[str] = ()
    points: Sequence[str] = ()
    pictures: Sequence[InlinePicture] = ()
    tables: Sequence[TableOf] = ()
    notes: Sequence[str] = ()
    is_folded: bool = False  # among the methods at the end, where it is opened on demand


def net_benefit_section(found: NetBenefit) -> Section:
    """Return the picture of net benefits, with the bounds and the rules of each policy."""
    header = ["policy", "best from", "to", "effect", "cost"]
    rows = []
    for each in found.strategies:
        best = found.printed_ends(each.best) if each.best else ("not known", "")
        rows.append([each.name, *best, *(" to ".join(one.claim.printed_bounds) for one in (each.effect, each.cost))])
    drawn = InlinePicture(svg_of(draw("net benefit", found).figure, label="net benefits by willingness to pay"))
    rules = [f"{each.name}: {each.policy.short_rules}" for each in found.strategies if each.policy.short_rules]
    table = TableOf("policies", "policies that were compared", header, rows, numeric=header[1:])
    return Section("benefit", "Net benefit by willingness to pay", pictures=[drawn], tables=[table], notes=rules)


def watch_section(found: Watch) -> Section:
    """Return the evidence of a watch over its parts, its promise, what holds now, and what that rests on."""
    facts = found.facts_with(found.now if found.state.stream.parts else None)
    intro = [sentence(f"{label}: {text}" if label else text) for label, text in facts if label != "assuming"]
    assuming = [sentence(text) for label, text in facts if label == "assuming"]
    drawn = InlinePicture(svg_of(draw("watch", found).figure, label="evidence of changes over parts"))
    return Section("watch", "What came since", [found.sentence, *intro], pictures=[drawn], points=assuming)


def sentence(text: str) -> str:
    """Return a text that begins as a sentence does, and ends as one.

    >>> sentence("no parameters fit"), sentence("Why?")
    ('No parameters fit.', 'Why?')
    """
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', '!')) else '.'}"


_PARTS = {
    "statistics": "what the data leave open about the parameters: more data reduce it",
    "approximation error": "the curvature of the value over the region of the parameters: more data reduce it faster "
    "than the rest",
    "rounding": "rounding and the precision of the solver",
    "relaxation": "that parameters may differ between states, where bounds with one point for all states are looser",
}
_PARTS_OF_TABLES = {
    "statistics": "what the data leave open about the rows that matter: more data reduce it",
    "approximation error": "what is lost because the data are too few for the method to be exact: more data reduce it "
    "faster than the rest",
    "rounding": _PARTS["rounding"],
    "relaxation": "that each row may be anywhere within its intervals, where bets say less: this shrinks quickly once "
    "each row that matters has enough visits",
}
_PER_CENT = 1e-3  # widths of probabilities from here on are in percentage points
_SMALLEST = 1e-3  # share of the width that is worth a sentence

_MOST_PARAMETERS = 200
_LONG = 20  # rows of a table that can be searched


def methods(certificate: Certificate, findings: Findings) -> Section | None:
    """Return the section on methods: bounds with all digits, and the parts of the error."""
    page = certificate.page()
    facts = dict([*page.facts, *page.details])
    if not certificate.claim.claims_bounds:
        return None
    points = [
        f"Asked: {certificate.claim.objective or 'an objective made in Python, without a text'}",
        certificate.headline,
        *(
            [f"{certificate.comparison.answer['question']}: {certificate.decided}"]
            if certificate.comparison.answer
            else []
        ),
        f"Confidence set: {facts['confidence set']}.",
        f"Relaxation: {facts['relaxation']}.",
    ]
    points += [f"Left the table: {facts['outside']}."] if "outside" in facts else []
    if "jointly" in facts:
        points.append(f"This certificate {facts['jointly']}.")
    rows = [(words, f"{100 * float(share):.3g} %") for words, share in certificate.how.budget]
    note = f"What the error of {100 * (1 - certificate.confidence):.6g} % is spent on:"
    tables = [TableOf("budget-table", "Error allocation", ("part", "share"), rows, ("share",), note)] if rows else []
    return Section("how", "How the bounds were found", (), points, tables=tables, is_folded=True)


def reasons(certificate: Certificate, findings: Findings) -> Section | None:
    """Return the section that says why nothing, or less than was asked, is certified."""
    texts = findings_in(certificate.claim.reason)
    quality = certificate.rests_on.data_quality
    if quality is not None and quality.report is not None and quality.contradicting:
        texts = [*quality.report.reasons(CONTRADICTING), ToTry.of("add these steps to the model, or correct the rows")]
    if not texts:
        return None
    why = [f"What to try: {text.action}." if isinstance(text, ToTry) else sentence(text) for text in texts]
    title = "Why the model is rejected" if certificate.status == Status.REJECTED else "Why"
    return Section("why", title, points=why)


def better(certificate: Certificate, findings: Findings) -> Section | None:
    """Return the section on the difference to another policy."""
    told = certificate.comparison.difference
    if not told:
        return None
    ends = {name: python_value(told[name]) for name in ("first", "second", "difference")}
    names = [*told["names"], "the first less the second"]
    rows = [(name, outward(low, -1), outward(high, 1)) for name, (low, high) in zip(names, ends.values(), strict=True)]
    table = TableOf("better-table", "Both policies", ("value of", "lower", "upper"), rows, ("lower", "upper"))
    first, second, difference = (high - low for low, high in ends.values())
    why = "Both values depend on the same unknown numbers, so that their difference is known better than either."
    return Section(
        "better",
        "Better by how much",
        [certificate.decided, *([why] if difference < min(first, second) else [])],
        tables=[table],
    )


def ladder(certificate: Certificate, findings: Findings) -> Section | None:
    """Return the section with the bounds of each relaxation."""
    rungs = findings.ladder
    if not rungs:
        return None
    header: tuple[str, ...] = ("relaxation", "lower", "upper", "width", "what the bounds allow for")
    rows: list[tuple[str, ...]] = [
        (rung.relaxation, *_bounds(rung), _width(rung), _meaning(rung, certificate)) for rung in rungs
    ]
    if any(rung.status != Status.CERTIFIED for rung in rungs):
        header, rows = (*header, "status"), [(*row, rung.status) for row, rung in zip(rows, rungs, strict=True)]
    table = TableOf("ladder-table", "Bounds of each relaxation", header, rows, header[1:4])
    intro = [
        "From the same data, from loose to tight. All of them hold with this confidence; the looser ones "
        "allow for cases that cannot happen. Each is about the policy that is best for it."
    ]
    return Section(
        "ladder",
        "What each relaxation certifies",
        intro,
        pictures=[picture("ladder", certificate, findings)],
        tables=[table],
        is_folded=True,
    )


def _bounds(rung: Relaxed) -> tuple[str, str]:
    return outward(rung.lower, -1), outward(rung.upper, 1)


def _width(rung: Relaxed) -> str:
    return outward(rung.upper - rung.lower, 1, 3)


def _meaning(rung: Relaxed, certificate: Certificate) -> str:
    if certificate.how.is_of_table and rung.relaxation == "coupled":
        return "rows that no bet on the value of the policy excludes, within their intervals"
    return next((method.meaning for name, method in RELAXATIONS.items() if name == rung.relaxation), "")


def what_limits(certificate: Certificate, findings: Findings) -> Section | None:
    """Return the section on sources of uncertainty, and on where to sample next."""
    advice = findings.advice
    points = limits(certificate, findings)
    if not points and not advice.get("sentences"):
        return None
    tables, notes = [], []
    if advice.get("choices"):
        note = "Where one more run would help most, if it is sampled as advised:"
        rows = [*map(choice_cells, advice["choices"])]
        title = "Choices at which more data help most"
        tables.append(TableOf("advice-table", title, CHOICE_COLUMNS, rows, CHOICE_COLUMNS[2:], note))
    elif advice.get("none"):
        why = advice["none"].replace("say with max_steps how long a run may be", "plumdp advise --max-steps says more")
        notes.append(f"There is no advice on where to sample next: {why}.")
    drawn = [picture("advice", certificate, findings)] if advice.get("choices") else []
    if advice.get("sentences"):
        points.append("Where more data would help most, and how much, as estimates:")
    said = advice.get("sentences", ())[1:]  # the first one tells the bounds, which are above
    return Section("limits", "Sources of uncertainty", points, said, drawn, tables, notes)


def parameters(certificate: Certificate, findings: Findings) -> Section | None:
    """Return the section on the parameters."""
    if not certificate.rests_on.parameters:
        return None
    shown = list(certificate.rests_on.parameters.items())[:_MOST_PARAMETERS]
    rows = []
    for name, (low, high) in shown:
        guess = certificate.beside.estimate.get(name)
        shown_guess = "" if guess is None else plain_number(guess, 0, is_probability=False)
        rows.append((name, *plain_bounds(low, high, is_probability=False), shown_guess))
    header = ("parameter", "lower", "upper", "estimate")
    left_out = len(certificate.rests_on.parameters) - len(shown)
    note = f"{left_out:,} more parameters are in certificate.json." if left_out else ""
    table = TableOf("parameter-table", "Bounds of the parameters", header, rows, header[1:], note)
    intro = [
        "Each parameter lies between these bounds. The estimate is the point at which the data are most likely; it is "
        "not a bound.",
    ]
    return Section("parameters", "What is known of the parameters", intro, tables=[table])


def region(certificate: Certificate, findings: Findings) -> Section | None:
    """Return the region of the parameters as a picture, with what bounds it."""
    if not findings.outlines:
        return None
    names = {name for outline in findings.outlines for name in outline.names}
    drawn = [picture("region", certificate, findings, is_wide=len(names) > 3)]
    intro = ["All parameters that explain the data, two at a time. The bounds hold at each of these points."]
    return Section("region", "The region of the parameters", intro, pictures=drawn, is_folded=True)


def expressions(certificate: Certificate, findings: Findings) -> Section | None:
    """Return the section on unknown probabilities."""
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
    intro = ["The unknown probabilities of the model. All bounds hold at once, with the confidence of the claim."]
    drawn = [picture("expressions", certificate, findings)]
    return Section(
        "expressions", "What is known of the probabilities", intro, pictures=drawn, tables=[table], is_folded=True
    )


def limits(certificate: Certificate, findings: Findings) -> list[str]:
    """Return the sources of uncertainty of what the model says, largest first."""
    if certificate.status in REJECTIONS or certificate.claim.ground != Ground.ROWS:
        return []
    parts = _parts_of_gap(certificate)
    parts += _tighter(certificate, findings.ladder)
    if certificate.how.not_coupled and certificate.how.is_of_table:
        parts.append(
            f"There are no bets on the value of this policy: {certificate.how.not_coupled}. The bounds let each row be "
            "anywhere within its intervals, which is safe but looser."
        )
    elif certificate.how.not_coupled:
        parts.append(
            f"There are no bounds with one point for all states: {certificate.how.not_coupled}. The bounds allow "
            "other parameters in each state, which is safe but looser."
        )
    if certificate.how.not_in_likelihood:
        keyword = 'confidence_set="interval", on the command line --confidence-set interval'
        parts.append(f"The likelihood ignores {certificate.how.not_in_likelihood}.")
        parts.append(f"On new data, bounds may be tighter with {keyword}.")
    if certificate.rests_on.model_tolerance:
        off = f"The bounds allow for rows that are off by {certificate.rests_on.model_tolerance:g}"
        parts.append(f"{off}: this costs width that no amount of data wins back.")
    if certificate.rests_on.jointly:
        others = (
            "1 other property"
            if len(certificate.rests_on.jointly) == 1
            else f"{len(certificate.rests_on.jointly)} other properties"
        )
        parts.append(f"The confidence is shared with {others}: one property alone would have narrower bounds.")
    if certificate.beside.remark:
        parts.append(f"About the policy: {certificate.beside.remark}.")
    if certificate.how.left_out:
        parts.append(f"Some of what the data say was left out: {certificate.how.left_out}.")
    if certificate.how.solver != "converged":
        parts.append(f"The solver ended before its bounds met ({certificate.how.solver}).")
    return parts


def _parts_of_gap(certificate: Certificate) -> list[str]:
    total = sum(certificate.beside.gap.values())
    if not total or total == float("inf"):
        return []
    ordered = sorted(certificate.beside.gap.items(), key=lambda part: -part[1])
    width, points = certificate.upper - certificate.lower, ""
    if is_probability(certificate.claim.objective) and width >= _PER_CENT:
        width, points = 100 * width, " percentage points"
    words = _PARTS_OF_TABLES if certificate.how.is_of_table else _PARTS
    return [f"The bounds are {outward(width, 1, 3)}{points} apart."] + [
        f"{100 * part / total:.3g} % of that is {words[name]}."
        for name, part in ordered
        if part / total >= _SMALLEST and name in words
    ]


def _tighter(certificate: Certificate, ladder: Sequence[Relaxed]) -> list[str]:
    """Return the relaxation that certifies a better value than this one, if there is one."""
    sign = 1 if certificate.claim.direction == "max" else -1
    best = max(ladder, key=lambda rung: sign * _bound(rung, sign), default=None)
    if best is None or not sign * _bound(best, sign) > sign * certificate.claim.bound:
        return []
    between = f"between {outward(best.lower, -1)} and {outward(best.upper, 1)}"
    return [f'The relaxation "{best.relaxation}" certifies a better policy from the same data: {between}.']


def _bound(rung: Relaxed, sign: int) -> float:
    return rung.lower if sign > 0 else rung.upper
