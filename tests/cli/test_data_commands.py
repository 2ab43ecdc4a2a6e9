"""``plumdp simulate``, ``count`` and ``counts-sql``: files, policies, mapped states, and how misuse ends."""

import numpy as np
import pytest
from support import refusals

import plumdp as pl
from plumdp.cli import main

STUDY = pl.case_study("betting:5")
LOG = """lon,battery,action,next_lon,next_battery
0.2,5,east,0.7,5
0.3,5,east,0.9,5
0.2,abc,east,0.9,15
0.2,500,east,0.9,15
"""
MAPPED = ["--state", "x=floor(lon/0.5)", "--state", "y=[0,10,100]", "--column", "y=battery,next_y=next_battery"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a log, a policy, and a file that is in the way."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "old.parquet").write_text("")
    pl.PolicyTable(STUDY.model.graph, STUDY.model.graph.first_choice[:-1]).to_csv(tmp_path / "policy.csv")
    return tmp_path


def run(capsys, *arguments):
    """Run the command line; return exit code, standard output and standard error."""
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return end.value.code or 0, *capsys.readouterr()


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "jsonl"])
def test_simulate_writes_the_format_that_the_name_says(ending, folder, capsys):
    done = run(capsys, "simulate", "betting:5", "-n", "20", "--seed", "4", "-o", f"runs.{ending}")
    assert done == (0, f"runs.{ending}: 120 steps of 20 runs, as transitions\n", "")
    expected = pl.simulate(STUDY.model, STUDY.true_point, 20, rng=4, max_steps=6)
    assert np.array_equal(pl.read_log(STUDY.model, f"runs.{ending}").counts.counts, expected.counts)
    assert (
        (folder / f"runs.{ending}").read_bytes().startswith({"parquet": b"PAR1", "csv": b"episode,"}.get(ending, b"{"))
    )


def test_simulate_follows_a_saved_policy(folder, capsys):
    code, *_ = run(
        capsys, "simulate", "betting:5", "-n", "20", "--policy", "policy.csv", "--form", "counts", "-o", "c.parquet"
    )
    counts = pl.read_counts(STUDY.model, "c.parquet")
    first = STUDY.model.graph.first_choice[:-1]
    assert code == 0
    assert counts.visits.sum() == counts.visits[first].sum() == 120


def test_force_replaces_a_file(folder, capsys):
    assert run(capsys, "simulate", "betting:5", "-n", "5", "-o", "old.parquet", "--force")[0] == 0
    assert run(capsys, "count", "betting:5", "old.parquet", "-o", "counts.parquet")[0] == 0
    assert run(capsys, "count", "betting:5", "old.parquet", "-o", "counts.parquet", "--force")[0] == 0


def test_count_maps_states_and_reports_what_does_not_fit(folder, capsys):
    assert run(capsys, "count", "glider:11,9", "log.csv", *MAPPED, "--keep-going", "-o", "counts.parquet") == (
        0,
        "4 log rows: 2 matched, 2 rejected\n"
        "  unknown state: 1 row; (x=0, y=above 100) (1×, row 4); y is 0 to 8 in the model\n"
        "  unreadable state: 1 row; (x=0, y=null) 'east' → (x=1, y=1) (1×, row 3)\n"
        "counts.parquet: 2 steps, counted, without bets, as the order of the data is not known (--order)\n",
        "",
    )


def test_the_query_has_mapped_states_and_snowflakes_capitals(capsys):
    code, query, _ = run(
        capsys, "count", "glider:11,9", "lake.log", "--sql", "snowflake", *MAPPED,
        "--action", "case when thrust > 0 then 'north' else 'south' end",
    )  # fmt: skip
    assert code == 0
    for part in ('"LON"', '"BATTERY"', '"NEXT_BATTERY"', 'CAST("THRUST" AS DOUBLE)', "'north'", "FROM lake.log"):
        assert part in query
    assert '"battery"' not in query


