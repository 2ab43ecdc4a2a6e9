"""Pieces of the set: a cube around it is halved again and again, and each part that holds a point has its own proof.

The set is known by its half-spaces alone, among them tangents of likelihoods. With y for the coordinates of the cube,
let there be multipliers μ >= 0 of half-spaces g >= 0 for each side s of each coordinate i, such that

    1 - s y[i] - Σ μ g(y)  =  a + b·y     with  a >= Σ|b|  and  Σ|b| < 1.

At a point of the set, with R for its largest |y[i]|, that side has R = s y[i] <= 1 - a + Σ|b| R, so that R - 1 is at
most Σ|b| (R - 1), and R is at most one: the cube holds the set. Halves of a cube cover it, so that the parts of a tree
of halvings do. A part may be left out if multipliers prove that it holds no point of the set. Functions that bound
values on a cube do so on its parts, in whose coordinates they are then written. In many dimensions corners of the cube
are far from the set, so that a ball about the centre may be proved to hold the set too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from flint import arb, fmpq

from .bracket import is_nonnegative
from .claim import Claim
from .comparison import Ends
from .counts import CountedRows
from .enclosure import Enclosure, make_enclosure, with_cuts
from .half_spaces import ProvedHalfSpace
from .polynomials import Exponents, monomials, size_of
from .reading import Ball, Part, Rejected, require, work

_MAX_PIECES = 100_000


@dataclass(frozen=True)
class Piece:
    """A part of the cube, the place of the part whose functions it has, and the halvings (axis, side) since that."""

    item: Part
    cube: Enclosure
    functions: str = ""
    halvings: tuple[tuple[int, int], ...] = ()

    @property
    def has_values(self) -> bool:
        """Whether it has functions of its own."""
        return "values" in self.item

    @property
    def is_whole(self) -> bool:
        """Whether it is not halved, and so has a proof."""
        return "halves" not in self.item


def read_pieces(part: Part, data: CountedRows, half_spaces: Sequence[ProvedHalfSpace]) -> Iterator[Piece]:
    """Yield the parts of a tree, each after the one that it is a half of, but for those proved to hold no point."""
    root = make_enclosure(part["root"], data, half_spaces)
    _check_root(part["root"]["sides"], root)
    root = _with_ball(part["root"], root)
    left, n = [Piece(Part(part["tree"].value, f"{part.place}: piece 0"), root)], 0
    while left:
        piece = left.pop()
        item = piece.item
        require(n < _MAX_PIECES, f"{part.place}: there are more than {_MAX_PIECES:,} pieces")
        if "values" in item:
            piece = replace(piece, functions=item.place, halvings=())
        cube = with_cuts(piece.cube, data, half_spaces)
        if "empty" in item:
            is_empty = is_nonnegative({(0,) * cube.dimension: arb(-1)}, item["empty"], cube)
            require(is_empty, f"{item.place}: it is not proved that no point of the set is here")
            continue
        if "halves" in item:
            halves = item["halves"]
            require(len(halves) == 3, f"{halves.place}: expected an axis and two halves")
            axis = halves[0].whole(cube.dimension)
            for i, side in ((1, -1), (2, 1)):
                n += 1
                turns, half_ = (*piece.halvings, (axis, side)), half(cube, axis, side)
                left.append(Piece(Part(halves[i].value, f"{part.place}: piece {n}"), half_, piece.functions, turns))
        yield replace(piece, cube=cube)


def half(cube: Enclosure, axis: int, side: int) -> Enclosure:
    """Return the half of a cube on one side (-1 or 1) along an axis."""
    work(len(cube.centre) * (1 + len(cube.axes)))
    centre = [c + side * a / 2 for c, a in zip(cube.centre, cube.axes[axis], strict=True)]
    axes = [[a / 2 for a in row] if i == axis else row for i, row in enumerate(cube.axes)]
    return replace(cube, centre=centre, axes=axes, radius=None)


def _check_root(part: Part, root: Enclosure) -> None:
    """Require that half-spaces keep all points of the set in the cube, on both sides of each coordinate."""
    k = root.dimension
    order = monomials(k, 1)
    require(len(part) == 2 * k, f"{part.place}: expected two sides for each axis")
    for place, item in enumerate(part):
        rest = {e: arb(0) for e in order} | {order[0]: arb(1), order[1 + place // 2]: arb((-1) ** (1 + place % 2))}
        for pair in item:
            cut = root.cuts[pair[0].whole(len(root.cuts))]
            # a parabola holds in the cube only, which is inconclusive to hold the set
            require(cut.is_half_space and cut.left is not None, f"{pair.place}: this is no half-space of the axes")
            weight = arb(pair[1].number())
            require(bool(weight >= 0), f"{pair.place}: a multiplier is negative")
            for e, c in (cut.left or {}).items():
                rest[e] -= weight * c
        size = size_of(rest, None)
        is_held = bool(rest[order[0]] >= size) and bool(size < fmpq(1))
        require(is_held, f"{item.place}: the cube does not hold all points that the data allow")


def _with_ball(part: Part, root: Enclosure) -> Enclosure:
    """Return the cube with the radius of a ball about its centre, if given, after a proof that it holds the set."""
    if "ball" not in part:
        return root
    radius = arb(part["ball"]["radius"].number())
    left: dict[Exponents, Ball] = {(0,) * root.dimension: radius * radius}
    left |= {tuple(2 * int(i == j) for j in range(root.dimension)): arb(-1) for i in range(root.dimension)}
    is_held = bool(radius >= 0) and is_nonnegative(left, part["ball"], root)
    require(is_held, f"{part.place}: the ball does not hold all points that the data allow")
    return replace(root, radius=radius)


def widest(claims: Sequence[Claim]) -> Claim:
    """Return the claim that holds if one of several does: with the least lower ends, and the largest upper ones."""
    if not claims:
        raise Rejected("no piece holds a point of the set")
    compared = claims[0].comparison
    if compared is not None:
        each = [claim.comparison for claim in claims if claim.comparison is not None]
        other, difference = _hull([c.other for c in each]), _hull([c.difference for c in each])
        compared = replace(compared, other=other, difference=difference)
    lower, upper = _hull([(claim.lower, claim.upper) for claim in claims])
    return replace(claims[0], lower=lower, upper=upper, comparison=compared)


def _hull(ends: Sequence[Ends]) -> Ends:
    lows, highs = [low for low, _ in ends if low is not None], [high for _, high in ends if high is not None]
    return min(lows) if len(lows) == len(ends) else None, max(highs) if len(highs) == len(ends) else None
