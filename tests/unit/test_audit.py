"""Audits by new runs: returns against the values of all runs there are, and every kind of run that is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from support.refusals import rows

import plumdp as pl
from plumdp.data.returns import choices_of, ends_of, range_of, reach_returns, reward_returns, taken_somewhere
from plumdp.data.trajectories import record
from plumdp.data.whole_runs import read_whole_runs
from plumdp.decisions import audit, runs_to_audit
from plumdp.model.language.property import as_objective
from plumdp.model.objectives import Reach
from plumdp.model.question import ask
from plumdp.solver.coupled.gradient import policy_gradient

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


@pytest.mark.slow
@pytest.mark.parametrize("form", ["transitions", "trajectories"])
@pytest.mark.parametrize("text", ['Pmax=? [ F "rich" ]', 'Pmax=? [ F<=5 "rich" ]'])
def test_runs_under_the_policy_agree_and_other_chances_contradict(text, form):
    found = certified(text, runs=3000)
    runs = record(MODEL, POINT, 2000, rng=2, max_steps=60, policy=found.policy)
    same = audit(found, MODEL, frame(runs, form))
    assert (same.verdict, same.n_runs, same.n_incomplete) == ("not contradicted", 2000, 0)
    assert same.lower < found.upper
    assert same.upper > found.lower
    other = audit(found, MODEL, followed(found.policy, 2000, point={"p": 0.6}))
    assert other.verdict == "contradicted"
    assert other.p_value < 1e-6
    assert str(other).startswith("2,000 runs under the policy: value between 0.")
    assert ", from these runs alone; they contradict the certificate (between 0." in other.sentence


def test_a_run_that_ended_too_early_counts_for_both_ends():
    found = certified('Pmax=? [ F "rich" ]')
    log = followed(found.policy)
    cut = audit(found, MODEL, log[(log.step < 1) | (log.episode % 5 > 0)])
    whole = audit(found, MODEL, log)
    assert cut.n_incomplete > 0 == whole.n_incomplete
    assert cut.lower < whole.lower < whole.upper < cut.upper
    assert cut.assumptions[-1].endswith("ended too early and may have had any return that is still possible")


def test_runs_that_were_announced_say_more_and_say_what_that_assumes():
    found = certified('Pmax=? [ F "rich" ]', runs=3000)
    log = followed(found.policy, 300)
    open_end, announced = (audit(found, MODEL, log, confidence=0.95, expected=each) for each in (None, 300))
    assert announced.upper - announced.lower < 0.75 * (open_end.upper - open_end.lower)
    assert announced.visible < 0.85 * open_end.visible
    assert announced.verdict == "not contradicted"
    assert any(each.startswith("you announced 300 runs before there were any; ") for each in announced.assumptions)
    other = audit(found, MODEL, followed(found.policy, 300, point={"p": 0.8}), expected=300)
    assert (other.verdict, other.p_value < 1e-3) == ("contradicted", True)


@pytest.mark.parametrize(
    ("expected", "change", "told"),
    [
        (0, lambda log: log, "expected=0: give the number of runs that you announced, at least 1"),
        (300, lambda log: log.assign(episode="run " + log.episode.astype(str)), "runs need an order; number them"),
    ],
)
def test_a_number_of_runs_that_says_nothing_is_refused(expected, change, told):
    found = certified('Pmax=? [ F "rich" ]')
    with pytest.raises(pl.DataError, match=told):
        audit(found, MODEL, change(followed(found.policy, 20)), expected=expected)


def test_steps_after_the_end_of_the_property_do_not_matter():
    found = certified('Pmax=? [ F "two" ]')
    log = followed(found.policy, 50)
    changed = log.assign(action=log.action.where(log.groupby("episode").coins.shift().isna(), "one"))
    after_two = log.groupby("episode").coins.transform(lambda coins: (coins == 2).cummax())
    mixed = log.assign(action=log.action.where(~after_two | (log.coins != 2), changed.action))
    assert audit(found, MODEL, mixed).to_dict() == audit(found, MODEL, log).to_dict()


@pytest.mark.slow
def test_rewards_need_a_range_that_holds():
    found = certified('R{"bets"}max=? [ F "over" ]')
    log = followed(found.policy)
    with pytest.raises(pl.DataError, match="say between which numbers all returns lie, with return_range"):
        audit(found, MODEL, log)
    with pytest.raises(pl.DataError, match=r"its return is \d+, which is not between 0 and 2; give a range that holds"):
        audit(found, MODEL, log, return_range=(0, 2))
    with pytest.raises(pl.DataError, match="the smaller one first"):
        audit(found, MODEL, log, return_range=(9, 2))
    assert audit(found, MODEL, log, return_range=(0, 200)).verdict == "not contradicted"
    with pytest.raises(pl.DataError, match="returns of probabilities are 0 or 1; leave it out"):
        audit(certified('Pmax=? [ F "rich" ]'), MODEL, log, return_range=(0, 1))


def test_another_action_than_the_policys_is_named():
    found = certified('Pmax=? [ F<=5 "rich" ]')
    log = followed(found.policy)
    own = log.action[0]
    log.loc[0, "action"] = "one" if own == "all" else "all"
    told = rf"run 0, step 0: in state \(coins=1, step=0\) the action is '{log.action[0]}', but the policy's is '{own}'"
    with pytest.raises(pl.DataError, match=told):
        audit(found, MODEL, log)


def test_logs_that_are_not_whole_runs_from_the_start_are_refused():
    found = certified('Pmax=? [ F<=5 "rich" ]')
    log = frame(record(MODEL, POINT, 50, rng=3, max_steps=8, policy=found.policy))
    refused("types:audited", lambda change: audit(found, MODEL, eval(change, {"log": log, "pd": pd})), pl.DataError)


def test_the_data_of_the_certificate_are_not_new(tmp_path):
    log = tmp_path / "runs.csv"
    followed("one").to_csv(log, index=False)
    found = pl.certify(MODEL, pl.read_log(MODEL, log), 'Pmax=? [ F "rich" ]', policy="one")
    with pytest.raises(pl.DataError, match=r"runs\.csv: the certificate was made from these data; an audit needs new"):
        audit(found, MODEL, log)


def test_a_policy_that_draws_is_audited_and_says_what_that_assumes():
    found = certified('Pmax=? [ F "rich" ]', policy="uniform")
    made = audit(found, MODEL, followed("uniform"))
    assert made.verdict == "not contradicted"
    assert "where the policy draws its action, it was drawn with these probabilities" in made.assumptions


def test_certificates_without_bounds_or_of_other_models_are_refused():
    found = certified('Pmax=? [ F "rich" ]')
    other = pl.case_study("betting:5").model
    with pytest.raises(pl.DataError, match="the certificate's policy is not on this model"):
        audit(found, other, followed(found.policy))
    with pytest.raises(pl.DataError, match="has no text"):
        audit(replace(found, objective=""), MODEL, followed(found.policy))


def test_plans_are_for_deviations_that_there_can_be():
    found = certified('Pmax=? [ F "rich" ]')
    assert runs_to_audit(found, MODEL, 0.2) < runs_to_audit(found, MODEL, 0.02)
    assert runs_to_audit(found, MODEL, 0.02, spread=0.1) < runs_to_audit(found, MODEL, 0.02)
    for deviation, told in ((0.99, "no value between 0 and 1 is so far outside"), (-1.0, "a number above 0")):
        with pytest.raises(pl.DataError, match=told):
            runs_to_audit(found, MODEL, deviation)
