"""Formulas of linear temporal logic, and what is left of one after a state is entered (progression).

A formula is a number in a table, where equal formulas have one number. Negations are moved inwards to sets of states as
it is made. All operators are two: ``U`` (until, of which F is a case) and its dual ``R`` (release, of which G is one),
each with a window of steps.

On finite traces (De Giacomo and Vardi, 2013) the last state has no next one: ``X a`` is false in it, and its dual,
which is ``N`` here and written ``!X !a``, is true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from plumdp.model.graph import BoolArray
from plumdp.model.missions.alternatives import (
    ALWAYS,
    DONE,
    FAILED,
    FALSE,
    TRUE,
    Alternatives,
    FormulaNode,
    Left,
    Window,
)
from plumdp.model.parametric import RewardStructure

_ATOM = re.compile(r'!?("[^"]*"|\w+)')
_SIMPLE = re.compile(r'!?("[^"]*"|\w+)|\w+ ?(=|!=|<|<=|>|>=) ?("[^"]*"|-?\w+)')  # which needs no parentheses


@dataclass(frozen=True, eq=False)
class Spending:
    """The most of a reward that may be collected on the way."""

    name: str
    reward: RewardStructure
    most: Fraction
    is_below: bool  # or else it may be all spent


@dataclass(frozen=True, eq=False)
class Path:
    """A formula as it is written, an operator with operands, or a set of states."""

    operator: str  # one of F G X U W R ! & | => <=>, or "states"
    operands: tuple[Path, ...] = ()
    window: tuple[int, int] | None = None
    spending: Spending | None = None
    states: BoolArray | None = None  # (n_states)
    text: str = ""  # of a set of states

    @property
    def is_plain(self) -> bool:
        """Whether it is one temporal operator with sets of states."""
        return self.operator in ("F", "G", "X", "U") and all(each.operator == "states" for each in self.operands)


class Formulas:
    """A table of formulas without negations, to which formulas are added as they are found."""

    def __init__(self, *, is_finite: bool = False, is_open: bool = False) -> None:
        self.states: list[tuple[BoolArray, str]] = []  # sets of states, with their texts
        self._is_finite = is_finite  # whether formulas are about traces that end
        self._is_open = is_open  # whether runs may come to states that the sets say nothing about
        self._dual = {**_DUAL, "X": "N"} if is_finite else _DUAL
        self._nodes: list[FormulaNode] = []
        self._number: dict[FormulaNode, int] = {}
        self._set: dict[tuple[bytes, str], int] = {}
        self._opposite: dict[int, int] = {}
        self._added: dict[tuple[int, bool], int] = {}
        self._alternatives = Alternatives(self._nodes)
        for constant in ("true", "false"):
            self._numbered(FormulaNode(constant, ()))

    def add(self, path: Path, *, holds: bool = True) -> int:
        """Return the number of a formula, or of its negation."""
        key = (id(path), holds)
        if key not in self._added:
            self._added[key] = self._add(path, holds=holds)
        return self._added[key]

    def _add(self, path: Path, *, holds: bool) -> int:
        operator, operands = path.operator, path.operands
        if operator == "states":
            assert path.states is not None
            return self._of_states(path.states, path.text) if holds else self._of_states(~path.states, _not(path.text))
        if operator == "!":
            return self.add(operands[0], holds=not holds)
        if operator in ("=>", "<=>"):
            return self._implication(path, holds=holds)
        first, last = self.add(operands[0], holds=holds), self.add(operands[-1], holds=holds)
        if operator in ("&", "|"):
            return self._joined(operator if holds else self._dual[operator], (first, last))
        if operator == "X":
            return self._next("X" if holds else self._dual["X"], first)
        if operator in ("F", "G"):
            is_release = (operator == "G") == holds
            return self._bounded("R" if is_release else "U", FALSE if is_release else TRUE, last, path.window)
        if operator == "W":  # a W b is b R (a | b), and its negation !b U (!a & !b)
            both = self._joined("|" if holds else "&", (first, last))
            return self._bounded("R" if holds else "U", last, both, None)
        return self._bounded(operator if holds else self._dual[operator], first, last, path.window)

    def _next(self, operator: str, number: int) -> int:
        is_known = number in (TRUE, FALSE) and (not self._is_finite or number == (FALSE if operator == "X" else TRUE))
        return number if is_known else self._numbered(FormulaNode(operator, (number,)))

    def _implication(self, path: Path, *, holds: bool) -> int:
        yes, no = ([self.add(each, holds=positive) for each in path.operands] for positive in (True, False))
        if path.operator == "=>":
            return self._joined("|", (no[0], yes[1])) if holds else self._joined("&", (yes[0], no[1]))
        second = (yes[1], no[1]) if holds else (no[1], yes[1])
        return self._joined("|", [self._joined("&", pair) for pair in zip((yes[0], no[0]), second, strict=True)])

    def has_endless(self, operator: str, number: int) -> bool:
        """Return whether U, or R, occurs in a formula without a last step."""
        pending, seen = [number], {number}
        while pending:
            node = self._nodes[pending.pop()]
            if node.operator == operator and node.window[1] is None:
                return True
            new = set(node.operands) - seen if node.operator != "states" else set()
            seen |= new
            pending += new
        return False

    def left_of(self, number: int) -> Left:
        """Return a formula as what is left to be done before any state was entered."""
        node = self._nodes[number]
        if number == TRUE:
            return DONE
        if number == FALSE:
            return FAILED
        if node.operator in ("&", "|"):
            return self._alternatives.combined(node.operator, map(self.left_of, node.operands))
        return frozenset([frozenset([number])])

    def after(self, left: Left, holds: Callable[[int], bool], known: dict[int, Left]) -> Left:
        """Return the remaining formula after a state was entered, given whether it is in each set of states.

        ``known`` keeps what is left of each formula after such a state.
        """
        alternatives = (
            self._alternatives.combined("&", (self._after(each, holds, known) for each in every)) for every in left
        )
        return self._alternatives.combined("|", alternatives)

    def ends_with(self, left: Left, holds: Callable[[int], bool]) -> bool:
        """Return whether what is left is done if the state that is entered is the last of a finite trace."""
        return any(all(self._ends_with(each, holds) for each in every) for every in left)

    def _ends_with(self, number: int, holds: Callable[[int], bool]) -> bool:
        node = self._nodes[number]
        if node.operator == "states":
            return holds(node.operands[0])
        if node.operator in ("&", "|"):
            join = all if node.operator == "&" else any
            return join(self._ends_with(each, holds) for each in node.operands)
        if node.operator in ("U", "R") and node.window[0] == 0:
            return self._ends_with(node.operands[1], holds)
        return number == TRUE or node.operator in ("N", "R")  # which ask for nothing if there is no next state

    def _after(self, number: int, holds: Callable[[int], bool], known: dict[int, Left]) -> Left:
        if number not in known:
            self._alternatives.spend(5)
            node = self._nodes[number]
            if node.operator == "states":
                known[number] = DONE if holds(node.operands[0]) else FAILED
            elif node.operator in ("&", "|"):
                known[number] = self._alternatives.combined(
                    node.operator, (self._after(f, holds, known) for f in node.operands)
                )
            elif node.operator in ("X", "N"):
                known[number] = self.left_of(node.operands[0])
            elif node.operator in ("U", "R"):
                known[number] = self._unfolded(node, holds, known)
            else:
                known[number] = self.left_of(number)
        return known[number]

    def _unfolded(self, node: FormulaNode, holds: Callable[[int], bool], known: dict[int, Left]) -> Left:
        """Return the remaining formula of ``a U b`` (b now, or a now and the rest later) or of ``a R b``, its dual."""
        (a, b), (first, last) = node.operands, node.window
        later = node.window if last is None else (max(first - 1, 0), last - 1)
        join = "&" if node.operator == "U" else "|"
        goal = FAILED if node.operator == "U" else DONE
        if first == 0:
            goal = self._after(b, holds, known)
            if last == 0:
                return goal
        rest = self._alternatives.combined(
            join, (self._after(a, holds, known), self.left_of(self._bounded(node.operator, a, b, later)))
        )
        return self._alternatives.combined(_DUAL[join], (goal, rest))

    def _of_states(self, states: BoolArray, text: str) -> int:
        is_constant = text in _CONSTANTS if self._is_open else bool(states.all() or not states.any())
        if is_constant:
            return TRUE if states.all() else FALSE
        # sets of the same states may differ where the model has none
        number = self._set.setdefault((np.packbits(states).tobytes(), text if self._is_open else ""), len(self.states))
        if number == len(self.states):
            self.states.append((states, text))
        return self._numbered(FormulaNode("states", (number,)))

    def _joined(self, operator: str, parts: Iterable[int]) -> int:
        zero, one = (FALSE, TRUE) if operator == "&" else (TRUE, FALSE)
        members: set[int] = set()
        for part in parts:
            members.update(self._nodes[part].operands if self._nodes[part].operator == operator else (part,))
        members -= {one}
        if zero in members or len(members) < 2:
            return zero if zero in members else min(members, default=one)
        return self._numbered(FormulaNode(operator, tuple(sorted(members))))

    def _bounded(self, operator: str, a: int, b: int, window: Window | None) -> int:
        window = window or ALWAYS
        now = window == (0, 0) or (window[0] == 0 and b in (TRUE, FALSE))
        return b if now else self._numbered(FormulaNode(operator, (a, b), window))

    def _numbered(self, node: FormulaNode) -> int:
        number = self._number.setdefault(node, len(self._nodes))
        if number == len(self._nodes):
            self._nodes.append(node)
        return number

    def opposite(self, number: int) -> int:
        """Return the negation of a formula."""
        if number in (TRUE, FALSE):
            return FALSE if number == TRUE else TRUE
        if number not in self._opposite:
            node = self._nodes[number]
            if node.operator == "states":
                states, text = self.states[node.operands[0]]
                self._opposite[number] = self._of_states(~states, _not(text))
            else:
                operands = tuple(self.opposite(each) for each in node.operands)
                is_set = node.operator in ("&", "|")
                dual = FormulaNode(
                    self._dual[node.operator], tuple(sorted(operands)) if is_set else operands, node.window
                )
                self._opposite[number] = self._numbered(dual)
        return self._opposite[number]

    def text_of(self, left: Left, *, negated: bool = False) -> str:
        """Return the remaining formula as text, or its negation if ``negated``."""
        if left in (DONE, FAILED):
            return "true" if (left == DONE) != negated else "false"
        inner, outer = (" | ", " & ") if negated else (" & ", " | ")
        every = [
            inner.join(sorted(self._shown(self.opposite(each) if negated else each, len(one) > 1) for each in one))
            for one in left
        ]
        return outer.join(
            sorted(f"({each})" if len(left) > 1 and not _SIMPLE.fullmatch(each) else each for each in every)
        )

    def _shown(self, number: int, is_part: bool = True) -> str:
        node = self._nodes[number]
        if node.operator in ("true", "false"):
            return node.operator
        if node.operator == "states":
            text = self.states[node.operands[0]][1]
        else:
            is_first = {each: self._nodes[each].operator == "states" for each in node.operands}
            order = sorted(node.operands, key=lambda each: not is_first[each])
            parts = [self._shown(each) for each in (order if node.operator in ("&", "|") else node.operands)]
            text = self._written(node, parts)
        return text if not is_part or _SIMPLE.fullmatch(text) else f"({text})"

    def _written(self, node: FormulaNode, parts: list[str]) -> str:
        if node.operator in ("&", "|"):
            return f" {node.operator} ".join(parts)
        if node.operator in ("X", "N"):
            return f"X {parts[0]}" if node.operator == "X" else f"!(X {_not(parts[0])})"
        (first, last), a = node.window, node.operands[0]
        bound = "" if last is None else f"<={last}" if first == 0 else f"[{first},{last}]"
        if a == (TRUE if node.operator == "U" else FALSE):
            return f"{'F' if node.operator == 'U' else 'G'}{bound} {parts[1]}"
        return f"{parts[0]} {node.operator}{bound} {parts[1]}"


_CONSTANTS = ("true", "false", "!true", "!false")
_DUAL = {"&": "|", "|": "&", "U": "R", "R": "U", "X": "X", "N": "X"}


def _not(text: str) -> str:
    if text.startswith("!") and _ATOM.fullmatch(text):
        return text[1:]
    return f"!{text}" if _ATOM.fullmatch(text) else f"!({text})"
