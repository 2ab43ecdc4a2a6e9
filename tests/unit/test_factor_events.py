"""Factor events: sums of successors of lower degree than their parts, against exact sums of all subsets."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from row_models import row_model, rows_of, tried_by
from tiers import examples

import plumdp as pl
from plumdp.confidence.binomial import clopper_pearson
from plumdp.confidence.bounds import expression_bounds
from plumdp.confidence.observations import is_tried_once, pool
from plumdp.data.counts import TransitionCounts
from plumdp.model.events import find_events
from plumdp.model.expressions.polynomial import Polynomial

p, q, r = pl.parameters("p", "q", "r")
SPACE = pl.ParameterSpace.box({"p": (0, 0.25), "q": (0, 0.25), "r": (0, 0.25)})
model_of = partial(row_model, space=SPACE)


def product_row(*factors):
    """Return the outcomes of independent yes-no questions: all products of each factor or its complement."""
    row = [Polynomial(1)]
    for factor in factors:
        row = [f * side for f in row for side in (factor, 1 - factor)]
    return row


def happens_with(events, event):
    """Return the transitions with which an event happens."""
    own, further = np.flatnonzero(events.success == event), events.factors.transition[events.factors.event == event]
    return [*own.tolist(), *further.tolist()]


def lower_sums(row):
    """Return the sums of two or more successors, with two or more left, of lower degree than those of all parts."""
    found = set()
    for size in range(2, len(row) - 1) if len(row) <= 6 else ():
        for subset in combinations(row, size):
            parts = [sum(part, Polynomial(0)) for n in range(1, size) for part in combinations(subset, n)]
            total = sum(subset, Polynomial(0))
            if 0 < total.degree < min(part.degree for part in parts):
                found.add(total)
    return found


def up_to_complements(polynomials):
    return {frozenset((f, 1 - f)) for f in polynomials}


@st.composite
def rows(draw):
    """Draw products of factors, some of which are affine and some not, with successors merged, split and moved."""
    factor = st.sampled_from([p, q, r, p / 2, 2 * p, 1 - p, p + q, p * q, q - q * r, Polynomial(1) / 4])
    row = product_row(*draw(st.lists(factor, min_size=1, max_size=3)))
    for _ in range(draw(st.integers(0, 2))):
        i = draw(st.integers(0, len(row) - 1))
        action = draw(st.sampled_from(["merge", "split", "mix"]))
        if action == "merge" and len(row) > 2:
            row = [row[i] + row[i - 1], *(f for k, f in enumerate(row) if k not in (i, (i - 1) % len(row)))]
        elif action == "split":
            row = [*row[:i], row[i] / 2, row[i] / 2, *row[i + 1 :]]
        elif action == "mix":
            row = [*(f / 2 for f in row), Polynomial(1) / 2]
    return [f for f in draw(st.permutations(row)) if f]


models = st.lists(rows(), min_size=1, max_size=4).map(model_of)


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(models, st.booleans())
def test_a_visit_tries_each_event_once_and_with_exactly_its_probability(model, merge):
    events = find_events(model, merge_complements=merge, factors=True)
    for choice, row in rows_of(model):
        tried = tried_by(events, choice)
        assert len(set(tried)) == len(tried)
        for event in range(len(events)):
            happens = happens_with(events, event)
            assert len(set(happens)) == len(happens)
            inside = [f for t, f in row if t in happens]
            assert sum(inside, Polynomial(0)) == (events.polynomials[event] if event in tried else 0)


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(models)
def test_factors_are_the_sums_of_lower_degree_than_their_parts_and_nothing_else(model):
    """Against exact sums of all subsets; an event stands for its failure, too."""
    without, events = find_events(model), find_events(model, factors=True)
    for choice, row in rows_of(model):
        own = {without.polynomials[event] for event in tried_by(without, choice)}
        tried = {events.polynomials[event] for event in tried_by(events, choice)}
        expected = lower_sums([f for _, f in row])
        assert own <= tried
        assert up_to_complements(expected) <= up_to_complements(tried)
        assert up_to_complements(tried - own) <= up_to_complements(expected)


@settings(max_examples=examples(40))
@given(models)
def test_events_are_distinct_and_the_first_ones_are_those_without_factors(model):
    without, events = find_events(model), find_events(model, factors=True)
    assert events.polynomials[: len(without)] == without.polynomials
    assert len(set(events.polynomials)) == len(events)
    assert not any(f.is_constant or 1 - f in events.polynomials for f in events.polynomials[len(without) :])
    assert set(events.tried.tolist()) == set(range(len(events)))
    assert events.success.tolist() == without.success.tolist()


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(models, st.integers(0, 2**32))
def test_pooling_counts_each_visit_of_each_event_once(model, seed):
    """The slow way: one step at a time."""
    events = find_events(model, factors=True)
    counts = np.random.default_rng(seed).integers(0, 4, model.graph.n_transitions)
    trials, successes = [0] * len(events), [0] * len(events)
    for choice, row in rows_of(model):
        for t, _ in row:
            for _ in range(counts[t]):
                for event in tried_by(events, choice):
                    trials[event] += 1
                    successes[event] += t in happens_with(events, event)
    pooled = pool(events, TransitionCounts(model.graph, counts, "independent"))
    assert pooled.trials.tolist() == trials
    assert pooled.successes.tolist() == successes


def test_the_factors_of_a_product_are_pooled_over_rows_and_with_their_own_rows():
    """Rows p q, p (1 - q), … and p r, … and (p, 1 - p): p is tried by all three, however the successors are ordered."""
    model = model_of([product_row(p, q), product_row(1 - p, r)[::-1], [p, 1 - p]])
    events = find_events(model, factors=True)
    assert events.polynomials[-2:] == (q, 1 - r)
    counts = TransitionCounts(model.graph, np.append([1, 2, 3, 4, 50, 60, 70, 80, 900, 1000], [0] * 4), "independent")
    pooled = pool(events, counts)
    event = events.polynomials.index(p)
    assert pooled.trials[event] == 10 + 260 + 1900
    assert pooled.successes[event] == 1 + 2 + 50 + 60 + 900  # the second row is reversed: p r comes last


def test_affine_models_have_the_events_they_had():
    model = pl.case_study("aircraft:20,10").model
    without, events = find_events(model), find_events(model, factors=True)
    assert events.polynomials == without.polynomials
    assert len(events.factors.event) == 0
    for name in ("success", "first_trial", "tried"):
        np.testing.assert_array_equal(getattr(events, name), getattr(without, name))


def test_long_rows_have_no_factors():
    """Eight successors of three factors would have 254 subsets; two of them merged make seven."""
    eight = product_row(p, q, r)
    for row in (eight, [eight[0] + eight[7], *eight[1:7]]):
        model = model_of([row])
        assert len(find_events(model, factors=True)) == len(find_events(model))


def test_factors_of_factors_are_found_at_each_degree():
    """p q r and p q (1 - r) make p q, which with p (1 - q) makes p."""
    row = [p * q * r, p * q * (1 - r), p * (1 - q), (1 - p) * r * q, (1 - p) * (1 - r * q)]
    events = find_events(model_of([row]), factors=True)
    assert {p * q, p, r * q} <= set(events.polynomials) | {1 - f for f in events.polynomials}


@pytest.mark.parametrize("name", ["glider:11,9", "parallel:5"])
def test_in_case_studies_factors_are_affine_and_tried_by_all_their_rows(name):
    """Every row of four is a product, so that each of its visits tries two affine events."""
    model = pl.case_study(name).model
    without, events = find_events(model), find_events(model, factors=True)
    assert all(f.is_affine for f in events.polynomials[len(without) :])
    affine = np.array([f.is_affine for f in events.polynomials])
    for choice, row in rows_of(model):
        if len(row) == 4:
            assert affine[tried_by(events, choice)].sum() == 2


def test_the_error_is_divided_among_factors_too():
    model = model_of([product_row(p, q)])
    counts = TransitionCounts(model.graph, np.array([4, 6, 20, 70, 0, 0, 0, 0]), "independent")
    bounds = expression_bounds(model, counts, error=0.06)
    assert set(bounds.events.polynomials) == {*product_row(p, q), p, q}
    i = bounds.events.polynomials.index(p)
    assert (bounds.event_lower[i], bounds.event_upper[i]) == clopper_pearson(10, 100, 0.01)
    given = expression_bounds(model, counts, error=0.06, events=find_events(model))
    assert set(given.events.polynomials) == set(product_row(p, q))


def test_counts_of_events_mean_the_events_without_factors():
    model = model_of([product_row(p, q)])
    counts = TransitionCounts(model.graph, np.array([4, 6, 20, 70, 0, 0, 0, 0]), "independent")
    bounds = expression_bounds(model, pool(find_events(model), counts))
    assert len(bounds.events) == 4


def test_a_factor_of_two_rounds_is_not_called_tried_once():
    """The products of each round are tried once in a run, since q or r goes with it, but p in both."""

    def step(state):
        if state.time == 2:
            return {"stop": [(1, state)]}
        row = product_row(p, (q, r)[state.time])
        return {"go": [(f, state._replace(time=state.time + 1, at=k)) for k, f in enumerate(row)]}

    model = pl.explore(step, {"time": 0, "at": 0}, space=SPACE)
    events = find_events(model, factors=True)
    once = dict(zip(events.polynomials, is_tried_once(model.graph, events).tolist(), strict=True))
    assert once == {**dict.fromkeys([*product_row(p, q), *product_row(p, r), q, r], True), p: False}


def test_degrees_are_judged_with_coefficients_of_any_size():
    """The sum of p q / 10^9 and (1 - q) p / 10^9 is affine, beside successors of size one."""
    tiny = p / 10**9
    row = [tiny * q, tiny * (1 - q), (1 - tiny) * r, (1 - tiny) * (1 - r)]
    events = find_events(model_of([row]), factors=True)
    assert up_to_complements(events.polynomials) == up_to_complements([*row, tiny])
