"""L1 balls of whole rows, one for each class of tied rows.

The sum of |probability - share of the visits| over the outcomes of a row is at most the radius of its class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plumdp.base.error_budget import equal_parts
from plumdp.base.rounding import UNIT, UP
from plumdp.confidence.bets import HalfSpace
from plumdp.confidence.sets import Guarantee, require_error
from plumdp.confidence.tied_rows import TiedRows, find_tied_rows
from plumdp.data.counts import CountArray, TransitionCounts, require_same_graph
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.graph import FloatArray, Indices, IntArray, owners, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import float_above, float_below


@dataclass(frozen=True, eq=False)
class L1Balls:
    """L1 balls that hold all at once with probability at least 1 - ``error``.

    Class ``c`` has the outcomes ``first[c]`` up to ``first[c + 1]``. ``lower`` and ``upper`` are what follows for
    single expressions: as shares and probabilities both sum to one, no outcome is off by more than half a radius.
    """

    outcomes: tuple[Polynomial, ...]  # (n_outcomes): the probability of each
    first: IntArray  # (n_classes + 1)
    shares: FloatArray  # (n_outcomes)
    trials: CountArray  # (n_classes)
    radius: FloatArray  # (n_classes): 2 without trials, which says nothing
    lower: FloatArray  # (n_expressions)
    upper: FloatArray  # (n_expressions)
    error: float
    method: str
    guarantee: Guarantee

    @property
    def intervals(self) -> tuple[FloatArray, FloatArray]:
        """The lower and the upper bound of each expression."""
        return self.lower, self.upper

    def half_spaces(self, names: tuple[str, ...]) -> tuple[HalfSpace, ...]:
        """Return none: no picture draws them."""
        return ()

    def widened(self, misfit: float) -> None:
        """Return None: nothing is proved for rows that are off."""


def row_bounds(model: ParametricMDP, counts: TransitionCounts, *, error: float = 0.001) -> L1Balls:
    """Return an L1 ball for each class of tied rows, at an equal share of the error.

    Weissman's radius (2003) is for numbers of visits that were fixed beforehand, as in independent samples. All others
    have Dirichlet's, which holds at all times, however the data were sampled.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("engagement:10")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=study.max_steps)
    >>> bounds = row_bounds(study.model, counts)
    >>> bounds.method, bounds.guarantee
    ('L1 balls, Dirichlet mixture', 'finite-sample, anytime')
    """
    require_error(error)
    require_same_graph(model.graph, counts.graph)
    radius_of, method, guarantee = _FIXED if counts.sampling == "independent" else _ANYTIME
    rows = find_tied_rows(model)
    trials, successes = rows.pool(counts)
    sizes = np.diff(rows.first)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(np.repeat(trials, sizes) > 0, successes / np.repeat(trials, sizes), 0.0)
    radius = radius_of(successes, trials, rows.first, equal_parts(error, len(trials)))
    radius = np.where(trials > 0, np.minimum(radius * UP + 4 * sizes * UNIT, 2.0), 2.0)
    lower, upper = _by_expression(model, rows, shares, np.repeat(radius, sizes))
    return L1Balls(
        rows.outcomes, rows.first, read_only(shares), trials, read_only(radius), lower, upper, error, method, guarantee,
    )  # fmt: skip


def weissman(successes: npt.ArrayLike, trials: npt.ArrayLike, first: Indices, error: float) -> FloatArray:
    """Return sqrt(2 (ln(2^k - 2) + ln(1 / error)) / N) for each class: N visits with k outcomes, N fixed beforehand.

    The L1 distance is twice the largest excess over the 2^k - 2 sets of outcomes that can be off, and each is off by
    more than half the radius with a probability of at most exp(-N radius² / 2) (Weissman et al. 2003).
    """
    k = np.diff(first)
    n = np.maximum(np.asarray(trials, dtype=np.float64), 1)
    radius: FloatArray = np.sqrt(2 * (k * np.log(2) + np.log1p(-(2.0 ** (1 - k))) - np.log(error)) / n)
    return radius


def dirichlet(successes: npt.ArrayLike, trials: npt.ArrayLike, first: Indices, error: float) -> FloatArray:
    """Return the radius that holds at all times: from the average likelihood under Dirichlet's prior with parameters ½.

    By Ville's inequality, N KL(shares, probabilities) is never above the largest log-likelihood less the average one's,
    plus ln(1 / error), except with probability ``error``; and the L1 distance is at most sqrt(2 KL) (Pinsker).
    """
    from scipy.special import gammaln, xlogy

    k, n = np.diff(first), np.maximum(np.asarray(trials, dtype=np.float64), 1)
    seen, of_class = np.asarray(successes, dtype=np.float64), owners(first)
    best, average = xlogy(seen, seen / n[of_class]), gammaln(seen + 0.5) - gammaln(0.5)
    whole = gammaln(k / 2) - gammaln(n + k / 2)
    regret = np.bincount(of_class, best - average, len(k)) - whole
    rounding = 1e-14 * (np.bincount(of_class, np.abs(best) + np.abs(average), len(k)) + np.abs(whole))
    radius: FloatArray = np.sqrt(2 * (regret + rounding - np.log(error)) / n)
    return radius


_FIXED = weissman, "L1 balls, Weissman", Guarantee.FIXED
_ANYTIME = dirichlet, "L1 balls, Dirichlet mixture", Guarantee.ANYTIME


def _by_expression(
    model: ParametricMDP, rows: TiedRows, shares: FloatArray, radius: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the bounds that the balls imply for each expression, rounded outward."""
    table = model.expressions
    lower, upper = np.zeros(len(table)), np.ones(len(table))
    for f in np.flatnonzero(~table.is_unknown):
        lower[f], upper[f] = float_below(table.polynomials[f].constant), float_above(table.polynomials[f].constant)
    of = rows.expression >= 0
    reach = radius[of] / 2 + 4 * UNIT
    np.maximum.at(lower, rows.expression[of], (shares[of] - reach) / rows.multiple[of])
    np.minimum.at(upper, rows.expression[of], (shares[of] + reach) / rows.multiple[of])
    return read_only(lower), read_only(upper)
