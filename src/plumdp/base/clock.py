"""Times the stages of a calculation."""

from __future__ import annotations

import logging
from time import perf_counter

from plumdp.base.compiled import seconds_of_compiling

NO_STAGE = "compiling"  # the entry of ``seconds`` for kernels compiled meanwhile, which is done once

_LOGGER = logging.getLogger("plumdp")
_LOGGER.addHandler(logging.NullHandler())  # silent unless the user wants to hear


class Clock:
    """Seconds of the stages of a calculation; those of compiling kernels, if any, are an entry of their own."""

    def __init__(self, laps: dict[str, float] | None = None) -> None:
        self.laps = {} if laps is None else laps
        self._last, self._compiling = perf_counter(), seconds_of_compiling()

    def lap(self, stage: str) -> None:
        """Enter the seconds since the last stage, and say so to those who listen to the logger ``plumdp``."""
        now, compiling = perf_counter(), seconds_of_compiling()
        compiled = compiling - self._compiling
        self.laps[stage] = self.laps.get(stage, 0.0) + max(now - self._last - compiled, 0.0)
        if compiled > 0:
            self.laps[NO_STAGE] = self.laps.get(NO_STAGE, 0.0) + compiled
        self._last, self._compiling = now, compiling
        _LOGGER.debug("%s: %.3f s", stage, self.laps[stage])
