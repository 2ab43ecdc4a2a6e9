"""Tables made of logs and of tabular environments: what is refused, and that every row is counted where it belongs."""

import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from in_format import in_format
from refusals import refused

import plumdp as pl
from plumdp import DataError, ModelError
from plumdp.data import model_from_log, record, table_from_env
from plumdp.data.returns import outcomes_of
from plumdp.data.whole_runs import read_whole_runs
from plumdp.model.question import as_objective, ask
from plumdp.reporting.page import front_of
from plumdp.result.data_file import read_data

EARLY = pd.DataFrame({"x": [0, 0, 1, 1], "action": ["go", "go", "go", "wait"], "next_x": [1, 2, 2, 1]})


def table(log=EARLY, **options):
    return model_from_log(log, **in_format(**{"states": "x", "initial": 0, **options}))


def edges(model):
    """Return state, action and successor of each transition as texts, without the word "state"."""
    graph, choice = model.graph, model.graph.choice_of_transition()
    words = [",".join(str(column[s]) for column in graph.states.values()) for s in range(graph.n_states)]
    sources, actions = graph.state_of_choice()[choice], graph.action[choice]
    return [
        (words[s], graph.action_names[a], words[t]) for s, a, t in zip(sources, actions, graph.successor, strict=True)
    ]


class TestWrongInput:
    def test_options(self):
        refused("logs:tables", globals(), (DataError, ModelError))

    def test_values_that_are_neither_whole_numbers_nor_texts(self):
        with pytest.raises(DataError, match=r"variable x has values such as 0\.5: make whole numbers"):
            table(EARLY.assign(x=[0.5, 0, 1, 1]))

    def test_a_log_without_a_step(self):
        with pytest.raises(DataError, match="no step from a state to a next one"):
            table(EARLY.assign(next_x=None))

    def test_a_state_that_is_called_elsewhere(self):
        with pytest.raises(DataError, match="'out_of_table'"):
            table(EARLY.assign(x="out_of_table", next_x="b"), initial="b")

    def test_numbers_beyond_32_bits(self):
        with pytest.raises(DataError, match="32 bits"):
            table(EARLY.assign(next_x=2**31 - 3))

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
        with pytest.raises(DataError, match="2 of 3 rows"):
            pl.read_log(table(), rows)

    def test_no_row_is_tied_to_what_is_not_known(self):
        with pytest.raises(ModelError, match="tie no other row to that out of the table"):
            pl.model.free_rows(table(), np.array([0, 1, 2, 3, 1, 5, 6]))

    def test_steps_with_several_rows_are_the_reason_why_there_is_no_table(self):
        runs = EARLY.assign(episode=1, step=0)
        with pytest.raises(DataError, match="no table can be made of the log, as each step has several rows"):
            table(runs)

    @pytest.mark.parametrize(
        "make",
        [
            lambda labels: pl.explore(lambda s: {}, {"x": 0}, labels=labels),
            lambda labels: pl.model.explore_batch(
                lambda s: {}, {"x": 0}, space=pl.ParameterSpace.unit("p"), labels=labels
            ),
            lambda labels: pl.model.table_model([0], ["go"], [1], initial=0, labels=labels),
        ],
    )
    def test_the_name_elsewhere_is_reserved_in_every_table(self, make):
        """A label of the user's own would take in rows that the model says cannot happen."""
        with pytest.raises(ModelError, match="the name 'out_of_table' is kept"):
            make({"out_of_table": lambda s: s.x == 0})


