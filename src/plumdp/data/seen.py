"""Counts of transitions of some steps, and sums over the values of learned rewards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError

CountArray: TypeAlias = npt.NDArray[np.int64]

SQUARES = 2**30  # a sum of squares is this times its first part plus the second, as it has too many digits for one
_SUMS = 3  # of the values of a reward: their sum, and both parts of the sum of their squares


def no_rewards(n_transitions: int = 0) -> CountArray:
    """Return the sums of a model without learned rewards."""
    return np.zeros((0, _SUMS, n_transitions), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Seen:
    """Counts of transitions, and for each learned reward sums over its values, all of which are exact whole numbers.

    >>> some = Seen(np.array([3, 1]))
    >>> (some + some - some).counts
    array([3, 1])
    """

    counts: CountArray  # (n_transitions)
    rewards: CountArray = field(default_factory=no_rewards)  # (n_learned, 3, n_transitions): in units

    def __post_init__(self) -> None:
        rewards = self.rewards.reshape(len(self.rewards), _SUMS, len(self.counts))
        if (rewards[:, 2] >= SQUARES).any() or (rewards[:, 2] < 0).any():  # of what was added up or subtracted
            first, second = np.divmod(rewards[:, 2], SQUARES)
            rewards = np.stack([rewards[:, 0], rewards[:, 1] + first, second], axis=1)
        object.__setattr__(self, "rewards", rewards)

    @staticmethod
    def nothing(n_transitions: int, n_learned: int = 0) -> Seen:
        """Return empty counts, in arrays that may be added to."""
        return Seen(np.zeros(n_transitions, dtype=np.int64), np.zeros((n_learned, _SUMS, n_transitions), np.int64))

    def __add__(self, other: Seen) -> Seen:
        return Seen(self.counts + other.counts, self.rewards + other.rewards)

    def __sub__(self, other: Seen) -> Seen:
        return Seen(self.counts - other.counts, self.rewards - other.rewards)

    @staticmethod
    def from_columns(counts: CountArray, number: int, columns: Mapping[str, CountArray]) -> Seen:
        """Return the counts in the columns that ``columns`` names, of a file that may have others."""
        rows = [row for name, row in columns.items() if name.startswith(f"reward_{number}_")]
        if len(rows) % _SUMS:
            raise DataError("sums of the values of rewards are missing: write the file again")
        return Seen(counts, np.array(rows, dtype=np.int64).reshape(-1, _SUMS, len(counts)))
