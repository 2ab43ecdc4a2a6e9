"""Logs as people have them go through start and certify: what is certified is true, or the message says what to do."""

import re

import numpy as np
import pandas as pd
import pytest
from command_line import plumdp
from ordinary_logs import machines, true_values, with_next, written

pytestmark = pytest.mark.slow

COST, OVER = true_values(4)
ASKED = 'R{"cost"}min=? [ C<=4 ]'
PLAIN = machines()
NUMBERS = {"new": 0, "worn": 1, "over": 2}
DAYS = pd.Timestamp("2024-03-01") + pd.to_timedelta(PLAIN.t, unit="D")
SHUFFLED = PLAIN.sample(frac=1, random_state=3)
STEPS = with_next(PLAIN)
RNG = np.random.default_rng(5)
IS_END = PLAIN.status == "over"
CUT = PLAIN.t <= PLAIN.run.map(dict(enumerate(RNG.geometric(0.15, size=500))))  # seen for a time drawn beforehand
BAD = IS_END & (PLAIN.run % 2 == 0)  # half of the ends are of another kind, whatever happened


def of_status(values):
    return PLAIN.assign(status=PLAIN.status.map(values))


# name: rows, file, more for certify or start; the question is COST, and the truth of it as above
CERTIFIED = {
    "texts": (PLAIN, "log.csv"),
    "parquet": (PLAIN, "log.parquet"),
    "JSON lines": (PLAIN, "log.jsonl"),
    "packed": (PLAIN, "log.csv.gz"),
    "a folder": (PLAIN, "nights"),
    "semicolons": (PLAIN, "log.txt"),
    "a decimal comma": (PLAIN.assign(cost=PLAIN.cost.map("{:.2f}".format).str.replace(".", ",")), "log.txt"),
    "states as numbers": (of_status(NUMBERS), "log.csv"),
    "states as whole floats": (of_status(NUMBERS).astype({"status": float}), "log.parquet"),
    "states 0, 1 and no in JSON": (of_status({"new": "0", "worn": "1", "over": "no"}), "log.jsonl"),
    "states 0, 1 and no": (of_status({"new": "0", "worn": "1", "over": "no"}), "log.csv"),
    "states with zeros before": (of_status({"new": "01", "worn": "02", "over": "11"}), "log.jsonl"),
    "categories": (PLAIN.astype({"status": "category", "action": "category"}), "log.parquet"),
    "two truth values": (PLAIN.assign(worn=PLAIN.status == "worn", gone=IS_END).drop(columns="status"), "log.csv"),
    "truth values in JSON": (
        PLAIN.assign(worn=PLAIN.status == "worn", gone=IS_END).drop(columns="status"), "log.jsonl"
    ),
    "truth values as yes and no": (
        PLAIN.assign(worn=np.where(PLAIN.status == "worn", "yes", "no"), gone=np.where(IS_END, "yes", "no"))
        .drop(columns="status"), "log.csv",
    ),
    "days": (PLAIN.assign(t=DAYS), "log.csv"),
    "days in a data type": (PLAIN.assign(t=DAYS), "log.parquet"),
    "German days": (PLAIN.assign(t=DAYS.dt.strftime("%d.%m.%Y")), "log.csv"),
    "times in a zone, over a change of clocks": (
        PLAIN.assign(t=(DAYS + pd.Timedelta("29D")).dt.tz_localize("Europe/Berlin")), "log.parquet",
    ),
    "times with offsets as texts": (
        PLAIN.assign(t=(DAYS + pd.Timedelta("29D")).dt.tz_localize("Europe/Berlin")), "log.csv",
    ),
    "a row for each event, at odd times": (
        PLAIN.assign(t=DAYS + pd.to_timedelta(RNG.integers(0, 86_400, len(PLAIN)), unit="s")), "log.csv",
    ),
    "rows in no order": (SHUFFLED, "log.csv"),
    "columns in another order": (PLAIN[["cost", "action", "status", "t", "run"]], "log.csv"),
    "exact duplicates": (pd.concat([SHUFFLED, SHUFFLED[::3]]), "log.csv"),
    "an index without a name": (PLAIN.reset_index().rename(columns={"index": ""}), "log.csv"),
    "spellings of an end": (
        PLAIN.assign(status=np.where(IS_END & (PLAIN.run % 3 == 0), "Over", PLAIN.status)), "log.csv",
    ),
    "two kinds of ends": (PLAIN.assign(status=PLAIN.status.where(~BAD, "bad")), "log.csv"),
    "runs as texts": (PLAIN.assign(run=PLAIN.run.map("r{:05}".format)), "log.csv"),
    "runs as floats": (PLAIN.astype({"run": float}), "log.parquet"),
    "names of columns with spaces": (PLAIN.rename(columns={"run": "Machine ID", "status": "State now"}), "log.csv"),
    "names of columns in capitals": (PLAIN.rename(columns=str.upper), "log.csv", "--cost", "COST"),
    "costs that are missing here and there": (
        PLAIN.assign(cost=PLAIN.cost.where(RNG.random(len(PLAIN)) > 0.1)), "log.csv",
    ),
    "costs of 0 in last rows that are missing": (PLAIN.assign(cost=PLAIN.cost.where(~IS_END)), "log.parquet"),
    "states that are missing here and there": (
        PLAIN.assign(status=PLAIN.status.where((PLAIN.t == 0) | (RNG.random(len(PLAIN)) > 0.03), "NA")), "log.csv",
    ),
    "actions as numbers": (PLAIN.assign(action=PLAIN.action.map({"use": 0, "mend": 1})), "log.csv", "--policy", "0.0"),
    "actions as truth values": (
        PLAIN.assign(action=PLAIN.action.map({"use": False, "mend": True}).astype("boolean")), "log.parquet",
        "--policy", "0",
    ),
    "runs that are censored": (PLAIN[CUT], "log.csv"),
    "next states": (STEPS, "log.csv"),
    "next states and done in JSON": (STEPS.rename(columns={"terminated": "done"}), "log.jsonl"),
    "next states without runs": (
        STEPS.drop(columns=["run", "t", "terminated"]), "log.csv", "--table", "initial.status=new",
    ),
    "next states, and the chance of the action": (STEPS.assign(prob=0.5, logp=np.log(0.5)), "log.csv"),
    "a chance of the action that changes": (PLAIN.assign(propensity=RNG.choice([0.4, 0.5], len(PLAIN))), "log.csv"),
    "gains": (PLAIN.assign(reward=-PLAIN.cost).drop(columns="cost"), "log.csv", "--cost", "0 - reward"),
}  # fmt: skip


