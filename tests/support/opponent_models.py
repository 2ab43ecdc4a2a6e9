"""Small models with their true points, each with something that sets of parameters have to get right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
from coupled_points import rows_at

import plumdp as pl
from plumdp.confidence.likelihood_table import LikelihoodTable, likelihood_table
from plumdp.learning.learned import Learned, value_directions
from plumdp.model.objectives import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import Question


@dataclass(frozen=True, eq=False)
class Case:
    """A model, its true point and what is asked."""

    model: ParametricMDP
    truth: dict[str, Fraction]
    objective: Objective
    visited: tuple[int, ...] | None = None  # places in ``rows`` of the only choices that are ever visited

    @cached_property
    def chances(self) -> np.ndarray:
        """The probability of each transition (n_transitions)."""
        return np.array(rows_at(self.model, self.truth), dtype=np.float64)

    @cached_property
    def rows(self) -> list[slice]:
        """The transitions of each choice that has several, of those that are ever visited."""
        every = [slice(a, b) for a, b in pairwise(self.model.graph.first_transition.tolist()) if b - a > 1]
        return every if self.visited is None else [every[i] for i in self.visited]

    @cached_property
    def table(self) -> LikelihoodTable:
        """The outcomes of the model."""
        return likelihood_table(self.model)

    @cached_property
    def outcome_chances(self) -> np.ndarray:
        """The probability of each outcome (n)."""
        return np.array([f.evaluate(self.truth) for f in self.table.outcomes], dtype=np.float64)

    @cached_property
    def gradient(self) -> np.ndarray:
        """How the value of the best policy at the true point depends on the parameters (d)."""
        point = np.array([*self.truth.values()], dtype=np.float64)
        return value_directions([Question(self.model, self.objective)], {})(point)[0].gradient

    @cached_property
    def known(self) -> Learned:
        """What was learned from no data, to save time."""
        nothing = np.zeros(self.model.graph.n_transitions, dtype=np.int64)
        return pl.learn(self.model, pl.TransitionCounts(self.model.graph, nothing, "adaptive"))


def _case(rows, space, truth, text='Pmax=? [ F "goal" ]', *, cost=None, visited=None) -> Case:
    """Return a case whose states are numbers, the first of which is 0 and the goal 9, in a cell 0 or 1.

    ``rows`` has for each state a row for each action: a list of probabilities and next states. A state is a number in
    the cell 0, or a pair of a cell and a number; states without rows are never left.
    """
    rows = {_pair(state): of_state for state, of_state in rows.items()}

    def step(state):
        own = rows.get(tuple(state), {"stop": [(1, state)]})
        return {action: [(f, type(state)(*_pair(to))) for f, to in row] for action, row in own.items()}

    rewards = {} if cost is None else {"choice_rewards": {"cost": lambda s, a: 0 if s.x == 9 else cost[a]}}
    model = pl.explore(step, {"cell": 0, "x": 0}, space=space, labels={"goal": lambda s: s.x == 9}, **rewards)
    exact = {name: Fraction(truth[name]) for name in model.space.names}
    return Case(model, exact, pl.parse_property(text, model), visited)


def _pair(state):
    return tuple(state) if isinstance(state, tuple) else (0, state)


def rare(chance: str) -> Case:
    """A rare outcome, in a loop, and a row with fixed numbers."""
    (p,) = pl.parameters("p")
    fixed = [(Fraction(1, 20), 9), (Fraction(19, 20), 3)]
    rows = {
        0: {"go": [(p, 9), (1 - p, 2)]},
        2: {"go": [(2 * p / 3, 9), (p / 3, 3), (1 - p, 0)], "safe": fixed},
    }
    return _case(rows, pl.ParameterSpace.unit("p"), {"p": chance})


def twins() -> Case:
    """Equal outcomes whose sums are equal to others again, in two cells, with two actions that are alike."""
    (p,) = pl.parameters("p")

    def row(cell):
        parts = [(p / 8, (cell, 1)), (p / 8, (cell, 2)), (p / 4, (cell, 3)), (p / 2, (cell, 9))]
        return [*parts, (1 - p, (1, 4 * cell))]

    rows = {(cell, 0): {"send": row(cell), "push": row(cell)} for cell in (0, 1)}
    return _case(rows, pl.ParameterSpace.unit("p"), {"p": "3/10"})


def products() -> Case:
    """A row that is a tree of coins, and one that has no tree and no factors."""
    a, b = pl.parameters("a", "b")
    rows = {
        0: {"go": [(a * b, 1), (a * (1 - b), 2), (1 - a, 3)]},
        1: {"go": [(b, 9), (1 - b, 0)]},
        2: {"mix": [(a * (1 - b), 1), (b * (1 - a), 3), (1 - a - b + 2 * a * b, 0)], "go": [(a, 1), (1 - a, 3)]},
    }
    return _case(rows, pl.ParameterSpace.unit("a", "b"), {"a": "7/10", "b": "2/5"})


def squares() -> Case:
    """Rows that are groups of factors, and a coin with the same parameter; the goal is to be avoided."""
    (a,) = pl.parameters("a")
    square = a * a, 2 * a * (1 - a), (1 - a) * (1 - a)
    rows = {
        0: {"go": list(zip(square, (9, 2, 3), strict=True))},
        2: {"coin": [(a, 9), (1 - a, 0)], "both": list(zip(square, (0, 9, 3), strict=True))},
    }
    return _case(rows, pl.ParameterSpace.unit("a"), {"a": "3/10"}, 'Pmin=? [ F "goal" ]')


def edge(visited=None) -> Case:
    """The true point is on the edge of a simplex: one outcome of a row never happens."""
    p, q = pl.parameters("p", "q")
    rows = {
        0: {"go": [(p, 1), (q, 2), (1 - p - q, 3)]},
        1: {"go": [(p, 0), (1 - p, 3)], "half": [(p / 2, 0), (p / 2, 9), (1 - p, 2)]},
        2: {"go": [(q, 9), (1 - q, 0)], "fixed": [(Fraction(3, 10), 9), (Fraction(7, 10), 1)]},
    }
    return _case(rows, pl.ParameterSpace.simplex("p", "q"), {"p": "3/5", "q": "2/5"}, visited=visited)


def eight() -> Case:
    """A chain with a parameter for each state, some of them rarely off one."""
    names = [f"p{i}" for i in range(8)]
    ps, rows = pl.parameters(*names), {}
    for i, f in enumerate(ps):
        rows[i] = {"go": [(f, i + 1 if i < 7 else 9), (1 - f, 8 if i % 2 else max(i - 1, 0))]}
    for i in (2, 5):
        rows[i]["skip"] = [(ps[i] * ps[i + 1], i + 2), (ps[i] * (1 - ps[i + 1]), i), (1 - ps[i], 8)]
    truth = dict(zip(names, ("9/10", "19/20", "99/100", "7/10", "4/5", "17/20", "3/5", "97/100"), strict=True))
    return _case(rows, pl.ParameterSpace.unit(*names), truth)


def climb() -> Case:
    """What it costs to climb three steps, with falls: runs may come back to every state."""
    p, q = pl.parameters("p", "q")
    rows = {}
    for i in range(3):
        up, down = i + 1 if i < 2 else 9, max(i - 1, 0)
        rows[i] = {"slow": [(p, up), (1 - p, down)], "fast": [(p * q, up), (p * (1 - q), i), (1 - p, down)]}
    space = pl.ParameterSpace.box({"p": (Fraction(1, 5), 1), "q": (Fraction(1, 10), 1)})
    cost = {"slow": 2, "fast": 1, "stop": 0}
    return _case(rows, space, {"p": "7/10", "q": "4/5"}, 'R{"cost"}min=? [ F "goal" ]', cost=cost)


CASES: dict[str, Callable[[], Case]] = {
    "rare": cache(lambda: rare("1/100")),
    "never": cache(lambda: rare("0")),
    **{f.__name__: cache(f) for f in (twins, products, squares, edge)},
    "one row": cache(lambda: edge(visited=(1,))),  # which shows one of two parameters
    **{f.__name__: cache(f) for f in (eight, climb)},
}
