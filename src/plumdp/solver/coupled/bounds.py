"""Bounds on the value of a policy at one parameter point for all states, whichever point of a region that is.

Let W(s, x) = w⁰ + w¹·x (+ xᵀ W² x) be any functions on the points of a region, exact where runs are over, and let their
residuals R = r + P W - W be at most e, with e > 0. If the expected sum of e until a run is over is at most M, with nature
at its worst, then the value differs from W by at most M at every point of the region. For a single point is one of
nature's strategies. As e > 0, runs end almost surely at it, so that the value V is the only solution of V = r + P V;
and D = V - W satisfies D = R + P D, so that D is the sum of all Pⁿ R.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from plumdp.model.objective import Objective, Reach, Reward
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, check_policy
from plumdp.model.text import one_line
from plumdp.region.ball import Ball, ball_around
from plumdp.region.shapes import Region
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.rounding import ULP, UNIT
from plumdp.solver.coupled.chain import PolicyChain, policy_chain
from plumdp.solver.coupled.equations import Equations, equations_of
from plumdp.solver.coupled.expansion import Expansion, first_order, second_order
from plumdp.solver.coupled.forms import MAX_DEGREE, Forms, forms_on, full
from plumdp.solver.coupled.linear_part import Range, linear_range
from plumdp.solver.coupled.norms import largest_eigenvalues
from plumdp.solver.coupled.remainder import ErrorModel, error_model
from plumdp.solver.coupled.residuals import residual_bounds

_MAX_BYTES = 2e9  # of curvatures
_REMAINDER_PRECISION = 1e-4  # relative: the remainder is a small part of the bounds


@dataclass(frozen=True)
class CoupledBounds:
    """Bounds on the value of a policy in the initial state at every point of a region, and what they are made of.

    ``statistics`` is the range of the linear part over the region, ``remainder`` what is added for all that is not
    linear, ``rounding`` what is added for floats: together ``upper - lower``, unless bounds were cut to [0, 1].
    """

    lower: float
    upper: float
    statistics: float
    remainder: float
    rounding: float
    kind: str  # "first order", "second order", or one for each end

    def __repr__(self) -> str:
        return one_line(self, f"{self.lower:.6g} to {self.upper:.6g}", self.kind)


@dataclass(frozen=True)
class End:
    """One end of a bracket: its value, and what of its distance from the middle is due to what."""

    value: float
    statistics: float
    remainder: float
    rounding: float
    kind: str


def coupled_bounds(
    model: ParametricMDP,
    policy: Policy,
    objective: Objective,
    region: Region,
    uncertain: IntervalMDP,
    *,
    precision: float = 1e-6,
) -> CoupledBounds | None:
    """Return bounds on the value of a policy that hold at every point of a region; None where there are none.

    ``uncertain`` is a relaxation of the model that allows for all points of the region. The remainder is bounded up to
    the precision; ``find_coupled_bounds`` says why there are no bounds.
    """
    found = find_coupled_bounds(model, policy, objective, region, uncertain, precision=precision)
    return None if isinstance(found, str) else found


def find_coupled_bounds(
    model: ParametricMDP,
    policy: Policy,
    objective: Objective,
    region: Region,
    uncertain: IntervalMDP,
    *,
    precision: float = 1e-6,
) -> CoupledBounds | str:
    """Return the same, or in words why there are no such bounds."""
    flipped = objective.flipped()
    if flipped is not None:
        found = find_coupled_bounds(model, policy, flipped, region, uncertain, precision=precision)
        return found if isinstance(found, str) else _one_minus(found)
    chosen = check_policy(model.graph, policy)
    if chosen.dtype.kind == "f":
        return "the policy draws its actions"
    if uncertain.expression is not model.expression and not np.array_equal(uncertain.expression, model.expression):
        return "the relaxation is not one of the model's expressions"
    chain = policy_chain(model, chosen, objective)
    if isinstance(chain, str):
        return chain
    if objective.n_steps is not None:
        return "objectives with a number of steps"
    if chain.n_open == 0:
        value = float(chain.known[chain.initial])
        return CoupledBounds(value, value, 0.0, 0.0, 0.0, "known")
    if int(model.expressions.degree[chain.expression].max(initial=0)) > MAX_DEGREE:
        return f"some expression is of a degree above {MAX_DEGREE}"
    found = _bounds_of_chain(Setting.of(model, chain, objective, region, uncertain, precision))
    return found if isinstance(found, str) else _cut(found, objective)


@dataclass(frozen=True, eq=False)
class Setting:
    """All that a bracket needs besides an expansion: the chain, its expressions on a ball, and who bounds the rest."""

    chain: PolicyChain
    forms: Forms  # times the discount
    ball: Ball
    region: Region
    errors: ErrorModel
    precision: float

    @staticmethod
    def of(
        model: ParametricMDP,
        chain: PolicyChain,
        objective: Objective,
        region: Region,
        uncertain: IntervalMDP,
        precision: float,
    ) -> Setting:
        """Return the setting of a policy's chain."""
        ball = ball_around(region, model.space.dimension)
        used, own = np.unique(chain.expression, return_inverse=True)
        forms = forms_on(model.expressions, used, ball).scaled(chain.discount)
        discount = objective.discount if isinstance(objective, Reward) else None
        errors = error_model(chain, uncertain, discount)
        return Setting(replace(chain, expression=own), forms, ball, region, errors, precision)


