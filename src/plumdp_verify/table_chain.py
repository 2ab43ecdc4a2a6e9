"""Tables of unknown rows: how often each outcome was seen, and the Markov chain of the policy.

An unknown row has places, each with a probability of its own. Nodes of the chain that share an unknown row have the
same probabilities, place by place, and a visit of one is a visit of all. Of what comes after a run has left the table
nothing is known: the node of such a transition belongs to it alone, and has any value from zero to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from flint import fmpq

from .chain import KINDS, known_values, read_kind, read_targets
from .counts import read_moments
from .reading import Exact, Part, require

_MOST_NODES, _MOST_DIGITS = 20_000, 10_000  # of a chain, and of the numbers of a known row
ANY = -1  # in place of the number of a row: anything may happen


@dataclass(frozen=True)
class TableCounts:
    """How often each place of each unknown row was seen until each moment of bets, and in all."""

    order: str
    seen: list[list[list[int]]]  # row, moment, place

    @property
    def n_stages(self) -> int:
        """The number of stages, each from one moment to the next."""
        return len(self.seen[0]) - 1 if self.seen else 0

    def of_stage(self, row: int, stage: int) -> list[int]:
        """Return what was seen between a moment and the next."""
        return [after - before for before, after in zip(*self.seen[row][stage : stage + 2], strict=True)]

    def after_pilot(self, row: int) -> list[int]:
        """Return what was seen since the first moment."""
        return [after - before for before, after in zip(self.seen[row][0], self.seen[row][-1], strict=True)]


def read_counts(witness: Part) -> TableCounts:
    """Return the counts of all unknown rows of a table, which grow from moment to moment."""
    order, lengths = read_moments(witness["data"])
    require(order != "unknown" or not lengths, "data: bets need data whose order is known")
    rows = [_row(part, len(lengths) + 1) for part in witness["rows"]]
    return TableCounts(order, rows)


def _row(part: Part, n: int) -> list[list[int]]:
    require(len(part) == n, f"{part.place}: expected {n} moments, found {len(part)}")
    n_places = len(part[0])
    require(n_places > 0, f"{part.place}: there is no place")
    seen = [moment.wholes(n_places) for moment in part]
    grows = all(a <= b for one, other in pairwise(seen) for a, b in zip(one, other, strict=True))
    require(grows, f"{part.place}: more was seen until a moment than later")
    return seen


@dataclass(frozen=True)
class Node:
    """An open node: its reward, its row, unknown or of known numbers, and where each place leads."""

    reward: Exact
    row: int | None  # the number of the unknown row, or ANY; None if it is known
    numbers: list[Exact]  # the probabilities of a known row
    successors: list[Any]  # numbers of open nodes, None where the value is known
    known: list[Exact]  # these values, 0 elsewhere

    def ahead(self, values: Sequence[Any], closed: Any = None) -> list[Any]:
        """Return values at the successors, those of closed nodes being known, or the number given."""
        return [
            (value if closed is None else closed) if s is None else values[s]
            for s, value in zip(self.successors, self.known, strict=True)
        ]


@dataclass(frozen=True)
class TableChain:
    """The chain of a policy: open nodes from 0 on, and where it starts."""

    kind: str
    complement: bool
    discount: Exact
    nodes: list[Node]
    initial: int | None  # None if its value is known
    initial_value: Exact | None
    is_never_negative: bool
    numbers: list[int | None]  # the number among open nodes of each node, None if its value is known

    def tied(self) -> dict[int, list[int]]:
        """Return the open nodes of each unknown row."""
        result: dict[int, list[int]] = {}
        for s, node in enumerate(self.nodes):
            if node.row is not None and node.row != ANY:
                result.setdefault(node.row, []).append(s)
        return result


def read_table_chain(part: Part, counts: TableCounts) -> TableChain:
    """Return the chain, after checks that known rows sum to one and that runs are over where it says so."""
    kind, complement, discount = read_kind(part, KINDS[:-1])
    n = len(part["rows"])
    require(0 < n <= _MOST_NODES, f"{part.place}: verify knows chains of tables with up to {_MOST_NODES:,} nodes")
    steps = [_step(row, n, counts) for row in part["rows"]]
    targets = read_targets(part, kind, steps)
    _check_out_of_table(kind, steps, targets, part.place)
    known = known_values(kind, steps, targets, part.place)
    numbers = {node: i for i, node in enumerate(node for node in range(n) if node not in known)}
    nodes = [_opened(step, numbers, known) for node, step in enumerate(steps) if step is not None and node in numbers]
    start = part["initial"].whole(n)
    is_never_negative = all(step.reward >= 0 for step in steps if step is not None)
    each = [numbers.get(node) for node in range(n)]
    return TableChain(kind, complement, discount, nodes, numbers.get(start), known.get(start), is_never_negative, each)


def _check_out_of_table(kind: str, steps: list[Node | None], targets: set[int], place: str) -> None:
    """Require that nodes where the table is left are those of a probability; they may lead to all targets."""
    here = {node for node, step in enumerate(steps) if step is not None and step.row == ANY}
    require(not here or kind == "reach", f"{place}: only a probability has bounds where the table is left")
    for node in here:
        steps[node] = Node(fmpq(0), ANY, [], sorted(targets), [])


def _opened(step: Node, numbers: dict[int, int], known: dict[int, Exact]) -> Node:
    """Return a node with the numbers of open successors, and the values of others; elsewhere has any value."""
    if step.row == ANY:
        return replace(step, successors=[None, None], known=[fmpq(1), fmpq(0)])
    after = step.successors
    return replace(step, successors=[*map(numbers.get, after)], known=[known.get(s, fmpq(0)) for s in after])


def _step(row: Part, n: int, counts: TableCounts) -> Node | None:
    if row.value is None:
        return None
    reward, successors = row[0].number(), [node.whole(n) for node in row[1]]
    if row[2].value == "any":
        require(reward == 0 and not successors, f"{row.place}: it is not known what comes after the table is left")
        return Node(reward, ANY, [], [], [])
    if type(row[2].value) is list:
        require(sum(len(number.text()) for number in row[2]) <= _MOST_DIGITS, f"{row.place}: there are too many digits")
        numbers = [number.fraction() for number in row[2]]
        require(len(numbers) == len(successors), f"{row.place}: each successor needs a probability")
        require(sum(numbers, start=fmpq(0)) == 1, f"{row.place}: the probabilities do not sum to one")
        return Node(reward, None, numbers, successors, [])
    number = row[2].whole(len(counts.seen))
    fits = len(counts.seen[number][0]) == len(successors)
    require(fits, f"{row.place}: each place of the unknown row {number} needs a successor")
    return Node(reward, number, [], successors, [])
