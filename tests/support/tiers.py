"""How large a test is: as large as the errors planted in it need, and larger at night.

``./check`` sets ``PLUMDP_TIER``: "quick", "check" or "night".
"""

import os
from collections.abc import Iterable, Sequence
from itertools import cycle, islice, product
from typing import Any

TIER = os.environ.get("PLUMDP_TIER", "check")


def size(check: Any, night: Any) -> Any:
    """Return the number of seeds, models or repetitions, or which of them."""
    return night if TIER == "night" else check


def examples(night: int) -> int:
    """Return how many examples Hypothesis draws, given how many it draws at night."""
    return {"quick": max(5, night // 10), "check": max(10, night // 3), "night": night}[TIER]


def pairs(first: Iterable[Any], second: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Return all combinations at night; by day, each value of the longer one once, and of the other in turn."""
    if TIER == "night":
        return [*product(first, second)]
    first, second = [*first], [*second]
    longest = max(len(first), len(second))
    return [*islice(zip(cycle(first), cycle(second), strict=False), longest)]


def covering(first: Sequence[Any], second: Sequence[Any], third: Sequence[Any]) -> list[tuple[Any, Any, Any]]:
    """Return all combinations at night; by day, every two values of different arguments together in at least one.

    That needs the third to be no longer than the others.
    """
    if TIER == "night":
        return [*product(first, second, third)]
    pairs = product(enumerate(first), enumerate(second))
    return [(one, other, third[(i + j) % len(third)]) for (i, one), (j, other) in pairs]
