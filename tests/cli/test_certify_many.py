"""``plumdp certify-many``: each job is a ``plumdp certify``, and none that fails stops another."""

import json
from pathlib import Path

import pytest
from command_line import plumdp

from plumdp.cli import certify_many
from plumdp.cli.certify_many import Job, read_jobs, rows_of

MODELS = """
import os

import plumdp

(p,) = plumdp.parameters("p")


def toss(state):
    return {"toss": [(p, state._replace(x=1)), (1 - p, state._replace(x=2))] if state.x == 0 else [(1, state)]}


def coin():
    return plumdp.explore(toss, {"x": 0}, space=plumdp.ParameterSpace.unit("p"), labels={"heads": lambda s: s.x == 1})


def deadly():
    os._exit(9)
"""
HEADS = 'Pmax=? [ F "heads" ]'


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "m.py").write_text(MODELS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        made = plumdp("simulate", "m.py:coin", "--at", "p=0.5", "-n", "100", "--max-steps", "1", "-o", "runs.csv")
        assert made.code == 0, made.err
        yield folder


def written(text):
    Path("jobs.toml").write_text(text)
    return Path("jobs.toml")


def test_a_job_is_the_command_that_one_would_type():
    jobs = read_jobs(
        written(
            "confidence = 0.99\nkeep-going = true\n[[job]]\nmodel = 'a'\ndata = ['b', 'c']\nconstant = ['N=1', 'M=2']\n"
            "[[job]]\nname = 'second'\nmodel = 'a'\ndata = 'd'\nconfidence = 0.9\nkeep_going = false\n"
        )
    )
    assert jobs == [
        Job(
            "1",
            (
                *("certify", "a", "b", "c", "--json", "--confidence", "0.99", "--keep-going"),
                *("--constant", "N=1", "--constant", "M=2"),
            ),
        ),
        Job("second", ("certify", "a", "d", "--json", "--confidence", "0.9", "--keep-going")),
    ]


def test_the_row_of_a_job_says_what_certify_says():
    told = json.loads(plumdp("certify", "m.py:coin", "runs.csv", "-p", HEADS, "--json").out)
    (row,) = rows_of(Job("coin", ("certify", "m.py:coin", "runs.csv", "-p", HEADS, "--json")))
    assert (row["exit_code"], row["status"]) == (0, "certified")
    assert (row["lower"], row["upper"], row["p_value"]) == (told["lower"], told["upper"], told["p_value"])


def test_the_row_of_a_job_that_fails_has_the_message():
    (row,) = rows_of(Job("none", ("certify", "m.py:coin", "none.csv", "-p", HEADS, "--json")))
    assert (row["exit_code"], row["status"]) == (2, "failed")
    assert row["message"].startswith("none.csv: there is no such file")


@pytest.mark.slow
def test_a_job_that_kills_its_process_stops_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(certify_many, "_PER_PROCESS", 1)  # the last job has processes of its own
    names = {"first": "coin", "deadly": "deadly", "last": "coin"}
    tables = [f"[[job]]\nname = '{name}'\nmodel = 'm.py:{model}'\ndata = 'runs.csv'\n" for name, model in names.items()]
    file = written(f"property = '{HEADS}'\n" + "".join(tables))
    ended = plumdp("certify-many", str(file), "--threads", "2", "-o", str(tmp_path / "table.parquet"), "--json")
    assert ended.code == 70
    told = json.loads(ended.out)
    assert told["results"] == {"certified": 2, "failed": 1}
    assert told["failed"] == {"deadly": "the process of this job died, perhaps for want of memory"}
    from plumdp.data.duckdb_tables import read_parquet

    table = read_parquet([tmp_path / "table.parquet"])
    assert table["job"].tolist() == [*names]
    assert table["lower"].mask.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("confidence = 0.9\n", "there are no jobs; write a table [[job]] with name, model and data for each"),
        ("[[job]]\nmodel = 'a'\n", "job 1 needs a model and data, such as model = 'pump.prism', data = 'day-1.csv'"),
        (
            "[[job]]\nname = 'x'\nmodel = 'a'\ndata = 'b'\n" * 2,
            "two jobs are called x; give each a name of its own",
        ),
        ("[[job]\n", "this is not TOML: Expected ']]' at the end of an array declaration (at line 1, column 6)"),
    ],
)
def test_a_wrong_file_of_jobs_is_refused(text, message):
    ended = plumdp("certify-many", str(written(text)))
    assert (ended.code, ended.err.strip()) == (2, f"error: jobs.toml: {message}")
