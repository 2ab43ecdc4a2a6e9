"""Certified bounds of one component: from below by sweeps, and from above by values that induction verifies.

Three rules make a vector a bound (Φ is one step of both players at their best, rounded against us):

- below: Φ applied to a lower bound gives a lower bound, so sweeps from zero may stop at any time;
- below, for a candidate L: Φ(L) > L wherever L > 0, since play then leaves those states almost surely, and gains on
  average; for rewards until a target Φ(L) >= L, since a play that stays forever costs infinitely much anyway;
- above, for a candidate U: Φ(U) <= U (Park's induction); for rewards until a target Φ(U) < U, where the decrease makes
  the target certain.

The rows of the agent that a bound was proved with are kept with it, state by state (``keep_tighter``): the policy that
is returned attains the lower bound if the agent wants large values, and the upper bound if it wants small ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from plumdp.model.graph import FloatArray
from plumdp.rounding import UNIT
from plumdp.solver import chain_kernels
from plumdp.solver.chains import chain_of, fill
from plumdp.solver.component import Component, keep_tighter
from plumdp.solver.policy_iteration import (
    Candidates,
    Moves,
    better_moves,
    evaluate_moves,
    expected_sums,
    first_moves,
    good_moves,
    hinted_moves,
    improve_policies,
)

_LIFT = 1e-13  # what an upward sweep adds for rewards, so that the decrease is strict
_ATTEMPTS = 12
_PATIENCE = 40  # sweeps before equations are solved instead
_PATIENCE_IF_LARGE = 12
_LARGE = 5_000  # states
_CHEAP_FILL = 5_000_000  # entries of a factorisation: below, solving equations again and again costs little
_THIN = 100  # entries of a factorisation for each state: below, it costs as much as some dozen sweeps
_BLIND_SWEEPS = 5_000  # where nothing tells how long runs are
_PROPOSALS = 300  # policies that are evaluated for one proposal, which is enough along any chain met so far
_MAX_PROOF = 100  # steps in which a candidate may be moved outward
_CLOSE_ATTEMPTS = 4  # for a candidate that is moved by what a step misses
_TIGHT = 1e-10  # relative: closer bounds are left as they are
_SETTLED = 1e-9  # of the largest value: with more to gain in a step, moves are not the best
_MARGIN = 2.0**-6  # of what a step misses, in the first attempt

Outward = Callable[[FloatArray, FloatArray, int], FloatArray | None]
"""From a candidate, what a step made of it and the number of attempts before to the next candidate, if any."""


def bound_part(part: Component, precision: float, max_sweeps: int) -> int:
    """Write certified values of one or more neighbouring components; return the number of sweeps.

    Several are first swept as if they were one, which costs less as they are small; if one of them is slow, one by one.
    """
    pieces = part.layout.components(part.start, part.end)
    if len(pieces) == 1:
        return bound_component(part, precision, max_sweeps)
    sweeps, converged = _iterate_from_below(part, precision / 16, min(_PATIENCE, max_sweeps))
    if converged:
        converged, used = _bound_from_above(part, precision, min(_PATIENCE, max_sweeps - sweeps))
        sweeps += used
        if converged:
            return sweeps
    return sweeps + sum(bound_component(replace(part, start=a, end=b), precision, max_sweeps) for a, b in pieces)


def propose_part(part: Component, precision: float, max_sweeps: int) -> int:
    """Write values close to the best, and rows that attain about these, without proving anything; return the sweeps.

    For an agent that wants large values against nature, policy iteration needs the proofs: they are then made.
    """
    if part.agent > 0 > part.nature:
        return bound_part(part, precision, max_sweeps)
    sweeps, converged = _iterate_from_below(part, precision, min(_PATIENCE, max_sweeps))
    if not converged:
        for start, end in part.layout.components(part.start, part.end):
            _propose(replace(part, start=start, end=end))
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
    """Write certified values into the component's arrays; return the number of sweeps."""
    patience = _PATIENCE if len(component) <= _LARGE else _PATIENCE_IF_LARGE
    sweeps, converged = _iterate_from_below(component, precision / 16, min(patience, max_sweeps))
    if converged:
        converged, used = _bound_from_above(component, precision, max_sweeps - sweeps)
        sweeps += used
        if converged:
            return sweeps
    if sweeps >= max_sweeps or _solve_equations(component, precision):
        return sweeps
    max_sweeps = _worthwhile_sweeps(component, max_sweeps)
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


