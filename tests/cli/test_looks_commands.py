"""``--observation-gaps``: commands about a model that is seen now and then, and what they refuse."""

import pandas as pd
import pytest
from command_line import plumdp

MODEL = """
import plumdp
a, b = plumdp.parameters("a", "b")
def wears(s):
    return {"run": [(1, s)] if s.x == 2 else [(1 - (a, b)[s.x], s), ((a, b)[s.x], s._replace(x=s.x + 1))]}
space = plumdp.ParameterSpace.unit("a", "b")
model = plumdp.explore(wears, {"x": 0}, space=space, labels={"broken": lambda s: s.x > 1})
"""
RUNS = {"unit": [1, 1, 1, 2, 2], "month": [0, 3, 5, 0, 2], "x": [0, 1, 2, 0, 0]}
LOOKS = {"x": [0, 1, 0], "months": [3, 2, 2], "next_x": [1, 2, 0]}
UNITS = ("--column", "episode=unit,step=month")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder with a model, and the same three looks as a table, as runs by number, and by date."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    runs = pd.DataFrame(RUNS)
    runs.to_csv("runs.csv", index=False)
    runs.assign(month=[f"2024-{1 + month:02}-17" for month in runs.month]).to_csv("dates.csv", index=False)
    pd.DataFrame(LOOKS).to_csv("looks.csv", index=False)
    return tmp_path


def counted(*words):
    done = plumdp("count", "model.py", *words, "--observation-gaps", "1:3", "-o", "counts.parquet", "--force")
    assert done.code == 0, done.err
    return pd.read_parquet("counts.parquet")


def test_looks_are_the_same_from_a_table_from_steps_and_from_dates_and_add_up(folder):
    table = counted("looks.csv", "--column", "gap=months")
    assert table.n.sum() == 3
    assert counted("runs.csv", *UNITS).equals(table)
    assert counted("dates.csv", *UNITS, "--steps", "monthly").equals(table)
    (folder / "plumdp.toml").write_text('observation-gaps = [1, 2, 3]\ncolumn = ["gap=months"]\n')
    assert plumdp("count", "model.py", "looks.csv", "-o", "own.parquet").code == 0
    assert pd.read_parquet("own.parquet").equals(table)
    (folder / "plumdp.toml").unlink()
    pd.DataFrame(LOOKS).head(1).to_csv("more.csv", index=False)
    counted("more.csv", "--column", "gap=months")
    assert counted("counts.parquet", "own.parquet").n.sum() == 4


REFUSED = {
    "dates": (("dates.csv", *UNITS), "has dates such as 2024-01-17"),
    "other periods": (("dates.csv", *UNITS, "--steps", "every=7d"), "whole number of periods"),
    "no gaps": (("looks.csv",), "--column gap=months"),
    "order alone": (("runs.csv", *UNITS, "--steps", "ordered"), "gaps between observations"),
    "a gap that the model lacks": (
        ("looks.csv", "--column", "gap=months", "--observation-gaps", "2"),
        "no observation after 3 steps",
    ),
    "no number": (("looks.csv", "--observation-gaps", "1,x"), "--observation-gaps 1,x: give whole numbers"),
    "no gap": (("looks.csv", "--observation-gaps", "0"), "observations after 0 steps: give whole numbers from 1 to 60"),
    "no looks": (("looks.csv", "--exact", "x=2"), "--exact: say with --observation-gaps"),
    "an end that can be left": (
        ("looks.csv", "--observation-gaps", "2", "--exact", "x=1"),
        "--exact x=1: (x=1) can be left",
    ),
    "a witness": (
        ("looks.csv", "--column", "gap=months", "-p", "P=? [ F<=2 x=2 ]", "--witness", "-o", "w"),
        "verify does not",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_understood_is_refused_in_the_words_of_the_command_line(name):
    words, told = REFUSED[name]
    command = "certify" if "--witness" in words else "count"
    looks = () if {"--observation-gaps", "--exact"} & {*words} else ("--observation-gaps", "1,2,3")
    done = plumdp(command, "model.py", *words, *looks)
    assert done.code == 2
    assert told in " ".join(done.err.split())


def test_a_log_with_gaps_says_which_option_reads_it():
    assert "--observation-gaps 1,2,3" in plumdp("count", "model.py", "dates.csv", *UNITS, "--steps", "monthly").err
