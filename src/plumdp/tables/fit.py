"""The test of a table: whether tied rows have the same probabilities, and whether rows stay the same over time.

The parts of a row are the choices that are tied by it, the data before and after a moment, or the stages between the
moments at which bets were placed, if no others are kept; see ``fit/same_rows.py`` and ``fit/time_tests.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, islice, pairwise
from math import log

import numpy as np

from plumdp.data.counts import TransitionCounts
from plumdp.fit.model_fit import FitTest, ModelFit, TestKind
from plumdp.fit.same_rows import Parts, less_best, log_average, log_mean, over_time, p_value_of
from plumdp.fit.time_tests import TimeChange, log_weights
from plumdp.model.graph import FloatArray, Indices, read_only
from plumdp.model.parametric import ParametricMDP

_NAMED = 30


def table_fit(model: ParametricMDP, counts: TransitionCounts) -> ModelFit:
    """Return the p-value of a table, valid at any time, and the tests that speak against it most.

    Half of the evidence is that of ties, and half that of changes over time, each divided equally among rows.
    """
    rows, is_free = model.rows, model.is_free_row
    members = np.bincount(rows.number, minlength=len(is_free))
    tied, free = np.flatnonzero(is_free & (members > 1)), np.flatnonzero(is_free)
    by_choice = _against_ties(model, counts)[tied]
    changes, where = _over_time(model, counts)
    changes = changes[free] if len(changes) else changes
    first = _first_choice(rows.number, len(is_free))
    tests = [
        *_named(model, "class", "rows tied to that of", by_choice, first[tied]),
        *_named(model, "time", "a change over time of", changes, first[free]),
    ]
    strongest = tuple(sorted(tests, key=lambda test: -test.evidence)[:_NAMED])
    return ModelFit(
        p_value_of(log_mean([by_choice, changes])),
        read_only(np.zeros(0)),
        strongest,
        p_of_time=p_value_of(log_mean([changes]) - log(2)),
        p_without_time=p_value_of(log_mean([by_choice]) - log(2)),
        change=_change(model, counts, int(free[np.argmax(changes)]), where) if len(changes) and len(where) else None,
    )


def _over_time(model: ParametricMDP, counts: TransitionCounts) -> tuple[FloatArray, Indices]:
    """Return ln e of each row against changes over time, and the boundary at which it seems to have changed.

    Each boundary has its weight (Statement W1). Without boundaries, the parts are the stages of the data.
    """
    total, time = counts.counts, counts.time
    if time is None:
        moments = () if counts.pilot is None else counts.pilot.moments
        stages = [after - before for before, after in pairwise([np.zeros_like(total), *moments, total])]
        return _against_stages(model, stages) if moments else np.zeros(0), np.zeros(0, dtype=np.int64)
    if not time.ends:
        return np.zeros(0), np.zeros(0, dtype=np.int64)
    pool = model.rows.sum_by_place
    before = (pool(seen).astype(np.float64) for seen in accumulate(time.seen_in_parts(len(total))))
    return over_time(before, log_weights(time.ends), pool(total).astype(np.float64), model.rows.first)


def _change(model: ParametricMDP, counts: TransitionCounts, row: int, where: Indices) -> TimeChange:
    """Return how a row seems to have changed."""
    rows, graph, time = model.rows, model.graph, counts.time
    assert time is not None
    *_, before = islice(accumulate(time.seen_in_parts(len(counts.counts))), int(where[row]) + 1)
    places = slice(*rows.first[row : row + 2])
    early, late = (rows.sum_by_place(seen)[places] for seen in (before, counts.counts - before))
    early, late = (seen / max(seen.sum(), 1) for seen in (early, late))
    place, choice = int(np.argmax(np.abs(late - early))), int(rows.representative[row])
    target = graph.describe_state(int(graph.successor[graph.first_transition[choice] + place]))
    step = f"the probability that {graph.describe_choice(choice)} leads to {target}"
    return TimeChange(step, time.names[where[row]], float(early[place]), float(late[place]))


def _first_choice(number: Indices, n_rows: int) -> Indices:
    """Return one choice of each row."""
    first = np.zeros(n_rows, dtype=np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    return first


def _against_stages(model: ParametricMDP, stages: Sequence[Indices]) -> FloatArray:
    """Return ln e of each row, its parts being the stages of the data."""
    rows = model.rows
    pooled = [rows.sum_by_place(stage).astype(np.float64) for stage in stages]
    apart, size = np.zeros(len(rows.first) - 1), np.zeros(len(rows.first) - 1)
    for counts in pooled:
        each, terms = log_average(counts, rows.first)
        apart, size = apart + each, size + terms
    return less_best(apart, size, sum(pooled[1:], pooled[0]), rows.first)


def _against_ties(model: ParametricMDP, counts: TransitionCounts) -> FloatArray:
    """Return ln e of each row, its parts being the choices that are tied by it."""
    rows, first = model.rows, model.graph.first_transition
    place = rows.place_of(np.arange(model.graph.n_transitions))[1]
    return Parts(counts.counts.astype(np.float64), first, rows.number, place, rows.first).evidence()


def _named(model: ParametricMDP, kind: TestKind, words: str, evidence: FloatArray, choice: Indices) -> list[FitTest]:
    """Return the strongest tests of a kind, each at its share of the evidence."""
    if not len(evidence):
        return []
    shares = evidence - np.log(2 * len(evidence))
    strongest = np.argsort(-shares, kind="stable")[:_NAMED].tolist()
    where = [model.graph.describe_choice(int(choice[i])) for i in strongest]
    return [
        FitTest(kind, f"{words} {at}", "", 0, float(shares[i]), 0.0) for i, at in zip(strongest, where, strict=True)
    ]
