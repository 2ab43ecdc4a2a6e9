"""Shows results: each says what it has to say once, as a ``Page``, and text, HTML and JSON are made of that here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite
from operator import attrgetter
from typing import Any, ClassVar, Protocol, TypeAlias

from plumdp.base.json_values import json_value
from plumdp.base.vocabulary import FIXED, Assumption, Group, parts_in
from plumdp.model.language.words import is_probability
from plumdp.model.text import html_table
from plumdp.result.printing import plain_bounds, plain_number

Fact: TypeAlias = tuple[str, str]  # a label and a text


@dataclass(frozen=True)
class Page:
    """The content of a result, in the order of reading; empty parts are not shown."""

    headline: str
    points: Sequence[str] = ()
    header: Sequence[str] = ()  # of a table
    rows: Sequence[Sequence[str]] = ()
    inside: Sequence[Shown] = ()  # results that it is made of
    facts: Sequence[Fact] = ()  # what it rests on
    details: Sequence[Fact] = ()  # how it was found, which a text leaves out unless it is in full
    folded: Sequence[Shown] = ()  # what a page shows on demand, and a text leaves out
    picture: str = ""  # as SVG, which a text leaves out

    def page(self) -> Page:
        """Return the page itself."""
        return self


class Shown(Protocol):
    """A result that can be shown."""

    def page(self) -> Page:
        """Return the page of the result."""


class Told(Protocol):
    """A result with a form in JSON, and the words for its entries: attributes, some as ``entry=attribute``."""

    SCHEMA: ClassVar[str]
    TOLD: ClassVar[str]


def as_text(result: Shown, *, in_full: bool = False) -> str:
    """Return a result as lines of text, with assumptions by group in three lines unless it is in full.

    >>> print(as_text(Page("It rains.", ["here: 1 mm"], facts=[("data", "12 drops")])))
    It rains.
      here: 1 mm
      data            12 drops
    """
    page = result.page()
    table = [row for row in (page.header, *page.rows) if row]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
    below = [f"  {line}" for line in (*page.points, *lines)]
    inside = [as_text(each, in_full=in_full) for each in page.inside]
    return "\n".join([page.headline, *below, *inside, *fact_lines(shown(page, in_full=in_full))])


def shown(page: Page, *, in_full: bool) -> list[Fact]:
    """Return the facts of a page, with assumptions by group in three lines, or each in full after the details.

    What another bracket assumes besides these is below, under a label of its own.
    """
    told = {(label, text): text for label, text in page.facts if isinstance(text, Assumption)}
    assumed = [text for (label, _), text in told.items() if label == "assuming"]
    besides = [(label, text) for (label, _), text in told.items() if label != "assuming" and text not in assumed]
    others = [fact for fact in page.facts if not isinstance(fact[1], Assumption)]
    if in_full:
        return [*others, *page.details, *((f"assuming {each.group}", each) for each in assumed), *besides]
    by_label, said = {}, set[str]()
    groups = [(f"valid if {group}", [each for each in assumed if each.group == group]) for group in Group]
    groups += [(label, [each for name, each in besides if name == label]) for label in dict(besides)]
    for label, members in groups:
        plan = dict.fromkeys(each.brief for each in members if each.group == Group.PLAN and each.brief not in said)
        rest = dict.fromkeys(part for each in members if each.group != Group.PLAN for part in parts_in(each.brief))
        parts = [part for part in rest if part not in said] + [FIXED + ", ".join(filter(None, plan))] * any(plan)
        said.update(plan, rest)
        by_label[label] = "; ".join(parts)
    return [*others, *((label, text) for label, text in by_label.items() if text)]


def fact_lines(facts: Sequence[Fact]) -> list[str]:
    """Return facts as lines below a headline.

    >>> fact_lines([("data", "12 steps")])
    ['  data            12 steps']
    """
    return [f"  {label:14}  {text}" for label, text in facts]


def as_html(result: Shown) -> str:
    """Return a result as an HTML element, for notebooks."""
    page = result.page()
    picture = f'<div style="max-width:36rem">{page.picture}</div>' if page.picture else ""
    points = "".join(f"<li>{escape(text)}</li>" for text in page.points)
    table = html_table(page.rows, page.header) if page.header else ""
    folded = "".join(
        f'<details><summary>{escape(each.page().headline)}</summary><div style="overflow-x: auto">{as_html(each)}</div>'
        "</details>"
        for each in page.folded
    )
    return "".join(
        [
            f"<p><b>{escape(page.headline)}</b></p>" if page.headline else "",
            picture,
            f"<ul>{points}</ul>" if points else "",
            table,
            *map(as_html, page.inside),
            html_table(shown(page, in_full=True)) if page.facts else "",
            folded,
        ]
    )


def as_json(result: Told) -> dict[str, Any]:
    """Return a result ready for JSON, after the name and version of its schema."""
    entries = [
        (name, attribute or name) for name, _, attribute in (each.partition("=") for each in result.TOLD.split())
    ]
    return {"schema": result.SCHEMA} | {name: json_value(attrgetter(each)(result)) for name, each in entries}


_WIDTH, _HEIGHT, _LEFT, _RIGHT = 420, 84, 8, 412
_LINE = 42  # where the axis is
_NARROW = 0.1  # bounds of a probability that are closer are not shown between 0 and 1
_WIDE = 10.5  # a bold character of the widest usual font


def bounds_svg(objective: str, lower: float, upper: float, printed: tuple[str, str], estimate: float | None) -> str:
    """Return the bounds on a line with the estimate, or nothing if none of them is finite.

    Colours follow the text of the page, so that the picture is legible on light and dark pages.
    """
    finite = [value for value in (lower, upper, estimate) if value is not None and isfinite(value)]
    if not finite:
        return ""
    is_share = is_probability(objective)
    first, last = _view(finite, is_share)
    low, high = (escape(text) for text in plain_bounds(lower, upper, is_probability=is_share))
    start, end = (_place(min(max(value, first), last), first, last) for value in (lower, upper))
    parts = [
        f'<line x1="{_LEFT}" y1="{_LINE}" x2="{_RIGHT}" y2="{_LINE}" stroke="currentColor" stroke-opacity="0.45"/>',
        *(_tick(value, first, last, is_share) for value in (first, last)),
        f'<rect x="{start:.1f}" y="{_LINE - 8}" width="{max(end - start, 2):.1f}" height="16" rx="2" '
        'fill="var(--bar, #0072b2)"/>',
        *_labels(low, high, start, end),
    ]
    words = "between {} and {}".format(*printed)
    if estimate is not None and isfinite(estimate):
        parts += _estimate(estimate, first, last, is_share)
        words += f", estimate about {estimate:.6g}"
    body = "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(words)}" font-family="system-ui, sans-serif" font-size="15" fill="currentColor">'
        f"{body}</svg>"
    )


def _view(finite: list[float], is_share: bool) -> tuple[float, float]:
    """Return the ends of the line: 0 and 1 for probabilities that are far apart, else the values with a margin."""
    span = max(finite) - min(finite)
    is_within = is_share and min(finite) >= 0 and max(finite) <= 1
    if is_within and not 0 < span < _NARROW:
        return 0.0, 1.0
    span = span or abs(finite[0]) or 1.0
    first, last = min(finite) - span / 2, max(finite) + span / 2
    return (0.0 if min(finite) >= 0 > first else first), (min(last, 1.0) if is_within else last)


def _place(value: float, first: float, last: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * (value - first) / (last - first)


def _tick(value: float, first: float, last: float, is_share: bool) -> str:
    x, anchor = _place(value, first, last), "start" if value == first else "end"
    return (
        f'<line x1="{x:.1f}" y1="{_LINE - 6}" x2="{x:.1f}" y2="{_LINE + 6}" stroke="currentColor"/>'
        f'<text x="{x:.1f}" y="{_LINE + 24}" text-anchor="{anchor}" fill-opacity="0.75" font-size="13">'
        f"{plain_number(value, 0, is_probability=is_share)}</text>"
    )


def _labels(low: str, high: str, start: float, end: float) -> list[str]:
    """Return both bounds above the line, in one text where they would touch."""
    if end - start > _WIDE * (len(low) + len(high)) / 2 + 12:
        return [
            f'<text x="{_held(x, text):.1f}" y="{_LINE - 17}" text-anchor="middle" font-weight="600">{text}</text>'
            for x, text in ((start, low), (end, high))
        ]
    text = f"{low} to {high}"
    x = _held((start + end) / 2, text)
    return [f'<text x="{x:.1f}" y="{_LINE - 17}" text-anchor="middle" font-weight="600">{text}</text>']


def _held(x: float, text: str) -> float:
    """Return the middle of a text, moved so that it does not leave the picture."""
    half = _WIDE * len(text) / 2
    return min(max(x, half), _WIDTH - half)


def _estimate(value: float, first: float, last: float, is_share: bool) -> list[str]:
    text = f"estimate {plain_number(value, 0, is_probability=is_share)}"
    x = _place(min(max(value, first), last), first, last)
    middle = min(max(_held(x, text), 115), _WIDTH - 115)  # clear of the ends of the line
    return [
        f'<circle cx="{x:.1f}" cy="{_LINE}" r="5" fill="#ffffff" stroke="#000000" stroke-width="2"/>',
        f'<text x="{middle:.1f}" y="{_LINE + 28}" text-anchor="middle" font-size="13">{text}</text>',
    ]
