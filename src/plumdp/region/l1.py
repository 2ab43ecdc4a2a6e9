"""L1 balls as a region of parameters, by cutting planes: no auxiliary variables, and only the rows that matter.

Shares and probabilities both sum to one, so that an L1 ball says: no set of outcomes has a probability that is off by
more than half the radius. That is one interval for each of 2^k sets. At a given point the set that is off most is known
at once: the outcomes that are more probable there than their shares. So we start with the whole space and take in the
worst set at each vertex, until no vertex is off anywhere. The region is then the intersection of all balls, and before
that it contains it: stopping early is sound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.confidence.multinomial import RowBounds
from plumdp.model.expressions import ExpressionTable
from plumdp.model.graph import FloatArray
from plumdp.model.polynomial import Polynomial
from plumdp.model.space import ParameterSpace
from plumdp.region.build import build_region
from plumdp.region.conflict import Conflict
from plumdp.region.half_spaces import UNIT, affine_forms
from plumdp.region.shapes import Polytope

_TOLERANCE = 1e-10  # balls that a vertex misses by less count as met
_MAX_ROUNDS = 100

Cut = tuple[int, tuple[int, ...]]  # a class, and some of its outcomes


def build_l1_region(space: ParameterSpace, bounds: RowBounds) -> Polytope | Conflict:
    """Return all points of the space that lie in the L1 ball of every class of rows; or why there is none.

    >>> from plumdp import benchmark, simulate
    >>> from plumdp.confidence.multinomial import row_bounds
    >>> study = benchmark("engagement:10")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=study.max_steps)
    >>> region = build_l1_region(study.model.space, row_bounds(study.model, counts))
    >>> bool((region.lower <= region.upper).all())
    True
    """
    balls = _Balls(bounds, *affine_forms(ExpressionTable.build(bounds.outcomes, space.names)))
    cuts: dict[Cut, None] = {}
    region = build_region(space, (), (), ())
    for _ in range(_MAX_ROUNDS):
        if isinstance(region, Conflict):
            break
        new = dict.fromkeys(cut for vertex in _vertices(region) for cut in balls.worst_at(vertex))
        if new.keys() <= cuts.keys():
            break
        cuts |= new
        region = build_region(space, *balls.intervals(tuple(cuts)))
    return region


@dataclass(frozen=True, eq=False)
class _Balls:
    bounds: RowBounds
    constants: FloatArray  # (n_outcomes)
    matrix: FloatArray  # (n_outcomes, d)

    def worst_at(self, point: FloatArray) -> list[Cut]:
        """Return the ball that a point misses most, with the outcomes too probable there; nothing if it misses none.

        This is found in floats as they come: whatever set of outcomes it is, its interval holds.
        """
        first = self.bounds.first
        if len(first) == 1:
            return []
        excess = self.constants + self.matrix @ point - self.bounds.shares
        beyond = np.add.reduceat(np.maximum(excess, 0), first[:-1]) - self.bounds.radius / 2
        c = int(np.argmax(beyond))
        outcomes = tuple((first[c] + np.flatnonzero(excess[first[c] : first[c + 1]] > 0)).tolist())
        return [(c, outcomes)] if beyond[c] > _TOLERANCE else []

    def intervals(self, cuts: tuple[Cut, ...]) -> tuple[list[Polynomial], FloatArray, FloatArray]:
        """Return the probabilities of sets of outcomes, and their bounds, rounded outward."""
        sums = [sum((self.bounds.outcomes[j] for j in outcomes), Polynomial(0)) for _, outcomes in cuts]
        shares = np.array([self.bounds.shares[list(outcomes)].sum() for _, outcomes in cuts])
        reach = np.array([self.bounds.radius[c] / 2 + (len(outcomes) + 4) * UNIT for c, outcomes in cuts])
        return sums, shares - reach, shares + reach


def _vertices(region: Polytope) -> FloatArray:
    """Return the vertices of a polytope, up to rounding."""
    vertices: FloatArray = region.table.vertices * region.table.scale
    return vertices
