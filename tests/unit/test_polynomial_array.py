"""Arrays of polynomials against loops over their elements."""

import gc
import operator
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from strategies import trees, write

from plumdp import ModelError, parameters
from plumdp.model import tabulate
from plumdp.model.expressions.arrays import PolynomialArray, constant_array, distinct
from plumdp.model.expressions.interned import PolynomialTable
from plumdp.model.expressions.polynomial import Polynomial

p, q = parameters("p", "q")
INT64, INT32 = np.iinfo(np.int64), np.iinfo(np.int32)


def elements(column):
    """Return a column as a list of Python values."""
    if isinstance(column, PolynomialArray):
        return [column.table[i] for i in column.index.tolist()]
    return column.tolist()


def polynomial_array(polynomials):
    table = list(dict.fromkeys(polynomials))
    return PolynomialArray(tuple(table), np.array([table.index(f) for f in polynomials], dtype=np.int32))


@st.composite
def columns(draw, kinds, max_columns=4, max_length=30):
    """Draw a list of columns of one length; each element of a column comes from a small pool, so that rows repeat."""
    length = draw(st.integers(0, max_length))
    found = []
    for _ in range(draw(st.integers(1, max_columns))):
        values, dtype = draw(st.sampled_from(kinds))
        pool = draw(st.lists(values, min_size=1, max_size=4))
        chosen = draw(st.lists(st.sampled_from(pool), min_size=length, max_size=length))
        found.append(polynomial_array(chosen) if dtype is Polynomial else np.array(chosen, dtype=dtype))
    return found


INTEGERS = [
    (st.integers(-3, 3), np.int32),
    (st.integers(INT32.min, INT32.max), np.int32),
    (st.sampled_from([INT32.min, INT32.max, 0]), np.int32),
    (st.booleans(), np.bool_),
    (st.integers(0, 255), np.uint8),
]
WIDE = [
    (st.sampled_from([INT64.min, INT64.max, 0, -1, 2**62, -(2**62), 2**61]), np.int64),
    (st.integers(INT64.min, INT64.max), np.int64),
    (st.sampled_from([0, 1, 2**63, 2**64 - 1]), np.uint64),
]


def check_distinct(arrays):
    representatives, inverse = distinct(arrays)
    rows = list(zip(*(array.tolist() for array in arrays), strict=True))
    found = [rows[i] for i in representatives]
    assert len(set(found)) == len(found) == len(set(rows))
    assert [found[i] for i in inverse] == rows


@pytest.mark.slow
@given(columns(INTEGERS, max_columns=7))
def test_distinct_lists_each_combination_of_int32_columns_once(arrays):
    check_distinct(arrays)


@given(columns(INTEGERS + WIDE, max_columns=4, max_length=8))
def test_distinct_lists_each_combination_of_int64_columns_once(arrays):
    check_distinct(arrays)


def test_combinations_do_not_collide_where_a_column_spans_2_to_the_62():
    """With a width of 2^62, the codes of rows 0 and 4 differ by 4 * 2^62 = 2^64, which is 0 in 64 bits."""
    check_distinct([np.arange(5), np.array([0, 2**62 - 1, 0, 0, 0])])


def test_combinations_do_not_collide_where_many_values_meet_a_wide_column():
    """4096 values times a width of 2^52 is 2^64."""
    check_distinct([np.arange(8192) - 4096, np.where(np.arange(8192) == 7, 2**52 - 1, 0)])


def test_the_dense_and_the_sorted_way_agree_on_a_long_array():
    """A range of 4000 values is counted directly; the same values a million apart are sorted."""
    values = np.random.default_rng(0).integers(0, 4000, size=20_000)
    check_distinct([values, values % 3])
    check_distinct([values * 1_000_000, values % 3])


