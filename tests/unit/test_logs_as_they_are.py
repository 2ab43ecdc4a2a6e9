"""Logs as recorders write them: times for steps, other names of actions, rows that do not fit, and where these are."""

from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import duckdb
import numpy as np
import pandas as pd
import polars
import pytest
from in_format import in_format
from log_models import LAMP, p, recount, runs

import plumdp as pl
from plumdp.data.ingestion import TransitionCounter
from plumdp.data.logs import read_log
from plumdp.data.matching import numbered_actions
from plumdp.data.report import REJECTED
from plumdp.data.sql import counts_query
from plumdp.learning.assumptions import _of_rows_in

ROWS, COUNTS = runs(LAMP, {"p": 0.6}, 40)
RUNS, MOVES = pd.DataFrame(ROWS["trajectories"]), pd.DataFrame(ROWS["transitions"])
START = datetime(2024, 10, 26, 23, 59, 30, tzinfo=UTC)
TIMES = [START + timedelta(seconds=37 * int(step)) for step in RUNS.step]
ASSUMED = "the rows of each run follow one another in the order of column {}, and none in between is missing"


def shuffled(frame):
    return frame.sample(frac=1, random_state=1)


def refused(*arguments, **options):
    with pytest.raises(pl.DataError) as caught:
        read_log(*arguments, **in_format(**options))
    return str(caught.value)


# steps

