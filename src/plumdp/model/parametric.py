"""The parametric MDP: a graph with one expression on each edge, over a declared parameter space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from plumdp.errors import ModelError
from plumdp.model.expressions import ExpressionTable
from plumdp.model.graph import BoolArray, FloatArray, Graph, IntArray, own_array
from plumdp.model.space import ParameterSpace, Point


@dataclass(frozen=True, eq=False)
class RewardStructure:
    """What is earned on entering a step in a state, plus what its choice earns; either part may be absent (zero)."""

    state: FloatArray | None  # (n_states)
    choice: FloatArray | None  # (n_choices)

    def __post_init__(self) -> None:
        for part in ("state", "choice"):
            values = getattr(self, part)
            if values is not None:
                object.__setattr__(self, part, _rewards(part, values))


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

    @cached_property
    def fingerprint(self) -> str:
        """A hash of what a guarantee rests on: graph, parameter space, and the expression of each transition."""
        digest = blake2b(self.graph.fingerprint.encode(), digest_size=16)
        texts = (
            str(self.space),
            str(self.declared_space),
            self.expressions.names,
            *map(str, self.expressions.polynomials),
        )
        digest.update(repr(texts).encode())
        digest.update(self.expression.data)
        return digest.hexdigest()

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


def require_model(function: str, model: object) -> None:
    """Refuse what is not a parametric MDP, and say what to write instead."""
    if not isinstance(model, ParametricMDP):
        hint = "its .model" if isinstance(getattr(model, "model", None), ParametricMDP) else "explore or read_prism"
        raise ModelError(f"{function} takes a parametric MDP ({hint} gives one), not {type(model).__name__}")


def _rewards(part: str, values: npt.ArrayLike) -> FloatArray:
    """Return the rewards of a part as finite floats of our own."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise ModelError(f"{part} rewards: give one number for each {part}, not {array.dtype} of shape {array.shape}")
    rewards: FloatArray = own_array(array, np.float64)
    if not np.isfinite(rewards).all():
        first = int(np.argmax(~np.isfinite(rewards)))
        raise ModelError(f"{part} rewards must be finite numbers; that of {part} {first} is {rewards[first]}")
    return rewards
