"""Brackets of a policy's value, made of an expansion's linear part over the region and a remainder on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from plumdp.base.rounding import UNIT
from plumdp.model.graph import FloatArray
from plumdp.model.parametric import ParametricMDP
from plumdp.region.ball import Ball, ball_around
from plumdp.region.shapes import Region
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.coupled.chain import PolicyChain
from plumdp.solver.coupled.equations import Equations, equations_of
from plumdp.solver.coupled.expansion import Expansion, first_order, second_order
from plumdp.solver.coupled.forms import Forms, forms_on
from plumdp.solver.coupled.linear_part import Range, linear_range
from plumdp.solver.coupled.norms import extreme_eigenvalues
from plumdp.solver.coupled.remainder import ErrorModel
from plumdp.solver.coupled.residuals import Residuals, residual_bounds
from plumdp.solver.coupled.slabs import Slab, forms_in, linear_range_in

_SINGULAR = "runs of the policy need not end at the centre of the region, so that its equations are singular there"
_NEGLIGIBLE = {False: 0.005, True: 0.05}  # share of the remainder up to which second order is not worth its time
_LARGE = 300_000  # transitions of a chain on which it takes about a second


@dataclass(frozen=True)
class End:
    """One end of a bracket, its value, and the parts of its distance from the middle."""

    value: float
    statistics: float
    remainder: float
    rounding: float
    kind: str


@dataclass(frozen=True)
class Bracket:
    """A lower and an upper bound, and the value in the middle that they were made from."""

    low: End
    high: End
    middle: float

    @property
    def remainder(self) -> float:
        """The bound on all that is not linear, summed over both sides."""
        return self.low.remainder + self.high.remainder

    @property
    def width(self) -> float:
        """The distance of both ends."""
        return self.high.value - self.low.value


@dataclass(frozen=True, eq=False)
class Setting:
    """The basis of an expansion, a policy's chain, and its expressions on a ball around a region or on a slab."""

    chain: PolicyChain
    forms: Forms  # times the discount
    ball: Ball
    region: Region
    slab: Slab | None = None

    def equations(self) -> Equations | None:
        """Return the equations at the centre, or None if they are singular."""
        return equations_of(self.chain, self.forms.means[self.chain.expression])

    def linear_range(self, slope: FloatArray) -> Range:
        """Return bounds on a linear function of the ball's or slab's coordinates over the points of the region."""
        if self.slab is None:
            return linear_range(self.region, self.ball, slope)
        return linear_range_in(self.slab, self.region, self.ball, slope)

    def within(self, slab: Slab) -> Setting:
        """Return the setting of a slab of the ball."""
        return replace(self, forms=forms_in(slab, self.forms), slab=slab)


def setting_of(
    model: ParametricMDP, chain: PolicyChain, region: Region, uncertain: IntervalMDP, *, ball: Ball | None = None
) -> Setting:
    """Return the setting of a policy's chain on a ball around a region, with the bounds of expressions over it."""
    ball = ball_around(region, model.space.dimension) if ball is None else ball
    renumbered, used = chain.with_own_expressions()
    forms = forms_on(model.expressions, used, ball, bounds=(uncertain.lower, uncertain.upper))
    return Setting(renumbered, forms.scaled(chain.discount), ball, region)


def brackets_of(setting: Setting, errors: ErrorModel, precision: float, *, orders: Sequence[int]) -> Brackets | str:
    """Return brackets of first order, second order or both, or the reason why there is none."""
    chain, forms, equations = setting.chain, setting.forms, setting.equations()
    if equations is None:
        return _SINGULAR
    with np.errstate(over="ignore", invalid="ignore"):
        guess = first_order(chain, forms, equations)
    if not (np.isfinite(guess.values).all() and np.isfinite(guess.slopes).all()):
        return _SINGULAR
    residuals = residual_bounds(chain, forms, guess, exact_eigenvalues=1 in orders)
    made = []
    if 1 in orders:
        made.append(bracket(setting, equations, guess, residuals, errors, precision))
    limit = _NEGLIGIBLE[len(chain.successor) > _LARGE]
    is_enough = made and made[0] is not None and made[0].remainder <= limit * made[0].width
    if 2 in orders and not is_enough:
        second = second_order(chain, equations, guess, residuals.quadratic)
        residuals = residual_bounds(chain, forms, second)
        made.append(bracket(setting, equations, second, residuals, errors, precision))
    kept = [each for each in made if each is not None]
    if not kept:
        return "nature may keep a run from ending, so that nothing bounds the remainder"
    return Brackets(kept, guess.slopes[chain.initial])


@dataclass(frozen=True, eq=False)
class Brackets:
    """Brackets of one value that all hold, and its slope in the coordinates of the ball or slab."""

    found: list[Bracket]
    slope: FloatArray  # (d)


def bracket(
    setting: Setting,
    equations: Equations,
    guess: Expansion,
    residuals: Residuals,
    errors: ErrorModel,
    precision: float,
) -> Bracket | None:
    """Return a bracket from an expansion, whatever numbers it has.

    It is None if no number bounds the remainder.
    """
    columns = np.column_stack([residuals.below, residuals.above, residuals.rounding])
    below, above, rounding = equations.solve(columns)[setting.chain.initial].tolist()
    low = _largest_sum(errors, residuals.below, below, precision)
    is_even = residuals.above is residuals.below
    high = low if is_even else _largest_sum(errors, residuals.above, above, precision)
    return bracket_of(setting, guess, low, high, rounding) if np.isfinite([low, high]).all() else None


def _largest_sum(errors: ErrorModel, residuals: FloatArray, estimate: float, precision: float) -> float:
    """Return an upper bound on the expected sum of residuals, to a precision that is absolute but not too fine."""
    tolerance = float(np.clip(precision / estimate, 1e-6, 1e-2)) if 0 < estimate < np.inf else 1e-2
    return errors.largest_sum(residuals, estimate, tolerance)


def bracket_of(setting: Setting, guess: Expansion, below: float, above: float, rounding: float) -> Bracket:
    """Return the bracket of an expansion from which the value differs by at most the given numbers, below and above.

    To them come the range of the linear part over the region and that of the quadratic part over the ball.
    """
    start, d = setting.chain.initial, guess.slopes.shape[1]
    middle, linear = float(guess.values[start]), setting.linear_range(guess.slopes[start])
    upward, downward = extreme_eigenvalues(guess.curvatures[start : start + 1], d)
    name = "second order" if guess.curvatures.shape[1] else "first order"
    ends = []
    for side, reach, curvature, rest in (
        (-1.0, -linear.lower, float(downward[0]), below),
        (1.0, linear.upper, float(upward[0]), above),
    ):
        # outward: the lower end is too low, the upper one too high
        slack = 8 * UNIT * (abs(middle) + abs(reach) + curvature + rest)  # of the sums below
        value = middle + side * (reach + curvature + rest + slack)
        of_floats = min(max(rounding, 0.0), rest)
        ends.append(
            End(value, reach - linear.rounding, curvature + rest - of_floats, of_floats + linear.rounding + slack, name)
        )
    return Bracket(ends[0], ends[1], middle)


def intersection(brackets: Sequence[Bracket]) -> Bracket:
    """Return the best lower and the best upper end of brackets that all hold, about the middle of the first."""
    low = max((each.low for each in brackets), key=lambda end: end.value)
    high = min((each.high for each in brackets), key=lambda end: end.value)
    return Bracket(low, high, brackets[0].middle)
