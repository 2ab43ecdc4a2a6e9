"""Residuals against sums in exact fractions, and gains of explanations against likelihoods that are maximised again."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize
from support.drawn_counts import chances, draw, moved, value_of_choice, walk

import plumdp as pl
from plumdp.confidence.likelihood import best_point
from plumdp.fit.explanations import drift_table, explain_by_contrasts, explain_by_early_data, explain_by_rows
from plumdp.fit.residuals import (
    cell_residuals,
    class_residuals,
    find_changes,
    fitted_rows,
    observed_contrasts,
    row_residuals,
)

POINT = {"p": Fraction(2, 5), "q": Fraction(3, 10)}
MODEL = walk()
COUNTS = draw(MODEL, chances(MODEL, POINT), 40, 1)
ROWS = fitted_rows(MODEL, COUNTS, np.array([0.4, 0.3]))


def slope(polynomial, name):
    """Return the derivative of an affine polynomial by a parameter: a difference, exact."""
    return polynomial.evaluate(POINT | {name: POINT[name] + 1}) - polynomial.evaluate(POINT)


def exact_information():
    """Return Σ visits · slope slopeᵀ / probability over all transitions, as fractions."""
    total = [[Fraction(0)] * 2 for _ in range(2)]
    for t in range(MODEL.graph.n_transitions):
        f = MODEL.expressions.polynomials[MODEL.expression[t]]
        slopes = [slope(f, name) for name in ("p", "q")]
        weight = int(COUNTS.visits[MODEL.graph.choice_of(t)]) / f.evaluate(POINT)
        for i in range(2):
            for j in range(2):
                total[i][j] += weight * slopes[i] * slopes[j]
    return total


def left_of(variance, covariance):
    """Return a variance less covariance · information⁻¹ covariance, as fractions."""
    (a, b), (c, d) = exact_information()
    x, y = covariance
    return variance - (d * x * x - (b + c) * x * y + a * y * y) / (a * d - b * c)


def exact_parts(transitions):
    """Return observed, expected, and covariance with the score of a set of transitions."""
    observed, expected, covariance = 0, Fraction(0), [Fraction(0), Fraction(0)]
    for t in transitions:
        f, n = MODEL.expressions.polynomials[MODEL.expression[t]], int(COUNTS.visits[MODEL.graph.choice_of(t)])
        observed += int(COUNTS.counts[t])
        expected += n * f.evaluate(POINT)
        covariance = [c + n * slope(f, name) for c, name in zip(covariance, ("p", "q"), strict=True)]
    return observed, expected, covariance


def assert_residual(residuals, i, observed, expected, observations, variance):
    assert residuals.observed[i] == observed
    assert residuals.expected[i] == pytest.approx(float(expected), rel=1e-12)
    assert residuals.observations[i] == observations
    assert residuals.deviation[i] ** 2 == pytest.approx(float(variance), rel=1e-9)
    difference = (observed - expected) / observations
    assert residuals.difference[i] == pytest.approx(float(difference), abs=1e-12)
    assert residuals.evidence[i] == pytest.approx(float((observed - expected) ** 2 / variance) / 2, rel=1e-8)


@pytest.mark.slow
def test_residuals_of_transitions_are_those_of_exact_fractions():
    residuals = row_residuals(ROWS)
    for i, t in enumerate(ROWS.transition.tolist()):
        n, f = 40, MODEL.expressions.polynomials[MODEL.expression[t]].evaluate(POINT)
        observed, expected, covariance = exact_parts([t])
        assert_residual(residuals, i, observed, expected, n, left_of(n * f * (1 - f), covariance))


def test_residuals_of_classes_count_all_rows_with_the_same_expressions_together():
    graph, members = MODEL.graph, defaultdict(list)
    for t in range(graph.n_transitions):
        c = graph.choice_of(t)
        key = tuple(MODEL.expression[graph.first_transition[c] : graph.first_transition[c + 1]].tolist())
        members[key, int(MODEL.expression[t])].append(t)
    found = class_residuals(ROWS)
    seen = set()
    for i in range(len(found.expression)):
        c = int(found.example[i])
        row = tuple(MODEL.expression[graph.first_transition[c] : graph.first_transition[c + 1]].tolist())
        own = members[row, int(found.expression[i])]
        seen.add((row, int(found.expression[i])))
        n, f = 40 * len(own), MODEL.expressions.polynomials[found.expression[i]].evaluate(POINT)
        observed, expected, covariance = exact_parts(own)
        assert_residual(found.residuals, i, observed, expected, n, left_of(n * f * (1 - f), covariance))
        assert found.n_rows[i] == len(own)
    assert seen == set(members)


def test_residuals_of_cells_count_a_change_wherever_it_may_happen_and_may_not():
    """At the right end "x goes up" cannot happen, and rows there are not observations of it."""
    graph = MODEL.graph
    change = next(change for change in find_changes(ROWS) if change.text == "x goes up")
    x = graph.states["x"]
    cell = x[graph.state_of_choice()][ROWS.choice].astype(np.int32)
    residuals = cell_residuals(ROWS, change, cell, 7)
    for value in range(7):
        done, n, variance = [], 0, Fraction(0)
        for c in range(graph.n_choices):
            s = graph.state_of(c)
            own = range(graph.first_transition[c], graph.first_transition[c + 1])
            up = [t for t in own if x[graph.successor[t]] > x[s]]
            if x[s] == value and 0 < len(up) < len(own):
                chance = exact_parts(up)[1] / 40
                done, n, variance = done + up, n + 40, variance + 40 * chance * (1 - chance)
        observed, expected, covariance = exact_parts(done)
        if n:
            assert_residual(residuals, value, observed, expected, n, left_of(variance, covariance))
        else:
            assert residuals.observations[value] == residuals.difference[value] == residuals.evidence[value] == 0


def test_slopes_of_products_are_difference_quotients():
    a, b = pl.parameters("a", "b")
    table = pl.explore(
        lambda s: {"go": [(a * b * b, s._replace(x=1)), (1 - a * b * b, s._replace(x=2))]},
        {"x": 0},
        space=pl.ParameterSpace.unit("a", "b"),
    ).expressions
    point, step = np.array([0.3, 0.7]), 1e-6
    _, gradient = table.value_and_gradient(point)
    for i in range(2):
        ends = [table.evaluate((point + side * step * np.eye(2)[i])[None, :])[:, 0] for side in (1, -1)]
        assert gradient[:, i] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-8)


def test_changes_that_tell_the_same_are_there_once():
    """A step goes right or left, and the mood flips to the right: but at the ends, x stays."""
    texts = [change.text for change in find_changes(ROWS)]
    assert texts[:3] == ["x goes up", "x goes down", "x changes"]
    assert len(texts) == len(set(texts))
    assert "mood becomes true" in texts


def test_a_parameter_is_described_by_what_it_lets_a_variable_do():
    """Heads of the first coin lead to one of ten words, those of the second always to the same one, and those of the
    third to one word from here and to another from there."""
    a, b, c = pl.parameters("a", "b", "c")
    words = [f"word {k}" for k in range(10)]

    def step(s):
        if s.at == "start":
            return {"go": [(a / 10, s._replace(at=word)) for word in words] + [(1 - a, s._replace(at="tails"))]}
        if s.at in words:
            return {"go": [(b, s._replace(at="won")), (1 - b, s._replace(at="lost"))]}
        if s.at in ("won", "lost"):
            return {"go": [(c, s._replace(at="lost" if s.at == "won" else "start")), (1 - c, s._replace(at="tails"))]}
        return {"go": [(1, s)]}

    model = pl.explore(step, {"at": "start"}, space=pl.ParameterSpace.unit("a", "b", "c"))
    counts = pl.simulate(model, {"a": 0.5, "b": 0.5, "c": 0.5}, 200, rng=1, max_steps=8)
    texts = {change.parameter: change.text for change in find_changes(fitted_rows(model, counts, np.full(3, 0.5)))}
    assert texts["b"] == "at becomes won (b)"
    assert texts["a"] == "an outcome happens that a larger a makes more likely"
    assert texts["c"] == "an outcome happens that a larger c makes more likely"


def log_likelihood(model, counts, weights, point):
    values = model.expressions.evaluate(np.asarray(point)[None, :])[:, 0][model.expression]
    return float(np.sum((counts * weights)[counts > 0] * np.log(values[counts > 0])))


def most_likely(model, counts, weights):
    """Return the largest log-likelihood of some transitions, by a general optimiser."""
    found = minimize(
        lambda v: -log_likelihood(model, counts, weights, v),
        [0.4, 0.3],
        method="Nelder-Mead",
        bounds=[(0.01, 0.99)] * 2,
        options={"xatol": 1e-9, "fatol": 1e-9, "maxiter": 4000},
    )
    return -found.fun


def explained(counts):
    rows = fitted_rows(MODEL, counts, best_point(MODEL, counts))
    table = drift_table(rows, [change for change in find_changes(rows) if not change.parameter])
    return rows, explain_by_contrasts(table, observed_contrasts(rows)), table


def wrong(shift):
    return moved(MODEL, chances(MODEL, POINT), shift)


def is_open():
    return np.isin(MODEL.graph.action, [MODEL.graph.action_names.index(name) for name in ("fast", "slow", "odd")])


def test_what_a_variable_gains_is_about_what_two_estimates_gain_over_one():
    """Parameters of their own from x = 4 on: the likelihoods of the two parts are maximised by another method."""
    shift = np.where(is_open() & (value_of_choice(MODEL, "x") >= 4), 0.05, 0.0)
    counts = draw(MODEL, wrong(shift), 4000, 2)
    _, found, _ = explained(counts)
    best = max(found, key=lambda explanation: explanation.evidence)
    assert best.contrast.name == "x"
    is_upper = (value_of_choice(MODEL, "x") >= 4)[MODEL.graph.choice_of_transition()]
    parts = [most_likely(MODEL, counts.counts, own) for own in (is_upper, ~is_upper, np.ones(len(is_upper)))]
    assert best.gain == pytest.approx(parts[0] + parts[1] - parts[2], rel=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_a_variable_that_is_merely_correlated_gains_less_than_the_guilty_one(seed):
    shift = np.where(is_open(), 0.04 * np.tanh(value_of_choice(MODEL, "x") - 3), 0.0)
    _, found, _ = explained(draw(MODEL, wrong(shift), 3000, seed))
    gain = {explanation.contrast.name: explanation.gain for explanation in found}
    assert gain["x"] > 3 * gain["mood"]


def test_what_a_row_gains_is_what_it_gains_if_all_others_estimate_the_parameters_without_it():
    shift = np.zeros(MODEL.graph.n_choices)
    guilty = int(np.flatnonzero(is_open())[3])
    shift[guilty] = 0.1
    counts = draw(MODEL, wrong(shift), 2000, 3)
    rows = fitted_rows(MODEL, counts, best_point(MODEL, counts))
    best = max(explain_by_rows(rows), key=lambda explanation: explanation.evidence)
    assert (best.kind, best.choice) == ("row", guilty)
    is_own = MODEL.graph.choice_of_transition() == guilty
    own = counts.counts[is_own]
    others, everything = (most_likely(MODEL, counts.counts, mask) for mask in (~is_own, np.ones(len(is_own))))
    assert best.gain == pytest.approx(float(own @ np.log(own / own.sum())) + others - everything, rel=0.02)


def test_early_data_gain_what_two_estimates_gain_over_one():
    early = chances(MODEL, {"p": "0.5", "q": "0.3"})
    counts = draw(MODEL, chances(MODEL, POINT), 4000, 4, early=early)
    _, _, table = explained(counts)
    (found,) = explain_by_early_data(table)
    ones = np.ones(MODEL.graph.n_transitions)
    parts = [most_likely(MODEL, own, ones) for own in (counts.pilot.counts, counts.main, counts.counts)]
    assert found.gain == pytest.approx(parts[0] + parts[1] - parts[2], rel=0.1)


def test_without_a_pilot_there_are_no_early_data():
    _, _, table = explained(draw(MODEL, chances(MODEL, POINT), 100, 5, pilot=0))
    assert explain_by_early_data(table) == []


@pytest.mark.slow
def test_a_right_model_leaves_little_to_explain():
    """The evidence is the gain less what chance may do: of 20 data sets, few have any."""
    most = []
    for seed in range(20):
        rows, found, table = explained(draw(MODEL, chances(MODEL, POINT), 1000, 100 + seed))
        each = [*found, *explain_by_rows(rows), *explain_by_early_data(table)]
        most.append(max(explanation.evidence for explanation in each))
    assert np.median(most) < 2
    assert max(most) < 8
