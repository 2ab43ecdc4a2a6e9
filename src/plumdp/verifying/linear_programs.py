"""Finds polynomials as multipliers of several cuts, and of products of two, by a linear program. The checker decides.

Such a product is needed where a function is about as small in two corners of a set: what keeps it above its least value
near one of them must vanish near the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TypeAlias

import numpy as np

from plumdp.model.graph import FloatArray
from plumdp.verifying.cuts import Cuts, norm_of, size_of
from plumdp_verify.polynomials import Exponents, monomials

_NEAREST = 5  # cuts that are looked at
_MOST = 3000  # coefficients of multipliers
_SPARE = 1e-9  # of their constants

Terms: TypeAlias = dict[Exponents, float]
Chosen: TypeAlias = tuple[int, ...]
"""A cut, or two of them, whose product is at least zero as well."""


def solve_program(given: Terms, point: FloatArray, degree: int, cuts: Cuts) -> tuple[dict[Chosen, list[float]], Terms]:
    """Return multipliers of cuts near a point that bound a polynomial from below, and what they leave of it.

    All coefficients but the constant count by their norms. Multipliers have constants above the norms of their other
    terms, so that they are positive on the ball.
    """
    from scipy.optimize import linprog

    lefts = _products(point, cuts)
    if not lefts:
        return {}, given
    k, top = len(point), max(degree, *(max(map(sum, left)) for left in lefts.values()))
    orders = {key: monomials(k, top - max(map(sum, left))) for key, left in lefts.items()}
    wanted = {e: i for i, e in enumerate(monomials(k, top))}
    n = sum(map(len, orders.values()))
    if n > _MOST or len(wanted) > _MOST:
        return {}, given
    matrix, is_positive = np.zeros((len(wanted), n)), np.zeros((len(lefts), n))
    signs = np.ones(n)
    column = 0
    for row, (key, left) in enumerate(lefts.items()):
        for e in orders[key]:
            is_positive[row, column] = norm_of(e) if any(e) else -1.0
            signs[column] = -1.0 if any(e) else 1.0
            for b, c in left.items():
                matrix[wanted[tuple(map(sum, zip(e, b, strict=True)))], column] += c
            column += 1
    free = signs < 0  # coefficients of any sign, as the difference of two
    both = np.hstack([matrix, -matrix[:, free]])
    norms = np.array([norm_of(e) for e in wanted])[1:]
    rest, scale = np.eye(len(norms)), max(map(abs, given.values())) or 1.0
    solved = linprog(
        np.concatenate([both[0], norms, norms]),
        A_ub=np.hstack([is_positive, is_positive[:, free], np.zeros((len(lefts), 2 * len(norms)))]),
        b_ub=np.zeros(len(lefts)),
        A_eq=np.hstack([both[1:], rest, -rest]),
        b_eq=np.array([given.get(e, 0.0) / scale for e in list(wanted)[1:]]),
        method="highs",
    )
    if solved.x is None:
        return {}, given
    found = solved.x[:n] * scale
    found[free] -= solved.x[n : n + int(free.sum())] * scale
    return _without(given, found, lefts, orders)


def _without(
    given: Terms, found: FloatArray, lefts: Mapping[Chosen, Terms], orders: Mapping[Chosen, list[Exponents]]
) -> tuple[dict[Chosen, list[float]], Terms]:
    """Return multipliers with constants that make them positive, and the polynomial less all of their products."""
    multipliers, rest, start = {}, dict(given), 0
    for key, order in orders.items():
        numbers = found[start : start + len(order)].tolist()
        start += len(order)
        numbers[0] = max(numbers[0], size_of(dict(zip(order, numbers, strict=True))) * (1 + _SPARE))
        if numbers[0] > 0:
            multipliers[key] = numbers
            for e, y in zip(order, numbers, strict=True):
                for b, c in lefts[key].items():
                    above = tuple(map(sum, zip(e, b, strict=True)))
                    rest[above] = rest.get(above, 0.0) - y * c
    return multipliers, rest


def _products(point: FloatArray, cuts: Cuts) -> dict[Chosen, Terms]:
    """Return the polynomials of the cuts that are nearest to a point, and products of two half-spaces among them."""
    away = cuts.left(point) / cuts.lengths
    near = sorted(range(len(away)), key=lambda i: float(away[i]))
    distinct: list[int] = []
    for i in near:
        same = (
            np.allclose(cuts.rows[i] / cuts.lengths[i], cuts.rows[j] / cuts.lengths[j], atol=1e-6) for j in distinct
        )
        if len(distinct) < _NEAREST and not any(same):
            distinct.append(i)
    lefts: dict[Chosen, Terms] = {(i,): cuts.terms(i) for i in distinct}
    flat = [i for i in distinct if cuts.is_flat[i]]
    for i, j in combinations(flat, 2):
        product: Terms = {}
        for a, x in lefts[(i,)].items():
            for b, y in lefts[(j,)].items():
                e = tuple(map(sum, zip(a, b, strict=True)))
                product[e] = product.get(e, 0.0) + x * y
        lefts[i, j] = product
    return lefts