def bounds_in(printed):
    """Return the ends that the first sentence certifies, a chance as one of at most 1, if it certifies some."""
    claim = r"Certified: under this policy, the [^:.]+ is (\S+?)( %)? to (\S+?)(?: %)? \(confidence 99\.9 %\)\."
    found = re.match(claim, " ".join(printed.split()))
    return found and tuple(float(found[i]) / (100 if found[2] else 1) for i in (1, 3))


@pytest.mark.parametrize("case", CERTIFIED.values(), ids=CERTIFIED)
def test_what_is_certified_of_an_ordinary_log_is_true(case, tmp_path, monkeypatch):
    rows, file, *more = case
    monkeypatch.chdir(tmp_path)
    name = written(rows, tmp_path / file)
    started = plumdp("start", name, *(more if "--table" in more else ()))
    assert (started.code, started.err) == (0, "")
    given = [] if "--table" in more else more
    cost = [] if "--cost" in given else ["--cost", "cost"]
    policy = [] if "--policy" in given else ["--policy", "use"]
    ended = plumdp("certify", name, "-p", ASKED, *cost, *policy, *given)
    assert (ended.code, ended.err) == (0, ""), ended.out
    low, high = bounds_in(ended.out)
    assert low <= COST <= high
    assert high - low < COST


