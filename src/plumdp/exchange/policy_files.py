"""Writes policies to files, in our own tables, in the formats of Storm and PRISM, in Python and as rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from plumdp.base.combinations import Trait, refuse
from plumdp.base.edge import write_whole
from plumdp.base.errors import DataError
from plumdp.exchange.write_intervals import text_column
from plumdp.model.graph import Graph
from plumdp.model.policy import policy_weights
from plumdp.result.policy_table import PolicyTable

_KEEPS = "keeps memory; write .csv or .json"


def write_policy(policy: PolicyTable, path: str | Path) -> None:
    """Write a policy in the format that the file's name ends in.

    Parameters
    ----------
    policy
        The policy of a certificate, or another table.
    path
        The file: ``.csv`` is a table with state variables and action, ``.txt`` PRISM's list of actions (``(0,1):north``
        for each state), ``.json`` a scheduler as Storm writes it, ``.py`` a function, and ``.rules`` rules for people.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import case_study
    >>> graph = case_study("betting:5").model.graph
    >>> with TemporaryDirectory() as folder:
    ...     write_policy(PolicyTable(graph, graph.first_choice[:-1]), Path(folder) / "policy.txt")
    ...     print((Path(folder) / "policy.txt").read_text().splitlines()[0])
    (10,0):bet0
    """
    policy_writer(path)(policy, Path(path))


def policy_writer(path: str | Path) -> Callable[[PolicyTable, Path], None]:
    """Return the function that writes a file with this name."""
    writer = POLICY_WRITERS.get(Path(path).suffix.lower())
    if writer is None:
        raise DataError(f"{path}: policies are written to files that end in {', '.join(POLICY_WRITERS)}")
    return writer


def _write_list(policy: PolicyTable, path: Path) -> None:
    draws, has_memory = policy.weights is not None, policy.graph.memory is not None
    refuse({Trait.LIST, draws and Trait.DRAWS, has_memory and Trait.MEMORY}, str(path))
    *_, actions = policy.columns().values()
    states = zip(*(text_column(path, name, policy.graph) for name in policy.graph.states), strict=True)
    lines = [f"({','.join(state)}):{action}\n" for state, action in zip(states, actions.tolist(), strict=True)]
    write_whole(path, "".join(lines))


def _write_scheduler(policy: PolicyTable, path: Path) -> None:
    if not policy.graph.n_transitions:
        raise DataError(
            f"{path}: a scheduler has the numbers of the model's choices, which a result alone does not have; "
            "give the model, read_result(folder, model), or write .csv"
        )
    graph, weights = policy.graph, policy_weights(policy.graph, policy)
    memory, taken = graph.memory, np.flatnonzero(weights)
    index = taken if memory is None else memory.choice[taken]
    places = _places(graph)
    choices: list[list[dict[str, Any]]] = [[] for _ in range(len(policy))]
    for choice, number, state, share in zip(
        taken.tolist(), index.tolist(), graph.state_of_choice()[taken].tolist(), weights[taken].tolist(), strict=True
    ):
        label = graph.action_names[graph.action[choice]]
        entry = {"index": number, "labels": [label] if label else [], "prob": share}
        if memory is not None:
            successors = graph.successor[graph.transitions_of(np.array([choice]))].tolist()
            entry["memory-updates"] = [{"s'": places[to]["s"], "m'": places[to]["m"]} for to in successors]
        choices[state].append(entry)
    entries = [{"c": c, **place} for c, place in zip(choices, places, strict=True)]
    write_whole(path, json.dumps(entries, indent=1) + "\n")


def _places(graph: Graph) -> list[dict[str, Any]]:
    """Return each state as a scheduler has it: the values of its variables, and the memory if there is some."""
    memory = () if graph.memory is None else graph.memory.names
    names = [name for name in graph.states if name not in memory]
    rows = zip(*(graph.states[name].tolist() for name in names), strict=True)
    states = [{"s": dict(zip(names, row, strict=True))} for row in rows]
    if not memory:
        return states
    return [state | {"m": value} for state, value in zip(states, graph.states[memory[0]].tolist(), strict=True)]


POLICY_WRITERS: Mapping[str, Callable[[PolicyTable, Path], None]] = {
    ".csv": PolicyTable.to_csv,
    ".txt": _write_list,
    ".json": _write_scheduler,
    ".py": lambda policy, path: write_whole(path, policy.to_python()),
    ".rules": lambda policy, path: write_whole(path, policy.to_rules()),
}
