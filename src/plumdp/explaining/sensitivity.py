"""Estimates how much the value of a policy depends on each expression, by which pictures and reports are ordered."""

from __future__ import annotations

import numpy as np

from plumdp.model.graph import FloatArray, owners
from plumdp.model.objectives import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, check_policy
from plumdp.solver.coupled.chain import PolicyChain, policy_chain
from plumdp.solver.coupled.gradient import policy_gradient
from plumdp.solver.equations import chain_equations
from plumdp.solver.problem import Problem
from plumdp.solver.reduce import reduce

_LEAST = 1e-9  # of one minus a probability


def expression_weights(model: ParametricMDP, policy: Policy, objective: Objective, point: FloatArray) -> FloatArray:
    """Return estimates of the absolute change of a policy's value with each expression (n_expressions) at a point.

    What an outcome gains, the others of its row lose in proportion, which changes the value by
    Σ_s μ(s) (V(successor) - mean of V) / (1 - f), with μ(s) the expected visits of s. For objectives with a number of
    steps, and where the value is infinite, it is the derivative of the value along the expression's gradient.

    >>> from plumdp import case_study
    >>> study = case_study("betting:5")
    >>> first = study.model.graph.first_choice[:-1]  # never bets anything
    >>> float(expression_weights(study.model, first, study.objective, np.array([0.5])).max())
    0.0
    """
    asked = reduce(Problem(model, objective, check_policy(model.graph, policy))).problem
    assert asked.policy is not None
    chain = policy_chain(asked.mdp, asked.policy, asked.objective)
    chain = chain if isinstance(chain, str) else chain.with_coins()
    if asked.objective.n_steps is None and not isinstance(chain, str) and chain.n_open:
        values = asked.mdp.expressions.evaluate(np.asarray(point, dtype=np.float64)[None, :])[:, 0].clip(0, 1)
        weights = _along_the_chain(chain, values)
        if weights is not None:
            return weights[: len(model.expressions)]
    return _along_gradients(model, policy_gradient(model, policy, objective, point)[1], point)


def _along_the_chain(chain: PolicyChain, values: FloatArray) -> FloatArray | None:
    probability, source = values[chain.expression], owners(chain.first)
    equations = chain_equations(chain, probability * chain.discount)
    if equations is None:
        return None
    value = np.concatenate([np.zeros(chain.n_open), chain.known])
    entering = np.bincount(source, probability * chain.discount * value[chain.successor], chain.n_open)
    value[: chain.n_open] = equations.solve((chain.reward + entering)[:, None])[:, 0]
    visits = equations.solve_transposed((np.arange(chain.n_open) == chain.initial).astype(np.float64))
    mean = np.bincount(source, probability * value[chain.successor], chain.n_open)
    gain = chain.discount * visits[source] * (value[chain.successor] - mean[source])
    gain /= np.maximum(1 - probability, _LEAST)
    return np.abs(np.bincount(chain.expression, gain, len(values)))


def _along_gradients(model: ParametricMDP, gradient: FloatArray, point: FloatArray) -> FloatArray:
    """Return |gradient of the value · gradient of each expression| / |the latter|, by differences."""
    step = 1e-6
    moved = np.asarray(point, dtype=np.float64)[None, :] + step * np.vstack([np.eye(len(point)), -np.eye(len(point))])
    ends = model.expressions.evaluate(moved)
    slopes = (ends[:, : len(point)] - ends[:, len(point) :]) / (2 * step)
    length = np.maximum(np.linalg.norm(slopes, axis=1), _LEAST)
    return np.abs(slopes @ gradient) / length if np.isfinite(gradient).all() else np.ones(len(ends))
