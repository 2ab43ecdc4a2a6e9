"""Automata that accept by what a run meets infinitely often, as the memory of a policy.

If every transition is possible, almost every run ends in an end component: a set of states with choices that lead to
all of its states and to no other. An end component is accepting if it meets one of the pairs of the condition. A run
that has come to one is won with certainty by going round in it. So the probability that a run is accepted is that of
coming to an accepting end component (de Alfaro, 1997; Baier and Katoen, Section 10.6.4).

That rests on the support: a transition of probability 0 might make other end components. ``Memory.relies_on`` marks the
transitions that must be possible, which is checked once data are there.

A formula about what happens again and again, or from some time on forever, is split at ``&`` and ``|`` into parts that
are decided in finite time (co-safe or safe), that ask for something again and again (``G a`` with a co-safe ``a``, such
as ``G F "b"``), or for something from some time on (``F a`` with a safe ``a``, the negation of the former). Each part
has a mark, and the parts are run together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from plumdp.base.errors import ModelError, WhyNot
from plumdp.model.graph import BoolArray, Graph, Indices, IntArray, read_only
from plumdp.model.memory import Product, memory_name, needed, remember, with_values
from plumdp.model.missions.alternatives import DONE, FAILED, MUCH, Left
from plumdp.model.missions.automaton import (
    Condition,
    Joined,
    Limit,
    Pair,
    distinct_names,
    explored,
    letters_of,
    negated,
    pairs_of,
    progression,
    refined,
)
from plumdp.model.missions.logic import Formulas, Path
from plumdp.model.objectives.mission import Mission
from plumdp.model.parametric import ParametricMDP

_WORDS = (
    "has memory, on which its action may depend; once the mission can no longer fail, it cycles through safe states"
)


@dataclass(frozen=True, eq=False)
class Recurrence:
    """A deterministic automaton that reads each state as it is entered, the initial one first, and never decides.

    A run is accepted if it meets one of the pairs by the marks of the memory that it comes to.
    """

    after: IntArray  # (n_memory, n_letters): the memory after a letter was read
    letter: IntArray  # (n_states): what it reads in each state of the model
    start: int  # the memory before the initial state is read
    marks: BoolArray  # (n_memory, n_marks)
    pairs: tuple[Pair, ...]
    names: tuple[str, ...] = field(repr=False)  # of the memory, as policies show it

    def asked_of(self, model: ParametricMDP, mission: Mission) -> Product:
        """Return the product of the model with the automaton and the question on it, or refuse one that is too large.

        Where a run is won, the product has no other choice than one that wins. With it comes the number of the goal
        that is next, of those that must be met again and again.
        """
        whole = needed(self._product(model), mission)
        won = _winning(whole.graph, self.marks[whole.graph.states[memory_name(whole)]], self.pairs)
        product = needed(self._product_with_goals(model, whole.graph, won), mission)
        n_goals = won.choice.shape[1]
        memory = product.graph.states[memory_name(product)] // n_goals
        target = won.pair[_place(whole.graph, memory_name(whole), len(self.names))[memory, _state(product.graph)]] >= 0
        names = [name if goal == 0 else f"{name}, goal {goal + 1}" for name in self.names for goal in range(n_goals)]
        graph = product.graph
        assert graph.memory is not None
        relies_on = read_only(self._relied_on(graph, memory, target))
        product = replace(product, graph=replace(graph, memory=replace(graph.memory, relies_on=relies_on)))
        asked = mission.reaching(product, target, np.zeros_like(target))
        return with_values(product, distinct_names(names)), asked

    def _product(self, model: ParametricMDP) -> ParametricMDP | WhyNot:
        def enter(memory: Indices, state: Indices) -> Indices:
            entered: Indices = self.after[memory, self.letter[state]]
            return entered

        initial = int(self.after[self.start, self.letter[model.graph.initial_state]])
        return remember(model, _kept, len(self.names), "mission", initial=initial, enter=enter)

    def _product_with_goals(self, model: ParametricMDP, whole: Graph, won: _Won) -> ParametricMDP | WhyNot:
        """Return the product with the number of the next goal besides, where won states have the choice that wins."""
        n_goals = won.choice.shape[1]
        assert whole.memory is not None
        place = _place(whole, whole.memory.names[0], len(self.names))
        goals = np.full((max(len(self.pairs), 1), n_goals), -1)
        for number, pair in enumerate(self.pairs):
            goals[number, : len(pair.often)] = pair.often
        n_own = np.maximum((goals >= 0).sum(axis=1), 1)

        def enter(code: Indices, state: Indices) -> Indices:
            memory, goal = np.divmod(code, n_goals)
            memory = self.after[memory, self.letter[state]]
            pair = won.pair[place[memory, state]]
            goal = np.where(goal < n_own[pair], goal, 0)
            mark = goals[pair, goal]
            is_met = (pair >= 0) & (mark >= 0) & self.marks[memory, mark]
            entered: Indices = memory * n_goals + np.where(pair < 0, 0, (goal + is_met) % n_own[pair])
            return entered

        def allow(code: Indices, state: Indices, choice: Indices) -> BoolArray:
            memory, goal = np.divmod(code, n_goals)
            wins: Indices = won.choice[place[memory, state], goal]
            allowed: BoolArray = (wins < 0) | (wins == choice)
            return allowed

        initial = enter(np.array([self.start * n_goals]), np.array([model.graph.initial_state]))
        return remember(
            model, _kept, len(self.names) * n_goals, "mission", initial=initial, enter=enter, allow=allow, words=_WORDS
        )

    def _relied_on(self, graph: Graph, memory: Indices, target: BoolArray) -> BoolArray:
        """Return the transitions of choices that win, and of those that could make an end component without others.

        A set of states in which a run may stay with any support is one in which it may if it could choose transitions.
        """
        n, first = graph.n_transitions, graph.first_transition[graph.first_choice]
        free = replace(graph, first_choice=first, first_transition=np.arange(n + 1, dtype=np.int32), memory=None)
        may_stay = np.zeros_like(target)
        for pair in self.pairs:
            may_stay |= accepting_component(free, self.marks[memory], pair)[0] >= 0
        return (may_stay | target)[np.repeat(np.arange(graph.n_states), np.diff(first))]


def _kept(memory: Indices, state: Indices, choice: Indices) -> Indices:
    return memory


def _state(graph: Graph) -> IntArray:
    assert graph.memory is not None
    return graph.memory.state


def _place(graph: Graph, name: str, n_memory: int) -> Indices:
    """Return the number of the product's state for each memory and state (n_memory, n_states), or -1."""
    assert graph.memory is not None
    place = np.full((n_memory, graph.memory.graph.n_states), -1, dtype=np.int32)
    place[graph.states[name], graph.memory.state] = np.arange(graph.n_states)
    return place


