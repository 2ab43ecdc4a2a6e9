"""The best policy of an interval MDP, with certified lower and upper values for every state."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from plumdp.errors import ModelError
from plumdp.model.graph import BoolArray, FloatArray, IntArray, read_only
from plumdp.model.objective import Nature, Objective, Reach, Reward
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import check_policy
from plumdp.model.text import html_table, number_of, one_line
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.rounding import ULP
from plumdp.solver.component import Component, Hint, keep_tighter
from plumdp.solver.component_bounds import close_part
from plumdp.solver.game import Game, close_certain, make_game, plain_game
from plumdp.solver.known_support import is_support_relevant, reduce_known_support
from plumdp.solver.layout import Board, lay_out

CLOSED = "closed"
OPEN = "open: some bounds are further apart than asked for; they hold all the same"
INTERRUPTED = "interrupted: the bounds so far hold"


@dataclass(frozen=True, eq=False)
class Solution:
    """Certified values and a policy: the value of state ``s`` lies between ``lower[s]`` and ``upper[s]``.

    The policy names one choice per state (its number in the graph); followed forever, against the nature that was asked
    for, it attains ``lower`` if large values are better and ``upper`` if small ones are. For objectives with a number
    of steps it is the choice of the first step. ``status`` is "closed" where the bounds are as close as asked for in
    every state.
    """

    lower: FloatArray  # (n_states)
    upper: FloatArray  # (n_states)
    policy: IntArray  # (n_states)
    status: str
    sweeps: int

    def __repr__(self) -> str:
        return one_line(self, number_of(len(self.lower), "state"), number_of(self.sweeps, "sweep"), self.status)

    def _repr_html_(self) -> str:
        first = min(len(self.lower), 10)
        rows = [(s, f"{self.lower[s]:.6g}", f"{self.upper[s]:.6g}", self.policy[s]) for s in range(first)]
        more = f"<p>{first:,} of {number_of(len(self.lower), 'state')}; {html.escape(self.status)}</p>"
        return html_table(rows, ("state", "lower", "upper", "choice")) + more


def solve(
    imdp: IntervalMDP,
    objective: Objective,
    *,
    nature: Nature | None = None,
    precision: float = 1e-6,
    max_sweeps: int = 100_000,
    start: Solution | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Solution:
    """Return certified values of all states, and a policy that is optimal up to the precision.

    ``nature`` is "robust" (against the agent, the default) or "optimistic" (with the agent). The precision is relative
    for values above 1. Stopping early, by ``max_sweeps`` or by hand, loosens the bounds and never breaks them.
    ``start`` is the solution of a similar problem on the same graph: it saves time if policies are alike, and is not
    trusted. ``progress`` is called with the number of states solved and of all to be solved, after each component.

    >>> from plumdp import case_study, instantiate
    >>> study = case_study("betting:25")
    >>> solution = solve(instantiate(study.model, study.true_point), study.objective)
    >>> print(f"{solution.lower[0]:.6f} {solution.upper[0]:.6f} {solution.status}")
    19.042863 19.042863 closed
    """
    require_problem("solve", imdp, objective)
    check_request(imdp, objective, precision)
    player: Nature = nature or objective.nature or "robust"
    if player not in ("robust", "optimistic"):
        raise ModelError(f"nature={player!r}: write 'robust' (against the agent) or 'optimistic' (with the agent)")
    if start is not None:
        check_policy(imdp.graph, start.policy)
    if isinstance(objective, Reach) and objective.complement:
        opposite = None if start is None else complement(start)
        return complement(
            solve(
                imdp,
                flipped(objective),
                nature=player,
                precision=precision,
                max_sweeps=max_sweeps,
                start=opposite,
                progress=progress,
            )
        )
    if objective.steps is not None:
        return _solve_steps(imdp, objective, player, progress)
    if imdp.known_support and is_support_relevant(imdp, objective, player):
        return _solve_known_support(imdp, objective, player, precision, max_sweeps, start, progress)
    game = make_game(imdp, objective, player)
    if isinstance(objective, Reward) and objective.discount is not None:
        return _solve_discounted(game, precision, max_sweeps, start, progress)
    return solve_game(game, lay_out(game), objective, precision, max_sweeps, start, progress)


def solve_game(
    game: Game,
    board: Board,
    objective: Objective,
    precision: float,
    max_sweeps: int,
    start: Solution | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Solution:
    """Return the solution of a game without a bound on its steps and without a discount, laid out on a board."""
    cap = np.inf if isinstance(objective, Reward) else 1.0
    solution = _solve_components(game, board, precision, max_sweeps, cap, start, progress)
    if isinstance(objective, Reach) and solution.status == OPEN:  # slow exits: some values may be one for certain
        certain = close_certain(game, objective.target)
        if certain.is_open.sum() < game.is_open.sum():
            return _solve_components(certain, lay_out(certain), precision, max_sweeps, cap, start, progress)
    return solution


def _solve_components(
    game: Game,
    board: Board,
    precision: float,
    max_sweeps: int,
    cap: float,
    start: Solution | None,
    progress: Callable[[int, int], None] | None,
) -> Solution:
    """Solve component by component, successors first; components without inner edges take one pass."""
    low, high = (bounds[board.state] for bounds in game.known_bounds())
    low[: board.n_open], high[: board.n_open] = 0.0, cap
    best_row = board.first_row.copy()
    hint = None if start is None else Hint(start.lower[board.state], board.rows_of(start.policy))
    sweeps, status = 0, CLOSED
    try:
        for first, end, is_loose in board.parts:
            if is_loose:
                board.sweep(first, end, low, low, best_row, side=-1.0)
                board.sweep(first, end, high, high, best_row, side=1.0, cap=cap)
                sweeps += 1
            else:
                part = Component(board, first, end, low, high, best_row, cap, hint)
                sweeps += close_part(part, precision, max_sweeps)
                part.improve_rows()
            if progress:
                progress(end, board.n_open)
    except KeyboardInterrupt:
        status = INTERRUPTED
    policy = board.policy(best_row, game.policy)
    return solution_of(board.by_state(low), board.by_state(high), policy, precision, sweeps, status)


def _solve_known_support(
    imdp: IntervalMDP,
    objective: Objective,
    nature: Nature,
    precision: float,
    max_sweeps: int,
    start: Solution | None,
    progress: Callable[[int, int], None] | None,
) -> Solution:
    """Solve a problem with the same values in which nature may drop transitions."""
    reduced = reduce_known_support(imdp, objective, nature)
    similar = None
    if start is not None:
        values, policy = reduced.hint(start.lower, start.policy)
        similar = replace(start, lower=values, upper=values, policy=policy)
    solution = solve(
        reduced.imdp,
        reduced.objective,
        nature=nature,
        precision=precision,
        max_sweeps=max_sweeps,
        start=similar,
        progress=progress,
    )
    lower, upper = (read_only(bounds[reduced.state]) for bounds in (solution.lower, solution.upper))
    return replace(solution, lower=lower, upper=upper, policy=read_only(reduced.policy(solution.policy)))


def _solve_steps(
    imdp: IntervalMDP, objective: Objective, nature: Nature, progress: Callable[[int, int], None] | None
) -> Solution:
    """Backward induction over the steps; each is one pass, rounded outward on both sides."""
    assert objective.steps is not None
    board = lay_out(replace(plain_game(imdp, objective, nature), is_open=np.ones(imdp.graph.n_states, dtype=np.bool_)))
    n_steps = objective.steps[1] if isinstance(objective, Reach) else objective.steps
    best_row = board.first_row.copy()
    low = high = _at_step(objective, np.zeros(imdp.graph.n_states), n_steps)[board.state]
    for step in range(n_steps - 1, -1, -1):
        new_low, new_high = np.full(len(low), -np.inf), np.full(len(high), np.inf)
        board.sweep(0, board.n_open, low, new_low, best_row, side=-1.0)
        board.sweep(0, board.n_open, high, new_high, best_row, side=1.0)
        low = _at_step(objective, board.by_state(new_low), step)[board.state]
        high = _at_step(objective, board.by_state(new_high), step)[board.state]
        if progress:
            progress(n_steps - step, n_steps)
    policy = board.policy(best_row, imdp.graph.first_choice[:-1])
    return Solution(read_only(board.by_state(low)), read_only(board.by_state(high)), read_only(policy), CLOSED, n_steps)


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


def _solve_discounted(
    game: Game,
    precision: float,
    max_sweeps: int,
    start: Solution | None,
    progress: Callable[[int, int], None] | None,
) -> Solution:
    """Value iteration from below and from above at once: the operator is a contraction, and both sides stay bounds."""
    board = lay_out(replace(game, is_open=np.ones(game.imdp.graph.n_states, dtype=np.bool_)))
    far = (1 + 1e-9) / (1.0 - game.discount)
    low = np.full(board.n_open, min(0.0, float(game.reward.min(initial=0.0))) * far)
    high = np.full(board.n_open, max(0.0, float(game.reward.max(initial=0.0))) * far)
    rows = {-1.0: board.first_row.copy(), 1.0: board.first_row.copy()}
    if start is not None:
        for bounds, side in ((low, -1.0), (high, 1.0)):
            _start_discounted(board, bounds, rows[side], start.lower[board.state], precision, side)
    sweeps, status = 0, CLOSED
    gap = first_gap = _gap(low, high)
    try:
        while sweeps < max_sweeps and gap > precision:
            for bounds, side in ((low, -1.0), (high, 1.0)):
                new, new_rows = bounds.copy(), rows[side].copy()
                board.sweep(0, board.n_open, new, new, new_rows, side=side)
                keep_tighter(bounds, rows[side], new, new_rows, side)
            sweeps += 1
            gap = _gap(low, high)
            if progress:  # the gap falls by a factor with each sweep
                progress(*_steps_of_gap(gap, first_gap, precision))
    except KeyboardInterrupt:
        status = INTERRUPTED
    policy = board.policy(rows[-game.agent], game.policy)
    return solution_of(board.by_state(low), board.by_state(high), policy, precision, sweeps, status)


def _start_discounted(
    board: Board, bounds: FloatArray, rows: IntArray, guess: FloatArray, precision: float, side: float
) -> None:
    """Start from values of a similar problem, moved outward a little, if a step proves that they are a bound."""
    new = guess + side * precision * np.maximum(1.0, np.abs(guess))
    stepped, new_rows = np.full(len(new), -np.inf), rows.copy()
    board.sweep(0, board.n_open, new, stepped, new_rows, side=side)
    if np.isfinite(new).all() and (side * stepped <= side * new).all():
        keep_tighter(bounds, rows, new, new_rows, side)


def _steps_of_gap(gap: float, first: float, precision: float) -> tuple[int, int]:
    """Return how far a gap that falls geometrically has come on its way to the precision, in hundredths."""
    if not precision < gap <= first or first <= precision:
        return 100, 100
    return round(100 * np.log(first / gap) / np.log(first / precision)), 100


def flipped(objective: Reach) -> Reach:
    """Return the reach objective whose value is one minus this one's."""
    return replace(objective, complement=False, direction="min" if objective.direction == "max" else "max")


