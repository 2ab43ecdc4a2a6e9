"""Brackets of a policy's value from an expansion: the linear part over the region, and a remainder on both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumdp.model.graph import FloatArray
from plumdp.model.parametric import ParametricMDP
from plumdp.region.ball import Ball, ball_around
from plumdp.region.shapes import Region
from plumdp.rounding import UNIT
from plumdp.solver.coupled.chain import PolicyChain
from plumdp.solver.coupled.equations import Equations, equations_of
from plumdp.solver.coupled.expansion import Expansion
from plumdp.solver.coupled.forms import Forms, forms_on, full
from plumdp.solver.coupled.linear_part import Range, linear_range
from plumdp.solver.coupled.norms import extreme_eigenvalues
from plumdp.solver.coupled.remainder import ErrorModel
from plumdp.solver.coupled.residuals import residual_bounds
from plumdp.solver.coupled.slabs import Slab, forms_in, linear_range_in


@dataclass(frozen=True)
class End:
    """One end of a bracket: its value, and what of its distance from the middle is due to what."""

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
        """What is added for all that is not linear, on both sides."""
        return self.low.remainder + self.high.remainder

    @property
    def width(self) -> float:
        """The distance of both ends."""
        return self.high.value - self.low.value


@dataclass(frozen=True, eq=False)
class Setting:
    """What an expansion is made on: a policy's chain, and its expressions on a ball around a region, or on a slab."""

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


def setting_of(model: ParametricMDP, chain: PolicyChain, region: Region) -> Setting:
    """Return the setting of a policy's chain on a ball around a region."""
    ball = ball_around(region, model.space.dimension)
    used, own = np.unique(chain.expression, return_inverse=True)
    forms = forms_on(model.expressions, used, ball).scaled(chain.discount)
    return Setting(replace(chain, expression=own), forms, ball, region)


def bracket(
    setting: Setting, equations: Equations, guess: Expansion, errors: ErrorModel, precision: float
) -> Bracket | None:
    """Return a bracket from an expansion, whatever numbers it has; None if no number bounds the remainder."""
    residuals = residual_bounds(setting.chain, setting.forms, guess)
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
    upward, downward = extreme_eigenvalues(full(guess.curvatures[start : start + 1], d))
    name = "second order" if guess.curvatures.shape[1] else "first order"
    ends = []
    for side, reach, curvature, rest in (
        (-1.0, -linear.lower, float(downward[0]), below),
        (1.0, linear.upper, float(upward[0]), above),
    ):
        slack = 8 * UNIT * (abs(middle) + abs(reach) + curvature + rest)  # of the sums below
        value = middle + side * (reach + curvature + rest + slack)
        of_floats = min(max(rounding, 0.0), rest)
        ends.append(
            End(value, reach - linear.rounding, curvature + rest - of_floats, of_floats + linear.rounding + slack, name)
        )
    return Bracket(ends[0], ends[1], middle)


def union(brackets: list[Bracket], middle: float, kind: str) -> Bracket:
    """Return the bracket of a value that lies in one of several."""
    lowest, highest = min(brackets, key=lambda each: each.low.value), max(brackets, key=lambda each: each.high.value)
    low = replace(lowest.low, statistics=lowest.low.statistics + middle - lowest.middle, kind=kind)
    high = replace(highest.high, statistics=highest.high.statistics + highest.middle - middle, kind=kind)
    return Bracket(low, high, middle)
