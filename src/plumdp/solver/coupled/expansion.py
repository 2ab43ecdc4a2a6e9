"""Expansions of a policy's values in the parameters, to first or second order about the centre of a ball.

Upper bounds on the residuals of an expansion in the chain's equations, at every point of the ball.

With f_t = a_t + β_t·x + xᵀ Γ_t x + rest and the expansion W = w⁰ + w¹·x + xᵀ W² x, the residual of a node s is

    R(x) = r + Σ_t f_t(x) W(s_t, x) - W(s, x) = ρ⁰ + ρ¹·x + xᵀ Q x + terms of degree three or more,

    ρ⁰ = r + Σ a_t w⁰(s_t) - w⁰(s),    ρ¹ = Σ (β_t w⁰(s_t) + a_t w¹(s_t)) - w¹(s),
    Q  = sym Σ β_t w¹(s_t)ᵀ + Σ (Γ_t w⁰(s_t) + a_t W²(s_t)) - W²(s).

The rows of the true β_t and Γ_t sum to zero, so that in the higher terms w¹(s_t) and W²(s_t) may be replaced by their
distance from any w̄ and W̄ of the row. Here these are the expected ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.base.rounding import SQUARES_UNDERFLOW, UNIT, UP
from plumdp.model.graph import FloatArray, read_only
from plumdp.solver.chains import Equations
from plumdp.solver.coupled import residual_kernels
from plumdp.solver.coupled.chain import PolicyChain
from plumdp.solver.coupled.forms import Forms, extreme_eigenvalues, lengths, packed_norms


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


_MAX_PRODUCTS = {False: 2e7, True: 5e9}  # numbers to multiply, up to which norms are sharp; more where it gains more
_MANY = 4  # parameters


@dataclass(frozen=True, eq=False)
class ResidualBounds:
    """Bounds on the residual of each open node, between minus ``below`` and ``above``, both positive."""

    above: FloatArray  # (n_open)
    below: FloatArray  # (n_open)
    rounding: FloatArray  # (n_open): the part of both that is due to rounding
    quadratic: FloatArray  # (n_open, d (d + 1) / 2): the matrices Q, packed, as they round


def residual_bounds(
    chain: PolicyChain,
    forms: Forms,
    after: TaylorExpansion,
    here: TaylorExpansion | None = None,
    *,
    exact_eigenvalues: bool = True,
) -> ResidualBounds:
    """Return bounds on r + Σ_t f_t W(s_t) - W(s), whatever numbers an expansion has.

    If there is one for each step, that of the nodes themselves (``here``) is another than that of their successors.
    Without exact eigenvalues, bounds on them will do.

    Rounding: a sum of m products is off by at most (m + 8) UNIT times the sum of absolute values. Coefficients that are
    off by ``errors`` change the residual by that times the size of the successor's value, and times that of the mean
    which was subtracted, as the sums of β_t and Γ_t need not be zero in floats.

    If rows may be off by a model tolerance, it is added times the range of W(s_t) over the transitions of each node.
    """
    n, d = chain.n_open, forms.dimension
    edges = chain.first, chain.successor, chain.expression
    of_spreads, of_bends = lengths(forms.spreads), packed_norms(forms.curvatures, d)
    means, spreads, curvatures, errors = _as_read_only(forms.means, forms.spreads, forms.curvatures, forms.errors)
    parts = means, spreads, curvatures, np.abs(means) + of_spreads + of_bends, errors
    later, of_nodes = _parts(after, d), _parts(after if here is None else here, d)
    constant, linear, higher, rounding = (np.zeros(n) for _ in range(4))
    quadratic = np.zeros((n, d * (d + 1) // 2))
    mean = np.zeros(n), np.zeros((n, d)), np.zeros((n, after.curvatures.shape[1]))
    residual_kernels.write_low_degrees(
        edges, parts, later, of_nodes, chain.reward, mean, constant, linear, quadratic, rounding
    )
    if after.curvatures.shape[1] or not forms.is_affine:
        is_sharp = len(chain.successor) * d**3 <= _MAX_PRODUCTS[d > _MANY]
        norms = forms.reaches(), of_bends, forms.tails
        residual_kernels.write_high_degrees(*edges, norms, later, mean, is_sharp, higher)
    if chain.model_tolerance:
        ranges, about = np.zeros(n), tuple(part / chain.discount for part in mean)  # any numbers: these are close
        residual_kernels.write_ranges(chain.first, chain.successor, later, about, ranges)
        higher += chain.model_tolerance * chain.discount * UP * ranges
    rounding = rounding * (1 + 1e-9) + 64 * SQUARES_UNDERFLOW
    # bounds all but xᵀ Q x, since |x| <= 1
    base = constant + linear + higher + rounding
    if after.curvatures.shape[1]:
        upper = (base + packed_norms(quadratic, d)) * UP
        return ResidualBounds(upper, upper, rounding, quadratic)
    above, below = extreme_eigenvalues(quadratic, d, exact=exact_eigenvalues)
    return ResidualBounds((base + above) * UP, (base + below) * UP, rounding, quadratic)


def _parts(expansion: TaylorExpansion, d: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return an expansion as the kernels take it, with the largest absolute value of each node on the ball."""
    values, slopes, curvatures = _as_read_only(expansion.values, expansion.slopes, expansion.curvatures)
    return values, slopes, curvatures, (np.abs(values) + lengths(slopes) + packed_norms(curvatures, d)) * UP


def _as_read_only(*arrays: FloatArray) -> tuple[FloatArray, ...]:
    """Return views that cannot be written to, all of one kind, so that kernels are compiled once."""
    return tuple(read_only(array.view()) for array in arrays)
