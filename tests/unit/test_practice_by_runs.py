"""Practice is its whole runs, also where another policy is compared with it by the rows of a model."""

import json
import tomllib
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import prod
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import plumdp
from in_format import in_format
from scipy.stats import binom
from tiers import size

import plumdp as pl
from plumdp import LogFormat
from plumdp.base.errors import DataError
from plumdp.certifying.pipeline import comparing
from plumdp.data import read_whole_runs
from plumdp.data.returns import outcomes_of
from plumdp.data.run_record import WholeRuns
from plumdp.learning.run_ends import RunEnds
from plumdp.learning.run_evidence import missed_by_group
from plumdp.model.policy import normalised
from plumdp.model.question import as_objective, ask
from plumdp.reporting.read import explain_result
from plumdp.result.rungs import Ground
from plumdp.starting.proposal import is_price_list

STEPS, FAILS, MENDED, COST = (
    6,
    0.3,
    0.9,
    {("ok", "run"): 0.0, ("ok", "mend"): 2.0, ("bad", "run"): 5.0, ("bad", "mend"): 3.0},
)
ASKED = f'R{{"cost"}}min=? [ C<={STEPS} ]'
OFTEN = {"ok": 0.1, "bad": 0.6}  # how often practice mends


def step(state):
    after = pl.unknown(state._replace(state="ok"), state._replace(state="bad"))
    return {"run": after, "mend": after}


MACHINE = pl.explore(step, {"state": "ok"}, choice_rewards={"cost": lambda state, action: COST[state.state, action]})


def rule(state):
    return "run" if state.state == "ok" else "mend"


def bad_after(state, action):
    return 1 - MENDED if action == "mend" else FAILS if state == "ok" else 1.0


@cache
def value(policy):
    """Return the exact mean of what six steps cost."""
    bad, total = 0.0, 0.0
    for _ in range(STEPS):
        after = 0.0
        for state, p in (("ok", 1 - bad), ("bad", bad)):
            mends = OFTEN[state] if policy == "practice" else float(state == "bad")
            for action, share in (("mend", mends), ("run", 1 - mends)):
                total += p * share * COST[state, action]
                after += p * share * bad_after(state, action)
        bad = after
    return total


def log_of(n, rng, *, missing=0.0, together=True, steps=STEPS):
    """Return the log of machines that are looked at each week, all from one Monday on, or each from another one."""
    rows, monday = [], pd.Timestamp("2024-01-01")
    for machine in range(1, n + 1):
        state, begins = "ok", 0 if together else machine
        for t in range(steps + 1):
            action = "mend" if rng.random() < OFTEN[state] else "run"
            if t in (0, steps) or rng.random() >= missing:
                rows.append((machine, monday + pd.Timedelta(weeks=begins + t), state, action))
            state = "bad" if rng.random() < bad_after(state, action) else "ok"
    return pd.DataFrame(rows, columns=["episode", "step", "state", "action"])


def read(log, **how):
    return pl.read_log(MACHINE, log, on_unmatched="report", **in_format(steps="weekly", censoring="unrelated", **how))


def compared(log, error=0.05, *, against="practice", cap=None, **how):
    (asked,) = comparing(ask(ASKED, MACHINE, memory=True), rule, against, prespecified=True)
    learned = pl.learn(MACHINE, read(log, **how).capped(cap), objectives=[asked], confidence=1 - error)
    return learned, pl.difference(learned, ASKED, rule, against, names=("the rule", "practice"))


def test_the_difference_is_that_of_a_rule_by_rows_and_of_practice_by_its_runs():
    learned, found = compared(log_of(200, np.random.default_rng(1)))
    apart, rows = sorted(found.rungs, key=lambda each: each.ground != Ground.RIVAL_RUNS)
    by_rows, practice = (pl.conclude(learned, ASKED, policy=policy) for policy in (rule, "practice"))
    assert (by_rows.claim.ground, practice.claim.ground) == ("rows", "whole runs")
    assert apart.lower == np.nextafter(by_rows.lower - practice.upper, -np.inf)
    assert apart.upper == np.nextafter(by_rows.upper - practice.lower, np.inf)
    assert {*by_rows.rests_on.assumptions} | {*practice.rests_on.assumptions} == {*apart.premises}
    assert apart.share == learned.budget["run_bets"]
    assert apart.share + rows.share == 1
    assert (rows.guarantee, apart.guarantee) == ("finite-sample, anytime", practice.claim.guarantee)
    assert apart.guarantee == "finite-sample, fixed N"
    assert learned.budget.total <= 1
    assert practice.lower <= value("practice") <= practice.upper
    assert apart.lower <= value("rule") - value("practice") <= apart.upper
    assert "runs of one policy" in [each["ground"] for each in json.loads(json.dumps(found.to_dict()))["rungs"]]


