"""The options ``--state`` and ``--action`` as mappings: expressions over columns, edges of bins, names of actions."""

from __future__ import annotations

from collections.abc import Sequence

from plumdp.base.errors import DataError


def state_maps(texts: Sequence[str]) -> dict[str, str | list[float]]:
    """Return the mappings that texts NAME=EXPRESSION or NAME=[EDGE, EDGE, …] give.

    >>> state_maps(["x=floor(lon / 0.5)", "battery=[0, 20, 60, 100]"])
    {'x': 'floor(lon / 0.5)', 'battery': [0.0, 20.0, 60.0, 100.0]}
    """
    maps: dict[str, str | list[float]] = {}
    for text in texts:
        name, equals, given = (part.strip() for part in text.partition("="))
        if not (name.isidentifier() and equals and given):
            raise DataError(f"--state {text}: write NAME=EXPRESSION, such as 'x=floor(lon / 0.5)', or NAME=[0, 20, 60]")
        if name in maps:
            raise DataError(f"--state {name}: this variable has two mappings; give one")
        maps[name] = _edges(text, given[1:-1]) if given[0] == "[" and given[-1] == "]" else given
    return maps


def action_map(text: str | None) -> str | dict[str, str] | list[str] | None:
    """Return the expression of a text, the table {NAME=ACTION, …}, or the list [ACTION, …] of the actions 0, 1, 2, … .

    >>> action_map("{FULL=full, HALF=half}"), action_map("[left, right]"), action_map("lower(Command)")
    ({'FULL': 'full', 'HALF': 'half'}, ['left', 'right'], 'lower(Command)')
    """
    brackets = "" if text is None else text.strip()[:1] + text.strip()[-1:]
    if text is None or brackets not in ("{}", "[]"):
        return text
    entries = [entry.strip() for entry in text.strip()[1:-1].split(",")]
    if brackets == "[]":
        return entries
    pairs = [[part.strip() for part in entry.partition("=")] for entry in entries]
    if not all(called and action for called, _, action in pairs):
        raise DataError(f"--action {text}: write {{NAME=ACTION}} for what the log calls actions, such as {{FULL=full}}")
    return {called: action for called, _, action in pairs}


def _edges(text: str, edges: str) -> list[float]:
    try:
        return [float(edge) for edge in edges.split(",")]
    except ValueError:
        raise DataError(f"--state {text}: the edges of bins are numbers, such as [0, 20, 60, 100]") from None