def _iterate_from_below(component: Component, tolerance: float, budget: int) -> tuple[int, bool]:
    """Sweep from below until a sweep changes little; every sweep leaves lower bounds."""
    for used in range(1, max(budget, 1) + 1):
        _, change = component.sweep(used, component.low, side=-1.0)
        if change <= tolerance:
            return used, True
    return used, False


def _bound_from_above(component: Component, precision: float, budget: int) -> tuple[bool, int]:
    """Guess values just above the lower bounds and sweep: once no value grows, they are upper bounds."""
    low, guess = component.low[component.part], component.high[component.part]
    best, rows = guess.copy(), component.best_row[component.part].copy()
    wanted = precision * np.maximum(1.0, np.abs(low))
    guess[:] = np.minimum(low + wanted / 2, component.cap)
    lift = _LIFT if component.is_reward else 0.0
    shift = _LIFT
    is_bound = is_close = False
    try:
        for used in range(1, max(min(budget, 2000), 1) + 1):
            n_larger, change = component.sweep(used, component.high, side=1.0, lift=lift)
            if n_larger == 0:
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


def _solve_equations(component: Component, precision: float) -> bool:
    """Improve both players' moves with exact solutions of their chains, until the result is proved from both sides.

    First both at once, which is fast, from moves that sweeps have improved; if that fails, the agent only moves once
    nature has answered its last move. If equations cost much, good moves are sought by sweeps before, and there is one
    attempt. Returns whether the result is as precise as asked for, or as rounding allows.
    """
    moves = first_moves(component)
    is_cheap = fill(chain_of(component, moves.judge, moves.best_row)) <= max(_CHEAP_FILL, _THIN * len(component))
    if not is_cheap:
        return _prove_candidates(component, precision, good_moves(component, precision, moves), is_cheap=False)
    hinted = None if component.hint is None else hinted_moves(component, component.hint)
    return (
        (hinted is not None and _prove_candidates(component, precision, hinted, is_cheap=True))
        or _prove_candidates(component, precision, better_moves(component, first_moves(component)), is_cheap=True)
        or _prove_candidates(component, precision, first_moves(component), is_cheap=True, at_once=False)
    )


def _worthwhile_sweeps(component: Component, max_sweeps: int) -> int:
    """Return the number of sweeps that may get anywhere: none if runs take more steps under good moves."""
    solution = evaluate_moves(component, better_moves(component, first_moves(component)))
    if solution is None:  # runs may be too long for floats
        return min(max_sweeps, _BLIND_SWEEPS)
    return 0 if float(solution[:, 2].max()) > max_sweeps else max_sweeps


def _prove_candidates(
    component: Component, precision: float, moves: Moves, *, is_cheap: bool, at_once: bool = True
) -> bool:
    """Return whether both sides are proved, close to each other; the bounds keep the best that was proved.

    The first side is the one on which staying in the component costs, so that the chain of the moves leaves it. The
    other one goes on from its last moves.
    """
    solution = evaluate_moves(component, moves)
    if solution is None:
        return False
    for side in (1.0, -1.0) if component.is_reward else (-1.0, 1.0):
        candidates: Candidates | None = None
        for candidates in improve_policies(component, precision, moves, solution, side=side, at_once=at_once):
            proved = _prove_any(component, candidates, 1)
            if _is_close(component, precision):
                if is_cheap:
                    _tighten(component, candidates)
                return True
            if side in proved and not is_cheap:  # the first moves were good: next is the other side
                break
        else:
            assert candidates is not None  # those of the first moves, at least
            _prove_any(component, candidates, _MAX_PROOF)
            is_settled = (is_cheap and _tighten(component, candidates)) or _are_proved(component, candidates)
            if is_settled or _is_close(component, precision):
                return True
        moves, solution = candidates.moves, candidates.solution
    return False


def _prove_any(component: Component, candidates: Candidates, attempts: int) -> set[float]:
    """Return the sides on which a candidate was proved, the closest one first."""
    proved, most = set(), candidates.most if attempts == 1 else np.inf
    for side, (*wider, closest) in candidates.values.items():
        by_steps = partial(_moved_by_steps, side=side, steps=candidates.solution[:, 2], most=most)
        if prove(component, component.bounds(side), closest, side, _CLOSE_ATTEMPTS, outward=by_steps) or any(
            prove(component, component.bounds(side), candidate, side, attempts) for candidate in reversed(wider)
        ):
            proved.add(side)
    return proved


def _are_proved(component: Component, candidates: Candidates) -> bool:
    """Return whether the bounds are no further apart than the widest candidates, and agree with the judges.

    Where they do not agree the moves are not the best: others may bring the bounds closer.
    """
    low, high = component.low[component.part], component.high[component.part]
    is_proved = (candidates.values[-1.0][0] <= low) & (high <= candidates.values[1.0][0])
    return bool((is_proved & (candidates.judge[-1.0] <= high) & (low <= candidates.judge[1.0])).all())


