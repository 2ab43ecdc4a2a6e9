"""Checks that runs begin where a value is and follow a policy, and returns the choices that they took."""

from __future__ import annotations

import numpy as np

from plumdp.base.errors import DataError
from plumdp.data.returns import Ends
from plumdp.data.values import RowIndex
from plumdp.data.whole_runs import WholeRuns
from plumdp.model.graph import BoolArray, FloatArray, Graph, Indices
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, policy_weights


def require_start(model: ParametricMDP, runs: WholeRuns) -> None:
    """Refuse runs that begin in another state than the initial one, whose value is certified."""
    begins, initial = runs.state[runs.first[:-1]], model.graph.initial_state
    if (begins != initial).any():
        row = int(runs.first[np.argmax(begins != initial)])
        start, expected = (model.graph.describe_state(int(each)) for each in (runs.state[row], initial))
        raise DataError(
            f"{runs.place(row)}: the run begins in ({start}), but the value is that of runs from ({expected})"
        )


def taken_somewhere(graph: Graph, policy: Policy, model: ParametricMDP) -> BoolArray:
    """Return which choices of the model the policy takes somewhere."""
    memory, taken = graph.memory, np.flatnonzero(policy_weights(graph, policy))
    may_take = np.zeros(model.graph.n_choices, dtype=np.bool_)
    may_take[taken if memory is None else memory.choice[taken]] = True
    return may_take


def choices_of(graph: Graph, policy: Policy, model: ParametricMDP, runs: WholeRuns, ends: Ends) -> Indices:
    """Return the model's choice in each row before the end of its run, and -1 elsewhere; refuse other actions."""
    memory, weights = graph.memory, policy_weights(graph, policy)
    counted = np.flatnonzero(np.arange(len(runs.state)) < ends.row[runs.run])
    place = runs.state[counted]
    if memory is not None:  # which is the number of steps, as long as the run is not decided
        steps = graph.states[memory.names[0]]
        index = RowIndex([memory.graph.n_states, int(steps.max()) + 1], [memory.state, steps])
        place = index.find([place, np.minimum(runs.time[counted], int(steps.max()))])
        if (place < 0).any():
            row = int(counted[np.argmax(place < 0)])
            where = model.graph.describe_state(int(runs.state[row]))
            raise DataError(f"{runs.place(row)}: the policy has no action for ({where}) after so many steps")
    taken = np.flatnonzero(weights)
    index = RowIndex([graph.n_states, len(graph.action_names)], [graph.state_of_choice()[taken], graph.action[taken]])
    if len(index.repeated):
        raise DataError(
            f"{graph.describe_choice(int(taken[index.repeated[0]]))}: the policy draws two actions so named"
        )
    rows = index.find([place, runs.action[counted]])
    if (rows < 0).any():
        raise _other_action(graph, weights, runs, int(counted[np.argmax(rows < 0)]), int(place[np.argmax(rows < 0)]))
    choice = np.full(len(runs.state), -1, dtype=np.int64)
    choice[counted] = taken[rows] if memory is None else memory.choice[taken[rows]]
    return choice


def _other_action(graph: Graph, weights: FloatArray, runs: WholeRuns, row: int, state: int) -> DataError:
    """Return the error for a step with another action than the policy's."""
    choices = np.arange(*graph.first_choice[state : state + 2])
    actions = " or ".join(repr(graph.action_names[graph.action[each]]) for each in choices[weights[choices] > 0])
    code = int(runs.action[row])
    did = repr(graph.action_names[code]) if code >= 0 else "none that the model has"
    return DataError(
        f"{runs.place(row)}: in state ({graph.describe_state(state)}) the action is {did}, but the policy's is "
        f"{actions}; this needs runs under the policy alone"
    )
