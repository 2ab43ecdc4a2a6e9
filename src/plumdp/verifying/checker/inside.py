"""A point of the set: from a set without points everything would follow, and the data would contradict the model."""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb

from .counts import Data
from .evidence import Likelihood
from .half_spaces import HalfSpace
from .reading import Exact, Part, dot, require, work


def check_inside(
    ball: Part, certificate: Part, data: Data, half_spaces: Sequence[HalfSpace], likelihoods: Sequence[Likelihood]
) -> None:
    """Require that the centre of the ball, or else the estimate of the certificate, is surely in the set."""
    points = [ball["centre"].numbers(len(data.names))]
    if "estimate" in certificate and certificate["estimate"].names():
        points.append([certificate["estimate"][name].number() for name in data.names])
    found = any(_is_inside(point, data, half_spaces, likelihoods) for point in points)
    require(found, "no point is known that the data allow: from a set without points everything would follow")


def _is_inside(
    point: Sequence[Exact], data: Data, half_spaces: Sequence[HalfSpace], likelihoods: Sequence[Likelihood]
) -> bool:
    work(len(half_spaces) * len(point) + len(data.members) * (len(point) + len(likelihoods)))
    if not all(bool(arb(dot(each.row, point)) <= arb(each.offset)) for each in half_spaces):
        return False
    values = [member.at(point) for member in data.members]
    for likelihood in likelihoods:
        counted = [(n, f) for n, f in zip(likelihood.seen, values, strict=True) if n]
        if any(f <= 0 for _, f in counted):
            return False
        if not sum((n * arb(f).log() for n, f in counted), arb(0)) >= likelihood.threshold:
            return False
    return True