SPELLINGS = {
    "tens": RUNS.step * 10,
    "tens as text": (RUNS.step * 10).astype(str),
    "fractions": RUNS.step / 7,
    "timestamps": [time.replace(tzinfo=None) for time in TIMES],
    "timestamps of a zone": TIMES,
    "nanoseconds": pd.to_datetime(RUNS.step * 1000, unit="ns"),
    "ISO text": [time.strftime("%Y-%m-%d %H:%M:%S") for time in TIMES],
    "ISO text of UTC": [time.strftime("%Y-%m-%dT%H:%M:%SZ") for time in TIMES],
    "dates as text": [f"2024-{1 + step:02}-28" for step in RUNS.step],
    "times of a day as text": [f"07:{step:02}" for step in RUNS.step],
    "seconds since 1970": [int(time.timestamp()) for time in TIMES],
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_steps_may_be_anything_that_orders_the_rows(spelling, tmp_path):
    frame = RUNS.drop(columns="step").assign(Time=SPELLINGS[spelling])
    shuffled(frame).to_csv(tmp_path / "log.csv", index=False)
    sources = [frame, tmp_path / "log.csv"]
    if spelling.endswith(("timestamps", "UTC")):
        frame.to_parquet(tmp_path / "log.parquet")
        sources += [tmp_path / "log.parquet", polars.from_pandas(shuffled(frame)).lazy()]
    for source in sources:
        log = read_log(LAMP, source, pl.LogFormat(columns={"step": "Time"}))
        assert np.array_equal(log.counts.counts, COUNTS)
        assert (log.report.rejected, log.report.assuming) == (0, (ASSUMED.format("Time"),))
    assert str(log).endswith(f"\n  assuming that {ASSUMED.format('Time')}")
    assert ASSUMED.format("Time") in [*_of_rows_in(LAMP, log.counts)]


def test_the_first_runs_are_the_same_where_steps_are_times():
    of_times = read_log(LAMP, RUNS.assign(step=SPELLINGS["ISO text"]), sampling="trajectories").counts
    assert np.array_equal(of_times.pilot.counts, read_log(LAMP, RUNS, sampling="trajectories").counts.pilot.counts)


def test_dates_and_times_of_parquet_are_steps(tmp_path):
    for kind in ("DATE", "TIME", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ"):
        step = "TIME '00:00' + to_minutes(step)" if kind == "TIME" else "TIMESTAMP '2024-01-01' + to_days(step::INT)"
        frame = RUNS  # noqa: F841
        path = tmp_path / f"{kind}.parquet"
        duckdb.sql(f"COPY (SELECT * REPLACE (CAST({step} AS {kind}) AS step) FROM frame) TO '{path}' (FORMAT parquet)")
        assert np.array_equal(read_log(LAMP, path).counts.counts, COUNTS), kind


def test_clocks_that_are_put_back_do_not_change_the_order(tmp_path):
    """At 01:00 UTC on 27 October 2024, 02:59 was followed by 02:00 in Berlin; texts of local time would be misread."""
    zones = [timezone(timedelta(hours=2 if time < datetime(2024, 10, 27, 0, 2, tzinfo=UTC) else 1)) for time in TIMES]
    texts = [time.astimezone(zone).isoformat() for time, zone in zip(TIMES, zones, strict=True)]
    local = [text[:19] for text in texts]
    assert any(later[:13] < earlier[:13] for earlier, later in pairwise(local) if later[:10] == earlier[:10])
    RUNS.assign(step=texts).to_csv(tmp_path / "log.csv", index=False)
    RUNS.assign(step=local).to_csv(tmp_path / "local.csv", index=False)
    assert np.array_equal(read_log(LAMP, tmp_path / "log.csv").counts.counts, COUNTS)
    wrong = read_log(
        LAMP, tmp_path / "local.csv", pl.LogFormat(censoring="unrelated"), on_unmatched="report"
    ).counts.counts
    assert not np.array_equal(wrong, COUNTS)


def test_different_rows_of_one_time_are_rejected_with_the_time():
    frame = RUNS.assign(step=[time.replace(tzinfo=None) for time in TIMES])
    frame.loc[1, "step"] = frame.step[0]
    message = refused(LAMP, frame.assign(place_x=range(len(frame))))
    assert "repeated step: 2 rows; episode 0, step 2024-10-26 23:59:30 (2 rows: place_x=0 and " in message


def test_a_row_that_is_missing_shows_in_numbers_that_are_consecutive():
    frame = RUNS.drop(index=[3, 17])
    assert "say steps='ordered'\n" in refused(LAMP, frame)
    strict, told = (
        read_log(LAMP, frame, pl.LogFormat(steps=steps), on_unmatched="report") for steps in ("consecutive", "ordered")
    )
    counts, kinds = recount(frame.to_dict("records"), LAMP.graph, "trajectories")
    assert np.array_equal(strict.counts.counts, counts)
    assert strict.report.rows["gap in steps"] == kinds["gap in steps"] == 2
    assert told.report.rows["gap in steps"] == 0
    assert told.report.assuming == (ASSUMED.format("step"),)
    assert told.counts.total + told.report.contradicting == strict.counts.total + 2


def test_a_missing_row_that_is_passed_over_is_a_false_transition(monkeypatch):
    """Plants the error that gaps of consecutive numbers are steps."""
    frame = RUNS.drop(index=range(4, len(RUNS), 10))
    expected = recount(frame.to_dict("records"), LAMP.graph, "trajectories")[0]
    assert np.array_equal(read_log(LAMP, frame, on_unmatched="report").counts.counts, expected)
    monkeypatch.setattr(TransitionCounter, "_has_next", property(lambda _: False, lambda _, value: None))
    assert not np.array_equal(read_log(LAMP, frame, on_unmatched="report").counts.counts, expected)


def test_who_says_that_steps_are_consecutive_finds_every_gap():
    log = read_log(LAMP, RUNS.assign(step=RUNS.step * 10), pl.LogFormat(steps="consecutive"), on_unmatched="report")
    assert log.report.rows["gap in steps"] == COUNTS.sum()
    words = "'consecutive', 'ordered', 'monthly', 'weekly', 'daily', 'every=30d' (or s, min, h, w)"
    assert refused(LAMP, RUNS, steps="sorted") == f"steps='sorted': choose one of {words}, or leave it out"


@pytest.mark.parametrize("step", ["TIMESTAMP '2024-01-01' + to_days(step::INT)", "step * 10", "step"])
def test_a_warehouse_orders_rows_by_times(step):
    query = counts_query(LAMP, pl.LogFormat(form="trajectories", steps="ordered"), table="log", dialect="duckdb")
    with duckdb.connect() as connection:
        connection.register("runs", RUNS)
        connection.execute(f"CREATE TABLE log AS SELECT * REPLACE ({step} AS step) FROM runs")
        log = read_log(LAMP, connection.execute(query).df())
    assert np.array_equal(log.counts.counts, COUNTS)
    assert log.report.assuming == (ASSUMED.format("step").replace("column step", "their steps"),)


# names of actions

TABLES = {
    "a table": ({"go": " GO", "rest": "x"}, {"GO": "go", "x": "rest"}),
    "names that are exchanged": ({"go": "rest", "rest": "go"}, {"rest": "go", "go": "rest"}),
    "numbers from one": ({"go": 1, "rest": 2}, {"1": "go", "2": "rest"}),
    "a list": ({"go": 1, "rest": 0}, ["rest", "go"]),
    "numbers of the model": ({"go": 0, "rest": 1}, None),
    "numbers as text": ({"go": "0", "rest": "1"}, None),
    "numbers with a point": ({"go": "0.0", "rest": "1.0"}, None),
    "an expression": ({"go": "  Go ", "rest": "REST"}, "lower(trim(action))"),
}


@pytest.mark.parametrize("form", ["transitions", "trajectories"])
@pytest.mark.parametrize("case", TABLES)
def test_a_log_may_call_actions_otherwise(case, form, tmp_path):
    called, actions = TABLES[case]
    frame = pd.DataFrame(ROWS[form])
    frame = frame.assign(action=frame.action.map(called))
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    for source in (frame, tmp_path / "log.csv", tmp_path / "log.parquet"):
        log = read_log(LAMP, source, pl.LogFormat(actions=actions))
        assert np.array_equal(log.counts.counts, COUNTS)
        numbers = () if actions else ("actions are numbered in the order of the model: 0 is go, 1 is rest",)
        assert log.report.assuming == numbers


def chain_step(state):
    ahead = state._replace(x=state.x + 1)
    return {f"from {state.x}": [(p, ahead), (1 - p, state._replace(x=0))] if state.x < 3 else [(1, state)]}


@pytest.mark.parametrize("form", ["transitions", "trajectories"])
def test_a_log_of_a_markov_chain_needs_no_actions(form, tmp_path):
    """Counts are those of the log with actions; a run that ends before a step may lack that step's outcome."""
    chain = pl.explore(chain_step, {"x": 0}, space=pl.ParameterSpace.unit("p"))
    rows, counts = runs(chain, {"p": 0.6}, 40, max_steps=100)
    bare = shuffled(pd.DataFrame(rows[form]).drop(columns="action"))
    bare.to_csv(tmp_path / "log.csv", index=False)
    for source in (bare, tmp_path / "log.csv"):
        log = read_log(chain, source)
        assert np.array_equal(log.counts.counts, counts)
        assert log.report.rejected == log.report.rows["censored"] == 0
    wrong = read_log(chain, bare.assign(x=bare.x.replace(1, 7)), on_unmatched="report")
    assert wrong.report.rows["unknown state"] > 0
    cut = bare[bare.x < 3]
    if form == "trajectories":
        assert "runs end before the outcome of their last action" in refused(chain, cut)
    assert "lacks action" in refused(LAMP, pd.DataFrame(ROWS[form]).drop(columns="action"))


def test_numbers_among_names_are_not_actions():
    log = read_log(LAMP, MOVES.assign(action=["1", *MOVES.action[1:]]), on_unmatched="report")
    assert (log.report.rows["unknown action"], log.report.assuming) == (1, ())


def test_numbers_are_refused_where_the_order_of_actions_is_not_clear():
    (p,) = pl.parameters("p")

    def step(state, names):
        moves = {
            "b": [(p, state._replace(x=1)), (1 - p, state._replace(x=0))],
            "a": [(1, state._replace(x=1 - state.x))],
        }
        return {name: moves[name] for name in names[state.x]}

    for names in (("ba", "ab"), ("b", "a")):  # in another order there, or never together
        model = pl.explore(lambda s, names=names: step(s, names), {"x": 0}, space=pl.ParameterSpace.unit("p"))
        assert numbered_actions(model.graph) == {}
        log = pd.DataFrame({"x": [0], "action": [0], "next_x": [1]})
        assert "0 (1×); it is not known which action a number is: the model has 'b', 'a'" in refused(model, log)
        assert read_log(model, log, pl.LogFormat(actions=["b", "a"])).counts.total == 1


def test_the_order_of_actions_is_clear_beside_what_only_loops():
    for study, names in (("betting:5", 3), ("glider:11,9", 4)):
        graph = pl.case_study(study).model.graph
        assert [*numbered_actions(graph)] in ([str(number) for number in range(names)], [])


@pytest.mark.parametrize("actions", [{"GO": "fly"}, ["go", "fly"]])
def test_a_name_that_no_action_has_is_refused(actions):
    assert refused(LAMP, MOVES, actions=actions).endswith(": the model has no action 'fly', only 'go', 'rest'")


# dates and texts in mappings

PARTS = {
    "year": lambda time: time.year,
    "month": lambda time: time.month,
    "day": lambda time: time.day,
    "isodow": lambda time: time.isoweekday(),
    "hour": lambda time: time.hour,
    "minute": lambda time: time.minute,
    "second": lambda time: time.second,
}


@pytest.fixture(scope="module")
def counter():
    """A model whose states are the numbers below 2100."""
    (p,) = pl.parameters("p")
    stay = lambda s: {"go": [(p, s), (1 - p, s._replace(x=(s.x + 1) % 2100))]}  # noqa: E731
    return pl.explore(stay, {"x": 0}, space=pl.ParameterSpace.unit("p"))


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_dates_are_those_of_the_calendar(part, counter, tmp_path):
    rng = np.random.default_rng(1)
    times = [datetime(1965, 1, 1, tzinfo=UTC) + timedelta(seconds=int(s)) for s in rng.integers(0, 3 * 10**9, 50)]
    expected = Counter(PARTS[part](time) for time in times)
    plain = pd.DataFrame({"time": [time.replace(tzinfo=None, microsecond=9) for time in times]})
    text = pd.DataFrame({"time": [time.astimezone(timezone(timedelta(hours=5))).isoformat() for time in times]})
    text.to_csv(tmp_path / "log.csv", index=False)
    model = counter
    for source in (plain, tmp_path / "log.csv"):
        log = read_log(
            model,
            source,
            pl.LogFormat(
                columns={"next_time": "time"},
                states={"x": f"date_part('{part}', time)"},
                actions="if(1 = 1, 'go', 'no')",
                form="transitions",
            ),
        )
        seen = model.graph.states["x"][model.graph.state_of_choice()[np.flatnonzero(log.counts.visits)]]
        assert dict(zip(seen.tolist(), log.counts.visits[log.counts.visits > 0].tolist(), strict=True)) == expected


@pytest.mark.parametrize(("text", "message"), [
    ("date_part('age', time)", "the first value of date_part is one of 'year', 'month', 'day', 'isodow', 'hour', "
     "'minute', 'second'\n  date_part('age', time)\n            ^"),
    ("date_part('hour')", "date_part takes 2 values, not 1\n  date_part('hour')\n  ^"),
    ("lower(1)", "found a number where a text is expected\n  lower(1)\n        ^"),
    ("lower(mode) + 1", "found a text where a number is expected\n  lower(mode) + 1\n  ^"),
])  # fmt: skip
def test_functions_refuse_what_they_do_not_take(text, message):
    assert refused(LAMP, MOVES, states={"place_x": text}).partition("}: ")[2] == message


@pytest.mark.parametrize("dialect", ["bigquery", "snowflake", "databricks", "redshift", "spark", "trino", "postgres"])
def test_warehouses_have_dates_and_texts_in_their_own_words(dialect):
    states = {"place_x": "date_part('isodow', t) + date_part('hour', t)", "mode": "lower(trim(mode))"}
    query = counts_query(LAMP, pl.LogFormat(states=states, form="transitions"), table="log", dialect=dialect)
    assert "HOUR" in query.upper()
    assert "LOWER(TRIM(" in query
    assert "1970-01-05" in query


# rows that were rejected


def corrupted(form, *, has_others=True):
    """Return rows of which many do not fit, in no order."""
    rng = np.random.default_rng(5)
    rows = [dict(row) for row in ROWS[form] if rng.random() > 0.02]
    for row in rows:
        name = rng.choice(["lit", "mode", "action", "step", "episode", ""], p=[0.03] * 5 + [0.85])
        row |= {name: None} if name else {}
        row |= {"place_x": int(rng.integers(-1, 5))} if rng.random() < 0.05 else {}
    rows += [dict(rows[i]) for i in rng.choice(len(rows), 10)]
    rows += [dict(rows[i]) | {"lit": rng.random() < 0.5} for i in rng.choice(len(rows), 10) if has_others]
    return [rows[i] | {"id": number} for number, i in enumerate(rng.permutation(len(rows)))]


def as_nullable(rows):
    kinds = {"episode": "Int64", "step": "Int64", "place_x": "Int64", "lit": "boolean"}
    return pd.DataFrame(rows).astype(kinds)


@pytest.mark.parametrize("has_others", [True, False])
@pytest.mark.parametrize("source", ["csv", "parquet", "frame"])
@pytest.mark.parametrize("form", ["transitions", "trajectories"])
def test_every_rejected_row_is_written_as_it_is_with_its_reason_and_its_place(form, source, has_others, tmp_path):
    rows = corrupted(form, has_others=has_others)
    counts, kinds = recount(rows, LAMP.graph, form)
    parts = {"a": rows[:150], "b": rows[150:]}
    for name, part in parts.items():
        as_nullable(part).to_csv(tmp_path / f"{name}.csv", index=False)
        as_nullable(part).to_parquet(tmp_path / f"{name}.parquet")
    given = as_nullable(rows) if source == "frame" else [tmp_path / f"{name}.{source}" for name in parts]
    path = tmp_path / "rejected.csv"
    log = read_log(LAMP, given, pl.LogFormat(form=form, censoring="unrelated"), on_unmatched="report", rejected=path)
    assert np.array_equal(log.counts.counts, counts)
    written = pd.read_csv(path)
    assert Counter(written.reason) == {kind: n for kind, n in kinds.items() if kind in REJECTED}
    where = {row["id"]: (None, number) for number, row in enumerate(rows, 1)} if source == "frame" else {}
    for name, part in parts.items() if source != "frame" else ():
        where |= {row["id"]: (str(tmp_path / f"{name}.{source}"), number) for number, row in enumerate(part, 1)}
    for row in written.itertuples():
        file = None if isinstance(row.file, float) else row.file
        assert (file, row.row) == where[row.id]
        original = next(each for each in rows if each["id"] == row.id)
        assert row.action == original["action"] or (row.action != row.action and original["action"] is None)
    assert written.id.is_unique


def test_rejected_rows_are_written_also_if_they_are_an_error(tmp_path):
    path, frame = tmp_path / "rejected.parquet", MOVES.assign(reason="why", place_x=[7, *MOVES.place_x[1:]])
    assert refused(LAMP, frame, rejected=path).endswith(f"; all of these rows are in {path}")
    written = pd.read_parquet(path)
    assert [*written.columns][:4] == ["rejected_reason", "file", "row", "episode"]
    assert written[["rejected_reason", "row", "place_x", "reason"]].to_numpy().tolist() == [
        ["unknown state", 1, 7, "why"]
    ]
    read_log(LAMP, MOVES, rejected=path)
    assert len(pd.read_parquet(path)) == 0


def test_a_file_for_rejected_rows_that_cannot_be_one_is_refused(tmp_path):
    MOVES.to_csv(tmp_path / "log.csv", index=False)
    for path, why in (
        (tmp_path / "log.csv", "this is a file of the log; name another one"),
        (tmp_path / "r.xlsx", "the name must end in .csv or .parquet"),
        (tmp_path / "nowhere" / "r.csv", "there is no such folder"),
    ):
        assert refused(LAMP, tmp_path / "log.csv", rejected=path) == f"rejected='{path}': {why}"


@pytest.mark.parametrize("form", ["transitions", "trajectories"])
def test_an_impossible_transition_is_named_by_run_row_and_file(form, tmp_path):
    frame = pd.DataFrame(ROWS[form])
    row = 57 if form == "transitions" else 61
    frame.loc[row, "next_place_x" if form == "transitions" else "place_x"] = 2
    frame.loc[row, "next_mode" if form == "transitions" else "mode"] = "work"
    frame.loc[row, "next_lit" if form == "transitions" else "lit"] = True
    frame[:50].to_csv(tmp_path / "1.csv", index=False)
    frame[50:].to_csv(tmp_path / "2.csv", index=False)
    log = read_log(LAMP, tmp_path, on_unmatched="report")
    first = row if form == "transitions" else row - 1
    text = log.report.worst["impossible transition"][0]
    assert text.endswith(f"row {first - 49} of 2.csv, episode {frame.episode[first]})")
