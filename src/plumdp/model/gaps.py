"""Models that are seen now and then, of which data count rows of several steps.

An observation tells the state, the next observation comes some steps later, and between them the model moves unseen. So
the outcome of an observation is one of a row of several steps, whose probabilities are sums over hidden paths: sums of
products of one-step expressions, as exact polynomials. Questions are about single steps, whose rows are lifted from
those of gap 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.combinations import Trait, refuse
from plumdp.base.errors import ModelError, Option
from plumdp.base.vocabulary import AFTER
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import Graph, Indices, offset_type, read_only
from plumdp.model.language.predicate import parse_predicate
from plumdp.model.parametric import Lift, ParametricMDP, require_model

Row: TypeAlias = dict[int, Polynomial]  # by successor
_Observations: TypeAlias = list[tuple[int, str, Row]]  # of a state and action: the gap, its action, and the row

WAIT = "wait"  # the action of looks at a chain
PARTLY = "ended or not"  # behind the action of observations that see no more than that
OTHER = -1  # the value of ``AFTER`` for whatever has not ended
LONGEST = 60  # steps between two observations
_MOST = 20_000  # transitions that are counted


def with_gaps(model: ParametricMDP, gaps: Iterable[int], *, exact: str | None = None) -> ParametricMDP:
    """Return a model whose state is seen after any of the given numbers of steps, to ``read_log`` logs with gaps.

    Questions are about single steps, as before. Between two observations each step takes the action of the
    first, or the only one that a state has.

    Parameters
    ----------
    model
        The parametric model.
    gaps
        All numbers of steps between observations that were possible, named before you look at the data.
    exact
        A formula for ends that are never left, such as ``'"dead"'``, if the log tells in which step a unit came to
        them, though nobody looked.

    Returns
    -------
    ParametricMDP
        The model, to ``read_log`` logs with gaps.

    Examples
    --------
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
    refuse({Trait.WITH_GAPS, model.has_free_rows and Trait.TABLE, *model.traits})
    for name in ("gap", *((AFTER, "partial") if exact else ())):
        if any(variable.casefold() == name for variable in model.graph.states):
            raise ModelError(f"with_gaps: a state variable is called {name}, as a column of a log is; rename it")
    return looked_at(model, _checked(gaps), () if exact is None else _ends(model, exact))


def looked_at(model: ParametricMDP, gaps: tuple[int, ...], ends: tuple[int, ...]) -> ParametricMDP:
    """Return the model that is seen after these gaps, and whose ends are known from the step on that leads there."""
    observations = [*_observations(model, gaps, ends)]
    n = len(observations)
    if (
        ends
    ):  # states in which nothing is counted: each end, so many steps after an observation, and whatever has not ended
        more = range(model.graph.n_states, 1 + other_state(model.graph.n_states, ends, gaps[-1]))
        observations += [[(1, WAIT, {state: Polynomial(1)})] for state in more]
    first = np.concatenate([[0], np.cumsum([len(each) for each in observations])])
    counted = _counted(model, observations, first, ends, gaps[-1])
    return replace(model, lift=Lift(counted, first[:n]))


def _ends(model: ParametricMDP, exact: str) -> tuple[int, ...]:
    """Return the states that a formula names, each of which is never left."""
    try:
        ends = np.flatnonzero(parse_predicate(exact, model))
    except ModelError as error:
        raise ModelError(Option("exact", exact), ": ", *error.args) from None
    graph = model.graph
    before = graph.state_of_choice()[graph.choice_of_transition()]
    left = np.intersect1d(ends, before[graph.successor != before])
    if not 0 < len(ends) < graph.n_states or len(left):
        why = f"({graph.describe_state(int(left[0]))}) can be left" if len(left) else f"{len(ends)} states are such"
        raise ModelError(Option("exact", exact), f": {why}; name ends, such as deaths, whose step is known")
    return tuple(ends.tolist())


def copies_of(n_states: int, ends: Sequence[int], longest: int) -> dict[int, int]:
    """Return for each end the state that is this end one step after an observation; the next ones follow it."""
    return {end: n_states + i * (longest - 1) for i, end in enumerate(ends)}


def other_state(n_states: int, ends: Sequence[int], longest: int) -> int:
    """Return the number of the state that stands for all that have not ended; it comes last."""
    return n_states + len(ends) * (longest - 1)


def gaps_of(model: ParametricMDP) -> tuple[int, ...]:
    """Return the gaps that a model has, none if every step of it is seen."""
    return () if model.counted.gaps is None else tuple(np.unique(np.abs(model.counted.gaps)).tolist())


def action_after(action: str, gap: int) -> str:
    """Return the name of an action until the next observation; those before partial ones have gaps below 0."""
    if gap < 0:
        return f"{action_after(action, -gap)}, {PARTLY}"
    return action if gap == 1 else f"{action}, {gap} steps"


def is_chain(graph: Graph) -> bool:
    """Return whether no state has two choices."""
    return graph.n_choices == graph.n_states


def _checked(gaps: Iterable[int]) -> tuple[int, ...]:
    """Return the gaps in order, the single step among them, which questions are about."""
    given = [*gaps] if isinstance(gaps, Iterable) and not isinstance(gaps, str) else []
    is_whole = all(isinstance(gap, int | np.integer) and not isinstance(gap, bool) for gap in given)
    wrong = [gap for gap in given if not is_whole or not 1 <= gap <= LONGEST]
    if not given or wrong:
        named = wrong[0] if wrong else gaps
        raise ModelError(
            f"observations after {named!r} steps: give whole numbers from 1 to {LONGEST}, such as 1, 2 and 3"
        )
    return tuple(sorted({1, *map(int, given)}))


