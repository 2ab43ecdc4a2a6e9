"""Bounds of games in which nature picks points of a region stay on their sides where the region is known in part.

Not all vertices may fit into memory, and the graph tells less of a region than of intervals. The bounds may then be
loose, but the exact values, which are calculated by hand, lie between them.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from row_models import listed

import plumdp as pl
from plumdp.model.objectives import Reach, Reward
from plumdp.region import vertices
from plumdp.region.build import build_region
from plumdp.relaxation.relax import rectangular
from plumdp.solver.solve import solve

LOW, HIGH = Fraction(1, 4), Fraction(3, 4)
NAMES = tuple(f"p{i}" for i in range(7))
PATTERNS = list(product((True, False), repeat=len(NAMES)))


def patterns():
    """Return a model with a state for each way of sending the seven parameters to the goal or to a trap.

    Each parameter has an eighth of it, and the rest goes to a fair coin for the goal. With h good ones of value p and
    the others of value q the goal has the probability 1/2 + (h p - (7 - h) q) / 16.
    """
    unknown = pl.parameters(*NAMES)

    def step(state):
        if state.at == 0:
            n = len(PATTERNS)
            return {"any": [(Fraction(1, n), state._replace(at=1, pattern=i)) for i in range(n)]}
        if state.at == 1:
            goods = PATTERNS[state.pattern]
            ends = [
                (p / 8, state._replace(at=3 if good else 4, pattern=i))
                for i, (p, good) in enumerate(zip(unknown, goods, strict=True))
            ]
            return {"go": [*ends, (1 - sum(unknown) / 8, state._replace(at=2, pattern=0))]}
        if state.at == 2:
            return {"toss": [(Fraction(1, 2), state._replace(at=3)), (Fraction(1, 2), state._replace(at=4))]}
        return {"stay": [(1, state)]}

    space = pl.ParameterSpace.box(dict.fromkeys(NAMES, (LOW, HIGH)))
    return pl.explore(step, {"at": 0, "pattern": 0}, space=space, labels={"goal": lambda s: s.at == 3})


@pytest.mark.parametrize("nature", ["robust", "optimistic"])
@pytest.mark.parametrize("direction", ["max", "min"])
def test_bounds_hold_if_memory_allows_for_half_of_the_vertices(monkeypatch, direction, nature):
    """A box of seven parameters has 128 vertices, each of them the best one for nature at one of the states."""
    monkeypatch.setattr(vertices, "_MAX_BYTES", 2**10)
    model = patterns()
    region = build_region(model.space, [], [], [])
    assert not region.table.is_complete
    assert len(region.table) == 64
    goal = model.labels["goal"]
    solution = solve(rectangular(model, region), Reach(goal, np.zeros_like(goal), direction), nature=nature)
    is_large = (direction == "max") == (nature == "optimistic")
    good, bad = (HIGH, LOW) if is_large else (LOW, HIGH)
    states = np.flatnonzero(model.graph.states["at"] == 1)
    assert len(states) == len(PATTERNS)
    for state in states.tolist():
        h = sum(PATTERNS[model.graph.states["pattern"][state]])
        exact = Fraction(1, 2) + (h * good - (7 - h) * bad) / 16
        assert Fraction(solution.lower[state]) <= exact <= Fraction(solution.upper[state])


def retries():
    """Return a model that tries until it gets to one of two goals, and gets back to the start in one of two ways.

    The goals have the probabilities a and 1/4 - a, the ways back b and 3/4 - b: intervals let both goals vanish.
    """
    a, b = pl.parameters("a", "b")

    row = (a, Fraction(1, 4) - a, b, Fraction(3, 4) - b)
    rows = {0: {"try": [(f, i + 1) for i, f in enumerate(row)]}}
    rows |= {at: {"on": [(1, at if at < 3 else 0)]} for at in (1, 2, 3, 4)}
    space = pl.ParameterSpace.box({"a": (0, Fraction(1, 4)), "b": (0, Fraction(3, 4))})
    return listed(rows, space, labels={"done": (1, 2)}, rewards={"tries": lambda s: s.at == 0})


@pytest.mark.parametrize(("direction", "nature"), [("min", "robust"), ("max", "optimistic")])
def test_a_cost_that_is_infinite_for_intervals_only_is_not_bounded_from_below_by_infinity(direction, nature):
    """Either goal may lose its probability, but not both at once: four tries are expected at every point."""
    model = retries()
    uncertain = rectangular(model, build_region(model.space, [], [], []))
    assert not uncertain.has_fixed_support()
    tries = Reward(model.rewards["tries"], direction, model.labels["done"])
    solution = solve(uncertain, tries, nature=nature)
    start = model.graph.initial_state
    assert solution.lower[start] <= 4 * (1 + 1e-9)  # the region is relaxed by rounding
    assert solution.upper[start] >= 4
