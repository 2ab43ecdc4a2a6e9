"""Events: what the visits of a choice are trials of, each with one polynomial as its probability.

Taking a choice once is one trial of every event of its row, and at most one of each. Two things would break this if
every expression were counted by itself: a row (f, 1 - f) has one event, not two, and a row that gives f to m successors
has the event "one of these", whose probability is m times f.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace

import numpy as np

from plumdp.model.check import row_classes
from plumdp.model.expressions.arrays import PolynomialArray, number_in, tabulate
from plumdp.model.expressions.interned import PolynomialTable
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.factor_events import MAX_SUCCESSORS, lower_sums
from plumdp.model.graph import BoolArray, Indices, IntArray, owners, ranges, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import number_of, one_line


@dataclass(frozen=True, eq=False)
class Links:
    """What events say about expressions: ``multiple`` times the expression is the probability of the event.

    With ``is_complement`` it is the probability that the event fails. Every unknown expression has at least one link,
    and every event but a factor at least one that is not a complement.
    """

    expression: IntArray  # (n_links)
    event: IntArray  # (n_links)
    multiple: IntArray  # (n_links), at least 1
    is_complement: BoolArray  # (n_links)


@dataclass(frozen=True, eq=False)
class Factors:
    """Events that happen with several transitions of a row: ``event[i]`` happens with ``transition[i]`` too."""

    transition: IntArray
    event: IntArray

    @staticmethod
    def none() -> Factors:
        """Return no factors."""
        return Factors(read_only(np.zeros(0, dtype=np.int32)), read_only(np.zeros(0, dtype=np.int32)))


@dataclass(frozen=True, eq=False)
class Events:
    """Which visits are trials of what: canonical events of a model, each with one polynomial as its probability.

    Choice ``c`` tries the events ``tried[first_trial[c]]`` up to ``tried[first_trial[c + 1]]``, each once per visit.

    >>> from plumdp import case_study
    >>> model = case_study("betting:25").model
    >>> events = find_events(model)
    >>> int(model.expressions.is_unknown.sum()), len(events.polynomials)  # f and 1 - f are one event
    (1282, 641)
    """

    polynomials: tuple[Polynomial, ...]  # (n_events): probability of each event; none constant, no two equal
    success: IntArray  # (n_transitions): the event that happens with this transition, -1 if none of its own
    first_trial: IntArray  # (n_choices + 1)
    tried: IntArray  # (n_trials), index into polynomials
    links: Links
    factors: Factors = field(default_factory=Factors.none)

    def __repr__(self) -> str:
        return one_line(self, number_of(len(self), "event"), number_of(len(self.tried), "trial"))

    def __len__(self) -> int:
        return len(self.polynomials)

    def choice_of_trial(self) -> IntArray:
        """Return the choice that each entry of ``tried`` belongs to."""
        return owners(self.first_trial)


def find_events(model: ParametricMDP, *, merge_complements: bool = True, factors: bool = False) -> Events:
    """Return the events of a model.

    Successors of one row with the same expression are one event. Where f never occurs without 1 - f in its row, it is
    the failure of the event 1 - f and no event of its own. Equal polynomials are one event wherever they occur, so that
    the visits of all their rows count together. ``merge_complements=False`` keeps f and 1 - f apart, as in the paper.
    With ``factors``, several successors of a row are an event as well where the sum of their expressions has a lower
    degree than that of any part of them, such as g = g h + g (1 - h); models with affine expressions have none.

    >>> from plumdp import case_study
    >>> model = case_study("betting:25").model
    >>> len(find_events(model)), len(find_events(model, merge_complements=False))
    (641, 1282)
    >>> model = case_study("parallel:5").model
    >>> len(find_events(model)), len(find_events(model, factors=True))
    (476, 586)
    """
    row_of_choice, representative = row_classes(model)
    groups = _group(model, representative)
    table, number = _multiples(model, groups)
    partner = _partners(groups, number, len(table), merge_complements)
    event_of = _number_events(groups, number, partner)
    event = event_of[number]
    is_trial = _first_of_row(groups.row, event)  # a row with both f and two halves of f tries f once
    success = np.full(model.graph.n_transitions, -1, dtype=np.int32)
    success[groups.transition] = np.where(is_trial, event, -1)[groups.group]
    first_trial, tried = _trials_by_choice(row_of_choice, groups.row[is_trial], event[is_trial])
    events = Events(
        tuple(table[i] for i in np.flatnonzero(event_of >= 0)),
        read_only(success[_same_in_representative(model, representative[row_of_choice])]),
        first_trial,
        tried,
        _links(model, groups, number, event_of, partner),
    )
    return _add_factors(model, events, row_of_choice, representative) if factors else events


@dataclass(frozen=True, eq=False)
class _Groups:
    """The unknown transitions of each distinct row by expression; the groups of a row follow each other."""

    transition: Indices  # (n): the unknown transitions of one choice per distinct row
    group: Indices  # (n): the group of each
    row: Indices  # (n_groups)
    expression: Indices  # (n_groups)
    multiple: Indices  # (n_groups): how many transitions
    is_pair: BoolArray  # (n_groups): the row is just two groups, so that their probabilities sum to 1


def _group(model: ParametricMDP, representative: IntArray) -> _Groups:
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
    return _Groups(transition[unknown], group, group_row, expression, multiple, is_pair)


def _multiples(model: ParametricMDP, groups: _Groups) -> tuple[tuple[Polynomial, ...], Indices]:
    """Return the expressions and behind them new multiples, and for each group the number of its polynomial there."""
    table, number = model.expressions.polynomials, groups.expression.copy()
    several = groups.multiple > 1
    if several.any():
        known = PolynomialTable(table)
        single = PolynomialArray(known, number[several].astype(np.int32))
        number[several] = number_in(known, tabulate(operator.mul, single, groups.multiple[several]))
        table = tuple(known)
    return table, number


def _partners(groups: _Groups, number: Indices, n_polynomials: int, merge_complements: bool) -> IntArray:
    """Return for each polynomial f the number of 1 - f, if they make up a row; otherwise -1."""
    partner = np.full(n_polynomials, -1, dtype=np.int32)
    if merge_complements:
        left, right = number[groups.is_pair].reshape(-1, 2).T
        partner[left], partner[right] = right, left
    return partner


def _number_events(groups: _Groups, number: Indices, partner: IntArray) -> IntArray:
    """Return for each polynomial its event, -1 if it has none of its own.

    Of two partners one is left to be the failure of the other: it must never occur in a row without it. If both occur
    alone somewhere, both are events.
    """
    occurs, alone = np.zeros((2, len(partner)), dtype=np.bool_)
    occurs[number] = True
    alone[number[~groups.is_pair]] = True
    is_failure = (partner >= 0) & ~alone & (alone[partner] | (partner < np.arange(len(partner))))
    is_event = occurs & ~is_failure
    return np.where(is_event, np.cumsum(is_event) - 1, -1).astype(np.int32)


def _first_of_row(row: Indices, event: IntArray) -> BoolArray:
    """Return which groups try an event that no group before them in their row tries."""
    first = np.zeros(len(row), dtype=np.bool_)
    first[np.unique(row * (event.max(initial=0) + 2) + event, return_index=True)[1]] = True
    return first & (event >= 0)


def _same_in_representative(model: ParametricMDP, representative: IntArray) -> Indices:
    """Return for each transition the one at its place in the representative of its choice."""
    first = model.graph.first_transition
    return ranges(first[representative], first[representative] + np.diff(first))


def _trials_by_choice(row_of_choice: IntArray, row: Indices, event: IntArray) -> tuple[IntArray, IntArray]:
    """Return first_trial and tried, given the events of each distinct row and the row of each choice."""
    event = event[np.argsort(row, kind="stable")]
    per_row = np.bincount(row, minlength=row_of_choice.max(initial=-1) + 1)
    first_of_row = np.cumsum(per_row) - per_row
    per_choice = per_row[row_of_choice]
    start = first_of_row[row_of_choice]
    tried = event[ranges(start, start + per_choice)]
    return read_only(np.concatenate([[0], np.cumsum(per_choice)]).astype(np.int32)), read_only(tried)


def _links(model: ParametricMDP, groups: _Groups, number: Indices, event_of: IntArray, partner: IntArray) -> Links:
    unknown = np.flatnonzero(model.expressions.is_unknown)
    several = groups.multiple > 1
    once = np.stack([unknown, np.ones_like(unknown), unknown])
    more = np.unique([groups.expression[several], groups.multiple[several], number[several]], axis=1)
    expression, multiple, polynomial = np.concatenate([once, more], axis=1).astype(np.int32)
    is_complement = event_of[polynomial] < 0
    event = np.where(is_complement, event_of[partner[polynomial]], event_of[polynomial])
    linked = ~is_complement | (partner[polynomial] >= 0)  # not linked: f itself, if it always occurs there twice
    return Links(*(read_only(column[linked]) for column in (expression, event, multiple, is_complement)))


def _add_factors(model: ParametricMDP, events: Events, row_of_choice: IntArray, representative: IntArray) -> Events:
    """Return the events with the factors of each distinct row, unless the row tries such an event already."""
    number = {polynomial: i for i, polynomial in enumerate(events.polynomials)}
    row, event, happens = _factors_of_rows(model, representative, number)
    if not len(row):
        return events
    n_own = np.diff(events.first_trial)[representative]
    own_event = events.tried[ranges(events.first_trial[representative], events.first_trial[representative + 1])]
    all_rows = np.concatenate([np.repeat(np.arange(len(representative)), n_own), row])
    all_events = np.concatenate([own_event, event])
    is_trial = _first_of_row(all_rows, all_events)
    first_trial, tried = _trials_by_choice(row_of_choice, all_rows[is_trial], all_events[is_trial])
    trial, position = np.nonzero(happens & is_trial[len(own_event) :, None])
    first_success, success = _trials_by_choice(row_of_choice, row[trial], np.arange(len(trial), dtype=np.int32))
    transition = np.repeat(model.graph.first_transition[:-1], np.diff(first_success)) + position[success]
    factors = Factors(read_only(transition.astype(np.int32)), read_only(event[trial[success]]))
    return replace(events, polynomials=tuple(number), first_trial=first_trial, tried=tried, factors=factors)


def _factors_of_rows(
    model: ParametricMDP, representative: IntArray, number: dict[Polynomial, int]
) -> tuple[Indices, IntArray, BoolArray]:
    """Return rows, their events (new ones are entered into ``number``), and with which successors each happens."""
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
    """Return the event with this probability and False, or one that fails with it and True; a new one if need be."""
    if polynomial not in number and polynomial.complement in number:
        return number[polynomial.complement], True
    return number.setdefault(polynomial, len(number)), False
