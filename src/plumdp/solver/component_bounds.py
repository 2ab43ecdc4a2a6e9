"""Certified bounds of one component, from below by sweeps, and from above by values that induction verifies.

Three rules make a vector a bound (Φ is one step of both players at their best, rounded against us):

- below: Φ applied to a lower bound gives a lower bound, so sweeps from zero may stop at any time;
- below, for a candidate L: Φ(L) > L wherever L > 0, since play then leaves those states almost surely, and gains on
  average; for rewards until a target Φ(L) >= L, since a play that stays forever costs infinitely much anyway;
- above, for a candidate U: Φ(U) <= U (Park's induction); for rewards until a target Φ(U) < U, where the decrease makes
  the target certain.

The rows of the agent that a bound was proved with are kept with it, state by state (``keep_tighter``). So the policy
that is returned attains the lower bound if the agent wants large values, and the upper bound if it wants small ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumdp.solver.component import Component, keep_tighter
from plumdp.solver.equation_bounds import solve_equations, tighten_swept, worthwhile_sweeps
from plumdp.solver.induction import LIFT
from plumdp.solver.policy_iteration import better_moves, evaluate_moves, first_moves, hinted_moves

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
    sweeps, converged = _iterate_from_below(part, precision / 16, min(_PATIENCE, max_sweeps))
    if converged:
        converged, used = _bound_from_above(part, precision, min(_PATIENCE, max_sweeps - sweeps))
        sweeps += used
        if converged:
            tighten_swept(part, precision)
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
    sweeps, converged = _iterate_from_below(component, precision / 16, min(patience, max_sweeps))
    if converged:
        converged, used = _bound_from_above(component, precision, min(patience, max_sweeps - sweeps))
        sweeps += used
        if converged:
            tighten_swept(component, precision)
            return sweeps
    if sweeps >= max_sweeps or solve_equations(component, precision):
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
