"""``plumdp bench`` as a user types it."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def bench(*arguments, **options):
    command = [sys.executable, "-m", "plumdp", "bench", *arguments]
    environment = os.environ | {"COLUMNS": "120"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, **options)


def test_a_study_is_run_once_and_reported_each_time(tmp_path):
    arguments = ("scaling", "-i", "betting:5", "-i", "betting:6", "-n", "200", "-j", "1")
    first = bench(*arguments, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert first.stdout == "bench/scaling-quick/results.md\n"
    assert [line.partition(":")[0] for line in first.stderr.splitlines()] == ["scaling betting", "scaling betting"]
    again = bench(*arguments, cwd=tmp_path)
    assert again.stdout == first.stdout
    assert again.stderr == "2 of 2 cells are in bench/scaling-quick/cells already\n"


def test_cells_of_a_job_array_come_together_in_one_report(tmp_path):
    for seed in "12":
        done = bench("online", "-i", "betting:5", "--seed", seed, "-n", "100", "-j", "1", "-o", tmp_path)
        assert done.returncode == 0, done.stderr
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
        (("tabel",), "there is no study 'tabel'; choose one of table, online, ellipsoid, scaling, limit, parameters"),
        (("table", "-n", "0"), "--runs must be at least 1, and so must --jobs, unless it is -1"),
        (("table", "-j", "0"), "--runs must be at least 1, and so must --jobs, unless it is -1"),
        (("table", "-j", "-2"), "--runs must be at least 1, and so must --jobs, unless it is -1"),
    ],
)
def test_misuse_says_what_to_write(arguments, message, tmp_path):
    done = bench(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert " ".join(done.stderr.split()) == f"error: {message}"
    assert not list(tmp_path.rglob("*.parquet"))
