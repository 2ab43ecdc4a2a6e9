"""The solver of problems with a number of steps, by backward induction."""

from __future__ import annotations

import numpy as np

from plumdp.base.progress import tell_share
from plumdp.base.rounding import UP
from plumdp.model.graph import BoolArray, Graph, read_only
from plumdp.model.objectives import Objective, Reach, Reward
from plumdp.solver.layout import SweepLayout
from plumdp.solver.problem import Solution, SolverStatus

NEGLIGIBLE = 1e-13  # of the largest value


def solve_steps(objective: Objective, layout: SweepLayout, graph: Graph) -> Solution:
    """Return the solution by backward induction over the steps.

    Each step is one pass, rounded outward on both sides. In the layout all states are undecided. No step
    moves values further apart than they are. So if one moves bounds by c at most, s earlier ones that are alike move
    them by s c at most, and are passed over if that is next to nothing.
    """
    n_steps = objective.n_steps
    assert n_steps is not None
    best_row = layout.first_row.copy()
    low = high = objective.at_step(np.zeros(graph.n_states), n_steps)[layout.state]
    step, alike = n_steps, first_alike(objective)
    while step > 0:
        step -= 1
        before = low, high
        new_low, new_high = np.full(len(low), -np.inf), np.full(len(high), np.inf)
        layout.sweep_both(0, layout.n_undecided, (low, new_low, best_row), (high, new_high, best_row))
        # states whose value at the step is fixed get it from the objective, exactly
        low = objective.at_step(layout.by_state(new_low), step)[layout.state]
        high = objective.at_step(layout.by_state(new_high), step)[layout.state]
        moved = (step - alike) * float(np.abs(np.subtract(before, (low, high))).max(initial=0.0)) * UP
        if step > alike and moved <= NEGLIGIBLE * np.abs(high).max(initial=0.0):
            step = alike
            least = 0.0 if objective.cap < np.inf else -np.inf
            for bounds, side in ((low, -1.0), (high, 1.0)) if moved else ():
                bounds[:] = np.clip(np.nextafter(bounds + side * moved, side * np.inf), least, objective.cap)
                bounds[:] = objective.at_step(layout.by_state(bounds), step)[layout.state]
        tell_share("solving", n_steps - step, n_steps)
    policy = layout.policy(best_row, graph.first_choice[:-1])
    return Solution(
        read_only(layout.by_state(low)),
        read_only(layout.by_state(high)),
        read_only(policy),
        SolverStatus.CONVERGED,
        n_steps,
    )


def first_alike(objective: Objective) -> int:
    """Return a step from which on all steps but the last treat values alike."""
    assert objective.n_steps is not None
    if isinstance(objective, Reach):
        return objective.steps[0] if objective.steps else 0
    return 0 if isinstance(objective, Reward) else objective.n_steps  # what another objective does is not known


def keep_best(objective: Objective, layout: SweepLayout, graph: Graph, keep: BoolArray) -> None:
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
