"""How far an expansion is from a solution of the chain's equations, at every point of the ball: rounded up.

With f_t = a_t + β_t·x + xᵀ Γ_t x + rest and the expansion W = w⁰ + w¹·x + xᵀ W² x, the residual of a node s is

    R(x) = r + Σ_t f_t(x) W(s_t, x) - W(s, x) = ρ⁰ + ρ¹·x + xᵀ Q x + terms of degree three or more,

    ρ⁰ = r + Σ a_t w⁰(s_t) - w⁰(s),    ρ¹ = Σ (β_t w⁰(s_t) + a_t w¹(s_t)) - w¹(s),
    Q  = sym Σ β_t w¹(s_t)ᵀ + Σ (Γ_t w⁰(s_t) + a_t W²(s_t)) - W²(s).

The rows of the true β_t and Γ_t sum to zero, so that in the higher terms w¹(s_t) and W²(s_t) may be replaced by their
distance from any w̄ and W̄ of the row; these are the expected ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumdp.model.graph import FloatArray
from plumdp.rounding import SQUARES_UNDERFLOW, UNIT, UP
from plumdp.solver.coupled.chain import PolicyChain
from plumdp.solver.coupled.expansion import Expansion, by_expression, quadratic_part
from plumdp.solver.coupled.forms import Forms, full, packed_norms
from plumdp.solver.coupled.norms import extreme_eigenvalues, lengths, spectral_norms

_CHUNK = 2**22  # numbers that are worked on at once


@dataclass(frozen=True, eq=False)
class Residuals:
    """Bounds on the residual of each open node: at most ``above``, at least minus ``below``; both positive."""

    above: FloatArray  # (n_open)
    below: FloatArray  # (n_open)
    rounding: FloatArray  # (n_open): the part of both that is due to rounding


def residual_bounds(chain: PolicyChain, forms: Forms, guess: Expansion) -> Residuals:
    """Return bounds on the residuals of an expansion, whatever numbers it has."""
    return residuals_of(chain, forms, guess, guess, chain.reward)


def residuals_of(
    chain: PolicyChain,
    forms: Forms,
    after: Expansion,
    here: Expansion,
    reward: FloatArray,
    *,
    exact_eigenvalues: bool = True,
) -> Residuals:
    """Return bounds on r + Σ_t f_t W(s_t) - W(s), with one expansion of the successors and one of the nodes themselves.

    They are the same, unless there is one for each step. Without exact eigenvalues, bounds on them will do.
    """
    n, d = chain.n_open, forms.dimension
    to, f = chain.successor, chain.expression
    moves = chain.rows(forms.means[f], to, chain.n_nodes)
    mean = replace(after, values=moves @ after.values, slopes=moves @ after.slopes, curvatures=moves @ after.curvatures)
    constant = np.abs(reward + mean.values - here.values[:n])
    linear = lengths(by_expression(chain, after.values[to], forms.spreads) + mean.slopes - here.slopes[:n])
    quadratic = quadratic_part(chain, forms, after)
    if after.curvatures.shape[1]:
        quadratic += mean.curvatures - here.curvatures[:n]
        above = below = packed_norms(quadratic, d)
    else:
        above, below = extreme_eigenvalues(full(quadratic, d), exact=exact_eigenvalues)
    rounding = _rounding(chain, forms, after, here, reward)
    base = constant + linear + _higher_terms(chain, forms, after, mean) + rounding
    upper = (base + above) * UP
    return Residuals(upper, upper if below is above else (base + below) * UP, rounding * UP)


def _rounding(chain: PolicyChain, forms: Forms, after: Expansion, here: Expansion, reward: FloatArray) -> FloatArray:
    """Return what rounding can matter: in the sums, and in the coefficients that they are made of.

    A sum of m products is off by at most (m + 8) UNIT times the sum of absolute values. Coefficients that are off by
    ``errors`` change the residual by that times the size of the successor's value, and times that of the mean which was
    subtracted, as the sums of β_t and Γ_t need not be zero in floats.
    """
    n, d = chain.n_open, forms.dimension
    to, f = chain.successor, chain.expression
    sizes = _sizes(after, d)
    size_of_form = np.abs(forms.means) + lengths(forms.spreads) + packed_norms(forms.curvatures, d)
    gamma = (np.diff(chain.first) + 8) * UNIT
    at_successor = chain.sum_rows(size_of_form[f] * sizes[to])
    of_sums = gamma * (np.abs(reward) + at_successor + _sizes(here, d)[:n])
    mean = chain.sum_rows(np.abs(forms.means)[f] * sizes[to])
    of_coefficients = chain.sum_rows(forms.errors[f] * sizes[to]) + chain.sum_rows(forms.errors[f]) * mean
    total: FloatArray = (of_sums + of_coefficients) * (1 + 1e-9) + 64 * SQUARES_UNDERFLOW
    return total


def _sizes(expansion: Expansion, d: int) -> FloatArray:
    """Return the largest absolute value that each node's expansion may have on the ball."""
    sizes: FloatArray = (
        np.abs(expansion.values) + lengths(expansion.slopes) + packed_norms(expansion.curvatures, d)
    ) * UP
    return sizes


def _higher_terms(chain: PolicyChain, forms: Forms, after: Expansion, mean: Expansion) -> FloatArray:
    """Return bounds on all terms of degree three or more, row by row.

    They are Σ_t |β_t| |W²(s_t) - W̄| + |Γ_t| (|w¹(s_t) - w̄| + |W²(s_t) - W̄|), and for expressions of a higher degree
    Σ_t tail_t (|w⁰(s_t) - w̄⁰| + |w¹(s_t) - w̄| + |W²(s_t) - W̄|).
    """
    n, d, f = chain.n_open, forms.dimension, chain.expression
    total, has_curvatures = np.zeros(n), after.curvatures.shape[1] > 0
    if forms.is_affine and not has_curvatures:
        return total
    first_degree, second_degree = lengths(forms.spreads)[f], packed_norms(forms.curvatures, d)[f]
    tails = forms.tails[f]
    width = max(1, after.curvatures.shape[1] * (d if has_curvatures else 1), d)
    rows_at_once = max(1, int(_CHUNK // (width * max(1.0, len(f) / max(n, 1)))))
    for start in range(0, n, rows_at_once):
        end = min(n, start + rows_at_once)
        part = slice(chain.first[start], chain.first[end])
        to, source = chain.successor[part], np.repeat(np.arange(start, end), np.diff(chain.first[start : end + 1]))
        slope = lengths(after.slopes[to] - mean.slopes[source])
        curvature = np.zeros(len(to))
        if has_curvatures:
            curvature = spectral_norms(full(after.curvatures[to] - mean.curvatures[source], d))
        value = np.abs(after.values[to] - mean.values[source])
        terms = first_degree[part] * curvature + second_degree[part] * (slope + curvature)
        terms += tails[part] * (value + slope + curvature)
        total[start:end] = np.add.reduceat(terms, chain.first[start:end] - chain.first[start])
    result: FloatArray = total * UP
    return result
