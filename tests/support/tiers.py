"""How large a test is: as large as the errors planted in it need, and larger at night.

``./check`` sets ``PLUMDP_TIER``: "quick", "check" or "night".
"""

import os
from collections.abc import Sequence
from itertools import product
from typing import Any

TIER = os.environ.get("PLUMDP_TIER", "check")


def size(check: int, night: int) -> int:
    """Return the number of seeds, models or repetitions."""
    return night if TIER == "night" else check


def examples(night: int) -> int:
    """Return how many examples Hypothesis draws, given how many it draws at night."""
    return {"quick": max(5, night // 10), "check": max(10, night // 3), "night": night}[TIER]


def covering(first: Sequence[Any], second: Sequence[Any], third: Sequence[Any]) -> list[tuple[Any, Any, Any]]:
    """Return all combinations at night; by day, every two values of different arguments together in at least one.

    That needs the third to be no longer than the others.
    """
    if TIER == "night":
        return [*product(first, second, third)]
    pairs = product(enumerate(first), enumerate(second))
    return [(one, other, third[(i + j) % len(third)]) for (i, one), (j, other) in pairs]
