"""The solver of games without a bound on steps and without a discount, component by component, successors first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from plumdp.model.objective import Objective
from plumdp.solver.component import Component, Hint, improve_rows
from plumdp.solver.component_bounds import bound_part, propose_part
from plumdp.solver.game import Game
from plumdp.solver.layout import SweepLayout, lay_out
from plumdp.solver.problem import Progress, Solution, SolverStatus, solution_of
from plumdp.solver.qualitative import decide_certain


def solve_game(
    game: Game,
    layout: SweepLayout,
    objective: Objective,
    precision: float,
    max_sweeps: int,
    start: Solution | None = None,
    progress: Progress | None = None,
) -> Solution:
    """Return the solution of a game without a bound on its steps and without a discount, given its layout."""
    cap = objective.cap
    solution = _solve_components(game, layout, precision, max_sweeps, cap, start, progress)
    if solution.status == SolverStatus.OPEN and cap < np.inf:  # slow exits: some values may be exactly the cap
        certain = decide_certain(game, cap)
        if certain.is_undecided.sum() < game.is_undecided.sum():
            return _solve_components(certain, lay_out(certain), precision, max_sweeps, cap, start, progress)
    return solution


def propose_solution(
    game: Game, layout: SweepLayout, objective: Objective, precision: float, max_sweeps: int, start: Solution | None
) -> Solution:
    """Return about the solution of such a game, with a policy that is worth a proof, and values that are not bounds."""
    return _solve_components(game, layout, precision, max_sweeps, objective.cap, start, None, bound=propose_part)


def _solve_components(
    game: Game,
    layout: SweepLayout,
    precision: float,
    max_sweeps: int,
    cap: float,
    start: Solution | None,
    progress: Progress | None,
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
            if progress:
                progress(end, layout.n_undecided)
        if bound is bound_part:  # what is proposed is no bound, and equal values would be told apart by rounding
            improve_rows(layout, low, high, best_row)
    except KeyboardInterrupt:
        status = SolverStatus.INTERRUPTED
    policy = layout.policy(best_row, game.policy)
    return solution_of(layout.by_state(low), layout.by_state(high), policy, precision, sweeps, status)
