"""Likelihood sets as regions: ellipsoids cut by the space, tangents, strips and half-spaces, or polytopes around them.

Over an ellipsoid, affine expressions have a closed form. Products of parameters need envelopes, which are half-spaces;
and where half-spaces cut deep, nature's best point at a choice is nearer to a vertex than the closed form knows. In
these cases there is a polytope of tangents around the same points (see ``Enclosed``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from plumdp.confidence.likelihood import LikelihoodSet
from plumdp.model.expressions.polynomial import Polynomial, parameters
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, read_only
from plumdp.model.space import ParameterSpace
from plumdp.region.build import build_region
from plumdp.region.conflict import Conflict
from plumdp.region.ellipsoid import Ellipsoid, build_ellipsoid
from plumdp.region.enclosed import Enclosed
from plumdp.region.likelihood_ellipsoid import LikelihoodEllipsoid, likelihood_ellipsoids
from plumdp.region.mccormick import Lift
from plumdp.region.shapes import Polytope, Region
from plumdp.region.tangents import combination, normalised, slopes, spread_directions

_MAX_RANK = 4  # of the likelihood: with more, tangents are too many for a polytope
_MAX_PARAMETERS = 8  # of a polytope that is not asked for by products
_MAX_STRIPS = 200  # that are tried one by one, to say which contradicts the rest


class _Cut(NamedTuple):
    """What must hold, ``lower <= polynomial <= upper``, and its words."""

    polynomial: Polynomial
    lower: float
    upper: float
    text: str


def build_likelihood_region(
    space: ParameterSpace, expressions: ExpressionTable, found: LikelihoodSet
) -> Region | Conflict:
    """Return the points of the space within a likelihood set, or a region around them; or why there is none.

    An ``Ellipsoid`` of the parameters; if expressions have products, or if there are half-spaces and at most four
    directions are seen, an ``Enclosed`` of an ellipsoid and a polytope. Without a likelihood it is a ``Polytope``.
    """
    strips, sides = _strips(found), _half_spaces(space, found)
    within = _within(space, [*strips, *sides])
    if isinstance(within, Conflict):
        return within
    likely = _ellipsoids(found, within)
    if not likely:
        return _polytope(space, expressions, [*strips, *sides], [])
    if min(one.reserve for one in likely) < 0:
        return _conflict([_likelihood_text(space, likely), "the parameter space", *_words(strips, sides)])
    ellipsoid = _cut_ellipsoid(space, [*strips, *sides], likely)
    if isinstance(ellipsoid, Conflict):
        return _explained(space, strips, sides, likely)
    rank, has_products = found.table.basis.shape[1], not expressions.is_affine.all()
    if not has_products and (not sides or rank > _MAX_RANK or space.dimension > _MAX_PARAMETERS):
        return ellipsoid
    directions = _directions(ellipsoid, found.table.basis, expressions)
    cuts = [*_tangents(space, ellipsoid, directions), *strips, *sides, *_likelihood_tangents(space, likely)]
    polytope = _polytope(space, expressions, cuts, [_likelihood_text(space, likely), *_words(strips, sides)])
    return polytope if isinstance(polytope, Conflict) else Enclosed(ellipsoid, polytope)


def _strips(found: LikelihoodSet) -> list[_Cut]:
    if found.strips is None:
        return []
    ends = zip(found.strips.event_lower.tolist(), found.strips.event_upper.tolist(), strict=True)
    return [
        _Cut(f, low, high, f"{f} in [{low:.6g}, {high:.6g}]")
        for f, (low, high) in zip(found.strips.events.polynomials, ends, strict=True)
    ]


def _half_spaces(space: ParameterSpace, found: LikelihoodSet) -> list[_Cut]:
    unknown = parameters(*space.names)
    return [
        _Cut(combination(row, unknown), -np.inf, offset, text)
        for row, offset, text in zip(found.rows.tolist(), found.offsets.tolist(), found.texts, strict=True)
    ]


def _likelihood_tangents(space: ParameterSpace, likely: Sequence[LikelihoodEllipsoid]) -> list[_Cut]:
    unknown, text = parameters(*space.names), _likelihood_text(space, likely)
    return [_Cut(combination(one.tangent.tolist(), unknown), one.offset, np.inf, text) for one in likely]


def _likelihood_text(space: ParameterSpace, likely: Sequence[LikelihoodEllipsoid]) -> str:
    centre = ", ".join(f"{name} = {x:.6g}" for name, x in zip(space.names, likely[0].centre.tolist(), strict=True))
    return f"the likelihood of the data, which is large about {centre}"


def _within(space: ParameterSpace, cuts: Sequence[_Cut]) -> Polytope | Conflict:
    """Return the points of the space within affine cuts; those with products cut the polytope later."""
    affine = [cut for cut in cuts if cut.polynomial.is_affine and not cut.polynomial.is_constant]
    return _region(space, affine)


def _region(space: ParameterSpace, cuts: Sequence[_Cut]) -> Polytope | Conflict:
    """Return the points of the space within cuts; a conflict names the cuts that contradict each other."""
    lower, upper = [cut.lower for cut in cuts], [cut.upper for cut in cuts]
    region = build_region(space, [cut.polynomial for cut in cuts], lower, upper)
    if not isinstance(region, Conflict):
        return region
    used = [cuts[f] for f in region.expressions]
    own = {f"{cut.polynomial} in [{cut.lower:.6g}, {cut.upper:.6g}]" for cut in used}
    return _conflict([text for text in region.constraints if text not in own] + [cut.text for cut in used])


def _ellipsoids(found: LikelihoodSet, within: Polytope) -> list[LikelihoodEllipsoid]:
    if not (found.seen.any() and np.isfinite(found.threshold)):
        return []
    return likelihood_ellipsoids(found.table, found.seen, found.threshold, within)


def _cut_ellipsoid(
    space: ParameterSpace, cuts: Sequence[_Cut], likely: Sequence[LikelihoodEllipsoid]
) -> Ellipsoid | Conflict:
    within = _within(space, [*cuts, *_likelihood_tangents(space, likely)])
    if isinstance(within, Conflict):
        return within
    return build_ellipsoid(likely[0].centre, likely[0].matrix, likely[0].radius, within=within)


def _polytope(
    space: ParameterSpace, expressions: ExpressionTable, cuts: Sequence[_Cut], texts: Sequence[str]
) -> Polytope | Conflict:
    """Return a polytope of parameters and products around the points within cuts; expressions are probabilities."""
    unknown = [] if expressions.is_affine.all() else [f for f in expressions.polynomials if not f.is_constant]
    probabilities = [_Cut(f, 0.0, 1.0, f"{f} in [0, 1]") for f in unknown]
    used = [cut for cut in cuts if not cut.polynomial.is_constant]
    region = _region(space, [*used, *probabilities])
    return _conflict(texts) if isinstance(region, Conflict) and texts else region


def _directions(ellipsoid: Ellipsoid, basis: FloatArray, expressions: ExpressionTable) -> FloatArray:
    """Return the axes, directions of the row space that are spread evenly over the ellipsoid, and with products and
    many parameters those of expressions."""
    d, k = basis.shape
    rows = [np.eye(d)]
    if k:
        rows.append((basis @ np.linalg.solve(np.linalg.qr(ellipsoid.root.T @ basis)[1], spread_directions(k).T)).T)
    if d > 3 and not expressions.is_affine.all():
        rows.append(
            slopes(ellipsoid, expressions, Lift(ellipsoid.names, tuple(map(tuple, np.eye(d, dtype=int).tolist()))))
        )
    return normalised(np.vstack(rows))


def _tangents(space: ParameterSpace, ellipsoid: Ellipsoid, directions: FloatArray) -> list[_Cut]:
    unknown = parameters(*space.names)
    lower, upper = ellipsoid.minimise(directions), -ellipsoid.minimise(-directions)
    ends = zip(directions.tolist(), lower.tolist(), upper.tolist(), strict=True)
    return [_Cut(combination(row, unknown), low, high, "the likelihood of the data") for row, low, high in ends]


def _conflict(texts: Sequence[str]) -> Conflict:
    return Conflict((), read_only(np.zeros(0)), tuple(dict.fromkeys(texts)), np.nan)


def _words(strips: Sequence[_Cut], sides: Sequence[_Cut]) -> list[str]:
    block = [cut.text for cut in strips] if len(strips) <= 3 else [f"the intervals of {len(strips):,} expressions"]
    return [*block, *(cut.text for cut in sides)]


def _explained(
    space: ParameterSpace, strips: Sequence[_Cut], sides: Sequence[_Cut], likely: Sequence[LikelihoodEllipsoid]
) -> Conflict:
    """Return which strips and half-spaces exclude all points of large likelihood: none of those named can be left out.

    Strips are left out all at once, and then tried one by one.
    """

    def is_conflict(*cuts: _Cut) -> bool:
        return isinstance(_cut_ellipsoid(space, cuts, likely), Conflict)

    kept = [] if is_conflict(*sides) else list(strips)
    for side in sides:
        others = [cut for cut in sides if cut is not side]
        if is_conflict(*kept, *others):
            sides = others
    single = [cut for cut in kept[:_MAX_STRIPS] if is_conflict(cut, *sides)]
    words = _words(single[:1] or kept, sides)
    return _conflict([_likelihood_text(space, likely), *(words or ["the parameter space"])])
