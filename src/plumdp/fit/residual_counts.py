"""Counts of events beside those that a model expects, as pictures show them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.model.graph import FloatArray


@dataclass(frozen=True, eq=False)
class Residuals:
    """The counts of some events, their expected counts, and the standard deviations of the differences."""

    observed: FloatArray  # (n)
    expected: FloatArray  # (n)
    observations: FloatArray  # (n): how often each could have happened
    deviation: FloatArray  # (n): standard deviation of observed less expected; 0 where nothing can differ

    @property
    def difference(self) -> FloatArray:
        """The share of each event (n) in the data less its probability in the model."""
        return ratio(self.observed - self.expected, self.observations)

    @property
    def margin(self) -> FloatArray:
        """The standard deviation of the difference (n)."""
        return ratio(self.deviation, self.observations)

    @property
    def standardised(self) -> FloatArray:
        """The difference in standard deviations (n)."""
        return ratio(self.observed - self.expected, self.deviation)

    @property
    def evidence(self) -> FloatArray:
        """Half the square of the standardised residual (n), in nats, an estimate for ordering and not a test."""
        half_squares: FloatArray = self.standardised**2 / 2
        return half_squares


@dataclass(frozen=True, eq=False)
class CellResiduals:
    """Counts of a change in each cell of a state variable or action, beside expected counts."""

    kind: str  # "variable" or "action"
    name: str
    change: str  # such as "money goes up"
    cells: tuple[str, ...]  # (n)
    residuals: Residuals  # (n)


def ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return a quotient, or zero where the divisor is zero."""
    quotient: FloatArray = np.divide(above, below, out=np.zeros_like(above, dtype=np.float64), where=below > 0)
    return quotient
