"""The summary of a model in numbers that ``plumdp info`` shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from plumdp.model.check import validate
from plumdp.model.parametric import ParametricMDP


def summarise(model: ParametricMDP) -> dict[str, Any]:
    """Return sizes, parameters, expressions, structure and issues of a model, ready for JSON.

    >>> from plumdp import case_study
    >>> facts = summarise(case_study("betting:25").model)
    >>> facts["states"], facts["expressions"]["total"], facts["structure"]["acyclic"]
    (3625, 1283, True)
    """
    graph, table, space = model.graph, model.expressions, model.space
    components = graph.component_sizes()
    return {
        "states": graph.n_states,
        "choices": graph.n_choices,
        "transitions": graph.n_transitions,
        "bytes": model.nbytes,
        "variables": {name: _range(values) for name, values in graph.states.items()},
        "initial_state": graph.describe_state(graph.initial_state),
        "actions": list(graph.action_names),
        "parameters": {
            name: [float(low), float(high)] for name, (low, high) in zip(space.names, space.bounds, strict=True)
        },
        "constraints": [f"{constraint} >= 0" for constraint in space.constraints],
        "expressions": {"total": len(table), "unknown": int(table.is_unknown.sum()), **_kinds(model)},
        "labels": {name: int(mask.sum()) for name, mask in model.labels.items()},
        "rewards": list(model.rewards),
        "structure": {
            "acyclic": bool(components[0] == 1),
            "components": len(components),
            "largest_component": int(components[0]),
        },
        "issues": [{"severity": i.severity, "kind": i.kind, "message": i.message} for i in validate(model)],
    }


def _kinds(model: ParametricMDP) -> dict[str, int]:
    """Return numbers about the unknown expressions: rows and probabilities of a table, or degrees of polynomials."""
    table = model.expressions
    kinds = {}
    if model.has_free_rows:
        rows = model.rows.n_choices[model.is_free_row]
        kinds = {"free": table.n_free, "free_rows": len(rows), "tied_choices": int(rows[rows > 1].sum())}
    if model.is_table:
        return kinds
    table = table.without_free()
    affine = int((table.is_unknown & table.is_affine).sum())
    return kinds | {"affine": affine, "degree": int(table.degree.max(initial=0))}


def _range(values: Any) -> list[Any]:
    if values.dtype.kind in "bU":
        return list(np.unique(values).tolist())
    return [int(values.min()), int(values.max())]