class TestStructure:
    def test_every_row_has_one_more_successor_and_states_without_a_row_lead_there(self):
        model = table()
        assert edges(model) == [
            ("0", "go", "1"), ("0", "go", "2"), ("0", "go", "3"),
            ("1", "go", "2"), ("1", "go", "3"), ("1", "wait", "1"), ("1", "wait", "3"),
            ("2", "out_of_table", "3"), *(("3", "out_of_table", to) for to in "45"),
            *((x, "out_of_table", x) for x in "45"),
        ]  # fmt: skip
        assert model.labels["out_of_table"].tolist() == [False, False, False, True, False, False]
        assert model.is_free_row[model.rows.number].tolist() == [True, True, True, False, True, False, False]

    def test_ends_stay_and_labels_and_rewards_leave_out_elsewhere(self):
        model = table(
            ends=lambda s: s.x == 2, labels={"high": lambda s: s.x >= 1}, rewards={"r": lambda s: s.x + 1},
            choice_rewards={"r": lambda s, a: 1.0},
        )  # fmt: skip
        assert ("2", "stay", "2") in edges(model)
        assert [edge for edge in edges(model) if edge[0] == "3"] == [("3", "out_of_table", to) for to in "45"]
        assert model.labels["high"].tolist() == [False, True, True, False, False, False]
        assert model.rewards["r"].state.tolist() == [1, 2, 3, 0, 0, 0]
        assert model.rewards["r"].choice.tolist() == [1, 1, 1, 1, 0, 0, 0]

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
        model = model_from_log(log, initial={"x": 0, "heat": 0, "ward": "A"}, **in_format(**options))
        assert edges(model)[:2] == [("0,0,A", "full", "1,1,B"), ("0,0,A", "full", "2,2,out_of_table")]
        counts = pl.read_log(model, log, **in_format(**options))
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
    assert any("come from other data than these" in sentence for sentence in log.report.assuming)


@pytest.mark.parametrize("form", ["transitions", "trajectories"])
@pytest.mark.parametrize("seed", range(3))
def test_runs_are_counted_as_a_slow_recount_says(form, seed, tmp_path):
    """Few runs make the table; the others show more states and successors, and are recounted row by row."""
    study = pl.case_study("glider:5,5,4,4")
    few, many = (record(study.model, study.true_point, n, rng=seed, max_steps=6) for n in (4, 60))
    early = pd.DataFrame(few.columns(form))
    later = pd.DataFrame(many.columns("transitions"))
    model = model_from_log(early, pl.LogFormat(states=["x", "y"]), initial={"x": 0, "y": 0})
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
    log = pl.read_log(model, tmp_path / "later.csv", pl.LogFormat(censoring="unrelated"))
    found = {edge: int(n) for edge, n in zip(edges(model), log.counts.counts, strict=True) if n}
    assert found == {(f"{x},{y}", a, f"{u},{v}"): n for (x, y, a, u, v), n in expected.items()}
    assert log.report.rows["outside the table"] == n_outside > 0
    assert log.report.rejected == 0
    assert any(target == f"{beyond[0]},{beyond[1]}" for _, _, target in found)


class TestEnvironments:
    def test_wrong_environments(self):
        refused("logs:environments", globals(), DataError, SimpleNamespace=SimpleNamespace)

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
        counts = pl.data.sample_env(model, env, 100, rng=1)
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


def test_what_happens_elsewhere_is_bounded_by_nothing():
    """Half of all runs go elsewhere, to goal or trap: bounds that took it for a trap would miss the value 3/4.

    The state x = 7 is not in the table, and F x>=1 is 1: bounds that took it for another value would miss that.
    """
    early = pd.DataFrame({"x": [0, 0], "action": ["go", "go"], "next_x": [1, 2]})
    ends = {"ends": lambda s: s.x >= 1, "labels": {"goal": lambda s: s.x == 1}}
    model = model_from_log(early, pl.LogFormat(states="x"), initial=0, **ends)
    late = pd.DataFrame({"x": [0] * 4000, "action": ["go"] * 4000, "next_x": [1] * 1000 + [2] * 1000 + [7] * 2000})
    for text in ('Pmax=? [ F "goal" ]', 'Pmin=? [ F "goal" ]'):
        found = pl.certify(model, pl.read_log(model, late), text)
        assert found.lower < 1 / 4 < 3 / 4 < found.upper
        assert found.upper - found.lower < 0.7
        assert not any("every transition that can happen" in text for text in found.rests_on.assumptions)
        name, text = found.page().facts[0]
        assert name == "outside"
        assert text.startswith("2,000 of 4,000 steps (50 %) left the table, by transitions that it does not have")
    assert pl.certify(model, pl.read_log(model, late), "Pmax=? [ F x>=1 ]").upper == 1


