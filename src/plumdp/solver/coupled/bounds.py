"""Bounds on the value of a policy that hold at every point of a region, with one point for all states of a run.

Let W(s, x) = w⁰ + w¹·x (+ xᵀ W² x) be any functions on the points of a region, exact where runs are over, and let their
residuals R = r + P W - W be at most e, with e > 0. If the expected sum of e until a run is over is at most M, nature
being at its worst, then the value differs from W by at most M at every point of the region. For a single point is one
of nature's strategies. As e > 0, runs end almost surely at it, so that the value V is the only solution of V = r + P V.
Now D = V - W satisfies D = R + P D, so that D is the sum of all Pⁿ R.

If rows may be off by a misfit in total variation, the residual of a row is off by at most the misfit times the range of
W over its successors. That is added to e, and nature may be off as well. See the page "Rows that are a little off".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import nextafter

import numpy as np

from plumdp.base.rounding import ULP, UNIT
from plumdp.model.graph import Indices
from plumdp.model.objective import Kind, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, check_policy
from plumdp.model.text import one_line
from plumdp.region.ball import ball_around, smaller_ball
from plumdp.region.shapes import Region
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.coupled.brackets import (
    Bracket,
    Piece,
    Setting,
    approximation_of,
    bracket_of,
    brackets_of,
    intersection,
    setting_of,
)
from plumdp.solver.coupled.by_cycles import Cycles, average_of, cycles_of
from plumdp.solver.coupled.by_slabs import bracket_by_slabs
from plumdp.solver.coupled.by_steps import expand_by_steps, known_value
from plumdp.solver.coupled.chain import PolicyChain, policy_chain
from plumdp.solver.coupled.forms import MAX_DEGREE
from plumdp.solver.coupled.gradient import policy_gradient
from plumdp.solver.coupled.remainder import ErrorModel, StepErrors, error_model, step_errors
from plumdp.solver.draws import draw_first, stretched

_MAX_BYTES = 2e9  # of curvatures
_MAX_WORK = 2e8  # steps times transitions
_MAX_DIMENSION = 4  # for slabs
_MAX_NODES = 50_000  # for slabs
_LARGE = 0.25  # share of the remainder from which on another ball is tried
MATTERS = 0.02  # share of the remainder from which on more is tried
_NO_CYCLES = "nothing proves that runs of the policy come back to the state in which they are most often"


@dataclass(frozen=True)
class Proof:
    """Bounds on the value of a policy in the initial state at every point of a region, and what proves them.

    ``statistics`` is the range of the linear part over the region, ``remainder`` the bound on all that is not linear,
    ``rounding`` the margin for floats. They sum to ``upper - lower``, unless bounds were cut to [0, 1].

    Each end has pieces that hold the region, on each of which an approximation proves it. Where one minus the value is
    what was expanded, they are about that: the pieces of ``low`` bound it from above.
    """

    lower: float
    upper: float
    statistics: float
    remainder: float
    rounding: float
    kind: str  # "first order", "second order", "first order in 4 slabs", or one for each end
    low: tuple[Piece, ...] = field(default=(), compare=False)
    high: tuple[Piece, ...] = field(default=(), compare=False)
    is_complement: bool = False
    cycle: CycleBounds | None = field(default=None, compare=False)  # of an average in the long run

    def __repr__(self) -> str:
        return one_line(self, f"{self.lower:.6g} to {self.upper:.6g}", self.kind)


def find_coupled_bounds(
    model: ParametricMDP,
    policy: Policy,
    objective: Objective,
    region: Region,
    uncertain: IntervalMDP,
    *,
    precision: float = 1e-6,
) -> Proof | str:
    """Return bounds on the value of a policy that hold at every point of a region, or in words why there are none.

    ``uncertain`` is a relaxation of the model that allows for all points of the region; if it tolerates a misfit, so do
    the bounds. The remainder is bounded up to the precision.
    """
    chosen = check_policy(model.graph, policy)
    if chosen.dtype.kind == "f":  # the value is that of the model in which the draw is a step, at every point
        draws = draw_first(model.graph, chosen)
        of_draws = draws.model(model), draws.only, stretched(objective, model.graph)
        return find_coupled_bounds(*of_draws, region, draws.intervals(uncertain), precision=precision)
    flipped = objective.flipped()
    if flipped is not None:
        bounds = find_coupled_bounds(model, policy, flipped, region, uncertain, precision=precision)
        return bounds if isinstance(bounds, str) else _one_minus(bounds)
    if objective.kind is Kind.AVERAGE:
        return _by_cycles(model, chosen, objective, region, uncertain, precision)
    chain = usable_chain(model, chosen, objective, uncertain)
    if isinstance(chain, str):
        return chain
    if chain.n_open == 0:
        value = known_value(chain, objective, model.graph.n_states)
        return Proof(value, value, 0.0, 0.0, 0.0, "known")
    setting = setting_of(model, chain, region, uncertain)
    if not fits(setting, setting.forms.curvatures.shape[1]):
        return "the products of so many parameters take too much memory"
    too_long = steps_reason(objective, chain)
    if too_long:
        return too_long
    if objective.n_steps is not None:
        of_steps = step_errors(chain, uncertain, discount_of(chain))
        brackets = _by_steps(setting, objective, model.graph.n_states, of_steps)
    else:
        errors = error_model(chain, uncertain, discount_of(chain))
        brackets = _by_orders(setting, errors, precision)
        ball = smaller_ball(region, setting.ball) if is_poor(brackets) else None
        if ball is not None:
            other = _by_orders(setting_of(model, chain, region, uncertain, ball=ball), errors, precision)
            # brackets of both balls hold, so that the better ends do
            brackets = joined(brackets, other)
    if isinstance(brackets, str):
        return brackets
    # the value of a probability is between zero and its cap
    least = 0.0 if objective.cap < np.inf else -np.inf
    return best_of(brackets, least=least, most=objective.cap)


def _by_cycles(
    model: ParametricMDP,
    policy: Indices,
    objective: Objective,
    region: Region,
    uncertain: IntervalMDP,
    precision: float,
) -> Proof | str:
    """Return bounds on an average reward in the long run."""
    cycle = cycle_bounds(model, policy, objective, region, uncertain, precision)
    if isinstance(cycle, str):
        return cycle
    excess = cycle.excess
    lower, upper = average_of(cycle.less, (excess.lower, excess.upper), (cycle.length.lower, cycle.length.upper))
    slack = cycle.cycles.rounding(cycle.less)  # of each step's reward, and so of the average
    lower, upper = lower - slack, upper + slack
    scale = (upper - lower) / (excess.upper - excess.lower) if excess.upper > excess.lower else 1.0
    statistics, remainder, rounding = (scale * part for part in (excess.statistics, excess.remainder, excess.rounding))
    return Proof(lower, upper, statistics, remainder, rounding + 2 * slack, excess.kind, cycle=cycle)


@dataclass(frozen=True, eq=False)
class CycleBounds:
    """The cycles of a policy, the number c that its reward is less for each step, and bounds on D and T (by_cycles)."""

    cycles: Cycles
    relaxed: IntervalMDP
    less: float
    length: Proof
    excess: Proof


def cycle_bounds(
    model: ParametricMDP,
    policy: Indices,
    objective: Objective,
    region: Region,
    uncertain: IntervalMDP,
    precision: float,
) -> CycleBounds | str:
    """Return bounds on length and reward of a cycle, or why there are none."""
    centre = ball_around(region, model.space.dimension).centre
    cycles = cycles_of(model, policy, objective, centre)
    if isinstance(cycles, str):
        return cycles
    relaxed = cycles.relaxed(uncertain)
    length = find_coupled_bounds(cycles.model, cycles.policy, cycles.length(), region, relaxed, precision=precision)
    if isinstance(length, str):
        return f"{_NO_CYCLES} ({length})"
    middle, _ = policy_gradient(cycles.model, cycles.policy, cycles.total(0.0), centre)
    less = 2 * middle / (length.lower + length.upper)
    excess = find_coupled_bounds(cycles.model, cycles.policy, cycles.total(less), region, relaxed, precision=precision)
    return excess if isinstance(excess, str) else CycleBounds(cycles, relaxed, less, length, excess)


def usable_chain(
    model: ParametricMDP,
    chosen: Indices,
    objective: Objective,
    uncertain: IntervalMDP,
    starts: Indices | None = None,
) -> PolicyChain | str:
    """Return the chain of a policy, or the reason why it does not have coupled bounds."""
    if uncertain.expression is not model.expression and not np.array_equal(uncertain.expression, model.expression):
        return "the relaxation is not one of the model's expressions"
    chain = policy_chain(model, chosen, objective, starts)
    if isinstance(chain, str):
        return chain
    if model.expressions.degree[chain.expression].max(initial=0) > MAX_DEGREE:
        return f"some expression is of a degree above {MAX_DEGREE}"
    return replace(chain, misfit=uncertain.misfit)


def steps_reason(objective: Objective, chain: PolicyChain) -> str:
    """Return why a number of steps is too large for expansions, or nothing."""
    is_long = objective.n_steps is not None and objective.n_steps * len(chain.successor) > _MAX_WORK
    return "so many steps of so large a chain take too long" if is_long else ""


def is_poor(brackets: list[Bracket] | str) -> bool:
    """Return whether there are no brackets, or the best is mostly remainder, so that another ball is worth a try."""
    if isinstance(brackets, str):
        return True
    best = intersection(brackets)
    return best.remainder > _LARGE * best.width


def joined(one: list[Bracket] | str, other: list[Bracket] | str) -> list[Bracket] | str:
    """Return the brackets of both, or the reason why there are none."""
    if isinstance(one, str):
        return one if isinstance(other, str) else other
    return one if isinstance(other, str) else [*one, *other]


def _by_orders(setting: Setting, errors: ErrorModel, precision: float) -> list[Bracket] | str:
    """Return brackets of first and second order, and in slabs if the remainder matters."""
    d = setting.forms.dimension
    orders = (1, 2) if fits(setting, d * (d + 1) // 2) else (1,)
    brackets = brackets_of(setting, errors, precision, orders=orders)
    if isinstance(brackets, str):
        return brackets
    best = min(brackets.found, key=lambda each: each.width)
    if best.remainder <= MATTERS * best.width or not 1 <= d <= _MAX_DIMENSION or setting.chain.n_open > _MAX_NODES:
        return brackets.found
    order = 1 if best is brackets.found[0] else 2
    sliced = bracket_by_slabs(setting, brackets.slope, intersection(brackets.found), errors, precision, order=order)
    return brackets.found if sliced is None else [*brackets.found, sliced]


def _by_steps(setting: Setting, objective: Objective, n_states: int, errors: StepErrors) -> list[Bracket] | str:
    """Return brackets of first and, if the remainder matters, second order for a number of steps."""
    d = setting.forms.dimension
    brackets: list[Bracket] = []
    for order in (1, 2):
        is_enough = order == 2 and brackets[0].remainder <= MATTERS * brackets[0].width
        if is_enough or not fits(setting, d * (d + 1) // 2 if order == 2 else 0):
            break
        steps = expand_by_steps(setting.chain, setting.forms, objective, n_states, errors, order=order)
        if not np.isfinite([steps.below, steps.above]).all():
            return "the remainder is not finite"
        start = setting.chain.initial
        guess = approximation_of(steps.expansion, start, steps.below, steps.above, steps.rounding)
        brackets.append(bracket_of(guess, setting.linear_range(guess.slope)))
    return brackets


def fits(setting: Setting, width: int) -> bool:
    """Return whether a packed matrix of some width for each node and each expression fits into memory."""
    return 8 * width * (setting.chain.n_nodes + len(setting.forms.means)) <= _MAX_BYTES


def discount_of(chain: PolicyChain) -> Fraction | None:
    """Return a discount that is not below the chain's one before it was rounded, or None if there is none."""
    # rounded up: a larger discount makes the sum of residuals larger, which is safe
    return None if chain.discount == 1 else Fraction(min(nextafter(chain.discount, 1), 1 - UNIT))


def best_of(brackets: Sequence[Bracket], *, least: float, most: float) -> Proof:
    """Return the best ends of brackets that all hold, cut to where the value is, such as [0, 1] for a probability."""
    best = intersection(brackets)
    low, high = best.low, best.high
    kind = low.kind if low.kind == high.kind else f"{low.kind} below, {high.kind} above"
    lower, upper = min(max(low.value, least), most), max(min(high.value, most), least)
    parts = low.statistics + high.statistics, best.remainder, low.rounding + high.rounding
    return Proof(lower, upper, *parts, kind, low.pieces, high.pieces)


def _one_minus(bounds: Proof) -> Proof:
    """Return bounds on one minus a probability, rounded outward except for zero and one, which are exact."""
    lower, upper = 1 - bounds.upper, 1 - bounds.lower
    return replace(
        bounds,
        lower=max(lower - (ULP if 0 < bounds.upper < 1 else 0.0), 0.0),
        upper=min(upper + (ULP if 0 < bounds.lower < 1 else 0.0), 1.0),
        low=bounds.high,
        high=bounds.low,
        is_complement=True,
    )
