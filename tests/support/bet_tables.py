"""Tables of outcomes that bets are tried on, with counts of them, and processes in many digits."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import log, sqrt

import numpy as np
from row_models import row_model

import plumdp as pl
from plumdp.confidence.bets import factors_along, unit_steps
from plumdp.confidence.likelihood_table import likelihood_table

p, q = pl.parameters("p", "q")
LINE, SQUARE = pl.ParameterSpace.unit("p"), pl.ParameterSpace.unit("p", "q")
COIN = likelihood_table(row_model([[p, 1 - p]], LINE))
COINS = likelihood_table(row_model([[p, 1 - p], [q, 1 - q], [(p + q) / 2, 1 - (p + q) / 2]], SQUARE))
RARE = likelihood_table(
    row_model([[p / 1000, q / 7, 1 - p / 1000 - q / 7], [p * Fraction(1, 3), 1 - p * Fraction(1, 3)]], SQUARE)
)
TREE = likelihood_table(row_model([[p * q, p * (1 - q), 1 - p]], SQUARE))
MIXED = likelihood_table(row_model([[p, 1 - p], [q**2, 2 * q * (1 - q), (1 - q) ** 2]], SQUARE))
SUM = likelihood_table(row_model([[(p + 2 * q) / 3, 1 - (p + 2 * q) / 3]], SQUARE))
TABLES = {"coin": COIN, "coins": COINS, "rare": RARE, "tree": TREE, "mixed": MIXED, "sum": SUM}
DIGITS = 60


def is_outside(found, point):
    """Return whether a half-space excludes a point, decided in fractions."""
    exact = sum((Fraction(a) * Fraction(v) for a, v in zip(found.row.tolist(), point, strict=True)), Fraction(0))
    return exact > Fraction(found.offset)


def decimal(value):
    fraction = Fraction(value)
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def exact_value(polynomial, names, point):
    return Fraction(polynomial.evaluate(dict(zip(names, point, strict=True))))


def exact_process(table, seen, factors, point):
    """Return Σ K ln e - Σ N ln Z at a point of fractions, to about sixty digits."""
    with localcontext(prec=DIGITS):
        total = Decimal(0)
        for group in range(len(table.is_class)):
            members = np.flatnonzero(table.group == group).tolist()
            visits = sum(int(seen[j]) for j in members)
            if visits and table.is_class[group]:
                chances = [exact_value(table.outcomes[j], table.names, point) for j in members]
                mean = sum(
                    (f * Fraction(float(factors[j])) for j, f in zip(members, chances, strict=True)), Fraction(0)
                )
                total += sum(int(seen[j]) * decimal(float(factors[j])).ln() for j in members)
                total -= visits * decimal(mean).ln()
        return total


def random_counts(table, rng, most):
    """Return counts of outcomes at some point; some classes are never visited, and some outcomes never seen."""
    values = table.values(rng.uniform(0, 1, len(table.names)))[0].clip(0)
    seen = np.zeros(len(values))
    for group in range(len(table.is_class)):
        members = np.flatnonzero(table.group == group)
        if rng.random() < 0.7:
            law = values[members] / values[members].sum()
            seen[members] = rng.multinomial(int(most ** rng.uniform(0.4, 1)), law)
    return seen


def place_bets(table, point, information, gradient, *, error, side):
    """Return the factors of bets at an error on one side of a gradient; None if no outcome changes along it."""
    steps = unit_steps(table, information, gradient[None, :])
    return factors_along(table, point, side * sqrt(-2 * log(error)) * steps)[0] if steps.any() else None
