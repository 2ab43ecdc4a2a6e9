"""Brackets of a policy's value, made of an expansion's linear part over the region and a remainder on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from plumdp.base.errors import WhyNot
from plumdp.base.rounding import UNIT, UP
from plumdp.model.graph import FloatArray
from plumdp.model.parametric import ParametricMDP
from plumdp.region.ball import Ball, LinearRange, ball_around, linear_range
from plumdp.region.shapes import Region
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.chains import Equations, chain_equations
from plumdp.solver.coupled.chain import PolicyChain
from plumdp.solver.coupled.expansion import ResidualBounds, TaylorExpansion, first_order, residual_bounds, second_order
from plumdp.solver.coupled.forms import Forms, extreme_eigenvalues, forms_on
from plumdp.solver.coupled.remainder import ErrorModel

_SINGULAR = WhyNot(
    "runs of the policy need not end at the centre of the region, so that its equations are singular there"
)
ENDLESS = WhyNot("nature may keep a run from ending, so that nothing bounds the approximation error")
_NEGLIGIBLE = {False: 0.005, True: 0.05}  # share of the remainder up to which second order is not worth its time
_LARGE = 300_000  # transitions of a chain on which it takes about a second


@dataclass(frozen=True)
class BracketEnd:
    """One end of a bracket, its value, and the parts of its distance from the middle."""

    value: float
    statistics: float
    remainder: float
    rounding: float
    kind: str


@dataclass(frozen=True)
class Bracket:
    """A lower and an upper bound, and the value in the middle that they were made from."""

    low: BracketEnd
    high: BracketEnd
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
    """The basis of an expansion, a policy's chain, and its expressions on a ball around a region."""

    chain: PolicyChain
    forms: Forms  # times the discount
    ball: Ball
    region: Region

    def equations(self) -> Equations | None:
        """Return the equations at the centre, or None if they are singular."""
        return chain_equations(self.chain, self.forms.means[self.chain.expression])

    def linear_range(self, slope: FloatArray) -> LinearRange:
        """Return bounds on a linear function of the ball's coordinates over the points of the region."""
        return linear_range(self.region, self.ball, slope)


def setting_of(
    model: ParametricMDP, chain: PolicyChain, region: Region, uncertain: IntervalMDP, *, ball: Ball | None = None
) -> Setting:
    """Return the setting of a policy's chain on a ball around a region, with the bounds of expressions over it."""
    ball = ball_around(region, model.space.dimension) if ball is None else ball
    renumbered, used = chain.with_coins().with_own_expressions()
    forms = forms_on(model.expressions, used, ball, bounds=(uncertain.lower, uncertain.upper))
    return Setting(renumbered, forms.scaled(chain.discount), ball, region)


@dataclass(frozen=True, eq=False)
class Approximation:
    """The value in the initial state is ``value + slope·x + xᵀ curvature x`` at x, less ``below`` or plus ``above``.

    Both are the largest errors at any point x of the ball that belongs to the region.
    """

    value: float
    slope: FloatArray  # (d)
    curvature: FloatArray  # (d (d + 1) / 2), packed; (0) for first order
    below: float
    above: float
    rounding: float  # about the part of both that is due to rounding

    def __sub__(self, other: Approximation) -> Approximation:
        """Return the difference of two values about the same centre, with the errors of both and of subtracting."""
        slope, curvature = self.slope - other.slope, self.curvature - other.curvature
        slack = 4 * UNIT * float(np.abs(slope).sum() + np.abs(curvature).sum())  # each entry is rounded once, |x| <= 1
        return Approximation(
            self.value - other.value,
            slope,
            curvature,
            (self.below + other.above + slack) * UP,
            (self.above + other.below + slack) * UP,
            self.rounding + other.rounding + slack,
        )

    def divided_by(self, number: float) -> Approximation:
        """Return the approximation of a value divided by a positive number, with the errors of dividing."""
        value, slope, curvature = self.value / number, self.slope / number, self.curvature / number
        slack = 4 * UNIT * (abs(value) + float(np.abs(slope).sum() + np.abs(curvature).sum()))
        below, above = ((rest / number + slack) * UP for rest in (self.below, self.above))
        return Approximation(value, slope, curvature, below, above, self.rounding / number + slack)


def weighted_sum(parts: Sequence[Approximation], weights: Sequence[float]) -> Approximation:
    """Return the weighted sum of values about the same centre, with the errors of all and of adding up."""
    value, slope, curvature = (
        sum(weight * field for weight, field in zip(weights, fields, strict=True))
        for fields in zip(*((each.value, each.slope, each.curvature) for each in parts), strict=True)
    )
    sizes = [abs(each.value) + float(np.abs(each.slope).sum() + np.abs(each.curvature).sum()) for each in parts]
    below = above = rounding = 0.0
    for part, weight, size in zip(parts, weights, sizes, strict=True):
        errors = (part.below, part.above) if weight >= 0 else (part.above, part.below)
        slack = 4 * len(parts) * UNIT * abs(weight) * size  # products and sums are rounded once each, and |x| <= 1
        below += (abs(weight) * errors[0] + slack) * UP
        above += (abs(weight) * errors[1] + slack) * UP
        rounding += abs(weight) * part.rounding + slack
    return Approximation(float(value), np.asarray(slope), np.asarray(curvature), below * UP, above * UP, rounding)


