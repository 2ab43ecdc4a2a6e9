"""From functions of the parameters to brackets: bounds on a polynomial over a cube and all that cuts it.

The polynomial is the function of the policy's value, or that of one policy less that of another at the same point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb

from flint import arb, fmpq

from .arithmetic import is_positive_definite, sums
from .chain import Chain
from .claim import Claim
from .comparison import Ends
from .enclosure import Enclosure
from .polynomials import Exponents, halved, monomials
from .reading import Ball, Exact, Part, Rejected, require, work
from .values import Functions

_MAX_DEGREE = 16
_ROUNDING = fmpq(1, 10**9)  # a sentence is printed with six digits, and must hold for the wider end


@dataclass(frozen=True)
class Side:
    """The chain of a policy, and functions that are below and above its value."""

    chain: Chain
    functions: Functions

    def on(self, halvings: Sequence[tuple[int, int]]) -> Side:
        """Return the same with the functions that are claimed in the coordinates of a part of the cube."""
        value = self.functions.value
        for axis, side in halvings:
            value = halved(value, axis, side)
        return replace(self, functions=replace(self.functions, value=value))


def check_brackets(part: Part, sides: Sequence[Side], enclosure: Enclosure, claim: Claim) -> Claim:
    """Return the claim with the brackets that are proved: of the policy, of another one and their difference.

    Each is the same as claimed, or has an end that is wider by 10^-9 of itself.
    """
    compared = claim.comparison
    require(len(part) == 1 + 2 * (compared is not None), f"{part.place}: not one for each claim")
    lower, upper = _check_bracket(part[0], [(1, sides[0])], enclosure, (claim.lower, claim.upper))
    if compared is not None:
        own, other = sides[:2]
        is_same = own.chain == other.chain  # so that there is one value, and no difference
        both = [] if is_same else [(compared.sign, own), (-compared.sign, other)]
        compared = replace(
            compared,
            other=_check_bracket(part[1], [(1, other)], enclosure, compared.other),
            difference=_check_bracket(part[2], both, enclosure, compared.difference),
        )
    return replace(claim, lower=lower, upper=upper, comparison=compared)


def _check_bracket(part: Part, terms: Sequence[tuple[int, Side]], enclosure: Enclosure, ends: Ends) -> Ends:
    """Return the ends that are proved of a sum of values, each with a sign; None is an end that claims nothing."""
    (lower, upper), (least, most) = ends, range_of([(sign, side.chain) for sign, side in terms])
    if lower is not None and (least is None or lower > least):
        value, margin = _sum(terms, enclosure.dimension, -1)
        below = {e: -c for e, c in value.items()}
        lower = -_proved(below, margin, -lower, part["lower"], enclosure, "lower")
    if upper is not None and (most is None or upper < most):
        value, margin = _sum(terms, enclosure.dimension, 1)
        upper = _proved(value, margin, upper, part["upper"], enclosure, "upper")
    return lower, upper


def range_of(terms: Sequence[tuple[int, Chain]]) -> Ends:
    """Return bounds on a sum of values, each with a sign, that hold whatever the parameters are."""
    ends: list[Exact | None] = [fmpq(0), fmpq(0)]
    for sign, chain in terms:
        added = chain.range if sign > 0 else [None if end is None else -end for end in reversed(chain.range)]
        ends = [None if end is None or more is None else end + more for end, more in zip(ends, added, strict=True)]
    return ends[0], ends[1]


def _sum(terms: Sequence[tuple[int, Side]], dimension: int, end: int) -> tuple[dict[Exponents, Ball], Ball]:
    """Return the sum of functions that are below (-1) or above (1) values, each with a sign, and of their margins."""
    total, margin = {(0,) * dimension: arb(0)}, arb(0)
    for sign, side in terms:
        sign_of_function = -sign if side.chain.complement else sign
        for e, c in side.functions.value.items():
            total[e] = total.get(e, arb(0)) + sign_of_function * c
        total = _plus(total, arb(sign if side.chain.complement else 0), dimension)
        margin += side.functions.margin
    return total, margin


def _proved(
    value: Mapping[Exponents, Ball], margin: Ball, end: Exact, part: Part, enclosure: Enclosure, name: str
) -> Exact:
    """Return an upper end of a function with a margin, the given one or one that leaves room for rounding."""
    for proved in (end, end + _ROUNDING * abs(end)):
        above = _plus({e: -c for e, c in value.items()}, arb(proved) - margin, enclosure.dimension)
        if is_nonnegative(above, part, enclosure):
            return proved
    raise Rejected(f"the {name} end does not follow")


def _plus(polynomial: Mapping[Exponents, Ball], number: Ball, dimension: int) -> dict[Exponents, Ball]:
    zero = (0,) * dimension
    return {**polynomial, zero: polynomial.get(zero, arb(0)) + number}


def is_nonnegative(polynomial: Mapping[Exponents, Ball], part: Part, enclosure: Enclosure) -> bool:
    """Return whether a polynomial p is surely at least zero on the cube, where nothing cuts it off.

    With multipliers y(x) >= 0 of cuts g(x) >= 0, which are polynomials, and ν[i] >= 0 of the sides of the cube, it is
    enough that p(x) - Σ y(x) g(x) - Σ ν[i] (1 - x[i]²) is at least zero on the cube. Of this, terms of degree three and
    more are bounded by their size, and the others are positive if their matrix is positive definite.
    """
    k, rest = enclosure.dimension, dict(polynomial)
    sides = part["cube"].balls(k)
    require(all(bool(nu >= 0) for nu in sides), f"{part.place}: a multiplier is negative")
    for item in part["multipliers"]:
        left, multiplier = enclosure.cuts[item[0].whole(len(enclosure.cuts))].left, _multiplier(item[1], enclosure)
        if left is None:
            raise Rejected(f"{item.place}: the half-space depends on parameters that are called idle")
        work(len(left) * len(multiplier) * 2)
        for a, y in multiplier.items():
            for b, c in left.items():
                e = tuple(map(sum, zip(a, b, strict=True)))
                rest[e] = rest.get(e, arb(0)) - y * c
    matrix = [[arb(0)] * (k + 1) for _ in range(k + 1)]
    for e, c in rest.items():
        if sum(e) <= 2:
            places = [0, 0, *(i for i, power in enumerate(e, start=1) for _ in range(power))]
            matrix[places[-1]][places[-2]] += c / 2
            matrix[places[-2]][places[-1]] += c / 2
    matrix[0][0] -= enclosure.size({e: c for e, c in rest.items() if sum(e) > 2})
    if all(c.is_zero() for row in matrix for c in row[1:]):  # a constant, which may be zero
        return bool(matrix[0][0] >= 0)
    matrix[0][0] -= sums(sides)
    for i, nu in enumerate(sides, start=1):
        matrix[i][i] += nu
    return is_positive_definite(matrix)


def _multiplier(part: Part, enclosure: Enclosure) -> dict[Exponents, Ball]:
    """Return a polynomial that is at least zero on the cube, given its coefficients up to some degree."""
    k = enclosure.dimension
    degree = next((m for m in range(_MAX_DEGREE + 1) if comb(k + m, k) == len(part)), None)
    if degree is None:
        part.refuse("expected the coefficients of a polynomial")
    numbers = part.balls(len(part))
    found = dict(zip(monomials(k, degree), numbers, strict=True))
    require(bool(numbers[0] >= enclosure.size(found)), f"{part.place}: a multiplier is negative")
    return found
