"""How much rows that are off by a misfit change what follows in one step. All of it is a proposal, in floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from plumdp.model.graph import FloatArray
from plumdp.verifying.cuts import sizes_of
from plumdp_verify.chain import Chain
from plumdp_verify.polynomials import Exponents


class Ranges:
    """The successors of open states, and what their values differ by, times the misfit and the discount."""

    def __init__(self, chain: Chain, misfit: float, radius: float | None) -> None:
        self.radius = radius
        place = {node: i for i, node in enumerate([*chain.open, *chain.known])}
        self._size = misfit * float(chain.discount.p) / float(chain.discount.q)
        self._n, self._known = len(chain.open), np.array([float(chain.known[node].p) for node in chain.known])
        rows = [[place[successor] for successor in step.successors] for _, step in chain.open_steps()]
        self._counts = np.array([*map(len, rows)], dtype=np.int64)
        self._first = np.cumsum([0, *map(len, rows)])[:-1]
        self._after = np.array([successor for row in rows for successor in row], dtype=np.int64)

    def of_numbers(self, numbers: FloatArray) -> FloatArray:
        """Return the changes (n_open) of numbers (n_open) that are zero where runs are over."""
        if not self._size:
            return np.zeros(len(numbers))
        after = np.concatenate([numbers, np.zeros(len(self._known))])[self._after]
        return self._size * np.asarray(
            np.maximum.reduceat(after, self._first) - np.minimum.reduceat(after, self._first)
        )

    def moved(
        self,
        values: FloatArray,
        matrices: dict[Exponents, Any],
        earned: dict[Exponents, FloatArray],
        side: int,
        zero: Exponents,
    ) -> tuple[dict[Exponents, Any], dict[Exponents, FloatArray]]:
        """Return the steps of the chain whose rows lose (-1) or gain (1) the misfit, and what they earn.

        It goes from the successor with most to the one with least, as they are at the centre, or back.
        """
        from scipy.sparse import coo_array

        most, least = (self._after[place] for place in self._extremes(self._all(values, zero, zero)))
        state, n, size = np.arange(self._n), self._n, self._size
        weights = np.repeat([side * size, -side * size], n)
        rows, columns = np.tile(state, 2), np.concatenate([most, least])
        is_open = columns < n
        moved = coo_array((weights[is_open], (rows[is_open], columns[is_open])), shape=(n, n)).tocsr()
        more = np.zeros(n)
        np.add.at(more, rows[~is_open], weights[~is_open] * self._known[columns[~is_open] - n])
        return {**matrices, zero: matrices[zero] + moved}, {**earned, zero: earned.get(zero, np.zeros(n)) + more}

    def beyond(self, found: dict[Exponents, FloatArray]) -> FloatArray:
        """Return by how much others may be beyond the successors with most and least at the centre (n_open)."""
        if not self._size:
            return np.zeros(self._n)
        zero = next(iter(found))
        after = {e: self._all(v, e, zero) for e, v in found.items()}
        total = np.zeros(self._n)
        for side, place in zip((1, -1), self._extremes(after[zero]), strict=True):
            less = {e: side * (v - np.repeat(v[place], self._counts)) for e, v in after.items()}
            over = np.where(np.arange(len(self._after)) == np.repeat(place, self._counts), 0.0, less[zero])
            over += np.where(over == 0, 0.0, sizes_of(less, len(self._after), self.radius))
            total += np.maximum(np.maximum.reduceat(over, self._first), 0.0)
        return 2 * self._size * total

    def _all(self, values: FloatArray, exponents: Exponents, zero: Exponents) -> FloatArray:
        """Return the coefficients of all successors, where known values are constants."""
        known = self._known if exponents == zero else np.zeros(len(self._known))
        return np.concatenate([values, known])[self._after]

    def _extremes(self, after: FloatArray) -> tuple[Any, Any]:
        """Return the places of the successors with most and with least, for each open state."""
        rows = np.repeat(np.arange(self._n), self._counts)
        order = np.lexsort((after, rows))
        return order[self._first + self._counts - 1], order[self._first]
