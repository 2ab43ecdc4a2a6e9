"""``plumdp certify --by``: a table with a row for each unit of a log, and one unit alone."""

import json

import pandas as pd
import pytest
from command_line import plumdp

import plumdp as pl
from plumdp.watching.units import read_units_table

QUESTION = 'R{"money"}>=11 [ F "end" ]'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a log of three players, one of whom loses, and one with a row that cannot be read."""
    folder, study, frames = tmp_path_factory.mktemp("units"), pl.case_study("betting:5"), []
    for player, p in {"Ann": 0.9, "Bob": 0.1, "Cid": 0.5}.items():
        pl.data.write_runs(study.model, {"p": p}, 200, folder / "one.csv", rng=1, max_steps=6, form="trajectories")
        frames.append(pd.read_csv(folder / "one.csv").assign(player=player))
    frames[2].loc[3, "money"] = 999
    pd.concat(frames).to_parquet(folder / "log.parquet", index=False)
    return folder


def certify(folder, *options):
    return plumdp("certify", "betting:5", str(folder / "log.parquet"), "-p", QUESTION, *map(str, options))


def test_a_table_has_a_row_for_each_unit_and_a_later_run_goes_on_with_it(folder):
    file = folder / "results.parquet"
    found = certify(folder, "--by", "player", "--order", "runs", "-o", file)
    assert found.code == 2  # as a unit cannot be read
    assert "3 units: 1 failed, 1 no, 1 yes." in found.out
    assert "unknown state" in found.out
    rows = {row.unit: row for row in read_units_table(file).rows}
    assert {unit: (row.verdict, row.exit_code) for unit, row in rows.items()} == {
        "Ann": ("yes", 0), "Bob": ("no", 1), "Cid": ("failed", 2),
    }  # fmt: skip
    again = json.loads(certify(folder, "--by", "player", "--order", "runs", "-o", file, "--json").out)
    assert again["sentence"] == "3 units: 1 failed, 1 no, 1 yes."
    assert sum(row.seconds for row in read_units_table(file).rows) == 0  # none was certified again


def test_one_unit_alone_has_a_folder_and_the_bounds_of_its_row(folder):
    rows = {row.unit: row for row in read_units_table(folder / "results.parquet").rows}
    found = certify(folder, "--by", "player=Bob", "--order", "runs", "-o", folder / "bob")
    assert found.code == 1
    saved = pl.read_result(folder / "bob")
    assert (saved.lower, saved.upper) == (rows["Bob"].lower, rows["Bob"].upper)


def test_a_table_is_drawn(folder):
    found = plumdp("plot", "units", str(folder / "results.parquet"), "-o", str(folder / "units.svg"))
    assert found.code == 0
    shown = (folder / "units.svg").read_text(encoding="utf-8")
    assert "Ann" in shown
    assert "Too few units have bounds" in shown
    refused = plumdp("plot", "units", str(folder), "-o", str(folder / "other.svg"))
    assert refused.code == 2
    assert "takes the file of a table" in refused.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--by", "player", "-o", "folder"], "a file that ends in .parquet"),
        (["--by", "player", "--against", "practice"], "ask one thing at a time"),
        (["--by", "player", "-p", 'Pmax=? [ F "end" ]'], "a table answers one property"),
        (["--by", "site"], "the log has no such column"),
    ],
)
def test_what_a_table_does_not_have_is_refused(folder, options, message):
    found = certify(folder, *options)
    assert found.code == 2
    assert message in " ".join(found.err.split())