TRUTH = PLAIN.assign(terminated=PLAIN.groupby("run").cumcount(ascending=False) == 1)[~IS_END]
OTHER = machines(20)
# name: rows, options of start, what the message says
REFUSED = {
    "a column for each step": (
        PLAIN.pivot(index="run", columns="t", values="status").add_prefix("month").reset_index(), (),
        r"month0 to month\d+ look like one step each: make a row of each of them",
    ),
    "runs that are over after their last action": (
        TRUTH, (), r"terminated says that 125 runs of the first are over after the action in their last row.*"
        r"log\['next_status'\] = log\['status'\].astype\(str\).groupby\(log\['run'\]\).shift\(-1\)"
        r".mask\(log\['terminated'\], 'over'\)",
    ),
    "next states that are missing where runs end": (
        STEPS.assign(next_status=STEPS.next_status.where(~STEPS.terminated)).drop(columns="terminated"), (),
        r"125 rows of the first runs have a state and no next state; if runs end there, write a state for that",
    ),
    "ends that the state does not tell": (
        STEPS.assign(next_status=STEPS.next_status.replace("over", "worn")), (),
        r"terminated says that runs are over in \(status=worn\), but \d+ rows of the first runs go on from there; "
        r"add what tells these apart to the state with --state",
    ),
    "runs that begin in two states": (
        PLAIN[(PLAIN.t > 0) | (PLAIN.run % 3 > 0)], (),
        r"not all of the first runs begin in one state: \d+ runs in \(status = new\), .*Name that .* with "
        r"--table initial.status=new; or, to mean all runs together, put a row before the first",
    ),
    "runs of two brands": (
        PLAIN.assign(brand=PLAIN.run % 2), ("--state", "status", "--state", "brand"),
        r"Name that .* with --table initial.status=\w+ --table initial.brand=\d; or",
    ),
    "costs that a state and action never has": (
        PLAIN.assign(cost=PLAIN.cost.where((PLAIN.status != "worn") | (PLAIN.action != "mend"))), ("--cost", "cost"),
        r"nothing is known of the cost of 'mend' in \(status=worn\): no row there has a number for it",
    ),
    "no state": (PLAIN[["run", "t", "cost"]], (), "no column looks like a state"),
    "few runs": (OTHER[OTHER.run < 2], (), "no column names the run of a row|names 2 runs"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_a_log_that_cannot_be_certified_truly_is_refused_with_what_to_do(case, tmp_path, monkeypatch):
    rows, options, said = case
    monkeypatch.chdir(tmp_path)
    ended = plumdp("start", written(rows, tmp_path / "log.csv"), *options)
    assert (ended.code, ended.out) == (2, "")
    assert re.search(said, ended.err), ended.err


def asked(tmp_path, monkeypatch, rows, *options, question=ASKED):
    """Return what start prints, and the bounds of a certificate, if there are some."""
    monkeypatch.chdir(tmp_path)
    name = written(rows, tmp_path / "log.csv")
    started, certify = plumdp("start", name, *options), ["certify", name, "-p", question, "--cost", "cost"]
    ended = plumdp(*certify, "--policy", "use")
    return " ".join(started.out.split()), bounds_in(ended.out) or ended


def test_runs_that_begin_in_two_states_are_certified_for_the_one_that_is_named(tmp_path, monkeypatch):
    rows = PLAIN[(PLAIN.t > 0) | (PLAIN.run % 3 > 0)]
    said, (low, high) = asked(tmp_path, monkeypatch, rows, "--table", "initial.status=new")
    assert re.search(r"begins status = new \(\d+ of the first runs; the value is that of these alone\)", said)
    assert low <= COST <= high


def test_what_is_left_out_of_last_rows_is_said_in_rows_and_in_money(tmp_path, monkeypatch):
    rows = PLAIN.assign(cost=PLAIN.cost.where(~IS_END, 7.0))
    said, (low, high) = asked(tmp_path, monkeypatch, rows, "--cost", "cost")
    assert "125 rows of the first runs without an action have a cost, too, 875 in all, that is in no result" in said
    assert low <= COST <= high


def test_each_of_two_kinds_of_ends_has_its_own_chance(tmp_path, monkeypatch):
    """A coin that nothing else depends on says of which kind an end is."""
    rows = PLAIN.assign(status=PLAIN.status.where(~BAD, "bad"))
    for end in ("bad", "over"):
        asks = f'Pmax=? [ F<=4 status="{end}" ]'
        _, (low, high) = asked(tmp_path, monkeypatch, rows, "--force", question=asks)
        assert low <= OVER / 2 <= high


def test_a_step_in_a_state_without_a_row_may_cost_as_much_as_any(tmp_path, monkeypatch):
    """A rare state comes last in the first runs, before its action is written; it costs 900, as the others show."""
    rows = [(run, t, "ok", "go", 900.0 * (run == 0)) for run in range(400) for t in range(2)]
    rows += [(run, 2, "odd" if run == 1 else "ok", "go", 0.0) for run in range(400)]
    log = pd.DataFrame(rows, columns=["run", "t", "status", "action", "cost"])
    monkeypatch.chdir(tmp_path)
    plumdp("start", written(log, tmp_path / "log.csv"), "--state", "status", "--cost", "cost")
    ended = plumdp("info", "log.csv", "--json")
    assert '"states": 4' in ended.out  # ok, and what stands for all others
