"""Regions, which are bounded sets of points that give safe lower bounds on the minima of linear objectives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from plumdp.base.rounding import UNDERFLOW, UNIT
from plumdp.model.graph import FloatArray, Indices, IntArray, read_only
from plumdp.model.space import independent_blocks
from plumdp.model.text import number_of, one_line
from plumdp.region.half_spaces import Contradiction, essential_part
from plumdp.region.vertex_table import VertexTable
from plumdp.region.vertices import MANY, VertexGraph, vertex_table


class Region(Protocol):
    """A bounded set of points with named coordinates."""

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, in the order of the coordinates."""

    @property
    def lower(self) -> FloatArray:
        """The least value of each variable (d), rounded down."""

    @property
    def upper(self) -> FloatArray:
        """The largest value of each variable (d), rounded up."""

    def minimise(self, objectives: FloatArray) -> FloatArray:
        """Return for each row of ``objectives`` (k, d) a number never above the minimum of ``objective @ point``."""


@dataclass(frozen=True, eq=False)
class Box:
    """The points within bounds, one pair per variable."""

    names: tuple[str, ...]
    lower: FloatArray  # (d)
    upper: FloatArray  # (d)

    def __repr__(self) -> str:
        return one_line(self, ", ".join(self.names))

    def minimise(self, objectives: FloatArray) -> FloatArray:
        """Return for each row of ``objectives`` (k, d) a number never above the minimum of ``objective @ point``."""
        least = np.minimum(objectives * self.lower, objectives * self.upper).sum(axis=1)
        size = np.abs(objectives) @ np.maximum(np.abs(self.lower), np.abs(self.upper))
        error = (len(self.names) + 4) * UNIT * size + UNDERFLOW
        # outward: too low is loose, too high would be unsound
        values: FloatArray = np.where(objectives.any(axis=1), least - error, 0.0)
        return values


class Block(NamedTuple):
    """Variables that half-spaces connect with each other and with no others, and the polytope of these."""

    columns: Indices  # which variables of the region
    graph: VertexGraph  # their half-spaces and vertices, in scaled variables


class RegionMinima(NamedTuple):
    """Lower bounds on the minima of objectives over a region, and about where they are attained."""

    values: FloatArray  # (k): never above the minima
    points: FloatArray  # (k, d): about where they are attained
    position: IntArray  # (k, n_blocks): where that is in each block, to start from next time
    work: float  # about how many products of two numbers it took


@dataclass(frozen=True, eq=False)
class Polytope:
    """The points that lie in all of some half-spaces and in a box around them.

    It is the product of its blocks, so that a minimum is the sum of those over blocks. Often there is one. Inside, each
    variable is divided by its scale, a power of two, so that nothing is larger than two.
    """

    names: tuple[str, ...]
    lower: FloatArray  # (d): the bounding box, rounded outward
    upper: FloatArray  # (d)
    scale: FloatArray  # (d)
    blocks: tuple[Block, ...]

    def __repr__(self) -> str:
        return one_line(self, f"{number_of(len(self.offsets), 'half-space')} in {', '.join(self.names)}")

    @property
    def rows(self) -> FloatArray:
        """The normals (n, d) of the half-spaces ``rows @ point <= offsets``, in the variables without scaling."""
        return self.graph.rows / self.scale

    @property
    def offsets(self) -> FloatArray:
        """The right-hand sides (n) of the half-spaces."""
        return self.graph.offsets

    @property
    def left_out(self) -> str:
        """The number of half-spaces dropped to save time although they may matter, in words, or nothing."""
        n = sum(block.graph.n_left_out for block in self.blocks)
        return f"{number_of(n, 'half-space')} of the region" if n else ""

    @cached_property
    def graph(self) -> VertexGraph:
        """All half-spaces, those of the box first, and their vertices, in scaled variables."""
        return self.blocks[0].graph if len(self.blocks) == 1 else _joined(self.blocks, len(self.names))

    @cached_property
    def has_few_vertices(self) -> bool:
        """Whether all vertices can be listed, without much work."""
        return len(self.names) < MANY and self.graph.enumerate_all()

    @cached_property
    def table(self) -> VertexTable:
        """All vertices as plain arrays, each with its safety margin, for loops that ask millions of times."""
        return vertex_table(self.graph, self.scale, self.lower / self.scale, self.upper / self.scale)

    def minimise(self, objectives: FloatArray) -> FloatArray:
        """Return for each row of ``objectives`` (k, d) a number never above the minimum of ``objective @ point``."""
        return self.minimise_at(objectives).values

    def minimise_at(self, objectives: FloatArray, start: IntArray | None = None) -> RegionMinima:
        """Return lower bounds on the minima, and about where they are attained.

        ``start`` has positions from earlier answers.
        """
        scaled, lower, upper = objectives * self.scale, self.lower / self.scale, self.upper / self.scale
        total, size, n_used = np.zeros(len(scaled)), np.zeros(len(scaled)), np.zeros(len(scaled))
        points, work = np.empty(scaled.shape), 0.0
        position = np.zeros((len(scaled), len(self.blocks)), dtype=np.int32)
        for b, (columns, graph) in enumerate(self.blocks):
            of_block = scaled[:, columns]
            used = np.flatnonzero(of_block.any(axis=1))
            points[:, columns] = graph.found.points[0]
            if len(used):
                near = None if start is None else start[used, b]
                minima = graph.minimise(
                    np.ascontiguousarray(of_block[used]), lower[columns], upper[columns], start=near
                )
                total[used] += minima.values
                size[used] += np.abs(minima.values)
                n_used[used] += 1
                points[np.ix_(used, columns)] = minima.points
                position[used, b] = minima.position
                work += float(minima.steps.sum() + len(used)) * graph.rows.size
        rounded = np.maximum(n_used - 1, 0) * (1.01 * UNIT) * size  # each number passes at most so many sums
        return RegionMinima(total - rounded, points * self.scale, position, work)


