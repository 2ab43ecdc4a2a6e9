"""The solver of problems with a number of steps, by backward induction."""

from __future__ import annotations

import numpy as np

from plumdp.model.graph import Graph, read_only
from plumdp.model.memory import Kept
from plumdp.model.objective import Objective
from plumdp.solver.layout import SweepLayout
from plumdp.solver.problem import Progress
from plumdp.solver.solution import Solution, SolverStatus


def solve_steps(objective: Objective, layout: SweepLayout, graph: Graph, progress: Progress | None) -> Solution:
    """Return the solution by backward induction over the steps.

    Each step is one pass, rounded outward on both sides. In the layout all states are undecided.
    """
    n_steps = objective.n_steps
    assert n_steps is not None
    best_row = layout.first_row.copy()
    low = high = objective.at_step(np.zeros(graph.n_states), n_steps)[layout.state]
    for step in range(n_steps - 1, -1, -1):
        new_low, new_high = np.full(len(low), -np.inf), np.full(len(high), np.inf)
        layout.sweep_both(0, layout.n_undecided, (low, new_low, best_row), (high, new_high, best_row))
        # states whose value at the step is fixed get it from the objective, exactly
        low = objective.at_step(layout.by_state(new_low), step)[layout.state]
        high = objective.at_step(layout.by_state(new_high), step)[layout.state]
        if progress:
            progress(n_steps - step, n_steps)
    policy = layout.policy(best_row, graph.first_choice[:-1])
    return Solution(
        read_only(layout.by_state(low)),
        read_only(layout.by_state(high)),
        read_only(policy),
        SolverStatus.CONVERGED,
        n_steps,
    )


def keep_best(objective: Objective, layout: SweepLayout, graph: Graph, keep: Kept) -> None:
    """Add the best choice of each state at each step, by one pass for each step: proposals, and nothing is proved."""
    n_steps = objective.n_steps
    assert n_steps is not None
    best_row, side = layout.first_row.copy(), -1.0 if objective.direction == "max" else 1.0  # where the agent is safe
    values = objective.at_step(np.zeros(graph.n_states), n_steps)[layout.state]
    for step in range(n_steps - 1, -1, -1):
        after = np.full(len(values), side * np.inf)
        layout.sweep(0, layout.n_undecided, values, after, best_row, side=side)
        values = objective.at_step(layout.by_state(after), step)[layout.state]
        keep[step, layout.policy(best_row, graph.first_choice[:-1])] = True
