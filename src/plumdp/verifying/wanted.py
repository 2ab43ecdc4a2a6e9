"""What is bounded: sums of values of chains, by functions of their parameters, in floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np

from plumdp.model.graph import FloatArray
from plumdp.verifying.coordinates import as_float
from plumdp.verifying.expansion import Expansion
from plumdp_verify.bracket import range_of
from plumdp_verify.chain import Chain

_EXACT = 1e-12  # relative width of bounds that leave no room for rounding


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

    def sum(self, below: Sequence[FloatArray], above: Sequence[FloatArray]) -> FloatArray:
        """Return the sum of arrays with these signs, of each chain that below if it is added, or else that above."""
        parts = (below[i] if sign > 0 else -above[i] for sign, i in self.terms)
        return np.asarray(sum(parts, start=0 * below[0]))


@dataclass(frozen=True)
class Claimed:
    """Coefficients of functions below and above what is claimed of a chain, but for a margin."""

    below: FloatArray
    above: FloatArray
    margin: float

    @staticmethod
    def of(chain: Chain, expansion: Expansion) -> Claimed:
        """Return what an expansion claims of a chain."""
        below, above, margin = expansion.start(chain)
        if chain.complement:
            one = np.eye(1, len(below))[0]
            below, above = one - above, one - below
        return Claimed(below, above, margin)


def written_values(expansion: Expansion) -> dict[str, Any]:
    """Return functions, margins and numbers of steps as the witness has them."""
    return {
        "degree": expansion.degree,
        "functions": expansion.coefficients.tolist(),
        "margins": expansion.margins.tolist(),
        "steps": expansion.steps.tolist(),
        "average": None if expansion.average is None else expansion.average.tolist(),
        **({} if expansion.above is None else {"above": expansion.above.tolist()}),
        **({} if expansion.above_average is None else {"above_average": expansion.above_average.tolist()}),
    }


def needed_of(wanted: Wanted, chains: Sequence[Chain]) -> tuple[float, float]:
    """Return the lower end, and the opposite of the upper one, or minus infinity where nothing need be proved."""
    least, most = range_of([(sign, chains[i]) for sign, i in wanted.terms])
    return (
        -inf if least is not None and wanted.lower <= as_float(least) else wanted.lower,
        -inf if most is not None and wanted.upper >= as_float(most) else -wanted.upper,
    )
