"""Certificates of tables through the public names: every kind of objective, policies, files, findings and reports."""

from functools import cache

import numpy as np
import pytest
from shorthand import certify_all, explain
from table_cases import values_at

import plumdp as pl
from plumdp.data.counts import Pilot, PilotEnd, TransitionCounts
from plumdp.model.question import ask
from plumdp.result.certificate import fingerprint_of
from plumdp.result.show import as_text
from plumdp.solver.coupled.chain import policy_chain
from plumdp.tables.chain import table_chain
from plumdp.tables.table_set import table_budget

REACH = 'Pmax=? [ F "goal" ]'
FREE = [REACH, 'Pmin=? [ F "goal" ]', 'Pmax=? [ !"bad" U "goal" ]', 'Pmax=? [ G !"bad" ]', 'Pmin=? [ G !"bad" ]']
REWARDS = ['R{"time"}min=? [ F "end" ]', 'R{"time"}max=? [ F "end" ]', 'R{"time"}max=? [ Cdiscount=0.9 ]']


def step(s):
    """A walk of which each row is unknown; waiting is unknown, too, and tied."""
    if s.x in (0, 4):
        return {"stay": [(1, s)]}
    up, down = s._replace(x=s.x + 1), s._replace(x=s.x - 1)
    return {"go": pl.unknown(up, down), "wait": pl.unknown(up, s, down, row="wait")}


@cache
def data(n_runs=20000, *, pilot=True):
    """Return the model, its true probabilities, and data."""
    labels = {"goal": lambda s: s.x == 4, "bad": lambda s: s.x == 0, "end": lambda s: s.x in (0, 4)}
    model = pl.explore(step, {"x": 2}, labels=labels, rewards={"time": lambda s: float(s.x not in (0, 4))})
    row = {"go": [0.4, 0.6], "wait": [0.35, 0.4, 0.25], "stay": [1.0]}
    graph = model.graph
    names = [graph.action_names[a] for a in graph.action]
    point = np.concatenate([row[name] for name in names])
    counts = pl.simulate(model, point, n_runs, rng=1, max_steps=60, stop=model.labels["end"], pilot=pilot)
    return model, point, counts


def true_value(model, point, text, policy):
    """Return the value of a policy by linear equations."""
    objective = ask(text, model).objective
    flipped = objective.flipped()
    chain = policy_chain(model, policy.choice, objective if flipped is None else flipped)
    table = table_chain(model, chain)
    graph = model.graph
    transitions = [t for s in chain.state[: chain.n_open] for t in graph.transitions_of(policy.choice[[s]])]
    value = values_at(table, point[transitions])[chain.initial]
    return value if flipped is None else 1 - value


@pytest.mark.parametrize("text", [*FREE, *REWARDS])
def test_the_bracket_has_the_value_of_its_policy_and_is_by_bets(text):
    model, point, counts = data()
    found = pl.certify(model, counts, text, confidence=0.95)
    assert found.lower <= true_value(model, point, text, found.policy) <= found.upper
    assert type(found.lower) is type(found.upper) is float
    alone = pl.certify(model, counts, text, confidence=0.95, relaxation="interval", policy=found.policy)
    assert found.upper - found.lower < 0.8 * (alone.upper - alone.lower)
    assert "bets on temporal differences" in as_text(found, in_full=True)


def test_steps_that_are_bounded_have_bets_if_they_are_counted_and_else_intervals_and_the_reason():
    """The product with a counter has the rows of the table, each tied for all steps."""
    model, _, counts = data()
    counting, forgetting = (
        pl.certify(model, counts, ask('Pmax=? [ F<=7 "goal" ]', model, memory=m)) for m in (True, False)
    )
    assert counting.beside.gap["statistics"] > 0
    assert counting.lower > forgetting.lower
    assert "number of steps is bounded" in as_text(forgetting, in_full=True)


def test_a_policy_that_was_prespecified_has_bets_of_its_own_and_the_certificate_says_so():
    model, point, counts = data()
    waits = pl.PolicyTable(model.graph, model.graph.first_choice[1:] - 1)
    found = pl.certify(model, counts, REACH, policy=waits, prespecified=True)
    assert found.lower <= true_value(model, point, REACH, waits) <= found.upper
    assert "the objectives were chosen before looking at the data" in found.rests_on.assumptions
    assert "bets on the value of this policy, and each row within its intervals" in as_text(found, in_full=True)


