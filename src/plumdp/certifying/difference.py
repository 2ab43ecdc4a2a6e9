"""Compares two policies by what the data say about the difference of their values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isnan, nextafter
from typing import Any, ClassVar, Literal

import numpy as np

from plumdp.base.errors import DataError, Option
from plumdp.base.json_values import json_value
from plumdp.base.vocabulary import REJECTIONS, Guarantee, Standing, Status
from plumdp.certifying.approximation import approximate
from plumdp.certifying.pipeline import conclude, default_relaxation, relax
from plumdp.certifying.rungs import ends_about, of_model, on_ground, silenced, with_runs_first
from plumdp.certifying.valuation import Sought, best_ends, prove
from plumdp.learning.learned import Learned, of_learned
from plumdp.model.graph import Graph
from plumdp.model.policy import Policy, check_policy, policy_weights
from plumdp.model.question import Asked, Question, ask, memory_for
from plumdp.result.certificate import Certificate, assumptions_of, premises_of
from plumdp.result.facts import rung_facts
from plumdp.result.headlines import comparison_headline, difference_in_words, second_is_better, standings
from plumdp.result.rungs import Ground, Rung, leading
from plumdp.result.show import Fact, Page, as_html, as_json, as_text
from plumdp.solver.by_sweeps import is_reached
from plumdp.solver.coupled.bounds import Proof


@dataclass(frozen=True, eq=False)
class Difference:
    """Bounds on the value of the first policy less that of the second, which hold jointly with both certificates.

    What they prove holds for every margin at once, so that a margin may be chosen after looking.
    """

    picture: ClassVar = "difference"

    lower: float
    upper: float
    first: Certificate
    second: Certificate
    names: tuple[str, str] = ("the first policy", "the second policy")
    not_coupled: str = ""  # why the bounds are no better than the difference of both brackets
    margin: float = 0.0  # how much worse a policy may be without being called worse
    approximate: tuple[float, float] | None = None  # the usual normal interval, which nothing proves
    is_same: bool = False  # whether both policies do the same wherever they lead
    rungs: tuple[Rung, ...] = ()  # all that bound the difference, the weakest premises first

    @property
    def verdicts(self) -> tuple[Standing, ...]:
        """How the first policy compares with the second: all that the bounds prove, what says most first."""
        if not self.is_claim:
            return (Standing.INCONCLUSIVE,)
        if self.is_same:
            return (Standing.SAME,)
        return standings(self.lower, self.upper, self.margin, direction=self.first.claim.direction)

    @property
    def is_claim(self) -> bool:
        """Whether the bounds are proved, under the assumptions of both certificates."""
        return not {self.first.status, self.second.status} & {*REJECTIONS}

    @property
    def headline(self) -> str:
        """Which policy is better and by how much, in one sentence: verdict, both ends, unit and confidence."""
        rejected = next((each.claim for each in (self.first, self.second) if each.status in REJECTIONS), None)
        if rejected is not None:
            return f"{rejected.status.capitalize()}: {rejected.contradiction.partition('. ')[0]}. Nothing is claimed."
        if self.is_same:
            return "Certified: {} and {} do the same wherever they lead; the difference is 0.".format(*self.names)
        return comparison_headline(self.first.claim, self.comparison)

    def _in_words(self, low: float, high: float) -> str:
        """Return both ends of a difference as the headline says its own."""
        claim = self.first.claim
        return difference_in_words(claim, low, high, is_turned=second_is_better(claim, self.lower, self.upper))

    @property
    def _ground(self) -> Ground | None:
        """The ground of the bounds, if there are several."""
        ends = self.lower, self.upper
        return next((rung.ground for rung in self.rungs if (rung.lower, rung.upper) == ends), None)

    @property
    def _rests_on_rows(self) -> bool:
        return Ground.ROWS in (self.first.claim.ground, self.second.claim.ground)

    @property
    def _cap(self) -> float | None:
        return next((each.claim.cap for each in (self.first, self.second) if each.claim.cap is not None), None)

    def __repr__(self) -> str:
        return f"Difference({self.lower:.6g} to {self.upper:.6g}, {self.first.claim.objective})"

    @property
    def brackets(self) -> list[str]:
        """The bounds on both values, in words."""
        both = zip(self.names, (self.first, self.second), strict=True)
        if not (self.first.claim.claims_bounds or self.second.claim.claims_bounds):
            return []
        return [f"{name}: {each.claim.bracket}" for name, each in both]

    def premises(self) -> list[Fact]:
        """Return the premises of both certificates, each once."""
        return premises_of([self.first, self.second])

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the claim rests on, in words."""
        return tuple(assumptions_of([self.first, self.second]))

    def page(self) -> Page:
        """Return the comparison, the bounds on both values, and what they rest on."""
        hints = [
            "".join(map(str, each.how.narrower)) for each in (self.first, self.second) if each.how.narrower
        ]  # one value may be known
        about = []
        if self.approximate is not None and self.is_claim:
            about = [("not certified", f"{self._in_words(*self.approximate)} by the normal approximation")]
        narrower = [("to narrow it", text) for text in hints[:1] if Standing.INCONCLUSIVE in self.verdicts]
        bounds = rung_facts(self.rungs, self._in_words, self._ground)
        facts = [("query", self.first.claim.objective), *bounds, *about, *narrower, *self.premises()]
        return Page(self.headline, self.brackets, facts=facts, folded=[self.first, self.second])

    SCHEMA: ClassVar[str] = "plumdp/difference/1"
    TOLD: ClassVar[str] = "lower upper approximate margin verdicts headline not_coupled assumptions rungs first second"
    __str__ = as_text
    _repr_html_ = as_html
    to_dict = as_json

    @property
    def comparison(self) -> dict[str, Any]:
        """The names, the margin, and the bounds of both values and of the difference, as folders keep them."""
        one, other = ((each.lower, each.upper) for each in (self.first, self.second))
        ends = {"first": one, "second": other, "difference": (self.lower, self.upper)}
        bounds = {name: json_value(list(each)) for name, each in ends.items()}
        by_model = {"by_model": True} if self.rungs and self._rests_on_rows else {}
        cap = {} if self._cap is None else {"cap": self._cap}
        return {"names": list(self.names), "margin": self.margin, **bounds, **by_model, **cap}

    def with_comparison(self, of: Literal["first", "second"] = "first") -> Certificate:
        """Return the certificate of one policy with the comparison to the other, which its ``save`` keeps as well."""
        kept, rival = (self.first, self.second) if of == "first" else (self.second, self.first)
        assuming = [each for each in rival.rests_on.assumptions if each not in kept.rests_on.assumptions]
        about = {**self.comparison, "policy": of, "assuming": assuming}
        how = replace(kept.how, narrower=kept.how.narrower or rival.how.narrower)
        return replace(kept, how=how, comparison=replace(kept.comparison, difference=about, rival=rival.policy))


