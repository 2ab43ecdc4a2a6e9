"""The constants of rounding: what they promise, checked with exact numbers; and that there is one of each."""

import re
from fractions import Fraction
from math import fsum
from pathlib import Path

import numpy as np
import pytest

import plumdp
import plumdp_verify
from plumdp.base.rounding import SQUARES_UNDERFLOW, ULP, UNDERFLOW, UNIT, UP, down, sum_once, up

SOURCES = [Path(package.__file__).parent for package in (plumdp, plumdp_verify)]
RNG = np.random.default_rng(5)
PAIRS = RNG.uniform(-1, 1, (200, 2)) * 2.0 ** RNG.integers(-40, 40, (200, 2))


@pytest.mark.parametrize("operation", [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b])
def test_one_rounding_is_off_by_at_most_the_unit(operation):
    for a, b in PAIRS.tolist():
        exact = operation(Fraction(a), Fraction(b))
        assert abs(Fraction(operation(a, b)) - exact) <= Fraction(UNIT) * abs(exact)


def test_neighbours_of_one_are_an_ulp_apart():
    assert np.nextafter(1.0, 2.0) - 1.0 == ULP == 2 * UNIT
    assert Fraction(UP) > (1 + Fraction(UNIT)) ** 1000


def test_what_underflows_is_less_than_the_constants_for_it():
    smallest = float(np.finfo(np.float64).smallest_normal)
    tiny = 3.3e-170
    assert tiny * tiny == 0
    assert Fraction(tiny) ** 2 * 10**20 < Fraction(UNDERFLOW)
    assert np.sqrt(10**6 * smallest) < SQUARES_UNDERFLOW
    lost = np.linalg.norm(np.full(10**6, 1e-160)) - 1e-157  # 1e-157 is what it would be without underflow
    assert abs(lost) < SQUARES_UNDERFLOW


def test_steps_outward_pass_the_exact_sum():
    for a, b in PAIRS.tolist():
        third = Fraction(a) / 3
        value, size = np.array([a / 3 + b]), np.array([abs(a / 3) + abs(b)])
        assert Fraction(down(value, size)[0]) <= third + Fraction(b) <= Fraction(up(value, size)[0])


def test_the_constants_are_defined_once():
    again = re.compile(r"2(\.0)? ?\*\* ?-5[0-4]|\b1e-(300|150)\b")
    allowed = {"base/rounding.py", "data/kernels.py", "confidence/binomial.py"}  # a uniform number; a number of trials
    paths = [(path, source) for source in SOURCES for path in source.rglob("*.py")]
    found = {str(path.relative_to(source)) for path, source in paths if again.search(path.read_text("utf-8"))}
    assert found <= allowed


@pytest.mark.parametrize("n", [0, 1, 2, 499, 500, 777, 5_000])
def test_sums_of_arrays_are_those_of_fsum(n):
    """Also where the sum is 10^16 times smaller than its terms."""
    rng = np.random.default_rng(n)
    terms = rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-8, 8, (n, 3))
    terms[1::2, 1] = -terms[: n - n % 2 : 2, 1] * (1 + 2.0**-50)
    expected = [fsum(column) for column in terms.T.tolist()]
    assert sum_once(terms).tolist() == expected
    assert [float(sum_once(column)) for column in terms.T] == expected
