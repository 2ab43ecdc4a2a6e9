"""Mappings from the columns of a log to state variables and actions: expressions, or bins of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from plumdp.base.errors import DataError, Option, require_kind
from plumdp.data.log_format import LogFormat
from plumdp.data.mapping_language import OUTSIDE, MappingTerm, bins, parse_mapping
from plumdp.model.graph import Graph
from plumdp.model.values import shown


@dataclass(frozen=True)
class StateMapping:
    """A mapping from the columns of a log to state variables and action names; others are columns themselves."""

    variables: Mapping[str, MappingTerm] = field(default_factory=dict)
    action: MappingTerm | None = None
    action_names: Mapping[str, int] = field(default_factory=dict)  # what a log calls actions, with their positions

    @property
    def names_no_action(self) -> bool:
        """Whether nothing is said of what the log calls the actions."""
        return self.action is None and not self.action_names

    def shown(self, variable: str, value: Any) -> str:
        """Return the value of a variable as text. A mapped one has whole numbers as such, or lies outside its bins."""
        term = self.variables.get(variable)
        if term is None or not isinstance(value, float | int) or isinstance(value, bool):
            return shown(value)
        if not isfinite(value):
            return "null"
        if term.edges and abs(value) >= OUTSIDE:
            return f"below {term.edges[0]:g}" if value < 0 else f"above {term.edges[-1]:g}"
        return str(int(value)) if value == int(value) else str(value)


def read_mapping(graph: Graph, format: LogFormat) -> StateMapping:
    """Return the checked mappings of states and actions; variables that are named alone are columns themselves.

    >>> from plumdp import case_study
    >>> graph = case_study("glider:11,9").model.graph
    >>> mapping = read_mapping(graph, LogFormat(states={"x": "floor(lon / 0.5)", "y": [0, 10, 100]}))
    >>> mapping.variables["x"].columns(), mapping.variables["y"].columns()
    (['lon'], ['y'])
    """
    require_kind(format, LogFormat, "how a log is read is said by LogFormat(columns={…}, …)")
    for name in format.variables:
        if name not in graph.states:
            only = f": the model has no state variable of this name, only {', '.join(graph.states)}"
            raise DataError(Option("states", {name: ...}), only)
    variables, actions = {name: _variable(graph, name, each) for name, each in format.terms.items()}, format.actions
    if isinstance(actions, Mapping | list | tuple):
        return StateMapping(variables, None, _action_names(graph, actions))
    return StateMapping(variables, None if actions is None else _action(actions))


def _variable(graph: Graph, name: str, given: Any) -> MappingTerm:
    values = graph.states[name]
    is_text = values.dtype.kind == "U"
    if not is_text and len(values) and int(np.abs(values.astype(np.float64)).max()) >= OUTSIDE:
        large = f": the model has values of {name} from 2^53 on, which no mapping gives"
        raise DataError(Option("states", {name: ...}), large)
    where = Option("states", {name: given})
    if isinstance(given, str):
        term = _parsed(where, given)
        if term.kind != "any" and (term.kind == "text") != is_text:
            gives, wanted = ("numbers or truth values", "texts") if is_text else ("texts", "numbers or truth values")
            raise DataError(
                where, f": the expression gives {gives}, but the values of {name} in the model are {wanted}"
            )
        return term
    if is_text:
        raise DataError(where, f": bins give numbers, but the values of {name} in the model are texts")
    return bins(name, _edges(where, given))


def _action(given: Any) -> MappingTerm:
    where = Option("actions", given)
    if not isinstance(given, str):
        raise DataError(where, ": give an expression such as case when thrust > 0 then 'climb' else 'descend' end")
    term = _parsed(where, given)
    if term.kind not in ("text", "any"):
        raise DataError(where, ": the expression must give the names of actions, as texts in single quotes")
    return term


def _action_names(graph: Graph, given: Mapping[str, str] | Sequence[str]) -> dict[str, int]:
    """Return the positions of actions by what a log calls them; the actions of a list have numbers there."""
    table = given if isinstance(given, Mapping) else {str(number): name for number, name in enumerate(given)}
    for called, name in table.items():
        if name not in graph.action_names:
            actions = ", ".join(map(repr, graph.action_names))
            problem = f": the model has no action {name!r}, only {actions}"
            raise DataError(Option("actions", {called: name} if isinstance(given, Mapping) else given), problem)
    if not table:
        raise DataError(Option("actions", given), ": name at least one action, or leave it out")
    return {str(called).strip(): graph.action_names.index(name) for called, name in table.items()}


def _parsed(where: Option, text: str) -> MappingTerm:
    try:
        return parse_mapping(text)
    except DataError as error:
        raise DataError(where, f": {error}") from None


def _edges(where: Option, given: Any) -> tuple[float, ...]:
    """Return the edges of bins, which ascend."""
    is_list = isinstance(given, list | tuple | np.ndarray | range)
    numbers = [*given] if is_list else []
    if len(numbers) < 2 or not all(_is_number(each) for each in numbers):
        raise DataError(
            where, ": give an expression, or the edges of bins: at least two numbers, such as [0, 20, 60, 100]"
        )
    edges = tuple(float(each) for each in numbers)
    for lower, upper in pairwise(edges):
        if not lower < upper:
            raise DataError(where, f": the edges of bins ascend, but {upper:g} comes after {lower:g}")
    return edges


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return is_number and abs(float(value)) < OUTSIDE  # nan is not below
