"""Regions: sets of points that answer one question, what is the least value of these objectives over you?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from plumdp.model.graph import FloatArray, read_only
from plumdp.model.text import number_of, one_line
from plumdp.region.redundancy import Contradiction, essential_part
from plumdp.region.vertex_table import VertexTable, vertex_table
from plumdp.region.vertices import VertexGraph
from plumdp.rounding import UNDERFLOW, UNIT


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
        values: FloatArray = np.where(objectives.any(axis=1), least - error, 0.0)
        return values


@dataclass(frozen=True, eq=False)
class Polytope:
    """The points that lie in all of some half-spaces and in a box around them.

    Inside, each variable is divided by its scale, a power of two, so that nothing is larger than two.
    """

    names: tuple[str, ...]
    lower: FloatArray  # (d): the bounding box, rounded outward
    upper: FloatArray  # (d)
    scale: FloatArray  # (d)
    graph: VertexGraph  # the half-spaces and their vertices, in scaled variables

    def __repr__(self) -> str:
        return one_line(self, f"{number_of(len(self.offsets), 'half-space')} in {', '.join(self.names)}")

    @property
    def rows(self) -> FloatArray:
        """The half-spaces ``rows @ point <= offsets``, in the variables as they are named: (n, d)."""
        return self.graph.rows / self.scale

    @property
    def offsets(self) -> FloatArray:
        """The right-hand sides of the half-spaces: (n)."""
        return self.graph.offsets

    @cached_property
    def table(self) -> VertexTable:
        """All vertices as plain arrays, each with its safety margin, for loops that ask millions of times."""
        return vertex_table(self.graph, self.scale, self.lower / self.scale, self.upper / self.scale)

    def minimise(self, objectives: FloatArray) -> FloatArray:
        """Return for each row of ``objectives`` (k, d) a number never above the minimum of ``objective @ point``."""
        scaled = np.ascontiguousarray(objectives * self.scale)
        return self.graph.minimise(scaled, self.lower / self.scale, self.upper / self.scale)[0]


def intersection(names: tuple[str, ...], rows: FloatArray, offsets: FloatArray) -> Polytope | Contradiction:
    """Return the points with ``rows @ point <= offsets``, or the rows that no point meets together.

    The first rows are a box: for each variable ``-variable <= -lower``, then for each ``variable <= upper``.
    """
    d = len(names)
    lower, upper = -offsets[:d], offsets[d : 2 * d]
    scale = _power_of_two(np.maximum(np.abs(lower), np.abs(upper)))
    scaled = rows * scale
    size = _power_of_two(np.abs(scaled).max(axis=1, initial=0))
    part = essential_part(scaled / size[:, None], offsets / size)
    if isinstance(part, Contradiction):
        return replace(part, multipliers=part.multipliers / size[part.rows])
    region = Polytope(names, lower, upper, scale, part)
    low, high = bounding_box(region)
    low, high = in_order(np.maximum(low, lower), np.minimum(high, upper))
    return replace(region, lower=read_only(low), upper=read_only(high))


def bounding_box(region: Region) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest value of each variable, rounded outward."""
    axes = np.eye(len(region.names))
    return in_order(region.minimise(axes), -region.minimise(-axes))


def in_order(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bounds the right way round: they cross only if the region is empty, where every answer is right."""
    return np.minimum(lower, upper), np.maximum(lower, upper)


def _power_of_two(sizes: FloatArray) -> FloatArray:
    """Return the largest powers of two up to the sizes, and one for zero."""
    return np.where(sizes > 0, np.ldexp(1.0, np.frexp(sizes)[1] - 1), 1.0)
