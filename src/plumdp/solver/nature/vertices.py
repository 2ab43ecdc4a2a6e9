"""Compiled backups, rounded outward, and chains of best moves where nature picks points of a polytope.

The interface is that of ``interval.backup`` and ``interval.chain_of_best``. Either all rows pick from one polytope, or
each kind of row from its own. The vertices of all of them are in one table, and a row starts at one of its own. A row
without a vertex (-1) has its intervals. Rows with at most two successors need no region, since over it their expression
ranges over an interval, which is all that matters. In longer rows nature's choice is the vertex of the region with the
best value of the row, found by walking along edges from the vertex of the last sweep.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plumdp.base.compiled import compiled_leaf
from plumdp.base.rounding import UNDERFLOW, UNIT
from plumdp.region.kernels import LEVEL
from plumdp.solver.nature.interval import infinite_row
from plumdp.solver.nature.shared import interval_move, make_loops

MAX_STEPS = 10_000


@compiled_leaf
def best_vertex(objective: Any, vertex: int, edges: Any, neighbours: Any, reach: Any) -> tuple[int, float, float]:
    """Return the vertex with the least value of the objective, walking from the given one along falling edges.

    Also returns the size of the objective, and a bound on how far falling edges without a known end may lead.
    """
    d = len(objective)
    size = 0.0
    for j in range(d):
        size += abs(objective[j])
    beyond = 0.0
    for _ in range(MAX_STEPS):
        steepest, best, beyond = -1, -LEVEL * size, 0.0
        for i in range(d):
            slope = 0.0
            for j in range(d):
                slope += edges[vertex, i, j] * objective[j]
            if slope < -LEVEL * size:
                beyond += (-slope - LEVEL * size) * reach[vertex, i]
                if slope < best and neighbours[vertex, i] >= 0:
                    steepest, best = i, slope
        if steepest < 0:
            break
        vertex = neighbours[vertex, steepest]
    return vertex, size, beyond


@compiled_leaf
def place_of(f: int, vertex: int, kind: Any, first_member: Any, members: Any) -> int:
    """Return the row of an expression's coefficients, its number, or its place in the kind of row of the vertex."""
    if len(kind) == 0:
        return f
    k = kind[vertex]
    for i in range(first_member[k], first_member[k + 1]):
        if members[i] == f:
            return i
    return -1  # an expression that is zero


@compiled_leaf
def row_objective(
    a: int, b: int, vertex: int, successor: Any, expression: Any, source: Any, reference: float, nature: float,
    coefficients: Any, constants: Any, sizes: Any, kind: Any, first_member: Any, members: Any, objective: Any,
) -> tuple[float, float]:  # fmt: skip
    """Write the objective that nature minimises, and return the row's constant part and the size for rounding.

    Values count as differences to the reference, so that equal values leave nothing to round. Infinite ones are left
    out.
    """
    d = len(objective)
    constant, size = 0.0, 0.0
    for j in range(d):
        objective[j] = 0.0
    for t in range(a, b):
        f = expression[t]
        difference = source[successor[t]] - reference
        if difference != 0.0 and abs(difference) < np.inf:
            i = place_of(np.int64(f), vertex, kind, first_member, members)
            if i >= 0:
                constant += constants[i] * difference
                size += sizes[i] * abs(difference) + UNDERFLOW
                for j in range(d):
                    objective[j] -= nature * coefficients[i, j] * difference
    return constant, size


@compiled_leaf
def region_row(
    a: int, b: int, row: int, successor: Any, expression: Any, lower: Any, upper: Any, source: Any, nature: float,
    side: float, position: Any, objective: Any, buffer: Any, tables: Any,
) -> Any:  # fmt: skip
    """Return the value of a row with nature at its best, rounded to the given side."""
    coefficients, constants, sizes, vertices, edges, neighbours, margin, reach, kind, first_member, members = tables
    is_finite, reference = True, source[successor[a]]
    for t in range(a, b):
        if abs(source[successor[t]]) == np.inf:
            f = expression[t]
            if upper[f] > 0.0 and (nature > 0.0 or lower[f] > 0.0 or side > 0.0):
                return np.inf
            is_finite = False
    if not is_finite or position[row] < 0:  # nature avoids infinite values as well as intervals allow: no worse
        value, error = infinite_row(a, b, successor, expression, lower, upper, source, nature, buffer)
        return value + side * error if error != 0.0 else value
    constant, size = row_objective(
        a, b, position[row], successor, expression, source, reference, nature, coefficients, constants, sizes, kind,
        first_member, members, objective,
    )  # fmt: skip
    if size == 0.0:
        return reference
    vertex, weight, beyond = best_vertex(objective, position[row], edges, neighbours, reach)
    position[row] = vertex
    least = 0.0
    for j in range(len(objective)):
        least += objective[j] * vertices[vertex, j]
    slack = margin[vertex] * weight
    if side * nature > 0.0:  # away from nature's optimum: what no point of the region passes
        slack += beyond
    value = reference + (constant - nature * least)
    error = UNIT * ((3.0 * float(b - a) + 12.0) * size + 4.0 * abs(value)) + slack + UNDERFLOW
    value += side * error  # outward: below for lower bounds, above for upper ones
    if side * nature > 0.0 and (beyond > 0.0 or touches_zero(a, b, expression, lower)):  # intervals may say more
        by_intervals, error = infinite_row(a, b, successor, expression, lower, upper, source, nature, buffer)
        if error != 0.0:
            by_intervals += side * error
        if nature * by_intervals < nature * value:
            return by_intervals
    return value


@compiled_leaf
def touches_zero(a: int, b: int, expression: Any, lower: Any) -> bool:
    """Return whether a transition of the row may vanish, so that nature may stay, which only intervals tell exactly."""
    touches = False
    for t in range(a, b):
        touches = touches or lower[expression[t]] == 0.0
    return touches


@compiled_leaf
def best_move(
    a: int, b: int, row: int, successor: Any, expression: Any, lower: Any, upper: Any, judge: Any, nature: float,
    position: Any, objective: Any, move: Any, tables: Any,
) -> None:  # fmt: skip
    """Write nature's best probabilities in a row, as the row's value has them."""
    coefficients, constants, sizes, vertices, edges, neighbours, _, reach, kind, first_member, members = tables
    if b - a == 1:
        move[0] = 1.0
    elif b - a == 2:
        is_first = nature * judge[successor[a]] >= nature * judge[successor[a + 1]]
        f, g = (expression[a], expression[a + 1]) if is_first else (expression[a + 1], expression[a])
        other = max(1.0 - upper[f], lower[g])
        move[0], move[1] = (1.0 - other, other) if is_first else (other, 1.0 - other)
    elif position[row] < 0:
        interval_move(a, b, successor, expression, lower, upper, judge, nature, move)
    else:
        reference = judge[successor[a]] if abs(judge[successor[a]]) < np.inf else 0.0
        row_objective(
            a, b, position[row], successor, expression, judge, reference, nature, coefficients, constants, sizes, kind,
            first_member, members, objective,
        )  # fmt: skip
        vertex, _, _ = best_vertex(objective, position[row], edges, neighbours, reach)
        for t in range(a, b):
            place = place_of(np.int64(expression[t]), vertex, kind, first_member, members)
            move[t - a] = constants[place] if place >= 0 else 0.0
            for j in range(len(objective) if place >= 0 else 0):
                move[t - a] += coefficients[place, j] * vertices[vertex, j]


backup, chain_of_best = make_loops(__name__, region_row, best_move, least=UNDERFLOW, small=100_000)
