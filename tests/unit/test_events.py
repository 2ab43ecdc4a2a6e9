"""Events: every visit is one fair trial of each of its events, and counts are pooled accordingly."""

from functools import partial
from itertools import groupby, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from row_models import row_model, rows_of, tried_by
from tiers import examples

import plumdp as pl
from plumdp.confidence.observations import is_tried_once, pool
from plumdp.data.counts import TransitionCounts
from plumdp.model.events import find_events
from plumdp.model.expressions.polynomial import Polynomial

p, q = pl.parameters("p", "q")
SPACE = pl.ParameterSpace.box({"p": (0, 0.25), "q": (0, 0.25)})
model_of = partial(row_model, space=SPACE)
ROWS = [
    [p, 1 - p],
    [1 - p, p],
    [q, 1 - q],
    [p / 2, 1 - p / 2],
    [p / 2, p / 2, 1 - p],
    [p / 2, 1 - p, p / 2],
    [p, p / 2, p / 2, 1 - 2 * p],
    [p / 3, p / 3, p / 3, 1 - p],
    [2 * p, 1 - 2 * p],
    [p, p, 1 - 2 * p],
    [p, q, 1 - p - q],
    [1 - p, p - p * q, p * q],
    [1 - q, q / 2, q / 2 - p * q, p * q],
    [p * q, p - p * q, q - p * q, 1 - p - q + p * q],
    [0.5, p / 2, 0.5 - p / 2],
    [1],
]


models = st.lists(st.sampled_from(ROWS), min_size=1, max_size=7).map(model_of)


@given(models, st.booleans())
def test_a_visit_is_one_trial_with_exactly_the_probability_of_each_event_it_tries(model, merge):
    events = find_events(model, merge_complements=merge)
    for choice, row in rows_of(model):
        tried = tried_by(events, choice)
        assert len(set(tried)) == len(tried)
        for event in tried:
            happens = sum((f for t, f in row if events.success[t] == event), Polynomial(0))
            assert happens == events.polynomials[event]
        assert {events.success[t] for t, _ in row} <= {*tried, -1}


@given(models, st.booleans())
def test_every_unknown_expression_follows_from_an_event(model, merge):
    events, table = find_events(model, merge_complements=merge), model.expressions
    links = zip(*(column.tolist() for column in vars(events.links).values()), strict=True)
    for f, event, multiple, is_complement in links:
        probability = events.polynomials[event]
        assert multiple * table.polynomials[f] == (1 - probability if is_complement else probability)
    assert set(events.links.expression.tolist()) == set(np.flatnonzero(table.is_unknown).tolist())
    assert set(events.links.event[~events.links.is_complement].tolist()) == set(range(len(events)))


@pytest.mark.slow
@given(models, st.booleans())
def test_events_are_distinct_unknown_and_never_a_needless_pair_of_complements(model, merge):
    events = find_events(model, merge_complements=merge)
    assert len(set(events.polynomials)) == len(events)
    assert not any(f.is_constant for f in events.polynomials)
    for f, g in product(range(len(events)), repeat=2):
        if merge and events.polynomials[f] == 1 - events.polynomials[g]:
            alone = [choice for choice, _ in rows_of(model) if f in tried_by(events, choice)]
            assert any(g not in tried_by(events, choice) for choice in alone)


@given(models, st.integers(0, 2**32))
def test_pooling_adds_up_rows_by_polynomial(model, seed):
    """The slow way: go through the rows, sum equal expressions, and look up the sum among the events."""
    events = find_events(model)
    counts = np.random.default_rng(seed).integers(0, 10**6, model.graph.n_transitions)
    trials, successes = dict.fromkeys(events.polynomials, 0), dict.fromkeys(events.polynomials, 0)
    for _, row in rows_of(model):
        groups = [
            list(group) for _, group in groupby(sorted(row, key=lambda x: model.expression[x[0]]), lambda x: x[1])
        ]
        seen = set()
        for group in groups:
            total = len(group) * group[0][1]
            if total in trials and total not in seen:
                trials[total] += int(sum(counts[t] for t, _ in row))
                successes[total] += int(sum(counts[t] for t, _ in group))
                seen.add(total)
    pooled = pool(events, TransitionCounts(model.graph, counts, "independent"))
    assert pooled.trials.tolist() == list(trials.values())
    assert pooled.successes.tolist() == list(successes.values())
    assert pooled.sampling == "independent"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[p, 1 - p]], [p]),
        ([[1 - p, p], [p, 1 - p]], [1 - p]),
        ([[p, 1 - p], [1 - p, p / 2, p / 2]], [p]),  # two halves of p: the row is binary too
        ([[p, 1 - p], [p, q, 1 - p - q]], [p, q, 1 - p - q]),  # p stands alone: it is the event, 1 - p its failure
        ([[1 - p, p], [p, q, 1 - p - q]], [p, q, 1 - p - q]),
        ([[p, 1 - p], [1 - p, p - p * q, p * q]], [1 - p, p - p * q, p * q]),
        ([[p, 1 - p], [1 - p, p - p * q, p * q], [p, q, 1 - p - q]], [p, 1 - p, p - p * q, p * q, q, 1 - p - q]),
        ([[p, p, 1 - 2 * p], [p, 1 - p]], [p, 1 - 2 * p]),  # 2p is the failure of 1 - 2p, not an event of class p
        ([[p, p / 2, p / 2, 1 - 2 * p]], [p, 1 - 2 * p]),  # p twice over: tried once
        ([[1]], []),
    ],
)
def test_the_events_of_small_models(rows, expected):
    events = find_events(model_of(rows))
    assert set(events.polynomials) == set(expected)
    assert len(events) == len(expected)


