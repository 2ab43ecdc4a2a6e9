"""Small random models with products of parameters, and data from a point of their space.

A model is one state with some rows, of kinds that occur in practice: two independent coins, a coin and a die, one coin
after the other, and powers and products without factors. All parameters lie in [0, 1].
"""

from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from row_models import row_model

import plumdp as pl
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.parametric import ParametricMDP

NAMES = ("p", "q", "r")


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, a point of its space, and counts of transitions at that point."""

    model: ParametricMDP
    point: dict[str, Fraction]
    counts: pl.TransitionCounts


def random_product_problem(rng, *, most=5000, kinds=None, n_parameters=None):
    """Return a random model with one to three rows per kind of row that is drawn, and its data."""
    d = n_parameters or int(rng.integers(1, 4))
    variables = pl.parameters(*NAMES[:d])
    chosen = rng.choice(kinds or [*KINDS], int(rng.integers(1, 4)))
    model = row_model([KINDS[kind](rng, variables) for kind in chosen], pl.ParameterSpace.unit(*NAMES[:d]))
    point = {name: Fraction(int(rng.integers(1, 100)), 100) for name in NAMES[:d]}
    return Problem(model, point, random_counts(rng, model, point, most=most))


def random_counts(rng, model, point, *, most=5000):
    """Return counts of samples at a point, a different number for each choice."""
    probability, graph = model.probabilities(point)[model.expression], model.graph
    counts = np.zeros(graph.n_transitions, dtype=np.int64)
    for a, b in zip(graph.first_transition[:-1], graph.first_transition[1:], strict=True):
        counts[a:b] = rng.multinomial(int(most ** rng.random()), probability[a:b] / probability[a:b].sum())
    return pl.TransitionCounts(graph, counts, "independent")


def coin(rng, variables):
    """Return an affine probability: a mixture of a parameter and of certainty or impossibility."""
    share, x = Fraction(int(rng.integers(2, 9)), 8), variables[rng.integers(len(variables))]
    return share * x + (1 - share) * int(rng.integers(2)) if rng.random() < 0.7 else 1 - share * x


def two_coins(rng, variables):
    """Return the outcomes of two independent coins, perhaps of the same parameter."""
    g, h = coin(rng, variables), coin(rng, variables)
    return [g * h, g * (1 - h), (1 - g) * h, (1 - g) * (1 - h)]


def coin_and_die(rng, variables):
    """Return the outcomes of a coin and an independent die with three sides."""
    g, h = coin(rng, variables), coin(rng, variables)
    die = [h / 2, h / 2 * Fraction(1, 3) + (1 - h) / 4, h / 3 + (1 - h) * Fraction(3, 4)]
    return [side * face for side in (g, 1 - g) for face in die]


def one_after_the_other(rng, variables):
    """Return the outcomes of a coin and, if it fails, of another."""
    g, h = coin(rng, variables), coin(rng, variables)
    return [g, (1 - g) * h, (1 - g) * (1 - h)]


def power(rng, variables):
    """Return a product of up to three parameters, and the rest."""
    drawn = prod((variables[i] for i in rng.integers(len(variables), size=rng.integers(2, 4))), start=Polynomial(1))
    f = Fraction(int(rng.integers(2, 5)), 4) * drawn
    return [f, 1 - f]


KINDS = {"coins": two_coins, "die": coin_and_die, "after": one_after_the_other, "power": power}