@pytest.mark.parametrize("text", [*FREE, *REWARDS[:2]])
def test_a_policy_that_draws_has_bets_of_its_own(text):
    """Its true value is that of the chain whose rows are mixtures of those of its actions."""
    model, point, counts = data()
    weights = np.where(np.diff(model.graph.first_choice)[model.graph.state_of_choice()] == 1, 1.0, 0.3)
    weights[model.graph.first_choice[:3] + 1] = 0.7
    found = pl.certify(model, counts, text, policy=weights, prespecified=True, confidence=0.95)
    alone = pl.certify(model, counts, text, policy=weights, confidence=0.95, relaxation="interval")
    mixed = np.zeros((5, 5))
    taken = point * weights[model.graph.choice_of_transition()]
    np.add.at(mixed, (model.graph.state_of_choice()[model.graph.choice_of_transition()], model.graph.successor), taken)
    x = model.graph.states["x"]
    inner, goal, time = np.flatnonzero((x > 0) & (x < 4)), x == (0 if "G" in text else 4), "time" in text
    gain = np.ones(3) if time else mixed[inner] @ goal
    at = np.linalg.solve(np.eye(3) - mixed[np.ix_(inner, inner)], gain)[inner == model.graph.initial_state].item()
    assert found.lower <= (1 - at if "G" in text else at) <= found.upper
    assert found.upper - found.lower < 0.8 * (alone.upper - alone.lower)
    assert "bets on temporal differences" in as_text(found, in_full=True)


@pytest.mark.parametrize("policy", ["go", "uniform"])
def test_a_policy_that_was_given_is_explained_from_model_and_counts(policy):
    """It is learned again with the same policy pre-specified, and gives the same certificate to the last bit."""
    model, _, counts = data()
    found = pl.certify(model, counts, REACH, policy=policy, prespecified=True)
    assert explain(model, counts, found).about == fingerprint_of(found)
    with pytest.raises(pl.DataError, match="other counts"):
        explain(model, data(n_runs=2000)[2], found)


def test_the_certificate_says_which_data_placed_the_first_bets():
    """Of 20,000 planned runs, the longest moment that leaves three times as much is after 4,096 of them."""
    model, _, counts = data()
    lengths, moments = counts.pilot.lengths, counts.pilot.moments
    first = max(i for i, n in enumerate(lengths) if 4 * n <= 20000)
    placed = f"earlier data decided how later ones are used: the first {moments[first].sum():,} steps to begin with,"
    assert placed in as_text(pl.certify(model, counts, REACH), in_full=True)
    assert first > 0


def test_several_objectives_share_the_error():
    model, point, counts = data()
    alone = [pl.certify(model, counts, text) for text in (REACH, REWARDS[0])]
    both = certify_all(model, counts, [REACH, REWARDS[0]])
    for one, joint, text in zip(alone, both, (REACH, REWARDS[0]), strict=True):
        assert joint.lower <= true_value(model, point, text, joint.policy) <= joint.upper
        assert joint.upper - joint.lower > one.upper - one.lower


def test_policies_that_were_not_prespecified_have_intervals_alone():
    model, _, counts = data()
    learned = pl.learn(model, counts, objectives=[REACH])
    assert "bets are placed on policies that the first data name" in as_text(
        pl.conclude(learned, FREE[1]), in_full=True
    )
    given = pl.conclude(learned, REACH, policy=model.graph.first_choice[:-1])
    assert given.how.to_narrow == (
        "to get narrower bounds: say prespecified=True if these data did not choose the policy; "
        "then bets are placed on it"
    )
    nothing = pl.learn(model, data(pilot=False)[2], objectives=[REACH])
    assert "the order of the data is not known" in as_text(pl.conclude(nothing, REACH), in_full=True)


def test_a_question_of_yes_or_no_is_decided_and_policies_are_compared():
    model, _, counts = data()
    learned = pl.learn(model, counts, objectives=[REACH])
    assert str(pl.decide(learned, 'Pmax>=0.1 [ F "goal" ]')).startswith("Yes")
    found = pl.conclude(learned, REACH)
    assert pl.difference(learned, REACH, found.policy, found.policy) is not None


def test_nothing_seen_is_nothing_certified():
    model, _, counts = data()
    nothing = TransitionCounts(model.graph, 0 * counts.counts, "adaptive")
    assert str(pl.certify(model, nothing, REACH)).startswith("Inconclusive")


def test_data_that_may_end_at_will_divide_the_error_in_the_same_way_before_the_first_bet():
    """Otherwise whoever looks early and goes on has more than one error: intervals of all of it, and bets."""
    _, _, counts = data()
    empty = Pilot(0 * counts.counts, PilotEnd.POWER_OF_FOUR)
    later = Pilot(counts.pilot.counts, PilotEnd.POWER_OF_FOUR)
    assert table_budget(empty, is_asked=True) == table_budget(later, is_asked=True)
    assert table_budget(empty, is_asked=True)["value_bets"]