# From 0 to 1 with 0.6 and to the goal 2 with 0.4, from 1 to the goal or to the crash 3 with 1/2 each. The first part
# lacks the step from 0 to 2. The first number is the value; the others are what any behaviour after that step allows:
# of 0.6 nothing is unknown. Two actions do the same, so that what counts steps is asked of a product.
SHORT_CUT = {
    'F "goal"': (0.7, 0.3, 0.7), 'G "safe"': (0.7, 0.3, 0.7), 'F !"safe"': (0.3, 0.3, 0.7), "F x>=2": (1, 0.6, 1),
    'F<=1 "goal"': (0.4, 0, 0.4), 'X "goal"': (0.4, 0, 0.4), 'F[1,1] "goal"': (0.4, 0, 0.4),
    'G<=1 !"goal"': (0.6, 0.6, 1), 'G<=4 "safe"': (0.7, 0.3, 0.7), 'F<=4 !"safe"': (0.3, 0.3, 0.7),
    '"safe" U<=4 "goal"': (0.7, 0.3, 0.7), 'X "safe"': (1, 0.6, 1),
    'X ("safe" & X "safe")': (0.7, 0.3, 0.7), 'G ("safe" | !"safe")': (1, 0.6, 1), "F<=4 x>=3": (0.3, 0.3, 0.7),
    'F "unseen"': (0, 0, 0.4),
    'F<=1 ("goal" & X "goal")': (0.4, 0, 0.4), 'F{"time"}<=1 "goal"': (0.4, 0, 0.4),
    'F{"time"}<=2 "goal"': (0.7, 0.3, 0.7), '(F "unseen") & (F "goal")': (0, 0, 0.4),
}  # fmt: skip
EARNED = {  # gain 1 in the goal, and between 0 and 1 in states that the table does not have
    "C<=2": (0.4, 0, 0.4), "C<=3": (1.1, 0.3, 1.1), "I=1": (0.4, 0, 0.4), "I=2": (0.7, 0.3, 0.7),
    "C{0.5}": (0.55, 0.15, 0.55), "C{0.9}": (6.03, 2.43, 6.03), "C{0.5}<=3": (0.35, 0.075, 0.375),
}  # fmt: skip


@pytest.fixture(scope="module")
def short_cut():
    early = [(0, a, 1) for a in "lr"] + [(1, a, x) for a in "lr" for x in (2, 3)]
    model = model_from_log(
        pd.DataFrame(early, columns=["x", "action", "next_x"]),
        pl.LogFormat(states="x"),
        initial=0,
        ends=lambda s: s.x >= 2,
        labels={"goal": lambda s: s.x == 2, "safe": lambda s: s.x != 3, "unseen": lambda s: s.x == 77},
        rewards={"gain": lambda s: s.x == 2.0, "time": lambda s: s.x < 2.0, "free": lambda s: 0.0 * s.x},
        out_of_table={"gain": (0, 1)},
    )
    late = [(0, a, x, n) for a in "lr" for x, n in ((1, 600_000), (2, 400_000))]
    late += [(1, a, x, 300_000) for a in "lr" for x in (2, 3)]
    return model, pl.read_log(model, pd.DataFrame(late, columns=["x", "action", "next_x", "n"]))


