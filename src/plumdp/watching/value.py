"""The alarm that a certified value no longer holds, by what whole runs under the policy earned (Statement W3).

Runs earn numbers between 0 and 1. As long as the mean of each, given what came before, is at least the certified bound,
a bet of a fixed fraction of the capital that they earn less is fair or worse, whatever else changes. The sum over all
starts of the capital after one fraction follows from the sum a part before, R' = (R + 1) · (factor of the part), so
that nothing else need be kept, and no start is left out. The model's probabilities are not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, log
from typing import Any

import numpy as np

from plumdp.base.rounding import FloatArray
from plumdp.confidence.bounded_means import FRACTIONS, Tally, log_capitals

_DOWN = 1e-12  # relative, of each update


@dataclass(frozen=True, eq=False)
class ValueBets:
    """Bets that runs lose more than a certified bound allows, on losses from 0 to 1.

    ``sums`` are logarithms of sums over starts, one for each fraction, from below. ``single`` are those of the best
    start alone, which only says from when on the value seems to have been lower.
    """

    limit: float  # of the mean loss, rounded up
    sums: FloatArray
    single: FloatArray
    since: tuple[str, ...]  # (n_fractions): the part that the best start of each is before
    lost: FloatArray  # (n_fractions, 2): losses since then, and their number

    @staticmethod
    def against(limit: float) -> ValueBets:
        """Return bets before the first part."""
        n = len(FRACTIONS)
        return ValueBets(limit, np.full(n, -inf), np.full(n, -inf), ("",) * n, np.zeros((n, 2)))

    def add(self, name: str, losses: FloatArray) -> ValueBets:
        """Return the bets after one more part, given lower bounds on the losses of its runs."""
        won = log_capitals(Tally.of(losses), self.limit) if len(losses) else np.zeros(len(self.sums))
        raised = np.logaddexp(self.sums, 0.0) + won
        begins = self.single <= 0  # a start before this part is better than all earlier ones
        seen = np.array([losses.sum(), len(losses)])
        return replace(
            self,
            sums=raised - _DOWN * (1 + np.abs(np.where(np.isfinite(raised), raised, 0.0))),
            single=np.maximum(self.single, 0.0) + won,
            since=tuple(name if new else old for new, old in zip(begins, self.since, strict=True)),
            lost=np.where(begins[:, None], 0.0, self.lost) + seen,
        )

    @property
    def evidence(self) -> float:
        """The logarithm of the sum over starts, averaged over fractions, from below."""
        most = float(self.sums.max())
        if most == -inf:
            return -inf
        return most + log(float(np.exp(self.sums - most).mean())) - _DOWN * (1 + abs(most))

    @property
    def seems(self) -> tuple[str, float]:
        """The part since which runs seem to lose more, and the mean loss since then: estimates."""
        best = int(np.argmax(self.single))
        return self.since[best], float(self.lost[best, 0] / max(self.lost[best, 1], 1.0))

    def to_json(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        told = {"sums": self.sums, "single": self.single, "lost": self.lost}
        return {"limit": self.limit, "since": self.since, **{name: each.tolist() for name, each in told.items()}}

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> ValueBets:
        """Return the bets that a file has."""
        sums, single, lost = (np.array(content[name], dtype=np.float64) for name in ("sums", "single", "lost"))
        return ValueBets(content["limit"], sums, single, tuple(content["since"]), lost)
