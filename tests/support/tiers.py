"""How large a test is: as large as the errors planted in it need, and larger at night.

``./check`` sets ``PLUMDP_TIER``: "quick", "check" or "night".
"""

import os

TIER = os.environ.get("PLUMDP_TIER", "check")


def size(check: int, night: int) -> int:
    """Return the number of seeds, models or repetitions."""
    return night if TIER == "night" else check


def examples(night: int) -> int:
    """Return how many examples Hypothesis draws, given how many it draws at night."""
    return {"quick": max(5, night // 10), "check": max(10, night // 3), "night": night}[TIER]
