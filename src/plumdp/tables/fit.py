"""The test of a table: whether tied rows have the same probabilities, and whether rows stay the same over time.

The parts of a row are the choices that are tied by it, or the stages of the data; see ``fit/same_rows.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from plumdp.data.counts import TransitionCounts
from plumdp.fit.model_fit import FitTest, ModelFit, TestKind
from plumdp.fit.same_rows import Parts, less_best, log_average, log_mean, p_value_of
from plumdp.model.graph import FloatArray, Indices, read_only
from plumdp.model.parametric import ParametricMDP

_NAMED = 30


def table_fit(model: ParametricMDP, counts: TransitionCounts) -> ModelFit:
    """Return the p-value of a table, valid at any time, and the tests that speak against it most.

    Half of the evidence is that of ties, and half that of changes over time, each divided equally among rows.
    """
    rows = model.rows
    moments = () if counts.pilot is None else counts.pilot.moments
    stages = [after - before for before, after in pairwise([np.zeros_like(counts.counts), *moments, counts.counts])]
    is_free = model.is_free_row
    members = np.bincount(rows.number, minlength=len(is_free))
    tied, free = np.flatnonzero(is_free & (members > 1)), np.flatnonzero(is_free)
    by_choice = _against_ties(model, counts)[tied]
    over_time = _against_stages(model, stages)[free] if len(stages) > 1 else np.zeros(0)
    first = _first_choice(rows.number, len(is_free))
    tests = [
        *_named(model, "class", "rows tied to that of", by_choice, first[tied]),
        *_named(model, "drift", "a change over time of", over_time, first[free]),
    ]
    evidence = log_mean([by_choice, over_time])
    strongest = tuple(sorted(tests, key=lambda test: -test.evidence)[:_NAMED])
    return ModelFit(p_value_of(evidence), read_only(np.zeros(0)), strongest)


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
