"""The terms of many polynomials at once, read from their canonical texts.

Texts share most of their terms, so that each distinct term is parsed once, and all else is done by its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np
import numpy.typing as npt
from flint import fmpz

from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.graph import FloatArray, IntArray

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

    def floats(self) -> FloatArray:
        """Return the nearest float of the coefficient of each distinct term."""
        return np.array([above / below for above, below in zip(self.above, self.below, strict=True)], dtype=np.float64)

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
    """Return the terms of all polynomials.

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
    above, _, below = coefficient.partition("/")
    return sign * _whole(above), _whole(below or "1"), tuple(_power(factor) for factor in factors)


def _power(factor: str) -> tuple[str, int]:
    name, _, exponent = factor.partition("^")
    return name, int(exponent or 1)


def _whole(digits: str) -> int:
    return int(digits) if len(digits) < 4000 else int(fmpz(digits))  # Python refuses to read longer numbers
