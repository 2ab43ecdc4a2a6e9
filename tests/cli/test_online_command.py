"""``plumdp online``: what is certified while a simulated model is learned, records in files, exit codes, and misuse."""

import json
from functools import partial

import pytest
from command_line import plumdp
from support import refusals

import plumdp as pl
from plumdp.online.records import OnlineRun

STUDY = "betting:5"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs the command in a folder of its own: exit code, standard output and error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return partial(plumdp, "online")


@pytest.mark.slow
def test_the_command_does_what_learn_online_does(run, tmp_path):
    code, out, err = run(STUDY, "--runs", "300", "--seed", "1", "--record", "record.json", "-o", "p.csv")
    study = pl.case_study(STUDY)
    environment = pl.online.simulator(study.model, study.true_point, rng=1, max_steps=study.max_steps + 1)
    expected = list(pl.learn_online(study.model, environment, study.objective, episodes=300))
    read = pl.online.read_record(tmp_path / "record.json")
    assert (code, err) == (0, "")
    assert [record["bound"] for record in read.records] == [record.bound for record in expected]
    assert [record["episodes"] for record in read.records] == [record.episodes for record in expected]
    policy = pl.read_policy(study.model, tmp_path / "p.csv")
    assert policy.choice.tolist() == expected[-1].policy.choice.tolist()
    assert out.startswith("With confidence 99.9 %: the policy is worth at least ")
    assert ", and no policy is worth more than" in " ".join(out.split())
    assert "300 runs" in out


def test_learning_stops_once_the_bounds_are_close_enough(run):
    code, out, _ = run(STUDY, "--runs", "100000", "--width", "8", "--json")
    facts = json.loads(out)
    gaps = [abs(record["optimistic_bound"] - record["bound"]) for record in facts["records"]]
    assert (code, facts["schema"]) == (0, "plumdp/online/1")
    assert gaps[-1] <= 8
    assert all(gap > 8 for gap in gaps[:-1])
    assert set(facts["records"][0]) == {
        *("episodes", "steps", "bound", "optimistic_bound", "true_value", "width", "seconds", "status"),
    }


def test_bounds_that_are_not_close_enough_end_with_4(run):
    code, out, _ = run(STUDY, "--runs", "20", "--width", "0.01")
    assert code == 4
    assert "asked 0.01: not reached; give more --runs" in out


def test_a_parametric_file_needs_a_point_and_a_length(run, tmp_path):
    pytest.importorskip("stormpy")
    program = "mdp const double p; module m x:[0..1]; [go] x=0 -> p:(x'=1)+1-p:true; [] x=1 -> true; endmodule"
    (tmp_path / "coin.prism").write_text(program)
    asked = ["coin.prism", "-p", "Pmax=? [ F<=3 x=1 ]", "--runs", "50"]
    missing = "--at: no value for p; say where the runs are made, --at p=0.3"
    assert run(*asked) == (2, "", f"error: {missing}\n")
    assert run(*asked, "--at", "p=0.3") == (2, "", "error: say with --max-steps where a run is cut off\n")
    assert run(*asked, "--at", "p=0.3", "--max-steps", "4")[0] == 0


def test_what_is_certified_holds_when_learning_is_stopped_by_hand(monkeypatch, run, tmp_path):
    learn_online = pl.learn_online

    def stopped(*arguments, **options):
        for number, record in enumerate(learn_online(*arguments, **options)):
            if number == 3:
                raise KeyboardInterrupt
            yield record

    monkeypatch.setattr(pl, "learn_online", stopped)  # which the command calls
    code, out, err = run(STUDY, "--runs", "500", "--record", "record.json")
    assert (code, err) == (0, "stopped by hand; what is certified so far holds\n")
    assert out.startswith("With confidence 99.9 %: the policy is worth at least ")
    assert len(pl.online.read_record(tmp_path / "record.json").records) == 3


def test_misuse(run):
    refusals.misused("commands:online", run)


def test_infinite_bounds_survive_saving_and_reading(tmp_path):
    record = {"episodes": 3, "steps": 9, "bound": float("inf"), "optimistic_bound": 1.0, "true_value": None}
    record |= {"width": 0.5, "seconds": 0.1, "status": "certified"}
    OnlineRun("Rmin=? [ F x=1 ]", "min", 0.99, (record,)).save(tmp_path / "r.json")
    read = pl.online.read_record(tmp_path / "r.json")
    assert (read.records, read.direction, read.confidence, read.gap) == ((record,), "min", 0.99, float("inf"))
    json.loads((tmp_path / "r.json").read_text(), parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", "r.json is not a record of learning (JSONDecodeError: "),
        ("{}", "r.json is not a record of learning (KeyError: 'schema')"),
        ('{"schema": "plumdp/advice/2"}', "r.json has the schema plumdp/advice/2, not plumdp/online/1"),
    ],
)
def test_files_that_are_not_records_are_refused(tmp_path, content, message):
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(pl.DataError) as caught:
        pl.online.read_record(tmp_path / "r.json")
    assert str(caught.value).startswith(f"{tmp_path}/{message}")
