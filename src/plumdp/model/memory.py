"""Products of a model with a finite memory that a policy keeps, such as the number of steps taken.

A product multiplies states only: each of its choices has the row of a choice of the model without memory (``Lift``),
so that what data say about the parameters stays the same. It is built from the initial state, one array at a time for
all states that are found at once. With a step counter it has no way back, and an objective with a number of steps
becomes one without: the run is over when the counter is. If that is too large, it may be made of the choices alone that
some policies take (``keep``), as a policy that counts steps reaches few pairs of a state and a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.combinations import Trait, refuse, why_not
from plumdp.base.errors import UNSAID, ModelError, WhyNot
from plumdp.model.graph import BoolArray, Graph, Indices, IntArray, Memory, ranges, read_only
from plumdp.model.kernels import find_distances
from plumdp.model.objectives import Objective, Reach, Reward
from plumdp.model.objectives.mission import Mission
from plumdp.model.parametric import Lift, ParametricMDP, offsets_of
from plumdp.model.unmodelled_exits import out_of_table_of

Update: TypeAlias = Callable[[Indices, Indices, Indices], Indices]
"""Returns the memory after each step, given the memory before it, and the state and the choice without memory."""
Entry: TypeAlias = Callable[[Indices, Indices], Indices]
"""Returns the memory after each state was entered, given the memory after the step to it, and the state."""
Allowance: TypeAlias = Callable[[Indices, Indices, Indices], BoolArray]
"""Returns whether each choice is allowed, given the memory, and the state and the choice without memory."""
Product: TypeAlias = tuple[ParametricMDP, Objective]
"""A product of a model with memory, and the question on it."""

MOST_TRANSITIONS = 10_000_000  # of a product
_MOST_KEPT = 2_000_000_000  # bytes
_MOST_CODES = 250_000_000  # pairs of a state and a memory, whether they are found or not
_MANY = 100  # steps from the initial state, after which moves of all pairs are found at once, if they are not too many
_STEP = "step"
_COUNTS = "counts steps: its action may depend on the number of steps left"
_AMONG_FEW = "was chosen among policies that are best at a few points, as the product with all actions is too large"
_REMEMBERS = "has memory: its action may depend on it"


def with_memory(model: ParametricMDP, objective: Objective) -> Product | WhyNot:
    """Return the product with the memory that an objective needs, or that may help, or why there is none, in words."""
    if not isinstance(objective, Mission):
        return count_steps(model, objective)
    refuse({Trait.MISSION, *model.traits}, objective.text)
    return objective.task.asked_of(model, objective)


def needed(product: ParametricMDP | WhyNot, mission: Mission) -> ParametricMDP:
    """Return a product that a mission cannot do without, or refuse the mission if it is too large."""
    if isinstance(product, WhyNot):
        raise ModelError(f"{mission.text}: the policy needs memory, but {product.reason}")
    return product


def count_steps(model: ParametricMDP, objective: Objective, *, keep: BoolArray | None = None) -> Product | WhyNot:
    """Return the product with a step counter and the objective there, or why there is none, in words.

    The reason goes without saying if no policy can do better by counting: there are no choices, or one step.
    """
    refusal = _refusal(model, objective)
    if refusal is not None:
        return refusal
    assert isinstance(objective, Reach | Reward)
    n_steps, ends = objective.n_steps, _ended(objective, model.graph)
    assert n_steps is not None

    def count(step: Indices, state: Indices, choice: Indices) -> Indices:
        return np.where(ends(step, state), n_steps, np.minimum(step + 1, n_steps))

    words = _COUNTS if keep is None else f"{_COUNTS}, and {_AMONG_FEW}"
    product = remember(model, count, n_steps + 1, _STEP, words=words, allow=None if keep is None else among(keep))
    return product if isinstance(product, WhyNot) else (product, _unbounded(objective, product.graph, n_steps))


def may_count_few(model: ParametricMDP, objective: Objective) -> bool:
    """Return whether there is a product with a step counter on few choices, however large the whole one is."""
    n_pairs = ((objective.n_steps or 0) + 1) * model.graph.n_choices
    return n_pairs <= _MOST_KEPT and _refusal(model, objective) is None


def among(keep: BoolArray) -> Allowance:
    """Return a test for the choices that are kept: at least one in each state that these lead to."""
    return lambda memory, state, choice: np.asarray(keep[memory, choice])


def no_choices(model: ParametricMDP, objective: Objective) -> BoolArray:
    """Return an array for the choices that a step counter is made for, none yet but one wherever a run is over."""
    assert objective.n_steps is not None
    keep = np.zeros((objective.n_steps + 1, model.graph.n_choices), dtype=np.bool_)
    keep[-1, model.graph.first_choice[:-1]] = True
    return keep


def _refusal(model: ParametricMDP, objective: Objective) -> WhyNot | None:
    """Return the reason not to count steps, whatever the size of the product, or None if they may be counted."""
    graph, n_steps = model.graph, objective.n_steps
    is_idle = n_steps is None or ((n_steps < 2 or graph.is_chain) and out_of_table_of(model) is None)
    if is_idle or graph.memory is not None:
        return UNSAID
    if no_counter := why_not(Trait.STEP_COUNTER, *model.traits):
        return WhyNot(no_counter)
    if not isinstance(objective, Reach | Reward):
        return WhyNot(f"steps are not counted for the objective {type(objective).__name__}")
    if isinstance(objective, Reward) and objective.discount is None and (objective.terms(graph).reward < 0).any():
        return WhyNot("steps are counted for rewards of at least 0 only, and for discounted ones")
    return None


def remember(
    model: ParametricMDP,
    update: Update,
    n_memory: int,
    name: str,
    *,
    initial: int | Indices = 0,
    enter: Entry | None = None,
    allow: Allowance | None = None,
    words: str = _REMEMBERS,
) -> ParametricMDP | WhyNot:
    """Return the product of a model with a memory from 0 to ``n_memory`` - 1, or in words that it is too large.

    A memory that depends on the state that a step leads to is updated once more by ``enter``. Without ``allow`` all
    choices of the model may be taken, whatever is remembered. States are those that can be reached from the initial one
    with each initial memory, in the order in which they are found. The variable of the memory has the given name, with
    ``memory_`` before it if the model has a variable of that name.
    """
    small, out_of_table = model.graph, out_of_table_of(model)

    def taken(memory: Indices, state: Indices, choice: Indices) -> Indices:
        """Return the memory after a step, which nature's choice of what comes after the table is not."""
        after = update(memory, state, choice)
        return after if out_of_table is None else np.where(state == out_of_table, memory, after)

    too_large = f"its product of {small.n_states:,} states and {n_memory:,} of memory"
    if small.n_states * n_memory > _MOST_CODES:
        return WhyNot(f"{too_large} would have more than {_MOST_CODES:,} states")
    number = np.zeros(small.n_states * n_memory, dtype=np.int32)  # one more than the number in the product
    found = [np.atleast_1d(initial) * small.n_states + small.initial_state]
    n_found, n_transitions = len(found[0]), 0
    moves: list[tuple[Indices, Indices, Indices]] = []
    number[found[0]] = 1 + np.arange(n_found)
    while len(found[-1]):
        if len(found) == _MANY and n_memory * small.n_transitions <= MOST_TRANSITIONS:
            everywhere = np.divmod(np.arange(len(number)), small.n_states)
            found, moves = [_in_order(small, found[0], _moves(small, *everywhere, taken, enter, allow))], []
            n_found, n_transitions = len(found[0]), 0
            number[found[0]] = 1 + np.arange(n_found)
        memory, state = np.divmod(found[-1], small.n_states)
        choice, n_choices, after = _moves(small, memory, state, taken, enter, allow)
        n_transitions += len(after)
        if n_transitions > MOST_TRANSITIONS:
            return WhyNot(f"{too_large} has more than {MOST_TRANSITIONS:,} transitions")
        new = np.unique(after[number[after] == 0])
        number[new] = n_found + 1 + np.arange(len(new))
        n_found += len(new)
        found.append(new)
        moves.append((choice, n_choices, after))
    memory, state = np.divmod(np.concatenate(found), small.n_states)
    choice, n_choices, after = (np.concatenate(parts) for parts in zip(*moves, strict=True))
    name = name if name not in small.states else f"memory_{name}"
    of_states = Memory(small, _int32(state), _int32(choice), (name,), f"{words} (column {name})")
    return _assembled(model, of_states, n_choices, memory, number[after] - 1)


