"""Says what is behind a claim as facts, which are labels and texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plumdp.base.vocabulary import REJECTIONS, RELAXATION_WORDS, Assumption, Status, findings_in
from plumdp.model.language.words import is_probability
from plumdp.model.text import listing
from plumdp.result.claim import Beside, Claim, Comparison, How, RestsOn
from plumdp.result.printing import (
    DOUBT,
    GUARANTEES,
    approximately,
    bracket,
    outward,
    passed,
    plain_number,
    shares,
    verdict_on_model,
)
from plumdp.result.rungs import Ground, Rung
from plumdp.result.show import Fact

_WORDS: dict[str, str] = {**RELAXATION_WORDS, "untied": "without the expressions"}
_OF_TABLES = {
    "interval": "each row within its intervals",
    "coupled": "bets on the value of this policy, and each row within its intervals",
}


def facts(claim: Claim, how: How, rests_on: RestsOn, beside: Beside, comparison: Comparison) -> list[Fact]:
    """Return the facts behind a claim, those of every claim from the same data among them."""
    report = None if rests_on.data_quality is None else rests_on.data_quality.report
    left = f"{report.departures}; bounds take the worst and the best" if report and report.out_of_table else ""
    found = [*([("outside", left)] if left else []), ("query", claim.objective)]
    if not claim.claims_bounds:
        return [*found, *premises(claim, rests_on, beside, comparison)]
    found += rung_facts(claim.rungs, claim.in_words, claim.ground)
    if how.not_in_likelihood:
        tighter = "on new data, bounds may be tighter with the confidence set 'interval'"
        found.append(("likelihood", f"ignores {how.not_in_likelihood}; {tighter}"))
    if beside.remark:
        found.append(("policy", beside.remark))
    if how.left_out:
        found.append(("left out", f"{how.left_out}; the bounds hold, and could be narrower"))
    if rests_on.jointly:
        found.append(("jointly", _company(len(rests_on.jointly))))
    if rests_on.model_tolerance:
        found.append(
            (
                "model tolerance",
                f"the bounds allow for rows that are off by {rests_on.model_tolerance:g} in total variation",
            )
        )
    if rests_on.parameters:
        boxes = rests_on.parameters.items()
        box = listing([f"{name} {bracket(*ends)}" for name, ends in boxes])
        found.append(("parameters", box))
    if beside.estimated_value is not None and not rests_on.absence:
        point = listing([f"{name} {value:.3g}" for name, value in beside.estimate.items()])
        where = f"at the most likely parameters ({point})" if point else "by what was seen"
        value = plain_number(beside.estimated_value, 0, is_probability=is_probability(claim.objective))
        found.append(("estimate", f"{value} {where}"))
    if beside.approximate is not None and not rests_on.absence:
        found.append(
            ("not certified", approximately(beside.approximate, is_probability=is_probability(claim.objective)))
        )
    if how.narrower and claim.ground == Ground.ROWS:
        found.append(("to narrow it", "".join(map(str, how.narrower))))
    if how.solver != "converged":
        found.append(("solver", how.solver))
    return found + premises(claim, rests_on, beside, comparison)


def details(claim: Claim, how: How, beside: Beside) -> list[Fact]:
    """Return how the bounds were proved, if any are claimed: what a page has besides, and a short text leaves out."""
    if not claim.claims_bounds:
        return []
    proved = f"{how.confidence_set}; {GUARANTEES[claim.guarantee]}"
    parts = ", ".join(f"{share} {name}" for name, share in shares(beside.gap))
    width = outward(claim.upper - claim.lower, 1, 3)
    made_of = [("width", f"{width}: {parts}")] if claim.ground == Ground.ROWS and parts else []
    return [("relaxation", _relaxation_in_words(how)), ("confidence set", proved), *made_of]


def premises(claim: Claim, rests_on: RestsOn, beside: Beside, comparison: Comparison) -> list[Fact]:
    """Return the facts behind every claim from the same data: the data, the model test, the assumptions.

    Whatever is claimed beside the bounds, such as a difference, is printed with them.
    """
    found = []
    if rests_on.data_quality is not None:
        found.append(("data", str(rests_on.data_quality)))
    if beside.p_value is not None:
        found.append(("model test", _test(claim, rests_on, beside)))
    if claim.reason != claim.contradiction:
        found += [("because" if not i else "", text) for i, text in enumerate(findings_in(claim.reason))]
    more = comparison.difference.get("assuming", ())
    found += [("assuming", Assumption.of(each)) for each in (*rests_on.assumptions, *more)]
    return found + [(name, each) for name, of_rung in _others(claim, rests_on) for each in of_rung]


def _others(claim: Claim, rests_on: RestsOn) -> list[tuple[str, list[Assumption]]]:
    """Return what rungs that do not lead assume besides, each under its label."""
    others = [rung for rung in claim.rungs if rung.ground != claim.ground and rung.is_claim]
    said = set(rests_on.assumptions)
    return [
        (_NAMES[rung.ground][1], [Assumption.of(each) for each in rung.premises if each not in said]) for rung in others
    ]


_NAMES = {
    Ground.WHOLE_RUNS: ("whole runs", "runs assume"),
    Ground.LIFE_TABLE: ("life table", "table assumes"),
    Ground.RIVAL_RUNS: ("runs and model", "both assume"),
    Ground.ROWS: ("the model", "model assumes"),
}


_IF = {Ground.RIVAL_RUNS: ": one policy by its runs, the other by the model", Ground.ROWS: ", if it is right"}


def rung_facts(
    rungs: Sequence[Rung], in_words: Callable[[float, float], str], headline: Ground | None = None
) -> list[Fact]:
    """Return what each rung says of a value, or of a difference, or why it says nothing.

    That of a headline which rests on the model is not said again.
    """
    told = [rung for rung in rungs if rung.ground != headline or rung.ground not in _IF or not rung.is_claim]
    return [(_NAMES[rung.ground][0], _said(rung, in_words)) for rung in told]


def _said(rung: Rung, in_words: Callable[[float, float], str]) -> str:
    if rung.is_claim:
        return in_words(rung.lower, rung.upper) + _IF.get(rung.ground, ", whatever the model says")
    is_rejected = rung.status == Status.REJECTED
    return f"{'rejected' if is_rejected else 'nothing'}: {rung.reason or 'the bounds exclude no value'}"


def verdict(claim: Claim, rests_on: RestsOn, beside: Beside) -> tuple[str, str]:
    """Return what the test of the model says, in words, and how strong the evidence is; empty if there was no test."""
    if beside.p_value is None or rests_on.absence:
        return "" if beside.p_value is None else "nothing was tested, as there are no data", ""
    error, status = 1 - claim.confidence, claim.rungs[-1].status if claim.rungs else claim.status
    return verdict_on_model(beside.p_value, status, error, rests_on.model_tolerance, beside.visible_error)


def _test(claim: Claim, rests_on: RestsOn, beside: Beside) -> str:
    """Return what the test of the model says, in a line."""
    status = claim.rungs[-1].status if claim.rungs else claim.status
    is_passed = beside.p_value is not None and beside.p_value > DOUBT and status not in REJECTIONS
    if not is_passed or rests_on.absence or rests_on.model_tolerance:
        return "".join(verdict(claim, rests_on, beside))
    return passed(beside.p_value or 0.0, beside.visible_error)


def _relaxation_in_words(how: How) -> str:
    if how.is_of_table and how.relaxation in _OF_TABLES:
        words, without = _OF_TABLES, (_OF_TABLES["interval"], "bets on the value of this policy")
    else:
        words, without = _WORDS, (_WORDS["rectangular"], "coupled bounds")
    if not how.not_coupled:
        return words[how.relaxation]
    return "{}; there are no {}: {}".format(*without, how.not_coupled)


def _company(n: int) -> str:
    """Return in words with how many certificates this one holds."""
    others = "1 other property" if n == 1 else f"{n:,} other properties"
    together = f"the certificates of {others} that were computed together with it"
    return f"holds together with {together}: all of them at once with this confidence"
