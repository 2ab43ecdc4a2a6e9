"""Certificates about now: what data since a start say, if nothing has changed since then (Statement W4).

Each start has a share of the error, and all shares sum to at most one. So certificates of all starts hold at once, and
a start may be chosen by looking.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from plumdp.base.combinations import Trait, refuse
from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import Assumption, Guarantee
from plumdp.certifying.approximation import narrowed
from plumdp.certifying.pipeline import certify
from plumdp.data.counts import TransitionCounts, counts_of
from plumdp.data.log import Log
from plumdp.data.time_parts import TimeParts
from plumdp.fit.time_tests import weight_of
from plumdp.learning.assumptions import assumptions_of_data
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.policy import Policy
from plumdp.model.question import Asked
from plumdp.result.certificate import Certificate
from plumdp.result.printing import percent

_BY_LOOKING = "this holds for whichever start you choose, also by looking"
_ALONE = "each night holds by itself with this confidence"


def certify_since(
    model: ParametricMDP,
    counts: TransitionCounts | Log,
    question: Asked,
    since: str,
    *,
    policy: Policy | None = None,
    prespecified: bool = False,
    confidence: float = 0.999,
) -> Certificate:
    """Return what holds if nothing has changed since a run or row, which you may choose by looking at the data.

    The order of the data must be known (``order`` of ``read_log``). What is taken begins with the next run at which a
    part of 16 runs, or of 256 rows, begins; the certificate says which. Data that contradict a model because it changed
    say about when it did.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:5")
    >>> before, after = (simulate(study.model, {"p": p}, 400, rng=int(10 * p), max_steps=6) for p in (0.8, 0.4))
    >>> found = certify_since(study.model, before + after, study.objective, "run 17 of counts number 2")
    >>> found.rests_on.assumptions[0].partition(";")[0]
    'nothing has changed since run 17 of counts number 2'
    """
    require_model("certify_since", model)
    data, time = counts_of(counts), counts_of(counts).time
    has_order, has_rewards = time is not None and bool(time.ends), len(data.rewards) > 0
    refuse({Trait.SINCE, not has_order and Trait.NO_ORDER, has_rewards and Trait.LEARNED_REWARDS}, since=since)
    assert time is not None
    number = _place(time, since)
    left = data.counts.copy()
    for _, seen in zip(range(number + 1), time.seen_in_parts(len(left)), strict=False):
        left -= seen
    later = TransitionCounts(data.graph, left, "adaptive", parts=data.parts)
    ordered = [text for text in (data.pilot and data.pilot.rests_on, time.rests_on) if text]
    rests_on = (*ordered, *assumptions_of_data(model.counted, data, Guarantee.ANYTIME, ()))
    weight, name = weight_of(time.ends[number]), time.names[number]
    return with_share(model, later, question, policy, confidence, weight, name, rests_on, prespecified=prespecified)


def with_share(
    model: ParametricMDP,
    counts: TransitionCounts,
    question: Asked,
    policy: Policy | None,
    confidence: float,
    weight: float,
    since: str,
    assuming: Iterable[str],
    *,
    prespecified: bool,
) -> Certificate:
    """Return the certificate of data since a start that has a share of the error; ``assuming`` is said of the data."""
    own = 1 - (1 - confidence) * weight
    found = certify(model, counts, question, confidence=own, policy=policy, prespecified=prespecified)
    said = _ALONE if weight == 1 else f"{_BY_LOOKING} (this one by itself: {percent(own)})"
    same = f"nothing has changed since {since}"
    rests_on = tuple(dict.fromkeys([Assumption(f"{same}; {said}", brief=same), *assuming, *found.rests_on.assumptions]))
    about = found.beside.approximate
    # a smaller confidence than that of this start by itself is true as well
    return replace(
        found,
        claim=replace(found.claim, confidence=confidence),
        how=replace(found.how, budget=()),
        rests_on=replace(found.rests_on, assumptions=rests_on),
        beside=replace(found.beside, approximate=about and narrowed(about, own, confidence)),
    )


def _place(time: TimeParts, since: str) -> int:
    """Return the number of the boundary right before what a name says, or before what comes next after it."""
    asked, places = _number(since), [*map(_number, time.names)]
    later = [i for i, (word, n) in enumerate(places) if word == asked[0] and n >= asked[1]]
    if not later:
        none = f": no part of the data begins there or later; parts begin with {time.names[0]}, … {time.names[-1]}"
        raise DataError(Option("since", since), none)
    return later[0]


def _number(name: str) -> tuple[str, int]:
    """Return the word and the number of a name such as "run 1,025"; any other name is a word alone."""
    found = re.fullmatch(r"(run|row) ([\d,]+)", name)
    return (found[1], int(found[2].replace(",", ""))) if found else (name, 0)
