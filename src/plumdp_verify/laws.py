"""Laws of the parameters and points of bets: those that were fixed by a pilot follow from what was seen until then.

The estimate at a moment is the maximum of the likelihood of what was seen before, with the law of the space as a prior.
If there is no such maximum, members that were never drawn, of classes that were, count by their leverages: once, or if
slopes of some depend on each other, together as often as these have dimensions. The law after a pilot is normal about
its estimate, with the second derivative there as its precision. Both are compared up to what a solver in floats may be
off by. That is so little that nothing is gained by choosing within it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from flint import arb, arb_mat, fmpq

from .arithmetic import inverse, is_positive_definite, quadratic
from .counts import Count, CountedRows
from .evidence import block_of
from .reading import Exact, Part, dot, require, work

_CLOSE = fmpq(1, 10**6)  # of a standard deviation, squared
_ALIKE = fmpq(1, 10**6)  # of a precision, relative; and of a basis
_SAME = fmpq(1, 10**9)  # of a probability
_RIDGE = fmpq(1, 10**9)  # that makes a matrix of slopes regular, if these are of size one
_ROUNDING = fmpq(1, 10**12)  # of a precision, relative to that of the best known direction


def check_laws(part: Part, data: CountedRows) -> None:
    """Require likelihoods of different data or blocks, whose laws are that of the space or follow from the pilot."""
    space = part["space_law"]
    _require_law(space, data)
    kinds = [likelihood["data"].text() for likelihood in part["likelihoods"]]
    for which in set(kinds):
        blocks = [block_of(law, data) for law, kind in zip(part["likelihoods"], kinds, strict=True) if kind == which]
        whole = [block for block in blocks if not block]
        is_apart = len(whole) <= 1 and sum(map(len, blocks)) == len(set[int]().union(*blocks))
        require(is_apart, "two likelihoods are about the same parameters")
    for law, which in zip(part["likelihoods"], kinds, strict=True):
        require(which in ("all", "main"), f"{law.place}: the data are all or main, not {which!r}")
        _require_law(law, data)
        if which == "all":
            same = all(law[name].value == space[name].value for name in ("mean", "basis", "precision"))
            require(same, f"{law.place}: the law is not that of the space")
            continue
        require(data.order in ("planned", "open"), f"{law.place}: there is no pilot")
        require(law["basis"].value == space["basis"].value, f"{law.place}: the law is not in the span of the space")
        _require_estimate(space, data, "pilot", law["mean"].numbers(len(data.names)), law["precision"], law.place)


def check_points(part: Part, data: CountedRows, space: Part) -> None:
    """Require that the bets of each stage are about the estimate from what was seen before it."""
    for s, point in enumerate(part["points"].matrix(len(data.lengths), len(data.names))):
        _require_estimate(space, data, f"moment {s}", point, None, f"{part.place}: points[{s}]")


def _require_law(part: Part, data: CountedRows) -> None:
    k = len(part["precision"])
    work(k**2 * (1 + len(data.names)))
    precision = part["precision"].matrix(k, k)
    part["mean"].numbers(len(data.names))
    columns = list(zip(*part["basis"].matrix(len(data.names), k), strict=True))
    products = {(i, j): dot(a, b) for i, a in enumerate(columns) for j, b in enumerate(columns)}
    is_basis = k <= len(data.names) and all(abs(x - int(i == j)) <= _ALIKE for (i, j), x in products.items())
    require(is_basis, f"{part.place}: the columns of the basis are not orthogonal, of length one")
    is_symmetric = precision == [list(column) for column in zip(*precision, strict=True)]
    is_law = is_symmetric and is_positive_definite(precision)
    require(is_law, f"{part.place}: the precision of the law is not symmetric and positive definite")


def _require_estimate(
    space: Part, data: CountedRows, until: str, point: Sequence[Exact], precision: Part | None, place: str
) -> None:
    """Require a point that is about the most likely one, in the law of the space, and a precision that fits.

    Without a precision, it is the point of bets, for which values of rewards weigh more the less they vary.
    """
    seen = data.seen_members(until) if precision is not None else _sharpened(data, until)
    k, d = len(space["precision"]), len(data.names)
    for has_maximum in (True, False):
        found = _derivatives(space, data, seen if has_maximum else _with_leverages(data, seen), point)
        inverted = None if found is None else inverse(found[1])
        if found is None or inverted is None or not quadratic(inverted, found[0]) < arb(_CLOSE):
            continue
        if precision is None or _is_alike(found[1], precision.matrix(k, k)):
            return
    require(d == 0 or k == 0, f"{place}: this does not follow from what was seen until {until}")


def second_derivative(space: Part, data: CountedRows, until: str, point: Sequence[Exact]) -> list[list[Any]]:
    """Return minus the second derivative of likelihood and prior that is expected at the point of bets of a moment."""
    visits, values = data.visits(_sharpened(data, until)), data.at(point)
    pairs = zip(data.members, values, strict=True)
    expected = [visits[member.group] * f if visits[member.group] else 0 for member, f in pairs]
    found = _derivatives(space, data, expected, point)
    return [] if found is None else found[1]


def _sharpened(data: CountedRows, until: str) -> list[Count]:
    """Return how often members were drawn, where values of rewards weigh more the less they vary."""
    sharpness, seen = data.sharpness(until), data.seen_members(until)
    return [n * sharpness.get(member.group, 1) for member, n in zip(data.members, seen, strict=True)]


def _with_leverages(data: CountedRows, seen: Sequence[Count]) -> list[Any]:
    """Return the counts, and for members never drawn of classes that were b·(Σ b bᵀ)⁻¹ b, of slopes b of size one."""
    visits, d, slopes = data.visits(seen), len(data.names), {}
    for k, (member, n) in enumerate(zip(data.members, seen, strict=True)):
        if not n and visits[member.group] and any(member.slopes):
            largest = max(abs(b) for b in member.slopes)
            slopes[k] = [(i, b / largest) for i, b in enumerate(member.slopes) if b]
    work(d**3 + sum(d + len(each) ** 2 for each in slopes.values()))
    matrix = [[_RIDGE * int(i == j) for j in range(d)] for i in range(d)]
    for each in slopes.values():
        for (i, a), (j, b) in product(each, each):
            matrix[i][j] += a * b
    weights, inverted = [*seen], inverse(matrix) or []
    for k, each in slopes.items():
        weights[k] = sum((inverted[i][j] * a * b for (i, a), (j, b) in product(each, each)), arb(0))
    return weights


def _is_alike(one: Sequence[Sequence[Any]], other: Sequence[Sequence[Exact]]) -> bool:
    """Return whether two quadratic forms are the same up to a millionth, in every direction, and up to rounding."""
    pairs = [list(zip(*rows, strict=True)) for rows in zip(one, other, strict=True)]
    rounding = _ROUNDING * sum((row[i] for i, row in enumerate(one)), arb(0))
    above = [[(1 + _ALIKE) * a - b + rounding * int(i == j) for j, (a, b) in enumerate(r)] for i, r in enumerate(pairs)]
    below = [[b - (1 - _ALIKE) * a + rounding * int(i == j) for j, (a, b) in enumerate(r)] for i, r in enumerate(pairs)]
    return is_positive_definite(above) and is_positive_definite(below)


def _derivatives(
    space: Part, data: CountedRows, weights: Sequence[Any], point: Sequence[Exact]
) -> tuple[list[Any], list[list[Any]]] | None:
    """Return the first and minus the second derivative of likelihood and prior at a point, or None outside."""
    d, k, n = len(data.names), len(space["precision"]), len(data.members)
    work((n + d) * (k + 1) * (d + k + 1))
    basis, prior = space["basis"].matrix(d, k), space["precision"].matrix(k, k)
    columns = [[row[i] for row in basis] for i in range(k)]
    moved = [a - b for a, b in zip(point, space["mean"].numbers(d), strict=True)]
    off = [dot(column, moved) for column in columns]
    beyond = [a - dot(row, off) for a, row in zip(moved, basis, strict=True)]  # what the law cannot move
    if not all(abs(x) <= _SAME for x in data.along([beyond])[0]):
        return None
    used = [
        (i, w, f)
        for i, (w, f) in enumerate(zip(weights, data.at(point), strict=True))
        if w and any(data.members[i].slopes)
    ]
    if not all(f > 0 for _, _, f in used):
        return None
    along = data.along(columns)
    slopes = arb_mat(k, len(used), [of_one[i] / f for of_one in along for i, _, f in used])
    weighted = arb_mat(k, len(used), [w * of_one[i] / f for of_one in along for i, w, f in used])
    first = [
        g - dot(row, off)
        for (g,), row in zip((weighted * arb_mat(len(used), 1, [1] * len(used))).tolist(), prior, strict=True)
    ]
    return first, (arb_mat(prior) + weighted * slopes.transpose()).tolist()
