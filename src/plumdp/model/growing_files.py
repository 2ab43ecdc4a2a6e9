"""Files of numbers that grow at their end, in the narrowest type that holds all numbers so far."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.model.levels import mapped

OFFSETS: Sequence[Any] = (np.int32, np.int64)
NUMBERS: Sequence[Any] = (np.uint8, np.uint16, np.int32)

_COPIED = 1 << 24  # numbers that are copied at once into a wider type


class GrowingFile:
    """Numbers in a file, one after the other, which are all written again if one needs a wider type."""

    def __init__(self, path: Path, types: Sequence[Any]) -> None:
        self._path, self._types = path, list(types)
        self._file = path.open("wb")
        self.n = 0

    @property
    def dtype(self) -> Any:
        """The type of all numbers in the file."""
        return self._types[0]

    def append(self, values: npt.NDArray[Any]) -> None:
        """Write numbers behind those that are there."""
        if len(self._types) > 1 and len(values):
            largest = int(values.max())
            while largest > np.iinfo(self.dtype).max:
                self._widen()
        np.ascontiguousarray(values, dtype=self.dtype).tofile(self._file)
        self.n += len(values)

    def close(self) -> None:
        """Close the file, so that nothing can be appended any more."""
        self._file.close()

    def _widen(self) -> None:
        self.close()
        old = mapped(self._path, self.dtype, self.n)
        self._types.pop(0)
        wider = self._path.with_suffix(".wider")
        with wider.open("wb") as file:
            for start in range(0, len(old), _COPIED):
                old[start : start + _COPIED].astype(self.dtype).tofile(file)
        wider.replace(self._path)
        self._file = self._path.open("ab")
