"""Evidence from other studies: successes and trials of an expression in the parameters of a model.

The number of trials of a published study was fixed, so that its interval is that of Clopper and Pearson. It holds
beside the region R of the data, and both hold jointly by their shares of the error. Whether the study agrees with the
data is tested as by Berger and Boos (1994). With p(x) the p-value of the study if the expression has the value x,

    p = (largest p(x) over all values x of the expression in R)  +  (error of R)

is a p-value: at the true point it is at most a only if R misses the point, or if p(x) is at most a less the error of R.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import sqrt
from numbers import Integral
from typing import Any

from plumdp.base.errors import DataError, ModelError, Option
from plumdp.base.rounding import UP
from plumdp.confidence.bets import HalfSpace
from plumdp.confidence.binomial import clopper_pearson
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.language.constraint import parse_expression
from plumdp.model.parametric import ParametricMDP

_LEAST_LEVEL, _BISECTIONS = 1e-30, 12  # of a p-value, which is then rounded up by less than two per cent
_COUNTS = ": give successes and trials, whole numbers with at least one trial and no more successes, such as 34 of 210"


@dataclass(frozen=True)
class Study:
    """The successes and trials of an event in another study, with its probability as an affine expression."""

    text: str  # of the expression, as it was given
    expression: Polynomial
    successes: int
    trials: int
    error: float = field(default=0.0, repr=False)  # of its interval, once the error is divided
    intervals: None = field(default=None, repr=False)

    def interval(self, error: float) -> tuple[float, float]:
        """Return bounds on the expression that miss it with at most this error, rounded outward."""
        lower, upper = clopper_pearson([self.successes], [self.trials], error)
        return float(lower[0]), float(upper[0])

    @property
    def sides(self) -> tuple[Polynomial, Polynomial]:
        """The polynomials that are at least zero within the interval, exactly."""
        lower, upper = self.interval(self.error)
        return self.expression - Fraction(lower), Fraction(upper) - self.expression

    def half_spaces(self, names: tuple[str, ...]) -> tuple[HalfSpace, ...]:
        """Return none: a study cuts the space itself."""
        return ()

    def widened(self, misfit: float) -> None:
        """Return None: rows that are off need not have the parameters of another study."""

    def p_value(self, lower: float, upper: float, error: float) -> float:
        """Return a p-value for the agreement with data by which the expression has these bounds, with this error."""
        kept, rejected = _LEAST_LEVEL, 1.0
        for _ in range(_BISECTIONS):
            level = sqrt(kept * rejected)
            low, high = self.interval(level)
            kept, rejected = (kept, level) if high < lower or upper < low else (level, rejected)
        return min(1.0, (rejected + error) * UP)  # up: it claims less


def studies_of(model: ParametricMDP, evidence: Mapping[str, tuple[int, int]] | None) -> tuple[Study, ...]:
    """Return the studies whose successes and trials are given by the text of an expression.

    >>> from plumdp import case_study
    >>> studies_of(case_study("betting:5").model, {"1 - p": (34, 210)})
    (Study(text='1 - p', expression=Polynomial('-p + 1'), successes=34, trials=210),)
    """
    if evidence is None:
        return ()
    if not isinstance(evidence, Mapping):
        raise DataError("evidence takes counts by expression, such as {'p': (34, 210)}, not ", type(evidence).__name__)
    return tuple(_study(model, text, counts) for text, counts in evidence.items())


def _study(model: ParametricMDP, text: str, counts: Any) -> Study:
    given = Option("evidence", {text: counts})
    try:
        expression = parse_expression(str(text), model)
    except ModelError as error:
        raise DataError(given, ": ", *error.args) from None
    if expression.is_constant or not expression.is_affine:
        what = "has no parameters" if expression.is_constant else "has products of parameters"
        raise DataError(given, f": {expression} {what}; give a sum of parameters and numbers, such as 'p' or '1 - p'")
    if not (isinstance(counts, tuple | list) and len(counts) == 2 and all(isinstance(n, Integral) for n in counts)):
        raise DataError(given, _COUNTS)
    successes, trials = map(int, counts)
    if not 0 <= successes <= trials or trials == 0:
        raise DataError(given, _COUNTS)
    return Study(str(text), expression, successes, trials)
