"""Certificates and records of online learning are about the policy they hand over, with defaults and without.

The models have no unknown probability, so that the value of a policy is one fraction, and no data are needed: whatever
the relaxation, it must lie between the bounds. With unknown ones, bounds for one policy are nested as the relaxations
are, without tolerance.
"""

import re
from fractions import Fraction

import numpy as np
import pytest
from near_ties import KINDS, as_model, near_tie, policy_value, start_value
from random_pmdps import random_counts, random_problem
from random_products import random_product_problem
from shorthand import altered
from tiers import size

import plumdp as pl
from plumdp.certifying.pipeline import compare
from plumdp.model.objectives import Reach, Reward
from plumdp.model.parametric import RewardStructure
from plumdp.model.question import ask
from plumdp.region import vertices

pytestmark = pytest.mark.slow

ALL_KINDS = (*KINDS, "steps", "cumulative")
NESTED = ("interval", "parameter", "expression", "rectangular")
# By day enough for errors that test_points.py plants: bounds of another policy and sweeps that stop early are found by
# every second or third model, intervals that lose a tenth by one of forty (the first is 35) in what follows.
N_CERTIFIED, N_ONLINE, N_NESTED = size(50, 600), size(15, 120), size(60, 500)


def nothing_seen(model):
    return pl.TransitionCounts(model.graph, np.zeros(model.graph.n_transitions, dtype=np.int64), "independent")


def exact_start(imdp, objective, choice):
    """Return the exact value at the start, given the policy of ``as_model``."""
    policy = np.asarray(choice)[1:] - 1
    return start_value(policy_value(imdp, objective, "robust", policy), objective)


@pytest.mark.parametrize("relaxation", ["coupled", "rectangular", "expression"])
def test_the_exact_value_of_the_certified_policy_lies_between_the_bounds(relaxation):
    wrong = {}
    for seed in range(N_CERTIFIED):
        imdp, objective, _, precision = near_tie(seed, kinds=ALL_KINDS, intervals=False)
        model, asked = as_model(imdp, objective)
        question = ask(asked, model, memory=False)
        learned = pl.learn(model, nothing_seen(model), objectives=[question])
        found = pl.conclude(learned, question, relaxation=relaxation, precision=precision)
        exact = exact_start(imdp, objective, found.policy.choice)
        if not found.lower <= exact <= found.upper:
            wrong[seed] = found.lower, float(exact), found.upper
    assert wrong == {}


def test_the_exact_value_of_the_safe_policy_of_each_record_is_on_the_right_side_of_its_bound():
    wrong = {}
    for seed in range(N_ONLINE):
        imdp, objective, _, precision = near_tie(seed, kinds=ALL_KINDS, intervals=False)
        model, asked = as_model(imdp, objective)
        environment = pl.online.simulator(model, {"unused": Fraction(1, 2)}, rng=seed, max_steps=5)
        for record in pl.learn_online(model, environment, asked, episodes=4, precision=precision):
            exact = exact_start(imdp, objective, record.policy.choice)
            is_right = record.bound <= exact if objective.direction == "max" else exact <= record.bound
            if not is_right and record.status != "model rejected":
                wrong[seed] = record.bound, float(exact)
    assert wrong == {}


def nested_problem(seed):
    """Return model, counts, an objective and a policy; some regions touch zero, some models have products."""
    rng = np.random.default_rng(seed)
    if seed % 4 == 3:
        problem = random_product_problem(rng)
        counts = problem.counts
    else:
        problem = random_problem(rng)
        counts = random_counts(rng, problem, most=[5, 300, 5000][seed % 4])
    graph = problem.model.graph
    policy = rng.integers(graph.first_choice[:-1], graph.first_choice[1:])
    goal, direction = rng.random(graph.n_states) < 0.3, str(rng.choice(["max", "min"]))
    goal[graph.initial_state] = False
    if seed % 2:
        return problem.model, counts, Reach(goal, np.zeros_like(goal), direction), policy
    paid = RewardStructure(None, rng.integers(0, 3, graph.n_choices) / 2)
    return problem.model, counts, Reward(paid, direction, goal if rng.random() < 0.5 else None), policy


@pytest.mark.parametrize("is_complete", [True, False])
def test_bounds_for_one_policy_are_nested_as_the_relaxations_are(is_complete, monkeypatch):
    """Interval ⊇ expression ⊇ rectangular and parameter ⊇ expression, with and without memory for all vertices."""
    if not is_complete:
        with_room = vertices.FoundVertices.with_room
        monkeypatch.setattr(vertices, "_MAX_BYTES", 0)
        monkeypatch.setattr(vertices.FoundVertices, "with_room", staticmethod(lambda _, d: with_room(2, d)))
    wrong, touching, incomplete = {}, 0, 0
    for seed in range(N_NESTED) if is_complete else range(N_NESTED, N_NESTED + size(24, 200)):
        model, counts, objective, policy = nested_problem(seed)
        learned = pl.learn(model, counts, confidence=0.9, confidence_set="interval", objectives=[objective])
        found = {c.how.relaxation: c for c in compare(learned, objective, relaxations=NESTED, policy=policy)}
        if "untied" in found:
            continue
        incomplete += not learned.region.table.is_complete
        touching += any(low <= 0 for low, _ in found["expression"].rests_on.parameters.values())
        alone = pl.conclude(learned, objective, relaxation="rectangular", policy=policy)
        expression = pl.conclude(learned, objective, relaxation="expression", policy=policy)
        pairs = [
            (found["interval"], found["expression"]),
            (found["parameter"], found["expression"]),
            (found["expression"], found["rectangular"]),
            (expression, alone),
        ]
        if any(not outer.lower <= inner.lower <= inner.upper <= outer.upper for outer, inner in pairs):
            wrong[seed] = [(c.how.relaxation, c.lower, c.upper) for c in (*found.values(), alone)]
    assert wrong == {}
    assert touching >= size(3, 20)
    assert (incomplete == 0) if is_complete else (incomplete >= size(6, 50))


def test_a_certificate_cannot_have_its_lower_bound_above_its_upper_bound():
    imdp, objective, _, _ = near_tie(0, intervals=False)
    model, asked = as_model(imdp, objective)
    found = pl.certify(model, nothing_seen(model), asked)
    with pytest.raises(ValueError, match=re.escape("the lower bound 2.0 is above the upper bound 1.0")):
        altered(found, lower=2.0, upper=1.0)
