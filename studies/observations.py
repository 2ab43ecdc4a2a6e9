"""Trials and successes of events, and the weight of a visit in least squares.

For each event e that a visit counts, with probability f[e] = c[e] + b[e]·v, it adds w b[e] (Y[e] - f[e]) to the noise
z and w b[e] b[e]ᵀ to the matrix A. The bound on the noise (see ``least_squares``) asks that, given the past,
E exp(x·z) <= exp(x·A x / 8) for every x. Which weights w allow that? Let a[e] = x·b[e].

*Events of one visit, however they depend on each other.* Between two successors, x·z differs by w Σ ±a[e] over the
events that tell them apart. If these are at most h, the square of that is at most w² h Σ a[e]² (Cauchy–Schwarz), and
by Hoeffding's lemma ln E exp(x·z) <= w² h Σ a[e]² / 8. So w = 1/h will do. For outcomes that exclude each other h is
two: one of them happens instead of another. Both sides of a coin count half, which is like one of them in full.

*Events that are independent.* In a row g h, g (1 - h), (1 - g) h, (1 - g)(1 - h) both g and h can be seen, and
E exp(x·z) is the product of that for g and that for h. So each group of such events has an h of its own, and here both
count in full. Independence is an identity of polynomials, tested exactly, and holds whatever the true point is.

Independent groups of affine events that tell all successors apart are counted instead of the outcomes. In all other
rows the outcomes are, whose probabilities may have products of parameters: these are variables like parameters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, product
from math import prod
from operator import add
from typing import NamedTuple

import numpy as np

from plumdp.confidence.tied_rows import find_tied_rows
from plumdp.data.counts import TransitionCounts
from plumdp.model.events import Events, find_events
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import BoolArray, FloatArray, IntArray, owners, read_only, sum_by
from plumdp.model.parametric import ParametricMDP


@dataclass(frozen=True, eq=False)
class Observations:
    """Trials of events whose probabilities are ``constants + coefficients @ variables``, and how many were successes.

    Variables are products of powers of the parameters. The parameters themselves come first.
    """

    exponents: IntArray  # (d, n_parameters): the powers that make up each variable
    constants: FloatArray  # (n)
    coefficients: FloatArray  # (n, d), to the nearest float
    trials: FloatArray  # (n)
    successes: FloatArray  # (n)


def observations(model: ParametricMDP, counts: TransitionCounts) -> Observations:
    """Return events of all rows, with trials and successes that count for as much as the bound on the noise allows.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("parallel:5")
    >>> seen = observations(study.model, simulate(study.model, study.true_point, 100, rng=1, max_steps=6))
    >>> len(seen.exponents)  # rows are those of two independent coins, and need no variable but the parameters
    2
    """
    graph, rows = model.graph, find_tied_rows(model)
    events = _independent_events(model, counts)
    others = np.where(events.is_choice[graph.choice_of_transition()], 0, counts.counts)
    visits, seen = rows.pool(TransitionCounts(graph, others, counts.sampling))
    is_left = np.zeros(len(visits), dtype=np.bool_)
    is_left[rows.class_of_choice[~events.is_choice & (rows.class_of_choice >= 0)]] = True
    outcomes = np.flatnonzero(np.repeat(is_left, np.diff(rows.first)))
    polynomials = [*(rows.outcomes[j] for j in outcomes), *events.polynomials]
    return observed(
        ExpressionTable.build(polynomials, model.space.names),
        np.append(np.repeat(visits, np.diff(rows.first))[outcomes] / 2, events.trials),
        np.append(seen[outcomes] / 2, events.successes),
    )


def observed(table: ExpressionTable, trials: FloatArray, successes: FloatArray) -> Observations:
    """Return trials of the expressions of a table, as affine in the parameters and in what products there are."""
    n = len(table.names)
    degree = table.monomials.sum(axis=1)
    products = np.flatnonzero(degree > 1)
    exponents = np.vstack([np.eye(n, dtype=np.int32), table.monomials[products]]).astype(np.int32)
    column = np.where(degree > 1, n + np.cumsum(degree > 1) - 1, table.monomials.argmax(axis=1) if n else 0)
    forms = np.zeros((len(table), len(exponents) + 1))
    row = owners(table.first_term)
    forms[row, np.where(degree > 0, column, len(exponents))[table.monomial]] = table.coefficient
    return Observations(read_only(exponents), forms[:, -1], np.ascontiguousarray(forms[:, :-1]), trials, successes)


class _IndependentEvents(NamedTuple):
    """Events that are counted instead of the outcomes of some rows."""

    is_choice: BoolArray  # (n_choices): which rows
    polynomials: list[Polynomial]  # (n_events)
    trials: FloatArray  # (n_events)
    successes: FloatArray  # (n_events)


def _independent_events(model: ParametricMDP, counts: TransitionCounts) -> _IndependentEvents:
    is_choice = np.zeros(model.graph.n_choices, dtype=np.bool_)
    if model.expressions.is_affine.all():
        return _IndependentEvents(is_choice, [], np.zeros(0), np.zeros(0))
    events = find_events(model, factors=True)
    divisor = _divisors(model, events)
    is_choice[events.choice_of_trial()[divisor > 0]] = True
    counted = np.unique(events.tried[divisor > 0])
    trials, successes = _pool(events, counts, divisor)
    return _IndependentEvents(is_choice, [events.polynomials[e] for e in counted], trials[counted], successes[counted])


def _pool(events: Events, counts: TransitionCounts, divisor: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return trials and successes of each event; a visit counts one over the divisor of its trial."""
    n, choice = len(events), events.choice_of_trial()
    happens = np.flatnonzero(events.success >= 0)
    transition = np.concatenate([happens, events.factors.transition])
    event = np.concatenate([events.success[happens], events.factors.event])
    keys = choice.astype(np.int64) * n + events.tried
    order = np.argsort(keys)
    own = counts.graph.choice_of_transition()[transition].astype(np.int64) * n + event
    of_success = divisor[order[np.searchsorted(keys, own, sorter=order)]]
    trials, successes = np.zeros((2, n))
    for h in np.unique(divisor[divisor > 0]).tolist():  # whole numbers are added up first: no rounding but here
        trials += sum_by(events.tried, counts.visits[choice] * (divisor == h), n) / h
        successes += sum_by(event, counts.counts[transition] * (of_success == h), n) / h
    return trials, successes


