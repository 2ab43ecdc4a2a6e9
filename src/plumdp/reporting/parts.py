"""The parts that a report is made of: sections with sentences, pictures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plumdp.certifying.net_benefit import NetBenefit
from plumdp.plots.draw import draw
from plumdp.plots.style import svg_of
from plumdp.result.certificate import Certificate
from plumdp.result.findings import Findings

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
        best = found.printed(each.best).split(" to ") if each.best else ("not known", "")
        rows.append([each.name, *best, *(" to ".join(one.printed_bounds) for one in (each.effect, each.cost))])
    drawn = InlinePicture(svg_of(draw("net benefit", found).figure, label="net benefits by willingness to pay"))
    rules = [f"{each.name}: {each.policy.short_rules}" for each in found.strategies if each.policy.short_rules]
    table = TableOf("policies", "policies that were compared", header, rows, numeric=header[1:])
    return Section("benefit", "Net benefit by willingness to pay", pictures=[drawn], tables=[table], notes=rules)


def sentence(text: str) -> str:
    """Return a text that begins as a sentence does, and ends as one.

    >>> sentence("no parameters fit"), sentence("Why?")
    ('No parameters fit.', 'Why?')
    """
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', '!')) else '.'}"
