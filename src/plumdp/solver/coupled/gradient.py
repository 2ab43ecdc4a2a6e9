"""Estimates of a policy's value at a point and of its gradient in the parameters, which choose directions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plumdp.base.errors import ModelError, WhyNot
from plumdp.model.graph import FloatArray, IntArray
from plumdp.model.objectives import Kind, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, check_policy
from plumdp.region.ball import Ball
from plumdp.solver.chains import chain_equations
from plumdp.solver.coupled.by_cycles import cycles_of
from plumdp.solver.coupled.by_steps import expand_by_steps, known_value
from plumdp.solver.coupled.chain import PolicyChain, policy_chain
from plumdp.solver.coupled.expansion import by_expression
from plumdp.solver.coupled.forms import Forms, forms_on
from plumdp.solver.problem import Problem
from plumdp.solver.reduce import reduce


class Gradient(NamedTuple):
    """Estimates of a policy's value in the initial state and of its derivatives, and the states that it reaches."""

    value: float
    derivatives: FloatArray  # (n_parameters)
    states: IntArray  # (n_reached): what a policy does elsewhere does not matter


def policy_gradient(
    model: ParametricMDP, policy: Policy, objective: Objective, point: FloatArray
) -> tuple[float, FloatArray]:
    """Return estimates of a policy's value in the initial state and of its derivative in each parameter, at a point.

    The derivative is Σ_s μ(s) Σ_t (df_t/dv) V(s_t), with μ(s) the expected number of visits to s, which is one solution
    of the transposed equations. If the value is infinite, or the equations are singular, the derivatives are zero.

    >>> from plumdp import case_study
    >>> from plumdp.stages import instantiate, solve
    >>> study = case_study("betting:25")
    >>> best = solve(instantiate(study.model, study.true_point), study.objective)
    >>> value, gradient = policy_gradient(study.model, best.policy, study.objective, np.array([0.65]))
    >>> gradient.shape
    (1,)
    """
    return find_gradient(model, policy, objective, point)[:2]


def find_gradient(model: ParametricMDP, policy: Policy, objective: Objective, point: FloatArray) -> Gradient:
    """Return the value and its gradient, and the states that the policy reaches before a run is over."""
    at, d = np.asarray(point, dtype=np.float64), model.space.dimension
    if at.shape != (d,):
        raise ModelError(f"a point has {d} numbers, one for each parameter, not shape {at.shape}")
    reduced = reduce(Problem(model, objective, check_policy(model.graph, policy)))
    estimate = _of_cycles if objective.kind is Kind.AVERAGE else _of_chain
    value, derivatives, states = estimate(reduced.problem, at)
    return Gradient(reduced.value(value), reduced.sign * derivatives, states[states < model.graph.n_states])


def _of_chain(problem: Problem[ParametricMDP], point: FloatArray) -> Gradient:
    """Return the value of a reduced problem and its gradient."""
    model, objective, d = problem.mdp, problem.objective, len(point)
    assert problem.policy is not None
    chain = policy_chain(model, problem.policy, objective)
    if isinstance(chain, WhyNot):
        return Gradient(np.inf, np.zeros(d), np.arange(model.graph.n_states, dtype=np.int32))
    if chain.n_open == 0:
        return Gradient(known_value(chain, objective, model.graph.n_states), np.zeros(d), chain.state)
    chain, used = chain.with_coins().with_own_expressions()
    forms = forms_on(model.expressions, used, Ball(point, np.eye(d)), order=1).scaled(chain.discount)
    if objective.n_steps is not None:
        found = expand_by_steps(chain, forms, objective, model.graph.n_states, None, order=1)
        return Gradient(found.value, found.slope, chain.state)
    return Gradient(*_gradient(chain, forms), chain.state)


def _of_cycles(problem: Problem[ParametricMDP], point: FloatArray) -> Gradient:
    """Return the average reward R / T of a step in the long run and its gradient, R and T being those of a cycle."""
    assert problem.policy is not None
    cycles = cycles_of(problem.mdp, problem.policy, problem.objective, point)
    if isinstance(cycles, WhyNot):
        return Gradient(np.nan, np.zeros(len(point)), np.arange(problem.mdp.graph.n_states, dtype=np.int32))
    total = find_gradient(cycles.model, cycles.policy, cycles.total(0.0), point)
    length = find_gradient(cycles.model, cycles.policy, cycles.length(), point)
    value = total.value / length.value
    slope = (total.derivatives - value * length.derivatives) / length.value
    memory = cycles.model.graph.memory
    assert memory is not None
    return Gradient(value, slope, np.unique(memory.state[length.states]))


def _gradient(chain: PolicyChain, forms: Forms) -> tuple[float, FloatArray]:
    n, probability = chain.n_open, forms.means[chain.expression]
    equations = chain_equations(chain, probability)
    if equations is None:
        return np.nan, np.zeros(forms.dimension)
    values = np.concatenate([np.zeros(n), chain.known])
    entering = chain.rows(probability, chain.successor, chain.n_nodes) @ values
    values[:n] = equations.solve((chain.reward + entering)[:, None])[:, 0]
    visits = equations.solve_transposed((np.arange(n) == chain.initial).astype(np.float64))
    local = by_expression(chain, values[chain.successor], forms.spreads)
    return float(values[chain.initial]), visits @ local
