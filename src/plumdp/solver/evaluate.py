"""Certified values of a given policy, against nature, with nature, or in an MDP without unknown probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.base.threads import run_parallel
from plumdp.model.graph import FloatArray, Indices, read_only
from plumdp.model.objective import Nature, Objective
from plumdp.model.policy import Policy, check_policy, likeliest
from plumdp.relaxation.interval_model import IntervalModel
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.by_levels import evaluate_levels
from plumdp.solver.prepared import Prepared, prepare
from plumdp.solver.problem import Problem, check_request, require_problem
from plumdp.solver.reductions.complement import one_minus
from plumdp.solver.reductions.drawn_policy import draw_first, drawn_policy, stretched
from plumdp.solver.reductions.given_policy import follow, given_policy
from plumdp.solver.solution import Solution, SolverStatus, solution_of
from plumdp.solver.solve import solve


def evaluate(
    imdp: IntervalMDP | IntervalModel,
    policy: Policy,
    objective: Objective | str,
    *,
    nature: Nature | None = None,
    precision: float = 1e-6,
    max_sweeps: int = 100_000,
) -> Solution:
    """Return certified values of a policy, given by a choice for each state or a probability for each choice.

    The policy of a certificate may be given as well.

    >>> from plumdp import case_study
    >>> from plumdp.stages import instantiate
    >>> study = case_study("betting:25")
    >>> mdp = instantiate(study.model, study.true_point)
    >>> best = solve(mdp, study.objective)
    >>> values = evaluate(mdp, best.policy, study.objective)
    >>> print(f"{values.lower[0]:.6f}")
    19.042863
    """
    mdp, asked = require_problem("evaluate", imdp, objective)
    given = check_policy(mdp.graph, policy)
    if mdp.graph.levels is not None:
        return _evaluate_stored(mdp, given, asked, [nature or asked.nature or "robust"], precision)[0]
    problem = Problem(mdp, asked, nature or asked.nature or "robust")
    chain, invert = drawn_policy(problem, given) if given.dtype.kind == "f" else given_policy(problem, given)
    solution = solve(chain.imdp, chain.objective, nature=nature, precision=precision, max_sweeps=max_sweeps)
    return invert(solution)


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
    check_request(relaxations[0], objective, precision)
    given = check_policy(relaxations[0].graph, policy)
    if relaxations[0].graph.levels is not None:
        return _evaluate_stored(relaxations[0], given, objective, natures, precision)
    if given.dtype.kind == "f":
        return _evaluate_drawn(relaxations, given, objective, natures, precision, max_sweeps)
    chain, asked = follow(relaxations[0], given, objective)
    chains = [replace(chain, lower=imdp.lower, upper=imdp.upper, region=imdp.region) for imdp in relaxations]
    is_prepared = within is not None and within.game.imdp.graph is relaxations[0].graph
    similar = None if start is None else replace(start, policy=chain.graph.first_choice[:-1])  # one row in each state
    options: dict[str, Any] = {"precision": precision, "max_sweeps": max_sweeps, "start": similar}
    if not chain.known_support or chain.has_fixed_support():
        options["prepared"] = prepare(chain, asked, within=within if is_prepared else None)
    calls = [partial(_solve_each, chains, asked, nature, options) for nature in natures]
    of_natures = run_parallel(calls, work=chain.graph.n_transitions)
    return [
        replace(_tightest(of_nature, precision), policy=read_only(given.astype(np.int32))) for of_nature in of_natures
    ]


def _evaluate_drawn(
    relaxations: Sequence[IntervalMDP],
    weights: FloatArray,
    objective: Objective,
    natures: Sequence[Nature],
    precision: float,
    max_sweeps: int,
) -> list[Solution]:
    """Return certified values of a policy that draws, for each nature, from the models in which the draw is a step."""
    graph = relaxations[0].graph
    draws, n_states = draw_first(graph, weights), graph.n_states
    split = [draws.intervals(imdp) for imdp in relaxations]
    split = [replace(imdp, expression=split[0].expression) for imdp in split]  # one array, so that work is shared
    found = evaluate_all(
        split, draws.only, stretched(objective, graph), natures, precision=precision, max_sweeps=max_sweeps
    )
    chosen = likeliest(graph, weights)
    return [replace(one, lower=one.lower[:n_states], upper=one.upper[:n_states], policy=chosen) for one in found]


def _solve_each(
    chains: Sequence[IntervalMDP], objective: Objective, nature: Nature, options: dict[str, Any]
) -> list[Solution]:
    return [solve(chain, objective, nature=nature, **options) for chain in chains]


def _evaluate_stored(
    imdp: IntervalMDP, policy: Indices, objective: Objective, natures: Sequence[Nature], precision: float
) -> list[Solution]:
    """Return certified values for each nature on a model on disk, whose policies have one choice for each state."""
    if policy.dtype.kind == "f":
        raise ModelError("of a model that is stored on disk, give a policy as the number of a choice for each state")
    flipped = objective.flipped()
    if flipped is not None:
        return [one_minus(solution) for solution in _evaluate_stored(imdp, policy, flipped, natures, precision)]
    return evaluate_levels(imdp, policy, objective, natures, precision)


def _tightest(solutions: Sequence[Solution], precision: float) -> Solution:
    """Return the intersection of bounds that all hold."""
    lower, upper = solutions[0].lower, solutions[0].upper
    for other in solutions[1:]:
        # each solution holds for the same policy, so that the tighter bound does too
        lower, upper = np.maximum(lower, other.lower), np.minimum(upper, other.upper)
    ended = {solution.status for solution in solutions}
    status = SolverStatus.INTERRUPTED if SolverStatus.INTERRUPTED in ended else SolverStatus.CONVERGED
    return solution_of(lower, upper, solutions[0].policy, precision, sum(s.sweeps for s in solutions), status)
