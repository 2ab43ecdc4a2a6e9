"""Bounds the share of units whose value is worse than a number, also of units that nobody looked at.

Let N units be drawn alike, each with a certificate that fails with probability δ at most, let K of the certified ends
be worse than x, and let CP be the upper end of Clopper and Pearson at one side. With probability 1 - η, of all units at
most the following share is worse than x (docs/proofs/watching.md has the proofs):

    certificates that may fail together:  CP(K + ⌊sN⌋, N; η/2), where s = 2δ/η,
    units drawn with their data:          CP(K, N; η) + δ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log, sqrt
from typing import ClassVar, Literal

from plumdp.base.error_budget import equal_parts
from plumdp.base.errors import DataError, Option, require_kind
from plumdp.base.vocabulary import Assumption
from plumdp.confidence.binomial import clopper_pearson
from plumdp.learning.methods import error_of
from plumdp.model.text import number_of
from plumdp.result.certificate import Certificate
from plumdp.result.printing import outward, percent
from plumdp.result.show import Page, as_html, as_json, as_text

_UP = 1e-12  # more than a few operations round


@dataclass(frozen=True)
class ShareWorse:
    """An upper bound on the share of units, also unseen ones, whose value is worse than a number."""

    share: float
    than: float
    direction: Literal["max", "min"]  # values that are worse lie below, or above
    n_worse: int  # certified ends that are worse, or certificates without bounds
    n_units: int
    confidence: float
    assumptions: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        side = "below" if self.direction == "max" else "above"
        return (
            f"At most {outward(100 * self.share, 1, 3)} % of such units, also of those that were not looked at, have "
            f"a value {side} {self.than:.10g} (confidence {percent(self.confidence)})."
        )

    def page(self) -> Page:
        """Return the bound, and what it rests on."""
        seen = f"{self.n_worse:,} of {number_of(self.n_units, 'certificate')} do not exclude such a value"
        return Page(
            self.sentence, facts=[("seen", seen), *(("assuming", Assumption.of(each)) for each in self.assumptions)]
        )

    SCHEMA: ClassVar[str] = "plumdp/share/1"
    TOLD: ClassVar[str] = "share than direction n_worse n_units confidence sentence assumptions"
    __str__ = as_text
    _repr_html_ = as_html
    to_dict = as_json


def share_worse(
    certificates: Sequence[Certificate],
    than: float,
    *,
    confidence: float = 0.95,
    apart: bool = False,
    looked: bool = False,
) -> ShareWorse:
    """Return an upper bound on the share of units whose value is worse than a number, from a sample of units.

    Parameters
    ----------
    certificates
        One for each unit, of the value of its own policy, all with the same question.
    than
        The number: values of a maximum are worse below it, and those of a minimum above it.
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
    >>> found = share_worse([certify(study.model, each, study.objective) for each in data], 5.0)
    >>> found.n_worse, round(found.share, 3)
    (0, 0.369)
    """
    if not certificates:
        raise DataError("there are no certificates: give one for each unit of a sample")
    for each in certificates:
        require_kind(each, Certificate, "share_worse takes certificates, such as certify makes")
    first, error = certificates[0], error_of(confidence)
    if any(
        (each.claim.objective, each.claim.direction) != (first.claim.objective, first.claim.direction)
        for each in certificates
    ):
        raise DataError("certificates are about different questions: give those of one question")
    if not than == than:
        raise DataError(Option("than", than), ": give a number")
    n_worse = sum(_may_be_worse(each, than) for each in certificates)
    failing = max(1 - each.confidence for each in certificates) * (1 + _UP)
    share = _share(n_worse, len(certificates), error, failing, apart=apart, looked=looked)
    of_units = "units, each with its data," if apart else "units"
    said = (
        f"{of_units} were drawn at random and alike, and none was left out because of what it showed",
        "how many units, and when to look, was decided before anybody looked"
        + ("" if looked else "; so was the number"),
        "each unit follows the policy of its own certificate",
    )
    together = () if apart else ("certificates may fail together",)
    rests_on = dict.fromkeys(each for certificate in certificates for each in certificate.rests_on.assumptions)
    about = (*said, *together, *rests_on)
    return ShareWorse(share, float(than), first.claim.direction, n_worse, len(certificates), confidence, about)


def _may_be_worse(certificate: Certificate, than: float) -> bool:
    """Return whether a certificate does not exclude a value that is worse."""
    if not certificate.claim.claims_bounds:
        return True
    return not (certificate.lower >= than if certificate.claim.direction == "max" else certificate.upper <= than)


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
