"""Answers to thresholds: the verdict follows from the bracket and the question, and the sentence from these.

An answer that one policy gives follows from its bracket: that it reaches the threshold, or, if the question is about
all policies or about this one, that it does not. Bounds on the values of all policies are not known here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from flint import fmpq

from .reading import Exact, Part, require
from .words import one_by_one

_QUESTION = re.compile(r'(P|R(?:\{"[^"]*"\})?) *(max|min)? *(<=|>=|<|>) *([^ \[]+) *(\[.*)', re.DOTALL)
_DECIMAL = re.compile(r"-?\d{1,400}(?:\.(\d{1,400}))?(?:e([+-]?\d{1,3}))?", re.ASCII)
_MAX_TEXT = 10_000
_ABOUT = {"recommended": "the recommended policy has", "given": "this policy has", "only": "the value is"}


@dataclass(frozen=True)
class Answer:
    """What an answer says: a verdict on a question, by the value of one policy."""

    question: str
    comparison: str  # such as <=
    number: Exact
    verdict: str
    about: str  # the "recommended" policy, a "given" one, or the "only" one


def read_answer(answer: Part, objective: str, is_given: bool) -> Answer:
    """Return what an answer says, whose question is about the value of the certificate."""
    question, place, about, verdict = (
        answer["question"].text(),
        answer.place,
        answer["about"].text(),
        answer["verdict"].text(),
    )
    is_short = max(len(question), len(objective)) <= _MAX_TEXT and " ".join(question.split()).isprintable()
    require(is_short, f"{place}: a text is too long, or cannot be printed")
    require(about in _ABOUT and verdict in ("yes", "no", "inconclusive"), f"{place}: what is said is not known")
    require((about == "given") == is_given, f"{place}: whether the policy was given is not as the answer says")
    found = _QUESTION.fullmatch(question)
    if found is None:
        answer["question"].refuse("expected a question such as P>=0.9 [ … ]")
    value, best, comparison, number, states = found.groups()
    same = re.sub(r" *(max|min)=\? *(?=\[)", "", objective, count=1) == value + states
    require(same, f"{place}: the question is about another value than the certificate")
    is_negated = bool(best) and (best == "max") != (comparison[0] == ">")  # such as Pmax<=0.9
    is_of_all = about == "recommended" and (verdict == "inconclusive" or (verdict == "yes") == is_negated)
    require(not is_of_all, "verify does not know answers about all policies")
    return Answer(question, comparison, _number(answer["question"], number), verdict, about)


def _number(question: Part, text: str) -> Exact:
    """Return the decimal number in a question exactly."""
    found = _DECIMAL.fullmatch(text)
    if found is None:
        question.refuse("expected a decimal number")
    power = int(found[2] or 0) - len(found[1] or "")
    return fmpq(int(text.partition("e")[0].replace(".", ""))) * fmpq(10) ** power


def check_verdict(answer: Answer, place: str, lower: Exact | None, upper: Exact | None) -> None:
    """Require that every value in the bracket compares with the number as a verdict says; None is an infinite end."""
    low = None if lower is None else lower - answer.number
    high = None if upper is None else upper - answer.number
    above, least = low is not None and low > 0, low is not None and low >= 0
    below, most = high is not None and high < 0, high is not None and high <= 0
    yes = {"<": below, "<=": most, ">": above, ">=": least}[answer.comparison]
    no = {"<": least, "<=": above, ">": most, ">=": below}[answer.comparison]
    follows = {"yes": yes, "no": no, "inconclusive": True}[answer.verdict]
    require(follows, f"{place}: the verdict does not follow from the bracket")


def answer_in_words(answer: Answer, lower: Exact | None, upper: Exact | None, *, is_share: bool, unit: str) -> str:
    """Return what is proved of the policy in words."""
    low, high = one_by_one(lower, upper, is_share=is_share)
    ends = [f"at least {low}{unit}"] * (low is not None) + [f"at most {high}{unit}"] * (high is not None)
    return f"{_ABOUT[answer.about]} {' and '.join(ends) or 'any value'}"
