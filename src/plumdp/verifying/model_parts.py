"""Writes for a checker what follows from the model alone: shares of the error, and the space."""

from __future__ import annotations

from typing import Any

from plumdp.base.error_budget import ErrorBudget
from plumdp.model.expressions.polynomial import parameters
from plumdp.model.space import ParameterSpace


def shares_part(budget: ErrorBudget) -> dict[str, str]:
    """Return the shares of the error that are spent if the model is right, by their names."""
    return {share.name: str(share.fraction) for share in (*budget.of_set, *budget.beside) if share.fraction}


def space_part(space: ParameterSpace) -> list[str]:
    """Return affine polynomials that are at least zero on the space."""
    sides: list[Any] = []
    for name, (low, high) in zip(space.names, space.bounds, strict=True):
        (p,) = parameters(name)
        sides += [p - low, high - p]
    return [str(side) for side in (*sides, *space.constraints)]
