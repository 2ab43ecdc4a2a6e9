"""Expected visits against dense matrices, loops and simulations; and what counts alone show of the runs behind them."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_pmdps import random_problem

import plumdp as pl
from plumdp.explaining.expected_runs import RunLaw, run_law, seen_runs, whole_counts
from plumdp.model.policy import normalised


def law_of(seed, max_steps):
    """Return the law of runs of a small random model that end in its goal."""
    problem = random_problem(np.random.default_rng(seed))
    model = problem.model
    point = np.array([float(problem.point[name]) for name in model.space.names])
    probability = model.expressions.evaluate(point[None, :])[:, 0][model.expression]
    return RunLaw(model.graph, probability, np.asarray(problem.target), max_steps)


def dense_visits(law, weights_at):
    """Return expected visits by dense matrices, for a policy that may depend on the step."""
    graph, owner = law.graph, law.graph.state_of_choice()
    choice = graph.choice_of_transition()
    mass, visits = np.eye(graph.n_states)[graph.initial_state], np.zeros(graph.n_choices)
    for step in range(law.max_steps):
        taken = np.where(law.is_end, 0.0, mass)[owner] * weights_at(step)
        visits += taken
        mass = np.zeros(graph.n_states)
        np.add.at(mass, graph.successor, law.probability * taken[choice])
    return visits


@pytest.mark.parametrize("seed", range(10))
def test_expected_visits_are_those_of_dense_matrices(seed):
    law = law_of(seed, max_steps=7)
    weights = normalised(law.graph, np.random.default_rng(seed).random(law.graph.n_choices))
    assert np.allclose(law.visits(weights), dense_visits(law, lambda step: weights), atol=1e-14)


@pytest.mark.parametrize("seed", range(10))
def test_no_policy_gathers_more_than_the_best_visits(seed):
    """All policies without memory, and one found by a backward loop over states that knows the steps that are left."""
    law = law_of(seed, max_steps=4)
    graph, rng = law.graph, np.random.default_rng(seed)
    reward = rng.random(graph.n_choices)
    visits = law.best_visits(reward)
    value = np.zeros(graph.n_states)
    for _ in range(law.max_steps):
        new = np.zeros(graph.n_states)
        for state in np.flatnonzero(~law.is_end):
            choices = range(graph.first_choice[state], graph.first_choice[state + 1])
            rows = [slice(graph.first_transition[c], graph.first_transition[c + 1]) for c in choices]
            gains = [law.probability[row] @ value[graph.successor[row]] for row in rows]
            new[state] = max(reward[c] + gain for c, gain in zip(choices, gains, strict=True))
        value = new
    assert visits @ reward == pytest.approx(value[graph.initial_state], rel=1e-9)
    own = [range(a, b) for a, b in zip(graph.first_choice[:-1], graph.first_choice[1:], strict=True)]
    for policy in list(product(*own))[:100]:
        weights = np.bincount(policy, minlength=graph.n_choices).astype(float)
        assert law.visits(weights) @ reward <= visits @ reward * (1 + 1e-9)


@pytest.mark.parametrize(("name", "steps"), [("betting:5", 6), ("glider:11,9", 40), ("rover:10,10", 20)])
def test_counts_show_how_many_runs_they_are_and_how_long(name, steps):
    """Of those that may come back to where they began, nothing shows where they ended but their length."""
    study = pl.case_study(name)
    counts = pl.simulate(study.model, study.true_point, 2_000, rng=1, max_steps=steps)
    point = np.array([float(study.true_point[p]) for p in study.model.space.names])
    seen = seen_runs(run_law(study.model, counts, point), counts)
    assert seen.n_runs == pytest.approx(2_000, rel=0.01)
    assert seen.max_steps == pytest.approx(steps, abs=1)


def test_steps_that_begin_elsewhere_are_not_runs():
    study = pl.case_study("betting:5")
    model = study.model
    counts = pl.TransitionCounts(model.graph, np.ones(model.graph.n_transitions, dtype=np.int64), "independent")
    assert seen_runs(run_law(model, counts, np.array([0.5])), counts) is None


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 5)), min_size=1, max_size=40))
def test_whole_counts_have_the_sums_of_expected_ones(pairs):
    group, expected = np.array([g for g, _ in pairs]), np.array([x for _, x in pairs])
    found = whole_counts(expected, group)
    assert (found >= 0).all()
    for g in set(group.tolist()):
        assert abs(found[group == g].sum() - expected[group == g].sum()) <= 0.5 + 1e-9
