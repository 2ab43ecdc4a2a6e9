"""Thresholds of the likelihood: how likely the data are at the true parameters, at least, at all times.

The evidence is the mean of the likelihood over a normal law of the parameters that was fixed before the data. The true
point has a likelihood of at least the evidence times the error, except with a probability of that error (Ville 1939).
The mean is bounded from below by what lies near one point, in a set on which the logarithm has a parabola below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flint import arb

from .arithmetic import curvature, inverse, log_determinant, min_of, quadratic
from .counts import Count, CountedRows
from .reading import Ball, Exact, Part, dot, require, work


@dataclass(frozen=True)
class Likelihood:
    """Σ seen ln f >= threshold at the true point, over the members of all classes."""

    seen: list[Count]
    threshold: Ball


def read_likelihood(part: Part, data: CountedRows) -> Likelihood:
    """Return a likelihood with its threshold, which is proved; that of a block has the classes about its parameters."""
    seen = data.seen_members("all", "pilot" if part["data"].text() == "main" else "")
    if block := block_of(part, data):
        about = {member.group for member in data.members if any(member.slopes[i] for i in block)}
        seen = [n if member.group in about else 0 for member, n in zip(data.members, seen, strict=True)]
    return Likelihood(seen, _log_evidence(part, data, seen) + arb(part["error"].number()).log())


def block_of(part: Part, data: CountedRows) -> set[int]:
    """Return the numbers of the parameters that a likelihood is about, or none if it is about all."""
    names = [part["block"][i].text() for i in range(len(part["block"]))]
    require(set(names) <= set(data.names), f"{part.place}: a block has a parameter that the model does not have")
    return {data.names.index(name) for name in names}


def _log_evidence(part: Part, data: CountedRows, seen: Sequence[Count]) -> Ball:
    """Return a lower bound on the logarithm of the evidence.

    The law is that of mean + B y, with y normal about zero of the given precision. With β = Bᵀ b for the slopes b of a
    member, κ(t) = 2 (-t - ln(1 - t)) / t², A = precision + Σ seen κ(t) β βᵀ / f² and a set S = -S of displacements z
    on which |β·z| <= t f for all members of classes that were drawn from, it is at least

        ℓ(y) - y·precision y / 2 + ln det(precision) / 2 - ln det(A) / 2 + ln P(S),   z normal of the precision A.
    """
    d = len(data.names)
    k = len(part["precision"])
    work(len(data.members) * (k + 1) * (d + k + 1))
    basis, precision = part["basis"].matrix(d, k), part["precision"].matrix(k, k)
    y = part["point"].numbers(k)
    point = [m + dot(row, y) for m, row in zip(part["mean"].numbers(d), basis, strict=True)]
    widths = part["widths"].numbers(len(data.members))
    visits, at, along = data.visits(seen), data.at(point), data.along([*zip(*basis, strict=True)] if k else [])
    matrix: list[list[Any]] = [[arb(entry) for entry in row] for row in precision]
    value, used = arb(0), []
    for i, (member, n, t, f) in enumerate(zip(data.members, seen, widths, at, strict=True)):
        if not visits[member.group]:
            continue
        require(bool(f > 0), f"{part.place}: a probability is not positive at the point")
        require(0 <= t <= 1 and (not n or t < 1), f"{part.place}: a width is not between 0 and 1")
        value += n * f.log()
        if any(member.slopes):
            slopes = [column[i] for column in along]
            used.append((f, t, slopes, _direction(member.slopes)))
            weight = n * curvature(arb(t)) / (f * f) if n else arb(0)
            for row, a in zip(matrix, slopes, strict=True):
                row[:] = [x + weight * a * b for x, b in zip(row, slopes, strict=True)]
    value += (log_determinant(precision) - log_determinant(matrix) - quadratic(precision, y)) / 2
    return value + _log_mass(matrix, used, k, part.place)


def _log_mass(
    matrix: Sequence[Sequence[Any]], used: Sequence[tuple[Ball, Exact, list[Ball], Any]], k: int, place: str
) -> Ball:
    """Return a lower bound on ln P(S): of the largest ball in S, or of all slabs, one for each direction.

    The slabs of normal variables hold jointly with at least the product of their probabilities (Šidák 1967).
    """
    if not used:
        return arb(0)
    inverted = inverse(matrix)
    require(inverted is not None, f"{place}: the matrix of the evidence is not positive definite")
    narrowest: dict[Any, Ball] = {}
    for f, t, slopes, direction in used:
        ratio = t * f / quadratic(inverted or [], slopes).sqrt()
        narrowest[direction] = ratio if direction not in narrowest else ratio.min(narrowest[direction])
    least = min_of(list(narrowest.values()))
    ball = (least * least / 2).gamma_lower(arb(k) / 2, regularized=1)
    slabs = arb(1)
    for ratio in narrowest.values():
        slabs *= (ratio / arb(2).sqrt()).erf()
    best = ball if ball.mid() > slabs.mid() else slabs
    require(bool(best > 0), f"{place}: the widths leave no mass")
    return best.log()


def _direction(slopes: Sequence[Exact]) -> Any:
    """Return what is equal exactly for slopes that are multiples of each other."""
    first = next(b for b in slopes if b)
    return tuple((int((b / first).p), int((b / first).q)) for b in slopes)
