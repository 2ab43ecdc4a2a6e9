"""Whole runs of pre-specified policies as evidence: what they add to tables, what they cost, and what is refused."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from paid_models import COST, one_payment
from scipy.stats import binom
from tiers import size

import plumdp as pl
from plumdp.certifying.pipeline import prespecifying
from plumdp.cli.results import Result
from plumdp.data import read_whole_runs, record
from plumdp.learning.run_ends import RunEnds
from plumdp.model import Question
from plumdp.model.question import as_objective, ask

GOAL = 'Pmax=? [ F "goal" ]'


def walk(state):
    if state.x in (0, 4):
        return {"stay": [(1, state)]}
    up, down = state._replace(x=state.x + 1), state._replace(x=state.x - 1)
    return {"walk": pl.unknown(up, down), "run": pl.unknown(up, down)}


TABLE = pl.explore(walk, {"x": 2}, labels={"goal": lambda s: s.x == 4, "end": lambda s: s.x in (0, 4)})
UP = {"walk": 0.5, "run": 0.6}
TRUTH = {name: 1 / (1 + ((1 - p) / p) ** 2) for name, p in UP.items()}  # the gambler's ruin, from 2 of 4


def chances():
    graph, x = TABLE.graph, TABLE.graph.states["x"]
    action = np.array(graph.action_names)[graph.action[graph.choice_of_transition()]]
    goes_up = x[graph.successor] > x[graph.state_of_choice()[graph.choice_of_transition()]]
    up = np.array([UP.get(name, 1.0) for name in action])
    return np.where(action == "stay", 1.0, np.where(goes_up, up, 1 - up))


def log_of(n, seed, chance=0.5):
    """Return a log of runs of the arms A, which runs, and B, which walks; one is drawn for each run."""
    is_first = np.random.default_rng(seed).random(n) < chance
    parts = []
    for arm, own, policy, p in (("A", is_first, "run", chance), ("B", ~is_first, "walk", 1 - chance)):
        made = record(TABLE, chances(), int(own.sum()), rng=[seed, ord(arm)], max_steps=300, policy=policy,
                      stop=TABLE.labels["end"])  # fmt: skip
        frame = pd.DataFrame(made.columns("transitions"))
        parts.append(frame.assign(episode=np.flatnonzero(own)[frame.episode], arm=arm, p=p))
    return pd.concat(parts).sort_values(["episode", "step"], ignore_index=True)


def asked(runs, **policies):
    return Question(TABLE, as_objective(GOAL, TABLE), runs=runs, **policies)


def difference(log, *, confidence=0.95, runs=None, n=100):
    counts = pl.read_log(TABLE, log, order="runs", expected=n)
    question = asked(runs, policy="run", against="walk")
    learned = pl.learn(TABLE, counts, objectives=[question], confidence=confidence)
    return pl.difference(learned, GOAL, "run", "walk")


def test_few_runs_of_a_table_are_worth_most_as_whole_runs():
    n = 100
    log = log_of(n, 1)
    runs = read_whole_runs(TABLE, log, pl.LogFormat(columns={"arm": "arm", "chance": "p"}), expected=n)
    without, found = difference(log), difference(log, runs=runs.of("A", "B"))
    drawn, apart = (
        found.upper - found.lower,
        difference(log, runs=read_whole_runs(TABLE, log, pl.LogFormat(columns={"arm": "arm"})).of("A", "B")),
    )
    normal = 2 * 1.96 * np.sqrt(sum(p * (1 - p) for p in TRUTH.values()) / (n / 2))
    assert drawn < 1.4 * normal < without.upper - without.lower
    assert drawn < apart.upper - apart.lower < without.upper - without.lower
    assert found.lower <= TRUTH["run"] - TRUTH["walk"] <= found.upper
    budget = dict(found.first.how.budget)
    assert sum(budget.values()) <= 1.05  # 0.05 of which are spent only if the model is wrong
    assert 0.6 < budget["bets on whole runs"] < 0.8
    assert [rung.ground for rung in found.rungs] == ["whole runs", "rows"]
    assert sum(rung.share for rung in found.rungs) == 1
    said = "; ".join(found.first.rests_on.assumptions)
    for words in ("you pre-specified 100 runs", "the policy of each run was written down before",
        "drawn with the chance",
                  "you chose the policy before looking at any of these runs",
                  "nothing changed from the first run"):  # fmt: skip
        assert words in said
    assert "depends only on the state" not in said  # which is a premise of the model's rung alone
    assert any("depends only on the state" in each for each in found.rungs[1].premises)


def test_the_share_of_runs_is_fixed_by_the_question_and_not_by_what_came():
    log = log_of(60, 2)
    shares = []
    for expected in (60, 10_000):
        runs = read_whole_runs(TABLE, log, pl.LogFormat(columns={"arm": "arm"}), expected=expected)
        counts = pl.read_log(TABLE, log, order="runs", expected=expected)
        question = asked(runs.of("A"), policy="run")
        shares.append(float(pl.learn(TABLE, counts, objectives=[question]).budget["run_bets"]))
        learned = pl.learn(TABLE, counts, objectives=[asked(None, policy="run")])
        assert not learned.budget["run_bets"]
        assert not learned.bounds.of_kind(RunEnds)
    assert shares[0] == shares[1] > 0.6


def test_how_many_runs_were_prespecified_does_not_depend_on_which_arms_came():
    """Who ends the data before the first run of another arm would choose the sizes of bets."""
    log = log_of(30, 6)
    alone, both = (
        read_whole_runs(TABLE, each, pl.LogFormat(columns={"arm": "arm"}), expected=40).of("A")
        for each in (log[log.arm == "A"], log)
    )
    assert alone.expected == both.expected == 40


def test_tasks_are_told_apart_if_arms_are_drawn_with_any_chance():
    """1 - 0.7 is not the float 0.3."""
    log = log_of(60, 7, chance=0.3).assign(task=lambda each: each.episode % 2)
    runs = read_whole_runs(
        TABLE, log, pl.LogFormat(columns={"arm": "arm", "chance": "p", "task": "task"}), expected=60
    ).of("A", "B")
    found = difference(log, runs=runs)
    assert found.lower <= TRUTH["run"] - TRUTH["walk"] <= found.upper


@pytest.mark.night
def test_values_by_whole_runs_are_missed_as_rarely_as_said():
    n, missed, error = size(30, 2000), 0, 0.5
    for seed in range(n):
        log = log_of(40, seed)
        runs = read_whole_runs(TABLE, log, pl.LogFormat(columns={"arm": "arm"}), expected=20).of("A")
        counts = pl.read_log(TABLE, log, order="runs", expected=40)
        found = pl.certify(TABLE, counts, prespecifying(ask(GOAL, TABLE), "run", runs=runs), confidence=1 - error)
        missed += not found.lower <= TRUTH["run"] <= found.upper
    assert missed <= binom.ppf(0.999, n, error)


def test_runs_say_what_they_say_whatever_the_model_is():
    """All rows are tied by a model that is wrong, so that its bounds are: the runs contradict it."""
    log = log_of(600, 3)
    (p,) = pl.parameters("p")

    def step(state):
        if state.x in (0, 4):
            return {"stay": [(1, state)]}
        up, down = state._replace(x=state.x + 1), state._replace(x=state.x - 1)
        return {"walk": [(p, up), (1 - p, down)], "run": [(p * 0.9, up), (1 - p * 0.9, down)]}

    wrong = pl.explore(step, {"x": 2}, space=pl.ParameterSpace.box({"p": (0.05, 0.95)}), labels={
        "goal": lambda s: s.x == 4})  # fmt: skip
    runs = read_whole_runs(wrong, log, pl.LogFormat(columns={"arm": "arm"}), expected=300).of("A")
    walked = log[log.arm == "B"]
    counts = pl.read_log(wrong, walked, order="runs", expected=300)
    found = pl.certify(wrong, counts, prespecifying(ask(GOAL, wrong), "run", runs=runs))
    said = (
        r"Premises rejected: whole runs alone say between 0\.59\S* and \S+, and the model says between \S+ and \S+, so "
    )
    assert re.match(said, found.headline)
    assert found.headline.endswith(" what is assumed of the runs or of the model is wrong. Nothing is claimed.")
    assert (found.status, found.lower, found.upper) == ("premises rejected", -np.inf, np.inf)
    assert Result(found).exit_code == 3
    assert "the model is correct for some values of its parameters" in found.rests_on.assumptions


def drawn(task, is_first, p, good, **also):
    """Return runs of one step each of a model with two actions, and what was asked of them."""
    end, arm = np.where(good, "good", "bad"), np.where(is_first, "A", "B")
    one = {"step": 0, "at": "new", "kind": "any", "action": arm, "next_at": end, "next_kind": "any", "arm": arm}
    return pd.DataFrame({"episode": range(len(good)), **one, "p": np.where(is_first, p, 1 - p), "task": task, **also})


def pick(state):
    if state.at != "new":
        return {"stay": [(1, state)]}
    ends = [state._replace(at="good"), state._replace(at="bad")]
    return {"A": pl.unknown(*ends), "B": pl.unknown(*ends)}


PICK = pl.explore(pick, {"at": "new", "kind": "any"})
GOOD = 'Pmax=? [ F at="good" ]'


def compared(log, *, about=PICK, n=400, **columns):
    runs = read_whole_runs(about, log, pl.LogFormat(columns={"arm": "arm", "chance": "p", **columns}), expected=n).of(
        "A", "B"
    )
    question = Question(about, as_objective(GOOD, about), "A", "B", runs=runs)
    counts = pl.read_log(about, log, order="runs", expected=n)
    return pl.difference(pl.learn(about, counts, objectives=[question], confidence=0.95), GOOD, "A", "B")


@pytest.mark.slow
def test_states_that_do_not_tell_the_chance_do_not_cut_what_whole_runs_say():
    """A ends well with 0.9 for easy tasks, 0.3 for hard ones, B with 0.8, 0.2; rows say that B is much better."""
    rng, n = np.random.default_rng(1), 400
    task = rng.integers(0, 2, n)
    p = np.array([0.2, 0.8])[task]
    is_first = rng.random(n) < p
    log = drawn(task, is_first, p, rng.random(n) < np.where(is_first, 0.1, 0.0) + np.array([0.8, 0.2])[task])
    for more in ({}, {"task": "task"}):
        found = compared(log, **more)
        assert found.lower <= 0.1 <= found.upper < found.lower + 0.5
        assert found.first.lower <= 0.6 <= found.first.upper
        assert found.second.lower <= 0.5 <= found.second.upper
        assert any("in the same state arms were drawn with different chances" in each.reason for each in found.rungs)
        assert "not certified" not in str(found)  # which rows of the model would say
    alike = log.assign(p=0.5)  # if this were true, rows of the model would count, which say 0.42 to 0.68
    assert compared(alike).is_claim
    assert compared(alike).upper < 0
    with pytest.raises(pl.DataError, match="drawn with a chance that differs from run to run"):
        read_whole_runs(PICK, log, pl.LogFormat(columns={"arm": "arm", "chance": "p"})).of("A")
    with pytest.raises(pl.DataError, match="say how many runs you expected"):
        compared(log, n=None)


def test_runs_that_exclude_each_other_contradict_what_is_assumed_of_runs_and_not_the_model():
    """Half of the runs end well with 0.02, then 0.98: beside one step or a thousand of other data."""
    n = 300
    good = np.random.default_rng(1).random(n) < np.repeat([0.02, 0.98], n // 2)
    log = drawn(0, np.ones(n, bool), 0.5, good)
    runs = read_whole_runs(PICK, log, pl.LogFormat(columns={"arm": "arm"}), expected=n).of("A")
    even = np.where(np.diff(PICK.graph.first_transition)[PICK.graph.choice_of_transition()] == 2, 0.5, 1.0)
    for size_of_others in (1, 1000):
        others = pl.simulate(PICK, even, size_of_others, rng=1, max_steps=1)
        found = pl.certify(PICK, others, prespecifying(ask(GOOD, PICK), "A", runs=runs))
        assert found.status == "premises rejected"
        assert found.headline.startswith("Premises rejected: whole runs put a value above 0.1")
        assert "the model test" not in found.headline
        assert not found.claim.claims_bounds
        assert "no sign that the model is wrong" in str(found)  # the model is not blamed


def test_whole_runs_speak_beside_a_table_without_counts():
    log = drawn(0, np.ones(300, bool), 0.5, np.random.default_rng(1).random(300) < 0.6)
    runs = read_whole_runs(PICK, log, pl.LogFormat(columns={"arm": "arm"}), expected=300).of("A")
    none = pl.read_log(PICK, log.iloc[:0]).counts
    found = pl.certify(PICK, none, prespecifying(ask(GOOD, PICK), "A", runs=runs))
    assert (found.status, found.lower < 0.6 < found.upper) == ("certified", True)
    assert pl.certify(PICK, none, GOOD, policy="A").status == "inconclusive"


def test_runs_of_arms_are_not_compared_with_practice():
    runs = read_whole_runs(TABLE, log_of(10, 1), pl.LogFormat(columns={"arm": "arm"})).of("A", "B")
    with pytest.raises(pl.ModelError, match="ask about practice alone"):
        asked(runs, policy="run", against="practice")


def test_logs_of_chains_need_no_actions():
    model = pl.explore(lambda s: {"wait": pl.unknown(s._replace(x=1), s) if s.x == 0 else [(1, s)]}, {"x": 0})
    log = pd.DataFrame({"episode": [1, 1, 1, 2, 2], "step": [0, 1, 2, 0, 1], "x": [0, 0, 1, 0, 1]})
    assert repr(read_whole_runs(model, log)) == "WholeRuns(2 runs, 3 steps)"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda log: log.assign(arm=log.arm.where(log.index != 1, "C")), "the arm of the run changes here"),
        (
            lambda log: log.assign(arm=log.arm.where(log.episode > 2)),
            "step 0: the arm of the run is missing, as in 3 of 30",
        ),
        (lambda log: log.assign(p=1.0), "a chance above 0 and below 1"),
        (lambda log: log.assign(p=1 / 3), "there were others: read their runs, too"),
        (lambda log: log.assign(action="walk"), "the action is 'walk', but the policy's is 'run'"),
    ],
)
def test_runs_of_no_arm_are_refused(change, told):
    def compared():
        runs = read_whole_runs(TABLE, change(log), pl.LogFormat(columns={"arm": "arm", "chance": "p"}), expected=30).of(
            "A", "B"
        )
        return difference(log, runs=runs)

    log = log_of(30, 4)
    with pytest.raises(pl.DataError, match=told):
        compared()


def test_runs_without_a_policy_that_was_there_before_are_refused():
    log = log_of(30, 5)
    counts, runs = pl.read_log(TABLE, log), read_whole_runs(TABLE, log, pl.LogFormat(columns={"arm": "arm"}))
    with pytest.raises(pl.DataError, match="runs of a policy that was there before; say prespecified=True"):
        pl.certify(TABLE, counts, replace(ask(GOAL, TABLE), runs=runs.of("A")), policy="run")
    with pytest.raises(pl.DataError, match=r'or of two arms in the order of their policies: runs\.of\("A", "B"\)'):
        pl.certify(TABLE, counts, prespecifying(ask(GOAL, TABLE), "run", runs=runs.of("A", "B")))
    with pytest.raises(pl.DataError, match="C: choose arms of A, B"):
        runs.of("C")
    chosen = pl.certify(TABLE, counts, GOAL).policy
    with pytest.raises(pl.DataError, match="the policy comes from a certificate of"):
        pl.certify(TABLE, counts, prespecifying(ask(GOAL, TABLE), chosen, runs=runs.of("A")))


def test_runs_do_not_show_rewards_that_are_learned():
    model = one_payment()
    log = pd.DataFrame({"episode": range(20), "step": 0, "x": 0, "action": "go", "next_x": 1, "cost": 0.5})
    counts, runs = pl.read_log(model, log, order="runs"), read_whole_runs(model, log, expected=20)
    with pytest.raises(pl.DataError, match="rewards that depend on parameters are not read from a log"):
        pl.certify(model, counts, prespecifying(ask(COST, model), "go", runs=runs))


def test_a_missing_week_shows_in_whole_runs_if_steps_are_weeks():
    rows = [(run, week, "new", "A") for run in range(3) for week in range(3) if (run, week) != (1, 1)]
    log = pd.DataFrame(rows, columns=["episode", "step", "at", "action"]).assign(kind="any")
    log["step"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(7 * log.step, unit="D")
    assert read_whole_runs(PICK, log).only_ordered
    with pytest.raises(pl.DataError, match=r"run 1, step .*: the row of the step before is missing"):
        read_whole_runs(PICK, log, pl.LogFormat(steps="weekly"))
    assert not read_whole_runs(PICK, log[log.episode != 1], pl.LogFormat(steps="weekly")).only_ordered
