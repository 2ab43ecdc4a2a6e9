"""Finds polynomials that are close to the values of a chain on a cube, and margins between them and the values.

All of it is a proposal, in floats. The checker decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np

from plumdp.model.graph import FloatArray
from plumdp.verifying.boundary import as_float
from plumdp.verifying.cube_bounds import sizes_of
from plumdp_verify.bracket import range_of
from plumdp_verify.chain import Chain
from plumdp_verify.enclosure import Enclosure
from plumdp_verify.polynomials import Exponents, monomials

_ROUNDS = 1000
_SPARE = 1e-3  # of margins, relative
_ROUNDING = 2.0**-48  # of sums of products, relative to the largest value
_LEAST = 1e-30
_EXACT = 1e-12  # relative width of bounds that leave no room for rounding


@dataclass(frozen=True)
class Expansion:
    """Coefficients (n_open, n_monomials) in the order of ``monomials``, and margins (n_open)."""

    degree: int
    coefficients: FloatArray
    margins: FloatArray
    steps: FloatArray  # (n_open): a little more than the expected number of steps

    def claimed(self, chain: Chain) -> tuple[FloatArray, float]:
        """Return the coefficients and the margin of what is claimed of a chain."""
        one, margin = np.eye(1, self.coefficients.shape[1])[0], 0.0
        if chain.initial in chain.known:
            known = chain.known[chain.initial]
            value = float(int(known.p) / int(known.q)) * one
        else:
            node = chain.open.index(chain.initial)
            value, margin = self.coefficients[node], float(self.margins[node])
        return one - value if chain.complement else value, margin


def expand(chain: Chain, enclosure: Enclosure, degree: int, *, is_exact: bool = False) -> Expansion | None:
    """Return an expansion of the values about the centre of a cube, or None if margins are not finite.

    ``is_exact`` says that nothing is rounded, as where the value does not depend on parameters.
    """
    matrices, earned = _step_matrices(chain, enclosure)
    k, n = enclosure.dimension, len(chain.open)
    if n == 0:
        return Expansion(degree, np.zeros((0, len(monomials(k, degree)))), np.zeros(0), np.zeros(0))
    zero, radius = (0,) * k, radius_of(enclosure)
    solved = _expanded(matrices, earned, n, k, degree)
    if solved is None:
        return None
    found, solve = solved
    rounding = 0.0 if is_exact else _ROUNDING * max(float(np.abs(found[zero]).max()), _LEAST)
    missing = sizes_of(_high(found, matrices, earned, degree), n, radius) + rounding
    rest = {e: matrix for e, matrix in matrices.items() if any(e)}
    margins, left = (_summed(each, rest, solve, radius) for each in (missing, np.ones(n)))
    if margins is None or left is None:
        return None
    if chain.kind == "reach" and all(chain.known.values()):  # every run ends in a target, exactly
        return Expansion(degree, np.eye(1, len(found)).repeat(n, axis=0), np.zeros(n), left)
    return Expansion(degree, np.stack(list(found.values()), axis=1), margins, left)


def radius_of(enclosure: Enclosure) -> float | None:
    """Return the radius of the ball of a cube, if it has one."""
    return None if enclosure.radius is None else float(enclosure.radius.upper())


def _expanded(
    matrices: dict[Exponents, Any], earned: dict[Exponents, FloatArray], n: int, k: int, degree: int
) -> tuple[dict[Exponents, FloatArray], Any] | None:
    """Return the coefficients (n_open) of values by monomial, and the solver of a step at the centre, if there is one.

    There is none for a policy that never ends where others do.
    """
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    steps = matrices[(0,) * k]
    rest = {e: matrix for e, matrix in matrices.items() if any(e)}
    try:
        solver = splu((eye_array(n) - steps).tocsc())
    except RuntimeError:  # a singular matrix
        return None

    def solve(right: FloatArray) -> FloatArray:
        first = solver.solve(right)
        return np.asarray(first + solver.solve(right - first + steps @ first))

    found: dict[Exponents, FloatArray] = {}
    for exponents in monomials(k, degree):
        found[exponents] = solve(_right(exponents, found, rest, earned, n))
    return found, solve


def _step_matrices(chain: Chain, enclosure: Enclosure) -> tuple[dict[Exponents, Any], dict[Exponents, FloatArray]]:
    """Return the matrix of each monomial between open states, and what a step earns, with known values."""
    from scipy.sparse import coo_array

    forms = [enclosure.transform(f, "chain") for f in chain.expressions]
    place = {node: i for i, node in enumerate(chain.open)}
    steps = [step for _, step in chain.open_steps()]
    n, discount = len(steps), float(chain.discount.p) / float(chain.discount.q)
    entries: dict[Exponents, tuple[list[int], list[int], list[float]]] = {(0,) * enclosure.dimension: ([], [], [])}
    earned: dict[Exponents, FloatArray] = {}
    coefficients = [[(e, discount * int(c.p) / int(c.q)) for e, c in form.items()] for form in forms]
    for i, step in enumerate(steps):
        for e, c in enclosure.transform(step.reward, "chain").items():
            earned.setdefault(e, np.zeros(n))[i] += int(c.p) / int(c.q)
        for successor, f in zip(step.successors, step.expressions, strict=True):
            for e, c in coefficients[f]:
                if successor in place:
                    rows, columns, numbers = entries.setdefault(e, ([], [], []))
                    rows.append(i)
                    columns.append(place[successor])
                    numbers.append(c)
                elif chain.known[successor]:
                    earned.setdefault(e, np.zeros(n))[i] += c * float(chain.known[successor].p)
    matrices = {e: coo_array((v, (r, c)), shape=(n, len(place))).tocsr() for e, (r, c, v) in entries.items()}
    return matrices, earned


def _right(
    exponents: Exponents,
    found: dict[Exponents, FloatArray],
    matrices: dict[Exponents, Any],
    earned: dict[Exponents, FloatArray],
    n: int,
) -> FloatArray:
    """Return the contribution of one step to a monomial of the values, without the part that has the same monomial."""
    total = earned.get(exponents, np.zeros(n)).copy()
    for e, matrix in matrices.items():
        rest = tuple(a - b for a, b in zip(exponents, e, strict=True))
        if rest in found:
            total += matrix @ found[rest]
    return total


def _high(
    found: dict[Exponents, FloatArray], matrices: dict[Exponents, Any], earned: dict[Exponents, FloatArray], degree: int
) -> dict[Exponents, FloatArray]:
    """Return the terms above a degree that one step makes."""
    high: dict[Exponents, FloatArray] = {e: v.copy() for e, v in earned.items() if sum(e) > degree}
    for e, matrix in matrices.items():
        for b, values in found.items():
            if sum(e) + sum(b) > degree:
                both = tuple(x + y for x, y in zip(e, b, strict=True))
                high[both] = high.get(both, 0.0) + matrix @ values
    return high


def _summed(missing: FloatArray, matrices: dict[Exponents, Any], solve: Any, radius: float | None) -> FloatArray | None:
    """Return the expected sum of what is missing in each state over a run, at the worst point of the cube.

    What differs from the centre is added in rounds, until one adds no more than was spared; None if none does.
    """
    right, total = missing, solve(missing)
    for _ in range(_ROUNDS):
        needed = missing + sizes_of({e: matrix @ total for e, matrix in matrices.items()}, len(total), radius)
        if not np.isfinite(needed).all() or (total < 0).any():
            return None
        if (needed <= right).all():
            return np.asarray(total)
        right = needed * (1 + _SPARE)
        total = solve(right)
    return None


@dataclass(frozen=True)
class Wanted:
    """Bounds on a sum of the values of chains, each with a sign; infinite ends claim nothing."""

    terms: tuple[tuple[int, int], ...]  # signs, and places of chains
    lower: float
    upper: float

    @property
    def is_exact(self) -> bool:
        """Whether the bounds leave no room for rounding."""
        width = self.upper - self.lower
        return isfinite(width) and width <= _EXACT * max(abs(self.lower), abs(self.upper))

    def sum(self, values: Sequence[FloatArray]) -> FloatArray:
        """Return the sum of the arrays of chains with these signs."""
        return np.asarray(sum((sign * values[i] for sign, i in self.terms), start=0 * values[0]))


def written_values(expansion: Expansion) -> dict[str, Any]:
    """Return functions, margins and numbers of steps as the witness has them."""
    return {
        "degree": expansion.degree,
        "functions": expansion.coefficients.tolist(),
        "margins": expansion.margins.tolist(),
        "steps": expansion.steps.tolist(),
    }


def needed_of(wanted: Wanted, chains: Sequence[Chain]) -> tuple[float, float]:
    """Return the lower end, and the opposite of the upper one, or minus infinity where nothing need be proved."""
    least, most = range_of([(sign, chains[i]) for sign, i in wanted.terms])
    return (
        -inf if least is not None and wanted.lower <= as_float(least) else wanted.lower,
        -inf if most is not None and wanted.upper >= as_float(most) else -wanted.upper,
    )
