"""Rules and code say what the table says, in every state; a tree that does not is never handed over."""

import runpy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import TIER, examples, size

import plumdp as pl
from plumdp.model.graph import Graph
from plumdp.model.policy import check_policy
from plumdp.result import policy_rules
from plumdp.stages import instantiate, solve

(P,) = pl.parameters("p")
STUDIES = ("aircraft:20,10", "betting:5", "engagement:100", "glider:11,9", "parallel:5", "rover:10,10")
LARGE = ("aircraft:100,20", "betting:50", "engagement:100", "glider:51,47", "parallel:10", "rover:50,50")


def rooms():
    """Return a graph with a text, a truth value and numbers below and above zero; a variable is a word of Python."""

    def step(s):
        out = s._replace(room="exit", n=0)
        if s.room == "exit":
            return {"rest": [(1, s)]}
        walk = [(P, out), ((1 - P) / 2, s._replace(n=min(s.n + 1, 3))), ((1 - P) / 2, s._replace(n=max(s.n - 1, -3)))]
        other = s._replace(room='the "old" hall' if s.room == "hall" else "hall", lit=not s.lit)
        return {"it's": walk, "run": [(P, out), (1 - P, s)], "turn": [(1, other)]}

    return pl.explore(step, {"room": "hall", "lit": False, "n": 0}, space=pl.ParameterSpace.unit("p")).graph


GRAPH = rooms()


def done_by_rules(rules, state):
    """Return what rules say in a state: of those of a block the first that fits; another block may follow a colon."""
    lines = [line for line in rules.splitlines() if not line.startswith("#")]

    def block(at, indent):
        while True:
            line = lines[at]
            assert len(line) - len(line.lstrip()) == indent
            condition, _, done = line.strip().partition(":")
            word, _, test = condition.partition(" ")
            if word in ("else", "always") or eval(test, {}, state):
                return done.strip() or block(at + 1, indent + 4)
            at += 1
            while len(lines[at]) - len(lines[at].lstrip()) > indent:
                at += 1

    return block(0, 0)


def states_of(graph):
    """Return all states, each as a dict."""
    rows = zip(*(values.tolist() for values in graph.states.values()), strict=True)
    return [dict(zip(graph.states, row, strict=True)) for row in rows]


def small_graph(names, action):
    """Return a graph of states with one action each, given the values of x and the numbers of their actions."""
    each = np.arange(len(names) + 1, dtype=np.int32)
    states = {"x": np.array(names, dtype=np.int32)}
    return Graph(each, each, np.zeros(len(names), np.int32), 0, states, np.array(action, np.int32), ("left", "right"))