@dataclass(frozen=True, eq=False)
class _Won:
    """The states of a product in which a run is won with certainty, and how."""

    pair: IntArray  # (n_states): the pair that is met, or -1
    choice: (
        IntArray  # (n_states, n_goals): the choice without memory that leads to each goal, or -1 where nothing is won
    )


def _winning(graph: Graph, marks: BoolArray, pairs: tuple[Pair, ...]) -> _Won:
    """Return accepting end components. A state of several is of the first pair, and then of no later one."""
    assert graph.memory is not None
    number = np.full(graph.n_states, -1, dtype=np.int32)
    n_goals = max([len(pair.often) for pair in pairs] + [1])
    choice = np.full((graph.n_states, n_goals), -1, dtype=np.int32)
    for k, pair in enumerate(pairs):
        component, inner = accepting_component(graph, marks, pair)
        new = (component >= 0) & (number < 0)
        if not new.any():
            continue
        number[new] = k
        for goal, mark in enumerate(pair.often or (None,)):
            is_goal = component >= 0 if mark is None else (component >= 0) & marks[:, mark]
            choice[new, goal] = graph.memory.choice[_towards(graph, inner, is_goal)[new]]
    return _Won(number, choice)


def accepting_component(graph: Graph, marks: BoolArray, pair: Pair) -> tuple[IntArray, BoolArray]:
    """Return the number of the end component of each state that meets a pair, or -1, and the choices inside."""
    component, inner = end_components(graph, np.asarray(~marks[:, pair.never].any(axis=1)))
    n = int(component.max(initial=-1)) + 1
    meets = np.ones(n + 1, dtype=np.bool_)
    meets[n] = False  # states that are in none
    for mark in pair.often:
        meets &= np.bincount(component[marks[:, mark]] % (n + 1), minlength=n + 1) > 0
    component = np.where(meets[component], component, -1).astype(np.int32)
    return component, inner & (component >= 0)[graph.state_of_choice()]


