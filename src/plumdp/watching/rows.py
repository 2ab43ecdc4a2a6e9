"""The rows that a watch looks at: classes of rows that the model says are alike, with the outcomes of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from plumdp.base.errors import DataError
from plumdp.confidence.likelihood_table import MANY, LikelihoodTable, likelihood_table
from plumdp.confidence.tied_rows import find_tied_rows
from plumdp.data.seen import CountArray
from plumdp.model.expressions.table import box_range
from plumdp.model.graph import FloatArray, Indices, read_only
from plumdp.model.parametric import ParametricMDP

_SLACK = 1e-9  # of ranges of expressions, more than their rounding


@dataclass(frozen=True, eq=False)
class WatchedRows:
    """Classes of rows with unknown probabilities, and the outcome that each transition counts for."""

    first: Indices  # (n_classes + 1): of the outcomes of each class
    outcome: Indices  # (n_transitions), or -1
    words: tuple[str, ...]  # (n_outcomes): what the probability of each is called
    table: LikelihoodTable | None = None  # if parameters tie several classes

    def pool(self, counts: CountArray) -> FloatArray:
        """Return how often each outcome was seen (n), then those of the table, given counts of transitions."""
        seen = np.flatnonzero((counts > 0) & (self.outcome >= 0))
        own = np.bincount(self.outcome[seen], counts[seen], len(self.words)).astype(np.float64)
        return own if self.table is None else np.concatenate([own, self.table.pool(counts)])

    @property
    def n(self) -> int:
        """The number of outcomes, without those of the table."""
        return len(self.words)


def watched_rows(model: ParametricMDP) -> WatchedRows:
    """Return the classes of tied rows of a model, or of a table the rows of one name.

    >>> from plumdp import case_study
    >>> watched_rows(case_study("betting:5").model).words[:2]
    ('p', '-p + 1')
    """
    counted = model.counted
    rows = counted.rows if counted.is_table else find_tied_rows(counted).rows
    place = rows.place_of(np.arange(counted.graph.n_transitions))[1]
    if counted.is_table:
        graph, kept = counted.graph, np.flatnonzero(counted.is_free_row & (np.diff(rows.first) > 1))
        of_place, first = np.full(int(rows.first[-1]), -1), np.concatenate([[0], np.cumsum(np.diff(rows.first)[kept])])
        words = []
        for number, row in enumerate(kept.tolist()):
            choice = int(rows.representative[row])
            start, size = int(graph.first_transition[choice]), int(first[number + 1] - first[number])
            of_place[rows.first[row] : rows.first[row + 1]] = np.arange(first[number], first[number + 1])
            to = [graph.describe_state(int(each)) for each in graph.successor[start : start + size]]
            words += [f"the probability that {graph.describe_choice(choice)} leads to {each}" for each in to]
    else:
        tied = find_tied_rows(counted)
        of_place, first, words = tied.outcome_of_place, tied.first, [str(each) for each in tied.outcomes]
    if len(first) < 2:
        raise DataError("the model has no unknown probabilities, so that there is nothing to watch")
    table = None if counted.is_table or len(first) < 3 else likelihood_table(counted)
    if table is not None and not 0 < table.basis.shape[1] <= MANY:
        table = None
    return WatchedRows(read_only(np.asarray(first, dtype=np.int64)), read_only(of_place[place]), tuple(words), table)


def ranges_in_box(model: ParametricMDP, box: Mapping[str, tuple[float, float]]) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the probability of each watched outcome, from outside, if the parameters lie in a box."""
    counted = model.counted
    unknown = [name for name in counted.space.names if name not in box]
    if counted.is_table or unknown:
        raise DataError(f"no bounds are known on {', '.join(unknown) or 'the rows of a table'}: learn the reference")
    ends = np.array([box[name] for name in counted.space.names], dtype=np.float64)
    tied = find_tied_rows(counted)
    low, high = box_range(counted.expressions, np.maximum(tied.expression, 0), ends[:, 0], ends[:, 1])
    fixed = np.array([float(each.constant) if each.is_constant else np.nan for each in tied.outcomes])
    low, high = (np.where(np.isnan(fixed), tied.multiple * end, fixed) for end in (low, high))
    return np.clip(low - _SLACK * np.abs(low), 0.0, 1.0), np.clip(high + _SLACK * np.abs(high), 0.0, 1.0)
