"""Contexts: what of the past of its run each step has before its outcome, counted alike by every engine."""

from dataclasses import replace
from itertools import pairwise

import duckdb
import numpy as np
import pandas as pd
import pytest
from in_format import in_format
from past_oracle import MODEL, by_hand, cells, log_of

import plumdp as pl
from plumdp import DataError
from plumdp.data import record
from plumdp.data.context_counts import ContextCounter
from plumdp.data.contexts import VALUES, Context, ContextKind
from plumdp.data.files import read_counts, write_counts
from plumdp.data.logs import read_log
from plumdp.data.sql import counts_query
from plumdp.result.data_file import read_data, write_data

PLACES = {"episode": "episode", "step": "step"}
ANYHOW = {"on_unmatched": "report", "censoring": "unrelated"}


def read(rows, **options):
    return read_log(MODEL, rows, **in_format(columns={"episode": "run", "state": "x"}, **ANYHOW, **options)).counts


@pytest.mark.parametrize("seed", range(4))
def test_a_log_has_the_contexts_that_a_plain_loop_finds(seed):
    rows = log_of(30, np.random.default_rng(seed), n_odd=40 * (seed % 2))
    expected = by_hand(rows)
    assert len({value for kind, value, _ in expected if kind == "visits"}) > 4
    orders = [rows, rows.sample(frac=1, random_state=seed), pd.concat([rows, rows[:50]])]
    named = rows.assign(run=[f"unit {run}" for run in rows["run"]])
    for log in (*orders, named):
        counts = read(log)
        assert counts.no_contexts is None
        assert cells(counts.contexts) == expected


def test_the_pilot_of_contexts_is_of_the_runs_of_the_pilot(tmp_path):
    rows = log_of(200, np.random.default_rng(7), n_odd=60)
    first = by_hand(rows[rows["run"] < 16])
    rows.iloc[:900].to_csv(tmp_path / "1.csv", index=False)
    rows.iloc[900:].to_csv(tmp_path / "2.csv", index=False)
    files = [str(tmp_path / f"{i}.csv") for i in (1, 2)]
    for log in (rows, rows.sample(frac=1, random_state=1), files):
        for options in ({"sampling": "trajectories"}, {"order": "runs"}):
            counts = read(log, **options)
            assert cells(counts.contexts) == by_hand(rows)
            assert cells(counts.contexts, of_pilot=True) == first
    timed = read(rows, order="time")
    assert cells(timed.contexts) == by_hand(rows)


@pytest.mark.parametrize("form", ["trajectories", "transitions"])
def test_the_query_for_warehouses_finds_the_same_contexts(form):
    rows = log_of(150, np.random.default_rng(8), n_odd=80 * (form == "trajectories"))
    expected, first = by_hand(rows), by_hand(rows[rows["run"] < 16])
    if form == "transitions":
        after = rows.groupby("run")["x"].shift(-1)
        rows = rows.assign(next_state=after)[after.notna()].astype({"next_state": int})
    lake = pd.concat([rows, rows[:50]]).sample(frac=1, random_state=1)
    columns = {"episode": "run", "step": "step", "state": "x"}
    for options in ({"sampling": "trajectories"}, {"order": "runs"}):
        query = counts_query(MODEL, table="lake", dialect="duckdb", **in_format(form=form, columns=columns, **options))
        with duckdb.connect() as connection:
            result = connection.register("lake", lake).execute(query).df()
        sampling = options.get("sampling", "adaptive")
        counts = read_log(MODEL, result, sampling=sampling, **in_format(**ANYHOW)).counts
        assert cells(counts.contexts) == expected
        assert cells(counts.contexts, of_pilot=True) == first


def with_site(rows):
    return rows.assign(
        site=np.where(rows["run"] % 3 == 0, "here", "there"), failed=rows.groupby("run")["x"].transform("max")
    )


