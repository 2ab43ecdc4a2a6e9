"""Answers to thresholds: the sentence follows from the bracket, and the verdict from the sentence and the question.

An answer that one policy gives follows from its bracket: that it reaches the threshold, or, if the question is about
all policies or about this one, that it does not. Bounds on the values of all policies are not known here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .reading import Exact, Part, Rejected, require

_END = r"%(?:\.|; more data may decide it\.)"
_SENTENCES = (  # of one policy, and of one that was found and is not the worst
    r"(?P<verdict>Yes|No|Inconclusive): "
    r"(?:(?P<found>the recommended policy has)|(?P<given>this policy has)|(?P<alone>the value is)) "
    rf"(?P<side>at least|at most) (?P<number>\S+?)(?: and (?P<side_2>at least|at most) (?P<number_2>\S+?))?, "
    rf"with confidence (?P<confidence>\S+) {_END}",
    r"(?P<verdict>Yes), under (?P<found>the recommended policy): it has (?P<side>at least|at most) (?P<number>\S+?), "
    r"with confidence (?P<confidence>\S+) %\. Other policies may do worse: ask (?P<ask>.+) for all policies\.",
)
_QUESTION = re.compile(r'(P|R(?:\{"[^"]*"\})?) *(max|min)? *(<=|>=|<|>) *([^ \[]+) *(\[.*)', re.DOTALL)

_MAX_TEXT = 10_000


@dataclass(frozen=True)
class Answer:
    """What an answer says of one policy, in pairs such as "at least" and "0.7", as they are printed."""

    about: str  # the policy that was "found" or "given", or one that is "alone"
    said: list[tuple[str, str]]
    confidence: str


def read_answer(answer: Part, objective: str, is_given: bool) -> Answer:
    """Return what an answer says, whose verdict is one that such an answer may have."""
    sentence, place = answer["sentence"].text(), answer.place
    question = answer["question"].text()
    is_short = max(len(sentence), len(question), len(objective)) <= _MAX_TEXT
    is_printable = (sentence + " ".join(question.split())).isprintable()
    require(is_short and is_printable, f"{place}: a text is too long, or cannot be printed")
    matches = [match.groupdict() for pattern in _SENTENCES if (match := re.fullmatch(pattern, sentence))]
    require("no policy has " not in sentence, "verify does not know answers about all policies")
    if not matches:
        raise Rejected(f"{place}: the sentence is not one that verify knows")
    told = matches[0]
    said = [(told[f"side{i}"], told[f"number{i}"]) for i in ("", "_2") if told.get(f"side{i}")]
    about = next(name for name in ("found", "given", "alone") if told.get(name))
    word = {"Yes": "yes", "No": "no", "Inconclusive": "inconclusive"}[told["verdict"]]
    require(answer["verdict"].text() == word, f"{place}: the verdict is not that of the sentence")
    require((about == "given") == is_given, f"{place}: whether the policy was given is not as the sentence says")
    value, best, comparison, number, states = _asked(answer["question"])
    same = re.sub(r" *(max|min)=\? *(?=\[)", "", objective, count=1) == value + states
    require(same, f"{place}: the question is about another value than the certificate")
    is_of_all = bool(best) and (best == "max") != (comparison[0] == ">")  # such as Pmax<=0.9
    fits = about != "found" or word == ("no" if is_of_all else "yes")
    require(fits, f"{place}: one policy that was found does not answer this question")
    worst = f"{value}{'min' if comparison[0] == '>' else 'max'}{comparison}{number}"
    asks = told.get("ask", worst).replace(" ", "") == worst.replace(" ", "")
    require(asks, f"{place}: the sentence names another question than that about all policies")
    return Answer(about, said, told["confidence"])


def _asked(part: Part) -> tuple[str, str, str, str, str]:
    """Return the parts of a question, such as P, max, >=, 0.9 and [ F "goal" ]."""
    found = _QUESTION.fullmatch(part.text())
    if found is None:
        part.refuse("expected a question such as P>=0.9 [ … ]")
    return found[1], found[2] or "", found[3], found[4], found[5]


def threshold_of(part: Part) -> str:
    """Return the number in a question, as it is written."""
    return _asked(part)[3]


def check_verdict(answer: Part, number: Exact, lower: Exact | None, upper: Exact | None) -> None:
    """Require that every value in the bracket compares with the number as a verdict says; None is an infinite end."""
    comparison = _asked(answer["question"])[2]
    low = None if lower is None else lower - number
    high = None if upper is None else upper - number
    above, least = low is not None and low > 0, low is not None and low >= 0
    below, most = high is not None and high < 0, high is not None and high <= 0
    yes = {"<": below, "<=": most, ">": above, ">=": least}[comparison]
    no = {"<": least, "<=": above, ">": most, ">=": below}[comparison]
    follows = {"yes": yes, "no": no, "inconclusive": True}[answer["verdict"].text()]
    require(follows, f"{answer.place}: the verdict does not follow from the bracket")
