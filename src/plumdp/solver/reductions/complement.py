"""The reduction of the probability never to reach a target to one minus that of reaching it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumdp.base.rounding import ULP
from plumdp.model.graph import read_only
from plumdp.solver.problem import Inverse, Problem
from plumdp.solver.solution import Solution


def complement(problem: Problem) -> tuple[Problem, Inverse] | None:
    """Return the problem of reaching the target, optimised in the other direction, and the inverse."""
    flipped = problem.objective.flipped()
    if flipped is None:
        return None
    start = None if problem.start is None else one_minus(problem.start)
    return replace(problem, objective=flipped, start=start), one_minus


def one_minus(solution: Solution) -> Solution:
    """Return one minus the values, rounded outward except for zero and one, which are exact."""
    lower, upper = (
        np.clip(1 - bounds + np.where((bounds > 0) & (bounds < 1), outward, 0.0), 0, 1)
        for bounds, outward in ((solution.upper, -ULP), (solution.lower, ULP))
    )
    return replace(solution, lower=read_only(lower), upper=read_only(upper))
