"""Graphs against loops over nested lists, and reachability by Warshall's algorithm."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plumdp.model.graph import Graph, ranges, read_only


def graph_of(nested, states=None):
    """Return the graph of state → choices → successors."""
    choices = [choice for state in nested for choice in state]
    return Graph(
        np.cumsum([0, *map(len, nested)]).astype(np.int32),
        np.cumsum([0, *map(len, choices)]).astype(np.int32),
        np.array([target for choice in choices for target in choice], dtype=np.int32),
        0,
        states or {},
        np.arange(len(choices), dtype=np.int32) % 2,
        ("left", "right"),
    )


@st.composite
def nested_lists(draw, min_transitions=1):
    n = draw(st.integers(1, 7))
    choice = st.lists(st.integers(0, n - 1), min_size=min_transitions, max_size=3)
    return draw(st.lists(st.lists(choice, max_size=3), min_size=n, max_size=n))


@given(nested_lists())
def test_sizes_and_owners_are_those_of_the_nested_lists(nested):
    graph = graph_of(nested)
    choices = [(s, choice) for s, state in enumerate(nested) for choice in state]
    assert (graph.n_states, graph.n_choices) == (len(nested), len(choices))
    assert graph.n_transitions == sum(len(choice) for _, choice in choices)
    assert graph.state_of_choice().tolist() == [s for s, _ in choices]
    assert graph.choice_of_transition().tolist() == [c for c, (_, choice) in enumerate(choices) for _ in choice]


def check_sums(nested):
    graph = graph_of(nested)
    values = np.arange(1.0, graph.n_transitions + 1) ** 2
    expected = [0.0] * graph.n_choices
    for value, choice in zip(values, graph.choice_of_transition(), strict=True):
        expected[choice] += value
    assert graph.sum_by_choice(values).tolist() == expected


@given(nested_lists())
def test_sums_by_choice_are_those_of_a_loop(nested):
    check_sums(nested)


@pytest.mark.parametrize("nested", [[[[0], [], [0, 0]]], [[[0], []]], [[[]]]], ids=["middle", "last", "only"])
def test_a_choice_without_transitions_sums_to_zero(nested):
    """The checks of a model look at such choices to report them, so they must not take a neighbour's value."""
    check_sums(nested)


def warshall(nested):
    n = len(nested)
    reach = [[i == j or any(j in choice for choice in nested[i]) for j in range(n)] for i in range(n)]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                reach[i][j] = reach[i][j] or (reach[i][k] and reach[k][j])
    return reach


@given(nested_lists(min_transitions=0))
@example([[[0, 0], [0]]])
@example([[[1, 1]], [[0]]])
def test_components_are_the_classes_of_mutual_reachability(nested):
    reach, n = warshall(nested), len(nested)
    classes = {frozenset(j for j in range(n) if reach[i][j] and reach[j][i]) for i in range(n)}
    graph = graph_of(nested)
    assert graph.component_sizes().tolist() == sorted(map(len, classes), reverse=True)
    assert graph.is_acyclic() == all(len(members) == 1 for members in classes)


@pytest.mark.parametrize(
    ("nested", "acyclic"),
    [
        ([[[0]]], True),
        ([[[0, 1]], [[1]]], True),
        ([[[1]], [[0]]], False),
        ([[[1]], [[2]], [[2, 1]]], False),
        ([[]], True),
    ],
)
def test_a_graph_is_acyclic_if_its_only_cycles_are_self_loops(nested, acyclic):
    assert graph_of(nested).is_acyclic() is acyclic


STATES = {"x": np.array([-3, 5]), "is_on": np.array([True, False]), "place": np.array(["home", "Away"])}


def test_states_are_described_by_their_values_in_order():
    graph = graph_of([[[0], [1]], [[1]]], STATES)
    assert graph.describe_state(0) == "x=-3, is_on=true, place=home"
    assert graph.describe_state(1) == "x=5, is_on=false, place=Away"


def test_choices_are_described_by_state_and_action_also_behind_a_state_without_choices():
    graph = graph_of([[], [[0], [1]]], STATES)
    assert graph.describe_choice(0) == "state (x=5, is_on=false, place=Away), action 'left'"
    assert graph.describe_choice(1) == "state (x=5, is_on=false, place=Away), action 'right'"


@given(nested_lists())
def test_every_choice_is_described_by_the_state_that_owns_it(nested):
    graph = graph_of(nested, {"s": np.arange(len(nested), dtype=np.int32)})
    for choice, state in enumerate(graph.state_of_choice().tolist()):
        assert graph.describe_choice(choice).startswith(f"state (s={state}), action ")


def test_memory_counts_every_array():
    """Offsets (2+1) and (3+1), 3 successors and 3 actions: 13 int32; two columns of 2 and 4 bytes."""
    columns = {"x": np.array([1, 2], dtype=np.int16), "b": np.array([True, False])}
    assert graph_of([[[0], [1]], [[1]]], columns).nbytes == 13 * 4 + 4 + 2


def test_read_only_arrays_refuse_writing_and_are_contiguous():
    array = read_only(np.arange(10)[::2])
    assert array.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def lists_of(graph):
    """Return state → choices → successors: the inverse of ``graph_of``."""
    rows = [graph.successor[a:b].tolist() for a, b in pairwise(graph.first_transition.tolist())]
    return [rows[a:b] for a, b in pairwise(graph.first_choice.tolist())]


@given(nested_lists(min_transitions=0), st.randoms(use_true_random=False))
def test_kept_transitions_are_those_marked(nested, random):
    graph = graph_of(nested)
    marks = [[[random.random() < 0.5 for _ in choice] for choice in state] for state in nested]
    mask = np.array([mark for state in marks for choice in state for mark in choice], dtype=np.bool_)
    expected = [
        [[target for target, mark in zip(*pair, strict=True) if mark] for pair in zip(state, of_state, strict=True)]
        for state, of_state in zip(nested, marks, strict=True)
    ]
    kept = graph.keep(mask)
    assert lists_of(kept) == expected
    assert kept.action.tolist() == graph.action.tolist()


@given(nested_lists(min_transitions=0), st.randoms(use_true_random=False))
def test_taken_choices_are_those_given_with_all_their_transitions(nested, random):
    graph = graph_of(nested)
    is_taken = [[random.random() < 0.5 for _ in state] for state in nested]
    choices = np.flatnonzero([mark for state in is_taken for mark in state])
    taken, transitions = graph.take(choices)
    expected = [[row for row, m in zip(*pair, strict=True) if m] for pair in zip(nested, is_taken, strict=True)]
    assert lists_of(taken) == expected
    assert taken.action.tolist() == graph.action[choices].tolist()
    assert taken.successor.tolist() == graph.successor[transitions].tolist()


def test_choices_out_of_the_order_of_states_are_refused():
    with pytest.raises(ValueError, match=r"^the choices of a graph must be in the order of their states$"):
        graph_of([[[0]], [[0], [1]]]).take(np.array([2, 0]))


@given(nested_lists(min_transitions=0))
def test_single_owners_are_those_of_the_whole(nested):
    graph = graph_of(nested)
    assert [graph.choice_of(t) for t in range(graph.n_transitions)] == graph.choice_of_transition().tolist()
    assert [graph.state_of(c) for c in range(graph.n_choices)] == graph.state_of_choice().tolist()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4))))
def test_ranges_are_joined_in_their_order(pairs):
    start, size = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    assert ranges(start, start + size).tolist() == [i for a, n in pairs for i in range(a, a + n)]
