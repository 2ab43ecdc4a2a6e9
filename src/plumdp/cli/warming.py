"""Compiles kernels ahead of time, so that later processes read them from the cache."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from time import time
from typing import NamedTuple

from plumdp.base import compiled
from plumdp.case_studies import CaseStudy, case_study
from plumdp.certifying.pipeline import certify, compare
from plumdp.data.counts import TransitionCounts
from plumdp.data.simulate import simulate
from plumdp.learning.learn import learn
from plumdp.learning.methods import SETS

_DEFAULT = ("betting:3", "aircraft:6,4,1")  # rewards; a chance, with rows of more than two outcomes
_OTHERS = ("glider:5,5,4,4", "parallel:2,0", "rover:3,3,2", "engagement:5")  # cycles, products, steps, many rows
_RUNS = 200

LIST = "missing.pickle"
_LONGEST = 3600  # seconds; an older list was left by a process that was stopped
_APART = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "IDLE_PRIORITY_CLASS", 0)  # on Windows


class WarmedUp(NamedTuple):
    """How many kernels are compiled, the folder that keeps them (None if there is none), and the seconds it took."""

    kernels: int
    folder: Path | None
    seconds: float


def warm_up(*, everything: bool = False) -> WarmedUp:
    """Compile what simulating and a certificate with the default options need, or everything.

    >>> warm_up().kernels > 10
    True
    """
    compiled.compile_at_once()
    for study, counts in _examples(_DEFAULT):
        certify(study.model, counts, study.objective)
    if everything:
        for study, counts in _examples(_DEFAULT + _OTHERS):
            for kind in SETS:
                compare(learn(study.model, counts, objectives=[study.objective], confidence_set=kind), study.objective)
    n_compiled = sum(kernel.is_compiled for kernel in compiled.KERNELS)
    return WarmedUp(n_compiled, compiled.folder_in_use(), compiled.seconds_of_compiling())


def _examples(names: tuple[str, ...]) -> Iterator[tuple[CaseStudy, TransitionCounts]]:
    for name in names:
        study = case_study(name)
        yield study, simulate(study.model, study.true_point, _RUNS, rng=1, max_steps=study.max_steps + 1)


def start_process() -> bool:
    """Start a process that compiles the kernels which this one ran as plain Python; return whether it was started.

    Their list is a file in the cache folder. It is there for as long as that process is at work, and no other is
    started meanwhile.
    """
    missing = sorted((each for each in compiled.KERNELS if each.is_missing), key=lambda each: -each.plain_seconds)
    content = pickle.dumps([(kernel.name, kernel.types) for kernel in missing])
    for path in [folder / LIST for folder in compiled.cache_folders()] if missing else []:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and time() - path.stat().st_mtime > _LONGEST:
                path.unlink()
            with path.open("xb") as file:
                file.write(content)
        except FileExistsError:
            return False
        except OSError:
            continue
        command = [sys.executable, "-P", "-m", "plumdp.cli.warming", str(path)]
        quiet = subprocess.DEVNULL
        subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, creationflags=_APART)
        return True
    return False


def compile_listed(path: Path) -> None:
    """Compile the kernels of a list at low priority, those that ran longest first, and delete the list."""
    try:
        if hasattr(os, "nice"):
            os.nice(10)
        for name, types in pickle.loads(path.read_bytes()):
            resolve_name(name).compile(types)
    finally:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    compile_listed(Path(sys.argv[1]))
