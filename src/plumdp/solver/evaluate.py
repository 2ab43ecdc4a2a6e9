"""Certified values of a given policy, against nature, with nature, or in an MDP without unknown probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from plumdp.base.combinations import Trait, refuse
from plumdp.base.threads import run_parallel
from plumdp.model.graph import Indices
from plumdp.model.objectives import Nature, Objective
from plumdp.model.policy import Policy, check_policy
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.by_levels import evaluate_levels
from plumdp.solver.prepared import Prepared, prepare
from plumdp.solver.problem import Problem, Solution, SolverStatus, check_request, solution_of
from plumdp.solver.reduce import TO_CHAIN, reduce
from plumdp.solver.solve import solve


def evaluate(
    imdp: IntervalMDP,
    policy: Policy,
    objective: Objective,
    *,
    nature: Nature | None = None,
    precision: float = 1e-6,
    max_sweeps: int = 100_000,
) -> Solution:
    """Return certified values of a policy, given by a choice for each state or a probability for each choice."""
    given = check_policy(imdp.graph, policy)
    player: Nature = nature or objective.nature or "robust"
    return evaluate_all([imdp], given, objective, [player], precision=precision, max_sweeps=max_sweeps)[0]


def evaluate_all(
    relaxations: Sequence[IntervalMDP],
    policy: Policy,
    objective: Objective,
    natures: Sequence[Nature],
    *,
    precision: float = 1e-6,
    max_sweeps: int = 100_000,
    start: Solution | None = None,
    within: Prepared | None = None,
) -> list[Solution]:
    """Return certified values of a policy for each nature, the tightest of several relaxations.

    The relaxations are of one model, in the same expressions, so that the truth is within all of them. Work that
    depends on the graph alone is done once. ``start`` has values that are similar, such as those that the policy was
    found with. They save time where components are slow, and are not trusted. ``within`` was prepared for the model and
    objective.
    """
    mdp, given = relaxations[0], check_policy(relaxations[0].graph, policy)
    check_request(mdp, objective, precision)
    if mdp.graph.levels is not None:
        return _evaluate_stored(mdp, given, objective, natures, precision)
    asked = reduce(Problem(mdp, objective, given, start=start), TO_CHAIN)
    chain, of_chain = asked.problem.mdp, asked.problem.objective
    chains = [replace(asked.like(imdp), expression=chain.expression) for imdp in relaxations]  # one array, shared
    options: dict[str, Any] = {"precision": precision, "max_sweeps": max_sweeps, "start": asked.problem.start}
    if len(chains) * len(natures) > 1:
        is_within = within is not None and asked.keeps_states and within.game.imdp.graph is mdp.graph
        options["prepared"] = prepare(chain, of_chain, within=within if is_within else None)

    def solve_each(nature: Nature) -> list[Solution]:
        return [solve(each, of_chain, nature=nature, **options) for each in chains]

    of_natures = run_parallel([partial(solve_each, nature) for nature in natures], work=chain.graph.n_transitions)
    return [_tightest([asked.invert(solution) for solution in of_nature], precision) for of_nature in of_natures]


def _evaluate_stored(
    imdp: IntervalMDP, policy: Indices, objective: Objective, natures: Sequence[Nature], precision: float
) -> list[Solution]:
    """Return certified values for each nature on a model on disk, whose policies have one choice for each state."""
    refuse({Trait.DISK, policy.dtype.kind == "f" and Trait.DRAWS})
    asked = reduce(Problem(imdp, objective))
    solutions = evaluate_levels(imdp, policy, asked.problem.objective, natures, precision)
    return [asked.invert(solution) for solution in solutions]


def _tightest(solutions: Sequence[Solution], precision: float) -> Solution:
    """Return the intersection of bounds that all hold."""
    if len(solutions) == 1:
        return solutions[0]
    lower, upper = solutions[0].lower, solutions[0].upper
    for other in solutions[1:]:
        # each solution holds for the same policy, so that the tighter bound does too
        lower, upper = np.maximum(lower, other.lower), np.minimum(upper, other.upper)
    ended = {solution.status for solution in solutions}
    status = SolverStatus.INTERRUPTED if SolverStatus.INTERRUPTED in ended else SolverStatus.CONVERGED
    return solution_of(lower, upper, solutions[0].policy, precision, sum(s.sweeps for s in solutions), status)
