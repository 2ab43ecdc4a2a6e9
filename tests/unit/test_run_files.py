"""Runs written to files, under given policies, and what a report says of the files it was read from."""

import json
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from log_models import LAMP, rows_of

import plumdp as pl
from plumdp.data import trajectories
from plumdp.data.same_files import describe_files
from plumdp.data.trajectories import write_runs
from plumdp.model.policy import policy_weights

POINT, RUNS = {"p": 0.6}, {"rng": 3, "max_steps": 9}
STUDY = pl.case_study("betting:5")


@pytest.mark.parametrize("piece", [1, 1 << 23])
@pytest.mark.parametrize("form", ["transitions", "trajectories"])
@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "jsonl"])
def test_written_runs_are_read_back_as_the_counts_in_memory(ending, form, piece, tmp_path, monkeypatch):
    monkeypatch.setattr(trajectories, "_PIECE", piece)
    stop = LAMP.graph.states["place_x"] == 2
    n = write_runs(LAMP, POINT, 300, tmp_path / f"runs.{ending}", form=form, stop=stop, **RUNS)
    recorded = pl.data.record(LAMP, POINT, 300, stop=stop, **RUNS)
    log = pl.read_log(LAMP, tmp_path / f"runs.{ending}", pl.LogFormat(form=form))
    assert n == len(recorded)
    assert np.array_equal(log.counts.counts, recorded.counts().counts)
    assert [file.name for file in tmp_path.iterdir()] == [f"runs.{ending}"]


@pytest.mark.parametrize("form", ["transitions", "trajectories"])
def test_lines_of_json_have_the_columns_of_recorded_runs_in_their_order(form, tmp_path):
    write_runs(LAMP, POINT, 20, tmp_path / "runs.jsonl", form=form, **RUNS)
    lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == rows_of(pl.data.record(LAMP, POINT, 20, **RUNS).columns(form))


def test_a_name_that_says_no_format_is_refused(tmp_path):
    with pytest.raises(pl.DataError) as error:
        write_runs(LAMP, POINT, 5, tmp_path / "runs.xlsx", **RUNS)
    assert str(error.value) == (
        f"{tmp_path / 'runs.xlsx'}: the name of a file of runs must end in one of .parquet, .csv, .json, .jsonl"
    )


# policies to sample by


def test_a_policy_of_probabilities_is_read_as_it_was_written(tmp_path):
    graph = LAMP.graph
    weights = np.zeros(graph.n_choices)
    weights[graph.first_choice[:-1]] = 0.25
    weights[graph.first_choice[:-1] + 1] = 0.75
    owner, names = graph.state_of_choice(), graph.action_names
    rows = [
        ",".join(
            [*(str(values[owner[c]]) for values in graph.states.values()), names[graph.action[c]], str(weights[c])]
        )
        for c in reversed(range(graph.n_choices))
    ]
    (tmp_path / "policy.csv").write_text("\n".join([",".join([*graph.states, "action", "probability"]), *rows]))
    policy = pl.read_policy(LAMP, tmp_path / "policy.csv")
    assert np.array_equal(policy.weights, weights)
    policy.to_csv(tmp_path / "again.csv")
    pl.exchange.write_policy(policy, tmp_path / "again.json")
    for name in ("again.csv", "again.json"):
        assert np.array_equal(pl.read_policy(LAMP, tmp_path / name).weights, weights)


def test_a_policy_of_actions_is_read_as_probabilities_of_one(tmp_path):
    policy = pl.PolicyTable(LAMP.graph, LAMP.graph.first_choice[:-1])
    policy.to_csv(tmp_path / "policy.csv")
    read = pl.read_policy(LAMP, tmp_path / "policy.csv")
    assert np.flatnonzero(policy_weights(LAMP.graph, read)).tolist() == policy.choice.tolist()


@pytest.mark.slow
def test_advice_is_saved_as_a_policy_that_runs_follow(tmp_path):
    counts = pl.simulate(STUDY.model, STUDY.true_point, 20_000, rng=1, max_steps=6)
    advice = pl.advise(pl.learn(STUDY.model, counts, objectives=[STUDY.objective]), STUDY.objective)
    advice.to_csv(tmp_path / "policy.csv")
    read = pl.read_policy(STUDY.model, tmp_path / "policy.csv").weights
    assert np.array_equal(read, advice.sampling)
    seen = pl.simulate(STUDY.model, STUDY.true_point, 50, rng=1, max_steps=6, policy=read)
    assert not seen.visits[read == 0].any()