def _observations(model: ParametricMDP, gaps: tuple[int, ...], ends: tuple[int, ...]) -> Iterator[_Observations]:
    """Yield for each choice the rows of its observations; those of gap 1 have its transitions in its order."""
    graph, polynomials = model.graph, model.expressions.polynomials
    bounds = [*pairwise(graph.first_transition.tolist())]
    steps = [{int(graph.successor[t]): polynomials[model.expression[t]] for t in range(*each)} for each in bounds]
    if any(len(row) < end - start for row, (start, end) in zip(steps, bounds, strict=True)):
        raise ModelError("with_gaps: a row has the same successor twice; explore the model again, which adds them up")
    chain, action = is_chain(graph), graph.action.tolist()
    copies, other = copies_of(graph.n_states, ends, gaps[-1]), other_state(graph.n_states, ends, gaps[-1])
    after = {each: rows_after(graph, steps, each, gaps[-1], copies) for each in ({0} if chain else {*action})}
    n = 0
    for choice, state in enumerate(graph.state_of_choice().tolist()):
        name = WAIT if chain else graph.action_names[action[choice]]
        rows = after[0 if chain else action[choice]]
        found = [(gap, action_after(name, gap), steps[choice] if gap == 1 else rows[gap].get(state)) for gap in gaps]
        partial = ((-gap, action_after(name, -gap), partly(rows[gap].get(state), copies, other)) for gap in gaps)
        found += partial if ends and state not in copies else ()
        observations = [(gap, called, row) for gap, called, row in found if row is not None]
        n += sum(len(row) for _, _, row in observations)
        if n > _MOST:
            raise ModelError(
                f"with_gaps: observations have more than {_MOST:,} transitions; give fewer or shorter gaps"
            )
        yield observations


def partly(row: Row | None, copies: Mapping[int, int], other: int) -> Row | None:
    """Return the row of an observation that sees ends alone: ``other`` stands for all states that are none."""
    if row is None:
        return None
    first = min(copies.values(), default=other)  # of the states behind those of the model
    seen = {last: f for last, f in row.items() if last in copies or last >= first}
    rest = sum((f for last, f in row.items() if last not in seen), Polynomial(0))
    return seen | ({other: rest} if rest else {})


def rows_after(
    graph: Graph, steps: Sequence[Row], action: int, longest: int, copies: Mapping[int, int]
) -> list[dict[int, Row]]:
    """Return for each gap from 0 on the row of each state from which the action may be taken so often.

    ``steps`` has the row of each choice. A state without the action that has but one choice takes that. An end that is
    entered before the observation is told from one that is entered with it, see ``copies_of``.
    """
    taken, first_copy = {}, min(copies.values(), default=graph.n_states)
    for state, (start, end) in enumerate(pairwise(graph.first_choice.tolist())):
        same = [choice for choice in range(start, end) if graph.action[choice] == action]
        choices = same or [*range(start, end)]
        if len(choices) == 1:
            taken[state] = choices[0]
    rows: list[dict[int, Row]] = [{state: {state: Polynomial(1)} for state in range(graph.n_states)}]
    for gap in range(1, longest + 1):
        before, now = rows[-1], {}
        for state, choice in taken.items():
            if all(between in before for between in steps[choice]):
                row: Row = {}
                for between, first in steps[choice].items():
                    ends_now = gap > 1 and between in copies and state not in copies
                    ahead = {copies[between] - 1: Polynomial(1)} if ends_now else before[between]
                    for seen, rest in ahead.items():
                        last = seen + (ends_now or seen >= first_copy)  # of an end, one step later
                        row[last] = row[last] + first * rest if last in row else first * rest
                now[state] = {last: f for last, f in row.items() if f}
        rows.append(now)
    return rows


def _counted(
    model: ParametricMDP, observations: list[_Observations], first: Indices, ends: tuple[int, ...], longest: int
) -> ParametricMDP:
    """Return the model whose choices are observations; with ends, it has more states, see ``looked_at``."""
    graph, names = model.graph, dict[str, int]()
    number = {f: i for i, f in enumerate(model.expressions.polynomials)}  # questions have the same numbers
    rows = [row for each in observations for _, _, row in each]
    expression = [number.setdefault(f, len(number)) for row in rows for f in row.values()]
    stops = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    of_state = [*graph.first_choice.tolist(), *range(graph.n_choices + 1, len(observations) + 1)]
    seen_after = Graph(
        read_only(first[of_state].astype(np.int32)),
        read_only(stops.astype(offset_type(int(stops[-1])))),
        read_only(np.array([state for row in rows for state in row], dtype=np.int32)),
        graph.initial_state,
        _with_copies(graph, ends, longest) if ends else graph.states,
        read_only(
            np.array(
                [names.setdefault(name, len(names)) for each in observations for _, name, _ in each], dtype=np.int32
            )
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
        gaps=read_only(np.array([gap for each in observations for gap, _, _ in each], dtype=np.int32)),
        ends=ends,
    )


def _with_copies(graph: Graph, ends: tuple[int, ...], longest: int) -> dict[str, npt.NDArray[Any]]:
    """Return the variables of the states and of those behind them, with the steps after which an end was entered."""
    alike = next(state for state in range(graph.n_states) if state not in ends)
    states = [*range(graph.n_states), *(end for end in ends for _ in range(1, longest)), alike]
    after = [0] * graph.n_states + [*range(1, longest)] * len(ends) + [OTHER]
    values = {name: read_only(each[states]) for name, each in graph.states.items()}
    return values | {AFTER: read_only(np.array(after, dtype=np.int32))}