def test_either_of_two_policies_may_be_practice_by_its_runs():
    log = log_of(100, np.random.default_rng(2))
    (asked,) = comparing(ask(ASKED, MACHINE, memory=True), "practice", rule, prespecified=True)
    learned = pl.learn(MACHINE, read(log), objectives=[asked], confidence=0.95)
    turned, found = pl.difference(learned, ASKED, "practice", rule), pl.difference(learned, ASKED, rule, "practice")
    assert (turned.lower, turned.upper) == (-found.upper, -found.lower)
    assert turned.headline.startswith(("Certified, if the model is right", "Inconclusive"))


def test_runs_with_missing_rows_are_kept_and_the_premise_says_so():
    log = log_of(120, np.random.default_rng(3), missing=0.1)
    with pytest.raises(DataError, match="the row of the step before is missing"):
        read_whole_runs(MACHINE, log, pl.LogFormat(steps="weekly"))
    runs = read_whole_runs(MACHINE, log, pl.LogFormat(steps="weekly"), on_unmatched="report")
    rows = log.groupby("episode").size()
    assert [*runs.names] == [*rows.index]
    assert np.diff(runs.first).tolist() == rows.tolist()
    assert (runs.time[runs.first[1:] - 1] == STEPS).all()  # a step over a gap is as long as the gap
    n_torn = int((rows < STEPS + 1).sum())
    assert 0 < n_torn < 120
    found = pl.certify(MACHINE, read(log), ASKED, policy="practice", confidence=0.95)
    (said,) = (text for text in found.rests_on.assumptions if "likely to be missing" in text)
    assert f"({n_torn} runs, whose other rows count" in said
    assert found.claim.ground == "whole runs"
    assert found.lower <= value("practice") <= found.upper
    complete = pl.certify(MACHINE, read(log_of(120, np.random.default_rng(3))), ASKED, policy="practice")
    assert not any("likely to be missing" in text for text in complete.rests_on.assumptions)


def test_of_a_probability_runs_with_missing_rows_are_left_out():
    log = log_of(120, np.random.default_rng(3), missing=0.1)
    n_torn = int((log.groupby("episode").size() < STEPS + 1).sum())
    left = f"that a row is missing in {n_torn} of 120 runs, which are left out, has nothing to do with how these runs"
    found = pl.certify(MACHINE, read(log), f'Pmax=? [ F<={STEPS} state="bad" ]', policy="practice")
    assert any(left in text for text in found.rests_on.assumptions)


def test_a_few_runs_without_a_first_row_are_left_out_and_many_are_refused():
    log = log_of(40, np.random.default_rng(3))
    for n, is_read in ((4, True), (5, False)):
        late = log[(log.step > log.step.min()) | (log.episode > n)]
        if not is_read:
            with pytest.raises(DataError, match="the run begins here, others begin"):
                read_whole_runs(MACHINE, late, pl.LogFormat(steps="weekly"), on_unmatched="report")
            continue
        runs = read_whole_runs(MACHINE, late, pl.LogFormat(steps="weekly"), on_unmatched="report")
        assert [*runs.names] == [*range(n + 1, 41)]
        said = "that the first row is missing in 4 of 40 runs, which are left out, has nothing to do with how these"
        assert any(said in text for text in runs.rests_on)


CHOICE_OF = {0: ("ok", "run"), 2: ("ok", "mend"), 5: ("bad", "run"), 3: ("bad", "mend")}


