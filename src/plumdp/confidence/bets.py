"""Makes half-spaces of parameters from bets on outcomes, one for each side of a direction that a pilot chose.

A bet gives every outcome j of a class a factor e[j] > 0, fixed by the pilot. With Z[r](v) = Σ f[j](v) e[j] over the
outcomes of class r, a visit multiplies the wealth by e[j] / Z[r](θ), which has expectation one at the true point θ,
whatever chose the action. So Σ K[j] ln e[j] - Σ N[r] ln Z[r](θ), with K outcomes and N visits after the pilot, stays
below ln(1 / error) at all times with probability at least 1 - error (Ville 1939). As ln Z <= Z / Y - 1 + ln Y for every
Y > 0, this implies an inequality that is affine in the parameters, hence a half-space:

    Σ A[j] f[j](θ)  >=  Σ N[r] (1 - ln Y[r]) + Σ K[j] ln e[j] - ln(1 / error),    A[j] = N[r] e[j] / Y[r].

Y may depend on all data. Bets along I⁻¹ g, where g is the gradient of a value and I the information that the data will
have, make the half-space as narrow across g as any can be up to the factor between Chernoff's bound and a normal tail,
however many parameters there are (see docs/proofs/bets.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum, inf, log
from typing import NamedTuple, TypeAlias

import numpy as np

from plumdp.base.linear_algebra import solve_nearly
from plumdp.base.rounding import UNIT, sum_once
from plumdp.confidence.likelihood_table import AffineOutcomes, LikelihoodTable
from plumdp.model.graph import FloatArray, IntArray, read_only

LARGEST_BET = 0.5  # limit on the logarithm of a factor; larger bets lose more by the tangent than they gain
LARGEST_SHARP_BET = 2.0  # the same where values vary little, so that such factors are seldom met
LEAST_PROBABILITY = 1e-9  # of an outcome that is bet on, at the estimate of the pilot
_LEAST_SLOPE = 1e-9  # part of a gradient in the span of the coefficients, relative to all of it; less is rounding


@dataclass(frozen=True, eq=False)
class Direction:
    """A direction in which a set of parameters is made narrow, the gradient of the value of a policy."""

    gradient: FloatArray  # (n_parameters)
    policy: IntArray | None = None  # (n_states)
    text: str = ""  # which value it is the gradient of, in words
    has_policies: bool = False  # whether policies belong to the question that it is chosen for


Directions: TypeAlias = Callable[[FloatArray], Sequence[Direction]]
"""A function from an estimate of the parameters to the directions that matter there."""


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """The points v with ``row @ v <= offset``, among them all points at which the bets have not won too much."""

    row: FloatArray  # (n_parameters)
    offset: float
    text: str = ""


def unit_steps(
    table: LikelihoodTable, information: FloatArray, gradients: FloatArray, near: FloatArray | None = None
) -> FloatArray:
    """Return I⁻¹ g / |g| in the norm of I⁻¹ for each I (…, d, d) and gradient g (J, d), or zero if no outcome changes.

    Steps are those near a point, if parameters are functions of others.
    """
    basis = table.basis if near is None else table.basis_near(near)
    size = np.abs(gradients).max(axis=1, initial=0.0, keepdims=True)
    is_finite = (size > 0) & (size < inf)
    slope = np.where(is_finite, gradients, 0.0) / np.where(is_finite, size, 1.0) @ basis
    slope[np.abs(slope).max(axis=1, initial=0.0) < _LEAST_SLOPE] = 0.0
    step = np.swapaxes(solve_nearly(basis.T @ information @ basis, slope.T), -1, -2)
    norm = np.sqrt(np.maximum((slope * step).sum(axis=-1, keepdims=True), 0.0))
    return np.asarray(np.where(norm > 0, step / np.where(norm > 0, norm, 1.0), 0.0) @ basis.T)


def factors_along(
    table: LikelihoodTable, point: FloatArray, steps: FloatArray, sharpness: FloatArray | None = None
) -> FloatArray:
    """Return the factors (m, n_outcomes) of bets that the true parameters differ from a point by each step (m, d).

    Where values are expected to vary less than coins, by a ``sharpness`` (n_groups), bets are larger.
    """
    probability, slopes = table.chances(point), np.array([table.coefficients @ step for step in steps])
    is_bet_on = table.is_class[table.group] & (probability > LEAST_PROBABILITY)
    sharp = np.ones(len(probability)) if sharpness is None else sharpness[table.group]
    bets = np.where(is_bet_on, sharp * slopes / np.where(is_bet_on, probability, 1.0), 0.0)
    largest = np.minimum(LARGEST_BET * np.sqrt(sharp), LARGEST_SHARP_BET)
    return np.asarray(np.exp(bets.clip(-largest, largest)))


def sharpness_of(table: AffineOutcomes, outcome_counts: FloatArray, mixed: FloatArray | None) -> FloatArray:
    """Return an estimate of how many times larger than that of values the variance of coins with their means is.

    It is one for groups (n_groups) without values, as ``mixed`` says (see ``Pooled``). One throw of a coin is added to
    what was seen, lest a few values that happen to be alike be taken for a law without variance.
    """
    if mixed is None or not mixed.any():
        return np.ones(len(table.is_class))
    n = np.maximum(table.visits(outcome_counts), 1.0)
    of_coins = (1 - np.bincount(table.group, outcome_counts**2, len(n)) / n**2) / 2  # with two sides
    share = np.where(mixed > 0, mixed / (n + 1) / np.where(mixed > 0, of_coins, 1.0), 0.0)
    return np.asarray(1 / np.maximum(1 - share, 1 / (n + 1)))


def sharpened(table: AffineOutcomes, outcome_counts: FloatArray, mixed: FloatArray | None) -> FloatArray:
    """Return counts of outcomes (n_outcomes) that weigh values by how little they vary, for estimates."""
    return np.asarray(outcome_counts * sharpness_of(table, outcome_counts, mixed)[table.group])


def log_gains(
    table: AffineOutcomes, outcome_counts: FloatArray, factors: FloatArray, mixed: FloatArray | None = None
) -> FloatArray:
    """Return lower bounds on the logarithms of what bets with these factors (..., n_outcomes) win, outcome by outcome.

    It is Σ count ln factor, where outcomes are all there is. If values x from 0 to 1 win e + x (e' - e), the sum of
    their logarithms is at least n ln e + (Σx / t) ln(1 + t (e' / e - 1)) with t = Σx² / Σx and e <= e', with equality
    for coins (Statement 5c). This falls in t, which is rounded up: sums, quotients and the difference are rounded once
    each. ``mixed`` is Σx - Σx² of each group.
    """
    gains = np.asarray(outcome_counts * np.log(factors))
    if mixed is None or not mixed.any():
        return gains
    if factors.ndim > 1:
        return np.array([log_gains(table, outcome_counts, each, mixed) for each in factors])
    group = np.flatnonzero(mixed)
    first = np.searchsorted(table.group, group)  # of two outcomes, as values have no more
    is_up = factors[first] <= factors[first + 1]
    low, high = np.where(is_up, first, first + 1), np.where(is_up, first + 1, first)
    sum_of_values = outcome_counts[high]
    t = np.clip(1 - mixed[group] / sum_of_values + 8 * UNIT, 8 * UNIT, 1.0)
    gains[low] = (outcome_counts[low] + sum_of_values) * np.log(factors[low])
    gains[high] = sum_of_values / t * np.log1p(t * ((factors[high] - factors[low]) / factors[low]))
    return gains


class PartialBets(NamedTuple):
    """Several bets on the same part of the data, and the share of each in the logarithm of a wealth."""

    shares: FloatArray  # (m)
    outcome_counts: FloatArray  # (n_outcomes)
    factors: FloatArray  # (m, n_outcomes)
    mixed: FloatArray | None = None  # (n_groups): of ``Pooled``, if there are values of rewards


def half_space(
    table: AffineOutcomes,
    outcome_counts: FloatArray,
    factors: FloatArray,
    *,
    near: FloatArray,
    error: float,
    text: str = "",
) -> HalfSpace:
    """Return the half-space that bets leave, given how often each outcome was seen after the pilot.

    ``near`` is the point at which the tangents to the logarithm are taken, such as the best estimate.
    """
    parts = [PartialBets(np.ones(1), outcome_counts, factors[None, :])]
    return common_half_space(table, parts, near=near, bound=-log(error), text=text)


def common_half_space(
    table: AffineOutcomes, parts: Sequence[PartialBets], *, near: FloatArray, bound: float, text: str = ""
) -> HalfSpace:
    """Return a half-space around all points at which the sum of ln wealth · share over parts is at most a bound.

    Shares and factors are exact as given, and all later rounding moves the offset outward. Each term is a product of
    shares, counts, factors, coefficients, at most one quotient and one logarithm, so that sixteen units of its size
    cover it, and one more for each bet that weights are summed over. Other sums are rounded once. A visit
    whose bets are all one changes nothing.
    """
    n_bets = [len(part.shares) for part in parts]
    share, factors = (
        np.concatenate(each) for each in ([part.shares for part in parts], [part.factors for part in parts])
    )
    visits = np.repeat([table.visits(part.outcome_counts) for part in parts], n_bets, axis=0)
    is_open = (table.by_group(factors != 1) > 0) & (visits > 0)
    means = _tangent_points(table, factors, table.chances(near))
    per_visit = share[:, None] * np.where(is_open, visits / means, 0.0)
    weights = (per_visit[:, table.group] * factors).sum(axis=0)
    visits_bet_on = (share[:, None] * visits)[is_open]
    gains = [each.shares[:, None] * log_gains(table, each.outcome_counts, each.factors, each.mixed) for each in parts]
    terms = [np.array([-bound]), visits_bet_on, -visits_bet_on * np.log(means[is_open]), *map(np.ravel, gains)]
    constants = np.concatenate([*terms, -weights * table.constants])
    size = np.concatenate([*map(np.abs, terms), weights * table.sizes])
    # most outcomes were not seen in most stages; a larger offset keeps more points, which is safe
    outward = (16 + sum(n_bets)) * UNIT * float(sum_once(size[size != 0]))
    offset = -float(sum_once(constants[constants != 0])) + outward
    return HalfSpace(read_only(-table.weighted_slopes(weights)), offset, text)


def tangent_half_space(
    table: AffineOutcomes, outcome_counts: FloatArray, threshold: float, *, near: FloatArray, text: str = ""
) -> HalfSpace:
    """Return a half-space around all points of the space with a log-likelihood Σ count ln f of at least a threshold.

    It follows from ln f <= f / y - 1 + ln y for every y > 0, where y are the probabilities at the point ``near``. The
    offset is rounded outward as that of bets is.
    """
    is_seen = outcome_counts > 0
    values = np.where(is_seen, table.chances(near), 1.0)
    values = np.where(values > 0, values, 1.0)
    weights = np.where(is_seen, outcome_counts / values, 0.0)
    terms = np.concatenate([outcome_counts[is_seen], -outcome_counts[is_seen] * np.log(values[is_seen]), [threshold]])
    constants = np.concatenate([terms, -weights * table.constants])
    size = np.concatenate([np.abs(terms), weights * table.sizes])
    outward = 16 * UNIT * fsum(size.tolist())
    return HalfSpace(read_only(-table.weighted_slopes(weights)), -fsum(constants.tolist()) + outward, text)


def _tangent_points(table: AffineOutcomes, factors: FloatArray, values: FloatArray) -> FloatArray:
    """Return Σ f e (m, n_groups), given f at a point, between the least and the largest factor e as in the space."""
    means, group = table.by_group(values * factors), table.numbered(len(factors))
    lowest, highest = np.full(means.size, np.inf), np.zeros(means.size)
    np.minimum.at(lowest, group, factors.ravel())
    np.maximum.at(highest, group, factors.ravel())
    return np.clip(means, lowest.reshape(means.shape), highest.reshape(means.shape))
