"""A policy as people read it: the values of the state variables, and the name of the action to take there."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, require_kind, require_path
from plumdp.data.observing import Observe, Places
from plumdp.model.graph import Graph, IntArray, own_array
from plumdp.model.named_policy import action_column, choices_by_name
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.policy import check_policy
from plumdp.model.text import html_table, number_of, one_line
from plumdp.relaxation.interval_model import IntervalModel
from plumdp.result.policy_readers import POLICY_READERS, read_csv


@dataclass(frozen=True, eq=False)
class PolicyTable:
    """One action per state; called with an observation, it returns the name of the action to take.

    ``to_csv`` saves it, ``write_policy`` also in the formats of Storm and PRISM, and ``read_policy`` reads it again.

    >>> from plumdp import case_study
    >>> graph = case_study("betting:25").model.graph
    >>> policy = PolicyTable(graph, graph.first_choice[:-1])
    >>> policy.action(money=10, step=0), policy({"money": 10, "step": 0})
    ('bet0', 'bet0')
    >>> policy("10/0", observe=lambda text: tuple(map(int, text.split("/"))))
    'bet0'
    """

    graph: Graph
    choice: IntArray  # (n_states): the number of the choice in the graph

    def __post_init__(self) -> None:
        require_kind(self.graph, Graph, "PolicyTable takes the graph of a model, such as model.graph")
        chosen = check_policy(self.graph, self.choice)
        if chosen.dtype.kind == "f":
            raise DataError("a table has one action per state: give choice numbers, not probabilities")
        object.__setattr__(self, "choice", own_array(chosen, np.int32))

    @classmethod
    def from_actions(cls, graph: Graph, actions: Any, *, states: Any = None) -> PolicyTable:
        """Return the policy that takes the named action in each state.

        Parameters
        ----------
        actions
            A function of the state, which is a named tuple of its variables: it is asked in each state that has several
            actions, and returns the name of one. Or a dict from states to names; a state is a tuple of the values of
            its variables, in their order, or the value of the only one. Or a table, which is a data frame or a mapping
            of columns: one column for each state variable, and the column ``action``. Or one name, which is taken
            wherever there are several actions. States with one action may be left out; None stands for that action.
        states
            The states that a list or an array of names is for, in its order: a mapping of columns such as
            ``graph.states``, a data frame, or a list of states.

        >>> from plumdp import case_study
        >>> graph = case_study("betting:25").model.graph
        >>> PolicyTable.from_actions(graph, lambda s: "bet0" if s.money < 5 else "bet5").action(money=10, step=0)
        'bet5'
        """
        return cls(graph, choices_by_name(graph, actions, states))

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

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.choice, dtype=dtype) if copy else np.asarray(self.choice, dtype=dtype)

    def __call__(self, observation: Any, *, observe: Observe | None = None) -> str:
        """Return the name of the action to take after an observation.

        The observation is a mapping of the state variables, or the value of the only one, unless ``observe`` makes
        state variables of it, as in ``sample_env``.
        """
        state = Places(self.graph, observe, self._known).state(observation, "policy")
        return self.graph.action_names[int(self.graph.action[self.choice[state]])]

    @cached_property
    def _known(self) -> dict[Any, int]:
        """The states of valuations that were looked up before."""
        return {}

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
        return {**self.graph.states, action_column(self.graph): names[self.graph.action[self.choice]]}

    def to_csv(self, path: str | Path) -> None:
        """Write one line per state: its variables, and the action."""
        write_columns(path, self.columns())


def write_columns(path: str | Path, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write columns of equal length as a CSV file, with their names in the first line."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))


def read_policy(model: ParametricMDP | IntervalModel | Graph, path: str | Path) -> PolicyTable:
    """Return the policy in a file, for a model with the same states.

    Parameters
    ----------
    path
        A CSV file such as ``PolicyTable.to_csv`` writes: a column for each state variable and one for the action, and a
        line for each state, in any order. A file that ends in ``.txt`` is PRISM's list of actions, ``(0,1):north`` for
        each state; one that ends in ``.json`` is a scheduler of Storm. States with one action may be left out.

    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import case_study
    >>> graph = case_study("betting:25").model.graph
    >>> with TemporaryDirectory() as folder:
    ...     PolicyTable(graph, graph.first_choice[:-1]).to_csv(Path(folder) / "policy.csv")
    ...     read_policy(graph, Path(folder) / "policy.csv").action(money=10, step=0)
    'bet0'
    """
    if not isinstance(model, Graph | IntervalModel):
        require_model("read_policy", model)
    require_path("read_policy", path)
    graph = model if isinstance(model, Graph) else model.graph
    reader = POLICY_READERS.get(Path(path).suffix.lower(), read_csv)
    return PolicyTable(graph, reader(path, graph))
