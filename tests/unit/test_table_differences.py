"""Differences of two policies of a table: both are pre-specified, and bets are placed on the difference itself."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

import plumdp as pl
from plumdp.data import model_from_log
from plumdp.model import Question
from plumdp.model.policy import policy_weights
from plumdp.tables import values

TRUE = {"plan": (0.7, 0.3), "code": (0.9, 0.1), "test a": (0.55, 0.4, 0.05), "test b": (0.65, 0.3, 0.05)}
LEADS = {"plan": ("code", "plan"), "code": ("test", "lost"), "test": ("done", "code", "lost")}
ASKED = 'Pmax=? [ F "done" ]'


@cache
def agent(n_runs=12_000, *, is_tied=True):
    """Return the table of an agent with two prompts, which differ in one row or in all, and data."""

    def row(at, action):
        return f"{at} {action}" if at == "test" or not is_tied else at

    def step(s):
        if s.at not in LEADS:
            return {"stay": [(1, s)]}
        ahead = [s._replace(at=each) for each in LEADS[s.at]]
        return {a: pl.unknown(*ahead, row=row(s.at, a)) for a in "ab"}

    model = pl.explore(step, {"at": "plan"}, labels={"done": lambda s: s.at == "done"})
    graph, point = model.graph, []
    for choice, state in enumerate(graph.state_of_choice()):
        at, action = graph.states["at"][state], graph.action_names[graph.action[choice]]
        point += [1.0] if action == "stay" else TRUE.get(at, TRUE.get(f"{at} {action}"))
    return model, pl.simulate(model, np.array(point), n_runs, rng=3, max_steps=500)


def always(action):
    return lambda at: action if at in LEADS else "stay"


def bracket(learned, action):
    found = pl.conclude(learned, ASKED, policy=always(action))
    return found.lower, found.upper


@pytest.mark.slow
def test_the_rival_of_a_difference_is_prespecified_as_well():
    model, counts = agent()
    objective = pl.parse_property(ASKED, model)
    both = pl.learn(model, counts, objectives=[Question(model, objective, always("b"), against=always("a"))])
    alone = pl.learn(model, counts, objectives=[Question(model, objective, always("b"))])
    (low, high), (lower, upper) = (bracket(learned, "a") for learned in (both, alone))
    assert high - low < 0.8 * (upper - lower)  # which has intervals alone


def both(policies, *, n_runs=12_000, is_tied=True, confidence=0.95):
    """Return the bounds on the difference of two policies that was pre-specified, and on each value."""
    model, counts = agent(n_runs, is_tied=is_tied)
    asked = Question(model, pl.parse_property(ASKED, model), policies[0], against=policies[1])
    learned = pl.learn(model, counts, objectives=[asked], confidence=confidence)
    return pl.difference(learned, ASKED, *policies), pl.difference(learned, ASKED, *policies[::-1])


def true_value(drawn):
    """Return the value of drawing b with a probability in each state, by hand: plan, code and test in turn."""
    win, back = (sum(s * TRUE[f"test {a}"][i] for a, s in (("b", drawn), ("a", 1 - drawn))) for i in (0, 1))
    return 0.9 * win / (1 - 0.9 * back)  # all runs leave the plan


@pytest.mark.slow
@pytest.mark.parametrize("is_tied", [True, False])
def test_a_difference_is_known_better_than_both_values(is_tied):
    found, turned = both([always("b"), always("a")], is_tied=is_tied)
    assert found.lower <= true_value(1) - true_value(0) <= found.upper
    widths = [each.upper - each.lower for each in (found.first, found.second)]
    assert found.upper - found.lower < (0.8 if is_tied else 0.95) * sum(widths)
    assert (turned.lower, turned.upper) == (-found.upper, -found.lower)


@pytest.mark.night
def test_a_policy_that_draws_is_compared_with_one_that_does_not():
    model, _ = agent()
    weights = policy_weights(model.graph, always("b"))
    is_test = (model.graph.states["at"] == "test")[model.graph.state_of_choice()]
    weights = np.where(is_test, 0.5, weights)
    found, _ = both([always("b"), weights])
    assert found.lower <= true_value(1) - true_value(0.5) <= found.upper
    assert found.upper - found.lower < 0.8 * (found.first.upper - found.first.lower)


@pytest.mark.night
def test_a_policy_is_no_better_than_itself():
    model, counts = agent()
    objective = pl.parse_property(ASKED, model)
    learned = pl.learn(model, counts, objectives=[Question(model, objective, always("b"), against=always("b"))])
    found = pl.difference(learned, ASKED, always("b"), always("b"))
    assert (found.lower, found.upper) == (0, 0)


@pytest.mark.slow
def test_bets_on_a_policy_against_itself_say_nothing_of_another_one():
    """The favourite of the pilot may be the rival itself, so that such a pair is pre-specified."""
    model, counts = agent(1000)
    objective = pl.parse_property(ASKED, model)
    learned = pl.learn(model, counts, objectives=[Question(model, objective, always("b"), against=always("b"))])
    found = pl.difference(learned, ASKED, always("a"), always("b"))
    assert found.lower < true_value(0) - true_value(1) < found.upper


def left(n=2000):
    """Return a table that runs leave with a probability of a quarter, and win otherwise, with data."""
    early = pd.DataFrame({"x": [0], "action": ["go"], "next_x": [1]})
    model = model_from_log(
        early, pl.LogFormat(states="x"), initial=0, ends=lambda s: s.x == 1, labels={"goal": lambda s: s.x == 1}
    )
    seen = pd.DataFrame({"x": 0, "action": "go", "next_x": [1, 1, 1, 7] * n})
    return model, pl.read_log(model, seen, order="time").counts


def outside():
    """Return bounds on the difference of a policy to one that does the same in the table, but may not outside."""
    model, counts = left()
    asked = 'Pmax=? [ F "goal" ]'
    policy = np.asarray(model.graph.first_choice[:-1])
    question = Question(model, pl.parse_property(asked, model), policy, against=policy)
    return pl.difference(pl.learn(model, counts, objectives=[question], confidence=0.95), asked, policy, policy)


@pytest.mark.slow
def test_what_two_policies_do_outside_of_the_table_may_differ():
    found = outside()
    assert found.lower < -0.25
    assert found.upper > 0.25
    assert found.upper - found.lower < 0.6


def test_mergers_outside_of_the_table_are_found(monkeypatch):
    monkeypatch.setattr(values, "_HERS", values._HERS[:1] * 2)
    assert outside().upper < 0.25
