"""What is done block by block, or for what is not zero alone, against the same for all parameters at once."""

from fractions import Fraction
from math import fsum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from row_models import row_model
from threadpoolctl import threadpool_info
from tiers import examples

import plumdp as pl
from plumdp.base.threads import one_blas_thread
from plumdp.confidence import space_moments
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.model.space import affine_coefficients, float_above, independent_blocks
from plumdp.solver.coupled import residual_kernels

NAMES = ("a", "b", "c", "d", "e", "f")
UNKNOWN = dict(zip(NAMES, pl.parameters(*NAMES), strict=True))
coefficients = st.dictionaries(st.sampled_from(NAMES), st.fractions(-3, 3, max_denominator=97), max_size=4)


def polynomial(terms, constant):
    return sum((c * UNKNOWN[name] for name, c in terms.items()), pl.parameters("a")[0] * 0) + constant


@given(st.lists(st.tuples(coefficients, st.integers(3, 9)), max_size=5))
@settings(max_examples=examples(30))
def test_inequalities_are_those_of_all_parameters_rounded_outward(constraints):
    """The same floats as from a row of fractions with a number for every parameter."""
    bounds = {name: (Fraction(-1, 3), 1) for name in NAMES}
    space = pl.ParameterSpace.box(bounds, constraints=[polynomial(*one) for one in constraints])
    rows, offsets = space.inequalities
    assert rows.shape == (len(space.constraints), len(NAMES))
    for row, offset, constraint in zip(rows, offsets, space.constraints, strict=True):
        constant, exact = affine_coefficients(constraint, NAMES)
        assert row.tolist() == [float(-a) for a in exact]
        reach = [max(abs(low), abs(high)) for low, high in space.bounds]
        slack = sum(abs(Fraction(x) + a) * r for x, a, r in zip(row.tolist(), exact, reach, strict=True))
        assert offset == float_above(constant + slack)


@given(st.integers(0, 10**6))
def test_blocks_share_no_row_and_no_variable(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(rng.integers(1, 9), rng.integers(1, 9))) * (rng.random(1) > rng.random(1))
    rows *= rng.random(rows.shape) < 0.2
    blocks = independent_blocks(rows)
    assert sorted(i for columns, _ in blocks for i in columns) == list(range(rows.shape[1]))
    assert sorted(i for _, own in blocks for i in own) == list(range(len(rows)))
    for columns, own in blocks:
        assert not np.delete(rows[own], columns, axis=1).any()


def in_blocks():
    """Return a model with two blocks of parameters, a row about both, and its rows at a point."""
    a, b, c, d = (UNKNOWN[name] for name in "abcd")
    space = pl.ParameterSpace.box(dict.fromkeys("abcd", (0, 1)), constraints=[1 - a - b, 1 - c - d])
    rows = [[a, b, 1 - a - b], [c, d, 1 - c - d], [(a + c) / 2, (2 - a - c) / 2], [a / 2 + b / 3, 1 - a / 2 - b / 3]]
    return row_model(rows, space)


@pytest.mark.slow
@given(st.integers(0, 10**6))
def test_slopes_of_entries_are_those_of_all_coefficients(seed):
    table, rng = likelihood_table(in_blocks()), np.random.default_rng(seed)
    weights = rng.normal(size=len(table.constants)) * 10 ** rng.uniform(-9, 9, len(table.constants))
    expected = [fsum(weights * column) for column in table.coefficients.T]
    assert table.weighted_slopes(weights).tolist() == expected


@pytest.mark.parametrize("wrong", [0, 40, 60])
def test_the_p_value_of_a_model_in_blocks_is_that_of_the_whole(monkeypatch, wrong):
    """Data of rows that contradict each other by more and more, with a pilot: p from one to tiny."""
    model = in_blocks()
    start, size = model.graph.first_transition[:-1], np.diff(model.graph.first_transition)
    seen = np.zeros(model.graph.n_transitions, dtype=np.int64)
    for choice, row in enumerate([[300, 300, 300], [300, 300, 300], [300 + wrong, 600 - wrong], [250, 650]]):
        assert size[choice] == len(row)
        seen[start[choice] : start[choice] + size[choice]] = row
    counts = pl.TransitionCounts(model.graph, 11 * seen, "adaptive", pilot=seen)
    found = p_values(model, counts)
    assert all((p == 1) == (wrong == 0) and p > 1e-200 for p in found)
    monkeypatch.setattr(space_moments, "independent_blocks", whole)
    space_moments.moments.cache_clear()
    expected = p_values(model, counts)
    space_moments.moments.cache_clear()
    assert found == pytest.approx(expected, rel=1e-9)


def p_values(model, counts):
    return [pl.learn(model, counts, confidence_set=kind).fit.p_value for kind in ("interval", "likelihood")]


def whole(rows):
    return [(np.arange(rows.shape[1]), np.arange(len(rows)))]


@given(st.integers(0, 10**6), st.integers(1, 7), st.booleans(), st.booleans())
@settings(deadline=None)
def test_products_of_sparse_spreads_are_those_of_all_entries(seed, d, has_bends, has_curvatures):
    """sym β w¹ᵀ + Γ w⁰ entry by entry, bit for bit, whichever entries of β are zero."""
    rng, width = np.random.default_rng(seed), d * (d + 1) // 2
    spreads = rng.normal(size=(1, d)) * (rng.random((1, d)) < rng.random())
    bends, curvatures = rng.normal(size=(1, width * has_bends)), rng.normal(size=(1, width * has_curvatures))
    slopes, a, w = rng.normal(size=(1, d)), *rng.normal(size=2)
    got = [np.zeros((1, d)), np.zeros((1, width)), np.zeros(d), np.zeros((1, width))]
    residual_kernels.add_products.plain(0, 0, 0, a, w, spreads, bends, slopes, curvatures, *got)
    i, j = np.triu_indices(d)
    product = (spreads[0, i] * slopes[0, j] + spreads[0, j] * slopes[0, i]) / 2
    assert got[3][0].tolist() == (product + (bends[0] * w if has_bends else 0.0)).tolist()
    assert got[2].tolist() == (spreads[0] * w).tolist()
    assert got[0][0].tolist() == (a * slopes[0]).tolist()
    assert got[1][0].tolist() == ((a * curvatures[0]).tolist() if has_curvatures else [0.0] * width)


def test_linear_algebra_has_one_thread_and_gets_its_threads_back():
    def n_threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = n_threads()
    with one_blas_thread():
        assert set(n_threads()) <= {1}
    assert n_threads() == before