def test_complements_kept_apart_are_two_events_of_one_row():
    events = find_events(model_of([[p, 1 - p]]), merge_complements=False)
    assert events.polynomials == (p, 1 - p)
    assert tried_by(events, 0) == [0, 1]
    assert events.success[:2].tolist() == [0, 1]


def test_the_largest_counts_are_added_exactly():
    model = model_of([[p, 1 - p], [p, 1 - p]])
    counts = np.array([2**53 - 2, 1, 1, 0] + [0] * (model.graph.n_transitions - 4))
    pooled = pool(find_events(model), TransitionCounts(model.graph, counts, "independent"))
    assert (pooled.successes[0], pooled.trials[0]) == (2**53 - 1, 2**53)


@st.composite
def walks(draw):
    """Return a random model on a small grid whose clocks may run forward, backward, stand still or not at all."""
    moves = draw(st.lists(st.tuples(*[st.integers(-1, 1)] * 2), min_size=2, max_size=4))
    modulus = draw(st.integers(1, 3))

    def step(state):
        x, y = state
        rows = {}
        for k in range(0, len(moves) - 1, 2):
            (a, b), (c, d) = moves[k : k + 2]
            f = p / (1 + (x + y) % modulus)
            rows[f"move {k}"] = [(f, moved(state, a, b)), (1 - f, moved(state, c, d))]
        return rows

    def moved(state, a, b):
        return state._replace(x=min(max(state.x + a, 0), 3), y=min(max(state.y + b, 0), 3))

    start = {"x": draw(st.integers(0, 3)), "y": draw(st.integers(0, 3))}
    return pl.explore(step, start, space=SPACE)


def can_try_twice(model, events, event):
    """Return by depth-first search whether some run tries the event, goes on, and tries it again."""
    graph = model.graph
    tries = [c for c in range(graph.n_choices) if event in tried_by(events, c)]
    states = {int(graph.state_of_choice()[c]) for c in tries}
    stack = [int(s) for c in tries for s in graph.successor[graph.first_transition[c] : graph.first_transition[c + 1]]]
    seen = set(stack)
    while stack:
        state = stack.pop()
        start, end = graph.first_transition[graph.first_choice[[state, state + 1]]]
        new = set(graph.successor[start:end].tolist()) - seen
        seen |= new
        stack += new
    return bool(states & seen)


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(walks())
def test_an_event_called_tried_once_is_on_no_run_twice(model):
    events = find_events(model)
    for event in np.flatnonzero(is_tried_once(model.graph, events)):
        assert not can_try_twice(model, events, event)


def test_a_clock_that_runs_forward_or_backward_is_found():
    for first, sign in ((0, 1), (5, -1)):

        def step(state, first=first, sign=sign):
            if abs(state.time - first) == 5:
                return {"stop": [(1, state)]}
            later = state._replace(time=state.time + sign)
            f = p / (1 + state.time)
            return {"go": [(f, later._replace(up=True)), (1 - f, later._replace(up=False))]}

        model = pl.explore(step, {"time": first, "up": False}, space=SPACE)
        events = find_events(model)
        assert is_tried_once(model.graph, events).all()
        assert len(events) == 5


def test_an_event_of_two_rounds_is_not_called_tried_once():
    def step(state):
        f = p if state.time < 2 else q
        return {"go": [(f, state._replace(time=state.time + 1, up=True)), (1 - f, state._replace(time=state.time + 1))]}

    def step_to_three(state):
        return step(state) if state.time < 3 else {"stop": [(1, state)]}

    model = pl.explore(step_to_three, {"time": 0, "up": False}, space=SPACE)
    events = find_events(model)
    assert dict(zip(events.polynomials, is_tried_once(model.graph, events).tolist(), strict=True)) == {
        p: False,
        q: True,
    }


def test_a_clock_that_one_transition_turns_back_is_no_clock():
    def step(state):
        if state.time == 9:
            return {"stop": [(1, state)], "again": [(1, state._replace(time=0))]}
        f = p / (1 + state.time)
        return {"go": [(f, state._replace(time=state.time + 1, up=True)), (1 - f, state._replace(time=state.time + 1))]}

    model = pl.explore(step, {"time": 0, "up": False}, space=SPACE)
    assert not is_tried_once(model.graph, find_events(model)).any()
