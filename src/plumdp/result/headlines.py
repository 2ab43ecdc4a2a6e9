"""Says in one sentence what is claimed of a value, a threshold or two policies, from numbers and kinds alone."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from math import inf, nextafter
from typing import Any

from plumdp.base.json_values import python_value
from plumdp.base.vocabulary import REJECTIONS, Standing, Status, Verdict
from plumdp.model.language.words import asked_of, is_probability, value_in_words
from plumdp.result.claim import Claim, capped
from plumdp.result.printing import bracket, percent, plain_number


def value_headline(claim: Claim, who: str) -> str:
    """Return what is claimed of a policy's value: verdict, policy, what the question asks, how much, and how sure."""
    who = "" if claim.is_of_chain else f"under {who}, "
    said = f"{who}{value_in_words(claim.objective) or 'the value'} is {claim.bracket}{capped(claim.cap)}"
    sure = f"(confidence {percent(claim.confidence)})."
    if not claim.claims_bounds:
        return f"{claim.status.capitalize()}: {claim.contradiction}. Nothing is claimed."
    if claim.status == Status.REJECTED:
        return f"{claim.status.capitalize()}: {claim.contradiction}, {said} {sure}"
    if claim.status == Status.CERTIFIED:
        return f"Certified{', if the model is right' if claim.is_after_runs else ''}: {said} {sure}"
    if claim.reason:  # such as that there are no data, which is said below: what the model alone excludes is no finding
        return "Inconclusive: nothing is claimed."
    return f"Inconclusive: the bracket does not exclude the worst value; {said} {sure}"


def answer_headline(claim: Claim, answer: Mapping[str, Any]) -> str:
    """Return the answer to a threshold: verdict, confidence, what was proved of whom, and what was asked."""
    asked, verdict, is_max = asked_of(answer["question"]), answer["verdict"], claim.direction == "max"

    def at(value: float, side: int) -> str:
        return f"{plain_number(value, side, is_probability=is_probability(claim.objective))} {claim.unit}".rstrip()

    sides = ("least", "most") if is_max else ("most", "least")
    own = (claim.lower, -1), (claim.upper, 1)
    ends = own if is_max else own[::-1]
    is_one = at(*own[0]) == at(*own[1])  # such as 0 %, or a value that is known
    reached, other = (at(*end) if is_one else f"at {side} {at(*end)}" for side, end in zip(sides, ends, strict=True))
    is_all, more = verdict == Verdict.INCONCLUSIVE, ""
    if answer["about"] == "recommended":
        limit = at(python_value(answer["limit"]), 1 if is_max else -1) if answer["limit"] is not None else ""
        who, other = "the recommended policy has", f"no policy has {'more' if is_max else 'less'} than {limit}"
        both = f"{who} {reached}, and {other}"
        if verdict == Verdict.YES and asked.of_all:  # PRISM asks this of all policies, and we of one
            more = f" Other policies may do worse: ask {asked.of_all} for all policies."
    else:
        who = "this policy has" if answer["about"] == "given" else "the value is"
        both, other = f"{who} {reached} and {other}", f"{who} {other}"
    said = both if is_all else f"{who} {reached}" if (verdict == Verdict.YES) != asked.is_negated else other
    model = "if the model is right, " if claim.is_after_runs and not is_all and not more else ""
    number = at(float(asked.number), 0) if asked.number is not None else asked.text
    more = " More data may decide." if is_all else more
    return f"{verdict.capitalize()} (confidence {percent(claim.confidence)}): {model}{said}; {number} was asked.{more}"


