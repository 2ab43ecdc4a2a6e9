"""Expansions of a policy's values in the parameters, to first or second order about the centre of a ball."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.base.rounding import UNIT
from plumdp.model.graph import FloatArray
from plumdp.solver.coupled.chain import PolicyChain
from plumdp.solver.coupled.forms import Forms
from plumdp.solver.equations import Equations


@dataclass(frozen=True, eq=False)
class TaylorExpansion:
    """The value of each node is about ``values + slopes·x + xᵀ curvatures x`` at the point x of a ball.

    At closed nodes it is exact: the known value, without slope and curvature. Elsewhere any numbers will do, as the
    residuals of the equations say how far off they are.
    """

    values: FloatArray  # (n_nodes)
    slopes: FloatArray  # (n_nodes, d)
    curvatures: FloatArray  # (n_nodes, d (d + 1) / 2), packed; (n_nodes, 0) for first order

    def is_near(self, other: TaylorExpansion) -> bool:
        """Return whether both differ by no more than the rounding of their values anywhere on the ball."""
        least = 4 * UNIT * np.abs(self.values).max(initial=0.0)
        mine, others = ((each.values, each.slopes, each.curvatures) for each in (self, other))
        return all(bool((np.abs(a - b) <= least).all()) for a, b in zip(mine, others, strict=True))


def first_order(chain: PolicyChain, forms: Forms, equations: Equations) -> TaylorExpansion:
    """Return values and slopes at the centre, by (I - P) w⁰ = r, and (I - P) w¹ = Σ_t β_t w⁰(s_t)."""
    n, d = chain.n_open, forms.dimension
    values, slopes = np.zeros(chain.n_nodes), np.zeros((chain.n_nodes, d))
    values[n:] = chain.known
    entering = chain.rows(forms.means[chain.expression], chain.successor, chain.n_nodes) @ values
    values[:n] = equations.solve((chain.reward + entering)[:, None])[:, 0]
    slopes[:n] = equations.solve(by_expression(chain, values[chain.successor], forms.spreads))
    return TaylorExpansion(values, slopes, np.zeros((chain.n_nodes, 0)))


def second_order(
    chain: PolicyChain, equations: Equations, first: TaylorExpansion, quadratic: FloatArray
) -> TaylorExpansion:
    """Return the first order with curvatures added, by (I - P) W² = Q, with Q the quadratic part of its residuals.

    That is sym Σ_t β_t w¹(s_t)ᵀ + Σ_t Γ_t w⁰(s_t), packed.
    """
    curvatures = np.zeros((chain.n_nodes, quadratic.shape[1]))
    curvatures[: chain.n_open] = equations.solve(quadratic)
    return TaylorExpansion(first.values, first.slopes, curvatures)


def quadratic_part(chain: PolicyChain, forms: Forms, expansion: TaylorExpansion) -> FloatArray:
    """Return the packed matrices sym Σ_t β_t w¹(s_t)ᵀ + Σ_t Γ_t w⁰(s_t) of the open nodes."""
    d = forms.dimension
    i, j = np.triu_indices(d)
    place = np.zeros((d, d), dtype=np.int64)
    place[i, j] = place[j, i] = np.arange(len(i))
    total = np.zeros((chain.n_open, len(i)))
    if not forms.is_affine:
        total += by_expression(chain, expansion.values[chain.successor], forms.curvatures)
    for k in range(d):
        products = by_expression(chain, expansion.slopes[chain.successor, k], forms.spreads)
        products[:, np.arange(d) != k] /= 2
        total[:, place[k]] += products
    return total


def by_expression(chain: PolicyChain, of_transition: FloatArray, of_expression: FloatArray) -> FloatArray:
    """Return Σ_t number_t vector_f(t) over the transitions t of each open node, f(t) being the transition's expression.

    There is one number for each transition and one vector (k) for each expression. The result is (n_open, k).
    """
    weights = chain.rows(of_transition, chain.expression, len(of_expression))
    return np.asarray(weights @ of_expression)
