"""Likelihood sets as regions: ellipsoids cut by the space, tangents, strips and half-spaces, or polytopes around them.

Over an ellipsoid, affine expressions have a closed form. Products of parameters need envelopes, which are half-spaces;
and where half-spaces cut deep, nature's best point at a choice is nearer to a vertex than the closed form knows. In
these cases there is a polytope of tangents around the same points (see ``Enclosed``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from plumdp.confidence.evidence import PSEUDO_COUNTS, estimate
from plumdp.confidence.likelihood import LikelihoodSet
from plumdp.confidence.space_moments import simplified
from plumdp.model.expressions.polynomial import Polynomial, parameters
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, owners, read_only
from plumdp.model.space import ParameterSpace
from plumdp.model.text import listing
from plumdp.region.build import build_region, project
from plumdp.region.conflict import Conflict
from plumdp.region.ellipsoid import Ellipsoid, build_ellipsoid, cut_further
from plumdp.region.enclosed import Enclosed
from plumdp.region.likelihood_ellipsoid import LikelihoodEllipsoid, likelihood_ellipsoids
from plumdp.region.mccormick import Lift
from plumdp.region.redundancy import Contradiction
from plumdp.region.shapes import Polytope, Region, intersection
from plumdp.region.tangents import combination, normalised, slopes, spread_directions

_MAX_RANK = 4  # of the likelihood: with more, tangents are too many for a polytope
_MAX_PARAMETERS = 8  # of a polytope
_MAX_RANK_OF_STRIPS = 20  # of the likelihood: with more, strips are left out of the region
_MOST_STRIPS = 20_000  # likewise
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

    An ``Ellipsoid`` of the parameters; if at most four directions are seen, and there are half-spaces or expressions
    with products, an ``Enclosed`` of an ellipsoid and a polytope. Without a likelihood it is a ``Polytope``.
    """
    space = simplified(space)
    strips, sides = _strips(found), _half_spaces(space, found)
    within = _within(space, [*strips, *sides])
    if isinstance(within, Conflict):
        return within
    likely = _likely(found, within)
    if likely is None:
        return _polytope(space, expressions, [*strips, *sides])
    if isinstance(likely, Conflict):
        return _explained(space, found, strips, sides)
    ellipsoid, tangents = likely
    rank, has_products = found.table.basis.shape[1], not expressions.is_affine.all()
    is_small = rank <= _MAX_RANK and space.dimension <= _MAX_PARAMETERS
    if not is_small or not (has_products or sides):
        return _cut_by_outcomes(ellipsoid, found)
    around = _tangents(space, ellipsoid, _directions(ellipsoid, found.table.basis, expressions))
    polytope = _polytope(space, expressions, [*around, *strips, *sides, *tangents], within=ellipsoid)
    if isinstance(polytope, Conflict):
        return _conflict([tangents[0].text, *_words(strips, sides)])
    return Enclosed(ellipsoid, polytope)


def _cut_by_outcomes(ellipsoid: Ellipsoid, found: LikelihoodSet) -> Ellipsoid | Conflict:
    """Return the ellipsoid cut by the half-spaces across outcomes, if there are any."""
    if found.outcome_rows is None or found.outcome_offsets is None or not len(found.outcome_rows):
        return ellipsoid
    return cut_further(ellipsoid, found.outcome_rows, found.outcome_offsets)


def _strips(found: LikelihoodSet) -> list[_Cut]:
    """Return the strips, unless these or the parameters are many: then they cost much, and the likelihood says more."""
    if found.strips is None:
        return []
    many = found.table.basis.shape[1] > _MAX_RANK_OF_STRIPS or len(found.strips.event_lower) > _MOST_STRIPS
    if many and np.isfinite(found.threshold) and not found.table.left_out:
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


