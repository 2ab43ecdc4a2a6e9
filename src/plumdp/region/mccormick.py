"""Envelopes of products of bounded variables, which are polynomials at least zero and affine in the products.

If x is at least l and y at most u, then (x - l)(u - y) is at least zero. With a variable for x y this is a half-space
(McCormick 1976). Products of more such factors, for higher degrees, are those of Sherali and Adams (1990).
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from math import prod
from operator import mul
from typing import TypeAlias

from plumdp.model.expressions.polynomial import Polynomial, parameters
from plumdp.model.expressions.table import ExpressionTable
from plumdp.region.half_spaces import monomial_name

Exponents: TypeAlias = tuple[int, ...]
Bounds: TypeAlias = tuple[tuple[Fraction, Fraction], ...]

_MAX_VARIABLES = 20  # beyond, not all divisors of a product are variables, only two factors of it for sure
_MAX_PRODUCTS = 64  # of bound factors, for one monomial


@dataclass(frozen=True)
class ProductVariables:
    """Parameters and products of parameters as variables, in which polynomials are affine."""

    parameters: tuple[str, ...]
    variables: tuple[Exponents, ...]  # the parameters, then products of them; the factors of each are there

    @staticmethod
    def of(table: ExpressionTable) -> ProductVariables:
        """Return the variables in which all expressions of a table are affine."""
        n = len(table.names)
        units = [tuple(int(i == j) for j in range(n)) for i in range(n)]
        products = {tuple(e) for e in table.monomials.tolist() if sum(e) > 1}
        return ProductVariables(table.names, (*units, *_closed(products)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The variables, named as polynomials print them."""
        return tuple(monomial_name(e, self.parameters) for e in self.variables)

    @cached_property
    def polynomials(self) -> tuple[Polynomial, ...]:
        """The variables as polynomials."""
        generators, one = parameters(*self.parameters), Polynomial(1)
        return tuple(prod(map(pow, generators, e), start=one) for e in self.variables)

    @cached_property
    def factorisations(self) -> tuple[tuple[int, int], ...]:
        """All pairs of variables whose product is a variable."""
        variables = set(self.variables)
        return tuple(
            (i, j)
            for i, a in enumerate(self.variables)
            for j, b in enumerate(self.variables[: i + 1])
            if tuple(map(operator.add, a, b)) in variables
        )

    @cached_property
    def full(self) -> tuple[Exponents, ...]:
        """The variables of degree three or more all of whose divisors are variables, and that divide no other such."""
        divisors = {*self.variables, (0,) * len(self.parameters)}
        candidates = [
            e
            for e in self.variables
            if sum(e) > 2 and prod(k + 1 for k in e) <= _MAX_PRODUCTS and divisors.issuperset(_divisors(e))
        ]
        return tuple(
            e for e in candidates if not any(e != other and all(map(operator.le, e, other)) for other in candidates)
        )

    def bounds(self, of_parameters: Bounds) -> Bounds:
        """Return exact bounds of all variables, given those of the parameters."""
        return tuple(reduce(_times, map(_power, of_parameters, e)) for e in self.variables)

    def envelopes(self, bounds: Bounds) -> list[Polynomial]:
        """Return polynomials, affine in the variables, that are at least zero where all variables are within bounds."""
        return [*self._pairs(bounds), *self._bound_factors(bounds)]

    def _pairs(self, bounds: Bounds) -> Iterator[Polynomial]:
        """Yield products of two differences of a variable and its bound, and for squares tangents as well."""
        below = [x - low for x, (low, _) in zip(self.polynomials, bounds, strict=True)]
        above = [high - x for x, (_, high) in zip(self.polynomials, bounds, strict=True)]
        # within the bounds each factor is at least zero, and so is the product; a square is anyway
        for i, j in self.factorisations:
            yield from (below[i] * above[j], below[i] * below[j], above[i] * above[j])
            yield above[i] * below[j] if i != j else (below[i] - above[i]) ** 2

    def _bound_factors(self, bounds: Bounds) -> Iterator[Polynomial]:
        """Yield products of such differences of parameters, as many as the degree of a variable."""
        d = len(self.parameters)
        below = [x - low for x, (low, _) in zip(self.polynomials[:d], bounds[:d], strict=True)]
        above = [high - x for x, (_, high) in zip(self.polynomials[:d], bounds[:d], strict=True)]
        for e in self.full:
            for part in _divisors(e):
                powers = [x**k * y ** (n - k) for x, y, k, n in zip(below, above, part, e, strict=True) if n]
                yield reduce(mul, powers)


def _closed(products: set[Exponents]) -> list[Exponents]:
    """Return products with all their divisors of degree two or more, or with two factors of each if these are many."""
    few = sum(prod(k + 1 for k in e) for e in products) <= 16 * _MAX_VARIABLES
    closed = {part for e in products for part in _divisors(e) if sum(part) > 1} if few else set()
    if not 0 < len(closed) <= _MAX_VARIABLES:
        closed, left = set(), list(products)
        while left:
            e = left.pop()
            if sum(e) > 1 and e not in closed:
                closed.add(e)
                left += _halves(e)
    return sorted(closed, key=lambda e: (sum(e), tuple(-k for k in e)))


def _halves(e: Exponents) -> tuple[Exponents, Exponents]:
    """Return two monomials of about the same degree whose product is the given one."""
    left, half = [], sum(e) // 2
    for k in e:
        left.append(min(k, half))
        half -= left[-1]
    return tuple(left), tuple(k - m for k, m in zip(e, left, strict=True))


def _divisors(e: Exponents) -> Iterator[Exponents]:
    return product(*(range(k + 1) for k in e))


def _power(bounds: tuple[Fraction, Fraction], exponent: int) -> tuple[Fraction, Fraction]:
    """Return the range of a power over an interval, exactly."""
    ends = sorted(end**exponent for end in bounds)
    low = Fraction(0) if exponent % 2 == 0 and exponent > 0 and bounds[0] < 0 < bounds[1] else ends[0]
    return low, ends[1]


def _times(one: tuple[Fraction, Fraction], other: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    """Return the range of a product over two intervals, exactly."""
    corners = [x * y for x in one for y in other]
    return min(corners), max(corners)
