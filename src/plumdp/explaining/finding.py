"""Makes the parts of ``Findings`` about parameters, expressions and the policy, which pictures and reports draw.

They are ordered by an estimate of how much the value of a policy depends on each expression.
"""

from __future__ import annotations

from itertools import combinations
from math import cos, pi

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, WhyNot
from plumdp.confidence.observations import pool
from plumdp.confidence.space_moments import simplified
from plumdp.explaining.design import table_question
from plumdp.learning.learned import Learned
from plumdp.model.events import Events, find_events
from plumdp.model.graph import FloatArray, IntArray, owners
from plumdp.model.objectives import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, check_policy, memory_of
from plumdp.model.question import Asked, Question, ask
from plumdp.region.build import build_region, project
from plumdp.region.conflict import Conflict
from plumdp.region.ellipsoid import Ellipsoid, Enclosed
from plumdp.region.shapes import Polytope, Region
from plumdp.result.findings import ExpressionRow, HalfPlane, Outline, Point
from plumdp.solver.chains import chain_equations
from plumdp.solver.coupled.chain import PolicyChain, policy_chain
from plumdp.solver.coupled.gradient import policy_gradient
from plumdp.solver.problem import Problem
from plumdp.solver.reduce import reduce
from plumdp.tables.table_set import TableSet

MOST_PARAMETERS = 6  # in a picture
_MOST_CUTS = 24
_DIRECTIONS = 96  # of an outline
_ACTIVE = 1e-6  # how near a half-space must come to the region to be drawn, relative to the region's width


def outlines(learned: Learned, objective: Asked | None = None, policy: Policy | None = None) -> tuple[Outline, ...]:
    """Return the outline of the region for each pair of the at most six parameters that matter most.

    A parameter matters by the width of its bounds times the derivative of the value at the estimate. Without objective
    and policy, it is the value that the pilot chose directions for. A single parameter has one outline, whose second
    name is empty and whose points have the second coordinate zero. If the data reject the model there is none.
    """
    region, names = learned.region, learned.model.space.names
    if isinstance(region, Conflict) or not names:
        return ()
    space = build_region(simplified(learned.model.space), [], [], [])
    assert not isinstance(space, Conflict)
    if len(names) == 1:
        return (_strip(learned, region, space),)
    importance = _importance(learned, region, objective, policy)
    kept = sorted(np.argsort(-importance, kind="stable")[:MOST_PARAMETERS].tolist())
    return tuple(_outline(learned, region, space, i, j) for i, j in combinations(kept, 2))


def _importance(learned: Learned, region: Region, objective: Asked | None, policy: Policy | None) -> FloatArray:
    """Return an estimate, to first order, of the part of the width of the bounds that each parameter causes."""
    d = learned.model.space.dimension
    width = (region.upper - region.lower)[:d]
    slopes = [direction.gradient for direction in learned.bounds.directions]
    if objective is not None and policy is not None:
        question = ask(objective, learned.model, memory=memory_of(policy))
        slopes = [policy_gradient(question.model, policy, question.objective, learned.estimate)[1]]
    slopes = [slope for slope in slopes if np.isfinite(slope).all() and slope.any()]
    sizes = [np.abs(slope) / np.abs(slope).max() for slope in slopes]
    weight = np.max(sizes, axis=0) if sizes else np.ones(d)
    return np.asarray(width * weight)


def _strip(learned: Learned, region: Region, space: Region) -> Outline:
    low, high = float(region.lower[0]), float(region.upper[0])
    ends = (float(space.lower[0]), 0.0), (float(space.upper[0]), 0.0)
    likely = learned.shown_estimate
    at = None if likely is None else (float(likely[0]), 0.0)
    return Outline((learned.model.space.names[0], ""), at, ((low, high), (0.0, 0.0)), ends, ((low, 0.0), (high, 0.0)))


def _outline(learned: Learned, region: Region, space: Polytope, i: int, j: int) -> Outline:
    names, likely = learned.model.space.names, learned.shown_estimate
    box = tuple((float(region.lower[k]), float(region.upper[k])) for k in (i, j))
    is_plane = len(names) == 2
    return Outline(
        (names[i], names[j]),
        None if likely is None else (float(likely[i]), float(likely[j])),
        (box[0], box[1]),
        _around(space, i, j),
        _around(region, i, j),
        _ellipse(region, i, j),
        _cuts(learned, region) if is_plane else (),
    )


