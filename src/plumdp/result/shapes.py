"""Checks values that were read from JSON: a shape returns in words what does not fit it, or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from math import inf, isnan
from types import NoneType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from plumdp.model.text import cut
from plumdp.result.json_values import INFINITE

Shape: TypeAlias = Callable[[Any, str], str]
"""From a value and its name to what is wrong with it, in words; an empty text if it fits."""

_LARGEST = 2**1023  # whole numbers below it are floats as well
_DEEPEST = 40  # levels of lists and objects inside each other; results have less than 10


def anything(value: Any, name: str) -> str:
    """Accept every value."""
    return ""


def text(value: Any, name: str) -> str:
    """Accept texts."""
    return "" if isinstance(value, str) else _is_not(value, name, "a text")


def truth(value: Any, name: str) -> str:
    """Accept true and false."""
    return "" if isinstance(value, bool) else _is_not(value, name, "true or false")


def number(value: Any, name: str) -> str:
    """Accept finite numbers."""
    return "" if _is_number(value) and -inf < value < inf else _is_not(value, name, "a finite number")


def bound(value: Any, name: str) -> str:
    """Accept numbers, infinite ones as well, which may be texts."""
    is_infinite = isinstance(value, str) and value in INFINITE
    return "" if is_infinite or _is_number(value) else _is_not(value, name, "a number, 'infinity' or '-infinity'")


def count(value: Any, name: str) -> str:
    """Accept whole numbers from 0 on."""
    return "" if type(value) is int and value >= 0 else _is_not(value, name, "a whole number from 0 on")


def share(value: Any, name: str) -> str:
    """Accept numbers from 0 to 1."""
    return "" if _is_number(value) and 0 <= value <= 1 else _is_not(value, name, "a number from 0 to 1")


def confidence(value: Any, name: str) -> str:
    """Accept numbers between 0 and 1."""
    return "" if _is_number(value) and 0 < value < 1 else _is_not(value, name, "a number between 0 and 1")


def one_of(*words: str) -> Shape:
    """Return the shape of texts that are one of these words."""
    allowed = f"one of {', '.join(map(repr, map(str, words)))}"
    return lambda value, name: "" if isinstance(value, str) and value in words else _is_not(value, name, allowed)


def nullable(shape: Shape) -> Shape:
    """Return a shape that accepts null as well."""
    return lambda value, name: "" if value is None else shape(value, name)


def listed(shape: Shape, size: int | None = None) -> Shape:
    """Return the shape of lists, of the given size if there is one, in which each value has a shape."""

    def check(value: Any, name: str) -> str:
        if not isinstance(value, list) or size not in (None, len(value)):
            return _is_not(value, name, "a list" if size is None else f"a list of {size}")
        return _first(shape(each, f"{name}[{place}]") for place, each in enumerate(value))

    return check


def each(shape: Shape) -> Shape:
    """Return the shape of objects in which every entry has a shape, whatever its name."""

    def check(value: Any, name: str) -> str:
        if not isinstance(value, dict):
            return _is_not(value, name, "an object")
        return _first(shape(entry, _inside(name, key)) for key, entry in value.items())

    return check


def record(needed: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """Return the shape of objects with these entries; there may be others besides."""

    def check(value: Any, name: str) -> str:
        if not isinstance(value, dict):
            return _is_not(value, name, "an object")
        missing = next((key for key in needed if key not in value), None)
        if missing is not None:
            return f"there is no {_inside(name, missing)}"
        shapes = {**needed, **(optional or {})}
        return _first(shapes[key](value[key], _inside(name, key)) for key in shapes if key in value)

    return check


def shape_of(kind: Any) -> Shape:
    """Return the shape of a dataclass in JSON, or of a type that one of its fields has.

    >>> shape_of(tuple[str, ...])(["p", 1], "names")
    'names[1] is 1, not a text'
    """
    if kind in _PLAIN:
        return _PLAIN[kind]
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return record({own.name: shape_of(hints[own.name]) for own in fields(kind)})
    inner = get_args(kind)
    if inner[-1] is NoneType:
        return nullable(shape_of(inner[0]))
    if get_origin(kind) is tuple:
        return listed(shape_of(inner[0]), None if inner[-1] is Ellipsis else len(inner))
    return each(shape_of(inner[1]))  # a mapping


def is_deep(value: Any) -> bool:
    """Return whether lists and objects are inside each other at more levels than a result has.

    >>> is_deep([{"a": [1]}])
    False
    """
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for outer in level if isinstance(outer, list | dict) for inner in _parts(outer)]
    return bool(level)


def _parts(value: list[Any] | dict[str, Any]) -> list[Any]:
    return value if isinstance(value, list) else list(value.values())


def _is_number(value: Any) -> bool:
    if type(value) is float:
        return not isnan(value)
    return type(value) is int and abs(value) < _LARGEST


def _first(problems: Any) -> str:
    return next((problem for problem in problems if problem), "")


def _inside(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key


def _is_not(value: Any, name: str, wanted: str) -> str:
    return f"{name or 'the content'} is {cut(json.dumps(value, ensure_ascii=False), 40)}, not {wanted}"


_PLAIN: dict[Any, Shape] = {str: text, float: bound, int: count, bool: truth, Any: anything}
