"""Models that are seen now and then: logs with gaps, what is refused, and certificates of single steps."""

import duckdb
import numpy as np
import pandas as pd
import pytest

import plumdp as pl

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


def looks(n_units, gaps, seed=1):
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
    """Return the same looks as runs, whose steps are times."""
    ends = table.groupby("episode").tail(1)
    ends = pd.DataFrame({"episode": ends.episode, "step": ends.step + ends.months, "x": ends.next_x})
    return pd.concat([table[["episode", "step", "x"]], ends]).sort_values(["episode", "step"])


def test_tables_with_gaps_and_runs_with_times_are_the_same_looks():
    """Each look is counted once, at its state, gap and next state, in whatever order rows are."""
    table = looks(40, [1, 2, 2, 3])
    counts = pl.read_log(PANEL, table, columns={"gap": "months"}).counts
    expected = table.groupby(["x", "months", "next_x"]).size()
    seen = counts.to_pandas()
    gap = seen.action.str.extract(r", (\d) steps")[0].fillna("1").astype(int)
    assert {(x, g, y): n for x, g, y, n in zip(seen.x, gap, seen.next_x, seen.n, strict=True)} == expected.to_dict()
    for runs in (as_runs(table), as_runs(table).sample(frac=1, random_state=1)):
        assert np.array_equal(pl.read_log(PANEL, runs).counts.counts, counts.counts)
    dates = [pd.Timestamp("2024-01-31") + pd.DateOffset(months=int(step)) for step in as_runs(table).step]
    monthly = pl.read_log(PANEL, as_runs(table).assign(step=dates), steps="monthly")
    assert np.array_equal(monthly.counts.counts, counts.counts)


def test_a_warehouse_counts_the_same_looks():
    log = looks(40, [1, 2, 2, 3])
    runs = as_runs(log)  # noqa: F841
    expected = pl.read_log(PANEL, log, columns={"gap": "months"}).counts.counts
    for form, table, columns in (("transitions", "log", {"gap": "months"}), ("trajectories", "runs", {})):
        query = pl.data.counts_query(PANEL, table=table, dialect="duckdb", form=form, columns=columns)
        counted = pl.read_log(PANEL, duckdb.sql(query).df(), form="counts")
        assert np.array_equal(counted.counts.counts, expected)
    with pytest.raises(pl.DataError, match="gaps between looks"):
        pl.data.counts_query(PANEL, table="runs", dialect="spark", form="trajectories", steps="ordered")


TABLE = looks(5, [1, 2, 3])
REFUSED = {
    "gaps that are not whole": (TABLE.assign(gap=TABLE.months + 0.5), {}, "choose shorter steps"),
    "gaps that the model lacks": (TABLE.assign(gap=TABLE.months + 5), {}, "no look after 7 steps"),
    "gaps that are missing": (TABLE.assign(gap=TABLE.months.where(TABLE.index > 0)), {}, "unknown steps"),
    "a table without gaps": (TABLE, {}, "the log says no gaps"),
    "runs with gaps": (as_runs(TABLE).assign(gap=1), {}, "differences of the column step"),
    "steps that only order rows": (as_runs(TABLE), {"steps": "ordered"}, "gaps between looks"),
    "dates": (as_runs(TABLE).assign(step=pd.to_datetime("2024-01-01")), {}, "not numbers of steps"),
    "dates as texts": (as_runs(TABLE).assign(step="2024-01-01"), {}, "dates such as 2024-01-01"),
    "states that are not seen": (TABLE.assign(gap=TABLE.months, next_x=None), {}, "unreadable"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_looks_that_are_not_understood_are_refused(name):
    frame, options, words = REFUSED[name]
    with pytest.raises(pl.DataError, match=words):
        pl.read_log(PANEL, frame, **options)


@pytest.mark.parametrize("gaps", [[], [0], [1.5], [2, 61], "23", [True]])
def test_gaps_are_whole_numbers_of_steps(gaps):
    with pytest.raises(pl.ModelError, match="whole numbers"):
        pl.with_gaps(MODEL, gaps)


@pytest.mark.slow
def test_what_is_not_proved_for_looks_is_refused():
    counts = pl.read_log(PANEL, TABLE, columns={"gap": "months"}).counts
    for options in ({"misfit": 0.01}, {"confidence_set": "ellipsoid"}, {"confidence_set": "table"}):
        with pytest.raises(pl.DataError, match="nothing is proved"):
            pl.learn(PANEL, counts, **options)
    learned = pl.learn(PANEL, counts, objectives=[GOAL])
    with pytest.raises(pl.DataError, match="advise needs every step"):
        pl.advise(learned, GOAL)
    with pytest.raises(pl.DataError, match="seen now and then"):
        pl.decisions.make_witness(learned, pl.conclude(learned, GOAL))
    with pytest.raises(pl.ModelError, match="in memory"):
        pl.with_gaps(PANEL, [2])


def value_at_the_truth():
    matrix = np.array([[0.9, 0.1, 0], [0, 0.8, 0.2], [0, 0, 1]])
    return np.linalg.matrix_power(matrix, 6)[0, 2]


@pytest.mark.slow
def test_bounds_from_looks_hold_the_truth_and_say_what_they_rest_on():
    log = pl.read_log(PANEL, looks(400, [1, 2, 2, 3]), columns={"gap": "months"}, sampling="trajectories")
    learned = pl.learn(PANEL, log, confidence=0.95, objectives=[GOAL])
    found = pl.conclude(learned, GOAL)
    assert found.lower < value_at_the_truth() < found.upper
    low, high = found.approximate
    assert found.upper - found.lower < 1.8 * (high - low)
    said = " ".join(found.assumptions)
    assert all(words in said for words in ("the gap that was planned", "after 2 steps", "no unit was lost", "units"))
    assert len(pl.explain(learned, found).expressions) > 0
    assert pl.check_model(learned).p_value > 0.05


@pytest.mark.slow
def test_a_log_of_single_steps_is_worth_about_as_much_if_there_might_have_been_gaps():
    table = looks(400, [1])
    widths = []
    for model, columns in ((MODEL, {}), (PANEL, {"gap": "months"})):
        log = pl.read_log(model, table, columns=columns, sampling="trajectories")
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
