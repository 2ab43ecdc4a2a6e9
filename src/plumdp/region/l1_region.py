"""The region of all points in the L1 balls of rows, built by cutting planes, without auxiliary variables.

Shares and probabilities both sum to one. So an L1 ball says that no set of outcomes has a probability that is off by
more than half the radius, which is one interval for each of 2^k sets. At a given point the set that is off most is
known at once: the outcomes that are more probable there than their shares. So we start with the whole space and take in
the worst set at each vertex, until no vertex is off anywhere. The region is then the intersection of all balls, and
before that it contains it, so that stopping early is sound.

With products of parameters, vertices are points of parameters and products (see ``lift``), and the start is some single
outcomes. Sets of outcomes matter more than in the affine case: where two coins are thrown, the sum of two products is
the probability of one coin, in an interval as narrow as that of each product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.base.rounding import UNIT
from plumdp.confidence.multinomial import L1Balls
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, owners_of
from plumdp.model.space import ParameterSpace
from plumdp.region.build import build_region
from plumdp.region.conflict import Conflict
from plumdp.region.half_spaces import affine_forms, in_variables
from plumdp.region.shapes import Polytope

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
    >>> from plumdp.confidence.multinomial import row_bounds
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
