"""Formulas of linear temporal logic, and what is left of one after a state is entered (progression).

A formula is a number in a table, where equal formulas have one number. Negations are moved inwards to sets of states as
it is made. All operators are two: ``U`` (until, of which F is a case) and its dual ``R`` (release, of which G is one),
each with a window of steps. What is left to be done is a set of alternatives, each a set of formulas that must all hold
from the next state on. An alternative that asks for more than another is left out, so that there are few: of
``F (a & F (b & F c))`` after ``a`` only ``F (b & F c)`` is left, as it is weaker than the whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.graph import BoolArray
from plumdp.model.parametric import RewardStructure

Window: TypeAlias = tuple[int, int | None]  # the first and the last step, None if there is no last one
Left: TypeAlias = frozenset[frozenset[int]]  # what is left to be done: alternatives, of which all formulas must hold

ALWAYS: Window = (0, None)
TRUE, FALSE = 0, 1
DONE: Left = frozenset([frozenset()])
FAILED: Left = frozenset()
_MOST_WORK = 400_000  # alternatives and pairs of formulas that are looked at, below a second
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


class _Node(NamedTuple):
    operator: str  # one of X U R & |, or "states"
    operands: tuple[int, ...]  # numbers of formulas; of "states" the number of the set
    window: Window = ALWAYS


class Formulas:
    """A table of formulas without negations, to which formulas are added as they are found."""

    def __init__(self) -> None:
        self.states: list[tuple[BoolArray, str]] = []  # sets of states, with their texts
        self._nodes: list[_Node] = []
        self._number: dict[_Node, int] = {}
        self._set: dict[bytes, int] = {}
        self._implied: dict[tuple[int, int], bool] = {}
        self._opposite: dict[int, int] = {}
        self._added: dict[tuple[int, bool], int] = {}
        self._less: dict[frozenset[int], frozenset[int]] = {}
        self._work = 0
        for constant in ("true", "false"):
            self._numbered(_Node(constant, ()))

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
            return self._joined(operator if holds else _DUAL[operator], (first, last))
        if operator == "X":
            return first if first in (TRUE, FALSE) else self._numbered(_Node("X", (first,)))
        if operator in ("F", "G"):
            is_release = (operator == "G") == holds
            return self._bounded("R" if is_release else "U", FALSE if is_release else TRUE, last, path.window)
        if operator == "W":  # a W b is b R (a | b), and its negation !b U (!a & !b)
            both = self._joined("|" if holds else "&", (first, last))
            return self._bounded("R" if holds else "U", last, both, None)
        return self._bounded(operator if holds else _DUAL[operator], first, last, path.window)

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
            return self._combined(node.operator, map(self.left_of, node.operands))
        return frozenset([frozenset([number])])

    def after(self, left: Left, holds: Callable[[int], bool], known: dict[int, Left]) -> Left:
        """Return what is left after a state was entered, given whether it is in each set of states.

        ``known`` keeps what is left of each formula after such a state.
        """
        alternatives = (self._combined("&", (self._after(each, holds, known) for each in every)) for every in left)
        return self._combined("|", alternatives)

    def _after(self, number: int, holds: Callable[[int], bool], known: dict[int, Left]) -> Left:
        if number not in known:
            self._spend(5)
            node = self._nodes[number]
            if node.operator == "states":
                known[number] = DONE if holds(node.operands[0]) else FAILED
            elif node.operator in ("&", "|"):
                known[number] = self._combined(node.operator, (self._after(f, holds, known) for f in node.operands))
            elif node.operator == "X":
                known[number] = self.left_of(node.operands[0])
            elif node.operator in ("U", "R"):
                known[number] = self._unfolded(node, holds, known)
            else:
                known[number] = self.left_of(number)
        return known[number]

    def _unfolded(self, node: _Node, holds: Callable[[int], bool], known: dict[int, Left]) -> Left:
        """Return what is left of ``a U b`` (b now, or a now and the rest later) or of ``a R b``, its dual."""
        (a, b), (first, last) = node.operands, node.window
        later = node.window if last is None else (max(first - 1, 0), last - 1)
        join = "&" if node.operator == "U" else "|"
        goal = FAILED if node.operator == "U" else DONE
        if first == 0:
            goal = self._after(b, holds, known)
            if last == 0:
                return goal
        rest = self._combined(
            join, (self._after(a, holds, known), self.left_of(self._bounded(node.operator, a, b, later)))
        )
        return self._combined(_DUAL[join], (goal, rest))

    def _combined(self, operator: str, parts: Iterable[Left]) -> Left:
        """Return what is left if all parts must be done (&), or one of them (|), without what asks for more."""
        if operator == "|":
            return self._weakest([every for part in parts for every in part])
        factors = [*parts]
        sure = frozenset(each for part in factors if len(part) == 1 for every in part for each in every)
        return reduce(self._both, (part for part in factors if len(part) != 1), frozenset([self._reduced(sure)]))

    def _both(self, first: Left, second: Left) -> Left:
        return self._weakest([self._reduced(one | other) for one, other in product(first, second)])

    def _reduced(self, every: frozenset[int]) -> frozenset[int]:
        """Return formulas that must all hold, without those that others imply."""
        if every not in self._less:
            kept = sorted(every)
            for each in sorted(every, reverse=True):
                if any(other != each and self._implies(other, each) for other in kept):
                    kept.remove(each)
            self._less[every] = frozenset(kept)
        return self._less[every]

    def _weakest(self, alternatives: list[frozenset[int]]) -> Left:
        self._spend(len(alternatives))
        if len(alternatives) < 2:
            return frozenset(alternatives)
        kept: list[frozenset[int]] = []
        for new in sorted(set(alternatives), key=lambda every: (len(every), sorted(every))):
            if not any(self._asks_more(new, old) for old in kept):
                kept = [old for old in kept if not self._asks_more(old, new)] + [new]
        return frozenset(kept)

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > _MOST_WORK:
            raise ModelError("too much is to be remembered for this mission; ask for parts of it one by one")

    def _asks_more(self, strong: frozenset[int], weak: frozenset[int]) -> bool:
        return all(any(self._implies(one, other) for one in strong) for other in weak)

    def _implies(self, strong: int, weak: int) -> bool:
        """Return whether one formula implies another, as far as simple rules say."""
        self._spend(1)
        if strong in (weak, FALSE) or weak == TRUE:
            return True
        if strong == TRUE or weak == FALSE:
            return False
        if (strong, weak) not in self._implied:
            self._implied[strong, weak] = self._implied_by_rule(strong, weak)
        return self._implied[strong, weak]

    def _implied_by_rule(self, strong: int, weak: int) -> bool:
        left, right, implies = self._nodes[strong], self._nodes[weak], self._implies
        if left.operator == "|":
            return all(implies(each, weak) for each in left.operands)
        if right.operator == "&":
            return all(implies(strong, each) for each in right.operands)
        if left.operator == "&" and any(implies(each, weak) for each in left.operands):
            return True
        if right.operator == "|":
            return any(implies(strong, each) for each in right.operands)
        if left.operator == "R" and left.window[0] == 0 and implies(left.operands[1], weak):
            return True  # a R b holds only if b does
        if right.operator == "U" and right.window[0] == 0 and implies(strong, right.operands[1]):
            return True  # a U b holds if b does
        is_eventually = right.operator == "U" and right.operands[0] == TRUE and right.window == ALWAYS
        if is_eventually and left.operator in ("U", "X"):  # what holds later implies that F a holds later, and so now
            return implies(left.operands[-1], weak)
        if left.operator != right.operator or left.operator == "states":
            return False
        wide, narrow = (right, left) if left.operator == "U" else (left, right)
        parts = zip(left.operands, right.operands, strict=True)
        return _contains(wide.window, narrow.window) and all(implies(one, other) for one, other in parts)

    def _of_states(self, states: BoolArray, text: str) -> int:
        if states.all() or not states.any():
            return TRUE if states.all() else FALSE
        number = self._set.setdefault(np.packbits(states).tobytes(), len(self.states))
        if number == len(self.states):
            self.states.append((states, text))
        return self._numbered(_Node("states", (number,)))

    def _joined(self, operator: str, parts: Iterable[int]) -> int:
        zero, one = (FALSE, TRUE) if operator == "&" else (TRUE, FALSE)
        members: set[int] = set()
        for part in parts:
            members.update(self._nodes[part].operands if self._nodes[part].operator == operator else (part,))
        members -= {one}
        if zero in members or len(members) < 2:
            return zero if zero in members else min(members, default=one)
        return self._numbered(_Node(operator, tuple(sorted(members))))

    def _bounded(self, operator: str, a: int, b: int, window: Window | None) -> int:
        window = window or ALWAYS
        now = window == (0, 0) or (window[0] == 0 and b in (TRUE, FALSE))
        return b if now else self._numbered(_Node(operator, (a, b), window))

    def _numbered(self, node: _Node) -> int:
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
                dual = _Node(_DUAL[node.operator], tuple(sorted(operands)) if is_set else operands, node.window)
                self._opposite[number] = self._numbered(dual)
        return self._opposite[number]

    def text_of(self, left: Left, *, negated: bool = False) -> str:
        """Return what is left to be done as text, or if ``negated`` what must not happen as what must hold."""
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

    def _written(self, node: _Node, parts: list[str]) -> str:
        if node.operator in ("&", "|"):
            return f" {node.operator} ".join(parts)
        if node.operator == "X":
            return f"X {parts[0]}"
        (first, last), a = node.window, node.operands[0]
        bound = "" if last is None else f"<={last}" if first == 0 else f"[{first},{last}]"
        if a == (TRUE if node.operator == "U" else FALSE):
            return f"{'F' if node.operator == 'U' else 'G'}{bound} {parts[1]}"
        return f"{parts[0]} {node.operator}{bound} {parts[1]}"


_DUAL = {"&": "|", "|": "&", "U": "R", "R": "U", "X": "X"}


def _contains(wide: Window, narrow: Window) -> bool:
    ends_later = wide[1] is None or (narrow[1] is not None and narrow[1] <= wide[1])
    return wide[0] <= narrow[0] and ends_later


def _not(text: str) -> str:
    if text.startswith("!") and _ATOM.fullmatch(text):
        return text[1:]
    return f"!{text}" if _ATOM.fullmatch(text) else f"!({text})"