def require_same(policy, tmp_path):
    """Compare the file of code and the rules with the table, state by state."""
    pl.exchange.write_policy(policy, tmp_path / "policy.py")
    function, rules = runpy.run_path(str(tmp_path / "policy.py"))["policy"], policy.to_rules()
    table = policy.columns()
    assert len(states_of(policy.graph)) == len(table[[*table][-1]])
    for number, (state, action) in enumerate(zip(states_of(policy.graph), table[[*table][-1]].tolist(), strict=True)):
        assert function(*state.values()) == action
        if number % (1 + len(policy) // size(100, 1000)) == 0:  # it is slow to read rules
            assert done_by_rules(rules, state) == action
    assert check_policy(policy.graph, function).tolist() == policy.choice.tolist()


@pytest.mark.parametrize("name", LARGE if TIER == "night" else STUDIES)
def test_code_and_rules_are_the_same_as_the_best_policy_of_a_case_study(name, tmp_path):
    study = pl.case_study(name)
    best = solve(instantiate(study.model, study.true_point), study.objective)
    policy = pl.PolicyTable(study.model.graph, best.policy)
    require_same(policy, tmp_path)
    assert policy.tree.n_comparisons < len(policy) / 3
    assert f"{policy.tree.n_comparisons:,} comparisons, at most " in policy.to_rules()


@settings(max_examples=examples(60))
@given(st.lists(st.integers(0, 5), min_size=GRAPH.n_states, max_size=GRAPH.n_states))
def test_code_and_rules_are_the_same_as_any_policy(tmp_path_factory, places):
    choice = GRAPH.first_choice[:-1] + np.array(places) % np.diff(GRAPH.first_choice)
    require_same(pl.PolicyTable(GRAPH, choice), tmp_path_factory.mktemp("policy"))


def test_a_policy_that_draws_is_the_same_after_it_was_written_as_code(tmp_path):
    drawn = {"run": 0.25, "turn": 0.75}
    policy = pl.PolicyTable.from_actions(GRAPH, lambda s: drawn if s.n > 1 and not s.lit else "run")
    pl.exchange.write_policy(policy, tmp_path / "policy.py")
    function = runpy.run_path(str(tmp_path / "policy.py"))["policy"]
    assert check_policy(GRAPH, function).tolist() == policy.weights.tolist()
    assert "run with 0.25, turn with 0.75" in policy.to_rules()


def test_code_refuses_what_is_not_a_state(tmp_path):
    policy = pl.PolicyTable.from_actions(GRAPH, "run")
    (tmp_path / "policy.py").write_text(policy.to_python(), encoding="utf-8")
    function = runpy.run_path(str(tmp_path / "policy.py"))["policy"]
    assert function("hall", False, 3) == "run"
    with pytest.raises(ValueError, match=r"^not a state of the model: room='attic', lit=False, n=3$"):
        function("attic", False, 3)
    with pytest.raises(ValueError, match="n=4"):
        function(room="hall", lit=False, n=4)


def test_the_first_lines_of_rules_can_be_read_aloud():
    graph = pl.case_study("betting:5").model.graph
    policy = pl.PolicyTable.from_actions(graph, lambda money, step: "bet5" if money > 7 and step < 3 else "bet0")
    first, *rules = policy.to_rules().splitlines()
    assert first.endswith(": 4 comparisons, at most 3 for one state, the same as its table in all 225 states.")
    ends = ["if step > 4:", "    if step <= 5: end", "    else: done"]
    assert rules == [*ends, "if step > 2: bet0", "if money <= 7: bet0", "else: bet5"]
    assert pl.PolicyTable(small_graph([7], [0]), [0]).to_rules().splitlines()[1:] == ["always: left"]


def test_deep_trees_are_written_in_few_levels():
    """Actions that alternate need a comparison for each value: Python allows for a hundred levels."""
    numbers = np.arange(300)
    code = pl.PolicyTable(small_graph(numbers, numbers % 2), numbers).to_python()
    assert max(len(line) - len(line.lstrip()) for line in code.splitlines()) <= 4 * 10


def test_a_planted_comparison_that_is_off_by_one_is_found(monkeypatch):
    right = policy_rules._best_split

    def wrong(*arguments):
        variable, value, holds = right(*arguments)
        return variable, value if isinstance(value, str) else value - 1, holds

    monkeypatch.setattr(policy_rules, "_best_split", wrong)
    graph = pl.case_study("betting:5").model.graph
    with pytest.raises(AssertionError, match="the decision tree differs from its policy"):
        pl.PolicyTable.from_actions(graph, "bet1").to_rules()


def test_planted_code_that_says_something_else_is_found(monkeypatch):
    policy = pl.PolicyTable.from_actions(pl.case_study("betting:5").model.graph, "bet0")
    right = policy_rules.DecisionTree._condition
    monkeypatch.setattr(
        policy_rules.DecisionTree, "_condition", lambda *a, holds: right(*a, holds=holds).replace("<=", "<")
    )
    with pytest.raises(AssertionError, match="the code differs from its policy"):
        policy.to_python()


def test_states_that_look_the_same_have_no_rules():
    with pytest.raises(pl.DataError, match=r"several states have the valuation \(x=0\), so that rules cannot tell"):
        pl.PolicyTable(small_graph([0, 0], [0, 1]), [0, 1]).to_rules()


def test_code_and_rules_are_not_read_as_data(tmp_path):
    policy = pl.PolicyTable.from_actions(GRAPH, "run")
    for name, hint in (("policy.py", "import its function"), ("policy.rules", "write it as .csv as well")):
        pl.exchange.write_policy(policy, tmp_path / name)
        with pytest.raises(pl.DataError, match=f"a policy is not read from such a file; {hint}"):
            pl.read_policy(GRAPH, tmp_path / name)
