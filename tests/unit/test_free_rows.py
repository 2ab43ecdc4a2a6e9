"""Models whose rows are simply unknown: what is refused, and that they are the parametric models with free numbers."""

from dataclasses import replace
from fractions import Fraction
from textwrap import dedent

import numpy as np
import pytest
from command_line import plumdp as command_line
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from tiers import examples

import plumdp
from plumdp import ParameterSpace, explore, parameters, simulate, unknown
from plumdp.confidence.tied_rows import find_tied_rows
from plumdp.model import free_rows, table_model, validate
from plumdp.model.check import summarise
from plumdp.model.events import find_events
from plumdp.result.data_file import read_data, write_data


def walk(s):
    """Four states in a line, of which the ends stay."""
    if s.x in (0, 3):
        return {"stay": [(1, s)]}
    return {"go": unknown(s._replace(x=s.x + 1), s._replace(x=s.x - 1))}


def up(s, n):
    return s._replace(x=s.x + n)


(P,) = parameters("p")
WALK = explore(walk, {"x": 1})
WIDE = explore(lambda s: {"go": [up(s, k) for k in range(s.x + 2)]} if s.x < 2 else {"stay": [s]}, {"x": 0})
TIED = explore(lambda s: {"go": unknown(*row.successors, row="w")} if (row := walk(s).get("go")) else walk(s), {"x": 1})


def built(row):
    """Build the model of two steps: the given row, and states that stay."""
    return explore(lambda s: row(s) if s.x < 2 else {"stay": [(1, s)]}, {"x": 0})


def test_what_is_no_table_is_refused():
    """Rows of the walk are those of x=1 and x=2, then the two ends, which stay."""
    assert TIED.probabilities([0.5, 0.5, 0.5, 0.5, 1, 1]).tolist() == [1, 0.5, 0.5]
    refused("models:free", globals(), find_tied_rows=find_tied_rows, find_events=find_events)


class TestTies:
    def test_rows_of_one_name_are_one_class_place_by_place(self):
        def step(s):
            return {"go": unknown(up(s, 1), up(s, 2), row="slip")} if s.x < 4 else {"stay": [s]}

        model = explore(step, {"x": 0})
        assert model.rows.n_choices.tolist() == [4, 2]
        assert model.is_free_row.tolist() == [True, False]
        assert model.expressions.n_free == 2
        assert summarise(model)["expressions"] == {
            "total": 3, "unknown": 2, "free": 2, "free_rows": 1, "tied_choices": 4
        }  # fmt: skip

    def test_coinciding_places_of_a_named_row_are_tied_to_their_like_alone(self):
        """At x=3 the last two places lead to 4; at x=4 all do, which is the known number 1."""

        def step(s):
            return {"go": unknown(s, s._replace(x=min(s.x + 1, 4)), s._replace(x=4), row="slip")}

        model = explore(step, {"x": 0})
        graph = model.graph
        by_state = {int(x): model.rows.number[c] for x, c in zip(graph.states["x"], range(5), strict=True)}
        assert by_state[0] == by_state[1] == by_state[2] != by_state[3]
        sizes = {int(x): int(n) for x, n in zip(graph.states["x"], np.diff(graph.first_transition), strict=True)}
        assert sizes == {0: 3, 1: 3, 2: 3, 3: 2, 4: 1}
        assert model.expressions.n_free == 3 + 2

    def test_rows_without_a_name_merge_equal_successors_and_are_not_tied(self):
        model = explore(lambda s: {"go": [s, up(s, 1), up(s, 1)]} if s.x < 2 else {"stay": [s, s]}, {"x": 0})
        assert np.diff(model.graph.first_transition).tolist() == [2, 2, 1]
        assert model.rows.n_choices.tolist() == [1, 1, 1]
        assert model.is_free_row.tolist() == [True, True, False]


def test_a_model_without_parameters_needs_no_space():
    model = explore(lambda s: {"go": [(Fraction(1, 3), s), (Fraction(2, 3), up(s, 1))]} if s.x < 2 else {"stay": [s]},
                    {"x": 0})  # fmt: skip
    assert not model.is_table
    assert model.probabilities({}).tolist() == [1 / 3, 2 / 3, 1]


