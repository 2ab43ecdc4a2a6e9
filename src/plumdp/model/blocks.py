"""Blocks of variables that no inequality ties together: what can be done for each of them by itself."""

from __future__ import annotations

import numpy as np

from plumdp.model.graph import FloatArray, Indices


def independent_blocks(rows: FloatArray) -> list[tuple[Indices, Indices]]:
    """Return the variables of each block, and the rows that are about them; rows about nothing go with the first.

    Two variables are in one block if a row has coefficients of both, or if a chain of rows ties them. So the points
    with ``rows @ point <= offsets`` are the product of what is left of the rows in each block.

    >>> [columns.tolist() for columns, _ in independent_blocks(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))]
    [[0, 2], [1]]
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    entries = csr_array(rows != 0)
    n, of_variable = connected_components(entries.T @ entries, directed=False)
    row_ends = entries.indptr[:-1].clip(max=max(entries.nnz - 1, 0))
    of_row = np.where(np.diff(entries.indptr) > 0, of_variable[entries.indices[row_ends]], 0) if entries.nnz else None
    if of_row is None or n <= 1:
        return [(np.arange(rows.shape[1]), np.arange(len(rows)))]
    return [(np.flatnonzero(of_variable == b), np.flatnonzero(of_row == b)) for b in range(n)]
