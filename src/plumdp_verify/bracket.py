"""From functions of the parameters to brackets: bounds on a polynomial over the ball and all that cuts it.

The polynomial is the function of the policy's value, or that of one policy less that of another at the same point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb

from flint import arb, fmpq

from .arithmetic import is_positive_definite
from .chain import Chain
from .claim import Claim
from .comparison import Ends
from .enclosure import Enclosure
from .polynomials import Exponents, monomials, parse, size_on_ball
from .reading import Ball, Exact, Part, Rejected, require, work
from .values import Functions

_MAX_DEGREE = 16
_POSITIVE = fmpq(1, 10**12)
_ROUNDING = fmpq(1, 10**9)  # a sentence is printed with six digits, and must hold for the wider end


@dataclass(frozen=True)
class Side:
    """The chain of a policy, and functions that are below and above its value."""

    chain: Chain
    functions: Functions


def check_brackets(witness: Part, sides: Sequence[Side], enclosure: Enclosure, claim: Claim) -> Claim:
    """Return the claim with the brackets that are proved: of the policy, of another one and their difference, of all.

    Each is the same as claimed, or has an end that is wider by 10^-9 of itself.
    """
    lower, upper = _check_bracket(witness["bracket"], [(1, sides[0])], enclosure, (claim.lower, claim.upper))
    claim, compared = replace(claim, lower=lower, upper=upper), claim.comparison
    if claim.all_policies is not None:
        ends = _check_bracket(witness["all_policies"]["bracket"], [(1, sides[-1])], enclosure, claim.all_policies)
        claim = replace(claim, all_policies=ends)
    if compared is None:
        return claim
    part, (own, other) = witness["comparison"], sides[:2]
    is_same = own.chain == other.chain  # so that there is one value, and no difference
    both = [] if is_same else [(compared.sign, own), (-compared.sign, other)]
    proved = replace(
        compared,
        other=_check_bracket(part["bracket"], [(1, other)], enclosure, compared.other),
        difference=_check_bracket(part["difference"], both, enclosure, compared.difference),
    )
    return replace(claim, comparison=proved)


def check_support(part: Part, names: list[str], enclosure: Enclosure, misfit: Exact) -> None:
    """Require that probabilities are positive at every point of the set, though rows may be off.

    The value of a mission about what happens again and again is that of its chain only if these transitions can happen.
    """
    for item in part:
        text = item["polynomial"].text()
        moved = enclosure.transform(parse(text, names), item.place)
        left = _plus({e: arb(c) for e, c in moved.items()}, -arb(misfit) - _POSITIVE, enclosure.dimension)
        require(_is_nonnegative(left, item, enclosure), f"{item.place}: the mission needs {text[:60]} to be above 0")


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
        below, above = side.functions.value
        for e, c in (below if sign_of_function * end < 0 else above).items():
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
    rest = dict(polynomial)
    for item in part["multipliers"]:
        left, *other = [_left(number, enclosure) for number in (item[0] if type(item[0].value) is list else [item[0]])]
        require(len(other) < 2, f"{item.place}: a product is one of two half-spaces")
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
    work(len(multiplier) * len(left) * 2)
    for a, y in multiplier.items():
        for b, number in left.items():
            above = tuple(map(sum, zip(a, b, strict=True)))
            polynomial[above] = polynomial.get(above, arb(0)) - y * number
