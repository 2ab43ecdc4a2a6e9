"""Rows that are off from those of a model by a misfit in total variation, exactly: at random, or as an opponent wants.

Rows are lists of fractions, one for each transition of the model. A row that is moved is off by at most the misfit as
the float has it.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
from coupled_points import exact_value

import plumdp as pl
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.relaxation.intervals import IntervalMDP

ROUNDS = 12


def rows_at(model, point):
    """Return the probability of each transition at a point of the space."""
    exact = {name: Fraction(value) for name, value in model.space.point(point).items()}
    values = [f.evaluate(exact) for f in model.expressions.polynomials]
    return [values[f] for f in model.expression.tolist()]


def total_variations(graph, one, other):
    """Return by how much each choice is off."""
    apart = [abs(a - b) for a, b in zip(one, other, strict=True)]
    return [sum(apart[a:b], Fraction(0)) / 2 for a, b in choices(graph)]


def choices(graph):
    """Return the transitions of each choice, as first and last."""
    return list(pairwise(graph.first_transition.tolist()))


def moved_at_random(rng, graph, rows, misfit):
    """Return rows moved by a random share of the misfit each, often all of it, between random successors."""
    result = []
    for a, b in choices(graph):
        order = rng.permutation(b - a).tolist()
        share = Fraction(1 if rng.random() < 0.5 else float(rng.random()))
        result += _moved(rows[a:b], order, order[-1], share * Fraction(misfit))
    return result


def moved_towards(graph, rows, values, misfit, side):
    """Return rows with the misfit moved from successors with the least values to the one with the largest; or back."""
    result = []
    for a, b in choices(graph):
        order = np.argsort(side * values[graph.successor[a:b]], kind="stable").tolist()
        result += _moved(rows[a:b], order, order[-1], Fraction(misfit))
    return result


def _moved(row, order, to, mass):
    """Return a row from which mass was taken in some order, as much as there is, and given to one successor."""
    row, left = list(row), mass
    for place in order:
        if place != to:
            taken = min(row[place], left)
            row[place] -= taken
            row[to] += taken
            left -= taken
    return row


def known_mdp(graph, rows):
    """Return the Markov decision process of rows, to the nearest float."""
    values = np.array([float(p) for p in rows])
    return IntervalMDP(graph, np.arange(graph.n_transitions, dtype=np.int32), values, values)


def moved_against(model, rows, policy, objective, misfit, side):
    """Return rows that make the value of a policy as large (side 1) or small (-1) as an opponent can, about."""
    graph, found = model.graph, rows
    for _ in range(ROUNDS):
        worth = pl.evaluate(known_mdp(graph, found), policy, objective).upper
        finite = worth[np.isfinite(worth)]
        worth = np.where(np.isfinite(worth), worth, 10 * finite.max(initial=1.0) + 1)
        new = moved_towards(graph, rows, worth, misfit, side)
        if new == found:
            break
        found = new
    return found


def model_of_rows(model, rows):
    """Return the model with the given numbers in place of expressions: the truth, if its rows are off."""
    table = ExpressionTable.build([Polynomial(p) for p in rows], ())
    space = pl.ParameterSpace.unit()
    expression = np.arange(len(rows), dtype=np.int32)
    return replace(model, declared_space=space, space=space, expressions=table, expression=expression)


def exact_value_of(model, rows, policy, objective):
    """Return the exact value of a policy in the initial state, given the rows."""
    return exact_value(model_of_rows(model, rows), policy, objective, {})


def points_within(rng, model, found, region, n):
    """Return points of the space within the half-spaces and strips of a set, in fractions: some at its boundary."""
    names, d = model.space.names, model.space.dimension
    rows = [[Fraction(x) for x in row] for row in found.rows.tolist()]
    offsets = [Fraction(x) for x in found.offsets.tolist()]
    ends = list(zip(found.strips.event_lower.tolist(), found.strips.event_upper.tolist(), strict=True))

    def inside(at):
        point = dict(zip(names, map(Fraction, at.tolist()), strict=True))
        sides = [low <= point[x] <= high for x, (low, high) in zip(names, model.space.bounds, strict=True)]
        sides += [f.evaluate(point) >= 0 for f in model.space.constraints]
        sides += [0 <= f.evaluate(point) <= 1 for f in model.expressions.polynomials]
        events = zip(found.strips.events.polynomials, ends, strict=True)
        sides += [Fraction(low) <= f.evaluate(point) <= Fraction(high) for f, (low, high) in events]
        cuts = (sum(a * v for a, v in zip(row, point.values(), strict=True)) for row in rows)
        return all(sides) and all(cut <= offset for cut, offset in zip(cuts, offsets, strict=True))

    lower, upper = region.lower[:d], region.upper[:d]
    proposed = [found.estimate, (lower + upper) / 2, *rng.uniform(lower, upper, (40, d))]
    start = next((at for at in proposed if inside(np.asarray(at))), None)
    if start is None:
        return []
    result = []
    for _ in range(n):
        step = (upper - lower) * rng.normal(size=d)
        step /= max(float(np.abs(step / np.maximum(upper - lower, 1e-300)).max()), 1e-300)
        low, high = 0.0, 1.0
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (middle, high) if inside(start + middle * step) else (low, middle)
        result.append(dict(zip(names, map(Fraction, (start + low * step).tolist()), strict=True)))
    return result
