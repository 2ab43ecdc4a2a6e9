"""Coordinates for a set of parameters, and likelihoods as sources of tangents. All of it is a proposal, in floats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from flint import fmpz_mat

from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.model.graph import FloatArray

_MOST_AT_ONCE = 6  # parameters, all of which may be coordinates

Coordinates: TypeAlias = tuple[FloatArray, list[list[int]]]
"""A basis (d, k) of the directions that a cube has, and whole vectors that span the others."""


def as_float(number: Any) -> float:
    """Return a ball or a fraction as a float that is close to it."""
    return float(number.mid()) if hasattr(number, "mid") else int(number.p) / int(number.q)


@dataclass(frozen=True)
class LikelihoodForm:
    """A likelihood whose logarithm is at least a threshold, as a source of tangents."""

    table: LikelihoodTable
    seen: FloatArray
    threshold: float
    start: FloatArray  # (d): about where it is largest

    def value(self, point: FloatArray) -> float:
        """Return how far the logarithm of the likelihood is above the threshold."""
        is_seen = self.seen > 0
        f = self.table.values(point)[0][is_seen]
        return float(self.seen[is_seen] @ np.log(f)) - self.threshold if (f > 0).all() else -np.inf

    def curvature(self) -> FloatArray:
        """Return minus the second derivatives (d, d) about where it is largest."""
        is_seen = self.seen > 0
        slopes = self.table.coefficients[is_seen] / self.table.values(self.start)[0][is_seen][:, None]
        return np.asarray(slopes.T @ (self.seen[is_seen][:, None] * slopes))


def idle_directions(table: LikelihoodTable) -> list[list[int]]:
    """Return whole vectors that span the directions in which no outcome changes, exactly."""
    d = len(table.names)
    distinct = {tuple(f.affine_terms()[1].get(name, 0) for name in table.names) for f in table.outcomes}
    rows = [_whole(row) for row in sorted(distinct) if any(row)]
    if not rows:
        return np.eye(d, dtype=int).tolist()
    kernel, nullity = fmpz_mat(rows).nullspace()
    return [[int(kernel[i, j]) for i in range(d)] for j in range(nullity)]


def _whole(row: tuple[Any, ...]) -> list[int]:
    scale = int(np.lcm.reduce([int(x.denominator) for x in row if x] or [1]))
    return [int(x * scale) for x in row]


def deepest_point(rows: FloatArray, offsets: FloatArray) -> FloatArray:
    """Return the centre of a largest ball within half-spaces ``rows @ v <= offsets``."""
    from scipy.optimize import linprog

    widths = np.linalg.norm(rows, axis=1, keepdims=True)
    found = linprog(
        np.append(np.zeros(rows.shape[1]), -1.0),
        A_ub=np.hstack([rows, widths]),
        b_ub=offsets,
        bounds=(None, None),
    )
    return np.zeros(rows.shape[1]) if found.x is None else np.asarray(found.x[:-1])


def coordinates_of(table: LikelihoodTable, *, is_whole: bool) -> list[Coordinates]:
    """Return a basis of the directions in which outcomes change, with the others; and, if there are such, all at once.

    The space may cut across directions in which no outcome changes, so that its sides matter in all of them. If the
    likelihood does not have all outcomes, it does not say in which directions these change.
    """
    (d, k), idle = table.basis.shape, idle_directions(table)
    everything: Coordinates = np.eye(d), []
    if not is_whole and k < d:
        return [everything]
    return [(table.basis, idle), *[everything] * (0 < k < d <= _MOST_AT_ONCE)]