@pytest.mark.parametrize("form", ["trajectories", "transitions"])
def test_a_column_that_is_known_before_a_run_is_a_context(form):
    """By itself a column is none, though it is constant within runs: what is known in the end speaks against all."""
    rows = with_site(log_of(150, np.random.default_rng(8), n_odd=80 * (form == "trajectories")))
    whole, first = by_hand(rows, "site"), by_hand(rows[rows["run"] < 16], "site")
    if form == "transitions":
        after = rows.groupby("run")["x"].shift(-1)
        rows = rows.assign(next_state=after)[after.notna()].astype({"next_state": int})
    rows = pd.concat([rows, rows[:50]])
    columns = {"episode": "run", "step": "step", "state": "x"}
    query = counts_query(
        MODEL, pl.LogFormat(columns=columns, form=form, known=["site"]), table="lake", dialect="duckdb", order="runs"
    )
    with duckdb.connect() as connection:
        result = connection.register("lake", rows).execute(query).df()
    for counts in (
        read(rows, order="runs", known=["site"]),
        read_log(MODEL, result, **in_format(known=["site"], **ANYHOW)).counts,
    ):
        assert cells(counts.contexts) == whole
        assert cells(counts.contexts, of_pilot=True) == first
    assert cells(read(rows, order="runs").contexts) == cells(
        read_log(MODEL, result, **in_format(**ANYHOW)).counts.contexts
    )
    assert {str(each.kind) for each in read(rows).contexts} == {*VALUES}


def test_what_cannot_be_known_before_a_run_is_refused():
    rows = with_site(log_of(30, np.random.default_rng(3)))
    with pytest.raises(DataError, match="x changes in run 0, so that it is not known before the run begins"):
        read(rows, known=["x"])
    with pytest.raises(DataError, match="the log has no column arm"):
        read(rows, known=["arm"])
    with pytest.raises(DataError, match="30 values, and at most 8 are told apart"):
        read(rows.assign(unit=rows["run"]), known=["unit"])
    early, late = (read(rows.assign(group=rows["run"] % 8 + k), known=["group"]) for k in (0, 1))
    with pytest.raises(DataError, match="group has 9 values in these data together"):
        early + late


def test_recorded_and_simulated_runs_have_the_contexts_of_their_log():
    study = pl.case_study("betting:25")
    about = {"rng": 1, "max_steps": 25}
    runs = record(study.model, study.true_point, 300, **about)
    log = read_log(study.model, pd.DataFrame(runs.columns("trajectories")), sampling="trajectories").counts
    rows = pd.DataFrame(runs.columns()).sample(frac=1, random_state=1)
    moves = read_log(study.model, rows, sampling="trajectories").counts
    for counts in (runs.counts(), pl.simulate(study.model, study.true_point, 300, **about), moves):
        assert cells(counts.contexts) == cells(log.contexts)
        assert cells(counts.contexts, of_pilot=True) == cells(log.contexts, of_pilot=True)
    assert sum(cells(log.contexts, of_pilot=True).values()) == 5 * log.pilot.total > 0


def test_a_log_in_parts_has_the_contexts_of_the_whole(tmp_path):
    rows = log_of(60, np.random.default_rng(3))
    parts = [read(rows[rows["run"] % 3 == i]) for i in range(3)]
    whole = sum(parts)
    assert cells(whole.contexts) == by_hand(rows)
    write_counts(whole, tmp_path / "counts.parquet")
    assert read_counts(MODEL, tmp_path / "counts.parquet").fingerprint == whole.fingerprint
    write_data(tmp_path / "data.npz", MODEL, whole)
    assert read_data(tmp_path / "data.npz")[1].fingerprint == whole.fingerprint


def test_only_the_first_of_added_data_are_pilot_data():
    rows = log_of(200, np.random.default_rng(2))
    early, late = read(rows[rows["run"] < 150], order="runs"), read(rows[rows["run"] >= 150], order="runs")
    both = early + late
    assert (
        cells(both.contexts, of_pilot=True) == cells(early.contexts, of_pilot=True) == by_hand(rows[rows["run"] < 16])
    )


def the_rows_that_do_not_match_are_dropped_first(add):
    def wrong(counter, first, state, choice, transition, is_pilot):
        kept = transition >= 0
        before = np.append(0, np.cumsum(kept))[first]
        add(counter, before, *(each[kept] for each in (state, choice, transition, is_pilot)))

    return wrong


def a_past_is_what_comes_later(add):
    def wrong(counter, first, *steps):
        turned = np.concatenate([np.arange(a, b)[::-1] for a, b in pairwise(first)])
        add(counter, first, *(each[turned] for each in steps))

    return wrong


def all_runs_are_one(add):
    return lambda counter, first, *steps: add(counter, first[[0, -1]], *steps)


def the_pilot_is_main_data(add):
    return lambda counter, *steps, **_: add(counter, *steps[:-1], np.zeros_like(steps[-1]))


ERRORS = [
    the_rows_that_do_not_match_are_dropped_first,
    a_past_is_what_comes_later,
    all_runs_are_one,
    the_pilot_is_main_data,
]


