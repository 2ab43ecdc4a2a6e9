"""The files of a model on disk, described by ``model.json``, so that a folder can be opened again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.edge import read_whole, write_whole
from plumdp.base.errors import ModelError
from plumdp.base.json_values import parsed
from plumdp.model.assemble import cut_space
from plumdp.model.check import check_with_terms
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable, terms_of
from plumdp.model.expressions.terms import polynomial_from, polynomial_terms, space_from, space_terms
from plumdp.model.graph import Graph, Levels, mapped, read_only
from plumdp.model.parametric import Lift, ParametricMDP, RewardStructure
from plumdp.model.space import ParameterSpace

DESCRIPTION = "model.json"
_FORMAT = "plumdp/stored-model/2"


@dataclass(frozen=True, eq=False)
class Description:
    """All of a stored model but its long arrays."""

    action_names: tuple[str, ...]
    space: ParameterSpace  # as it was declared
    polynomials: Sequence[Polynomial]
    rows: Graph  # a choice for each distinct row
    row_expression: npt.NDArray[np.int32]  # (n_transitions of rows)
    variables: tuple[str, ...]
    labels: tuple[str, ...]
    rewards: tuple[str, ...]  # those with rewards of states
    choice_rewards: tuple[str, ...]


def write_description(folder: Path, about: Description, types: Mapping[str, tuple[Any, int]]) -> None:
    """Write the description of the files of a folder, given the type and the number of elements of each."""
    rows = about.rows
    described = {
        "format": _FORMAT,
        "files": {name: (np.dtype(dtype).str, n) for name, (dtype, n) in types.items()},
        "action_names": about.action_names,
        "space": space_terms(about.space),
        "expressions": [polynomial_terms(f) for f in about.polynomials],
        "rows": [rows.first_choice.tolist(), rows.first_transition.tolist(), rows.action.tolist()],
        "row_expression": about.row_expression.tolist(),
        "row_states": {name: (values.dtype.str, values.tolist()) for name, values in rows.states.items()},
        **{part: getattr(about, part) for part in ("variables", "labels", "rewards", "choice_rewards")},
    }
    write_whole(folder / DESCRIPTION, json.dumps(described))


def open_stored(folder: Path) -> ParametricMDP:
    """Return the model in a folder, whose arrays are read when they are used."""
    try:
        description = parsed(read_whole(folder / DESCRIPTION))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder}: this is not the folder of a stored model ({error})") from None
    if not isinstance(description, dict) or description.get("format") != _FORMAT:
        raise ModelError(f"{folder}: {DESCRIPTION} is not a description of a stored model in the format {_FORMAT}")
    files = {name: _open(folder / f"{name}.bin", *about) for name, about in description["files"].items()}
    space = space_from(*description["space"])
    small = _distinct_rows(description, space)
    graph = Graph(
        files["first_choice"], files["first"], files["successor"], 0,
        {name: files[f"state.{i}"] for i, name in enumerate(description["variables"])}, files["action"],
        tuple(description["action_names"]), Levels(folder, np.asarray(files["first_state"])),
    )  # fmt: skip
    labels = {name: files[f"label.{i}"] for i, name in enumerate(description["labels"])}
    return ParametricMDP(
        graph, space, small.space, small.expressions, files["expression"], labels, _rewards(description, files), {},
        Lift(small, files["row"]),
    )  # fmt: skip


def _open(path: Path, dtype: str, n: int) -> npt.NDArray[Any]:
    expected = np.dtype(dtype).itemsize * n
    size = path.stat().st_size if path.is_file() else 0
    if size != expected:
        raise ModelError(f"{path}: the file has {size:,} bytes instead of {expected:,}: the model is not complete")
    return mapped(path, dtype, n)


def _distinct_rows(description: Mapping[str, Any], space: ParameterSpace) -> ParametricMDP:
    """Return the model of the distinct rows, whose probabilities are checked to sum to 1."""
    first_choice, first_transition, action = (read_only(np.array(part, dtype=np.int32)) for part in description["rows"])
    successor = read_only(np.arange(len(action), len(action) + first_transition[-1], dtype=np.int32))
    states = {
        name: read_only(np.array(values, dtype=dtype)) for name, (dtype, values) in description["row_states"].items()
    }
    graph = Graph(first_choice, first_transition, successor, 0, states, action, tuple(description["action_names"]))
    polynomials = [polynomial_from(*terms) for terms in description["expressions"]]
    terms = terms_of(polynomials)
    table = ExpressionTable.build(polynomials, space.names, terms)
    expression = read_only(np.array(description["row_expression"], dtype=np.int32))
    model = ParametricMDP(graph, space, cut_space(space, table), table, expression, {}, {}, {})
    issues = check_with_terms(model, terms)
    errors = [str(issue) for issue in issues if issue.severity == "error" and issue.kind != "deadlock"]
    if errors:
        raise ModelError("\n".join(errors))
    return model


def _rewards(description: Mapping[str, Any], files: Mapping[str, npt.NDArray[Any]]) -> dict[str, RewardStructure]:
    of_state = {name: files[f"reward.{i}"] for i, name in enumerate(description["rewards"])}
    of_choice = {name: files[f"choice_reward.{i}"] for i, name in enumerate(description["choice_rewards"])}
    return {name: RewardStructure(of_state.get(name), of_choice.get(name)) for name in {**of_state, **of_choice}}
