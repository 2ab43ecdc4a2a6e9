"""Bounds on expressions: how the error is spent, what follows from events, and what is promised for which data."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from row_models import listed

import plumdp as pl
from plumdp.confidence.binomial import beta_binomial, clopper_pearson
from plumdp.confidence.bounds import expression_bounds
from plumdp.confidence.observations import pool
from plumdp.data.counts import TransitionCounts
from plumdp.model.events import find_events

p, q = pl.parameters("p", "q")
SPACE = pl.ParameterSpace.box({"p": (0, 0.5), "q": (0, 0.25)})
ROWS = {
    "coin": [(p, 1), (1 - p, 2)],
    "die": [(q, 1), (q, 2), (1 - 2 * q, 3)],
    "both": [(p / 3, 1), (q, 2), (p / 3, 3), (1 - 2 * p / 3 - q, 4)],
    "third": [(Fraction(1, 3), 1), (Fraction(2, 3), 2)],
}
ANYTIME, FIXED = "finite-sample, anytime", "finite-sample, fixed N"
MIXED = "Clopper–Pearson for 1 of 2 events, which a run tries at most once; beta-binomial for the others"


def once():
    """Return a model whose events no run can try twice."""
    return listed({0: ROWS}, SPACE)


def again():
    """Return a model with one event that a run can try any number of times."""
    return listed({at: {"go": [(p, 1), (1 - p, 0)]} for at in (0, 1)}, SPACE)


def mixed():
    """Return a model that tries q once and then p forever."""

    def step(state):
        f, later = (p, state.time) if state.time else (q, 1)
        return {"go": [(f, state._replace(time=later, at=1)), (1 - f, state._replace(time=later, at=0))]}

    return pl.explore(step, {"time": 0, "at": 0}, space=SPACE)


def counts_of(model, sampling, seed=1, most=1000):
    counts = np.random.default_rng(seed).integers(0, most, model.graph.n_transitions)
    return TransitionCounts(model.graph, counts, sampling)


def expression(model, polynomial):
    return model.expressions.polynomials.index(polynomial)


@pytest.mark.parametrize(
    ("make", "sampling", "method", "guarantee"),
    [
        (again, "independent", "Clopper–Pearson", FIXED),
        (once, "trajectories", "Clopper–Pearson", FIXED),
        (again, "trajectories", "beta-binomial", ANYTIME),
        (mixed, "trajectories", MIXED, FIXED),
        (once, "adaptive", "beta-binomial", ANYTIME),
        (again, "adaptive", "beta-binomial", ANYTIME),
    ],
)
def test_the_intervals_fit_the_data_and_the_guarantee_fits_both(make, sampling, method, guarantee):
    model = make()
    bounds = expression_bounds(model, counts_of(model, sampling))
    assert (bounds.method, bounds.guarantee) == (method, guarantee)
    functions = {"Clopper–Pearson": clopper_pearson, "beta-binomial": beta_binomial}
    if method in functions:
        expected = functions[method](bounds.successes, bounds.trials, 0.001 / len(bounds.events))
        np.testing.assert_array_equal([bounds.event_lower, bounds.event_upper], expected)


def test_mixed_data_get_each_event_its_own_interval():
    model = mixed()
    bounds = expression_bounds(model, counts_of(model, "trajectories"), error=0.01)
    for event, method in ((q, clopper_pearson), (p, beta_binomial)):
        i = bounds.events.polynomials.index(event)
        lower, upper = method(bounds.successes[i], bounds.trials[i], 0.005)
        assert (bounds.event_lower[i], bounds.event_upper[i]) == (lower, upper)


def test_the_error_is_divided_among_all_events_tried_or_not():
    model = once()
    counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
    counts[:2] = 30, 70
    bounds = expression_bounds(model, TransitionCounts(model.graph, counts, "independent"), error=0.05)
    assert set(bounds.events.polynomials) == {p, 1 - 2 * q, q, 2 * p / 3, 1 - 2 * p / 3 - q}
    lower, upper = clopper_pearson(30, 100, 0.05 / 5)
    i = expression(model, p)
    assert (bounds.lower[i], bounds.upper[i]) == (lower, upper)


def test_as_in_the_paper_f_and_its_complement_have_an_interval_each():
    """With p and 1 - p kept apart the error is divided by two, and the two intervals mirror each other."""
    model = again()
    events = find_events(model, merge_complements=False)
    counts = counts_of(model, "independent")
    bounds = expression_bounds(model, counts, error=0.05, events=events)
    n, k = counts.total, int(counts.counts[model.expression == expression(model, p)].sum())
    np.testing.assert_array_equal([bounds.event_lower[0], bounds.event_upper[0]], clopper_pearson(k, n, 0.025))
    np.testing.assert_array_equal([bounds.event_lower[1], bounds.event_upper[1]], clopper_pearson(n - k, n, 0.025))


def test_without_data_constants_are_known_and_the_rest_are_probabilities():
    model = once()
    counts = TransitionCounts(model.graph, np.zeros(model.graph.n_transitions, dtype=np.int64), "adaptive")
    bounds = expression_bounds(model, counts)
    third, one = expression(model, Fraction(1, 3)), expression(model, 1)
    assert Fraction(bounds.lower[third]) < Fraction(1, 3) < Fraction(bounds.upper[third])
    assert bounds.upper[third] == np.nextafter(bounds.lower[third], 1)
    assert (bounds.lower[one], bounds.upper[one]) == (1, 1)
    assert (bounds.lower[expression(model, p)], bounds.upper[expression(model, p)]) == (0, 1)
    assert bounds.upper[expression(model, q)] == np.nextafter(0.5, 1)  # 2q is a probability
    assert not bounds.trials.any()


@given(st.integers(0, 2**32), st.sampled_from([3, 100, 10**9]), st.booleans())
def test_expression_bounds_follow_from_event_bounds_rounded_outward(seed, most, merge):
    """In exact arithmetic: the best of all that the links say, and not a millionth of a millionth wider."""
    model = once()
    events = find_events(model, merge_complements=merge)
    bounds = expression_bounds(model, counts_of(model, "independent", seed, most), error=0.1, events=events)
    for f, polynomial in enumerate(model.expressions.polynomials):
        if polynomial.is_constant:
            continue
        low, high = [Fraction(0)], [Fraction(1)]
        for event, lower, upper in zip(events.polynomials, bounds.event_lower, bounds.event_upper, strict=True):
            for m in (1, 2):
                if m * polynomial == event:
                    low, high = [*low, Fraction(lower) / m], [*high, Fraction(upper) / m]
                elif m * polynomial == 1 - event:
                    low, high = [*low, (1 - Fraction(upper)) / m], [*high, (1 - Fraction(lower)) / m]
        assert 0 <= max(low) - Fraction(bounds.lower[f]) <= Fraction(1, 10**12)
        assert 0 <= Fraction(bounds.upper[f]) - min(high) <= Fraction(1, 10**12)


def test_counts_of_events_are_taken_as_they_are():
    model = once()
    events = find_events(model)
    pooled = pool(events, counts_of(model, "independent"))
    from_events = expression_bounds(model, pooled)
    from_transitions = expression_bounds(model, counts_of(model, "independent"))
    np.testing.assert_array_equal(from_events.lower, from_transitions.lower)
    np.testing.assert_array_equal(from_events.upper, from_transitions.upper)
    assert from_events.guarantee == FIXED


def test_a_model_without_unknowns_needs_no_data():
    model = listed({at: {"go": [(0.25, 1), (0.75, at)]} for at in (0, 1)}, "")
    bounds = expression_bounds(model, counts_of(model, "adaptive"))
    assert bounds.lower.tolist() == bounds.upper.tolist() == [0.25, 0.75, 1]
    assert len(bounds.events) == 0