def intersection(names: tuple[str, ...], rows: FloatArray, offsets: FloatArray) -> Polytope | Contradiction:
    """Return the points with ``rows @ point <= offsets``, or the rows that no point meets together.

    The first rows are a box, with ``-variable <= -lower`` for each variable, then ``variable <= upper`` for each.
    """
    d = len(names)
    lower, upper = -offsets[:d], offsets[d : 2 * d]
    scale = _power_of_two(np.maximum(np.abs(lower), np.abs(upper)))
    # powers of two, so that scaling rounds nothing
    scaled = rows * scale
    size = _power_of_two(np.abs(scaled).max(axis=1, initial=0))
    scaled, limits, blocks = scaled / size[:, None], offsets / size, []
    for columns, numbers in independent_blocks(scaled):
        part = essential_part(np.ascontiguousarray(scaled[np.ix_(numbers, columns)]), limits[numbers])
        if isinstance(part, Contradiction):
            return Contradiction(numbers[part.rows].astype(np.int32), part.multipliers / size[numbers[part.rows]])
        blocks.append(Block(columns, part))
    region = Polytope(names, lower, upper, scale, tuple(blocks))
    low, high = bounding_box(region)
    # the region is in both boxes, and so in their intersection
    low, high = in_order(np.maximum(low, lower), np.minimum(high, upper))
    return replace(region, lower=read_only(low), upper=read_only(high))


def _joined(blocks: tuple[Block, ...], d: int) -> VertexGraph:
    """Return the half-spaces of all blocks in one graph, those of the lower and upper bounds of the box first."""
    pieces, offsets, relaxed, order, first = [], [], [], [], []
    n = 0
    for columns, graph in blocks:
        k = len(columns)
        piece = np.zeros((len(graph.rows), d))
        piece[:, columns] = graph.rows
        pieces.append(piece)
        offsets.append(graph.offsets)
        relaxed.append(graph.relaxed)
        order.append(np.concatenate([columns, d + columns, np.full(len(piece) - 2 * k, 2 * d)]))
        first.append(n + graph.first)
        n += len(piece)
    places = np.argsort(np.concatenate(order), kind="stable")
    number = np.empty(n, dtype=np.int32)
    number[places] = np.arange(n)
    rows = np.ascontiguousarray(np.vstack(pieces)[places])
    return VertexGraph(
        rows, np.concatenate(offsets)[places], np.concatenate(relaxed)[places], number[np.concatenate(first)]
    )


def bounding_box(region: Region) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest value of each variable, rounded outward."""
    axes = np.eye(len(region.names))
    return in_order(region.minimise(axes), -region.minimise(-axes))


def in_order(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bounds the right way round.

    They cross only if the region is empty, and then every bound is valid.
    """
    return np.minimum(lower, upper), np.maximum(lower, upper)


def _power_of_two(sizes: FloatArray) -> FloatArray:
    """Return the largest powers of two up to the sizes, and one for zero."""
    return np.where(sizes > 0, np.ldexp(1.0, np.frexp(sizes)[1] - 1), 1.0)
