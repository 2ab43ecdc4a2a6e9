"""Solves discounted games: value iteration from below and from above at once."""

from __future__ import annotations

import numpy as np

from plumdp.model.graph import FloatArray, IntArray
from plumdp.solver.component import keep_tighter
from plumdp.solver.game import Game
from plumdp.solver.layout import SweepLayout, lay_out
from plumdp.solver.problem import Progress
from plumdp.solver.solution import Solution, SolverStatus, gap_of, solution_of


def solve_discounted(
    game: Game,
    precision: float,
    max_sweeps: int,
    start: Solution | None,
    progress: Progress | None,
    layout: SweepLayout | None = None,
) -> Solution:
    """Return the solution by value iteration from below and above: a contraction, in which both sides stay bounds."""
    layout = layout or lay_out(game.with_all_undecided())
    far = (1 + 1e-9) / (1.0 - game.discount)
    low = np.full(layout.n_undecided, min(0.0, float(game.reward.min(initial=0.0))) * far)
    high = np.full(layout.n_undecided, max(0.0, float(game.reward.max(initial=0.0))) * far)
    rows = {-1.0: layout.first_row.copy(), 1.0: layout.first_row.copy()}
    if start is not None:
        for bounds, side in ((low, -1.0), (high, 1.0)):
            _start_discounted(layout, bounds, rows[side], start.lower[layout.state], precision, side)
    sweeps, status = 0, SolverStatus.CONVERGED
    gap = first_gap = gap_of(low, high)
    try:
        while sweeps < max_sweeps and gap > precision:
            new = {side: (bounds.copy(), rows[side].copy()) for bounds, side in ((low, -1.0), (high, 1.0))}
            below, above = ((values, values, best_row) for values, best_row in new.values())
            layout.sweep_both(0, layout.n_undecided, below, above)
            for bounds, side in ((low, -1.0), (high, 1.0)):
                keep_tighter(bounds, rows[side], *new[side], side)
            sweeps += 1
            gap = gap_of(low, high)
            if progress:  # the gap falls by a factor with each sweep
                progress(*_share_of_way(gap, first_gap, precision))
    except KeyboardInterrupt:
        status = SolverStatus.INTERRUPTED
    policy = layout.policy(rows[-game.agent], game.policy)
    return solution_of(layout.by_state(low), layout.by_state(high), policy, precision, sweeps, status)


def _start_discounted(
    layout: SweepLayout, bounds: FloatArray, rows: IntArray, guess: FloatArray, precision: float, side: float
) -> None:
    """Start from values of a similar problem, moved outward a little, if a step proves that they are a bound."""
    new = guess + side * precision * np.maximum(1.0, np.abs(guess))
    stepped, new_rows = np.full(len(new), -np.inf), rows.copy()
    layout.sweep(0, layout.n_undecided, new, stepped, new_rows, side=side)
    if np.isfinite(new).all() and (side * stepped <= side * new).all():
        keep_tighter(bounds, rows, new, new_rows, side)


def _share_of_way(gap: float, first: float, precision: float) -> tuple[int, int]:
    """Return which share of the sweeps is done, in hundredths, for a gap that falls geometrically to the precision."""
    if not precision < gap <= first or first <= precision:
        return 100, 100
    return round(100 * np.log(first / gap) / np.log(first / precision)), 100
