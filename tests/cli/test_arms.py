"""Policies that are arms of a log: what whole runs of them earned, from the command line."""

import json
import random

import pytest
from command_line import plumdp

ARMS = {"old": 0.2, "new": 0.7}
BENEFIT = ("-p", 'Pmax=? [ F "goal" ]', "-p", 'Pmin=? [ F state="failed" ]', "--willingness", "0:1")
ASKED = ("--prespecified", "--confidence", "0.9", "--order", "runs")


@pytest.fixture(scope="module")
def tries(tmp_path_factory):
    """A log of 300 tries, each of which one arm makes from first to last, as texts where numbers are meant."""
    rng, rows = random.Random(1), []
    for run in range(1, 301):
        arm, state, step = rng.choice([*ARMS]), "first", 0
        while state in ("first", "second"):
            rows.append({"run": f"{run}", "step": step, "state": state, "arm": arm, "p": "0.5"})
            good = rng.random() < ARMS[arm]
            state, step = ("done" if good else "second" if state == "first" else "failed"), step + 1
        rows.append({"run": f"{run}", "step": step, "state": state, "arm": arm, "p": "0.5"})
    folder = tmp_path_factory.mktemp("tries")
    (folder / "tries.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with pytest.MonkeyPatch.context() as at_start:
        at_start.chdir(folder)
        ends = 'state="done" | state="failed"'
        assert (
            plumdp("start", "tries.jsonl", "--action", "arm", "--goal", 'state="done"', "--table", f"end={ends}").code
            == 0
        )
    return folder


@pytest.fixture
def started(tries, monkeypatch):
    monkeypatch.chdir(tries)
    return "certify", "tries.jsonl", "--policy", "new"


@pytest.mark.slow
def test_whole_runs_of_arms_decide_what_steps_do_not(started):
    """The arms are worth 1 - 0.3^2 and 1 - 0.8^2, 0.55 apart; 225 runs of both are left for evidence."""
    by_steps = plumdp(*started, "--against", "old", *ASKED, "--json")
    arms = "--column", "arm=arm", "--column", "run=run,chance=p", "--expected", "225"  # step is in the file
    by_runs = plumdp(*started, "--against", "old", *ASKED, *arms, "--json", "-o", "result")
    one, other = (json.loads(each.out)["lower"] for each in (by_steps, by_runs))
    assert one < other < 0.55
    assert by_runs.code == 0
    of_runs, *_, of_model = json.loads(by_runs.out)["rungs"]
    assert (of_runs["ground"], of_runs["lower"], of_model["ground"]) == ("whole runs", other, "rows")
    assert any("have the same probabilities" in each for each in of_model["premises"])
    assert not any("probabilities" in each or "depends only on the state" in each for each in of_runs["premises"])
    assert plumdp("report", "result").code == 0  # counts do not show runs, so that findings are kept
    single = plumdp(*started, *ASKED, *arms, "--json")
    assert json.loads(single.out)["lower"] <= 0.91 <= json.loads(single.out)["upper"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--against", "old"), "say --prespecified"),
        (("--against", "practice", "--prespecified"), "policies that were there before their runs began"),
        (("--against", "old", "--prespecified", *BENEFIT), "say --prespecified, and ask nothing else"),
        (("--against", "uniform", "--prespecified"), "uniform: choose arms of new, old"),
    ],
)
def test_policies_that_are_no_arms_are_refused(started, words, told):
    ended = plumdp(*started, *words, "--column", "arm=arm", "--order", "runs")
    assert ended.code == 2
    assert told in " ".join(ended.err.split())
