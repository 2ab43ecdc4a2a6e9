"""Polynomials and spaces of parameters as plain terms, ready for JSON, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plumdp.base.errors import ModelError
from plumdp.model.expressions.polynomial import MAX_DEGREE, Polynomial, exact, from_terms
from plumdp.model.space import ParameterSpace


def space_terms(space: ParameterSpace) -> tuple[Any, ...]:
    """Return a space ready for JSON: its names, the exact ends of its box, and its constraints."""
    ends = [[str(end) for end in pair] for pair in space.bounds]
    return space.names, ends, [polynomial_terms(side) for side in space.constraints]


def space_from(names: Sequence[str], ends: Sequence[Sequence[str]], constraints: Sequence[Any]) -> ParameterSpace:
    """Return the space that ``space_terms`` made this of."""
    bounds = tuple((exact(low), exact(high)) for low, high in ends)
    return ParameterSpace(tuple(names), bounds, tuple(polynomial_from(*terms) for terms in constraints))


def polynomial_terms(polynomial: Polynomial) -> tuple[tuple[str, ...], list[tuple[str, tuple[int, ...]]]]:
    """Return a polynomial ready for JSON: its names, and for each term the exact coefficient and the exponents."""
    names = polynomial.names
    return names, [(str(coefficient), powers) for powers, coefficient in polynomial.terms(names).items()]


def polynomial_from(names: Sequence[str], terms: Sequence[tuple[str, Sequence[int]]]) -> Polynomial:
    """Return the polynomial that ``polynomial_terms`` made this of."""
    if any(not 0 <= power <= MAX_DEGREE for _, powers in terms for power in powers):
        raise ModelError(f"a power is not a whole number from 0 to {MAX_DEGREE:,}")
    return from_terms(tuple(names), {tuple(powers): exact(coefficient) for coefficient, powers in terms})