class TestShortCut:
    """Going elsewhere takes no step of its own, whatever is asked, and any label may hold there."""

    @pytest.mark.parametrize("direction", ["max", "min"])
    @pytest.mark.parametrize("formula", SHORT_CUT)
    def test_probabilities(self, short_cut, formula, direction):
        self.check(short_cut, f"P{direction}=? [ {formula} ]", SHORT_CUT[formula])

    @pytest.mark.parametrize("direction", ["max", "min"])
    @pytest.mark.parametrize("formula", EARNED)
    def test_rewards(self, short_cut, formula, direction):
        self.check(short_cut, f'R{{"gain"}}{direction}=? [ {formula} ]', EARNED[formula])

    @pytest.mark.parametrize("formula", ['F<=150 "goal"', 'G<=150 "safe"', 'F[2,150] "goal"'])
    def test_many_steps(self, short_cut, formula):
        """All is decided after two steps; the crash is not left, and its steps are counted for long."""
        self.check(short_cut, f"Pmax=? [ {formula} ]", (0.7, 0.3, 0.7))

    @pytest.mark.parametrize("text", ['Pmax=? [ F<=4 !"safe" ]', "Rmax=? [ C<=9 ]", "Rmax=? [ I=9 ]"])
    def test_a_long_product_is_the_same_if_it_is_found_at_once(self, short_cut, text, monkeypatch):
        text, graphs = text.replace("R", 'R{"gain"}'), []
        for many in (10**9, 3):
            monkeypatch.setattr("plumdp.model.memory._MANY", many)
            graphs.append(ask(text, short_cut[0]).model.graph)
        assert graphs[0].fingerprint == graphs[1].fingerprint

    def check(self, short_cut, text, expected):
        value, low, high = expected
        found = pl.certify(*short_cut, text)
        assert found.lower <= value <= found.upper
        assert found.lower == pytest.approx(low, abs=0.02 * max(1, high))
        assert found.upper == pytest.approx(high, abs=0.02 * max(1, high))

    @pytest.mark.parametrize("formula", ["C<=2", "C{0.5}", "LRA", 'F "goal"', "C", "I=1"])
    def test_rewards_elsewhere_must_be_said(self, short_cut, formula):
        with pytest.raises(ModelError, match=r'model_from_log\(…, out_of_table={"time": \(0, 1000\)}\)'):
            pl.certify(*short_cut, f'R{{"time"}}max=? [ {formula} ]')

    @pytest.mark.parametrize("formula", ['P{}=? [ F<=1 "goal" ]', 'R{{"gain"}}{}=? [ C<=2 ]', 'P{}=? [ X "goal" ]'])
    def test_a_question_that_would_count_the_way_elsewhere_as_a_step_is_refused(self, short_cut, formula):
        """Runs come to the goal by a transition that the table does not have: F<=1 has 0.4, and not 0."""
        objective = pl.parse_property(formula.format("max"), short_cut[0])
        with pytest.raises(
            ModelError, match=r"steps must be counted; ask the property itself, or .* ask\(property, model"
        ):
            pl.model.Question(short_cut[0], objective)

    def test_no_interval_model_says_that_labels_do_not_hold_elsewhere(self, short_cut):
        """Whoever asked it for F "goal" would be told at most 0.3, where 0.4 come to the goal by another way alone."""
        with pytest.raises(DataError, match="runs may leave this table"):
            pl.exchange.interval_model(pl.learn(*short_cut))

    def test_a_label_that_no_state_of_the_table_has_is_not_decided_to_be_impossible(self, short_cut):
        assert "at most 40" in pl.decide(pl.learn(*short_cut), 'P<=0.01 [ F<=1 "goal" ]').headline

    def test_on_average_any_share_of_steps_may_be_where_the_label_holds(self, short_cut):
        asked = ask('LRAmax=? [ "goal" ]', short_cut[0])
        assert asked.objective.terms(asked.model.graph).reward[-3:].tolist() == [0, 0, 1]

    def test_what_was_said_of_rewards_is_printed(self, short_cut):
        said = 'the reward "gain" of a step in a state that the table does not have lies between 0 and 1'
        assert said in pl.certify(*short_cut, 'R{"gain"}max=? [ C<=2 ]').rests_on.assumptions
        assert said not in pl.certify(*short_cut, 'Pmax=? [ F "goal" ]').rests_on.assumptions


