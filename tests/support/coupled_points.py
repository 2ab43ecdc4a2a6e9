"""Exact values of a policy at points of an ellipsoid: one rational point for all states, one linear system each."""

from fractions import Fraction

import exact_values
import numpy as np
import random_products

import plumdp as pl
from plumdp.model.objectives import Reach
from plumdp.region.build import build_region
from plumdp.region.ellipsoid import build_ellipsoid


def random_ellipsoid(rng, space, *, widest=0.3, centre=None):
    """Return an ellipsoid about a point of a space, cut by the space; its axes are of different lengths."""
    d = space.dimension
    if centre is None:
        weights = rng.dirichlet(np.ones(len(space.vertices)))
        corners = np.array([[float(v[name]) for name in space.names] for v in space.vertices])
        centre = weights @ corners
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    axes = widest * 10 ** -(2 * rng.random(d))
    return build_ellipsoid(centre, turn @ np.diag(axes**-2.0) @ turn.T, 1.0, within=build_region(space, (), (), ()))


def points_of(rng, model, region, n):
    """Return points of an ellipsoid as dicts of fractions, half of them near its surface, at which rows are rows."""
    d, found = len(region.names), []
    names = model.space.names
    for _ in range(n):
        x = rng.normal(size=d)
        length = 0.999999 if rng.random() < 0.5 else rng.random() ** (1 / d)
        x *= length / np.linalg.norm(x)
        at = region.centre + region.radius * region.root @ x
        if rng.random() < 0.5:  # to the boundary of the space, where probabilities may vanish
            at = np.clip(at, model.space.lower, model.space.upper)
            if np.linalg.norm(np.linalg.solve(region.root, at - region.centre)) > 0.999999 * region.radius:
                continue
        point = dict(zip(names, map(Fraction, at.tolist()), strict=True))
        if is_point_of(model, point):
            found.append(point)
    return found


def is_point_of(model, point):
    """Return whether a rational point lies in the space and gives every expression a probability."""
    space = model.space
    values = [f.evaluate(point) for f in model.expressions.polynomials]
    inside = all(low <= point[name] <= high for name, (low, high) in zip(space.names, space.bounds, strict=True))
    return inside and all(0 <= f <= 1 for f in values) and all(f.evaluate(point) >= 0 for f in space.constraints)


def exact_value(model, policy, objective, point):
    """Return the value of the initial state at a rational point: a Fraction, or infinity."""
    return value_of_rows(model.graph, rows_at(model, point), policy, objective)


def rows_at(model, point):
    """Return the probability of each transition at a rational point."""
    values = [f.evaluate(point) for f in model.expressions.polynomials]
    return [values[f] for f in model.expression.tolist()]


def value_of_rows(graph, rows, policy, objective):
    """Return the value of the initial state, given the probability of each transition: a Fraction, or infinity."""
    shares = [0] * graph.n_choices
    for choice in np.asarray(policy).tolist():
        shares[choice] = 1
    return mixed_value(graph, rows, shares, objective)


def mixed_value(graph, rows, shares, objective):
    """Return the same for a policy that draws, given the probability of each choice: rows and rewards are mixed."""
    chain, earned = [{} for _ in range(graph.n_states)], [Fraction(0)] * graph.n_states
    for choice, state in enumerate(graph.state_of_choice().tolist()):
        if not isinstance(objective, Reach):
            paid = exact_values.state_reward(objective, state) + exact_values.choice_reward(objective, choice)
            earned[state] += shares[choice] * paid
        for t in range(graph.first_transition[choice], graph.first_transition[choice + 1]):
            if rows[t] * shares[choice]:
                to, row = int(graph.successor[t]), chain[state]
                row[to] = row.get(to, Fraction(0)) + shares[choice] * rows[t]
    if objective.steps is not None:
        return _by_steps(chain, objective, earned)[graph.initial_state]
    return exact_values.chain_values(chain, objective, earned)[graph.initial_state]


def _by_steps(chain, objective, earned):
    """Return values by backward induction, straight from the definition."""
    n = len(chain)
    if not isinstance(objective, Reach):
        values, discount = [Fraction(0)] * n, objective.discount or 1
        for _ in range(objective.steps):
            values = [earned[s] + discount * sum(p * values[j] for j, p in chain[s].items()) for s in range(n)]
            if objective.target is not None:
                values = [Fraction(0) if objective.target[s] else values[s] for s in range(n)]
        return values
    first, last = objective.steps
    values = [Fraction(0)] * n
    for step in range(last, -1, -1):
        moved = [sum(p * values[j] for j, p in chain[s].items()) if step < last else Fraction(0) for s in range(n)]
        values = [
            Fraction(1) if objective.target[s] and first <= step else Fraction(0) if objective.avoid[s] else moved[s]
            for s in range(n)
        ]
    return [1 - v for v in values] if objective.complement else values


def random_policy(rng, graph):
    """Return a random choice for each state."""
    return np.array([rng.integers(a, b) for a, b in zip(graph.first_choice[:-1], graph.first_choice[1:], strict=True)])


def random_product_model(rng):
    """Return a small model whose rows are those of ``random_products``, between some states, a goal and a trap."""
    d, n = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    names = random_products.NAMES[:d]
    variables = pl.parameters(*names)
    table = []
    for at in range(n):
        row = random_products.KINDS[rng.choice([*random_products.KINDS])](rng, variables)
        successors = rng.integers(0 if rng.random() < 0.3 else min(at + 1, n), n + 2, len(row))
        table.append(dict(zip(range(len(row)), zip(row, successors.tolist(), strict=True), strict=True)))

    def step(state):
        if state.at >= n:
            return {"stay": [(1, state)]}
        merged = {}
        for f, to in table[state.at].values():
            merged[to] = merged.get(to, 0) + f
        return {"go": [(f, state._replace(at=to)) for to, f in merged.items()]}

    return pl.explore(
        step,
        {"at": 0},
        space=pl.ParameterSpace.box({name: (Fraction(1, 10), Fraction(9, 10)) for name in names}),
        labels={"goal": lambda s: s.at >= n},
        rewards={"steps": lambda s: 1 if s.at < n else 0},
    )
