"""Writes outcomes of rows as sums over hidden paths, each a constant times affine factors that are nowhere negative.

The outcome 1 - a b is (1 - a) + a (1 - b): the first coin fails, or it comes up and the second one fails. Which path
was taken is not seen. So the logarithm of such a sum need not be concave, but expected numbers of factors bound it from
both sides (see ``path_likelihood``). By Handelman's theorem (1988) every polynomial that is positive on a polytope is
such a sum, of perhaps many factors. A linear program proposes one of a degree that is little more than that of the
outcome, with few factors in the middle of the space. The identity is solved and checked exactly, so that nothing rests
on the search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb, prod
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from flint import fmpq, fmpq_mat

from plumdp.confidence.coin_trees import Factorise
from plumdp.confidence.space_moments import is_nonnegative, moments
from plumdp.model.expressions.polynomial import Polynomial, parameters, whole_terms
from plumdp.model.graph import FloatArray
from plumdp.model.space import ParameterSpace

MOST_PARAMETERS = 8  # of a space that is cut into boxes, without which such rows say nothing
_MORE = 2  # degrees that a sum may have above that of its outcome
_MOST_PRODUCTS = 1_500  # that a linear program chooses from
_POSITIVE = 1e-9  # relative: constants of a linear program that are not zero


class HiddenPath(NamedTuple):
    """A positive constant times powers of affine factors that are at least zero on the space."""

    constant: Fraction
    factors: tuple[tuple[Polynomial, int], ...]


PathSum: TypeAlias = tuple[HiddenPath, ...]


def find_path_sums(
    row: Sequence[Polynomial],
    space: ParameterSpace,
    factored: Factorise = Polynomial.factors,
    known: Mapping[Polynomial, PathSum] = MappingProxyType({}),
) -> list[PathSum] | None:
    """Return each outcome of a row as a sum over paths, or None if one has none, or if parameters are many.

    Sums that are ``known`` are taken as they are.

    >>> from plumdp import parameters
    >>> a, b = parameters("a", "b")
    >>> sums = find_path_sums([a * b, 1 - a * b], ParameterSpace.unit("a", "b"))
    >>> [len(paths) for paths in sums]
    [1, 2]
    """
    if space.dimension > MOST_PARAMETERS:
        return None
    if all(outcome in known for outcome in row):
        return [known[outcome] for outcome in row]
    few, more = (_sides(row, space, factored, with_ends=with_ends) for with_ends in (False, True))
    sums = [
        known.get(outcome) or _sum_of(outcome, few, space, factored) or _sum_of(outcome, more, space, factored)
        for outcome in row
    ]
    found = [paths for paths in sums if paths is not None and len(paths)]
    return found if len(found) == len(sums) else None


def total(paths: PathSum) -> Polynomial:
    """Return the sum of paths as a polynomial."""
    return sum(
        (path.constant * prod((f**power for f, power in path.factors), start=Polynomial(1)) for path in paths),
        start=Polynomial(0),
    )


def _sides(
    row: Sequence[Polynomial], space: ParameterSpace, factored: Factorise, *, with_ends: bool
) -> list[Polynomial]:
    """Return affine polynomials that are at least zero on the space: of its box, its other sides, and of the row.

    Of a parameter p that is below one they are p and 1 - p. A ratio h between 0.2 and 5 is tied to the ends of p: if
    these are 0 and 0.2, then 1 - h p is 5 (0.2 - p) + p (5 - h). So all ends of the box are there, if asked for.
    """
    names = {name for outcome in row for name in outcome.names}
    sides: dict[Polynomial, None] = {}
    for name, (low, high) in zip(space.names, space.bounds, strict=True):
        if name in names:
            (parameter,) = parameters(name)
            ends = parameter if low >= 0 else parameter - low, 1 - parameter if high <= 1 else high - parameter
            sides |= dict.fromkeys((*ends, parameter - low, high - parameter) if with_ends else ends)
    sides |= dict.fromkeys(side for side in space.constraints if names.issuperset(side.names))
    of_row = [f for outcome in row if outcome for f, _ in factored(outcome)[1] if f.is_affine]
    sides |= dict.fromkeys(f for each in of_row for f in (each, -each) if is_nonnegative(f, space))
    return list(sides)


def _sum_of(
    outcome: Polynomial, sides: Sequence[Polynomial], space: ParameterSpace, factored: Factorise
) -> PathSum | None:
    """Return an outcome as a sum over paths, each with the affine factors that the outcome has, or None without one."""
    if not outcome:
        return None
    common: dict[Polynomial, int] = {}
    rest = outcome
    for factor, power in factored(outcome)[1]:
        side = next((side for side in (factor, -factor) if factor.is_affine and is_nonnegative(side, space)), None)
        divided = None if side is None else rest.quotient(side**power)
        if side is not None and divided is not None:
            common[side], rest = power, divided
    for degree in range(rest.degree, rest.degree + _MORE + 1):
        paths = _of_degree(rest, degree, sides, space)
        if paths is not None:
            whole = tuple(HiddenPath(c, tuple(_merged(common, dict(factors)).items())) for c, factors in paths)
            return whole if total(whole) == outcome else None  # only the exact check is trusted
    return None


def _merged(one: dict[Polynomial, int], other: dict[Polynomial, int]) -> dict[Polynomial, int]:
    return {f: one.get(f, 0) + other.get(f, 0) for f in (*one, *other)}


def _of_degree(
    outcome: Polynomial, degree: int, sides: Sequence[Polynomial], space: ParameterSpace
) -> list[HiddenPath] | None:
    """Return the sum over paths of at most so many factors, few of them in the middle, or None without one."""
    if comb(len(sides) + degree, degree) > _MOST_PRODUCTS:
        return None
    places = [each for n in range(degree + 1) for each in combinations_with_replacement(range(len(sides)), n)]
    made: dict[tuple[int, ...], Polynomial] = {(): Polynomial(1)}
    for each in places[1:]:
        made[each] = made[each[:-1]] * sides[each[-1]]
    _, terms = whole_terms([outcome, *(made[each] for each in places)])
    number = {key: i for i, key in enumerate(dict.fromkeys(key for of_one in terms for key, _, _ in of_one))}
    matrix = fmpq_mat(len(number), len(terms))
    for j, of_one in enumerate(terms):
        for key, above, below in of_one:
            matrix[number[key], j] = fmpq(above, below)
    middle = dict(zip(space.names, map(Fraction, moments(space)[0].tolist()), strict=True))
    values = [float(side.evaluate(middle)) for side in sides]
    costs = np.array([prod(values[i] for i in each) * (1 + len(each)) ** 2 for each in places])
    chosen = _chosen(np.array([[float(x) for x in row] for row in matrix.tolist()]), costs)
    constants = None if chosen is None else _constants(matrix, chosen)
    if constants is None or chosen is None:
        return None
    return [
        HiddenPath(constant, tuple((sides[i], places[j].count(i)) for i in dict.fromkeys(places[j])))
        for j, constant in zip(chosen, constants, strict=True)
        if constant
    ]


def _chosen(columns: FloatArray, costs: FloatArray) -> list[int] | None:
    """Return the products (all columns but the first) that about sum to the first column, at the least cost."""
    from scipy.optimize import linprog  # takes a fifth of the time of a small certificate to import

    solved = linprog(costs, A_eq=columns[:, 1:], b_eq=columns[:, 0], bounds=(0, None), method="highs-ds")
    if not solved.success:
        return None
    least = _POSITIVE * max(float(solved.x.max(initial=0.0)), _POSITIVE)
    return [j for j, x in enumerate(solved.x.tolist()) if x > least]


def _constants(matrix: Any, chosen: Sequence[int]) -> list[Fraction] | None:
    """Return the numbers, none negative, that products must be multiplied by, exactly, or None if there are none."""
    n = len(chosen)
    table = fmpq_mat([[matrix[i, j + 1] for j in chosen] + [matrix[i, 0]] for i in range(matrix.nrows())])
    reduced, rank = table.rref()
    if rank != n or any(reduced[i, i] != 1 for i in range(n)):  # not independent, or their sum is not the outcome
        return None
    found = [Fraction(int(reduced[i, n].p), int(reduced[i, n].q)) for i in range(n)]
    return found if min(found) >= 0 else None
