"""Answers questions such as ``P>=0.9 [ F "goal" ]`` from data: yes, no, or inconclusive."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any

from plumdp.base.errors import require_kind
from plumdp.base.json_values import json_value
from plumdp.base.progress import working
from plumdp.base.vocabulary import Relaxation, Status
from plumdp.base.vocabulary import Verdict as Verdict
from plumdp.certifying.pipeline import conclude, default_relaxation, relax
from plumdp.certifying.rungs import led_by
from plumdp.certifying.valuation import best_of_all
from plumdp.learning.learned import Learned, of_learned
from plumdp.model.language.threshold import Threshold, parse_threshold
from plumdp.model.policy import Policy
from plumdp.model.question import ask
from plumdp.result.certificate import Certificate
from plumdp.result.rungs import Ground
from plumdp.result.show import Page, as_html, as_text


@dataclass(frozen=True, eq=False)
class Decision:
    """The verdict on a threshold, with the certificate that it follows from.

    ``limit`` is what no policy beats at any point of the region: at most that much if large values are better, at
    least that much otherwise. If the question is about a given policy, it is the other bound of its value. It holds
    jointly with the certificate, with the same confidence.
    """

    question: Threshold
    verdict: Verdict
    certificate: Certificate
    limit: float

    def __repr__(self) -> str:
        return f"Decision({self.verdict}, {self.question.text})"

    def page(self) -> Page:
        """Return the answer and the certificate."""
        return Page(self.headline, inside=[self.certificate])

    __str__ = as_text
    _repr_html_ = as_html

    @property
    def headline(self) -> str:
        """The answer in one sentence: verdict, confidence, what was proved, and what was asked."""
        return self.answered.decided or self.certificate.headline

    @property
    def answered(self) -> Certificate:
        """The certificate with question, verdict, of whom that is, and what no policy beats if it is of all."""
        graph, verdict = self.certificate.policy.graph, self.verdict
        graph = graph if graph.memory is None else graph.memory.graph  # a product may have the policy's actions alone
        about = "recommended" if graph.n_choices > graph.n_states else "only"
        about = "given" if _is_given(self.certificate) else about
        is_of_all = verdict == Verdict.INCONCLUSIVE or (verdict == Verdict.YES) == self.question.is_negated
        limit = json_value(self.limit) if about == "recommended" and is_of_all else None
        told = {"question": self.question.text, "verdict": str(verdict), "about": about, "limit": limit}
        return replace(self.certificate, comparison=replace(self.certificate.comparison, answer=told))

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate with question, verdict and limit, ready for JSON."""
        return self.certificate.to_dict() | {
            "question": self.question.text,
            "verdict": str(self.verdict),
            "headline": self.headline,
            "limit": json_value(self.limit) if is_claim(self.certificate) else None,
        }


@of_learned
@working("deciding")
def decide(
    learned: Learned,
    question: Threshold | str,
    *,
    relaxation: Relaxation | None = None,
    policy: Policy | None = None,
    memory: bool = True,
    precision: float = 1e-6,
    certificate: Certificate | None = None,
) -> Decision:
    """Return whether some policy reaches a threshold, or a given one does: yes, no, or inconclusive.

    Yes, if the certified bound of the policy that was found reaches the threshold; no, if no policy reaches it at any
    parameters of the region, those with memory included. ``P<0.1`` without max or min asks for one policy, where PRISM
    asks it of all. A question such as ``Pmax<=0.9``, which is about all policies, has the opposite answer of
    ``Pmax>0.9``. Either answer is wrong with at most the error of ``learned``, jointly with all else that follows from
    it.

    Parameters
    ----------
    learned
        What ``learn`` returned.
    question
        A property with a threshold, such as ``P>=0.9 [ F "goal" ]``.
    relaxation
        As in ``certify``.
    policy
        Ask about the value of this policy alone, whatever max and min say.
    memory, precision
        As in ``conclude``.
    certificate
        That of the objective of the question, if it is there already.

    Returns
    -------
    Decision
        The verdict, its sentence and the bounds.

    Examples
    --------
    >>> from plumdp import case_study, learn, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6)
    >>> learned = learn(study.model, counts)
    >>> [decide(learned, f'R{{"money"}}>={money} [ F "end" ]').verdict for money in (10, 11.5, 20)]
    ['yes', 'inconclusive', 'no']
    >>> print(decide(learned, 'R{"money"}>=11 [ F "end" ]', policy="bet0").headline)
    No (confidence 99.9 %): this policy has at most 10.1; 11 was asked.
    """
    asked = parse_threshold(question, learned.model) if isinstance(question, str) else question
    require_kind(asked, Threshold, "decide takes a property with a threshold, such as 'P>=0.9 [ F \"goal\" ]'")
    if certificate is None:
        options: Any = {"relaxation": relaxation, "policy": policy, "memory": memory, "precision": precision}
        certificate = conclude(learned, asked.objective, **options)
    if not is_claim(certificate):
        return Decision(asked, Verdict.INCONCLUSIVE, certificate, inf if asked.objective.direction == "max" else -inf)
    # the first rung that decides, and else the one that leads
    led = [led_by(certificate, each) for each in certificate.claim.rungs if each.is_claim] or [certificate]
    found = [_decided(learned, asked, each, relaxation, precision) for each in led]
    known = (each for each in found if each.verdict != Verdict.INCONCLUSIVE)
    return next(known, next(each for each in found if each.certificate.claim.ground == certificate.claim.ground))


def _decided(
    learned: Learned, asked: Threshold, certificate: Certificate, relaxation: Relaxation | None, precision: float
) -> Decision:
    """Return what the bounds of a certificate decide."""
    if _is_given(certificate) or certificate.claim.ground != Ground.ROWS:
        limit = certificate.upper if asked.objective.direction == "max" else certificate.lower
    else:
        best = ask(asked.objective, learned.model, memory=False)  # a bound on steps is solved without a counter
        uncertain = relax(learned, relaxation or default_relaxation(learned), best.model)
        limit = best_of_all(uncertain, best.objective, precision=precision)
    if asked.holds_for(certificate.claim.bound):
        verdict = Verdict.YES
    else:
        verdict = Verdict.INCONCLUSIVE if asked.holds_for(limit) else Verdict.NO
    if asked.is_negated and verdict != Verdict.INCONCLUSIVE:
        verdict = Verdict.NO if verdict == Verdict.YES else Verdict.YES
    return Decision(asked, verdict, certificate, limit)


def _is_given(certificate: Certificate) -> bool:
    """Return whether a certificate is about a policy of the user's own."""
    return certificate.how.options.get("policy") == "given"


def is_claim(certificate: Certificate) -> bool:
    """Return whether the bounds of a certificate are proved, under its assumptions."""
    return certificate.status in (Status.CERTIFIED, Status.INCONCLUSIVE)
