"""Policy iteration for slow components, which improves both players' moves until their values can be proved.

Where two ways out of a component compete, the states that take one of them border on those that take the other. One
state alone gains nothing by a change of sides, only next to the border it does. So policy iteration moves the border by
a few states for each exact solution, which is of the whole component though nothing changes elsewhere. In a layout
whose inner edges are short, a window of neighbouring positions is a component of its own, with fixed values around it.
Exact solutions of windows move the border at the cost of a window (``follow_fronts``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from plumdp.model.graph import FloatArray, IntArray
from plumdp.solver.chains import approach, chain_of, solve_chain
from plumdp.solver.component import Component, Hint

_REACH = 8  # half of a window, in lengths of the longest inner edge
_LONG = 8  # halves of windows that a component has at least, if windows are to pay
_LOCAL = 0.01  # share of the rows that change, at most, if windows are to pay
_VISITS = 4  # of each window, at most
_SOLUTIONS = 30  # for each visit of a window
SWEEPS_BETWEEN = 4  # sweeps over all rows for one exact solution


def follow_fronts(component: Component, values: FloatArray, rows: IntArray, old_rows: IntArray) -> None:
    """Improve values and rows, in place, in windows around the rows that have changed, until they change no more.

    Nothing is done where many rows change, or where edges are long. The values are proposals, as are the rows.
    """
    changed = np.flatnonzero(rows[component.part] != old_rows[component.part])
    if not 0 < len(changed) <= _LOCAL * len(component):
        return
    half = _REACH * max(longest_edge(component), 1)
    starts = list(range(component.start, component.end - half, half))
    if len(starts) < _LONG:
        return
    last = len(starts) - 1
    near = np.concatenate([changed // half, changed // half - 1]).clip(0, last)
    queue = deque(np.unique(near).tolist())
    visits = [0] * len(starts)
    while queue:
        number = queue.popleft()
        visits[number] += 1
        end = min(starts[number] + 2 * half, component.end)
        # the values around the window stay fixed
        window = Component(component.layout, starts[number], end, values, values, rows, component.cap)
        if _settle(window, values, rows):
            neighbours = (number - 1, number + 1)
            queue.extend(k for k in neighbours if 0 <= k <= last and k not in queue and visits[k] < _VISITS)


def improve_by_sweeps(component: Component, values: FloatArray, rows: IntArray) -> None:
    """Move values and rows towards the best ones, in place, by some sweeps over all rows."""
    for number in range(SWEEPS_BETWEEN):
        component.layout.sweep(
            component.start, component.end, values, values, rows, side=-component.agent, backwards=number % 2 == 1
        )


def longest_edge(component: Component) -> int:
    """Return the largest number of positions that an inner edge of a component leads over."""
    rows, n = component.layout.rows, len(component)
    ends = rows.first[rows.first_choice[component.start : component.end + 1]].astype(np.int64)
    source = np.repeat(np.arange(n), np.diff(ends))
    target = rows.successor[ends[0] : ends[-1]].astype(np.int64) - component.start
    lengths = np.abs(target - source)[(target >= 0) & (target < n)]
    return int(lengths.max(initial=0))


def _settle(window: Component, values: FloatArray, rows: IntArray) -> bool:
    """Improve values and rows of a window by policy iteration, in place, and return whether rows have changed."""
    part, column = window.part, 1 if window.agent < 0 else 0
    has_changed = False
    for _ in range(_SOLUTIONS):
        solution = solve_chain(chain_of(window, values, rows))
        if solution is None:
            break
        values[part], before = solution[:, column], rows[part].copy()
        improve_by_sweeps(window, values, rows)
        if (rows[part] == before).all():
            break
        has_changed = True
    return has_changed


_MAX_POLICIES = 30  # if both players move at once, which may go round in circles
_MAX_ANSWERED = 300  # if nature answers first, so that values improve each time
_MAX_ROUNDS = 400  # rounds of sweeps that improve the moves
_TOO_LONG = 1e12  # steps: what floats say about longer runs is not worth many policies
_LITTLE = 1e-14  # of the largest value
_ROUNDING = 2e-15  # of the largest value: more than one step of both players is rounded by
_ROUND = 60  # sweeps over a chain for two over all rows
_SETTLING = 3  # exact solutions after which the rows that still change are taken to lie at fronts
_ACCURATE = 1e-3  # of the precision: what good moves leave to gain
_SETTLED = 100.0  # of the precision: change at which unchanged rows are taken as settled


@dataclass(frozen=True, eq=False)
class JointMoves:
    """The moves of both players, rows of the agent, and values ``judge`` that nature optimises."""

    judge: FloatArray  # the values that nature optimises, by position of the whole layout
    best_row: IntArray  # by position, of the whole layout


@dataclass(frozen=True, eq=False)
class Candidates:
    """Values that may be lower (-1.0) and upper bounds (+1.0), the widest first, and what moves them outward."""

    moves: JointMoves  # whose values they are
    solution: FloatArray  # of ``evaluate_moves`` for them
    values: dict[float, list[FloatArray]]
    judge: dict[float, FloatArray]  # by which the next moves are found
    most: float  # what the precision allows for each step


def improve_policies(
    component: Component, precision: float, moves: JointMoves, solution: FloatArray, *, side: float, at_once: bool
) -> Iterator[Candidates]:
    """Yield candidates for bounds, better and better for the side -1 of lower or +1 of upper bounds.

    The first are those of the moves, whose ``evaluate_moves`` is given. Next moves are the best by that side's last
    candidate. With ``at_once`` both players move at once, which is fast. Without, the agent only moves once nature has
    answered its last move.
    """
    part, bounds = component.part, component.high if side > 0 else component.low
    for number in range(_MAX_POLICIES if at_once else _MAX_ANSWERED):
        if number >= _MAX_POLICIES and float(solution[:, 2].max()) > _TOO_LONG:
            return
        candidates = candidates_of(component, precision, moves, solution)
        yield candidates
        new = candidates.judge[side]
        change = float(np.max(np.abs(new - moves.judge[part]) / np.maximum(1.0, np.abs(new))))
        judge = bounds.copy()
        judge[part] = new
        greedy = component.greedy(judge)
        is_answered = change <= 1e-14
        if is_answered and (at_once or (greedy[part] == moves.best_row[part]).all()):
            return
        moves = JointMoves(judge, greedy if at_once or is_answered else moves.best_row)
        next_solution = evaluate_moves(component, moves)
        if next_solution is None and component.is_reward:  # nature would stay forever: make it leave
            moves = JointMoves(first_moves(component).judge, moves.best_row)
            next_solution = evaluate_moves(component, moves)
        if next_solution is None:
            return
        solution = next_solution


def evaluate_moves(component: Component, moves: JointMoves) -> FloatArray | None:
    """Return lower values, upper values and expected steps (n, 3) under the moves, or None if they may not end."""
    return solve_chain(chain_of(component, moves.judge, moves.best_row))


def expected_sums(component: Component, moves: JointMoves, amounts: FloatArray) -> FloatArray | None:
    """Return the expected sums of three amounts (n, 3) until the component is left, or None if it may not be."""
    return solve_chain(replace(chain_of(component, moves.judge, moves.best_row), constants=amounts))


def candidates_of(component: Component, precision: float, moves: JointMoves, solution: FloatArray) -> Candidates:
    """Return the values if each step costs a little (below) or pays a little more (above), the widest first.

    What a step costs or pays is as much as the precision allows, or little more than rounding. With the former, players
    who lose by it leave the component, so that it judges the next moves on that side. Where runs are so long that
    rounding adds up to more than the precision, there is one that leaves room for it.
    """
    lower, upper, steps = solution.T
    largest = max(1.0, float(np.abs(lower).max()))
    most = float((precision / 4 * np.maximum(1.0, np.abs(lower)) / steps).min())
    # room is never less than rounding, and little never more than the precision allows
    room, little = max(most, _ROUNDING * largest), min(most, _LITTLE * largest)
    candidates: dict[float, list[FloatArray]] = {}
    judge = {}
    for side, values in ((-1.0, lower), (1.0, upper)):
        fees = list(dict.fromkeys((room, most, little)))
        candidates[side] = [np.clip(values + side * fee * steps, 0.0, component.cap) for fee in fees]
        judge[side] = candidates[side][fees.index(most if (side > 0) == component.is_reward else little)]
    return Candidates(moves, solution, candidates, judge, most)


def hinted_moves(component: Component, hint: Hint) -> JointMoves | None:
    """Return the moves of a similar game, or None if its values were infinite."""
    judge = component.low.copy()
    judge[component.part] = hint.values[component.part]
    if not np.isfinite(judge[component.part]).all():
        return None
    component.greedy(judge)  # leaves rows in nature's order
    best_row = component.best_row.copy()
    best_row[component.part] = hint.best_row[component.part]
    return JointMoves(judge, best_row)


def first_moves(component: Component) -> JointMoves:
    """Return moves to start from.

    For rewards nature optimises ranks, which are zero outside, so that it leaves if it helps. An agent who wants small
    rewards starts with rows that make the target certain, whatever nature does.
    """
    if component.is_reward:
        assert component.layout.rank is not None
        judge = np.where(np.isinf(component.high), np.inf, 0.0)
        judge[component.part] = component.layout.rank[component.part]
    else:
        judge = component.low.copy()
    best_row = component.greedy(judge)
    if component.is_reward and component.agent < 0:
        best_row = component.layout.first_row
    elif not component.is_reward and component.agent > 0:
        best_row = component.best_row.copy()  # the rows that raised the values, not those that merely keep them
    return JointMoves(judge, best_row)


def better_moves(component: Component, moves: JointMoves, *, at_most: int = _MAX_POLICIES) -> JointMoves:
    """Return moves improved, so many times at most, by sweeps that start from the exact values of the last ones.

    Policy iteration alone changes one state after the other along a chain. Sweeps propagate changes along it, and long
    chains are improved in windows (``follow_fronts``). Moves of nature against an agent that wants large values are
    returned unchanged, since upward sweeps would not see what nature does.
    """
    if component.agent > 0 > component.nature:
        return moves
    part, column = component.part, 1 if component.agent < 0 else 0
    for number in range(at_most):
        solution = evaluate_moves(component, moves)
        if solution is None:
            break
        values, best_row = (component.high if column else component.low).copy(), moves.best_row.copy()
        values[part] = solution[:, column]
        improve_by_sweeps(component, values, best_row)
        if number >= _SETTLING:
            follow_fronts(component, values, best_row, moves.best_row)
        is_settled = bool((best_row[part] == moves.best_row[part]).all())
        moves = JointMoves(values, best_row)
        if is_settled:
            break
    return moves


def good_moves(component: Component, precision: float, moves: JointMoves) -> JointMoves:
    """Return moves that are close to the best, by modified policy iteration (Puterman and Shin, 1978).

    Some sweeps over the chain of the moves alternate with two over all rows, which improve the moves.
    """
    values, best_row, judge = component.low.copy(), moves.best_row.copy(), moves.judge
    for _ in range(_MAX_ROUNDS):
        rows, approached = best_row[component.part].copy(), values[component.part].copy()
        approach(chain_of(component, judge, best_row), approached, _ROUND)
        values[component.part] = approached
        judge = values
        for backwards in (False, True):
            component.layout.sweep(
                component.start, component.end, values, values, best_row, side=-component.agent, backwards=backwards
            )
        change = float((np.abs(values[component.part] - approached) / np.maximum(1.0, approached)).max())
        is_settled = change <= _SETTLED * precision and (best_row[component.part] == rows).all()
        if is_settled or change <= _ACCURATE * precision:
            break
    return JointMoves(values, component.greedy(values))