HEADER = "place_x,lit,mode,action,probability"
BAD_POLICIES = {
    "half a policy": ("0,false,rest,go,0.5",
                      "state (place_x=0, lit=false, mode=rest): the policy's probabilities sum to 0.5, not 1"),
    "a row twice": ("0,false,rest,go,0.5\n0,false,rest,go,0.5",
                    "state (place_x=0, lit=false, mode=rest), action 'go': it has several rows; give one"),
    "no number": ("0,false,rest,go,often", "row 1: 'often' is not a probability"),
    "no state": ("9,false,rest,go,1", "row 1, (place_x=9, lit=false, mode=rest) is not a state of the model"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_POLICIES)
def test_a_bad_policy_of_probabilities_is_refused(case, tmp_path):
    rows, message = BAD_POLICIES[case]
    (tmp_path / "policy.csv").write_text(f"{HEADER}\n{rows}\n")
    with pytest.raises(pl.DataError) as error:
        pl.read_policy(LAMP, tmp_path / "policy.csv")
    assert str(error.value) == f"{tmp_path / 'policy.csv'}: {message}"


# where data come from


def test_the_report_names_the_files_and_keeps_them_in_files_of_counts(tmp_path):
    write_runs(LAMP, POINT, 20, tmp_path / "runs.csv", **RUNS)
    content = (tmp_path / "runs.csv").read_bytes()
    counts = pl.read_log(LAMP, tmp_path / "runs.csv").counts
    (file,) = counts.report.files
    assert (file.name, file.size, file.hashed) == (str(tmp_path / "runs.csv"), len(content), "all of it")
    assert file.hash == blake2b(content, digest_size=16).hexdigest()
    pl.write_counts(counts, tmp_path / "counts.parquet")
    again = pl.read_counts(LAMP, tmp_path / "counts.parquet")
    assert (again.report.files, again.report.read) == (counts.report.files, counts.report.read)
    write_runs(LAMP, POINT, 20, tmp_path / "more.csv", **(RUNS | {"rng": 9}))
    more = pl.read_log(LAMP, tmp_path / "more.csv").counts
    assert (again + more).report.files == (file, *more.report.files)


def test_large_files_are_hashed_at_both_ends_and_many_files_by_their_names(tmp_path):
    large = bytes(range(256)) * 20_000
    (tmp_path / "large").write_bytes(large)
    (file,) = describe_files([str(tmp_path / "large")])
    assert file.hash == blake2b(large[:1_000_000] + large[-1_000_000:], digest_size=16).hexdigest()
    assert file.hashed == "its first and last million bytes"
    files = [str(tmp_path / f"{i:03}") for i in range(101)]
    for name in files:
        Path(name).write_text("x")
    (together,) = describe_files(files)
    assert (together.size, together.hashed) == (101, "names, sizes and dates of all of them, not their content")
    assert together.name == f"101 files from {files[0]} to {files[-1]}"


def test_certificates_say_where_their_data_come_from(tmp_path):
    write_runs(STUDY.model, STUDY.true_point, 200, tmp_path / "runs.csv", rng=1, max_steps=6)
    log = pl.read_log(STUDY.model, tmp_path / "runs.csv")
    certificate = pl.certify(STUDY.model, log.counts, STUDY.objective)
    assert certificate.rests_on.provenance["data 1"] == str(log.report.files[0])
    assert certificate.rests_on.provenance["data 1"].startswith(f"{tmp_path / 'runs.csv'}: ")
    assert certificate.rests_on.provenance["data read"] == log.report.read


# messages


def bad_log(folder):
    """Write a log of three files with a mistake in each."""
    write_runs(LAMP, POINT, 3, folder / "good.csv", **RUNS)
    header = (folder / "good.csv").read_text().splitlines()[0]
    assert header == "episode,step,place_x,lit,mode,action,next_place_x,next_lit,next_mode"
    (folder / "a.csv").write_text(f"{header}\n7,0,0,no,rest,rest,0,no,rest\n7,1,0,No,rest,goo,1,no,work\n")
    (folder / "b.csv").write_text(f"{header}\n8,0,5,no,rest,rest,0,no,rest\n8,1,5,no,rest,rest,0,no,rest\n")
    return [folder / name for name in ("good.csv", "a.csv", "b.csv")]


def test_rejected_rows_are_named_by_file_and_number_with_what_may_be_meant(tmp_path):
    files = bad_log(tmp_path)
    with pytest.raises(pl.DataError) as error:
        pl.read_log(LAMP, files)
    assert str(error.value) == (
        "3 of 31 rows do not fit the model:\n"
        "  unknown state: 2 rows; (place_x=5, lit=no, mode=rest) (2×, first in row 1 of b.csv, episode 8); "
        "place_x is 0 to 2 in the model\n"
        "  unknown action: 1 row; 'goo' (1×, row 2 of a.csv, episode 7); did you mean 'go'?\n"
        "correct the log or the model, or count the other rows with on_unmatched='report'; "
        "rejected='rejected.csv' writes all of these rows to a file"
    )


def test_a_file_of_counts_among_logs_is_recognised(tmp_path):
    write_runs(LAMP, POINT, 3, tmp_path / "runs.parquet", **RUNS)
    pl.write_counts(pl.read_log(LAMP, tmp_path / "runs.parquet").counts, tmp_path / "counts.parquet")
    with pytest.raises(pl.DataError) as error:
        pl.read_log(LAMP, [tmp_path / "runs.parquet", tmp_path / "counts.parquet"])
    assert str(error.value) == (
        f"{tmp_path / 'counts.parquet'} is a file of counts that plumdp wrote, not a log; give the log that it was "
        "counted from, or count the other files by themselves and add their counts to it, with read_counts"
    )