@pytest.mark.parametrize("cap", [None, 6, 9, 12])
@pytest.mark.parametrize("n_there", [2, 3, 4])
def test_what_a_torn_run_counts_as_has_the_right_mean_in_every_enumerated_case(cap, n_there):
    """Of each path, and of each set of so many rows after the first, by the product's own outcomes.

    Lower values must not exceed the mean of capped totals, upper ones not fall short of it, for each path alone.
    Without a cap both are that mean.
    """
    asked = as_objective('R{"cost"}min=? [ C<=5 ]', MACHINE)
    for first in (0, 2):
        for path in ((0, 2, 5, 3), (2, 0, 0, 0), (5, 5, 3, 5), (0, 0, 0, 0)):
            costs, rows = (first, *path), []
            kept = [*combinations(range(1, 5), n_there)]
            for run, there in enumerate(kept):
                for t in (0, *there, 5):
                    state, action = CHOICE_OF[costs[t]] if t < 5 else ("ok", "run")
                    rows.append((run, pd.Timestamp("2024-01-01") + pd.Timedelta(weeks=t), state, action))
            log = pd.DataFrame(rows, columns=["episode", "step", "state", "action"])
            runs = read_whole_runs(MACHINE, log, pl.LogFormat(steps="weekly"), on_unmatched="report")
            runs = replace(runs, cap=cap)
            graph = MACHINE.graph
            made = outcomes_of(asked, MACHINE, runs, graph, normalised(graph, np.ones(graph.n_choices)))
            low, high = made.within
            lower, upper = (low + (high - low) * each for each in (made.lower, made.upper))
            total = min(sum(costs), cap or np.inf)
            assert lower.mean() <= total + 1e-9
            assert upper.mean() >= total - 1e-9
            least, most = made.reach
            assert (made.lower >= 0).all()
            assert (least == 0).all()
            assert (made.upper <= most).all()
            assert (most <= 4 / n_there + 1e-9).all()
            assert most.min() == most.max()  # known before the run, but for how many rows are missing
            if cap is None:
                assert lower.mean() == pytest.approx(total) == upper.mean()


def test_a_missing_row_may_come_after_some_states_alone_and_then_runs_say_nothing():
    """If a machine that was bad is not looked at the next week, what it cost there is missing more often."""
    rng = np.random.default_rng(5)
    log = log_of(300, rng)
    before = log.groupby("episode").state.shift(1)
    last = log.groupby("episode").step.transform("max")
    hidden = (before == "bad") & (rng.random(len(log)) < 0.3) & (log.step < last)
    found = pl.certify(MACHINE, read(log[~hidden]), ASKED, policy="practice", confidence=0.95)
    by_runs = found.claim.rungs[0]
    assert not by_runs.is_claim
    assert "of the rows with (state=bad), and after 0 of the others" in by_runs.reason
    chance = log[(rng.random(len(log)) >= 0.05) | (log.step == last) | (log.groupby("episode").cumcount() == 0)]
    assert pl.certify(MACHINE, read(chance), ASKED, policy="practice", confidence=0.95).claim.rungs[0].is_claim


def test_the_test_of_missing_rows_speaks_against_chance_as_rarely_as_it_says():
    """At an error of one half, of logs whose rows are missing by chance, at most half may be silenced; few are."""
    silenced, n = 0, size(12, 40)
    for seed in range(n):
        log = log_of(30, np.random.default_rng([seed, 6]), missing=0.15)
        by_runs = pl.certify(MACHINE, read(log), ASKED, policy="practice", confidence=0.5).claim.rungs[0]
        silenced += not by_runs.is_claim
    assert silenced <= n // 2


@pytest.mark.parametrize("missing", [Fraction(1, 5), Fraction(1, 2)])
def test_the_evidence_of_missing_rows_has_a_mean_of_at_most_one(missing):
    """Over all that two runs of three or four rows do, and all that may be missing of it but the first rows."""
    law, mean = {0: (Fraction(2, 3), Fraction(1, 3)), 1: (Fraction(1, 4), Fraction(3, 4))}, 0.0

    def runs_of(n):
        for states in product(range(2), repeat=n - 1):
            for there in product((True, False), repeat=n - 1):
                steps = zip((0, *states), states, strict=False)
                chance = prod((law[a][b] for a, b in steps), start=Fraction(1))
                chance *= prod(((1 - missing) if each else missing for each in there), start=Fraction(1))
                yield [(t, s) for t, s in enumerate((0, *states)) if t == 0 or there[t - 1]], chance

    for (one, p), (other, q) in product(runs_of(4), runs_of(3)):
        time, state = (np.array(each) for each in zip(*one, *other, strict=True))
        first = np.array([0, len(one), len(time)])
        late = time - (np.arange(len(time)) - np.repeat(first[:-1], np.diff(first)))
        action = np.where(state == 1, 1, 0)
        action[first[1:] - 1] = -1
        runs = WholeRuns(np.arange(2), first, time, state, action, False, missing=late)
        by_group, *_ = missed_by_group(runs, MACHINE.graph)
        mean += float(p * q) * float(np.exp(by_group).mean())
    assert 0.3 < mean <= 1