@of_learned
def difference(
    learned: Learned,
    objective: Asked,
    first: Policy,
    second: Policy,
    *,
    margin: float = 0.0,
    names: tuple[str, str] = ("the first policy", "the second policy"),
    precision: float = 1e-6,
) -> Difference:
    """Return bounds on the value of one policy minus that of another.

    Values of two policies move together with the parameters, so their difference may be known better than either. The
    bounds hold jointly with everything else that follows from ``learned``.

    Parameters
    ----------
    learned
        What ``learn`` returned.
    objective
        The question, or its text.
    first, second
        The policies, which may be chosen by looking at all data and may count steps; "practice" is what the data do.
    margin
        A difference that does not matter: the result also says whether the policies are the same within it. It may be
        chosen by looking.
    names
        What sentences call the policies.
    precision
        As in ``conclude``.

    Returns
    -------
    Difference
        Both bounds, the verdicts and their sentence.

    Examples
    --------
    >>> from plumdp import case_study, learn, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=6)
    >>> learned = learn(study.model, counts, objectives=[study.objective])
    >>> print(difference(learned, study.objective, "bet0", "uniform").headline)
    Certified: the expected “money” until the system reaches “end” is 1.73 to 2.11 higher under the first policy than \
under the second policy (confidence 99.9 %).
    >>> difference(learned, study.objective, "bet0", "uniform", margin=3).verdicts
    ('better', 'the same within the margin', 'not worse by more than the margin')
    """
    check_margin(margin)
    question = ask(objective, learned.model, memory=memory_for(learned.model, first, second))
    one, other = (conclude(learned, question, policy=policy, precision=precision) for policy in (first, second))
    return difference_of(learned, question, one, other, margin=margin, names=names, precision=precision)