def _bounds_of_chain(setting: Setting) -> CoupledBounds | str:
    """Return the best of first and second order, at each end."""
    chain, forms = setting.chain, setting.forms
    equations = equations_of(chain, forms.means[chain.expression])
    if equations is None:
        return "the equations of the policy are singular at the centre of the region"
    first = first_order(chain, forms, equations)
    ends = [bracket(setting, equations, first)]
    if ends[0] is None:
        return "nature may keep a run from ending, so that nothing bounds the remainder"
    if 4 * forms.dimension * (forms.dimension + 1) * chain.n_nodes <= _MAX_BYTES:
        ends.append(bracket(setting, equations, second_order(chain, forms, equations, first)))
    found = [both for both in ends if both is not None]
    return best_of(found)


def bracket(setting: Setting, equations: Equations, guess: Expansion) -> tuple[End, End] | None:
    """Return a lower and an upper end from an expansion, whatever numbers it has; None if the remainder is infinite."""
    chain, start = setting.chain, setting.chain.initial
    residuals = residual_bounds(chain, setting.forms, guess)
    estimates = equations.solve(np.column_stack([residuals.below, residuals.above, residuals.rounding]))[start]
    sums = []
    for side, estimate in ((residuals.below, estimates[0]), (residuals.above, estimates[1])):
        tolerance = float(np.clip(setting.precision / max(estimate, 1e-300), 1e-6, 1e-2))
        sums.append(setting.errors.largest_sum(side, float(estimate), tolerance))
    if not np.isfinite(sums).all():
        return None
    linear = linear_range(setting.region, setting.ball, guess.slopes[start])
    return ends_of(guess, start, linear, sums, float(estimates[2]))


def ends_of(guess: Expansion, start: int, linear: Range, sums: list[float], rounding: float) -> tuple[End, End]:
    """Return both ends: the middle, the linear part over the region, the quadratic part, and the remainder."""
    middle, d = float(guess.values[start]), guess.slopes.shape[1]
    matrix = full(guess.curvatures[start : start + 1], d)
    name = "second order" if guess.curvatures.shape[1] else "first order"
    ends = []
    for side, reach, rest in ((-1.0, -linear.lower, sums[0]), (1.0, linear.upper, sums[1])):
        curvature = float(largest_eigenvalues(side * matrix)[0])
        slack = 8 * UNIT * (abs(middle) + abs(reach) + curvature + rest)
        value = middle + side * (reach + curvature + rest + slack)
        of_floats = min(rounding, rest) + linear.rounding + slack
        ends.append(End(value, reach - linear.rounding, curvature + rest - min(rounding, rest), of_floats, name))
    return ends[0], ends[1]


def best_of(found: Sequence[tuple[End, End]]) -> CoupledBounds:
    """Return the best lower and the best upper end of brackets that all hold."""
    low, high = max((ends[0] for ends in found), key=_value), min((ends[1] for ends in found), key=_value)
    kind = low.kind if low.kind == high.kind else f"{low.kind} below, {high.kind} above"
    return CoupledBounds(
        low.value,
        high.value,
        low.statistics + high.statistics,
        low.remainder + high.remainder,
        low.rounding + high.rounding,
        kind,
    )


def _value(end: End) -> float:
    return end.value


def _cut(found: CoupledBounds, objective: Objective) -> CoupledBounds:
    """Return the bounds of a probability cut to [0, 1]."""
    if not isinstance(objective, Reach):
        return found
    return replace(found, lower=min(max(found.lower, 0.0), 1.0), upper=max(min(found.upper, 1.0), 0.0))


def _one_minus(found: CoupledBounds) -> CoupledBounds:
    """Return bounds on one minus a probability, rounded outward; zero and one are exact."""
    lower, upper = 1 - found.upper, 1 - found.lower
    return replace(
        found,
        lower=max(lower - (ULP if 0 < found.upper < 1 else 0.0), 0.0),
        upper=min(upper + (ULP if 0 < found.lower < 1 else 0.0), 1.0),
    )
