"""Builds models from step functions in Python, explored from the initial state: by states, or by layers of states."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.errors import ModelError
from plumdp.model.assemble import assemble
from plumdp.model.expressions.arrays import PolynomialArray, number_in
from plumdp.model.expressions.polynomial import Number, Polynomial, polynomial
from plumdp.model.graph import BoolArray, FloatArray, Graph, IntArray, own_array, read_only
from plumdp.model.parametric import ParametricMDP, RewardStructure
from plumdp.model.space import ParameterSpace
from plumdp.model.state_store import StateStore
from plumdp.model.telling import Teller

Expression: TypeAlias = Polynomial | Number
State: TypeAlias = Any
"""A NamedTuple of state variables: numbers in ``explore``, arrays in ``explore_batch``."""

Variable: TypeAlias = Any
"""The value of a state variable, or a whole column of values: what the fields of a batch state are."""

Step: TypeAlias = Callable[[State], Mapping[str, Iterable[tuple[Expression, State]]]]
BatchStep: TypeAlias = Callable[
    [State], Iterable[tuple[str, BoolArray | bool, Iterable[tuple[Expression | PolynomialArray, State]]]]
]

_LAYER = 1 << 18  # states given to a batch step at once: bounds the memory of a step

_TOLD = 1 << 10  # states after which it is looked whether to tell of them


def explore(
    step: Step,
    initial: State,
    *,
    space: ParameterSpace,
    labels: Mapping[str, Callable[[State], bool]] | None = None,
    rewards: Mapping[str, Callable[[State], float]] | None = None,
    choice_rewards: Mapping[str, Callable[[State, str], float]] | None = None,
) -> ParametricMDP:
    """Return the model of all states that ``step`` reaches from ``initial``.

    A state is a NamedTuple of ints, Booleans or strings (or give ``initial`` as a dict). ``step(state)`` returns for
    each action the pairs (probability, next state); a probability is a number or arithmetic on parameters.

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
    initial = _as_state(initial)
    number: dict[State, int] = {initial: 0}
    expressions: dict[Polynomial, int] = {}
    names: dict[str, int] = {}
    choices: list[int] = []
    lengths, actions = [], []
    successor: list[int] = []
    expression: list[int] = []
    queue, teller = [initial], Teller("exploring", "states")
    for state in queue:  # grows while it is walked: breadth first
        if len(choices) % _TOLD == 0:
            teller.tell(len(queue))
        row = _step_result(step, state)
        choices.append(len(row))
        for action, outcomes in row.items():
            actions.append(names.setdefault(action, len(names)))
            before = len(successor)
            for probability, target in _outcomes(state, action, outcomes):
                if target not in number:
                    _check_state(initial, target, f"state ({_show(state)}), action {action!r}")
                    number[target] = len(number)
                    queue.append(target)
                successor.append(number[target])
                expression.append(expressions.setdefault(polynomial(probability), len(expressions)))
            lengths.append(len(successor) - before)
    by_variable = zip(initial._fields, zip(*queue, strict=True), strict=True)
    columns = {field: _column(field, values) for field, values in by_variable}
    graph = _graph(choices, lengths, successor, columns, actions, tuple(names))
    rewards, choice_rewards = rewards or {}, choice_rewards or {}
    earned = {
        name: RewardStructure(
            _floats([rewards[name](state) for state in queue]) if name in rewards else None,
            _floats(list(_by_choice(choice_rewards[name], queue, graph))) if name in choice_rewards else None,
        )
        for name in {**rewards, **choice_rewards}
    }
    marked = {name: read_only(np.array([bool(f(s)) for s in queue])) for name, f in (labels or {}).items()}
    array = PolynomialArray(tuple(expressions), np.array(expression, dtype=np.int32))
    return assemble(graph, array, space, labels=marked, rewards=earned, constants={})


