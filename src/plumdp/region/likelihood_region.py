"""The regions of likelihood sets, which are ellipsoids cut by half-spaces, or polytopes around them.

The half-spaces are those of the space, of tangents, of intervals, and those that the set has. Over an ellipsoid, affine
expressions have a closed form. Products of parameters need envelopes, which are half-spaces. Where half-spaces cut
deep, nature's best point at a choice is nearer to a vertex than the closed form knows. In these cases there is a
polytope of tangents around the same points (see ``Enclosed``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from plumdp.confidence.bets import HalfSpace
from plumdp.confidence.bounds import ExpressionBounds
from plumdp.confidence.cells import Cells
from plumdp.confidence.evidence import PSEUDO_COUNTS, estimate
from plumdp.confidence.likelihood import LevelSet, LinearConstraints
from plumdp.confidence.path_evidence import LiftedConstraints
from plumdp.confidence.path_likelihood import PathLevelSet
from plumdp.confidence.sets import Constraint
from plumdp.confidence.space_moments import simplified
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, owners, read_only
from plumdp.model.space import ParameterSpace
from plumdp.model.text import listing
from plumdp.region.build import build_region, project
from plumdp.region.conflict import Conflict
from plumdp.region.cutting import parameter_ranges
from plumdp.region.ellipsoid import (
    Ellipsoid,
    Enclosed,
    about,
    build_ellipsoid,
    combination,
    cut_further,
    normalised,
    slopes,
    spread_directions,
)
from plumdp.region.half_spaces import Contradiction
from plumdp.region.likelihood_ellipsoid import LikelihoodEllipsoid, likelihood_ellipsoids
from plumdp.region.mccormick import ProductVariables
from plumdp.region.shapes import Polytope, Region, intersection

_MAX_RANK = 4  # of the likelihood: with more, tangents are too many for a polytope
_MAX_PARAMETERS = 8  # of a polytope
_MAX_RANK_OF_STRIPS = 20  # of the likelihood: with more, intervals are left out of the region
_MOST_STRIPS = 20_000  # likewise
_OF_PATHS = "the likelihood of all rows about the same parameters"
_MAX_STRIPS = 200  # that are tried one by one, to say which contradicts the rest


class _Bounded(NamedTuple):
    """The constraint ``lower <= polynomial <= upper``, and its words."""

    polynomial: Polynomial
    lower: float
    upper: float
    text: str


def build_likelihood_region(
    space: ParameterSpace, expressions: ExpressionTable, constraints: Sequence[Constraint]
) -> Region | Conflict:
    """Return the points of the space within constraints, or a region around them, or a conflict if there is none.

    These are half-spaces, intervals of events, and a likelihood, of several the first one. A likelihood of rows with
    hidden paths cuts the region of all others, whose parameters then have narrower ranges.

    It is an ``Ellipsoid`` of the parameters. If at most four directions are seen, and there are half-spaces or
    expressions with products, it is an ``Enclosed`` of an ellipsoid and a polytope. Without a likelihood it is a
    ``Polytope``.
    """
    paths = [each for each in constraints if isinstance(each, PathLevelSet) and each.threshold > -np.inf]
    if paths:
        others = [each for each in constraints if not isinstance(each, PathLevelSet)]
        region = build_likelihood_region(space, expressions, others)
        if isinstance(region, Conflict):
            return region
        ranges = parameter_ranges(region, paths, space.dimension)
        if ranges is None:
            linear = [each for each in others if isinstance(each, LinearConstraints)]
            return _conflict([_OF_PATHS, *_words([], _half_spaces(space, linear))])
        sides = np.vstack([-np.eye(space.dimension), np.eye(space.dimension)])
        texts = (_OF_PATHS,) * len(sides)
        ends = LinearConstraints(sides, np.append(-ranges[0], ranges[1]), texts, paths[0].error)
        return build_likelihood_region(space, expressions, [*others, ends])
    space = simplified(space)
    likelihoods = [each for each in constraints if isinstance(each, LevelSet)]
    likelihood = next(iter(likelihoods), None)
    linear = [each for each in constraints if isinstance(each, LinearConstraints)]
    intervals = [
        item for each in constraints if isinstance(each, ExpressionBounds) for item in _strips(each, likelihood)
    ]
    half_spaces, unknown = _half_spaces(space, linear), _parameters(space.names)
    half_spaces += [
        _Bounded(polynomial, -np.inf, offset, text)
        for each in constraints
        if isinstance(each, LiftedConstraints)
        for polynomial, offset, text in each.inequalities(space.names)
    ]
    # other products, such as those of observations with gaps, cut pieces alone: to leave a constraint out is sound
    products = {tuple(exponents) for exponents in expressions.monomials.tolist()}
    intervals, half_spaces = (
        [f for f in found if f.polynomial.is_affine or f.polynomial.terms(expressions.names).keys() <= products]
        for found in (intervals, half_spaces)
    )
    supports = [
        _Bounded(combination(side.row.tolist(), unknown), -np.inf, side.offset, side.text)
        for each in ([each for each in likelihoods if each.block] or likelihoods)  # those of blocks are narrower
        for side in each.supports
    ]
    # leaving out constraints with products makes the polytope larger, which is sound
    within = _within(space, [*intervals, *half_spaces])
    if isinstance(within, Conflict):
        return within
    within = within if likelihood is None else _within(space, [*intervals, *half_spaces, *supports])
    likely = None if likelihood is None else within if isinstance(within, Conflict) else _likely(likelihood, within)
    if likelihood is None or likely is None:
        return _polytope(space, expressions, [*intervals, *half_spaces, *supports])
    if isinstance(likely, Conflict):
        return _explained(space, likelihood, supports, intervals, half_spaces)
    ellipsoid, tangents = likely
    for cells in (each for each in constraints if isinstance(each, Cells)):
        left = around_cells(cells, ellipsoid)
        others = [each for each in constraints if each is not cells]
        return left if isinstance(left, Conflict) else build_likelihood_region(space, expressions, [*others, left])
    rank, has_products = likelihood.table.basis.shape[1], not expressions.is_affine.all()
    is_small = rank <= _MAX_RANK and space.dimension <= _MAX_PARAMETERS
    if not is_small or not (has_products or half_spaces):
        return _cut_by_outcomes(ellipsoid, linear)
    around = _tangents(space, ellipsoid, _directions(ellipsoid, likelihood.table.basis, expressions))
    polytope = _polytope(
        space, expressions, [*around, *intervals, *half_spaces, *supports, *tangents], within=ellipsoid
    )
    if isinstance(polytope, Conflict):
        return _conflict([tangents[0].text, *_words(intervals, half_spaces)])
    return Enclosed(ellipsoid, polytope)


def _cut_by_outcomes(ellipsoid: Ellipsoid, linear: Sequence[LinearConstraints]) -> Ellipsoid | Conflict:
    """Return the ellipsoid cut by the half-spaces across outcomes, if there are any."""
    across = next((each for each in linear if each.is_across_outcomes and len(each.rows)), None)
    return ellipsoid if across is None else cut_further(ellipsoid, across.rows, across.offsets)


def _strips(found: ExpressionBounds, likelihood: LevelSet | None) -> list[_Bounded]:
    """Return the constraints of the intervals, unless these or the parameters are many.

    Then they cost much, and the likelihood says more. To leave a constraint out is sound.
    """
    if likelihood is not None and np.isfinite(likelihood.threshold) and not likelihood.table.left_out:
        rank = likelihood.table.basis.shape[1]
        if rank > _MAX_RANK_OF_STRIPS or len(found.event_lower) > _MOST_STRIPS:
            return []
    ends = zip(found.event_lower.tolist(), found.event_upper.tolist(), strict=True)
    return [
        _Bounded(f, low, high, f"{f} in [{low:.6g}, {high:.6g}]")
        for f, (low, high) in zip(found.events.polynomials, ends, strict=True)
    ]


def _half_spaces(space: ParameterSpace, linear: Sequence[LinearConstraints]) -> list[_Bounded]:
    unknown = _parameters(space.names)
    return [
        _Bounded(combination(row, unknown), -np.inf, offset, words)
        for each in linear
        if not each.is_across_outcomes
        for row, offset, words in zip(each.rows.tolist(), each.offsets.tolist(), each.texts, strict=True)
    ]


def _within(space: ParameterSpace, constraints: Sequence[_Bounded]) -> Polytope | Conflict:
    """Return the points of the space within affine constraints. Those with products cut the polytope later."""
    affine = [
        constraint
        for constraint in constraints
        if constraint.polynomial.is_affine and not constraint.polynomial.is_constant
    ]
    return _region(space, affine)


def _region(space: ParameterSpace, constraints: Sequence[_Bounded]) -> Polytope | Conflict:
    """Return the points of the space within constraints, or a conflict of those that contradict each other."""
    lower, upper = [one.lower for one in constraints], [one.upper for one in constraints]
    region = build_region(space, [one.polynomial for one in constraints], lower, upper)
    if not isinstance(region, Conflict):
        return region
    used = [constraints[f] for f in region.expressions]
    as_intervals = {f"{one.polynomial} in [{one.lower:.6g}, {one.upper:.6g}]" for one in used}
    return _conflict([words for words in region.constraints if words not in as_intervals] + [one.text for one in used])


def _likely(likelihood: LevelSet, within: Polytope) -> tuple[Ellipsoid, list[_Bounded]] | Conflict | None:
    """Return an ellipsoid around the points of large likelihood in a polytope, and tangents, or None if that fails."""
    if not (likelihood.outcome_counts.any() and np.isfinite(likelihood.threshold)):
        return None
    ellipsoids = likelihood_ellipsoids(likelihood.table, likelihood.outcome_counts, likelihood.threshold, within)
    if not ellipsoids:
        return None
    best, unknown = ellipsoids[0], _parameters(within.names)
    words = _about(within.names, best.centre)
    tangents = [_Bounded(combination(one.tangent.tolist(), unknown), one.offset, np.inf, words) for one in ellipsoids]
    smaller = _beyond(within, ellipsoids)
    # τ + G < 0 proves that no point of the polytope has so large a likelihood
    if smaller is None or min(one.reserve for one in ellipsoids) < 0:
        return _conflict([words])
    ellipsoid = build_ellipsoid(best.centre, best.matrix, best.radius, within=smaller)
    return ellipsoid if isinstance(ellipsoid, Conflict) else (ellipsoid, tangents)


def _beyond(within: Polytope, ellipsoids: Sequence[LikelihoodEllipsoid]) -> Polytope | None:
    """Return the points of a polytope beyond all tangents, or None if there are none."""
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
    space: ParameterSpace,
    expressions: ExpressionTable,
    constraints: Sequence[_Bounded],
    *,
    within: Ellipsoid | None = None,
) -> Polytope | Conflict:
    """Return a polytope of parameters and products around the points within constraints."""
    used = [] if expressions.is_affine.all() else _used(expressions, within)
    # expressions are probabilities, so that their bounds 0 and 1 exclude no possible point
    probabilities = [_Bounded(f, 0.0, 1.0, f"{f} in [0, 1]") for f in (expressions.polynomials[j] for j in used)]
    return _region(space, [*(one for one in constraints if not one.polynomial.is_constant), *probabilities])


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
    """Return the directions of tangents.

    These are the axes, directions of the row space that are spread evenly over the ellipsoid, and with products and
    many parameters the slopes of expressions.
    """
    d, k = basis.shape
    rows = [np.eye(d)]
    if k:
        rows.append((basis @ np.linalg.solve(np.linalg.qr(ellipsoid.root.T @ basis)[1], spread_directions(k).T)).T)
    if d > 3 and not expressions.is_affine.all():
        rows.append(slopes(ellipsoid, expressions, _parameters(ellipsoid.names)))
    return normalised(np.vstack(rows))


def _tangents(space: ParameterSpace, ellipsoid: Ellipsoid, directions: FloatArray) -> list[_Bounded]:
    unknown = _parameters(space.names)
    lower, upper = ellipsoid.minimise(directions), -ellipsoid.minimise(-directions)
    ends = zip(directions.tolist(), lower.tolist(), upper.tolist(), strict=True)
    return [_Bounded(combination(row, unknown), low, high, "the likelihood of the data") for row, low, high in ends]


def _parameters(names: tuple[str, ...]) -> ProductVariables:
    """Return the variables that are parameters, without products."""
    return ProductVariables(names, tuple(map(tuple, np.eye(len(names), dtype=int).tolist())))


def _conflict(words: Sequence[str]) -> Conflict:
    return Conflict((), read_only(np.zeros(0)), tuple(dict.fromkeys(words)), np.nan)


def _words(intervals: Sequence[_Bounded], half_spaces: Sequence[_Bounded]) -> list[str]:
    block = (
        [one.text for one in intervals] if len(intervals) <= 3 else [f"the intervals of {len(intervals):,} expressions"]
    )
    return [*block, *(one.text for one in half_spaces)]


def _explained(
    space: ParameterSpace,
    likelihood: LevelSet,
    supports: Sequence[_Bounded],
    intervals: Sequence[_Bounded],
    half_spaces: Sequence[_Bounded],
) -> Conflict:
    """Return the conflict of intervals and half-spaces that exclude all points of large likelihood.

    No half-space that it names can be left out. Intervals are left out all at once, and then tried one by one.
    """

    def is_conflict(*tried: _Bounded) -> bool:
        within = _within(space, [*tried, *supports])
        return isinstance(within, Conflict) or isinstance(_likely(likelihood, within), Conflict)

    kept = [] if is_conflict(*half_spaces) else list(intervals)
    for half_space in half_spaces:
        others = [one for one in half_spaces if one is not half_space]
        if is_conflict(*kept, *others):
            half_spaces = others
    single = next(([one] for one in kept[:_MAX_STRIPS] if is_conflict(one, *half_spaces)), kept)
    centre = estimate(likelihood.table, likelihood.outcome_counts, pseudo=PSEUDO_COUNTS[-1])
    return _conflict([_about(space.names, centre), *(_words(single, half_spaces) or ["the parameter space"])])


_MOST = 40  # cells in which bets are looked at


def around_cells(cells: Cells, ellipsoid: Ellipsoid) -> LinearConstraints | Conflict:
    """Return half-spaces around the points of an ellipsoid that the bets of their cell leave, none if cells are many.

    They lie across the gradients at the estimate and in the cells that reach furthest. Only in these bets are looked
    at: another cell may as well be left whole, as it reaches no further than they do.
    """
    rows = normalised(cells.gradients(cells.best))
    rows = np.vstack([rows, -rows])
    found = cells.partition.meeting(ellipsoid.lower, ellipsoid.upper)
    if found is None or not len(rows):
        return LinearConstraints.of([], len(cells.best), cells.error)
    parts = [(cell, _cut(ellipsoid, cell.sides)) for cell in found]
    whole = [(cell, part, _reach(part, rows)) for cell, part in parts if not isinstance(part, Conflict)]
    left: list[Ellipsoid] = []
    furthest = np.full(len(rows), -np.inf)
    for _ in range(min(_MOST, len(whole))):
        beyond = np.array([reach for _, _, reach in whole]) - furthest
        if not (beyond > 0).any():
            break
        cell, part, _ = whole.pop(int(beyond.max(axis=1).argmax()))
        gradients = cells.gradients(cell.centre)
        cut = _cut(part, [*cells.left(cell, gradients)])
        if not isinstance(cut, Conflict):
            new = normalised(gradients)
            new = np.vstack([new, -new])
            left.append(cut)
            furthest = np.append(
                np.maximum(furthest, _reach(cut, rows)), np.max([_reach(each, new) for each in left], axis=0)
            )
            whole = [(each, part, np.append(reach, _reach(part, new))) for each, part, reach in whole]
            rows = np.vstack([rows, new])
    if not (left or whole):
        return Conflict((), np.zeros(0), (about(ellipsoid), "bets in all cells of it"), np.nan)
    # the truth is in one of the cells, and none reaches further
    offsets = np.max([furthest, *(reach for _, _, reach in whole)], axis=0)
    return LinearConstraints(rows, offsets, ("bets in cells of the space",) * len(rows), cells.error)


def _cut(region: Ellipsoid, half_spaces: Sequence[HalfSpace]) -> Ellipsoid | Conflict:
    rows = np.array([each.row for each in half_spaces]).reshape(len(half_spaces), len(region.names))
    return cut_further(region, rows, np.array([each.offset for each in half_spaces]))


def _reach(region: Ellipsoid, rows: FloatArray) -> FloatArray:
    """Return upper bounds on the largest values of rows (m)."""
    return -region.minimise(-rows)
