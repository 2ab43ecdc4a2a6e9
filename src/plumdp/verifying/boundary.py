"""What bounds the set of parameters, in floats: half-spaces, some of them curved, and tangents of likelihoods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum, inf
from typing import Any, TypeAlias

import numpy as np
from flint import fmpq, fmpz_mat

from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.model.graph import BoolArray, FloatArray
from plumdp.verifying.cube_bounds import Cuts, Terms, composed, to_degree_two
from plumdp_verify.enclosure import Enclosure
from plumdp_verify.half_spaces import ProvedHalfSpace
from plumdp_verify.polynomials import Polynomial, monomials
from plumdp_verify.reading import dot

_SMALL = 1e-6  # distance at which the curvature of a logarithm is taken from its series
_MOST_AT_ONCE = 6  # parameters, all of which may be coordinates

_Cut: TypeAlias = tuple[float, FloatArray, FloatArray]  # offset, row and square of rows·x + x·squares x <= offset
Coordinates: TypeAlias = tuple[FloatArray, list[list[int]]]
"""A basis (d, k) of the directions that a cube has, and whole vectors that span the others."""


def as_float(number: Any) -> float:
    """Return a ball or a fraction as a float that is close to it."""
    return float(number.mid()) if hasattr(number, "mid") else int(number.p) / int(number.q)


@dataclass(frozen=True)
class LikelihoodForm:
    """A likelihood whose logarithm is at least a threshold, as a source of tangents."""

    table: LikelihoodTable
    seen: FloatArray
    threshold: float
    start: FloatArray  # (d): about where it is largest

    def value(self, point: FloatArray) -> float:
        """Return the excess of the log-likelihood over the threshold."""
        is_seen = self.seen > 0
        f = self.table.chances(point)[is_seen]
        return float(self.seen[is_seen] @ np.log(f)) - self.threshold if (f > 0).all() else -np.inf

    def curvature(self) -> FloatArray:
        """Return minus the second derivatives (d, d) about where it is largest."""
        is_seen = self.seen > 0
        slopes = self.table.coefficients[is_seen] / self.table.chances(self.start)[is_seen][:, None]
        return np.asarray(slopes.T @ (self.seen[is_seen][:, None] * slopes))


def idle_directions(table: LikelihoodTable) -> list[list[int]]:
    """Return whole vectors that span the directions in which no outcome changes, exactly."""
    d = len(table.names)
    distinct = {tuple(f.affine_terms()[1].get(name, 0) for name in table.names) for f in table.outcomes}
    rows = [_whole(row) for row in sorted(distinct) if any(row)]
    if not rows:
        return np.eye(d, dtype=int).tolist()
    kernel, nullity = fmpz_mat(rows).nullspace()
    return [[int(kernel[i, j]) for i in range(d)] for j in range(nullity)]


def _whole(row: tuple[Any, ...]) -> list[int]:
    scale = int(np.lcm.reduce([int(x.denominator) for x in row if x] or [1]))
    return [int(x * scale) for x in row]


def deepest_point(rows: FloatArray, offsets: FloatArray) -> FloatArray:
    """Return the centre of a largest ball within half-spaces ``rows @ v <= offsets``."""
    from scipy.optimize import linprog

    widths = np.linalg.norm(rows, axis=1, keepdims=True)
    found = linprog(
        np.append(np.zeros(rows.shape[1]), -1.0),
        A_ub=np.hstack([rows, widths]),
        b_ub=offsets,
        bounds=(None, None),
    )
    return np.zeros(rows.shape[1]) if found.x is None else np.asarray(found.x[:-1])


def coordinates_of(table: LikelihoodTable, *, is_whole: bool) -> list[Coordinates]:
    """Return a basis of the directions in which outcomes change, with the others; and, if there are such, all at once.

    The space may cut across directions in which no outcome changes, so that its sides matter in all of them. If the
    likelihood does not have all outcomes, it does not say in which directions these change.
    """
    (d, k), idle = table.basis.shape, idle_directions(table)
    everything: Coordinates = np.eye(d), []
    if not is_whole and k < d:
        return [everything]
    return [(table.basis, idle), *[everything] * (0 < k < d <= _MOST_AT_ONCE)]


@dataclass
class Boundary:
    """Half-spaces in the order of the checker, and tangents that are added on the way."""

    half_spaces: Sequence[ProvedHalfSpace]
    forms: Sequence[LikelihoodForm]
    idle: list[list[int]]  # directions in which no outcome changes
    tangents: list[dict[str, Any]] = field(default_factory=list)
    _touched: list[tuple[LikelihoodForm, FloatArray]] = field(default_factory=list)  # outcomes where they touch
    _last: tuple[Enclosure | None, Cuts | None, list[_Cut]] = (None, None, [])

    def __post_init__(self) -> None:
        self.rows = np.array([[as_float(a) for a in each.row] for each in self.half_spaces])
        self.offsets = np.array([as_float(each.offset) for each in self.half_spaces])
        self.is_free = np.array([self._is_free(each) for each in self.half_spaces])
        given = {i: _left(each) for i, each in enumerate(self.half_spaces) if each.curved}
        self.curved = {i: {e: as_float(c) for e, c in left.items()} for i, left in given.items()}

    def _is_free(self, half_space: ProvedHalfSpace) -> bool:
        """Return whether a half-space does not depend on idle directions, exactly."""
        if not half_space.curved:
            is_exact = all(type(a) is fmpq for a in half_space.row)  # those of bets are sums of slopes of outcomes
            return not is_exact or not any(dot(half_space.row, direction) for direction in self.idle)
        slopes = [i for direction in self.idle for i, x in enumerate(direction) if x]
        return not any(e[i] for e in _left(half_space) for i in slopes)

    def touch(self, likelihood: int, point: FloatArray) -> bool:
        """Add the tangent of a likelihood at a point, and return whether it has one there."""
        form = self.forms[likelihood]
        if not form.value(point) > -inf:
            return False
        self.tangents.append({"likelihood": likelihood, "point": point.tolist()})
        self._touched.append((form, form.table.chances(point)))
        return True

    def cuts(self, cube: Enclosure) -> Cuts:
        """Return all that cuts a cube, in its coordinates: half-spaces, and each tangent followed by a parabola."""
        centre, axes = floats([cube.centre])[0], floats(cube.axes).reshape(cube.dimension, -1)
        if self._last[0] is not cube:
            self._last = cube, self._flat(centre, axes), []
        _, flat, drawn = self._last
        for form, touched in self._touched[len(drawn) // 2 :]:
            drawn += _around(form, touched, centre, axes)
        assert flat is not None
        k, n = len(axes), len(drawn)
        rows, squares = (np.array([cut[i] for cut in drawn]).reshape(n, *(k,) * i) for i in (1, 2))
        offsets = np.append(flat.offsets, [offset for offset, _, _ in drawn])
        return Cuts(
            np.vstack([flat.rows, rows]), offsets, np.concatenate([flat.squares, squares]), (*flat.higher, *[{}] * n)
        )

    def _flat(self, centre: FloatArray, axes: FloatArray) -> Cuts:
        n, k, (order, *firsts) = len(self.rows), len(axes), monomials(len(axes), 1)
        rows, offsets = self.rows @ axes.T * self.is_free[:, None], (self.offsets - self.rows @ centre) * self.is_free
        squares, higher = np.zeros((n, k, k)), list[Terms]([{}] * n)
        pairs = zip(centre.tolist(), axes.T.tolist(), strict=True)
        forms = [{order: c, **dict(zip(firsts, of_one, strict=True))} for c, of_one in pairs]
        for i, polynomial in self.curved.items():
            if not self.is_free[i]:
                continue
            moved = composed(polynomial, forms, k)
            constant, rows[i], squares[i] = to_degree_two(moved, k)
            offsets[i] = self.offsets[i] - constant
            higher[i] = {e: c for e, c in moved.items() if sum(e) > 2}
        return Cuts(rows, offsets, squares, tuple(higher))

    @property
    def is_half_space(self) -> BoolArray:
        """Which cuts are half-spaces whatever the cube is."""
        curved = np.isin(np.arange(len(self.rows)), [*self.curved])
        return np.append(~curved, [True, False] * len(self.tangents)).astype(np.bool_)

    @property
    def deepest(self) -> FloatArray:
        """The centre (d) of a largest ball within all half-spaces."""
        flat = self.is_half_space[: len(self.rows)]
        return deepest_point(self.rows[flat], self.offsets[flat])

    def depth(self, point: FloatArray) -> float:
        """Return the depth of a point in the set: its distance from the nearest bound."""
        left = self.offsets - self.rows @ point
        for i, polynomial in self.curved.items():
            left[i] = self.offsets[i] - sum(c * float(np.prod(point ** np.array(e))) for e, c in polynomial.items())
        return min([float(left.min(initial=inf)), *(form.value(point) for form in self.forms)])


def _left(half_space: ProvedHalfSpace) -> Polynomial:
    """Return the left side of a half-space as a polynomial."""
    d = len(half_space.row)
    return {tuple(int(i == m) for m in range(d)): b for i, b in enumerate(half_space.row) if b} | half_space.curved


def _around(form: LikelihoodForm, touched: FloatArray, centre: FloatArray, axes: FloatArray) -> list[_Cut]:
    """Return the tangent of a likelihood in the coordinates of a cube, and a parabola (see ``enclosure``)."""
    is_seen = form.seen > 0
    seen, y = form.seen[is_seen], touched[is_seen]
    start = form.table.chances(centre)[is_seen] / y - 1
    slopes = (form.table.coefficients[is_seen] @ axes.T) / y[:, None]
    end = np.maximum(start + np.abs(slopes).sum(axis=1), _SMALL)
    bend = seen * (end - np.log1p(end)) / end**2
    left, k = fsum([-form.threshold, *(seen * (np.log(y) + start)).tolist()]), len(axes)
    parabola = left - float(bend @ start**2), (2 * bend * start - seen) @ slopes, slopes.T @ (bend[:, None] * slopes)
    return [(left, -seen @ slopes, np.zeros((k, k))), parabola]


def floats(rows: Sequence[Sequence[Any]]) -> FloatArray:
    """Return rows of fractions as floats."""
    return np.array([[float(a) if isinstance(a, int) else as_float(a) for a in row] for row in rows])
