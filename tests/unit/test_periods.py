"""Steps that are dates: a period without one is a gap, and how they are spaced is said."""

from datetime import date, datetime, timedelta

import duckdb
import numpy as np
import pandas as pd
import pytest
from in_format import in_format
from log_models import LAMP, recount, runs
from refusals import refused

import plumdp as pl
from plumdp.data.logs import read_log
from plumdp.data.periods import spacing_in_words
from plumdp.data.sql import counts_query

RUNS = pd.DataFrame(runs(LAMP, {"p": 0.6}, 40)[0]["trajectories"])
LACKING = RUNS.drop(index=range(4, len(RUNS), 13))  # some months without a row, none of them the last of a run
ANYHOW = {"on_unmatched": "report", "censoring": "unrelated"}
FIRST = {"monthly": date(2023, 11, 30), "weekly": date(2023, 12, 31), "daily": date(2024, 2, 27)}


def dated(frame, steps, seed=1):
    """Return rows whose steps are some day of their month, week or day, at some time of the day, by plain Python."""
    rng, start = np.random.default_rng(seed), FIRST.get(steps, date(2024, 3, 30))
    times = []
    for step in frame.step.tolist():
        if steps == "monthly":
            month = 12 * start.year + start.month - 1 + step
            day = date(month // 12, month % 12 + 1, int(rng.integers(1, 29)))
        elif steps == "weekly":
            day = start - timedelta(days=start.weekday()) + timedelta(days=7 * step + int(rng.integers(7)))
        else:
            day = start + timedelta(days=(30 if steps == "every=30d" else 1) * step)
        clock = 0 if steps == "every=30d" else int(rng.integers(86400))
        times.append(datetime(day.year, day.month, day.day) + timedelta(seconds=clock))
    return frame.assign(step=times)


@pytest.mark.parametrize("steps", ["monthly", "weekly", "daily", "every=30d"])
@pytest.mark.parametrize("file", ["frame", "log.csv", "log.parquet", "dates.csv"])
def test_periods_without_a_row_are_gaps_as_they_are_with_numbers(steps, file, tmp_path):
    log = dated(LACKING.sample(frac=1, random_state=2), steps)
    if file == "dates.csv":
        log = log.assign(step=log.step.dt.strftime("%Y-%m-%d"))
    if file != "frame":
        log.to_parquet(tmp_path / file) if file.endswith("parquet") else log.to_csv(tmp_path / file, index=False)
    source = log if file == "frame" else tmp_path / file
    read = read_log(LAMP, source, **in_format(steps=steps, **ANYHOW))
    counts, kinds = recount(LACKING.to_dict("records"), LAMP.graph, "trajectories")
    assert kinds["gap in steps"] > 10
    assert np.array_equal(read.counts.counts, counts)
    assert {kind: n for kind, n in read.report.rows.items() if n} == kinds
    assert read.report.assuming == ()
    assert "about twice the usual" in str(read_log(LAMP, source, **in_format(**ANYHOW)))


def test_a_missing_month_that_is_passed_over_is_a_false_transition():
    """The error that dates are: without ``steps`` two months count as one, and the counts are others."""
    counts = recount(LACKING.to_dict("records"), LAMP.graph, "trajectories")[0]
    assert not np.array_equal(read_log(LAMP, dated(LACKING, "monthly"), **in_format(**ANYHOW)).counts.counts, counts)


@pytest.mark.parametrize("steps", ["monthly", "weekly", "daily"])
def test_a_warehouse_counts_the_same_periods(steps):
    log = dated(LACKING, steps)
    query = counts_query(LAMP, pl.LogFormat(form="trajectories", steps=steps), table="log", dialect="duckdb")
    back = read_log(LAMP, duckdb.sql(query).df(), **in_format(**ANYHOW))
    assert len(log) == back.report.total
    assert np.array_equal(back.counts.counts, read_log(LAMP, log, **in_format(steps=steps, **ANYHOW)).counts.counts)


def test_two_rows_in_one_month_contradict_each_other():
    log = dated(RUNS, "monthly")
    log.loc[1, "step"] = log.step[0] + timedelta(days=1) if log.step[0].day < 28 else log.step[0] - timedelta(days=1)
    assert read_log(LAMP, log, **in_format(steps="monthly", **ANYHOW)).report.rows["repeated step"] == 2


@pytest.mark.parametrize("is_query", [False, True])
def test_whether_two_looks_in_one_month_agree_does_not_decide_what_is_counted(is_query):
    """Whoever looks twice sees the same if nothing happened in between: counting that would hide what did happen."""
    log, rng = dated(RUNS, "monthly"), np.random.default_rng(1)
    later = log[(log.groupby("episode").cumcount() == 2) & (log.step.dt.day < 28)]
    later = later.assign(step=later.step + timedelta(hours=1))
    found = []
    for lit in (later.lit, ~later.lit, later.lit ^ (rng.random(len(later)) < 0.5)):
        both, options = pd.concat([log, later.assign(lit=lit)]), {"steps": "monthly"}
        if is_query:
            query = counts_query(
                LAMP, pl.LogFormat(form="trajectories", steps="monthly"), table="both", dialect="duckdb"
            )
            both, options = duckdb.sql(query).df(), {}
        read = read_log(LAMP, both, **in_format(**options, **ANYHOW))
        assert read.report.rows["repeated step"] == 2 * len(later) > 20
        found.append(read.counts.counts.tolist())
    assert found[0] == found[1] == found[2]


def test_what_is_not_a_period_is_refused_with_what_to_do():
    refused("logs:periods", globals(), pl.DataError)


def test_a_query_cannot_tell_whether_dates_are_whole_numbers_of_a_period():
    with pytest.raises(pl.DataError, match=r"^steps='every=30d': a query cannot tell whether dates are whole periods "):
        counts_query(LAMP, pl.LogFormat(form="trajectories", steps="every=30d"), table="log", dialect="bigquery")


def test_a_date_that_cannot_be_read_is_shown(tmp_path):
    dated(RUNS, "monthly").assign(step="17.05.2021").to_csv(tmp_path / "log.csv", index=False)
    for steps, text in ((None, "'17.05.2021'; steps are"), ("monthly", "'17.05.2021' is not a date; steps are")):
        with pytest.raises(pl.DataError, match=f"no episode or step: {len(RUNS)} rows; {text} numbers, or dates and "):
            read_log(LAMP, tmp_path / "log.csv", pl.LogFormat(steps=steps))


def test_the_share_of_long_intervals_is_that_of_the_log():
    """Of 10 intervals of a day in each run, one lasts two days: 10 %."""
    days = [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    times = [datetime(2024, 1, 1) + timedelta(days=day) for day in days]
    log = pd.DataFrame({"episode": 1, "step": times, "place_x": 0, "lit": False, "mode": "rest", "action": "rest"})
    (assumed,) = read_log(LAMP, pd.concat([log, log.assign(episode=2)]), **in_format(**ANYHOW)).report.assuming
    assert assumed.endswith("missing, although 10 % of the intervals are about twice the usual 1 day")
    assert spacing_in_words(90e6, 0.005) == "0.5 % of the intervals are about twice the usual 1.5 minutes"
    assert pl.LogFormat(steps="every=90min").steps == "every=90min"


@pytest.mark.slow
def test_an_impossible_step_in_an_uneven_log_may_be_a_missing_row():
    """Parts wear by one at most, and the only jump from 0 to 2 is over the one interval of two days."""
    (p,) = pl.parameters("p")

    def step(state):
        return {"run": [(p, state._replace(worn=min(state.worn + 1, 2))), (1 - p, state)]}

    part = pl.explore(step, {"worn": 0}, space=pl.ParameterSpace.unit("p"))
    times = [datetime(2024, 1, 1) + timedelta(days=day) for day in (0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11)]
    log = pd.DataFrame({"episode": 1, "step": times, "worn": [0] * 5 + [2] * 6, "action": [*["run"] * 10, None]})
    claim = pl.certify(part, read_log(part, log, **in_format(**ANYHOW)), "Pmax=? [ F worn=2 ]").claim
    (reason,) = (rung.reason for rung in claim.rungs if rung.ground == "rows")
    said = "or rows between two steps are missing, as 10 % of the intervals are about twice the usual 1 day"
    assert reason.endswith(f"the model lacks it: add it, or correct the log; {said}")
