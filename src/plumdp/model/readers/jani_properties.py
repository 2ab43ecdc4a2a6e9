"""Properties of JANI files, written as those of PRISM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumdp.base.errors import ModelError
from plumdp.model.readers.storm_languages import json_of

_BETWEEN = {
    "∧": "&", "∨": "|", "⇒": "=>", "=": "=", "≠": "!=", "<": "<", "≤": "<=", ">": ">", "≥": ">=", "+": "+", "-": "-",
    "*": "*",
}  # fmt: skip
_COMPARISONS = {"<": "<", "≤": "<=", ">": ">", "≥": ">="}
_QUERIES = {"Pmax": "Pmax", "Pmin": "Pmin", "Emax": "max", "Emin": "min"}


def jani_properties(path: str | Path) -> tuple[list[str], list[str]]:
    """Return the properties of a JANI file as texts of PRISM, and the names of those that have no such text.

    These are probabilities of F, G and U with bounds on steps, expected rewards until states are reached, and
    comparisons of both with a number, in the initial state.
    """
    texts, others = [], []
    given = json_of(Path(path)).get("properties", [])
    for each in given if isinstance(given, list) else []:
        name = str(each.get("name", "")) if isinstance(each, dict) else ""
        try:
            texts.append(f'"{name}": {_asked(each["expression"])}')
        except (ModelError, KeyError, TypeError, AttributeError):  # something else, or written in another way
            others.append(name)
    return texts, others


def _asked(given: Mapping[str, Any]) -> str:
    """Return the question about the initial state."""
    if given["op"] == "filter":
        if given["states"] != {"op": "initial"}:
            raise ModelError("only the initial state is asked about")
        given = given["values"]
    if given["op"] in _COMPARISONS and isinstance(given["right"], int | float):
        return _query(given["left"], f"{_COMPARISONS[given['op']]}{given['right']}")
    return _query(given, "=?")


def _query(given: Mapping[str, Any], asked: str) -> str:
    words = _QUERIES[given["op"]]
    if words.startswith("P"):
        return f"{words}{asked} [ {_path(given['exp'])} ]"
    if not isinstance(given["exp"], str) or "step-instant" in given or "time-instant" in given:
        raise ModelError("a reward has the name of a variable")
    return f'R{{"{given["exp"]}"}}{words}{asked} [ F {_formula(given["reach"])} ]'


def _path(given: Mapping[str, Any]) -> str:
    steps = _steps(given.get("step-bounds"))
    if {"time-bounds", "reward-bounds"} & given.keys():
        raise ModelError("only steps are bounded")
    if given["op"] in ("F", "G"):
        return f"{given['op']}{steps} {_formula(given['exp'])}"
    if given["op"] == "U":
        return f"{_formula(given['left'])} U{steps} {_formula(given['right'])}"
    raise ModelError("this is another path")


def _steps(bounds: Mapping[str, Any] | None) -> str:
    if bounds is None:
        return ""
    if bounds.keys() != {"upper"} or not isinstance(bounds["upper"], int):
        raise ModelError("steps have an upper bound, a whole number")
    return f"<={bounds['upper']}"


def _formula(given: Any) -> str:
    """Return an expression over the variables."""
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, str | int | float):
        return str(given)
    if given["op"] == "¬":
        return f"!{_formula(given['exp'])}"
    return f"({_formula(given['left'])} {_BETWEEN[given['op']]} {_formula(given['right'])})"
