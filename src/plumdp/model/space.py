"""The parameter space of points that are possible before any data, as a box plus linear inequalities, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb, inf, nextafter
from typing import Any, TypeAlias

import numpy as np
from flint import fmpq, fmpq_mat

from plumdp.base.errors import EmptySpace, ModelError
from plumdp.model.expressions.polynomial import Number, Polynomial, exact, parameters
from plumdp.model.graph import FloatArray, Indices
from plumdp.model.text import number_of, one_line

Point: TypeAlias = Mapping[str, Number] | Sequence[Number] | FloatArray
"""A point of the space: values by name, or in the order of the names."""

_MAX_SUBSETS = 20_000  # how many sets of active rows are tried to list the vertices


@dataclass(frozen=True)
class ParameterSpace:
    """The points within bounds at which every constraint (an affine polynomial) is at least zero.

    Parameters
    ----------
    names
        The parameters, in order.
    bounds
        The least and the largest value of each.
    constraints
        Affine polynomials that are at least zero on the space.

    Examples
    --------
    >>> p, q = parameters("p", "q")
    >>> space = ParameterSpace.box({"p": (0, 1), "q": (0, 0.5)}, constraints=[1 - p - q])
    >>> space.contains({"p": 0.75, "q": 0.25}), space.contains({"p": 0.75, "q": 0.5})
    (True, False)
    """

    names: tuple[str, ...]
    bounds: tuple[tuple[Fraction, Fraction], ...]  # per name, both ends included
    constraints: tuple[Polynomial, ...] = ()

    def __repr__(self) -> str:
        return one_line(self, *self.describe()) if len(self.names) < 4 else one_line(self, self._in_short())

    @staticmethod
    def box(bounds: Mapping[str, tuple[Number, Number]], *, constraints: Iterable[Polynomial] = ()) -> ParameterSpace:
        """Return the space of the given bounds, cut by affine polynomials that must be at least zero."""
        parameters(*bounds)  # refuses what is not a name
        for name, pair in bounds.items():
            if exact(pair[0]) > exact(pair[1]):
                raise ModelError(f"parameter {name}: the lower bound {pair[0]} is above the upper bound {pair[1]}")
        ends = tuple((exact(low), exact(high)) for low, high in bounds.values())
        return ParameterSpace(tuple(bounds), ends).cut(constraints)

    @staticmethod
    def unit(*names: str) -> ParameterSpace:
        """Return the unit cube, with every parameter in [0, 1]."""
        parameters(*names)  # refuses a name that appears twice
        return ParameterSpace.box(dict.fromkeys(names, (0, 1)))

    @staticmethod
    def simplex(*names: str) -> ParameterSpace:
        """Return the weights of a mixture whose last weight is one minus the others.

        Each is at least 0, and their sum is at most 1.
        """
        rest = 1 - sum(parameters(*names), Polynomial(0))
        return ParameterSpace.box(dict.fromkeys(names, (0, 1)), constraints=[rest])

    @property
    def dimension(self) -> int:
        """The number of parameters."""
        return len(self.names)

    @cached_property
    def lower(self) -> FloatArray:
        """Lower bounds, rounded down."""
        return np.array([float_below(low) for low, _ in self.bounds])

    @cached_property
    def upper(self) -> FloatArray:
        """Upper bounds, rounded up."""
        return np.array([float_above(high) for _, high in self.bounds])

    @cached_property
    def inequalities(self) -> tuple[FloatArray, FloatArray]:
        """The constraints as ``A @ point <= b`` in floats, rounded outward, so that no point of the space is lost."""
        matrix, offsets = np.zeros((len(self.constraints), self.dimension)), np.zeros(len(self.constraints))
        for row, constraint in enumerate(self.constraints):
            offset, coefficients = affine_entries(constraint, self.names)
            for place, coefficient in coefficients:
                matrix[row, place] = float(-coefficient)
                low, high = self.bounds[place]
                # outward: how far the rounded row may be off anywhere in the box
                offset += abs(Fraction(matrix[row, place]) + coefficient) * max(abs(low), abs(high))
            offsets[row] = float_above(offset)
        return matrix, offsets

    def cut(self, constraints: Iterable[Polynomial]) -> ParameterSpace:
        """Return the points of this space at which the affine polynomials are at least zero."""
        bounds, kept = dict(zip(self.names, self.bounds, strict=True)), list(self.constraints)
        for constraint in constraints:
            names = constraint.names
            self._check_constraint(constraint, names)
            if len(names) == 1:
                name = names[0]
                bounds[name] = _intersect(name, bounds[name], constraint)
            elif names and constraint not in kept:
                kept.append(constraint)
        return replace(self, bounds=tuple(bounds.values()), constraints=tuple(kept))

    def contains(self, point: Point) -> bool:
        """Return whether the point lies in the space, exactly."""
        values = self.point(point)
        inside = all(low <= values[name] <= high for name, (low, high) in zip(self.names, self.bounds, strict=True))
        return inside and all(constraint.evaluate(values) >= 0 for constraint in self.constraints)

    def point(self, values: Point) -> dict[str, Fraction]:
        """Return the exact values by name, one for every parameter.

        A float is the shortest decimal that it is written as, however long, so that drawn points may be given.

        >>> ParameterSpace.unit("p").point(np.random.default_rng(1).random(1))
        {'p': Fraction(5118216247002567, 10000000000000000)}
        """
        if not isinstance(values, Mapping):
            if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str):
                names = ", ".join(self.names) or "none"
                wanted = f"one number for each parameter ({names}), as a mapping by name or in their order"
                raise ModelError(f"a point is {wanted}, not {type(values).__name__}")
            if len(values) != self.dimension:
                raise ModelError(f"{len(values)} values for the parameters {', '.join(self.names)}")
            values = dict(zip(self.names, values, strict=True))
        missing = [name for name in self.names if name not in values]
        known = set(self.names)
        unknown = [name for name in values if name not in known]
        if missing or unknown:
            names = ", ".join(self.names) or "none"
            wrong = f"no value for {', '.join(missing)}" if missing else f"no parameter is called {', '.join(unknown)}"
            raise ModelError(f"{wrong}; the parameters are {names}")
        return {name: _coordinate(values[name]) for name in self.names}

    def generic_point(self) -> dict[str, Fraction]:
        """Return a point inside the box, near its lower corner, at which no two expressions agree by accident."""
        odd = [7919 + (2 * i * i + 101 * i) % 2003 for i in range(self.dimension)]  # below 10007: the sum stays below 1
        share = [Fraction(part, (self.dimension + 1) * 10007) for part in odd]
        return {
            name: low + (high - low) * part
            for name, (low, high), part in zip(self.names, self.bounds, share, strict=True)
        }

    @cached_property
    def vertices(self) -> tuple[dict[str, Fraction], ...] | None:
        """The corners, exactly, or None where there are too many to list."""
        rows = self._rows()
        if comb(len(rows), self.dimension) > _MAX_SUBSETS:
            return None
        system = [affine_coefficients(row, self.names) for row in rows]
        points = (_intersection(subset, self.names) for subset in combinations(system, self.dimension))
        inside = {tuple(point.values()): point for point in points if point is not None and self.contains(point)}
        return tuple(inside.values())

    def describe(self) -> list[str]:
        """Return one line per parameter and per constraint, for people."""
        lines = [
            f"{name} in [{float(low):.6g}, {float(high):.6g}]"
            for name, (low, high) in zip(self.names, self.bounds, strict=True)
        ]
        return lines + [f"{constraint} >= 0" for constraint in self.constraints]

    def _in_short(self) -> str:
        constraints = f" with {number_of(len(self.constraints), 'constraint')}" if self.constraints else ""
        return f"{number_of(self.dimension, 'parameter')}{constraints}: {', '.join(self.names)}"

    def _check_constraint(self, constraint: Polynomial, names: tuple[str, ...]) -> None:
        unknown = [name for name in names if name not in self.names]
        if unknown:
            raise ModelError(f"constraint {constraint} >= 0: {', '.join(unknown)} is not declared")
        if not constraint.is_affine:
            raise ModelError(
                f"constraint {constraint} >= 0 is not linear; a parameter space is a box cut by linear inequalities"
            )
        if not names and constraint.constant < 0:
            raise EmptySpace(f"constraint {constraint} >= 0 can never hold")

    def _rows(self) -> list[Polynomial]:
        gens = dict(zip(self.names, parameters(*self.names), strict=True))
        box = [
            side
            for name, (low, high) in zip(self.names, self.bounds, strict=True)
            for side in (gens[name] - low, high - gens[name])
        ]
        return box + list(self.constraints)


def _coordinate(value: Any) -> Fraction:
    """Return the number of a point: of a float the shortest decimal, which ties with no expression and need not."""
    number: Any = value[()] if isinstance(value, np.ndarray) and not value.ndim else value
    is_float = isinstance(number, float | np.floating) and np.isfinite(number)
    return Fraction(str(number)) if is_float else exact(number)


def affine_coefficients(polynomial: Polynomial, names: tuple[str, ...]) -> tuple[Fraction, list[Fraction]]:
    """Return the constant term and the coefficient of each name of an affine polynomial."""
    constant, entries = affine_entries(polynomial, names)
    coefficients = [Fraction(0)] * len(names)
    for place, coefficient in entries:
        coefficients[place] = coefficient
    return constant, coefficients


def affine_entries(polynomial: Polynomial, names: tuple[str, ...]) -> tuple[Fraction, list[tuple[int, Fraction]]]:
    """Return the constant term of an affine polynomial, and the coefficients that are not zero with their places."""
    constant, coefficients = polynomial.affine_terms()
    missing = [name for name in coefficients if name not in names]
    if missing:
        raise ModelError(f"{polynomial}: no column for {', '.join(missing)}")
    return constant, sorted((names.index(name), coefficient) for name, coefficient in coefficients.items())


def float_below(number: Fraction) -> float:
    """Return the largest float that is at most the number."""
    try:
        nearest = float(number)
    except OverflowError:
        return -inf if number < 0 else nextafter(inf, 0)
    return nextafter(nearest, -inf) if Fraction(nearest) > number else nearest


def float_above(number: Fraction) -> float:
    """Return the smallest float that is at least the number."""
    return -float_below(-number)


def _intersect(name: str, bounds: tuple[Fraction, Fraction], constraint: Polynomial) -> tuple[Fraction, Fraction]:
    offset, (slope,) = affine_coefficients(constraint, (name,))
    low, high = bounds
    root = -offset / slope
    low, high = (max(low, root), high) if slope > 0 else (low, min(high, root))
    if low > high:
        raise EmptySpace(f"parameter {name}: no value in [{bounds[0]}, {bounds[1]}] satisfies {constraint} >= 0")
    return low, high


def _intersection(
    system: Sequence[tuple[Fraction, list[Fraction]]], names: tuple[str, ...]
) -> dict[str, Fraction] | None:
    """Return the point where all rows (constant term, coefficients) are zero, if it is one point."""
    n = len(names)
    matrix = fmpq_mat(n, n, [fmpq(c.numerator, c.denominator) for _, row in system for c in row])
    right = fmpq_mat(n, 1, [fmpq(-offset.numerator, offset.denominator) for offset, _ in system])
    try:
        solution = matrix.solve(right)
    except ZeroDivisionError:
        return None
    return {name: Fraction(int(solution[i, 0].p), int(solution[i, 0].q)) for i, name in enumerate(names)}


def independent_blocks(rows: FloatArray) -> list[tuple[Indices, Indices]]:
    """Return the variables of each block, and the rows about them, with rows about nothing in the first.

    Two variables are in one block if a row has coefficients of both, or if a chain of rows ties them. So the points
    with ``rows @ point <= offsets`` are the product of the blocks, each with its rows.

    >>> [columns.tolist() for columns, _ in independent_blocks(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))]
    [[0, 2], [1]]
    """
    (n, d), (row, column) = rows.shape, np.nonzero(rows)
    label, before = np.arange(d), np.full(d, -1)  # of each variable: the first one that is known to be in its block
    of_row = np.zeros(n, dtype=np.int64)
    of_row[row] = d
    while (label != before).any():
        before = label.copy()
        np.minimum.at(of_row, row, label[column])
        np.minimum.at(label, column, of_row[row])
        label = label[label]
    firsts = np.unique(label)
    if len(firsts) <= 1 or not len(row):
        return [(np.arange(d), np.arange(n))]
    return [(np.flatnonzero(label == first), np.flatnonzero(of_row == first)) for first in firsts]
