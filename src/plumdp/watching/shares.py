"""Bounds the share of units whose value is worse than a number, also of units that nobody looked at.

Let N units be drawn alike, each with a certificate that fails with probability δ at most, let K of the certified ends
be worse than x, and let CP be the upper end of Clopper and Pearson at one side. With probability 1 - η, of all units at
most the following share is worse than x (docs/proofs/watching.md has the proofs):

    certificates that may fail together:  CP(K + ⌊sN⌋, N; η/2), where s = 2δ/η,
    units drawn with their data:          CP(K, N; η) + δ.

For a share that is fixed in place of x, let k be the largest K for which this is at most the share: at most the
share of all units is worse than the certified end number k + 1, from the worst on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import floor, inf, isinf, log, nan, sqrt
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.base.errors import DataError, Option, require_kind
from plumdp.base.vocabulary import Assumption
from plumdp.confidence.binomial import clopper_pearson
from plumdp.learning.methods import error_of
from plumdp.model.graph import FloatArray
from plumdp.model.text import number_of
from plumdp.result.certificate import Certificate
from plumdp.result.printing import outward, percent
from plumdp.result.show import Page, as_html, as_json, as_text
from plumdp.watching.units import Under, UnitTable

_UP = 1e-12  # more than a few operations round
_UNDER = {
    "own": "each unit follows the policy of its own certificate",
    "given": "all units follow the policy that was given, which was chosen before looking at these units",
    "practice": "each unit follows its own practice",
}
_SHARED = (
    "what the data of all units share, such as a season, is the same for units that were not looked at, as it is one "
    "reason for which policies were chosen"
)


@dataclass(frozen=True)
class ShareWorse:
    """An upper bound on the share of units, also unseen ones, whose value is worse than a number.

    Either was given, and the other follows.
    """

    share: float
    than: float
    direction: Literal["max", "min"]  # values that are worse lie below, or above
    n_worse: int  # certified ends that are worse, or certificates without bounds
    n_units: int
    confidence: float
    assumptions: tuple[str, ...]
    is_of_share: bool = False  # whether the share was given
    under: Under = "own"
    table: UnitTable | None = field(default=None, repr=False, compare=False)  # of whose rows it is

    @property
    def picture(self) -> str:
        """The picture of it: that of its table."""
        return "" if self.table is None else "units"

    @property
    def shown(self) -> tuple[UnitTable | None, tuple[float, str]]:
        """What the picture shows: the table, and the value that all but the share of units reach."""
        return self.table, (self.than, self.sentence)

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        policy = " under this policy" if self.under == "given" else ""
        side = "below" if self.direction == "max" else "above"
        if self.is_of_share and isinf(self.than):
            return "Too few units have bounds to say what a share of such units reaches."
        if self.is_of_share:
            least, end = outward(100 * (1 - self.share), -1, 3), -1 if self.direction == "max" else 1
            reached = f"at {'least' if end < 0 else 'most'} {outward(self.than, end, 6)}"
            return (
                f"At least {least} % of such units, also of those that were not looked at, have a value of {reached}"
                f"{policy} (confidence {percent(self.confidence)})."
            )
        return (
            f"At most {outward(100 * self.share, 1, 3)} % of such units, also of those that were not looked at, have "
            f"a value {side} {self.than:.10g}{policy} (confidence {percent(self.confidence)})."
        )

    def page(self) -> Page:
        """Return the bound, and what it rests on."""
        seen = f"{self.n_worse:,} of {number_of(self.n_units, 'certificate')} do not exclude such a value"
        return Page(
            self.sentence, facts=[("seen", seen), *(("assuming", Assumption.of(each)) for each in self.assumptions)]
        )

    SCHEMA: ClassVar[str] = "plumdp/share/1"
    TOLD: ClassVar[str] = "share than direction under n_worse n_units confidence sentence assumptions"
    __str__ = as_text
    _repr_html_ = as_html
    to_dict = as_json


def share_worse(
    certificates: Sequence[Certificate] | UnitTable,
    than: float | None = None,
    *,
    share: float | None = None,
    confidence: float = 0.95,
    apart: bool = False,
    looked: bool = False,
) -> ShareWorse:
    """Return an upper bound on the share of units whose value is worse than a number, from a sample of units.

    Parameters
    ----------
    certificates
        One for each unit, all with the same question; or the table of ``certify_each``.
    than
        The number: values of a maximum are worse below it, and those of a minimum above it.
    share
        In place of the number: the share of units that may be worse, such as 0.1. The number is then found.
    confidence
        Of the bound. That of the certificates must be higher.
    apart
        Each unit was drawn together with its data, so that certificates do not fail together, as they would with one
        model, sensor or weather for all. The bound is lower.
    looked
        The number was chosen by looking at the certificates. The bound is higher.

    Examples
    --------
    >>> from plumdp import case_study, certify, simulate
    >>> study = case_study("betting:5")
    >>> data = [simulate(study.model, study.true_point, 2000, rng=seed, max_steps=6) for seed in range(8)]
    >>> certificates = [certify(study.model, each, study.objective) for each in data]
    >>> found = share_worse(certificates, 5.0)
    >>> found.n_worse, round(found.share, 3)
    (0, 0.369)
    >>> f"{share_worse(certificates, share=0.4).than:.3f}"  # which at least 60 % of all such units reach
    '10.694'
    """
    sample, error = _sample(certificates), error_of(confidence)
    if (than is None) == (share is None) or (share is not None and looked):
        raise DataError("give a number, or the share of units that may be worse than one; the share is not looked at")
    is_of_share = share is not None
    n, about = len(sample.worst), {"apart": apart, "looked": looked}
    # larger is worse from here on, without bounds most of all
    if share is not None:
        if not 0 < share < 1:
            raise DataError(Option("share", share), ": give the share of units that may be worse, such as 0.1")
        few = bisect_right(range(n), share, key=lambda k: _share(k, n, error, sample.failing, **about))  # as k grows
        than = -sample.sign * float(np.sort(sample.worst)[n - few] if few else inf)
    if than is None or than != than:
        raise DataError(Option("than", than), ": give a number")
    n_worse = int((sample.worst > -sample.sign * than).sum())
    if share is None:
        share = _share(n_worse, n, error, sample.failing, **about)
    of_units = "units, each with its data," if apart else "units"
    said = (
        f"{of_units} were drawn at random and alike, and none was left out because of what it showed",
        "how many units, and when to look, was decided before anybody looked"
        + ("" if looked else f"; so was the {'share' if is_of_share else 'number'}"),
        _UNDER[sample.under],
    )
    shared = () if apart or sample.under == "given" else (_SHARED,)
    told = (*said, *shared, *dict.fromkeys(sample.assumptions))
    direction: Literal["max", "min"] = "max" if sample.sign > 0 else "min"
    table = certificates if isinstance(certificates, UnitTable) else None
    return ShareWorse(share, float(than), direction, n_worse, n, confidence, told, is_of_share, sample.under, table)


class _Sample(NamedTuple):
    """What is certified of a sample of units."""

    worst: FloatArray  # the certified end of each, infinite without bounds; larger is worse
    sign: int  # 1 if values should be large, -1 if small
    failing: float  # how often a certificate may fail
    assumptions: Sequence[str]
    under: Under


def _sample(given: Sequence[Certificate] | UnitTable) -> _Sample:
    """Return what is certified of a sample, whose units have the same question."""
    under: Under = "own"
    if isinstance(given, UnitTable):
        sign = 1 if given.direction == "max" else -1
        ends = [row.lower if sign > 0 else row.upper for row in given.rows]
        failing, assumptions, under = given.error, given.assumptions, given.under
    else:
        for each in given:
            require_kind(each, Certificate, "share_worse takes certificates, such as certify makes")
        if len({(each.claim.objective, each.claim.direction) for each in given}) > 1:
            raise DataError("certificates are about different questions: give those of one question")
        sign = 1 if given and given[0].claim.direction == "max" else -1
        ends = [(each.lower if sign > 0 else each.upper) if each.claim.claims_bounds else nan for each in given]
        failing = max((1 - each.confidence for each in given), default=0.0)
        assumptions = tuple(text for each in given for text in each.rests_on.assumptions)
    if not ends:
        raise DataError("there are no certificates: give one for each unit of a sample")
    worst = -sign * np.array(ends, dtype=np.float64)
    return _Sample(np.where(np.isnan(worst), inf, worst), sign, failing * (1 + _UP), assumptions, under)


def _share(k: int, n: int, error: float, failing: float, *, apart: bool, looked: bool) -> float:
    """Return the bound, given how many certified ends are worse and how often certificates fail."""
    own = error
    if not apart:  # more than s n fail with probability δ / s = η / 2 at most (Markov)
        own, k = equal_parts(error, 2), k + floor(2 * failing / error * n * (1 + _UP))
    if k >= n:
        return 1.0
    if looked:  # at all numbers at once (Dvoretzky, Kiefer, Wolfowitz; Massart), which needs an error of a half
        share = k / n + sqrt(log(1 / min(own, 0.5)) / (2 * n))
    else:
        share = float(clopper_pearson([k], [n], min(2 * own, 1.0))[1][0])
    return min((share + failing * apart) * (1 + _UP), 1.0)
