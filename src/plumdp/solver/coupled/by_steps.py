"""Expansions of objectives with a number of steps, by backward induction, with one expansion for each step.

With W_k the expansion at step k and R_k = r + P W_{k+1} - W_k its residual, at most e_k, the value V_k differs from W_k
by D_k = R_k + P D_{k+1}. So M_k = e_k + P M_{k+1}, with nature at its worst, bounds it. If W is the same
in all earlier steps, and M grows by c at most in one of them, then M grows by s c at most in s of them: no step moves
sums further apart than they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from plumdp.base.rounding import UP
from plumdp.model.graph import BoolArray, FloatArray
from plumdp.model.objectives import Objective
from plumdp.solver.by_steps import NEGLIGIBLE, first_alike
from plumdp.solver.coupled.brackets import Approximation, approximation_of
from plumdp.solver.coupled.chain import PolicyChain, fixed_states
from plumdp.solver.coupled.expansion import TaylorExpansion, by_expression, quadratic_part, residual_bounds
from plumdp.solver.coupled.forms import Forms
from plumdp.solver.coupled.remainder import StepErrors


def known_value(chain: PolicyChain, objective: Objective, n_states: int) -> float:
    """Return the value of a run that is over at the start."""
    if objective.n_steps is None:
        return float(chain.known[chain.initial])
    return float(objective.at_step(np.zeros(n_states), 0)[chain.state[chain.initial]])


class _NodeValues:
    """The values that an objective gives to the nodes of a chain at each step."""

    def __init__(self, objective: Objective, chain: PolicyChain, n_states: int) -> None:
        n = chain.n_nodes - chain.n_payments
        self._objective, self._state, self._n_states = objective, chain.state[:n], n_states
        self._paid = chain.known[len(chain.known) - chain.n_payments :]  # at every step

    def values(self, of_nodes: FloatArray, step: int) -> FloatArray:
        """Return the values at a step, given the values if the run goes on."""
        whole = np.zeros(self._n_states)
        whole[self._state] = of_nodes[: len(self._state)]
        return np.append(self._objective.at_step(whole, step)[self._state], self._paid)

    def is_fixed(self, step: int) -> BoolArray:
        """Return the nodes whose value at a step follows from the objective alone."""
        is_fixed = fixed_states(self._objective, self._n_states, step)[self._state]
        return np.append(is_fixed, np.ones(len(self._paid), dtype=np.bool_))


def expand_by_steps(
    chain: PolicyChain, forms: Forms, objective: Objective, n_states: int, errors: StepErrors | None, *, order: int
) -> Approximation:
    """Return the approximation of first or second order at step zero, as an estimate if there are no errors."""
    n, d = chain.n_open, forms.dimension
    steps, n_steps = _NodeValues(objective, chain, n_states), objective.n_steps
    assert n_steps is not None
    width = d * (d + 1) // 2 if order > 1 else 0
    values = steps.values(np.zeros(chain.n_nodes), n_steps)
    after = TaylorExpansion(values, np.zeros((chain.n_nodes, d)), np.zeros((chain.n_nodes, width)))
    below, above, rounding = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    moves = chain.rows(forms.means[chain.expression], chain.successor, chain.n_nodes)
    step, alike = n_steps, first_alike(objective)
    while step > 0:
        step -= 1
        is_fixed, sums = steps.is_fixed(step), (below, above)
        here = _step_back(chain, forms, moves, after, is_fixed)
        here = replace(here, values=steps.values(here.values, step))
        is_settled = step > alike and after.is_near(here)
        here = after if is_settled else here  # W may be any numbers: those that only rounding changes are kept
        if errors is not None:
            residuals = residual_bounds(chain, forms, after, here, exact_eigenvalues=False)
            goes_on = ~is_fixed[:n]
            # M_k = e_k + P M_{k+1}, with nature at its worst
            below, above = (
                errors.step_back(m, e, goes_on) for m, e in ((below, residuals.below), (above, residuals.above))
            )
            rounding[:n] = np.where(goes_on, residuals.rounding + np.abs(_inner(chain, moves, rounding)), 0.0)
        after = here
        growth = (step - alike) * float(np.max([below - sums[0], above - sums[1]], initial=0.0)) * UP
        if is_settled and growth <= NEGLIGIBLE * np.abs(after.values).max(initial=0.0):
            below, above, step = (below + growth) * UP, (above + growth) * UP, alike
    start = chain.initial if chain.initial < n else n
    errors_at = (float(each[start]) for each in (below, above, rounding))
    return approximation_of(after, chain.initial, *errors_at)


def _step_back(
    chain: PolicyChain, forms: Forms, moves: Any, after: TaylorExpansion, is_fixed: BoolArray
) -> TaylorExpansion:
    """Return the expansion one step earlier, exact but for rounding and terms of a higher order."""
    n = chain.n_open
    values, slopes, curvatures = (np.zeros_like(part) for part in (after.values, after.slopes, after.curvatures))
    values[:n] = chain.reward + moves @ after.values
    slopes[:n] = by_expression(chain, after.values[chain.successor], forms.spreads) + moves @ after.slopes
    if curvatures.shape[1]:
        curvatures[:n] = quadratic_part(chain, forms, after) + moves @ after.curvatures
    slopes[is_fixed], curvatures[is_fixed] = 0.0, 0.0
    return TaylorExpansion(values, slopes, curvatures)


def _inner(chain: PolicyChain, moves: Any, of_open: FloatArray) -> FloatArray:
    whole = np.zeros(chain.n_nodes)
    whole[: chain.n_open] = of_open[: chain.n_open]
    return np.asarray(moves @ whole)
