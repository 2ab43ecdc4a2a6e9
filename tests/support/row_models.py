"""Models that are a list of rows, and what their choices try."""

import plumdp as pl


def listed(rows, space="p", *, at="at", start=0, labels=None, **options):
    """Return the model whose variable ``at`` is the state, with lists of (probability, state) by state and action.

    A list of states alone is an unknown row; a state without rows stays as it is. A space may be a text with the names
    of probabilities, or None, and a label a state, a tuple of states or a function.
    """

    def step(state):
        def to(x):
            return state._replace(**{at: x})

        here = rows.get(getattr(state, at), {"stay": [(1, getattr(state, at))]})
        return {name: [(x[0], to(x[1])) if isinstance(x, tuple) else to(x) for x in row] for name, row in here.items()}

    def holds(of):
        return of if callable(of) else lambda state: getattr(state, at) in (of if isinstance(of, tuple) else (of,))

    if space is not None:
        options["space"] = pl.ParameterSpace.unit(*space.split()) if isinstance(space, str) else space
    return pl.explore(step, {at: start}, labels={name: holds(of) for name, of in (labels or {}).items()}, **options)


def row_model(rows, space, **options):
    """Return a model with one action per row in its initial state, which may have names; outcomes are states 1, 2, …"""
    named = rows if isinstance(rows, dict) else {f"action {i}": row for i, row in enumerate(rows)}
    return listed({0: {name: [(f, k + 1) for k, f in enumerate(row)] for name, row in named.items()}}, space, **options)


def rows_of(model):
    """Return for each choice its transitions and their polynomials."""
    first = model.graph.first_transition
    for choice in range(model.graph.n_choices):
        transitions = range(first[choice], first[choice + 1])
        yield choice, [(t, model.expressions.polynomials[model.expression[t]]) for t in transitions]


def tried_by(events, choice):
    return events.tried[events.first_trial[choice] : events.first_trial[choice + 1]].tolist()
