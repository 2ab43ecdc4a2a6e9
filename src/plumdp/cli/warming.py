"""Compiles kernels ahead of time, on small models, so that later processes read them from numba's cache."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import commonpath
from typing import NamedTuple

from plumdp.base import compiled
from plumdp.case_studies import CaseStudy, case_study
from plumdp.certifying.pipeline import certify, compare
from plumdp.data.counts import TransitionCounts
from plumdp.data.simulate import simulate
from plumdp.learning.methods import SETS

_DEFAULT = ("betting:3", "aircraft:6,4,1")  # rewards; a chance, with rows of more than two outcomes
_OTHERS = ("glider:5,5,4,4", "parallel:2,0", "rover:3,3,2", "engagement:5")  # cycles, products, steps, many rows
_RUNS = 200


class WarmedUp(NamedTuple):
    """What was compiled, or was there already: how many kernels and signatures, in which folder, and how long."""

    kernels: int
    signatures: int
    folder: str | None  # None: nothing could be kept
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
                compare(study.model, counts, study.objective, confidence_set=kind)
    used = [kernel for kernel in compiled.KERNELS if kernel.dispatcher.signatures]
    folders = [kernel.folder for kernel in used if kernel.folder is not None]
    folder = commonpath(folders) if folders else None
    return WarmedUp(len(used), len(compiled.signatures()), folder, compiled.seconds_of_compiling())


def _examples(names: tuple[str, ...]) -> Iterator[tuple[CaseStudy, TransitionCounts]]:
    for name in names:
        study = case_study(name)
        yield study, simulate(study.model, study.true_point, _RUNS, rng=1, max_steps=study.max_steps + 1)