def test_misuse_ends_with_a_sentence_in_the_words_of_the_command_line(folder):
    refusals.misused("commands:files")


# logs that would mislead in silence

REPEATED = (
    "error: 4 of 6 rows do not fit the model:\n  repeated step: 4 rows; episode 0, step 0 (2 rows: next_money=9 in row "
    "1 of day-1.csv, next_money=11 in row 1 of day-2.csv)\n"
    "if each file numbers its runs anew, count each file by itself, and add the counts\n"
    "correct the log or the model, or count the other rows with --keep-going; --rejected rejected.csv writes all of "
    "these rows to a file\n"
)


@pytest.fixture
def days(tmp_path, monkeypatch):
    """Two files that number their runs anew, and more files that are numbered without zeros in front."""
    monkeypatch.chdir(tmp_path)
    names = "episode,step,money,state_step,action,next_money,next_step\n"
    first, second = "0,0,10,0,bet1,{},1\n0,1,{},1,bet1,{},2\n", "1,0,10,0,bet1,9,1\n"
    (tmp_path / "day-1.csv").write_text(names + first.format(9, 9, 8) + second)
    (tmp_path / "day-2.csv").write_text(names + first.format(11, 9, 8) + second.replace("1,0,", "2,0,", 1))
    for number in range(1, 12):
        (tmp_path / f"part-{number}.csv").write_text(names + 16 * f"0,{number},10,0,bet1,9,1\n".replace("0,", "3,", 1))
    return tmp_path


def test_files_that_number_their_runs_anew_are_counted_one_by_one(days, capsys):
    assert run(capsys, "count", "betting:5", "day-1.csv", "day-2.csv", "-o", "c.parquet") == (2, "", REPEATED)
    for day in "12":
        assert run(capsys, "count", "betting:5", f"day-{day}.csv", "-o", f"{day}.parquet")[0] == 0
    code, said, _ = run(capsys, "count", "betting:5", "1.parquet", "2.parquet", "-o", "c.parquet")
    assert (code, said.splitlines()[0]) == (0, "6 log rows: 6 matched, 0 rejected")


def test_a_run_in_two_files_without_steps_is_refused_in_the_words_of_the_command_line(days, capsys):
    for name in ("day-1.csv", "day-2.csv"):
        text = (days / name).read_text().replace("episode,step,", "episode,count,")
        (days / name).write_text(text)
    assert run(capsys, "count", "betting:5", "day-1.csv", "day-2.csv", "--order", "runs", "-o", "c.parquet") == (
        2,
        "",
        "error: episode 0 is in day-1.csv and in day-2.csv, and no column step tells whether a run goes on in the next "
        "file; so it is not known which runs came first; if each file numbers its runs anew, count each file by "
        "itself, and add the counts; if runs go on, give a column step that numbers their steps 0, 1, 2, …; or leave "
        "out --order and --sampling, to do without bets\n",
    )


def test_count_says_in_which_order_files_were_read(days, capsys):
    """Every row of a file is a copy of the first, so that each file has one step; the first bets need 64 rows."""
    code, said, _ = run(capsys, "count", "betting:5", "part-*.csv", "--order", "time", "-o", "c.parquet")
    assert (code, said) == (
        0,
        "176 log rows: 11 matched, 165 exact duplicates left out, 0 rejected\n"
        "c.parquet: 11 steps, counted, with bets after the first 64 "
        "(the rows of the log are in the order in which their steps happened; its files follow one another in this "
        "order: part-1.csv, part-2.csv, part-3.csv, …, part-11.csv (11 files))\n",
    )


NO_STEPS = {
    "a header alone": ("", "the log has 0 rows"),
    "one row of each run": (
        "0,0,10,0,\n1,0,11,1,\n",
        "each run has one row, and a step ends in the next row: give all files of these runs to one count",
    ),
}


