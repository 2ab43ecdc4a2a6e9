"""The solver of interval MDPs, which returns the best policy and certified bounds on the value of every state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.base.progress import tell_share
from plumdp.base.threads import thread_limit
from plumdp.model.objectives import Kind, Nature, Objective
from plumdp.model.policy import check_policy
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.by_levels import solve_levels
from plumdp.solver.by_steps import solve_steps
from plumdp.solver.by_sweeps import solve_average, solve_discounted
from plumdp.solver.component import Component, Hint, improve_rows
from plumdp.solver.component_bounds import bound_part, propose_part
from plumdp.solver.game import Game
from plumdp.solver.layout import SweepLayout, lay_out
from plumdp.solver.prepared import Prepared, prepare
from plumdp.solver.problem import Problem, Solution, SolverStatus, check_request, solution_of
from plumdp.solver.qualitative import decide_certain
from plumdp.solver.reduce import TO_CHAIN, reduce


def solve(
    imdp: IntervalMDP,
    objective: Objective,
    *,
    nature: Nature | None = None,
    precision: float = 1e-6,
    max_sweeps: int = 100_000,
    start: Solution | None = None,
    prepared: Prepared | None = None,
    threads: int | None = None,
) -> Solution:
    """Return certified values of all states, and a policy that is optimal up to the precision.

    ``nature`` is "robust" (against the agent, the default) or "optimistic" (with the agent). The precision is relative
    for values above 1. Stopping early, by ``max_sweeps`` or by hand, loosens the bounds and never breaks them.
    ``start`` is the solution of a similar problem on the same graph: it saves time if policies are alike, and is not
    trusted. ``prepared`` is what ``prepare`` returned for the same graph and objective: it saves time alone.
    ``threads`` is how many threads large models are solved with: by default the environment variable PLUMDP_THREADS, or
    all cores. Results are bit-identical.

    >>> from plumdp import case_study
    >>> from plumdp.stages import instantiate
    >>> study = case_study("betting:25")
    >>> solution = solve(instantiate(study.model, study.true_point), study.objective)
    >>> print(f"{solution.lower[0]:.6f} {solution.upper[0]:.6f} {solution.status}")
    19.042863 19.042863 converged
    """
    check_request(imdp, objective, precision)
    player: Nature = nature or objective.nature or "robust"
    if player not in ("robust", "optimistic"):
        raise ModelError(f"nature={player!r}: choose 'robust' (against the agent) or 'optimistic' (with the agent)")
    if start is not None:
        check_policy(imdp.graph, start.policy)
    game = reduce(Problem(imdp, objective, None, player, start), TO_CHAIN)
    with thread_limit(threads):
        return game.invert(solve_reduced(game.problem, precision, max_sweeps, prepared))


def solve_reduced(problem: Problem[IntervalMDP], precision: float, max_sweeps: int, like: Prepared | None) -> Solution:
    """Return the solution of a problem to which no reduction applies, by the solver for its kind of objective."""
    objective = problem.objective
    if problem.mdp.graph.levels is not None:  # on disk
        return solve_levels(problem.mdp, objective, problem.nature, precision)
    ready = prepare(problem.mdp, objective, problem.nature, like=like)  # decides what graph and bounds alone decide
    layout = ready.layout if like is None or ready.layout is not like.layout else ready.facing()
    if objective.n_steps is not None:
        return solve_steps(objective, layout, problem.mdp.graph)
    if objective.kind is Kind.DISCOUNTED:
        return solve_discounted(ready.game, precision, max_sweeps, problem.start, layout)
    if objective.kind is Kind.AVERAGE:
        return solve_average(ready.game, precision, max_sweeps, layout)
    solution = solve_game(ready.game, layout, objective, precision, max_sweeps, problem.start)
    if ready.game.may_drop or solution.status != SolverStatus.OPEN:
        return solution
    # intervals allow for more natures, so that their solution bounds this one on nature's side
    intervals = replace(problem, mdp=replace(problem.mdp, region=None))
    return cut_to_looser(solution, solve_reduced(intervals, precision, max_sweeps, None), ready.game, precision)


def cut_to_looser(solution: Solution, looser: Solution, game: Game, precision: float) -> Solution:
    """Return a solution cut to that of a relaxation that allows for more natures.

    The looser one bounds what nature attains, on the side that it wants. An agent whose bound that is gets the rows
    that attain it, from above state by state, as in ``keep_tighter``, and from below all of them, or none.
    """
    lower, upper, policy = solution.lower, solution.upper, solution.policy
    is_all = bool((looser.lower >= lower).all())
    if game.nature > 0:
        is_tighter = (looser.upper < upper) & (game.agent < 0)
        upper, policy = np.minimum(upper, looser.upper), np.where(is_tighter, looser.policy, policy)
    elif game.agent < 0 or is_all:
        lower, policy = np.maximum(lower, looser.lower), policy if game.agent < 0 else looser.policy
    sweeps = solution.sweeps + looser.sweeps
    status = looser.status if looser.status == SolverStatus.INTERRUPTED else SolverStatus.CONVERGED
    return solution_of(lower, upper, policy, precision, sweeps, status)


def solve_game(
    game: Game,
    layout: SweepLayout,
    objective: Objective,
    precision: float,
    max_sweeps: int,
    start: Solution | None = None,
) -> Solution:
    """Return the solution of a game without a bound on its steps and without a discount, given its layout."""
    cap = objective.cap
    solution = _solve_components(game, layout, precision, max_sweeps, cap, start)
    if solution.status == SolverStatus.OPEN and cap < np.inf:  # slow exits: some values may be exactly the cap
        certain = decide_certain(game, cap)
        if certain.is_undecided.sum() < game.is_undecided.sum():
            return _solve_components(certain, lay_out(certain), precision, max_sweeps, cap, start)
    return solution


def propose_solution(
    game: Game, layout: SweepLayout, objective: Objective, precision: float, max_sweeps: int, start: Solution | None
) -> Solution:
    """Return an approximate solution of the game: a policy worth a proof, and values that are not bounds."""
    return _solve_components(game, layout, precision, max_sweeps, objective.cap, start, bound=propose_part)


def _solve_components(
    game: Game,
    layout: SweepLayout,
    precision: float,
    max_sweeps: int,
    cap: float,
    start: Solution | None,
    *,
    bound: Callable[[Component, float, int], int] = bound_part,
) -> Solution:
    """Return the solution, found component by component, successors first.

    Parts without inner edges take one pass.
    """
    n = layout.n_undecided
    low, high = np.zeros(len(layout.state)), np.full(len(layout.state), cap)
    low[n:], high[n:] = game.known_bounds(layout.state[n:])
    best_row = layout.first_row.copy()
    hint = None
    if start is not None and not layout.is_acyclic:
        hint = Hint(start.lower[layout.state], layout.rows_of(start.policy))
    sweeps, status = 0, SolverStatus.CONVERGED
    try:
        for first, end, is_loose in layout.parts:
            if is_loose:
                layout.sweep_both(first, end, (low, low, best_row), (high, high, best_row), cap)
                sweeps += 1
            else:
                part = Component(layout, first, end, low, high, best_row, cap, hint)
                sweeps += bound(part, precision, max_sweeps)
            tell_share("solving", end, n)
        if bound is bound_part:  # what is proposed is no bound, and equal values would be told apart by rounding
            improve_rows(layout, low, high, best_row)
    except KeyboardInterrupt:
        status = SolverStatus.INTERRUPTED
    policy = layout.policy(best_row, game.policy)
    return solution_of(layout.by_state(low), layout.by_state(high), policy, precision, sweeps, status)