def test_a_table_keeps_known_rows_labels_and_rewards():
    def step(s):
        return {"a": unknown(s, up(s, 1)), "b": [(0.25, s), (0.75, up(s, 1))]} if s.x < 2 else {"stay": [(1, s)]}

    options = {"labels": {"end": lambda s: s.x == 2, "never": lambda s: False}, "rewards": {"cost": lambda s: s.x}}
    model = explore(step, {"x": 0}, **options)
    assert model.is_table
    assert model.labels["end"].sum() == 1
    assert model.rewards["cost"].state.tolist() == [0, 1, 2]
    assert [issue.kind for issue in validate(model)] == ["unreachable label"]
    assert [str(f) for f in model.expressions.polynomials] == ["1/4", "3/4", "1"]
    assert "4 are the unknown probabilities of 2 rows" in model._repr_html_()


def test_free_rows_and_their_ties_are_in_the_fingerprint():
    apart = explore(walk, {"x": 1})
    tied = free_rows(apart, np.array([0, 0, -1, -1]))
    assert tied.rows.n_choices.tolist() == [2, 2]
    assert tied.fingerprint != apart.fingerprint == free_rows(tied).fingerprint
    known = explore(lambda s: {a: [(Fraction(1, 2), t) for t in r.successors] if a == "go" else r
                               for a, r in walk(s).items()}, {"x": 1})  # fmt: skip
    assert known.graph.fingerprint == apart.graph.fingerprint
    assert known.fingerprint != apart.fingerprint


def test_all_rows_of_a_parametric_model_can_be_set_free():
    study = plumdp.case_study("betting:5")
    free = free_rows(study.model)
    graph = free.graph
    assert graph is study.model.graph
    assert free.space.names == ()
    assert free.is_free_row.sum() == (np.diff(graph.first_transition) > 1).sum()
    point = study.model.probabilities(study.true_point)[study.model.expression]
    assert np.array_equal(free.probabilities(point)[free.expression], point)


tables = st.lists(
    st.lists(st.tuples(st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True), st.booleans()),
             min_size=1, max_size=2),
    min_size=5, max_size=5,
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=examples(30))
@given(tables, st.integers(0, 2**32 - 1))
def test_a_table_is_the_parametric_model_with_a_parameter_for_each_number(rows, seed):
    """The same graph, the same classes of rows, and the same runs at the same numbers, multiples of 1/64."""
    rng = np.random.default_rng(seed)
    names = [f"p{s}_{a}_{k}" for s in range(5) for a, (to, _) in enumerate(rows[s]) for k in range(len(to) - 1)]
    space = ParameterSpace.unit(*names)
    symbol = dict(zip(names, parameters(*names), strict=True)) if names else {}
    cuts = {
        (s, a): np.diff([0, *np.sort(rng.integers(0, 65, len(to) - 1)), 64]).tolist()
        for s in range(5)
        for a, (to, _) in enumerate(rows[s])
    }

    def step(s, *, is_free):
        result = {}
        for a, (to, is_known) in enumerate(rows[s.x]):
            targets = [s._replace(x=x) for x in to]
            symbols = [symbol[f"p{s.x}_{a}_{k}"] for k in range(len(to) - 1)]
            numbers = [Fraction(cut, 64) for cut in cuts[s.x, a]]
            if is_known and 0 not in numbers:
                result[f"a{a}"] = [*zip(numbers, targets, strict=True)]
            elif is_free:
                result[f"a{a}"] = unknown(*targets)
            else:
                result[f"a{a}"] = [*zip([*symbols, 1 - sum(symbols)], targets, strict=True)]
        return result

    free = explore(lambda s: step(s, is_free=True), {"x": 0})
    parametric = explore(lambda s: step(s, is_free=False), {"x": 0}, space=space)
    assert free.graph.fingerprint == parametric.graph.fingerprint
    assert np.array_equal(free.rows.number, parametric.rows.number)
    truth = {f"p{s}_{a}_{k}": Fraction(n, 64) for (s, a), row in cuts.items() for k, n in enumerate(row[:-1])}
    point = parametric.probabilities(truth)[parametric.expression]
    runs = {"rng": 7, "max_steps": 20, "trajectories": 50}
    one, other = simulate(free, point if free.is_table else {}, **runs), simulate(parametric, truth, **runs)
    assert np.array_equal(one.counts, other.counts)
    assert one.graph.fingerprint == other.graph.fingerprint


