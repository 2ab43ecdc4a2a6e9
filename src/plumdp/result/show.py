"""Shows results: each says what it has to say once, as a ``Page``, and text, HTML and JSON are made of that here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from operator import attrgetter
from typing import Any, ClassVar, Protocol, TypeAlias

from plumdp.base.json_values import json_value
from plumdp.model.text import html_table

Fact: TypeAlias = tuple[str, str]  # a label and a text


@dataclass(frozen=True)
class Page:
    """What a result says, in the order of reading; parts that are empty are not shown."""

    headline: str
    points: Sequence[str] = ()
    header: Sequence[str] = ()  # of a table
    rows: Sequence[Sequence[str]] = ()
    inside: Sequence[Shown] = ()  # results that it is made of
    facts: Sequence[Fact] = ()  # what it rests on
    folded: Sequence[Shown] = ()  # what a page shows on demand, and a text leaves out
    picture: str = ""  # as SVG, which a text leaves out

    def page(self) -> Page:
        """Return the page itself."""
        return self


class Shown(Protocol):
    """A result that can be shown."""

    def page(self) -> Page:
        """Return what it says."""


class Told(Protocol):
    """A result with a form in JSON, and the words for its entries: attributes, some as ``entry=attribute``."""

    SCHEMA: ClassVar[str]
    TOLD: ClassVar[str]


def as_text(result: Shown) -> str:
    """Return what a result says as lines.

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
    return "\n".join([page.headline, *below, *map(as_text, page.inside), *fact_lines(page.facts)])


def fact_lines(facts: Sequence[Fact]) -> list[str]:
    """Return facts as lines below a headline.

    >>> fact_lines([("data", "12 steps")])
    ['  data            12 steps']
    """
    return [f"  {label:14}  {text}" for label, text in facts]


def as_html(result: Shown) -> str:
    """Return what a result says as an element of a page, for notebooks."""
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
            html_table(page.facts) if page.facts else "",
            folded,
        ]
    )


def as_json(result: Told) -> dict[str, Any]:
    """Return what a result says ready for JSON, after the name and version of its form."""
    entries = [
        (name, attribute or name) for name, _, attribute in (each.partition("=") for each in result.TOLD.split())
    ]
    return {"schema": result.SCHEMA} | {name: json_value(attrgetter(each)(result)) for name, each in entries}
