"""Half-spaces ``row · parameters <= offset`` around the true parameters: of the space, intervals and likelihoods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from flint import arb

from .counts import Data, trials_of
from .evidence import Likelihood
from .misfit import first_classes_only, is_posterior_enough, tolerant_error
from .polynomials import affine, parse
from .reading import Exact, Part, require, work


@dataclass(frozen=True)
class HalfSpace:
    """The points with ``row · point <= offset``; if both are fractions they are exact.

    A tangent of a likelihood also has that, its threshold, and f at the point where it touches, for each member.
    """

    row: list[Any]
    offset: Any
    likelihood: Likelihood | None = None
    touches: list[Exact] = field(default_factory=list)


def of_space(witness: Part, names: list[str]) -> Iterator[HalfSpace]:
    """Yield the half-spaces of the parameter space, given as polynomials that are at least zero."""
    for text in witness["space"]:
        number, slopes = affine(parse(text.text(), names), len(names), text.place)
        yield HalfSpace([-b for b in slopes], number)


def of_intervals(part: Part, data: Data) -> Iterator[HalfSpace]:
    """Yield both sides of the interval of each event, which is proved from its trials."""
    error, method, n = part["error"].number(), part["method"].text(), len(data.names)
    methods = {"beta-binomial": excludes_by_bets, "clopper-pearson": clopper_pearson, "tolerant": _tolerant}
    is_excluded = methods.get(method)
    require(is_excluded is not None, f"{part.place}: verify does not know intervals by {method!r}")
    is_fixed = method == "clopper-pearson"
    require(not is_fixed or data.sampling == "independent", f"{part.place}: the numbers of trials were not fixed")
    number = part["number"].whole()
    require(
        number >= max(len(part["list"]), _n_events(data)), f"{part.place}: the error is divided among too few events"
    )
    seen, whole_rows = data.seen_members("all"), first_classes_only([row.ways for row in data.rows])
    for item in part["list"]:
        event = affine(parse(item["polynomial"].text(), data.names), n, item.place)
        tried = trials_of(data, seen, event, item["trials"])
        for trial in item["trials"] if data.misfit else ():
            require(trial[0].value in whole_rows, f"{trial.place}: visits of this class are not those of whole rows")
        is_known = not is_fixed or _is_tried_once(data, {trial[0].value for trial in item["trials"]})
        require(is_known, f"{item.place}: a step may try the event twice, so that the number of trials is not fixed")
        lower, upper = item["lower"].number(), item["upper"].number()
        is_tried = tried[1] > 0  # a class that is not drawn from, or does not occur, need not have probabilities
        ends = (("lower", lower, is_tried and lower <= 0, -1), ("upper", upper, is_tried and upper >= 1, 1))
        for name, end, is_trivial, side in ends:
            successes, trials = _tried_until(item, name, tried, is_fixed=is_fixed)
            holds = is_trivial or (is_excluded is not None and is_excluded(successes, trials, end, error, side))
            require(holds, f"{item.place}: the interval from {trials} trials is too narrow")
        constant, slopes = event
        yield HalfSpace(slopes, upper + data.misfit - constant)
        yield HalfSpace([-b for b in slopes], constant + data.misfit - lower)


def _tried_until(item: Part, name: str, tried: tuple[int, int], *, is_fixed: bool) -> tuple[int, int]:
    """Return the successes and trials that an end is from: all, or what had been seen at some earlier time.

    Bets on all shares hold at all times at once, so that each end may be from a time of its own.
    """
    if "earlier" not in item or name not in item["earlier"]:
        return tried
    successes, trials = item["earlier"][name].wholes(2)
    require(not is_fixed, f"{item.place}: these intervals hold at the end of the data, and not earlier")
    is_earlier = successes <= tried[0] and 0 <= trials - successes <= tried[1] - tried[0]
    require(is_earlier, f"{item.place}: more was seen earlier than in all")
    return successes, trials


def _is_tried_once(data: Data, groups: set[int]) -> bool:
    """Return whether no way draws from these classes twice: whether it goes on may depend on what was drawn first."""
    ways = [way for row in data.rows for way in row.ways or []]
    work(sum(map(len, ways)))
    return all(sum(group in groups for group, _ in way) <= 1 for way in ways)


def _n_events(data: Data) -> int:
    """Return how many members of classes that rows draw from depend on parameters, of which f and 1 - f are one."""
    drawn = {group for row in data.rows for way in row.ways or () for group, _ in way}
    found = [f for f in data.members if any(f.slopes) and f.group in drawn]
    members = {(str(f.constant), *map(str, f.slopes)) for f in found}
    others = {(str(1 - f.constant), *(str(-b) for b in f.slopes)) for f in found}
    return (len(members | others) + 1) // 2


def excludes_by_bets(successes: int, trials: int, end: Exact, error: Exact, side: int) -> bool:
    """Return whether bets on all shares of successes, under Beta(1/2, 1/2), reach 1/error at an end and beyond it."""
    if not 0 < end < 1 or side * (end * trials - successes) < 0:
        return False
    k, m, p = successes, trials - successes, arb(end)
    mixture = (arb(k) + 0.5).lgamma() + (arb(m) + 0.5).lgamma() - arb(trials + 1).lgamma() - arb.pi().log()
    return bool(mixture - k * p.log() - m * (-p).log1p() >= -arb(error).log())


def _tolerant(successes: int, trials: int, end: Exact, error: Exact, side: int) -> bool:
    """Return whether bets on shares beyond an end reach 1/error if no trial has a probability on its other side."""
    is_excluded = excludes_by_bets(successes, trials, end, tolerant_error(error), side)
    return is_excluded and is_posterior_enough(successes, trials, end, side)


def clopper_pearson(successes: int, trials: int, end: Exact, error: Exact, side: int) -> bool:
    """Return whether the tail of the binomial law at an end has at most half of the error."""
    if not 0 < end < 1:
        return False
    k, m = (successes, trials - successes) if side < 0 else (trials - successes, successes)
    p = arb(end) if side < 0 else 1 - arb(end)
    return k > 0 and bool(p.beta_lower(arb(k), arb(m + 1), regularized=1) <= arb(error) / 2)


def of_tangents(part: Part, data: Data, likelihoods: Sequence[Likelihood]) -> Iterator[HalfSpace]:
    """Yield half-spaces around likelihood sets: ln f <= f / y - 1 + ln y for every y > 0, here f at some point."""
    d = len(data.names)
    for item in part:
        likelihood = likelihoods[item["likelihood"].whole(len(likelihoods))]
        point = item["point"].numbers(d)
        work(len(data.members) * 4 * (d + 1))
        row, offset = [arb(0)] * d, -likelihood.threshold
        at = [member.at(point) for member in data.members]
        for member, n, y in zip(data.members, likelihood.seen, at, strict=True):
            if n:
                require(y > 0, f"{item.place}: a probability is not positive at the point")
                offset += n * (arb(member.constant / y) - 1 + arb(y).log())
                row = [a - n * arb(b / y) for a, b in zip(row, member.slopes, strict=True)]
        yield HalfSpace(row, offset, likelihood, at)
