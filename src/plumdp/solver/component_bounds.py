"""Certified bounds of one component, from below by sweeps, and from above by values that induction verifies.

Three rules make a vector a bound (Φ is one step of both players at their best, rounded against us):

- below: Φ applied to a lower bound gives a lower bound, so sweeps from zero may stop at any time;
- below, for a candidate L: Φ(L) > L wherever L > 0, since play then leaves those states almost surely, and gains on
  average; for rewards until a target Φ(L) >= L, since a play that stays forever costs infinitely much anyway;
- above, for a candidate U: Φ(U) <= U (Park's induction); for rewards until a target Φ(U) < U, where the decrease makes
  the target certain.

The rows of the agent that a bound was proved with are kept with it, state by state (``keep_tighter``). So the policy
that is returned attains the lower bound if the agent wants large values, and the upper bound if it wants small ones.

Where sweeps are slow, candidates are exact solutions of both players' moves, proved as closely as rounding allows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from plumdp.base.rounding import UNIT
from plumdp.solver.chains import chain_of, is_cheap, solve_chain
from plumdp.solver.component import (
    CLOSE_ATTEMPTS,
    LIFT,
    MARGIN,
    MAX_PROOF,
    Component,
    keep_tighter,
    missing,
    moved_by_steps,
    moved_further,
    prove,
)
from plumdp.solver.policy_iteration import (
    Candidates,
    JointMoves,
    better_moves,
    candidates_of,
    evaluate_moves,
    expected_sums,
    first_moves,
    good_moves,
    hinted_moves,
    improve_policies,
)

_FEW = 2_000  # states: up to here the factorisation is small
_BLIND_SWEEPS = 5_000  # where nothing tells how long runs are
_DISCOUNT = 1e-9  # for each step, where runs are too long for floats
_DISCOUNTED_POLICIES = 30
_TIGHT = 1e-10  # relative: closer bounds are left as they are
_SETTLED = 1e-9  # of the largest value: with more to gain in a step, moves are not the best


def tighten_swept(component: Component, precision: float) -> None:
    """Prove the exact values of the moves that sweeps have led to, where an exact solution costs little."""
    high = component.high[component.part]
    if len(component) > _FEW or _is_close(component, _TIGHT) or not np.isfinite(high).all():
        return
    # rows are in nature's order by the upper bounds
    moves = JointMoves(component.high.copy(), component.best_row.copy())
    solution = evaluate_moves(component, moves)
    if solution is not None:
        _prove_any(component, candidates_of(component, precision, moves, solution))


def solve_equations(component: Component, precision: float) -> bool:
    """Improve both players' moves with exact solutions of their chains, until the result is proved from both sides.

    At first both players move at once, which is fast, from moves that sweeps have improved. If that fails, the agent
    only moves once nature has answered its last move. If equations cost much, good moves are sought by sweeps before,
    and there is one attempt. Returns whether the result is as precise as asked for, or as rounding allows.
    """
    moves = first_moves(component)
    if not is_cheap(chain_of(component, moves.judge, moves.best_row)):
        return _prove_candidates(component, precision, good_moves(component, precision, moves), solves_often=False)
    hinted = None if component.hint is None else hinted_moves(component, component.hint)
    return (
        (hinted is not None and _prove_candidates(component, precision, hinted, solves_often=True))
        or _prove_candidates(component, precision, better_moves(component, first_moves(component)), solves_often=True)
        or _prove_candidates(component, precision, first_moves(component), solves_often=True, at_once=False)
    )


def worthwhile_sweeps(component: Component, max_sweeps: int) -> int:
    """Return the number of sweeps that may converge, which is none if runs take more steps under good moves."""
    solution = evaluate_moves(component, better_moves(component, first_moves(component)))
    if solution is None:  # runs may be too long for floats
        _prove_discounted(component)
        return min(max_sweeps, _BLIND_SWEEPS)
    return 0 if float(solution[:, 2].max()) > max_sweeps else max_sweeps


def _prove_discounted(component: Component) -> None:
    """Improve the lower bounds by values with a small discount, which are finite however long runs are.

    A discount makes no value larger, and a step without it leads from these values upward.
    """
    part, moves = component.part, first_moves(component)
    for _ in range(_DISCOUNTED_POLICIES):
        chain = chain_of(component, moves.judge, moves.best_row)
        solution = solve_chain(replace(chain, entry=(1 - _DISCOUNT) * chain.entry))
        if solution is None:
            return
        judge = component.low.copy()
        judge[part] = np.clip(solution[:, 0], 0.0, component.cap)
        prove(component, component.low, judge[part], -1.0, 1)  # kept only if a step without discount proves it
        greedy = component.greedy(judge)
        if (greedy[part] == moves.best_row[part]).all() and (judge[part] == moves.judge[part]).all():
            return
        moves = JointMoves(judge, greedy)


def _prove_candidates(
    component: Component, precision: float, moves: JointMoves, *, solves_often: bool, at_once: bool = True
) -> bool:
    """Return whether both sides are proved, close to each other.

    The bounds keep the best that was proved. The first side is the one on which staying in the component costs, so that
    the chain of the moves leaves it. The other one goes on from its last moves.
    """
    solution = evaluate_moves(component, moves)
    if solution is None:
        return False
    for side in (1.0, -1.0) if component.is_reward else (-1.0, 1.0):
        candidates: Candidates | None = None
        for candidates in improve_policies(component, precision, moves, solution, side=side, at_once=at_once):
            proved = _prove_any(component, candidates)
            if _is_close(component, precision):
                if solves_often:
                    _tighten(component, candidates)
                return True
            if side in proved and not solves_often:  # the first moves were good: next is the other side
                break
        else:
            assert candidates is not None  # those of the first moves, at least
            _prove_any(component, candidates, at_last=True)
            is_settled = (solves_often and _tighten(component, candidates)) or _are_proved(component, candidates)
            if is_settled or _is_close(component, precision):
                return True
        moves, solution = candidates.moves, candidates.solution
    return False


def _prove_any(component: Component, candidates: Candidates, *, at_last: bool = False) -> set[float]:
    """Return the sides on which a candidate was proved, the closest one or else a wider one.

    At last all are tried, and moved outward state by state, which makes values equal that differ by rounding only.
    """
    proved, most = set(), np.inf if at_last else candidates.most
    for side, values in candidates.values.items():
        bounds, steps = component.bounds(side), candidates.solution[:, 2]
        by_steps = partial(moved_by_steps, side=side, steps=steps, most=most)
        is_proved = prove(component, bounds, values[-1], side, CLOSE_ATTEMPTS, outward=by_steps)
        if at_last:
            is_proved |= any(prove(component, bounds, candidate, side, MAX_PROOF) for candidate in reversed(values))
        elif not is_proved:
            is_proved = any(prove(component, bounds, candidate, side, 1) for candidate in reversed(values[:-1]))
        if is_proved:
            proved.add(side)
    return proved


def _are_proved(component: Component, candidates: Candidates) -> bool:
    """Return whether the bounds are no further apart than the widest candidates, and agree with the judges.

    Where they do not agree the moves are not the best, and others may bring the bounds closer.
    """
    low, high = component.low[component.part], component.high[component.part]
    is_proved = (candidates.values[-1.0][0] <= low) & (high <= candidates.values[1.0][0])
    return bool((is_proved & (candidates.judge[-1.0] <= high) & (low <= candidates.judge[1.0])).all())


def _tighten(component: Component, candidates: Candidates) -> bool:
    """Return whether the values of settled moves are proved from both sides, as closely as rounding allows.

    They are moved outward by what each step misses, summed up over a run. Where few states are rounded by much, that is
    far less than a fee for each step.
    """
    if _is_close(component, _TIGHT):
        return False
    values = {-1.0: candidates.solution[:, 0], 1.0: candidates.solution[:, 1]}
    largest = max(1.0, float(np.abs(values[-1.0]).max()))
    missed = {side: missing(component, values[side], side) for side in values}
    if max(float(each.max()) for each in missed.values()) > _SETTLED * largest:
        return False
    amounts = [(1 + MARGIN) * each + 2 * UNIT * largest for each in missed.values()]
    sums = expected_sums(component, candidates.moves, np.column_stack([*amounts, np.ones(len(component))]))
    if sums is None:
        return False
    proved = []
    for side, further in zip(values, sums.T[:2], strict=True):
        more = partial(moved_further, by=side * further / 8)
        moved = np.clip(values[side] + side * further, 0.0, component.cap)
        proved.append(prove(component, component.bounds(side), moved, side, CLOSE_ATTEMPTS, outward=more))
    return all(proved)


def _is_close(component: Component, precision: float) -> bool:
    low, high = component.low[component.part], component.high[component.part]
    return bool((high - low <= precision * np.maximum(1.0, np.abs(low))).all())


_ATTEMPTS = 12
_PATIENCE = 40  # sweeps before equations are solved instead
_PATIENCE_IF_LARGE = 12
_LARGE = 5_000  # states
_PROPOSALS = 300  # policies that are evaluated for one proposal, which is enough along any chain met so far


def bound_part(part: Component, precision: float, max_sweeps: int) -> int:
    """Write certified values of one or more neighbouring components, and return the number of sweeps.

    Several are first swept as if they were one, which costs less as they are small. If one of them is slow, each half
    is bounded by itself.
    """
    pieces = part.layout.components(part.start, part.end)
    if len(pieces) == 1:
        return bound_component(part, precision, max_sweeps)
    sweeps, converged = _sweep(part, precision, _PATIENCE, max_sweeps)
    if converged:
        return sweeps
    middle = pieces[len(pieces) // 2][0]
    halves = (replace(part, end=middle), replace(part, start=middle))
    return sweeps + sum(bound_part(half, precision, max_sweeps) for half in halves)


def propose_part(part: Component, precision: float, max_sweeps: int) -> int:
    """Write values close to the best, and rows that about attain them, without proofs, and return the sweeps.

    For an agent that wants large values against nature, policy iteration needs the proofs, which are then made.
    """
    if part.agent > 0 > part.nature:
        return bound_part(part, precision, max_sweeps)
    sweeps, converged = _iterate_from_below(part, precision, min(_PATIENCE, max_sweeps))
    if not converged:
        for start, end in part.layout.components(part.start, part.end):
            _propose(replace(part, start=start, end=end))
    elif part.agent < 0:  # sweeps from below have not chosen rows of an agent that wants small values
        part.best_row[part.part] = part.greedy(part.low)[part.part]
    part.high[part.part] = part.low[part.part]
    return sweeps


def _propose(component: Component) -> None:
    """Write the values of moves that exact solutions and sweeps have improved in turn."""
    hinted = None if component.hint is None else hinted_moves(component, component.hint)
    for first in (hinted, first_moves(component)):
        moves = None if first is None else better_moves(component, first, at_most=_PROPOSALS)
        solution = None if moves is None else evaluate_moves(component, moves)
        if moves is not None and solution is not None:
            component.low[component.part] = np.clip(solution[:, 0], 0.0, component.cap)
            component.best_row[component.part] = moves.best_row[component.part]
            return


def bound_component(component: Component, precision: float, max_sweeps: int) -> int:
    """Write certified values into the component's arrays, and return the number of sweeps."""
    patience = _PATIENCE if len(component) <= _LARGE else _PATIENCE_IF_LARGE
    sweeps, converged = _sweep(component, precision, patience, max_sweeps)
    if converged or sweeps >= max_sweeps or solve_equations(component, precision):
        return sweeps
    max_sweeps = worthwhile_sweeps(component, max_sweeps)
    if sweeps >= max_sweeps:
        return sweeps
    tolerance = precision / 16
    for _ in range(_ATTEMPTS):
        used, _ = _iterate_from_below(component, tolerance, max_sweeps - sweeps)
        converged, more = _bound_from_above(component, precision, max_sweeps - sweeps - used)
        sweeps += used + more
        if converged or sweeps >= max_sweeps:
            break
        tolerance /= 8
    return sweeps


