"""A ball that holds all parameters which the data allow, in coordinates of its own.

Points are ``centre + axes x + idle y``. Nothing depends on y. That all points of the set have |x| <= 1 is shown by
looking at |x| = 1 alone: the set is convex, so that with a point outside of the ball it has one on its surface.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flint import arb, fmpq, fmpq_mat

from .arithmetic import is_positive_definite, norm
from .counts import CountedRows
from .evidence import Likelihood
from .half_spaces import HalfSpace
from .polynomials import Exponents, Polynomial, monomials, substitute
from .reading import Ball, Exact, Part, Rejected, dot, require, work

_SMALL = fmpq(1, 10**6)


@dataclass(frozen=True)
class Cut:
    """The points at which a polynomial in the coordinates of a ball is at least zero; None if it has idle ones."""

    left: dict[Exponents, Ball] | None
    is_half_space: bool = True


@dataclass(frozen=True)
class Enclosure:
    """The coordinates of a ball, and what cuts it: first half-spaces, then the parabolas of those that are tangents."""

    centre: list[Exact]
    axes: list[list[Exact]]  # (k) of d numbers
    idle: list[list[Exact]]  # (d - k) of d numbers
    cuts: list[Cut]

    @property
    def dimension(self) -> int:
        """The number of coordinates that matter."""
        return len(self.axes)

    def transform(self, polynomial: Polynomial, place: str) -> Polynomial:
        """Return a polynomial in the parameters as one in x, which must not depend on y."""
        k, d = len(self.axes), len(self.centre)
        work(d**2)
        forms = []
        for i in range(d):
            form = {(0,) * d: self.centre[i]} if self.centre[i] else {}
            columns = [*self.axes, *self.idle]
            form |= {tuple(int(j == m) for m in range(d)): columns[j][i] for j in range(d) if columns[j][i]}
            forms.append(form)
        moved = substitute(polynomial, forms, d)
        require(
            not any(any(e[k:]) for e in moved), f"{place}: a probability depends on parameters that are called idle"
        )
        return {e[:k]: coefficient for e, coefficient in moved.items()}


def read_enclosure(
    part: Part, data: CountedRows, half_spaces: Sequence[HalfSpace], likelihoods: Sequence[Likelihood]
) -> Enclosure:
    """Return a ball after a proof that it holds all points of the set."""
    enclosure = make_enclosure(part, data, half_spaces)
    if enclosure.dimension:
        _check(part, enclosure, data, likelihoods)
    return enclosure


def make_enclosure(part: Part, data: CountedRows, half_spaces: Sequence[HalfSpace]) -> Enclosure:
    """Return the coordinates of a ball, whatever it holds."""
    d, k = len(data.names), len(part["axes"])
    require(k <= d, f"{part.place}: there are more axes than parameters")
    work(d**3 + d**2 * (len(data.members) + len(half_spaces)))
    centre = part["centre"].numbers(d)
    axes, idle = part["axes"].matrix(k, d), part["idle"].matrix(d - k, d)
    bits = max((number.height_bits() for row in [*axes, *idle] for number in row), default=0)
    work(d**4 * bits // 4000)
    require(d == 0 or fmpq_mat([*axes, *idle]).det() != 0, f"{part.place}: axes and idle directions are not a basis")
    for member in data.members:
        free = all(dot(member.slopes, direction) == 0 for direction in idle)
        require(free, f"{part.place}: an outcome depends on parameters that are called idle")
    empty = Enclosure(centre, axes, idle, [])
    cuts = [_curved(each, empty) if each.curved else _cut(each, empty) for each in half_spaces]
    cuts += [_parabola(each, each.likelihood, data, empty) for each in half_spaces if each.likelihood]
    return Enclosure(centre, axes, idle, cuts)


def _cut(half_space: HalfSpace, enclosure: Enclosure) -> Cut:
    row = half_space.row
    is_exact = all(type(a) is fmpq for a in row)  # those of outcomes do not depend on idle coordinates, as checked
    if is_exact and any(dot(row, direction) != 0 for direction in enclosure.idle):
        return Cut(None)
    offset = arb(half_space.offset) - arb(dot(row, enclosure.centre))
    return Cut(_left(offset, [arb(dot(row, axis)) for axis in enclosure.axes], []))


def _left(offset: Ball, row: Sequence[Ball], square: Sequence[Sequence[Ball]]) -> dict[Exponents, Ball]:
    """Return the polynomial offset - row · x - x · square x."""
    k = len(row)
    left = {(0,) * k: offset} | {tuple(int(i == m) for m in range(k)): -q for i, q in enumerate(row)}
    for i, entries in enumerate(square):
        for j, entry in enumerate(entries):
            e = tuple(int(i == m) + int(j == m) for m in range(k))
            left[e] = left.get(e, arb(0)) - entry
    return left


def _curved(half_space: HalfSpace, enclosure: Enclosure) -> Cut:
    """Return what a half-space that is curved by products of parameters leaves of a ball."""
    d = len(enclosure.centre)
    flat = {tuple(int(i == m) for m in range(d)): b for i, b in enumerate(half_space.row) if b}
    try:
        moved = enclosure.transform(flat | half_space.curved, "")
    except Rejected:
        return Cut(None, is_half_space=False)
    zero = (0,) * enclosure.dimension
    left = {e: -arb(c) for e, c in moved.items()}
    left |= {zero: left.get(zero, arb(0)) + arb(half_space.offset)}
    return Cut(left, is_half_space=False)


def _parabola(tangent: HalfSpace, likelihood: Likelihood, data: CountedRows, enclosure: Enclosure) -> Cut:
    """Return what a likelihood leaves of a ball, by a parabola that touches it where a tangent does.

    With f = y at the point where it touches, s = f/y - 1 is s₀ + β·x in the ball, and so at most t = s₀ + |β|, or zero.
    As ln(1 + s) <= s - κ(t) s² / 2 (see below), threshold <= Σ seen ln f is at most Σ seen (ln y + s - κ(t) s² / 2).
    """
    centre, axes, k = enclosure.centre, enclosure.axes, enclosure.dimension
    work(len(data.members) * (len(centre) + 1) * (k + 1) + (k + 1) ** 3)
    row, offset, square = [arb(0)] * k, -likelihood.threshold, [[arb(0)] * k for _ in range(k)]
    for member, n, y in zip(data.members, likelihood.seen, tangent.touches, strict=True):
        if n:
            start = arb(member.at(centre) / y - 1)
            slopes = [arb(dot(member.slopes, axis) / y) for axis in axes]
            bend = n * _curvature((start + norm(slopes)).max(arb(0))) / 2
            offset += n * (arb(y).log() + start) - bend * start * start
            for i, a in enumerate(slopes):
                row[i] -= n * a - 2 * bend * start * a
                for j, b in enumerate(slopes):
                    square[i][j] += bend * a * b
    return Cut(_left(offset, row, square), is_half_space=False)


def _check(part: Part, enclosure: Enclosure, data: CountedRows, likelihoods: Sequence[Likelihood]) -> None:
    """Require that no point x with |x| = 1 is on the way from the centre to a point of the set.

    Quadratic functions are known not to be negative on such a way: products (o - q·x) (o' - q'·x) of two half-spaces
    that the centre fulfils as well, and what the likelihood leaves. If the sum of some of these, with positive weights,
    is negative wherever |x| = 1, there is no such point. With any multiple of 1 - |x|² added, which is zero there, that
    is a matrix which is positive definite.
    """
    k = enclosure.dimension
    sphere = arb(part["sphere"].number())
    matrix = [[(sphere if i == 0 else -sphere) if i == j else arb(0) for j in range(k + 1)] for i in range(k + 1)]
    for item in part["products"]:
        weight = arb(item[2].number())
        work((k + 1) ** 2)
        require(bool(weight >= 0), f"{item.place}: the weight is negative")
        one, other = (_coefficients(item[place], enclosure) for place in (0, 1))
        for i in range(k + 1):
            for j in range(k + 1):
                matrix[i][j] -= weight * (one[i] * other[j] + one[j] * other[i]) / 2
    if part["likelihood"].value is not None:
        _subtract_likelihood(part["likelihood"], matrix, enclosure, data, likelihoods)
    require(is_positive_definite(matrix), f"{part.place}: the ball does not hold all points that the data allow")


def _coefficients(part: Part, enclosure: Enclosure) -> list[Ball]:
    """Return the coefficients of o - q·x for a half-space that the centre fulfils."""
    cut = enclosure.cuts[part.whole(len(enclosure.cuts))]
    require(cut.is_half_space, f"{part.place}: this is curved, not a half-space")
    require(cut.left is not None, f"{part.place}: the half-space depends on parameters that are called idle")
    numbers = [(cut.left or {}).get(e, arb(0)) for e in monomials(enclosure.dimension, 1)]
    require(bool(numbers[0] >= 0), f"{part.place}: the centre is not in the half-space")
    return numbers


def _subtract_likelihood(
    part: Part, matrix: list[list[Ball]], enclosure: Enclosure, data: CountedRows, likelihoods: Sequence[Likelihood]
) -> None:
    """Subtract what the likelihood leaves, a quadratic function that is not negative, with a weight.

    For s <= t, ln(1 + s) <= s - κ(t) s² / 2 with κ(t) = 2 (t - ln(1 + t)) / t². At |x| = 1, with β for the slopes of a
    member over its probability f at the centre, s = β·x is at most t = |β|, so that threshold <= ℓ(x) is at most
    ℓ(centre) + g·x - x·H x / 2, with g = Σ seen β and H = Σ seen κ β βᵀ. As ℓ is concave, a point between the centre
    and one of the set is above the threshold as well.
    """
    likelihood = likelihoods[part["index"].whole(len(likelihoods))]
    weight = arb(part["weight"].number())
    require(bool(weight >= 0), f"{part.place}: the weight is negative")
    value = arb(0)
    for member, n in zip(data.members, likelihood.seen, strict=True):
        if n:
            f = member.at(enclosure.centre)
            require(f > 0, f"{part.place}: a probability is not positive at the centre")
            value += n * arb(f).log()
            if any(member.slopes):
                slopes = [arb(dot(member.slopes, axis) / f) for axis in enclosure.axes]
                curvature = n * weight * _curvature(norm(slopes))
                for i, a in enumerate(slopes, start=1):
                    matrix[0][i] -= n * weight * a
                    matrix[i][0] -= n * weight * a
                    for j, b in enumerate(slopes, start=1):
                        matrix[i][j] += curvature * a * b
    excess = value - likelihood.threshold
    require(bool(excess >= 0), f"{part.place}: the centre is not in the set of the likelihood")
    matrix[0][0] -= 2 * weight * excess


def _curvature(t: Ball) -> Ball:
    """Return κ(t) or less; κ falls, and κ(t) >= 1 - 2 t / 3."""
    if t < arb(_SMALL):
        return 1 - 2 * t / 3
    return 2 * (t - t.log1p()) / (t * t)
