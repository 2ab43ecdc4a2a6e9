"""The rectangular relaxation over an ellipsoid, where nature's best point at a choice has a closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.rounding import UNIT
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, read_only
from plumdp.region.ellipsoid import Ellipsoid
from plumdp.region.half_spaces import affine_parts

OUTSIDE, CUT = 1, 2

_NARROWER = 1e-12  # by how much an interval must be narrower than the ellipsoid to count as such


@dataclass(frozen=True, eq=False)
class RowEllipsoid:
    """The values of each expression over an ellipsoid, ``means[f] + spreads[f] @ x`` for all ``|x| <= 1``.

    A row of a choice is worth Σ value·means ± |Σ value·spreads|, the sums over its transitions. The solver needs a
    worth that grows with every value, so that no probability may be negative. An expression is ``OUTSIDE`` if the
    ellipsoid, not yet cut by half-spaces, makes it so, and rows with such an expression are bounded by intervals. It is
    ``CUT`` if its interval is narrower than its range over the ellipsoid, and rows with one take the better of both.
    """

    means: FloatArray  # (n_expressions)
    spreads: FloatArray  # (n_expressions, d)
    sizes: FloatArray  # (n_expressions): largest sum of the absolute values of the terms, for rounding
    kinds: npt.NDArray[np.int8]  # (n_expressions): OUTSIDE and CUT, added up

    @property
    def tables(self) -> tuple[npt.NDArray[Any], ...]:
        """All arrays, as the kernels take them."""
        return self.means, self.spreads, self.sizes, self.kinds

    def with_constants(self, values: FloatArray) -> RowEllipsoid:
        """Return the ellipsoid with known probabilities as further expressions."""
        return replace(
            self,
            means=read_only(np.concatenate([self.means, values])),
            spreads=read_only(np.vstack([self.spreads, np.zeros((len(values), self.spreads.shape[1]))])),
            sizes=read_only(np.concatenate([self.sizes, values])),
            kinds=read_only(np.concatenate([self.kinds, np.zeros(len(values), dtype=np.int8)])),
        )


def row_ellipsoid(
    region: Ellipsoid, expressions: ExpressionTable, lower: FloatArray, upper: FloatArray
) -> RowEllipsoid:
    """Return the values of expressions over an ellipsoid, given bounds on the expressions.

    Expressions that are not affine count as outside, and rows with such an expression are bounded by intervals.
    """
    constants, matrix = affine_parts(expressions)
    factor = region.radius * region.root
    means, spreads = constants + matrix @ region.centre, matrix @ factor
    sizes = np.abs(constants) + np.abs(matrix) @ (np.abs(region.centre) + np.abs(factor).sum(axis=1))
    reach = np.sqrt((spreads**2).sum(axis=1))
    # rounded down: an expression counts as outside sooner, which leaves its rows to intervals
    least = means - reach - (2 * len(region.names) + 16) * UNIT * sizes
    is_cut = (lower > means - reach + _NARROWER) | (upper < means + reach - _NARROWER)
    kinds = np.where((least < 0) | ~expressions.is_affine, OUTSIDE, 0) + np.where(is_cut, CUT, 0)
    kinds[~expressions.is_unknown] = 0
    return RowEllipsoid(read_only(means), read_only(spreads), read_only(sizes), read_only(kinds.astype(np.int8)))
