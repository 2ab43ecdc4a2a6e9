"""Certificates about now: what the parts since a start say, if nothing has changed since then (Statement W4).

The certificate of the start before part i + 1 has the share w of boundary i + 1 of the error (``weight_of``). So with
the confidence all of them hold at once, at all times, and the start may be chosen by looking. A window whose length was
fixed beforehand has all of the error, and holds each night by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from plumdp.base.errors import DataError
from plumdp.certifying.approximation import narrowed
from plumdp.certifying.pipeline import certify
from plumdp.data.counts import TransitionCounts
from plumdp.fit.time_tests import weight_of
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy
from plumdp.model.question import Asked
from plumdp.model.text import number_of
from plumdp.result.certificate import Certificate
from plumdp.result.printing import percent
from plumdp.watching.stream import Stream

_BY_LOOKING = "bounds for all starts hold at once, so that you may choose one by looking"
_ALONE = "each night holds by itself with this confidence"


def since_part(
    model: ParametricMDP,
    stream: Stream,
    number: int,
    question: Asked,
    policy: Policy | None,
    confidence: float,
    *,
    is_chosen: bool,
    assuming: Iterable[str] = (),
) -> Certificate:
    """Return what is certified from the kept part of a number on, whether that was chosen by looking or not.

    A policy is one that was there before the data of the stream. ``assuming`` says what the parts rest on.
    """
    if not stream.parts:
        raise DataError("the watch has just begun, and has no parts yet")
    error, end, seen = 1 - confidence, stream.ends[number], stream.since(number)
    own = 1 - error * (weight_of(end + 1) if is_chosen else 1.0)
    counts = TransitionCounts(model.counted.graph, seen.counts, "adaptive", rewards=seen.rewards)
    found = certify(model, counts, question, confidence=own, policy=policy, announced=policy is not None)
    said = f"{_BY_LOOKING} (this one by itself: {percent(own)})" if is_chosen else _ALONE
    premise = f"nothing has changed since {stream.parts[number].name} ({number_of(stream.n - end, 'part')}); {said}"
    rests_on = tuple(dict.fromkeys([premise, *assuming, *found.assumptions]))
    # a smaller confidence than that of this start by itself is true as well
    return replace(
        found,
        confidence=confidence,
        assumptions=rests_on,
        budget=(),
        approximate=found.approximate and narrowed(found.approximate, own, confidence),
    )