@given(columns([*INTEGERS, (trees.map(write), Polynomial)], max_columns=3))
def test_tabulate_equals_a_loop_and_calls_once_per_distinct_combination(arrays):
    calls = []

    def weigh(*row):
        calls.append(row)
        return sum((1 + k) * value for k, value in enumerate(row)) + p * row[0]

    result = tabulate(weigh, *arrays)
    rows = list(zip(*map(elements, arrays), strict=True))
    assert len(calls) == len(set(calls)) == len(set(rows))
    assert elements(result) == [sum((1 + k) * value for k, value in enumerate(row)) + p * row[0] for row in rows]
    assert len(set(result.table)) == len(result.table)
    assert result.index.dtype == np.int32


def test_arguments_of_the_function_are_plain_python_values():
    seen = set()
    tabulate(lambda *row: seen.update(map(type, row)) or 0, np.array([1], dtype=np.int32), np.array([True]))
    assert seen == {int, bool}


POLYNOMIALS = polynomial_array([p, q, p, 1 - p, Polynomial(0)])
CONSTANTS = polynomial_array([Polynomial(n) for n in (1, 2, 2, 5, Fraction(1, 3))])


@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul])
@pytest.mark.parametrize(
    "other", [2, 0.5, Fraction(1, 3), p, np.int64(3), np.arange(5), np.arange(5) > 2, CONSTANTS], ids=repr
)
def test_arithmetic_equals_that_of_the_elements_from_both_sides(operation, other):
    column = isinstance(other, np.ndarray | PolynomialArray)
    others = elements(other) if column else [other] * 5
    pairs = list(zip(elements(POLYNOMIALS), others, strict=True))
    assert elements(operation(POLYNOMIALS, other)) == [operation(a, b) for a, b in pairs]
    assert elements(operation(other, POLYNOMIALS)) == [operation(b, a) for a, b in pairs]


@pytest.mark.parametrize("other", [2, 0.5, Fraction(1, 3), np.arange(1, 6), CONSTANTS], ids=repr)
def test_division_equals_that_of_the_elements(other):
    others = elements(other) if isinstance(other, np.ndarray | PolynomialArray) else [other] * 5
    assert elements(POLYNOMIALS / other) == [a / b for a, b in zip(elements(POLYNOMIALS), others, strict=True)]


@pytest.mark.parametrize("other", [2, Fraction(1, 3), np.arange(5), p, POLYNOMIALS], ids=repr)
def test_what_is_divided_by_an_array_of_constants_may_be_a_number_a_polynomial_or_an_array(other):
    others = elements(other) if isinstance(other, np.ndarray | PolynomialArray) else [other] * 5
    expected = [Polynomial(0) + b * (1 / a.constant) for a, b in zip(elements(CONSTANTS), others, strict=True)]
    assert elements(other / CONSTANTS) == expected


def test_negation_and_powers_are_those_of_the_elements():
    assert elements(-POLYNOMIALS) == [-f for f in elements(POLYNOMIALS)]
    powers = zip(elements(POLYNOMIALS), range(5), strict=True)
    assert elements(POLYNOMIALS ** np.arange(5)) == [f**k for f, k in powers]


def test_results_that_become_equal_share_one_place_in_the_table():
    result = polynomial_array([p, q, p, 1 - p, Polynomial(0)]) * np.array([0, 0, 0, 0, 7])
    assert (tuple(result.table), result.index.tolist()) == ((Polynomial(0),), [0] * 5)


def test_slices_and_masks_select_elements():
    assert elements(POLYNOMIALS[1:4]) == [q, p, 1 - p]
    assert elements(POLYNOMIALS[np.array([True, False, False, False, True])]) == [p, 0]
    assert len(POLYNOMIALS[np.array([], dtype=int)]) == 0


def test_empty_columns_give_empty_arrays():
    assert len(tabulate(lambda level: level, np.array([], dtype=np.int32))) == 0
    assert len(constant_array(p, 0) * np.array([], dtype=np.int64) + 1) == 0
    assert elements(constant_array(0.25, 2)) == [Fraction(1, 4)] * 2