def complement(solution: Solution) -> Solution:
    """Return one minus the values, rounded outward; zero and one are exact."""
    lower, upper = (
        np.clip(1 - bounds + np.where((bounds > 0) & (bounds < 1), outward, 0.0), 0, 1)
        for bounds, outward in ((solution.upper, -ULP), (solution.lower, ULP))
    )
    return replace(solution, lower=read_only(lower), upper=read_only(upper))


def _gap(low: FloatArray, high: FloatArray) -> float:
    """Return the largest distance of two bounds, relative for values above 1."""
    with np.errstate(invalid="ignore"):
        gap = np.where(low == high, 0.0, high - low)  # infinity minus infinity included
    scale = np.maximum(1.0, np.where(np.isfinite(low), np.abs(low), 1.0))
    return float((gap / scale).max(initial=0.0))


def solution_of(
    low: FloatArray, high: FloatArray, policy: IntArray, precision: float, sweeps: int, status: str
) -> Solution:
    """Return a solution whose status says whether the bounds are as close as asked for."""
    if status == CLOSED and not _gap(low, high) <= precision:
        status = OPEN
    return Solution(read_only(low), read_only(high), read_only(policy), status, sweeps)


def require_problem(function: str, imdp: IntervalMDP, objective: Objective) -> None:
    """Refuse what is not an interval MDP with an objective, and say what to write instead."""
    if isinstance(imdp, ParametricMDP):
        raise ModelError(
            f"{function} takes an interval MDP, and this model has unknown parameters: write instantiate(model, point) "
            "for its probabilities at a point, or certify(model, counts, objective) for what data say"
        )
    if not isinstance(imdp, IntervalMDP):
        raise ModelError(
            f"{function} takes an interval MDP, such as instantiate(model, point), not {type(imdp).__name__}"
        )
    if isinstance(objective, str):
        raise ModelError(
            f"an interval MDP has no labels that a text could name: give {function} the objective "
            "parse_property(text, model)"
        )
    if not isinstance(objective, Reach | Reward):
        raise ModelError(
            f"{function} takes an objective, such as parse_property(text, model), not {type(objective).__name__}"
        )


def check_request(imdp: IntervalMDP, objective: Objective, precision: float) -> None:
    """Refuse objectives of another model, and a precision that is not one."""
    if not isinstance(precision, Real) or not precision > 0:
        raise ModelError(f"precision={precision!r}: it must be above 0")
    graph = imdp.graph
    sets: dict[str, BoolArray | None] = {"target": objective.target}
    if isinstance(objective, Reach):
        sets["avoid"] = objective.avoid
    for name, mask in sets.items():
        if mask is not None and mask.shape != (graph.n_states,):
            raise ModelError(f"{name} has shape {mask.shape}, but the model has {graph.n_states} states")
    if isinstance(objective, Reward):
        parts = (
            ("states", objective.reward.state, graph.n_states),
            ("choices", objective.reward.choice, graph.n_choices),
        )
        for things, values, size in parts:
            if values is not None and len(values) != size:
                raise ModelError(f"rewards are given for {len(values):,} {things}, but the model has {size:,}")
