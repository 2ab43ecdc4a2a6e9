"""L1 balls of whole rows, one for each class of tied rows.

The sum of |probability - share of the visits| over the outcomes of a row is at most the radius of its class.

Shares and probabilities both sum to one. So an L1 ball says that no set of outcomes has a probability
that is off by more than half the radius, which is one interval for each of 2^k sets. At a given point the set that is
off most is known at once: the outcomes that are more probable there than their shares. So we start with the whole space
and take in the worst set at each vertex, until no vertex is off anywhere. The region is then the intersection of all
balls, and before that it contains it, so that stopping early is sound. With products of parameters, vertices are points
of parameters and products (see ``lift``), and the start is some single outcomes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from plumdp.base.error_budget import equal_parts
from plumdp.base.rounding import UNIT, UP
from plumdp.base.vocabulary import Guarantee, Sets
from plumdp.confidence.bets import HalfSpace
from plumdp.confidence.sets import Constraint, Counted, Evidence, require_error, whole_set
from plumdp.confidence.tied_rows import TiedRows, find_tied_rows
from plumdp.data.counts import CountArray, TransitionCounts, require_same_graph
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, Indices, IntArray, owners, owners_of, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace, float_above, float_below
from plumdp.region.build import build_region
from plumdp.region.conflict import Conflict
from plumdp.region.find import REGIONS
from plumdp.region.half_spaces import affine_forms, in_variables
from plumdp.region.shapes import Polytope


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

    def widened(self, by: float) -> None:
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


_TOLERANCE = 1e-10  # balls that a vertex misses by less count as met
_MAX_ROUNDS, _MAX_LIFTS = 100, 10  # without and with products of parameters
_FOR_ALL = 9  # variables; with more, there are too many vertices to look at all of them
_MAX_VERTICES = 2000  # that are looked at in a round
_FIRST = 300  # single outcomes to start with

OutcomeSet = tuple[int, tuple[int, ...]]  # a class, and some of its outcomes, whose probability has an interval


def build_l1_region(space: ParameterSpace, bounds: L1Balls) -> Polytope | Conflict:
    """Return all points of the space that lie in the L1 ball of every class of rows, or a conflict if there is none.

    With products of parameters it is a polytope of parameters and products around these points.

    >>> from plumdp import case_study, simulate
    >>> from studies.l1_balls import row_bounds
    >>> study = case_study("engagement:10")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=study.max_steps)
    >>> region = build_l1_region(study.model.space, row_bounds(study.model, counts))
    >>> bool((region.lower <= region.upper).all())
    True
    """
    table = ExpressionTable.build(bounds.outcomes, space.names)
    is_affine = bool(table.is_affine.all())
    outcome_sets = dict.fromkeys(() if is_affine else _first_cuts(bounds, table))
    region = build_region(space, *_intervals(bounds, tuple(outcome_sets)))
    for _ in range(_MAX_ROUNDS if is_affine else _MAX_LIFTS):
        if isinstance(region, Conflict):
            break
        balls = _Balls(bounds, *affine_forms(in_variables(table, region.names)))
        new = dict.fromkeys(
            outcome_set for vertex in _vertices(region, balls.matrix) for outcome_set in balls.worst_at(vertex)
        )
        if new.keys() <= outcome_sets.keys():  # no vertex is off by more: this is the intersection of all balls
            break
        outcome_sets |= new
        region = build_region(space, *_intervals(bounds, tuple(outcome_sets)))
    return region


def _first_cuts(bounds: L1Balls, table: ExpressionTable) -> list[OutcomeSet]:
    """Return some single outcomes, among them one with each product, so that all products become variables."""
    with_product = owners_of(table.first_term, np.unique(table.monomial, return_index=True)[1])
    evenly = np.arange(0, len(table), -(-len(table) // _FIRST))
    chosen = np.union1d(with_product, evenly)
    return [(int(c), (int(j),)) for c, j in zip(owners_of(bounds.first, chosen), chosen, strict=True)]


def _intervals(
    bounds: L1Balls, outcome_sets: tuple[OutcomeSet, ...]
) -> tuple[list[Polynomial], FloatArray, FloatArray]:
    """Return the probabilities of sets of outcomes, and their bounds, rounded outward."""
    sums = [sum((bounds.outcomes[j] for j in outcomes), Polynomial(0)) for _, outcomes in outcome_sets]
    shares = np.array([bounds.shares[list(outcomes)].sum() for _, outcomes in outcome_sets])
    # outward, by more than the rounding of the sum of shares
    reach = np.array([bounds.radius[c] / 2 + (len(outcomes) + 4) * UNIT for c, outcomes in outcome_sets])
    return sums, shares - reach, shares + reach


@dataclass(frozen=True, eq=False)
class _Balls:
    bounds: L1Balls
    constants: FloatArray  # (n_outcomes)
    matrix: FloatArray  # (n_outcomes, d)

    def worst_at(self, point: FloatArray) -> list[OutcomeSet]:
        """Return the ball that a point misses most, with the outcomes too probable there, or nothing if it misses none.

        This is found in floats without care for rounding, since the interval of any set of outcomes holds.
        """
        first = self.bounds.first
        if len(first) == 1:
            return []
        excess = self.constants + self.matrix @ point - self.bounds.shares
        beyond = np.add.reduceat(np.maximum(excess, 0), first[:-1]) - self.bounds.radius / 2
        c = int(np.argmax(beyond))
        outcomes = tuple((first[c] + np.flatnonzero(excess[first[c] : first[c + 1]] > 0)).tolist())
        return [(c, outcomes)] if beyond[c] > _TOLERANCE else []


def _vertices(region: Polytope, objectives: FloatArray) -> FloatArray:
    """Return the vertices of a polytope, up to rounding, or those best for an objective if there are many variables."""
    if len(region.names) <= _FOR_ALL:
        vertices = region.table.vertices
    else:
        reached, _ = region.graph.walk(np.vstack([objectives, -objectives]) * region.scale)
        vertices = region.graph.found.points[np.unique(reached)]
    return vertices[:: -(-len(vertices) // _MAX_VERTICES)] * region.scale


def _within_balls(space: ParameterSpace, _: object, constraints: Sequence[Constraint]) -> Polytope | Conflict:
    return build_l1_region(space, cast("L1Balls", constraints[0]))


REGIONS[L1Balls] = _within_balls


def l1_evidence(given: Counted) -> Evidence:
    """Return evidence of L1 balls of the rows of a model."""
    budget = given.divided(whole_set())
    return Evidence.of(
        cast("Sets", "l1"), row_bounds(given.model, given.counts, error=budget.error_of_set(given.error)), budget
    )