def explore_batch(
    step: BatchStep,
    initial: State,
    *,
    space: ParameterSpace,
    labels: Mapping[str, Callable[[State], BoolArray]] | None = None,
    rewards: Mapping[str, Callable[[State], FloatArray]] | None = None,
    choice_rewards: Mapping[str, Callable[[State, str], FloatArray]] | None = None,
) -> ParametricMDP:
    """Return the same model as ``explore`` from a step over arrays, a whole layer of states at a time.

    ``step(states)`` gets a NamedTuple of arrays and yields triples (action, where it is possible, outcomes); the
    outcomes are pairs (probability, next states), given for all states of the layer, also where the action is not
    possible. Probabilities that differ by state come from ``tabulate``. State variables are ints or Booleans.

    >>> from plumdp import ParameterSpace, parameters, tabulate
    >>> (p,) = parameters("p")
    >>> def step(s):
    ...     done = (s.money == 0) | (s.money == 3)
    ...     yield "stop", done, [(1, s)]
    ...     yield "bet", ~done, [(p, s._replace(money=s.money + 1)), (1 - p, s._replace(money=s.money - 1))]
    >>> explore_batch(step, {"money": 1}, space=ParameterSpace.unit("p")).graph.n_transitions
    6
    """
    initial = _as_state(initial)
    found = _Found(initial)
    expressions: dict[Polynomial, int] = {}
    names: dict[str, int] = {}
    layers = [_layer(step, batch, found, expressions, names) for batch in found.batches()]
    choices, lengths, actions, successor, expression = (np.concatenate(part) for part in zip(*layers, strict=True))
    del layers
    columns = found.columns()
    graph = _graph(choices, lengths, successor, columns, actions, tuple(names))
    states = type(initial)(**columns)
    rewards, choice_rewards = rewards or {}, choice_rewards or {}
    earned = {
        name: RewardStructure(
            _spread(rewards[name](states), graph.n_states) if name in rewards else None,
            _choice_arrays(choice_rewards[name], states, graph) if name in choice_rewards else None,
        )
        for name in {**rewards, **choice_rewards}
    }
    marked = {
        name: own_array(np.broadcast_to(np.asarray(f(states), dtype=np.bool_), graph.n_states))
        for name, f in (labels or {}).items()
    }
    array = PolynomialArray(tuple(expressions), expression)
    return assemble(graph, array, space, labels=marked, rewards=earned, constants={})


class _Found:
    """The states found so far, given out again as batches and as columns of their own types."""

    def __init__(self, initial: State) -> None:
        self.type = type(initial)
        self.kinds = [np.bool_ if isinstance(value, bool) else np.int32 for value in initial]
        self.store = StateStore(len(initial))
        for field, value in zip(initial._fields, initial, strict=True):
            if not isinstance(value, int | np.integer | np.bool_):
                raise ModelError(f"state variable {field} is {value!r}; explore_batch takes ints and Booleans")
        self.store.intern(np.array([initial], dtype=np.int32))

    def batches(self) -> Iterator[State]:
        """Yield the states in order, a batch at a time, until no new ones are found."""
        done, teller = 0, Teller("exploring", "states")
        while done < self.store.n:
            teller.tell(self.store.n)
            end = min(self.store.n, done + _LAYER)
            yield self.type(*(self._take(j, slice(done, end)) for j in range(len(self.kinds))))
            done = end

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the valuations by variable."""
        every = slice(0, self.store.n)
        return {field: read_only(self._take(j, every)) for j, field in enumerate(self.type._fields)}

    def _take(self, column: int, rows: slice) -> npt.NDArray[Any]:
        return self.store.rows[rows, column].astype(self.kinds[column])


def _layer(
    step: BatchStep, batch: State, found: _Found, expressions: dict[Polynomial, int], names: dict[str, int]
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Return choices per state, transitions and action per choice, successor and expression per transition."""
    n = len(batch[0])
    masks, widths, actions, successors, indices = [], [], [], [], []
    for action, where, outcomes in step(batch):
        mask = np.broadcast_to(np.asarray(where, dtype=np.bool_), n)
        pairs = list(outcomes)
        masks.append(mask)
        widths.append(len(pairs))
        actions.append(names.setdefault(action, len(names)))
        for probability, target in pairs:
            successor = np.zeros(n, dtype=np.int32)
            successor[mask] = found.store.intern(_rows(target, found.type._fields, n, mask, action))
            successors.append(successor)
            indices.append(_expression_index(probability, n, expressions))
    if not masks:
        raise ModelError(f"the step yields no action for a layer of {n} states, for example ({_show(_pick(batch, 0))})")
    possible = np.stack(masks, axis=1)  # (n, n_actions)
    taken = np.repeat(possible, widths, axis=1)  # (n, n_outcomes)
    return (
        possible.sum(axis=1, dtype=np.int32),
        np.broadcast_to(np.array(widths, dtype=np.int32), possible.shape)[possible],
        np.broadcast_to(np.array(actions, dtype=np.int32), possible.shape)[possible],
        np.stack(successors, axis=1)[taken],
        np.stack(indices, axis=1)[taken],
    )


