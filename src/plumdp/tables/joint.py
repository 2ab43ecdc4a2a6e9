"""Bounds on how far the true values are from those of the frequencies, over all rows together.

Row by row, many rows that are a little off add up as if all were off at once. In the norm ‖d‖² = Σ (σ(D) / unit)² they
add up as independent ones do: D = -G δ, the part of δ that goes with σ(V̂) lies in the ball, and the part that goes with
σ(D) is at most β σ(D) in each row. So ‖d‖ <= radius · first + far + second · ‖d‖, with norms of G that ``eigenvalues``
proves, and if second < 1, ‖d‖ <= (radius · first + far) / (1 - second).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumdp.model.graph import BoolArray, FloatArray, Indices
from plumdp.tables.contraction import Contraction
from plumdp.tables.eigenvalues import largest_norm

_CORES = (0.2, 1.0)  # rows with a larger relative error count by the sum of their sizes
_LEAST_UNIT = 1e-3  # of the mean
_MIXED = 0.1  # share of the contraction's own norm in that of a weight
_UP = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class Joint:
    """A bound on the norm of σ(D) / unit over all known rows, by rows of the core."""

    near: Contraction
    core: BoolArray  # (n)
    unit: FloatArray  # (n)
    relative: float

    def functional(self, weight: FloatArray) -> float:
        """Return a bound on |Σ weight · δ|: the largest parts row by row, the others by the ball and this norm."""
        near, rows = self.near, self.near.rows
        in_ball = np.where(rows.in_ball, np.abs(weight), 0.0)
        of_values = in_ball * rows.mu * near.of_values / np.sqrt(near.visits)
        of_deviation = in_ball * np.where(rows.in_ball, rows.beta, 0.0) * self.unit

        def by_ball(rest: Indices) -> float:
            first, second = (float(np.linalg.norm(each[rest])) for each in (of_values, of_deviation))
            return rows.radius * first + self.relative * second

        return near.partly_by_rows(weight, by_ball)

    def square(self, weight: FloatArray) -> float:
        """Return a bound on Σ weight · (variance of discounted D ahead, by the frequencies, + δ²), of known rows."""
        if not weight.any():
            return 0.0
        near, rows = self.near, self.near.rows
        spread = self._norm(near.frequency, weight)
        of_reference = self._norm(near.reference.probability, weight)
        # a contraction in a norm close to that of the weight itself
        bent = weight * rows.psi
        inner = bent + _MIXED * float((bent * self.unit**2).mean()) / self.unit**2
        first, second = _norms(near, near.reference.probability, inner, self.core, 1 / np.sqrt(inner))
        if second < 1:
            own = (rows.radius * first + _far(near, near.reference.probability, inner, self.core)) / (1 - second)
            spread, of_reference = min(spread, own), min(of_reference, own)
        beta = np.where(self.core, rows.beta, 0.0)
        sizes = np.where(self.core, beta * near.of_values + near.rounding, near.size)
        mean = float(np.sqrt((weight * sizes**2).sum())) + of_reference * float(beta.max(initial=0.0))
        mean = min(mean, float(np.sqrt((weight * near.size**2).sum())))
        return (spread**2 + mean**2) * _UP

    def _norm(self, probability: FloatArray, weight: FloatArray) -> float:
        near = self.near
        first, second = _norms(near, probability, weight, self.core, self.unit)
        return (near.rows.radius * first + _far(near, probability, weight, self.core) + second * self.relative) * _UP


def joined(near: Contraction) -> Joint | None:
    """Return the bound in the norm of all known rows, with the sharper bounds of single rows that follow, or None."""
    rows, probability = near.rows, near.reference.probability
    if not rows.in_ball.any():
        return None
    mean = np.sqrt(np.average(near.of_values**2, weights=near.visits * near.is_known + 1e-9))
    unit = np.maximum(near.of_values, _LEAST_UNIT * mean)
    weight = np.where(near.is_known, 1 / unit**2, 0.0)
    best: Joint | None = None
    for most in _CORES:
        core = rows.in_ball | (near.is_known & near.table.is_free & (rows.beta <= most))
        first, second = _norms(near, probability, weight, core, unit)
        if not second < 1:
            continue
        relative = (rows.radius * first + _far(near, probability, weight, core)) / (1 - second) * _UP
        if best is None or relative < best.relative:
            best = Joint(near, core, unit, float(relative))
    if best is None:
        return None
    deviation = np.where(near.is_known, np.minimum(near.deviation, best.relative * unit), near.deviation)
    return replace(best, near=replace(near, deviation=deviation))


def _norms(
    near: Contraction, probability: FloatArray, weight: FloatArray, core: BoolArray, unit: FloatArray
) -> tuple[float, float]:
    """Return bounds on the norms of what the ball, and what σ(D) / unit in the core, contribute to D."""
    of_ball = np.where(near.rows.in_ball, near.rows.mu * near.of_values / np.sqrt(near.visits), 0.0)
    of_core = np.where(core, near.rows.beta, 0.0) * unit
    return (
        largest_norm(near, probability, weight, of_ball * _UP),
        largest_norm(near, probability, weight, of_core * _UP),
    )


def _far(near: Contraction, probability: FloatArray, weight: FloatArray, core: BoolArray) -> float:
    """Return a bound on the norm of what other rows contribute, by the sum of their sizes."""
    beta = np.where(core, near.rows.beta, 0.0)
    in_core = np.minimum(near.size, beta * near.of_values * _UP + near.rounding)
    rest = np.where(near.rows.in_ball, near.rounding, np.where(core, in_core, near.size))
    above = near.equations.above(rest)
    if above is None:
        return np.inf
    ahead = near.table.ahead(above + near.slack, closed=0.0)
    total = (weight[near.table.owner] * probability * ahead**2).sum()
    return float(near.table.discount * np.sqrt(total)) * _UP
