"""Interval MDPs through UMB archives: what Storm reads is what we wrote, and what it computes is what we compute.

Storm solves interval models by value iteration from below until values change by less than 1e-10, so its values are
slightly too low where ours are bracketed; all comparisons allow 1e-6, absolute or relative.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from tiers import pairs

import plumdp as pl
from plumdp.exchange.write_intervals import write_umb
from plumdp.model.parametric import RewardStructure
from plumdp.model.readers.umb import read_umb
from plumdp.relaxation.intervals import IntervalMDP

pytestmark = pytest.mark.slow

stormpy = pytest.importorskip("stormpy")
developer = pytest.importorskip("stormpy.developer")
storm = pytest.importorskip("storm_values")
NATURES, storm_values = storm.NATURES, storm.storm_values
developer.set_log_level(developer.LogLevel.OFF)

SEEDS = range(60)
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Case:
    """An interval MDP with a goal to reach, states to stay in, a set to end in, and what each step earns."""

    imdp: IntervalMDP
    goal: np.ndarray
    safe: np.ndarray
    end: np.ndarray
    reward: RewardStructure

    def write(self, path):
        labels = {"goal": self.goal, "safe": self.safe, "end": self.end}
        write_umb(self.imdp, path, labels=labels, rewards={"r": self.reward})


def random_case(seed, *, with_zeros=False):
    """Return a cyclic model of 20 to 60 states, 1 to 3 choices each, 2 to 4 successors each; traps if the seed is odd.

    Lower bounds are positive unless zeros are asked for: then nature may remove some edges.
    """
    rng = np.random.default_rng(seed)
    n_states = int(rng.integers(20, 61))
    traps = rng.choice(n_states, 2 * (seed % 2), replace=False)
    n_choices = rng.integers(1, 4, n_states)
    n_choices[traps] = 1
    first_choice = np.concatenate([[0], np.cumsum(n_choices)])
    sizes = rng.integers(2, 5, first_choice[-1])
    sizes[first_choice[traps]] = 1
    first_transition = np.concatenate([[0], np.cumsum(sizes)])
    successor = np.concatenate([rng.choice(n_states, size, replace=False) for size in sizes])
    successor[first_transition[first_choice[traps]]] = traps
    probability = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    lower = probability * rng.uniform(0.2, 0.95, len(probability))
    upper = probability + (1 - probability) * rng.uniform(0.02, 0.6, len(probability))
    if with_zeros:
        lower[rng.random(len(lower)) < 0.3] = 0
    imdp = IntervalMDP.from_arrays(first_choice, first_transition, successor, lower, upper)
    goal = np.isin(np.arange(n_states), rng.choice(n_states, 2, replace=False))
    reward = RewardStructure(rng.uniform(0.5, 2, n_states), rng.uniform(0, 3, first_choice[-1]))
    end = goal | (rng.random(n_states) < 0.3)  # often enough that Storm's rewards converge
    return Case(imdp, goal, goal | (rng.random(n_states) < 0.8), end, reward)


def study_case(name):
    """Return a case study around its true point: ±0.01, within [0.001, 0.999]; certain steps stay certain."""
    study = pl.case_study(name)
    truth = pl.stages.instantiate(study.model, study.true_point)
    known = truth.lower == 1
    lower = np.where(known, 1, np.clip(truth.lower - 0.01, 0.001, 0.999))
    upper = np.where(known, 1, np.clip(truth.upper + 0.01, 0.001, 0.999))
    graph = truth.graph
    imdp = IntervalMDP.from_arrays(
        graph.first_choice,
        graph.first_transition,
        graph.successor,
        lower,
        upper,
        expression=truth.expression,
        initial_state=graph.initial_state,
        states=graph.states,
        action=graph.action,
        action_names=graph.action_names,
    )
    end = study.objective.target
    goal = end & (graph.states["e"] > 0) if "e" in graph.states else end
    safe = goal | (np.random.default_rng(0).random(graph.n_states) < 0.98)
    return Case(imdp, goal, safe, end, study.objective.reward)


CASES = {
    "random": lambda: [random_case(seed) for seed in SEEDS],
    "random with zeros": lambda: [random_case(seed, with_zeros=True) for seed in SEEDS],
    "engagement:50": lambda: [study_case("engagement:50")],
    "glider:11,9": lambda: [study_case("glider:11,9")],
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a function from the name of a group to its cases, each with Storm's reading of its archive."""

    @cache
    def read(group):
        folder = tmp_path_factory.mktemp("umb")
        pairs = []
        for i, case in enumerate(CASES[group]()):
            case.write(folder / f"{i}.umb")
            pairs.append((case, stormpy.build_model_from_umb(str(folder / f"{i}.umb"))))
        return pairs

    return read


