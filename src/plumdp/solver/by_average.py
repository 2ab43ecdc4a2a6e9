"""The solver of average rewards in the long run, by values of states relative to each other.

Let Φ be one step of both players. If Φ(h) - h is at least g in every state, for any numbers h, then the agent's best
rows for h earn at least g on average, whatever nature does: n steps earn at least n g - max h + min h. From above it is
the same. So any h gives bounds, and nothing need be known about which states come back. Both bounds meet where all
policies have one recurrent class.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from plumdp.model.graph import BoolArray, FloatArray, Graph, IntArray, read_only
from plumdp.solver.by_discount import stepped
from plumdp.solver.chains import chain_of, is_cheap
from plumdp.solver.component import Component
from plumdp.solver.equations import equations_of, factorised
from plumdp.solver.game import Game
from plumdp.solver.layout import SweepLayout
from plumdp.solver.problem import Progress
from plumdp.solver.solution import Solution, SolverStatus, solution_of

_ENOUGH = (
    1024  # sweeps, after which they end once twice as many, with equations solved again, have gained next to nothing
)
_GAIN = 0.99  # of the distance of both bounds
_PATIENCE = 16  # sweeps before equations are solved; they are solved again after twice as many, and so on
_MAX_POLICIES = 30  # whose equations are solved in one go
_STEP = 0.9  # share of a step that is taken, as states that take turns would never settle with whole ones
_NO_CHANGE = 1e-14  # of the largest relative value
_NEARLY_ONE = 1 - 1e-6  # a discount so small that its values order choices as averages and then relative values do


def solve_average(
    game: Game, precision: float, max_sweeps: int, layout: SweepLayout, progress: Progress | None
) -> Solution:
    """Return the solution, whose bounds are the same for all states that can be reached from the initial one.

    Of other states the bounds are those of the rewards. A policy attains the agent's bound: that of the best values h.
    """
    graph, agent = game.imdp.graph, game.agent
    relative, best_row = np.zeros(layout.n_undecided), layout.first_row.copy()
    inside = is_reached(graph)[layout.state]
    least, most = float(game.reward.min(initial=0.0)), float(game.reward.max(initial=0.0))
    low, high = least, most
    sweeps, status, next_solution, last_gap = 0, SolverStatus.CONVERGED, _PATIENCE, np.inf
    try:
        while sweeps < max_sweeps and not high - low <= precision * max(1.0, abs(low)):
            below, low_rows = stepped(layout, relative, layout.first_row, -1.0)
            above, high_rows = stepped(layout, relative, layout.first_row, 1.0)
            new_low = float(_outward(below - relative, -np.inf)[inside].min())
            new_high = float(_outward(above - relative, np.inf)[inside].max())
            if agent > 0 and new_low >= low:
                best_row = low_rows
            elif agent < 0 and new_high <= high:
                best_row = high_rows
            low, high = max(low, new_low), min(high, new_high)
            sweeps += 1
            relative = relative + _STEP * ((below + above) / 2 - relative)
            if sweeps == next_solution:
                if (
                    sweeps > _ENOUGH and high - low > _GAIN * last_gap
                ):  # several averages, of which none is of all states
                    break
                next_solution, last_gap = 2 * next_solution, high - low
                relative = _solved(layout, relative)
            relative -= relative[0]
            if progress:
                progress(min(sweeps, max_sweeps), max_sweeps)
    except KeyboardInterrupt:
        status = SolverStatus.INTERRUPTED
    lower, upper = np.where(inside, low, least), np.where(inside, high, most)
    policy = layout.policy(best_row, game.policy)
    ended = solution_of(np.array([low]), np.array([high]), policy, precision, sweeps, status)  # of states inside
    return replace(ended, lower=read_only(layout.by_state(lower)), upper=read_only(layout.by_state(upper)))


def _outward(differences: FloatArray, side: float) -> FloatArray:
    """Return differences that were rounded once, moved outward; those that are zero are exact."""
    return np.where(differences == 0, 0.0, np.nextafter(differences, side))


def is_reached(graph: Graph) -> BoolArray:
    """Return the states (n_states) that can be reached from the initial one, by any choices."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    first = graph.first_transition[graph.first_choice]
    edges = csr_array(
        (np.ones(graph.n_transitions, dtype=np.int8), graph.successor, first), shape=(graph.n_states,) * 2
    )
    reached = np.zeros(graph.n_states, dtype=np.bool_)
    reached[breadth_first_order(edges, graph.initial_state, return_predecessors=False)] = True
    return reached


def _solved(layout: SweepLayout, relative: FloatArray) -> FloatArray:
    """Return about the relative values of both players' best moves, by policy iteration, or the given ones."""
    for _ in range(_MAX_POLICIES):
        moves = Component(layout, 0, layout.n_undecided, relative, relative, layout.first_row, np.inf)
        chain = chain_of(moves, relative, moves.greedy(relative))
        solution = gain_and_bias(chain.matrix, chain.constants[:, 0]) if is_cheap(chain) else None
        if solution is None:
            break
        before, relative = relative, solution[1:]
        if np.abs(relative - before).max(initial=0.0) <= _NO_CHANGE * np.abs(relative).max(initial=1.0):
            break
    return relative


def gain_and_bias(matrix: Any, reward: FloatArray) -> FloatArray | None:
    """Return about the average reward of a chain, and then its relative values, where that of the first state is 0.

    They solve g + h = r + P h, if the chain has one recurrent class; otherwise None is returned.
    """
    from scipy.sparse import csc_array, eye_array, hstack

    n = len(reward)
    bordered = hstack([np.ones((n, 1)), (eye_array(n, format="csc") - csc_array(matrix))[:, 1:]])
    factors = factorised(bordered)
    if factors is None:
        return None
    values = np.insert(factors.solve(reward), 1, 0.0)
    return values if np.isfinite(values).all() else None


def relative_values(graph: Graph, policy: IntArray, probability: FloatArray, reward: FloatArray) -> FloatArray:
    """Return estimates of the values of states relative to each other if a policy is followed forever (n_states).

    They are those with a discount of nearly one, less that of the initial state. So a state from which the average is
    larger has by far the larger value, and of states with the same average it is the one with the larger bias
    (Blackwell 1962). ``probability`` is that of transitions, and ``reward`` that of choices.
    """
    from scipy.sparse import csr_array

    n, transitions = graph.n_states, graph.transitions_of(policy)
    first = np.concatenate([[0], np.cumsum(np.diff(graph.first_transition)[policy])])
    moves = csr_array((_NEARLY_ONE * probability[transitions], graph.successor[transitions], first), shape=(n, n))
    equations = equations_of(moves)
    assert equations is not None  # as the discount is below one
    values = equations.solve(reward[policy])
    return np.asarray(values - values[graph.initial_state])
