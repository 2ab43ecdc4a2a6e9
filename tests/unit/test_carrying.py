"""Counts of files one after another: exactly those of the whole log, or refused, whatever goes on in which file."""

import os
import random
import signal
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from past_oracle import MODEL, by_hand, cells, log_of
from tiers import size

import plumdp as pl
from plumdp import DataError, LogFormat
from plumdp.base.edge import is_left
from plumdp.data import record
from plumdp.data.carrying import count_on
from plumdp.data.context_counts import OpenRuns, Pasts

HOW = LogFormat(columns={"episode": "run", "state": "x"}, censoring="unrelated")


def split_log(seed, n_runs=20):
    """Return a log, half of the times with rows that do not fit, and the file in which each row is."""
    rng = np.random.default_rng(seed)
    rows = log_of(n_runs, rng, n_odd=40 * (seed % 2))
    time = rng.integers(0, 80, n_runs)[rows["run"].to_numpy(int)] + rows["step"].to_numpy(int)
    file = np.searchsorted(np.sort(rng.integers(0, 140, rng.integers(1, 6))), time, side="right")
    return rows, file


def in_files(rows, file, folder, ending):
    """Write the rows of each file, in no order and with copies; return all rows that were written, and the files."""
    parts, names = [], []
    for number in np.unique(file):
        part = rows[file == number].sample(frac=1, random_state=1)
        parts.append(pd.concat([part, part[:3]]))
        names.append(str(folder / f"day-{number}.{ending}"))
        (parts[-1].to_csv if ending == "csv" else parts[-1].to_parquet)(names[-1], index=False)
    return pd.concat(parts), names


def told(counts):
    """Return all that is told of counts but when and from what they were read, and how dates are spaced."""
    assuming = tuple(each.partition(", although")[0] for each in counts.report.assuming)
    report = replace(counts.report, files=(), worst={}, hints={}, assuming=assuming)
    contexts = {(str(each.kind), each.name) for each in counts.contexts}, counts.no_contexts, cells(counts.contexts)
    return counts.counts.tolist(), contexts, counts.pilot, counts.sampling, report