def exact_bounds(interval):
    return interval.lower(), interval.upper()


@pytest.mark.parametrize("group", CASES)
def test_storm_reads_every_bound_bit_by_bit(group, written):
    for case, model in written(group):
        graph, f = case.imdp.graph, case.imdp.expression
        assert (model.nr_states, model.nr_choices, model.nr_transitions) == (
            graph.n_states,
            graph.n_choices,
            graph.n_transitions,
        )
        assert list(model.initial_states) == [graph.initial_state]
        assert list(model.nondeterministic_choice_indices) == graph.first_choice.tolist()
        for choice in range(graph.n_choices):
            row = range(graph.first_transition[choice], graph.first_transition[choice + 1])
            ours = {int(graph.successor[t]): (case.imdp.lower[f[t]], case.imdp.upper[f[t]]) for t in row}
            assert {e.column: exact_bounds(e.value) for e in model.transition_matrix.get_row(choice)} == ours


@pytest.mark.parametrize("group", CASES)
def test_storm_reads_labels_and_rewards(group, written):
    for case, model in written(group):
        for name, states in (("goal", case.goal), ("safe", case.safe), ("end", case.end)):
            assert sorted(model.labeling.get_states(name)) == np.flatnonzero(states).tolist()
        reward = model.reward_models["r"]
        assert [exact_bounds(value) for value in reward.state_rewards] == [(v, v) for v in case.reward.state]
        assert reward.has_state_action_rewards == (case.reward.choice is not None)
        if case.reward.choice is not None:
            choices = [exact_bounds(value) for value in reward.state_action_rewards]
            assert choices == [(v, v) for v in case.reward.choice]


def test_storm_reads_action_names_and_awkward_names(tmp_path):
    imdp = IntervalMDP.from_arrays(
        [0, 2, 3],
        [0, 2, 3, 4],
        [1, 0, 1, 1],
        [0.1, 0.5, 1, 1],
        [0.5, 0.9, 1, 1],
        initial_state=1,
        action=[1, 2, 0],
        action_names=("", "up", "über"),
    )
    labels = {"two words/or more": np.array([True, False])}
    write_umb(imdp, tmp_path / "m.umb", labels=labels, rewards={"": RewardStructure(np.array([0.1, 2.0]), None)})
    model = stormpy.build_model_from_umb(str(tmp_path / "m.umb"))
    assert [model.choice_labeling.get_labels_of_choice(choice) for choice in range(3)] == [{"up"}, {"über"}, set()]
    assert [*model.labeling.get_states("two words/or more")] == [0]
    assert [exact_bounds(value) for value in model.reward_models[""].state_rewards] == [(0.1, 0.1), (2.0, 2.0)]


def test_our_own_reader_gets_structure_labels_and_rewards_back(tmp_path):
    case = random_case(0)
    case.write(tmp_path / "m.umb")
    read, graph = read_umb(tmp_path / "m.umb"), case.imdp.graph
    assert read.first_choice.tolist() == graph.first_choice.tolist()
    assert read.first_transition.tolist() == graph.first_transition.tolist()
    assert read.successor.tolist() == graph.successor.tolist()
    assert read.labels["safe"].tolist() == case.safe.tolist()
    assert read.rewards["r"]["choices"].tolist() == case.reward.choice.tolist()


