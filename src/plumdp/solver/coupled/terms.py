"""The terms of a sum of values, each the value of one policy as that of a chain, ready to be expanded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import nextafter

import numpy as np

from plumdp.base.errors import WhyNot
from plumdp.base.rounding import UNIT
from plumdp.model.objectives import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.region.ball import Ball
from plumdp.region.shapes import Region
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.coupled.brackets import Approximation, Setting, expandable, no_change, setting_of
from plumdp.solver.coupled.by_steps import expand_by_steps, known_value
from plumdp.solver.coupled.chain import PolicyChain, policy_chain
from plumdp.solver.coupled.forms import MAX_DEGREE
from plumdp.solver.coupled.remainder import ErrorModel, StepErrors, error_model, step_errors
from plumdp.solver.problem import Problem

_MAX_BYTES = 2e9  # of curvatures
_MAX_WORK = 2e8  # steps times transitions
_OF_CHAIN = ("state", "first", "successor", "expression", "reward", "known")


@dataclass(frozen=True, eq=False)
class Term:
    """The value of a policy that draws nothing, by its chain, and a relaxation of the model that it is in.

    A value of an average in the long run is that of the chain divided by ``per``, plus ``added``, up to the sum of
    ``off`` (see ``by_cycles``).
    """

    problem: Problem[ParametricMDP]
    uncertain: IntervalMDP
    chain: PolicyChain
    sign: float = 1.0  # -1 if the value that was asked for is one minus this one
    per: float | None = None
    added: float = 0.0
    off: tuple[float, ...] = ()

    @property
    def model(self) -> ParametricMDP:
        """The model, in which the policy is the choice of each state."""
        return self.problem.mdp

    @property
    def objective(self) -> Objective:
        """The objective, which is no complement."""
        return self.problem.objective

    @property
    def known(self) -> float | None:
        """The value of a run that is over at the start, or None."""
        return known_value(self.chain, self.objective, self.model.graph.n_states) if not self.chain.n_open else None

    @cached_property
    def errors(self) -> ErrorModel | StepErrors:
        """The part of the relaxation that the policy reaches, whose natures bound sums of residuals."""
        make, discount = error_model if self.objective.n_steps is None else step_errors, self.chain.discount
        # rounded up: a larger discount makes the sum of residuals larger, which is safe
        above = None if discount == 1 else Fraction(min(nextafter(discount, 1), 1 - UNIT))
        return make(self.chain, self.uncertain, above)

    def has_chain_of(self, other: Term) -> bool:
        """Return whether both are values of one chain; with a tolerance its rows may be other ones for each policy."""
        one, another = self.chain, other.chain
        same = self.model.expressions is other.model.expressions and (
            self.sign,
            self.per,
            self.added,
            one.initial,
            one.discount,
            one.model_tolerance,
            one.learned,
        ) == (other.sign, other.per, other.added, another.initial, another.discount, 0.0, None)
        return same and all(np.array_equal(getattr(one, name), getattr(another, name)) for name in _OF_CHAIN)

    def setting(self, region: Region, ball: Ball) -> Setting | WhyNot:
        """Return the basis of expansions on a ball around a region, or why there are none."""
        setting, n_steps = setting_of(self.model, self.chain, region, self.uncertain, ball=ball), self.objective.n_steps
        if not fits(setting, setting.forms.curvatures.shape[1]):
            return WhyNot("the products of so many parameters take too much memory")
        is_long = n_steps is not None and n_steps * len(self.chain.successor) > _MAX_WORK
        return WhyNot("so many steps of so large a chain take too long") if is_long else setting

    def guesses(self, setting: Setting, precision: float) -> Iterator[Approximation | None] | WhyNot:
        """Return the approximations of first and second order, each None if its remainder has no bound, or a reason."""
        d, errors = setting.forms.dimension, self.errors
        orders = (1, 2) if fits(setting, d * (d + 1) // 2) else (1,)
        if isinstance(errors, ErrorModel):
            start = expandable(setting)
            return start if isinstance(start, WhyNot) else start.approximations(errors, precision, orders=orders)
        # the chain of a setting numbers its expressions anew, so that the errors are those of the chain before that
        asked = setting.chain, setting.forms, self.objective, self.model.graph.n_states, errors
        found = (expand_by_steps(*asked, order=order) for order in orders)
        return (each if np.isfinite([each.below, each.above]).all() else None for each in found)

    def orders(self, region: Region, ball: Ball, precision: float) -> list[Approximation | None] | WhyNot:
        """Return the approximations of first and second order, or why there are none."""
        if self.known is not None:
            return [no_change(self.known, self.model.space.dimension, order) for order in (1, 2)]
        setting, per = self.setting(region, ball), self.per
        found = setting if isinstance(setting, WhyNot) else self.guesses(setting, precision)
        if isinstance(found, WhyNot):
            return found
        return [each if each is None or per is None else each.divided_by(per) for each in found]


def term_of(problem: Problem[ParametricMDP], uncertain: IntervalMDP) -> Term | WhyNot:
    """Return the term of a reduced problem, or the reason why it does not have coupled bounds."""
    model, policy, objective = problem.mdp, problem.policy, problem.objective
    assert policy is not None
    if uncertain.expression is not model.expression and not np.array_equal(uncertain.expression, model.expression):
        return WhyNot("the relaxation is not one of the model's expressions")
    chain = policy_chain(model, policy, objective)
    if isinstance(chain, WhyNot):
        return chain
    if model.expressions.degree[chain.expression].max(initial=0) > MAX_DEGREE:
        return WhyNot(f"some expression is of a degree above {MAX_DEGREE}")
    return Term(problem, uncertain, replace(chain, model_tolerance=uncertain.model_tolerance))


def fits(setting: Setting, width: int) -> bool:
    """Return whether a packed matrix of some width for each node and each expression fits into memory."""
    return 8 * width * (setting.chain.n_nodes + len(setting.forms.means)) <= _MAX_BYTES
