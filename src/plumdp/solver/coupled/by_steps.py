"""Expansions of objectives with a number of steps: backward induction, with one expansion for each step.

With W_k the expansion at step k and R_k = r + P W_{k+1} - W_k its residual, at most e_k, the value V_k differs from W_k
by D_k = R_k + P D_{k+1}; so M_k = e_k + P M_{k+1}, with nature at its worst, bounds it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plumdp.model.graph import BoolArray, FloatArray, Indices
from plumdp.model.objective import Objective, Reach
from plumdp.solver.coupled.chain import PolicyChain
from plumdp.solver.coupled.expansion import Expansion, by_expression, quadratic_part
from plumdp.solver.coupled.forms import Forms
from plumdp.solver.coupled.remainder import StepErrors
from plumdp.solver.coupled.residuals import residuals_of


@dataclass(frozen=True, eq=False)
class StepsExpansion:
    """The expansion at step zero, and bounds on how far the value of the initial state is below and above it."""

    expansion: Expansion
    below: float
    above: float
    rounding: float  # about the part of both that is due to rounding


def known_value(chain: PolicyChain, objective: Objective) -> float:
    """Return the value of a run that is over at the start."""
    known = chain.known
    if objective.n_steps is not None:
        known = objective_on(objective, chain.state).at_step(np.zeros(chain.n_nodes), 0)
    return float(known[chain.initial])


def objective_on(objective: Objective, states: Indices) -> Objective:
    """Return what an objective says about some states, for its values at a step."""
    if isinstance(objective, Reach):
        return replace(objective, target=objective.target[states], avoid=objective.avoid[states])
    return objective if objective.target is None else replace(objective, target=objective.target[states])


def expand_by_steps(
    chain: PolicyChain, forms: Forms, objective: Objective, errors: StepErrors | None, *, order: int
) -> StepsExpansion:
    """Return the expansion at step zero of first or second order; without errors, as an estimate."""
    n, d = chain.n_open, forms.dimension
    local, n_steps = objective_on(objective, chain.state), objective.n_steps
    assert n_steps is not None
    width = d * (d + 1) // 2 if order > 1 else 0
    values = local.at_step(np.zeros(chain.n_nodes), n_steps)
    after = Expansion(values, np.zeros((chain.n_nodes, d)), np.zeros((chain.n_nodes, width)))
    below, above, rounding = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    moves = chain.rows(forms.means[chain.expression], chain.successor, chain.n_nodes)
    for step in range(n_steps - 1, -1, -1):
        here = _step_back(chain, forms, moves, local, after, step)
        if errors is not None:
            found = residuals_of(chain, forms, after, here, exact_eigenvalues=False)
            goes_on = ~_is_fixed(local, step, chain.n_nodes)[:n]
            below, above = (errors.step_back(m, e, goes_on) for m, e in ((below, found.below), (above, found.above)))
            rounding[:n] = np.where(goes_on, found.rounding + np.abs(_inner(chain, moves, rounding)), 0.0)
        after = here
    start = chain.initial if chain.initial < n else n
    return StepsExpansion(after, float(below[start]), float(above[start]), float(rounding[start]))


def _step_back(
    chain: PolicyChain, forms: Forms, moves: Any, local: Objective, after: Expansion, step: int
) -> Expansion:
    """Return the expansion one step earlier, exact but for rounding and terms of a higher order."""
    n = chain.n_open
    is_fixed = _is_fixed(local, step, chain.n_nodes)
    values, slopes, curvatures = (np.zeros_like(part) for part in (after.values, after.slopes, after.curvatures))
    values[:n] = chain.reward + moves @ after.values
    slopes[:n] = by_expression(chain, after.values[chain.successor], forms.spreads) + moves @ after.slopes
    if curvatures.shape[1]:
        curvatures[:n] = quadratic_part(chain, forms, after) + moves @ after.curvatures
    slopes[is_fixed], curvatures[is_fixed] = 0.0, 0.0
    return Expansion(local.at_step(values, step), slopes, curvatures)


def _inner(chain: PolicyChain, moves: Any, of_open: FloatArray) -> FloatArray:
    whole = np.zeros(chain.n_nodes)
    whole[: chain.n_open] = of_open[: chain.n_open]
    return np.asarray(moves @ whole)


def _is_fixed(local: Objective, step: int, n: int) -> BoolArray:
    """Return the nodes whose value at a step the objective itself says."""
    if isinstance(local, Reach):
        assert local.steps is not None
        first, last = local.steps
        return np.ones(n, dtype=np.bool_) if step == last else local.avoid | (local.target & (first <= step))
    return np.zeros(n, dtype=np.bool_) if local.target is None else local.target
