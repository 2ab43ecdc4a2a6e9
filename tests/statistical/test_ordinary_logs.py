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
    "costs that are missing here and there": (PLAIN.assign(cost=PLAIN.cost.where(RNG.random(len(PLAIN)) > 0.1)), "log.csv"),
    "costs of 0 in last rows that are missing": (PLAIN.assign(cost=PLAIN.cost.where(~IS_END)), "log.parquet"),
    "states that are missing here and there": (
        PLAIN.assign(status=PLAIN.status.where(IS_END | (PLAIN.t == 0) | (RNG.random(len(PLAIN)) > 0.03), "NA")), "log.csv",
    ),
    "actions as numbers": (PLAIN.assign(action=PLAIN.action.map({"use": 0, "mend": 1})), "log.csv", "--policy", "0.0"),
    "actions as truth values": (
        PLAIN.assign(action=PLAIN.action.map({"use": False, "mend": True}).astype("boolean")), "log.parquet",
        "--policy", "0",
    ),
    "runs that are cut off": (PLAIN[CUT], "log.csv"),
    "next states": (STEPS, "log.csv"),
    "next states and done in JSON": (STEPS.rename(columns={"terminated": "done"}), "log.jsonl"),
    "next states without runs": (STEPS.drop(columns=["run", "t", "terminated"]), "log.csv", "--table", "initial.status=new"),
    "next states, and the chance of the action": (STEPS.assign(prob=0.5, logp=np.log(0.5)), "log.csv"),
    "the chance of the action as a number that changes": (PLAIN.assign(propensity=RNG.choice([0.4, 0.5], len(PLAIN))), "log.csv"),
    "gains": (PLAIN.assign(reward=-PLAIN.cost).drop(columns="cost"), "log.csv", "--cost", "0 - reward"),
}  # fmt: skip


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
    low, high = map(float, re.search(r"lies between (\S+) and (\S+) with", ended.out).groups())
    assert low <= COST <= high
    assert high - low < COST