def test_no_run_is_left_out_if_none_has_a_gap():
    runs = read_whole_runs(
        MACHINE, log_of(5, np.random.default_rng(3)), pl.LogFormat(steps="weekly"), on_unmatched="report"
    )
    assert (len(runs), runs.rests_on) == (5, ())


def test_a_number_of_runs_is_fixed_beforehand_if_all_began_together():
    """Renewed sizes need a number that no outcome decided; runs that begin in turn may have been ended at will."""
    log = log_of(80, np.random.default_rng(4))
    runs = read_whole_runs(MACHINE, log, pl.LogFormat(steps="weekly"))
    assert runs.has_fixed_number
    assert not read_whole_runs(MACHINE, log, pl.LogFormat(steps="weekly"), expected=80).has_fixed_number
    numbered = log.assign(step=log.groupby("episode").cumcount())
    assert not read_whole_runs(MACHINE, numbered).has_fixed_number
    both = [
        pl.certify(
            MACHINE, pl.read_log(MACHINE, each, **in_format(censoring="unrelated", **how)), ASKED, policy="practice"
        )
        for each, how in ((log, {"steps": "weekly"}), (numbered, {}))
    ]
    fixed, at_will = both
    assert (fixed.claim.guarantee, at_will.claim.guarantee) == ("finite-sample, fixed N", "finite-sample, anytime")
    assert fixed.upper - fixed.lower < at_will.upper - at_will.lower
    assert any("all of them in one period" in text for text in fixed.rests_on.assumptions)
    assert not any("all of them in one period" in text for text in at_will.rests_on.assumptions)


def test_a_cap_cuts_returns_and_every_sentence_says_so():
    """Nothing is claimed above the cap; the lower bound holds for all that runs cost, as min(total, cap) <= total."""
    log = log_of(100, np.random.default_rng(5))
    wide, capped = (
        pl.certify(MACHINE, read(log).capped(cap), ASKED, policy="practice", confidence=0.95) for cap in (None, 8.0)
    )
    assert capped.lower <= value("practice")
    assert capped.upper <= 8 < wide.upper < 30
    assert ", counting at most 8 of a run (confidence 95 %)." in capped.headline
    assert "counting" not in wide.headline
    runs = capped.claim.rungs[0]
    assert (runs.cap, capped.claim.cap, wide.claim.cap) == (8, 8, None)
    assert capped.to_dict()["claim"]["rungs"][0]["cap"] == 8 if "claim" in capped.to_dict() else True
    (said,) = (text for text in runs.premises if "above 8 counts as this amount" in text)
    assert said.endswith("without this limit, values by whole runs can only be larger")
    assert not any("every return lies" in text for text in runs.premises)
    _, found = compared(log, cap=8.0)
    (apart,) = (each for each in found.rungs if each.ground == Ground.RIVAL_RUNS)
    assert apart.cap == 8
    assert "you chose the policy before looking at any of these runs (as you stated)" in apart.premises
    if found.lower == apart.lower:
        assert "counting at most 8 of a run" in found.headline


@pytest.mark.parametrize("side", [-1, 1])
def test_bounds_by_runs_and_rows_that_exclude_others_of_the_difference_claim_nothing(side):
    """Runs that are not alike may exclude what their total and the rows say; no end of an empty bracket is a claim."""
    learned, found = compared(log_of(60, np.random.default_rng(8)), cap=20.0)
    (ends,) = (each for each in learned.bounds.of_kind(RunEnds) if len(each.policies) == 2)
    widest = [max(side * end for rung in found.rungs for end in (rung.lower, rung.upper)) + add for add in (1.0, 2.0)]
    other = replace(ends, **dict(zip(("lower", "upper"), sorted(side * each for each in widest), strict=True)))
    bounds = tuple(other if each is ends else each for each in learned.bounds.constraints)
    turned = replace(learned, bounds=replace(learned.bounds, constraints=bounds))
    refuted = pl.difference(turned, ASKED, rule, "practice")
    assert (refuted.is_claim, refuted.verdicts) == (False, ("inconclusive",))
    assert (refuted.lower, refuted.upper) == (-np.inf, np.inf)
    assert "is wrong" in refuted.headline


def test_a_cap_that_no_run_can_exceed_changes_nothing():
    log = log_of(50, np.random.default_rng(6))
    plain, capped = (pl.certify(MACHINE, read(log).capped(cap), ASKED, policy="practice") for cap in (None, 1000))
    assert str(plain.headline) == str(capped.headline)
    assert (plain.lower, plain.upper, capped.claim.cap) == (capped.lower, capped.upper, None)
    with pytest.raises(DataError, match="give an amount above 0"):
        read(log).capped(-1)


