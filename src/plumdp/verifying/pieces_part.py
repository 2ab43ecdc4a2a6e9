"""Finds a cube around the set, functions that bound values on it, and halves that prove brackets. The checker decides.

Half-spaces of bets and the space are given. Tangents of likelihoods are added where they matter: across the axes of the
cube, and where a bound would be reached outside of the set. Functions are of the least degree whose margins are not in
the way; if there is none, a cube is halved before functions are sought.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb, inf, isfinite, sqrt
from typing import Any

import numpy as np
from flint import arb

from plumdp.base.errors import DataError
from plumdp.confidence.likelihood import furthest_point
from plumdp.model.graph import FloatArray
from plumdp.verifying.boundary import Boundary, LikelihoodForm, as_float, floats
from plumdp.verifying.cube_bounds import Bound, Cuts, Terms, bound_on_cube, find_radius, prove_empty
from plumdp.verifying.expansion import Expansion, Wanted, expand, needed_of, radius_of, written_values
from plumdp_verify.chain import Chain
from plumdp_verify.enclosure import Enclosure
from plumdp_verify.pieces import half
from plumdp_verify.polynomials import halved, monomials
from plumdp_verify.reading import exact

_DEGREES = (2, 3, 4, 6, 8, 10, 12)  # of functions, until margins are not in the way
_MOST = 300_000  # coefficients of functions above degree two
_FALLS = 4.0  # factor by which margins must fall from degree to degree
_SPARE = 1e-7  # of the sides of the cube, relative
_TRIES = 6  # tangents that are added for one end of a piece
_MOST_HALVES = 300  # parts with the same functions
_MOST_WORK, _BASE_WORK, _DEEPEST = 1e8, 1e4, 60  # operations of the search, and those of the smallest bound
_ROOM = 5e-10  # by which ends may be proved with less, relative; the checker allows twice as much
_NEAR = 1e-7  # how far, relative, a point may be from a set that it is in


@dataclass(frozen=True)
class Goal:
    """A polynomial in the coordinates of a cube, what it must be at least, and the margin in that."""

    polynomial: Terms
    least: float
    margin: float


@dataclass
class Writer:
    """The means by which pieces are proved. Tangents are added on the way."""

    chains: Sequence[Chain]
    wanted: Sequence[Wanted]
    boundary: Boundary
    n_pieces: int = 0
    work: float = 0.0  # about as many operations, so that a search ends on all machines alike

    def cut(self, cube: Enclosure) -> tuple[Cuts, list[int]]:
        """Return the half-spaces that cut a cube, and their numbers."""
        cuts = self.boundary.cuts(cube)
        usable = np.flatnonzero(cuts.offsets < cuts.sizes).tolist()
        return cuts.only(usable), usable

    def tree(self, cube: Enclosure, depth: int = 0) -> dict[str, Any]:
        """Return functions on a cube and a proof of brackets with them, or an axis and the same on both halves."""
        n_open, last, functions = sum(len(chain.open) for chain in self.chains), inf, None
        for degree in _DEGREES if cube.dimension else (0,):
            n_numbers = n_open * comb(cube.dimension + degree, degree)
            if degree > 2 and n_numbers > _MOST:
                break
            self._spend(n_numbers * cube.dimension)
            functions = self.functions(cube, degree)
            if functions is None:
                break
            goals = self.goals(cube, functions)
            pairs = zip(self.wanted, goals[::2], strict=False)
            if all(2 * goal.margin <= each.upper - each.lower or each.is_exact for each, goal in pairs):
                found = self.brackets(cube, goals, depth, self.n_pieces + _MOST_HALVES)
                if found is not None:
                    return {"values": [written_values(each) for each in functions], **found}
            margins = max(float(each.margins.max(initial=0.0)) for each in functions)
            if margins > last / _FALLS:
                break
            last = margins
        self._count(depth if cube.dimension else _DEEPEST + 1)
        if (empty := self.empty(cube)) is not None:
            return empty
        axis = self.axis(cube, functions)
        return {"halves": [axis, *(self.tree(half(cube, axis, side), depth + 1) for side in (-1, 1))]}

    def attempt(self, cube: Enclosure) -> dict[str, Any]:
        """Return functions and multipliers on all of a cube that are close to a proof, in which a step is missing."""
        functions = self.functions(cube, _DEGREES[0] if cube.dimension else 0)
        if functions is None:
            raise DataError("no functions bound the policy's value")
        cuts, places = self.cut(cube)
        goals = self.goals(cube, functions)
        proofs = [_multipliers(bound_on_cube(each.polynomial, cuts, radius_of(cube)), places) for each in goals]
        return {"values": [written_values(each) for each in functions], **self._written(proofs)}

    def functions(self, cube: Enclosure, degree: int) -> list[Expansion] | None:
        """Return expansions of the values of all chains, whose brackets come first, or None if one has none."""
        found = []
        for chain, its in zip(self.chains, self.wanted, strict=False):
            found.append(expand(chain, cube, degree, is_exact=its.is_exact))
        known = [each for each in found if each is not None]
        return known if len(known) == len(found) else None

    def goals(self, cube: Enclosure, functions: Sequence[Expansion]) -> list[Goal]:
        """Return the polynomials to be bounded, for both ends of each wanted value."""
        claimed = [each.claimed(chain) for chain, each in zip(self.chains, functions, strict=True)]
        values, margins = [value for value, _ in claimed], [margin for _, margin in claimed]
        order, goals = monomials(cube.dimension, functions[0].degree), list[Goal]()
        for each in self.wanted:
            margin = sum(margins[i] for _, i in each.terms)
            total = each.sum(values)
            for numbers, end in zip((total, -total), needed_of(each, self.chains), strict=True):
                polynomial = {e: c for e, c in zip(order, numbers.tolist(), strict=True) if c or not any(e)}
                room = _ROOM * abs(end) if isfinite(end) else 0.0
                goals.append(Goal(polynomial, end + margin - room, margin))
        return goals

    def brackets(self, cube: Enclosure, goals: Sequence[Goal], depth: int, most: int) -> dict[str, Any] | None:
        """Return multipliers that prove goals on a cube, or the same on its halves; None if a margin is in the way."""
        self._count(depth)
        if self.n_pieces > most:
            return None
        proofs: list[dict[str, Any]] = []
        for goal in goals:
            found = self.end(cube, goal)
            if found is None:
                return None
            if not isinstance(found, dict):
                if (empty := self.empty(cube)) is not None:
                    return empty
                axis, halves = int(found.argmax()), list[Any]()
                for side in (-1, 1):
                    moved = [replace(each, polynomial=halved(each.polynomial, axis, side)) for each in goals]
                    halves.append(self.brackets(half(cube, axis, side), moved, depth + 1, most))
                    if halves[-1] is None:
                        return None
                return {"halves": [axis, *halves]}
            proofs.append(found)
        return self._written(proofs)

    def _written(self, proofs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        pairs = zip(proofs[::2], proofs[1::2], strict=True)
        return {"brackets": [{"lower": low, "upper": high} for low, high in pairs]}

    def end(self, cube: Enclosure, goal: Goal) -> dict[str, Any] | FloatArray | None:
        """Return multipliers that prove a goal on a cube, or else scores of axes, or None where it does not hold."""
        given, radius = goal.polynomial, radius_of(cube)
        for _ in range(_TRIES):
            cuts, places = self.cut(cube)
            self._spend(len(places) * (cube.dimension + 1) ** 3 + 10 * len(given) ** 2)
            bound = bound_on_cube(given, cuts, radius, enough=goal.least)
            if bound.bound >= goal.least:
                return _multipliers(bound, places)
            if not self.separate(cube, bound.point):
                break
        at, size = bound.point, sum(abs(c) for e, c in given.items() if any(e))
        missing = goal.least - sum(c * float(np.prod(at ** np.array(e))) for e, c in given.items()) - _NEAR * size
        if missing > 0 and cuts.scaled().left(at).min(initial=0.0) >= -_NEAR:
            if missing > 2 * goal.margin:
                raise DataError("they do not hold at some point of the set that it would be about")
            return None
        widths = np.abs(floats(cube.axes)).max(axis=1)
        return np.asarray(bound.score + 1e-9 * size * widths / widths.max())

    def axis(self, cube: Enclosure, functions: Sequence[Expansion] | None) -> int:
        """Return the axis along which functions are least linear, or else the longest."""
        score = 1e-9 * np.abs(floats(cube.axes)).max(axis=1)
        for each in functions or ():
            order = np.array(monomials(cube.dimension, each.degree))
            bent = np.abs(each.coefficients).sum(axis=0) * (order.sum(axis=1) > 1)
            score = score + bent @ order
        return int(score.argmax())

    def _count(self, depth: int) -> None:
        self.n_pieces += 1
        self._spend(0)
        if depth > _DEEPEST:
            raise DataError("parts of the set became too small")

    def _spend(self, work: float) -> None:
        self.work += _BASE_WORK + work
        if self.work > _MOST_WORK:
            raise DataError(f"the search was given up after {self.n_pieces:,} parts of the set")

    def separate(self, cube: Enclosure, point: FloatArray) -> bool:
        """Add the tangent of a likelihood between its largest value and a point that is not in its set."""
        at = floats([cube.centre])[0] + point @ floats(cube.axes)
        added = False
        for i, form in enumerate(self.boundary.forms):
            if form.value(at) < -1e-6:
                low, high = 0.0, 1.0
                for _ in range(50):
                    middle = (low + high) / 2
                    inside = form.value(form.start + middle * (at - form.start)) >= 0
                    low, high = (middle, high) if inside else (low, middle)
                added |= self.boundary.touch(i, form.start + low * (at - form.start))
        return added

    def empty(self, cube: Enclosure) -> dict[str, Any] | None:
        """Return a proof that a cube holds no point of the set, if one is found."""
        cuts, places = self.cut(cube)
        if not len(places):
            return None
        found = prove_empty(cuts)
        return None if found is None or found.bound < 0 else {"empty": _multipliers(found, places)}


def _multipliers(bound: Bound, places: list[int]) -> dict[str, Any]:
    pairs = [[places[i], _coefficients(y)] for i, y in bound.cuts.items()]
    return {"multipliers": pairs, "cube": bound.sides.tolist()}


def _coefficients(y: Terms) -> list[float]:
    order = monomials(len(next(iter(y))), max(map(sum, y)))
    return [y.get(e, 0.0) for e in order]


def pieces_part(writer: Writer, basis: FloatArray, middle: FloatArray) -> tuple[dict[str, Any], str]:
    """Return a cube around the set, and a tree of halvings with a proof in each of its parts.

    If no proof is found, there is an attempt at one, and the reason.
    """
    part = _root(writer, basis, middle)
    root = _cube(part)
    if root.dimension > 1:
        for i, form in enumerate(writer.boundary.forms):
            writer.boundary.touch(i, form.start)  # whose parabola is about the likelihood set
        cuts, places = writer.cut(root)
        found = find_radius(cuts)
        radius = (1 + _SPARE) * sqrt(-found.bound)
        if radius < sqrt(root.dimension):
            part["ball"] = {"radius": radius, **_multipliers(found, places)}
            root = replace(root, radius=arb(radius))
    try:
        return {"root": part, "tree": writer.tree(root)}, ""
    except DataError as error:
        return {"root": part, "tree": writer.attempt(root)}, str(error)


def _root(writer: Writer, basis: FloatArray, middle: FloatArray) -> dict[str, Any]:
    """Return a cube that half-spaces prove to hold the set, along axes across which rows differ most."""
    boundary = writer.boundary
    axes = basis @ _shape(boundary.forms, basis, middle)
    spreads = _spreads(writer.chains, _given(middle, axes, boundary.idle))
    axes = axes @ np.linalg.eigh(spreads.T @ spreads)[1]
    across = np.linalg.pinv(axes)
    for direction in across:
        for i, form in enumerate(boundary.forms):
            own = direction * (form.table.coefficients[form.seen > 0] != 0).any(axis=0)
            for side in (1, -1) if own.any() else ():
                boundary.touch(i, furthest_point(form.table, form.seen, form.threshold, form.start, side * own))
    flat = np.flatnonzero(boundary.is_half_space)
    cuts = boundary.cuts(_cube(_given(middle, axes, boundary.idle))).only(flat)
    found = [_furthest(side * e, cuts) for e in np.eye(axes.shape[1]) for side in (1, -1)]
    high, low = np.array([end for end, _ in found[::2]]), -np.array([end for end, _ in found[1::2]])
    reach = (high - low) / 2 * (1 + _SPARE) + 1e-15
    sides = [
        [[i, y / reach[place // 2]] for i, y in zip(flat.tolist(), each.tolist(), strict=True) if y > 0]
        for place, (_, each) in enumerate(found)
    ]
    return _given(middle + axes @ ((high + low) / 2), axes * reach, boundary.idle) | {"sides": sides}


def _given(centre: FloatArray, axes: FloatArray, idle: list[list[int]]) -> dict[str, Any]:
    return {"centre": centre.tolist(), "axes": axes.T.tolist(), "idle": idle}


def _cube(given: dict[str, Any]) -> Enclosure:
    """Return the coordinates of a cube, as a checker reads them."""
    axes, idle = ([[*map(exact, row)] for row in given[name]] for name in ("axes", "idle"))
    return Enclosure([*map(exact, given["centre"])], axes, idle, [])


def _furthest(direction: FloatArray, cuts: Cuts) -> tuple[float, FloatArray]:
    """Return the largest value of a linear function in half-spaces, and multipliers that prove it."""
    from scipy.optimize import linprog

    unit = cuts.scaled()
    solved = linprog(-direction, A_ub=unit.rows, b_ub=unit.offsets, bounds=(None, None), method="highs")
    if solved.x is None:
        raise DataError("there is no cube around the parameters that the data allow")
    multipliers = np.maximum(-solved.ineqlin.marginals, 0.0) / cuts.lengths
    return float(multipliers @ cuts.offsets), multipliers


def _shape(forms: Sequence[LikelihoodForm], basis: FloatArray, middle: FloatArray) -> FloatArray:
    """Return axes in which the likelihoods are about round, or those of the basis if there are none."""
    k = basis.shape[1]
    total = np.zeros((k, k))
    for form in forms:
        total += basis.T @ form.curvature() @ basis
    try:
        return np.asarray(np.linalg.inv(np.linalg.cholesky(total)).T)
    except np.linalg.LinAlgError:
        return np.eye(k)


def _spreads(chains: Sequence[Chain], given: dict[str, Any]) -> FloatArray:
    """Return the reach of the rows of chains along axes (n, k)."""
    cube, found = _cube(given), list[list[float]]()
    firsts = monomials(cube.dimension, 1)[1:]
    for chain in chains:
        for f in chain.expressions:
            moved = cube.transform(f, "chain")
            found.append([as_float(moved[e]) if e in moved else 0.0 for e in firsts])
    return np.array(found).reshape(len(found), len(firsts))
