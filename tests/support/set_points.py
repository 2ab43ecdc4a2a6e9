"""Points of a confidence set, decided in fractions: inside, at corners of the space, and about where the set ends.

A point belongs to a set if it lies in the space, makes every row a row, and satisfies what the set says, as the floats
in it say. A point is a dict from the names of the parameters to fractions.
"""

from dataclasses import replace
from fractions import Fraction
from functools import singledispatch
from itertools import pairwise
from math import inf, log, prod

import numpy as np
from coupled_points import is_point_of

from plumdp.confidence.bets import log_gains
from plumdp.confidence.bounds import ExpressionBounds
from plumdp.confidence.cells import LENGTHS, Cells
from plumdp.confidence.likelihood import LevelSet, LinearConstraints
from plumdp.confidence.path_evidence import LiftedConstraints
from plumdp.confidence.path_likelihood import PathLevelSet
from plumdp.confidence.sets import Evidence
from plumdp.fit.drift import drift_constraints
from plumdp.solver.at_points import move_inside
from studies.l1_balls import L1Balls
from studies.least_squares import LeastSquares

_MARGIN = 1e-9  # of a sum of logarithms, relative to its size: more than floats can be off


def set_of(learned):
    """Return the set that a region was made of: with a model tolerance, cut by the drifts that were found."""
    found, drifts = learned.bounds, () if learned.fit is None else learned.fit.drifts
    if not learned.model_tolerance or not drifts:
        return found
    cuts = drift_constraints(learned.model, learned.counts, learned.table, drifts, learned.error)
    return replace(found, constraints=(*found.constraints, cuts.widened(learned.model_tolerance)))


@singledispatch
def satisfies(found, point):
    """Return whether a point satisfies what a confidence set says."""
    raise TypeError(type(found).__name__)


@satisfies.register
def _(found: ExpressionBounds, point):
    return is_in_strips(found, point)


@satisfies.register
def _(found: L1Balls, point):
    distance = [
        abs(f.evaluate(point) - Fraction(x)) for f, x in zip(found.outcomes, found.shares.tolist(), strict=True)
    ]
    ends = zip(found.first[:-1], found.first[1:], found.radius.tolist(), strict=True)
    return all(radius >= 2 or sum(distance[a:b]) <= Fraction(radius) for a, b, radius in ends)


@satisfies.register
def _(found: LeastSquares, point):
    """Return whether (v - centre) @ matrix @ (v - centre) <= radius², with products of parameters among the v."""
    off = [-Fraction(x) for x in found.centre.tolist()]
    for i, powers in enumerate(found.exponents.tolist()):
        product = Fraction(1)
        for x, power in zip(point.values(), powers, strict=True):
            product *= x**power
        off[i] += product
    square = (
        a * Fraction(m) * b
        for a, row in zip(off, found.matrix.tolist(), strict=True)
        for b, m in zip(off, row, strict=True)
    )
    return sum(square) <= Fraction(found.radius) ** 2


@satisfies.register
def _(found: LinearConstraints, point):
    at, cuts = list(point.values()), zip(found.rows.tolist(), found.offsets.tolist(), strict=True)
    return all(sum(Fraction(a) * x for a, x in zip(row, at, strict=True)) <= offset for row, offset in cuts)


@satisfies.register
def _(found: LiftedConstraints, point):
    return all(f.evaluate(point) <= Fraction(offset) for f, offset, _ in found.inequalities(tuple(point)))


@satisfies.register
def _(found: Evidence, point):
    return all(satisfies(each, point) for each in found.constraints)


@satisfies.register
def _(found: Cells, point):
    """Return whether the wealth of the point's own cell, or of one that it is at the edge of, is below its bound."""
    v = np.array([float(x) for x in point.values()])
    table, counts, mixed = found.partition.table, found.pooled.outcome_counts, found.pooled.mixed
    f, visits, is_seen = table.values(v)[0], table.visits(counts), counts > 0

    def log_wealth(cell):
        placed = [each for _, each in found.place(cell, found.gradients(cell.centre), np.arange(len(LENGTHS)))]
        logs = (
            [log(placed[0].weights[-1]) + found.log_evidence - counts[is_seen] @ np.log(f[is_seen])] if placed else []
        )
        for each in placed:
            for weight, e in zip(each.weights, each.factors, strict=False):
                means = np.bincount(table.group, f * e, len(visits))[visits > 0]
                won = log_gains(table, counts, e, mixed if mixed.any() else None).sum()
                logs.append(log(weight) + won - np.log(means) @ visits[visits > 0])
        return np.logaddexp.reduce(logs) if logs else -inf

    with np.errstate(all="ignore"):
        return any(log_wealth(cell) < -log(found.total) for cell in found.partition.meeting(v, v))


