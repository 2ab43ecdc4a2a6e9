"""Ranges of linear functions over a region, and slabs of a ball around it, in which expansions are closer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.base.rounding import SQUARES_UNDERFLOW, UNIT, UP
from plumdp.model.graph import FloatArray
from plumdp.region.ball import Ball
from plumdp.region.shapes import Region
from plumdp.solver.coupled.forms import Forms
from plumdp.solver.coupled.norms import full, lengths, packed, packed_norms

_MARGIN = 1e-9  # relative, of what encloses a slab: more than rounding if the slab is not too thin
_THIN = 1e-4
_SHARE = 0.5  # θ: with less, the ellipsoid is too long across the slab, with more, too wide along it


@dataclass(frozen=True)
class LinearRange:
    """Bounds on a linear function, and the share of rounding in them."""

    lower: float
    upper: float
    rounding: float = 0.0
    direction: FloatArray | None = None  # (d): about its gradient in the variables of the region, if that was asked


def linear_range(region: Region, ball: Ball, slope: FloatArray) -> LinearRange:
    """Return bounds on ``slope @ x`` over all x for which ``centre + factor @ x`` is a point of the region.

    For any direction g of the parameters, slope·x = g·(v - centre) + (slope - factorᵀ g)·x, where |x| <= 1.
    """
    length = float(np.sqrt((slope**2).sum())) * UP + SQUARES_UNDERFLOW
    direction = np.linalg.lstsq(ball.factor.T, slope, rcond=None)[0]
    if not np.isfinite(direction).all():
        return LinearRange(-length, length)
    n, d = len(slope), len(region.names)
    gamma = (n + 8) * UNIT
    mismatch = float(np.sqrt(((slope - ball.factor.T @ direction) ** 2).sum())) * UP
    size = float(np.linalg.norm(np.abs(ball.factor.T) @ np.abs(direction))) + length
    offset = float(direction @ ball.centre)
    slack = mismatch + gamma * (size + float(np.abs(direction) @ np.abs(ball.centre))) * UP + SQUARES_UNDERFLOW
    objectives = np.zeros((2, d))
    objectives[0, :n], objectives[1, :n] = direction, -direction
    least, most = region.minimise(objectives) * np.array([1.0, -1.0])
    slack += 4 * UNIT * float(abs(least) + abs(most) + abs(offset))
    lower, upper = max(float(least) - offset - slack, -length), min(float(most) - offset + slack, length)
    return LinearRange(lower, upper, slack, objectives[0])


@dataclass(frozen=True, eq=False)
class Slab:
    """The points x of the unit ball with ``low <= axis @ x <= high``, within the ellipsoid ``centre + factor @ y``.

    With m, a the middle and the half-width of the slab and ω the radius of its widest section, its points satisfy
    θ (axis·x - m)² / a² + (1 - θ) |x - (axis·x) axis|² / ω² <= 1 for every θ between 0 and 1.
    """

    axis: FloatArray  # (d), of length one
    low: float
    high: float
    section: float  # radius of the widest section
    centre: FloatArray  # (d)
    factor: FloatArray  # (d, d), symmetric


def slab_across(axis: FloatArray, low: float, high: float) -> Slab | None:
    """Return the slab of the unit ball between two planes.

    It is None if the slab is too thin for its ellipsoid to be proved.
    """
    # outward, so that neighbouring slabs leave no gap
    low, high = max(low - 1e-12, -1.0), min(high + 1e-12, 1.0)
    if not high - low >= _THIN:
        return None
    d, onto = len(axis), np.outer(axis, axis)
    nearest = 0.0 if low <= 0 <= high else min(low**2, high**2)
    section = float(np.sqrt(max(1 - nearest, 0.0)))
    along, across = (high - low) / 2, section
    if d > 1:
        along, across = along / np.sqrt(_SHARE), across / np.sqrt(1 - _SHARE)
    factor = (along * onto + across * (np.eye(d) - onto)) * (1 + _MARGIN)
    return Slab(axis, low, high, section * (1 + _MARGIN), (low + high) / 2 * axis, (factor + factor.T) / 2)


def halves(slab: Slab) -> list[Slab]:
    """Return both halves of a slab, or nothing if they are too thin."""
    middle = (slab.low + slab.high) / 2
    parts = slab_across(slab.axis, slab.low, middle), slab_across(slab.axis, middle, slab.high)
    return [part for part in parts if part is not None] if None not in parts else []


def forms_in(slab: Slab, forms: Forms) -> Forms:
    """Return the forms in the coordinates y of a slab's ellipsoid, x = centre + factor @ y.

    Their errors are those at the points x of the ball, plus rounding.
    """
    d = forms.dimension
    m, e = slab.centre, slab.factor
    curvature = full(forms.curvatures, d)
    turned = curvature @ m
    means = forms.means + forms.spreads @ m + turned @ m
    spreads = (forms.spreads + 2 * turned) @ e
    curvatures = forms.curvatures if forms.is_affine else packed(e @ curvature @ e)
    reach = (np.linalg.norm(m) + np.linalg.norm(e)) * UP
    size = np.abs(forms.means) + lengths(forms.spreads) * reach + packed_norms(forms.curvatures, d) * reach**2
    errors = forms.errors + (4 * d * d + 24) * UNIT * size * UP
    return Forms(means, spreads, curvatures, errors * UP, forms.tails, forms.lower, forms.upper)


def linear_range_in(slab: Slab, region: Region, ball: Ball, slope: FloatArray) -> LinearRange:
    """Return bounds on ``slope @ y`` over the points of a region that lie in a slab.

    For any q, slope·y = q·(x - centre) + (slope - factor q)·y. Over the region, q·x is as ``linear_range`` says. Over
    the slab, it is (q·axis) (axis·x) and what is left of q times the section.
    """
    length = float(np.sqrt((slope**2).sum())) * UP + SQUARES_UNDERFLOW
    q: FloatArray = np.linalg.solve(slab.factor, slope).astype(np.float64)
    size = float(np.linalg.norm(np.abs(slab.factor) @ np.abs(q))) + length + float(np.linalg.norm(q))
    slack = float(np.linalg.norm(slope - slab.factor @ q)) * UP + (8 * len(q) + 32) * UNIT * size
    whole = linear_range(region, ball, q)
    along = float(q @ slab.axis)
    across = float(np.linalg.norm(q - along * slab.axis)) * slab.section * (1 + _MARGIN)
    ends = along * slab.low, along * slab.high
    shift = float(q @ slab.centre)
    # the points are in the region and in the slab, so that both bounds hold
    lower = max(whole.lower, min(ends) - across) - shift - slack
    upper = min(whole.upper, max(ends) + across) - shift + slack
    return LinearRange(max(lower, -length), min(upper, length), whole.rounding + slack, whole.direction)