def comparison_headline(claim: Claim, told: Mapping[str, Any]) -> str:
    """Return which of two policies is better and by how much: verdict, both ends, unit and confidence.

    ``claim`` is that of one of them, and ``told`` has names, the margin and the bounds on the difference.
    """
    if claim.status in REJECTIONS:
        return f"{claim.status.capitalize()}: {claim.contradiction.partition('. ')[0]}. Nothing is claimed."
    (first, second), (low, high) = told["names"], python_value(told["difference"])
    verdicts = standings(low, high, told["margin"], direction=claim.direction)
    unit = f" {claim.unit}" if claim.unit else ""
    margin = f"{plain_margin(told['margin'])}{unit}"
    known = {
        Standing.SAME: f"{first} and {second} are the same within {margin}; ",
        Standing.NOT_WORSE: f"{first} is not worse than {second} by more than {margin}; ",
    }.get(verdicts[0], "")
    only = f", which is within the margin of {margin}" if not known and Standing.SAME in verdicts else ""
    verdict = "Inconclusive" if Standing.INCONCLUSIVE in verdicts else "Certified"
    if verdict == "Certified" and told.get("by_model"):
        verdict = "Certified, if the model is right"
    said = f"{known}{_compared(claim, told)}{capped(told.get('cap'))}{only}"
    return f"{verdict}: {said} (confidence {percent(claim.confidence)})."


def _compared(claim: Claim, told: Mapping[str, Any]) -> str:
    """Return both ends of a difference in words: of the better policy, or of the first if none is known to be."""
    low, high = python_value(told["difference"])
    is_turned = second_is_better(claim, low, high)
    first, second = told["names"][::-1] if is_turned else told["names"]
    ends = difference_in_words(claim, low, high, is_turned=is_turned)
    if claim.unit:
        return f"{first} {'yields' if claim.direction == 'max' else 'costs'} {ends} than {second}"
    return f"{value_in_words(claim.objective) or 'the value'} is {ends} under {first} than under {second}"


def second_is_better(claim: Claim, low: float, high: float) -> bool:
    """Return whether it is the second policy that is known to be better, and is named first."""
    return low < 0 >= high if claim.direction == "max" else low >= 0 < high


def difference_in_words(claim: Claim, low: float, high: float, *, is_turned: bool) -> str:
    """Return both ends of a difference without signs, or of its negative, each with the word for its side.

    Those of probabilities are in percentage points.
    """
    if is_turned:
        low, high = -high, -low
    lower, higher, unit = ("less", "more", f" {claim.unit}") if claim.unit else ("lower", "higher", "")
    if is_probability(claim.objective):
        unit, low, high = " percentage points", nextafter(100 * low, -inf), nextafter(100 * high, inf)
    if low < 0 < high:
        down, up = (plain_number(each, 1, is_probability=False) for each in (-low, high))
        return f"between {down}{unit} {lower} and {up}{unit} {higher}"
    return f"{bracket(*((low, high) if low >= 0 else (-high, -low)))}{unit} {higher if low >= 0 else lower}"


def standings(lower: float, upper: float, margin: float, *, direction: str) -> tuple[Standing, ...]:
    """Return all that bounds on a difference prove, what says most first.

    Below, ``least`` and ``most`` bound what the first policy gains.

    >>> standings(-0.3, 0.05, 0.1, direction="max"), standings(-0.3, 0.05, 0.1, direction="min")
    (('inconclusive',), ('not worse by more than the margin',))
    """
    least, most = (lower, upper) if direction == "max" else (-upper, -lower)
    # strict: the text of a margin may be half a unit in the last place of its float away
    is_not_worse = -margin < least
    proved = {
        Standing.BETTER: least > 0,
        Standing.WORSE: most < 0,
        Standing.SAME: is_not_worse and most < margin,
        Standing.NOT_WORSE: is_not_worse and margin > 0,
    }
    return tuple(each for each, holds in proved.items() if holds) or (Standing.INCONCLUSIVE,)


def plain_margin(margin: float) -> str:
    """Return a margin as people write it, with all of its digits.

    >>> plain_margin(0.05), plain_margin(50.0)
    ('0.05', '50')
    """
    return f"{Decimal(repr(float(margin))).normalize():f}"
