"""The reduction for a given policy, to a model that has only the rows of its choices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumdp.model.graph import Indices, read_only
from plumdp.model.objective import Objective
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.problem import Inverse, Problem


def given_policy(problem: Problem, choices: Indices) -> tuple[Problem, Inverse]:
    """Return the problem of one policy, given by the choice of each state, and the inverse."""
    imdp, objective = follow(problem.imdp, choices, problem.objective)
    policy = read_only(choices.astype(np.int32))
    return replace(problem, imdp=imdp, objective=objective), lambda solution: replace(solution, policy=policy)


def follow(imdp: IntervalMDP, chosen: Indices, objective: Objective) -> tuple[IntervalMDP, Objective]:
    """Return the model that has only the chosen rows, and the objective with their rewards."""
    graph, kept = imdp.graph.take(chosen)
    followed = replace(imdp, graph=graph, expression=read_only(imdp.expression[kept]))
    return followed, objective.restricted_to(chosen)
