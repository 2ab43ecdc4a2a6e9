"""The rest of a mission as a set of alternatives, each a set of formulas that must all hold from the next state on.

An alternative that asks for more than another is left out, so that there are few: of ``F (a & F (b & F c))`` after
``a`` only ``F (b & F c)`` is left, as it is weaker than the whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from itertools import product
from typing import NamedTuple, TypeAlias

from plumdp.base.errors import ModelError

Window: TypeAlias = tuple[int, int | None]  # the first and the last step, None if there is no last one
Left: TypeAlias = frozenset[frozenset[int]]  # what is left to be done: alternatives, of which all formulas must hold

ALWAYS: Window = (0, None)
TRUE, FALSE = 0, 1
DONE: Left = frozenset([frozenset()])
FAILED: Left = frozenset()
MUCH = "this mission needs too much memory; ask for its parts one by one"
_MOST_WORK = 400_000  # alternatives and pairs of formulas that are looked at, below a second


class FormulaNode(NamedTuple):
    """A formula in a table, by the numbers of the formulas that it is made of."""

    operator: str  # one of X N U R & |, or "states"
    operands: tuple[int, ...]  # numbers of formulas; of "states" the number of the set
    window: Window = ALWAYS


class Alternatives:
    """Joins alternatives, and leaves out those that ask for more than others, as far as simple rules say."""

    def __init__(self, nodes: list[FormulaNode]) -> None:
        self._nodes = nodes  # which grows
        self._implied: dict[tuple[int, int], bool] = {}
        self._less: dict[frozenset[int], frozenset[int]] = {}
        self._work = 0

    def combined(self, operator: str, parts: Iterable[Left]) -> Left:
        """Return the remaining formula if all parts must hold (&), or one (|), without parts that others imply."""
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
        self.spend(len(alternatives))
        if len(alternatives) < 2:
            return frozenset(alternatives)
        kept: list[frozenset[int]] = []
        for new in sorted(set(alternatives), key=lambda every: (len(every), sorted(every))):
            if not any(self._asks_more(new, old) for old in kept):
                kept = [old for old in kept if not self._asks_more(old, new)] + [new]
        return frozenset(kept)

    def spend(self, work: int) -> None:
        """Count work, and refuse to do more than is worth it."""
        self._work += work
        if self._work > _MOST_WORK:
            raise ModelError(MUCH)

    def _asks_more(self, strong: frozenset[int], weak: frozenset[int]) -> bool:
        return all(any(self._implies(one, other) for one in strong) for other in weak)

    def _implies(self, strong: int, weak: int) -> bool:
        """Return whether one formula implies another, as far as simple rules say."""
        self.spend(1)
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


def _contains(wide: Window, narrow: Window) -> bool:
    ends_later = wide[1] is None or (narrow[1] is not None and narrow[1] <= wide[1])
    return wide[0] <= narrow[0] and ends_later
