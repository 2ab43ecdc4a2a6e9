"""Upper bounds on the residuals of an expansion in the chain's equations, at every point of the ball.

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

from plumdp.base.rounding import SQUARES_UNDERFLOW, UP
from plumdp.model.graph import FloatArray, read_only
from plumdp.solver.coupled import residual_kernels
from plumdp.solver.coupled.chain import PolicyChain
from plumdp.solver.coupled.expansion import TaylorExpansion
from plumdp.solver.coupled.forms import Forms, extreme_eigenvalues, lengths, packed_norms

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

    If rows may be off by a misfit, it is added times the range of W(s_t) over the transitions of each node.
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
    if chain.misfit:
        ranges, about = np.zeros(n), tuple(part / chain.discount for part in mean)  # any numbers: these are close
        residual_kernels.write_ranges(chain.first, chain.successor, later, about, ranges)
        higher += chain.misfit * chain.discount * UP * ranges
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
