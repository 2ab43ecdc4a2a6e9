"""Solves problems with a number of steps: backward induction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumdp.model.graph import read_only
from plumdp.solver.game import plain_game
from plumdp.solver.layout import lay_out
from plumdp.solver.problem import Problem, Progress
from plumdp.solver.solution import Solution, SolverStatus


def solve_steps(problem: Problem, progress: Progress | None) -> Solution:
    """Return the solution by backward induction over the steps; each is one pass, rounded outward on both sides."""
    imdp, objective, nature = problem.imdp, problem.objective, problem.nature
    n_steps = objective.n_steps
    assert n_steps is not None
    layout = lay_out(
        replace(plain_game(imdp, objective, nature), is_undecided=np.ones(imdp.graph.n_states, dtype=np.bool_))
    )
    best_row = layout.first_row.copy()
    low = high = objective.at_step(np.zeros(imdp.graph.n_states), n_steps)[layout.state]
    for step in range(n_steps - 1, -1, -1):
        new_low, new_high = np.full(len(low), -np.inf), np.full(len(high), np.inf)
        layout.sweep(0, layout.n_undecided, low, new_low, best_row, side=-1.0)
        layout.sweep(0, layout.n_undecided, high, new_high, best_row, side=1.0)
        low = objective.at_step(layout.by_state(new_low), step)[layout.state]
        high = objective.at_step(layout.by_state(new_high), step)[layout.state]
        if progress:
            progress(n_steps - step, n_steps)
    policy = layout.policy(best_row, imdp.graph.first_choice[:-1])
    return Solution(
        read_only(layout.by_state(low)),
        read_only(layout.by_state(high)),
        read_only(policy),
        SolverStatus.CONVERGED,
        n_steps,
    )
