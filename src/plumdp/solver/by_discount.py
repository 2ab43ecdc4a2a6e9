"""The solver of discounted games, by value iteration from below and above, and by exact solutions where that is slow.

Value iteration brings the bounds closer by the discount with each sweep: 0.99 takes some two thousand sweeps. So now
and then the equations of both players' best moves are solved. A step from their solution says how far off it is.
Moved outward by so much, divided by one minus the discount, it is a bound if one more step proves it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np

from plumdp.base.rounding import UNIT
from plumdp.model.graph import FloatArray, IntArray
from plumdp.solver.chains import chain_of, is_cheap, solve_chain
from plumdp.solver.component import Component, keep_tighter
from plumdp.solver.game import Game
from plumdp.solver.induction import MARGIN
from plumdp.solver.layout import SweepLayout, lay_out
from plumdp.solver.problem import Progress
from plumdp.solver.solution import Solution, SolverStatus, gap_of, solution_of

_PATIENCE = 16  # sweeps before equations are solved; they are solved again after twice as many, and so on
_MANY = 64  # sweeps: with fewer to go, equations do not pay
_MAX_POLICIES = 30  # whose equations are solved in one go
_NO_CHANGE = 1e-14  # of the largest value
_ROUNDINGS = 8  # by which steps from values that differ by a constant may differ by more, or less, than they should

Sides: TypeAlias = dict[float, tuple[FloatArray, IntArray]]
"""Bounds from below (-1) and from above (+1), by position, each with the agent's rows that attain it."""


def solve_discounted(
    game: Game,
    precision: float,
    max_sweeps: int,
    start: Solution | None,
    progress: Progress | None,
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
    sweeps, status, next_solution = 0, SolverStatus.CONVERGED, _PATIENCE
    gap = first_gap = gap_of(low, high)
    try:
        while sweeps < max_sweeps and gap > precision:
            change = _sweep(layout, sides)
            sweeps += 1
            gap = gap_of(low, high)
            if sweeps == next_solution:
                next_solution *= 2
                if gap * game.discount**_MANY > precision:
                    _take_over(layout, sides, _solved(layout, (low + high) / 2))
                    gap = gap_of(low, high)
            if progress:  # the gap falls by a factor with each sweep
                progress(*_share_of_way(gap, first_gap, precision))
            if 2 * change < (1 - game.discount) * (gap - precision):  # all further sweeps together will not do
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


def _solved(layout: SweepLayout, values: FloatArray) -> FloatArray:
    """Return about the values of both players' best moves, by policy iteration from the given ones.

    Nothing is proved, as both players move at once, which may go round in circles. Where a factorisation has too many
    entries, the values so far are returned.
    """
    discount = float(layout.rows.discount)
    for _ in range(_MAX_POLICIES):
        moves = Component(layout, 0, layout.n_undecided, values, values, layout.first_row, np.inf)
        chain = chain_of(moves, values, moves.greedy(values))
        if not is_cheap(chain):
            break
        reward = chain.constants[:, 0]
        gains_and_costs = np.column_stack([np.maximum(reward, 0.0), np.maximum(-reward, 0.0), np.ones(len(reward))])
        solution = solve_chain(replace(chain, entry=discount * chain.entry, constants=gains_and_costs))
        if solution is None:
            break
        before, values = values, solution[:, 0] - solution[:, 1]
        if np.abs(values - before).max(initial=0.0) <= _NO_CHANGE * np.abs(values).max(initial=1.0):
            break
    return values


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


def _share_of_way(gap: float, first: float, precision: float) -> tuple[int, int]:
    """Return the share of sweeps done, in hundredths, for a gap that falls geometrically to the precision."""
    if not precision < gap <= first or first <= precision:
        return 100, 100
    return round(100 * np.log(first / gap) / np.log(first / precision)), 100