def difference_of(
    learned: Learned,
    question: Question,
    one: Certificate,
    other: Certificate,
    *,
    margin: float,
    names: tuple[str, str],
    precision: float = 1e-6,
) -> Difference:
    """Return bounds on the value of one policy less that of another, given the certificates of both."""
    rows = [of_model(each) for each in (one, other)]
    lower, upper = _less(rows[0].lower, rows[1].upper, -inf), _less(rows[0].upper, rows[1].lower, inf)
    apart = {"both": Proof(lower, upper, 0.0, 0.0, 0.0, "of both")}
    uncertain = relax(learned, default_relaxation(learned), question.model)
    sought = Sought(learned, question, uncertain, one.policy, other.policy, precision)
    proofs, why_not = prove(sought, apart)
    lower, upper = best_ends(proofs.values())
    status = next((each.status for each in rows if each.status in REJECTIONS), Status.CERTIFIED)
    premises = tuple(dict.fromkeys(text for each in rows for text in each.premises))
    rung = replace(rows[0], lower=lower, upper=upper, status=status, premises=premises)
    ends = ends_about(learned, question, sought.choices)
    if ends is None:
        rungs = _with_runs_of_one(learned, sought, one, other, rung)
    else:
        rungs = with_runs_first(learned, ends, rung, None)
    verdicts = ((each, standings(each.lower, each.upper, margin, direction=one.claim.direction)) for each in rungs)
    decided = (each for each, known in verdicts if each.is_claim and known != (Standing.INCONCLUSIVE,))
    first = next(decided, leading(rungs))
    one, other = (on_ground(each, first) for each in (one, other))
    about = approximate(learned, question, *(check_policy(question.model.graph, each.policy) for each in (one, other)))
    return Difference(
        first.lower,
        first.upper,
        one,
        other,
        names,
        why_not.reason if len(proofs) == 1 else "",
        margin,
        None if about is None else about.interval,
        acts_alike(question.model.graph, one.policy, other.policy),
        rungs if len(rungs) > 1 else (),
    )


def _with_runs_of_one(
    learned: Learned, sought: Sought, one: Certificate, other: Certificate, rung: Rung
) -> tuple[Rung, ...]:
    """Return the rung of the model's difference, after that of both values if whole runs bound one of these.

    Their shares of the error were fixed beforehand, and both values lie in their brackets but for the sum of these. So
    was that of bounds on the difference by the steps that runs and policy share. If these exclude each other, or what
    the model says alone, something that they rest on is wrong, and no rung claims anything.
    """
    leads = [leading(each.claim.rungs or (of_model(each),)) for each in (one, other)]
    by_runs = [each for each in leads if each.ground == Ground.WHOLE_RUNS and each.is_claim]
    if not by_runs or rung.status in REJECTIONS:
        return (rung,)
    lower, upper = _less(leads[0].lower, leads[1].upper, -inf), _less(leads[0].upper, leads[1].lower, inf)
    premises = tuple(dict.fromkeys(text for each in leads for text in each.premises))
    share, cap = by_runs[0].share, by_runs[0].cap
    together = ends_about(learned, sought.question, sought.choices, of_practice=True)
    if together is not None:
        lower, upper = max(lower, together.lower), min(upper, together.upper)
        share += learned.budget["controlled"]
        premises = tuple(dict.fromkeys((*premises, *together.premises)))
    guarantee = Guarantee.FIXED if by_runs[0].guarantee == Guarantee.FIXED else rung.guarantee
    bounds: dict[str, Any] = {"lower": lower, "upper": upper, "guarantee": guarantee, "cap": cap}
    apart = replace(rung, ground=Ground.RIVAL_RUNS, share=share, premises=premises, **bounds)
    both = apart, replace(rung, share=1 - share)
    if lower > upper or apart.excludes(rung):
        why = (
            f"runs and rows put the difference above {lower:.6g} and below {upper:.6g}, and rows alone between "
            f"{rung.lower:.6g} and {rung.upper:.6g}, so what is assumed of the runs or of the model is wrong"
        )
        return tuple(silenced(each, Status.PREMISES, why) for each in both)
    return both if upper - lower <= rung.upper - rung.lower else both[::-1]  # neither has weaker premises


def acts_alike(graph: Graph, one: Policy, other: Policy) -> bool:
    """Return whether two policies take the same actions, with the same probabilities, in all states they lead to."""
    if graph.levels is not None:  # on disk, where it stays
        return np.array_equal(check_policy(graph, one), check_policy(graph, other))
    weights, others = policy_weights(graph, one), policy_weights(graph, other)
    reached = is_reached(graph.take(np.flatnonzero(weights > 0))[0])[graph.state_of_choice()]
    return np.array_equal(weights[reached], others[reached])


def check_margin(margin: float) -> None:
    """Refuse a margin that is not a finite number, or is below zero."""
    if not 0 <= margin < inf:
        raise DataError(Option("margin", margin), ": give a difference of values that does not matter, such as 0.01")


def _less(one: float, other: float, side: float) -> float:
    """Return a difference rounded toward a side, or the side itself if both are infinite."""
    value = one - other
    return side if isnan(value) else nextafter(value, side)
