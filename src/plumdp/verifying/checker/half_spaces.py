"""Half-spaces ``row · parameters <= offset`` around the true parameters: of the space, intervals and likelihoods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from flint import arb

from .counts import Data, trials_of
from .evidence import Likelihood
from .polynomials import affine, parse
from .reading import Exact, Part, require


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
    is_excluded = {"beta-binomial": excludes_by_bets, "clopper-pearson": _clopper_pearson}.get(method)
    require(is_excluded is not None, f"{part.place}: verify does not know intervals by {method!r}")
    is_fixed = method == "clopper-pearson"
    require(not is_fixed or data.sampling == "independent", f"{part.place}: the numbers of trials were not fixed")
    number = part["number"].whole()
    require(
        number >= max(len(part["list"]), _n_events(data)), f"{part.place}: the error is divided among too few events"
    )
    seen = data.seen_members("all")
    for item in part["list"]:
        event = affine(parse(item["polynomial"].text(), data.names), n, item.place)
        successes, trials = trials_of(data, seen, event, item["trials"])
        lower, upper = item["lower"].number(), item["upper"].number()
        for end, is_trivial, side in ((lower, lower <= 0, -1), (upper, upper >= 1, 1)):
            holds = is_trivial or (is_excluded is not None and is_excluded(successes, trials, end, error, side))
            require(holds, f"{item.place}: the interval from {trials} trials is too narrow")
        constant, slopes = event
        yield HalfSpace(slopes, upper - constant)
        yield HalfSpace([-b for b in slopes], constant - lower)


def _n_events(data: Data) -> int:
    """Return how many members of classes depend on parameters, of which f and 1 - f are one."""
    members = {(str(f.constant), *map(str, f.slopes)) for f in data.members if any(f.slopes)}
    others = {(str(1 - f.constant), *(str(-b) for b in f.slopes)) for f in data.members if any(f.slopes)}
    return (len(members | others) + 1) // 2


def excludes_by_bets(successes: int, trials: int, end: Exact, error: Exact, side: int) -> bool:
    """Return whether bets on all shares of successes, under Beta(1/2, 1/2), reach 1/error at an end and beyond it."""
    if not 0 < end < 1 or side * (end * trials - successes) < 0:
        return False
    k, m, p = successes, trials - successes, arb(end)
    mixture = (arb(k) + 0.5).lgamma() + (arb(m) + 0.5).lgamma() - arb(trials + 1).lgamma() - arb.pi().log()
    return bool(mixture - k * p.log() - m * (-p).log1p() >= -arb(error).log())


def _clopper_pearson(successes: int, trials: int, end: Exact, error: Exact, side: int) -> bool:
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
        row, offset = [arb(0)] * d, -likelihood.threshold
        at = [member.at(point) for member in data.members]
        for member, n, y in zip(data.members, likelihood.seen, at, strict=True):
            if n:
                require(y > 0, f"{item.place}: a probability is not positive at the point")
                offset += n * (arb(member.constant / y) - 1 + arb(y).log())
                row = [a - n * arb(b / y) for a, b in zip(row, member.slopes, strict=True)]
        yield HalfSpace(row, offset, likelihood, at)
