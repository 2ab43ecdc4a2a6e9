"""The terms of a sum of values, each the value of one policy as that of a chain, ready to be expanded.

Let V and V' be the values of two policies, and P and r the rows and rewards of the first. Then D = V - V' is what the
first policy collects of its advantages A = r + P V' - V' over the second, D = A + P D, and A is zero in every state
where both do the same. With expansions W and W', and e' = V' - W', the residual of W - W' in this equation is

    P (W - W') - (W - W')                  where both do the same, and
    r + P W - W + P e' - e'                elsewhere.

The first is small where W - W' is. Bounds on e' in every state bound the second. So the expected sum of both along the
first policy's runs bounds the error of W - W', as in ``bounds.py``, and most of what both remainders share cancels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import nextafter

import numpy as np

from plumdp.base.errors import UNSAID, WhyNot
from plumdp.base.rounding import UNIT, UP
from plumdp.model.graph import BoolArray, FloatArray, Indices
from plumdp.model.objectives import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.region.ball import Ball
from plumdp.region.shapes import Region
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.coupled.brackets import Approximation, Expandable, Setting, expandable, no_change, setting_of
from plumdp.solver.coupled.by_steps import expand_by_steps, known_value
from plumdp.solver.coupled.chain import PolicyChain, policy_chain
from plumdp.solver.coupled.expansion import ResidualBounds, TaylorExpansion, residual_bounds, second_order
from plumdp.solver.coupled.forms import MAX_DEGREE
from plumdp.solver.coupled.remainder import ErrorModel, StepErrors, error_model, step_errors
from plumdp.solver.problem import Problem

_PRECISION = 1e-3  # of bounds on the second policy's remainder, as a share


def advantage_approximations(
    first: Term, second: Term, region: Region, ball: Ball, *, precision: float
) -> list[Approximation | None]:
    """Return approximations of the first policy's value less the second's, of first and second order, if there are any.

    There are none if one of them draws, for averages, for a number of steps, unless both do the same, or if a run of
    the first policy is over where the second one may go on.
    """
    model, chain = first.model, first.chain
    if model is not second.model or not chain.n_open:
        return []
    d, same, has_steps = model.space.dimension, _does_the_same(first, second), first.objective.n_steps is not None
    if same.all():  # so that there is one chain, and no difference
        return [no_change(0.0, d, order) for order in (1, 2)]
    other = UNSAID if has_steps else term_of(second.problem, second.uncertain, starts=chain.state)
    if isinstance(other, WhyNot) or other.chain.initial >= other.chain.n_open:
        return []
    node = np.full(model.graph.n_states, -1)
    node[other.chain.state] = np.arange(other.chain.n_nodes)
    at = node[chain.state]  # the other chain has all nodes of this one
    closed = at[chain.n_open :] - other.chain.n_open
    if (closed < 0).any() or not np.array_equal(other.chain.known[closed], chain.known):
        return []
    starts = []
    for term in (first, other):
        setting = term.setting(region, ball)
        start = UNSAID if isinstance(setting, WhyNot) or not fits(setting, d * (d + 1) // 2) else expandable(setting)
        if isinstance(start, WhyNot):
            return []
        starts.append(start)
    (one, its), errors, rest = starts, first.errors, other.errors
    assert isinstance(errors, ErrorModel)
    assert isinstance(rest, ErrorModel)
    return [
        _approximation(one, guess, (rival, below[at], above[at]), at, same, errors, precision)
        for guess, (rival, below, above) in zip(_orders(one), _bounded(its, rest, other.chain), strict=True)
    ]


def _orders(start: Expandable) -> Iterator[TaylorExpansion]:
    """Yield the expansions of first and second order."""
    chain, forms = start.setting.chain, start.setting.forms
    yield start.first
    residuals = residual_bounds(chain, forms, start.first, exact_eigenvalues=False)
    yield second_order(chain, start.equations, start.first, residuals.quadratic)


def _bounded(
    start: Expandable, errors: ErrorModel, chain: PolicyChain
) -> Iterator[tuple[TaylorExpansion, FloatArray, FloatArray]]:
    """Yield expansions, and how far the values of nodes (n_nodes) are below and above them at most."""
    for guess in _orders(start):
        residuals = residual_bounds(start.setting.chain, start.setting.forms, guess)
        sides = []
        for side in (residuals.below, residuals.above):
            estimates = start.equations.solve(side[:, None])[:, 0]
            sums = errors.largest_sums(side, float(estimates[chain.initial]), _PRECISION)
            sides.append(np.append(sums[:-1], np.zeros(chain.n_nodes - chain.n_open)))
        yield guess, sides[0], sides[1]


def _approximation(
    start: Expandable,
    guess: TaylorExpansion,
    rival: tuple[TaylorExpansion, FloatArray, FloatArray],
    at: Indices,
    same: BoolArray,
    errors: ErrorModel,
    precision: float,
) -> Approximation | None:
    """Return the approximation of the difference by that of two expansions, or None if its error has no bound."""
    chain, forms, (other, below, above) = start.setting.chain, start.setting.forms, rival
    n, n_states = chain.n_open, len(at)
    parts = []
    for mine, its in ((guess.values, other.values), (guess.slopes, other.slopes), (guess.curvatures, other.curvatures)):
        part = np.zeros_like(mine)
        part[:n] = mine[:n] - its[at[:n]]  # elsewhere both are known, and what coins pay cancels
        parts.append(part)
    apart = TaylorExpansion(*parts)
    alike = replace(chain, reward=np.zeros(n), known=np.zeros_like(chain.known))
    agree, differ = residual_bounds(alike, forms, apart), residual_bounds(chain, forms, guess)
    sizes = np.abs(apart.values) + np.abs(apart.slopes).sum(axis=1) + np.abs(apart.curvatures).sum(axis=1)
    slack = 4 * UNIT * sizes  # guess - other is rounded, and |x| <= 1
    low, high = (np.append(part, np.zeros(chain.n_nodes - n_states)) + slack for part in (below, above))
    ends = [
        np.where(same, one, (rest + _largest(chain, mine) + its[:n]) * UP)
        for one, rest, mine, its in ((agree.below, differ.below, low, high), (agree.above, differ.above, high, low))
    ]
    rounding = np.where(same, agree.rounding, differ.rounding)
    return start.approximation(apart, ResidualBounds(ends[1], ends[0], rounding, agree.quadratic), errors, precision)


def _largest(chain: PolicyChain, of_nodes: FloatArray) -> FloatArray:
    """Return the largest number among the successors of each open node (n_open)."""
    return np.asarray(np.maximum.reduceat(of_nodes[chain.successor], chain.first[:-1]))


def _does_the_same(first: Term, second: Term) -> BoolArray:
    """Return the open nodes (n_open) in which both policies have the same row and the same reward.

    Choices with equal expressions have different rows if these may be off.
    """
    model, chain = first.model, first.chain
    graph, terms, open_states = model.graph, first.objective.terms(model.graph), chain.state[: chain.n_open]
    one, other = (np.asarray(each.problem.policy)[open_states] for each in (first, second))
    same = np.asarray(one == other)
    for node in [] if chain.misfit else np.flatnonzero(~same).tolist():
        row, its = (
            slice(*graph.first_transition[choice : choice + 2]) for choice in (int(one[node]), int(other[node]))
        )
        equal = all(np.array_equal(part[row], part[its]) for part in (graph.successor, model.expression))
        coins = terms.learned is None or terms.learned.coin[one[node]] == terms.learned.coin[other[node]]
        same[node] = equal and coins and terms.reward[one[node]] == terms.reward[other[node]]
    return same


_MAX_BYTES = 2e9  # of curvatures
_MAX_WORK = 2e8  # steps times transitions


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


def term_of(problem: Problem[ParametricMDP], uncertain: IntervalMDP, *, starts: Indices | None = None) -> Term | WhyNot:
    """Return the term of a reduced problem, or the reason why it does not have coupled bounds."""
    model, policy, objective = problem.mdp, problem.policy, problem.objective
    assert policy is not None
    if uncertain.expression is not model.expression and not np.array_equal(uncertain.expression, model.expression):
        return WhyNot("the relaxation is not one of the model's expressions")
    chain = policy_chain(model, policy, objective, starts)
    if isinstance(chain, WhyNot):
        return chain
    if model.expressions.degree[chain.expression].max(initial=0) > MAX_DEGREE:
        return WhyNot(f"some expression is of a degree above {MAX_DEGREE}")
    return Term(problem, uncertain, replace(chain, misfit=uncertain.misfit))


def fits(setting: Setting, width: int) -> bool:
    """Return whether a packed matrix of some width for each node and each expression fits into memory."""
    return 8 * width * (setting.chain.n_nodes + len(setting.forms.means)) <= _MAX_BYTES
