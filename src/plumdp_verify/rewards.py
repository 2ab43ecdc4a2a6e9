"""Sums over the values of rewards whose means are unknown: what they count for, and how little they vary.

A value x from 0 to 1, of which the mean is the first of two affine members f and 1 - f of a class, counts x times for
the first and 1 - x times for the second. The factor of a likelihood or a bet is then convex in x, so that its
expectation is at most that of a coin, whatever the law of x is. Of values that vary less than coins, bets win more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from flint import fmpq

from .reading import Exact, Part, require


@dataclass(frozen=True)
class Values:
    """The number of values from 0 to 1, their sum, and that of their squares."""

    number: Exact
    total: Exact
    squares: Exact

    @property
    def are_possible(self) -> bool:
        """Whether values from 0 to 1 may have these sums: neither x, 1 - x, x (1 - x) nor the variance is negative."""
        sizes = (self.total, self.number - self.total, self.total - self.squares)
        return all(size >= 0 for size in sizes) and self.total**2 <= self.number * self.squares

    def __sub__(self, other: Values) -> Values:
        return Values(self.number - other.number, self.total - other.total, self.squares - other.squares)


@dataclass(frozen=True)
class CountedReward:
    """A reward of unknown mean: its class, the member that is its mean, and its values in each part of the data."""

    group: int
    member: int
    seen: dict[str, Values]

    def values(self, of: str, without: str) -> Values:
        """Return the values in some part of the data, without an earlier part."""
        return self.seen[of] - self.seen[without] if without else self.seen[of]


def read_rewards(part: Part, sizes: Sequence[int], parts: Sequence[str]) -> Iterator[CountedReward]:
    """Yield rewards, given the numbers of members of classes and the names of the parts of the data."""
    for item in part:
        group, member = item["class"].whole(len(sizes)), item["member"].whole(2)
        require(sizes[group] == 2, f"{item.place}: the class of a mean has two members")
        seen = {name: _values(item["seen"][name]) for name in parts}
        for earlier, later in [("pilot", "all"), *pairwise([*parts[2:], "all"])]:
            between = (seen[later] - seen[earlier]).are_possible
            require(between, f"{item.place}: no values from 0 to 1 between {earlier} and {later} have these sums")
        yield CountedReward(group, member, seen)


def _values(part: Part) -> Values:
    found = Values(fmpq(part[0].whole()), part[1].fraction(), part[2].fraction())
    require(found.are_possible, f"{part.place}: no values from 0 to 1 have these sums")
    return found


def sharpness(counts: Sequence[Exact], mixed: Exact) -> Exact:
    """Return how many times larger the variance of coins is than that of values, by what was counted of two members.

    One throw of a coin is added to what was seen. ``mixed`` is the sum of x (1 - x) over the values x.
    """
    if not mixed:
        return fmpq(1)
    n = fmpq(sum(counts))
    of_coins = (1 - sum(k * k for k in counts) / n**2) / 2
    return 1 / max(1 - mixed / (n + 1) / of_coins, 1 / (n + 1))
