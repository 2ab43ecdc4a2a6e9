"""Objects as one line of text, as small tables for notebooks, and as data frames."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from plumdp.base.errors import in_line, needs

_WIDEST = 160  # characters in the parentheses


def one_line(thing: object, *facts: str) -> str:
    """Return the name of an object's class with some facts in parentheses, in one line of less than 200 characters.

    >>> one_line(1.5, "3 states", "", "acyclic")
    'float(3 states, acyclic)'
    """
    return f"{type(thing).__name__}({cut(', '.join(fact for fact in facts if fact), _WIDEST)})"


def cut(text: str, widest: int = 60) -> str:
    """Return a text as one line, cut if it is longer than asked for.

    >>> cut("a long story", 8)
    'a long …'
    """
    line = " ".join(text.split())
    return line if len(line) <= widest else f"{line[: widest - 1]}…"


def number_of(n: int, thing: str) -> str:
    """Return a number with its noun.

    >>> number_of(1, "state"), number_of(3625, "state")
    ('1 state', '3,625 states')
    """
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def listing(items: Sequence[str], most: int = 8) -> str:
    """Return items in a row, the first ones if there are too many to read, and how many are left out.

    >>> listing(["p = 1", "q = 2"]), listing("abcdef", most=4)
    ('p = 1, q = 2', 'a, b, c, d and 2 more')
    """
    left = len(items) - most
    shown = ", ".join(map(in_line, items if left <= 0 else items[:most]))
    return shown if left <= 0 else f"{shown} and {left:,} more"


def html_table(rows: Iterable[Sequence[object]], header: Sequence[str] = ()) -> str:
    """Return rows of cells as a table in HTML."""
    head = _html_row("th", header) if header else ""
    return f"<table>{head}{''.join(_html_row('td', row) for row in rows)}</table>"


def _html_row(tag: str, cells: Iterable[object]) -> str:
    """Return one row of a table, with cells set to the left and at the top, unlike those of notebooks."""
    opened = f'<{tag} style="text-align: left; vertical-align: top">'
    return "<tr>" + "".join(f"{opened}{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"


class HasColumns(Protocol):
    """A table."""

    def columns(self) -> Mapping[str, Any]:
        """Return its columns, of equal length."""


def as_pandas(table: HasColumns) -> Any:
    """Return it as a data frame of pandas."""
    with needs("to_pandas needs pandas: pip install pandas"):
        import pandas as pd
    return pd.DataFrame(dict(table.columns()))


def as_polars(table: HasColumns) -> Any:
    """Return it as a data frame of Polars."""
    with needs("to_polars needs Polars: pip install polars"):
        import polars as pl
    return pl.DataFrame({name: values.tolist() for name, values in table.columns().items()})
