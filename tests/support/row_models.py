"""Models that are a list of rows, and what their choices try."""

import plumdp as pl


def row_model(rows, space, **options):
    """Return a model with one action per row in its initial state, which may have names; outcomes are states 1, 2, …"""
    named = rows if isinstance(rows, dict) else {f"action {i}": row for i, row in enumerate(rows)}

    def step(state):
        if state.at:
            return {"stay": [(1, state)]}
        return {name: [(f, state._replace(at=k + 1)) for k, f in enumerate(row)] for name, row in named.items()}

    return pl.explore(step, {"at": 0}, space=space, **options)


def rows_of(model):
    """Return for each choice its transitions and their polynomials."""
    first = model.graph.first_transition
    for choice in range(model.graph.n_choices):
        transitions = range(first[choice], first[choice + 1])
        yield choice, [(t, model.expressions.polynomials[model.expression[t]]) for t in transitions]


def tried_by(events, choice):
    return events.tried[events.first_trial[choice] : events.first_trial[choice + 1]].tolist()
