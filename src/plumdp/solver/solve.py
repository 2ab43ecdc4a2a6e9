"""The best policy of an interval MDP, with certified lower and upper values for every state."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumdp.errors import ModelError
from plumdp.model.graph import BoolArray, FloatArray, IntArray, read_only
from plumdp.model.objective import Nature, Objective, Reach, Reward
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver import kernels
from plumdp.solver.component import Component
from plumdp.solver.game import Game, make_game, plain_game

CLOSED = "closed"
OPEN = "open: some bounds are further apart than asked for; they hold all the same"


@dataclass(frozen=True, eq=False)
class Solution:
    """Certified values and a policy: the value of state ``s`` lies between ``lower[s]`` and ``upper[s]``.

    The policy names one choice per state (its number in the graph); for objectives with a number of steps it is the
    choice of the first step. ``status`` is "closed" where the bounds are as close as asked for in every state.
    """

    lower: FloatArray  # (n_states)
    upper: FloatArray  # (n_states)
    policy: IntArray  # (n_states)
    status: str
    sweeps: int


def solve(
    imdp: IntervalMDP,
    objective: Objective,
    *,
    nature: Nature | None = None,
    precision: float = 1e-6,
    max_sweeps: int = 100_000,
) -> Solution:
    """Return certified values of all states, and a policy that is optimal up to the precision.

    ``nature`` is "robust" (against the agent, the default) or "optimistic" (with the agent). The precision is relative
    for values above 1. Stopping early, by ``max_sweeps`` or by hand, loosens the bounds and never breaks them.

    >>> from plumdp import benchmark, instantiate
    >>> study = benchmark("betting:25")
    >>> solution = solve(instantiate(study.model, study.true_point), study.objective)
    >>> print(f"{solution.lower[0]:.6f} {solution.upper[0]:.6f} {solution.status}")
    19.042863 19.042863 closed
    """
    player: Nature = nature or objective.nature or "robust"
    if player not in ("robust", "optimistic"):
        raise ModelError(f"nature={player!r}: write 'robust' (against the agent) or 'optimistic' (with the agent)")
    if not precision > 0:
        raise ModelError(f"precision={precision}: it must be above 0")
    _check_sets(imdp, objective)
    if isinstance(objective, Reach) and objective.complement:
        return _complement(solve(imdp, _flipped(objective), nature=player, precision=precision, max_sweeps=max_sweeps))
    if objective.steps is not None:
        return _solve_steps(imdp, objective, player)
    game = make_game(imdp, objective, player)
    if isinstance(objective, Reward) and objective.discount is not None:
        return _solve_discounted(game, precision, max_sweeps)
    return _solve_components(game, precision, max_sweeps, is_probability=isinstance(objective, Reach))


def _solve_components(game: Game, precision: float, max_sweeps: int, *, is_probability: bool) -> Solution:
    """Solve component by component, successors first; a component without inner edges takes one pass."""
    n_states = game.imdp.graph.n_states
    order = np.empty(int(game.is_open.sum()), dtype=np.int32)
    component = np.full(n_states, -1, dtype=np.int32)
    n_components = kernels.strong_components(*game.rows[:3], game.is_open, order, component)
    ends = np.searchsorted(component[order], np.arange(n_components), side="right")
    cap = 1.0 if is_probability else np.inf
    low, high = game.known.copy(), np.where(game.is_open, cap, game.known)
    policy = game.imdp.graph.first_choice[:-1].copy()
    buffers = game.buffers()
    sweeps = 0
    for start, end, is_loose in _stretches(game, order, component, ends):
        states = order[start:end]
        if is_loose:
            kernels.pass_once(states, *game.all_rows, low, high, policy, *buffers)
            sweeps += 1
        else:
            sweeps += Component(game, states, low, high, policy, buffers).solve(precision, max_sweeps)
    return _solution(low, high, policy, precision, sweeps)


def _stretches(game: Game, order: IntArray, component: IntArray, ends: IntArray) -> list[tuple[int, int, bool]]:
    """Return the components as parts of the order, neighbouring ones without inner edges joined."""
    graph = game.imdp.graph
    starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    owner = np.repeat(np.arange(graph.n_states, dtype=np.int32), np.diff(graph.first_transition[graph.first_choice]))
    loops = np.zeros(graph.n_states, dtype=np.bool_)
    loops[owner[graph.successor == owner]] = True
    is_loose = (ends - starts == 1) & ~loops[order[starts]] if len(ends) else np.zeros(0, dtype=np.bool_)
    parts: list[tuple[int, int, bool]] = []
    change = np.flatnonzero(~(is_loose[1:] & is_loose[:-1])) + 1 if len(ends) else np.zeros(0, dtype=np.intp)
    for block in np.split(np.arange(len(ends)), change):
        if len(block):
            parts.append((int(starts[block[0]]), int(ends[block[-1]]), bool(is_loose[block[0]])))
    return parts


def _solve_steps(imdp: IntervalMDP, objective: Objective, nature: Nature) -> Solution:
    """Backward induction over the steps; each is one pass, rounded outward on both sides."""
    assert objective.steps is not None
    game = plain_game(imdp, objective, nature)
    n_steps = objective.steps[1] if isinstance(objective, Reach) else objective.steps
    everything = np.arange(imdp.graph.n_states, dtype=np.int32)
    policy, unused = imdp.graph.first_choice[:-1].copy(), imdp.graph.first_choice[:-1].copy()
    buffers = game.buffers()
    low = high = _at_step(objective, np.zeros(imdp.graph.n_states), n_steps)
    for step in range(n_steps - 1, -1, -1):
        new_low, new_high = np.empty_like(low), np.empty_like(high)
        kernels.step_values(everything, *game.all_rows, -1.0, low, new_low, policy, *buffers)
        kernels.step_values(everything, *game.all_rows, 1.0, high, new_high, unused, *buffers)
        low, high = _at_step(objective, new_low, step), _at_step(objective, new_high, step)
    return Solution(read_only(low), read_only(high), read_only(policy), CLOSED, n_steps)


def _at_step(objective: Objective, values: FloatArray, step: int) -> FloatArray:
    """Return the values at a step of the run: a target counts within its window, a state to avoid ends the run."""
    if isinstance(objective, Reward):
        return values if objective.target is None else np.where(objective.target, 0.0, values)
    assert objective.steps is not None
    first, last = objective.steps
    counts = objective.target & (first <= step)
    if step == last:
        return counts.astype(np.float64)
    return np.where(counts, 1.0, np.where(objective.avoid, 0.0, values))


def _solve_discounted(game: Game, precision: float, max_sweeps: int) -> Solution:
    """Value iteration from below and from above at once: the operator is a contraction, and both sides stay bounds."""
    n_states = game.imdp.graph.n_states
    far = 1.0 / (1.0 - game.discount) * (1 + 1e-9)
    low = np.full(n_states, min(0.0, float(game.reward.min(initial=0.0))) * far)
    high = np.full(n_states, max(0.0, float(game.reward.max(initial=0.0))) * far)
    everything = np.arange(n_states, dtype=np.int32)
    policy, unused = game.imdp.graph.first_choice[:-1].copy(), game.imdp.graph.first_choice[:-1].copy()
    sides = ((low, -1.0, policy), (high, 1.0, unused)) if game.agent > 0 else ((low, -1.0, unused), (high, 1.0, policy))
    buffers = game.buffers()
    for sweeps in range(1, max_sweeps + 1):
        for values, side, choices in sides:
            kernels.step_values(everything, *game.all_rows, side, values, values, choices, *buffers)
        if _is_closed(low, high, precision):
            break
    return _solution(low, high, policy, precision, sweeps)


def _flipped(objective: Reach) -> Reach:
    """Return the reach objective whose value is one minus this one's."""
    return replace(objective, complement=False, direction="min" if objective.direction == "max" else "max")