@pytest.mark.parametrize(
    ("labels", "rewards", "message"),
    [
        ({"goal": np.array([True])}, {}, "label 'goal': give a Boolean for each of 2 states, not bool of shape (1,)"),
        ({}, {"r": RewardStructure(None, np.zeros(2))}, "reward 'r' has 2 numbers for 3 choices"),
        (
            {"init": np.array([True, False])},
            {},
            "the label 'init' means the initial state in UMB; give yours another name",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused_by_name(labels, rewards, message, tmp_path):
    imdp = IntervalMDP.from_arrays([0, 2, 3], [0, 1, 2, 3], [0, 1, 1], [1, 1, 1], [1, 1, 1])
    with pytest.raises(pl.ModelError) as caught:
        write_umb(imdp, tmp_path / "m.umb", labels=labels, rewards=rewards)
    assert str(caught.value) == message
    assert not (tmp_path / "m.umb").exists()


def nowhere(case):
    return np.zeros_like(case.goal)


QUERIES = {
    'P{}=? [ F "goal" ]': lambda c, d: pl.model.Reach(c.goal, nowhere(c), d),
    'P{}=? [ "safe" U "goal" ]': lambda c, d: pl.model.Reach(c.goal, ~c.safe, d),
    'P{}=? [ G "safe" ]': lambda c, d: pl.model.Reach(~c.safe, nowhere(c), d, complement=True),
    'R{{"r"}}{}=? [ F "end" ]': lambda c, d: pl.model.Reward(c.reward, d, target=c.end),
}
BOUNDED_QUERIES = {
    'P{}=? [ X "goal" ]': lambda c, d: pl.model.Reach(c.goal, nowhere(c), d, (1, 1)),
    'P{}=? [ F<=7 "goal" ]': lambda c, d: pl.model.Reach(c.goal, nowhere(c), d, (0, 7)),
    'P{}=? [ "safe" U<=7 "goal" ]': lambda c, d: pl.model.Reach(c.goal, ~c.safe, d, (0, 7)),
    'R{{"r"}}{}=? [ C<=9 ]': lambda c, d: pl.model.Reward(c.reward, d, steps=9),
}
ALL_QUERIES = QUERIES | BOUNDED_QUERIES


def assert_agreement(solution, expected, where):
    """Compare every state: infinite where Storm's is, and otherwise a narrow bracket around Storm's value."""
    assert np.array_equal(np.isinf(solution.lower), np.isinf(expected)), f"{where}: infinite lower values differ"
    assert np.array_equal(np.isinf(solution.upper), np.isinf(expected)), f"{where}: infinite upper values differ"
    finite = np.isfinite(expected)
    lower, upper, value = solution.lower[finite], solution.upper[finite], expected[finite]
    slack = TOLERANCE * np.maximum(1, value)
    assert (upper - lower <= slack).all(), f"{where}: the bracket is as wide as {(upper - lower).max()}"
    distance = np.maximum(lower - value, value - upper)
    worst = int(np.argmax(distance - slack))
    state, bracket = np.flatnonzero(finite)[worst], f"[{lower[worst]}, {upper[worst]}]"
    assert distance[worst] <= slack[worst], f"{where}, state {state}: Storm says {value[worst]}, we {bracket}"


def is_answered_by_storm(group, query, direction):
    """Return whether Storm takes the query, and in seconds: the longest way through Engagement takes it minutes."""
    if group == "random with zeros":
        return query in BOUNDED_QUERIES
    return (group, query, direction) != ("engagement:50", 'R{{"r"}}{}=? [ F "end" ]', "max")


QUESTIONS = [
    (group, query, direction)
    for group in CASES
    for query in ALL_QUERIES
    for direction in ("max", "min")
    if is_answered_by_storm(group, query, direction)
]


@pytest.mark.parametrize(("question", "nature"), pairs(QUESTIONS, [*NATURES, *reversed(NATURES)]))
def test_values_agree_with_storm(question, nature, written):
    group, query, direction = question
    solve = pytest.importorskip("plumdp.solver.solve", reason="the solver is not there yet").solve
    text = query.format(direction)
    for i, (case, model) in enumerate(written(group)):
        solution = solve(case.imdp, ALL_QUERIES[query](case, direction), nature=nature, precision=1e-8)
        assert_agreement(solution, storm_values(model, text, nature), f"{group} {i}, {text}, {nature}")
