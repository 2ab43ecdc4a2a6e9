"""Conditions on what happens infinitely often, by which automata accept runs that are never decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, TypeAlias

from plumdp.base.errors import ModelError

_MOST_PAIRS = 200


@dataclass(frozen=True, order=True)
class Limit:
    """A mark that is met infinitely often, Inf(mark), or else finitely often, Fin(mark)."""

    mark: int
    is_often: bool


@dataclass(frozen=True)
class Joined:
    """All (``&``) or one (``|``) of some conditions. Of no conditions, ``&`` is true and ``|`` is false."""

    operator: str
    parts: tuple[Condition, ...] = ()


Condition: TypeAlias = Limit | Joined


class Pair(NamedTuple):
    """A run is accepted if it meets the marks of one set finitely often, and each of the others infinitely often."""

    never: tuple[int, ...]
    often: tuple[int, ...]


def negated(condition: Condition) -> Condition:
    """Return the condition that holds where the other does not."""
    if isinstance(condition, Limit):
        return Limit(condition.mark, not condition.is_often)
    return Joined("|" if condition.operator == "&" else "&", tuple(map(negated, condition.parts)))


def pairs_of(condition: Condition) -> tuple[Pair, ...]:
    """Return pairs, one of which must be met, without those that ask for more than another."""
    kept: list[frozenset[Limit]] = []
    for new in sorted(_alternatives(condition), key=lambda every: (len(every), sorted(every))):
        if not any(old <= new for old in kept):
            kept.append(new)
    split = (
        Pair(*(tuple(sorted(each.mark for each in every if each.is_often == o)) for o in (False, True)))
        for every in kept
    )
    return tuple(pair for pair in split if not set(pair.never) & set(pair.often))


def _alternatives(condition: Condition) -> list[frozenset[Limit]]:
    if isinstance(condition, Limit):
        return [frozenset([condition])]
    parts = [_alternatives(part) for part in condition.parts]
    if condition.operator == "|":
        return _few(every for part in parts for every in part)
    joined = [frozenset[Limit]()]
    for part in parts:
        joined = _few(one | other for one, other in product(joined, part))
    return joined


def _few(alternatives: Iterable[frozenset[Limit]]) -> list[frozenset[Limit]]:
    """Return distinct alternatives, or refuse more than can be looked at one by one."""
    found: dict[frozenset[Limit], None] = {}
    for each in alternatives:
        found[each] = None
        if len(found) > _MOST_PAIRS:
            raise ModelError(f"this acceptance has more than {_MOST_PAIRS} alternatives; ask for its parts one by one")
    return list(found)