def _moves(
    small: Graph, memory: Indices, state: Indices, update: Update, enter: Entry | None, allow: Allowance | None
) -> tuple[Indices, Indices, Indices]:
    """Return the choices of some states of a product, their number for each, and where each of their transitions leads.

    A place is the number of the memory times that of the states, plus the state.
    """
    n_choices = small.first_choice[state + 1] - small.first_choice[state]
    choice = ranges(small.first_choice[state], small.first_choice[state + 1])
    owner = np.repeat(np.arange(len(state)), n_choices)
    if allow is not None:
        is_allowed = allow(memory[owner], state[owner], choice)
        choice, owner = choice[is_allowed], owner[is_allowed]
        n_choices = np.bincount(owner, minlength=len(state))
    next_memory = update(memory[owner], state[owner], choice)
    sizes = small.first_transition[choice + 1] - small.first_transition[choice]
    successor, next_memory = small.successor[small.transitions_of(choice)], np.repeat(next_memory, sizes)
    if enter is not None:
        next_memory = enter(next_memory, successor)
    after: Indices = next_memory.astype(np.int64) * small.n_states + successor
    return choice, n_choices, after


def _in_order(small: Graph, initial: Indices, moves: tuple[Indices, Indices, Indices]) -> Indices:
    """Return the places that can be reached, by their distance and then by their number, given the moves of all."""
    choice, n_choices, after = moves
    sizes = small.first_transition[choice + 1] - small.first_transition[choice]
    first = np.concatenate([[0], np.cumsum(sizes)])[np.concatenate([[0], np.cumsum(n_choices)])]
    distance, queue = np.full(len(n_choices), -1, dtype=np.int64), np.empty(len(n_choices), dtype=np.int64)
    distance[initial], queue[: len(initial)] = 0, initial
    places = queue[: find_distances(first, after, distance, queue, len(initial))]
    places = places[np.lexsort((places, distance[places]))]
    places[: len(initial)] = initial
    return places


