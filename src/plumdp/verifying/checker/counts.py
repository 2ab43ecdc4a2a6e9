"""Counts of outcomes: rows of the model with their probabilities, and the classes of affine probabilities they are of.

A row of the model leads to outcomes with the probabilities f, polynomials in the parameters that sum to one. The way of
an outcome is a list of members of classes, each of which is a list of affine probabilities that sum to one: first a
class is drawn from, then another one that depends on what was drawn, and so on. So the likelihood of all data is a
product of affine probabilities, and a bet may be placed on every class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from flint import fmpq

from .polynomials import Polynomial, add, affine, constant, is_constant, parse, product
from .reading import Exact, Part, require

_ORDERS = ("planned", "open", "short", "unknown")
Way: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Member:
    """An affine probability ``constant + slopes · parameters`` of a class."""

    group: int
    constant: Exact
    slopes: list[Exact]

    def at(self, point: Sequence[Exact]) -> Exact:
        """Return its value at a point."""
        return self.constant + sum(b * x for b, x in zip(self.slopes, point, strict=True))


@dataclass(frozen=True)
class Row:
    """Outcomes of some rows of the model that have the same probabilities, and how often each was seen."""

    outcomes: list[Polynomial]
    ways: list[Way] | None  # None if the row has no part in the likelihood
    seen: dict[str, list[int]]  # in all data, in the pilot, and until each moment


@dataclass(frozen=True)
class Data:
    """All rows and classes, and what is known of the order of the data."""

    names: list[str]
    members: list[Member]
    rows: list[Row]
    order: str
    sampling: str
    lengths: list[Exact]  # of the data until each moment, in runs or rows
    expected: Exact | None  # length that was announced

    def seen_members(self, of: str, without: str = "") -> list[int]:
        """Return how often each member was drawn in some part of the data, without an earlier part."""
        result, places = [0] * len(self.members), self.places()
        for row in self.rows:
            for way, n in zip(row.ways or [], difference(row, of, without), strict=row.ways is not None):
                for group, place in way:
                    result[places[group][place]] += n
        return result

    def places(self) -> list[list[int]]:
        """Return the members of each class."""
        result: list[list[int]] = [[] for _ in range(self.members[-1].group + 1)] if self.members else []
        for i, member in enumerate(self.members):
            result[member.group].append(i)
        return result

    def stages(self) -> Iterator[list[int]]:
        """Yield how often each member was drawn between a moment and the next, or the end."""
        for s in range(len(self.lengths)):
            later = f"moment {s + 1}" if s + 1 < len(self.lengths) else "all"
            yield self.seen_members(later, f"moment {s}")

    def visits(self, seen: Sequence[int]) -> dict[int, int]:
        """Return how often each class was drawn from."""
        result: dict[int, int] = {}
        for member, n in zip(self.members, seen, strict=True):
            result[member.group] = result.get(member.group, 0) + n
        return result


def difference(row: Row, of: str, without: str) -> list[int]:
    """Return how often outcomes were seen in a part of the data, without an earlier part."""
    if not without:
        return row.seen[of]
    result = [a - b for a, b in zip(row.seen[of], row.seen[without], strict=True)]
    require(min(result, default=0) >= 0, f"more outcomes were seen in {without} than in {of}, which it is a part of")
    return result


def read_data(witness: Part) -> Data:
    """Return the counts, after exact checks of the probabilities of rows and classes."""
    names = [name.text() for name in witness["parameters"]]
    require(len(set(names)) == len(names) and all(name.isidentifier() for name in names), "parameters need names")
    about = witness["data"]
    order, sampling = about["order"].text(), about["sampling"].text()
    require(order in _ORDERS, f"data: the order {order!r} is not known")
    lengths = about["lengths"].numbers(len(about["lengths"]))
    require(all(a < b for a, b in zip([fmpq(0), *lengths], lengths, strict=False)), "data: lengths do not grow")
    expected = None if about["expected"].value is None else about["expected"].number()
    require(expected is None or expected > 0, "data: the expected length is not positive")
    classes = [[parse(text.text(), names) for text in members] for members in witness["classes"]]
    members = [member for number, each in enumerate(classes) for member in _members(each, number, len(names))]
    parts = ["all", "pilot", *(f"moment {s}" for s in range(len(lengths)))]
    rows = [_row(part, names, classes, parts) for part in witness["rows"]]
    keys = [frozenset(frozenset(f.items()) for f in row.outcomes) for row in rows]
    require(len(set(keys)) == len(keys), "rows: two of them have the same probabilities; they must be one")
    return Data(names, members, rows, order, sampling, lengths, expected)


def _members(polynomials: Sequence[Polynomial], number: int, n: int) -> list[Member]:
    """Return the members of a class, which sum to one and differ, unless none depends on a parameter."""
    place = f"classes[{number}]"
    require(add(*polynomials) == constant(fmpq(1), n), f"{place}: the probabilities do not sum to one")
    distinct = {frozenset(f.items()) for f in polynomials}
    if not all(map(is_constant, polynomials)):
        require(len(distinct) == len(polynomials), f"{place}: two outcomes have the same probability; they must be one")
    return [Member(number, *affine(f, n, place)) for f in polynomials]


def _row(part: Part, names: list[str], classes: Sequence[Sequence[Polynomial]], parts: Sequence[str]) -> Row:
    outcomes = [parse(text.text(), names) for text in part["outcomes"]]
    n = len(names)
    require(add(*outcomes) == constant(fmpq(1), n), f"{part.place}: the probabilities do not sum to one")
    seen = {name: part["seen"][name].wholes(len(outcomes)) for name in parts}
    moments = [*parts[2:], "all"]
    for earlier, later in [("pilot", "all"), *pairwise(moments)]:
        less = all(a <= b for a, b in zip(seen[earlier], seen[later], strict=True))
        require(less, f"{part.place}: more was seen until {earlier} than in {later}")
    if part["ways"].value is None:
        return Row(outcomes, None, seen)
    require(len(part["ways"]) == len(outcomes), f"{part.place}: each outcome needs a way")
    ways = [tuple((step[0].whole(len(classes)), step[1].whole()) for step in way) for way in part["ways"]]
    _check_ways(outcomes, ways, 0, list(range(len(ways))), classes, n, part.place)
    return Row(outcomes, ways, seen)


def _check_ways(
    outcomes: Sequence[Polynomial],
    ways: Sequence[Way],
    depth: int,
    here: list[int],
    classes: Sequence[Sequence[Polynomial]],
    n: int,
    place: str,
) -> None:
    """Require that the ways of some outcomes form a tree from a depth on, with exact products at its leaves."""
    first = ways[here[0]]
    if len(first) == depth:  # a leaf, which several outcomes may share: then their sum counts
        together = add(*(outcomes[i] for i in here))
        along = product([classes[group][member] for group, member in first], n)
        is_leaf = all(ways[i] == first for i in here) and along == together
        require(is_leaf, f"{place}: the probabilities on a way are not those of its outcome")
        return
    require(all(len(ways[i]) > depth for i in here), f"{place}: ways end where others go on")
    group = first[depth][0]
    require(all(ways[i][depth][0] == group for i in here), f"{place}: ways part in two classes at once")
    behind: dict[int, list[int]] = {}
    for i in here:
        behind.setdefault(ways[i][depth][1], []).append(i)
    require(sorted(behind) == list(range(len(classes[group]))), f"{place}: ways leave out members of a class")
    for each in behind.values():
        _check_ways(outcomes, ways, depth + 1, each, classes, n, place)