def _rows(target: State, fields: tuple[str, ...], n: int, mask: BoolArray, action: str) -> IntArray:
    if getattr(target, "_fields", None) != fields:
        raise ModelError(f"action {action!r}: the next state is {target!r}; give it as states._replace(…)")
    rows = np.empty((int(mask.sum()), len(target)), dtype=np.int32)
    for j, (field, values) in enumerate(zip(fields, target, strict=True)):
        column = np.broadcast_to(np.asarray(values), n)[mask]
        if column.dtype.kind not in "biu":
            raise ModelError(f"action {action!r}: state variable {field} becomes {column.dtype}; use ints or Booleans")
        rows[:, j] = column
        if column.dtype.itemsize > 4 and (rows[:, j] != column).any():
            raise ModelError(f"action {action!r}: state variable {field} leaves the range of 32-bit integers")
    return rows


def _expression_index(probability: Any, n: int, expressions: dict[Polynomial, int]) -> IntArray:
    if not isinstance(probability, PolynomialArray):
        return np.full(n, number_in(expressions, polynomial(probability)), dtype=np.int32)
    if len(probability) != n:
        raise ModelError(f"{len(probability)} probabilities for a layer of {n} states")
    index: IntArray = number_in(expressions, probability)
    return index


def _graph(
    choices: Any, lengths: Any, successor: Any, states: Mapping[str, Any], actions: Any, names: tuple[str, ...]
) -> Graph:
    return Graph(
        _offsets(choices),
        _offsets(lengths),
        read_only(np.asarray(successor, dtype=np.int32)),
        0,
        states,
        read_only(np.asarray(actions, dtype=np.int32)),
        names,
    )


def _offsets(lengths: Any) -> IntArray:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return read_only(offsets)


def _as_state(initial: State) -> State:
    if isinstance(initial, Mapping):
        return namedtuple("State", initial)(**initial)  # the fields are the user's variables
    if not hasattr(initial, "_fields"):
        raise ModelError(f"initial state {initial!r}: give a NamedTuple or a dict of state variables")
    return initial


def _step_result(step: Step, state: State) -> Mapping[str, Iterable[tuple[Expression, State]]]:
    row = step(state)
    if not isinstance(row, Mapping):
        raise ModelError(
            f"state ({_show(state)}): the step returns {type(row).__name__}; "
            "return a dict from action names to lists of (probability, next state)"
        )
    return row


def _outcomes(state: State, action: str, outcomes: Any) -> Iterator[tuple[Expression, State]]:
    for outcome in outcomes:
        if not isinstance(outcome, tuple) or len(outcome) != 2:
            where = f"state ({_show(state)}), action {action!r}"
            raise ModelError(f"{where}: {outcome!r} is not a pair (probability, next state)")
        yield outcome


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


def _by_choice(function: Callable[[State, str], float], queue: list[State], graph: Graph) -> Iterator[float]:
    for state, choice in zip(graph.state_of_choice().tolist(), range(graph.n_choices), strict=True):
        yield function(queue[state], graph.action_names[graph.action[choice]])


def _choice_arrays(function: Callable[[State, str], FloatArray], states: State, graph: Graph) -> FloatArray:
    state, result = graph.state_of_choice(), np.zeros(graph.n_choices)
    for number, name in enumerate(graph.action_names):
        chosen = graph.action == number
        result[chosen] = _spread(function(states, name), graph.n_states)[state[chosen]]
    return _floats(result)


def _spread(values: Any, n: int) -> FloatArray:
    return _floats(np.broadcast_to(np.asarray(values, dtype=np.float64), n))


def _floats(values: Any) -> FloatArray:
    array: FloatArray = read_only(np.array(values, dtype=np.float64))
    return array


def _pick(batch: State, i: int) -> State:
    return type(batch)(*(column[i] for column in batch))


def _show(state: State) -> str:
    return ", ".join(f"{field}={value}" for field, value in zip(state._fields, state, strict=True))
