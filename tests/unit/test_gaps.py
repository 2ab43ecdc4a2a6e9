"""Models that are seen now and then: logs with gaps, what is refused, and certificates of single steps."""

import duckdb
import numpy as np
import pandas as pd
import pytest
from in_format import in_format

import plumdp as pl
from plumdp.reporting.read import explain_result

A, B = pl.parameters("a", "b")
SPACE = pl.ParameterSpace.unit("a", "b")
TRUTH = (0.1, 0.2)
GOAL = 'P=? [ F<=6 "broken" ]'


def wears(state):
    return {"run": [(1 - (A, B)[state.x], state), ((A, B)[state.x], state._replace(x=state.x + 1))]}


MODEL = pl.explore(
    lambda s: {"run": [(1, s)]} if s.x == 2 else wears(s), {"x": 0}, space=SPACE, labels={"broken": lambda s: s.x == 2}
)
PANEL = pl.with_gaps(MODEL, [1, 2, 3])


def observations(n_units, gaps, seed=1):
    """Return looks at units of the chain, after gaps drawn at random, as a table of transitions."""
    rng, rows = np.random.default_rng(seed), []
    for unit in range(n_units):
        x = step = 0
        while x < 2 and step < 12:
            gap, before = int(rng.choice(gaps)), x
            for _ in range(gap):
                x += int(x < 2 and rng.random() < TRUTH[x])
            rows.append((unit, step, before, gap, x))
            step += gap
    return pd.DataFrame(rows, columns=["episode", "step", "x", "months", "next_x"])


def as_runs(table):
    """Return the same observations as runs, whose steps are times."""
    ends = table.groupby("episode").tail(1)
    ends = pd.DataFrame({"episode": ends.episode, "step": ends.step + ends.months, "x": ends.next_x})
    return pd.concat([table[["episode", "step", "x"]], ends]).sort_values(["episode", "step"])


def test_tables_with_gaps_and_runs_with_times_are_the_same_looks():
    """Each observation is counted once, at its state, gap and next state, in whatever order rows are."""
    table = observations(40, [1, 2, 2, 3])
    counts = pl.read_log(PANEL, table, pl.LogFormat(columns={"gap": "months"})).counts
    expected = table.groupby(["x", "months", "next_x"]).size()
    seen = counts.to_pandas()
    gap = seen.action.str.extract(r", (\d) steps")[0].fillna("1").astype(int)
    assert {(x, g, y): n for x, g, y, n in zip(seen.x, gap, seen.next_x, seen.n, strict=True)} == expected.to_dict()
    for runs in (as_runs(table), as_runs(table).sample(frac=1, random_state=1)):
        assert np.array_equal(pl.read_log(PANEL, runs).counts.counts, counts.counts)
    dates = [pd.Timestamp("2024-01-31") + pd.DateOffset(months=int(step)) for step in as_runs(table).step]
    monthly = pl.read_log(PANEL, as_runs(table).assign(step=dates), pl.LogFormat(steps="monthly"))
    assert np.array_equal(monthly.counts.counts, counts.counts)


def test_a_warehouse_counts_the_same_looks():
    log = observations(40, [1, 2, 2, 3])
    runs = as_runs(log)  # noqa: F841
    expected = pl.read_log(PANEL, log, pl.LogFormat(columns={"gap": "months"})).counts.counts
    for form, table, columns in (("transitions", "log", {"gap": "months"}), ("trajectories", "runs", {})):
        query = pl.data.counts_query(PANEL, pl.LogFormat(columns=columns, form=form), table=table, dialect="duckdb")
        counted = pl.read_log(PANEL, duckdb.sql(query).df(), pl.LogFormat(form="counts"))
        assert np.array_equal(counted.counts.counts, expected)
    with pytest.raises(pl.DataError, match="gaps between observations"):
        pl.data.counts_query(PANEL, pl.LogFormat(form="trajectories", steps="ordered"), table="runs", dialect="spark")


