"""Models built from step functions in Python, explored from the initial state one by one or by layers of states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.base.progress import Teller
from plumdp.model.assemble import assemble
from plumdp.model.batches import (
    BatchReward,
    BatchStep,
    Expression,
    State,
    StateStore,
    as_state,
    floats,
    kind_of,
    labels_of,
    make_graph,
    means_of,
    rewards_of,
    show,
    take_layer,
)
from plumdp.model.explore_levels import explore_levels
from plumdp.model.expressions.arrays import PolynomialArray
from plumdp.model.expressions.interned import PolynomialTable
from plumdp.model.expressions.polynomial import Polynomial, polynomial
from plumdp.model.free_rows import NO_PARAMETERS, FreeRow, RowNumbers, free_rows
from plumdp.model.graph import BoolArray, Graph, IntArray, read_only
from plumdp.model.parametric import ParametricMDP, RewardStructure
from plumdp.model.space import ParameterSpace
from plumdp.model.unmodelled_exits import refuse_reserved

Variable: TypeAlias = Any
"""The value of a state variable, or a whole column of values: what the fields of a batch state are."""

Outcomes: TypeAlias = Iterable[tuple[Expression, State]] | Iterable[State] | FreeRow
Step: TypeAlias = Callable[[State], Mapping[str, Outcomes]]

_LAYER = 1 << 18  # states given to a batch step at once: bounds the memory of a step

_TOLD = 1 << 10  # states after which it is looked whether to tell of them


def explore(
    step: Step,
    initial: State,
    *,
    space: ParameterSpace | None = None,
    labels: Mapping[str, Callable[[State], bool]] | None = None,
    rewards: Mapping[str, Callable[[State], Expression]] | None = None,
    choice_rewards: Mapping[str, Callable[[State, str], Expression]] | None = None,
    also: Iterable[State] = (),
) -> ParametricMDP:
    """Return the model of all states that ``step`` reaches from ``initial``, and from those in ``also``.

    A row whose probabilities are unknown is ``unknown(s1, s2)``, or a list of next states without probabilities. A
    reward may be arithmetic on parameters, too: its mean is then unknown, the box of the space says between which
    numbers its values lie, and ``read_log`` reads them from the column of its name.

    Parameters
    ----------
    step
        A function of a state that returns, for each action, pairs (probability, next state); a probability is a number
        or arithmetic on parameters.
    initial
        The first state: a NamedTuple of ints, Booleans or strings, or a dict.
    space
        The parameters and their bounds; a model without parameters needs none.
    labels
        Sets of states by name, as functions of a state.
    rewards, choice_rewards
        What a step earns by the name of the reward: functions of a state, or of a state and an action.
    also
        States of data that no run from ``initial`` reaches, such as patients of another age.

    Returns
    -------
    ParametricMDP
        The model of all states that were reached.

    Raises
    ------
    ModelError
        If a row is no distribution, or a state is not what the others are.

    Examples
    --------
    >>> from plumdp import ParameterSpace, parameters
    >>> (p,) = parameters("p")
    >>> def step(state):
    ...     if state.money == 0 or state.money == 3:
    ...         return {"stop": [(1, state)]}
    ...     return {"bet": [(p, state._replace(money=state.money + 1)), (1 - p, state._replace(money=state.money - 1))]}
    >>> model = explore(step, {"money": 1}, space=ParameterSpace.unit("p"), labels={"rich": lambda s: s.money == 3})
    >>> model.graph.n_states, model.graph.n_transitions, len(model.expressions)
    (4, 6, 3)
    """
    refuse_reserved(labels or ())
    initial = as_state(initial)
    number: dict[State, int] = {initial: 0}
    expressions = PolynomialTable()
    names: dict[str, int] = {}
    choices: list[int] = []
    lengths, actions = [], []
    successor: list[int] = []
    expression: list[int] = []
    rows = RowNumbers()
    for each in also:
        other = as_state(each) if isinstance(each, Mapping) else each
        if getattr(other, "_fields", None) != initial._fields:
            raise ModelError(f"also: {each!r} has not the variables {', '.join(initial._fields)}, in this order")
        number.setdefault(type(initial)(*other), len(number))
    queue, teller = [*number], Teller("exploring", "states")
    for state in queue:  # grows while it is walked: breadth first
        if len(choices) % _TOLD == 0:
            teller.tell(len(queue))
        row = _step_result(step, state)
        choices.append(len(row))
        for action, outcomes in row.items():
            actions.append(names.setdefault(action, len(names)))
            before = len(successor)
            for probability, target in _outcomes(state, action, outcomes, rows):
                if target not in number:
                    _check_state(initial, target, _where(state, action))
                    number[target] = len(number)
                    queue.append(target)
                successor.append(number[target])
                expression.append(expressions.number(probability))
            lengths.append(len(successor) - before)
    by_variable = zip(initial._fields, zip(*queue, strict=True), strict=True)
    columns = {field: _column(field, values) for field, values in by_variable}
    graph = make_graph(choices, lengths, successor, columns, actions, tuple(names))
    rewards, choice_rewards = rewards or {}, choice_rewards or {}
    of_states = {name: [reward(state) for state in queue] for name, reward in rewards.items()}
    of_choices = {name: [*_by_choice(reward, queue, graph)] for name, reward in choice_rewards.items()}
    means = {name: _means(graph, of_states, of_choices, name) for name in _unknown(of_states, of_choices)}
    earned = {
        name: RewardStructure(
            floats(of_states[name]) if name in of_states else None,
            floats(of_choices[name]) if name in of_choices else None,
        )
        for name in {**of_states, **of_choices}
        if name not in means
    }
    marked = {name: read_only(np.array([bool(f(s)) for s in queue])) for name, f in (labels or {}).items()}
    array = PolynomialArray(expressions, np.array(expression, dtype=np.int32))
    has_free_rows = max(rows.numbers, default=-1) >= 0
    space = NO_PARAMETERS if space is None else space
    model = assemble(graph, array, space, labels=marked, rewards=earned, constants={}, means=means)
    return free_rows(model, np.array(rows.numbers)) if has_free_rows else model


def explore_batch(
    step: BatchStep,
    initial: State,
    *,
    space: ParameterSpace,
    labels: Mapping[str, Callable[[State], BoolArray]] | None = None,
    rewards: Mapping[str, Callable[[State], BatchReward]] | None = None,
    choice_rewards: Mapping[str, Callable[[State, str], BatchReward]] | None = None,
    store: str | Path | None = None,
    level: Callable[[State], npt.NDArray[Any]] | None = None,
) -> ParametricMDP:
    """Return the model that ``explore`` returns, from a step over arrays, a whole layer of states at a time.

    State variables are ints or Booleans. Probabilities that differ by state come from ``tabulate``, and so do rewards
    that depend on parameters.

    Parameters
    ----------
    step
        A function of a NamedTuple of arrays that yields triples (action, where it is possible, outcomes). Outcomes are
        pairs (probability, next states), for all states of the layer, also where the action is not possible.
    initial, space, labels, rewards, choice_rewards
        As in ``explore``, with functions of arrays.
    store
        A folder that is made, to which the model is written level by level: for up to billions of transitions. It is
        certified with ``relaxation="expression"`` at most.
    level
        The level of each state, with ``store``. Every step must lead to the next level, one more, or all steps of a
        state back to itself.

    Returns
    -------
    ParametricMDP
        The model of all states that were reached.

    Examples
    --------
    >>> from plumdp import ParameterSpace, parameters
    >>> from plumdp.model import tabulate
    >>> (p,) = parameters("p")
    >>> def step(s):
    ...     done = (s.money == 0) | (s.money == 3)
    ...     yield "stop", done, [(1, s)]
    ...     yield "bet", ~done, [(p, s._replace(money=s.money + 1)), (1 - p, s._replace(money=s.money - 1))]
    >>> explore_batch(step, {"money": 1}, space=ParameterSpace.unit("p")).graph.n_transitions
    6
    """
    refuse_reserved(labels or ())
    if store is not None:
        named = labels or {}, rewards or {}, choice_rewards or {}
        return explore_levels(step, initial, _require_level(level), Path(store), space, *named)
    initial = as_state(initial)
    reached = _Found(initial)
    expressions = PolynomialTable()
    names: dict[str, int] = {}
    layers = [take_layer(step, batch, reached, expressions, names) for batch in reached.batches()]
    choices, lengths, actions, successor, expression = (np.concatenate(part) for part in zip(*layers, strict=True))
    del layers
    columns = reached.columns()
    graph = make_graph(choices, lengths, successor, columns, actions, tuple(names))
    states = type(initial)(**columns)
    rewards, choice_rewards = rewards or {}, choice_rewards or {}
    means = means_of(rewards, choice_rewards, states, graph)
    of_states = {name: reward for name, reward in rewards.items() if name not in means}
    of_choices = {name: reward for name, reward in choice_rewards.items() if name not in means}
    earned = rewards_of(of_states, of_choices, states, graph)
    marked = labels_of(labels or {}, states, graph)
    array = PolynomialArray(expressions, expression)
    return assemble(graph, array, space, labels=marked, rewards=earned, constants={}, means=means)


def _require_level(level: Callable[[State], npt.NDArray[Any]] | None) -> Callable[[State], npt.NDArray[Any]]:
    if level is None:
        raise ModelError(
            "store needs level, a function from states to the level of each, such as lambda s: s.step: it is one more "
            "after every step, so that earlier levels need not be kept in memory"
        )
    return level


class _Found:
    """The states found so far, given out again as batches and as columns of their own types."""

    def __init__(self, initial: State) -> None:
        self.type = type(initial)
        self.kinds = [kind_of(field, value) for field, value in zip(initial._fields, initial, strict=True)]
        self.store = StateStore(len(initial))
        self.store.intern(np.array([initial], dtype=np.int32))

    def batches(self) -> Iterator[State]:
        """Yield the states in order, a batch at a time, until no new ones are found."""
        done, teller = 0, Teller("exploring", "states")
        while done < self.store.n:
            teller.tell(self.store.n)
            end = min(self.store.n, done + _LAYER)
            yield self.type(*(self._take(j, slice(done, end)) for j in range(len(self.kinds))))
            done = end

    def number(self, rows: IntArray, chosen: Any, action: str) -> IntArray:
        """Return the numbers of states, adding new ones."""
        return self.store.intern(rows)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the valuations by variable."""
        every = slice(0, self.store.n)
        return {field: read_only(self._take(j, every)) for j, field in enumerate(self.type._fields)}

    def _take(self, column: int, rows: slice) -> npt.NDArray[Any]:
        return self.store.rows[rows, column].astype(self.kinds[column])


