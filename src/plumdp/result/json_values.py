"""Infinite numbers in JSON, which has none: as the texts "infinity" and "-infinity"."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isinf
from typing import Any

INFINITE = {"infinity": inf, "-infinity": -inf}


def json_value(value: Any) -> Any:
    """Return a value ready for JSON: infinite numbers as texts, mappings as objects, tuples as lists.

    >>> json_value({"bounds": (0.5, inf)})
    {'bounds': [0.5, 'infinity']}
    """
    if isinstance(value, float) and isinf(value):
        return "infinity" if value > 0 else "-infinity"
    if isinstance(value, Mapping):
        return {name: json_value(each) for name, each in value.items()}
    return [json_value(each) for each in value] if isinstance(value, list | tuple) else value


def python_value(value: Any) -> Any:
    """Return a value that was read from JSON with infinite numbers in place of these texts.

    >>> python_value({"bounds": [0.5, "infinity"]})
    {'bounds': [0.5, inf]}
    """
    if isinstance(value, dict):
        return {name: python_value(each) for name, each in value.items()}
    if isinstance(value, list):
        return [python_value(each) for each in value]
    return INFINITE.get(value, value) if isinstance(value, str) else value
