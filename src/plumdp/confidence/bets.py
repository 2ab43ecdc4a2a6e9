"""Half-spaces of parameters from bets on outcomes: one for each side of a direction that was chosen by a pilot.

A bet gives every outcome j of a class a factor e[j] > 0, fixed by the pilot. With Z[r](v) = Σ f[j](v) e[j] over the
outcomes of class r, a visit multiplies the fortune by e[j] / Z[r](θ), which has expectation one at the true point θ,
whatever chose the action. So Σ K[j] ln e[j] - Σ N[r] ln Z[r](θ), with K outcomes and N visits after the pilot, stays
below ln(1 / error) at all times with probability at least 1 - error (Ville 1939). As ln Z <= Z / Y - 1 + ln Y for every
Y > 0, this implies what is affine in the parameters, hence a half-space:

    Σ A[j] f[j](θ)  >=  Σ N[r] (1 - ln Y[r]) + Σ K[j] ln e[j] - ln(1 / error),    A[j] = N[r] e[j] / Y[r].

Y may depend on all data. Bets along I⁻¹ g, where g is the gradient of a value and I the information that the data will
have, make the half-space as narrow across g as any can be up to the factor between Chernoff's bound and a normal tail,
however many parameters there are (see the page "Certificates at the statistical limit").
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, inf, log, sqrt

import numpy as np

from plumdp.confidence.likelihood_table import LikelihoodTable, Outcomes
from plumdp.model.graph import FloatArray, IntArray, read_only
from plumdp.rounding import UNIT

LARGEST_BET = 0.5  # of the logarithm of a factor: beyond that the tangent and the plan lose more than bets gain
LEAST_PROBABILITY = 1e-9  # of an outcome that is bet on, at the estimate of the pilot
_LEAST_SLOPE = 1e-9  # part of a gradient in the span of the coefficients, relative to all of it: the rest is rounding


@dataclass(frozen=True, eq=False)
class Direction:
    """A direction of parameters to be narrow in: the gradient of a value, and the policy that has this value."""

    gradient: FloatArray  # (n_parameters)
    policy: IntArray | None = None  # (n_states)
    text: str = ""  # what has the value, in words


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """The points v with ``row @ v <= offset``: all points of the space at which the bets have not won too much."""

    row: FloatArray  # (n_parameters)
    offset: float
    text: str = ""


def place_bets(
    table: LikelihoodTable, point: FloatArray, information: FloatArray, gradient: FloatArray, *, error: float, side: int
) -> FloatArray | None:
    """Return the factor of each outcome, or None if no outcome depends on the parameters along the gradient.

    ``point`` is the pilot's estimate and ``information`` that of the data to come; ``side`` is +1 for bets that the
    value is larger than at the true point, which bound it from below, and -1 for the opposite.
    """
    basis, size = table.basis, float(np.abs(gradient).max(initial=0))
    if not 0 < size < inf:
        return None
    slope = basis.T @ (gradient / size)
    if np.abs(slope).max(initial=0) < _LEAST_SLOPE:
        return None
    step = np.linalg.solve(basis.T @ information @ basis, slope)
    step = basis @ step * (side * sqrt(-2 * log(error)) / sqrt(slope @ step))
    probability = table.values(point)[0]
    is_bet_on = table.is_class[table.group] & (probability > LEAST_PROBABILITY)
    bets = np.where(is_bet_on, table.coefficients @ step / np.where(is_bet_on, probability, 1.0), 0.0)
    return np.asarray(np.exp(bets.clip(-LARGEST_BET, LARGEST_BET)))


def half_space(
    table: Outcomes, seen: FloatArray, factors: FloatArray, *, near: FloatArray, error: float, text: str = ""
) -> HalfSpace:
    """Return the half-space that bets have left, given how often each outcome was seen after the pilot.

    ``near`` is the point at which the tangents to the logarithm are taken, such as the best estimate. The factors are
    taken exactly as these floats; whatever is rounded after that moves the offset outward. Each term is a product of
    counts, factors, coefficients, at most one quotient and one logarithm (good to two units), so that eight units of
    its size cover it, and sums have no rounding but their last. A visit whose bets are all one changes nothing.
    """
    visits = table.visits(seen)
    is_open = np.zeros(len(visits), dtype=np.bool_)
    is_open[table.group[factors != 1]] = True
    is_open &= visits > 0
    means = _tangent_points(table, factors, near)
    weights = np.where(is_open, visits / means, 0.0)[table.group] * factors
    row = -table.weighted_slopes(weights)
    visits, means = visits[is_open], means[is_open]
    won = seen * np.log(factors)
    needed = [*(visits * (1 - np.log(means))), *won, log(error), *(-weights * table.constants)]
    size = [*(visits * (1 + np.abs(np.log(means)))), *np.abs(won), -log(error), *(weights * table.sizes)]
    return HalfSpace(read_only(row), -fsum(needed) + 8 * UNIT * fsum(size), text)


def _tangent_points(table: Outcomes, factors: FloatArray, near: FloatArray) -> FloatArray:
    """Return Σ f e of each class at a point, kept between the least and the largest factor as at points of a space."""
    n = len(table.is_class)
    lowest, highest = np.full(n, np.inf), np.zeros(n)
    np.minimum.at(lowest, table.group, factors)
    np.maximum.at(highest, table.group, factors)
    means = np.bincount(table.group, table.values(near)[0] * factors, n)
    return np.clip(means, lowest, highest)