def _sweep(component: Component, precision: float, patience: int, max_sweeps: int) -> tuple[int, bool]:
    """Write certified values if some sweeps from each side are enough; return their number, and whether they are."""
    sweeps, converged = _iterate_from_below(component, precision / 16, min(patience, max_sweeps))
    if converged:
        converged, used = _bound_from_above(component, precision, min(patience, max_sweeps - sweeps))
        sweeps += used
        if converged:
            tighten_swept(component, precision)
    return sweeps, converged


def _iterate_from_below(component: Component, tolerance: float, budget: int) -> tuple[int, bool]:
    """Sweep from below until a sweep changes little. Every sweep leaves lower bounds."""
    for used in range(1, max(budget, 1) + 1):
        _, change = component.sweep(used, component.low, side=-1.0)
        if change <= tolerance:
            return used, True
    return used, False


def _bound_from_above(component: Component, precision: float, budget: int) -> tuple[bool, int]:
    """Guess values just above the lower bounds and sweep until no value grows, when they are upper bounds."""
    low, guess = component.low[component.part], component.high[component.part]
    best, rows = guess.copy(), component.best_row[component.part].copy()
    wanted = precision * np.maximum(1.0, np.abs(low))
    guess[:] = np.minimum(low + wanted / 2, component.cap)
    lift = LIFT if component.is_reward else 0.0
    shift = LIFT
    is_bound = is_close = False
    try:
        for used in range(1, max(min(budget, 2000), 1) + 1):
            n_larger, change = component.sweep(used, component.high, side=1.0, lift=lift)
            if n_larger == 0:  # Φ(U) <= U: Park's induction
                is_bound = True
                keep_tighter(best, rows, guess, component.best_row[component.part], side=1.0)
                is_close = bool((best - low <= wanted).all())
            if is_close or (is_bound and change <= precision / 64) or shift > precision / 8:
                break
            if not is_bound and change <= shift and np.isfinite(guess).all():
                # only rounding changes values: move outward, and make values equal that differ by rounding
                grain = shift * max(1.0, float(np.abs(guess).max()))
                guess[:] = np.minimum(np.ceil(guess / grain + 1.0) * grain, component.cap)
                shift *= 4
    finally:  # also when interrupted: leave a bound, and the rows that attain it
        guess[:] = best
        component.best_row[component.part] = rows
    return is_close, used