def _around(region: Region, i: int, j: int) -> tuple[Point, ...]:
    """Return a polygon that encloses the projection of a region to two of its coordinates.

    It is cut by tangents in many directions, evenly in a picture as wide as the region is, and by the sides of a
    polytope in these two coordinates.
    """
    low, high = region.lower[[i, j]], region.upper[[i, j]]
    size = np.where(high > low, high - low, np.maximum(np.abs(high), 1.0))
    normals = directions_around(_DIRECTIONS)
    polytope = region.polytope if isinstance(region, Enclosed) else region
    if isinstance(polytope, Polytope):
        others = np.delete(polytope.rows, [i, j], axis=1)
        sides = polytope.rows[~others.any(axis=1)][:, [i, j]] * size
        normals = np.vstack([normals, sides[sides.any(axis=1)]])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    rows = np.zeros((len(normals), len(region.names)))
    rows[:, [i, j]] = normals / size
    offsets = -region.minimise(-rows)
    inside = clipped((low / size, high / size), normals, offsets)
    return tuple((x, y) for x, y in (inside * size).tolist())


def _ellipse(region: Region, i: int, j: int) -> tuple[Point, ...]:
    """Return a polygon around the projection of the ellipsoid, if there is one."""
    ellipsoid = region.ellipsoid if isinstance(region, Enclosed) else region
    if not isinstance(ellipsoid, Ellipsoid):
        return ()
    factor = ellipsoid.radius * ellipsoid.root[[i, j]]
    axes, lengths, _ = np.linalg.svd(factor, full_matrices=False)
    axes[:, 1] *= np.sign(np.linalg.det(axes))  # corners go around to the left, as those of other polygons
    circle = directions_around(_DIRECTIONS) / cos(pi / _DIRECTIONS)  # its sides touch the ellipse from outside
    points = ellipsoid.centre[[i, j]] + circle @ (axes * lengths).T
    return tuple((x, y) for x, y in points.tolist())


def _cuts(learned: Learned, region: Region) -> tuple[HalfPlane, ...]:
    """Return the half-spaces in two parameters that touch the region, each with its origin in words."""
    half_spaces = learned.bounds.half_spaces(learned.model.space.names)
    cuts = [HalfPlane((float(side.row[0]), float(side.row[1])), side.offset, side.text) for side in half_spaces]
    rows = np.zeros((len(cuts), len(region.names)))
    rows[:, :2] = [cut.normal for cut in cuts] if cuts else np.zeros((0, 2))
    reach = -region.minimise(-rows) if len(rows) else np.zeros(0)
    width = np.abs(rows[:, :2]) @ (region.upper - region.lower)[:2]
    touches = [bool(reach[k] >= cut.offset - _ACTIVE * width[k]) and width[k] > 0 for k, cut in enumerate(cuts)]
    return tuple(cut for cut, is_near in zip(cuts, touches, strict=True) if is_near)[:_MOST_CUTS]


def expression_rows(
    learned: Learned, objective: Asked, policy: Policy, *, most: int = 200
) -> tuple[ExpressionRow, ...]:
    """Return bounds on unknown expressions, in the order of how much their width matters to the policy's value.

    An expression and its complement count once. If the data reject the model there are no bounds.
    """
    region, model = learned.region, learned.model
    if isinstance(region, Conflict):
        return ()
    events = find_events(model.counted)
    shown, trials, successes = (part[: _n_asked(learned, events)] for part in _tried(learned, events))
    lower, upper = project(region, model.expressions)
    lower, upper = lower.clip(0, 1), upper.clip(0, 1)
    point, is_shown = learned.estimate, learned.shown_estimate is not None
    likely = model.expressions.evaluate(point[None, :])[:, 0].clip(lower, upper)
    question = ask(objective, model, memory=memory_of(policy))
    importance = ((upper - lower) * expression_weights(question.model, policy, question.objective, point))[shown]
    rows = []
    for k in np.argsort(-importance, kind="stable")[:most].tolist():
        f = int(shown[k])
        expression = str(model.expressions.polynomials[f])
        ends = float(lower[f]), float(upper[f])
        estimate = float(likely[f]) if is_shown else None
        rows.append(ExpressionRow(expression, *ends, estimate, int(trials[k]), int(successes[k])))
    return tuple(rows)


