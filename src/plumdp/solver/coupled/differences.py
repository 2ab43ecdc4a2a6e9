"""Bounds on the difference of two policies' values that hold at every point of a region.

Values of two policies move together with the parameters. So both are expanded about one centre, with W and W' within
the errors e and e' of them, and V - V' = (W - W') + (e - e'): slopes and curvatures are subtracted before the region is
asked how far they lead, and only the remainders are added up.

Averages in the long run are g = c + D / T for each policy (see ``by_cycles``). With t about T, this is c + D / t plus
D (1 / T - 1 / t), which is small, as D is about zero and T about t. So D / t is expanded for each policy, and what is
small is bounded by the bounds on D and T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from plumdp.base.rounding import UNIT, UP
from plumdp.model.graph import Indices
from plumdp.model.objective import Kind, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, check_policy
from plumdp.region.ball import Ball, ball_around, smaller_ball
from plumdp.region.shapes import Region
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.coupled.bounds import (
    CoupledBounds,
    best_of,
    cycle_bounds,
    discount_of,
    fits,
    is_poor,
    joined,
    steps_reason,
    usable_chain,
)
from plumdp.solver.coupled.brackets import (
    ENDLESS,
    Approximation,
    Bracket,
    Setting,
    approximation_of,
    bracket_of,
    expandable,
    setting_of,
)
from plumdp.solver.coupled.by_steps import expand_by_steps, known_value
from plumdp.solver.coupled.linear_part import linear_range
from plumdp.solver.coupled.remainder import StepErrors, error_model, step_errors
from plumdp.solver.reductions.drawn_policy import draw_first, stretched

_MEMORY = "the products of so many parameters take too much memory"


def find_difference_bounds(
    model: ParametricMDP,
    first: Policy,
    second: Policy,
    objective: Objective,
    region: Region,
    uncertain: IntervalMDP,
    *,
    precision: float = 1e-6,
) -> CoupledBounds | str:
    """Return bounds on the value of one policy less that of another at every point of a region, or why there are none.

    ``uncertain`` is a relaxation of the model that allows for all points of the region.
    """
    flipped = objective.flipped()
    if flipped is not None:  # (1 - V) - (1 - V') = V' - V
        return find_difference_bounds(model, second, first, flipped, region, uncertain, precision=precision)
    sides = [_side(model, policy, objective, uncertain) for policy in (first, second)]
    if objective.kind is Kind.AVERAGE:
        return _of_averages(sides, region, precision)
    return _of_sides(sides, region, precision, most=objective.cap)


def _of_sides(sides: Sequence[_Side], region: Region, precision: float, *, most: float) -> CoupledBounds | str:
    ball = ball_around(region, sides[0].model.space.dimension)
    brackets = _brackets(sides, region, ball, precision)
    other = smaller_ball(region, ball) if is_poor(brackets) else None
    if other is not None:
        # brackets about both centres hold, so that the better ends do
        brackets = joined(brackets, _brackets(sides, region, other, precision))
    return brackets if isinstance(brackets, str) else best_of(brackets, least=-most, most=most)


def _of_averages(sides: Sequence[_Side], region: Region, precision: float) -> CoupledBounds | str:
    """Return bounds on the difference of two averages."""
    of_cycles, less, small = [], [], 0.0
    for side in sides:
        cycle = cycle_bounds(side.model, side.policy, side.objective, region, side.uncertain, precision)
        if isinstance(cycle, str):
            return cycle
        shortest, longest = max(cycle.length.lower, 1.0), max(cycle.length.upper, 1.0)
        middle = (shortest + longest) / 2
        most = max(abs(cycle.excess.lower), abs(cycle.excess.upper))
        # |D (1 / T - 1 / t)|, and the rounding of rewards in D / t
        small += most * ((longest - shortest) / 2 + UNIT * longest) / (shortest * middle)
        small += cycle.cycles.rounding(cycle.less) * longest / middle
        less.append(cycle.less)
        of_cycles.append(
            _Side(cycle.cycles.model, cycle.cycles.policy, cycle.cycles.total(cycle.less), cycle.relaxed, middle)
        )
    bounds = _of_sides(of_cycles, region, precision, most=inf)
    if isinstance(bounds, str):
        return bounds
    apart, slack = less[0] - less[1], 8 * UNIT * (abs(less[0]) + abs(less[1]) + abs(bounds.lower) + abs(bounds.upper))
    wider = small * UP + slack
    return replace(
        bounds,
        lower=bounds.lower + apart - wider,
        upper=bounds.upper + apart + wider,
        remainder=bounds.remainder + 2 * small,
        rounding=bounds.rounding + 2 * slack,
    )


@dataclass(frozen=True, eq=False)
class _Side:
    """One policy as the only one of a model, which is that with the draws first if it draws."""

    model: ParametricMDP
    policy: Indices
    objective: Objective
    uncertain: IntervalMDP
    per: float | None = None  # what the value is divided by


def _side(model: ParametricMDP, policy: Policy, objective: Objective, uncertain: IntervalMDP) -> _Side:
    chosen = check_policy(model.graph, policy)
    if chosen.dtype.kind != "f":
        return _Side(model, chosen, objective, uncertain)
    draws = draw_first(model.graph, chosen)
    return _Side(draws.model(model), draws.only, stretched(objective, model.graph), draws.intervals(uncertain))


def _brackets(sides: Sequence[_Side], region: Region, ball: Ball, precision: float) -> list[Bracket] | str:
    """Return brackets of the difference about the centre of a ball, of each order that both values have."""
    of_sides = []
    for side in sides:
        approximations = _approximations(side, region, ball, precision)
        if isinstance(approximations, str):
            return approximations
        of_sides.append(approximations)
    both = [(one, other) for one, other in zip(*of_sides, strict=False) if one is not None and other is not None]
    differences = [one - other for one, other in both]
    return [bracket_of(each, linear_range(region, ball, each.slope)) for each in differences] or ENDLESS


def _approximations(side: _Side, region: Region, ball: Ball, precision: float) -> list[Approximation | None] | str:
    """Return the approximations of a policy's value, of first and second order, or why there are none."""
    if side.per is not None:
        whole, per = _approximations(replace(side, per=None), region, ball, precision), side.per
        return whole if isinstance(whole, str) else [None if each is None else each.divided_by(per) for each in whole]
    chain = usable_chain(side.model, side.policy, side.objective, side.uncertain)
    if isinstance(chain, str):
        return chain
    n_states, d = side.model.graph.n_states, side.model.space.dimension
    width = d * (d + 1) // 2
    if chain.n_open == 0:
        value = known_value(chain, side.objective, n_states)
        return [Approximation(value, np.zeros(d), np.zeros(size), 0.0, 0.0, 0.0) for size in (0, width)]
    setting = setting_of(side.model, chain, region, side.uncertain, ball=ball)
    if not fits(setting, setting.forms.curvatures.shape[1]):
        return _MEMORY
    orders = (1, 2) if fits(setting, width) else (1,)
    if side.objective.n_steps is not None:
        return _by_steps(side, setting, step_errors(chain, side.uncertain, discount_of(chain)), orders)
    start = expandable(setting)
    if isinstance(start, str):
        return start
    errors = error_model(chain, side.uncertain, discount_of(chain))
    return [*start.approximations(errors, precision, orders=orders)]


def _by_steps(
    side: _Side, setting: Setting, errors: StepErrors, orders: Sequence[int]
) -> list[Approximation | None] | str:
    """Return the approximations of the value over a number of steps.

    The chain of a setting numbers its expressions anew, so that the errors are those of the chain before that.
    """
    objective, chain = side.objective, setting.chain
    too_long = steps_reason(objective, chain)
    if too_long:
        return too_long
    approximations: list[Approximation | None] = []
    for order in orders:
        steps = expand_by_steps(chain, setting.forms, objective, side.model.graph.n_states, errors, order=order)
        is_finite = np.isfinite([steps.below, steps.above]).all()
        at_start = approximation_of(steps.expansion, chain.initial, steps.below, steps.above, steps.rounding)
        approximations.append(at_start if is_finite else None)
    return approximations