@pytest.mark.parametrize("cap", [None, 20.0])
def test_a_saved_comparison_with_practice_is_read_and_learned_again_without_its_runs(tmp_path, cap):
    """With a cap, bets are on the rule alone, and so they are when it is learned again."""
    learned, found = compared(log_of(60, np.random.default_rng(8)), cap=cap)
    kept = found.with_comparison()
    assert kept.how.options["whole_runs"] == ["apart" if cap else True]
    pl.write_result(kept, tmp_path / "result", model=learned.model, counts=learned.counts)
    _, findings = explain_result(tmp_path / "result", parts=["ladder"])
    assert kept.how.relaxation in [each.relaxation for each in findings.ladder]


def priced_log(noise=0.0):
    rng = np.random.default_rng(7)
    log = log_of(100, rng).rename(columns={"episode": "machine", "step": "week"})
    cost = [COST[each] for each in zip(log.state, log.action, strict=True)]
    return log.assign(cost=cost + noise * rng.random(len(log)))


def test_start_proposes_a_cap_from_the_first_runs_and_fixes_it_before_the_others():
    log = priced_log()
    found = pl.start(log, cost="cost")
    others = found.log.read_runs(found.model).names
    first = log[~log.machine.isin(others)].groupby("machine").cost.sum().max()
    assert len(others) == 100 - found.first
    assert first <= found.run_cap <= first * 1.1
    assert ("cap" in dict(found.facts)) == bool(found.run_cap)
    late = log.assign(cost=log.cost * np.where(log.machine.isin(others), 10, 1))  # others say nothing about it
    assert pl.start(late, cost="cost").run_cap == found.run_cap
    runs = found.log.read_runs(found.model)
    assert runs.cap == found.run_cap


def test_a_column_of_prices_becomes_a_list_that_nothing_is_learned_of():
    """A list is an expression of the state and the action; no premise says then that means are those of first runs."""
    found = pl.start(priced_log(), cost="cost")
    assert f'--cost "{found.prices}"' in dict(found.facts)["prices"]
    listed = pl.start(priced_log(), cost=found.prices)
    assert listed.format.variables == ["state"]
    assert (listed.prices, "prices" in dict(listed.facts)) == ("", False)
    own, other = (each.model.rewards["cost"] for each in (listed, found))
    assert np.array_equal(own.choice, other.choice)
    learned, known = (
        pl.certify(each.model, each.log, ASKED, policy="practice").rests_on.assumptions for each in (found, listed)
    )
    assert any("on average what it was in the first" in text for text in learned)
    assert not any("on average what it was in the first" in text for text in known)


def test_costs_that_vary_are_no_list_of_prices():
    assert pl.start(priced_log(noise=0.1), cost="cost").prices == ""
    constant, learned = ("case when action = 'mend' then 2 else 0 end", "cost + 0 * week")
    assert is_price_list(constant, LogFormat(states=["state"], actions="action"))
    assert not is_price_list(learned, LogFormat(states=["state"], actions="action"))
    lowered = LogFormat(states={"state": "lower(state)"}, actions="action")
    assert not is_price_list("case when state = 'ok' then 1 else 0 end", lowered)
    assert not is_price_list("cost", LogFormat(states=["state"], actions="action"))


@pytest.mark.night
def test_differences_hold_at_an_error_of_one_half():
    """Of games with 3 to 60 runs, of half of which rows are missing; and practice alone, whose bets know how many."""
    misses, alone, n = 0, 0, size(20, 200)
    for seed in range(n):
        rng = np.random.default_rng([seed, 9])
        log = log_of(int(rng.integers(3, 60)), rng, missing=0.1 * (seed % 2))
        _, found = compared(log, 0.5)
        truth = value("rule") - value("practice")
        misses += any(not each.lower <= truth <= each.upper for each in found.rungs if each.is_claim)
        by_runs = pl.certify(MACHINE, read(log), ASKED, policy="practice", confidence=0.5).claim.rungs[0]
        alone += not by_runs.lower <= value("practice") <= by_runs.upper
    assert max(misses, alone) <= binom.ppf(0.999, n, 0.5)


