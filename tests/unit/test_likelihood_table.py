"""The likelihood as a table: what counts for what, against the product of the row's own probabilities."""

from fractions import Fraction
from itertools import product
from math import log, prod

import numpy as np
import pytest
from random_products import random_product_problem
from row_models import row_model

import plumdp as pl
from plumdp.confidence.likelihood_table import likelihood_table

a, b, c, d = pl.parameters("a", "b", "c", "d")
UNIT = pl.ParameterSpace.unit("a", "b", "c", "d")

STUDIES = ("rover:10,10", "parallel:5", "glider:11,9", "engagement:20", "aircraft:20,10", "betting:25")


def log_likelihood(table, seen, values):
    """Return Σ seen ln f at an exact point."""
    at = {name: Fraction(x) for name, x in zip(table.names, values, strict=True)}
    return sum(k * log(f.evaluate(at)) for k, f in zip(seen, table.outcomes, strict=True) if k)


@pytest.mark.parametrize(
    "rows",
    [
        [[a * b, a * (1 - b), 1 - a], [a, 1 - a]],
        [[a * b * c, a * b * (1 - c), a * (1 - b), (1 - a) * d, (1 - a) * (1 - d)]],
        [[a**2, 2 * a * (1 - a), (1 - a) ** 2], [a * (1 - b**2), a * b**2, 1 - a]],
        [[a / 2, a / 2, (1 - a) / 3, 2 * (1 - a) / 3], [a * b / 2, a * (1 - b) / 2, (1 - a) / 2, Fraction(1, 2)]],
    ],
    ids=["coins", "tree", "factors", "repeated and known"],
)
def test_the_table_has_the_likelihood_of_the_rows_up_to_a_constant(rows):
    """For every sequence of two outcomes of each row, the likelihood ratio of two points is the product's own."""
    model = row_model(rows, UNIT)
    table, n = likelihood_table(model), sum(map(len, rows))
    one, other = np.array([0.3, 0.2, 0.6, 0.7]), np.array([0.55, 0.8, 0.1, 0.45])
    expressions = [model.expressions.polynomials[f] for f in model.expression[:n]]
    for chosen in product(range(n), repeat=2):
        counts = np.bincount(chosen, minlength=model.graph.n_transitions)
        seen = table.pool(counts)
        points = [dict(zip(UNIT.names, map(Fraction, v), strict=True)) for v in (one, other)]
        exact = prod(expressions[t].evaluate(points[0]) / expressions[t].evaluate(points[1]) for t in chosen)
        found = log_likelihood(table, seen, one) - log_likelihood(table, seen, other)
        assert found == pytest.approx(log(exact), abs=1e-12)


def test_classes_are_laws_and_are_pooled_over_rows():
    model = row_model([[a * b, a * (1 - b), 1 - a], [(1 - b) * c, (1 - b) * (1 - c), b], [a / 2, a / 2, 1 - a]], UNIT)
    table = likelihood_table(model)
    assert table.is_class.all()
    assert sorted(sorted(map(str, law)) for law in laws(table)) == [["-a + 1", "a"], ["-b + 1", "b"], ["-c + 1", "c"]]
    counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
    counts[:9] = [5, 7, 11, 13, 17, 19, 23, 29, 31]
    seen = dict(zip(map(str, table.outcomes), table.pool(counts).tolist(), strict=True))
    assert seen["a"] == 5 + 7 + 23 + 29
    assert seen["-a + 1"] == 11 + 31
    assert seen["b"] == 5 + 19
    assert seen["-b + 1"] == 7 + 13 + 17


def laws(table):
    return [[f for f, g in zip(table.outcomes, table.group, strict=True) if g == r] for r in range(len(table.is_class))]


def test_rows_that_are_neither_are_left_out_and_listed():
    rows = [[a * b, 1 - a * b], [a**2, 1 - a**2], [c, 1 - c]]
    table = likelihood_table(row_model(rows, UNIT))
    assert {frozenset(row) for row in table.left_out} == {frozenset(rows[0])}
    assert table.is_class.tolist().count(False) == 1  # 1 - a² is (1 - a)(1 + a), whose factors are positive
    counts = np.ones(len(table.tied), dtype=np.int64)
    assert table.pool(counts).sum() == 2 + 2 + 2