def test_misuse_is_refused_by_name():
    refused("polynomials:arrays", globals())


def counted(is_cached):
    """Return a function of a level, and the list of its calls."""
    calls = []

    def weigh(level):
        calls.append(level)
        return p / (1 + level)

    return cache(weigh) if is_cached else weigh, calls


def test_a_cached_function_is_asked_once_in_all_calls_and_other_functions_once_in_each():
    for is_cached, expected in ((True, [3, 1, 2, -40]), (False, [3, 1, 2, 3, -40, 3])):
        weigh, calls = counted(is_cached)
        found = [tabulate(weigh, np.array(levels)) for levels in ([3, 3], [1, 2, 3, 1], [-40, 3])]
        assert sorted(calls) == sorted(expected)
        assert [elements(array) for array in found] == [
            [p / 4, p / 4], [p / 2, p / 3, p / 4, p / 2], [p / -39, p / 4]
        ]  # fmt: skip


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(-3, 3) | st.sampled_from([INT32.min, INT32.max, 900]), max_size=8), max_size=6))
def test_remembered_results_equal_a_loop_whatever_was_asked_before(batches):
    """With both ends of int32 the box of the memo is too large, and results are calculated anew."""

    @cache
    def weigh(bonus, level, twice):
        return p * level + (2 * q if twice else q) + bonus

    for levels in batches:
        column = np.array(levels, dtype=np.int32)
        for bonus in (0, Fraction(1, 3)):
            result = tabulate(partial(weigh, bonus), column, column % 2 == 0)
            expected = [p * level + (2 * q if level % 2 == 0 else q) + bonus for level in levels]
            assert elements(result) == expected
            assert elements(1 - result) == [1 - f for f in expected]
            assert elements(result * result) == [f * f for f in expected]
            assert elements(result * column) == [f * level for f, level in zip(expected, levels, strict=True)]


def test_a_float_that_is_refused_is_refused_also_after_the_equal_fraction():
    """The float 1/3 looks like the rounded result of a calculation; the fraction of the same value is meant exactly."""
    column = constant_array(p, 2)
    assert elements(column * Fraction(1 / 3)) == [p * Fraction(1 / 3)] * 2
    with pytest.raises(ModelError, match="looks like the rounded result of a calculation"):
        column * (1 / 3)


def test_tables_keep_their_numbers_and_translate_into_each_other():
    table, other = PolynomialTable([p, q, p, 1 - q]), PolynomialTable([1 - q, p])
    assert list(table) == [p, q, 1 - q]
    assert table.numbers_from(other, np.array([0, 1, 0])).tolist() == [2, 0, 2]
    other.number(2 * p)
    assert table.numbers_from(other, np.array([2, 1])).tolist() == [3, 0]
    assert [table.number(f) for f in (p, 2 * p, q * q)] == [0, 3, 4]
    assert list(pickle.loads(pickle.dumps(table))) == [p, q, 1 - q, 2 * p, q * q]


def test_several_threads_number_the_same_polynomials_alike():
    table, polynomials = PolynomialTable(), [p * k + q for k in range(300)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda turn: table.numbers(polynomials[turn:] + polynomials[:turn]), range(0, 300, 10)))
    assert sorted(table, key=str) == sorted(polynomials, key=str)
    for turn, numbers in zip(range(0, 300, 10), found, strict=True):
        assert [table[i] for i in numbers] == polynomials[turn:] + polynomials[:turn]


@pytest.mark.slow
def test_results_are_forgotten_with_the_last_array_of_them():
    column = constant_array(p, 2)
    result = (1 - column) * column
    memo = weakref.ref(result.table)
    assert ((1 - column) * column).table is result.table
    del result
    gc.collect()
    assert memo() is None
    assert elements((1 - column) * column) == [p - p * p] * 2
