"""Times work in seconds of processor time, in rounds in which all ways take turns: what all measurements share.

Other work on the machine slows down whatever runs meanwhile. So a figure is a ratio: ours divided by a yardstick's in
the same rounds. Processor time leaves out waiting, and in turns a slow minute meets both sides; the ratio of the
shortest times leaves out single disturbances, and the median of pairs and their spread tell how far to trust it.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)
Clock = Callable[[], float]
MEASURE = "--measure"


@dataclass(frozen=True)
class Ratio:
    """Seconds of ours and of a yardstick, one of each for every round."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def pairs(self) -> tuple[float, ...]:
        """The ratio of each round."""
        return tuple(mine / other for mine, other in zip(self.ours, self.theirs, strict=True))

    @property
    def least(self) -> float:
        """The ratio of the shortest times."""
        return min(self.ours) / min(self.theirs)

    @property
    def median(self) -> float:
        """The median of the ratios of all rounds."""
        return statistics.median(self.pairs)

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the largest ratio of a round."""
        return min(self.pairs), max(self.pairs)

    def __add__(self, more: Ratio) -> Ratio:
        return Ratio(self.ours + more.ours, self.theirs + more.theirs)

    def __str__(self) -> str:
        least, most = self.spread
        return f"{self.least:.3g} (median of {len(self.ours)} pairs {self.median:.3g}, from {least:.3g} to {most:.3g})"


def timed(work: Callable[[], T], *, clock: Clock = time.process_time) -> tuple[float, T]:
    """Return the seconds of a call, of all its threads together, and its result."""
    start = clock()
    result = work()
    return clock() - start, result


def seconds_of(work: Callable[[], object], *, repeats: int = 1, clock: Clock = time.process_time) -> float:
    """Return the shortest seconds of several calls; each result is freed before the next."""
    return min(timed(work, clock=clock)[0] for _ in range(repeats))


def take_turns(ways: Mapping[Key, Callable[[], T]], repeats: int) -> dict[Key, list[T]]:
    """Return what each way gives in each round; in a round every way is called once."""
    found: dict[Key, list[T]] = {key: [] for key in ways}
    for _ in range(repeats):
        for key, way in ways.items():
            found[key].append(way())
    return found


def compare(
    ours: Callable[[], object], theirs: Callable[[], object], *, repeats: int = 7, clock: Clock = time.process_time
) -> Ratio:
    """Return the ratio of two calls in this process, which take turns."""
    ways = {"ours": lambda: timed(ours, clock=clock)[0], "theirs": lambda: timed(theirs, clock=clock)[0]}
    found = take_turns(ways, repeats)
    return Ratio(tuple(found["ours"]), tuple(found["theirs"]))


def ratio_of(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]], key: str = "seconds") -> Ratio:
    """Return the ratio of measurements that took turns."""
    return Ratio(tuple(run[key] for run in ours), tuple(run[key] for run in theirs))


def fastest(runs: Sequence[Mapping[str, Any]], key: str = "seconds") -> Mapping[str, Any]:
    """Return the measurement that took the least time."""
    return min(runs, key=lambda run: run[key])


def own_command(file: str) -> list[str]:
    """Return the command that runs a file of this folder in a process of its own."""
    return [sys.executable, "-m", f"studies.{Path(file).stem}"]


def in_own_process(file: str, *arguments: str, source: str | None = None) -> dict[str, Any]:
    """Return a measurement that a file of this folder makes in a process of its own, with the package from a source."""
    environment = {**os.environ, "PYTHONPATH": source} if source else None
    command = [*own_command(file), MEASURE, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def is_measured(measure: Callable[..., Mapping[str, Any]]) -> bool:
    """Return whether ``in_own_process`` started this process; if so, its measurement is made and printed."""
    if sys.argv[1:2] != [MEASURE]:
        return False
    print(json.dumps(measure(*sys.argv[2:])))
    return True


def process_seconds(command: Sequence[str]) -> float:
    """Return the processor time of a whole command and of the processes that it started and waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def used_seconds() -> float:
    """Return the processor time of this process and of all that it has started and waited for: a clock."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def peak_gigabytes() -> float:
    """Return the most memory that this process has held, in GB; a process inherits the peak of its parent."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9
