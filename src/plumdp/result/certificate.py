"""The ``Certificate``: a claim about a policy in five records, with everything that the claim rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import Any

from plumdp.base.json_values import digest, json_value
from plumdp.base.vocabulary import REJECTIONS, Assumption, Status
from plumdp.model.text import one_line
from plumdp.result.claim import Beside, Claim, Comparison, How, RestsOn
from plumdp.result.facts import details, facts, premises
from plumdp.result.headlines import answer_headline, comparison_headline, value_headline
from plumdp.result.policy_table import PolicyTable
from plumdp.result.show import Fact, Page, as_html, as_text, bounds_svg

SCHEMA = "plumdp/certificate/1"

_NOT_TOLD = ("policy", "rival", "contradiction", "claims_bounds")  # fields that files do not name, or by null bounds


@dataclass(frozen=True, eq=False)
class Certificate:
    """With its confidence the value of the policy lies between ``lower`` and ``upper``, if the assumptions hold.

    ``claim`` has the bounds, ``how`` the way they were proved, ``rests_on`` assumptions and data. What is ``beside``
    claims nothing, and ``comparison`` says what was decided.
    """

    claim: Claim
    how: How
    rests_on: RestsOn
    beside: Beside = field(default_factory=Beside)
    comparison: Comparison = field(default_factory=Comparison)

    @property
    def lower(self) -> float:
        """The lower bound."""
        return self.claim.lower

    @property
    def upper(self) -> float:
        """The upper bound."""
        return self.claim.upper

    @property
    def policy(self) -> PolicyTable:
        """The policy that the bounds were proved for."""
        return self.claim.policy

    @property
    def status(self) -> Status:
        """What is claimed: "certified", "inconclusive", or what the data contradict."""
        return self.claim.status

    @property
    def confidence(self) -> float:
        """The probability with which the claim holds, whatever is true."""
        return self.claim.confidence

    @property
    def headline(self) -> str:
        """The claim in one sentence: verdict, policy, what the question asks, how much, and how sure."""
        options = self.how.options
        given = "this policy" if options.get("policy") == "given" else "the recommended policy"
        return value_headline(self.claim, "current practice" if options.get("practice") else given)

    @property
    def decided(self) -> str:
        """The answer to a threshold, or the comparison with another policy, in one sentence; empty if there is none."""
        if self.comparison.difference:
            return comparison_headline(self.claim, self.comparison.difference)
        is_claim = self.comparison.answer and self.status not in REJECTIONS
        return answer_headline(self.claim, self.comparison.answer) if is_claim else ""

    def __repr__(self) -> str:
        claim, (low, high) = self.claim, self.claim.printed_bounds
        return one_line(self, f"{low} to {high}", f"confidence {claim.confidence:.10g}", claim.status, claim.objective)

    def page(self) -> Page:
        """Return the claim and what it rests on."""
        spent = [(words, f"{100 * float(share):.3g} %") for words, share in self.how.budget]
        budget = (
            [Page(f"what the error of {100 * (1 - self.confidence):.6g} % is spent on", facts=spent)] if spent else []
        )
        told = facts(self.claim, self.how, self.rests_on, self.beside, self.comparison)
        return Page(
            self.headline,
            facts=told,
            details=details(self.claim, self.how, self.beside),
            folded=budget,
            picture=self._picture,
        )

    __str__ = as_text
    _repr_html_ = as_html

    @property
    def assuming(self) -> list[Sequence[str]]:
        """What the claim, a comparison, and each rung assume."""
        more = self.comparison.difference.get("assuming", ())
        return [self.rests_on.assumptions, more, *(rung.premises for rung in self.claim.rungs)]

    @property
    def _picture(self) -> str:
        claim = self.claim
        if not claim.claims_bounds:
            return ""
        return bounds_svg(claim.objective, claim.lower, claim.upper, claim.printed_bounds, self.beside.estimated_value)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the policy, ready for JSON; infinite numbers as text, bounds not claimed as null."""
        records = [getattr(self, each.name) for each in fields(self)]
        told = {each.name: getattr(record, each.name) for record in records for each in fields(record)}
        content = {"schema": SCHEMA} | {name: json_value(told[name]) for name in told if name not in _NOT_TOLD}
        content |= {"narrower": "".join(map(str, self.how.narrower)), "budget": json_value(dict(self.how.budget))}
        content |= {"comparison": content.pop("difference")}
        content |= {"in_brief": Assumption.in_brief(chain(*self.assuming))}
        unclaimed = {} if self.claim.claims_bounds else {"lower": None, "upper": None}
        return {
            name: told
            for name, told in content.items()
            if told or name not in ("answer", "comparison", "rungs", "cap")
            if self.claim.rungs or name != "ground"
        } | unclaimed


def fingerprint_of(certificate: Certificate) -> str:
    """Return a hash of the claim, and of the model and the counts that it follows from: what findings are about."""
    claim, how, provenance = certificate.claim, certificate.how, certificate.rests_on.provenance
    told = [
        claim.objective,
        float(claim.lower),
        float(claim.upper),
        claim.confidence,
        how.relaxation,
        how.confidence_set,
    ]
    return digest(repr([*told, *(provenance.get(name) for name in ("expressions", "counts", "objective"))]).encode())


def premises_of(certificates: Iterable[Certificate]) -> list[Fact]:
    """Return the premises of certificates, each once."""
    told = [premises(each.claim, each.rests_on, each.beside, each.comparison) for each in certificates]
    return [*dict.fromkeys(fact for facts_of_one in told for fact in facts_of_one)]


def assumptions_of(certificates: Iterable[Certificate]) -> list[str]:
    """Return the assumptions of several certificates, each once."""
    return [text for label, text in premises_of(certificates) if label == "assuming"]


class Certificates(list[Certificate]):
    """A list of certificates, which notebooks show as a table."""

    def page(self) -> Page:
        """Return the bounds of each, and what all of them rest on."""
        header = ("objective", "relaxation", "lower", "upper", "confidence", "status")
        rows = [
            (c.claim.objective, c.how.relaxation, *c.claim.printed_bounds, f"{c.confidence:.10g}", str(c.status))
            for c in self
        ]
        same = [i for i in (0, 4) if len({row[i] for row in rows}) == 1]  # columns that need no place in each row
        said = ", ".join(f"{header[i]} {rows[0][i]}" if i else rows[0][i] for i in same)
        kept = [i for i in range(len(header)) if i not in same]
        cells = [[row[i] for i in kept] for row in rows]
        return Page(said, header=[header[i] for i in kept], rows=cells, facts=premises_of(self))

    _repr_html_ = as_html
