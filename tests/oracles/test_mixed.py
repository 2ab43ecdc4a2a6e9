"""Models with unknown rows beside expressions: bets in their tables are fair, and values at points are in the bracket.

What is exact here is the mean payoff of a visit of each row, in fractions: the expectation of a product of bets is one
if and only if all of these are zero, as the tables of ``test_tables`` show over all data.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from mixed_models import REACH, chain_of, probabilities, random_model, random_point
from tiers import size

import plumdp as pl
from plumdp.learning.learn import learn
from plumdp.model.free_rows import free_rows
from plumdp.model.question import ask
from plumdp.model.views import as_parametric
from plumdp.region.find import holds
from plumdp.solver.evaluate import evaluate
from plumdp.stages import instantiate
from plumdp.tables.views import as_table


def exact_rows(model, rng):
    """Return the exact probability of each transition at a random point of 64ths."""
    values = {name: Fraction(int(rng.integers(10, 54)), 64) for name in model.space.names}
    rows = []
    for first, end in zip(model.graph.first_transition[:-1], model.graph.first_transition[1:], strict=True):
        expressions = model.expression[first:end]
        if expressions[0] < len(model.expressions.polynomials):
            rows += [model.expressions.polynomials[f].evaluate(values) for f in expressions.tolist()]
        else:
            parts = rng.integers(1, 20, end - first).tolist()
            rows += [Fraction(part, sum(parts)) for part in parts]
    return rows


def mean_payoffs(model, rng, *, view=as_table):
    """Return the mean payoff of a visit of each unknown row of the chain, with random weights, at the true values."""
    table, transitions = chain_of(model, view=view)
    exact = exact_rows(model, rng)
    row = [exact[t] for t in transitions]
    floats = np.linalg.solve(*_equations(table, [float(x) for x in row]))
    values = [Fraction(float(v)).limit_denominator(10**9) for v in floats]  # any values will do, if rewards fit them
    every = [*values, *(Fraction(float(v)) for v in table.chain.known)]
    weight = [Fraction(int(w), 100) for w in rng.integers(-50, 50, table.n)]
    mean_ahead = [sum(row[t] * every[table.successor[t]] for t in _span(table, s)) for s in range(table.n)]
    payoff = dict.fromkeys(range(table.n_places), Fraction(0))
    for t in np.flatnonzero(table.place >= 0).tolist():
        s = int(table.owner[t])
        payoff[int(table.place[t])] += weight[s] * (every[table.successor[t]] - mean_ahead[s])
    return [sum(row[t] * payoff[int(table.place[t])] for t in _span(table, s)) for s in np.flatnonzero(table.is_free)]


def _span(table, s):
    return range(table.chain.first[s], table.chain.first[s + 1])


def _equations(table, row):
    moves = np.zeros((table.n, table.chain.n_nodes))
    np.add.at(moves, (table.owner, table.successor), row)
    return np.eye(table.n) - moves[:, : table.n], moves[:, table.n :] @ table.chain.known


@pytest.mark.parametrize("seed", range(size(12, 300)))
def test_the_mean_payoff_of_every_row_is_zero(seed):
    """A visit in any state that has the expressions of a class pays in all of its nodes."""
    rng = np.random.default_rng(seed)
    assert not any(mean_payoffs(random_model(rng), rng))


def rows_of_equal_size_are_tied(model):
    """Return the table in which rows are tied whose expressions differ."""
    sizes = np.diff(model.graph.first_transition)
    return replace(free_rows(model, np.where(sizes > 1, sizes, -1)), source=model)


def test_ties_of_different_expressions_are_found():
    """A planted error: (p, 1 - p) and (q / 2, 1 - q / 2) count as one row."""
    found = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        found += any(mean_payoffs(random_model(rng), rng, view=rows_of_equal_size_are_tied))
    assert found >= 5


def learned_case(seed, kind, *, n_runs=300):
    """Return a model, data of a random point, what was learned, and the certificate of its only policy."""
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    truth = random_point(model, rng)
    counts = pl.simulate(model, truth, n_runs, rng=seed, max_steps=60, stop=model.labels["end"])
    learned = learn(model, counts, objectives=[REACH], confidence=0.9, confidence_set=kind)
    return model, truth, learned, pl.conclude(learned, REACH)


def value_at(model, probability):
    """Return the value of the only policy at probabilities of transitions."""
    table = free_rows(model)
    objective = ask(REACH, table).objective
    worth = evaluate(instantiate(table, probability), table.graph.first_choice[:-1], objective, precision=1e-10)
    start = model.graph.initial_state
    return float(worth.lower[start] + worth.upper[start]) / 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(size(1, 60)))
def test_points_in_the_region_of_parameters_have_their_values_in_the_bracket(seed):
    model, truth, learned, found = learned_case(seed, "likelihood")
    rng, n_held = np.random.default_rng(10**6 + seed), 0
    if learned.conflict is not None:
        return
    names = learned.model.space.names
    at = spelled(model, truth)
    middle = np.array([at[name] for name in names])
    low, high = (np.array(ends) for ends in zip(*learned.parameters.values(), strict=True))
    for _ in range(size(40, 300)):
        point = middle + rng.uniform(0, 1.2) * (rng.uniform(low, high) - middle)
        if not holds(learned.region, point):
            continue
        n_held += 1
        view = learned.model
        probability = view.expressions.evaluate(point[None, :])[view.expression, 0]
        assert found.lower - 1e-9 <= value_at(model, probability) <= found.upper + 1e-9
    assert n_held > 0 or not holds(learned.region, middle)


def spelled(model, point):
    """Return the point of the model with parameters alone that has the same rows."""
    view, probability = as_parametric(model), probabilities(model, point)
    at = dict(point[0])
    for transition, f in enumerate(view.expression.tolist()):
        names = view.expressions.polynomials[f].names
        if len(names) == 1 and names[0] not in at and view.expressions.polynomials[f] == pl.parameters(*names)[0]:
            at[names[0]] = float(probability[transition])
    return at


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(size(2, 60)))
def test_tables_in_the_intervals_have_their_values_within_those_by_intervals(seed):
    """Points on the way from the truth to random ones, as long as they are in the intervals of all rows."""
    model, truth, learned, _ = learned_case(seed, "table")
    rng, view = np.random.default_rng(seed), learned.model
    if learned.conflict is not None:
        return
    alone, n_held = pl.conclude(learned, REACH, relaxation="interval"), 0
    lower, upper = learned.bounds.intervals
    for _ in range(size(20, 100)):
        other, share = random_point(model, rng), rng.uniform(0, 0.5)
        values = {name: (1 - share) * value + share * other[0][name] for name, value in truth[0].items()}
        near = probabilities(model, (values, (1 - share) * truth[1] + share * other[1]))
        if ((near < lower[view.expression] - 1e-12) | (near > upper[view.expression] + 1e-12)).any():
            continue
        n_held += 1
        assert alone.lower - 1e-9 <= value_at(model, near) <= alone.upper + 1e-9
    assert n_held > 0