def is_in_strips(strips, point):
    """Return whether all events have probabilities within their intervals at a point."""
    ends = zip(strips.events.polynomials, strips.event_lower.tolist(), strips.event_upper.tolist(), strict=True)
    return all(low <= f.evaluate(point) <= high for f, low, high in ends)


@satisfies.register
def is_likely(found: LevelSet, point):
    """Return whether a point surely has a log-likelihood above the threshold."""
    return is_above(found.threshold, found.outcome_counts, [f.evaluate(point) for f in found.table.outcomes])


@satisfies.register
def _(found: PathLevelSet, point):
    paths = found.paths
    chances = [f.evaluate(point) for f in paths.table.outcomes]
    factors = [chances[i] for i in paths.factors.tolist()]
    each = [
        constant * prod(f ** int(power) for f, power in zip(factors, powers, strict=True))
        for constant, powers in zip(paths.constants, paths.exponents.tolist(), strict=True)
    ]
    sums = [sum(each[first:last]) for first, last in pairwise(paths.first.tolist())]
    return is_above(found.threshold, [*found.outcome_counts, *found.path_counts], [*chances, *sums])


def is_above(threshold, counts, chances):
    """Return whether a log-likelihood is surely above a threshold."""
    terms = [k * (log(f) if f > 0 else -inf) for k, f in zip(counts, chances, strict=True) if k]
    margin = _MARGIN * (1 + sum(map(abs, terms)) + abs(min(threshold, 0.0)))
    return threshold == -inf or sum(terms) >= threshold + margin


def points_of_set(rng, learned, directions, n):
    """Return points of the set that was learned: those at corners, and n about its ends, half of them inside.

    Ends are looked for along ``directions`` both ways, then along random ones, from a point that is inside.
    """
    model, found = learned.model, set_of(learned)
    d, names = model.space.dimension, model.space.names

    def as_point(at):
        return dict(zip(names, map(Fraction, at.tolist()), strict=True))

    def is_inside(at):
        return is_member(model, found, as_point(at))

    lower, upper = learned.region.lower[:d], learned.region.upper[:d]
    corners = [
        *model.space.vertices,
        *map(as_point, np.array(np.meshgrid(*zip(lower, upper, strict=True))).reshape(d, -1).T),
    ]
    result = [corner for corner in corners if is_member(model, found, corner)]
    middle = (lower + upper) / 2
    proposed = [move_inside(model, learned.estimate, middle), middle, *rng.uniform(lower, upper, (40, d))]
    start = next((at for at in proposed if is_inside(at)), None)
    if start is None:
        return result
    lines = [side * line for line in directions for side in (1, -1) if np.abs(line).max(initial=0) > 0]
    size = np.linalg.norm(upper - lower)
    for i in range(n // 2):
        line = lines[i] if i < len(lines) else (upper - lower) * rng.normal(size=d)
        if not line.any():  # of a set that is one point
            break
        end = last_inside(is_inside, start, 1.5 * size * line / np.linalg.norm(line))
        between = start + np.round(2**20 * rng.random()) / 2**20 * (end - start)
        result += [as_point(at) for at in (end, between) if is_inside(at)]
    return result


def is_member(model, found, point):
    """Return whether a point belongs to a set."""
    return is_point_of(model, point) and satisfies(found, point)


def last_inside(is_inside, start, step):
    """Return about the last point on a line that is inside, by bisection."""
    inside, outside = 0.0, 1.0
    for _ in range(14):
        middle = (inside + outside) / 2 if inside else outside / 4
        if is_inside(start + middle * step):
            inside = middle
        else:
            outside = middle
    return start + inside * step
