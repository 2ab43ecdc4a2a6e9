"""Rows that are off from those of a model by a tolerance in total variation, exactly: at random, or as an adversary
wants.

Rows are lists of fractions, one for each transition of the model. A row that is moved is off by at most the tolerance
as the float has it.
"""

from fractions import Fraction
from itertools import pairwise

import numpy as np

import plumdp as pl
from plumdp.relaxation.intervals import IntervalMDP

ROUNDS = 12


def total_variations(graph, one, other):
    """Return by how much each choice is off."""
    apart = [abs(a - b) for a, b in zip(one, other, strict=True)]
    return [sum(apart[a:b], Fraction(0)) / 2 for a, b in choices(graph)]


def choices(graph):
    """Return the transitions of each choice, as first and last."""
    return list(pairwise(graph.first_transition.tolist()))


def moved_at_random(rng, graph, rows, model_tolerance):
    """Return rows moved by a random share of the model tolerance each, often all of it, between random successors."""
    result = []
    for a, b in choices(graph):
        order = rng.permutation(b - a).tolist()
        share = Fraction(1 if rng.random() < 0.5 else float(rng.random()))
        result += _moved(rows[a:b], order, order[-1], share * Fraction(model_tolerance))
    return result


def moved_towards(graph, rows, values, model_tolerance, side):
    """Return rows with the tolerance moved from successors of least value to the one with the largest; or back."""
    result = []
    for a, b in choices(graph):
        order = np.argsort(side * values[graph.successor[a:b]], kind="stable").tolist()
        result += _moved(rows[a:b], order, order[-1], Fraction(model_tolerance))
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


def moved_against(model, rows, policy, objective, model_tolerance, side):
    """Return rows that make the value of a policy as large (side 1) or small (-1) as an adversary can, about."""
    graph, found = model.graph, rows
    for _ in range(ROUNDS):
        worth = pl.stages.evaluate(known_mdp(graph, found), policy, objective).upper
        finite = worth[np.isfinite(worth)]
        worth = np.where(np.isfinite(worth), worth, 10 * finite.max(initial=1.0) + 1)
        new = moved_towards(graph, rows, worth, model_tolerance, side)
        if new == found:
            break
        found = new
    return found
