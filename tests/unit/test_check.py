"""The checks of a model: each finds what it is for, names the place, and stays silent otherwise."""

from fractions import Fraction

import numpy as np
import pytest
from row_models import listed

import plumdp as pl

p, q = pl.parameters("p", "q")


def model_of(rows, space=None, **options):
    """Return the model of one state 0 with the given actions to the states 1, 2, …, which are absorbing."""
    rows = {name: [(f, i + 1) for i, f in enumerate(row)] for name, row in rows.items()}
    return listed({0: rows}, space or "p q", at="x", **options)


def messages(model):
    return [(issue.severity, issue.kind, issue.message) for issue in pl.model.validate(model)]


def test_a_clean_model_has_no_issues():
    assert messages(model_of({"go": [p * q, p * (1 - q), 1 - p]})) == []


def test_an_affine_expression_that_leaves_the_unit_interval_is_noted_with_the_point():
    expected = "expression p + 1/2 is 1.5 at p=1 (1 more expression leaves [0, 1] too)"
    remedy = ": the space is cut to where every expression is a probability"
    assert messages(model_of({"go": [p + 0.5, 0.5 - p]})) == [("note", "range", expected + remedy)]


def test_a_polynomial_that_leaves_the_unit_interval_is_a_warning_with_the_point():
    ((severity, kind, message),) = messages(model_of({"go": [2 * p * q, 1 - 2 * p * q]}))
    assert (severity, kind) == ("warning", "range")
    assert message.startswith("expression 2*p*q is 2 at p=1, q=1 (1 more expression leaves [0, 1] too): declare")


def test_a_polynomial_that_leaves_the_unit_interval_only_inside_is_found():
    """5*p*(1-p) is 0 at both ends of [0, 1] and 5/4 in the middle."""
    ((_, _, message),) = messages(model_of({"go": [5 * p * (1 - p), 1 - 5 * p * (1 - p)]}))
    value = Fraction(message.split(" is ")[1].split(" at ")[0])
    assert 1 < value <= Fraction(5, 4)


def test_a_polynomial_that_stays_within_a_cut_space_is_not_reported():
    """2*p*q is at most 1/2 where p + q <= 1."""
    space = pl.ParameterSpace.simplex("p", "q")
    assert messages(model_of({"go": [2 * p * q, 1 - 2 * p * q]}, space)) == []


def test_equal_expressions_within_a_row_are_noted():
    ((severity, kind, message),) = messages(model_of({"go": [p / 2, p / 2, 1 - p]}))
    assert (severity, kind) == ("note", "equal expressions")
    assert message == "state (x=0), action 'go': several successors have the probability 1/2*p"


def test_equal_constants_within_a_row_are_not_worth_a_note():
    assert messages(model_of({"go": [0.5, 0.5]})) == []


def test_a_label_no_state_has_is_a_warning():
    model = model_of({"go": [1]}, labels={"far": lambda s: s.x == 9, "near": lambda s: s.x == 1})
    assert messages(model) == [("warning", "unreachable label", 'label "far": no reachable state has it')]


def test_two_choices_under_one_name_are_a_warning():
    def step(s):
        yield "go", True, [(1, s._replace(x=1))]
        yield "go", s.x == 0, [(1, s)]

    model = pl.model.explore_batch(step, {"x": 0}, space=pl.ParameterSpace.unit("p"))
    text = "state (x=0), action 'go' stands for several choices; logs cannot tell them apart (2 choices are concerned)"
    assert messages(model) == [("warning", "ambiguous action", text)]


def test_all_errors_are_raised_at_once_and_named_one_by_one():
    def step(s):
        if s.x == 2:
            return {}
        return {"a": [(p, s._replace(x=1))], "b": [(0.4, s._replace(x=2)), (p, s)]}

    with pytest.raises(pl.ModelError) as caught:
        pl.explore(step, {"x": 0}, space=pl.ParameterSpace.unit("p"))
    assert str(caught.value).splitlines() == [
        "state (x=2): no choice is possible; give it an action that stays with probability 1",
        "state (x=0), action 'a': probabilities (p) sum to p, not 1 (and 1 more choices with the same expressions)",
        "state (x=0), action 'b': probabilities (2/5) + (p) sum to p + 2/5, not 1 "
        "(and 1 more choices with the same expressions)",
    ]


def test_rows_are_classed_by_their_sequence_of_expressions():

    model = pl.case_study("aircraft:20,10").model
    row_class, representative = model.rows.number, model.rows.representative
    first = model.graph.first_transition
    rows = [tuple(model.expression[first[c] : first[c + 1]].tolist()) for c in range(model.graph.n_choices)]
    assert len(set(rows)) == len(representative)
    assert len(set(zip(rows, row_class.tolist(), strict=True))) == len(representative)
    assert (row_class[representative] == np.arange(len(representative))).all()


@pytest.mark.parametrize("size", [1, 2**40, 2**61, 10**40], ids=["small", "large", "too large to add up", "huge"])
def test_sums_of_rows_are_exact_at_any_size_of_the_numbers(size):
    """A row that is off by 1 in 7 times the size is refused; the exact one is not."""
    part = Fraction(1, 7 * size)
    model_of({"go": [p * part, q * part, 1 - (p + q) * part]})
    for off in (part, -part, p * part):
        with pytest.raises(pl.ModelError, match=r"sum to .*, not 1"):
            model_of({"go": [p * part, q * part, 1 - (p + q) * part + off]})
