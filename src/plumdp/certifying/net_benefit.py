"""Finds which policy has the largest net benefit, and for which willingness to pay.

The net benefit is a weight, the willingness to pay, times the value of one objective plus that of another, such as
health less cost. It is affine in the weight at every point of the region. So a policy that is proved to be better than
another at two weights is better at all weights between them, and ends of ranges are found by halving.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite, isnan, nextafter
from typing import ClassVar, TypeAlias

import numpy as np

from plumdp.base.errors import ModelError, Option, WhyNot
from plumdp.base.linear_algebra import last_that
from plumdp.base.progress import working
from plumdp.base.threads import one_blas_thread
from plumdp.base.vocabulary import Status
from plumdp.certifying.pipeline import conclude, default_relaxation, relax
from plumdp.certifying.policy_search import Weighing, require_same_model
from plumdp.learning.learned import Learned, of_learned
from plumdp.model.graph import IntArray
from plumdp.model.policy import Policy
from plumdp.model.question import Asked, Question, ask
from plumdp.result.certificate import Certificate, assumptions_of, premises_of
from plumdp.result.policy_table import PolicyTable
from plumdp.result.printing import outward, percent
from plumdp.result.show import Page, as_html, as_json, as_text
from plumdp.solver.coupled.bounds import find_differences

_MOST_FOUND = 8  # policies that a search proposes
_HALVINGS = 24  # of the distance to the end of a range

Range: TypeAlias = tuple[float, float]
_Gain: TypeAlias = Callable[[float], float]  # from a weight to what one policy gains on another at least


@dataclass(frozen=True, eq=False)
class Strategy:
    """A policy with bounds on both of its values, and the weights at which it is certified to be better than others."""

    name: str
    effect: Certificate
    cost: Certificate
    best: Range | None  # from where to where it is better than each of the others; None if that is nowhere certified

    @property
    def policy(self) -> PolicyTable:
        """The policy to follow."""
        return self.effect.policy

    def net_benefit(self, weight: float) -> Range:
        """Return bounds on the net benefit at a willingness to pay."""
        return _sum(*(_times(*each) for each in _weighted((self.effect, self.cost), weight)))


@dataclass(frozen=True, eq=False)
class NetBenefit:
    """The policies with the largest net benefits, in the order of the willingness to pay. All of it holds jointly."""

    picture: ClassVar = "net benefit"

    strategies: tuple[Strategy, ...]
    willingness: Range

    @property
    def boundaries(self) -> tuple[tuple[str, str, Range], ...]:
        """Two names and bounds on the weight at which the second becomes better, of those certified to be best."""
        best = [(each.name, each.best) for each in self.strategies if each.best is not None]
        pairs = pairwise(sorted(best, key=lambda each: each[1]))
        return tuple((one, other, (to, start)) for (one, (_, to)), (other, (start, _)) in pairs)

    @property
    def sentence(self) -> str:
        """Which policy is best from where to where, in words."""
        first, n = self.strategies[0], len(self.strategies)
        start, end = (f"{end:.10g}" for end in self.willingness)
        if not _is_claim(first.effect):
            return "Inconclusive: the data reject the model, or nothing proves the confidence of these sets."
        if n == 1:
            return f"No other policy than {first.name} was found, at a willingness to pay from {start} to {end}."
        known = sorted((each.best, each.name) for each in self.strategies if each.best is not None)
        if not known:
            return f"Inconclusive: none of {n} policies is certified to be best, at {start} to {end}."
        parts = [f"{name} is best at a willingness to pay of {self.printed(best)}" for best, name in known]
        rest = "" if known[0][0] == self.willingness else "; at other amounts it is inconclusive which one is best"
        sure = f"(confidence {percent(first.effect.confidence)})"
        return f"Certified: of the {n} policies compared, {', and '.join(parts)} {sure}{rest}."

    def printed(self, best: Range) -> str:
        """Return the range in which a policy is best, its ends rounded inward unless they end the whole range."""
        return " to ".join(self.printed_ends(best))

    def printed_ends(self, best: Range) -> list[str]:
        """Return the ends of the range in which a policy is best."""
        ends = zip(best, self.willingness, (1, -1), strict=True)
        return [f"{end:,.10g}" if end == whole else outward(end, side, 4) for end, whole, side in ends]

    def __repr__(self) -> str:
        return f"NetBenefit({len(self.strategies)} policies, {self.sentence})"

    @property
    def _certificates(self) -> tuple[Certificate, Certificate]:
        return self.strategies[0].effect, self.strategies[0].cost

    @property
    def assumptions(self) -> list[str]:
        """What all of it rests on, in words."""
        return assumptions_of(self._certificates)

    def page(self) -> Page:
        """Return which policy is best where, the bounds on both values of each, and what these rest on."""
        points = [f"{each.name}: {'; '.join(map(_bracket, (each.effect, each.cost)))}" for each in self.strategies]
        return Page(self.sentence, points, facts=premises_of(self._certificates))

    SCHEMA: ClassVar[str] = "plumdp/net-benefit/2"
    TOLD: ClassVar[str] = "sentence assumptions willingness boundaries strategies"
    __str__ = as_text
    _repr_html_ = as_html
    to_dict = as_json


def _bracket(certificate: Certificate) -> str:
    return f"{certificate.claim.objective}: {' to '.join(certificate.claim.printed_bounds)}"


@of_learned
@working("comparing net benefits")
@one_blas_thread()
def net_benefit(
    learned: Learned,
    effect: Asked,
    cost: Asked,
    *,
    willingness: tuple[float, float],
    strategies: Mapping[str, Policy] | None = None,
    precision: float = 1e-6,
) -> NetBenefit:
    """Return which policy has the largest net benefit, for each willingness to pay in a range.

    The net benefit is the willingness to pay times the effect, less the cost: what is minimised is subtracted, and what
    is maximised is added. Pre-specify both objectives to ``learn``. All bounds are on one region, so that policies and
    weights may be chosen by looking at all data.

    Parameters
    ----------
    learned
        What ``learn`` returned.
    effect, cost
        The objectives, or their texts.
    willingness
        The range of weights, from where to where, at least 0.
    strategies
        Policies to compare by their names; by default those that are best somewhere in the range at the estimate.
    precision
        As in ``conclude``.

    Returns
    -------
    NetBenefit
        The strategies, and where in the range each is best.

    Examples
    --------
    >>> from plumdp import case_study, learn, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=6)
    >>> asked = ['R{"money"}max=? [ F "end" ]', 'Pmin=? [ F "end" & money<10 ]']
    >>> learned = learn(study.model, counts, objectives=asked)
    >>> some = {"betting one": "bet1", "betting nothing": "bet0"}
    >>> compared = net_benefit(learned, *asked, willingness=(0, 1), strategies=some)
    >>> [(each.name, each.best is not None) for each in compared.strategies]
    [('betting nothing', True), ('betting one', False)]
    """
    start, end = _checked(willingness)
    questions = [ask(each, learned.model, memory=False) for each in (effect, cost)]
    require_same_model(questions)
    if strategies is not None and not strategies:
        raise ModelError("strategies: give at least one policy")
    both = {
        name: [conclude(learned, each, policy=policy, precision=precision) for each in questions]
        for name, policy in (strategies or _found(learned, questions, start, end)).items()
    }
    anchors = _anchors([[_middle(each) for each in of_one] for of_one in both.values()], start, end)
    compared = []
    for (name, (of_effect, of_cost)), anchor in zip(both.items(), anchors, strict=True):
        rivals = [each for other, each in both.items() if other != name]
        gains = [_gain(learned, questions, both[name], each, precision) for each in rivals]
        best = _where_better(gains, anchor, start, end) if _is_claim(of_effect) else None
        compared.append((inf if anchor is None else anchor, Strategy(name, of_effect, of_cost, best)))
    return NetBenefit(tuple(each for _, each in sorted(compared, key=lambda each: each[0])), (start, end))


def _found(learned: Learned, questions: Sequence[Question], start: float, end: float) -> dict[str, Policy]:
    """Return policies that are best somewhere in the range at the estimate, or the one that is best for the effect."""
    if learned.with_points(questions[0].model) is None:
        return {"policy 1": conclude(learned, questions[0]).policy}
    found = _proposed(Weighing(learned, questions), start, end)
    return {f"policy {number}": policy for number, policy in enumerate(found, start=1)}


def _checked(willingness: tuple[float, float]) -> Range:
    start, end = (float(weight) for weight in willingness)
    if not 0 <= start <= end < inf:
        raise ModelError(
            Option("willingness", willingness), ": give two numbers, the first at least 0, the second not less"
        )
    return start, end


def _is_claim(certificate: Certificate) -> bool:
    return certificate.status != Status.REJECTED


def _proposed(weighing: Weighing, start: float, end: float) -> list[IntArray]:
    """Return policies that are best at the estimate for some weight, in the order of weights."""
    axes = np.array([[start, 1.0], [end, 1.0]])
    corners = [weighing.improved(weighing.best[1], axes[0]), weighing.improved(weighing.best[0], axes[1])]
    done = 0
    while done + 1 < len(corners) < _MOST_FOUND:
        new = weighing.corner(corners[done], corners[done + 1], axes)
        is_new = new is not None and not any(np.array_equal(new, each) for each in corners)
        if new is not None and is_new:
            corners.insert(done + 1, new)
        else:
            done += 1
    distinct = {tuple(weighing.values(policy).tolist()): policy for policy in corners}
    return list(distinct.values())


def _middle(certificate: Certificate) -> float:
    """Return the middle of both bounds, such that a larger one is better."""
    sign = 1 if certificate.claim.direction == "max" else -1
    return sign * (certificate.lower + certificate.upper) / 2


def _anchors(values: Sequence[Sequence[float]], start: float, end: float) -> list[float | None]:
    """Return the middle of the weights at which each policy is best at the estimate, or None if that is nowhere."""
    anchors: list[float | None] = []
    for effect, cost in values:
        low, high = start, end
        for other, price in values:
            if other == effect:
                low = inf if price > cost else low
            else:
                limit = (price - cost) / (effect - other)  # where both have the same net benefit
                low, high = (max(low, limit), high) if effect > other else (low, min(high, limit))
        anchors.append((low + high) / 2 if low <= high and isfinite(low + high) else None)
    return anchors


def _gain(
    learned: Learned,
    questions: Sequence[Question],
    one: Sequence[Certificate],
    other: Sequence[Certificate],
    precision: float,
) -> _Gain:
    """Return a function from a weight to a lower bound on the net benefit of one policy less that of another."""
    model, joint = questions[0].model, None
    region = learned.with_points(model)
    if region is not None:
        uncertain = relax(learned, default_relaxation(learned), model)
        objectives, policies = [each.objective for each in questions], (one[0].policy, other[0].policy)
        found = find_differences(model, *policies, objectives, region, uncertain, precision=precision)
        joint = None if isinstance(found, WhyNot) else found

    def gain(weight: float) -> float:
        mine, its = ([_times(*each) for each in _weighted(of_one, weight)] for of_one in (one, other))
        apart = _sum(*mine, *((-high, -low) for low, high in its))[0]
        if joint is None:
            return apart
        return max(apart, joint.bounds([factor for factor, _ in _weighted(one, weight)]).lower)

    return gain


def _where_better(gains: Sequence[_Gain], anchor: float | None, start: float, end: float) -> Range | None:
    """Return weights between which all gains are proved to be positive: at both ends, and so at all between them."""

    def is_proved(weight: float) -> bool:
        return all(gain(weight) > 0 for gain in gains)

    def reach(limit: float, proved: float) -> float:
        return limit if is_proved(limit) else last_that(is_proved, proved, limit, _HALVINGS)

    proved = next((weight for weight in (anchor, start, end) if weight is not None and is_proved(weight)), None)
    return None if proved is None else (reach(start, proved), reach(end, proved))


def _weighted(both: Sequence[Certificate], weight: float) -> list[tuple[float, Certificate]]:
    """Return each certificate with the factor of its value in the net benefit."""
    return [
        (factor if each.claim.direction == "max" else -factor, each)
        for factor, each in zip((weight, 1.0), both, strict=True)
    ]


def _times(factor: float, certificate: Certificate) -> Range:
    """Return bounds on a factor times a value, rounded outward; nothing is known if a bound is infinite."""
    ends = sorted((factor * certificate.lower, factor * certificate.upper))
    if any(map(isnan, ends)) or not all(map(isfinite, ends)):
        return -inf, inf
    return nextafter(ends[0], -inf), nextafter(ends[1], inf)


def _sum(*parts: Range) -> Range:
    """Return bounds on a sum, rounded outward."""
    low, high = 0.0, 0.0
    for lower, upper in parts:
        low, high = nextafter(low + lower, -inf), nextafter(high + upper, inf)
    return low, high
