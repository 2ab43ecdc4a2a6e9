"""Small random affine parametric MDPs with counts or intervals for their expressions, and the exact region of both.

A row mixes fixed distributions with weights that are affine in the parameters and sum to one, such as p and 1 - p. So
it sums to one as polynomials, and each of its expressions lies in [0, 1] on the whole space. Rows come from a small
pool: that is how different states share expressions.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from flint import fmpq, fmpq_mat

import plumdp as pl
from plumdp.data.counts import TransitionCounts
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import affine_coefficients

NAMES = ("p", "q", "r")


@dataclass(frozen=True, eq=False)
class Problem:
    """A model with something to reach and to earn, and a point of its space that may be the true one."""

    model: ParametricMDP
    point: dict[str, Fraction]

    @property
    def target(self):
        return self.model.labels["goal"]

    @property
    def reward(self):
        return self.model.rewards["earned"]


def random_problem(rng, *, n_states=(3, 8), n_parameters=(1, 3), acyclic=None, least=0, sure=False):
    """Return a random model whose last one or two states are sinks, the very last one the goal.

    ``least`` is a lower bound of all expressions over the space, about 1/100. With ``sure`` the goal is the only sink
    and stands in every row, so that with a lower bound it is reached almost surely.
    """
    space, weights = random_space(rng, rng.integers(n_parameters[0], n_parameters[1] + 1))
    acyclic = rng.random() < 0.5 if acyclic is None else acyclic
    while True:
        n = int(rng.integers(n_states[0], n_states[1] + 1))
        n_sinks = 1 if sure else int(rng.integers(1, 3))
        sizes = rng.choice([1, 2, 3, 4, 5], rng.integers(1, 5), p=[0.1, 0.2, 0.3, 0.2, 0.2])
        pool = [random_row(rng, weights, min(size, n), least) for size in sizes.tolist()]
        table = [random_choices(rng, pool, s, n, acyclic=acyclic, sure=sure) for s in range(n - n_sinks)]
        model = explore_table(rng, table, n, n_sinks, space)
        if model.graph.n_states >= n_states[0] and model.labels["goal"].any() and model.expressions.is_unknown.any():
            return Problem(model, random_point(rng, space.vertices))


def random_space(rng, d):
    """Return a box or a simplex, and pairs of weights that sum to one or the weights of the simplex."""
    names = NAMES[:d]
    variables = pl.parameters(*names)
    if d > 1 and rng.random() < 0.4:
        return pl.ParameterSpace.simplex(*names), [(*variables, 1 - sum(variables[1:], variables[0]))]
    bounds = {name: (Fraction(int(rng.integers(0, 3)), 8), Fraction(int(rng.integers(4, 9)), 8)) for name in names}
    shares = [(x - low) / (high - low) for x, (low, high) in zip(variables, bounds.values(), strict=True)]
    return pl.ParameterSpace.box(bounds), [(share, 1 - share) for share in shares]


def random_row(rng, weights, size, least):
    """Return polynomials that sum to one: for some of the weights, their mixtures of distributions in eighths."""
    used = [weights[i] for i in rng.permutation(len(weights))[: rng.integers(1, len(weights) + 1)]]
    row = [Fraction(0)] * size
    for mixture in used:
        for weight in mixture:
            parts = rng.multinomial(8, rng.dirichlet(np.full(size, 0.5)))
            row = [
                f + weight * (Fraction(int(part), 8) * (1 - size * least) + least) / len(used)
                for f, part in zip(row, parts, strict=True)
            ]
    return row


def random_choices(rng, pool, state, n_states, *, acyclic, sure):
    """Return one to three choices of a state, each a list of (expression, successor)."""
    choices = []
    for _ in range(rng.choice([1, 2, 3], p=[0.4, 0.4, 0.2])):
        row = pool[rng.integers(len(pool))]
        among = np.arange(state + 1 if acyclic else 0, n_states)
        successors = rng.permutation(among)[: len(row)]
        last = len(successors) - 1
        row = [*row[:last], sum(row[last:], Fraction(0))]
        if sure and n_states - 1 not in successors:
            successors[rng.integers(len(successors))] = n_states - 1
        choices.append([(f, int(successor)) for f, successor in zip(row, successors, strict=True)])
    return choices


def explore_table(rng, table, n_states, n_sinks, space):
    """Return the model of a list of choices for each state that is no sink."""

    def step(state):
        if state.at >= n_states - n_sinks:
            return {"stay": [(1, state)]}
        return {f"do{i}": [(f, state._replace(at=to)) for f, to in row] for i, row in enumerate(table[state.at])}

    earned = rng.integers(0, 5, n_states) / 4
    paid = rng.integers(0, 5, 3) / 4
    is_sink = np.arange(n_states) >= n_states - n_sinks
    return pl.explore(
        step,
        {"at": 0},
        space=space,
        labels={"goal": lambda s: s.at == n_states - 1},
        rewards={"earned": lambda s: 0 if is_sink[s.at] else earned[s.at]},
        choice_rewards={"earned": lambda s, action: 0 if is_sink[s.at] else paid[int(action[-1])]},
    )


def random_point(rng, vertices):
    """Return a mixture of points, exact; sometimes one of them."""
    if rng.random() < 0.2:
        return vertices[rng.integers(len(vertices))]
    parts = [int(part) for part in rng.multinomial(1000, rng.dirichlet(np.ones(len(vertices))))]
    return {
        name: sum((Fraction(part, 1000) * v[name] for part, v in zip(parts, vertices, strict=True)), Fraction(0))
        for name in vertices[0]
    }


def random_counts(rng, problem, *, most=5000):
    """Return counts of samples at the problem's point, a different number for each choice, often none."""
    model, graph = problem.model, problem.model.graph
    probability = model.probabilities(problem.point)[model.expression]
    counts = np.zeros(graph.n_transitions, dtype=np.int64)
    for a, b in zip(graph.first_transition[:-1], graph.first_transition[1:], strict=True):
        visits = 0 if rng.random() < 0.2 else int(most ** rng.random())
        counts[a:b] = rng.multinomial(visits, probability[a:b] / probability[a:b].sum())
    return TransitionCounts(graph, counts, "independent")


