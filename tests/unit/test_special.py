"""Logarithms of gamma functions and of sums, and small matrices, against exact arithmetic and SciPy."""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from flint import arb, ctx
from scipy.sparse import csr_array

from plumdp.base.rounding import UNIT
from plumdp.base.sparse import sparse
from plumdp.base.special import log_gamma, log_sum


@pytest.mark.parametrize("n", [3_000, 30_000], ids=["few", "many"])
def test_log_gamma_is_off_by_at_most_sixteen_units(n):
    """Both ways, against ball arithmetic with 120 bits."""
    rng, before = np.random.default_rng(n), ctx.prec
    x = np.concatenate([np.arange(1, n // 2) / 2, 10 ** rng.uniform(-3, 9, n - n // 2 + 1)])
    given, few = log_gamma(x), rng.permutation(n)[:3_000]
    try:
        ctx.prec = 120
        exact = np.array([float(arb(float(each)).lgamma()) for each in x[few]])
    finally:
        ctx.prec = before
    assert (np.abs(given[few] - exact) <= 16 * UNIT * np.maximum(np.abs(exact), 1)).all()


def test_log_gamma_keeps_the_shape():
    assert log_gamma(np.ones((2, 0, 3))).shape == (2, 0, 3)
    assert log_gamma(np.full((2, 3), 4.0)).tolist() == [[pytest.approx(log(6))] * 3] * 2


def test_log_sum_is_the_logarithm_of_the_sum():
    shares = [Fraction(1, 3), Fraction(1, 7), Fraction(1, 1000)]
    assert log_sum([log(each) - 800 for each in shares]) == pytest.approx(log(sum(shares)) - 800, abs=1e-12)
    assert log_sum([-np.inf, -np.inf]) == -np.inf


@pytest.mark.parametrize("n", [0, 5, 400], ids=["none", "dense", "SciPy's"])
def test_a_matrix_is_that_of_scipy(n):
    rng = np.random.default_rng(n)
    sizes = rng.integers(0, 4, n)
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    columns = rng.integers(0, max(n, 1), first[-1]).astype(np.int32)  # some of them twice
    entries = rng.integers(-9, 9, first[-1]) / 8  # sums are exact
    made, slow = sparse(entries, columns, first, n), csr_array((entries, columns, first), shape=(n, n))
    x = rng.integers(-9, 9, (n, 2)) / 4
    assert isinstance(made, np.ndarray) == (n < 400)
    for one, other in ((made @ x, slow @ x), (made.T @ x, slow.T @ x), (abs(made) @ x, abs(slow) @ x)):
        assert np.array_equal(one, other)
