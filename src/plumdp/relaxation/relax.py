"""The four relaxations of the paper (Section 3.1), which turn a confidence set and a region into an interval MDP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np

from plumdp.base.combinations import Trait, having, why_not
from plumdp.base.errors import DataError
from plumdp.base.rounding import UNIT
from plumdp.base.vocabulary import RELAXATION_WORDS, Relaxation
from plumdp.confidence.binomial import widened
from plumdp.confidence.bounds import ExpressionBounds, untied_bounds
from plumdp.confidence.sets import Evidence
from plumdp.data.counts import TransitionCounts
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import lifted_transitions
from plumdp.region.build import project
from plumdp.region.ellipsoid import Ellipsoid, Enclosed
from plumdp.region.half_spaces import affine_forms, affine_parts, in_variables
from plumdp.region.shapes import Box, Polytope, Region, bounding_box
from plumdp.relaxation.intervals import IntervalMDP, RowNature
from plumdp.relaxation.row_polytopes import row_polytopes
from plumdp.relaxation.row_regions import CUT, OUTSIDE, RowEllipsoid, RowRegion

_NARROWER = 1e-12  # by how much an interval must be narrower than the ellipsoid to count as such


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


def interval_wise(model: ParametricMDP, bounds: Evidence | ExpressionBounds) -> IntervalMDP:
    """Return P_I, in which each transition has the interval of its expression, whatever the others do."""
    if bounds.intervals is None:
        raise DataError(
            f"{bounds.method}: this set has no intervals of its own; choose another relaxation, such as 'expression'"
        )
    n = len(model.expressions)  # expressions of observations come behind those of single steps
    lower, upper = bounds.intervals
    return _interval_mdp(model, lower[:n], upper[:n])


def parameter_wise(model: ParametricMDP, region: Region, *, within: IntervalMDP | None = None) -> IntervalMDP:
    """Return P_Θ, in which each transition has the range of its expression over the smallest box around the region.

    It may be wider than P_I in some transitions and narrower in others. ``within`` cuts it to another relaxation.
    """
    lower, upper = bounding_box(region)
    names = model.space.names  # the first variables of the region; the others are products of them
    box = Box(names, lower[: len(names)], upper[: len(names)])
    return _interval_mdp(model, *project(box, model.expressions), within)


def expression_wise(model: ParametricMDP, region: Region, *, within: IntervalMDP | None = None) -> IntervalMDP:
    """Return P_Λ, in which each transition has the range of its expression over the region."""
    return _interval_mdp(model, *project(region, model.expressions), within)


def rectangular(model: ParametricMDP, region: Region, *, within: IntervalMDP | None = None) -> IntervalMDP:
    """Return P_R, in which nature picks at each choice one point of the region for all transitions of the choice.

    >>> from plumdp import case_study, simulate
    >>> from plumdp.confidence.bounds import expression_bounds
    >>> from plumdp.stages import build_region
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 1000, rng=1, max_steps=26)
    >>> bounds = expression_bounds(study.model, counts)
    >>> region = build_region(study.model.space, bounds.events.polynomials, bounds.event_lower, bounds.event_upper)
    >>> imdp = rectangular(study.model, region)
    >>> len(imdp.region.vertices)  # one parameter, so the region is an interval
    2
    """
    imdp = expression_wise(model, region, within=within)
    polytope = region.polytope if isinstance(region, Enclosed) else region
    # too many vertices to list: each kind of row has a polytope around its image, which is an outer one
    if isinstance(polytope, Polytope) and not polytope.has_few_vertices:
        return replace(imdp, region=row_polytopes(polytope, model.expressions, imdp))
    return replace(imdp, region=seen_from(polytope, model.expressions, imdp.lower, imdp.upper))


def tolerating(imdp: IntervalMDP, model_tolerance: float) -> IntervalMDP:
    """Return a relaxation that also allows for rows that are off from its own by at most a model tolerance.

    No probability differs by more than the total variation. So such rows are within the intervals widened by it, and
    points of a region are given up.
    """
    if model_tolerance == 0:
        return imdp
    # no probability of a row is off by more than its total variation
    lower, upper = map(read_only, widened(imdp.lower, imdp.upper, model_tolerance))
    return replace(imdp, lower=lower, upper=upper, region=None, model_tolerance=model_tolerance)


@singledispatch
def seen_from(region: Region, expressions: ExpressionTable, lower: FloatArray, upper: FloatArray) -> RowNature:
    """Return a region as rows see it, through the values of expressions at its points, given bounds on these.

    A new kind of region registers its function below, if nature can pick its points at each choice.
    """
    raise TypeError(f"nature cannot pick points of a {type(region).__name__}: choose the relaxation 'expression'")


@seen_from.register
def row_region(region: Polytope, expressions: ExpressionTable, *bounds: FloatArray) -> RowRegion:
    """Return the vertices of a region, and the values of affine expressions of its variables at its points.

    Bounds on the expressions are not needed, and there for ``seen_from`` alone.
    """
    constants, matrix = affine_forms(in_variables(expressions, region.names))
    coefficients = matrix * region.scale
    reach = np.maximum(np.abs(region.lower), np.abs(region.upper)) / region.scale
    sizes = np.abs(constants) + np.abs(coefficients) @ reach
    return RowRegion(read_only(coefficients), read_only(constants), read_only(sizes), region.table)


seen_from.register(Ellipsoid, row_ellipsoid)


def _interval_mdp(
    model: ParametricMDP, lower: FloatArray, upper: FloatArray, within: IntervalMDP | None = None
) -> IntervalMDP:
    """Return the interval MDP of bounds on expressions, cut to [0, 1], as these are probabilities, and to another."""
    lower, upper = np.maximum(lower, 0.0), np.minimum(upper, 1.0)
    if within is not None:
        # both hold the true values, and so does their intersection
        lower, upper = np.maximum(lower, within.lower), np.minimum(upper, within.upper)
    return IntervalMDP(model.graph, model.expression, read_only(lower), read_only(upper))


def untied(model: ParametricMDP, counts: TransitionCounts, error: float) -> IntervalMDP:
    """Return the relaxation by the graph alone: an interval for each counted transition, wherever it is used.

    Of a model on disk data say next to nothing about each of so many: its transitions may have any probability.
    """
    if model.graph.levels is not None:
        first = np.broadcast_to(np.int32(0), model.graph.n_transitions)
        return IntervalMDP(model.graph, first, np.zeros(1), np.ones(1))
    lower, upper = untied_bounds(counts, error=error)
    expression = lifted_transitions(model)
    if model.counted.learned_rewards:  # their expressions keep their numbers, and may be anything
        n = len(model.expressions)
        lower, upper, expression = np.append(np.zeros(n), lower), np.append(np.ones(n), upper), n + expression
    return IntervalMDP(model.graph, expression.astype(np.int32), read_only(lower), read_only(upper))


def untied_set_of(model: ParametricMDP) -> str:
    """Return the name of bounds by the graph alone."""
    is_on_disk = model.graph.levels is not None
    anything = "none: transitions of a stored model may have any probability"
    return anything if is_on_disk else "beta-binomial, one for each transition"


@dataclass(frozen=True)
class RelaxationMethod:
    """The name of a relaxation in certificates, the function that builds it, and its place among the others."""

    words: str  # how certificates call it
    meaning: str  # which parameters its bounds allow for, as reports say it
    build: Callable[[ParametricMDP, Evidence, Region], IntervalMDP]
    looser: tuple[Relaxation, ...] = ()  # those that allow for every nature of this one, whatever the model (Theorem 2)
    needs_intervals: bool = False  # of the confidence set itself
    needs_parameters: bool = False
    is_coupled: bool = False  # whether policies are valued with one point for all states, besides what is built

    @property
    def picks_points(self) -> bool:
        """Whether nature picks points of the region, rather than probabilities within intervals."""
        return "expression" in self.looser

    @property
    def traits(self) -> frozenset[Trait]:
        """What may not go together with a model."""
        return having(self.needs_parameters and Trait.OF_PARAMETERS, self.picks_points and Trait.OF_POINTS)


RELAXATIONS: Mapping[Relaxation, RelaxationMethod] = {
    "interval": RelaxationMethod(
        RELAXATION_WORDS["interval"],
        "each transition has any probability in its own interval",
        lambda model, bounds, region: interval_wise(model, bounds),
        needs_intervals=True,
    ),
    "parameter": RelaxationMethod(
        RELAXATION_WORDS["parameter"],
        "each transition has its own parameters, from the box around the region",
        lambda model, bounds, region: parameter_wise(model, region),
        needs_parameters=True,
    ),
    "expression": RelaxationMethod(
        RELAXATION_WORDS["expression"],
        "each transition has its own parameters, from the region",
        lambda model, bounds, region: expression_wise(model, region, within=_intervals_and_box(model, bounds, region)),
        looser=("interval", "parameter"),
        needs_parameters=True,
    ),
    "rectangular": RelaxationMethod(
        RELAXATION_WORDS["rectangular"],
        "each state and action has its own parameters, from the region",
        lambda model, bounds, region: rectangular(model, region, within=_intervals_and_box(model, bounds, region)),
        looser=("interval", "parameter", "expression"),
        needs_parameters=True,
    ),
    "coupled": RelaxationMethod(
        RELAXATION_WORDS["coupled"],
        "all states have the same parameters, from the region",
        lambda model, bounds, region: _for_each_row(model, bounds, region),
        looser=("interval", "parameter", "expression", "rectangular"),
        is_coupled=True,
    ),
}
"""One entry per relaxation, from loose to tight."""


def relaxations_of(model: ParametricMDP, bounds: Evidence) -> tuple[Relaxation, ...]:
    """Return the relaxations that there are of a model and a set, from loose to tight."""
    has_intervals = bounds.intervals is not None
    names = (name for name, method in RELAXATIONS.items() if has_intervals or not method.needs_intervals)
    return tuple(name for name in names if not any(why_not(each, *model.traits) for each in RELAXATIONS[name].traits))


def _for_each_row(model: ParametricMDP, bounds: Evidence, region: Region) -> IntervalMDP:
    """Return the set of each row that nature may choose from, by itself: without coupling and without bets."""
    if model.counted.is_table:
        return interval_wise(model, bounds)
    return rectangular(model, region, within=_intervals_and_box(model, bounds, region))


def _intervals_and_box(model: ParametricMDP, bounds: Evidence, region: Region) -> IntervalMDP:
    """Return P_Θ, cut to P_I if the set has intervals.

    A tighter relaxation stays within both, also after rounding.
    """
    tied = None if bounds.intervals is None else interval_wise(model, bounds)
    return parameter_wise(model, region, within=tied)
