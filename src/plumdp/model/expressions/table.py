"""The table of distinct expressions of a model, exact and as sparse float coefficients, and ranges of polynomials.

A polynomial on a box is a weighted mean of its Bernstein coefficients (Bernstein 1912), so they enclose its range. The
enclosure is exact for multilinear polynomials, whose coefficients are the values at the corners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import comb, lcm
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import fmpz

from plumdp.base.errors import ModelError
from plumdp.base.sparse import sparse
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.graph import BoolArray, FloatArray, Indices, IntArray, owners, ranges, read_only
from plumdp.model.space import ParameterSpace, Point
from plumdp.model.text import number_of, one_line

_MAX_SUM = 2**62  # whole numbers are added up as int64 below this


@dataclass(frozen=True, eq=False)
class Terms:
    """Polynomial ``f`` is the sum of the terms ``term[first[f]]`` up to ``term[first[f + 1]]``, in lexical order.

    Term ``t`` is ``above[t] / below[t]`` times the monomial ``monomials[monomial[t]]``.
    """

    first: IntArray  # (n_polynomials + 1)
    term: IntArray  # index into the distinct terms
    monomial: IntArray  # (n_distinct_terms), index into monomials
    monomials: tuple[tuple[tuple[str, int], ...], ...]  # (name, power) of each factor; numbered in order of first use
    above: tuple[int, ...]  # (n_distinct_terms)
    below: tuple[int, ...]  # (n_distinct_terms), positive

    def whole(self, n_summands: int) -> tuple[npt.NDArray[np.int64], int] | None:
        """Return coefficients as whole numbers over one denominator, or None if so many summands would overflow."""
        denominator = lcm(*self.below)
        if denominator >= _MAX_SUM:
            return None
        scaled = [above * (denominator // below) for above, below in zip(self.above, self.below, strict=True)]
        if max(map(abs, scaled), default=0) * n_summands >= _MAX_SUM:
            return None
        return np.array(scaled, dtype=np.int64), denominator


def terms_of(polynomials: Sequence[Polynomial]) -> Terms:
    """Return the terms of all polynomials, read from their canonical texts.

    Texts share most of their terms, so that each distinct term is parsed once, and all else is done by its number.

    >>> from plumdp import parameters
    >>> p, q = parameters("p", "q")
    >>> terms = terms_of([p * q**2 / 3 + 1, 1 - p])
    >>> terms.monomials, terms.above, terms.below
    (((('p', 1), ('q', 2)), (), (('p', 1),)), (1, 1, -1), (3, 1, 1))
    """
    number: dict[str, int] = {}
    first, term = np.zeros(len(polynomials) + 1, dtype=np.int32), []
    for i, polynomial in enumerate(polynomials):
        canonical = str(polynomial)
        if canonical != "0":
            term += [number.setdefault(part, len(number)) for part in canonical.replace(" - ", " + -").split(" + ")]
        first[i + 1] = len(term)
    parsed = [_parse(canonical) for canonical in number]
    monomials: dict[tuple[tuple[str, int], ...], int] = {}
    monomial = [monomials.setdefault(factors, len(monomials)) for _, _, factors in parsed]
    return Terms(
        first,
        np.array(term, dtype=np.int32),
        np.array(monomial, dtype=np.int32),
        tuple(monomials),
        tuple(above for above, _, _ in parsed),
        tuple(below for _, below, _ in parsed),
    )


def _parse(text: str) -> tuple[int, int, tuple[tuple[str, int], ...]]:
    """Return numerator, denominator and factors of a term such as ``-3/4*p*q^2``."""
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    coefficient, *factors = text.split("*") if text[0].isdigit() else ("1", *text.split("*"))
    numbers = [*coefficient.split("/"), "1"][:2]
    # Python refuses to read numbers of more digits
    above, below = (int(digits) if len(digits) < 4000 else int(fmpz(digits)) for digits in numbers)
    powers = ([*factor.split("^"), "1"][:2] for factor in factors)
    return sign * above, below, tuple((name, int(exponent)) for name, exponent in powers)


@dataclass(frozen=True, eq=False)
class ExpressionTable:
    """The distinct expressions of a model, as polynomials in the order of first use.

    Expression ``f`` is the sum over its terms ``first_term[f]`` up to ``first_term[f + 1]`` of ``coefficient`` times
    the monomial with the exponents ``monomials[monomial]``. The floats are nearest. The polynomials are exact. After
    the polynomials come the free expressions, each the probability of one place of an unknown row, with no polynomial.
    """

    names: tuple[str, ...]  # parameters, in the order of the space
    polynomials: tuple[Polynomial, ...]  # (n_polynomials)
    monomials: IntArray  # (n_monomials, n_parameters): exponents
    first_term: IntArray  # (n_polynomials + 1)
    monomial: IntArray  # (n_terms), index into monomials
    coefficient: FloatArray  # (n_terms)
    n_free: int = 0  # numbers after the polynomials

    @staticmethod
    def build(polynomials: Sequence[Polynomial], names: tuple[str, ...], terms: Terms | None = None) -> ExpressionTable:
        """Return the table of the given distinct polynomials, whose terms may be known already."""
        terms = terms_of(polynomials) if terms is None else terms
        column = {name: j for j, name in enumerate(names)}
        if not {name for factors in terms.monomials for name, _ in factors} <= column.keys():
            _refuse_undeclared(polynomials, names)
        monomials = np.zeros((len(terms.monomials), len(names)), dtype=np.int32)
        for i, factors in enumerate(terms.monomials):
            for name, power in factors:
                monomials[i, column[name]] = power
        nearest = np.array([above / below for above, below in zip(terms.above, terms.below, strict=True)], np.float64)
        return ExpressionTable(
            names,
            tuple(polynomials),
            read_only(monomials),
            read_only(terms.first),
            read_only(terms.monomial[terms.term]),
            read_only(nearest[terms.term]),
        )

    @property
    def nbytes(self) -> int:
        """The memory of the arrays, without the exact polynomials."""
        return self.monomials.nbytes + self.first_term.nbytes + self.monomial.nbytes + self.coefficient.nbytes

    def __repr__(self) -> str:
        free = f", {self.n_free:,} of them free" if self.n_free else ""
        names = ", ".join(self.names) or "no parameters"
        return one_line(self, number_of(len(self), "expression"), f"in {names}{free}")

    def __len__(self) -> int:
        return len(self.polynomials) + self.n_free

    def text(self, f: int) -> str:
        """Return an expression as text, also if it is free."""
        return str(self.polynomials[f]) if f < len(self.polynomials) else "unknown"

    def without_free(self) -> ExpressionTable:
        """Return the polynomials alone."""
        return replace(self, n_free=0) if self.n_free else self

    @cached_property
    def is_unknown(self) -> BoolArray:
        """For each expression whether it depends on a parameter or is free."""
        return read_only(np.concatenate([self._degrees > 0, np.ones(self.n_free, dtype=np.bool_)]))

    @cached_property
    def is_affine(self) -> BoolArray:
        """For each expression whether it has no monomial of degree two or more."""
        return read_only(self.degree <= 1)

    @cached_property
    def degree(self) -> IntArray:
        """The total degree of each expression."""
        self.require_polynomials()
        return self._degrees

    @cached_property
    def coefficients(self) -> Any:
        """The sparse matrix (n_expressions, n_monomials) of coefficients, as SciPy's csr_array."""
        from scipy.sparse import csr_array

        self.require_polynomials()
        shape = (len(self), len(self.monomials))
        return csr_array((self.coefficient, self.monomial, self.first_term), shape=shape)

    @cached_property
    def _matrix(self) -> Any:
        """The same matrix for products alone."""
        self.require_polynomials()
        return sparse(self.coefficient, self.monomial, self.first_term, len(self.monomials))

    def monomial_values(self, points: FloatArray) -> FloatArray:
        """Return the values (n_monomials, n_points) of monomials at points (n_points, n_parameters)."""
        self.require_polynomials()
        values: FloatArray = np.prod(points[None, :, :] ** self.monomials[:, None, :], axis=2)
        return values

    def evaluate(self, points: FloatArray) -> FloatArray:
        """Return float values (n_expressions, n_points) at points (n_points, n_parameters), up to rounding."""
        return np.asarray(self._matrix @ self.monomial_values(points))

    def chances(self, point: FloatArray) -> FloatArray:
        """Return float values (n_expressions) at a point, up to rounding, kept within [0, 1]."""
        return read_only(self.evaluate(point[None, :])[:, 0].clip(0, 1))

    def value_and_gradient(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return value (n) and gradient (n, n_parameters) of each expression at a point, up to rounding."""
        powers = self.monomials
        values = self.evaluate(point[None, :])[:, 0]
        columns = []
        for i in range(len(point)):
            lowered = powers.copy()
            lowered[:, i] = np.maximum(powers[:, i] - 1, 0)
            columns.append(self._matrix @ (powers[:, i] * np.prod(point**lowered, axis=1)))
        gradient = np.stack(columns, axis=1) if columns else np.zeros((len(values), 0))
        return values, np.asarray(gradient, dtype=np.float64)

    def evaluate_exact(self, space: ParameterSpace, point: Point) -> list[Fraction]:
        """Return the exact value of every expression at a point."""
        self.require_polynomials()
        values = space.point(point)
        return [polynomial.evaluate(values) for polynomial in self.polynomials]

    @cached_property
    def _degrees(self) -> IntArray:
        per_term = self.monomials.sum(axis=1, dtype=np.int32)[self.monomial]
        degree = np.zeros(len(self.polynomials), dtype=np.int32)
        np.maximum.at(degree, owners(self.first_term), per_term)
        return read_only(degree)

    def require_polynomials(self) -> None:
        """Refuse what needs a polynomial for each expression, if some are free."""
        if self.n_free:
            raise ModelError(
                "this needs a model with parameters in all rows that are not known; rows of this one are free, without "
                "expressions"
            )


def _refuse_undeclared(polynomials: Sequence[Polynomial], names: tuple[str, ...]) -> None:
    for polynomial in polynomials:
        unknown = ", ".join(name for name in polynomial.names if name not in names)
        if unknown:
            declared = ", ".join(names) or "none"
            raise ModelError(
                f"expression {polynomial}: {unknown} is not declared; the declared parameters are {declared}"
            )


_MAX_COEFFICIENTS = 4096  # per polynomial; beyond, the trivial range is returned


def box_range(
    table: ExpressionTable, which: Indices, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return for the expressions ``which`` an outer range over the box, up to float rounding."""
    low, high = np.full(len(which), -np.inf), np.full(len(which), np.inf)
    is_affine = table.is_affine[which]
    low[is_affine], high[is_affine] = affine_range(table, which[is_affine], lower, upper)
    others = np.flatnonzero(~is_affine)
    if not len(others):  # degrees take an array over all parameters
        return low, high
    shapes, group = np.unique(_degrees(table)[which[others]], axis=0, return_inverse=True)
    for g, degrees in enumerate(shapes):  # polynomials of the same degrees share their basis
        members = others[group == g]
        rows = table.coefficients[which[members]]
        used = np.unique(rows.indices)
        support = degrees > 0
        basis = _bernstein_rows(table.monomials[used][:, support], lower[support], upper[support])
        if basis is not None:
            values = rows[:, used] @ basis
            low[members], high[members] = values.min(axis=1), values.max(axis=1)
    return low, high


def affine_range(
    table: ExpressionTable, which: Indices, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the range over a box of the expressions ``which``, all affine, up to float rounding, term by term."""
    table.require_polynomials()
    start, end = table.first_term[which], table.first_term[which + 1]
    used, owner = ranges(start, end), np.repeat(np.arange(len(which)), end - start)
    monomial, variable = np.nonzero(table.monomials)
    values = np.ones((2, len(table.monomials)))  # of a constant; those of monomials of degree two are not used
    values[:, monomial] = lower[variable], upper[variable]
    ends = values[:, table.monomial[used]] * table.coefficient[used]
    low, high = (np.bincount(owner, each, len(which)) for each in (ends.min(axis=0), ends.max(axis=0)))
    return low.astype(np.float64), high.astype(np.float64)


def _degrees(table: ExpressionTable) -> IntArray:
    """Return the degree of each expression in each parameter (n_expressions, n_parameters)."""
    degrees = np.zeros((len(table), len(table.names)), dtype=np.int32)
    np.maximum.at(degrees, owners(table.first_term), table.monomials[table.monomial])
    return degrees


def _bernstein_rows(exponents: IntArray, lower: FloatArray, upper: FloatArray) -> FloatArray | None:
    """Return the Bernstein coefficients of each monomial (n_monomials, n_coefficients), or None if too many."""
    degrees = exponents.max(axis=0, initial=0)
    if np.prod(degrees + 1.0) > _MAX_COEFFICIENTS:
        return None
    result = np.ones((len(exponents), 1))
    for j, degree in enumerate(degrees):
        factor = _univariate(int(degree), float(lower[j]), float(upper[j]))[exponents[:, j]]
        result = (result[:, :, None] * factor[:, None, :]).reshape(len(exponents), -1)
    return result


def _univariate(degree: int, lower: float, upper: float) -> FloatArray:
    """Return the Bernstein coefficients of degree ``degree`` of each power x^e, in row e, on [lower, upper]."""
    powers = np.zeros((degree + 1, degree + 1))  # x^e = sum over j of powers[e, j] t^j with x = lower + (upper-lower) t
    for e in range(degree + 1):
        for j in range(e + 1):
            powers[e, j] = comb(e, j) * lower ** (e - j) * (upper - lower) ** j
    change = np.array([[comb(i, j) / comb(degree, j) for i in range(degree + 1)] for j in range(degree + 1)])
    coefficients: FloatArray = powers @ change
    return coefficients
