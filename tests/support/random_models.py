"""Small random interval MDPs full of trouble, each with something to reach, to avoid and to earn.

Rows mix probabilities known exactly, [0, 1] throughout, lower bounds of 0 and tiny ones; successors may repeat, loop
back and form end components. Most bounds are 16ths, which floats add up exactly, some are decimals, which they do
not. So few policies and vertex natures exist that ``exact_values`` can go through all of them.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
from exact_values import interval_rows, vertices

from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP


@dataclass(frozen=True, eq=False)
class Case:
    """A model with masks and rewards to make objectives of."""

    imdp: IntervalMDP
    target: np.ndarray  # (n_states), some state at least
    avoid: np.ndarray  # (n_states), often nothing
    reward: RewardStructure


def random_case(rng, *, positive=False, tiny=(0.15, 16), most_chains=250):
    """Return a random model of 2 to 5 states with at most so many pairs of a policy and a vertex nature.

    With ``positive`` every lower bound is positive and no row names a successor twice, as Storm wants it. A share
    ``tiny[0]`` of the rows has a lower bound between 2^-6 and ``2 ** -tiny[1]``.
    """
    while True:
        n_states = int(rng.choice([2, 3, 4, 5], p=[0.05, 0.15, 0.35, 0.45]))
        n_sinks = min(int(rng.choice([0, 1, 2], p=[0.15, 0.2, 0.65])), n_states - 1)  # the last states: runs rest there
        imdp = random_model(rng, n_states, n_sinks, positive=positive, tiny=tiny)
        if n_chains(imdp) <= most_chains:
            return Case(imdp, *random_masks(rng, n_states, n_sinks), random_reward(rng, imdp.graph, n_sinks))


def random_model(rng, n_states, n_sinks, *, positive, tiny):
    """Return a random interval MDP, half of the time with a table of bounds that transitions share."""
    states = []
    for state in range(n_states - n_sinks):
        states.append([])
        for _ in range(rng.choice([1, 2, 3], p=[0.4, 0.45, 0.15])):
            successors = random_successors(rng, state, n_states, n_sinks, unique=positive)
            lower, upper = random_bounds(rng, len(successors), positive=positive, tiny=tiny)
            states[-1].append(list(zip(successors.tolist(), lower.tolist(), upper.tolist(), strict=True)))
    states += [[[(sink, 1.0, 1.0)]] for sink in range(n_states - n_sinks, n_states)]
    return model_of(states, is_table=rng.random() < 0.5)


def model_of(states, *, is_table=False):
    """Return the interval MDP of one list per state: its choices, each a list of (successor, lower, upper)."""
    rows = [row for choices in states for row in choices]
    successor, lower, upper = (np.array(column) for column in zip(*(t for row in rows for t in row), strict=True))
    expression = np.arange(len(successor))
    if is_table:
        bounds, expression = np.unique(np.column_stack([lower, upper]), axis=0, return_inverse=True)
        lower, upper = bounds.T
    return IntervalMDP.from_arrays(
        np.cumsum([0, *map(len, states)]),
        np.cumsum([0, *map(len, rows)]),
        successor,
        lower,
        upper,
        expression=expression.ravel(),
    )


def random_successors(rng, state, n_states, n_sinks, *, unique):
    """Return 1 to 3 successors; a sink or the state itself is often among them, and a few rows name one twice."""
    size = min(int(rng.choice([1, 2, 3], p=[0.1, 0.6, 0.3])), n_states)
    successors = rng.choice(n_states, size, replace=rng.random() < 0.1)
    if n_sinks and rng.random() < 0.5:
        successors[0] = n_states - 1 - rng.integers(n_sinks)
    if rng.random() < 0.2:
        successors[-1] = state
    return np.unique(successors) if unique else successors


def random_bounds(rng, size, *, positive, tiny):
    """Return lower and upper bounds of a row around a random distribution, in 16ths or in decimals."""
    if not positive and rng.random() < 0.2:
        return random_decimals(rng, size)
    share, exponent = tiny
    kinds = ["exact", "vacuous", "wide", "open"]
    kind = "tiny" if rng.random() < share else rng.choice(kinds, p=[0.2, 0.15, 0.3, 0.35])
    probability = (1 + rng.multinomial(16 - size, np.full(size, 1 / size))) / 16
    lower = np.maximum(probability - rng.integers(0, 9, size) / 16, 0)
    upper = np.minimum(probability + rng.integers(0, 9, size) / 16, 1)
    if kind == "exact":
        lower = upper = probability
    elif kind == "vacuous":
        lower, upper = np.zeros(size), np.ones(size)
    elif kind == "open":
        lower[rng.random(size) < 0.7] = 0
    elif kind == "tiny":
        lower[rng.integers(size)] = 2.0 ** -int(rng.integers(6, exponent + 1))
    if positive:
        lower = np.maximum(lower, 1 / 16)
    return lower, upper


def random_decimals(rng, size):
    """Return bounds in steps of 0.05, off a distribution by 0.05 at least: decimals leave room for rows to round.

    No corner misses 1 by rounding alone, for that would leave a chance of 1e-17 on which the exact value may depend.
    """
    while True:
        parts = 1 + rng.multinomial(20 - size, np.full(size, 1 / size))
        least, most = (np.clip(parts + side * rng.integers(1, 9, size), 0, 20) for side in (-1, 1))
        lower, upper = np.round(least / 20, 2), np.round(most / 20, 2)
        corners = product(*zip(lower.tolist(), upper.tolist(), strict=True))
        if all(sum(map(Fraction, corner)) == 1 or abs(sum(corner) - 1) > 0.01 for corner in corners):
            return lower, upper


def random_masks(rng, n_states, n_sinks):
    """Return targets (one at least, most often a sink), and often states to avoid, targets not excepted."""
    target = rng.random(n_states) < 0.05
    target[-1 if rng.random() < 0.9 else rng.integers(n_states)] = True
    if n_sinks and rng.random() < 0.25:
        target[-n_sinks:] = True
    avoid = rng.random(n_states) < (0.2 if rng.random() < 0.5 else 0)
    return target, avoid


def random_reward(rng, graph, n_sinks):
    """Return rewards in quarters or tenths, often zero, and mostly zero in sinks; one of the parts may be absent."""
    zeros, unit = rng.choice([0.2, 0.6, 0.85]), rng.choice([4, 10], p=[0.8, 0.2])
    state, choice = (
        np.where(rng.random(size) < zeros, 0, rng.integers(1, 13, size) / unit)
        for size in (graph.n_states, graph.n_choices)
    )
    if n_sinks and rng.random() < 0.9:
        state[-n_sinks:] = choice[-n_sinks:] = 0
    parts = [RewardStructure(state, choice), RewardStructure(state, None), RewardStructure(None, choice)]
    return parts[rng.integers(3)]


def n_chains(imdp):
    """Return how many pairs of a policy and a vertex nature there are."""
    corners = [len(vertices(row)) for row in interval_rows(imdp)]
    first = imdp.graph.first_choice
    return prod(sum(corners[first[s] : first[s + 1]]) for s in range(imdp.graph.n_states))
