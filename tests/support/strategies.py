"""Hypothesis strategies shared by tests, and the school method of polynomial arithmetic to compare with."""

import operator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from plumdp import parameters
from plumdp.model.expressions.polynomial import Polynomial, polynomial

NAMES = ("p", "q", "r")

rationals = st.fractions(-3, 3, max_denominator=12)
points = st.fixed_dictionaries(dict.fromkeys(NAMES, rationals))


@dataclass(frozen=True)
class Written:
    """A number as a user writes it, and the number that is meant."""

    written: object
    meant: Fraction


def _decimal(digits, places, kind):
    text = f"{digits}e-{places}"
    return Written(kind(text), Fraction(digits, 10**places))


numbers = st.one_of(
    st.integers(-9, 9).map(lambda n: Written(n, Fraction(n))),
    st.integers(-9, 9).map(lambda n: Written(np.int64(n), Fraction(n))),
    rationals.map(lambda f: Written(f, f)),
    st.builds(_decimal, st.integers(-9999, 9999), st.integers(0, 5), st.sampled_from([float, Decimal, np.float64])),
)

trees = st.recursive(
    st.sampled_from(NAMES) | numbers,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from([operator.add, operator.sub, operator.mul]), inner, inner),
        st.tuples(st.just(operator.truediv), inner, numbers.filter(lambda number: number.meant != 0)),
        st.tuples(st.just(operator.pow), inner, st.integers(0, 3)),
        st.tuples(st.just(operator.neg), inner),
    ),
    max_leaves=8,
)
"""Expressions as nested tuples: an operator and its operands; leaves are names and numbers."""


def unknowns():
    """Return p, q and r as polynomials that come from different calls, in different orders, with unused names."""
    (p,) = parameters("p")
    _, q = parameters("z", "q")
    r, _, _ = parameters("r", "p", "a")
    return {"p": p, "q": q, "r": r}


def fold(tree, names, number):
    """Return the value of a tree where a name means ``names[name]`` and a leaf number means ``number(leaf)``."""
    if isinstance(tree, str):
        return names[tree]
    if isinstance(tree, Written):
        return number(tree)
    if isinstance(tree, int):
        return tree  # an exponent
    operation, *operands = tree
    return operation(*(fold(operand, names, number) for operand in operands))


def write(tree):
    """Return the polynomial of a tree, the way a user writes it: numbers meet polynomials as they are."""

    def written(tree):
        if isinstance(tree, str):
            return variables[tree]
        if isinstance(tree, Written):
            return tree.written
        operation, *operands = tree
        values = [written(operand) if not isinstance(operand, int) else operand for operand in operands]
        if not any(isinstance(value, Polynomial) for value in values):
            values[0] = polynomial(values[0])  # 0.1 + 0.2 would be Python's own sum
        return operation(*values)

    variables = unknowns()
    return polynomial(written(tree))


def expand(tree):
    """Return exponents of p, q, r → nonzero coefficient of a tree, by the school method."""
    one = (0,) * len(NAMES)
    names = {name: Expanded({tuple(int(name == other) for other in NAMES): Fraction(1)}) for name in NAMES}
    return fold(tree, names, lambda leaf: Expanded({one: leaf.meant})).nonzero()


@dataclass(frozen=True)
class Expanded:
    """A polynomial as exponents → coefficient, zeros included."""

    terms: dict

    def nonzero(self):
        return {exponents: coefficient for exponents, coefficient in self.terms.items() if coefficient}

    def __add__(self, other):
        keys = self.terms.keys() | other.terms.keys()
        return Expanded({key: self.terms.get(key, 0) + other.terms.get(key, Fraction(0)) for key in keys})

    def __neg__(self):
        return Expanded({key: -value for key, value in self.terms.items()})

    def __sub__(self, other):
        return self + -other

    def __mul__(self, other):
        product = {}
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                key = tuple(i + j for i, j in zip(a, b, strict=True))
                product[key] = product.get(key, Fraction(0)) + x * y
        return Expanded(product)

    def __truediv__(self, other):
        (divisor,) = other.terms.values()
        return Expanded({key: value / divisor for key, value in self.terms.items()})

    def __pow__(self, exponent):
        result = Expanded({(0,) * len(NAMES): Fraction(1)})
        for _ in range(exponent):
            result = result * self
        return result
