"""Blocks of variables that no inequality ties together, so that each can be treated by itself."""

from __future__ import annotations

import numpy as np

from plumdp.model.graph import FloatArray, Indices


def independent_blocks(rows: FloatArray) -> list[tuple[Indices, Indices]]:
    """Return the variables of each block, and the rows about them, with rows about nothing in the first.

    Two variables are in one block if a row has coefficients of both, or if a chain of rows ties them. So the points
    with ``rows @ point <= offsets`` are the product of the blocks, each with its rows.

    >>> [columns.tolist() for columns, _ in independent_blocks(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))]
    [[0, 2], [1]]
    """
    (n, d), (row, column) = rows.shape, np.nonzero(rows)
    label, before = np.arange(d), np.full(d, -1)  # of each variable: the first one that is known to be in its block
    of_row = np.zeros(n, dtype=np.int64)
    of_row[row] = d
    while (label != before).any():
        before = label.copy()
        np.minimum.at(of_row, row, label[column])
        np.minimum.at(label, column, of_row[row])
        label = label[label]
    firsts = np.unique(label)
    if len(firsts) <= 1 or not len(row):
        return [(np.arange(d), np.arange(n))]
    return [(np.flatnonzero(label == first), np.flatnonzero(of_row == first)) for first in firsts]
