"""Half-spaces ``row · parameters <= offset`` around the true parameters, and others that are curved by products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from flint import arb, arb_mat, fmpq

from .counts import CountedRows
from .evidence import Likelihood
from .polynomials import Polynomial, affine, parse
from .reading import Ball, Exact, Part, dot, require, work


@dataclass(frozen=True)
class ProvedHalfSpace:
    """The points with ``row · point + curved <= offset``, a half-space if nothing is curved.

    Rows of fractions are exact. A tangent of a likelihood also has that, its threshold, and f at the point where it
    touches, for each member.
    """

    row: list[Any]
    offset: Any
    likelihood: Likelihood | None = None
    touches: list[Ball] = field(default_factory=list)
    curved: Polynomial = field(default_factory=dict)  # terms of products of parameters


def half_spaces_from_space(witness: Part, names: list[str]) -> Iterator[ProvedHalfSpace]:
    """Yield the half-spaces of the parameter space, given as polynomials that are at least zero."""
    for text in witness["space"]:
        number, slopes = affine(parse(text.text(), names), len(names), text.place)
        yield ProvedHalfSpace([-b for b in slopes], number)


def between(lower: Any, polynomial: Polynomial, upper: Any, n: int) -> Iterator[ProvedHalfSpace]:
    """Yield the points at which a polynomial is at most a number, and those at which it is at least another one."""
    curved = {e: c for e, c in polynomial.items() if sum(e) > 1}
    number, slopes = affine({e: c for e, c in polynomial.items() if sum(e) <= 1}, n, "")
    yield ProvedHalfSpace(slopes, upper - number, curved=curved)
    yield ProvedHalfSpace([-b for b in slopes], number - lower, curved={e: -c for e, c in curved.items()})


def half_spaces_from_tangents(
    part: Part, data: CountedRows, likelihoods: Sequence[Likelihood]
) -> Iterator[ProvedHalfSpace]:
    """Yield half-spaces around likelihood sets: ln f <= f / y - 1 + ln y for every y > 0, here f at some point."""
    d = len(data.names)
    for item in part:
        likelihood = likelihoods[item["likelihood"].whole(len(likelihoods))]
        point = item["point"].numbers(d)
        work(len(data.members) * 4 * (d + 1))
        offset, at, weights = -likelihood.threshold, data.at(point), [arb(0)] * len(data.members)
        for i, (member, n, y) in enumerate(zip(data.members, likelihood.seen, at, strict=True)):
            if n:
                require(bool(y > 0), f"{item.place}: a probability is not positive at the point")
                offset += n * (member.constant / y - 1 + y.log())
                weights[i] = -n / y
        row = (arb_mat(1, len(weights), weights) * data.slopes).tolist()[0]
        yield ProvedHalfSpace(row, offset, likelihood, at)


def check_inside(
    root: Part, data: CountedRows, half_spaces: Sequence[ProvedHalfSpace], likelihoods: Sequence[Likelihood]
) -> None:
    """Require that a point which is given, or else the centre of the cube, is surely in the set."""
    point = root["inside" if "inside" in root else "centre"].numbers(len(data.names))
    found = is_inside(point, data, half_spaces, likelihoods)
    require(found, "no point is known that the data allow: from a set without points everything would follow")


def is_inside(
    point: Sequence[Exact], data: CountedRows, half_spaces: Sequence[ProvedHalfSpace], likelihoods: Sequence[Likelihood]
) -> bool:
    """Return whether a point is surely in all half-spaces, curved or not, and in the sets of all likelihoods."""
    work(len(half_spaces) * len(point) + len(data.members) * (len(point) + len(likelihoods)))
    if not all(_is_below(point, each) for each in half_spaces):
        return False
    values = data.at(point)
    for likelihood in likelihoods:
        counted = [(n, f) for n, f in zip(likelihood.seen, values, strict=True) if n]
        if not all(f > 0 for _, f in counted):
            return False
        if not sum((n * f.log() for n, f in counted), arb(0)) >= likelihood.threshold:
            return False
    return True


def _is_below(point: Sequence[Exact], half_space: ProvedHalfSpace) -> bool:
    work(sum(map(sum, half_space.curved)) + len(half_space.curved))
    left = dot(half_space.row, point)
    for exponents, c in half_space.curved.items():
        left += c * prod((x**power for x, power in zip(point, exponents, strict=True) if power), start=fmpq(1))
    return bool(arb(left) <= arb(half_space.offset))