def count_expressions(learned: Learned) -> int:
    """Return the number of unknown expressions, where one and its complement count once."""
    if learned.model.counted.is_table:
        return learned.model.expressions.n_free
    return _n_asked(learned, find_events(learned.model.counted))


def _n_asked(learned: Learned, events: Events) -> int:
    """Return the number of expressions that questions may be about, which come first."""
    return int((_shown(events)[0] < len(learned.model.expressions)).sum())


def _shown(events: Events) -> tuple[IntArray, IntArray]:
    """Return expressions that are not complements of others, each with the link to its most informative event."""
    links = events.links
    order = np.lexsort((links.multiple, links.is_complement, links.expression))
    expression, first = np.unique(links.expression[order], return_index=True)
    link = order[first]
    kept = ~links.is_complement[link]
    return expression[kept].astype(np.int32), link[kept].astype(np.int32)


def _tried(learned: Learned, events: Events) -> tuple[IntArray, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return expressions, and how often each was tried and happened, where m successors with it are m trials."""
    pooled, (expression, link) = pool(events, learned.counts), _shown(events)
    event = events.links.event[link]
    trials = pooled.trials[event] * events.links.multiple[link]
    return expression, trials, pooled.successes[event]


def table_rows(learned: Learned, asked: Question, policy: Policy, *, most: int = 200) -> tuple[ExpressionRow, ...]:
    """Return bounds on the probabilities of unknown rows, first those of rows that limit the width most."""
    model, (bounds,) = learned.model.counted, learned.bounds.of_kind(TableSet)
    graph, rows = model.graph, model.rows
    seen = rows.sum_by_place(learned.counts.counts)
    visits = rows.sum_by_row(seen)
    found = []
    for row in np.argsort(-_share_of_rows(learned, asked, policy, visits), kind="stable").tolist():
        if not model.is_free_row[row]:
            continue
        choice = graph.describe_choice(int(rows.representative[row]))
        for place in range(rows.first[row], rows.first[row + 1]):
            transition = rows.transition[place]
            f, to = int(model.expression[transition]), graph.describe_state(int(graph.successor[transition]))
            ends = float(bounds.lower[f]), float(bounds.upper[f])
            share = float(np.clip(seen[place] / visits[row], *ends)) if visits[row] else None
            found.append(ExpressionRow(f"{choice}, to ({to})", *ends, share, int(visits[row]), int(seen[place])))
        if len(found) >= most:
            break
    return tuple(found[:most])


def _share_of_rows(learned: Learned, asked: Question, policy: Policy, visits: FloatArray) -> FloatArray:
    """Return the share of the variance of each row (n_rows), or its visits where the value says nothing about rows."""
    try:
        question = table_question(learned, asked, policy)
    except DataError:
        return visits
    return np.asarray(question.class_rates(visits) * (visits + 1))


_OUTWARD = 1e-9  # by which half-planes are moved, relative to coordinates; far more than rounding


def directions_around(n: int) -> FloatArray:
    """Return n directions of length one (n, 2), evenly around the circle."""
    angle = 2 * pi * np.arange(n) / n
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def clipped(box: tuple[FloatArray, FloatArray], normals: FloatArray, offsets: FloatArray) -> FloatArray:
    """Return the corners (k, 2) of a polygon around all points of a box with ``normals @ point <= offsets``.

    Normals have length one. Each half-plane, and the box, is moved outward by more than the rounding error, so that no
    such point is lost, as long as coordinates are not much larger than the widths of the box.

    >>> corners = clipped((np.zeros(2), np.ones(2)), np.array([[1.0, 0.0]]), np.array([0.5]))
    >>> bool(0.5 <= corners[:, 0].max() < 0.5 + 1e-6)
    True
    """
    margin = _OUTWARD * (1 + max(np.abs(box[0]).max(), np.abs(box[1]).max()))
    (left, bottom), (right, top) = box[0] - margin, box[1] + margin
    polygon = np.array([[left, bottom], [right, bottom], [right, top], [left, top]])
    for normal, offset in zip(normals, offsets + margin, strict=True):
        cut = _cut(polygon, polygon @ normal - offset)
        polygon = cut if len(cut) > 2 else polygon  # outward: what is around a sliver is kept
    return polygon


def _cut(polygon: FloatArray, beyond: FloatArray) -> FloatArray:
    """Return the part of a convex polygon that is not beyond a line, given how far each corner is beyond it."""
    if (beyond <= 0).all():
        return polygon
    after, next_beyond = np.roll(polygon, -1, axis=0), np.roll(beyond, -1)
    corners: list[FloatArray] = []
    for here, there, a, b in zip(polygon, after, beyond, next_beyond, strict=True):
        if a <= 0:
            corners.append(here)
        if (a <= 0) != (b <= 0):
            corners.append(here + (there - here) * (a / (a - b)))
    return np.array(corners).reshape(-1, 2)


_LEAST = 1e-9  # of one minus a probability


def expression_weights(model: ParametricMDP, policy: Policy, objective: Objective, point: FloatArray) -> FloatArray:
    """Return estimates of the absolute change of a policy's value with each expression (n_expressions) at a point.

    What an outcome gains, the others of its row lose in proportion, which changes the value by
    Σ_s μ(s) (V(successor) - mean of V) / (1 - f), with μ(s) the expected visits of s. For objectives with a number of
    steps, and where the value is infinite, it is the derivative of the value along the expression's gradient.

    >>> from plumdp import case_study
    >>> study = case_study("betting:5")
    >>> first = study.model.graph.first_choice[:-1]  # never bets anything
    >>> float(expression_weights(study.model, first, study.objective, np.array([0.5])).max())
    0.0
    """
    asked = reduce(Problem(model, objective, check_policy(model.graph, policy))).problem
    assert asked.policy is not None
    chain = policy_chain(asked.mdp, asked.policy, asked.objective)
    if asked.objective.n_steps is None and not isinstance(chain, WhyNot) and chain.n_open:
        values = asked.mdp.expressions.chances(np.asarray(point, dtype=np.float64))
        weights = _along_the_chain(chain.with_coins(), values)
        if weights is not None:
            return weights[: len(model.expressions)]
    return _along_gradients(model, policy_gradient(model, policy, objective, point)[1], point)


def _along_the_chain(chain: PolicyChain, values: FloatArray) -> FloatArray | None:
    probability, source = values[chain.expression], owners(chain.first)
    equations = chain_equations(chain, probability * chain.discount)
    if equations is None:
        return None
    value = np.concatenate([np.zeros(chain.n_open), chain.known])
    entering = np.bincount(source, probability * chain.discount * value[chain.successor], chain.n_open)
    value[: chain.n_open] = equations.solve((chain.reward + entering)[:, None])[:, 0]
    visits = equations.solve_transposed((np.arange(chain.n_open) == chain.initial).astype(np.float64))
    mean = np.bincount(source, probability * value[chain.successor], chain.n_open)
    gain = chain.discount * visits[source] * (value[chain.successor] - mean[source])
    gain /= np.maximum(1 - probability, _LEAST)
    return np.abs(np.bincount(chain.expression, gain, len(values)))


def _along_gradients(model: ParametricMDP, gradient: FloatArray, point: FloatArray) -> FloatArray:
    """Return |gradient of the value · gradient of each expression| / |the latter|, by differences."""
    step = 1e-6
    moved = np.asarray(point, dtype=np.float64)[None, :] + step * np.vstack([np.eye(len(point)), -np.eye(len(point))])
    ends = model.expressions.evaluate(moved)
    slopes = (ends[:, : len(point)] - ends[:, len(point) :]) / (2 * step)
    length = np.maximum(np.linalg.norm(slopes, axis=1), _LEAST)
    return np.abs(slopes @ gradient) / length if np.isfinite(gradient).all() else np.ones(len(ends))
