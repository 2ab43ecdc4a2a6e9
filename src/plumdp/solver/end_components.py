"""End components: where the agent can stay for ever in a graph whose edges nature cannot remove."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.model.graph import BoolArray, Graph, Indices, IntArray
from plumdp.solver import end_component_kernels, graph_kernels


def end_components(graph: Graph, allowed: BoolArray) -> tuple[IntArray, BoolArray]:
    """Return the number of each state's maximal end component, or -1, and the rows that make up the components.

    An end component is a set of states and allowed rows of theirs that lead to all of its states and to no other. We
    split into strongly connected parts and drop the rows that leave their part, until there are none; only parts that
    lost a row are looked at again.
    """
    stay = _start(graph, allowed)
    component = np.full(graph.n_states, -1, dtype=np.int32)
    n_parts = 0
    states = np.flatnonzero(stay.inside)
    while len(states):
        part, leaving = _strong_parts(graph, stay, states)
        component[states] = n_parts + part
        n_parts += part.max() + 1
        is_broken = np.zeros(n_parts, dtype=np.bool_)
        is_broken[component[stay.state_of_choice[leaving]]] = True
        _drop(stay, leaving)
        states = states[is_broken[component[states]] & stay.inside[states]]
    component[~stay.inside] = -1
    component[stay.inside] = np.unique(component[stay.inside], return_inverse=True)[1]
    return component, stay.inner


@dataclass(frozen=True, eq=False)
class _Stay:
    """Rows with which the agent may still be able to stay; the last three arrays shrink in place."""

    state_of_choice: IntArray
    incoming: tuple[Indices, IntArray]  # offset per state, and the choices with a transition to it
    inner: BoolArray  # (n_choices)
    n_inner: Indices  # (n_states)
    inside: BoolArray  # (n_states): has inner rows


def _start(graph: Graph, allowed: BoolArray) -> _Stay:
    """Return the rows that are left when those that may lead to a state without rows are dropped, again and again."""
    offset = np.zeros(graph.n_states + 1, dtype=np.int64)
    incoming = np.empty(graph.n_transitions, dtype=np.int32)
    every_choice = np.arange(graph.n_choices + 1, dtype=np.int32)
    graph_kernels.predecessors(every_choice, graph.first_transition, graph.successor, offset, incoming)
    source = graph.state_of_choice()
    n_inner = np.bincount(source[allowed], minlength=graph.n_states)
    stay = _Stay(source, (offset, incoming), allowed.copy(), n_inner, np.ones(graph.n_states, dtype=np.bool_))
    _take_out(stay, np.flatnonzero(n_inner == 0))
    return stay


def _drop(stay: _Stay, choices: Indices) -> None:
    stay.inner[choices] = False
    sources, counts = np.unique(stay.state_of_choice[choices], return_counts=True)
    stay.n_inner[sources] -= counts
    _take_out(stay, sources[stay.n_inner[sources] == 0])


def _take_out(stay: _Stay, states: Indices) -> None:
    queue = np.empty(len(stay.inside), dtype=np.int32)
    queue[: len(states)] = states
    end_component_kernels.peel(
        queue, len(states), stay.state_of_choice, *stay.incoming, stay.inner, stay.n_inner, stay.inside
    )


def _strong_parts(graph: Graph, stay: _Stay, states: Indices) -> tuple[IntArray, Indices]:
    """Return the number of each state's strongly connected part, and the inner rows that leave theirs."""
    n_states = len(states)
    position = np.empty(graph.n_states, dtype=np.int32)
    position[states] = np.arange(n_states, dtype=np.int32)
    choices = ranges(graph.first_choice[states], graph.first_choice[states + 1])
    choices = choices[stay.inner[choices]]
    start, end = graph.first_transition[choices], graph.first_transition[choices + 1]
    target = position[graph.successor[ranges(start, end)]]
    first_row = np.concatenate([[0], np.cumsum(end - start)])
    n_rows = np.bincount(position[stay.state_of_choice[choices]], minlength=n_states)
    first_choice = np.concatenate([[0], np.cumsum(n_rows)])
    part = np.full(n_states, -1, dtype=np.int32)
    everywhere, order = np.ones(n_states, dtype=np.bool_), np.empty(n_states, dtype=np.int32)
    graph_kernels.strong_components(first_choice, first_row, target, everywhere, order, part)
    part_of_row = np.repeat(part, n_rows)
    leaves = np.logical_or.reduceat(part[target] != np.repeat(part_of_row, end - start), first_row[:-1])
    return part, choices[leaves]


def ranges(start: Indices, end: Indices) -> Indices:
    """Return the numbers from each start up to its end, one after the other."""
    lengths = end - start
    stops = np.cumsum(lengths)
    shift: Indices = np.repeat(start - (stops - lengths), lengths)
    return shift + np.arange(len(shift))