TABLE = observations(5, [1, 2, 3])
REFUSED = {
    "gaps that are not whole": (TABLE.assign(gap=TABLE.months + 0.5), {}, "choose shorter steps"),
    "gaps that the model lacks": (TABLE.assign(gap=TABLE.months + 5), {}, "no observation after 7 steps"),
    "gaps that are missing": (TABLE.assign(gap=TABLE.months.where(TABLE.index > 0)), {}, "unknown steps"),
    "a table without gaps": (TABLE, {}, "the log says no gaps"),
    "runs with gaps": (as_runs(TABLE).assign(gap=1), {}, "differences of the column step"),
    "steps that only order rows": (as_runs(TABLE), {"steps": "ordered"}, "gaps between observations"),
    "dates": (as_runs(TABLE).assign(step=pd.to_datetime("2024-01-01")), {}, "not numbers of steps"),
    "dates as texts": (as_runs(TABLE).assign(step="2024-01-01"), {}, "dates such as 2024-01-01"),
    "states that are not seen": (TABLE.assign(gap=TABLE.months, next_x=None), {}, "unreadable"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_looks_that_are_not_understood_are_refused(name):
    frame, options, words = REFUSED[name]
    with pytest.raises(pl.DataError, match=words):
        pl.read_log(PANEL, frame, **in_format(**options))


@pytest.mark.parametrize("gaps", [[], [0], [1.5], [2, 61], "23", [True]])
def test_gaps_are_whole_numbers_of_steps(gaps):
    with pytest.raises(pl.ModelError, match="whole numbers"):
        pl.with_gaps(MODEL, gaps)


@pytest.mark.slow
def test_what_is_not_proved_for_looks_is_refused():
    counts = pl.read_log(PANEL, TABLE, pl.LogFormat(columns={"gap": "months"})).counts
    for options in ({"model_tolerance": 0.01}, {"confidence_set": "ellipsoid"}, {"confidence_set": "table"}):
        with pytest.raises(pl.DataError, match="nothing is proved"):
            pl.learn(PANEL, counts, **options)
    learned = pl.learn(PANEL, counts, objectives=[GOAL])
    with pytest.raises(pl.DataError, match="advise needs every step"):
        pl.advise(learned, GOAL)
    with pytest.raises(pl.DataError, match="seen now and then"):
        pl.decisions.make_witness(learned, pl.conclude(learned, GOAL))
    with pytest.raises(pl.ModelError, match="in memory"):
        pl.with_gaps(PANEL, [2])


EXACT = pl.with_gaps(MODEL, [1, 2, 3], exact='"broken"')
KNOWN = {"gap": "planned", "after": "seen_after", "partial": "is_last"}
UNITS = pd.DataFrame(
    [  # planned: 3 and 3, broken after 1; 2, and then 2 to a partial one; 2, not broken; 3 to a partial one, broken
        (1, 0, 0, 3, None), (1, 3, 1, 3, None), (1, 4, 2, None, None),
        (2, 0, 0, 2, False), (2, 2, 1, 2, True), (2, 4, None, None, None),
        (3, 0, 0, 2, False), (3, 2, 0, None, None),
        (4, 0, 1, 3, True), (4, 2, 2, None, None),
    ],
    columns=["episode", "step", "x", "gap", "partial"],
)  # fmt: skip
OBSERVATIONS = pd.DataFrame(
    [  # the same
        (1, 0, 0, 3, 3, 1, False), (1, 3, 1, 3, 1, 2, False), (2, 0, 0, 2, 2, 1, False), (2, 2, 1, 2, 2, None, True),
        (3, 0, 0, 2, 2, 0, False), (4, 0, 1, 3, 2, 2, True),
    ],
    columns=["episode", "step", "x", "planned", "seen_after", "next_x", "is_last"],
)  # fmt: skip


def test_ends_whose_step_is_known_are_read_from_tables_runs_files_and_warehouses(tmp_path):
    counts = pl.read_log(EXACT, OBSERVATIONS, pl.LogFormat(columns=KNOWN)).counts
    seen = counts.to_pandas().fillna("")
    assert {(*row[:2], *row[2:]) for row in seen[["x", "action", "next_x", "next_after"]].itertuples(index=False)} == {
        (0, "wait, 3 steps", 1, 0), (1, "wait, 3 steps", 2, 1), (0, "wait, 2 steps", 1, 0), (0, "wait, 2 steps", 0, 0),
        (1, "wait, 2 steps, ended or not", 0, -1), (1, "wait, 3 steps, ended or not", 2, 2),
    }  # fmt: skip
    file, query = tmp_path / "log.csv", pl.data.counts_query
    UNITS.to_csv(file, index=False)
    log, runs = OBSERVATIONS, UNITS  # noqa: F841  DuckDB finds them by their names
    looked = duckdb.sql(
        query(EXACT, pl.LogFormat(form="transitions", columns=KNOWN), table="log", dialect="duckdb")
    ).df()
    partial = pl.LogFormat(form="trajectories", columns={"partial": "partial"})
    walked = duckdb.sql(query(EXACT, partial, table="runs", dialect="duckdb")).df()
    for other in (UNITS, UNITS.sample(frac=1, random_state=1), pd.concat([UNITS, UNITS.tail(4)]), file, looked, walked):
        form = "counts" if other is looked or other is walked else None
        assert np.array_equal(pl.read_log(EXACT, other, pl.LogFormat(form=form)).counts.counts, counts.counts)
    pl.write_counts(counts, tmp_path / "counts.parquet")
    again = pl.read_counts(EXACT, tmp_path / "counts.parquet")
    other = pl.read_log(
        EXACT, OBSERVATIONS.assign(episode=0, step=range(6), is_last=False).head(2), pl.LogFormat(columns=KNOWN)
    ).counts
    assert (again + other).total == 8


def changed(table, row, **values):
    """Return the table with other values in a row."""
    return table.assign(**{name: [*table[name][:row], new, *table[name][row + 1 :]] for name, new in values.items()})


LATE = pd.DataFrame([(9, 0, 0, 2, False), (9, 3, 1, None, None)], columns=UNITS.columns)
MISREAD = {
    "a death without its step": (changed(OBSERVATIONS, 1, seen_after=None), KNOWN, "unreadable state"),
    "a death in the step of an observation": (
        changed(UNITS, 2, step=3),
        None,
        "is at least one step later: choose shorter",
    ),
    "a death after no step": (changed(OBSERVATIONS, 1, seen_after=0), KNOWN, "unreadable state"),
    "a state that was seen early": (changed(OBSERVATIONS, 0, seen_after=2), KNOWN, "unreadable state"),
    "an observation that was missed": (
        pd.concat([UNITS, LATE]),
        None,
        "the next observation comes when it was planned",
    ),
    "a death after a missed observation": (pd.concat([UNITS, LATE.assign(x=[0, 2])]), None, "unreadable state"),
    "a unit that was lost": (UNITS.drop(index=7), None, "1 unit was lost"),
    "a unit that was lost before a late observation": (changed(UNITS, 7, gap=7), None, "1 unit was lost"),
    "a unit that was lost before a partial observation": (changed(UNITS, 7, partial=True), None, "1 unit was lost"),
    "a row after a partial observation": (
        pd.concat([UNITS, LATE.assign(episode=2, step=[5, 7])]),
        None,
        "unreadable state",
    ),
    "a row after a partial observation, in a table": (
        changed(OBSERVATIONS, 4, episode=2, step=4),
        KNOWN,
        "row after a partial observation",
    ),
    "a partial observation of no unit": (OBSERVATIONS.drop(columns=["step"]), KNOWN, "needs run and step"),
    "a word for yes": (UNITS.assign(partial="perhaps"), None, "neither true nor false"),
    "runs without plans": (UNITS.drop(columns=["gap", "partial"]), None, "says no gaps"),
    "a table without steps of deaths": (OBSERVATIONS.drop(columns=["seen_after"]), {"gap": "planned"}, "says no gaps"),
    "a partial observation without ends": (changed(OBSERVATIONS, 3, is_last=False), KNOWN, "unreadable state"),
    "a state that is half known": (changed(OBSERVATIONS, 3, next_x="?"), KNOWN, "unreadable state"),
}


@pytest.mark.parametrize("name", MISREAD)
def test_looks_with_known_ends_that_are_not_as_planned_are_refused(name):
    frame, columns, words = MISREAD[name]
    with pytest.raises(pl.DataError, match=words):
        pl.read_log(EXACT, frame, pl.LogFormat(columns=columns or {}))


def test_a_lost_unit_may_be_vouched_for_and_a_state_that_a_partial_look_shows_is_not_used():
    assert pl.read_log(EXACT, UNITS.drop(index=7), pl.LogFormat(censoring="unrelated")).counts.total == 5
    told = pl.read_log(EXACT, changed(OBSERVATIONS, 3, next_x=1), pl.LogFormat(columns=KNOWN)).counts
    assert np.array_equal(told.counts, pl.read_log(EXACT, OBSERVATIONS, pl.LogFormat(columns=KNOWN)).counts.counts)


@pytest.mark.parametrize(("formula", "words"), [("x=1", "can be left"), ("x=7", "0 states"), ('"nothing"', "nothing")])
def test_exact_names_ends(formula, words):
    with pytest.raises(pl.ModelError, match=words):
        pl.with_gaps(MODEL, [1, 2], exact=formula)


@pytest.mark.slow
def test_results_with_known_ends_are_kept_and_explained_again(tmp_path):
    log = pl.read_log(
        EXACT,
        pd.concat([OBSERVATIONS.assign(episode=OBSERVATIONS.episode + 9 * i) for i in range(40)]),
        pl.LogFormat(columns=KNOWN),
    )
    found = pl.certify(EXACT, log, GOAL, confidence=0.9)
    assert any("partial ones on a day that was fixed before" in each for each in found.rests_on.assumptions)
    pl.write_result(found, tmp_path / "result", model=EXACT, counts=log.counts)
    again, findings = explain_result(tmp_path / "result", parts=["expressions"])
    assert (again.lower, again.upper) == (found.lower, found.upper)
    assert findings.n_expressions == 2


def value_at_the_truth():
    matrix = np.array([[0.9, 0.1, 0], [0, 0.8, 0.2], [0, 0, 1]])
    return np.linalg.matrix_power(matrix, 6)[0, 2]


@pytest.mark.slow
def test_bounds_from_looks_hold_the_truth_and_say_what_they_rest_on():
    log = pl.read_log(
        PANEL, observations(400, [1, 2, 2, 3]), pl.LogFormat(columns={"gap": "months"}), sampling="trajectories"
    )
    learned = pl.learn(PANEL, log, confidence=0.95, objectives=[GOAL])
    found = pl.conclude(learned, GOAL)
    assert found.lower < value_at_the_truth() < found.upper
    low, high = found.beside.approximate
    assert found.upper - found.lower < 1.8 * (high - low)
    said = " ".join(found.rests_on.assumptions)
    assert all(words in said for words in ("the gap that was planned", "after 2 steps", "no unit was lost", "units"))
    assert len(pl.explain(learned, found).expressions) > 0
    assert pl.check_model(learned).p_value > 0.05


@pytest.mark.night
def test_a_log_of_single_steps_is_worth_about_as_much_if_there_might_have_been_gaps():
    table = observations(400, [1])
    widths = []
    for model, columns in ((MODEL, {}), (PANEL, {"gap": "months"})):
        log = pl.read_log(model, table, pl.LogFormat(columns=columns), sampling="trajectories")
        found = pl.certify(model, log, GOAL, confidence=0.95)
        widths.append(found.upper - found.lower)
    assert widths[1] <= 1.05 * widths[0]


def test_an_action_is_taken_until_the_next_look_wherever_there_is_a_choice():
    """Serviced machines wear at half the rate; broken ones have one choice, whatever was done."""

    def acts(state):
        if state.x == 1:
            return {"stay": [(1, state)]}
        return {
            "run": [(1 - A, state), (A, state._replace(x=1))],
            "service": [(1 - A / 2, state), (A / 2, state._replace(x=1))],
        }

    panel = pl.with_gaps(pl.explore(acts, {"x": 0}, space=pl.ParameterSpace.unit("a")), [2])
    counted = panel.counted
    texts = {
        counted.graph.action_names[counted.graph.action[choice]]: str(
            counted.expressions.polynomials[counted.expression[counted.graph.first_transition[choice]]]
        )
        for choice in range(counted.graph.n_choices)
        if counted.graph.state_of(choice) == 0
    }
    assert texts["run, 2 steps"] == str((1 - A) ** 2)
    assert texts["service, 2 steps"] == str((1 - A / 2) ** 2)
    frame = pd.DataFrame({"x": [0], "action": ["service"], "gap": [2], "next_x": [1]})
    assert pl.read_log(panel, frame).counts.to_pandas().action.tolist() == ["service, 2 steps"]
    with pytest.raises(pl.DataError, match="practice"):
        pl.certify(panel, pl.read_log(panel, frame), "Pmax=? [ F<=3 x=1 ]", policy="practice")