class _EventRow(NamedTuple):
    """A row some of whose successors together are an event."""

    choice: int
    expressions: list[Polynomial]  # of its successors
    tried: list[Polynomial]  # its events
    happens: BoolArray  # (n_successors, n_events)


def _divisors(model: ParametricMDP, events: Events) -> IntArray:
    """Return for each trial the number h of the proof, or zero if it is not counted."""
    row_of_choice, representative = model.rows.number, model.rows.representative
    first, per_choice = events.first_trial, np.diff(events.first_trial)
    divisor = np.zeros(len(events.tried), dtype=np.int32)
    for row in _rows_with_factors(model, events, representative):
        divisor[first[row.choice] : first[row.choice + 1]] = _divisors_of_row(row)
    same = np.repeat(first[representative[row_of_choice]] - first[:-1], per_choice)
    return divisor[np.arange(len(divisor)) + same]


def _rows_with_factors(model: ParametricMDP, events: Events, representative: IntArray) -> Iterator[_EventRow]:
    graph, factors = model.graph, events.factors
    choice_of = graph.choice_of_transition()[factors.transition]
    order = np.argsort(choice_of, kind="stable")
    start = np.searchsorted(choice_of[order], np.arange(graph.n_choices + 1))
    for choice in representative[np.diff(start)[representative] > 0].tolist():
        first, last = graph.first_transition[choice], graph.first_transition[choice + 1]
        tried = events.tried[events.first_trial[choice] : events.first_trial[choice + 1]]
        happens = events.success[first:last, None] == tried
        own = order[start[choice] : start[choice + 1]]
        column = {event: i for i, event in enumerate(tried.tolist())}
        happens[factors.transition[own] - first, [column[event] for event in factors.event[own].tolist()]] = True
        expressions = [model.expressions.polynomials[f] for f in model.expression[first:last]]
        yield _EventRow(choice, expressions, [events.polynomials[e] for e in tried], happens)


def _divisors_of_row(row: _EventRow) -> IntArray:
    """Return the number h of each affine event if these form independent groups and say all, otherwise zeros."""
    divisor = np.zeros(len(row.tried), dtype=np.int32)
    affine = np.flatnonzero([f.is_affine for f in row.tried])
    kinds = row.happens[:, affine].tolist()
    if len(set(map(tuple, kinds))) == len(kinds):
        groups = independent_groups(row.expressions, [row.tried[e] for e in affine], kinds)
        for group in groups if len(groups) > 1 else []:
            divisor[affine[group]] = _most_apart([tuple(kind[e] for e in group) for kind in kinds])
    return divisor


def independent_groups(
    row: Sequence[Polynomial], events: Sequence[Polynomial], happens: Sequence[Sequence[bool]]
) -> list[list[int]]:
    """Return the events of a row in groups that are independent of each other at every point.

    ``happens[i][e]`` says whether event ``e``, which has the probability ``events[e]``, happens with successor ``i``.
    Where independence cannot be shown, all events are one group.

    >>> from plumdp import parameters
    >>> g, h = parameters("g", "h")
    >>> happens = [(True, True), (True, False), (False, True), (False, False)]
    >>> independent_groups([g * h, g * (1 - h), (1 - g) * h, (1 - g) * (1 - h)], [g, h], happens)
    [[0], [1]]
    >>> independent_groups([g / 2, g / 2, h / 2, 1 - g - h / 2], [g, (g + h) / 2], happens)
    [[0, 1]]
    """
    groups: list[list[int]] = []
    for new, probability in enumerate(events):
        both = [_sum(row, [i for i, kind in enumerate(happens) if kind[e] and kind[new]]) for e in range(new)]
        tied = [group for group in groups if any(both[e] != events[e] * probability for e in group)]
        groups = [group for group in groups if group not in tied] + [[*chain(*tied), new]]
    is_shown = len(groups) == len(events) == 2 or _factorise(row, happens, groups)  # two single events: seen above
    return groups if is_shown else [list(range(len(events)))]


def _factorise(row: Sequence[Polynomial], happens: Sequence[Sequence[bool]], groups: list[list[int]]) -> bool:
    """Return whether the probability of whatever happens in all groups is the product of those in each."""
    parts = []
    for group in groups:
        kinds: dict[tuple[bool, ...], set[int]] = {}
        for i, kind in enumerate(happens):
            kinds.setdefault(tuple(kind[e] for e in group), set()).add(i)
        parts.append([(members, _sum(row, members)) for members in kinds.values()])
    everything = set(range(len(row)))
    return all(
        _sum(row, everything.intersection(*(members for members, _ in chosen))) == prod(f for _, f in chosen)
        for chosen in product(*parts)
    )


def _sum(row: Sequence[Polynomial], members: Collection[int]) -> Polynomial:
    return reduce(add, (row[i] for i in members)) if members else Polynomial(0)


def _most_apart(kinds: list[tuple[bool, ...]]) -> int:
    """Return the largest number of events that tell two successors apart."""
    return max(sum(a != b for a, b in zip(one, other, strict=True)) for one in kinds for other in kinds)
