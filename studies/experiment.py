"""The published protocol: a case study at its true point, and runs that end where the value is decided."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from plumdp.base.compiled import compile_at_once
from plumdp.base.vocabulary import Relaxation
from plumdp.case_studies import CaseStudy, case_study
from plumdp.certifying.pipeline import compare
from plumdp.data.counts import TransitionCounts
from plumdp.data.simulate import simulate
from plumdp.learning.learn import learn
from plumdp.learning.learned import Learned
from plumdp.learning.methods import Sets
from plumdp.model.graph import BoolArray
from plumdp.model.objectives import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import Point
from plumdp.relaxation.intervals import instantiate
from plumdp.result.certificate import Certificate
from plumdp.solver.evaluate import evaluate
from plumdp.solver.problem import Solution
from plumdp.solver.solve import solve
from studies.published_sets import PUBLISHED_SETS, learn_as_published
from studies.study import Row

RELAXATIONS: tuple[Relaxation, ...] = ("interval", "parameter", "expression", "rectangular")  # of the paper
_WARM: tuple[Sets, ...] = ("interval", "likelihood")  # what studies measure the seconds of


@dataclass(frozen=True, eq=False)
class Experiment:
    """A case study together with its solution at the true point, which a user would not know."""

    study: CaseStudy
    truth: Solution  # at the true point
    stop: BoolArray  # (n_states): where the true value is 0 or 1, for rewards 0 or infinite

    @property
    def value(self) -> float:
        """The value of the best policy at the true point."""
        start = self.study.model.graph.initial_state
        return float(self.truth.lower[start] + self.truth.upper[start]) / 2

    def draw(self, runs: int, seed: int) -> TransitionCounts:
        """Return the counts of runs under uniform choices."""
        study = self.study
        steps = study.max_steps + 1
        return simulate(study.model, study.true_point, runs, rng=seed, max_steps=steps, stop=self.stop)


def prepare(instance: str) -> Experiment:
    """Build a case study, and solve it at its true point."""
    study = case_study(instance)
    truth = solve(instantiate(study.model, study.true_point), study.objective, precision=1e-9)
    decided = (0.0, study.objective.cap)
    return Experiment(study, truth, np.isin(truth.lower, decided) & (truth.lower == truth.upper))


def learn_with(
    model: ParametricMDP, counts: TransitionCounts, sets: str, *, objectives: Sequence[Objective] = ()
) -> Learned:
    """Return what a kind of set says, one of the package or a published one."""
    if sets in PUBLISHED_SETS:
        return learn_as_published(model, counts, sets)
    return learn(model, counts, objectives=objectives, confidence_set=sets)  # type: ignore[arg-type]


def bounded(experiment: Experiment, counts: TransitionCounts, sets: str) -> list[Row]:
    """Return one row per relaxation: bounds on the value of the policy that is optimal at the true point."""
    study, policy = experiment.study, experiment.truth.policy
    learned = learn_with(study.model, counts, sets)
    relaxations = RELAXATIONS[learned.bounds.intervals is None :]  # a set without intervals has no interval-wise one
    certificates = compare(learned, study.objective, relaxations=relaxations, policy=policy)
    known: Row = {"sets": sets, "value": experiment.value, "steps": counts.total}
    no_claim: Row = {"status": "no guarantee"} if sets in PUBLISHED_SETS else {}
    return [
        known | {"relaxation": relaxation} | _bounds(certificate, experiment) | no_claim
        for relaxation, certificate in zip(relaxations, certificates, strict=True)
    ]


def _bounds(certificate: Certificate, experiment: Experiment) -> Row:
    """Return the bounds of a certificate, whether the truth lies between them, and its seconds."""
    start, truth = experiment.study.model.graph.initial_state, experiment.truth
    seconds = certificate.how.seconds
    return {
        "lower": certificate.lower,
        "upper": certificate.upper,
        "gap": (certificate.upper - certificate.lower) / experiment.value,
        "holds": int(certificate.lower <= truth.upper[start] and truth.lower[start] <= certificate.upper),
        "build_seconds": certificate.how.stage_seconds - seconds["solver"],
        "solve_seconds": seconds["solver"],
        "status": str(certificate.status),
        "solver": str(certificate.how.solver),
    }


def held_against_truth(model: ParametricMDP, true_point: Point, objective: Objective, certificate: Certificate) -> Row:
    """Return the bounds of a certificate, and whether the true value of the policy that it returns lies between."""
    worth = evaluate(instantiate(model, true_point), certificate.policy, objective, precision=1e-9)
    start = model.graph.initial_state
    value = float(worth.lower[start] + worth.upper[start]) / 2
    return {
        "value": value,
        "lower": certificate.lower,
        "upper": certificate.upper,
        "gap": (certificate.upper - certificate.lower) / value,
        "holds": int(certificate.lower <= worth.upper[start] and worth.lower[start] <= certificate.upper),
    }


@cache
def warm_up() -> None:
    """Load and compile once per process what all studies use, so that no cell's seconds count it."""
    compile_at_once()
    for instance in ("betting:5", "glider:5,5,4,4", "parallel:2,0"):
        experiment = prepare(instance)
        study = experiment.study
        counts = experiment.draw(100, 1)
        for sets in _WARM:
            learned = learn(study.model, counts, objectives=[study.objective], confidence_set=sets)
            compare(learned, study.objective)


def forget_peak_memory() -> None:
    """Reset the peak memory of this process to its present use, where the system supports it."""
    if sys.platform == "linux" and os.access("/proc/self/clear_refs", os.W_OK):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def peak_memory() -> float:
    """Return the largest memory of this process since ``forget_peak_memory``, in bytes; NaN where nothing tells."""
    if sys.platform == "linux":
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    try:
        import resource  # on Unix only
    except ImportError:
        return float("nan")
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
