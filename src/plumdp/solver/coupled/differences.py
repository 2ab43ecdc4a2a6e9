"""Bounds on the difference of two policies' values that hold at every point of a region.

Values of two policies move together with the parameters. So both are expanded about one centre, with W and W' within
the errors e and e' of them, and V - V' = (W - W') + (e - e'): slopes and curvatures are subtracted before the region is
asked how far they lead, and only the remainders are added up, unless that of ``advantages.py`` is smaller. So it is
with weighted sums of several objectives.

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
from plumdp.solver.coupled.advantages import advantage_approximations
from plumdp.solver.coupled.bounds import (
    MATTERS,
    Proof,
    best_of,
    cycle_bounds,
    discount_of,
    fits,
    is_poor,
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
    weighted_sum,
)
from plumdp.solver.coupled.by_steps import expand_by_steps, known_value
from plumdp.solver.coupled.linear_part import linear_range
from plumdp.solver.coupled.remainder import StepErrors, error_model, step_errors
from plumdp.solver.draws import draw_first, stretched

_MEMORY = "the products of so many parameters take too much memory"


@dataclass(frozen=True, eq=False)
class Differences:
    """The differences of two policies' values in some objectives, expanded about one or two centres of a region."""

    region: Region
    caps: tuple[float, ...]  # (n_objectives): the largest value of each
    signs: tuple[float, ...]  # (n_objectives): -1 where one minus the value is expanded
    expanded: tuple[tuple[Ball, list[list[Approximation]]], ...]  # of each order there is one for each objective

    def bounds(self, weights: Sequence[float]) -> Proof:
        """Return bounds on the sum of the differences times these weights, at every point of the region."""
        signed = [sign * weight for sign, weight in zip(self.signs, weights, strict=True)]
        # brackets about all centres hold, so that the better ends do
        brackets = [each for about in self.expanded for each in _brackets(self.region, *about, signed)]
        most = sum(abs(weight) * cap for weight, cap in zip(weights, self.caps, strict=True) if weight) * UP
        return best_of(brackets, least=-most, most=most)


def find_difference_bounds(
    model: ParametricMDP,
    first: Policy,
    second: Policy,
    objective: Objective,
    region: Region,
    uncertain: IntervalMDP,
    *,
    precision: float = 1e-6,
) -> Proof | str:
    """Return bounds on the value of one policy less that of another at every point of a region, or why there are none.

    ``uncertain`` is a relaxation of the model that allows for all points of the region.
    """
    if objective.kind is Kind.AVERAGE:
        return _of_averages(
            [_side(model, policy, objective, uncertain) for policy in (first, second)], region, precision
        )
    found = find_differences(model, first, second, [objective], region, uncertain, precision=precision)
    return found if isinstance(found, str) else found.bounds([1.0])


def find_differences(
    model: ParametricMDP,
    first: Policy,
    second: Policy,
    objectives: Sequence[Objective],
    region: Region,
    uncertain: IntervalMDP,
    *,
    precision: float = 1e-6,
) -> Differences | str:
    """Return the values of one policy less those of another in some objectives, or why they cannot be expanded."""
    asked = [objective.flipped() or objective for objective in objectives]
    sides = [_side(model, policy, each, uncertain) for each in asked for policy in (first, second)]
    # (1 - V) - (1 - V') = V' - V
    signs = tuple(1.0 if objective.flipped() is None else -1.0 for objective in objectives)
    return _differences(sides, tuple(objective.cap for objective in objectives), signs, region, precision)


def _differences(
    sides: Sequence[_Side], caps: tuple[float, ...], signs: tuple[float, ...], region: Region, precision: float
) -> Differences | str:
    """Return the differences of every two sides."""
    ball = ball_around(region, sides[0].model.space.dimension)
    found = _expanded(sides, region, ball, precision)
    poor = isinstance(found, str) or any(
        is_poor(_brackets(region, ball, found, alone)) for alone in np.eye(len(caps)).tolist()
    )
    other = smaller_ball(region, ball) if poor else None
    about = [(ball, found)] if other is None else [(ball, found), (other, _expanded(sides, region, other, precision))]
    expanded = tuple((ball, found) for ball, found in about if not isinstance(found, str))
    return Differences(region, caps, signs, expanded) if expanded else str(found)


def _of_averages(sides: Sequence[_Side], region: Region, precision: float) -> Proof | str:
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
    found = _differences(of_cycles, (inf,), (1.0,), region, precision)
    if isinstance(found, str):
        return found
    bounds = found.bounds([1.0])
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


def _brackets(
    region: Region, ball: Ball, of_orders: Sequence[Sequence[Approximation]], weights: Sequence[float]
) -> list[Bracket]:
    """Return brackets of a weighted sum of differences about the centre of a ball, one for each order."""
    sums = [weighted_sum(of_order, weights) for of_order in of_orders]
    return [bracket_of(each, linear_range(region, ball, each.slope)) for each in sums]


def _expanded(sides: Sequence[_Side], region: Region, ball: Ball, precision: float) -> list[list[Approximation]] | str:
    """Return the difference of every two sides, for each order that all of them have, or why there is none."""
    of_sides = []
    for side in sides:
        approximations = _approximations(side, region, ball, precision)
        if isinstance(approximations, str):
            return approximations
        of_sides.append(approximations)
    orders = [[each for each in of_order if each is not None] for of_order in zip(*of_sides, strict=False)]
    complete = [of_order for of_order in orders if len(of_order) == len(sides)]
    differences = [[one - other for one, other in zip(each[::2], each[1::2], strict=True)] for each in complete]
    for place, (one, other) in enumerate(zip(sides[::2], sides[1::2], strict=True)):
        if not differences or not _matters(region, ball, differences[-1][place]):
            continue
        for of_order, better in zip(differences, _by_advantages(one, other, region, ball, precision), strict=False):
            if better is not None and better.below + better.above < of_order[place].below + of_order[place].above:
                of_order[place] = better  # both hold
    return differences or ENDLESS


def _matters(region: Region, ball: Ball, difference: Approximation) -> bool:
    """Return whether the remainder is so large a part of the width that more is worth its time."""
    bracket = bracket_of(difference, linear_range(region, ball, difference.slope))
    return bracket.remainder > MATTERS * bracket.width


def _by_advantages(
    one: _Side, other: _Side, region: Region, ball: Ball, precision: float
) -> list[Approximation | None]:
    """Return approximations of the difference of two policies on the same model, of first and second order."""
    if one.model is not other.model:  # one of them draws, or both are cycles
        return []
    return advantage_approximations(
        one.model, one.policy, other.policy, one.objective, region, one.uncertain, ball, precision=precision
    )


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
