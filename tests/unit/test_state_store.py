"""Compiled hashing against dictionaries of tuples."""

from itertools import chain, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumdp.model import kernels
from plumdp.model.state_store import StateStore

INT32 = np.iinfo(np.int32)


class SlowStore:
    """Tuples with a number each, in the order of discovery."""

    def __init__(self):
        self.numbers = {}

    def intern(self, rows):
        return [self.numbers.setdefault(tuple(row), len(self.numbers)) for row in rows.tolist()]


def check_batches(batches):
    fast, slow = StateStore(batches[0].shape[1]), SlowStore()
    for batch in batches:
        assert fast.intern(batch).tolist() == slow.intern(batch)
    assert fast.n == len(slow.numbers)
    assert [tuple(row) for row in fast.rows[: fast.n].tolist()] == list(slow.numbers)


@st.composite
def batches(draw):
    n_columns = draw(st.integers(0, 4))
    special = st.sampled_from([INT32.min, INT32.max, 0, -1, 1, 1 << 16, -(1 << 16)])
    row = st.tuples(*[special | st.integers(INT32.min, INT32.max)] * n_columns)
    pool = draw(st.lists(row, min_size=1, max_size=20))
    sizes = draw(st.lists(st.integers(0, 20), min_size=1, max_size=6))
    return [
        np.array(draw(st.lists(st.sampled_from(pool), min_size=n, max_size=n)), dtype=np.int32).reshape(n, n_columns)
        for n in sizes
    ]


@pytest.mark.slow
@given(batches())
def test_rows_are_numbered_in_the_order_of_discovery(found):
    check_batches(found)


@pytest.mark.parametrize("spread", [3, 20, 10_000])
def test_numbers_survive_growth_over_many_batches(spread):
    """The table starts with 1024 rows and 4096 slots; 30 batches of up to 3000 rows outgrow both several times."""
    rng = np.random.default_rng(spread)
    sizes = [1, 1023, 1, 1024, *rng.integers(0, 3000, size=26)]
    check_batches([rng.integers(-spread, spread, size=(n, 3)).astype(np.int32) for n in sizes])


def fmix(values):
    """Return the hash of one-column rows as kernels.py describes it, in NumPy's wrapping arithmetic."""
    h = (np.uint64(0x9E3779B97F4A7C15) ^ values.astype(np.uint32).astype(np.uint64)) * np.uint64(0xFF51AFD7ED558CCD)
    return h ^ (h >> np.uint64(32))


@pytest.mark.slow
@pytest.mark.parametrize("slot", [0, 4095])
def test_rows_that_all_want_one_slot_stay_apart(slot):
    """All rows collide; for the last slot, probing also wraps around the end of the table."""
    values = np.arange(-300_000, 300_000, dtype=np.int32)
    colliding = values[(fmix(values) & np.uint64(4095)) == slot]
    assert len(colliding) > 100
    check_batches([colliding[:, None], colliding[::-1, None], colliding[::2, None]])


def test_interning_does_not_keep_a_view_of_the_given_rows():
    store, rows = StateStore(2), np.array([[1, 2], [3, 4]], dtype=np.int32)
    store.intern(rows)
    rows[:] = 9
    assert store.rows[:2].tolist() == [[1, 2], [3, 4]]


grouped = st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=12)


def offsets(groups):
    return np.cumsum([0, *map(len, groups)]).astype(np.int32)


@pytest.mark.slow
@given(grouped)
def test_repeated_successors_point_to_the_first_equal_one_of_their_choice(groups):
    first = offsets(groups)
    first_same = np.full(first[-1], -7, dtype=np.int32)
    successor = np.array(list(chain(*groups)), dtype=np.int32)
    n_repeated = kernels.repeated_successors(first, successor, first_same)
    expected = [int(first[c]) + group.index(s) for c, group in enumerate(groups) for s in group]
    assert first_same.tolist() == expected
    assert n_repeated == sum(len(group) - len(set(group)) for group in groups)


def check_row_classes(groups, n_slots):
    first, n = offsets(groups), len(groups)
    row_class, representative = np.full(n, -7, dtype=np.int32), np.full(n, -7, dtype=np.int32)
    slots = np.full(n_slots, kernels.EMPTY, dtype=np.int32)
    expression = np.array(list(chain(*groups)), dtype=np.int32)
    n_classes = kernels.row_classes(first, expression, slots, row_class, representative)
    numbers = {}
    expected = [numbers.setdefault(tuple(group), len(numbers)) for group in groups]
    assert (row_class.tolist(), n_classes) == (expected, len(numbers))
    assert representative[:n_classes].tolist() == [expected.index(k) for k in range(len(numbers))]


@given(grouped, st.sampled_from([16, 64]))
def test_row_classes_number_the_distinct_sequences_in_order(groups, n_slots):
    check_row_classes(groups, n_slots)


def test_rows_that_begin_alike_stay_apart_in_a_table_that_is_nearly_full():
    """All 31 sequences of zeros and ones up to length 4 in 32 slots: nearly every one meets others."""
    sequences = [bits for length in range(5) for bits in product([0, 1], repeat=length)]
    for groups in (sequences, sequences[::-1], sequences + sequences):
        check_row_classes(groups, 32)
