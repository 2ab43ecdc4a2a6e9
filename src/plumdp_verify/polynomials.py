"""Polynomials with exact coefficients: read from text, multiplied, and moved to other coordinates.

A polynomial is a dictionary from exponents, one for each variable, to coefficients that are not zero. Text is never
evaluated: it is split into terms, and every piece of a term is a number or a name that was declared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import combinations_with_replacement
from math import comb, factorial, lcm, prod
from typing import Any, TypeAlias

from flint import arb, fmpq

from .reading import Ball, Exact, Rejected, is_whole, require, work

Exponents: TypeAlias = tuple[int, ...]
Polynomial: TypeAlias = dict[Exponents, Exact]
Key: TypeAlias = frozenset[tuple[Exponents, Exact]]

_MAX_DEGREE = 64
_MAX_BITS = 4000  # of a number in an affine polynomial, and of the common denominator
_MAX_TEXT = 1_000_000
_MAX_TERMS = 200_000
_TERM = re.compile(r"[+-]?[^+-]+")


def key_of(polynomial: Polynomial) -> Key:
    """Return what is equal exactly for equal polynomials."""
    return frozenset(polynomial.items())


def parse(text: str, names: Sequence[str]) -> Polynomial:
    """Return the polynomial that a text such as "1/2*p^2*q - p + 1" says."""
    squeezed = text.replace(" ", "")
    terms = _TERM.findall(squeezed) if len(text) <= _MAX_TEXT else []
    require("".join(terms) == squeezed != "", f"not a polynomial: {text[:60]!r}")
    result: Polynomial = {}
    work(len(squeezed) + len(terms) * len(names))
    for term in terms:
        coefficient, exponents = fmpq(-1 if term[0] == "-" else 1), [0] * len(names)
        for factor in term.lstrip("+-").split("*"):
            base, power, exponent = factor.partition("^")
            above, line, below = base.partition("/")
            if base in names and (not power or (is_whole(exponent) and len(exponent) < 4)):
                exponents[names.index(base)] += int(exponent) if power else 1
            elif not power and is_whole(above) and (not line or (is_whole(below) and int(below))):
                coefficient *= fmpq(int(above), int(below) if line else 1)
            else:
                raise Rejected(f"not a polynomial in {', '.join(names) or 'no parameters'}: {text[:60]!r}")
        require(sum(exponents) <= _MAX_DEGREE, f"a polynomial has a degree above {_MAX_DEGREE}: {text[:60]!r}")
        _add_to(result, tuple(exponents), coefficient)
    return result


def _add_to(polynomial: Polynomial, exponents: Exponents, coefficient: Exact) -> None:
    total = polynomial.get(exponents, 0) + coefficient
    work(4 + total.height_bits() // 32)  # fractions may grow long
    if total:
        polynomial[exponents] = total
    else:
        polynomial.pop(exponents, None)


def constant(number: Exact, n: int) -> Polynomial:
    """Return a constant in n variables."""
    return {(0,) * n: number} if number else {}


def add(*polynomials: Polynomial) -> Polynomial:
    """Return the sum of polynomials."""
    result: Polynomial = {}
    for polynomial in polynomials:
        for exponents, coefficient in polynomial.items():
            _add_to(result, exponents, coefficient)
    return result


def multiply(left: Polynomial, right: Polynomial) -> Polynomial:
    """Return the product of two polynomials."""
    result: Polynomial = {}
    for a, x in left.items():
        for b, y in right.items():
            _add_to(result, tuple(map(sum, zip(a, b, strict=True))), x * y)
    return result


def product(polynomials: Sequence[Polynomial], n: int) -> Polynomial:
    """Return the product of polynomials in n variables."""
    result = constant(fmpq(1), n)
    for polynomial in polynomials:
        result = multiply(result, polynomial)
    return result


def is_constant(polynomial: Polynomial) -> bool:
    """Return whether no variable occurs."""
    return not any(any(exponents) for exponents in polynomial)


def is_multiple(polynomial: Polynomial, of: Polynomial) -> bool:
    """Return whether a polynomial is a number times another one."""
    if not polynomial or not of:
        return not polynomial
    first = next(iter(of))
    share = polynomial.get(first, fmpq(0)) / of[first]
    return polynomial == {exponents: share * c for exponents, c in of.items()}


def affine(polynomial: Polynomial, n: int, place: str) -> tuple[Exact, list[Exact]]:
    """Return the constant and the coefficients of an affine polynomial in n variables."""
    slopes = [fmpq(0)] * n
    common = lcm(*(int(c.q) for c in polynomial.values()))
    is_short = max((c.height_bits() for c in polynomial.values()), default=0) <= _MAX_BITS >= common.bit_length()
    require(is_short, f"{place}: the numbers of a polynomial are too long")
    for exponents, coefficient in polynomial.items():
        require(sum(exponents) <= 1, f"{place}: a polynomial is not affine")
        if any(exponents):
            slopes[exponents.index(1)] = coefficient
    return polynomial.get((0,) * n, fmpq(0)), slopes


def substitute(polynomial: Polynomial, forms: Sequence[Polynomial], n: int) -> Polynomial:
    """Return the polynomial with a polynomial in n variables in place of each of its variables."""
    degree = max(map(sum, polynomial), default=0)
    require(comb(n + degree, n) <= _MAX_TERMS, f"polynomials of degree {degree} in {n} variables have too many terms")
    terms = []
    for exponents, coefficient in polynomial.items():
        factors = [form for form, power in zip(forms, exponents, strict=True) for _ in range(power)]
        terms.append(product([constant(coefficient, n), *factors], n))
    return add(*terms)


@lru_cache
def monomials(n: int, degree: int) -> list[Exponents]:
    """Return the exponents of all monomials in n variables up to a degree: 1, then x1, x2, …, then x1², x1 x2, …"""
    require(comb(n + degree, n) <= _MAX_TERMS, f"polynomials of degree {degree} in {n} variables have too many terms")
    work(comb(n + degree, n) * (1 + n))
    chosen = (each for total in range(degree + 1) for each in combinations_with_replacement(range(n), total))
    return [tuple(each.count(i) for i in range(n)) for each in chosen]


def size_of(polynomial: Mapping[Exponents, Ball], radius: Ball | None) -> Ball:
    """Return a bound on how far a polynomial differs from its constant where |x[i]| <= 1, and |x| <= radius if given.

    Each term is at most its coefficient. A form of degree m with the coefficients c is also at most its Bombieri norm
    times radius^m, by the inequality of Cauchy and Schwarz: |Σ c x^a|² <= (Σ c² a!/m!) (Σ m!/a! x^(2a)), and the second
    sum is |x|^(2m).
    """
    sizes: dict[int, Ball] = {}
    squares: dict[int, Ball] = {}
    for exponents, c in polynomial.items():
        if degree := sum(exponents):
            sizes[degree] = sizes.get(degree, arb(0)) + abs(c)
            if radius is not None:
                squares[degree] = squares.get(degree, arb(0)) + c * c * _weight(exponents) * radius ** (2 * degree)
    for degree, square in squares.items():
        sizes[degree] = sizes[degree].min(square.nonnegative_part().sqrt())
    return sum(sizes.values(), start=arb(0))


@cache
def _weight(exponents: Exponents) -> Exact:
    return fmpq(prod(map(factorial, exponents)), factorial(sum(exponents)))


def halved(polynomial: Mapping[Exponents, Any], axis: int, side: int) -> dict[Exponents, Any]:
    """Return a polynomial in the coordinates of one half (-1 or 1) of a cube along an axis: x = (side + x') / 2."""
    result: dict[Exponents, Any] = {}
    for e, c in polynomial.items():
        power = e[axis]
        work(power + 1)
        for j in range(power + 1):
            to = (*e[:axis], j, *e[axis + 1 :])
            result[to] = result.get(to, 0) + c * (comb(power, j) * side ** (power - j)) / 2**power
    return result
