"""What cuts a ball: polynomials that are at least zero, with their terms up to degree two as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import factorial, prod, sqrt
from typing import Any

import numpy as np

from plumdp.base.rounding import UNDERFLOW
from plumdp.model.graph import BoolArray, FloatArray
from plumdp.verifying.sizes import sizes_on_ball
from plumdp_verify.polynomials import Exponents


@dataclass(frozen=True)
class Cuts:
    """The points with rows·x + x·squares x + higher terms <= offsets, in the coordinates of a ball."""

    rows: FloatArray  # (n, k)
    offsets: FloatArray  # (n)
    squares: FloatArray  # (n, k, k): zero for half-spaces
    higher: tuple[dict[Exponents, float], ...]  # (n): terms of degree three and more

    @staticmethod
    def of(lefts: Sequence[Mapping[Exponents, float]], k: int) -> Cuts:
        """Return the cuts where polynomials in k coordinates are at least zero."""
        n = len(lefts)
        rows, offsets, squares = np.zeros((n, k)), np.zeros(n), np.zeros((n, k, k))
        for i, left in enumerate(lefts):
            offsets[i], rows[i], squares[i] = to_degree_two(left, k)
        higher = tuple({e: -c for e, c in left.items() if sum(e) > 2} for left in lefts)
        return Cuts(-rows, offsets, -squares, higher)

    def scaled(self) -> Cuts:
        """Return the same cuts with rows of length one."""
        lengths = self.lengths
        higher = tuple(
            {e: c / length for e, c in terms.items()} for terms, length in zip(self.higher, lengths, strict=True)
        )
        return Cuts(self.rows / lengths[:, None], self.offsets / lengths, self.squares / lengths[:, None, None], higher)

    @property
    def degree(self) -> int:
        """The largest degree of their terms."""
        return max([1 + bool(self.squares.any()), *(sum(e) for terms in self.higher for e in terms)])

    @property
    def is_flat(self) -> BoolArray:
        """Which cuts are half-spaces (n)."""
        return ~self.squares.any(axis=(1, 2)) & np.array([not terms for terms in self.higher], dtype=np.bool_)

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

    def terms(self, i: int) -> dict[Exponents, float]:
        """Return the polynomial of a cut, which is at least zero."""
        k = self.rows.shape[1]
        return without({}, {(0,) * k: -1.0}, self, i)

    def only(self, chosen: Any) -> Cuts:
        """Return some of the cuts."""
        higher = tuple(self.higher[i] for i in chosen)
        return Cuts(self.rows[chosen], self.offsets[chosen], self.squares[chosen], higher)


def cuts_ball(left: Mapping[Exponents, float]) -> bool:
    """Return whether a polynomial may be below zero somewhere on the ball, by its norms."""
    return sum(c for e, c in left.items() if not any(e)) < size_of(left)


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


def norm_of(exponents: Exponents) -> float:
    """Return the norm of a monomial (see ``size_on_ball`` of the checker)."""
    return sqrt(prod(map(factorial, exponents)) / factorial(sum(exponents)))


def without(
    polynomial: dict[Exponents, float], multiplier: dict[Exponents, float], cuts: Cuts, which: int
) -> dict[Exponents, float]:
    """Return p(x) - y(x) (offset - row·x - x·square x - higher terms) for one of some cuts."""
    result, row, square = dict(polynomial), cuts.rows[which].tolist(), cuts.squares[which]
    terms = [((), -float(cuts.offsets[which])), *(((i,), q) for i, q in enumerate(row))]
    terms += [((i, j), float(square[i, j])) for i, j in zip(*np.nonzero(square), strict=True)]
    powers = [(tuple(places.count(i) for i in range(len(row))), number) for places, number in terms]
    for a, y in multiplier.items():
        for b, number in (*powers, *cuts.higher[which].items()):
            above = tuple(map(sum, zip(a, b, strict=True)))
            result[above] = result.get(above, 0.0) + y * number
    return result


def size_of(polynomial: Mapping[Exponents, float]) -> float:
    """Return a bound on how far a polynomial differs from its constant on the ball."""
    return float(sum(sizes_on_ball({e: np.array([c]) for e, c in polynomial.items()}, 1)))