def _likely(found: LikelihoodSet, within: Polytope) -> tuple[Ellipsoid, list[_Cut]] | Conflict | None:
    """Return an ellipsoid around the points of large likelihood in a polytope, and tangents; None if that fails."""
    if not (found.seen.any() and np.isfinite(found.threshold)):
        return None
    ellipsoids = likelihood_ellipsoids(found.table, found.seen, found.threshold, within)
    if not ellipsoids:
        return None
    best, unknown = ellipsoids[0], parameters(*within.names)
    text = _about(within.names, best.centre)
    tangents = [_Cut(combination(one.tangent.tolist(), unknown), one.offset, np.inf, text) for one in ellipsoids]
    smaller = _beyond(within, ellipsoids)
    if smaller is None or min(one.reserve for one in ellipsoids) < 0:
        return _conflict([text])
    ellipsoid = build_ellipsoid(best.centre, best.matrix, best.radius, within=smaller)
    return ellipsoid if isinstance(ellipsoid, Conflict) else (ellipsoid, tangents)


def _beyond(within: Polytope, ellipsoids: Sequence[LikelihoodEllipsoid]) -> Polytope | None:
    """Return the points of a polytope beyond all tangents; None if there is none."""
    d = len(within.names)
    tangents = np.array([-one.tangent for one in ellipsoids if one.tangent.any()]).reshape(-1, d)
    offsets = [-one.offset for one in ellipsoids if one.tangent.any()]
    rows = np.vstack([-np.eye(d), np.eye(d), within.rows[2 * d :], tangents])
    region = intersection(
        within.names, rows, np.concatenate([-within.lower, within.upper, within.offsets[2 * d :], offsets])
    )
    return None if isinstance(region, Contradiction) else region


def _about(names: tuple[str, ...], point: FloatArray) -> str:
    values = listing([f"{name} = {x:.6g}" for name, x in zip(names, point.tolist(), strict=True)])
    return f"the likelihood of the data, which is large about {values}"


def _polytope(
    space: ParameterSpace, expressions: ExpressionTable, cuts: Sequence[_Cut], *, within: Ellipsoid | None = None
) -> Polytope | Conflict:
    """Return a polytope of parameters and products around the points within cuts; expressions are probabilities."""
    used = [] if expressions.is_affine.all() else _used(expressions, within)
    probabilities = [_Cut(f, 0.0, 1.0, f"{f} in [0, 1]") for f in (expressions.polynomials[j] for j in used)]
    return _region(space, [*(cut for cut in cuts if not cut.polynomial.is_constant), *probabilities])


def _used(expressions: ExpressionTable, within: Ellipsoid | None) -> list[int]:
    """Return the expressions that could leave [0, 1] within an ellipsoid, and at least one with each product."""
    is_used = expressions.is_unknown.copy()
    if within is not None:
        lower, upper = project(within, expressions)
        is_used &= (lower < 0) | (upper > 1)
    owner = owners(expressions.first_term)
    _, first = np.unique(expressions.monomial, return_index=True)
    products = expressions.monomials[expressions.monomial[first]].sum(axis=1) > 1
    is_used[owner[first[products]]] = True
    return np.flatnonzero(is_used).tolist()


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


def _explained(space: ParameterSpace, found: LikelihoodSet, strips: Sequence[_Cut], sides: Sequence[_Cut]) -> Conflict:
    """Return which strips and half-spaces exclude all points of large likelihood: no half-space named can be left out.

    Strips are left out all at once, and then tried one by one.
    """

    def is_conflict(*cuts: _Cut) -> bool:
        within = _within(space, cuts)
        return isinstance(within, Conflict) or isinstance(_likely(found, within), Conflict)

    kept = [] if is_conflict(*sides) else list(strips)
    for side in sides:
        others = [cut for cut in sides if cut is not side]
        if is_conflict(*kept, *others):
            sides = others
    single = next(([cut] for cut in kept[:_MAX_STRIPS] if is_conflict(cut, *sides)), kept)
    centre = estimate(found.table, found.seen, found.table.middle, pseudo=PSEUDO_COUNTS[-1])
    return _conflict([_about(space.names, centre), *(_words(single, sides) or ["the parameter space"])])