@pytest.mark.parametrize("error", ERRORS)
def test_a_planted_error_is_found(error, monkeypatch):
    rows = log_of(130, np.random.default_rng(7), n_odd=60)
    first = by_hand(rows[rows["run"] < 16])
    monkeypatch.setattr(ContextCounter, "add", error(ContextCounter.add))
    contexts = read(rows, sampling="trajectories").contexts
    assert cells(contexts) != by_hand(rows) or cells(contexts, of_pilot=True) != first


def test_values_are_those_of_fixed_bins():
    """Joins that depend on how often a value occurs in the end would make a fair test win: 1.23 on average."""
    for n in (1, 30):
        contexts = read(log_of(n, np.random.default_rng(1))).contexts
        assert {each.kind: each.values for each in contexts} == VALUES


@pytest.mark.parametrize("shown", ["number", "date", "text"])
def test_steps_of_transitions_may_be_dates(shown):
    rows = log_of(30, np.random.default_rng(4))
    after = rows.groupby("run")["x"].shift(-1)
    moves = rows.assign(next_state=after)[after.notna()].astype({"next_state": int})
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(7 * moves["step"], unit="D")
    steps = {"number": moves["step"], "date": days, "text": days.dt.strftime("%Y-%m-%d")}[shown]
    for log in (each.assign(step=steps) for each in (moves, moves.sample(frac=1, random_state=1))):
        counts = read(pd.concat([log, log[:9]]))
        assert counts.no_contexts is None
        assert cells(counts.contexts) == by_hand(rows)
        assert counts.report.rows["copy"] == 9


class TestNone:
    def test_steps_that_tie(self):
        rows = log_of(5, np.random.default_rng(1))
        other = rows.iloc[[3]].assign(x=(rows.iloc[3]["x"] + 1) % 8)
        assert read(pd.concat([rows, other])).no_contexts == "ties"

    def test_rows_without_run_or_step(self):
        rows = pd.DataFrame({"x": [0, 1], "action": "a", "next_state": [1, 0], "run": [1, 1], "step": [0, 1]})
        assert read(rows).no_contexts is None
        assert read(rows.assign(run=[1, None])).no_contexts == "unplaced"
        assert read(rows.assign(step=["1", "later"])).no_contexts == "unplaced"
        assert read(rows.assign(step=["sooner", "later"])).no_contexts == "unplaced"

    def test_rows_that_a_warehouse_cannot_place(self):
        rows = pd.DataFrame({"state": [0, 0, 1], "action": "a", "next_state": [1, 1, 0], "episode": 1})
        about = {"table": "lake", "dialect": "duckdb", "form": "transitions", "columns": PLACES}
        for steps, reason in (([0, 1, 2], None), ([0, 1, None], "unplaced")):
            with duckdb.connect() as connection:
                result = (
                    connection.register("lake", rows.assign(step=steps))
                    .execute(counts_query(MODEL, **in_format(**about)))
                    .df()
                )
            assert read_log(MODEL, result).counts.no_contexts == reason

    def test_a_table_of_transitions(self):
        rows = pd.DataFrame({"state": [0], "action": ["a"], "next_state": [1]})
        assert read_log(MODEL, rows).counts.no_contexts == "order"

    def test_samples_that_were_drawn_for_each_choice(self):
        assert read(log_of(5, np.random.default_rng(1)), sampling="independent").no_contexts == "independent"

    def test_a_sum_of_which_one_part_has_none(self):
        counts = read(log_of(5, np.random.default_rng(1)))
        plain = pl.TransitionCounts(counts.graph, counts.counts, "adaptive")
        assert (counts + plain).no_contexts == (plain + counts).no_contexts == "parts"


def test_contexts_of_other_counts_are_refused():
    counts = read(log_of(5, np.random.default_rng(1)))
    with pytest.raises(DataError, match="not that of these counts"):
        replace(counts, counts=counts.counts + 1)
    one = np.array([1])
    with pytest.raises(DataError, match="in order, each once"):
        Context(ContextKind.KNOWN, "site", ("a",), one, one, one, one)


def test_the_outcome_of_a_step_changes_none_of_its_contexts():
    """Each context is known before the outcome: whatever the last step of a run shows, it is the same."""
    rows = log_of(1, np.random.default_rng(5))
    rows = rows[rows["step"] <= 12].assign(run=0)
    cut = len(rows) - 1
    rows = rows.assign(x=[*rows["x"][:-2], 0, 0], action=[*rows["action"][:-2], "a", None])
    seen = [cells(read(rows.assign(x=[*rows["x"][:cut], after])).contexts) for after in range(8)]
    past = [sorted((kind, value) for kind, value, _ in each.elements()) for each in seen]
    assert all(each == past[0] for each in past)
