"""Bounds the logarithms of outcomes of the second degree on boxes of parameters, by quadratic functions above them.

On a box, f = f0 (1 + s) with s = L·x + q(x) and a quadratic q. Where |L·x| is at most a, and |q| at most b,

    ln f <= ln f0 + s - κ s² / 2 <= ln f0 + L·x + q(x) - κ (L·x)² / 2 + κ a b,    κ = κ(a + b) of Statement 4.

So the staying outcome 1 - h p of a row with a hazard ratio h, which hardly changes, has a bound that is hardly off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np

from plumdp.base.rounding import UNDERFLOW, UNIT, UP
from plumdp.confidence.evidence import curvature_below
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.graph import FloatArray

_WIDEST = 4.0  # relative change of an outcome, from which on it has no bound
_ROUNDING = 1e-12  # relative; more than any sum of some hundred terms here is off by


@dataclass(frozen=True, eq=False)
class QuadraticLogs:
    """The functions ``logs + slopes·x + xᵀ curvatures x + rest`` on boxes."""

    logs: FloatArray  # (b, o)
    slopes: FloatArray  # (b, o, d)
    curvatures: FloatArray  # (b, o, d, d)
    rest: FloatArray  # (b, o)
    excess: FloatArray  # (b, o): about how much curvature they have that is not of squares, infinite if not known


@dataclass(frozen=True, eq=False)
class SecondDegree:
    """Outcomes of degree two, such as 1 - h p, as quadratic functions of the parameters."""

    constants: FloatArray  # (o): not a number, if the degree is larger
    linear: FloatArray  # (o, d)
    quadratic: FloatArray  # (o, d, d): symmetric

    @staticmethod
    def of(outcomes: Sequence[Polynomial], names: tuple[str, ...]) -> SecondDegree:
        """Return the coefficients of some outcomes; those of a larger degree have no bounds."""
        n, d = len(outcomes), len(names)
        constants, linear, quadratic = np.zeros(n), np.zeros((n, d)), np.zeros((n, d, d))
        for o, outcome in enumerate(outcomes):
            if outcome.degree > 2:
                constants[o] = nan
                continue
            for exponents, c in outcome.terms(names).items():
                places = [i for i, power in enumerate(exponents) for _ in range(power)]
                if len(places) == 2:
                    quadratic[o, places[0], places[1]] += float(c) / 2
                    quadratic[o, places[1], places[0]] += float(c) / 2
                elif places:
                    linear[o, places[0]] = float(c)
                else:
                    constants[o] = float(c)
        return SecondDegree(constants, linear, quadratic)

    def on(self, centres: FloatArray, spreads: FloatArray, sizes: FloatArray) -> QuadraticLogs:
        """Return functions above the logarithms of outcomes on boxes (see above)."""
        d = centres.shape[1]
        bends = np.tensordot(centres, self.quadratic, ([1], [1]))  # (b, o, d)
        middle = self.constants + centres @ self.linear.T + (bends * centres[:, None]).sum(2)
        slopes = (self.linear + 2 * bends) @ spreads
        curvatures = spreads.swapaxes(1, 2)[:, None] @ self.quadratic @ spreads[:, None]
        size = np.abs(self.constants) + sizes @ np.abs(self.linear).T
        size += (np.tensordot(sizes, np.abs(self.quadratic), ([1], [1])) * sizes[:, None]).sum(2)
        base = middle + (6 * d + 40) * UNIT * size * UP + UNDERFLOW  # above the outcome, wherever it is in the box
        reach, off = np.abs(slopes).sum(2) / base * UP, np.abs(curvatures).sum((2, 3)) / base * UP
        is_told = (base > 0) & (reach + off < _WIDEST)
        base, reach, off = (np.where(is_told, each, 1.0) for each in (base, reach, off))
        slopes, curvatures = slopes / base[:, :, None], curvatures / base[:, :, None, None]
        kappa = curvature_below(reach + off)
        curvatures = curvatures - kappa[:, :, None, None] / 2 * slopes[:, :, :, None] * slopes[:, :, None]
        rest = (kappa * reach * off + _ROUNDING * (1 + np.abs(np.log(base)) + reach + off) ** 2) * UP
        excess = np.where(is_told, off + rest, inf)
        return QuadraticLogs(np.log(base), slopes, curvatures, rest, excess)
