"""Rungs: whole runs come first, whatever the model says, and it is blamed only if somebody vouches for the runs."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from in_format import in_format
from scipy.stats import binom
from support.verified_results import rehash
from tiers import size

import plumdp as pl
from plumdp.base.vocabulary import Guarantee, Status
from plumdp.model.question import as_objective, ask
from plumdp.reporting.read import explain_result
from plumdp.result.rungs import Ground, Rung, leading

FAILS = 'P=? [ F<=6 "failed" ]'


def step(state):
    if state.failed:
        return {"run": [(1, state)]}
    return {"run": pl.unknown(state._replace(failed=True), state)}


(p,) = pl.parameters("p")


def step_of_family(state):
    return step(state) if state.failed else {"run": [(p, state._replace(failed=True)), (1 - p, state)]}


ABOUT = {"labels": {"failed": lambda s: s.failed}}
UNITS = pl.explore(step, {"failed": False}, **ABOUT)
FAMILY = pl.explore(step_of_family, {"failed": False}, space=pl.ParameterSpace.unit("p"), **ABOUT)


def log_of(hazards, rng, *, last=6, is_cut=lambda age, hazard: False):
    """Return the log of units with these hazards, which are watched for six steps or until they are censored."""
    rows = []
    for unit, hazard in enumerate(hazards, start=1):
        for age in range(last + 1):
            rows.append((unit, age, False))
            if age == last or is_cut(age, hazard):
                break
            if rng.random() < hazard:
                rows.append((unit, age + 1, True))
                break
    return pd.DataFrame(rows, columns=["episode", "step", "failed"])


def certified(log, **how):
    read = {"order": "runs", "censoring": "unrelated", **how}
    return pl.certify(UNITS, pl.read_log(UNITS, log, **in_format(**read)), FAILS, confidence=0.95)


def value_of(hazards):
    return float(np.mean([1 - (1 - h) ** 6 for h in hazards]))


def test_units_of_two_kinds_are_answered_by_their_runs_and_missed_by_the_model():
    """0.05 and 0.5: of all that fail within six steps, 0.62, the model says 0.74 or so."""
    truth, found = value_of([0.05, 0.5]), []
    for seed in range(size(3, 40)):
        rng = np.random.default_rng([seed, 7])
        found.append(certified(log_of(rng.choice([0.05, 0.5], 4000), rng), expected=4000))
    runs, rows = zip(*(each.claim.rungs for each in found), strict=True)
    told = [each for each in found if each.status == "certified"]  # others say that the rungs exclude each other
    assert all(each.claim.ground == "whole runs" for each in told)
    assert sum(not each.lower <= truth <= each.upper for each in runs) <= binom.ppf(0.999, len(runs), 0.05)
    assert all(each.lower > truth or each.status != "certified" for each in rows)
    assert all("depends only on the state" not in text for each in told for text in each.rests_on.assumptions)


def test_right_models_and_runs_agree_and_spend_the_error_once():
    rng = np.random.default_rng(1)
    found = certified(log_of(np.full(300, 0.2), rng), expected=300)
    runs, rows = found.claim.rungs
    assert (found.status, found.claim.ground) == ("certified", "whole runs")
    assert (found.lower, found.upper) == (runs.lower, runs.upper)
    assert max(runs.lower, rows.lower) <= value_of([0.2]) <= min(runs.upper, rows.upper)
    assert runs.share + rows.share == 1
    assert any("depends only on the state" in text for text in rows.premises)
    assert runs.upper - runs.lower < 1.25 * 2 * 1.96 * np.sqrt(0.74 * 0.26 / 300)


def test_a_right_model_is_not_blamed_for_a_log_of_easy_tasks_alone():
    """Tasks are easy or hard by turns of the user; runs of easy ones alone are not what the model is asked about."""

    def task(state):
        if state.task == "new":
            return {"go": [(0.5, state._replace(task="easy")), (0.5, state._replace(task="hard"))]}
        if state.end != "none":
            return {"go": [(1, state)]}
        ends = (state._replace(end="good"), state._replace(end="bad"))
        return {"go": pl.unknown(*ends)}

    model = pl.explore(task, {"task": "new", "end": "none"})
    good, rng = 'P=? [ F end="good" ]', np.random.default_rng(2)
    n = 400
    rows = [(i, 0, "new", "none") for i in range(n)] + [(i, 1, "easy", "none") for i in range(n)]
    rows += [(i, 2, "easy", "good" if rng.random() < 0.9 else "bad") for i in range(n)]
    own = pd.DataFrame(rows, columns=["episode", "step", "task", "end"])
    other = pd.DataFrame([(n + i, 1, "hard", "none") for i in range(n)], columns=own.columns)
    ends = pd.DataFrame(
        [(n + i, 2, "hard", "good" if rng.random() < 0.1 else "bad") for i in range(n)], columns=own.columns
    )
    counts = pl.read_log(model, own[own.step > 0]).counts + pl.read_log(model, pd.concat([other, ends])).counts
    runs = pl.data.read_whole_runs(model, own)
    how = {"confidence": 0.95, "policy": "go", "prespecified": True}
    found = pl.certify(model, counts, replace(ask(good, model), runs=runs), **how)
    assert found.status == "premises rejected"
    assert "so what is assumed of the runs or of the model is wrong" in found.headline
    assert found.beside.p_value == 1


def test_the_model_is_blamed_if_somebody_vouches_for_the_runs():
    rng = np.random.default_rng(3)
    log = log_of(rng.choice([0.02, 0.7], 6000), rng)
    alone, vouched = certified(log), certified(log, sampling="trajectories", order=None)
    for found in (alone, vouched):
        _, rows = found.claim.rungs
        if found.status == "certified":
            assert found.claim.ground == "whole runs"
            assert found.lower <= value_of([0.02, 0.7]) <= found.upper
            assert rows.status == "model rejected"
    assert vouched.status == "certified"
    assert vouched.beside.p_value <= 0.05 + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_runs_that_are_cut_off_by_their_state_count_for_both_ends(seed):
    """Whoever looks bad is taken away before it fails, so that the rows that are left say too little."""
    rng = np.random.default_rng(seed)
    hazards = rng.choice([0.05, 0.5], 800)
    log = log_of(hazards, rng, is_cut=lambda age, hazard: age >= 1 and hazard > 0.1 and rng.random() < 0.3)
    found = certified(log)
    runs, _ = found.claim.rungs
    assert runs.lower <= value_of([0.05, 0.5]) <= runs.upper
    assert any("ended too early and may have had any return" in text for text in runs.premises)


def treat(state):
    if state.end != "none":
        return {"wait": [(1, state)]}
    ends = (state._replace(end="good"), state._replace(end="bad"))
    return {"drug": pl.unknown(*ends), "none": pl.unknown(*ends)}


def test_practice_that_depends_on_what_the_state_does_not_tell_is_valued_by_its_runs():
    """The ill, half of all, get the drug, which cures 0.5 of them; the others get well with 0.9 by themselves."""
    model = pl.explore(treat, {"end": "none"})
    rng, n = np.random.default_rng(4), 2000
    is_ill = rng.random(n) < 0.5
    good = rng.random(n) < np.where(is_ill, 0.5, 0.9)
    one = pd.DataFrame({"episode": range(n), "step": 0, "end": "none", "action": np.where(is_ill, "drug", "none")})
    log = pd.concat([one, pd.DataFrame({"episode": range(n), "step": 1, "end": np.where(good, "good", "bad")})])
    read = pl.read_log(model, log, order="runs", expected=n)
    found = pl.certify(model, read, 'Pmax=? [ F end="good" ]', policy="practice", confidence=0.95)
    assert found.claim.ground == "whole runs"
    assert found.lower <= 0.7 <= found.upper
    assert any("practice is what was done in these runs" in text for text in found.rests_on.assumptions)
    best = pl.certify(model, read, 'Pmax=? [ F end="good" ]', confidence=0.95)
    assert (best.claim.ground, best.claim.rungs) == ("rows", ())


def test_logs_that_do_not_show_runs_cost_nothing_and_broken_ones_are_no_reason_to_refuse():
    rng = np.random.default_rng(5)
    log = log_of(np.full(50, 0.2), rng)
    counts = pl.read_log(UNITS, log).counts
    alone = pl.certify(UNITS, counts, FAILS)
    assert alone.claim.rungs == ()
    late = log.assign(step=log.step + (log.episode == 7))
    found = pl.certify(UNITS, pl.read_log(UNITS, late), FAILS)
    runs, rows = found.claim.rungs
    assert (found.claim.ground, runs.status) == ("rows", "inconclusive")
    assert "the run begins here, others begin with step 0" in runs.reason
    assert (found.lower, found.upper) == (rows.lower, rows.upper)
    assert rows.upper - rows.lower > alone.upper - alone.lower  # the share of the runs is spent, whatever they are like


def rung(ground, lower, upper, status=Status.CERTIFIED):
    return Rung(ground, lower, upper, status, Guarantee.ANYTIME, Fraction(1, 2), ())


def test_the_weakest_premises_that_claim_something_lead():
    runs, rows = rung(Ground.WHOLE_RUNS, 0.2, 0.4), rung(Ground.ROWS, 0.25, 0.36)
    assert leading((runs, rows)) == runs
    assert leading((runs, rung(Ground.ROWS, 0.3, 0.31))) == runs
    assert leading((rung(Ground.WHOLE_RUNS, 0, 1, Status.INCONCLUSIVE), rows)) == rows
    assert leading((runs, rung(Ground.ROWS, 0.3, 0.31, Status.REJECTED))) == runs


def test_the_first_rung_that_decides_a_threshold_gives_the_verdict():
    rng = np.random.default_rng(6)
    log = pl.read_log(UNITS, log_of(np.full(400, 0.2), rng), order="runs")
    learned = pl.learn(UNITS, log, objectives=[FAILS], confidence=0.95)
    runs, rows = pl.conclude(learned, FAILS).claim.rungs
    low = min(runs.lower, rows.lower) - 0.01
    assert pl.decide(learned, f'P>={low} [ F<=6 "failed" ]').certificate.claim.ground == "whole runs"
    between = (runs.lower + rows.lower) / 2
    decided = pl.decide(learned, f'P>={between} [ F<=6 "failed" ]')
    assert (decided.verdict, decided.certificate.claim.ground) == (
        "yes",
        "whole runs" if runs.lower > rows.lower else "rows",
    )


def test_a_result_on_rungs_is_read_again_and_has_no_witness(tmp_path):
    log = pl.read_log(FAMILY, log_of(np.full(200, 0.2), np.random.default_rng(7)), order="runs")
    learned = pl.learn(FAMILY, log, objectives=[FAILS], confidence=0.95)
    found = pl.conclude(learned, FAILS)
    pl.write_result(found, tmp_path / "result")
    again = pl.read_result(tmp_path / "result")
    assert (again.claim.ground, again.claim.rungs) == (found.claim.ground, found.claim.rungs)
    assert again.headline == found.headline
    with pytest.raises(pl.DataError, match="whole runs"):
        pl.decisions.make_witness(learned, found)
    practice = pl.model.Question(FAMILY, as_objective(FAILS, FAMILY), policy="practice")
    for asked in (FAILS, practice):
        with pytest.raises(pl.DataError, match=r"^witness=True: .* by plumdp count, or give log\.counts"):
            pl.learn(FAMILY, log, objectives=[asked], confidence=0.95, witness=True)
    plain = pl.learn(FAMILY, log.counts, objectives=[FAILS], confidence=0.95, witness=True)
    alone = pl.conclude(plain, FAILS)
    assert (alone.claim.rungs, alone.claim.ground) == ((), "rows")
    pl.write_result(
        alone, tmp_path / "plain", witness=pl.decisions.make_witness(plain, alone), model=FAMILY, counts=log
    )
    assert pl.decisions.verify(tmp_path / "plain").broken is None


@pytest.mark.parametrize("forged", [{"ground": "whole runs"}, {"rungs": [{"ground": "whole runs"}]}])
def test_a_witness_of_the_model_does_not_vouch_for_runs(tmp_path, forged):
    log = pl.read_log(FAMILY, log_of(np.full(200, 0.2), np.random.default_rng(7)), order="runs")
    learned = pl.learn(FAMILY, log.counts, objectives=[FAILS], confidence=0.95, witness=True)
    found = pl.conclude(learned, FAILS)
    folder = tmp_path / "result"
    pl.write_result(found, folder, witness=pl.decisions.make_witness(learned, found), model=FAMILY, counts=log)
    told = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    (folder / "certificate.json").write_text(json.dumps(told | forged), encoding="utf-8")
    rehash(folder)
    assert "whole runs" in str(pl.decisions.verify(folder).broken)


@pytest.mark.parametrize("policy", [None, "practice"])
def test_a_saved_result_is_explained_without_its_runs(tmp_path, policy):
    log = pl.read_log(UNITS, log_of(np.full(200, 0.2), np.random.default_rng(8)), order="runs")
    question = pl.model.Question(UNITS, as_objective(FAILS, UNITS), policy=policy) if policy else FAILS
    learned = pl.learn(UNITS, log, objectives=[question], confidence=0.95)
    found = pl.conclude(learned, FAILS, policy=policy)
    assert found.claim.ground == "whole runs"
    pl.write_result(found, tmp_path / "result", model=UNITS, counts=log)
    assert str(pl.read_result(tmp_path / "result")) == str(found)
    _, findings = explain_result(tmp_path / "result", parts=["ladder"])
    (shown,) = {(each.lower, each.upper) for each in findings.ladder if each.relaxation == found.how.relaxation}
    assert shown == (found.claim.rungs[1].lower, found.claim.rungs[1].upper)
