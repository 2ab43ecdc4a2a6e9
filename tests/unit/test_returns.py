"""Returns of whole runs: against the values of all runs there are, and every kind of run that is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from support.refusals import rows

import plumdp as pl
from plumdp.data.returns import (
    choices_of,
    ends_of,
    outcomes_of,
    range_of,
    reach_returns,
    reward_returns,
    taken_somewhere,
)
from plumdp.data.trajectories import record
from plumdp.data.whole_runs import read_whole_runs
from plumdp.model.objectives import Reach
from plumdp.model.question import as_objective, ask
from plumdp.solver.coupled.gradient import policy_gradient
from plumdp.watching.certified import certified_question

POINT, SEVEN = {"p": 0.45}, 7


def gambler():
    """Return a gambler with 0 to 4 coins, who bets one or all until ruined or rich, and pays to stay in the game."""
    (p,) = pl.parameters("p")

    def step(state):
        if state.coins in (0, 4):
            return {"stop": [(1, state)]}
        stakes = {"one": 1, "all": min(state.coins, 4 - state.coins)}
        return {
            name: [(p, state._replace(coins=state.coins + bet)), (1 - p, state._replace(coins=state.coins - bet))]
            for name, bet in stakes.items()
        }

    labels = {
        "rich": lambda s: s.coins == 4,
        "ruined": lambda s: s.coins == 0,
        "over": lambda s: s.coins in (0, 4),
        "two": lambda s: s.coins == 2,
    }
    per_bet = {"bets": lambda s, a: 0 if a == "stop" else 2 if a == "all" else 1}
    rewards = {"pays": lambda s: s.coins - 1.5}
    space = pl.ParameterSpace.box({"p": (0.1, 0.9)})
    return pl.explore(step, {"coins": 1}, space=space, labels=labels, rewards=rewards, choice_rewards=per_bet)


MODEL = gambler()


def certified(objective, *, runs=300, **options):
    counts = pl.simulate(MODEL, POINT, runs, rng=1, max_steps=30)
    return pl.certify(MODEL, counts, objective, **options)


def frame(runs, form="transitions"):
    return pd.DataFrame(runs.columns(form))


def followed(policy, n=400, *, rng=2, max_steps=60, point=POINT):
    return frame(record(MODEL, point, n, rng=rng, max_steps=max_steps, policy=policy))


def outcomes(found, log, *, expected=None, return_range=None):
    """Return what runs under a certified policy earned, as shares of the range."""
    runs, policy = read_whole_runs(MODEL, log, expected=expected), found.policy
    objective = certified_question(found, MODEL)
    return outcomes_of(objective, MODEL, runs, policy.graph, policy, return_range=return_range)


def all_runs(policy, objective, n_steps):
    """Return every run of so many steps at most under a policy as a log, and the probability of each."""
    product = policy.graph
    chance = ask(objective, MODEL, memory=product.memory is not None).model
    probability = chance.probabilities(POINT)[chance.expression]
    names = [*MODEL.graph.states]
    rows, weights = [], []

    def walk(state, path, weight):
        own = {name: product.states[name][state].item() for name in names}
        if len(path) == n_steps:
            rows.extend({"episode": len(weights), **row} for row in [*path, {"step": n_steps, **own, "action": None}])
            weights.append(weight)
            return
        choice = int(policy.choice[state])
        taken = {"step": len(path), **own, "action": product.action_names[product.action[choice]]}
        for transition in range(*product.first_transition[choice : choice + 2].tolist()):
            walk(int(product.successor[transition]), [*path, taken], weight * probability[transition])

    walk(product.initial_state, [], 1.0)
    return pd.DataFrame(rows), np.array(weights)


@pytest.mark.parametrize(("text", "is_decided"), rows("properties:of_all_runs"))
def test_the_average_return_of_all_runs_is_the_value(text, is_decided):
    """Runs are cut after seven steps: of properties that need no more, the average is the value, else it is between."""
    policy = certified(text).policy
    log, weights = all_runs(policy, text, SEVEN)
    objective, runs = as_objective(text, MODEL), read_whole_runs(MODEL, log)
    ends = ends_of(objective, runs, MODEL.graph, None)
    choice, may_take = choices_of(policy.graph, policy, MODEL, runs, ends), taken_somewhere(policy.graph, policy, MODEL)
    if isinstance(objective, Reach):
        returns = reach_returns(objective, runs, ends)
    else:
        returns = reward_returns(objective, runs, ends, choice, MODEL.graph, may_take)
    asked = ask(text, MODEL, memory=policy.graph.memory is not None)
    value, _ = policy_gradient(asked.model, policy, asked.objective, np.array([POINT["p"]]))
    lower, upper = weights @ returns.lower, weights @ returns.upper
    assert lower - 1e-9 <= value <= upper + 1e-9
    assert returns.is_complete.all() or not is_decided
    if is_decided:
        assert upper - lower < 1e-12
    low, high = range_of(objective, MODEL.graph, may_take)
    assert low <= returns.lower.min()
    assert returns.upper.max() <= high


def test_a_run_that_goes_where_nothing_is_known_is_not_complete():
    policy, elsewhere = certified('Pmax=? [ F "rich" ]').policy, int(np.argmax(MODEL.graph.states["coins"] == 0))
    objective, runs = as_objective('Pmax=? [ F "rich" ]', MODEL), read_whole_runs(MODEL, followed(policy))
    returns = reach_returns(objective, runs, ends_of(objective, runs, MODEL.graph, elsewhere))
    is_ruined = runs.state[runs.first[1:] - 1] == elsewhere
    assert 0 < is_ruined.sum() < len(runs)
    assert np.array_equal(returns.is_complete, ~is_ruined)
    assert np.array_equal(returns.upper - returns.lower, is_ruined.astype(float))


def test_a_run_that_ended_too_early_counts_for_both_ends():
    found = certified('Pmax=? [ F "rich" ]')
    log = followed(found.policy)
    cut, whole = outcomes(found, log[(log.step < 1) | (log.episode % 5 > 0)]), outcomes(found, log)
    assert whole.is_complete.all()
    assert np.array_equal(whole.lower, whole.upper)
    early = ~cut.is_complete
    assert 0 < early.sum() < len(early)
    assert (cut.lower[early] == 0).all()
    assert (cut.upper[early] == 1).all()


@pytest.mark.parametrize(
    ("expected", "change", "told"),
    [
        (0, lambda log: log, "expected=0: give the number of runs that you expected, at least 1"),
        (300, lambda log: log.assign(episode="run " + log.episode.astype(str)), "runs need an order; number them"),
    ],
)
def test_a_number_of_runs_that_says_nothing_is_refused(expected, change, told):
    found = certified('Pmax=? [ F "rich" ]')
    with pytest.raises(pl.DataError, match=told):
        outcomes(found, change(followed(found.policy, 20)), expected=expected)


def test_steps_after_the_end_of_the_property_do_not_matter():
    found = certified('Pmax=? [ F "two" ]')
    log = followed(found.policy, 50)
    changed = log.assign(action=log.action.where(log.groupby("episode").coins.shift().isna(), "one"))
    after_two = log.groupby("episode").coins.transform(lambda coins: (coins == 2).cummax())
    mixed = log.assign(action=log.action.where(~after_two | (log.coins != 2), changed.action))
    assert np.array_equal(outcomes(found, mixed).lower, outcomes(found, log).lower)


@pytest.mark.slow
def test_rewards_need_a_range_that_holds():
    found = certified('R{"bets"}max=? [ F "over" ]')
    log = followed(found.policy)
    with pytest.raises(pl.DataError, match="say between which numbers all returns lie, with return_range"):
        outcomes(found, log)
    with pytest.raises(pl.DataError, match=r"its return is \d+, which is not between 0 and 2; give a range that holds"):
        outcomes(found, log, return_range=(0, 2))
    with pytest.raises(pl.DataError, match="the smaller one first"):
        outcomes(found, log, return_range=(9, 2))
    assert outcomes(found, log, return_range=(0, 200)).within == (0, 200)
    with pytest.raises(pl.DataError, match="returns of probabilities are 0 or 1; leave it out"):
        outcomes(certified('Pmax=? [ F "rich" ]'), log, return_range=(0, 1))


def test_another_action_than_the_policys_is_named():
    found = certified('Pmax=? [ F<=5 "rich" ]')
    log = followed(found.policy)
    own = log.action[0]
    log.loc[0, "action"] = "one" if own == "all" else "all"
    told = rf"run 0, step 0: in state \(coins=1, step=0\) the action is '{log.action[0]}', but the policy's is '{own}'"
    with pytest.raises(pl.DataError, match=told):
        outcomes(found, log)


def test_logs_that_are_not_whole_runs_from_the_start_are_refused():
    found = certified('Pmax=? [ F<=5 "rich" ]')
    log = frame(record(MODEL, POINT, 50, rng=3, max_steps=8, policy=found.policy))
    refused("types:whole_runs", lambda change: outcomes(found, eval(change, {"log": log, "pd": pd})), pl.DataError)


def test_certificates_without_bounds_or_of_other_models_are_refused():
    found = certified('Pmax=? [ F "rich" ]')
    other = pl.case_study("betting:5").model
    with pytest.raises(pl.DataError, match="the certificate's policy is not on this model"):
        certified_question(found, other)
    with pytest.raises(pl.DataError, match="has no text"):
        certified_question(replace(found, claim=replace(found.claim, objective="")), MODEL)