def test_start_takes_the_number_of_runs_as_fixed_only_if_all_began_together(tmp_path, monkeypatch):
    """Runs that begin in turn may have been ended when it suited; then nobody may say that their number was fixed."""
    together, in_turn = (
        pl.start(
            log_of(60, np.random.default_rng(8), together=each),
            pl.LogFormat(columns={"episode": "episode", "step": "step"}),
            goal='state="bad"',
        )
        for each in (True, False)
    )
    assert (together.sampling, in_turn.sampling) == ("trajectories", "adaptive")
    written, other = (tomllib.loads(each.to_toml("plumdp start")) for each in (together, in_turn))
    assert (written["sampling"], written["certify"]["prespecified"]) == ("trajectories", True)
    assert not {"sampling", "prespecified"} & {*other, *other["certify"]}
    assert sum("remove sampling)" in words for _, words in together.facts) == 1
    assert sum("remove prespecified)" in words for _, words in together.facts) == 1
    assert not any("began in one period" in words for _, words in in_turn.facts)
    assert (
        pl.start(
            log_of(60, np.random.default_rng(8)), pl.LogFormat(columns={"episode": "episode"}), order="runs"
        ).sampling
        == "adaptive"
    )


def test_a_file_says_that_data_did_not_choose_the_rules_of_people_alone(tmp_path, monkeypatch):
    """A policy that plumdp wrote was chosen by data; whoever vouches for it has to type that."""
    monkeypatch.chdir(tmp_path)
    priced_log().to_csv("log.csv", index=False)
    Path("rule.py").write_text("def policy(state):\n    return 'run' if state == 'ok' else 'mend'\n", encoding="utf-8")
    Path("rule.csv").write_text("state,action\nok,run\nbad,mend\n", encoding="utf-8")
    plumdp("start", "log.csv", "--cost", "cost", "--against", "practice")
    told = {}
    for rule, more in (("rule.py", ()), ("rule.csv", ()), ("rule.csv", ("--prespecified",)), ("mend", ())):
        out = plumdp("certify", "log.csv", "--policy", rule, *more, "--confidence", "0.95", "--verbose").out
        told[rule, more] = "you chose the policy before looking" in " ".join(out.split())
    assert list(told.values()) == [True, False, True, True]


@pytest.mark.slow
def test_logs_that_are_sorted_by_how_runs_went_prove_nothing_that_is_false():
    """Neither the order of rows nor the names of runs that began together decide which make the table, or come first.

    Rows of such names that are counted change over time, which the test of the model sees.
    """
    for seed in range(size(1, 20)):
        log = log_of(400, np.random.default_rng([seed, 10]), steps=20)
        log["cost"] = [COST[each] for each in zip(log.state, log.action, strict=True)]
        total = log.groupby("episode").cost.sum().sort_values(kind="stable")
        named = log.assign(episode="M" + log.episode.astype(str), total=log.episode.map(total))
        ranks = dict(zip(total.index, range(1, 401), strict=True))
        answers = []
        for each in (
            named,
            named.sort_values(["total", "episode", "step"]),
            log.assign(episode=log.episode.map(ranks)),
        ):
            found = pl.start(each.drop(columns="total", errors="ignore"), pl.LogFormat(states=["state"]), cost="cost")
            (asked,) = comparing(ask(ASKED, found.model, memory=True), rule, "practice", prespecified=True)
            learned = pl.learn(found.model, found.log, objectives=[asked], confidence=0.95)
            answers.append(pl.difference(learned, ASKED, rule, "practice"))
        plain, by_rows, by_name = answers
        assert (plain.lower, plain.upper) == (by_rows.lower, by_rows.upper)
        truth = value("rule") - value("practice")
        assert not by_name.is_claim or by_name.lower <= truth <= by_name.upper


@pytest.mark.night
def test_an_analyst_who_ends_a_log_of_all_machines_when_it_suits_does_not_get_more_than_the_error():
    """That no outcome decided when the log ends is a premise; the bets keep their promise here although it is false."""
    misses, n = 0, size(20, 200)
    truth = value("rule") - value("practice")
    for seed in range(n):
        log = log_of(40, np.random.default_rng([seed, 11]), steps=12)
        after = log.assign(next=log.groupby("episode").state.shift(-1)).dropna()
        bad = after[(after.state == "ok") & (after.action == "run")].assign(is_bad=lambda rows: rows.next == "bad")
        rates = bad.groupby("step").is_bad.agg(["sum", "count"]).cumsum().iloc[5:]
        end = (rates["sum"] / rates["count"]).idxmin()  # when machines look as good as they ever will
        _, found = compared(log[log.step <= end + pd.Timedelta(weeks=1)], 0.5, sampling="trajectories")
        misses += any(not each.lower <= truth <= each.upper for each in found.rungs if each.is_claim)
    assert misses <= binom.ppf(0.999, n, 0.5)
