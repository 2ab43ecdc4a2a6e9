"""Layered models with as many parameters as wanted, in four kinds, with a hidden point and an objective.

A run passes through all layers, one place in each; both actions of a place have a kind of row each, drawn at random.
The question is how likely the best policy ends in an even place.

* mixture: the parameters are the shares of unknown modes, and every row is a mixture of laws, one per mode;
* sparse: a row has two of the parameters as chances, in known proportions;
* rare: the same, with chances of one in a thousand at the true point, so that many outcomes are never seen;
* bilinear: a row is a tree of two coins, the second thrown only if the first came up heads.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

import plumdp as pl
from plumdp.model.objective import Objective

Row = list[pl.Polynomial]
_OUTCOMES = 4  # of a row of mixtures


class Layered(NamedTuple):
    """A model, what is asked, and the hidden point."""

    model: pl.ParametricMDP
    objective: Objective
    true_point: dict[str, str]
    max_steps: int


def layered_model(kind: str, d: int, n_rows: int, n_layers: int, width: int, *, seed: int = 1) -> Layered:
    """Return a model of a kind with d parameters, so many kinds of rows, and layers of so many places."""
    rng = np.random.default_rng(seed)
    names = [f"t{i}" for i in range(d)]
    parameters = pl.parameters(*names)
    if kind == "mixture":
        space = pl.ParameterSpace.simplex(*names)
        true_point = dict.fromkeys(names, str(Fraction(1, d + 2)))
    else:
        space = pl.ParameterSpace.unit(*names)
        hundredths = rng.integers(20, 80, d).tolist()
        whole = 100 if kind != "rare" else 50_000
        true_point = {name: str(Fraction(x, whole)) for name, x in zip(names, hundredths, strict=True)}
    rows = [_ROWS[kind](parameters, rng) for _ in range(n_rows)]
    target = rng.integers(0, width, (n_layers, width, 2, _OUTCOMES))[..., 0]
    kind_of_row = rng.integers(0, n_rows, (n_layers, width, 2))

    def step(state):
        if state.l == n_layers:
            return {"stop": [(1, state)]}
        return {
            action: [
                (f, state._replace(l=state.l + 1, w=(int(target[state.l, state.w, a]) + 7 * j) % width))
                for j, f in enumerate(rows[kind_of_row[state.l, state.w, a]])
            ]
            for a, action in enumerate("ab")
        }

    is_goal = {"goal": lambda state: state.l == n_layers and state.w % 2 == 0}
    model = pl.explore(step, {"l": 0, "w": 0}, space=space, labels=is_goal)
    return Layered(model, pl.parse_property('Pmax=? [ F "goal" ]', model), true_point, n_layers + 1)


def _mixture(parameters: tuple[pl.Polynomial, ...], rng: np.random.Generator) -> Row:
    modes = (*parameters, 1 - sum(parameters, pl.Polynomial(0)))
    weights = rng.integers(1, 100, (len(modes), _OUTCOMES))[:, :-1].T.tolist()
    outcomes = [
        sum((mode * Fraction(w, 400) for mode, w in zip(modes, law, strict=True)), pl.Polynomial(0)) for law in weights
    ]
    return [*outcomes, 1 - sum(outcomes, pl.Polynomial(0))]


def _sparse(parameters: tuple[pl.Polynomial, ...], rng: np.random.Generator) -> Row:
    a, b = _pair(parameters, rng)
    share = Fraction(int(rng.integers(20, 80)), 100)
    return [a * share, b * (1 - share), 1 - a * share - b * (1 - share)]


def _bilinear(parameters: tuple[pl.Polynomial, ...], rng: np.random.Generator) -> Row:
    a, b = _pair(parameters, rng)
    return [a * b, a * (1 - b), 1 - a]


def _pair(parameters: tuple[pl.Polynomial, ...], rng: np.random.Generator) -> tuple[pl.Polynomial, pl.Polynomial]:
    first, second = rng.permutation(len(parameters))[:2].tolist() if len(parameters) > 1 else (0, 0)
    return parameters[first], parameters[second]


_ROWS: dict[str, Callable[[tuple[pl.Polynomial, ...], np.random.Generator], Row]] = {
    "mixture": _mixture,
    "sparse": _sparse,
    "rare": _sparse,
    "bilinear": _bilinear,
}
