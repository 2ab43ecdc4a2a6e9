"""Tables made of logs and of tabular environments: what is refused, and that every row is counted where it belongs."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import plumdp as pl
from plumdp import DataError, ModelError
from plumdp.data import model_from_log, record, table_from_env

EARLY = pd.DataFrame({"x": [0, 0, 1, 1], "action": ["go", "go", "go", "wait"], "next_x": [1, 2, 2, 1]})


def table(log=EARLY, **options):
    return model_from_log(log, **{"states": "x", "initial": 0, **options})


def edges(model):
    """Return state, action and successor of each transition as texts, without the word "state"."""
    graph, choice = model.graph, model.graph.choice_of_transition()
    words = [",".join(str(column[s]) for column in graph.states.values()) for s in range(graph.n_states)]
    sources, actions = graph.state_of_choice()[choice], graph.action[choice]
    return [
        (words[s], graph.action_names[a], words[t]) for s, a, t in zip(sources, actions, graph.successor, strict=True)
    ]


class TestWrongInput:
    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"states": []}, "name the columns that make up a state"),
            ({"states": ["x", "x"]}, "name the columns that make up a state"),
            ({"states": 3}, "name the columns that make up a state"),
            ({"states": "y"}, "lacks y"),
            ({"states": {"x": "floor("}}, "states"),
            ({"states": {"x": [3, 2]}}, "the edges of bins ascend"),
            ({"initial": 9}, "no state or successor has these values"),
            ({"initial": {"y": 0}}, "each of the variables x"),
            ({"labels": {"elsewhere": lambda s: s.x == 0}}, "successors which the log does not show"),
            ({"form": "runs"}, "choose one of"),
            ({"actions": []}, "name at least one action"),
        ],
    )
    def test_options(self, options, match):
        with pytest.raises((DataError, ModelError), match=match):
            table(**options)

    def test_values_that_are_neither_whole_numbers_nor_texts(self):
        with pytest.raises(DataError, match=r"variable x has values such as 0\.5: make whole numbers"):
            table(EARLY.assign(x=[0.5, 0, 1, 1]))

    def test_a_log_without_a_step(self):
        with pytest.raises(DataError, match="no step from a state to a next state"):
            table(EARLY.assign(next_x=None))

    def test_a_state_that_is_called_elsewhere(self):
        with pytest.raises(DataError, match="'elsewhere'"):
            table(EARLY.assign(x="elsewhere", next_x="b"), initial="b")

    def test_numbers_beyond_32_bits(self):
        with pytest.raises(DataError, match="32 bits"):
            table(EARLY.assign(next_x=2**31 - 1))

    def test_impossible_rows_are_still_refused_by_other_tables(self):
        model = pl.model.table_model(EARLY["x"], EARLY["action"], EARLY["next_x"], initial=0)
        with pytest.raises(DataError, match="impossible transition"):
            pl.read_log(model, pd.DataFrame({"state": [0], "action": ["go"], "next_state": [0]}))

    def test_a_number_is_not_another_action_where_names_are_numbers(self):
        """Actions 0 and 2 are known: a row with action 1 is not one of action 2, which is in second place."""
        model = pl.model.table_model([0, 0, 0, 0], [0, 0, 2, 2], [0, 1, 0, 1], initial=0)
        rows = pd.DataFrame({"state": [0, 0], "action": [1, 2], "next_state": [1, 1]})
        with pytest.raises(DataError, match="1 of 2 rows do not fit the model:\n  unknown action: 1 row"):
            pl.read_log(model, rows)

    def test_rows_that_cannot_be_read_are_refused_in_tables_of_logs_too(self):
        rows = pd.DataFrame({"x": [0, None, 0], "action": ["go", "go", None], "next_x": [None, 1, 1]})
        with pytest.raises(DataError, match="3 of 3 rows"):
            pl.read_log(table(), rows)


class TestStructure:
    def test_every_row_has_one_more_successor_and_states_without_a_row_lead_there(self):
        model = table()
        assert edges(model) == [
            ("0", "go", "1"), ("0", "go", "2"), ("0", "go", "3"),
            ("1", "go", "2"), ("1", "go", "3"), ("1", "wait", "1"), ("1", "wait", "3"),
            ("2", "elsewhere", "3"), *(("3", "elsewhere", to) for to in "0123"),
        ]  # fmt: skip
        assert model.labels["elsewhere"].tolist() == [False, False, False, True]
        assert model.is_free_row[model.rows.number].tolist() == [True, True, True, False, True]

    def test_ends_stay_and_labels_and_rewards_leave_out_elsewhere(self):
        model = table(
            ends=lambda s: s.x == 2, labels={"high": lambda s: s.x >= 1}, rewards={"r": lambda s: s.x + 1},
            choice_rewards={"r": lambda s, a: 1.0},
        )  # fmt: skip
        assert ("2", "stay", "2") in edges(model)
        assert [edge for edge in edges(model) if edge[0] == "3"] == [("3", "elsewhere", to) for to in "0123"]
        assert model.labels["high"].tolist() == [False, True, True, False]
        assert model.rewards["r"].state.tolist() == [1, 2, 3, 0]
        assert model.rewards["r"].choice.tolist() == [1, 1, 1, 1, 0]

    def test_rows_of_an_end_are_left_out(self):
        assert ("1", "go", "2") not in edges(table(ends=lambda s: s.x == 1))

    def test_files_frames_and_forms_give_one_model(self, tmp_path):
        runs = pd.DataFrame(
            {"episode": [1, 1, 1, 2, 2, 3, 3], "step": [0, 1, 2, 0, 1, 0, 1], "x": [0, 1, 2, 0, 2, 1, 1],
             "action": ["go", "go", None, "go", None, "wait", None]}
        )  # fmt: skip
        EARLY.to_csv(tmp_path / "log.csv", index=False)
        EARLY.to_parquet(tmp_path / "log.parquet")
        counts = EARLY.assign(n=[1, 2, 3, 4])
        logs = [runs, tmp_path / "log.csv", str(tmp_path / "log.parquet"), counts, pd.concat([EARLY] * 2)]
        assert {table(log).fingerprint for log in logs} == {table().fingerprint}

    def test_expressions_bins_and_names_of_actions(self):
        log = pd.DataFrame(
            {"lon": [0.1, 0.7], "next_lon": [0.6, 1.2], "heat": [5, 15], "next_heat": [15, 500], "ward": ["A", "B "],
             "next_ward": ["B", "A"], "do": ["F", "G"]}
        )  # fmt: skip
        states = {"x": "floor(lon / 0.5)", "heat": [0, 10, 20], "ward": "ward"}
        options = {"states": states, "actions": {"F": "full"}, "columns": {"action": "do"}}
        model = model_from_log(log, initial={"x": 0, "heat": 0, "ward": "A"}, **options)
        assert edges(model)[:2] == [("0,0,A", "full", "1,1,B"), ("0,0,A", "full", "2,2,elsewhere")]
        counts = pl.read_log(model, log, **options)
        assert counts.report.rows["matched"] == 1
        assert counts.report.rows["outside the table"] == 1


def test_later_rows_count_where_the_table_has_them_elsewhere_or_not_at_all():
    """Of ten rows: four as before, three of known rows to other states, three of states or actions not in the table."""
    later = pd.DataFrame({
        "x":      [0, 0, 1, 1, 0, 1, 0, 7, 0, 2],
        "action": ["go", "go", "go", "wait", "go", "wait", "go", "go", "jump", "go"],
        "next_x": [1, 2, 2, 1, 0, 2, 9, 1, 1, 0],
    })  # fmt: skip
    model = table()
    log = pl.read_log(model, later)
    counted = {edge: int(n) for edge, n in zip(edges(model), log.counts.counts, strict=True) if n}
    assert counted == {
        ("0", "go", "1"): 1, ("0", "go", "2"): 1, ("0", "go", "3"): 2,
        ("1", "go", "2"): 1, ("1", "wait", "1"): 1, ("1", "wait", "3"): 1,
    }  # fmt: skip
    assert log.report.rows["outside the table"] == 3
    assert log.report.rejected == 0
    assert "3 outside of the table" in log.report.summary
    assert any("come from data that are not among these" in sentence for sentence in log.report.assuming)


@pytest.mark.parametrize("form", ["transitions", "trajectories"])
@pytest.mark.parametrize("seed", range(3))
def test_runs_are_counted_as_a_slow_recount_says(form, seed, tmp_path):
    """Few runs make the table; the others show more states and successors, and are recounted row by row."""
    study = pl.case_study("glider:5,5,4,4")
    few, many = (record(study.model, study.true_point, n, rng=seed, max_steps=6) for n in (4, 60))
    early = pd.DataFrame(few.columns(form))
    later = pd.DataFrame(many.columns("transitions"))
    model = model_from_log(early, states=["x", "y"], initial={"x": 0, "y": 0})
    first = pd.DataFrame(few.columns("transitions"))
    seen = {tuple(row) for row in first[["x", "y", "action", "next_x", "next_y"]].itertuples(index=False)}
    rows = {row[:3] for row in seen}
    beyond = tuple(max(*first[name], *first[f"next_{name}"]) + 1 for name in "xy")
    expected, n_outside = Counter(), 0
    for row in later[["x", "y", "action", "next_x", "next_y"]].itertuples(index=False):
        row = tuple(row)
        if row[:3] in rows:
            expected[row if row in seen else (*row[:3], *beyond)] += 1
        else:
            n_outside += 1
    pd.DataFrame(many.columns(form)).to_csv(tmp_path / "later.csv", index=False)
    log = pl.read_log(model, tmp_path / "later.csv", cut_off="unrelated")
    found = {edge: int(n) for edge, n in zip(edges(model), log.counts.counts, strict=True) if n}
    assert found == {(f"{x},{y}", a, f"{u},{v}"): n for (x, y, a, u, v), n in expected.items()}
    assert log.report.rows["outside the table"] == n_outside > 0
    assert log.report.rejected == 0
    assert any(target == f"{beyond[0]},{beyond[1]}" for _, _, target in found)


class TestEnvironments:
    @pytest.mark.parametrize(
        ("env", "options", "match"),
        [
            (object(), {}, "does not list its transitions in P"),
            (SimpleNamespace(P={}), {}, "does not list its transitions in P"),
            (SimpleNamespace(P={0: {0: [(1.0, 0)]}}), {"initial": 0}, r"P\[0\]\[0\]: \(1.0, 0\) is not"),
            (SimpleNamespace(P={0: {0: [(1.0, 0, 0.0, False)]}}), {}, "give initial="),
            (SimpleNamespace(P={0: {0: [(1.0, 0, 0.0, False)]}}), {"initial": 9}, "has no such state"),
            (
                SimpleNamespace(P={0: {0: [(0.5, 1, 0, True), (0.5, 0, 0, False)], 1: [(1.0, 1, 0, False)]}}),
                {"initial": 0},
                "state 1: some episodes terminate there and others go on",
            ),
        ],
    )
    def test_wrong_environments(self, env, options, match):
        with pytest.raises(DataError, match=match):
            table_from_env(env, **options)

    def test_frozen_lake_is_a_table_whose_episodes_can_be_counted(self):
        """Its successors are those listed with a positive probability, and its numbers are nowhere in the model."""
        gymnasium = pytest.importorskip("gymnasium")
        env = gymnasium.make("FrozenLake-v1", is_slippery=True)
        model = table_from_env(env, labels={"goal": lambda s: s.state == 15})
        listed = env.unwrapped.P
        ends = {5, 7, 11, 12, 15}
        expected = {
            (str(s), str(a), str(t)) for s in listed if s not in ends for a in listed[s] for p, t, _, _ in listed[s][a]
        } | {(str(s), "stay", str(s)) for s in ends}
        assert set(edges(model)) == expected
        assert [str(f) for f in model.expressions.polynomials] == ["1"]
        assert np.flatnonzero(model.labels["terminal"]).tolist() == sorted(ends)
        counts = pl.sample_env(model, env, 100, rng=1)
        assert counts.total > 100
        share = counts.counts[model.graph.successor == 15].sum()
        assert 0 <= share <= 100

    def test_taxi_starts_in_many_states_and_terminates_at_the_destination(self):
        gymnasium = pytest.importorskip("gymnasium")
        name = max(name for name in gymnasium.registry if name.startswith("Taxi-v"))
        env = gymnasium.make(name)
        with pytest.raises(DataError, match="start in 300 states: give initial="):
            table_from_env(env)
        model = table_from_env(env, initial=1)
        assert model.graph.n_states == 404  # 300 at the start, 100 with a passenger in the taxi, and 4 ends
        assert model.labels["terminal"].sum() == 4
        assert not model.is_table  # every row has one successor


def test_what_happens_elsewhere_is_bounded_by_nothing_and_goals_must_not_hold_there():
    """Half of all runs go elsewhere, to goal or trap: bounds that took it for a trap would miss the value 3/4."""
    early = pd.DataFrame({"x": [0, 0], "action": ["go", "go"], "next_x": [1, 2]})
    ends = {"ends": lambda s: s.x >= 1, "labels": {"goal": lambda s: s.x == 1}}
    model = model_from_log(early, states="x", initial=0, **ends)
    late = pd.DataFrame({"x": [0] * 4000, "action": ["go"] * 4000, "next_x": [1] * 1000 + [2] * 1000 + [7] * 2000})
    for text in ('Pmax=? [ F "goal" ]', 'Pmin=? [ F "goal" ]'):
        found = pl.certify(model, pl.read_log(model, late), text)
        assert found.lower < 1 / 4 < 3 / 4 < found.upper
        assert found.upper - found.lower < 0.7
        assert any("no reward is earned in states that the table does not have" in text for text in found.assumptions)
    with pytest.raises(pl.ModelError, match="this ends runs in the state 'elsewhere' too, of which nothing is known"):
        pl.certify(model, pl.read_log(model, late), "Pmax=? [ F x>=1 ]")


def test_bets_allow_for_any_value_elsewhere_which_may_differ_by_row():
    """From 0 to 1 with 0.9, from 1 to the goal 2 with 0.6 and to the trap 3 with 0.3, elsewhere with the rest.

    Whatever happens there, the value is at least 0.54 and at most 0.54 + 0.1 + 0.09. With 40,000 runs both ends are
    certified up to 0.03, and never inside; intervals alone leave more.
    """
    rng, n = np.random.default_rng(1), 40_000
    first = np.where(rng.random(n) < 0.9, 1, 8)
    second = rng.choice([2, 3, 9], size=n, p=[0.6, 0.3, 0.1])
    start = pd.DataFrame({"episode": np.arange(n), "step": 0, "x": 0, "action": "go", "next_x": first})
    after = pd.DataFrame({"episode": np.arange(n), "step": 1, "x": 1, "action": "go", "next_x": second})[first == 1]
    early = pd.DataFrame({"x": [0, 1, 1], "action": "go", "next_x": [1, 2, 3]})
    goal = {"labels": {"goal": lambda s: s.x == 2}, "ends": lambda s: s.x >= 2}
    model = model_from_log(early, states="x", initial=0, **goal)
    counts = pl.read_log(model, pd.concat([start, after]), sampling="trajectories")
    found, alone = (pl.certify(model, counts, 'Pmax=? [ F "goal" ]', relaxation=r) for r in ("coupled", "interval"))
    assert 0.51 < found.lower < 0.54
    assert 0.73 < found.upper < 0.76
    assert found.upper - found.lower < alone.upper - alone.lower - 0.005
    assert found.gap["statistics"] > 0
