"""Half-spaces in floats for intervals of affine expressions, rounded outward so that no point that fits is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.base.rounding import up
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, IntArray, owners, owners_of, read_only
from plumdp.model.space import ParameterSpace


@dataclass(frozen=True, eq=False)
class HalfSpaces:
    """The half-spaces ``rows @ point <= offsets`` of a box, of the space, and of intervals, in this order.

    Those of the box are all its lower bounds, then all its upper bounds.
    """

    rows: FloatArray  # (n, d)
    offsets: FloatArray  # (n)
    expression: IntArray  # (n): whose interval it is, or -1 for the box and the space
    side: IntArray  # (n): 1 for an upper bound, -1 for a lower one, 0 for the box and the space
    half_width: FloatArray  # (n): of the interval; 0 for the box and the space


def half_spaces(space: ParameterSpace, table: ExpressionTable, lower: FloatArray, upper: FloatArray) -> HalfSpaces:
    """Return the box and the constraints of a space, and ``lower <= expression <= upper`` for each expression."""
    d, n = space.dimension, len(table)
    constant, matrix = affine_forms(table)
    reach = np.maximum(np.abs(space.lower), np.abs(space.upper))
    size = np.abs(constant) + np.abs(matrix) @ reach  # of the terms, each of which is rounded
    constraints, limits = space.inequalities
    rows = np.vstack([-np.eye(d), np.eye(d), constraints, matrix, -matrix])
    # up: a half-space that is too large loses no point
    at_most, at_least = up(upper - constant, size), up(constant - lower, size)
    offsets = np.concatenate([-space.lower, space.upper, limits, at_most, at_least])
    n_of_space = len(offsets) - 2 * n
    number, zero = np.arange(n), np.zeros(n_of_space, dtype=np.int64)
    with np.errstate(invalid="ignore"):
        half_width = np.nan_to_num((upper - lower) / 2, nan=0, posinf=0).clip(min=0)
    return HalfSpaces(
        rows,
        offsets,
        np.concatenate([zero - 1, number, number]),
        np.concatenate([zero, np.ones_like(number), -np.ones_like(number)]),
        np.concatenate([zero, half_width, half_width]),
    )


def in_variables(table: ExpressionTable, names: tuple[str, ...]) -> ExpressionTable:
    """Return a table of the same expressions, affine in variables that are parameters or products of parameters.

    A product is named as a polynomial prints it, such as ``p*q`` or ``p^2``.

    >>> from plumdp import parameters
    >>> p, q = parameters("p", "q")
    >>> table = ExpressionTable.build([p * (1 - q)], ("p", "q"))
    >>> affine_forms(in_variables(table, ("p", "q", "p*q")))[1]
    array([[ 1.,  0., -1.]])
    """
    if table.names == names and table.is_affine.all():
        return table
    monomial_names = [monomial_name(exponents, table.names) for exponents in table.monomials.tolist()]
    missing = np.array([bool(name) and name not in names for name in monomial_names], dtype=np.bool_)
    if missing.any():
        term = int(np.argmax(missing[table.monomial]))
        worst = table.polynomials[int(owners_of(table.first_term, term))]
        variables = ", ".join(names) or "nothing"
        raise ModelError(
            f"the expression {worst} is not affine in {variables}, the variables of the region; "
            "build the region from expressions with the same products of parameters"
        )
    monomials = np.array([[name == other for other in names] for name in monomial_names], dtype=np.int32)
    return replace(table, names=names, monomials=read_only(monomials.reshape(len(monomial_names), len(names))))


def monomial_name(exponents: Sequence[int], names: tuple[str, ...]) -> str:
    """Return a monomial as polynomials print it, or nothing if it is the constant one."""
    powers = sorted((name, e) for name, e in zip(names, exponents, strict=True) if e)
    return "*".join(name if e == 1 else f"{name}^{e}" for name, e in powers)


def affine_forms(table: ExpressionTable) -> tuple[FloatArray, FloatArray]:
    """Return the constants (n) and the coefficients (n, d) of expressions, each rounded to the nearest float."""
    if not table.is_affine.all():
        worst = table.polynomials[int(np.argmax(table.degree))]
        raise ModelError(f"the expression {worst} is not affine; give its products names, with in_variables")
    return affine_parts(table)


def affine_parts(table: ExpressionTable) -> tuple[FloatArray, FloatArray]:
    """Return constants and coefficients as ``affine_forms`` does, with zeros for expressions that are not affine."""
    degree = table.monomials.sum(axis=1)
    column = np.where(degree > 0, table.monomials.argmax(axis=1) + 1, 0) if len(table.names) else degree
    dense = np.zeros((len(table), len(table.names) + 1))
    dense[owners(table.first_term), column[table.monomial]] = table.coefficient
    dense[~table.is_affine] = 0
    return dense[:, 0], np.ascontiguousarray(dense[:, 1:])
