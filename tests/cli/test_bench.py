"""``plumdp bench`` as a user types it."""

import pytest
from command_line import plumdp

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Return the folder that commands are typed in, on a screen of 120 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def test_a_study_is_run_once_and_reported_each_time():
    arguments = ("bench", "scaling", "-i", "betting:5", "-i", "betting:6", "-n", "200", "-j", "1")
    first = plumdp(*arguments)
    assert first.code == 0, first.err
    assert first.out == "bench/scaling-quick/results.md\n"
    assert [line.partition(":")[0] for line in first.err.splitlines()] == ["scaling betting", "scaling betting"]
    again = plumdp(*arguments)
    assert again.out == first.out
    assert again.err == "2 of 2 cells are in bench/scaling-quick/cells already\n"


def test_cells_of_a_job_array_come_together_in_one_report(tmp_path):
    for seed in "12":
        done = plumdp("bench", "online", "-i", "betting:5", "--seed", seed, "-n", "100", "-j", "1", "-o", str(tmp_path))
        assert done.code == 0, done.err
    report = (tmp_path / "online-quick" / "results.md").read_text(encoding="utf-8")
    assert "Medians over 2 seeds after 100 episodes" in report


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("table", "-i", "bettin:5"),
            "'bettin:5': there is no case study 'bettin'; the families are aircraft, betting, engagement, rover, "
            "glider, parallel",
        ),
        (("table", "-i", "rover:7"), "'rover:7' is not a published instance; write it as rover:WIDTH,HEIGHT,TRIES"),
        (
            ("table", "-i", "betting:300", "-j", "1"),
            "table betting:300, seed 1: no point of the parameter space makes every expression a probability: "
            "parameter p: no value in [0, 0] satisfies -1/2*p - 1/2500 >= 0",
        ),
        (
            ("tabel",),
            "there is no study 'tabel'; choose one of table, online, ellipsoid, scaling, limit, parameters, tables, "
            "differences",
        ),
        (("table", "-n", "0"), "--runs must be at least 1, and so must --jobs, unless it is -1"),
        (("table", "-j", "0"), "--runs must be at least 1, and so must --jobs, unless it is -1"),
        (("table", "-j", "-2"), "--runs must be at least 1, and so must --jobs, unless it is -1"),
    ],
)
def test_misuse_says_what_to_write(arguments, message, tmp_path):
    done = plumdp("bench", *arguments)
    assert done.code == 2
    assert " ".join(done.err.split()) == f"error: {message}"
    assert not list(tmp_path.rglob("*.parquet"))
