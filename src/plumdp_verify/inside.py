"""A point of the set: from a set without points everything would follow, and the data would contradict the model."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from flint import arb, fmpq

from .counts import Data
from .evidence import Likelihood
from .half_spaces import HalfSpace
from .reading import Exact, Part, dot, require, work


def check_inside(ball: Part, data: Data, half_spaces: Sequence[HalfSpace], likelihoods: Sequence[Likelihood]) -> None:
    """Require that a point which is given, or else the centre of the ball, is surely in the set."""
    point = ball["inside" if "inside" in ball else "centre"].numbers(len(data.names))
    found = is_inside(point, data, half_spaces, likelihoods)
    require(found, "no point is known that the data allow: from a set without points everything would follow")


def is_inside(
    point: Sequence[Exact], data: Data, half_spaces: Sequence[HalfSpace], likelihoods: Sequence[Likelihood]
) -> bool:
    """Return whether a point is surely in all half-spaces, curved or not, and in the sets of all likelihoods."""
    work(len(half_spaces) * len(point) + len(data.members) * (len(point) + len(likelihoods)))
    if not all(_is_below(point, each) for each in half_spaces):
        return False
    values = [member.at(point) for member in data.members]
    for likelihood in likelihoods:
        counted = [(n, f) for n, f in zip(likelihood.seen, values, strict=True) if n]
        if any(f <= 0 for _, f in counted):
            return False
        if not sum((n * arb(f).log() for n, f in counted), arb(0)) >= likelihood.threshold:
            return False
    return True


def _is_below(point: Sequence[Exact], half_space: HalfSpace) -> bool:
    work(sum(map(sum, half_space.curved)) + len(half_space.curved))
    left = dot(half_space.row, point)
    for exponents, c in half_space.curved.items():
        left += c * prod((x**power for x, power in zip(point, exponents, strict=True) if power), start=fmpq(1))
    return bool(arb(left) <= arb(half_space.offset))
