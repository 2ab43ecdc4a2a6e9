"""Maximal end components, in which the agent can stay forever if nature cannot remove edges."""

from __future__ import annotations

import numpy as np

from plumdp.model.graph import BoolArray, Graph, Indices, IntArray, ranges
from plumdp.solver import graph_kernels
from plumdp.solver.end_component_kernels import N_LOST, N_PARTS, Parts, Rows, refine

_BUDGET = 256  # steps of a search for a disconnected set of states


def end_components(graph: Graph, allowed: BoolArray) -> tuple[IntArray, BoolArray]:
    """Return the number of each state's maximal end component, or -1, and the rows that make up the components.

    An end component is a set of states and allowed rows of theirs that lead to all of its states and to no other. We
    split into strongly connected parts and drop the rows that leave their part, until there are none. Only parts that
    may be disconnected are split again. States that separate one by one, as along a border, are found by small searches
    from where rows were dropped (as in Chatterjee and Henzinger, 2011).
    """
    rows, parts = _start(graph, allowed)
    component = np.full(graph.n_states, -1, dtype=np.int64)
    n_numbers = 0
    states = np.flatnonzero(parts.part >= 0)
    while len(states):
        number, leaving = _strong_parts(rows, states)
        _set_parts(parts, states, number)
        refine(leaving, _BUDGET, rows, parts)
        component[states] = np.where(parts.part[states] < 0, -1, n_numbers + parts.part[states])
        n_numbers += parts.counters[N_PARTS]
        # only open parts may be disconnected
        states = states[(parts.part[states] >= 0) & parts.is_open[parts.part[states]]]
    is_inside = component >= 0
    component[is_inside] = np.unique(component[is_inside], return_inverse=True)[1]
    return component.astype(np.int32), rows.inner


def _start(graph: Graph, allowed: BoolArray) -> tuple[Rows, Parts]:
    """Return the rows that are left when those that may lead to a state without rows are dropped, again and again.

    With them comes the partition into one part of all states.
    """
    n_states, n_choices, n_transitions = graph.n_states, graph.n_choices, graph.n_transitions
    offset, incoming = np.zeros(n_states + 1, dtype=np.int64), np.empty(n_transitions, dtype=np.int32)
    every_choice = np.arange(n_choices + 1, dtype=np.int32)
    graph_kernels.predecessors(every_choice, graph.first_transition, graph.successor, offset, incoming)
    source = graph.state_of_choice()
    n_inner = np.bincount(source[allowed], minlength=n_states)
    rows = Rows(
        graph.first_choice, graph.first_transition, graph.successor, source, offset, incoming, allowed.copy(), n_inner
    )
    parts = Parts(
        part=np.empty(n_states, dtype=np.int32),
        size=np.empty(2 * n_states, dtype=np.int64),
        is_open=np.empty(2 * n_states, dtype=np.bool_),
        lost=np.empty(n_states, dtype=np.int32),
        events=np.empty(n_choices + n_transitions, dtype=np.int32),
        mark=np.zeros(n_states, dtype=np.int64),
        queue=np.empty(n_states, dtype=np.int32),
        counters=np.zeros(4, dtype=np.int64),
    )
    _set_parts(parts, np.arange(n_states), np.zeros(n_states, dtype=np.int32))
    lost = np.flatnonzero(n_inner == 0)
    parts.lost[: len(lost)], parts.counters[N_LOST] = lost, len(lost)
    refine(np.empty(0, dtype=np.int64), -1, rows, parts)
    return rows, parts


def _set_parts(parts: Parts, states: Indices, number: IntArray) -> None:
    n_parts = int(number.max()) + 1
    parts.part[states] = number
    parts.size[:n_parts] = np.bincount(number, minlength=n_parts)
    parts.is_open[:n_parts] = False
    parts.counters[N_PARTS] = n_parts


def _strong_parts(rows: Rows, states: Indices) -> tuple[IntArray, Indices]:
    """Return the number of each state's strongly connected part, and the inner rows that leave theirs."""
    n_states = len(states)
    position = np.empty(len(rows.n_inner), dtype=np.int32)
    position[states] = np.arange(n_states, dtype=np.int32)
    choices = ranges(rows.first_choice[states], rows.first_choice[states + 1])
    choices = choices[rows.inner[choices]]
    start, end = rows.first[choices], rows.first[choices + 1]
    target = position[rows.successor[ranges(start, end)]]
    first = np.concatenate([[0], np.cumsum(end - start)])
    first_choice = np.concatenate([[0], np.cumsum(rows.n_inner[states])])
    number = np.full(n_states, -1, dtype=np.int32)
    everywhere, order = np.ones(n_states, dtype=np.bool_), np.empty(n_states, dtype=np.int32)
    graph_kernels.strong_components(first_choice, first, target, everywhere, order, number)
    of_transition = np.repeat(np.repeat(number, rows.n_inner[states]), end - start)
    leaves = np.logical_or.reduceat(number[target] != of_transition, first[:-1])
    return number, choices[leaves]