class TestColumns:
    def test_columns_in_any_order_and_twice_give_one_model(self):
        state, action, successor = [0, 0, 1, 1, 0], ["b", "b", "a", "a", "a"], [1, 2, 0, 2, 0]
        model = table_model(state, action, successor, initial=1)
        again = table_model(state[::-1] * 2, action[::-1] * 2, successor[::-1] * 2, initial=1)
        assert model.fingerprint == again.fingerprint
        assert model.graph.describe_state(model.graph.initial_state) == "state=1"
        assert model.is_free_row[model.rows.number].tolist() == [False, True, True, False]  # 0 a, 0 b, 1 a, 2 stay
        assert model.labels["deadlock"].tolist() == [False, False, True]
        assert [issue.kind for issue in validate(model)] == ["deadlock"]

    def test_labels_rewards_and_several_variables_are_those_of_explore(self):
        """Random walks on a torus of 3 by 4, as a step function and as columns, compared by the values of states."""
        state = {"x": np.repeat(np.arange(3), 8), "who": np.tile(np.repeat([*"abcd"], 2), 3)}
        is_x = np.tile([True, False], 12)
        later = {"a": "b", "b": "c", "c": "d", "d": "a"}
        after = {
            "x": np.where(is_x, (state["x"] + 1) % 3, state["x"]),
            "who": np.where(is_x, state["who"], [later[who] for who in state["who"]]),
        }
        options = {"labels": {"end": lambda s: s.x == 2}, "rewards": {"r": lambda s: s.x}}
        columns = table_model(state, np.full(24, 7), after, initial={"x": 0, "who": "a"}, **options)
        step = lambda s: {"7": [s._replace(x=(s.x + 1) % 3), s._replace(who=later[s.who])]}  # noqa: E731
        stepped = explore(step, {"x": 0, "who": "a"}, **options)

        def edges(model):
            graph, choice = model.graph, model.graph.choice_of_transition()
            source = graph.state_of_choice()[choice]
            return {
                (graph.describe_state(s), graph.describe_state(t)) for s, t in zip(source, graph.successor, strict=True)
            }

        assert edges(columns) == edges(stepped)
        assert columns.graph.action_names == ("7",)
        assert columns.labels["end"].sum() == stepped.labels["end"].sum() == 4
        assert sorted(columns.rewards["r"].state) == sorted(stepped.rewards["r"].state)
        assert columns.expressions.n_free == stepped.expressions.n_free == 24

    def test_many_rows_are_built_without_a_polynomial_for_each(self):
        n = 20_000
        state = np.repeat(np.arange(n), 4)
        model = table_model(state, np.zeros(4 * n, dtype=int), (state * 7 + np.tile([1, 2, 3, 5], n)) % n, initial=0)
        assert len(model.expressions.polynomials) == 0
        assert model.expressions.n_free == 4 * n
        assert model.nbytes < 20 * 4 * n


def test_a_table_is_written_into_a_result_and_read_again(tmp_path):
    model = free_rows(explore(walk, {"x": 1}), np.array([0, 0, -1, -1]))
    counts = simulate(model, [0.5, 0.5, 0.5, 0.5, 1, 1], 10, rng=1, max_steps=5)
    write_data(tmp_path / "data.npz", model, counts)
    again, _ = read_data(tmp_path / "data.npz")
    assert again.fingerprint == model.fingerprint
    assert again.rows.n_choices.tolist() == [2, 2]


@pytest.mark.parametrize("expression", [[1, 2, 3, 0, 0, 0], [1, 1, 3, 4, 0, 0], [1, 2, 2, 3, 0, 0], [1, 2, 1, 4, 0, 0]])
def test_free_expressions_that_are_not_places_of_one_row_are_an_error(expression):
    model = explore(walk, {"x": 1})
    wrong = replace(model, expression=np.array(expression, dtype=np.int32))
    assert [issue.kind for issue in validate(wrong) if issue.severity == "error"] == ["free rows"]


def test_the_command_line_shows_the_rows_of_a_table(tmp_path):
    text = """
        from plumdp import explore, unknown
        def model():
            return explore(lambda s: {"go": unknown(s, s._replace(x=1 - s.x), row="turn")}, {"x": 0})
    """
    (tmp_path / "model.py").write_text(dedent(text))
    ended = command_line("info", f"{tmp_path}/model.py:model")
    assert (ended.code, ended.err) == (0, "")
    words = " ".join(ended.out.split())
    assert "2 distinct, 2 are the unknown probabilities of 1 row (2 choices are tied to others)" in words
