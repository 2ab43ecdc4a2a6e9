"""The rows that a watch looks at: classes of rows that the model says are alike, with the outcomes of each.

Parameters may tie many classes (Statement W2). Then the wealth of a change after part i is that of the classes with
averages over normal laws of the parameters, and the largest likelihood at any point of the reference:

    ev(K(m, i] | pilot) · ev(K(i, n] | i) / max over v of L(v; K(m, n]).

It takes milliseconds for a start, so that it is proved for a few that look most like a change, and only where that may
be enough for an alarm: a sum of fewer terms is smaller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from plumdp.base.errors import DataError
from plumdp.confidence.estimates import Law, estimate_inside, information, law_of_pilot, law_of_space
from plumdp.confidence.evidence import log_evidence
from plumdp.confidence.likelihood_table import MANY, LikelihoodTable, likelihood_table
from plumdp.confidence.tied_rows import find_tied_rows
from plumdp.data.seen import CountArray
from plumdp.fit.agreement import AffineTests, find_agreement
from plumdp.fit.cell_tests import CellTests, largest
from plumdp.fit.time_tests import SeenOverTime
from plumdp.model.expressions.table import box_range
from plumdp.model.graph import FloatArray, Indices, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace
from plumdp.watching.detectors import Starts

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


_AS_DATA = 32.0  # visits that the law after a change takes what came before it for
_MOST = 4  # starts whose wealths are proved
_DOUBT, _SHORT = 1.3, 2.0  # by how much a change may look less likely than it is: a factor, and nats
_LEAST = 1e-9  # probability that scores are calculated for


@dataclass(frozen=True, eq=False)
class TiedParameters:
    """The parameters of a model and what is known of them: their space, or the reference that they are in."""

    table: LikelihoodTable
    law: Law  # of the space
    space: ParameterSpace  # of the reference, or of the model if that is learned
    middle: FloatArray | None  # of the reference, if it is known

    def log_wealths(self, starts: Starts, enough: float) -> FloatArray:
        """Return logarithms of the wealths (m) of starts, from below, of some that together may be enough."""
        wealths = np.full(len(starts.before), -np.inf)
        if len(wealths) and starts.total.any():
            likely = self._likely(starts)
            for i in largest(likely, _MOST).tolist():
                if _DOUBT * likely[i] + _SHORT > enough:
                    wealths[i] = self._proved(starts, i)
        return wealths

    def describe(self, starts: Starts, i: int) -> tuple[str, float, float]:
        """Return the parameter that seems to have changed most after a start, from what and to what: estimates."""
        late = estimate_inside(self.table, starts.after[i], prior=self.law)[0]
        early = self.middle
        if early is None:
            early = estimate_inside(self.table, starts.before[i], prior=self.law)[0]
        sizes = np.sqrt(np.diagonal(information(self.table, starts.after[i], late)))
        j = int(np.argmax(np.abs(late - early) * sizes))
        return self.table.names[j], float(early[j]), float(late[j])

    def _likely(self, starts: Starts) -> FloatArray:
        """Return about how many nats each start wins, by a score test."""
        if self.middle is None:
            near = estimate_inside(self.table, starts.total, prior=self.law)[0]
            names = ("",) * len(starts.before)
            return SeenOverTime(self.table, (), names, starts.before, starts.total).likely(near)
        f = np.maximum(self.table.chances(self.middle), _LEAST)
        scores = self.table.coefficients @ self.table.basis / f[:, None]
        after = starts.after
        second = np.linalg.pinv(np.einsum("mj,ja,jb->mab", after, scores, scores, optimize=True), hermitian=True)
        first = after @ scores
        return np.asarray(np.einsum("ma,mab,mb->m", first, second, first) / 2)

    def _proved(self, starts: Starts, i: int) -> float:
        """Return a lower bound on the logarithm of the wealth of a start."""
        table, before, after, pilot = self.table, starts.before[i], starts.after[i], starts.pilot[i]
        if self.middle is None:
            law = law_of_pilot(table, pilot, self.law) if pilot.any() else self.law
            gained, about = log_evidence(table, before - pilot, *law), starts.total - pilot
        else:
            gained, about = 0.0, after
            before = table.chances(self.middle).clip(0, 1)
        weight = min(1.0, _AS_DATA / max(float(before.sum()), 1e-9)) if self.middle is None else _AS_DATA / before.sum()
        gained += log_evidence(table, after, *law_of_pilot(table, before * weight, self.law))
        seen = np.flatnonzero(about)
        if not np.isfinite(gained) or not len(seen):
            return -np.inf
        cells = CellTests(np.zeros(1, dtype=np.int64), np.array([gained]), np.array([0, len(seen)]), seen, about[seen])
        start = estimate_inside(table, about, prior=self.law)[0] if self.middle is None else self.middle
        none = AffineTests(np.zeros((0, len(start))), np.zeros(0))
        return find_agreement(self.space, table, none, cells, start).least


def tied_parameters(
    model: ParametricMDP, table: LikelihoodTable | None, box: Mapping[str, tuple[float, float]] | None
) -> TiedParameters | None:
    """Return the parameters of a table of outcomes, if there is one, in a box of the reference if that is known."""
    if table is None:
        return None
    law, space = law_of_space(model.counted), model.counted.space
    if box is None:
        return TiedParameters(table, law, space, None)
    ends = np.array([box[name] for name in space.names])
    within = ParameterSpace(space.names, tuple((Fraction(low), Fraction(high)) for low, high in ends.tolist()))
    return TiedParameters(table, law, within, ends.mean(axis=1))
