"""A cube in coordinates of its own, and what cuts it.

Points are ``centre + axes x + idle y``, in the cube if no coordinate of x is beyond ±1. Nothing depends on y.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from flint import arb, arb_mat, fmpq, fmpq_mat

from .arithmetic import sums
from .counts import CountedRows
from .half_spaces import ProvedHalfSpace
from .polynomials import Exponents, Polynomial, monomials, size_of, substitute
from .reading import Ball, Exact, Part, Rejected, dot, require, work

_SMALL = fmpq(1, 10**6)


@dataclass(frozen=True)
class Cut:
    """The points at which a polynomial in the coordinates of a cube is at least zero; None if it has idle ones."""

    left: dict[Exponents, Ball] | None
    is_half_space: bool = True


@dataclass(frozen=True)
class Enclosure:
    """The coordinates of a cube, and what cuts it."""

    centre: list[Exact]
    axes: list[list[Exact]]  # (k) of d numbers
    idle: list[list[Exact]]  # (d - k) of d numbers
    cuts: Sequence[Cut]
    radius: Ball | None = None  # of a ball that holds the set as well, if there is one

    def size(self, polynomial: Mapping[Exponents, Ball]) -> Ball:
        """Return a bound on how far a polynomial in x differs from its constant."""
        return size_of(polynomial, self.radius)

    @property
    def dimension(self) -> int:
        """The number of coordinates that matter."""
        return len(self.axes)

    @cached_property
    def forms(self) -> list[Polynomial]:
        """Each parameter as a function of x and y."""
        d, forms = len(self.centre), list[Polynomial]()
        work(d**3)
        columns, order = [*self.axes, *self.idle], monomials(d, 1)
        for i, start in enumerate(self.centre):
            numbers = [start, *(column[i] for column in columns)]
            forms.append({e: c for e, c in zip(order, numbers, strict=True) if c})
        return forms

    def transform(self, polynomial: Polynomial, place: str) -> Polynomial:
        """Return a polynomial in the parameters as one in x, which must not depend on y."""
        k, d = len(self.axes), len(self.centre)
        moved = substitute(polynomial, self.forms, d)
        require(
            not any(any(e[k:]) for e in moved), f"{place}: a probability depends on parameters that are called idle"
        )
        return {e[:k]: coefficient for e, coefficient in moved.items()}


def make_enclosure(part: Part, data: CountedRows, half_spaces: Sequence[ProvedHalfSpace]) -> Enclosure:
    """Return the coordinates of a cube, whatever it holds, and what cuts it."""
    d, k = len(data.names), len(part["axes"])
    require(k <= d, f"{part.place}: there are more axes than parameters")
    work(d**3 + d**2 * len(data.members))
    centre = part["centre"].numbers(d)
    axes, idle = part["axes"].matrix(k, d), part["idle"].matrix(d - k, d)
    bits = max((number.height_bits() for row in [*axes, *idle] for number in row), default=0)
    work(d**4 * bits // 4000)
    require(d == 0 or fmpq_mat([*axes, *idle]).det() != 0, f"{part.place}: axes and idle directions are not a basis")
    for member in data.members:
        free = all(dot(member.slopes, direction) == 0 for direction in idle)
        require(free, f"{part.place}: an outcome depends on parameters that are called idle")
    return with_cuts(Enclosure(centre, axes, idle, []), data, half_spaces)


def with_cuts(empty: Enclosure, data: CountedRows, half_spaces: Sequence[ProvedHalfSpace]) -> Enclosure:
    """Return coordinates with all that cuts the cube, in these coordinates."""
    return replace(empty, cuts=CutsOfCube(empty, data, half_spaces))


class CutsOfCube(Sequence[Cut]):
    """What cuts a cube, in its coordinates once it is asked for: half-spaces, each tangent followed by a parabola."""

    def __init__(self, empty: Enclosure, data: CountedRows, half_spaces: Sequence[ProvedHalfSpace]) -> None:
        self._empty, self._data, self._known = empty, data, dict[int, Cut]()
        self._sources = [(each, i) for each in half_spaces for i in range(1 + (each.likelihood is not None))]

    def __len__(self) -> int:
        return len(self._sources)

    def __getitem__(self, place: Any) -> Any:
        if place not in self._known:
            work(len(self._empty.centre) ** 2)
            each, is_parabola = self._sources[place]
            make = _curved if each.curved else _cut
            given = (
                _parabola(each, each.likelihood, self._data, self._empty) if is_parabola else make(each, self._empty)
            )
            self._known[place] = given
        return self._known[place]


def _cut(half_space: ProvedHalfSpace, enclosure: Enclosure) -> Cut:
    row = half_space.row
    is_exact = all(type(a) is fmpq for a in row)  # those of outcomes do not depend on idle coordinates, as checked
    if is_exact and any(dot(row, direction) != 0 for direction in enclosure.idle):
        return Cut(None)
    offset = arb(half_space.offset) - arb(dot(row, enclosure.centre))
    return Cut(_left(offset, [arb(dot(row, axis)) for axis in enclosure.axes], []))


def _left(offset: Ball, row: Sequence[Ball], square: Sequence[Sequence[Ball]]) -> dict[Exponents, Ball]:
    """Return the polynomial offset - row · x - x · square x."""
    k = len(row)
    left = {(0,) * k: offset} | {tuple(int(i == m) for m in range(k)): -q for i, q in enumerate(row)}
    for i, entries in enumerate(square):
        for j, entry in enumerate(entries):
            e = tuple(int(i == m) + int(j == m) for m in range(k))
            left[e] = left.get(e, arb(0)) - entry
    return left


def _curved(half_space: ProvedHalfSpace, enclosure: Enclosure) -> Cut:
    """Return what a half-space that is curved by products of parameters leaves of a cube."""
    d = len(enclosure.centre)
    flat = {tuple(int(i == m) for m in range(d)): b for i, b in enumerate(half_space.row) if b}
    try:
        moved = enclosure.transform(flat | half_space.curved, "")
    except Rejected:
        return Cut(None, is_half_space=False)
    zero = (0,) * enclosure.dimension
    left = {e: -arb(c) for e, c in moved.items()}
    left |= {zero: left.get(zero, arb(0)) + arb(half_space.offset)}
    return Cut(left, is_half_space=False)


def _parabola(tangent: ProvedHalfSpace, likelihood: Any, data: CountedRows, enclosure: Enclosure) -> Cut:
    """Return what a likelihood leaves of a cube, by a parabola that touches it where a tangent does.

    With f = y at the point where it touches, s = f/y - 1 is s₀ + β·x, and so at most t = s₀ + Σ|β|, or zero.
    As ln(1 + s) <= s - κ(t) s² / 2 for s <= t, with κ(t) = 2 (t - ln(1 + t)) / t², threshold <= Σ seen ln f is at
    most Σ seen (ln y + s - κ(t) s² / 2).
    """
    k, offset = enclosure.dimension, -likelihood.threshold
    work(len(data.members) * (k + 1) ** 2)
    here, along = data.at(enclosure.centre), data.along(enclosure.axes)
    slopes, bends, ahead = list[list[Ball]](), list[Ball](), list[Ball]()
    for i, (n, y) in enumerate(zip(likelihood.seen, tangent.touches, strict=True)):
        if n:
            start = here[i] / y - 1
            slopes.append([of_axis[i] / y for of_axis in along])
            reach = sums([abs(a) for a in slopes[-1]])
            bends.append(n * _curvature((start + reach).max(arb(0))) / 2)
            offset += n * (y.log() + start) - bends[-1] * start * start
            ahead.append(2 * bends[-1] * start - n)
    matrix = arb_mat(len(slopes), k, [a for of_one in slopes for a in of_one])
    bent = arb_mat(len(slopes), k, [bend * a for bend, of_one in zip(bends, slopes, strict=True) for a in of_one])
    row = (arb_mat(1, len(ahead), ahead) * matrix).tolist()[0]
    return Cut(_left(offset, row, (matrix.transpose() * bent).tolist()), is_half_space=False)


def _curvature(t: Ball) -> Ball:
    """Return κ(t) or less; κ falls, and κ(t) >= 1 - 2 t / 3."""
    if t < arb(_SMALL):
        return 1 - 2 * t / 3
    return 2 * (t - t.log1p()) / (t * t)
