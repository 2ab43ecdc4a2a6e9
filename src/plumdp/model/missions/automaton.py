"""Deterministic automata that read the states of a run, as the memory of a policy."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.model.graph import BoolArray, Indices, IntArray, read_only
from plumdp.model.memory import Product, memory_name, needed, remember, with_values
from plumdp.model.missions.alternatives import DONE, FAILED, MUCH, Left
from plumdp.model.missions.logic import Formulas, Path
from plumdp.model.objectives.mission import Mission
from plumdp.model.parametric import ParametricMDP

Kept = TypeVar("Kept", bound=Hashable)

_MOST_STATES = 10_000  # of an automaton
_MOST_SETS = 12  # of states, of which all combinations are letters
_MOST_STEPS = 2_000_000  # from a state of an automaton, by a letter
_SHOWN = 60  # characters of what is left to be done
_WORDS = "has memory: its action may depend on what is left of the mission"


@dataclass(frozen=True, eq=False)
class Automaton:
    """A deterministic automaton that reads each state as it is entered, the initial one first.

    A run is decided when it has come to a memory that is accepted, or to one that is rejected.
    """

    after: IntArray  # (n_memory, n_letters): the memory after a letter was read
    letter: IntArray  # (n_states): what it reads in each state of the model
    start: int  # the memory before the initial state is read
    accepted: BoolArray  # (n_memory)
    rejected: BoolArray  # (n_memory)
    names: tuple[str, ...] = field(repr=False)  # of the memory, as policies show it

    def asked_of(self, model: ParametricMDP, mission: Mission) -> Product:
        """Return the product of the model with the automaton and the question on it, or refuse a large one."""
        over = len(self.names)  # the memory after a run was decided
        after = np.vstack([self.after, np.full((1, self.after.shape[1]), over, dtype=np.int32)])
        is_decided = np.append(self.accepted | self.rejected, True)
        is_accepted = np.append(self.accepted, False)

        def leave(memory: Indices, state: Indices, choice: Indices) -> Indices:
            return np.where(is_decided[memory], over, memory)

        def enter(memory: Indices, state: Indices) -> Indices:
            entered: Indices = after[memory, self.letter[state]]
            return entered

        initial = int(enter(np.array([self.start]), np.array([model.graph.initial_state]))[0])
        found = remember(model, leave, over + 1, "mission", initial=initial, enter=enter, words=_WORDS)
        product = needed(found, mission)
        memory = product.graph.states[memory_name(product)]
        asked = mission.reaching(product, is_accepted[memory], (is_decided & ~is_accepted)[memory])
        return with_values(product, distinct_names((*self.names, "over"))), asked


def mission_automaton(path: Path, n_states: int, *, is_open: bool = False) -> tuple[Automaton, bool] | None:
    """Return the automaton of a formula, or of its negation, and whether it is the negation.

    Formulas that are true of a run because of its first states (co-safe) are accepted by them. Those that are false
    because of its first states (safe) have the opposite as mission. For others None is returned. If the model is open,
    runs are decided by what holds in any states, not only in those that it has.
    """
    formulas = Formulas(is_open=is_open)
    root = formulas.add(path)
    is_negated = formulas.has_endless("R", root)
    if is_negated:
        if formulas.has_endless("U", root):
            return None
        root = formulas.add(path, holds=False)
    letter, holds = letters_of([states for states, _ in formulas.states], n_states, every=is_open)
    lefts, after = explored(formulas.left_of(root), progression(formulas, holds), holds.shape[1])
    names = [formulas.text_of(left, negated=is_negated) for left in lefts]
    accepted, rejected = (np.array([left == end for left in lefts]) for end in (DONE, FAILED))
    found = Automaton(after, letter, 0, accepted, rejected, tuple(names))
    return smallest(found, is_negated=is_negated), is_negated


def finite_automaton(path: Path, ends: BoolArray, n_states: int, *, is_open: bool = False) -> Automaton:
    """Return the automaton of a formula about the states of a run up to the first one that ends it.

    It accepts a run in its last state, if the formula holds on the finite trace up to there. A run that never comes to
    a last state is not accepted.
    """
    formulas = Formulas(is_finite=True, is_open=is_open)
    start: Left | bool = formulas.left_of(formulas.add(path))
    letter, holds = letters_of([*(states for states, _ in formulas.states), ends], n_states, every=is_open)
    is_end, is_in, progress = holds[-1], holds.T.tolist(), progression(formulas, holds)

    def after(left: Left | bool, number: int) -> Left | bool:
        if isinstance(left, bool):  # the trace has ended
            return left
        return formulas.ends_with(left, is_in[number].__getitem__) if is_end[number] else progress(left, number)

    lefts, table = explored(start, after, holds.shape[1])
    names = ["end" if left == DONE else "" if isinstance(left, bool) else formulas.text_of(left) for left in lefts]
    accepted = np.array([left is True for left in lefts])
    found = Automaton(table, letter, 0, accepted, ~may_reach(table, accepted), tuple(names))
    return smallest(found, is_negated=False)


def letters_of(sets: Sequence[BoolArray], n_states: int, *, every: bool = False) -> tuple[IntArray, BoolArray]:
    """Return the letter of each state (n_states), and whether each set has the states of each letter.

    There are letters for all combinations of sets, or for those of the states alone.
    """
    if every:
        if len(sets) > _MOST_SETS:
            raise ModelError(MUCH)
        bits = 1 << np.arange(len(sets))[:, None]
        codes = (bits * np.array(sets).reshape(len(sets), n_states)).sum(axis=0)
        return read_only(codes.astype(np.int32)), (np.arange(1 << len(sets)) & bits) > 0
    letter, example = np.zeros(n_states, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for states in sets:
        _, example, letter = np.unique(2 * letter + states, return_index=True, return_inverse=True)
    holds = np.array([states[example] for states in sets], dtype=np.bool_).reshape(len(sets), len(example))
    return read_only(letter.astype(np.int32)), holds


def progression(formulas: Formulas, holds: BoolArray) -> Callable[[Left, int], Left]:
    """Return the function that says what is left after a letter was read."""
    letters: list[tuple[Callable[[int], bool], dict[int, Left]]] = [(row.__getitem__, {}) for row in holds.T.tolist()]
    return lambda left, number: formulas.after(left, *letters[number])


def explored(start: Kept, after: Callable[[Kept, int], Kept], n_letters: int) -> tuple[list[Kept], IntArray]:
    """Return all that may have to be kept in mind, and what comes after each of them and each letter."""
    number, kept, rows = {start: 0}, [start], []
    for each in kept:  # which grows
        row = []
        for letter in range(n_letters):
            new = after(each, letter)
            if new not in number:
                number[new] = len(kept)
                kept.append(new)
            row.append(number[new])
        rows.append(row)
        if len(kept) > _MOST_STATES or len(rows) * n_letters > _MOST_STEPS:
            raise ModelError(MUCH)
    return kept, np.array(rows, dtype=np.int32)


def smallest(automaton: Automaton, *, is_negated: bool) -> Automaton:
    """Return the automaton with one memory for all that decide alike, by the outcome or the shortest of their names."""
    after, accepted = automaton.after, ~may_avoid(automaton.after, automaton.accepted)
    rejected = ~may_reach(after, accepted)
    outcome = {True: "false", False: "true"}
    names = [
        outcome[is_negated] if accepted[i] else outcome[not is_negated] if rejected[i] else name
        for i, name in enumerate(automaton.names)
    ]
    group = refined(np.unique(accepted + 2 * rejected, return_inverse=True)[1], after)
    example = np.empty(int(group.max()) + 1, dtype=np.int64)
    for memory in sorted(range(len(names)), key=lambda i: (-len(names[i]), -i)):
        example[group[memory]] = memory
    return Automaton(
        read_only(group[after[example]].astype(np.int32)),
        automaton.letter,
        int(group[automaton.start]),
        read_only(accepted[example]),
        read_only(rejected[example]),
        tuple(names[memory] for memory in example.tolist()),
    )


def refined(group: Indices, after: IntArray) -> Indices:
    """Return groups of memory that were alike so far, split where what comes after a letter is in different groups."""
    while True:
        finer: Indices = np.unique(np.column_stack([group, group[after]]), axis=0, return_inverse=True)[1].reshape(-1)
        if finer.max() == group.max():
            return group
        group = finer


def may_reach(after: IntArray, accepted: BoolArray) -> BoolArray:
    """Return from which memory an accepted one can be reached."""
    reaches = accepted
    while True:
        more = reaches | reaches[after].any(axis=1)
        if (more == reaches).all():
            return reaches
        reaches = more


def may_avoid(after: IntArray, accepted: BoolArray) -> BoolArray:
    """Return from which memory a run may go on forever without coming to an accepted one."""
    avoids = ~accepted
    while True:
        fewer = avoids & avoids[after].any(axis=1)
        if (fewer == avoids).all():
            return avoids
        avoids = fewer


def distinct_names(names: Sequence[str]) -> npt.NDArray[np.str_]:
    """Return names as an array of different short texts."""
    short = [name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…" for name in names]
    return np.array([f"{n} #{i}" if short.count(n) > 1 else n for i, n in enumerate(short)])
