"""Counts of outcomes: rows of the model with their probabilities, and the classes of affine probabilities they are of.

A row of the model leads to outcomes with the probabilities f, polynomials in the parameters that sum to one. The way of
an outcome is a list of members of classes, each of which is a list of affine probabilities that sum to one: first a
class is drawn from, then another one that depends on what was drawn, and so on. So the likelihood of all data is a
product of affine probabilities, and a bet may be placed on every class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

from flint import arb_mat, fmpq

from .polynomials import Polynomial, add, affine, constant, is_constant, is_multiple, key_of, parse, product
from .reading import Ball, Exact, Part, require, work
from .rewards import CountedReward, read_rewards, sharpness

_ORDERS = ("planned", "open", "short", "unknown")
OutcomePath: TypeAlias = tuple[tuple[int, int], ...]  # classes that are drawn from in turn, and a member of each
Count: TypeAlias = Any
"""A whole number, or a fraction if values of rewards are among what is counted."""


@dataclass(frozen=True)
class Member:
    """An affine probability ``constant + slopes · parameters`` of a class."""

    group: int
    constant: Exact
    slopes: list[Exact]


@dataclass(frozen=True)
class Row:
    """Outcomes of some rows of the model that have the same probabilities, and how often each was seen."""

    outcomes: list[Polynomial]
    ways: list[OutcomePath] | None  # None if the row has no part in the likelihood
    seen: dict[str, list[int]]  # in all data, in the pilot, and until each moment


@dataclass(frozen=True)
class CountedRows:
    """All rows and classes, and what is known of the order of the data."""

    names: list[str]
    members: list[Member]
    rows: list[Row]
    order: str
    sampling: str
    lengths: list[Exact]  # of the data until each moment, in runs or rows
    expected: Exact | None  # length that was pre-specified
    rewards: list[CountedReward]

    @cached_property
    def slopes(self) -> Any:
        """The slopes of all members, as a matrix of balls."""
        return arb_mat(len(self.members), len(self.names), [b for member in self.members for b in member.slopes])

    def along(self, vectors: Sequence[Sequence[Exact]]) -> list[list[Ball]]:
        """Return slopes · vector of all members, for each of some vectors."""
        work(len(self.members) * (1 + len(vectors) * len(self.names)))
        rows = arb_mat(len(vectors), len(self.names), [x for vector in vectors for x in vector])
        result: list[list[Ball]] = (rows * self.slopes.transpose()).tolist()
        return result

    def at(self, point: Sequence[Exact]) -> list[Ball]:
        """Return the values of all members at a point."""
        return [member.constant + b for member, b in zip(self.members, self.along([point])[0], strict=True)]

    def seen_members(self, of: str, without: str = "") -> list[Count]:
        """Return how often each member was drawn in some part of the data, without an earlier part.

        Values of rewards count in fractions.
        """
        result: list[Count] = [0] * len(self.members)
        places = self.places
        work(len(result) + sum(len(row.outcomes) for row in self.rows))
        for row in self.rows:
            for way, n in zip(row.ways or [], difference(row, of, without), strict=row.ways is not None):
                for group, place in way:
                    result[places[group][place]] += n
        for reward in self.rewards:
            values, here = reward.values(of, without), places[reward.group]
            result[here[reward.member]] += values.total
            result[here[1 - reward.member]] += values.number - values.total
        return result

    def mixed(self, of: str, without: str = "") -> dict[int, Exact]:
        """Return the sum of x (1 - x) over the values x of rewards, for each class that has some."""
        result: dict[int, Exact] = {}
        for reward in self.rewards:
            values = reward.values(of, without)
            result[reward.group] = result.get(reward.group, fmpq(0)) + values.total - values.squares
        return result

    def sharpness(self, until: str) -> dict[int, Exact]:
        """Return for each class with values how much less than coins they varied until a moment."""
        seen, places = self.seen_members(until), self.places
        mixed = self.mixed(until).items()
        return {group: sharpness([seen[i] for i in places[group]], of_class) for group, of_class in mixed}

    @cached_property
    def places(self) -> list[list[int]]:
        """The members of each class."""
        result: list[list[int]] = [[] for _ in range(self.members[-1].group + 1)] if self.members else []
        for i, member in enumerate(self.members):
            result[member.group].append(i)
        return result

    def stages(self) -> Iterator[tuple[str, str]]:
        """Yield the moment at which each stage ends, or the end of the data, and the one at which it begins."""
        for s in range(len(self.lengths)):
            yield f"moment {s + 1}" if s + 1 < len(self.lengths) else "all", f"moment {s}"

    def visits(self, seen: Sequence[Count]) -> dict[int, Count]:
        """Return how often each class was drawn from."""
        result: dict[int, Count] = {}
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


def read_data(witness: Part) -> CountedRows:
    """Return the counts, after exact checks of the probabilities of rows and classes."""
    names = [name.text() for name in witness["parameters"]]
    require(len(set(names)) == len(names) and all(name.isidentifier() for name in names), "parameters need names")
    about = witness["data"]
    sampling, (order, lengths) = about["sampling"].text(), read_moments(about)
    expected = None if about["expected"].value is None else about["expected"].number()
    require(expected is None or expected > 0, "data: the expected length is not positive")
    classes = [[parse(text.text(), names) for text in members] for members in witness["classes"]]
    members = [member for number, each in enumerate(classes) for member in _members(each, number, len(names))]
    parts = ["all", "pilot", *(f"moment {s}" for s in range(len(lengths)))]
    rows = [_row(part, names, classes, parts) for part in witness["rows"]]
    keys = [frozenset(map(key_of, row.outcomes)) for row in rows]
    require(len(set(keys)) == len(keys), "rows: two of them have the same probabilities; they must be one")
    rewards = list(read_rewards(witness["rewards"], [*map(len, classes)], parts)) if "rewards" in witness else []
    return CountedRows(names, members, rows, order, sampling, lengths, expected, rewards)


def read_moments(about: Part) -> tuple[str, list[Exact]]:
    """Return what is known of the order of the data, and their lengths until each moment."""
    order = about["order"].text()
    require(order in _ORDERS, f"data: the order {order!r} is not known")
    lengths = about["lengths"].numbers(len(about["lengths"]))
    require(all(a < b for a, b in pairwise([fmpq(0), *lengths])), "data: lengths do not grow")
    return order, lengths


def _members(polynomials: Sequence[Polynomial], number: int, n: int) -> list[Member]:
    """Return the members of a class, which sum to one and differ, unless none depends on a parameter."""
    place = f"classes[{number}]"
    require(add(*polynomials) == constant(fmpq(1), n), f"{place}: the probabilities do not sum to one")
    distinct = set(map(key_of, polynomials))
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
        is_affine = all(sum(exponents) <= 1 for f in outcomes for exponents in f)
        require(not is_affine, f"{part.place}: outcomes are affine, so that they are a class, and need ways")
        return Row(outcomes, None, seen)
    require(len(part["ways"]) == len(outcomes), f"{part.place}: each outcome needs a way")
    ways = [tuple((step[0].whole(len(classes)), step[1].whole()) for step in way) for way in part["ways"]]
    _check_ways(outcomes, ways, 0, list(range(len(ways))), classes, n, part.place)
    return Row(outcomes, ways, seen)


def _check_ways(
    outcomes: Sequence[Polynomial],
    ways: Sequence[OutcomePath],
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
        is_same = all(is_multiple(outcomes[i], along) for i in here)
        require(is_same, f"{place}: outcomes share a way, and what differs between them is not counted")
        return
    work(len(here) + len(classes[first[depth][0]]))
    require(all(len(ways[i]) > depth for i in here), f"{place}: ways end where others go on")
    group = first[depth][0]
    require(all(ways[i][depth][0] == group for i in here), f"{place}: ways part in two classes at once")
    behind: dict[int, list[int]] = {}
    for i in here:
        behind.setdefault(ways[i][depth][1], []).append(i)
    require(sorted(behind) == list(range(len(classes[group]))), f"{place}: ways leave out members of a class")
    for each in behind.values():
        _check_ways(outcomes, ways, depth + 1, each, classes, n, place)
