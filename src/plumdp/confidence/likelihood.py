"""What the data say by their likelihood: the points whose likelihood is not too far below the average over a prior."""

from __future__ import annotations

from dataclasses import dataclass

from plumdp.confidence.bounds import ExpressionBounds
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.confidence.sets import Guarantee
from plumdp.model.graph import FloatArray


@dataclass(frozen=True, eq=False)
class LikelihoodSet:
    """The points v with ℓ(v) = Σ seen ln f(v) >= threshold that also lie in half-spaces and within strips.

    The true point is one of them with probability at least 1 - ``error``, as far as ``guarantee`` says.
    """

    table: LikelihoodTable
    seen: FloatArray  # (n_outcomes): what the threshold is about
    threshold: float  # rounded down; minus infinity if there is none
    rows: FloatArray  # (m, d): the half-spaces ``rows @ point <= offsets``, rounded outward
    offsets: FloatArray  # (m)
    texts: tuple[str, ...]  # (m): what each half-space says, in words
    strips: ExpressionBounds | None
    error: float
    method: str
    guarantee: Guarantee

    @property
    def intervals(self) -> tuple[FloatArray, FloatArray] | None:
        """The lower and the upper bound of each expression, if there are strips."""
        return None if self.strips is None else self.strips.intervals
