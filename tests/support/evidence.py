"""Statistical tests that end as soon as they are decided, by bets on how often something happens."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

LEVEL = 1e-4  # probability that a right package fails


class Evidence(NamedTuple):
    """In how many of n games something happened, as evidence that this has a probability above a rate.

    Bets that it is q multiply a wealth by q / rate if it happens and by (1 - q) / (1 - rate) if not: for every
    probability that is not above the rate, the expectation is at most one. So the mean over some q ever reaches
    1 / level with probability at most the level (Ville 1939).

    >>> Evidence(6, 6, 0.1).is_refuted, Evidence(300, 2000, 0.1).is_refuted, Evidence(200, 2000, 0.1).is_refuted
    (True, True, False)
    """

    happened: int
    n: int
    rate: float
    level: float = LEVEL

    @property
    def wealth(self) -> float:
        """What the bets have made of one."""
        q, k = self.rate * np.array([1.25, 1.5, 2.0, 3.0, 5.0, 8.0]), self.happened
        q = q[q < 1]
        return float(np.exp(k * np.log(q / self.rate) + (self.n - k) * np.log((1 - q) / (1 - self.rate))).mean())

    @property
    def is_refuted(self) -> bool:
        """Whether the wealth is large; whoever goes on playing after that may see it fall again."""
        return self.wealth >= 1 / self.level


def until_refuted(games: Iterable[bool], *, rate: float, level: float = LEVEL) -> Evidence:
    """Return how often something happens in these games, or in as many as show that it happens too often."""
    evidence = Evidence(0, 0, rate, level)
    for has_happened in games:
        evidence = evidence._replace(happened=evidence.happened + bool(has_happened), n=evidence.n + 1)
        if evidence.is_refuted:
            break
    return evidence
