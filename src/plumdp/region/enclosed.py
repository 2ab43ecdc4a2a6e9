"""Regions held in two forms, as an ellipsoid and as a polytope around the same points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.model.graph import FloatArray
from plumdp.model.text import one_line
from plumdp.region.ellipsoid import Ellipsoid
from plumdp.region.shapes import Polytope


@dataclass(frozen=True, eq=False)
class Enclosed:
    """The points that lie in an ellipsoid of the parameters and in a polytope, both cut by the same half-spaces.

    The variables of the polytope are the parameters and, behind them, products of parameters. Bounds are the better of
    both. Nature, which needs vertices, picks points of the polytope.
    """

    ellipsoid: Ellipsoid
    polytope: Polytope

    def __repr__(self) -> str:
        return one_line(self, repr(self.ellipsoid), repr(self.polytope))

    @property
    def names(self) -> tuple[str, ...]:
        """The variables of the polytope, in the order of the coordinates."""
        return self.polytope.names

    @property
    def lower(self) -> FloatArray:
        """The least value of each variable, rounded down."""
        d = len(self.ellipsoid.names)
        return np.append(np.maximum(self.polytope.lower[:d], self.ellipsoid.lower), self.polytope.lower[d:])

    @property
    def upper(self) -> FloatArray:
        """The largest value of each variable, rounded up."""
        d = len(self.ellipsoid.names)
        return np.append(np.minimum(self.polytope.upper[:d], self.ellipsoid.upper), self.polytope.upper[d:])

    def minimise(self, objectives: FloatArray) -> FloatArray:
        """Return for each row of ``objectives`` (k, d) a number never above the minimum of ``objective @ point``."""
        d = len(self.ellipsoid.names)
        values = self.polytope.minimise(objectives)
        is_affine = ~objectives[:, d:].any(axis=1)
        # both numbers are lower bounds, as the points lie in both sets
        values[is_affine] = np.maximum(values[is_affine], self.ellipsoid.minimise(objectives[is_affine, :d]))
        return values
