"""The order of the states of a model that is stored on disk, by levels, and arrays that are mapped from files."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Levels:
    """The states of level ``k`` are ``first_state[k]`` up to ``first_state[k + 1]``.

    Each state leads to states of the next level only, or all its choices lead back to itself.
    """

    folder: Path  # of the files
    first_state: npt.NDArray[np.int64]  # (n_levels + 1)

    def __len__(self) -> int:
        return len(self.first_state) - 1

    def __repr__(self) -> str:
        return f"Levels({len(self):,} levels in {str(self.folder)!r})"

    def scratch(self, n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array of zeros in a file beside the model, which vanishes with the array."""
        with TemporaryFile(dir=self.folder) as file:
            file.truncate(max(n, 1) * np.dtype(dtype).itemsize)
            return np.memmap(file, dtype=dtype, mode="r+", shape=(n,))


def mapped(path: Path, dtype: npt.DTypeLike, n: int) -> npt.NDArray[Any]:
    """Return the numbers in a file as an array that is read when it is used."""
    return np.memmap(path, dtype=dtype, mode="r", shape=(n,)) if n else np.zeros(0, dtype=dtype)


def is_mapped(array: npt.NDArray[Any]) -> bool:
    """Return whether an array is a file, as a whole or in part."""
    return _map_of(array) is not None


def forget(array: npt.NDArray[Any]) -> None:
    """Give back the memory of a file that an array is a view of. Later reads come from the file."""
    mapping = _map_of(array)
    if mapping is not None and hasattr(mapping, "madvise"):
        mapping.madvise(mmap.MADV_DONTNEED)


def _map_of(array: Any) -> mmap.mmap | None:
    """Return the mapping that an array is a view of, if any."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, mmap.mmap) else None
