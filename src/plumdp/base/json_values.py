"""Values as JSON, and back as what the fields of a dataclass say; infinite numbers, which JSON has not, as texts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from fractions import Fraction
from hashlib import blake2b
from math import inf, isfinite, isinf, isnan
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from plumdp.base.errors import DataError

INFINITE = {"infinity": inf, "-infinity": -inf}
_LARGEST = 2**1023  # whole numbers below it are floats as well
_DEEPEST = 40  # levels of lists and objects inside each other; results have less than 10
_FINEST = 10**6  # more than the denominator of any share of the error: the fraction is the one that was written
_LONGEST = 40  # characters of a value in a message
_MOST = 2**28  # bytes or characters of a text of JSON

Finite = Annotated[float, isfinite, "a finite number"]
Share = Annotated[float, lambda value: 0 <= value <= 1, "a number from 0 to 1"]
Confidence = Annotated[float, lambda value: 0 < value < 1, "a number between 0 and 1"]


def json_value(value: Any) -> Any:
    """Return a value ready for JSON: infinite numbers as texts, dataclasses and mappings as objects, tuples as lists.

    >>> json_value({"bounds": (0.5, inf), "share": Fraction(1, 4)})
    {'bounds': [0.5, 'infinity'], 'share': 0.25}
    """
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, float) and isinf(value):
        return "infinity" if value > 0 else "-infinity"
    if isinstance(value, Fraction | StrEnum):
        return float(value) if isinstance(value, Fraction) else str(value)
    if is_dataclass(value):
        return {each.name: json_value(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: json_value(each) for name, each in value.items()}
    return [json_value(each) for each in value] if isinstance(value, list | tuple) else value


def python_value(value: Any) -> Any:
    """Return a value that was read from JSON with infinite numbers instead of these texts.

    >>> python_value({"bounds": [0.5, "infinity"]})
    {'bounds': [0.5, inf]}
    """
    if isinstance(value, dict):
        return {name: python_value(each) for name, each in value.items()}
    if isinstance(value, list):
        return [python_value(each) for each in value]
    return INFINITE.get(value, value) if isinstance(value, str) else value


def read_as(
    kind: Any,
    value: Any,
    name: str = "",
    *,
    given: Mapping[str, Any] | None = None,
    optional: Collection[str] | None = None,
) -> Any:
    """Return a value that was read from JSON as the type of a field, or as a dataclass; others are refused in words.

    Of a dataclass, ``given`` are fields that JSON does not have, and ``optional`` names those that may be missing, by
    default all with default values; entries that are not fields are left out. A mapping from names to types stands for
    an object that has these entries, and maybe others, which are kept.

    >>> read_as(tuple[float, ...], [0.5, "infinity"]), read_as({"bounds": tuple[int, int]}, {"bounds": [1, 2]})
    ((0.5, inf), {'bounds': (1, 2)})
    >>> read_as(tuple[str, ...], ["p", 1], "names")
    Traceback (most recent call last):
    plumdp.base.errors.DataError: names[1] is 1, not a text
    """
    if isinstance(kind, Mapping):
        return {**_object(value, name), **_entries(kind, value, name, ())}
    if is_dataclass(kind):
        return _record(kind, value, name, given or {}, optional)
    if kind in _PLAIN:
        return _plain(value, name, *_PLAIN[kind])
    parts, origin = get_args(kind), get_origin(kind)
    if NoneType in parts:
        return None if value is None else read_as(parts[0], value, name)
    if origin is Annotated:
        read = _plain(value, name, _is_number, parts[2])
        return read if parts[1](read) else _refuse(value, name, parts[2])
    if words := _words(kind):
        is_one = isinstance(value, str) and value in words
        allowed = f"one of {', '.join(repr(str(word)) for word in words)}"
        return next(word for word in words if word == value) if is_one else _refuse(value, name, allowed)
    if origin is tuple:
        inner = parts[:1] * len(value) if parts[-1] is Ellipsis and isinstance(value, list) else parts
        if not isinstance(value, list) or len(value) != len(inner):
            _refuse(value, name, "a list" if parts[-1] is Ellipsis else f"a list of {len(parts)}")
        return tuple(read_as(one, each, f"{name}[{i}]") for i, (one, each) in enumerate(zip(inner, value, strict=True)))
    return {key: read_as(parts[1], each, _inside(name, key)) for key, each in _object(value, name).items()}


def _record(kind: Any, value: Any, name: str, given: Mapping[str, Any], optional: Collection[str] | None) -> Any:
    """Return a dataclass of its entries."""
    hints, own = get_type_hints(kind, include_extras=True), [each for each in fields(kind) if each.name not in given]
    if optional is None:
        optional = [each.name for each in own if each.default is not MISSING or each.default_factory is not MISSING]
    return kind(**given, **_entries({each.name: hints[each.name] for each in own}, value, name, optional))


def _entries(kinds: Mapping[str, Any], value: Any, name: str, optional: Collection[str]) -> dict[str, Any]:
    content = _object(value, name)
    missing = next((key for key in kinds if key not in content and key not in optional), None)
    if missing is not None:
        raise DataError(f"there is no {_inside(name, missing)}")
    return {key: read_as(kind, content[key], _inside(name, key)) for key, kind in kinds.items() if key in content}


def _object(value: Any, name: str) -> dict[str, Any]:
    return value if isinstance(value, dict) else _refuse(value, name, "an object")


def _words(kind: Any) -> tuple[str, ...]:
    """Return the words that a type has, if it is one of words."""
    if isinstance(kind, type):
        return tuple(kind) if issubclass(kind, StrEnum) else ()
    if get_origin(kind) in (Union, UnionType):
        return tuple(word for one in get_args(kind) for word in _words(one))
    return get_args(kind) if get_origin(kind) is Literal else ()


def _plain(
    value: Any, name: str, fits: Callable[[Any], bool], words: str, make: Callable[[Any], Any] = lambda x: x
) -> Any:
    return make(value) if fits(value) else _refuse(value, name, words)


def _is_number(value: Any) -> bool:
    return not isnan(value) if type(value) is float else type(value) is int and abs(value) < _LARGEST


def _refuse(value: Any, name: str, wanted: str) -> Any:
    shown = json.dumps(value, ensure_ascii=False)
    shown = shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
    raise DataError(f"{name or 'the content'} is {shown}, not {wanted}")


def _inside(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key


_PLAIN: dict[Any, tuple[Any, ...]] = {
    str: (lambda value: isinstance(value, str), "a text"),
    bool: (lambda value: isinstance(value, bool), "true or false"),
    int: (lambda value: type(value) is int and value >= 0, "a whole number from 0 on"),
    float: (
        lambda value: value in INFINITE if isinstance(value, str) else _is_number(value),
        "a number, 'infinity' or '-infinity'",
        python_value,
    ),
    Fraction: (
        lambda value: _is_number(value) and 0 <= value <= 1,
        "a number from 0 to 1",
        lambda value: Fraction(value).limit_denominator(_FINEST),
    ),
    Any: (lambda value: True, "", python_value),
}


def parsed(text: str | bytes) -> Any:
    """Return the value of a text of JSON; one that is too long, or has too many levels, is refused as well.

    >>> parsed("[1, 2")
    Traceback (most recent call last):
    plumdp.base.errors.DataError: Expecting ',' delimiter: line 1 column 6 (char 5)
    """
    if len(text) > _MOST:
        raise DataError(f"it has {len(text):,} bytes, and at most {_MOST:,} are read")
    try:
        value = json.loads(text, object_pairs_hook=_once)
        if not _is_deep(value):
            return value
    except RecursionError:
        pass
    except ValueError as error:
        raise DataError(str(error)) from None
    raise DataError("lists or objects in it are nested too deeply")


def _once(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose names differ, so that all who read it read the same."""
    found = dict(entries)
    if len(found) < len(entries):
        ((name, _),) = Counter(name for name, _ in entries).most_common(1)
        raise ValueError(f"the name {name!r} is given twice")
    return found


def _is_deep(value: Any) -> bool:
    """Return whether lists and objects are inside each other at more levels than a result has."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, list | dict)
            for inner in (outer if isinstance(outer, list) else outer.values())
        ]
    return bool(level)


def digest(content: bytes) -> str:
    """Return the hash of the content of a file."""
    return blake2b(content, digest_size=16).hexdigest()