def _tighten(component: Component, candidates: Candidates) -> bool:
    """Return whether the values of settled moves are proved from both sides, as closely as rounding allows.

    They are moved outward by what each step misses, summed up over a run: where few states are rounded by much, that is
    far less than a fee for each step.
    """
    if _is_close(component, _TIGHT):
        return False
    values = {-1.0: candidates.solution[:, 0], 1.0: candidates.solution[:, 1]}
    largest = max(1.0, float(np.abs(values[-1.0]).max()))
    missing = {side: _missing(component, values[side], side) for side in values}
    if max(float(each.max()) for each in missing.values()) > _SETTLED * largest:
        return False
    amounts = [(1 + _MARGIN) * each + 4 * UNIT * largest for each in missing.values()]
    sums = expected_sums(component, candidates.moves, np.column_stack([*amounts, np.ones(len(component))]))
    if sums is None:
        return False
    proved = []
    for side, further in zip(values, sums.T[:2], strict=True):
        more = partial(_moved_further, by=side * further / 4)
        moved = np.clip(values[side] + side * further, 0.0, component.cap)
        proved.append(prove(component, component.bounds(side), moved, side, _CLOSE_ATTEMPTS, outward=more))
    return all(proved)


def _moved_further(candidate: FloatArray, stepped: FloatArray, attempt: int, *, by: FloatArray) -> FloatArray:
    return candidate + by


def _missing(component: Component, values: FloatArray, side: float) -> FloatArray:
    """Return by how much one step moves values outward, in each state."""
    source, stepped = component.bounds(side).copy(), component.room(-np.inf)
    source[component.part] = values
    component.layout.sweep(component.start, component.end, source, stepped, component.best_row.copy(), side=side)
    return np.maximum(side * (stepped[component.part] - values), 0.0)


def _is_close(component: Component, precision: float) -> bool:
    low, high = component.low[component.part], component.high[component.part]
    return bool((high - low <= precision * np.maximum(1.0, np.abs(low))).all())


def prove(
    component: Component,
    bounds: FloatArray,
    candidate: FloatArray,
    side: float,
    attempts: int = _MAX_PROOF,
    *,
    outward: Outward | None = None,
) -> bool:
    """Improve the bounds by the candidate, moved outward until induction proves it; else leave them as they are."""
    part = component.part
    best, rows = bounds[part].copy(), component.best_row[part].copy()
    strict = (side > 0) == component.is_reward
    outward = outward or partial(_moved_by_states, side=side, strict=strict)
    try:
        for attempt in range(attempts):
            bounds[part] = candidate
            stepped = component.room(-np.inf)  # a downward sweep writes only what is larger
            component.layout.sweep(component.start, component.end, bounds, stepped, component.best_row, side=side)
            if chain_kernels.is_inductive(component.start, component.end, bounds, stepped, side, strict):
                keep_tighter(best, rows, candidate, component.best_row[part], side)
                return True
            moved = outward(candidate, stepped[part], attempt)
            if moved is None:
                break
            candidate = np.clip(moved, 0.0, component.cap)
        return False
    finally:  # also when interrupted: leave a bound, and the rows that attain it
        bounds[part], component.best_row[part] = best, rows


def _moved_by_states(
    candidate: FloatArray, stepped: FloatArray, attempt: int, *, side: float, strict: bool
) -> FloatArray:
    """Return a candidate with each state moved outward to where a step has led it."""
    lift = side * _LIFT * np.maximum(1.0, np.abs(candidate)) if strict else 0.0
    moved: FloatArray = (np.minimum if side < 0 else np.maximum)(candidate, stepped + lift)
    if not strict and attempt >= 10:  # only rounding changes values: make those equal that differ by it
        grain = _LIFT * 2.0 ** (attempt // 8) * max(1.0, float(np.abs(moved).max()))
        moved = side * np.ceil(side * moved / grain) * grain
    return moved


def _moved_by_steps(
    candidate: FloatArray, stepped: FloatArray, attempt: int, *, side: float, steps: FloatArray, most: float
) -> FloatArray | None:
    """Return a candidate moved outward, for each expected step, by what one step misses; None if that is too much.

    If the steps are those of the best moves, a step from there misses nothing.
    """
    missing = float((side * (stepped - candidate)).max())
    fee = (1 + _MARGIN * 4.0**attempt) * missing + UNIT * float(np.abs(candidate).max())
    return candidate + side * fee * steps if fee <= most else None