def _step_result(step: Step, state: State) -> Mapping[str, Outcomes]:
    row = step(state)
    if not isinstance(row, Mapping):
        raise ModelError(
            f"state ({show(state)}): the step returns {type(row).__name__}; "
            "return a dict from action names to lists of (probability, next state)"
        )
    return row


def _outcomes(state: State, action: str, outcomes: Any, rows: RowNumbers) -> list[tuple[Expression, State]]:
    """Return the pairs of a row, those of a free row with equal probabilities for now, and note which it is."""
    if not isinstance(outcomes, FreeRow):
        outcomes = list(outcomes)
        is_state = [getattr(outcome, "_fields", None) == state._fields for outcome in outcomes]
        pairs = [
            _pair(state, action, outcome) for outcome, has_none in zip(outcomes, is_state, strict=True) if not has_none
        ]
        if not any(is_state):
            rows.add_known()
            return pairs
        if pairs:
            raise ModelError(
                f"{_where(state, action)}: some next states have a probability and others have none; give all their "
                "probabilities, or none, as in unknown(…)"
            )
        outcomes = FreeRow(tuple(outcomes))
    places = {target: i for i, target in enumerate(dict.fromkeys(outcomes.successors))}
    if outcomes.row is None:
        rows.add()
    else:
        rows.add_named(outcomes.row, [places[target] for target in outcomes.successors], _where(state, action))
    share = Polynomial(Fraction(1, len(places)))  # until it is set free
    return [(share, target) for target in places]


