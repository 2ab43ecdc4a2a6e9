"""Models with unknown rows, seen as models with parameters alone; and questions, seen as those of such a view.

An unknown row with k successors has k - 1 parameters of its own, so that the model claims the same.

A view has the graph of its model, so that counts of one are counts of the other, and its point is that of the model.
Those as tables are in ``tables/views.py``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.expressions.polynomial import Polynomial, parameters
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import Indices, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace

_MOST = 2_000  # parameters that rows may get
_LONGEST = 40  # characters of the name of one


def as_parametric(model: ParametricMDP) -> ParametricMDP:
    """Return the same model with parameters instead of its unknown rows, each row with its own.

    >>> from plumdp import explore, unknown
    >>> model = explore(lambda s: {"go": unknown(s, s._replace(x=1 - s.x))}, {"x": 0})
    >>> as_parametric(model).space.names
    ('go_x_0_to_x_0', 'go_x_1_to_x_1')
    """
    if not model.has_free_rows:
        return model
    rows, table = model.rows, model.expressions
    free = np.flatnonzero(model.is_free_row)
    n_own = int((np.diff(rows.first)[free] - 1).sum())
    if n_own > _MOST:
        raise ModelError(
            f"the unknown rows of this model have {n_own:,} unknown numbers, too many for a parameter each: "
            f"{_MOST:,} are the most"
        )
    transitions = [rows.transition[rows.first[row] : rows.first[row + 1]] for row in free.tolist()]
    names = _names(model, transitions)
    own: dict[int, Polynomial] = {}
    rests, left = [], iter(parameters(*names))
    for each in transitions:
        here = [*islice(left, len(each) - 1)]
        rests.append(1 - sum(here, Polynomial(0)))
        own |= dict(zip(model.expression[each].tolist(), [*here, rests[-1]], strict=True))
    polynomials = [*table.polynomials, *(own[f] for f in range(len(table.polynomials), len(table)))]
    spaces = [_with(space, names, rests) for space in (model.declared_space, model.space)]
    return replace(
        model,
        declared_space=spaces[0],
        space=spaces[1],
        expressions=ExpressionTable.build(polynomials, spaces[1].names),
        source=model,
    )


def seen_as(model: ParametricMDP, view: ParametricMDP) -> ParametricMDP:
    """Return a model, given the view of the one that its rows are counted in: itself, or with the rows of the view."""
    if model.counted is view:
        return model
    assert view.source is model.counted
    if model.lift is None:
        return view
    choice = model.graph.choice_of_transition()
    place = np.arange(model.graph.n_transitions) - model.graph.first_transition[choice]
    transition = view.graph.first_transition[np.asarray(model.lift.choice)[choice]] + place
    return replace(
        model,
        declared_space=view.declared_space,
        space=view.space,
        expressions=view.expressions,
        expression=read_only(view.expression[transition]),
        lift=replace(model.lift, counted=view),
        source=model,
    )


def _names(model: ParametricMDP, rows: list[Indices]) -> list[str]:
    """Return a name for all but the last place of each row: in words if they are short and differ, or by numbers."""
    graph = model.graph
    words = []
    for transitions in rows:
        choice = graph.choice_of(int(transitions[0]))
        state = graph.describe_state(int(graph.state_of_choice()[choice]))
        action = graph.action_names[graph.action[choice]]
        words += [f"{action} {state} to {graph.describe_state(int(graph.successor[t]))}" for t in transitions[:-1]]
    names = [re.sub(r"[^A-Za-z0-9]", "_", text.replace(", ", " ")) for text in words]
    taken = {*names, *model.space.names}
    is_short = all(len(name) <= _LONGEST and name.isidentifier() for name in names)
    if len(taken) == len(names) + model.space.dimension and is_short:
        return names
    numbers = [f"row{i + 1}_{j + 1}" for i, each in enumerate(rows) for j in range(len(each) - 1)]
    prefix = "free_" if {*numbers} & {*model.space.names} else ""
    return [f"{prefix}{name}" for name in numbers]


def _with(space: ParameterSpace, names: list[str], rests: list[Polynomial]) -> ParameterSpace:
    """Return a space with further parameters in [0, 1], some of which sum to at most one."""
    bounds = dict(zip(space.names, space.bounds, strict=True)) | dict.fromkeys(names, (0, 1))
    return ParameterSpace.box(bounds, constraints=[*space.constraints, *rests])
