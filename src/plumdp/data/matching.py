"""From the rows of a log to the transitions of a model, or to the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError
from plumdp.data.columns import ACTION, COUNT, ONLY_ACTION, PLACE, next_columns, state_columns
from plumdp.data.duckdb_engine import Block
from plumdp.data.observations import PartialObservations
from plumdp.data.observing import never_left, self_loops
from plumdp.data.report import KINDS, Kind
from plumdp.model.graph import BoolArray, Graph
from plumdp.model.values import Codes, RowIndex, StateIndex, Texts, Whole, shown, whole

Kinds: TypeAlias = npt.NDArray[np.uint8]
"""Positions in ``KINDS``."""

_PLACES: dict[str, Kind] = {
    "step": "matched",
    "last": "last row",
    "gap": "gap in steps",
    "apart": "gap in steps",  # unless numbers of steps only order the rows
    "duplicate": "repeated step",
    "unplaced": "no episode or step",
}


class Matcher:
    """Finds the transitions of a graph by the values of state variables and the names of actions.

    In a table that was made of other data, ``out_of_table`` is the state that stands for all successors it does not
    have.
    """

    def __init__(
        self,
        graph: Graph,
        action_names: Mapping[str, int] | None = None,
        out_of_table: int | None = None,
        partial: PartialObservations | None = None,
    ) -> None:
        self._graph, self._elsewhere, self._partial = graph, out_of_table, partial
        self._states = StateIndex(graph, "log")
        self._actions = Texts(graph.action_names, action_names or {})
        choice = graph.choice_of_transition()
        edges = [graph.state_of_choice()[choice], graph.action[choice], graph.successor]
        self._edges = RowIndex([graph.n_states, len(graph.action_names), graph.n_states], edges)

    def match(self, block: Block) -> tuple[Kinds, Codes]:
        """Return the kind of each row, and its transition, or -1 if it is not matched."""
        state, is_unknown_state = self.find_states(block, state_columns(self._graph))
        after, is_unknown_after = self.find_states(block, next_columns(self._graph))
        action = self._actions_in(state, block)
        if self._partial is not None:
            self._partial.seen(block, next_columns(self._graph), action, after, is_unknown_after)
        transition = self._edges.find([state, action, after])
        if self._elsewhere is not None:
            lost = np.flatnonzero(transition < 0)  # also where the next state cannot be read: it may be any
            transition[lost] = self._edges.find([state[lost], action[lost], np.full(len(lost), self._elsewhere)])
            went = lost[transition[lost] >= 0]
            after[went], is_unknown_after[went] = self._elsewhere, False
        kinds = np.zeros(len(transition), dtype=np.uint8)
        reasons: list[tuple[BoolArray, Kind]] = [
            (transition < 0, "impossible transition"),
            (action < 0, "unknown action"),
            ((state < 0) | (after < 0), "unreadable state"),
            (is_unknown_after, "unknown next state"),
        ]
        for applies, kind in reasons:  # the last that applies is the one that is told
            kinds[applies] = KINDS.index(kind)
        is_step = np.ones(len(kinds), dtype=np.bool_)
        if PLACE in block:
            place = places(block[PLACE])
            is_step = place == 0
            kinds[~is_step] = place[~is_step]
            kinds[self._find_censored(kinds, state, action, block)] = KINDS.index("censored")
        if self._elsewhere is None:
            # a step that may lead everywhere shows nothing impossible, but the table has no row for its action
            is_outside = (kinds == KINDS.index("impossible transition")) & self._leads_everywhere[state]
            kinds[is_unknown_state] = KINDS.index("unknown state")  # wherever in a run, the model does not have it
        else:
            is_outside = is_step & (is_unknown_state | (state >= 0)) & self._actions.is_readable(block[ACTION])
        kinds[is_outside & (self._choices.find([state, action]) < 0)] = KINDS.index("outside the table")
        # a state that is never left, such as an end of a table, was left, if by nothing or by what is not in the table
        went_on = is_step & (state >= 0) & (after != state) & ((after >= 0) | is_unknown_after)
        is_blank = ~self._actions.is_readable(block[ACTION])
        kinds[went_on & self._is_never_left[state] & (is_blank | (kinds == KINDS.index("outside the table")))] = (
            KINDS.index("impossible transition")
        )
        transition[kinds > 0] = -1
        self._refuse_ambiguous(transition)
        return kinds, transition

    def find_choices(self, block: Block) -> tuple[Codes, Codes]:
        """Return the states of rows, and their choices, or -1 where the model does not have them."""
        state, _ = self.find_states(block, state_columns(self._graph))
        return state, self._choices.find([state, self._actions_in(state, block)])

    def find_actions(self, block: Block) -> Codes:
        """Return the actions of rows, or -1 where the model has no action of that name."""
        return self._actions.code(block[ACTION])

    def _actions_in(self, state: Codes, block: Block) -> Codes:
        """Return the actions of rows in these states, which need not be named in a Markov chain."""
        action, graph = self.find_actions(block), self._graph
        if graph.is_chain:
            unnamed = np.flatnonzero((block[ACTION] == ONLY_ACTION) & (state >= 0))
            action[unnamed] = graph.action[state[unnamed]]  # choices are numbered as states are
        return action

    def action_numbers(self, block: Block) -> set[Any]:
        """Return the actions in a block that are whole numbers and are not names."""
        values = {value for value in block[ACTION].tolist() if isinstance(value, str | int | float)}
        values = {value for value in values if whole(value) is not None and _is_number(value)}
        column = np.empty(len(values), dtype=np.object_)
        column[:] = [*values]
        return {value for value, code in zip(values, self._actions.code(column), strict=True) if code < 0}

    def take_numbers(self) -> None:
        """Read whole numbers as actions from now on, in the order of the model."""
        self._actions = replace(self._actions, others=numbered_actions(self._graph))

    @cached_property
    def _leads_everywhere(self) -> BoolArray:
        """For each state whether all of its choices may lead to all states, as in closed tables from logs."""
        graph = self._graph
        fewest = np.minimum.reduceat(np.diff(graph.first_transition), graph.first_choice[:-1])
        return np.asarray(fewest == graph.n_states)

    @cached_property
    def _is_never_left(self) -> BoolArray:
        """For each state whether all of its choices stay where they are."""
        return never_left(self._graph)

    @cached_property
    def _choices(self) -> RowIndex:
        graph = self._graph
        return RowIndex([graph.n_states, len(graph.action_names)], [graph.state_of_choice(), graph.action])

    def _find_censored(self, kinds: Kinds, state: Codes, action: Codes, block: Block) -> Codes:
        """Return the ends of runs whose action does more than stay where it is: its outcome is not shown."""
        is_last = (kinds == KINDS.index("last row")) & (state >= 0)
        if self._partial is not None:
            return np.flatnonzero(is_last & self._partial.are_planned(block, state))
        last = np.flatnonzero(is_last & (action >= 0))
        if not len(last):
            return last
        choice = self._choices.find([state[last], action[last]])
        return np.asarray(last[(choice >= 0) & ~self_loops(self._graph)[choice]])

    def find_states(self, block: Block, columns: list[str]) -> tuple[Codes, BoolArray]:
        """Return the states, or -1, and which rows show a state that the model does not have.

        Such a row has a value that no state has, or all its values can be read.
        """
        codes = self._states.codes([block[name] for name in columns])
        state = self._states.rows.find(codes)
        lost = np.flatnonzero(state < 0)
        is_unknown = np.zeros(len(state), dtype=np.bool_)
        is_outside, is_read = np.zeros(len(lost), dtype=np.bool_), np.ones(len(lost), dtype=np.bool_)
        for variable, name, code in zip(self._states.variables, columns, codes, strict=True):
            readable = variable.is_readable(block[name][lost])
            is_outside |= readable & (code[lost] < 0)
            is_read &= readable
        is_unknown[lost] = is_outside | is_read
        if self._elsewhere is not None:  # which by its values is a state, and so are those after it
            is_unknown |= state >= self._elsewhere
            state[is_unknown] = -1
        return state, is_unknown

    def _refuse_ambiguous(self, transition: Codes) -> None:
        """Refuse rows that several choices of a state explain, as they have one name and a successor in common."""
        if not len(self._edges.repeated):
            return
        ambiguous = np.intersect1d(transition, self._edges.repeated)
        if len(ambiguous):
            graph, example = self._graph, int(ambiguous[0])
            raise DataError(
                f"{graph.describe_choice(graph.choice_of(example))}: several choices have this name and lead to "
                f"({graph.describe_state(int(graph.successor[example]))}), so that a log cannot tell them apart; "
                "give them different names in the model"
            )


def numbered_actions(graph: Graph) -> dict[str, int]:
    """Return which action each number stands for; none if the order of the actions is not clear.

    It is if one state has all actions that do something, and every state has its own in the same order. What only loops
    comes last, as in environments that are never sent it. Where names are numbers, a number is a name.
    """
    if any(whole(name) is not None for name in graph.action_names):
        return {}
    does_more = ~self_loops(graph)
    sent, states, actions = np.unique(graph.action[does_more]), graph.state_of_choice()[does_more], graph.action
    is_same_state, ascends = np.diff(graph.state_of_choice()) == 0, np.diff(actions) > 0
    has_all = len(sent) > 0 and np.bincount(states).max() == len(sent)
    is_clear = has_all and int(sent[-1]) == len(sent) - 1 and bool(ascends[is_same_state].all())
    return {str(number): number for number in sent.tolist()} if is_clear else {}


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and (not isinstance(value, str) or value.strip()[-1:] in "0123456789.")


def places(values: npt.NDArray[np.object_]) -> Kinds:
    """Return the kinds of rows by their place in a run."""
    code = Texts(tuple(_PLACES)).code(values)
    if (code < 0).any():
        example = values[int(np.argmax(code < 0))]
        raise DataError(f"column {PLACE}: {example!r} is none of {', '.join(_PLACES)}")
    return np.array([KINDS.index(kind) for kind in _PLACES.values()], dtype=np.uint8)[code]


def row_counts(block: Block, column: str = COUNT) -> Codes:
    """Return the number of occurrences of each row; a ready-made count must be a whole number."""
    n = Whole(0, 1 << 62).code(block[column])
    if (n < 0).any():
        example = shown(block[column].tolist()[int(np.argmax(n < 0))])
        raise DataError(f"column {column}: {example} is not a count; counts are whole numbers from 0")
    return n
