"""Half-spaces that bets leave: at the true parameters no fortune grows beyond all bounds.

Bets are fixed at moments, by what was seen before, and stay until the next one. Each is made for a horizon, a length of
the data, and the fortunes of all horizons are one fortune in the end, in which each has its weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flint import arb, fmpq

from .counts import Count, CountedRows, Member
from .half_spaces import HalfSpace
from .misfit import log_tolerated
from .reading import Ball, Exact, Part, dot, require, work

_LARGEST_BET, _LARGEST_SHARP_BET = fmpq(1, 2), 2
_LEAST_PROBABILITY = fmpq(1, 10**9)
_PLANNED = fmpq(4, 5)  # weight of the planned length
_HORIZONS = 60


@dataclass(frozen=True)
class _Stage:
    """What was counted between two moments, and what bets are made of, which was fixed at the first of them."""

    seen: list[Count]
    visits: list[int]  # of each row
    mixed: dict[int, Exact]  # the sum of x (1 - x) over values x of rewards, by class
    point: list[Exact]
    sharpness: dict[int, Exact]  # by class; one if it is not there


def check_bets(part: Part, data: CountedRows) -> None:
    """Require two bets at most for each direction that was announced, on horizons whose weights sum to at most one."""
    require(data.order != "unknown" and len(data.lengths) > 0, f"{part.place}: bets need data whose order is known")
    n_directions, n_stages, d = part["directions"].whole(), len(data.lengths), len(data.names)
    part["points"].matrix(n_stages, d)
    used: dict[int, int] = {}
    for item in part["list"]:
        direction = item["direction"].whole(n_directions)
        used[direction] = used.get(direction, 0) + 1
        require(used[direction] <= 2, f"{item.place}: a direction has two sides, not three")
        numbers = [
            number.value if type(number.value) is int else number.refuse("expected a whole number")
            for number in item["horizons"]
        ]
        require(len(set(numbers)) == len(numbers) > 0, f"{item.place}: a horizon is used twice, or there is none")
        for number in numbers:
            weight_of_horizon(data, number, item.place)
        shares = item["shares"].numbers(len(numbers))
        require(all(share > 0 for share in shares), f"{item.place}: a share is not positive")
        is_complete = [len(of_stage) for of_stage in item["steps"]] == [len(numbers)] * n_stages
        require(is_complete, f"{item.place}: each stage needs a step for each horizon")


def half_spaces_from_bets(part: Part, data: CountedRows) -> Iterator[HalfSpace]:
    """Yield the half-spaces that bets leave, both sides of a direction with fortunes that start at one half."""
    error, d = part["error"].number(), len(data.names)
    points = part["points"].matrix(len(data.lengths), d)
    stages = [
        _Stage(data.seen_members(*names), data.visited(*names), data.mixed(*names), point, data.sharpness(names[1]))
        for names, point in zip(data.stages(), points, strict=True)
    ]
    for item in part["list"]:
        yield _staged(item, data, stages, error)


def weight_of_horizon(data: CountedRows, number: int, place: str) -> Ball:
    """Return the weight of the horizon that is 2^number times the first, or the expected, length.

    Without an expected length the weights are (1 - 2^-½) 2^(-i/2) for i = 0, 1, …; with one, 2/3 / ((1 + |i|)(2 + |i|))
    for all whole i, and if it was planned a fifth of that, with four fifths for i = 0. All of them sum to one.
    """
    exists = abs(number) <= _HORIZONS and (number >= 0 or data.expected is not None)
    require(exists, f"{place}: there is no horizon {number}")
    if data.expected is None:
        return (1 - arb(2).rsqrt()) * (arb(2) ** (-arb(number) / 2))
    weight = fmpq(2, 3) / ((1 + abs(number)) * (2 + abs(number)))
    if data.order in ("planned", "short"):
        weight = (1 - _PLANNED) * weight + (_PLANNED if number == 0 else 0)
    return arb(weight)


def _staged(item: Part, data: CountedRows, stages: Sequence[_Stage], error: Exact) -> HalfSpace:
    """Return the half-space of one fortune, the mean of those that bets for several horizons make.

    With bets u on members, e = exp(u), Z(v) = Σ f(v) e of each class and any tangent points Y > 0, the true point has

        Σ share Σ visits Z(v) / Y  >=  Σ share (Σ visits (1 - ln Y) + Σ seen u + ln(weight / 2 / share)) + ln error.
    """
    d, n = len(data.names), len(item["horizons"])
    near = item["near"].numbers(d)
    given = item["shares"].numbers(n)
    shares = [share / sum(given) for share in given]
    weights, total = [arb(0)] * len(data.members), arb(error).log()
    steps = [[step.numbers(d) for step in of_stage] for of_stage in item["steps"]]
    for m, (share, number) in enumerate(zip(shares, item["horizons"], strict=True)):
        total += arb(share) * (weight_of_horizon(data, number.value, item.place) / 2 / arb(share)).log()
        for stage, of_stage in zip(stages, steps, strict=True):
            total += arb(share) * _bet(data, stage, of_stage[m], near, arb(share), weights)
    row = [-sum((a * arb(f.slopes[i]) for a, f in zip(weights, data.members, strict=True)), arb(0)) for i in range(d)]
    known = sum((a * arb(f.constant) for a, f in zip(weights, data.members, strict=True)), arb(0))
    return HalfSpace(row, known - total)


def _bet(
    data: CountedRows, stage: _Stage, step: Sequence[Exact], near: Sequence[Exact], share: Ball, weights: list[Ball]
) -> Ball:
    """Return Σ visits (1 - ln Y) + Σ seen u of one stage, and add share · visits · e / Y to the weights of members.

    Bets are fixed by what was seen before the stage: u = b·step / f(point), within ±1/2, so that members with the same
    probability have the same bet. Y is Z at a point near the estimate, within the range of e.
    """
    work(len(data.members) * 4 * (len(near) + 2))
    visits, total, seen = data.visits(stage.seen), arb(0), stage.seen
    factors: dict[int, Ball] = {}
    means: dict[int, tuple[Ball, Ball, Ball]] = {}
    for i, (member, n) in enumerate(zip(data.members, seen, strict=True)):
        if visits[member.group]:
            bet = _bet_on(member, stage, step, data)
            factors[i] = bet.exp()
            total += n * bet
            low, high, mean = means.get(member.group, (factors[i], factors[i], arb(0)))
            means[member.group] = low.min(factors[i]), high.max(factors[i]), mean + arb(member.at(near)) * factors[i]
    for group, mixed in stage.mixed.items():
        if mixed:
            one, other = ((seen[i], factors[i]) for i in data.places[group])
            total += _more(one, other, mixed)
    tangents = {group: mean.max(low).min(high).mid() for group, (low, high, mean) in means.items()}
    for group, tangent in tangents.items():
        total += visits[group] * (1 - tangent.log())
    for i, factor in factors.items():
        group = data.members[i].group
        weights[i] += share * visits[group] * factor / tangents[group]
    return total - (_tolerated(data, stage, step) if data.misfit else 0)


def _tolerated(data: CountedRows, stage: _Stage, step: Sequence[Exact]) -> Ball:
    """Return by how much a fortune may grow as rows are off, at most, in its logarithm."""
    places = data.places
    total = arb(0)
    for row, n in zip(data.rows, stage.visits, strict=True):
        if n and row.ways:
            groups = {group for way in row.ways for group, _ in way}
            bets = {
                (group, place): _bet_on(data.members[i], stage, step, data)
                for group in groups
                for place, i in enumerate(places[group])
            }
            total += n * log_tolerated(row.ways, bets, data.misfit)
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


def _bet_on(member: Member, stage: _Stage, step: Sequence[Exact], data: CountedRows) -> Ball:
    """Return u, which is larger, and has wider limits, where values of rewards varied less than coins."""
    if data.misfit and member.group not in data.sure:
        return arb(0)
    probability, sharpness = member.at(stage.point), stage.sharpness.get(member.group, fmpq(1))
    if probability <= _LEAST_PROBABILITY:
        return arb(0)
    largest = (_LARGEST_BET * arb(sharpness).sqrt()).min(arb(_LARGEST_SHARP_BET))
    return arb(sharpness * dot(member.slopes, step) / probability).max(-largest).min(largest)
