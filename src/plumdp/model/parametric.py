"""The parametric MDP: a graph with one expression on each edge, over a declared parameter space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from plumdp.errors import ModelError
from plumdp.model.expressions import ExpressionTable
from plumdp.model.graph import BoolArray, FloatArray, Graph, IntArray
from plumdp.model.space import ParameterSpace, Point


@dataclass(frozen=True, eq=False)
class RewardStructure:
    """What is earned on entering a step in a state, plus what its choice earns; either part may be absent (zero)."""

    state: FloatArray | None  # (n_states)
    choice: FloatArray | None  # (n_choices)


@dataclass(frozen=True, eq=False)
class ParametricMDP:
    """A model whose structure is known and whose numbers are expressions in unknown parameters."""

    graph: Graph
    declared_space: ParameterSpace  # as the user gave it
    space: ParameterSpace  # the same, cut by 0 <= f <= 1 for every affine expression f
    expressions: ExpressionTable
    expression: IntArray  # (n_transitions), index into expressions
    labels: Mapping[str, BoolArray]  # label → (n_states)
    rewards: Mapping[str, RewardStructure]
    constants: Mapping[str, bool | int | Fraction]  # what properties may refer to by name

    @property
    def nbytes(self) -> int:
        """The memory of all arrays."""
        rewards = [part for r in self.rewards.values() for part in (r.state, r.choice) if part is not None]
        own = self.expression.nbytes + self.expressions.nbytes
        return self.graph.nbytes + own + sum(array.nbytes for array in (*self.labels.values(), *rewards))

    def probabilities(self, point: Point) -> FloatArray:
        """Return the value of each expression at a point, to the nearest float; each must lie in [0, 1]."""
        values = self.expressions.evaluate_exact(self.space, point)
        for polynomial, value in zip(self.expressions.polynomials, values, strict=True):
            if not 0 <= value <= 1:
                at = ", ".join(f"{name}={float(v):g}" for name, v in self.space.point(point).items())
                raise ModelError(f"at {at} the expression {polynomial} is {float(value):g}, which is no probability")
        return np.array([value.numerator / value.denominator for value in values])
