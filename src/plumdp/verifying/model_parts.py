"""Writes for a checker what follows from the model alone: shares of the error, and the space."""

from __future__ import annotations

from typing import Any

import numpy as np

from plumdp.base.error_budget import ErrorBudget
from plumdp.model.expressions.polynomial import parameters
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace


def shares_part(budget: ErrorBudget) -> dict[str, str]:
    """Return the shares of the error that are spent if the model is right, by their names."""
    names = budget.__dataclass_fields__
    shares = {name: getattr(budget, name) for name in names if name != "graph_alone"}
    return {name: str(share) for name, share in shares.items() if share}


def space_part(space: ParameterSpace) -> list[str]:
    """Return affine polynomials that are at least zero on the space."""
    sides: list[Any] = []
    for name, (low, high) in zip(space.names, space.bounds, strict=True):
        (p,) = parameters(name)
        sides += [p - low, high - p]
    return [str(side) for side in (*sides, *space.constraints)]


def difference(one: ParametricMDP, other: ParametricMDP) -> str:
    """Return what differs first between two models, or nothing if they are the same."""
    parts, others = _parts(one), _parts(other)
    return next((name for name, part in parts.items() if not _same(part, others[name])), "")


def _parts(model: ParametricMDP) -> dict[str, Any]:
    learned = [(r.coin, r.expression, r.low, r.span, r.per_unit) for r in model.learned_rewards.values()]
    return {
        "graph": model.graph.fingerprint,
        "space": (model.declared_space, model.space),
        "expressions": (model.expressions.polynomials, model.expressions.n_free, model.expression),
        "labels": [*model.labels.items()],
        "rewards": [*((name, r.state, r.choice, r.learned is None) for name, r in model.rewards.items()), *learned],
        "constants": dict(model.constants),
    }


def _same(one: Any, other: Any) -> bool:
    """Return whether two parts are equal, where arrays are so if all of their entries are."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return one is not None and other is not None and np.array_equal(one, other)
    return bool(one == other)
