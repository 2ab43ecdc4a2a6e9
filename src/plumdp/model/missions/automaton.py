"""Deterministic automata that read the states of a run, as the memory of a policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.model.graph import BoolArray, Indices, IntArray, read_only
from plumdp.model.memory import Product, memory_name, remember, with_values
from plumdp.model.missions.logic import DONE, FAILED, Formulas, Left, Path
from plumdp.model.objectives.mission import Mission
from plumdp.model.parametric import ParametricMDP

_MOST_STATES = 10_000  # of an automaton
_SHOWN = 60  # characters of what is left to be done
_WORDS = "remembers what it has done: its action may depend on what is left of the mission"
_ENDLESS = (
    "this mission may be open forever: it has F or U beside G, W or R (once negations are moved inwards); bound one of "
    'them, as in G<=100, or say until when: !"b" U "a" is to avoid b until a'
)


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

    def asked_of(self, model: ParametricMDP, mission: Mission) -> Product | str:
        """Return the product of the model with the automaton and what is asked there, or that it is too large."""
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
        product = remember(model, leave, over + 1, "mission", initial=initial, enter=enter, words=_WORDS)
        if isinstance(product, str):
            return product
        memory = product.graph.states[memory_name(product)]
        reach = mission.reaching(is_accepted[memory], (is_decided & ~is_accepted)[memory])
        return with_values(product, distinct_names((*self.names, "over"))), reach


def mission_automaton(path: Path, n_states: int) -> tuple[Automaton, bool]:
    """Return the automaton of a formula, or of its negation, and whether it is the negation.

    Formulas that are true of a run because of its first states (co-safe) are accepted by them. Those that are false
    because of its first states (safe) have the opposite as mission. Others are refused.
    """
    formulas = Formulas()
    root = formulas.add(path)
    is_negated = formulas.has_endless("R", root)
    if is_negated:
        if formulas.has_endless("U", root):
            raise ModelError(_ENDLESS)
        root = formulas.add(path, holds=False)
    letter, holds = letters_of([states for states, _ in formulas.states], n_states)
    lefts, after = _explored(formulas, formulas.left_of(root), holds)
    names = [formulas.text_of(left, negated=is_negated) for left in lefts]
    accepted, rejected = (np.array([left == end for left in lefts]) for end in (DONE, FAILED))
    found = Automaton(after, letter, 0, accepted, rejected, tuple(names))
    return smallest(found, is_negated=is_negated), is_negated


def letters_of(sets: Sequence[BoolArray], n_states: int) -> tuple[IntArray, BoolArray]:
    """Return the letter of each state (n_states), and whether each set has the states of each letter."""
    letter, example = np.zeros(n_states, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for states in sets:
        _, example, letter = np.unique(2 * letter + states, return_index=True, return_inverse=True)
    holds = np.array([states[example] for states in sets], dtype=np.bool_).reshape(len(sets), len(example))
    return read_only(letter.astype(np.int32)), holds


def _explored(formulas: Formulas, start: Left, holds: BoolArray) -> tuple[list[Left], IntArray]:
    """Return all that may be left to be done, and what is left of each after each letter."""
    number, lefts, rows = {start: 0}, [start], []
    letters: list[tuple[Callable[[int], bool], dict[int, Left]]] = [(row.__getitem__, {}) for row in holds.T.tolist()]
    for left in lefts:  # which grows
        row = []
        for letter in letters:
            new = formulas.after(left, *letter)
            if new not in number:
                number[new] = len(lefts)
                lefts.append(new)
            row.append(number[new])
        rows.append(row)
        if len(lefts) > _MOST_STATES:
            raise ModelError("too much is to be remembered for this mission; ask for parts of it one by one")
    return lefts, np.array(rows, dtype=np.int32)


def smallest(automaton: Automaton, *, is_negated: bool) -> Automaton:
    """Return the automaton with one memory for all that decide alike, by the outcome or the shortest of their names."""
    after, accepted = automaton.after, automaton.accepted
    rejected = ~may_reach(after, accepted)
    outcome = {True: "false", False: "true"}
    names = [
        outcome[is_negated] if accepted[i] else outcome[not is_negated] if rejected[i] else name
        for i, name in enumerate(automaton.names)
    ]
    group = np.unique(accepted + 2 * rejected, return_inverse=True)[1]
    while True:
        finer = np.unique(np.column_stack([group, group[after]]), axis=0, return_inverse=True)[1].reshape(-1)
        if finer.max() == group.max():
            break
        group = finer
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


def may_reach(after: IntArray, accepted: BoolArray) -> BoolArray:
    """Return from which memory an accepted one can be reached."""
    reaches = accepted
    while True:
        more = reaches | reaches[after].any(axis=1)
        if (more == reaches).all():
            return reaches
        reaches = more


def distinct_names(names: Sequence[str]) -> npt.NDArray[np.str_]:
    """Return names as an array of different short texts."""
    short = [name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…" for name in names]
    return np.array([f"{n} #{i}" if short.count(n) > 1 else n for i, n in enumerate(short)])
