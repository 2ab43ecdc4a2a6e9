"""The solvers of discounted and of average rewards, by sweeps over all states, none of whose values is known before.

With a discount, value iteration brings the bounds closer by its factor with each sweep: 0.99 takes some two thousand.
So now and then the equations of both players' best moves are solved. A step from their solution says how far off it is.
Moved outward by so much, divided by one minus the discount, it is a bound if one more step proves it.

For averages, let Φ be one step of both players. If Φ(h) - h is at least g in every state, for any numbers h, then the
agent's best rows for h earn at least g on average, whatever nature does: n steps earn at least n g - max h + min h.
From above it is the same. So any h gives bounds, and nothing need be known about which states come back. Both bounds
meet where all policies have one recurrent class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from plumdp.base.rounding import UNIT
from plumdp.model.graph import BoolArray, FloatArray, Graph, IntArray, read_only
from plumdp.solver import graph_kernels
from plumdp.solver.chains import ComponentChain, chain_of, equations_of, factorised, is_cheap, solve_chain
from plumdp.solver.component import MARGIN, Component, keep_tighter
from plumdp.solver.game import Game
from plumdp.solver.layout import SweepLayout, lay_out
from plumdp.solver.problem import Solution, SolverStatus, gap_of, solution_of

_PATIENCE = 16  # sweeps before equations are solved; they are solved again after twice as many, and so on
_MANY = 64  # sweeps: with fewer to go, equations do not pay
_FEW = 10_000  # sweeps: with more to go, they do not pay where equations leave no more than rounding
_MAX_POLICIES = 30  # whose equations are solved in one go
_NO_CHANGE = 1e-14  # of the largest value
_ROUNDINGS = 8  # by which steps from values that differ by a constant may differ by more, or less, than they should

_ENOUGH = 1024  # sweeps of averages, which end once twice as many, with equations solved, have gained next to nothing
_GAIN = 0.99  # of the distance of both bounds
_STEP = 0.9  # share of a step that is taken, as states that take turns would never settle with whole ones
_NEARLY_ONE = 1 - 1e-6  # a discount so small that its values order choices as averages and then relative values do

Sides: TypeAlias = dict[float, tuple[FloatArray, IntArray]]
"""Bounds from below (-1) and from above (+1), by position, each with the agent's rows that attain it."""


def solve_discounted(
    game: Game,
    precision: float,
    max_sweeps: int,
    start: Solution | None,
    layout: SweepLayout | None = None,
) -> Solution:
    """Return the solution by value iteration from below and above.

    A step is a contraction, and leads from bounds to bounds on both sides.
    """
    layout = layout or lay_out(game.with_all_undecided())
    # no value is further from zero than the largest reward in each step, summed with the discount
    far = (1 + 1e-9) / (1.0 - game.discount)
    low = np.full(layout.n_undecided, min(0.0, float(game.reward.min(initial=0.0))) * far)
    high = np.full(layout.n_undecided, max(0.0, float(game.reward.max(initial=0.0))) * far)
    sides = {-1.0: (low, layout.first_row.copy()), 1.0: (high, layout.first_row.copy())}
    if start is not None:
        _take_over(layout, sides, start.lower[layout.state])
    solve = partial(_discounted_values, discount=float(layout.rows.discount))
    sweeps, status, next_solution = 0, SolverStatus.CONVERGED, _PATIENCE
    gap = gap_of(low, high)
    try:
        while sweeps < max_sweeps and gap > precision:
            change = _sweep(layout, sides)
            sweeps += 1
            gap = gap_of(low, high)
            if sweeps == next_solution:
                next_solution *= 2
                if gap * game.discount**_MANY > precision:
                    _take_over(layout, sides, _solved(layout, (low + high) / 2, solve))
                    gap = gap_of(low, high)
                    # equations leave a distance of rounding of the largest value, which falls by the discount alone
                    is_rounding = float((high - low).max()) <= precision * float(np.abs([low, high]).max())
                    if is_rounding and gap * game.discount**_FEW > precision:
                        break
            missing = float((high - low - precision * np.maximum(1.0, np.abs(low))).max(initial=0.0))
            if 2 * change < (1 - game.discount) * missing:  # all further sweeps together will not do
                break
    except KeyboardInterrupt:
        status = SolverStatus.INTERRUPTED
    policy = layout.policy(sides[-game.agent][1], game.policy)
    return solution_of(layout.by_state(low), layout.by_state(high), policy, precision, sweeps, status)


def _sweep(layout: SweepLayout, sides: Sides) -> float:
    """Tighten the bounds on both sides by one sweep, in place, and return the largest change.

    The next one is smaller by the discount at least, up to rounding.
    """
    new = {side: (bounds.copy(), rows.copy()) for side, (bounds, rows) in sides.items()}
    below, above = ((values, values, best_row) for values, best_row in new.values())
    layout.sweep_both(0, layout.n_undecided, below, above)
    change = max(float((side * (bounds - new[side][0])).max(initial=0.0)) for side, (bounds, _) in sides.items())
    for side, (bounds, rows) in sides.items():
        keep_tighter(bounds, rows, *new[side], side)
    return change