def memory_name(product: ParametricMDP) -> str:
    """Return the variable of a product that is its memory."""
    assert product.graph.memory is not None
    return product.graph.memory.names[0]


def with_values(product: ParametricMDP, values: npt.NDArray[Any]) -> ParametricMDP:
    """Return a product whose memory 0, 1, … is called by the given values, all of which differ."""
    graph, name = product.graph, memory_name(product)
    return replace(product, graph=replace(graph, states={**graph.states, name: read_only(values[graph.states[name]])}))


def _assembled(
    model: ParametricMDP, memory: Memory, n_choices: Indices, values: Indices, successor: Indices
) -> ParametricMDP:
    """Return the product, given its states with numbers of choices and memory, and where its transitions lead."""
    small, state, choice = model.graph, memory.state, memory.choice
    states = {name: read_only(column[state]) for name, column in small.states.items()}
    graph = Graph(
        offsets_of(n_choices),
        offsets_of(small.first_transition[choice + 1] - small.first_transition[choice]),
        _int32(successor),
        0,
        {**states, memory.names[0]: _int32(values)},
        read_only(small.action[choice]),
        small.action_names,
        memory=memory,
    )
    return replace(
        model,
        graph=graph,
        expression=read_only(model.expression[small.transitions_of(choice)]),
        labels={},
        rewards={},
        lift=Lift(model.counted, choice if model.lift is None else np.asarray(model.lift.choice)[choice]),
    )


def _int32(values: Indices) -> IntArray:
    return read_only(values.astype(np.int32))


def _ended(objective: Reach | Reward, graph: Graph) -> Callable[[Indices, Indices], BoolArray]:
    """Return a function that says whether the value of a run is decided in a state at a step, before the last one."""
    if isinstance(objective, Reach):
        target, avoid, (first, _) = objective.target, objective.avoid, objective.steps or (0, 0)
        return lambda step, state: avoid[state] | (target[state] & (step >= first))
    end = objective.terms(graph).is_end
    return lambda step, state: end[state]


def _unbounded(objective: Reach | Reward, graph: Graph, n_steps: int) -> Objective:
    """Return the objective on a product with a step counter, where the counter says when the run is over."""
    memory = graph.memory
    assert memory is not None
    step = graph.states[memory.names[0]]
    is_over = step == n_steps
    if isinstance(objective, Reach):
        assert objective.steps is not None
        is_reached = objective.target[memory.state] & (step >= objective.steps[0])
        return replace(objective, target=is_reached, avoid=objective.avoid[memory.state] | is_over, steps=None)
    earned = objective.terms(memory.graph).earned.at(memory.choice)
    if objective.discount is None:
        is_over = is_over if objective.target is None else is_over | objective.target[memory.state]
        return replace(objective, reward=earned, target=is_over, steps=None)
    # a discounted reward has no target, and none is earned any more
    return replace(objective, reward=earned.without(is_over[graph.state_of_choice()]), steps=None)
