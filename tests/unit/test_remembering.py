"""Logs whose states remember something of their run, and the tables that are made of them."""

import itertools

import numpy as np
import pandas as pd
import pytest
from command_line import plumdp
from in_format import in_format

import plumdp as pl
from plumdp.data import model_from_log, raw_log, read_whole_runs
from plumdp.data.logs import files_of, open_log
from plumdp.data.remembering import VARIABLES


def remember(source, what, **how):
    return raw_log(source).remember(what, **how)


COLUMNS = {"episode": "unit", "step": "day"}
AT_END = {"ends": lambda s: s.at == "over", "labels": {"over": lambda s: s.at == "over"}}


def walk(seed=1, n=60, longest=20):
    """Return runs between two places until they are over or censored, under two actions."""
    rng, rows = np.random.default_rng(seed), []
    for unit in range(n):
        at = "home"
        for day in range(rng.integers(2, longest)):
            go = str(rng.choice(["walk", "ride"]))
            rows.append((unit, day, at, go if at != "over" else None))
            if at == "over":
                break
            at = str(rng.choice(["home", "away", "over"], p=[0.45, 0.45, 0.1]))
    return pd.DataFrame(rows, columns=["unit", "day", "at", "action"])


def by_hand(frame):
    """Return what each row remembers, run by run."""
    rows = []
    for unit, run in frame.sort_values(["unit", "day"]).groupby("unit"):
        places, actions = run["at"].tolist(), run.action.tolist()
        for t, (day, place) in enumerate(zip(run.day, places, strict=True)):
            visits, since = places[:t].count(place), 0
            while since < t and places[t - since - 1] == place:
                since += 1
            visits = max(size for size in (0, 1, 2, 4, 8, 16, 32, 64) if size <= visits)
            told = {"visits": visits, "previous": actions[t - 1] if t else "none", "time": since, "step": t}
            rows.append((unit, day, told))
    return {(unit, day): told for unit, day, told in rows}


def told(source, what, **options):
    log = remember(source, what, run="unit", step="day", states="at", action="action", **options)
    with open_log(*files_of(log)) as table:
        kept = table.keep(["unit", "day", log.memory.column], is_read_again=False)
        rows = kept.rows(f"SELECT CAST(unit AS INT), CAST(day AS INT), {log.memory.column} FROM {kept.table}")
    return {(unit, day): value for unit, day, value in rows}


@pytest.mark.parametrize("what", VARIABLES)
@pytest.mark.parametrize("how", ["frame", "shuffled", "with copies", "csv"])
def test_rows_remember_what_came_before_them_in_their_run(what, how, tmp_path):
    frame = walk()
    source = frame if how == "frame" else frame.sample(frac=1, random_state=1)
    if how == "with copies" and what != "previous":
        source = pd.concat([source, source.head(30)])
    if how == "csv":
        source.to_csv(tmp_path / "log.csv", index=False)
        source = tmp_path / "log.csv"
    assert told(source, what) == {row: each[what] for row, each in by_hand(frame).items()}


@pytest.mark.parametrize(("what", "closed"), [*itertools.product(VARIABLES, (True, False))])
def test_the_counts_are_those_of_a_log_with_the_column(what, closed):
    """Made by hand, and read by the same table; runs that are longer than those that made it are counted as well."""
    first, later = walk(seed=2, longest=8), walk(seed=3, n=200, longest=30)
    options = {"columns": COLUMNS, "form": "trajectories"}
    how = {"run": "unit", "step": "day", "states": "at", "action": "action"}
    model = model_from_log(
        remember(first, what, **how), initial="home", closed=closed, **in_format(states="at", **AT_END, **options)
    )
    found = pl.read_log(model, remember(later, what, **how), on_unmatched="report", **in_format(**options))
    assert found.report.rejected == 0
    values, memory = model.graph.states[VARIABLES[what]], by_hand(later)
    most = None if what == "previous" else values.max() - 3 * (not closed)
    column = [memory[unit, day][what] for unit, day in zip(later.unit, later.day, strict=True)]
    column = column if most is None else np.minimum(column, most)
    name = "state_step" if what == "step" else VARIABLES[what]
    by_column = pl.read_log(model, later.assign(**{name: column}), on_unmatched="report", **in_format(**options))
    assert np.array_equal(found.counts.counts, by_column.counts.counts)
    assert found.counts.total > 1_000
    runs = read_whole_runs(model, remember(later, what, **how), pl.LogFormat(columns=COLUMNS))
    assert repr(runs).startswith("WholeRuns(200 runs")


