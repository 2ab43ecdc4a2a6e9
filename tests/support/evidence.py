"""Statistical tests that end when they are decided, by bets on how often something happens."""

import numpy as np

LEVEL = 1e-6  # probability that a right package fails


class Evidence:
    """Whether something happens in more than a share of all games, as a fortune that is fair if it does not.

    Bets that the rate is q multiply it by q / rate if it happens and (1 - q) / (1 - rate) if not: for every rate that
    is not larger, the expectation is at most one. So the mean over some q ever reaches 1 / level with probability at
    most the level (Ville 1939).

    >>> always = Evidence(0.1)
    >>> always.of(True for game in range(20))
    8 of 8
    >>> always.is_refuted
    True
    """

    def __init__(self, rate: float, level: float = LEVEL) -> None:
        self.rate, self.level, self.n, self.happened = rate, level, 0, 0
        self._supposed = np.array([q for q in rate * np.array([1.25, 1.5, 2.0, 3.0, 5.0, 8.0]) if q < 1])

    def see(self, has_happened: bool) -> None:
        """Count one more game."""
        self.n, self.happened = self.n + 1, self.happened + bool(has_happened)

    def of(self, games) -> "Evidence":
        """Return itself after these games, or fewer if that is enough to refute the rate."""
        for has_happened in games:
            self.see(has_happened)
            if self.is_refuted:
                break
        return self

    @property
    def fortune(self) -> float:
        """What the bets have made of one."""
        q, k = self._supposed, self.happened
        return float(np.exp(k * np.log(q / self.rate) + (self.n - k) * np.log((1 - q) / (1 - self.rate))).mean())

    @property
    def is_refuted(self) -> bool:
        """Whether the fortune is large; whoever goes on playing after that may see it fall again."""
        return self.fortune >= 1 / self.level

    def __repr__(self) -> str:
        return f"{self.happened} of {self.n}"
