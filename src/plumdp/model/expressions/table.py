"""The table of distinct expressions of a model, exact and as sparse float coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.terms import Terms, terms_of
from plumdp.model.graph import BoolArray, FloatArray, IntArray, owners, read_only
from plumdp.model.space import ParameterSpace, Point
from plumdp.model.text import number_of, one_line


@dataclass(frozen=True, eq=False)
class ExpressionTable:
    """The distinct expressions of a model, polynomials of which no two are equal, in the order of first use.

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
    def build(polynomials: Sequence[Polynomial], names: tuple[str, ...]) -> ExpressionTable:
        """Return the table of the given distinct polynomials."""
        return ExpressionTable.of_terms(polynomials, names, terms_of(polynomials))

    @staticmethod
    def of_terms(polynomials: Sequence[Polynomial], names: tuple[str, ...], terms: Terms) -> ExpressionTable:
        """Return the table of the given distinct polynomials, whose terms are known."""
        column = {name: j for j, name in enumerate(names)}
        if not {name for factors in terms.monomials for name, _ in factors} <= column.keys():
            _refuse_undeclared(polynomials, names)
        monomials = np.zeros((len(terms.monomials), len(names)), dtype=np.int32)
        for i, factors in enumerate(terms.monomials):
            for name, power in factors:
                monomials[i, column[name]] = power
        return ExpressionTable(
            names,
            tuple(polynomials),
            read_only(monomials),
            read_only(terms.first),
            read_only(terms.monomial[terms.term]),
            read_only(terms.floats()[terms.term]),
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

    def monomial_values(self, points: FloatArray) -> FloatArray:
        """Return the values (n_monomials, n_points) of monomials at points (n_points, n_parameters)."""
        self.require_polynomials()
        values: FloatArray = np.prod(points[None, :, :] ** self.monomials[:, None, :], axis=2)
        return values

    def evaluate(self, points: FloatArray) -> FloatArray:
        """Return float values (n_expressions, n_points) at points (n_points, n_parameters), up to rounding."""
        return np.asarray(self.coefficients @ self.monomial_values(points))

    def value_and_gradient(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return value (n) and gradient (n, n_parameters) of each expression at a point, up to rounding."""
        powers = self.monomials
        values = self.evaluate(point[None, :])[:, 0]
        columns = []
        for i in range(len(point)):
            lowered = powers.copy()
            lowered[:, i] = np.maximum(powers[:, i] - 1, 0)
            columns.append(self.coefficients @ (powers[:, i] * np.prod(point**lowered, axis=1)))
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
