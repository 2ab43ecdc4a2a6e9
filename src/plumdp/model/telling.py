"""Messages on the progress of a loop of unknown length, through the logger ``plumdp``, a few times per second."""

from __future__ import annotations

from time import monotonic

from plumdp.base.progress import tell

_SECONDS = 0.3  # between two lines


class Teller:
    """Logs how many things were found, at INFO, but no more than a few times per second and not at once."""

    def __init__(self, doing: str, things: str) -> None:
        self._doing, self._things, self._last = doing, things, monotonic()

    def tell(self, n: int) -> None:
        """Log that so many were found, if the last line is long enough ago."""
        now = monotonic()
        if now - self._last >= _SECONDS:
            self._last = now
            tell(f"{self._doing}: {n:,} {self._things}")
