"""Small random models with rare goals, near ties and long runs, and the exact value of one policy of theirs.

These are the models on which a solver is tempted to return the bound of one policy with another: choices whose values
agree to many digits, and runs so long that bounds are proved by induction rather than by sweeps that have converged.
Probabilities are multiples of 2^-40, which floats add up exactly.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
from exact_values import (
    BEST,
    INFINITY,
    chain_values,
    first_step_values,
    interval_rows,
    nature_direction,
    settled_states,
    step_rewards,
    vertices,
)
from random_models import model_of

import plumdp as pl
from plumdp.model.objectives import Reach, Reward
from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP

BITS = 40
WHOLE = 2**BITS
KINDS = ("reach", "globally", "reward", "total", "discounted")
PRECISIONS = (1e-6, 1e-6, 0.1, 1e-2, 1e-3, 1e-4, 1e-12)  # the default twice as often


def near_tie(seed, *, kinds=KINDS, intervals=True):
    """Return a random model, an objective, a nature and a precision."""
    rng = np.random.default_rng(seed)
    n_inner = int(rng.choice([1, 2, 3, 3, 4]))
    goal, trap = n_inner, n_inner + 1
    is_interval = intervals and n_inner < 4 and rng.random() < 0.25
    luck = (
        2.0 ** -rng.integers(1, 12) if rng.random() < 0.2 else None
    )  # a race: all rows lead to the goal about as often
    states = [random_choices(rng, state, n_inner, luck, is_interval=is_interval) for state in range(n_inner)]
    imdp = model_of([*states, [[(goal, 1.0, 1.0)]], [[(trap, 1.0, 1.0)]]])
    kind = str(rng.choice(kinds))
    objective = random_objective(rng, imdp, kind, goal)
    nature = str(rng.choice(["robust", "optimistic"]))
    return imdp, objective, nature, float(rng.choice(PRECISIONS))


def random_choices(rng, state, n_inner, luck, *, is_interval):
    """Return one to three rows of a state, some of them copies of another up to a tiny change."""
    rows = [random_row(rng, state, n_inner, luck)]
    for _ in range(int(rng.integers(0, 4))):
        rows.append(nudged(rng, rows[-1], n_inner) if rng.random() < 0.2 else random_row(rng, state, n_inner, luck))
    return [[bounds_of(rng, successor, mass, is_interval) for successor, mass in row.items()] for row in rows]


def random_row(rng, state, n_inner, luck):
    """Return successor → mass: most to one or two inner states, little to the goal and to the trap."""
    if rng.random() < 0.2:
        return {int(rng.integers(0, n_inner + 1)): WHOLE}  # goes round, or ends at a price
    leak = 2 ** (BITS - int(rng.choice([1, 1, 2, 4, 6, 8, 10, 14, 20, 26])))  # how much leaves the inner states
    lucky = leak // 2 ** int(rng.choice([0, 0, 1, 4, 10, 14]))
    if luck is not None:
        leak = 2 ** (BITS - int(rng.integers(3, 13)))
        lucky = int(leak * luck * rng.choice([1.0, rng.uniform(0.5, 1.5)]))
    inner = rng.permutation(n_inner)[: int(rng.integers(1, 3))].tolist()
    if rng.random() < 0.4 and state not in inner:
        inner[0] = state
    row = {n_inner: lucky, n_inner + 1: leak - lucky}
    for successor in inner:
        row[successor] = row.get(successor, 0) + (WHOLE - leak) // len(inner)
    row[inner[0]] += WHOLE - sum(row.values())
    return {successor: mass for successor, mass in row.items() if mass}


def nudged(rng, row, n_inner):
    """Return the row with a little mass moved between two of its successors, or from one to goal or trap."""
    row = dict(row)
    source = max(row, key=row.get)
    moved = min(2 ** int(rng.integers(0, 24)), row[source])
    target = int(rng.choice([*row, n_inner, n_inner + 1]))
    row[source] -= moved
    row[target] = row.get(target, 0) + moved
    return {successor: mass for successor, mass in row.items() if mass}


def bounds_of(rng, successor, mass, is_interval):
    """Return (successor, lower, upper): the probability itself, or an interval around it that floats hold exactly."""
    if not is_interval or rng.random() < 0.4:
        return successor, mass / WHOLE, mass / WHOLE
    width = 2 ** int(rng.integers(0, BITS - 1))
    return successor, max(mass - width, 0) / WHOLE, min(mass + width, WHOLE) / WHOLE


def random_objective(rng, imdp, kind, goal):
    """Return an objective of a kind, in a random direction."""
    n_states, n_choices = imdp.graph.n_states, imdp.graph.n_choices
    target, nowhere = np.arange(n_states) == goal, np.zeros(n_states, dtype=bool)
    direction = str(rng.choice(["max", "min"]))
    if kind in ("reach", "globally", "steps"):
        steps = (0, int(rng.integers(0, 6))) if kind == "steps" else None
        return Reach(target, nowhere, direction, steps, complement=kind == "globally")
    paid = rng.choice([0.0, 0.0, 2.0**-27, 2.0**-20, 2.0**-10, 1.0, 3.0, 70.0], n_choices)
    paid[-2:] = 0.0  # in goal and trap
    reward = RewardStructure(None, paid)
    if kind == "cumulative":
        return Reward(reward, direction, steps=int(rng.integers(0, 6)))
    if kind == "discounted":
        return Reward(reward, direction, discount=Fraction(str(rng.choice([0.5, 0.9, 0.99]))))
    return Reward(reward, direction, target | (np.arange(n_states) == goal + 1) if kind == "reward" else None)


def policy_value(imdp, objective, nature, policy):
    """Return the exact value of each state if the agent follows the policy and nature does its best (or worst)."""
    rows = interval_rows(imdp)
    corners = [vertices(rows[choice]) for choice in policy]
    if objective.steps is not None:
        return first_step_values(restricted(imdp, policy), restricted_objective(objective, policy), nature)[0]
    settled, earned = settled_states(imdp, objective), step_rewards(objective, policy)
    chains = product(*(of[:1] if over else of for of, over in zip(corners, settled, strict=True)))
    best = BEST[nature_direction(objective, nature)]
    values = [chain_values(chain, objective, earned) for chain in chains]
    return [best(of_state) for of_state in zip(*values, strict=True)]


def restricted(imdp, policy):
    """Return the model that has only the rows of a policy."""
    graph = imdp.graph
    taken = [range(graph.first_transition[c], graph.first_transition[c + 1]) for c in policy]
    kept = [t for row in taken for t in row]
    return IntervalMDP.from_arrays(
        range(len(policy) + 1),
        np.cumsum([0, *map(len, taken)]),
        graph.successor[kept],
        imdp.lower[imdp.expression[kept]],
        imdp.upper[imdp.expression[kept]],
    )


def restricted_objective(objective, policy):
    """Return the objective with the rewards of the rows of a policy."""
    if isinstance(objective, Reach) or objective.reward.choice is None:
        return objective
    return replace(objective, reward=replace(objective.reward, choice=objective.reward.choice[list(policy)]))


def as_model(imdp, objective):
    """Return the parametric model with the same rows, none of which has a parameter, and its objective.

    It has the same states in the same order, behind a start that leads to each of them with the same probability.
    """
    graph, n_states = imdp.graph, imdp.graph.n_states
    share = Fraction(1, n_states)

    def step(state):
        if state.x < 0:
            return {"start": [(share, state._replace(x=s)) for s in range(n_states)]}
        choices = range(graph.first_choice[state.x], graph.first_choice[state.x + 1])
        return {f"a{i}": row(state, choice) for i, choice in enumerate(choices)}

    def row(state, choice):
        transitions = range(graph.first_transition[choice], graph.first_transition[choice + 1])
        return [
            (Fraction(imdp.lower[imdp.expression[t]]), state._replace(x=int(graph.successor[t]))) for t in transitions
        ]

    model = pl.explore(step, {"x": -1}, space=pl.ParameterSpace.unit("unused"))
    assert model.graph.states["x"].tolist() == list(range(-1, n_states))
    return model, shifted(objective)


def shifted(objective):
    """Return the objective of a model with one state and one choice in front of all others."""

    def moved(mask):
        return None if mask is None else np.concatenate([np.zeros(1, mask.dtype), mask])

    if isinstance(objective, Reach):
        steps = None if objective.steps is None else (0, objective.steps[1] + 1)
        return replace(objective, target=moved(objective.target), avoid=moved(objective.avoid), steps=steps)
    reward = replace(objective.reward, choice=moved(objective.reward.choice))
    steps = None if objective.steps is None else objective.steps + 1
    return replace(objective, reward=reward, target=moved(objective.target), steps=steps)


def start_value(values, objective):
    """Return the exact value of the start of ``as_model``, given those of the states behind it."""
    mean = sum(values) / len(values) if all(v < INFINITY for v in values) else INFINITY
    is_discounted = isinstance(objective, Reward) and objective.discount is not None
    return mean * objective.discount if is_discounted else mean


def misses(solution, exact):
    """Return the states whose exact value is not within the bounds, compared as fractions."""
    return [
        (s, float(solution.lower[s]), float(value), float(solution.upper[s]))
        for s, value in enumerate(exact)
        if not (solution.lower[s] <= value <= solution.upper[s])
    ]