def end_components(graph: Graph, allowed: BoolArray) -> tuple[IntArray, BoolArray]:
    """Return the number of the maximal end component among some states, or -1, and the choices that make them up.

    The strongly connected parts are found, and choices that leave theirs dropped, until there are none.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    source, owner = graph.state_of_choice(), graph.choice_of_transition()
    inner = allowed[source]
    while True:
        used, is_left = inner[owner], np.bincount(source[inner], minlength=graph.n_states) > 0
        ends = (source[owner[used]], graph.successor[used])
        edges = csr_array((np.ones(len(ends[0]), dtype=np.int32), ends), shape=(graph.n_states,) * 2)
        edges.sum_duplicates()
        parts = connected_components(edges, directed=True, connection="strong")[1]
        component = np.full(graph.n_states, -1, dtype=np.int32)
        component[is_left] = np.unique(parts[is_left], return_inverse=True)[1]
        leaves = component[graph.successor] != component[source][owner]
        stays = inner & (np.bincount(owner, leaves, graph.n_choices) == 0)
        if (stays == inner).all():
            return component, inner
        inner = stays


def _towards(graph: Graph, inner: BoolArray, goal: BoolArray) -> Indices:
    """Return for each state the choice inside that comes closest to a goal, in the number of steps it takes at least.

    Every state inside has a chance to come to a goal by these choices, and so it comes there with certainty.
    """
    source = graph.state_of_choice()
    distance = np.where(goal, 0.0, np.inf)
    while True:
        ahead = np.minimum.reduceat(distance[graph.successor], graph.first_transition[:-1])
        ahead[~inner] = np.inf
        closer = np.minimum(distance, np.minimum.reduceat(ahead, graph.first_choice[:-1]) + 1)
        if (closer == distance).all():
            break
        distance = closer
    best: Indices = np.lexsort((ahead, source))[graph.first_choice[:-1]]
    return best


def smallest_recurrence(automaton: Recurrence) -> Recurrence:
    """Return the automaton with one memory for all that have the same marks now and after all that may follow."""
    group = refined(np.unique(automaton.marks, axis=0, return_inverse=True)[1].reshape(-1), automaton.after)
    names = automaton.names
    example = np.empty(int(group.max()) + 1, dtype=np.int64)
    for memory in sorted(range(len(names)), key=lambda i: (-len(names[i]), -i)):
        example[group[memory]] = memory
    return replace(
        automaton,
        after=read_only(group[automaton.after[example]].astype(np.int32)),
        start=int(group[automaton.start]),
        marks=read_only(automaton.marks[example]),
        names=tuple(names[memory] for memory in example.tolist()),
    )


_MOST_PARTS = 12


class _SubFormula(NamedTuple):
    """A part of a formula, which moves from what is left of it to what is left after a letter, and sometimes marks."""

    start: Hashable
    step: Callable[[Any, int], tuple[Hashable, bool]]
    shown: Callable[[Any], str]
    is_often: bool  # whether the mark must be met infinitely often, or else finitely often


def recurrence_of(path: Path, n_states: int, *, is_max: bool, is_open: bool = False) -> tuple[Recurrence, bool] | None:
    """Return the automaton of a formula or, if its probability is to be small, of its negation, and which it is.

    None is returned for a formula that cannot be split into such parts.
    """
    formulas, numbers = Formulas(is_open=is_open), list[int]()
    condition = _condition(formulas, formulas.add(path), numbers)
    if condition is None:
        return None
    repeated = [_repeated(formulas, number) for number in numbers]  # which may add sets of states
    letter, holds = letters_of([states for states, _ in formulas.states], n_states)
    progress = progression(formulas, holds)
    parts = [_part(formulas, *each, progress) for each in zip(numbers, repeated, strict=True)]

    def after(kept: Any, number: int) -> Any:
        steps = [part.step(left, number) for part, left in zip(parts, kept[0], strict=True)]
        return tuple(left for left, _ in steps), tuple(mark for _, mark in steps)

    start = tuple(part.start for part in parts), (False,) * len(parts)
    found, table = explored(start, after, holds.shape[1])
    names = [" ; ".join(part.shown(left) for part, left in zip(parts, each[0], strict=True)) for each in found]
    condition = condition if is_max else negated(condition)
    marks = np.array([each[1] for each in found])
    return smallest_recurrence(Recurrence(table, letter, 0, marks, pairs_of(condition), tuple(names))), not is_max


def _condition(formulas: Formulas, number: int, numbers: list[int]) -> Condition | None:
    """Return the condition on the marks of parts, whose formulas are added to ``numbers``."""
    kind = _kind(formulas, number)
    if kind is not None:
        if number not in numbers:
            numbers.append(number)
        if len(numbers) > _MOST_PARTS:
            raise ModelError(MUCH)
        return Limit(numbers.index(number), is_often=kind)
    operator, operands = formulas.joined_parts(number)
    conditions = [_condition(formulas, each, numbers) for each in operands]
    known = tuple(each for each in conditions if each is not None)
    return Joined(operator, known) if operands and len(known) == len(operands) else None


def _kind(formulas: Formulas, number: int) -> bool | None:
    """Return whether the mark of a part is to be met infinitely often, finitely often, or None if it is no part."""
    if not formulas.has_endless("R", number):
        return True
    if not formulas.has_endless("U", number):
        return False
    for operator, other, kind in (("R", "R", True), ("U", "U", False)):
        inner = formulas.endless_operand(operator, number)
        if inner is not None and not formulas.has_endless(other, inner):
            return kind
    return None


def _repeated(formulas: Formulas, number: int) -> int | None:
    """Return the condition that a part requires in every state, or excludes from some time on, or None if decided."""
    is_often = _kind(formulas, number)
    if not formulas.has_endless("R" if is_often else "U", number):
        return None
    return formulas.endless_operand("R", number if is_often else formulas.opposite(number))


def _part(formulas: Formulas, number: int, repeated: int | None, progress: Callable[[Left, int], Left]) -> _SubFormula:
    is_often = _kind(formulas, number)
    assert is_often is not None
    if repeated is not None:
        return _again(formulas, formulas.left_of(repeated), progress, is_often=is_often)
    end = DONE if is_often else FAILED

    @cache
    def step(left: Left, letter: int) -> tuple[Left, bool]:
        new = progress(left, letter)
        return new, new == end

    return _SubFormula(formulas.left_of(number), step, formulas.text_of, is_often)


def _again(formulas: Formulas, asked: Left, progress: Callable[[Left, int], Left], *, is_often: bool) -> _SubFormula:
    """Return the part that marks whenever all is done that was asked until the mark before, once in every state."""

    @cache
    def step(kept: tuple[Left, Left], letter: int) -> tuple[tuple[Left, Left], bool]:
        now = progress(kept[0], letter)
        later = progress(formulas.both(kept[1], asked), letter)
        if FAILED in (now, later):
            return (FAILED, FAILED), False
        return ((later, DONE), True) if now == DONE else ((now, later), False)

    def shown(kept: tuple[Left, Left]) -> str:
        text = formulas.text_of(formulas.both(*kept))
        return f"again {text}" if is_often else f"never again {text}"

    return _SubFormula((DONE, DONE), step, shown, is_often)