def _complement(solution: Solution) -> Solution:
    outward = 2.0**-52
    lower = np.clip(np.where(solution.upper == 1, 0.0, 1 - solution.upper - outward), 0, 1)
    upper = np.clip(np.where(solution.lower == 0, 1.0, 1 - solution.lower + outward), 0, 1)
    return replace(solution, lower=read_only(lower), upper=read_only(upper))


def _is_closed(low: FloatArray, high: FloatArray, precision: float) -> bool:
    with np.errstate(invalid="ignore"):
        gap = np.where(low == high, 0.0, high - low)  # infinity minus infinity included
    scale = np.maximum(1.0, np.where(np.isfinite(low), np.abs(low), 1.0))
    return bool((gap <= precision * scale).all())


def _solution(low: FloatArray, high: FloatArray, policy: IntArray, precision: float, sweeps: int) -> Solution:
    status = CLOSED if _is_closed(low, high, precision) else OPEN
    return Solution(read_only(low), read_only(high), read_only(policy), status, sweeps)


def _check_sets(imdp: IntervalMDP, objective: Objective) -> None:
    sets: dict[str, BoolArray | None] = {"target": objective.target}
    if isinstance(objective, Reach):
        sets["avoid"] = objective.avoid
    for name, mask in sets.items():
        if mask is not None and mask.shape != (imdp.graph.n_states,):
            raise ModelError(f"{name} has shape {mask.shape}, but the model has {imdp.graph.n_states} states")
