"""Half-spaces that bets leave: at the true parameters no wealth grows beyond all bounds.

Bets are fixed at moments, by what was seen before, and stay until the next one. Each is made for a horizon, a length of
the data, and the wealths of all horizons are one wealth in the end, in which each has its weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flint import arb, arb_mat, fmpq

from .arithmetic import max_of, min_of
from .counts import Count, CountedRows
from .half_spaces import ProvedHalfSpace
from .reading import Ball, Exact, Part, Rejected, require, work

_LARGEST_BET, _LARGEST_SHARP_BET = fmpq(1, 2), 2
_LEAST_PROBABILITY = fmpq(1, 10**9)
_RENEWED = {"planned": fmpq(4, 5), "short": fmpq(4, 5), "open": fmpq(1, 2)}  # weight of bets for an expected length
_HORIZONS, _EVEN = 60, 8


@dataclass(frozen=True)
class BetStage:
    """What was counted between two moments, and what bets are made of, which was fixed at the first of them."""

    seen: list[Count]
    drawn: dict[int, Count]  # how often each class was drawn from, if it was
    mixed: dict[int, Exact]  # the sum of x (1 - x) over values x of rewards, by class
    point: list[Exact]
    odds: list[Ball]  # of members: sharpness over probability, or zero if nothing is bet on it
    largest: list[Ball]  # bet on each member

    def bets(self, along: Sequence[Ball]) -> list[Ball]:
        """Return the bets u = odds b·step on all members, within their limits, given b·step.

        They are fixed by what was seen before the stage, and members with the same probability have the same bet.
        """
        limited = zip(self.odds, along, self.largest, strict=True)
        return [(odds * x).max(-most).min(most) for odds, x, most in limited]


def check_bets(part: Part, data: CountedRows) -> None:
    """Require that each side of a direction that was pre-specified has one wealth, at whatever moments it is looked at.

    Its horizons have weights that sum to at most one.
    """
    require(data.order != "unknown" and len(data.lengths) > 0, f"{part.place}: bets need data whose order is known")
    n_directions, n_stages, d = part["directions"].whole(), len(data.lengths), len(data.names)
    part["points"].matrix(n_stages, d)
    placed: dict[tuple[int, int, int | str, int], list[Exact]] = {}  # by direction, side, horizon and stage
    for item in part["list"]:
        direction, until = item["direction"].whole(n_directions), item["until"].whole(n_stages + 1)
        require(item["sign"].value in (1, -1), f"{item.place}: a direction has two sides, 1 and -1")
        numbers = [number.value for number in item["horizons"]]
        require(len(set(numbers)) == len(numbers) > 0, f"{item.place}: a horizon is used twice, or there is none")
        for number in numbers:
            weight_of_horizon(data, number, item.place)
        shares = item["shares"].numbers(len(numbers))
        require(all(share > 0 for share in shares), f"{item.place}: a share is not positive")
        is_complete = [len(of_stage) for of_stage in item["steps"]] == [len(numbers)] * until
        require(is_complete and until > 0, f"{item.place}: each stage needs a step for each horizon")
        for s, of_stage in enumerate(item["steps"]):
            for number, step in zip(numbers, of_stage, strict=True):
                key = direction, item["sign"].value, number, s
                is_same = placed.setdefault(key, step.numbers(d)) == step.numbers(d)
                require(is_same, f"{item.place}: bets of one side that are looked at twice are others")


def half_spaces_from_bets(part: Part, data: CountedRows, stages: Sequence[BetStage]) -> Iterator[ProvedHalfSpace]:
    """Yield the half-spaces that bets leave, both sides of a direction with wealths that start at one half."""
    error = part["error"].number()
    for item in part["list"]:
        yield _staged(item, data, stages, error)  # at any moment: Ville's inequality is about all of them


def stages_of(part: Part, data: CountedRows) -> list[BetStage]:
    """Return the stages of the data, with the points of bets."""
    points = part["points"].matrix(len(data.lengths), len(data.names))
    return [_stage(data, *names, point) for names, point in zip(data.stages(), points, strict=True)]


def _stage(data: CountedRows, end: str, start: str, point: list[Exact]) -> BetStage:
    """Return a stage, whose bets are larger, with wider limits, where values of rewards varied less than coins."""
    seen, sharpness = data.seen_members(end, start), data.sharpness(start)
    drawn = {group: n for group, n in data.visits(seen).items() if n}
    odds, largest = [], []
    for member, f in zip(data.members, data.at(point), strict=True):
        sharp = sharpness.get(member.group, fmpq(1))
        is_bet_on = any(member.slopes) and f > _LEAST_PROBABILITY
        odds.append(sharp / f if is_bet_on else arb(0))
        largest.append((_LARGEST_BET * arb(sharp).sqrt()).min(arb(_LARGEST_SHARP_BET)))
    return BetStage(seen, drawn, data.mixed(end, start), point, odds, largest)


def weight_of_horizon(data: CountedRows, number: int | str, place: str) -> Ball:
    """Return the weight of the horizon that is 2^number times the first one, or that of renewed bets.

    Weights are 3/4 (1 - 2^-½) 2^(-i/2) for i = 0, 1, …, and 1/32 more for i = 0, 2, …, 14. If a length was expected,
    bets that are renewed for it have half of all weight, or four fifths if it was planned.
    """
    renewed = fmpq(0) if data.expected is None else _RENEWED[data.order]
    if number == "renewed":
        require(renewed > 0, f"{place}: no length was expected that bets could be renewed for")
        return arb(renewed)
    if type(number) is not int or not 0 <= number < _HORIZONS:
        raise Rejected(f"{place}: there is no horizon {number!r}")
    even = fmpq(1, 4 * _EVEN) if number % 2 == 0 and number < 2 * _EVEN else fmpq(0)
    return (1 - renewed) * (fmpq(3, 4) * (1 - arb(2).rsqrt()) * arb(2) ** (-arb(number) / 2) + even)


def _staged(item: Part, data: CountedRows, stages: Sequence[BetStage], error: Exact) -> ProvedHalfSpace:
    """Return the half-space of one wealth, the mean of those that bets for several horizons make.

    With bets u on members, e = exp(u), Z(v) = Σ f(v) e of each class and any tangent points Y > 0, the true point has

        Σ share Σ visits Z(v) / Y  >=  Σ share (Σ visits (1 - ln Y) + Σ seen u + ln(weight / 2 / share)) + ln error.
    """
    d, n = len(data.names), len(item["horizons"])
    near = data.at(item["near"].numbers(d))
    given = item["shares"].numbers(n)
    shares = [share / sum(given) for share in given]
    weights, total = [arb(0)] * len(data.members), arb(error).log()
    for share, number in zip(shares, item["horizons"], strict=True):
        total += share * (weight_of_horizon(data, number.value, item.place) / 2 / share).log()
    for stage, of_stage in zip(stages, item["steps"], strict=False):
        for share, along in zip(shares, data.along(of_stage.matrix(n, d)), strict=True):
            total += share * _bet(data, stage, stage.bets(along), near, share, weights)
    slopes = (arb_mat(1, len(weights), weights) * data.slopes).tolist()[0]
    known = sum((a * f.constant for a, f in zip(weights, data.members, strict=True)), arb(0))
    return ProvedHalfSpace([-b for b in slopes], known - total)


def _bet(
    data: CountedRows, stage: BetStage, bets: list[Ball], near: Sequence[Ball], share: Exact, weights: list[Ball]
) -> Ball:
    """Return Σ visits (1 - ln Y) + Σ seen u of one stage, and add share · visits · e / Y to the weights of members.

    Y is Z at a point near the estimate, within the range of e.
    """
    work(len(data.members) * 16)
    total = gain(data, stage, bets)
    for group, n in stage.drawn.items():
        factors = [(i, bets[i].exp()) for i in data.places[group]]
        mean = sum((near[i] * e for i, e in factors), arb(0))
        each = [e for _, e in factors]
        tangent = mean.max(min_of(each)).min(max_of(each)).mid()
        total += n * (1 - tangent.log())
        weight = share * n / tangent
        for i, e in factors:
            weights[i] += weight * e
    return total


def gain(data: CountedRows, stage: BetStage, bets: Sequence[Ball]) -> Ball:
    """Return Σ seen u of one stage, and what values win beyond it."""
    total = sum((n * bet for n, bet in zip(stage.seen, bets, strict=True) if n), arb(0))
    for group, mixed in stage.mixed.items():
        if mixed:
            one, other = ((stage.seen[i], bets[i].exp()) for i in data.places[group])
            total += _more(one, other, mixed)
    return total


def _more(one: tuple[Count, Ball], other: tuple[Count, Ball], mixed: Exact) -> Ball:
    """Return what bets win at least beyond Σ seen u, as values vary less than coins do.

    A value x wins ln(e + x (e' - e)) with e <= e'. With t = Σx² / Σx, all win at least n ln e + Σx ln(1 + t ρ) / t,
    ρ = e' / e - 1, in place of n ln e + Σx ln(1 + ρ): ln(1 + ρ x) / x is convex (Jensen).
    """
    (_, low), (total, high) = sorted((one, other), key=lambda pair: float(pair[1].mid()))
    if not high >= low:  # not surely, as both are about the same: then nothing more is claimed
        return arb(0)
    ratio, t = high / low - 1, 1 - mixed / total
    return total * ((1 + t * ratio).log() / t - (1 + ratio).log())
