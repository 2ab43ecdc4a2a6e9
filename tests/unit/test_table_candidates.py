"""Candidates for bets in tables: which policies the pilot proposes, their shares, and gains over a baseline."""

from functools import cache

import numpy as np
import pytest
from shorthand import improve

import plumdp as pl
from plumdp.base.error_budget import favoured_parts
from plumdp.model.policy import policy_weights
from plumdp.result.show import as_text
from plumdp.tables.table_set import TableSet

pytestmark = pytest.mark.slow

REACH = 'Pmax=? [ F "goal" ]'
GOOD = {"often": 0.6, "seldom": 0.7, "bad": 0.3}  # chance of the goal by action, from each of three places


def step(s):
    """Three places in a row, in each of which an action wins or not; all must be won, and there are three tries."""
    if s.x == 3 or s.tries == 0:
        return {"stay": [(1, s)]}
    return {a: pl.unknown(s._replace(x=s.x + 1), s._replace(tries=s.tries - 1)) for a in GOOD}


@cache
def data(n_runs=3000, shares=(0.7, 0.01, 0.29)):
    """Return the model, its true point, the policy of the data, and the data."""
    model = pl.explore(step, {"x": 0, "tries": 3}, labels={"goal": lambda s: s.x == 3})
    graph = model.graph
    names = np.array(graph.action_names)[graph.action]
    point = np.concatenate([[GOOD[name], 1 - GOOD[name]] if name in GOOD else [1.0] for name in names])
    practice = np.array([dict(zip(GOOD, shares, strict=True)).get(name, 1.0) for name in names])
    is_end = np.diff(graph.first_choice) == 1
    return model, point, practice, pl.simulate(model, point, n_runs, rng=3, max_steps=9, stop=is_end, policy=practice)


def value(model, point, policy):
    """Return the true value of a policy, from the end backwards."""
    graph, weights = model.graph, policy_weights(model.graph, policy)
    at = model.labels["goal"].astype(float)
    for _ in range(9):
        of_choice = graph.sum_by_choice(point * at[graph.successor])
        at = np.where(model.labels["goal"], 1.0, np.bincount(graph.state_of_choice(), weights * of_choice))
    return at[graph.initial_state]


def prespecified(counts, model):
    return pl.learn(model, counts, objectives=[REACH], confidence=0.95).bounds.of_kind(TableSet)[0].prespecified


def test_rows_that_all_data_visit_leave_one_candidate_with_the_whole_share():
    model, _, _, counts = data(20000, (0.4, 0.3, 0.3))
    (only,) = prespecified(counts, model)
    names = {model.graph.action_names[model.graph.action[c]] for c in only.policy.tolist()}
    assert names <= {"seldom", "stay"}  # which is best, and is seen often enough in these data


def test_a_best_action_that_is_hardly_seen_is_not_the_favourite():
    model, point, _, counts = data()
    found = prespecified(counts, model)
    assert len(found) == 2
    of_side = [each.errors.of_side for each in found]
    assert of_side[0] == pytest.approx(9 * of_side[1])
    best = pl.certify(model, counts, REACH, confidence=0.95)
    alone = pl.certify(model, counts, REACH, confidence=0.95, relaxation="interval")
    assert best.lower > alone.lower
    assert best.lower <= value(model, point, best.policy) <= best.upper


@pytest.mark.night
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_favoured_parts_sum_to_the_whole(n):
    parts = favoured_parts(0.1, n)
    assert len(parts) == n
    assert sum(parts) <= 0.1 * (1 + 1e-15)
    assert n == 1 or parts[0] == pytest.approx(0.09)


@pytest.mark.parametrize("baseline", ["practice", "drawn", "bad"])
def test_a_gain_over_a_baseline_is_certified_and_true(baseline):
    model, point, practice, counts = data()
    over = {"practice": "practice", "drawn": practice, "bad": "bad"}
    if baseline == "bad":
        over["bad"] = pl.PolicyTable(model.graph, policy_of(model, "bad"))
    found = improve(model, counts, REACH, over=over[baseline], prespecified=baseline != "practice", confidence=0.95)
    assert found.is_better
    other = found.difference.second
    assert 0 < found.gain <= value(model, point, found.policy) - value(model, point, other.policy)
    assert other.lower <= value(model, point, other.policy) <= other.upper
    assert "bets on temporal differences" in as_text(other, in_full=True)


def policy_of(model, name):
    """Return the choices that take one action wherever there are several."""
    graph = model.graph
    numbers = np.flatnonzero(np.array(graph.action_names)[graph.action] == name)
    policy = np.array(graph.first_choice[:-1])
    policy[graph.state_of_choice()[numbers]] = numbers
    return policy


def test_practice_in_a_table_is_that_of_the_first_data_and_the_assumption_says_so():
    model, _, _, counts = data()
    found = improve(model, counts, REACH, confidence=0.95)
    assert found.assumptions[-1].startswith("practice takes each action as often as the first ")
    assert "steps of these data do in the same state" in found.assumptions[-1]


def test_too_few_data_keep_the_baseline():
    model, _, practice, counts = data(200)
    found = improve(model, counts, REACH, over=practice)
    assert not found.is_better
    assert found.headline.endswith("Keep the baseline: no policy is known to be better.")
