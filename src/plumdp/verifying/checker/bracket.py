"""From functions of the parameters to the bracket: bounds on a polynomial over the ball and all that cuts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import comb

from flint import arb, fmpq

from .chain import Chain
from .claim import Claim
from .enclosure import Enclosure
from .linear import is_positive_definite
from .polynomials import Exponents, monomials, size_on_ball
from .reading import Ball, Exact, Part, Rejected, require
from .values import Functions

_MAX_DEGREE = 16
_MAX_WORK = 10_000_000  # products of terms
_ROUNDING = fmpq(1, 10**12)


def check_bracket(part: Part, chain: Chain, enclosure: Enclosure, functions: Functions, claim: Claim) -> Claim:
    """Return the claim with the bracket that is proved: the same, or one with an end that is wider by 10^-12 of itself.

    Ends that claim nothing are None.
    """
    lower, upper = claim.lower, claim.upper
    if chain.complement:
        lower, upper = (None if end is None else 1 - end for end in (upper, lower))
    start = chain.initial
    if start in chain.known:
        inside = (lower is None or lower <= chain.known[start]) and (upper is None or chain.known[start] <= upper)
        require(inside, "the known value of the initial state is not in the bracket")
        return claim
    value, margin = functions.value, functions.margin
    if lower is not None and (lower > 0 or not chain.is_never_negative):
        below = {e: -c for e, c in value.items()}
        lower = -_proved(below, margin, -lower, part["lower"], enclosure, "lower")
    if upper is not None and (chain.kind != "reach" or upper < 1):
        upper = _proved(value, margin, upper, part["upper"], enclosure, "upper")
    if chain.complement:
        lower, upper = (None if end is None else 1 - end for end in (upper, lower))
    return replace(claim, lower=lower, upper=upper)


def _proved(
    value: Mapping[Exponents, Ball], margin: Ball, end: Exact, part: Part, enclosure: Enclosure, name: str
) -> Exact:
    """Return an upper end of a function with a margin, the given one or one that leaves room for rounding."""
    for proved in (end, end + _ROUNDING * abs(end)):
        above = _plus({e: -c for e, c in value.items()}, arb(proved) - margin, enclosure.dimension)
        if _is_nonnegative(above, part, enclosure):
            return proved
    raise Rejected(f"the {name} end does not follow")


def _plus(polynomial: Mapping[Exponents, Ball], number: Ball, dimension: int) -> dict[Exponents, Ball]:
    zero = (0,) * dimension
    return {**polynomial, zero: polynomial.get(zero, arb(0)) + number}


def _is_nonnegative(polynomial: Mapping[Exponents, Ball], part: Part, enclosure: Enclosure) -> bool:
    """Return whether a polynomial p is surely at least zero on the ball, where nothing cuts it off.

    With multipliers y(x) >= 0 of cuts g(x) >= 0, or of products of two cuts, all of them polynomials, and ν >= 0 of the
    ball, it is enough that p(x) - Σ y(x) g(x) - ν (1 - |x|²) is at least zero on the ball. Of this polynomial, terms of
    degree three and more are bounded by their size, and the others are positive if their matrix is positive definite.
    """
    k = enclosure.dimension
    ball = arb(part["ball"].number())
    require(bool(ball >= 0), f"{part.place}: a multiplier is negative")
    rest, work = dict(polynomial), 0
    for item in part["multipliers"]:
        left, *other = [_left(number, enclosure) for number in (item[0] if type(item[0].value) is list else [item[0]])]
        require(len(other) < 2, f"{item.place}: a product is one of two half-spaces")
        work += len(item[1]) * len(left) * (len(other[0]) if other else 1)
        require(work <= _MAX_WORK, f"{item.place}: the multipliers have too many terms")
        _subtract(rest, _multiplier(item[1], k), _times(left, other[0]) if other else left)
    matrix = [[arb(0)] * (k + 1) for _ in range(k + 1)]
    for e, c in rest.items():
        if sum(e) <= 2:
            places = [0, 0, *(i for i, power in enumerate(e, start=1) for _ in range(power))]
            matrix[places[-1]][places[-2]] += c / 2
            matrix[places[-2]][places[-1]] += c / 2
    matrix[0][0] -= size_on_ball({e: c for e, c in rest.items() if sum(e) > 2})
    if all(c.is_zero() for row in matrix for c in row[1:]):  # a constant, which may be zero
        return bool(matrix[0][0] >= 0)
    matrix[0][0] -= ball
    for i in range(1, k + 1):
        matrix[i][i] += ball
    return is_positive_definite(matrix)


def _multiplier(part: Part, k: int) -> dict[Exponents, Ball]:
    """Return a polynomial that is at least zero on the ball, given its coefficients up to some degree."""
    degree = next((m for m in range(_MAX_DEGREE + 1) if comb(k + m, k) == len(part)), None)
    if degree is None:
        part.refuse("expected the coefficients of a polynomial")
    numbers = part.balls(len(part))
    found = dict(zip(monomials(k, degree), numbers, strict=True))
    require(bool(numbers[0] >= size_on_ball(found)), f"{part.place}: a multiplier is negative")
    return found


def _left(part: Part, enclosure: Enclosure) -> dict[Exponents, Ball]:
    """Return the polynomial of a cut, which is at least zero."""
    left = enclosure.cuts[part.whole(len(enclosure.cuts))].left
    if left is None:
        raise Rejected(f"{part.place}: the half-space depends on parameters that are called idle")
    return left


def _times(left: dict[Exponents, Ball], right: dict[Exponents, Ball]) -> dict[Exponents, Ball]:
    product: dict[Exponents, Ball] = {}
    _subtract(product, {e: -c for e, c in left.items()}, right)
    return product


def _subtract(
    polynomial: dict[Exponents, Ball], multiplier: dict[Exponents, Ball], left: dict[Exponents, Ball]
) -> None:
    """Subtract y(x) g(x)."""
    for a, y in multiplier.items():
        for b, number in left.items():
            above = tuple(map(sum, zip(a, b, strict=True)))
            polynomial[above] = polynomial.get(above, arb(0)) - y * number
