"""Blocks of variables are the connected components of what rows tie together, by SciPy's search for them."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from plumdp.model.space import independent_blocks


@pytest.mark.slow
def test_blocks_are_connected_components_and_their_rows_in_order_of_their_first_variables():
    rng, n_several = np.random.default_rng(1), 0
    for _ in range(300):
        n, d = int(rng.integers(0, 20)), int(rng.integers(1, 12))
        rows = rng.integers(-3, 4, (n, d)) * (rng.random((n, d)) < 0.4 * rng.random())
        found = independent_blocks(rows.astype(float))
        if not rows.any():
            assert [(len(columns), len(own)) for columns, own in found] == [(d, n)]
            continue
        _, label = connected_components(csr_array(rows != 0).T @ csr_array(rows != 0), directed=False)
        assert [columns.tolist() for columns, _ in found] == [
            np.flatnonzero(label == b).tolist() for b in np.unique(label)
        ]
        for number, (columns, own) in enumerate(found):
            is_about = (rows[:, columns] != 0).any(axis=1) | ((rows == 0).all(axis=1) & (number == 0))
            assert own.tolist() == np.flatnonzero(is_about).tolist()
        n_several += len(found) > 1
    assert n_several > 100


def test_a_long_chain_whose_variables_are_in_no_order_is_one_block():
    rows = (np.eye(200) + np.eye(200, k=1))[:-1, np.random.default_rng(2).permutation(200)]
    ((columns, own),) = independent_blocks(rows)
    assert len(columns) == 200
    assert len(own) == 199
