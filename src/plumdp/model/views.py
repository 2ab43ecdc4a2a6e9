"""Models with unknown rows beside parameters, seen as tables of unknown rows alone, or as models with parameters alone.

As a table, a row of expressions is an unknown row, tied to the rows with the same expressions, and to no others. Then
the model claims less: what different expressions of one parameter have to do with each other is left out. With
parameters alone, an unknown row with k successors has k - 1 parameters of its own. Then it claims the same.

A view has the graph of its model, so that counts of one are counts of the other, and its point is that of the model.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.base.vocabulary import Trait
from plumdp.model.expressions.polynomial import Polynomial, parameters
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.free_rows import free_rows
from plumdp.model.graph import Indices, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace

FEW = 20  # unknown numbers beside unknown rows, up to which likelihood sets are about as good as tables
MANY = 50  # parameters that tie no rows, beyond which likelihood sets are as wide as intervals
_MOST_DIMENSIONS = 100  # of a likelihood set that is taken by default beside unknown rows
_WORTHWHILE = 1.25  # times as many numbers are unknown in a table, beyond which parameters beside unknown rows pay
_MOST = 2_000  # parameters that rows may get
_LONGEST = 40  # characters of the name of one


def n_unknown(model: ParametricMDP) -> int:
    """Return the number of unknown numbers of a model; a free row has one for each successor but the last.

    >>> from plumdp import case_study
    >>> model = case_study("betting:5").model
    >>> n_unknown(model), n_unknown(as_table(model))
    (1, 106)
    """
    return model.space.dimension + int((np.diff(model.rows.first)[model.is_free_row] - 1).sum())


def ties_rows(model: ParametricMDP) -> bool:
    """Return whether parameters tie rows with different expressions, or successors of one row.

    If not, every row of affine expressions may be any distribution, as far as the space lets it. Others are told by
    how many parameters they have: a tie that this misses is not made use of, and not tested, in the table of the model.

    >>> from plumdp import case_study
    >>> ties_rows(case_study("betting:5").model)
    True
    """
    rows, table, seen = model.rows, model.expressions, set[str]()
    for row in np.flatnonzero(~model.is_free_row).tolist():
        places = model.expression[rows.transition[rows.first[row] : rows.first[row + 1]]]
        row_of = [table.polynomials[f] for f in places.tolist()]
        names = {name for polynomial in row_of for name in polynomial.names}
        if names and (names & seen or _freedom(row_of, sorted(names)) < len(places) - 1):
            return True
        seen |= names
    return False


def _freedom(row: list[Polynomial], names: list[str]) -> int:
    """Return the dimension of what the expressions of a row can be, or the number of their parameters."""
    if len(names) < len(row) - 1 or not all(polynomial.is_affine for polynomial in row):
        return len(names)
    slopes = [polynomial.affine_terms()[1] for polynomial in row]
    matrix = [[float(slope.get(name, 0)) for name in names] for slope in slopes]
    return int(np.linalg.matrix_rank(np.array(matrix)))


def is_best_as_table(model: ParametricMDP) -> bool:
    """Return whether values are bounded best in the table of a model, which the model alone decides.

    Parameters say more than a table if they tie many rows. But sets in many dimensions say less than bets on values do,
    and cost more. Learned rewards, and models on disk, need parameters.
    """
    counted = model.counted
    if counted.is_table:
        return True
    if model.traits & {Trait.LEARNED_REWARDS, Trait.DISK}:
        return False
    if not counted.has_free_rows:
        return counted.space.dimension > MANY and not ties_rows(counted)
    n = n_unknown(counted)
    return n > FEW and (n > _MOST_DIMENSIONS or n_unknown(as_table(counted)) <= _WORTHWHILE * n)


def as_table(model: ParametricMDP) -> ParametricMDP:
    """Return the table of a model, in which rows with the same expressions are one unknown row.

    >>> from plumdp import case_study
    >>> as_table(case_study("betting:5").model)
    ParametricMDP(225 states, 1,023 transitions, 106 unknown rows)
    """
    if model.is_table:
        return model
    is_unknown = model.expressions.is_unknown[model.expression]
    has_unknown = np.zeros(model.graph.n_choices, dtype=np.bool_)
    has_unknown[model.graph.choice_of_transition()[is_unknown]] = True
    return replace(free_rows(model, np.where(has_unknown, model.rows.number, -1)), source=model)


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
