"""Models that are seen now and then, of which data count rows of several steps.

A look tells the state, the next look comes some steps later, and between them the model moves unseen. So the outcome of
a look is one of a row of several steps, whose probabilities are sums over hidden paths: sums of products of one-step
expressions, as exact polynomials. Questions are about single steps, whose rows are lifted from those of gap 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from plumdp.base.errors import DataError, ModelError, Option
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import Graph, Indices, offset_type, read_only
from plumdp.model.parametric import Lift, ParametricMDP, require_model

Row: TypeAlias = dict[int, Polynomial]  # by successor
_Looks: TypeAlias = list[tuple[int, str, Row]]  # of a state and action: the gap, its action, and the row

WAIT = "wait"  # the action of looks at a chain
LONGEST = 60  # steps between two looks
_MOST = 20_000  # transitions that are counted


def with_gaps(model: ParametricMDP, gaps: Iterable[int]) -> ParametricMDP:
    """Return a model whose state is seen after any of the given numbers of steps, to ``read_log`` logs with gaps.

    Questions are about single steps, as before. Between two looks each step takes the action of the first look, or the
    only one that a state has. The gaps are part of the model: name all that were possible, before you look at the data.

    >>> from plumdp import ParameterSpace, explore, parameters
    >>> (p,) = parameters("p")
    >>> def step(s):
    ...     return {"run": [(1 - p, s), (p, s._replace(x=1))] if s.x == 0 else [(1, s)]}
    >>> model = explore(step, {"x": 0}, space=ParameterSpace.unit("p"))
    >>> panel = with_gaps(model, [1, 2])
    >>> panel.counted.graph.action_names, [str(f) for f in panel.counted.expressions.polynomials]
    (('wait', 'wait, 2 steps'), ['-p + 1', 'p', '1', 'p^2 - 2*p + 1', '-p^2 + 2*p'])
    """
    require_model("with_gaps", model)
    if model.lift is not None or model.graph.levels is not None or model.has_free_rows or model.learned_rewards:
        raise ModelError(
            "with_gaps takes a model of single steps in memory, whose rows are expressions; it may not have unknown "
            "rows, learned rewards, or gaps already"
        )
    if any(name.casefold() == "gap" for name in model.graph.states):
        raise ModelError("with_gaps: a state variable is called gap, as the column of a log is; give it another name")
    numbers = _checked(gaps)
    looks = [*_looks(model, numbers)]
    first = np.concatenate([[0], np.cumsum([len(each) for each in looks])])
    counted = _counted(model, looks, first)
    return replace(model, lift=Lift(counted, first[:-1]))


def gaps_of(model: ParametricMDP) -> list[int]:
    """Return the gaps that a model has, none if every step of it is seen."""
    return [] if model.counted.gaps is None else sorted({*model.counted.gaps.tolist()})


def action_after(action: str, gap: int) -> str:
    """Return the name of an action that is taken until the next look."""
    return action if gap == 1 else f"{action}, {gap} steps"


def refuse_gaps(function: str, model: ParametricMDP) -> None:
    """Refuse a model that is seen now and then where nothing is known of it."""
    if model.counted.gaps is not None:
        raise DataError(f"{function} needs every step to be seen; give it the model without gaps, and such data")


def is_chain(graph: Graph) -> bool:
    """Return whether no state has two choices."""
    return graph.n_choices == graph.n_states


def _checked(gaps: Iterable[int]) -> tuple[int, ...]:
    """Return the gaps in order, the single step among them, which questions are about."""
    given = [*gaps] if isinstance(gaps, Iterable) and not isinstance(gaps, str) else []
    is_whole = all(isinstance(gap, int | np.integer) and not isinstance(gap, bool) for gap in given)
    wrong = [gap for gap in given if not is_whole or not 1 <= gap <= LONGEST]
    if not given or wrong:
        named = Option("gaps", wrong[0] if wrong else gaps)
        raise ModelError(named, f": give whole numbers of steps from 1 to {LONGEST}, such as 1, 2 and 3")
    return tuple(sorted({1, *map(int, given)}))


def _looks(model: ParametricMDP, gaps: tuple[int, ...]) -> Iterator[_Looks]:
    """Yield for each choice the rows of its looks; those of gap 1 have the transitions of the choice in its order."""
    graph, polynomials = model.graph, model.expressions.polynomials
    ends = [*pairwise(graph.first_transition.tolist())]
    steps = [{int(graph.successor[t]): polynomials[model.expression[t]] for t in range(*each)} for each in ends]
    if any(len(row) < end - start for row, (start, end) in zip(steps, ends, strict=True)):
        raise ModelError("with_gaps: a row has the same successor twice; explore the model again, which adds them up")
    chain, action = is_chain(graph), graph.action.tolist()
    after = {each: rows_after(graph, steps, each, gaps[-1]) for each in ({0} if chain else {*action})}
    n = 0
    for choice, state in enumerate(graph.state_of_choice().tolist()):
        name = WAIT if chain else graph.action_names[action[choice]]
        rows = after[0 if chain else action[choice]]
        found = [(gap, action_after(name, gap), steps[choice] if gap == 1 else rows[gap].get(state)) for gap in gaps]
        looks = [(gap, called, row) for gap, called, row in found if row is not None]
        n += sum(len(row) for _, _, row in looks)
        if n > _MOST:
            raise ModelError(f"with_gaps: looks have more than {_MOST:,} transitions; give fewer or shorter gaps")
        yield looks


def rows_after(graph: Graph, steps: Sequence[Row], action: int, longest: int) -> list[dict[int, Row]]:
    """Return for each gap from 0 on the row of each state from which the action may be taken so often.

    ``steps`` has the row of each choice. A state without the action that has but one choice takes that.
    """
    taken = {}
    for state, (start, end) in enumerate(pairwise(graph.first_choice.tolist())):
        same = [choice for choice in range(start, end) if graph.action[choice] == action]
        choices = same or [*range(start, end)]
        if len(choices) == 1:
            taken[state] = choices[0]
    rows: list[dict[int, Row]] = [{state: {state: Polynomial(1)} for state in range(graph.n_states)}]
    for _ in range(longest):
        before, now = rows[-1], {}
        for state, choice in taken.items():
            if all(between in before for between in steps[choice]):
                row: Row = {}
                for between, first in steps[choice].items():
                    for last, rest in before[between].items():
                        row[last] = row[last] + first * rest if last in row else first * rest
                now[state] = {last: f for last, f in row.items() if f}
        rows.append(now)
    return rows


def _counted(model: ParametricMDP, looks: list[_Looks], first: Indices) -> ParametricMDP:
    """Return the model whose choices are looks."""
    graph, names = model.graph, dict[str, int]()
    number = {f: i for i, f in enumerate(model.expressions.polynomials)}  # questions have the same numbers
    rows = [row for each in looks for _, _, row in each]
    expression = [number.setdefault(f, len(number)) for row in rows for f in row.values()]
    stops = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    seen_after = Graph(
        read_only(first[graph.first_choice].astype(np.int32)),
        read_only(stops.astype(offset_type(int(stops[-1])))),
        read_only(np.array([state for row in rows for state in row], dtype=np.int32)),
        graph.initial_state,
        graph.states,
        read_only(
            np.array([names.setdefault(name, len(names)) for each in looks for _, name, _ in each], dtype=np.int32)
        ),
        tuple(names),
    )
    return ParametricMDP(
        seen_after,
        model.declared_space,
        model.space,
        ExpressionTable.build([*number], model.space.names),
        read_only(np.array(expression, dtype=np.int32)),
        {},
        {},
        model.constants,
        gaps=read_only(np.array([gap for each in looks for gap, _, _ in each], dtype=np.int32)),
    )