def _pair(state: State, action: str, outcome: Any) -> tuple[Expression, State]:
    if not isinstance(outcome, tuple) or len(outcome) != 2:
        raise ModelError(f"{_where(state, action)}: {outcome!r} is not a pair (probability, next state)")
    if isinstance(outcome[0], FreeRow):
        raise ModelError(f"{_where(state, action)}: unknown(…) is the whole row of an action, not a probability in it")
    return outcome


def _where(state: State, action: str) -> str:
    return f"state ({show(state)}), action {action!r}"


def _check_state(initial: State, target: State, where: str) -> None:
    if getattr(target, "_fields", None) != initial._fields:
        raise ModelError(f"{where}: the next state {target!r} has not the variables {', '.join(initial._fields)}")


def _column(field: str, values: Any) -> npt.NDArray[Any]:
    column = np.array(values)
    kinds = {type(value) for value in values}
    if column.dtype.kind not in "biuU" or (column.dtype.kind == "U" and len(kinds) > 1):
        shown = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise ModelError(
            f"state variable {field} takes values of type {shown}; use ints, Booleans or strings, of one kind"
        )
    if column.dtype.kind in "iu" and len(column) and max(abs(int(column.min())), abs(int(column.max()))) >= 2**31:
        raise ModelError(f"state variable {field} leaves the range of 32-bit integers")
    return read_only(column.astype(np.int32) if column.dtype.kind in "iu" else column)


def _unknown(*rewards: Mapping[str, list[Expression]]) -> list[str]:
    """Return the names of rewards that depend on parameters somewhere."""
    named = [(name, values) for each in rewards for name, values in each.items()]
    return [*dict.fromkeys(name for name, values in named if any(isinstance(value, Polynomial) for value in values))]


def _means(
    graph: Graph, of_states: Mapping[str, list[Expression]], of_choices: Mapping[str, list[Expression]], name: str
) -> list[Expression]:
    """Return the reward of each choice and its state."""
    own = of_choices.get(name, [0] * graph.n_choices)
    state = of_states.get(name, [0] * graph.n_states)
    return [
        polynomial(state[s]) + polynomial(value) for s, value in zip(graph.state_of_choice().tolist(), own, strict=True)
    ]


def _by_choice(function: Callable[[State, str], Expression], queue: list[State], graph: Graph) -> Iterator[Expression]:
    for state, choice in zip(graph.state_of_choice().tolist(), range(graph.n_choices), strict=True):
        yield function(queue[state], graph.action_names[graph.action[choice]])
