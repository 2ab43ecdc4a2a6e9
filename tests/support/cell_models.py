"""Models with rows in cells of a state variable: one expression, in several places where it may differ after all."""

import numpy as np

import plumdp as pl
from plumdp.data.counts import Pilot


def cell_model(rows_of_cells, space):
    """Return a model whose variable ``h`` is the number of the cell; each cell has one choice for each of its rows."""

    def step(state):
        if state.h < 0:
            return {f"go {i}": [(1, state._replace(h=i))] for i in range(len(rows_of_cells))}
        if state.out:
            return {"stay": [(1, state)]}
        rows = rows_of_cells[state.h]
        return {f"row {i}": [(f, state._replace(out=1 + k)) for k, f in enumerate(row)] for i, row in enumerate(rows)}

    return pl.explore(step, {"h": -1, "out": 0}, space=space)


def counts_in_cells(model, seen, *, pilot=None, sampling="adaptive", end="planned"):
    """Return counts of transitions: ``seen[cell][row]`` are those of the outcomes of a row, in order."""
    counts = _flat(model, seen)
    if pilot is None:
        return pl.TransitionCounts(model.graph, counts, sampling)
    kept = Pilot(_flat(model, pilot), end)
    return pl.TransitionCounts(model.graph, counts + kept.counts, sampling, kept)


def _flat(model, seen):
    graph = model.graph
    counts = np.zeros(graph.n_transitions, dtype=np.int64)
    state = graph.state_of_choice()
    for choice in range(graph.n_choices):
        cell, name = int(graph.states["h"][state[choice]]), graph.action_names[graph.action[choice]]
        if name.startswith("row"):
            first, last = graph.first_transition[choice], graph.first_transition[choice + 1]
            counts[first:last] = seen[cell][int(name.split()[1])]
    return counts