def test_a_certified_minimum_of_costs_does_not_steer_into_the_unknown():
    """Action "safe" costs 10. Action "risky" leads, in nine of ten rows, to a state that costs 1,000, and that the
    first part does not show. By the bounds that were given, its cost is up to 0.1 · 10 + 0.9 · 1000 = 901.
    """
    early = pd.DataFrame({"x": [0, 0, 1], "action": ["safe", "risky", "go"], "next_x": [1, 1, 2]})
    late = [(0, "safe", 1, 1000), (0, "risky", 1, 100), (0, "risky", 9, 900), (1, "go", 2, 1000), (9, "go", 2, 900)]
    cost = {"rewards": {"cost": lambda s: 10.0 * (s.x == 1)}, "out_of_table": {"cost": (0, 1000)}}
    model = model_from_log(early, pl.LogFormat(states="x"), initial=0, ends=lambda s: s.x == 2, **cost)
    log = pl.read_log(model, pd.DataFrame(late, columns=["x", "action", "next_x", "n"]))
    for text in ("C<=2", "C{0.9}", "I=1"):
        policy = pl.certify(model, log, f'R{{"cost"}}min=? [ {text} ]').policy
        assert policy.graph.action_names[policy.graph.action[policy.choice[policy.graph.initial_state]]] == "safe"
    found = pl.certify(model, log, 'R{"cost"}min=? [ C<=2 ]', policy="risky")
    assert found.lower <= 901 <= found.upper
    assert "900 of 3,000 steps (30 %) left the table" in str(log)


@pytest.mark.parametrize("most", [1000, math.inf])
@pytest.mark.parametrize("policy", [None, "uniform"])
def test_a_result_keeps_what_was_said_of_rewards_elsewhere_and_lists_states_of_the_table_alone(policy, most, tmp_path):
    """The table has the states 0, 1 and 2; that of x = 7, and those that stand for what it does not know, it has not.

    State 1 has no row, so that no action is known there.
    """
    early = pd.DataFrame({"x": [0, 0], "action": ["safe", "risky"], "next_x": [1, 2]})
    late = pd.DataFrame({"x": [0] * 4, "action": ["safe"] * 4, "next_x": [1, 1, 2, 7], "n": [100] * 4})
    cost = {"rewards": {"cost": lambda s: 1.0 * (s.x == 1)}, "out_of_table": {"cost": (0, most)}}
    model = model_from_log(early, pl.LogFormat(states="x"), initial=0, ends=lambda s: s.x == 2, **cost)
    log = pl.read_log(model, late)
    asked = 'R{"cost"}min=? [ C<=2 ]' if most < math.inf else 'R{"cost"}min=? [ F x=2 ]'
    found = pl.certify(model, log, asked, policy=policy)
    pl.write_result(found, tmp_path / "result", model=model, counts=log.counts)
    kept, _ = read_data(tmp_path / "result" / "data.npz")
    assert kept.rewards["cost"].out_of_table == (0.0, most)
    assert {*pd.read_csv(tmp_path / "result" / "policy.csv").x} == {0, 2}
    again = pl.read_policy(found.policy.graph, tmp_path / "result" / "policy.csv")
    assert np.array_equal(np.asarray(again), np.asarray(found.policy))
    assert {*found.policy.by_state()["x"]} == {0, 2}
    assert any("(50 %) left the table" in text for text in front_of(found, title="", system="", author="").rests_on)


@pytest.mark.parametrize("lost", [7, None, 2**40])
def test_rows_whose_next_state_is_missing_left_the_table(lost):
    """A fifth of all steps fail, and the log does not say where to: v0 = 0.6 v1 + 0.2 v0 and v1 = 0.6 + 0.2 v0."""
    early = pd.DataFrame({"x": [0, 0, 1, 1], "action": "go", "next_x": [0, 1, 0, 2]})
    goal = {"ends": lambda s: s.x == 2, "labels": {"goal": lambda s: s.x == 2}}
    model = model_from_log(early, pl.LogFormat(states="x"), initial=0, **goal)
    rows = [(x, "go", to) for x in (0, 1) for to, n in ((x + 1, 600), (0, 200), (lost, 200)) for _ in range(n)]
    log = pl.read_log(model, pd.DataFrame(rows, columns=["x", "action", "next_x"]).astype({"next_x": "Int64"}))
    assert log.report.out_of_table == 400
    found = pl.certify(model, log, 'P=? [ F "goal" ]')
    assert found.lower <= 0.36 / 0.68 <= found.upper