def _solved(
    layout: SweepLayout, values: FloatArray, solve: Callable[[ComponentChain], FloatArray | None]
) -> FloatArray:
    """Return about the values of both players' best moves, by policy iteration from the given ones.

    Nothing is proved, as both players move at once, which may go round in circles. Where a factorisation has too many
    entries, or the equations of a chain have no solution, the values so far are returned.
    """
    for _ in range(_MAX_POLICIES):
        moves = Component(layout, 0, layout.n_undecided, values, values, layout.first_row, np.inf)
        chain = chain_of(moves, values, moves.greedy(values))
        solution = solve(chain) if is_cheap(chain) else None
        if solution is None:
            break
        before, values = values, solution
        if np.abs(values - before).max(initial=0.0) <= _NO_CHANGE * np.abs(values).max(initial=1.0):
            break
    return values


def _discounted_values(chain: ComponentChain, *, discount: float) -> FloatArray | None:
    """Return the values of a chain, gains and costs by themselves as solutions must not be negative, or None."""
    reward = chain.constants[:, 0]
    gains_and_costs = np.column_stack([np.maximum(reward, 0.0), np.maximum(-reward, 0.0), np.ones(len(reward))])
    solution = solve_chain(replace(chain, entry=discount * chain.entry, constants=gains_and_costs))
    return None if solution is None else solution[:, 0] - solution[:, 1]


def _take_over(layout: SweepLayout, sides: Sides, guess: FloatArray) -> None:
    """Tighten the bounds, in place, by values that are about right, moved outward until a step proves them.

    If a step moves the values outward by m at most, then with a discount γ it leaves values that are moved outward by
    m / (1 - γ) where they are, or moves them inward.
    """
    if not np.isfinite(guess).all():
        return
    away, rounding = 1.0 - float(layout.rows.discount), _ROUNDINGS * UNIT * float(np.abs(guess).max(initial=0.0))
    for side, (bounds, rows) in sides.items():
        after, _ = stepped(layout, guess, rows, side)
        missing = (1 + MARGIN) * float((side * (after - guess)).max(initial=0.0))
        new = guess + side * (missing + rounding) / away
        after, new_rows = stepped(layout, new, rows, side)
        if (side * after <= side * new).all():  # induction, with the rounding of the step against us
            keep_tighter(bounds, rows, new, new_rows, side)


def stepped(layout: SweepLayout, values: FloatArray, rows: IntArray, side: float) -> tuple[FloatArray, IntArray]:
    """Return values after one step of both players, rounded outward, and the agent's rows in it."""
    after, new_rows = np.full(len(values), -np.inf), rows.copy()
    layout.sweep(0, layout.n_undecided, values, after, new_rows, side=side)
    return after, new_rows


def solve_average(game: Game, precision: float, max_sweeps: int, layout: SweepLayout) -> Solution:
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
                if sweeps > _ENOUGH and high - low > _GAIN * last_gap:
                    break  # several averages, of which none is of all states
                next_solution, last_gap = 2 * next_solution, high - low
                relative = _solved(layout, relative, _relative_values_of)
            relative -= relative[0]
    except KeyboardInterrupt:
        status = SolverStatus.INTERRUPTED
    lower, upper = np.where(inside, low, least), np.where(inside, high, most)
    policy = layout.policy(best_row, game.policy)
    ended = solution_of(np.array([low]), np.array([high]), policy, precision, sweeps, status)  # of states inside
    return replace(ended, lower=read_only(layout.by_state(lower)), upper=read_only(layout.by_state(upper)))


def _outward(differences: FloatArray, side: float) -> FloatArray:
    """Return differences that were rounded once, moved outward unless they are zero, which is exact."""
    return np.where(differences == 0, 0.0, np.nextafter(differences, side))


def is_reached(graph: Graph) -> BoolArray:
    """Return the states (n_states) that can be reached from the initial one, by any choices."""
    reached, waiting = np.zeros(graph.n_states, dtype=np.bool_), np.empty(graph.n_states, dtype=np.int32)
    graph_kernels.search(
        graph.first_transition[graph.first_choice], graph.successor, graph.initial_state, waiting, reached
    )
    return reached


def _relative_values_of(chain: ComponentChain) -> FloatArray | None:
    """Return about the values of the states of a chain less that of the first, or None if they are not unique.

    With the average reward g they solve g + h = r + P h, if the chain has one recurrent class.
    """
    from scipy.sparse import csc_array, eye_array, hstack

    n, reward = len(chain.constants), chain.constants[:, 0]
    bordered = hstack([np.ones((n, 1)), (eye_array(n, format="csc") - csc_array(chain.matrix))[:, 1:]])
    factors = factorised(bordered)
    if factors is None:
        return None
    solution = factors.solve(reward)
    return np.append(0.0, solution[1:]) if np.isfinite(solution).all() else None


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
