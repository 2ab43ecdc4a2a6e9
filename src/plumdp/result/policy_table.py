"""A policy as people read it: the values of the state variables, and the name of the action to take there."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.errors import DataError
from plumdp.model.graph import Graph, IntArray, own_array
from plumdp.model.policy import check_policy
from plumdp.model.text import html_table, number_of, one_line


@dataclass(frozen=True, eq=False)
class PolicyTable:
    """One action per state.

    >>> from plumdp import case_study
    >>> graph = case_study("betting:25").model.graph
    >>> policy = PolicyTable(graph, graph.first_choice[:-1])
    >>> policy.action(money=10, step=0)
    'bet0'
    """

    graph: Graph
    choice: IntArray  # (n_states): the number of the choice in the graph

    def __post_init__(self) -> None:
        chosen = check_policy(self.graph, self.choice)
        if chosen.dtype.kind == "f":
            raise DataError("a table has one action per state: give choice numbers, not probabilities")
        object.__setattr__(self, "choice", own_array(chosen, np.int32))

    def __repr__(self) -> str:
        names, uses = np.unique(self.graph.action[self.choice], return_counts=True)
        often = [f"{self.graph.action_names[names[i]]} in {uses[i]:,}" for i in np.argsort(-uses, kind="stable")[:4]]
        return one_line(self, f"{number_of(len(self), 'state')}: {', '.join(often)}{', …' if len(names) > 4 else ''}")

    def _repr_html_(self) -> str:
        columns = self.columns()
        rows = zip(*(values[:10].tolist() for values in columns.values()), strict=True)
        more = f"<p>{min(len(self), 10):,} of {number_of(len(self), 'state')}</p>"
        return html_table(rows, tuple(columns)) + more

    def __len__(self) -> int:
        return self.graph.n_states

    def action(self, **valuation: Any) -> str:
        """Return the name of the action in the state with the given values of its variables."""
        unknown = set(valuation) ^ set(self.graph.states)
        if unknown:
            raise DataError(f"the state variables are {', '.join(self.graph.states)}; give a value for each of them")
        is_meant = np.ones(self.graph.n_states, dtype=np.bool_)
        for name, value in valuation.items():
            is_meant &= self.graph.states[name] == value
        if not is_meant.any():
            given = ", ".join(f"{name}={value}" for name, value in valuation.items())
            raise DataError(f"the model has no state with {given}")
        return self.graph.action_names[int(self.graph.action[self.choice[int(np.argmax(is_meant))]])]

    def columns(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the state variables and the action as columns, one row per state."""
        names = np.array(self.graph.action_names, dtype=object)
        action_column = "action" if "action" not in self.graph.states else "chosen_action"
        return {**self.graph.states, action_column: names[self.graph.action[self.choice]]}

    def to_csv(self, path: str | Path) -> None:
        """Write one line per state: its variables, and the action."""
        columns = self.columns()
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
