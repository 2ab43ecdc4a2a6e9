"""Half-spaces around the images of a region under affine maps, such as the distributions of the rows of a model.

A row of a few transitions sees a region of many variables through its probabilities alone, which are an image in few
dimensions. Objectives over the image are objectives over the region. The points where they end span a polytope inside
the image, whose facets say what to ask next (Lassez and Lassez, 1992). Each answer is a half-space around the image,
whatever is asked and however early one stops. When no facet is left that has a point beyond it, inside and outside are
the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from plumdp.base.rounding import UNDERFLOW, UNIT
from plumdp.model.graph import FloatArray, Indices, IntArray
from plumdp.region.shapes import Polytope

_EXACT = 1e-11  # facets beyond which there is nothing farther than this are those of the image
_FLAT = 1e-9  # directions in which all points are this close to each other, relative to the others, are flat
_ALIKE = 9  # digits by which directions are told apart
_MAX_FACETS = 400  # of one image
MAX_DIMENSION = 5  # of images: in more, facets are too many


class AffineMap(NamedTuple):
    """The map ``constants + matrix @ point``, with entries rounded to the nearest floats."""

    constants: FloatArray  # (m)
    matrix: FloatArray  # (m, d)
    sizes: FloatArray  # (m): largest sum of the absolute values of the terms, for rounding


@dataclass(frozen=True, eq=False)
class Image:
    """Half-spaces ``rows @ image <= offsets`` that hold the image of a region."""

    rows: FloatArray  # (n, m)
    offsets: FloatArray  # (n), rounded up
    distance: float  # how far half-spaces were from the facets they were asked for, when that ended; 0 if none is left


def images(region: Polytope, maps: Sequence[AffineMap], *, max_work: float) -> list[Image]:
    """Return half-spaces around the image of a region under each map.

    ``max_work`` is about how many products of two numbers may be spent on it. With many variables, not all facets are
    found, and the half-spaces are farther from the image.
    """
    searches = [_ImageSearch(each, len(region.blocks)) for each in maps]
    asked, spent, n_asked = [search.first() for search in searches], 0.0, 0
    while n := sum(len(questions.directions) for questions in asked):
        expected = spent / max(n_asked, 1) * n
        share = (max_work - spent) / expected if spent + expected > max_work else 1.0
        asked = [search.start(questions, share) for search, questions in zip(searches, asked, strict=True)]
        spent += _answer(region, searches, asked)
        n_asked += n
        asked = [search.next() for search in searches] if share == 1 else []
    return [search.image() for search in searches]


class _Questions(NamedTuple):
    """Directions in which to find the largest value, those that promise most first."""

    directions: FloatArray  # (n, m)
    levels: FloatArray  # (n): how far the points inside reach
    start: IntArray  # (n, n_blocks): near where the largest value may be

    def take(self, chosen: Indices | slice) -> _Questions:
        """Return the questions with these indices."""
        return _Questions(self.directions[chosen], self.levels[chosen], self.start[chosen])


def _answer(region: Polytope, searches: Sequence[_ImageSearch], asked: Sequence[_Questions]) -> float:
    """Enter the largest value of each direction, and where it is attained, into the searches, and return the work."""
    objectives = np.vstack([ask.directions @ search.map.matrix for search, ask in zip(searches, asked, strict=True)])
    best = region.minimise_at(-objectives, np.vstack([ask.start for ask in asked]))
    end = 0
    for search, questions in zip(searches, asked, strict=True):
        part = slice(end, end := end + len(questions.directions))
        search.enter(questions, -best.values[part], best.points[part], best.position[part])
    return best.work


class _ImageSearch:
    """The half-spaces around one image, and the points inside it, of the directions asked so far."""

    def __init__(self, of: AffineMap, n_blocks: int) -> None:
        m = len(of.constants)
        self.map = of
        self.rows, self.offsets = np.empty((0, m)), np.empty(0)
        self.inside, self.position = np.empty((0, m)), np.empty((0, n_blocks), dtype=np.int32)
        self.asked: set[bytes] = set()
        self.distance = np.inf
        self.is_complete = False

    def first(self) -> _Questions:
        """Return questions along the axes, and in the direction in which all coordinates grow."""
        m = len(self.map.constants)
        axes = np.vstack([np.eye(m), np.full((int(m > 1), m), m**-0.5)])
        n = 2 * len(axes)
        nowhere = np.full((n, self.position.shape[1]), -1, dtype=np.int32)
        return _Questions(np.vstack([axes, -axes]), np.full(n, -np.inf), nowhere)

    def start(self, questions: _Questions, share: float) -> _Questions:
        """Return the share of some questions that is asked, the most promising ones, and note that they are asked."""
        chosen = questions if share == 1 else questions.take(slice(int(max(share, 0) * len(questions.directions))))
        self.asked.update(_keys(chosen.directions))
        return chosen

    def enter(self, questions: _Questions, largest: FloatArray, points: FloatArray, position: IntArray) -> None:
        """Enter half-spaces, which are rounded up, and points of the image, which are not."""
        directions, m = questions.directions, len(self.map.constants)
        offsets = directions @ self.map.constants + largest
        error = 4 * (m + 4) * UNIT * (np.abs(directions) @ self.map.sizes + np.abs(offsets)) + UNDERFLOW
        self.rows, self.offsets = np.vstack([self.rows, directions]), np.append(self.offsets, offsets + error)
        # points inside only decide what is asked next: an error in them loosens the image
        inside = np.vstack([self.inside, self.map.constants + points @ self.map.matrix.T])
        _, first = np.unique(inside.round(_ALIKE + 4), axis=0, return_index=True)
        self.inside, self.position = inside[first], np.vstack([self.position, position])[first]
        if len(directions):
            self.distance = float(max((offsets - questions.levels).max(), 0.0))

    def next(self) -> _Questions:
        """Return the outer normals of the facets of the inner hull that have not been asked for, widest first."""
        centre = self.inside.mean(axis=0)
        squares, axes = np.linalg.eigh((self.inside - centre).T @ (self.inside - centre))
        sizes, axes = np.sqrt(np.maximum(squares[::-1], 0)), axes.T[::-1]
        rank = int((sizes > _FLAT * max(sizes.max(initial=0), _EXACT)).sum())
        facets = _facets((self.inside - centre) @ axes[:rank].T)
        while facets is None:  # so thin that there is no hull: it is taken as flat
            rank -= 1
            facets = _facets((self.inside - centre) @ axes[:rank].T)
        (normals, corner), flat = facets, axes[rank:]
        normals = np.vstack([flat, -flat, normals @ axes[:rank]])
        start = self.position[np.concatenate([np.zeros(2 * len(flat), dtype=np.int64), corner])]
        is_new = np.array([key not in self.asked for key in _keys(normals)], dtype=np.bool_)
        self.is_complete = self.distance <= _EXACT or not is_new.any()
        room = 0 if self.is_complete else max(_MAX_FACETS - len(self.rows), 0)
        return _Questions(normals, (self.inside @ normals.T).max(axis=0), start).take(np.flatnonzero(is_new)[:room])

    def image(self) -> Image:
        """Return the half-spaces of the directions that were asked. Facets that were not are left open."""
        return Image(self.rows, self.offsets, 0.0 if self.is_complete else self.distance)


def _keys(directions: FloatArray) -> list[bytes]:
    return [direction.tobytes() for direction in directions.round(_ALIKE) + 0.0]


def _facets(points: FloatArray) -> tuple[FloatArray, Indices] | None:
    """Return the outer normals of the facets of a hull of points, wide ones first, and a corner of each.

    It is None if the hull is flat.
    """
    r = points.shape[1]
    if r == 0:
        return np.empty((0, 0)), np.empty(0, dtype=np.int64)
    if r == 1:
        return np.array([[1.0], [-1.0]]), np.array([points.argmax(), points.argmin()])
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(points)
    except QhullError:
        return None
    corners = points[hull.simplices]
    width = np.linalg.norm(corners - corners.mean(axis=1, keepdims=True), axis=2).max(axis=1)
    order = np.argsort(-width)
    _, first = np.unique(hull.equations[order, :-1].round(_ALIKE), axis=0, return_index=True)
    chosen = order[np.sort(first)]
    return np.ascontiguousarray(hull.equations[chosen, :-1]), hull.simplices[chosen, 0]