FORMATS = {
    "numbers": (HOW, lambda rows: rows),
    "names": (HOW, lambda rows: rows.assign(run=[f"unit {run}" for run in rows["run"]])),
    "months": (
        replace(HOW, steps="monthly"),
        lambda rows: rows.assign(step=[pd.Timestamp(2020 + n // 12, 1 + n % 12, 3) for n in rows["step"]]),
    ),
    "dates": (HOW, lambda rows: rows.assign(step=pd.Timestamp("2024-01-01") + pd.to_timedelta(rows["step"], unit="h"))),
    "sites": (replace(HOW, known=["site"]), lambda rows: rows.assign(site=rows["run"] % 3)),
}


@pytest.mark.slow
@pytest.mark.parametrize("spelling", FORMATS)
def test_files_one_after_another_have_the_counts_of_the_whole_log(spelling, tmp_path):
    format, spelled = FORMATS[spelling]
    for seed in range(size(3, 40)):
        (folder := tmp_path / str(seed)).mkdir()
        rows, file = split_log(seed)
        rows, names = in_files(spelled(rows), file, folder, "csv" if seed % 3 else "parquet")
        whole = pl.read_log(MODEL, names, format, on_unmatched="report").counts
        for name in names:
            carried = count_on(MODEL, name, folder / "state.parquet", format, on_unmatched="report")
        assert told(carried.counts) == told(whole)
        assert whole.total > 100
        assert whole.no_contexts is None
        again = count_on(MODEL, names, folder / "state.parquet", format, on_unmatched="report")
        assert again.repeated == tuple(names)
        assert told(again.counts) == told(pl.read_counts(MODEL, folder / "state.parquet")) == told(whole)


def test_contexts_are_those_of_a_plain_loop_over_the_whole_log(tmp_path):
    rows, file = split_log(4)
    for number in np.unique(file):
        carried = count_on(MODEL, rows[file == number], tmp_path / "state.parquet", HOW, on_unmatched="report")
    assert cells(carried.counts.contexts) == by_hand(rows)


def forgets(**lost):
    def planted(found):
        def later(self):
            pasts = found(self)
            if "visited" in lost:
                return replace(pasts, first=0 * pasts.first, visited=pasts.visited[:, :0])
            before = pasts.before.copy()
            before[lost["row"]] = lost["value"]
            return replace(pasts, before=before)

        return later

    return planted


PLANTED = {
    "earlier_visits": forgets(visited=True),
    "earlier_steps": forgets(row=0, value=0),
    "when_the_state_was_entered": forgets(row=1, value=0),
    "the_step_before": forgets(row=2, value=-1),
}


@pytest.mark.parametrize("error", [None, *PLANTED.values()], ids=["nothing", *PLANTED])
def test_a_past_that_is_forgotten_is_found(error, tmp_path, monkeypatch):
    monkeypatch.setattr(OpenRuns, "found", error(OpenRuns.found) if error else OpenRuns.found)
    runs = [[0, 0, 0, 0, 1, 0], [0, 5, 0, 0, 0, 1], [0, 0, 0, 0, 0, 7]]
    rows = [[run, step, x, "a"] for run, path in enumerate(runs) for step, x in enumerate(path)]
    rows = pd.DataFrame(rows, columns=["run", "step", "x", "action"])
    for part in (rows[rows["step"] < 4], rows[rows["step"] >= 4]):
        carried = count_on(MODEL, part, tmp_path / "state.parquet", HOW)
    assert (cells(carried.counts.contexts) == by_hand(rows)) is (error is None)


def test_no_pasts_are_those_of_no_runs():
    assert Pasts.none().find(np.array([3], dtype=np.uint64)).tolist() == [-1]


ONE = pd.DataFrame({"run": 7, "step": [0, 1, 2, 3, 4], "x": [0, 1, 2, 1, 3], "action": ["a", "b", "b", "b", None]})


def both(first, second, folder, **options):
    """Count two frames one after another."""
    count_on(MODEL, first, folder / "state.parquet", HOW)
    return count_on(MODEL, second, folder / "state.parquet", HOW, **options)


def test_the_first_row_of_a_file_completes_the_last_step_of_the_file_before(tmp_path):
    assert both(ONE[:3], ONE[3:], tmp_path).counts.total == 4
    assert pl.read_log(MODEL, ONE[:3], HOW).counts.total + pl.read_log(MODEL, ONE[3:], HOW).counts.total == 3


def test_rows_that_come_late_are_refused(tmp_path):
    state = tmp_path / "state.parquet"
    for late, why in (
        (ONE[1:2], "run 7 has rows of steps before the last one that was counted"),
        (ONE[2:3].assign(x=4), "several rows of one step differ"),
    ):
        with pytest.raises(DataError, match=why):
            both(ONE[:3], late, tmp_path)
        state.unlink()
    count_on(MODEL, ONE, state, HOW)
    kept = state.read_bytes()
    for late in (ONE[2:3], ONE[4:].assign(step=5), pd.concat([ONE[:1], ONE.assign(run=8)])):
        with pytest.raises(DataError, match=r"run 7 ended in earlier files.* Nothing was counted"):
            count_on(MODEL, late, state, HOW)
        assert state.read_bytes() == kept


def test_a_row_that_is_in_both_files_counts_once(tmp_path):
    carried = both(ONE[:3], ONE[2:], tmp_path).counts
    assert carried.report.rows["copy"] == 1
    assert (carried.total, carried.report.matched) == (4, 4)


def test_what_would_be_read_otherwise_as_a_whole_is_refused(tmp_path):
    later = ONE.assign(run=8)
    for first, second, why in (
        (ONE.assign(step=[0, 2, 4, 6, 8]), later, "numbers of steps grow by one in some files and not in others"),
        (ONE, later.assign(run="8", step=["0", "1", "2", "3", "4"], x=["0", "1", "2", "1", "3"]), "write both alike"),
    ):
        with pytest.raises(DataError, match=why):
            both(first, second, tmp_path)
        (tmp_path / "state.parquet").unlink()
    apart = ONE.assign(step=[0, 2, 4, 6, 8])
    ordered = both(apart, apart.assign(run=8), tmp_path).counts
    assert ordered.total == 8
    assert "none in between is missing" in ordered.report.assuming[0]


def test_steps_that_are_said_to_be_ordered_may_grow_by_one_in_some_files(tmp_path):
    how, apart = replace(HOW, steps="ordered"), ONE.assign(step=[0, 2, 4, 6, 8])
    for part in (apart[:3], pd.concat([apart[3:], ONE.assign(run=8)])):
        carried = count_on(MODEL, part, tmp_path / "state.parquet", how)
    assert told(carried.counts) == told(pl.read_log(MODEL, pd.concat([apart, ONE.assign(run=8)]), how).counts)


def test_gaps_are_gaps_if_an_earlier_file_showed_that_steps_grow_by_one(tmp_path):
    apart = ONE.assign(run=8, step=[0, 2, 4, 6, 8])
    carried = both(ONE, apart, tmp_path, on_unmatched="report").counts
    whole = pl.read_log(MODEL, pd.concat([ONE, apart]), HOW, on_unmatched="report").counts
    assert told(carried) == told(whole)
    assert whole.report.rows["gap in steps"] == 4


def test_a_file_of_something_else_is_refused(tmp_path):
    state = tmp_path / "state.parquet"
    count_on(MODEL, ONE[:3], state, HOW)
    with pytest.raises(DataError, match="of files that were read with other words: columns="):
        count_on(MODEL, ONE[3:], state, replace(HOW, columns={"state": "x", "episode": "run", "step": "step"}))
    with pytest.raises(DataError, match="is of another model"):
        count_on(pl.case_study("betting:5").model, ONE, state)
    ONE.to_parquet(state)
    with pytest.raises(DataError, match="this file was written by something else"):
        count_on(MODEL, ONE, state, HOW)


def test_runs_whose_names_change_their_type_are_refused(tmp_path):
    state = tmp_path / "state.parquet"
    count_on(MODEL, ONE.assign(run=7.0), state, HOW)
    with pytest.raises(DataError, match=r"with numbers for runs, .* with texts for runs, .* write both alike"):
        count_on(MODEL, ONE.assign(run="7.0"), state, HOW)
    with pytest.raises(DataError, match=r"run 7 ended in earlier files"):
        count_on(MODEL, ONE, state, HOW)


def test_a_state_is_read_by_its_name_which_is_no_pattern(tmp_path):
    for name, shift in (("state1.parquet", 0), ("state[1].parquet", 100)):
        rows = ONE.assign(run=ONE["run"] + shift)
        for part in (rows[:3], rows[3:]):
            carried = count_on(MODEL, part, tmp_path / name, HOW)
        assert (carried.counts.total, carried.n_open) == (4, 0)


@pytest.mark.parametrize("is_run", [True, False])
def test_a_folder_that_grows_to_many_files_counts_each_of_them_once(is_run, tmp_path):
    (folder := tmp_path / "days").mkdir()
    how = HOW if is_run else LogFormat(columns={"state": "x", "next_state": "after"})
    for day in range(103):
        rows = ONE.assign(run=day) if is_run else pd.DataFrame({"x": [0] * (day + 1), "action": "a", "after": 1})
        rows.to_csv(folder / f"day-{day:03}.csv", index=False)
        if day in (0, 99, 101, 102):
            carried = count_on(MODEL, folder, tmp_path / "state.parquet", how)
            assert len(carried.repeated) == {0: 0, 99: 1, 101: 100, 102: 102}[day]
    assert carried.counts.total == pl.read_log(MODEL, folder, how).counts.total
    again = count_on(MODEL, folder, tmp_path / "state.parquet", how)
    assert (again.counts.total, len(again.repeated)) == (carried.counts.total, 103)
    fresh = count_on(MODEL, folder, tmp_path / "other.parquet", how)
    assert len(count_on(MODEL, folder, tmp_path / "other.parquet", how).repeated) == 103
    assert fresh.counts.total == carried.counts.total


def test_runs_of_which_most_are_open_are_counted_if_somebody_vouches_for_it(tmp_path):
    with pytest.raises(DataError, match=r"1 of 1 runs are open: .*censoring='unrelated'"):
        count_on(MODEL, ONE[:3], tmp_path / "state.parquet", replace(HOW, censoring=None))
    assert not [*tmp_path.iterdir()]
    assert both(ONE[:1], ONE[1:], tmp_path).counts.total == 4


def test_bets_are_those_of_the_first_file(tmp_path):
    study = pl.case_study("betting:5")
    runs = pd.DataFrame(record(study.model, study.true_point, 300, rng=1, max_steps=6).columns("trajectories"))
    state, format = tmp_path / "state.parquet", LogFormat(columns={"state_step": "state_step"})
    first = count_on(study.model, runs[runs["episode"] < 200], state, format, order="runs").counts
    later = count_on(study.model, runs[runs["episode"] >= 200], state, format, order="runs").counts
    whole = pl.read_log(study.model, runs, format, order="runs").counts
    assert first.pilot.lengths == later.pilot.lengths == (4.0, 16.0, 64.0)
    assert (later.counts == whole.counts).all()
    assert later.sampling == "adaptive"


def test_rows_of_transitions_carry_no_runs(tmp_path):
    rows = pl.data.record(*_of(), 50, rng=1, max_steps=6).columns()
    rows = pd.DataFrame(rows)
    for part in (rows[:111], rows[111:]):
        carried = count_on(_of()[0], part, tmp_path / "state.parquet")
    assert carried.n_open == 0
    assert (carried.counts.counts == pl.read_log(_of()[0], rows).counts.counts).all()


def test_transitions_that_were_counted_are_refused(tmp_path):
    how = LogFormat(columns={"episode": "run", "state": "x", "next_state": "after"})
    steps = [[run, step, step % 2, "a", 1 - step % 2] for run in range(5) for step in range(8)]
    rows = pd.DataFrame(steps, columns=["run", "step", "x", "action", "after"])
    state = tmp_path / "state.parquet"
    count_on(MODEL, rows[rows["step"] < 3], state, how)
    kept = state.read_bytes()
    late = r"run [0.]+ has rows of steps that were counted, or of steps before them \(and so for 4 other runs\). Not"
    for more in (rows, rows[rows["step"] >= 2].assign(run=lambda each: each["run"] * 1.0)):
        with pytest.raises(DataError, match=late):
            count_on(MODEL, more, state, how)
        assert state.read_bytes() == kept
    for more in (rows[(rows["step"] >= 3) & (rows["run"] > 1)], rows[(rows["step"] >= 3) & (rows["run"] < 2)]):
        counts = count_on(MODEL, more, state, how).counts
    assert (counts.counts == pl.read_log(MODEL, rows, how).counts.counts).all()
    bare = LogFormat(columns={"state": "x", "next_state": "after"})
    for part in (rows[:9], rows[9:]):
        counts = count_on(MODEL, part[["x", "action", "after"]], tmp_path / "bare.parquet", bare).counts
    assert counts.total == 40


def _of():
    study = pl.case_study("betting:5")
    return study.model, study.true_point


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_job_that_is_killed_at_any_time_may_run_again(tmp_path):
    rows, file = split_log(5)
    rows, names = in_files(rows, file, tmp_path, "csv")
    whole = pl.read_log(MODEL, names, HOW, on_unmatched="report").counts
    rng, state, n_killed, takes = random.Random(1), tmp_path / "state.parquet", 0, 0.2
    while n_killed < size(5, 50):
        state.unlink(missing_ok=True)
        for name in names:
            if not (job := os.fork()):
                count_on(MODEL, name, state, HOW, on_unmatched="report")
                os._exit(0)
            time.sleep(rng.uniform(0, takes))
            os.kill(job, signal.SIGKILL)
            n_killed += os.waitpid(job, 0)[1] == signal.SIGKILL
            begun = time.monotonic()
            carried = count_on(MODEL, name, state, HOW, on_unmatched="report")
            takes = max(takes, 1.5 * (time.monotonic() - begun))
        assert told(carried.counts) == told(whole)
    others = {each.name for each in tmp_path.iterdir()} - {
        "state.parquet",
        *(name.rpartition("/")[2] for name in names),
    }
    assert all(map(is_left, others))
