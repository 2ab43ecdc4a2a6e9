"""Reads texts that options take: pairs, mappings of the columns of a log, and ranges of constants."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product

from plumdp.base.errors import DataError, ModelError

_MOST_VALUES = 1000  # of a range


BEFORE_NAME = r",(?=[^,=]*=)"  # a comma after which a name follows, for values with commas in them


def pairs(flag: str, texts: Sequence[str], *, comma: str = ",") -> dict[str, str]:
    """Return the values by name that texts NAME=VALUE give.

    >>> pairs("--column", ["episode=Case, no,step=t"], comma=BEFORE_NAME)
    {'episode': 'Case, no', 'step': 't'}
    """
    values = {}
    for text in re.split(comma, ",".join(texts)) if texts else []:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise ModelError(f"{flag} {text}: write NAME=VALUE")
        values[name.strip()] = {"true": "1", "false": "0"}.get(value.strip(), value.strip())
    return values


TABLE = ("first", "end", "closed", "initial.")
TEXT = ("encoding", "decimal", "date_format")


def values_of(flag: str, names: tuple[str, ...], texts: Sequence[str]) -> dict[str, str]:
    """Return values by name of texts NAME=VALUE, which may have commas in them.

    >>> values_of("--table", TABLE, ["initial.place=on the road, wet", "first=3"])
    {'initial.place': 'on the road, wet', 'first': '3'}
    """
    values = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (equals and value) or not any(name == each or (each[-1] == "." and each in name) for each in names):
            known = ", ".join(f"{each}NAME=…" if each[-1] == "." else f"{each}=…" for each in names)
            raise DataError(f"{flag} {text}: write one of {known}")
        values[name] = value
    return values


def ranges(constants: Mapping[str, str]) -> list[dict[str, str]]:
    """Return values of constants by name, for each combination of values that ranges such as 4:6 have.

    >>> ranges({"N": "4:6", "K": "1"})
    [{'N': '4', 'K': '1'}, {'N': '5', 'K': '1'}, {'N': '6', 'K': '1'}]
    """
    lists = [_values(f"--constant {name}={value}", value) for name, value in constants.items()]
    return [dict(zip(constants, chosen, strict=True)) for chosen in product(*lists)]


def _values(given: str, text: str) -> list[str]:
    """Return the values of LOW:HIGH or LOW:STEP:HIGH with both ends, or the single value."""
    parts = text.split(":")
    if len(parts) == 1:
        return parts
    from plumdp.model.expressions.polynomial import exact

    try:
        low, step, high = (exact(part) for part in (parts if len(parts) == 3 else (parts[0], "1", parts[-1])))
    except (ValueError, ZeroDivisionError):
        raise ModelError(f"{given}: a range is LOW:HIGH or LOW:STEP:HIGH, such as 4:6 or 4:2:10") from None
    if len(parts) > 3 or step <= 0 or low > high:
        raise ModelError(f"{given}: a range goes up from LOW to HIGH in steps above 0, such as 4:6 or 4:2:10")
    n_values = int((high - low) / step) + 1
    if n_values > _MOST_VALUES:
        raise ModelError(f"{given}: this range has {n_values:,} values; take at most {_MOST_VALUES:,}")
    return [str(low + number * step) for number in range(n_values)]


def gaps_of(texts: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of steps that texts with commas and ranges name.

    >>> gaps_of(["1:3, 6"])
    (1, 2, 3, 6)
    """
    text = ",".join(texts)
    gaps = [gap for part in text.split(",") if texts for gap in _values(f"--observation-gaps {text}", part.strip())]
    if not all(gap.isdecimal() for gap in gaps):
        raise ModelError(f"--observation-gaps {text}: give whole numbers of steps, such as 1,2,3 or 1:12")
    return tuple(map(int, gaps))


def willingness_of(text: str) -> tuple[float, float]:
    """Return the ends of a text FROM:TO."""
    try:
        start, end = map(float, text.split(":"))
    except ValueError:
        raise DataError(f"--willingness {text}: write FROM:TO, such as 0:50000") from None
    return start, end


def state_maps(texts: Sequence[str]) -> dict[str, str | list[float]]:
    """Return the mappings that texts NAME=EXPRESSION or NAME=[EDGE, EDGE, …] give.

    >>> state_maps(["x=floor(lon / 0.5)", "battery=[0, 20, 60, 100]"])
    {'x': 'floor(lon / 0.5)', 'battery': [0.0, 20.0, 60.0, 100.0]}
    """
    maps: dict[str, str | list[float]] = {}
    for text in texts:
        name, equals, given = (part.strip() for part in text.partition("="))
        given = given or (name if not equals else "")  # a column as it is
        if not (name.isidentifier() and given):
            raise DataError(f"--state {text}: write NAME=EXPRESSION, such as 'x=floor(lon / 0.5)', or NAME=[0, 20, 60]")
        if name in maps:
            raise DataError(f"--state {name}: this variable has two mappings; give one")
        maps[name] = _edges(text, given[1:-1]) if given[0] == "[" and given[-1] == "]" else given
    return maps


def action_map(text: str) -> str | dict[str, str] | list[str]:
    """Return the expression of a text, the table {NAME=ACTION, …}, or the list [ACTION, …] of the actions 0, 1, 2, … .

    >>> action_map("{FULL=full, HALF=half}"), action_map("[left, right]"), action_map("lower(Command)")
    ({'FULL': 'full', 'HALF': 'half'}, ['left', 'right'], 'lower(Command)')
    """
    brackets = text.strip()[:1] + text.strip()[-1:]
    if brackets not in ("{}", "[]"):
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
