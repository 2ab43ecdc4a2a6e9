"""Writes bounds on the values of a table's chain within intervals, which a checker proves in exact fractions.

They are those of the solver, which proves them by induction with each step rounded outward: so exact steps lead from
them inward as well.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from plumdp.model.graph import BoolArray, FloatArray
from plumdp.model.objectives import Objective, Reach, Reward
from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.solve import solve
from plumdp_verify.reading import Exact
from plumdp_verify.table_chain import TableChain
from plumdp_verify.table_values import Intervals

_PRECISION = 1e-13


def values_part(chain: TableChain, intervals: Intervals) -> dict[str, Any]:
    """Return lower and upper values of all open nodes, and what proves that runs end."""
    mdp, objective, reward = _interval_mdp(chain, intervals), *_objective(chain)
    lower = solve(mdp, objective, nature="robust", precision=_PRECISION).lower
    upper = solve(mdp, objective, nature="optimistic", precision=_PRECISION).upper
    is_open = np.arange(len(reward)) < len(chain.nodes)
    is_positive = is_open & (lower > 0) if chain.is_never_negative else is_open
    least = float(reward[is_positive].min(initial=np.inf))
    paid = 2 / least if chain.is_never_negative and least > 0 else 0.0
    steps, more, is_discounted = np.zeros(len(reward)), np.zeros(len(reward)), chain.kind == "discounted"
    if not is_discounted and paid == 0:
        steps = _steps(mdp, ~is_positive)
    if not is_discounted and not (chain.kind in ("reach", "total") and chain.is_never_negative):
        more = _steps(mdp, ~(is_open & np.isfinite(upper)))
    written = {"steps_lower": steps, "lower": lower, "steps_upper": more, "upper": upper}
    return {"paid": paid} | {
        name: [x if np.isfinite(x) else None for x in values[is_open].tolist()] for name, values in written.items()
    }


def _interval_mdp(chain: TableChain, intervals: Intervals) -> IntervalMDP:
    """Return the chain with a state for each open node, and two in which runs are over, worth one and nothing."""
    n, first, successor = len(chain.nodes), [0], list[int]()
    lower, upper = list[float](), list[float]()
    for node in chain.nodes:
        low, high = (node.numbers, node.numbers) if node.row is None else intervals[node.row]
        lower += map(as_float, low)
        upper += map(as_float, high)
        successor += [n + (x == 0) if s is None else s for s, x in zip(node.successors, node.known, strict=True)]
        first.append(len(successor))
    first, successor = [*first, first[-1] + 1, first[-1] + 2], [*successor, n, n + 1]
    return IntervalMDP.from_arrays(range(n + 3), first, successor, [*lower, 1.0, 1.0], [*upper, 1.0, 1.0])


def _objective(chain: TableChain) -> tuple[Objective, FloatArray]:
    """Return what a run is worth, and the reward of each state."""
    reward = np.array([*(as_float(node.reward) for node in chain.nodes), 0.0, 0.0])
    is_one, is_nothing = (np.arange(len(reward)) == len(reward) - k for k in (2, 1))
    if chain.kind == "reach":
        return Reach(is_one, is_nothing, "max"), reward
    return Reward(
        RewardStructure(reward, None),
        "max",
        target=is_nothing if chain.kind == "until" else None,
        steps=None if chain.is_never_negative or chain.kind == "discounted" else len(reward),  # they are counted
        discount=Fraction(str(chain.discount)) if chain.kind == "discounted" else None,
    ), reward


def _steps(mdp: IntervalMDP, is_outside: BoolArray) -> FloatArray:
    """Return numbers of steps until runs leave some states, whatever nature does."""
    counted = RewardStructure(np.where(is_outside, 0.0, 1.0), None)
    return solve(mdp, Reward(counted, "max", target=is_outside), nature="optimistic").upper


def as_float(number: Exact) -> float:
    """Return the float that is nearest to a fraction."""
    return int(number.p) / int(number.q)
