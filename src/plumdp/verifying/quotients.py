"""Finds half-spaces that follow from bounds on products of parameters. The checker decides."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from plumdp.confidence.tied_rows import find_tied_rows
from plumdp.learning.learned import Learned
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.graph import FloatArray
from plumdp.verifying.drawn_sets import rows_of
from plumdp_verify.check import half_spaces_of, half_spaces_of_data
from plumdp_verify.claim import WITNESS
from plumdp_verify.counts import Data
from plumdp_verify.evidence import Likelihood
from plumdp_verify.half_spaces import HalfSpace
from plumdp_verify.reading import Part

_TIGHTER = 1e-9  # in the values of a factor

Direction: TypeAlias = tuple[Fraction, ...]
Terms: TypeAlias = dict[tuple[int, ...], Fraction]


class _Ends:
    """The tightest bound in each direction of parameters: the number of its half-space, and its end."""

    def __init__(self, half_spaces: Sequence[HalfSpace]) -> None:
        self.best: dict[Direction, tuple[float, int]] = {}
        for i, each in enumerate(half_spaces):
            if not each.curved:
                self.add([Fraction(int(b.p), int(b.q)) for b in each.row], float(_middle(each.offset)), i)

    def add(self, row: Sequence[Fraction], offset: float, number: int) -> bool:
        """Enter a half-space if it is the tightest of its direction, and return whether it is."""
        scale = next((abs(b) for b in row if b), Fraction(0))
        if not scale:
            return False
        direction, end = tuple(b / scale for b in row), offset / float(scale)
        is_tighter = direction not in self.best or end < self.best[direction][0] - _TIGHTER
        if is_tighter:
            self.best[direction] = end, number
        return is_tighter

    def most(self, row: Sequence[Fraction], constant: Fraction) -> tuple[float, int] | None:
        """Return the least upper end of constant + row · parameters, and the number of its half-space."""
        scale = next(abs(b) for b in row if b)
        found = self.best.get(tuple(b / scale for b in row))
        return None if found is None else (found[0] * float(scale) + float(constant), found[1])


def with_quotients(
    content: dict[str, Any], data: Data, likelihoods: list[Likelihood], learned: Learned
) -> list[HalfSpace]:
    """Return the half-spaces of a set with quotients of bounds on products, which are added to the content."""
    names, point = learned.model.space.names, learned.likely_point
    products = [f for row in rows_of(find_tied_rows(learned.model)) for f in row if not f.is_affine]
    if products:
        drawn = half_spaces_of_data(Part(json.loads(json.dumps(content)), WITNESS), data)
        content["set"]["quotients"] = _quotients(drawn, products, names, point)
    return half_spaces_of(Part(json.loads(json.dumps(content)), WITNESS), data, likelihoods)


def _quotients(
    half_spaces: Sequence[HalfSpace], products: Iterable[Polynomial], names: tuple[str, ...], point: FloatArray
) -> list[dict[str, Any]]:
    """Return quotients of bounds on products by bounds on their other factors, where these are the tightest."""
    ends, n, written = _Ends(half_spaces), len(half_spaces), list[dict[str, Any]]()
    bounds: dict[frozenset[Any], list[int]] = {}
    for i, each in enumerate(half_spaces):
        if each.curved:
            bounds.setdefault(_key(_terms(each)), []).append(i)
    for product in dict.fromkeys(products):
        terms = product.terms(names)
        constant = float(terms.pop((0,) * len(names), Fraction(0)))
        for side in (1, -1):
            for i in bounds.get(_key({e: side * c for e, c in terms.items()}), ()):
                end = side * float(_middle(half_spaces[i].offset)) + constant
                for quotient, divisors in _splits(product, names, point):
                    item = _quotient(ends, i, end, side, quotient, divisors, n + len(written), names)
                    written += [item] if item is not None else []
    return written


def _quotient(
    ends: _Ends, bound: int, end: float, side: int, quotient: Polynomial, divisors: list[Polynomial], number: int,
    names: tuple[str, ...],
) -> dict[str, Any] | None:  # fmt: skip
    """Return a quotient if its half-space is the tightest of its direction."""
    written = []
    for divisor in divisors:
        constant, row = _affine(divisor, names)
        least, most = ends.most([-b for b in row], -constant), ends.most(row, constant)
        if least is None or most is None or -least[0] <= 0:
            return None
        end /= -least[0] if side > 0 else most[0]
        written.append([str(divisor), least[1], most[1]])
    constant, row = _affine(quotient, names)
    is_tighter = end >= 0 and ends.add([side * b for b in row], side * (end - float(constant)), number)
    return {"bound": bound, "quotient": str(quotient), "divisors": written} if is_tighter else None


def _splits(
    product: Polynomial, names: tuple[str, ...], point: FloatArray
) -> list[tuple[Polynomial, list[Polynomial]]]:
    """Return each affine factor of a product with the others, all of them positive at a point."""
    number, powers = product.factors()
    factors = [factor for factor, power in powers for _ in range(power)]
    at = {name: Fraction(float(x)) for name, x in zip(names, point, strict=True)}
    signs = [-1 if factor.evaluate(at) < 0 else 1 for factor in factors]
    for sign in signs:
        number *= sign
    if len(factors) < 2 or number <= 0 or not all(factor.is_affine for factor in factors):
        return []
    positive = [sign * factor for sign, factor in zip(signs, factors, strict=True)]
    return [(number * factor, positive[:i] + positive[i + 1 :]) for i, factor in enumerate(positive)]


def _affine(polynomial: Polynomial, names: tuple[str, ...]) -> tuple[Fraction, list[Fraction]]:
    constant, slopes = polynomial.affine_terms()
    return constant, [slopes.get(name, Fraction(0)) for name in names]


def _terms(half_space: HalfSpace) -> Terms:
    n = len(half_space.row)
    linear = {tuple(int(i == j) for j in range(n)): b for i, b in enumerate(half_space.row) if b}
    return {e: Fraction(int(c.p), int(c.q)) for e, c in (linear | half_space.curved).items()}


def _key(terms: Terms) -> frozenset[Any]:
    return frozenset(terms.items())


def _middle(number: Any) -> Any:
    return number.mid() if hasattr(number, "mid") else Fraction(int(number.p), int(number.q))
