"""Models that are a list of rows, and what their choices try."""

import plumdp as pl


def row_model(rows, space):
    """Return a model with one action per row in its initial state; every outcome is a state of its own."""

    def step(state):
        if state.at:
            return {"stay": [(1, state)]}
        outcomes = [[(f, state._replace(at=k + 1)) for k, f in enumerate(row)] for row in rows]
        return {f"action {i}": outcome for i, outcome in enumerate(outcomes)}

    return pl.explore(step, {"at": 0}, space=space)


def rows_of(model):
    """Return for each choice its transitions and their polynomials."""
    first = model.graph.first_transition
    for choice in range(model.graph.n_choices):
        transitions = range(first[choice], first[choice + 1])
        yield choice, [(t, model.expressions.polynomials[model.expression[t]]) for t in transitions]


def tried_by(events, choice):
    return events.tried[events.first_trial[choice] : events.first_trial[choice + 1]].tolist()
