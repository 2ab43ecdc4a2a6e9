"""What cuts a cube: polynomials that are at least zero, with their terms up to degree two as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import factorial, prod, sqrt
from typing import Any, TypeAlias

import numpy as np

from plumdp.base.rounding import UNDERFLOW
from plumdp.model.graph import BoolArray, FloatArray
from plumdp_verify.polynomials import Exponents, monomials

Terms: TypeAlias = dict[Exponents, float]
"""A polynomial, by its monomials."""


@dataclass(frozen=True)
class Cuts:
    """The points with rows·x + x·squares x + higher terms <= offsets, in the coordinates of a cube."""

    rows: FloatArray  # (n, k)
    offsets: FloatArray  # (n)
    squares: FloatArray  # (n, k, k): zero for half-spaces
    higher: tuple[dict[Exponents, float], ...]  # (n): terms of degree three and more

    def scaled(self) -> Cuts:
        """Return the same cuts with rows of length one."""
        lengths = self.lengths
        higher = tuple(
            {e: c / length for e, c in terms.items()} for terms, length in zip(self.higher, lengths, strict=True)
        )
        return Cuts(self.rows / lengths[:, None], self.offsets / lengths, self.squares / lengths[:, None, None], higher)

    @property
    def is_flat(self) -> BoolArray:
        """Which cuts are half-spaces (n)."""
        return ~self.squares.any(axis=(1, 2)) & np.array([not terms for terms in self.higher], dtype=np.bool_)

    @property
    def sizes(self) -> FloatArray:
        """How far left sides may be from zero in the cube, at most (n): what has a larger offset cuts nothing off."""
        of_higher = [sum(map(abs, terms.values())) for terms in self.higher]
        return np.asarray(np.abs(self.rows).sum(axis=1) + np.abs(self.squares).sum(axis=(1, 2)) + of_higher)

    @property
    def lengths(self) -> FloatArray:
        """The lengths of rows (n)."""
        return np.asarray(np.maximum(np.linalg.norm(self.rows, axis=1), UNDERFLOW))

    def left(self, x: FloatArray) -> FloatArray:
        """Return offsets less the left sides (n) at a point, without higher terms."""
        return np.asarray(self.offsets - self.rows @ x - np.einsum("nij,i,j->n", self.squares, x, x))

    def slopes(self, x: FloatArray) -> FloatArray:
        """Return the derivatives of left sides (n, k) at a point."""
        return np.asarray(self.rows + 2 * self.squares @ x)

    def terms(self, i: int) -> Terms:
        """Return the polynomial of a cut, which is at least zero."""
        k, square = self.rows.shape[1], self.squares[i]
        found = dict(zip(monomials(k, 1), [float(self.offsets[i]), *(-self.rows[i]).tolist()], strict=True))
        for m, n in zip(*np.nonzero(square), strict=True):
            e = tuple(int(m == j) + int(n == j) for j in range(k))
            found[e] = found.get(e, 0.0) - float(square[m, n])
        return found | {e: -c for e, c in self.higher[i].items()}

    def only(self, chosen: Any) -> Cuts:
        """Return some of the cuts."""
        higher = tuple(self.higher[i] for i in chosen)
        return Cuts(self.rows[chosen], self.offsets[chosen], self.squares[chosen], higher)


def to_degree_two(polynomial: Mapping[Exponents, float], k: int) -> tuple[float, FloatArray, FloatArray]:
    """Return the constant, the linear and the square terms of a polynomial."""
    linear, square = np.zeros(k), np.zeros((k, k))
    for e, number in polynomial.items():
        places = [i for i, power in enumerate(e) for _ in range(power)]
        if len(places) == 1:
            linear[places[0]] += number
        elif len(places) == 2:
            square[places[0], places[1]] += number / 2
            square[places[1], places[0]] += number / 2
    return polynomial.get((0,) * k, 0.0), linear, square


def composed(polynomial: Mapping[Exponents, float], forms: Sequence[Terms], k: int) -> Terms:
    """Return a polynomial with affine functions of k variables in place of its own."""
    known: dict[Exponents, Terms] = {(0,) * len(forms): {(0,) * k: 1.0}}

    def power(e: Exponents) -> Terms:
        if e not in known:
            i = next(i for i, n in enumerate(e) if n)
            known[e] = _times(power((*e[:i], e[i] - 1, *e[i + 1 :])), forms[i])
        return known[e]

    total: Terms = {}
    for e, c in polynomial.items():
        for b, number in power(e).items():
            total[b] = total.get(b, 0.0) + c * number
    return total


def _times(left: Terms, right: Terms) -> Terms:
    result: Terms = {}
    for a, x in left.items():
        for b, y in right.items():
            e = tuple(map(sum, zip(a, b, strict=True)))
            result[e] = result.get(e, 0.0) + x * y
    return result


def without(polynomial: Terms, multipliers: Mapping[int, Terms], cuts: Cuts) -> Terms:
    """Return a polynomial less the products of multipliers with cuts, which are at least zero."""
    result = dict(polynomial)
    for i, y in multipliers.items():
        for e, c in _times(y, cuts.terms(i)).items():
            result[e] = result.get(e, 0.0) - c
    return result


def sizes_of(polynomials: dict[Exponents, FloatArray], n: int, radius: float | None) -> FloatArray:
    """Return bounds on how far the polynomials of states differ from constants (see ``size_of`` of the checker)."""
    sizes: dict[int, FloatArray] = {}
    norms: dict[int, FloatArray] = {}
    for e, values in polynomials.items():
        if degree := sum(e):
            sizes[degree] = sizes.get(degree, 0.0) + np.abs(values)
            weighted = sqrt(prod(map(factorial, e)) / factorial(degree)) * values
            norms[degree] = np.hypot(norms.get(degree, 0.0), weighted)
    if radius is not None:
        sizes = {m: np.minimum(size, norms[m] * radius**m) for m, size in sizes.items()}
    return np.asarray(sum(sizes.values(), start=np.zeros(n)))