def test_factors_that_change_sign_in_the_space_are_left_out():
    """(a - 1/2)² is at least zero, but its factor is not: for points below 1/2 its logarithm would not exist."""
    f = (a - Fraction(1, 2)) ** 2
    table = likelihood_table(row_model([[f, 1 - f], [b, 1 - b]], UNIT))
    assert len(table.left_out) == 1
    above = pl.ParameterSpace.box({"a": ("1/2", 1), "b": (0, 1)})
    assert not likelihood_table(row_model([[f, 1 - f], [b, 1 - b]], above)).left_out


def test_a_visit_is_seen_even_if_its_outcome_is_known():
    table = likelihood_table(row_model([[a**2 / 2, (1 - a**2) / 2, Fraction(1, 2)]], UNIT))
    for transition in range(3):
        counts = np.zeros(len(table.tied), dtype=np.int64)
        counts[transition] = 1
        assert table.visits(table.pool(counts)).max() > 0


def test_rover_has_rank_one_and_a_split_parameter_changes_nothing():
    assert likelihood_table(pl.case_study("rover:10,10").model).basis.shape == (4, 1)
    one = likelihood_table(row_model([[a, b, 1 - a - b], [a * c, a * (1 - c), 1 - a]], UNIT))
    rows = [[a + d, b, 1 - a - b - d], [(a + d) * c, (a + d) * (1 - c), 1 - a - d]]
    two = likelihood_table(row_model(rows, UNIT))
    assert one.basis.shape == two.basis.shape == (4, 3)
    assert np.abs(two.basis.T @ two.basis - np.eye(3)).max() < 1e-14
    assert np.abs(two.coefficients - two.coefficients @ two.basis @ two.basis.T).max() < 1e-14


def test_ranks_that_floats_cannot_tell_are_exact():
    """1e-17 a + b and b differ by less than a float can show, and yet have rank two."""
    tiny = Fraction(1, 10**17)
    table = likelihood_table(row_model([[tiny * a + b / 2, 1 - tiny * a - b / 2], [b / 2, 1 - b / 2]], UNIT))
    assert table.basis.shape == (4, 2)
    assert len(set(table.direction.tolist())) == 2


@pytest.mark.parametrize("name", STUDIES)
def test_all_rows_of_the_case_studies_are_part_of_the_likelihood(name):
    study = pl.case_study(name)
    table = likelihood_table(study.model)
    assert not table.left_out
    assert table.is_class.all()
    sums = [sum(law, 0 * law[0]) for law in laws(table)]
    assert all(total == 1 for total in sums)
    values, error = table.values(table.middle)
    assert (values - error > 0).all()
    exact = [
        float(f.evaluate(dict(zip(table.names, map(Fraction, table.middle), strict=True)))) for f in table.outcomes
    ]
    assert (np.abs(values - exact) <= error).all()


def test_visits_of_random_models_are_those_of_their_classes():
    rng = np.random.default_rng(3)
    for _ in range(20):
        problem = random_product_problem(rng)
        table = likelihood_table(problem.model)
        seen = table.pool(problem.counts.counts)
        assert (seen == np.round(seen)).all()
        if not table.left_out and table.is_class.all():
            assert table.visits(seen).sum() == seen.sum() >= 0


def test_blocks_are_parameters_that_no_group_ties():
    rows = [[a, 1 - a], [(a + b) / 2, 1 - (a + b) / 2], [c, 1 - c]]
    table = likelihood_table(row_model(rows, UNIT))
    found = {tuple(table.names[i] for i in block): set(np.flatnonzero(is_about)) for block, is_about in table.blocks}
    ties = {f: {j for j, g in enumerate(table.outcomes) if set(g.names) & set(f)} for f in ("ab", "c")}
    assert found == {("a", "b"): ties["ab"], ("c",): ties["c"]}
