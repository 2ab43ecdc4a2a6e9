"""The first screen of a report: what it is about, the claim in plain words, what that rests on, and the glossary."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from plumdp.certifying.difference import plain_margin
from plumdp.certifying.net_benefit import NetBenefit
from plumdp.confidence.sets import Guarantee
from plumdp.model.language.words import is_probability, threshold_in_words, value_in_words
from plumdp.model.text import number_of
from plumdp.reporting.sections import sentence
from plumdp.result.certificate import Certificate, Status, percent
from plumdp.result.printing import approximately, plain_bounds, plain_number

_WANTED = {"max": "as large as possible", "min": "as small as possible"}

GLOSSARY = (
    ("policy", "A rule that says what to do in each state of the system."),
    (
        "value",
        "The quantity that is asked about, such as a probability or an expected cost, under the policy.",
    ),
    (
        "confidence",
        "How sure the claim is. If you made such claims again and again with a confidence of 99.9 %, each from new "
        "data, on average at most 1 in 1,000 would be false, as long as what they rest on is true and none is left out "
        "because of what it says.",
    ),
    ("parameter", "A number of the model that nobody knows exactly, such as the probability of a fault."),
    ("region", "All values of the parameters that the data do not rule out. The claim holds for each of them."),
    (
        "model test",
        "A comparison of the data with the model. A small p-value is evidence against the model; 1 is no evidence.",
    ),
)


@dataclass(frozen=True)
class Front:
    """The texts of the first screen; those that are empty are not shown."""

    title: str
    about: str  # system, author and date
    claim: str
    question: str  # with a threshold
    verdict: str
    wanted: str
    rests_on: list[str]
    would_be_false: str  # what comes before the assumptions
    assumptions: list[str]


def front_of(certificate: Certificate, *, title: str, system: str, author: str) -> Front:
    """Return the texts of the first screen of a certificate's report."""
    value = value_in_words(certificate.objective, system=system)
    answer = certificate.answer
    question = threshold_in_words(answer["question"], system=system) or answer["question"] if answer else ""
    compared = certificate.comparison
    if compared:  # whoever compares two policies asks which is better, and for bounds on one of them only then
        margin = f", or worse by no more than {plain_margin(compared['margin'])}" if compared["margin"] else ""
        question = "Is {} better than {}{}?".format(*compared["names"], margin)
    return Front(
        title=title or sentence(value or f"A policy for {system or 'the system'}").rstrip("."),
        about=" · ".join(filter(None, [system if title else "", author, _date(certificate)])),
        claim=_claim(certificate, value),
        question=question,
        verdict=compared["sentence"] if compared else answer.get("plain", ""),
        wanted=_wanted(certificate),
        rests_on=_rests_on(certificate),
        would_be_false=_would_be_false(certificate),
        assumptions=[text for label, text in certificate.premises() if label == "assuming"],
    )


def front_of_net_benefit(found: NetBenefit, title: str, system: str, author: str) -> Front:
    """Return the texts of the first screen of the report on net benefits."""
    first = found.strategies[0].effect
    start, end = (f"{weight:.10g}" for weight in found.willingness)
    return Front(
        title=title or f"Which policy is best, at a willingness to pay from {start} to {end}",
        about=" · ".join(filter(None, [system, author, _date(first)])),
        claim=found.sentence,
        question="",
        verdict="",
        wanted=f"Net benefit: the willingness to pay times {found.strategies[0].effect.objective}, "
        f"less {found.strategies[0].cost.objective}.",
        rests_on=_rests_on(first),
        would_be_false=_would_be_false(first),
        assumptions=found.assumptions,
    )


def _date(certificate: Certificate) -> str:
    """Return the day of the certificate, as people write it."""
    try:
        day = datetime.fromisoformat(certificate.provenance.get("date", ""))
    except ValueError:
        return ""
    return f"{day.day} {day:%B %Y}"


def _claim(certificate: Certificate, value: str) -> str:
    """Return the claim in one sentence, with numbers as people write them."""
    if certificate.status != Status.CERTIFIED or not certificate.claims_bounds:
        return certificate.headline
    share = is_probability(certificate.objective)
    low, high = plain_bounds(certificate.lower, certificate.upper, is_probability=share)
    under = "" if certificate.is_of_chain else f", under {_policy(certificate)}"
    value = value or "the value"
    how_sure = percent(certificate.confidence)
    unit = f" {certificate.unit}" if certificate.unit else ""
    lies = f"is {low}{unit}" if low == high else f"is between {low} and {high}{unit}"
    return f"With a confidence of {how_sure}, {value} {lies}{under}."


def _policy(certificate: Certificate) -> str:
    told = certificate.comparison
    if told:
        return str(told["names"][told.get("policy") == "second"])
    if certificate.options.get("practice"):
        return "practice, what the data do"
    return "the policy that was given" if certificate.options.get("policy") == "given" else "the best policy found"


def _wanted(certificate: Certificate) -> str:
    """Return which values are good ones if policies differ, and the estimate, in one line."""
    said = [] if certificate.is_of_chain else [f"Wanted: {_WANTED[certificate.direction]}."]
    if "estimate" in dict(certificate.facts()):
        share = is_probability(certificate.objective)
        estimate = plain_number(certificate.estimated_value or 0.0, 0, is_probability=share)
        said.append(f"Best estimate: about {estimate}, where the data are most likely; this is not a bound.")
    if certificate.approximate is not None and certificate.claims_bounds:
        said.append(sentence(f"Approximately {approximately(certificate.approximate)}"))
    if certificate.narrower:
        said.append(sentence(certificate.to_narrow))
    return " ".join(said)


def _rests_on(certificate: Certificate) -> list[str]:
    """Return the grounds of the claim: data, model and model test."""
    points, quality = [], certificate.data_quality
    if quality is not None:
        rejected = 0 if quality.report is None else quality.report.rejected
        left_out = f"; {number_of(rejected, 'row')} of the log could not be used" if rejected else ""
        points.append(f"Data: {number_of(quality.steps, 'step')} of the system{left_out}.")
    facts = dict(certificate.facts())
    if "elsewhere" in facts:
        points.append(sentence(facts["elsewhere"]))
    unknown = [name for name, _ in zip(certificate.parameters, range(4), strict=False)]
    more = len(certificate.parameters) - len(unknown)
    if unknown:
        named = ", ".join(unknown) + (f" and {more:,} more" if more else "")
        points.append(f"A model whose unknown numbers were learned from the data: {named}.")
    verdict = facts.get("model test", "")
    if verdict:
        points.append(sentence(f"a test of the model: {verdict.partition(' (p =')[0]}"))
    if certificate.status == Status.CERTIFIED and certificate.guarantee == Guarantee.ANYTIME:
        points.append(
            "It is valid even if you looked at the data while collecting them and stopped when you liked; what was "
            "asked, and how, was decided before."
        )
    if certificate.misfit:
        points.append(f"It allows for rows of the model that are off by {certificate.misfit:g} in total variation.")
    return points


def _would_be_false(certificate: Certificate) -> str:
    """Return the sentence before the list of assumptions."""
    if not certificate.assumptions:
        return ""
    chance = f"{100 * (1 - certificate.confidence):.6g} %"
    luck = f"otherwise only by bad luck, with a probability of at most {chance}"
    return f"The claim may be false if one of these is not true; {luck}:"
