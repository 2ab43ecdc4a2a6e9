"""Bounds polynomials on a ball, in floats, for many states at once."""

from __future__ import annotations

from math import factorial, prod

import numpy as np

from plumdp.model.graph import FloatArray
from plumdp_verify.polynomials import Exponents


def sizes_on_ball(polynomials: dict[Exponents, FloatArray], n: int) -> FloatArray:
    """Return the sum of the norms of all degrees for each state (see ``size_on_ball`` of the checker)."""
    squares: dict[int, FloatArray] = {}
    for e, values in polynomials.items():
        if sum(e):
            weight = prod(map(factorial, e)) / factorial(sum(e))
            squares[sum(e)] = squares.get(sum(e), np.zeros(n)) + weight * values**2
    return np.asarray(sum((np.sqrt(square) for square in squares.values()), start=np.zeros(n)))