def no_change(value: float, d: int, order: int) -> Approximation:
    """Return the approximation, of an order, of a value that is the same at all points."""
    return Approximation(value, np.zeros(d), np.zeros(d * (d + 1) // 2 if order > 1 else 0), 0.0, 0.0, 0.0)


def approximation_of(
    expansion: TaylorExpansion, node: int, below: float, above: float, rounding: float
) -> Approximation:
    """Return the approximation that an expansion has in one node."""
    return Approximation(
        float(expansion.values[node]), expansion.slopes[node], expansion.curvatures[node], below, above, rounding
    )


@dataclass(frozen=True, eq=False)
class Expandable:
    """A setting, its equations at the centre, and the expansion of first order there."""

    setting: Setting
    equations: Equations
    first: TaylorExpansion

    def approximations(
        self, errors: ErrorModel, precision: float, *, orders: Sequence[int]
    ) -> Iterator[Approximation | None]:
        """Yield the approximation of each order, or None where no number bounds the remainder."""
        chain, forms = self.setting.chain, self.setting.forms
        residuals = residual_bounds(chain, forms, self.first, exact_eigenvalues=1 in orders)
        if 1 in orders:
            yield self.approximation(self.first, residuals, errors, precision)
        if 2 in orders:
            second = second_order(chain, self.equations, self.first, residuals.quadratic)
            yield self.approximation(second, residual_bounds(chain, forms, second), errors, precision)

    def approximation(
        self, guess: TaylorExpansion, residuals: ResidualBounds, errors: ErrorModel, precision: float
    ) -> Approximation | None:
        """Return the approximation of an expansion, whatever numbers it has, or None if its remainder has no bound."""
        chain = self.setting.chain
        columns = np.column_stack([residuals.below, residuals.above, residuals.rounding])
        below, above, rounding = self.equations.solve(columns)[chain.initial].tolist()
        low = _largest_sums(errors, residuals.below, below, precision)
        is_even = residuals.above is residuals.below
        high = low if is_even else _largest_sums(errors, residuals.above, above, precision)
        ends = float(low[chain.initial]), float(high[chain.initial])
        if not np.isfinite(ends).all():
            return None
        return approximation_of(guess, chain.initial, *ends, rounding)


def expandable(setting: Setting) -> Expandable | WhyNot:
    """Return a setting with its expansion of first order, or the reason why there is none."""
    equations = setting.equations()
    if equations is None:
        return _SINGULAR
    with np.errstate(over="ignore", invalid="ignore"):
        guess = first_order(setting.chain, setting.forms, equations)
    if not (np.isfinite(guess.values).all() and np.isfinite(guess.slopes).all()):
        return _SINGULAR
    return Expandable(setting, equations, guess)


def as_brackets(
    guesses: Iterable[Approximation | None], setting: Setting, *, enough: float | None = None
) -> list[Bracket]:
    """Return the brackets of approximations, up to the first one whose remainder is a share of it that is enough.

    By default that is the share up to which second order is not worth its time.
    """
    enough = _NEGLIGIBLE[len(setting.chain.successor) > _LARGE] if enough is None else enough
    kept: list[Bracket] = []
    for guess in guesses:
        if guess is not None:
            kept.append(bracket_of(guess, setting.linear_range(guess.slope)))
            if kept[-1].remainder <= enough * kept[-1].width:
                break
    return kept


def _largest_sums(errors: ErrorModel, residuals: FloatArray, estimate: float, precision: float) -> FloatArray:
    """Return upper bounds on the expected sums of residuals, to a precision that is absolute but not too fine."""
    tolerance = float(np.clip(precision / estimate, 1e-6, 1e-2)) if 0 < estimate < np.inf else 1e-2
    return errors.largest_sums(residuals, estimate, tolerance)


def bracket_of(guess: Approximation, linear: LinearRange) -> Bracket:
    """Return the bracket of a value from an approximation of it and the range of the linear part over the region.

    To them comes the range of the quadratic part over the ball.
    """
    middle = guess.value
    upward, downward = extreme_eigenvalues(guess.curvature[None], len(guess.slope))
    name = "second order" if len(guess.curvature) else "first order"
    ends = []
    for side, reach, curvature, rest in (
        (-1.0, -linear.lower, float(downward[0]), guess.below),
        (1.0, linear.upper, float(upward[0]), guess.above),
    ):
        # outward: the lower end is too low, the upper one too high
        slack = 8 * UNIT * (abs(middle) + abs(reach) + curvature + rest)  # of the sums below
        value = middle + side * (reach + curvature + rest + slack)
        of_floats = min(max(guess.rounding, 0.0), rest)
        parts = reach - linear.rounding, curvature + rest - of_floats, of_floats + linear.rounding + slack
        ends.append(BracketEnd(value, *parts, name))
    return Bracket(ends[0], ends[1], middle)


def intersection(brackets: Sequence[Bracket]) -> Bracket:
    """Return the best lower and the best upper end of brackets that all hold, about the middle of the first."""
    lowest, highest = max(brackets, key=lambda each: each.low.value), min(brackets, key=lambda each: each.high.value)
    return Bracket(lowest.low, highest.high, brackets[0].middle)