def random_intervals(rng, problem, *, widest=0.5):
    """Return bounds of all expressions about their values at the problem's point; a few or most say nothing."""
    values = problem.model.probabilities(problem.point)
    lower, upper = (values + side * widest * rng.random(len(values)) ** 2 for side in (-1, 1))
    says_nothing = rng.random(len(values)) < rng.choice([0.1, 0.8])
    lower, upper = np.where(says_nothing, 0, lower), np.where(says_nothing, 1, upper)
    grid = 2.0 ** int(rng.choice([6, 20, 50]))
    return np.clip(np.floor(lower * grid) / grid, 0, 1), np.clip(np.ceil(upper * grid) / grid, 0, 1)


# The region, exactly


def exact_vertices(space, polynomials, lower, upper):
    """Return the vertices of {v in space : lower <= f(v) <= upper for all f} as points, by trying all bases.

    Of half-spaces with the same direction only the tightest one is tried.
    """
    tightest = {}
    for coefficients, offset in half_spaces(space, polynomials, lower, upper):
        size = max(map(abs, coefficients), default=0)
        if size == 0 and offset < 0:
            return []
        if size:
            direction = tuple(c / size for c in coefficients)
            tightest[direction] = min(offset / size, tightest.get(direction, offset / size))
    rows, offsets = list(tightest), list(tightest.values())
    found = (meeting_point([rows[i] for i in basis], [offsets[i] for i in basis]) for basis in bases(rows, space))
    inside = {v: None for v in found if v is not None and is_inside(v, rows, offsets)}
    return [dict(zip(space.names, (Fraction(int(x.p), int(x.q)) for x in v), strict=True)) for v in inside]


def half_spaces(space, polynomials, lower, upper):
    """Yield coefficients and offsets of all the inequalities, as rationals."""
    variables = pl.parameters(*space.names)
    for x, (low, high) in zip(variables, space.bounds, strict=True):
        yield from (half_space(x - low, space.names), half_space(high - x, space.names))
    for constraint in space.constraints:
        yield half_space(constraint, space.names)
    for f, low, high in zip(polynomials, lower, upper, strict=True):
        yield from (half_space(f - Fraction(low), space.names), half_space(Fraction(high) - f, space.names))


def half_space(at_least_zero, names):
    constant, coefficients = affine_coefficients(at_least_zero, names)
    return [rational(-c) for c in coefficients], rational(constant)


def bases(rows, space):
    return combinations(range(len(rows)), space.dimension)


def meeting_point(rows, offsets):
    try:
        solution = fmpq_mat(rows).solve(fmpq_mat([[offset] for offset in offsets]))
    except ZeroDivisionError:
        return None
    return tuple(solution.entries())


def is_inside(point, rows, offsets):
    return all(
        sum((c * x for c, x in zip(row, point, strict=True)), fmpq(0)) <= b
        for row, b in zip(rows, offsets, strict=True)
    )


def rational(number):
    """Return a number as python-flint's rational number."""
    exact = Fraction(number)
    return fmpq(exact.numerator, exact.denominator)
