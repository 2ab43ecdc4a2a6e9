"""Sets of transitions of a row that can lose all their probability at once, if nature picks points of a polytope.

Intervals tell that of each transition by itself. That two of them can vanish does not mean that both can at once. The
least probability of a set of transitions is attained at a vertex, where it is zero only if each of them is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plumdp.model.graph import IntArray
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.relaxation.rectangular import RowRegion
from plumdp.relaxation.row_polytopes import RowPolytopes

Masks = npt.NDArray[np.uint64]

_LONGEST = 63  # transitions that a mask has room for
_ZERO = 1e-8  # probabilities below count as zero at a vertex, which is safe: the set is then taken to vanish
_MARGIN = 1e-11  # how far vertices, and probabilities below zero, may be off: 63 times twice that is less than _ZERO
_MAX_WORK = 2 * 10**7  # rows times vertices that are examined, with one polytope for all rows


def zero_sets(imdp: IntervalMDP) -> tuple[IntArray, Masks]:
    """Return for each choice, as offsets and bit masks, the largest sets of transitions that vanish together.

    Each set that can vanish is part of one of them. Where there is no mask, nothing is known but the intervals. If
    there are none at all, there are no offsets either.
    """
    graph, region = imdp.graph, imdp.region
    nothing = np.zeros(1, dtype=np.int32), np.empty(0, dtype=np.uint64)
    if not isinstance(region, RowRegion | RowPolytopes) or imdp.has_fixed_support():
        return nothing
    can_vanish = ((imdp.lower == 0) & (imdp.upper > 0))[imdp.expression]
    length = np.diff(graph.first_transition)
    rows = np.flatnonzero((graph.sum_by_choice(can_vanish) > 1) & (length <= _LONGEST))
    if isinstance(region, RowRegion) and len(rows) * len(region.vertices) > _MAX_WORK:
        return nothing
    distinct: dict[bytes, Masks] = {}
    n_masks, masks = np.zeros(graph.n_choices, dtype=np.int32), []
    for row in rows.tolist():
        expressions = imdp.expression[graph.first_transition[row] : graph.first_transition[row + 1]]
        key = expressions.tobytes()
        if key not in distinct:
            distinct[key] = _masks(imdp, region, expressions)
        masks.append(distinct[key])
        n_masks[row] = len(distinct[key])
    first = np.concatenate([[0], np.cumsum(n_masks)]).astype(np.int32)
    return first, np.concatenate([nothing[1], *masks])


def _masks(imdp: IntervalMDP, region: RowRegion | RowPolytopes, expressions: IntArray) -> Masks:
    """Return the different sets of transitions of a row that vanish at vertices, as bit masks.

    There are none if a probability is negative at a vertex. (Around products of parameters the polytope has vertices
    that are not points of the region.)
    """
    at_vertices = region.at_vertices(expressions, _MARGIN)
    if at_vertices is None or at_vertices.min() < -_MARGIN:
        return np.empty(0, dtype=np.uint64)
    # a set too many is safe: nature is then taken to be able to drop more
    vanishes = (at_vertices <= _ZERO) & (imdp.lower[expressions] == 0) | (imdp.upper[expressions] == 0)
    bits = np.uint64(1) << np.arange(len(expressions), dtype=np.uint64)
    return np.unique((vanishes * bits).sum(axis=1, dtype=np.uint64))
