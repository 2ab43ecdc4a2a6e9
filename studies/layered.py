"""Layered models with as many parameters as you like: for studies and tests of what grows with their number.

Runs go from layer to layer, and each of the two actions of a state has one of some kinds of rows:

* mixture: every row is a mixture of d + 1 known rows, whose weights are the parameters;
* sparse: every row depends on two parameters of its own choice, each of which it shows now and then;
* rare: the same, with parameters of about one in a thousand, so that many outcomes are never seen;
* bilinear: a first coin and, if it comes up, a second one: a b, a (1 - b), 1 - a;
* blocks: mixtures whose weights are the four parameters of a block; every tenth row is about two blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.explore import explore
from plumdp.model.expressions.polynomial import Polynomial, parameters
from plumdp.model.language.property import parse_property
from plumdp.model.objectives import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace

KINDS = ("mixture", "sparse", "rare", "bilinear", "blocks")
PER_BLOCK = 4
_PROPERTY = 'Pmax=? [ F "goal" ]'
_LAYER_STEP = 7  # how far apart successors are


@dataclass(frozen=True, eq=False)
class LayeredModel:
    """A model, what to ask of it, and its true point."""

    model: ParametricMDP
    objective: Objective
    true_point: Mapping[str, Fraction]
    max_steps: int


def layered_model(
    kind: str, n_parameters: int, *, n_rows: int = 100, n_layers: int = 40, width: int = 250, seed: int = 1
) -> LayeredModel:
    """Return a layered model with its parameters drawn by the seed.

    >>> layered_model("sparse", 4, n_rows=10, n_layers=3, width=8).model.graph.n_states
    23
    """
    if kind not in KINDS:
        raise ModelError(f"kind={kind!r}: choose one of {', '.join(map(repr, KINDS))}")
    rng = np.random.default_rng(seed)
    names = tuple(f"t{i}" for i in range(n_parameters))
    unknown = parameters(*names)
    weights = [unknown] if kind == "mixture" else _blocks(unknown) if kind == "blocks" else []
    space = ParameterSpace.box(dict.fromkeys(names, (0, 1)), constraints=[1 - reduce(add, block) for block in weights])
    if weights:
        truth = [Fraction(1, len(weights[0]) + 2)] * n_parameters
    else:
        whole = 50_000 if kind == "rare" else 100
        truth = [Fraction(share, whole) for share in rng.integers(20, 80, n_parameters).tolist()]
    rows = [_ROWS[kind](unknown, rng) for _ in range(n_rows)]
    first = rng.integers(0, width, (n_layers, width, 2, 4))[..., 0]
    row_of = rng.integers(0, n_rows, (n_layers, width, 2))

    def step(state: Any) -> dict[str, list[tuple[Polynomial | int, Any]]]:
        if state.layer == n_layers:
            return {"stop": [(1, state)]}
        here = state.layer, state.place
        return {
            name: [
                (f, state._replace(layer=state.layer + 1, place=int(first[(*here, a)] + _LAYER_STEP * j) % width))
                for j, f in enumerate(rows[row_of[(*here, a)]])
            ]
            for a, name in enumerate("ab")
        }

    goal = {"goal": lambda state: state.layer == n_layers and state.place % 2 == 0}
    model = explore(step, {"layer": 0, "place": 0}, space=space, labels=goal)
    point = dict(zip(names, truth, strict=True))
    return LayeredModel(model, parse_property(_PROPERTY, model), point, n_layers + 1)


def _mixture(unknown: Sequence[Polynomial], rng: np.random.Generator) -> list[Polynomial]:
    weights = [*unknown, 1 - reduce(add, unknown)]
    shares = rng.integers(1, 100, (len(weights), 4)).tolist()  # in percent of a quarter; the last one is the rest
    row = [reduce(add, (w * Fraction(s[j], 400) for w, s in zip(weights, shares, strict=True))) for j in range(3)]
    return [*row, 1 - reduce(add, row)]


def _blocks(unknown: Sequence[Polynomial]) -> list[Sequence[Polynomial]]:
    return [unknown[i : i + PER_BLOCK] for i in range(0, len(unknown), PER_BLOCK)]


def _block(unknown: Sequence[Polynomial], rng: np.random.Generator) -> list[Polynomial]:
    blocks = _blocks(unknown)
    row, other = (_mixture(blocks[i], rng) for i in rng.integers(0, len(blocks), 2))
    return [f / 2 + g / 2 for f, g in zip(row, other, strict=True)] if rng.random() < 0.1 else row


def _sparse(unknown: Sequence[Polynomial], rng: np.random.Generator) -> list[Polynomial]:
    one, other = rng.permutation(len(unknown))[:2]
    share = Fraction(int(rng.integers(20, 80)), 100)
    first, second = unknown[one] * share, unknown[other] * (1 - share)
    return [first, second, 1 - first - second]


def _bilinear(unknown: Sequence[Polynomial], rng: np.random.Generator) -> list[Polynomial]:
    one, other = rng.permutation(len(unknown))[:2]
    return [unknown[one] * unknown[other], unknown[one] * (1 - unknown[other]), 1 - unknown[one]]


_ROWS: Mapping[str, Callable[[Sequence[Polynomial], np.random.Generator], list[Polynomial]]] = {
    "mixture": _mixture,
    "sparse": _sparse,
    "rare": _sparse,
    "bilinear": _bilinear,
    "blocks": _block,
}
