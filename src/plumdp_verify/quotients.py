"""Half-spaces from bounds on products: of a b <= u by a >= l > 0, b <= u / l; of a b >= l by 0 < a <= u, b >= l / u."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flint import arb

from .half_spaces import HalfSpace
from .polynomials import Polynomial, affine, parse, product
from .reading import Ball, Exact, Part, require


def of_quotients(part: Part, names: Sequence[str], before: Sequence[HalfSpace]) -> Iterator[HalfSpace]:
    """Yield the half-space of each quotient: of a bound on a product, whose other factors have bounds of their own.

    Later ones may use those before them.
    """
    known, n = list(before), len(names)
    for item in part:
        bound = known[item["bound"].whole(len(known))]
        number, slopes = affine(parse(item["quotient"].text(), names), n, item.place)
        factors = [parse(factor[0].text(), names) for factor in item["divisors"]]
        whole = product([parse(item["quotient"].text(), names), *factors], n)
        side = next((side for side in (1, -1) if _is_multiple(bound, whole, side)), 0)
        require(side != 0, f"{item.place}: this is not a bound on the product")
        end = side * (arb(bound.offset) + side * arb(whole.get((0,) * n, 0)))
        require(bool(end >= 0), f"{item.place}: the bound on the product is negative")
        for factor, text in zip(factors, item["divisors"], strict=True):
            least = -_most(known[text[1].whole(len(known))], factor, n, -1, text.place)
            require(bool(least > 0), f"{text.place}: a factor is not surely positive")
            end /= least if side > 0 else _most(known[text[2].whole(len(known))], factor, n, 1, text.place)
        known.append(HalfSpace([side * b for b in slopes], side * (end - arb(number))))
        yield known[-1]


def _is_multiple(bound: HalfSpace, whole: Polynomial, side: int) -> bool:
    """Return whether a bound is one on this product, but for its constant, from above (1) or from below (-1)."""
    n = len(bound.row)
    linear = {tuple(int(i == j) for j in range(n)): b for i, b in enumerate(bound.row) if b}
    return linear | bound.curved == {e: side * c for e, c in whole.items() if any(e)}


def _most(half_space: HalfSpace, factor: Polynomial, n: int, side: int, place: str) -> Ball:
    """Return an upper end of an affine polynomial, or of minus it, that a half-space says."""
    number, slopes = affine(factor, n, place)
    require(not half_space.curved and any(slopes), f"{place}: this bound is not one on the factor")
    scale: Exact = next(a / b for a, b in zip(half_space.row, slopes, strict=True) if b) * side
    same = scale > 0 and [side * scale * b for b in slopes] == list(half_space.row)
    require(bool(same), f"{place}: this bound is not one on the factor")
    return arb(half_space.offset) / arb(scale) + side * arb(number)
