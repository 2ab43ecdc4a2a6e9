"""Seconds that each kernel has run as plain Python, added up over processes in one small file of the cache folder.

The file only says what is worth compiling. Processes that write it at the same moment may lose each other's seconds,
and a file that cannot be read or written counts as empty: nothing but a little time depends on it.
"""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path

FILE = "plumdp-plain-seconds.json"


class Tally:
    """Seconds of plain Python of each kernel, in this process and in earlier ones."""

    def __init__(self, folders: Callable[[], Iterable[Path]]) -> None:
        self._folders = folders  # where the file may be, best first
        self._here: dict[str, float] = {}  # of this process
        self._done: set[str] = set()  # compiled: their seconds are forgotten

    @cached_property
    def _earlier(self) -> dict[str, float]:
        """Seconds of earlier processes, as they are when first asked for; from then on this process writes at exit."""
        atexit.register(self.write)
        return next((read(folder / FILE) for folder in self._folders() if (folder / FILE).is_file()), {})

    def seconds(self, kernel: str) -> float:
        """Return how long a kernel has run as plain Python, counting earlier processes."""
        return self._here.get(kernel, 0.0) + self._earlier.get(kernel, 0.0)

    def add(self, kernel: str, seconds: float) -> None:
        """Add to the seconds of a kernel."""
        self._here[kernel] = self._here.get(kernel, 0.0) + seconds

    def forget(self, kernel: str) -> None:
        """Begin anew with a kernel: it is compiled, and if that is lost it has to earn it again."""
        self._done.add(kernel)

    def write(self) -> None:
        """Add what this process has to the file, which is replaced in one step; without a folder, do nothing."""
        if not self._here and not self._done & self._earlier.keys():
            return
        for folder in self._folders():
            total = read(folder / FILE)
            for kernel, seconds in self._here.items():
                total[kernel] = total.get(kernel, 0.0) + seconds
            if _replace(folder / FILE, {name: round(total[name], 4) for name in sorted(total.keys() - self._done)}):
                return


def read(path: Path) -> dict[str, float]:
    """Return the seconds in a file; none if it is missing or damaged."""
    with suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return {str(name): float(value) for name, value in found.items() if isinstance(value, int | float)}
    return {}


def _replace(path: Path, seconds: dict[str, float]) -> bool:
    """Write a file in one step; return whether that was possible."""
    own = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(json.dumps(seconds, indent=0), encoding="utf-8")
        own.replace(path)
    except OSError:
        with suppress(OSError):
            own.unlink()
        return False
    return True
