"""Bit-packed valuations of UMB archives, against packing by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumdp import ModelError
from plumdp.model.readers.umb import _bit_field, _column


@given(st.data())
def test_fields_of_any_width_and_place_are_read_back(data):
    sizes = data.draw(st.lists(st.integers(1, 63), min_size=1, max_size=6))
    states = data.draw(st.lists(st.tuples(*(st.integers(0, 2**size - 1) for size in sizes)), min_size=1, max_size=5))
    n_bytes = (sum(sizes) + 7) // 8
    packed = []
    for state in states:
        word, position = 0, 0
        for value, size in zip(state, sizes, strict=True):
            word |= value << position
            position += size
        packed.append(list(word.to_bytes(n_bytes, "little")))
    rows = np.array(packed, dtype=np.uint8)
    for j, size in enumerate(sizes):
        assert _bit_field(rows, sum(sizes[:j]), size).tolist() == [state[j] for state in states]


def test_offsets_and_signs_are_applied():
    code = np.array([0, 1, 3], dtype=np.uint64)
    assert _column("x", "uint", code, 2, -1).tolist() == [-1, 0, 2]
    assert _column("x", "int", code, 2, 0).tolist() == [0, 1, -1]
    assert _column("x", "bool", code[:2], 1, 0).tolist() == [False, True]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("uint", "state variable x leaves the range of 32-bit integers"),
        ("double", "state variable x is of type double; use integers or Booleans"),
    ],
)
def test_values_that_cannot_be_kept_are_refused_by_name(kind, message):
    with pytest.raises(ModelError) as caught:
        _column("x", kind, np.array([2**40], dtype=np.uint64), 64, 0)
    assert str(caught.value) == message