@pytest.mark.parametrize(("rows", "why"), NO_STEPS.values(), ids=NO_STEPS)
@pytest.mark.parametrize("more", [[], ["--json"], ["-o", "c.parquet"]])
def test_a_count_without_steps_warns_and_ends_with_4(rows, why, more, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(f"episode,step,money,state_step,action\n{rows}")
    code, _, error = run(capsys, "count", "betting:5", "log.csv", *more)
    assert (code, error) == (4, f"warning: there are no data ({why})\n")


def test_one_row_of_each_run_with_its_action_is_a_part_of_the_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("episode,step,money,state_step,action\n0,0,10,0,bet1\n1,1,11,1,bet1\n")
    code, _, error = run(capsys, "count", "betting:5", "log.csv")
    assert (code, error) == (2, f"error: the log shows no step: {NO_STEPS['one row of each run'][1]}\n")


def test_runs_without_their_last_state_need_a_reason(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("episode,step,money,state_step,action\n0,0,10,0,bet1\n0,1,11,1,bet1\n")
    code, out, error = run(capsys, "count", "betting:5", "log.csv", "-o", "counts.parquet")
    assert (code, out) == (2, "")
    assert error.startswith("error: 1 of 1 runs end before the outcome of their last action: their last row has an ")
    assert error.endswith("or if the last action was never carried out, say --censoring unrelated\n")
    assert run(capsys, "count", "betting:5", "log.csv", "--censoring", "unrelated", "-o", "counts.parquet") == (
        0,
        "2 log rows: 1 matched, 1 end of runs (1 censored), 0 rejected\n"
        "counts.parquet: 1 step, counted, without bets, as the order of the data is not known (--order)\n",
        "",
    )
    said = {
        (): "no run ended because of it",
        ("--verbose",): "that 1 of 1 runs end before the outcome of their last action has nothing to do with that "
        "outcome (assumed; censoring= says so)",
    }
    for options, words in said.items():
        _, out, _ = run(capsys, "certify", "betting:5", "counts.parquet", *options)
        assert words in " ".join(out.split()).replace(" assuming ", " ")


# logs as recorders write them

PLANT = """Run,Time,Purse,N,Command
1,2024-01-01 07:00:00,10,0,BET0
1,2024-01-01 07:00:40,10,1, BET0
1,2024-01-01 07:00:40,10,1, BET0
1,2024-01-01 07:09:00,3,2,
"""
NAMES = ["--column", "episode=Run,step=Time,money=Purse,state_step=N"]


def test_a_log_with_times_other_names_copies_and_a_fault_is_counted_and_said(folder, capsys):
    (folder / "plant.csv").write_text(PLANT)
    count = ["count", "betting:5", "plant.csv", "-o", "counts.parquet", *NAMES, "--action", "lower(Command)"]
    code, _, error = run(capsys, *count, "--rejected", "bad.csv")
    assert code == 2
    assert "(1×, row 2, episode 1)" in error
    assert error.endswith("with --keep-going; all of these rows are in bad.csv\n")
    assert (folder / "bad.csv").read_text() == (
        "reason,file,row,Run,Time,Purse,N,Command\nimpossible transition,plant.csv,2,1,2024-01-01 07:00:40,10,1, BET0\n"
    )
    code, output, _ = run(capsys, *count, "--keep-going")
    assert code == 0
    assert output.splitlines()[0] == ("4 log rows: 1 matched, 1 end of runs, 1 exact duplicate left out, 1 rejected")
    assert output.splitlines()[2] == (
        "  assuming that the rows of each run follow one another in the order of column Time, and none in between is "
        "missing"
    )
    counts = pl.read_counts(STUDY.model, "counts.parquet")
    assert (counts.total, len(counts.report.assuming)) == (1, 1)
    code, _, error = run(capsys, "certify", "betting:5", "counts.parquet", "--steps", "ordered")
    assert (code, error.startswith("error: --steps: counts.parquet is a file of counts")) == (2, True)


def test_wrong_names_of_actions_are_refused_as_they_were_given(folder):
    (folder / "plant.csv").write_text(PLANT)
    refusals.misused("commands:actions_of_logs")
