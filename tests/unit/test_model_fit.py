"""The p-value of a model: never too small, whatever the model is called, and small for wrong models."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import exp, log

import numpy as np
import pytest
from cell_models import cell_model, counts_in_cells
from row_models import row_model
from shorthand import altered

import plumdp as pl
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Status
from plumdp.confidence.constants import find_fixed_numbers, strongest_evidence
from plumdp.confidence.likelihood import likelihood_set
from plumdp.data.counts import N_PILOTS
from plumdp.fit.drift import drift_tests
from plumdp.fit.model_fit import fit_model

p, q = pl.parameters("p", "q")
LINE, SQUARE = pl.ParameterSpace.unit("p"), pl.ParameterSpace.unit("p", "q")
COIN = [[p, 1 - p]]
TWO_CELLS = cell_model([COIN, COIN], LINE)
HALF = Fraction(1, 2)
KNOWN = cell_model([COIN, COIN], pl.ParameterSpace.box({"p": (HALF, HALF)}))
PILOT = [[[25, 25]], [[25, 25]]]


def drifted(n, difference=50):
    """Return what two coins have shown in n thousand throws each: 500 - and 500 + the difference of each thousand."""
    return [[[n * (500 - difference), n * (500 + difference)]], [[n * (500 + difference), n * (500 - difference)]]]


# Cases without data, parameters or inner points


@pytest.mark.parametrize("space", [LINE, SQUARE, pl.ParameterSpace.simplex("p", "q")])
@pytest.mark.parametrize("has_pilot", [True, False])
def test_without_data_the_p_value_is_one(space, has_pilot):
    model = row_model([[p, 1 - p], [HALF, HALF]], space)
    nothing = np.zeros(model.graph.n_transitions, dtype=np.int64)
    counts = pl.TransitionCounts(model.graph, nothing, "adaptive", nothing if has_pilot else None)
    for confidence_set in ("interval", "likelihood"):
        learned = pl.learn(model, counts, confidence_set=confidence_set)
        assert learned.fit.p_value == 1
        assert learned.conflict is None


def test_without_parameters_the_numbers_alone_decide():
    """The wealth of 500 heads of 550 throws, in exact fractions: predictions (k + 1/2)/(n + 1) over 1/2."""
    model = row_model([[HALF, HALF]], pl.ParameterSpace.unit())
    fixed = find_fixed_numbers(model)
    wealth = Fraction(1)
    for n in range(550):
        heads, is_head = n - n // 11, n % 11 != 10  # any order with 500 heads has the same wealth
        wealth *= Fraction(2 * (heads if is_head else n // 11) + 1, n + 1)
    for seen, small in (([275, 275], False), ([500, 50], True)):
        counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
        counts[:2] = seen
        counts = pl.TransitionCounts(model.graph, counts, "adaptive")
        evidence = strongest_evidence(fixed, counts, error=0.001 / 40)
        p_value = fit_model(model, counts, fixed=fixed).p_value
        assert p_value == pytest.approx(min(1, 0.001 * exp(-evidence)), rel=0.05)
        if small:
            assert p_value == pytest.approx(float(40 / wealth), rel=0.05)
            assert p_value >= float(40 / wealth)


def test_a_parameter_that_is_known_is_tested_like_any_number():
    """Its space has no inner points; 900 heads of 1,000 at p = 1/2 have a wealth of about 2^1000 B(900.5, 100.5)/π."""
    model = cell_model([COIN], pl.ParameterSpace.box({"p": (HALF, HALF)}))
    wrong = fit_model(model, counts_in_cells(model, [[[900, 100]]])).p_value
    right = fit_model(model, counts_in_cells(model, [[[500, 500]]])).p_value
    assert wrong < 1e-100
    assert right == 1


def test_rows_that_the_likelihood_leaves_out_make_no_p_value():
    model = row_model([[p * q, 1 - p * q]], SQUARE)
    counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
    counts[:2] = 30, 70
    assert fit_model(model, pl.TransitionCounts(model.graph, counts, "adaptive")).p_value == 1


def test_an_outcome_that_cannot_happen_at_the_border_is_no_contradiction():
    """All throws show heads: the best point is p = 1, the border of the space, where tails have no probability."""
    counts = counts_in_cells(TWO_CELLS, [[[5000, 0]], [[5000, 0]]], pilot=[[[250, 0]], [[250, 0]]])
    assert fit_model(TWO_CELLS, counts).p_value == 1


def test_no_p_value_is_zero():
    counts = counts_in_cells(TWO_CELLS, drifted(10**6, 400), pilot=PILOT)
    assert 0 < fit_model(TWO_CELLS, counts).p_value <= 1e-290


# The error is spent once


def share_of(counts, kind):
    """Return the share of the error that each test of a kind has, from what it says: evidence less ln wealth.

    The only point is p = 1/2. The wealth of the first cell's row, or of the class of both, is calculated in fractions.
    """
    fit = fit_model(KNOWN, counts, error=0.001)
    found = {test.subject: test.evidence for test in fit.tests if test.kind == kind}
    assert len(found) == (1 if kind == "class" else 2)
    seen = counts.counts[counts.counts > 0].tolist()
    heads, tails = (sum(seen[::2]), sum(seen[1::2])) if kind == "class" else seen[:2]
    return len(found) * exp(max(found.values()) - log(wealth_of(heads, tails)))


def wealth_of(heads, tails):
    """Return the product of predictions over 1/2, in fractions, heads first."""
    found = Fraction(1)
    for n in range(heads + tails):
        before = n if n < heads else n - heads
        found *= Fraction(2 * before + 1, n + 1)
    return found


def test_shares_of_all_ends_of_the_data_sum_to_the_share_of_tests():
    """Data that stop at will have no pilot at first, then one of 16, 64, … runs; the adversary picks the end.

    A class or a row is tested at the largest share that any end gives it, and drifts at the sum over the pilots.
    """
    main = [[[60, 60]], [[60, 60]]]
    none = counts_in_cells(KNOWN, main, pilot=[[[0, 0]], [[0, 0]]], end="power of four")
    some = counts_in_cells(KNOWN, main, pilot=[[[8, 8]], [[8, 8]]], end="power of four")
    largest = sum(max(share_of(counts, kind) for counts in (none, some)) for kind in ("class", "row"))
    assert largest + N_PILOTS * some.pilot.weight / 80 <= (1 + 1e-9) / 40
    planned = counts_in_cells(KNOWN, main)
    assert share_of(planned, "class") + share_of(planned, "row") == pytest.approx(1 / 40)


@pytest.mark.parametrize(("end", "weight"), [("planned", 1.0), ("power of four", 1 / 6)])
def test_drifts_have_half_of_the_share_of_tests_times_the_weight_of_the_pilot(monkeypatch, end, weight):
    asked = []

    def recorded(*arguments, error, **others):
        asked.append(error)
        return drift_tests(*arguments, error=error, **others)

    monkeypatch.setattr("plumdp.fit.model_fit.drift_tests", recorded)
    fit_model(TWO_CELLS, counts_in_cells(TWO_CELLS, drifted(1), pilot=PILOT, end=end), error=0.001)
    assert asked == [pytest.approx(weight * 0.001 / 80)]


def test_a_set_with_more_than_its_share_of_the_error_is_refused():
    counts = counts_in_cells(TWO_CELLS, drifted(1, 0), pilot=PILOT)
    with pytest.raises(DataError, match="share"):
        fit_model(TWO_CELLS, counts, error=0.001, found=likelihood_set(TWO_CELLS, counts, error=0.001))
    found = likelihood_set(TWO_CELLS, counts, error=0.001 * 37 / 40)
    assert fit_model(TWO_CELLS, counts, error=0.001, found=found).p_value == 1


@pytest.mark.parametrize("error", [0.3, 0.01, 1e-6])
def test_the_p_value_hardly_depends_on_the_error_that_bets_are_made_for(error):
    """It is a p-value for any error; half as large or a quarter in the exponent, not of another order."""
    counts = counts_in_cells(TWO_CELLS, drifted(5), pilot=PILOT)
    usual, other = (log(fit_model(TWO_CELLS, counts, error=e).p_value) for e in (0.001, error))
    assert 0.5 < other / usual < 2


# The same model in other words


def p_of(rows, space, seen, pilot):
    model = cell_model(rows, space)
    return fit_model(model, counts_in_cells(model, seen, pilot=pilot)).p_value


SEEN = [[[430, 570], [200, 230, 570]], [[600, 400], [570, 330, 100]]]
AHEAD = [[[20, 30], [10, 12, 28]], [[30, 20], [25, 18, 7]]]


def two_rows(a, b):
    return [[[a, 1 - a], [a * b, a * (1 - b), 1 - a]], [[a, 1 - a], [a * b, a * (1 - b), 1 - a]]]


def test_names_of_parameters_do_not_matter():
    r, s = pl.parameters("z", "a")
    one = p_of(two_rows(p, q), SQUARE, SEEN, AHEAD)
    other = p_of(two_rows(r, s), pl.ParameterSpace.unit("z", "a"), SEEN, AHEAD)
    turned = p_of(two_rows(r, s), pl.ParameterSpace.unit("a", "z"), SEEN, AHEAD)
    assert one < 1e-6
    assert log(other) == pytest.approx(log(one), rel=1e-6)
    assert log(turned) == pytest.approx(log(one), rel=1e-6)


def test_the_order_of_transitions_does_not_matter():
    def turn(nested):
        return [[row[::-1] for row in rows[::-1]] for rows in nested]

    one = p_of(two_rows(p, q), SQUARE, SEEN, AHEAD)
    other = p_of(turn(two_rows(p, q)), SQUARE, turn(SEEN), turn(AHEAD))
    assert log(other) == pytest.approx(log(one), rel=1e-6)


def test_a_parameter_that_is_written_as_a_sum_is_the_same_parameter():
    """a + b with both in [0, 1/2] has the values of p in [0, 1]; only the prior of the space is another one."""
    a, b = pl.parameters("a", "b")
    one = p_of([COIN, COIN], LINE, drifted(5), PILOT)
    other = p_of([[[a + b, 1 - a - b]]] * 2, pl.ParameterSpace.box({"a": (0, HALF), "b": (0, HALF)}), drifted(5), PILOT)
    assert one < 1e-6
    assert log(other) == pytest.approx(log(one), rel=0.02)


def test_doubt_is_the_same_whichever_way_the_drift_goes():
    up, down = drifted(5), drifted(5)[::-1]
    one, other = (fit_model(TWO_CELLS, counts_in_cells(TWO_CELLS, seen, pilot=PILOT)).p_value for seen in (up, down))
    assert log(other) == pytest.approx(log(one), rel=1e-3)


# Wrong models


@pytest.mark.parametrize("pilot", [PILOT, None], ids=["pilot", "no pilot"])
def test_more_data_of_a_wrong_model_make_the_p_value_fall(pilot):
    found = [
        fit_model(TWO_CELLS, counts_in_cells(TWO_CELLS, drifted(n), pilot=pilot)).p_value for n in (1, 3, 10, 30, 100)
    ]
    assert all(b < a or a == b == 1 for a, b in pairwise(found))
    assert found[-1] < 1e-100


def test_more_data_of_a_right_model_leave_the_p_value_at_one():
    for n in (1, 10, 1000, 10**5):
        for pilot in (PILOT, None):
            assert fit_model(TWO_CELLS, counts_in_cells(TWO_CELLS, drifted(n, 0), pilot=pilot)).p_value == 1


def test_the_strongest_test_names_the_drift():
    counts = counts_in_cells(TWO_CELLS, drifted(5), pilot=PILOT)
    strongest = fit_model(TWO_CELLS, counts).tests[0]
    assert (strongest.kind, strongest.subject, strongest.parameter, strongest.sign) == ("drift", "h", "p", 1)
    assert strongest.evidence > log(1000)


def test_numbers_that_the_model_fixes_have_half_of_the_share_of_the_fallback():
    """Without parameters and with one number, the evidence is ln wealth + ln(2.5 % of the error) - ln(error)."""
    model = row_model([[HALF, HALF]], pl.ParameterSpace.unit())
    counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
    counts[:2] = 40, 20
    fit = fit_model(model, pl.TransitionCounts(model.graph, counts, "adaptive"), fixed=find_fixed_numbers(model))
    (test,) = fit.tests
    assert test.evidence == pytest.approx(log(wealth_of(40, 20)) + log(1 / 40), abs=1e-9)


def test_multipliers_of_a_contradiction_sum_to_one_and_name_what_is_needed():
    counts = counts_in_cells(TWO_CELLS, drifted(5), pilot=PILOT)
    tests = fit_model(TWO_CELLS, counts).tests
    assert sum(test.multiplier for test in tests) == pytest.approx(1, abs=1e-3)
    assert all(test.multiplier >= 0 for test in tests)
    evidence = [test.evidence for test in tests]
    assert evidence == sorted(evidence, reverse=True)
    assert len(tests) <= 30


# What certificates say


def certificate_of(seen, confidence_set, pilot=PILOT):
    counts = counts_in_cells(TWO_CELLS, seen, pilot=pilot)
    learned = pl.learn(TWO_CELLS, counts, confidence_set=confidence_set)
    return learned, pl.conclude(learned, "Pmax=? [ F out=1 ]")


@pytest.mark.parametrize("confidence_set", ["interval", "likelihood"])
def test_a_contradicted_model_has_bounds_on_the_graph_alone(confidence_set):
    learned, certificate = certificate_of(drifted(5), confidence_set)
    assert certificate.status == Status.REJECTED
    assert certificate.beside.p_value <= (1 if confidence_set == "likelihood" else 1 / 40) * learned.error
    assert certificate.how.relaxation == "untied"
    assert "no parameters explain the data" in str(certificate)
    assert not any("expressions of the model are right" in text for text in certificate.rests_on.assumptions)


def test_what_the_certificate_says_of_the_model_is_what_was_decided():
    """Intervals have spent their share: a p-value between 2.5 % of the error and the error does not reject."""
    learned, certificate = certificate_of(drifted(1, 0), "interval")
    between = altered(certificate, p_value=learned.error / 2)
    assert certificate.status == Status.CERTIFIED
    assert "no parameters explain" not in str(between)
    assert "some doubt" in str(between)
    decided = altered(certificate, p_value=1.0, status=Status.REJECTED)
    assert "no sign that the model is wrong" not in str(decided)


@pytest.mark.parametrize(
    ("confidence_set", "share", "is_contradicted"),
    [("interval", 1 / 80, True), ("interval", 0.5, False), ("likelihood", 0.5, True), ("likelihood", 1.5, False)],
)
def test_sets_that_are_no_tests_leave_the_tests_their_own_share(monkeypatch, confidence_set, share, is_contradicted):
    """Intervals have spent 92.5 % of the error: a p-value of half the error contradicts likelihood sets only."""

    def fitted(*arguments, error, **others):
        return replace(fit_model(*arguments, error=error, **others), p_value=share * error)

    monkeypatch.setattr("plumdp.learning.model_tests.fit_model", fitted)
    counts = counts_in_cells(TWO_CELLS, drifted(1, 0), pilot=PILOT)
    assert (pl.learn(TWO_CELLS, counts, confidence_set=confidence_set).conflict is not None) == is_contradicted


def test_a_conflict_of_likelihood_sets_has_a_p_value_of_at_most_the_error():
    """Rows of factors have intervals and a likelihood only: 100, 600 and 100 are not q², 2 q (1 - q), (1 - q)²."""
    model = cell_model([[[q**2, 2 * q * (1 - q), (1 - q) ** 2]]], pl.ParameterSpace.unit("q"))
    learned = pl.learn(model, counts_in_cells(model, [[[100, 600, 100]]]), confidence_set="likelihood")
    assert learned.conflict is not None
    assert learned.fit.p_value <= learned.error