def test_the_memory_of_the_next_state_is_known_in_a_closed_table():
    how = {"run": "unit", "step": "day", "states": "at", "action": "action"}
    for what in ("step", "time", "previous"):
        options = {"states": "at", "initial": "home", "columns": COLUMNS, "closed": True, **AT_END}
        graph = model_from_log(remember(walk(), what, **how), **in_format(**options)).graph
        values, choice = graph.states[VARIABLES[what]], graph.choice_of_transition()
        source = graph.state_of_choice()[choice]
        moves = graph.states["at"][source] != "over"
        before, after, action = values[source][moves], values[graph.successor][moves], graph.action[choice][moves]
        stays = graph.states["at"][source][moves] == graph.states["at"][graph.successor][moves]
        expected = {
            "step": np.minimum(before + 1, values.max()) if what == "step" else None,
            "time": np.where(stays, np.minimum(before + 1, values.max()), 0) if what == "time" else None,
            "previous": np.array(graph.action_names)[action],
        }[what]
        assert np.array_equal(after, expected)


def test_a_table_whose_states_remember_nothing_of_use_has_nearly_the_same_answer():
    frame, asked = walk(n=4_000), 'P=? [ F<=6 "over" ]'
    frame = frame.assign(action=frame.action.mask(frame.action.notna(), "walk"))
    options = {"states": "at", "initial": "home", "columns": COLUMNS, "closed": True, **AT_END}
    plain = model_from_log(frame.head(400), **in_format(**options))
    log = remember(frame, "visits", run="unit", step="day", states="at")
    found = [
        pl.certify(model, pl.read_log(model, source, pl.LogFormat(columns=COLUMNS)), asked, confidence=0.95)
        for model, source in ((plain, frame), (model_from_log(log, **in_format(**options)), log))
    ]
    truth = 1 - 0.9**6
    by_rows, by_more = (each.claim.rungs[-1] for each in found)
    assert all(each.lower < truth < each.upper for each in (*found, by_rows, by_more))
    assert by_more.lower < by_rows.lower


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    frame = walk(n=400).assign(site=lambda rows: np.where(rows.unit % 2, "north", "south"))
    frame.to_csv(path := tmp_path_factory.mktemp("desk") / "log.csv", index=False)
    return path


@pytest.mark.parametrize("what", VARIABLES)
def test_start_writes_what_states_remember_and_other_commands_read_it(what, desk, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = plumdp("start", str(desk), "--remember", what)
    assert f"remembers  {VARIABLES[what]}: " in found.out
    assert f'remember = "{what}"' in (tmp_path / "plumdp.toml").read_text(encoding="utf-8")
    for policy in (["--policy", "walk"], ["--policy", "practice"], []):
        found = plumdp("certify", str(desk), "-p", 'Pmax=? [ F<=6 at="over" ]', "--confidence", "0.95", *policy)
        assert found.code == 0, found.err
        assert "0 rejected" in found.out


def test_a_column_that_is_known_when_runs_begin_becomes_part_of_the_state(desk):
    found = pl.start(desk, remember="site", initial={"at": "home", "site": "north"})
    assert [*found.model.graph.states] == ["at", "site"]
    assert found.remember is None  # as what it remembers is a variable like others


def test_what_cannot_be_remembered_is_refused(desk, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pl.DataError, match=r"choose one of visits, previous, time, step, unit"):
        pl.start(desk, remember="nothing")
    with pytest.raises(pl.DataError, match=r"day changes in a run, so that not all of it is known when the run begins"):
        pl.start(desk, remember="day")
    with pytest.raises(pl.DataError, match=r"the log has a column visits, which would be called as what is remembered"):
        _ = pl.start(walk().assign(visits=0), pl.LogFormat(states=["at"]), remember="visits").model
    log = remember(walk(), "step", run="unit", step="day")
    model = model_from_log(log, pl.LogFormat(columns=COLUMNS, states="at"), initial="home")
    with pytest.raises(pl.DataError, match=r"only the order of runs is known"):
        pl.read_log(model, log, pl.LogFormat(columns=COLUMNS), order="time")
    assert "give a log as the model" in plumdp("count", "betting:5", str(desk), "--remember", "step").err