def test_fresh_runs_that_leave_the_table_are_not_decided_by_labels_there():
    """In each of 2,000 runs the first step leaves the table, to a state that is safe: nothing says that it is not."""
    early = pd.DataFrame({"x": [0], "action": "go", "next_x": [1]})
    ends = {"ends": lambda s: s.x == 1, "labels": {"safe": lambda s: s.x < 9}}
    model = model_from_log(early, pl.LogFormat(states="x"), initial=0, **ends)
    runs = pd.DataFrame({"episode": range(2000), "step": 0, "x": 0, "action": "go", "next_x": 5})
    objective = as_objective('P=? [ G<=3 "safe" ]', model)
    certificate = pl.certify(model, pl.read_log(model, runs, order="runs"), objective)
    fresh = runs.assign(episode=runs.episode + 10_000)
    policy = certificate.policy
    made = outcomes_of(objective, model, read_whole_runs(model, fresh), policy.graph, policy)
    assert not made.is_complete.any()
    assert (made.upper == 1).all()


def test_bets_allow_for_any_value_elsewhere():
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
    model = model_from_log(early, pl.LogFormat(states="x"), initial=0, **goal)
    counts = pl.read_log(model, pd.concat([start, after]), sampling="trajectories").counts
    found, alone = (pl.certify(model, counts, 'Pmax=? [ F "goal" ]', relaxation=r) for r in ("coupled", "interval"))
    assert 0.51 < found.lower < 0.54
    assert 0.73 < found.upper < 0.76
    assert found.upper - found.lower < alone.upper - alone.lower - 0.005
    assert found.beside.gap["statistics"] > 0


class TestClosed:
    """Tables without other states: what is seen of the first data alone, and each row may lead to all of it."""

    TABLE = table(ends=lambda s: s.x == 2, closed=True, labels={"goal": lambda s: s.x == 2})

    def test_each_row_leads_to_every_state_and_nowhere_else(self):
        pairs = [("0", "go"), ("1", "go"), ("1", "wait")]
        rows = [(*pair, to) for pair in pairs for to in "012"]
        assert sorted(edges(self.TABLE)) == sorted([*rows, ("2", "stay", "2")])
        assert "out_of_table" not in self.TABLE.labels

    def test_a_successor_that_the_first_data_do_not_have_is_a_step_like_others(self):
        seen = pl.read_log(self.TABLE, pd.DataFrame({"x": [1, 0], "action": ["go", "go"], "next_x": [0, 0]}))
        assert seen.counts.total == 2

    def test_a_state_that_it_does_not_have_contradicts_it(self):
        later = pd.DataFrame({"x": [0, 0], "action": ["go", "go"], "next_x": [1, 7]})
        seen = pl.read_log(self.TABLE, later, on_unmatched="report")
        found = pl.certify(self.TABLE, seen, 'Pmax=? [ F "goal" ]')
        assert found.status == "model rejected"

    def test_an_action_that_it_lacks_in_a_state_is_outside_of_it_and_contradicts_nothing(self):
        """No row says anything of that step; a state that is new still contradicts the table."""
        later = pd.DataFrame({"x": [0, 0, 0], "action": ["wait", "go", "wait"], "next_x": [1, 1, 7]})
        seen = pl.read_log(self.TABLE, later, on_unmatched="report")
        rows = seen.report.rows
        assert [rows[kind] for kind in ("matched", "outside the table", "unknown next state")] == [1, 1, 1]
        assert seen.report.contradicting == 1

    def test_certificates_assume_that_there_are_no_other_states(self):
        found = pl.certify(self.TABLE, pl.read_log(self.TABLE, EARLY), 'Pmax=? [ F "goal" ]')
        assert any("the model has every transition that can happen" in text for text in found.rests_on.assumptions)
