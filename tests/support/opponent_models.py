"""Small models with their true points, each with something that sets of parameters have to get right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
from exact_values import chain_values, step_rewards

import plumdp as pl
from plumdp.confidence.groundwork import Groundwork
from plumdp.model.objective import Objective
from plumdp.policy_search import value_directions
from plumdp.solver.at_points import PointSolver

THIRD = Fraction(1, 3)


@dataclass(frozen=True, eq=False)
class Case:
    """A model, its true point and what is asked; ``known`` is what was learned from no data, to save time."""

    model: pl.ParametricMDP
    truth: dict[str, Fraction]
    objective: Objective
    horizon: int = 20  # steps of a run
    visited: tuple[int, ...] | None = None  # places in ``rows`` of the only choices that are ever visited

    @cached_property
    def theta(self) -> np.ndarray:
        """The true point (d)."""
        return np.array([float(self.truth[name]) for name in self.model.space.names])

    def at_truth(self, polynomials) -> list[Fraction]:
        """Return the values of polynomials at the true point, exactly."""
        return [f.evaluate({name: self.truth[name] for name in f.names}) for f in polynomials]

    @cached_property
    def exact_chances(self) -> list[Fraction]:
        """The probability of each transition."""
        values = self.at_truth(self.model.expressions.polynomials)
        return [values[i] for i in self.model.expression.tolist()]

    @cached_property
    def chances(self) -> np.ndarray:
        """The same as floats (n_transitions)."""
        return np.array([float(x) for x in self.exact_chances])

    @cached_property
    def rows(self) -> list[slice]:
        """The transitions of each choice that has several, of those that are ever visited."""
        every = [slice(a, b) for a, b in pairwise(self.model.graph.first_transition.tolist()) if b - a > 1]
        return every if self.visited is None else [every[i] for i in self.visited]

    @cached_property
    def stop(self) -> np.ndarray:
        """The states that are never left (n_states)."""
        graph = self.model.graph
        first = graph.first_transition[graph.first_choice]
        return np.array([(graph.successor[a:b] == s).all() for s, (a, b) in enumerate(pairwise(first.tolist()))])

    @cached_property
    def ground(self) -> Groundwork:
        return Groundwork(self.model)

    @cached_property
    def outcome_chances(self) -> np.ndarray:
        """The probability of each outcome of the likelihood table (n)."""
        return np.array([float(x) for x in self.at_truth(self.ground.table.outcomes)])

    @cached_property
    def event_chances(self) -> np.ndarray:
        return np.array([float(x) for x in self.at_truth(self.ground.events.polynomials)])

    @cached_property
    def gradient(self) -> np.ndarray:
        """How the value of the best policy at the true point depends on the parameters (d)."""
        solvers = {self.objective: PointSolver(self.model, self.objective)}
        return value_directions(self.model, solvers)(self.theta)[0].gradient

    @cached_property
    def known(self) -> pl.Learned:
        nothing = np.zeros(self.model.graph.n_transitions, dtype=np.int64)
        return pl.learn(self.model, pl.TransitionCounts(self.model.graph, nothing, "adaptive"))

    @cached_property
    def value(self) -> Callable[[tuple[int, ...]], Fraction | float]:
        """The exact value at the true point of a policy, a tuple of the choice in each state."""

        @cache
        def of_policy(policy):
            graph, objective = self.model.graph, self.objective
            chain = []
            for choice in policy:
                row: dict[int, Fraction] = {}
                for t in range(graph.first_transition[choice], graph.first_transition[choice + 1]):
                    if self.exact_chances[t]:
                        target = int(graph.successor[t])
                        row[target] = row.get(target, Fraction(0)) + self.exact_chances[t]
                chain.append(row)
            return chain_values(chain, objective, step_rewards(objective, policy))[graph.initial_state]

        return of_policy


def _case(rows, space, truth, text='Pmax=? [ F "goal" ]', *, start=0, goal=9, cost=None, **more) -> Case:
    """Return a case whose states are numbers, or pairs of a cell and a number; states without rows are never left.

    ``rows`` has for each state a row for each action: a list of probabilities and next states. The goal is the state,
    or the second number of states, of that number.
    """
    names = ("h", "x") if isinstance(start, tuple) else ("x",)

    def step(state):
        own = rows.get(tuple(state) if len(names) > 1 else state.x, {"stop": [(1, None)]})
        return {
            action: [
                (f, state if to is None else state._replace(**dict(zip(names, _pair(to), strict=True))))
                for f, to in row
            ]
            for action, row in own.items()
        }

    rewards = {} if cost is None else {"choice_rewards": {"cost": lambda s, a: 0 if s.x == goal else cost[a]}}
    first = dict(zip(names, _pair(start), strict=True))
    model = pl.explore(step, first, space=space, labels={"goal": lambda s: s.x == goal}, **rewards)
    exact = {name: Fraction(value) for name, value in truth.items()}
    return Case(model, exact, pl.parse_property(text, model), **more)


def _pair(state):
    return state if isinstance(state, tuple) else (state,)


def rare(chance: str) -> Case:
    """A rare outcome, in a loop, and a row with fixed numbers."""
    (p,) = pl.parameters("p")
    rows = {
        0: {"go": [(p, 9), (1 - p, 2)]},
        2: {
            "go": [(2 * THIRD * p, 9), (THIRD * p, 3), (1 - p, 0)],
            "safe": [(Fraction(1, 20), 9), (Fraction(19, 20), 3)],
        },
    }
    return _case(rows, pl.ParameterSpace.unit("p"), {"p": chance}, horizon=30)


def twins() -> Case:
    """Equal outcomes whose sums are equal to others again, in two cells, with two actions that are alike."""
    (p,) = pl.parameters("p")

    def row(h):
        return [
            (p / 8, (h, 1)),
            (p / 8, (h, 2)),
            (p / 4, (h, 3)),
            (p / 2, (h, 9)),
            (1 - p, (1, 0) if h == 0 else (1, 4)),
        ]

    rows = {(h, 0): {"send": row(h), "push": row(h)} for h in (0, 1)}
    return _case(rows, pl.ParameterSpace.unit("p"), {"p": "3/10"}, start=(0, 0))


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


def certain() -> Case:
    """One of two coins always shows heads."""
    p, q = pl.parameters("p", "q")
    rows = {0: {"a": [(p, 9), (1 - p, 1)], "b": [(q, 9), (1 - q, 1)]}}
    return _case(rows, pl.ParameterSpace.unit("p", "q"), {"p": 1, "q": "3/10"})


def _edge(**more) -> Case:
    p, q = pl.parameters("p", "q")
    rows = {
        0: {"go": [(p, 1), (q, 2), (1 - p - q, 3)]},
        1: {"go": [(p, 0), (1 - p, 3)], "half": [(p / 2, 0), (p / 2, 9), (1 - p, 2)]},
        2: {"go": [(q, 9), (1 - q, 0)], "fixed": [(Fraction(3, 10), 9), (Fraction(7, 10), 1)]},
    }
    return _case(rows, pl.ParameterSpace.simplex("p", "q"), {"p": "3/5", "q": "2/5"}, **more)


def edge() -> Case:
    """The true point is on the edge of a simplex: one outcome of a row never happens."""
    return _edge()


def one_row() -> Case:
    """Of the same model, all data are of one row, which shows one of two parameters."""
    return _edge(visited=(1,))


def eight() -> Case:
    """A chain with a parameter for each state, some of them rarely off one."""
    names = [f"p{i}" for i in range(8)]
    ps, rows = pl.parameters(*names), {}
    for i, f in enumerate(ps):
        rows[i] = {"go": [(f, i + 1 if i < 7 else 9), (1 - f, 8 if i % 2 else max(i - 1, 0))]}
    for i in (2, 5):
        rows[i]["skip"] = [(ps[i] * ps[i + 1], i + 2), (ps[i] * (1 - ps[i + 1]), i), (1 - ps[i], 8)]
    truth = dict(zip(names, ("9/10", "19/20", "99/100", "7/10", "4/5", "17/20", "3/5", "97/100"), strict=True))
    return _case(rows, pl.ParameterSpace.unit(*names), truth, horizon=30)


def doors(n_doors: int = 2, n_coins: int = 4) -> Case:
    """A door is drawn, and one of the coins behind it is thrown, all of which are fair: whichever looks best is not."""
    names = [f"p{i}" for i in range(n_doors * n_coins)]
    coins = pl.parameters(*names)
    behind = {
        i: {f"{j}": [(coins[i * n_coins + j], 9), (1 - coins[i * n_coins + j], 8)] for j in range(n_coins)}
        for i in range(n_doors)
    }
    rows = {-1: {"go": [(Fraction(1, n_doors), i) for i in range(n_doors)]}, **behind}
    return _case(rows, pl.ParameterSpace.unit(*names), dict.fromkeys(names, "1/2"), start=-1)


def _climb(text: str) -> Case:
    p, q = pl.parameters("p", "q")
    rows = {
        i: {
            "slow": [(p, i + 1 if i < 2 else 9), (1 - p, max(i - 1, 0))],
            "fast": [(p * q, i + 1 if i < 2 else 9), (p * (1 - q), i), (1 - p, max(i - 1, 0))],
        }
        for i in range(3)
    }
    space = pl.ParameterSpace.box({"p": (Fraction(1, 5), 1), "q": (Fraction(1, 10), 1)})
    return _case(rows, space, {"p": "7/10", "q": "4/5"}, text, cost={"slow": 2, "fast": 1, "stop": 0}, horizon=40)


def cost() -> Case:
    """What it costs to climb three steps, with falls: runs may come back to every state."""
    return _climb('R{"cost"}min=? [ F "goal" ]')


def discounted() -> Case:
    """The same with a discount."""
    return _climb('R{"cost"}min=? [ C{0.9} ]')


CASES: dict[str, Callable[[], Case]] = {
    "rare": cache(lambda: rare("1/100")),
    "never": cache(lambda: rare("0")),
    **{
        f.__name__: cache(f) for f in (twins, products, squares, certain, edge, one_row, eight, doors, cost, discounted)
    },
}
