"""Finds the least budget, or the least number of steps, with which a threshold is kept, from data.

One product has all budgets up to some size, so that one solution against nature bounds the value with each of them.
Whatever is certified with one budget holds with all larger ones, so that the ends are tightened by bisection, with one
point for all states. All of it follows from one region and holds jointly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from plumdp.base.errors import DataError, require_kind
from plumdp.base.progress import working
from plumdp.base.threads import one_blas_thread
from plumdp.base.vocabulary import Verdict
from plumdp.certifying.pipeline import default_relaxation, relax
from plumdp.certifying.thresholds import Decision, decide, is_claim
from plumdp.certifying.valuation import with_looser
from plumdp.learning.learned import Learned, of_learned
from plumdp.model.graph import BoolArray
from plumdp.model.language.threshold import Quantile, parse_quantile
from plumdp.result.printing import percent
from plumdp.result.show import Page, as_html, as_json, as_text
from plumdp.solver.solve import solve

_FIRST = 64  # units of the first sweep; the next ones are four times as large
_MOST = 2**14


@dataclass(frozen=True, eq=False)
class FoundQuantile:
    """The least budget with which a threshold is kept, or the largest, lies from ``least`` to ``most``, both included.

    An end is None if none is proved. ``possible`` says whether some budget is certified to keep the threshold, is
    proved not to exist, or neither. ``answer`` is about the budget that is certified, or about no bound.
    """

    question: Quantile
    least: Fraction | None
    most: Fraction | None
    unit: Fraction
    possible: Verdict
    answer: Decision

    def __repr__(self) -> str:
        return f"FoundQuantile({self.least} to {self.most}, {self.question.text})"

    def page(self) -> Page:
        """Return the bounds in words, and the answer that they follow from."""
        return Page(self.sentence, inside=[self.answer])

    SCHEMA: ClassVar[str] = "plumdp/quantile/1"
    TOLD: ClassVar[str] = (
        "question=question.text sentence is_least=question.is_least least most unit possible "
        "assumptions=answer.certificate.assumptions answer"
    )
    __str__ = as_text
    _repr_html_ = as_html
    to_dict = as_json

    @property
    def sentence(self) -> str:
        """The answer in words."""
        asked, share = self.question, f"with confidence {percent(self.answer.certificate.confidence)}"
        what = "number of steps" if asked.name == "step" else f"budget of {asked.name}"
        who = "every policy" if asked.with_nothing.is_negated else "some policy"
        keeps = f"{what} B with which {who} keeps {asked.before}B{asked.after}"
        which = f"The {'least' if asked.is_least else 'largest'} {keeps}"
        if self.possible == Verdict.NO:
            return f"There is no {keeps}, {share}."
        unproved = "" if self.possible == Verdict.YES else "; none is certified to do"
        if self.least is None and self.most is None:
            return f"Not yet known{unproved}." if unproved else f"Any number is a {keeps}, {share}."
        if self.least is None or self.most is None:
            side, end = ("most", self.most) if self.least is None else ("least", self.least)
            assert end is not None
            return f"{which} is at {side} {_shown(end)}, {share}{unproved}."
        if self.least == self.most:
            return f"{which} is {_shown(self.least)}, {share}."
        return f"{which} lies between {_shown(self.least)} and {_shown(self.most)}, {share}."


def _shown(number: Fraction) -> str:
    return f"{number.numerator:,}" if number.denominator == 1 else f"{float(number):,.10g}"


@of_learned
@working("looking for a budget")
@one_blas_thread()
def quantile(learned: Learned, question: Quantile | str, *, precision: float = 1e-6) -> FoundQuantile:
    """Return bounds on the least (or largest) budget with which some policy reaches a threshold.

    Of ``quantile(B, P>=0.9 [ F{"fuel"}<=B "goal" ])`` the upper end is the least budget with which a policy is
    certified to have at least 0.9. Below the lower end no policy has so much, at any parameters of the region. With
    ``P<=0.1 [ F<=B "failed" ]`` it is the largest number of steps.

    >>> from plumdp import case_study, learn, simulate
    >>> study = case_study("rover:4,4,2")
    >>> counts = simulate(study.model, study.true_point, 20_000, rng=1, max_steps=30)
    >>> learned = learn(study.model, counts)
    >>> print(quantile(learned, 'quantile(B, Pmin>=0.1 [ F<=B "target" ])').sentence)
    The least number of steps B with which every policy keeps Pmin>=0.1 [ F<=B "target" ] is 8, with confidence 99.9 %.
    """
    asked = parse_quantile(question, learned.model) if isinstance(question, str) else question
    require_kind(asked, Quantile, "quantile takes a question such as 'quantile(B, P>=0.9 [ F<=B \"goal\" ])'")
    forever = decide(learned, asked.forever(), precision=precision)
    hopeless, sure = (Verdict.NO, Verdict.YES) if asked.is_least else (Verdict.YES, Verdict.NO)
    unit = asked.task(0)[0].unit
    if not is_claim(forever.certificate) or forever.verdict == hopeless:
        return FoundQuantile(asked, None, None, unit, forever.verdict, forever)
    size = _FIRST
    while True:
        yes, no = _swept(learned, asked, size * unit, precision)
        end, other = (yes, no) if asked.is_least else (no, yes)
        is_found = end.any() or (forever.verdict != sure and not other[-1])
        if is_found or size == _MOST:
            return _bisected(learned, asked, yes, no, unit, forever, precision)
        size *= 4


def _swept(learned: Learned, asked: Quantile, most: Fraction, precision: float) -> tuple[BoolArray, BoolArray]:
    """Return with which budgets, from 0 on, the threshold is certified to be kept, and with which it is not."""
    budget, mission = asked.task(most)
    product = budget.swept(learned.model, mission)
    if isinstance(product, str):
        raise DataError(f"{asked.text}: up to {most}, {product}; give costs in a coarser unit")
    model, objective = product
    starts, is_max = np.arange(budget.most, -1, -1), objective.direction == "max"
    uncertain = relax(learned, default_relaxation(learned), model)
    robust = solve(uncertain, objective, nature="robust", precision=precision)
    others = [solve(each, objective, nature="optimistic", precision=precision) for each in with_looser(uncertain)]
    bound = (robust.lower if is_max else robust.upper)[starts]
    ends = np.array([(each.upper if is_max else each.lower)[starts] for each in others])
    limit = ends.min(axis=0) if is_max else ends.max(axis=0)
    threshold = asked.with_nothing
    reached, possible = (np.array([threshold.holds_for(float(value)) for value in part]) for part in (bound, limit))
    return (~possible, reached) if threshold.is_negated else (reached, ~possible)


def _bisected(
    learned: Learned,
    asked: Quantile,
    yes: BoolArray,
    no: BoolArray,
    unit: Fraction,
    forever: Decision,
    precision: float,
) -> FoundQuantile:
    """Return both ends; the end of certified budgets is tightened with one point for all states."""
    answers: dict[int, Decision] = {}

    def keeps(size: int) -> bool:
        if size not in answers:
            answers[size] = decide(learned, asked.at(size * unit), precision=precision)
        return answers[size].verdict == Verdict.YES

    if asked.is_least:  # those below ``other`` + 1 are too small
        other, best = int(no.sum()) - 1, int(np.argmax(yes)) if yes.any() else len(yes) - 1
    else:  # those from ``other`` on are too large
        other, best = len(no) - int(no.sum()), max(int(yes.sum()) - 1, 0)
    is_proved = other != best and keeps(best)
    good, bad = best, other
    while is_proved and abs(good - bad) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if keeps(middle) else (good, middle)
    proved = good * unit if is_proved else None
    limit = None if other == len(no) else (other + (1 if asked.is_least else -1)) * unit
    possible = Verdict.YES if is_proved else Verdict.UNKNOWN
    if not asked.is_least and no[0]:
        limit, possible = None, Verdict.NO
    ends = (limit, proved) if asked.is_least else (proved, limit)
    return FoundQuantile(asked, *ends, unit, possible, answers[good] if is_proved else forever)
