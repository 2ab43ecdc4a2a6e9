"""The test of a table: whether tied rows have the same probabilities, and whether rows stay the same over time.

For a row whose counts have several parts (its choices, or stages of the data), let e be the probability of all that was
seen if each part has a distribution of its own, on average over distributions by Jeffreys' prior, divided by the
largest that it has with one distribution for all. At the truth this is at most a nonnegative martingale that starts at
one, so the probability that it ever reaches 1 / p is at most p (Ville 1939), and so it is for an average over rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from plumdp.base.rounding import UNDERFLOW, UP
from plumdp.data.counts import TransitionCounts
from plumdp.fit.model_fit import FitTest, ModelFit, TestKind
from plumdp.model.graph import FloatArray, Indices, read_only
from plumdp.model.parametric import ParametricMDP

_PRIOR = 0.5
_ROUNDING = 1e-13  # relative to the sum of all terms of a logarithm
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
    evidence = _log_mean([by_choice, over_time])
    p_value = min(1.0, max(float(np.exp(-max(evidence, 0.0))) * UP, UNDERFLOW))
    strongest = tuple(sorted(tests, key=lambda test: -test.evidence)[:_NAMED])
    return ModelFit(p_value, read_only(np.zeros(0)), strongest)


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
        each, terms = _log_average(counts, rows.first)
        apart, size = apart + each, size + terms
    return _less_best(apart, size, sum(pooled[1:], pooled[0]), rows.first)


def _against_ties(model: ParametricMDP, counts: TransitionCounts) -> FloatArray:
    """Return ln e of each row, its parts being the choices that are tied by it."""
    rows, first = model.rows, model.graph.first_transition
    each, terms = _log_average(counts.counts.astype(np.float64), first)
    apart = np.bincount(rows.number, each, len(rows.first) - 1).astype(np.float64)
    size = np.bincount(rows.number, terms, len(rows.first) - 1).astype(np.float64)
    return _less_best(apart, size, rows.sum_by_place(counts.counts).astype(np.float64), rows.first)


def _log_average(counts: FloatArray, first: Indices) -> tuple[FloatArray, FloatArray]:
    """Return the logarithm of the average probability of the counts of each row, and the size of its terms."""
    from scipy.special import gammaln

    starts, n_places = first[:-1], np.diff(first)
    visits = np.add.reduceat(counts, starts)
    of_places = np.add.reduceat(gammaln(counts + _PRIOR), starts)
    of_row = gammaln(visits + _PRIOR * n_places)
    fixed = gammaln(_PRIOR * n_places) - n_places * gammaln(_PRIOR)
    size = np.add.reduceat(np.abs(gammaln(counts + _PRIOR)), starts) + np.abs(of_row) + np.abs(fixed)
    return np.asarray(fixed + of_places - of_row), np.asarray(size)


def _less_best(apart: FloatArray, size: FloatArray, counts: FloatArray, first: Indices) -> FloatArray:
    """Return logarithms of averages less those of the largest probability with one distribution, from below."""
    starts = first[:-1]
    owner = np.repeat(np.arange(len(starts)), np.diff(first))
    visits = np.add.reduceat(counts, starts)[owner]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(counts > 0, counts * np.log(counts / visits), 0.0)
    best = np.add.reduceat(terms, starts)
    return np.asarray(apart - best - _ROUNDING * (size + np.abs(best)))


def _log_mean(parts: Sequence[FloatArray]) -> float:
    """Return the logarithm of the mean over parts of the means of exp, parts without any test being ones."""
    from scipy.special import logsumexp

    means = [logsumexp(part) - np.log(len(part)) if len(part) else 0.0 for part in parts]
    return float(logsumexp(means) - np.log(len(parts)))


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
