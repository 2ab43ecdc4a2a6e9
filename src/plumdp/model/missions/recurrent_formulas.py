"""Automata of formulas about what happens again and again, or from some time on forever.

A formula is split at ``&`` and ``|`` into parts that are decided in finite time (co-safe or safe), that ask for
something again and again (``G a`` with a co-safe ``a``, such as ``G F "b"``), or for something from some time on
(``F a`` with a safe ``a``, which is the negation of the former). Each part has a mark, and the parts are run together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.missions.acceptance import Condition, Joined, Limit, negated, pairs_of
from plumdp.model.missions.alternatives import DONE, FAILED, MUCH, Left
from plumdp.model.missions.automaton import explored, letters_of, progression
from plumdp.model.missions.logic import Formulas, Path
from plumdp.model.missions.recurrence import Recurrence, smallest_recurrence

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
    """Return the condition that a part asks for in every state, or excludes from some time on; None if decided."""
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
