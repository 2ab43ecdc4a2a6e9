"""Intervals of the probabilities of unknown rows, and values that no probabilities within them leave.

All of this is exact, in fractions. If in every open node

    reward + discount · least Σ p lower(successor)  >=  lower(node),      p within the intervals of the row,

then in n steps ``lower`` is at most what is earned until then plus what it is worth there. So it is below the value if
runs leave the nodes where it is above zero, or earn without end. They do if some numbers T >= 0 have, in these nodes,

    T(node) + paid · reward(node)  >=  1 + largest Σ p T(successor).

With the largest mean in place of the least, ``upper`` is above the value after every number of steps, and so above the
value if nothing is negative. If it is infinite to miss the target, or rewards may be negative, runs must end as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from flint import fmpq

from .intervals import excludes_by_bets
from .reading import Exact, Part, require
from .table_chain import ANY, Node, TableChain, TableCounts

Intervals: TypeAlias = dict[int, tuple[list[Exact], list[Exact]]]
"""The lower and the upper ends of the places of unknown rows."""


def n_events(counts: TableCounts) -> int:
    """Return how many intervals all rows of a table have: one of each place, but one of two."""
    sizes = (len(row[0]) for row in counts.seen)
    return sum(0 if size == 1 else 1 if size == 2 else size for size in sizes)


def read_intervals(part: Part, counts: TableCounts, chain: TableChain) -> Intervals:
    """Return the intervals of the rows of the chain, each of which follows from its counts."""
    error = part["error"].number()
    enough = part["number"].whole() >= n_events(counts)
    require(enough, f"{part.place}: the error is divided among too few events")
    found: Intervals = {}
    for item in part["list"]:
        row = item["row"].whole(len(counts.seen))
        seen = counts.seen[row][-1]
        lower, upper = item["lower"].numbers(len(seen)), item["upper"].numbers(len(seen))
        trials = sum(seen)
        for successes, low, high in zip(seen, lower, upper, strict=True):
            is_low = low <= 0 or (len(seen) == 1 and low <= 1) or excludes_by_bets(successes, trials, low, error, -1)
            is_high = high >= 1 or excludes_by_bets(successes, trials, high, error, 1)
            require(is_low and is_high, f"{item.place}: an interval from {trials} trials is too narrow")
        low, high = ([max(fmpq(0), min(end, fmpq(1))) for end in ends] for ends in (lower, upper))
        require(sum(low) <= 1 <= sum(high), f"{item.place}: no probabilities are within the intervals")
        found[row] = low, high
    require(set(chain.tied()) <= set(found), f"{part.place}: a row of the chain has no intervals")
    return found | {ANY: ([fmpq(0)] * 2, [fmpq(1)] * 2)}


def check_possible(part: Part, intervals: Intervals) -> None:
    """Require that places of unknown rows have positive probabilities, which a mission needs."""
    for each in part:
        lower = intervals.get(each[0].whole(), ([], []))[0]
        is_possible = lower[each[1].whole(len(lower))] > 0
        require(is_possible, f"{each.place}: the mission needs this outcome of a row to be above 0")


def mean(node: Node, intervals: Intervals, values: Sequence[Exact], side: int) -> Exact:
    """Return the largest (side 1) or least (side -1) mean of values at the places of a node."""
    if node.row is None:
        return sum((p * v for p, v in zip(node.numbers, values, strict=True)), start=fmpq(0))
    lower, upper = intervals[node.row]
    total = sum((p * v for p, v in zip(lower, values, strict=True)), start=fmpq(0))
    left = 1 - sum(lower)
    for i in sorted(range(len(values)), key=lambda i: values[i], reverse=side > 0):
        more = min(left, upper[i] - lower[i])
        total, left = total + more * values[i], left - more
        if left <= 0:
            break
    return total


def _vector(part: Part, n: int) -> list[Any]:
    """Return a value of each open node, None where there is no number."""
    require(len(part) == n, f"{part.place}: each open node needs a value")
    return [None if number.value is None else number.number() for number in part]


def check_lower(part: Part, chain: TableChain, intervals: Intervals) -> list[Exact]:
    """Return lower bounds on the values of all open nodes, which are proved."""
    lower = _vector(part["lower"], len(chain.nodes))
    require(None not in lower, f"{part.place}: a lower value is infinite")
    if chain.is_never_negative:
        lower = [max(value, fmpq(0)) for value in lower]
    asked = [s for s, value in enumerate(lower) if value > 0 or not chain.is_never_negative]
    for s in asked:
        node = chain.nodes[s]
        least = node.reward + chain.discount * mean(node, intervals, node.ahead(lower), -1)
        require(least >= lower[s], f"node {s}: the lower value is not below what one step leads to")
    if chain.kind != "discounted" and asked:
        paid = part["paid"].number()
        require(paid >= 0 and (paid == 0 or chain.is_never_negative), f"{part.place}: rewards do not pay for steps")
        _check_end(part["steps_lower"], asked, paid, chain, intervals)
    return lower


def check_upper(part: Part, chain: TableChain, intervals: Intervals) -> list[Exact | None]:
    """Return upper bounds on the values of all open nodes, which are proved; None is infinite."""
    upper = _vector(part["upper"], len(chain.nodes))
    if chain.kind == "reach":
        upper = [fmpq(1) if value is None else min(value, fmpq(1)) for value in upper]
    asked = [s for s, value in enumerate(upper) if value is not None and (chain.kind != "reach" or value < 1)]
    for s in asked:
        node, here = chain.nodes[s], upper[s]
        infinite = [fmpq(int(value is None)) for value in node.ahead(upper, fmpq(0))]
        require(mean(node, intervals, infinite, 1) == 0, f"node {s}: one step may lead to where nothing is proved")
        ahead = [fmpq(0) if value is None else value for value in node.ahead(upper)]
        largest = node.reward + chain.discount * mean(node, intervals, ahead, 1)
        holds = here is not None and largest <= here and (here >= 0 or not chain.is_never_negative)
        require(holds, f"node {s}: the upper value is not above what one step leads to")
    is_least = chain.kind in ("reach", "total") and chain.is_never_negative
    if chain.kind != "discounted" and not is_least and asked:
        _check_end(part["steps_upper"], asked, fmpq(0), chain, intervals)
    return upper


def _check_end(part: Part, asked: list[int], paid: Exact, chain: TableChain, intervals: Intervals) -> None:
    """Require numbers of steps that prove that runs leave some nodes, or earn without end."""
    steps = _vector(part, len(chain.nodes))
    require(None not in steps, f"{part.place}: a number of steps is infinite")
    inside = set(asked)
    numbers = [number if s in inside else fmpq(0) for s, number in enumerate(steps)]
    for s in asked:
        node = chain.nodes[s]
        after = mean(node, intervals, node.ahead(numbers, fmpq(0)), 1)
        holds = numbers[s] >= 0 and numbers[s] + paid * node.reward >= 1 + after
        require(holds, f"node {s}: it is not proved that runs end")
