"""The events that visits of a choice are trials of, each with one polynomial as its probability.

Taking a choice once is one trial of every event of its row, and at most one of each. Two things would break this if
every expression were counted by itself: a row (f, 1 - f) has one event, not two, and a row that gives f to m successors
has the event "one of these", whose probability is m times f.

**Factors.** In a row g h, g (1 - h), (1 - g) h, (1 - g)(1 - h) the first two successors together have the probability
g, and the first and the third h. Counted by factors, every visit of the row says something about g and about h, and
what it says is linear.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations
from operator import add

import numpy as np
import numpy.typing as npt

from plumdp.model.expressions.arrays import PolynomialArray, number_in, tabulate
from plumdp.model.expressions.interned import PolynomialTable
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import BoolArray, Indices, IntArray, owners, ranges, read_only
from plumdp.model.parametric import ParametricMDP, RowClasses, offsets_of
from plumdp.model.text import number_of, one_line


@dataclass(frozen=True, eq=False)
class Links:
    """The relation of expressions to events, where ``multiple`` times an expression is the probability of an event.

    With ``is_complement`` it is the probability that the event fails. Every unknown expression has at least one link,
    and every event but a factor at least one that is not a complement.
    """

    expression: IntArray  # (n_links)
    event: IntArray  # (n_links)
    multiple: IntArray  # (n_links), at least 1
    is_complement: BoolArray  # (n_links)


@dataclass(frozen=True, eq=False)
class Factors:
    """Events that happen with several transitions of a row, where ``event[i]`` happens with ``transition[i]`` too."""

    transition: IntArray
    event: IntArray


@dataclass(frozen=True, eq=False)
class RowEvents:
    """The events of the distinct rows of a model, where ``factor_event[i]`` happens at ``factor_place[i]`` too."""

    rows: RowClasses
    success: IntArray  # (n_places): the event that happens there, -1 if none of its own
    first_trial: IntArray  # (n_rows + 1)
    tried: IntArray  # the events that row r tries: from first_trial[r] up to first_trial[r + 1]
    factor_place: IntArray
    factor_event: IntArray


@dataclass(frozen=True, eq=False)
class Events:
    """The canonical events of a model, each with one polynomial as its probability, and the visits that try them.

    Choice ``c`` tries the events ``tried[first_trial[c]]`` up to ``tried[first_trial[c + 1]]``, each once per visit.
    These arrays are made when they are asked for. The events of distinct rows say the same in less space.

    >>> from plumdp import case_study
    >>> model = case_study("betting:25").model
    >>> events = find_events(model)
    >>> int(model.expressions.is_unknown.sum()), len(events.polynomials)  # f and 1 - f are one event
    (1282, 641)
    """

    polynomials: tuple[Polynomial, ...]  # (n_events): probability of each event; none constant, no two equal
    by_row: RowEvents
    links: Links

    def __repr__(self) -> str:
        return one_line(self, number_of(len(self), "event"), number_of(self.n_trials, "trial"))

    def __len__(self) -> int:
        return len(self.polynomials)

    @property
    def n_trials(self) -> int:
        """The number of pairs of a choice and an event that it tries."""
        return int(self.by_row.rows.n_choices @ np.diff(self.by_row.first_trial).astype(np.int64))

    @cached_property
    def success(self) -> IntArray:
        """The event that happens with each transition (n_transitions), -1 if none of its own."""
        return read_only(self.by_row.rows.by_transition(self.by_row.success))

    @cached_property
    def _trials(self) -> tuple[IntArray, IntArray]:
        first, tried = self.by_row.rows.by_choice(self.by_row.first_trial, self.by_row.tried)
        return first, read_only(tried)

    @property
    def first_trial(self) -> IntArray:
        """The offsets (n_choices + 1) of the events that each choice tries."""
        return self._trials[0]

    @property
    def tried(self) -> IntArray:
        """The events that choices try (n_trials), index into polynomials."""
        return self._trials[1]

    @cached_property
    def factors(self) -> Factors:
        """The events that happen with several transitions of a row."""
        rows, place = self.by_row.rows, self.by_row.factor_place
        if not len(place):
            return Factors(read_only(np.zeros(0, dtype=np.int32)), read_only(np.zeros(0, dtype=np.int32)))
        row = owners(rows.first)[place]
        order = np.argsort(row, kind="stable")
        first = offsets_of(np.bincount(row, minlength=len(rows)))
        of_choice, item = rows.by_choice(first, order)
        start = np.repeat(rows.first_transition[:-1] - rows.first[rows.number], np.diff(of_choice))
        return Factors(read_only((start + place[item]).astype(np.int32)), read_only(self.by_row.factor_event[item]))

    def choice_of_trial(self) -> IntArray:
        """Return the choice that each entry of ``tried`` belongs to."""
        return owners(self.first_trial)


def find_events(model: ParametricMDP, *, merge_complements: bool = True, factors: bool = False) -> Events:
    """Return the events of a model, or of the one that its rows are counted in.

    Successors of one row with the same expression are one event. Where f never occurs without 1 - f in its row, it is
    the failure of the event 1 - f and no event of its own. Equal polynomials are one event wherever they occur, so that
    the visits of all their rows count together. ``merge_complements=False`` keeps f and 1 - f apart, as in the paper.
    With ``factors``, several successors of a row are an event as well where the sum of their expressions has a lower
    degree than that of any part of them, such as g = g h + g (1 - h). Models with affine expressions have none.

    >>> from plumdp import case_study
    >>> model = case_study("betting:25").model
    >>> len(find_events(model)), len(find_events(model, merge_complements=False))
    (641, 1282)
    >>> model = case_study("parallel:5").model
    >>> len(find_events(model)), len(find_events(model, factors=True))
    (476, 586)
    """
    model = model.counted
    model.expressions.require_polynomials()
    rows = model.rows
    groups = _group(model, rows.representative)
    table, number = _multiples(model, groups)
    partner = np.full(len(table), -1, dtype=np.int32)  # of each polynomial f the number of 1 - f, if they make up a row
    if merge_complements:
        left, right = number[groups.is_pair].reshape(-1, 2).T
        partner[left], partner[right] = right, left
    event_of = _number_events(groups, number, partner)
    event = event_of[number]
    is_trial = _first_of_row(groups.row, event)  # a row with both f and two halves of f tries f once
    success = np.full(rows.first[-1], -1, dtype=np.int32)
    success[groups.place] = np.where(is_trial, event, -1)[groups.group]
    first_trial, tried = _trials_by_row(len(rows), groups.row[is_trial], event[is_trial])
    nothing = read_only(np.zeros(0, dtype=np.int32))
    events = Events(
        tuple(table[i] for i in np.flatnonzero(event_of >= 0)),
        RowEvents(rows, read_only(success), first_trial, tried, nothing, nothing),
        _links(model, groups, number, event_of, partner),
    )
    has_products = not model.expressions.is_affine.all()
    return _add_factors(model, events) if factors and has_products else events


@dataclass(frozen=True, eq=False)
class _RowGroups:
    """The unknown transitions of each distinct row by expression, with the groups of a row one after the other."""

    place: Indices  # (n): the places of unknown transitions
    group: Indices  # (n): the group of each
    row: Indices  # (n_groups)
    expression: Indices  # (n_groups)
    multiple: Indices  # (n_groups): how many transitions
    is_pair: BoolArray  # (n_groups): the row is just two groups, so that their probabilities sum to 1


def _group(model: ParametricMDP, representative: IntArray) -> _RowGroups:
    graph, n_expressions = model.graph, len(model.expressions)
    start, size = graph.first_transition[representative], np.diff(graph.first_transition)[representative]
    transition = ranges(start, start + size)
    row = np.repeat(np.arange(len(representative)), size)
    unknown = model.expressions.is_unknown[model.expression[transition]]
    key = row[unknown] * n_expressions + model.expression[transition[unknown]]
    keys, group, multiple = np.unique(key, return_inverse=True, return_counts=True)
    group_row, expression = np.divmod(keys, n_expressions)
    n_groups = np.bincount(group_row, minlength=len(representative))
    has_constant = np.bincount(row[~unknown], minlength=len(representative)) > 0
    is_pair = ((n_groups == 2) & ~has_constant)[group_row]
    return _RowGroups(np.flatnonzero(unknown), group, group_row, expression, multiple, is_pair)


def _multiples(model: ParametricMDP, groups: _RowGroups) -> tuple[tuple[Polynomial, ...], Indices]:
    """Return the expressions and behind them new multiples, and for each group the number of its polynomial there."""
    table, number = model.expressions.polynomials, groups.expression.copy()
    several = groups.multiple > 1
    if several.any():
        polynomials = PolynomialTable(table)
        single = PolynomialArray(polynomials, number[several].astype(np.int32))
        number[several] = number_in(polynomials, tabulate(operator.mul, single, groups.multiple[several]))
        table = tuple(polynomials)
    return table, number


def _number_events(groups: _RowGroups, number: Indices, partner: IntArray) -> IntArray:
    """Return for each polynomial its event, -1 if it has none of its own.

    Of two partners one is left to be the failure of the other, if it never occurs in a row without it. If both occur
    alone somewhere, both are events.
    """
    occurs, alone = np.zeros((2, len(partner)), dtype=np.bool_)
    occurs[number] = True
    alone[number[~groups.is_pair]] = True
    is_failure = (partner >= 0) & ~alone & (alone[partner] | (partner < np.arange(len(partner))))
    is_event = occurs & ~is_failure
    return np.where(is_event, np.cumsum(is_event) - 1, -1).astype(np.int32)


def _first_of_row(row: Indices, event: IntArray) -> BoolArray:
    """Return for each group whether it tries an event that no group before it in its row tries."""
    first = np.zeros(len(row), dtype=np.bool_)
    first[np.unique(row * (event.max(initial=0) + 2) + event, return_index=True)[1]] = True
    return first & (event >= 0)


def _trials_by_row(n_rows: int, row: Indices, event: IntArray) -> tuple[IntArray, IntArray]:
    """Return the offsets of the trials of each row, and their events, given events and their rows."""
    tried = event[np.argsort(row, kind="stable")]
    return offsets_of(np.bincount(row, minlength=n_rows)), read_only(tried)


def _links(model: ParametricMDP, groups: _RowGroups, number: Indices, event_of: IntArray, partner: IntArray) -> Links:
    unknown = np.flatnonzero(model.expressions.is_unknown)
    several = groups.multiple > 1
    once = np.stack([unknown, np.ones_like(unknown), unknown])
    more = np.unique([groups.expression[several], groups.multiple[several], number[several]], axis=1)
    expression, multiple, polynomial = np.concatenate([once, more], axis=1).astype(np.int32)
    is_complement = event_of[polynomial] < 0
    event = np.where(is_complement, event_of[partner[polynomial]], event_of[polynomial])
    linked = ~is_complement | (partner[polynomial] >= 0)  # not linked: f itself, if it always occurs there twice
    return Links(*(read_only(column[linked]) for column in (expression, event, multiple, is_complement)))


def _add_factors(model: ParametricMDP, events: Events) -> Events:
    """Return the events with the factors of each distinct row, unless the row tries such an event already."""
    number = {polynomial: i for i, polynomial in enumerate(events.polynomials)}
    before, rows = events.by_row, events.by_row.rows
    row, event, happens = _factors_of_rows(model, rows.representative, number)
    if not len(row):
        return events
    all_rows = np.concatenate([owners(before.first_trial), row])
    all_events = np.concatenate([before.tried, event])
    is_trial = _first_of_row(all_rows, all_events)
    first_trial, tried = _trials_by_row(len(rows), all_rows[is_trial], all_events[is_trial])
    trial, position = np.nonzero(happens & is_trial[len(before.tried) :, None])
    place = read_only((rows.first[row[trial]] + position).astype(np.int32))
    by_row = RowEvents(rows, before.success, first_trial, tried, place, read_only(event[trial]))
    return replace(events, polynomials=tuple(number), by_row=by_row)


def _factors_of_rows(
    model: ParametricMDP, representative: IntArray, number: dict[Polynomial, int]
) -> tuple[Indices, IntArray, BoolArray]:
    """Return rows, their events (new ones are entered into ``number``), and the successors each happens with."""
    rows: list[Indices] = [np.zeros(0, dtype=np.int32)]
    events, happens = [np.zeros(0, dtype=np.int32)], [np.zeros((0, MAX_SUCCESSORS), dtype=np.bool_)]
    for sums in lower_sums(model, representative):
        kinds = [_canonical(polynomial, number) for polynomial in sums.probability.table]
        event, is_failure = np.array(kinds, dtype=np.int32).T[:, sums.probability.index]
        rows.append(sums.row)
        events.append(event)
        happens.append(np.zeros((len(event), MAX_SUCCESSORS), dtype=np.bool_))
        happens[-1][:, : len(sums.is_member)] = sums.is_member != is_failure[:, None].astype(np.bool_)
    return np.concatenate(rows), np.concatenate(events), np.concatenate(happens)


def _canonical(polynomial: Polynomial, number: dict[Polynomial, int]) -> tuple[int, bool]:
    """Return the event with this probability and False, or one that fails with it and True.

    A new event is entered if there is none.
    """
    if polynomial not in number and polynomial.complement in number:
        return number[polynomial.complement], True
    return number.setdefault(polynomial, len(number)), False


MAX_SUCCESSORS = 6  # rows with more have too many subsets
_ZERO = 1e-12  # what is left of a sum that cancels, relative to its terms: selects the sums to calculate exactly
_MAX_ENTRIES = 2**22  # coefficients of sums that are held at once


@dataclass(frozen=True, eq=False)
class LowerSum:
    """A subset of the successors of some rows of one length, and its exact probability in each row."""

    row: Indices  # (n)
    is_member: BoolArray  # (n_successors)
    probability: PolynomialArray  # (n)


def lower_sums(model: ParametricMDP, representative: IntArray) -> Iterator[LowerSum]:
    """Yield the subsets of successors whose probability has a lower degree than that of any part of the subset.

    Given is one choice of each distinct row. Sums that say nothing, or nothing new, are left out: those that are
    constant, and complements of single successors and of subsets that were yielded.
    """
    table = PolynomialTable(model.expressions.polynomials)
    first, size = model.graph.first_transition[representative], np.diff(model.graph.first_transition)[representative]
    for n in range(4, MAX_SUCCESSORS + 1):
        rows = np.flatnonzero(size == n)
        expression = model.expression[first[rows][:, None] + np.arange(n)]
        worth = model.expressions.degree[expression].max(axis=1, initial=0) > 1
        rows, expression = rows[worth], expression[worth]
        subsets, is_lower = _find(model.expressions, expression)
        for subset, chosen in zip(subsets, is_lower.T, strict=True):
            if chosen.any():
                parts = [PolynomialArray(table, expression[chosen, i]) for i in subset]
                yield LowerSum(rows[chosen], np.isin(np.arange(n), subset), reduce(add, parts))


def _find(table: ExpressionTable, expression: IntArray) -> tuple[list[tuple[int, ...]], BoolArray]:
    """Return subsets of positions, and for each row (n_rows, n_subsets) whether their sum is to be yielded."""
    n = expression.shape[1]
    subsets = [subset for size in range(1, n - 1) for subset in combinations(range(n), size)]
    number = {subset: i for i, subset in enumerate(subsets)}
    degree = _degrees(table, expression, subsets)
    is_lower = np.zeros(degree.shape, dtype=np.bool_)
    for subset, i in number.items():
        if len(subset) > 1:
            parts = [number[part] for size in range(1, len(subset)) for part in combinations(subset, size)]
            complement = number[tuple(k for k in range(n) if k not in subset)]
            is_lower[:, i] = (degree[:, i] > 0) & (degree[:, i] < degree[:, parts].min(axis=1))
            is_lower[:, i] &= ~is_lower[:, complement]
    return subsets, is_lower


def _degrees(table: ExpressionTable, expression: IntArray, subsets: list[tuple[int, ...]]) -> npt.NDArray[np.int32]:
    """Return the degree of each sum (n_rows, n_subsets), calculated in floats."""
    degree_of = table.monomials.sum(axis=1)
    is_member = np.zeros((len(subsets), expression.shape[1]))
    for i, subset in enumerate(subsets):
        is_member[i, list(subset)] = 1
    degree = np.zeros((len(expression), len(subsets)), dtype=np.int32)
    step = max(1, _MAX_ENTRIES // (len(subsets) * max(len(degree_of), 1)))
    for start in range(0, len(expression), step):
        block = expression[start : start + step]
        terms = table.coefficients[block.ravel()].toarray().reshape(*block.shape, -1)
        sums, sizes = is_member @ terms, is_member @ np.abs(terms)
        degree[start : start + step] = (degree_of * (np.abs(sums) > _ZERO * sizes)).max(axis=2, initial=0)
    return degree
