"""An ellipsoid about the estimate of least squares, at all times (Abbasi-Yadkori, Pál and Szepesvári 2011, Theorem 2).

Its coordinates z are the parameters, and products of them that some event has. A visit of a row counts events in groups
that are independent of each other, each event for 1/h of a trial, if no two outcomes differ in more than h events of
its group: then the noise of a visit is sub-Gaussian with R = 1/2, by Cauchy and Schwarz, and Hoeffding's lemma. If no
groups are given, the outcomes of the row are one, with h = 2. With V = ridge I + Σ trials b bᵀ, the true point fulfils

    |z - centre|_V  <=  sqrt(ln(det V / ridge^d) + 2 ln(1 / error)) / 2  +  sqrt(ridge) reach,

where no point of the space is further than ``reach`` from the middle, and the centre is ridge regression about that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import prod

from flint import arb, fmpq, fmpq_mat

from .counts import Data, Row
from .half_spaces import HalfSpace, below
from .misfit import box_of
from .polynomials import Exponents, Polynomial, add, constant, is_constant, multiply, parse
from .polynomials import product as product_of
from .reading import Ball, Exact, Part, require, work

_MAX_PATTERNS = 4096  # of groups of events, whose independence is an identity for each
_MAX_COORDINATES = 60


@dataclass(frozen=True)
class Ellipsoid:
    """The points with ``(z - centre) · matrix (z - centre) <= radius²``, for the monomials z of parameters."""

    monomials: list[Exponents]
    centre: list[Exact]
    matrix: list[list[Exact]]
    radius: Ball


def of_ellipsoid(part: Part, data: Data, space: Sequence[HalfSpace]) -> Iterator[HalfSpace]:
    """Yield the ellipsoid itself, and then half-spaces that touch it, across the polynomials that are listed."""
    found, n = _ellipsoid(part, data, space), len(data.names)
    off = [add({e: fmpq(1)}, constant(-c, n)) for e, c in zip(found.monomials, found.centre, strict=True)]
    terms = [
        multiply(constant(entry, n), multiply(a, b))
        for a, row in zip(off, found.matrix, strict=True)
        for b, entry in zip(off, row, strict=True)
    ]
    whole = below(add(*terms), found.radius * found.radius, n)
    yield replace(whole, is_convex=all(sum(e) == 1 for e in found.monomials))
    inverse = fmpq_mat(found.matrix).inv()
    place = {e: i for i, e in enumerate(found.monomials)}
    for text in part["list"]:
        polynomial = parse(text.text(), data.names)
        slopes = [fmpq(0)] * len(place)
        for e, c in polynomial.items():
            require(e in place, f"{text.place}: this has other terms than the ellipsoid")
            slopes[place[e]] = c
        work(3 * len(place) ** 2)
        column = fmpq_mat([[c] for c in slopes])
        width = (column.transpose() * inverse * column)[0, 0]
        middle = sum((a * c for a, c in zip(slopes, found.centre, strict=True)), start=fmpq(0))
        yield below(polynomial, arb(middle) + found.radius * arb(width).sqrt(), n)


def _ellipsoid(part: Part, data: Data, space: Sequence[HalfSpace]) -> Ellipsoid:
    ridge, n = part["ridge"].number(), len(data.names)
    require(ridge > 0, f"{part.place}: the ridge is not positive")
    require(len(part["rows"]) == len(data.rows), f"{part.place}: there must be groups of events, or null, for each row")
    counted = [each for row, given in zip(data.rows, part["rows"], strict=True) for each in _counted(row, given, n)]
    names = [tuple(int(i == j) for j in range(n)) for i in range(n)]
    names += sorted({e for f, _, _ in counted for e in f if sum(e) > 1})
    d = len(names)
    require(0 < d <= _MAX_COORDINATES, f"{part.place}: an ellipsoid has 1 to {_MAX_COORDINATES} coordinates, not {d}")
    box = box_of([(side.offset, [-b for b in side.row]) for side in space], n)
    require(all(None not in ends for ends in box), f"{part.place}: the space does not bound every parameter")
    ranges = [_range(e, box) for e in names]
    middle = [(low + high) / 2 for low, high in ranges]
    reach = sum((((high - low) / 2) ** 2 for low, high in ranges), start=fmpq(0))
    matrix = [[ridge if i == j else fmpq(0) for j in range(d)] for i in range(d)]
    right = [fmpq(0)] * d
    for f, successes, trials in counted:
        work(d + len(f) ** 2)
        slopes = [(i, f[e]) for i, e in enumerate(names) if e in f]
        surplus = successes - trials * (f.get((0,) * n, fmpq(0)) + sum(b * middle[i] for i, b in slopes))
        for i, b in slopes:
            right[i] += b * surplus
            for j, c in slopes:
                matrix[i][j] += trials * b * c
    bits = max(entry.height_bits() for row in matrix for entry in row)
    work(d**4 * bits // 4000 + 3 * d**3)
    offset = fmpq_mat(matrix).solve(fmpq_mat([[x] for x in right]))
    centre = [m + offset[i, 0] for i, m in enumerate(middle)]
    grown = arb(fmpq_mat(matrix).det()).log() - d * arb(ridge).log() - 2 * arb(part["error"].number()).log()
    return Ellipsoid(names, centre, matrix, grown.sqrt() / 2 + (arb(ridge) * arb(reach)).sqrt())


def _counted(row: Row, part: Part, n: int) -> Iterator[tuple[Polynomial, Exact, Exact]]:
    """Yield the probability of each event that a row counts, with its successes and trials."""
    seen, size = row.seen["all"], len(row.outcomes)
    if all(map(is_constant, row.outcomes)):
        return
    groups = [[{i} for i in range(size)]]
    if part.value is not None:
        groups = [[{i.whole(size) for i in event} for event in group] for group in part]
    work(sum(map(len, groups)) * size**2)
    kinds = [[tuple(i in event for event in group) for i in range(size)] for group in groups]
    require(_are_independent(row, kinds, n), f"{part.place}: it is not shown that these events are independent")
    for group, kind in zip(groups, kinds, strict=True):
        distinct = sorted(set(kind))
        most = max((sum(a != b for a, b in zip(*pair, strict=True)) for pair in combinations(distinct, 2)), default=1)
        for event in group:
            together = add(*(row.outcomes[i] for i in event))
            yield together, fmpq(sum(seen[i] for i in event), max(most, 1)), fmpq(sum(seen), max(most, 1))


def _are_independent(row: Row, kinds: Sequence[Sequence[tuple[bool, ...]]], n: int) -> bool:
    """Return whether the probability of whatever happens in all groups is the product of those in each."""
    if len(kinds) < 2:
        return len(kinds) == 1
    if prod(len(set(kind)) for kind in kinds) > _MAX_PATTERNS:
        return False
    parts = [{each: {i for i, other in enumerate(kind) if other == each} for each in kind} for kind in kinds]
    for chosen in product(*(part.values() for part in parts)):
        both = add(*(row.outcomes[i] for i in set.intersection(*chosen)))
        if both != product_of([add(*(row.outcomes[i] for i in each)) for each in chosen], n):
            return False
    return True


def _range(exponents: Exponents, box: Sequence[tuple[Exact, Exact]]) -> tuple[Exact, Exact]:
    """Return the least and the largest value that a product of powers can have in a box, or wider ones."""
    least, most = fmpq(1), fmpq(1)
    for power, (low, high) in zip(exponents, box, strict=True):
        ends = [low**power, high**power] + [fmpq(0)] * (low < 0 < high and power > 0)
        corners = [a * b for a in (least, most) for b in (min(ends), max(ends))]
        least, most = min(corners), max(corners)
    return least, most
