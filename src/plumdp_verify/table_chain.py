"""Tables of unknown rows: how often each outcome was seen, and the Markov chain of the policy.

An unknown row has places, each with a probability of its own. Nodes of the chain that share an unknown row have the
same probabilities, place by place, and a visit of one is a visit of all. Of what comes after a run has left the table
nothing is known: the node of such a transition belongs to it alone, and has any value from zero to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from flint import fmpq

from .chain import KINDS, known_values
from .reading import Exact, Part, require

_MOST_NODES, _MOST_DIGITS = 20_000, 10_000  # of a chain, and of the numbers of a known row
ANY = -1  # in place of the number of a row: anything may happen
_ORDERS = ("planned", "open", "short", "unknown")


@dataclass(frozen=True)
class Counts:
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


def read_counts(witness: Part) -> Counts:
    """Return the counts of all unknown rows of a table, which grow from moment to moment."""
    about = witness["data"]
    order = about["order"].text()
    require(order in _ORDERS, f"data: the order {order!r} is not known")
    lengths = about["lengths"].numbers(len(about["lengths"]))
    require(all(a < b for a, b in pairwise([fmpq(0), *lengths])), "data: lengths do not grow")
    require(order != "unknown" or not lengths, "data: bets need data whose order is known")
    rows = [_row(part, len(lengths) + 1) for part in witness["rows"]]
    return Counts(order, rows)


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
    successors: list[int | None]  # numbers of open nodes, None where the value is known
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


@dataclass(frozen=True)
class _Step:
    reward: Exact
    successors: list[int]
    row: int | None
    numbers: list[Exact]


def read_table_chain(part: Part, counts: Counts) -> TableChain:
    """Return the chain, after checks that known rows sum to one and that runs are over where it says so."""
    kind, complement = part["kind"].text(), part["complement"].truth()
    require(kind in KINDS and kind != "average", f"{part.place}: verify does not know values of the kind {kind!r}")
    require(not complement or kind == "reach", f"{part.place}: one minus a reward is not a value")
    discount = part["discount"].fraction()
    fits = 0 < discount < 1 if kind == "discounted" else discount == 1
    require(fits, f"{part.place}: the discount does not fit the kind")
    n = len(part["rows"])
    require(0 < n <= _MOST_NODES, f"{part.place}: verify knows chains of tables with up to {_MOST_NODES:,} nodes")
    steps = [_step(row, n, counts) for row in part["rows"]]
    targets, avoided = ({node.whole(n) for node in part[name]} for name in ("target", "avoid"))
    ends = {node for node, step in enumerate(steps) if step is None}
    is_end = ends == targets | avoided and not targets & avoided
    require(is_end, f"{part.place}: runs must be over in targets and states to avoid, and nowhere else")
    require(kind == "reach" or not avoided, f"{part.place}: only a probability has states to avoid")
    require(kind != "total" or not targets, f"{part.place}: these rewards have no target")
    paid = [step.reward for step in steps if step is not None]
    require(kind != "reach" or not any(paid), f"{part.place}: a node has a reward, and a probability has none")
    _check_elsewhere(kind, steps, targets, part.place)
    known = known_values(kind, steps, targets, part.place)
    known |= dict.fromkeys(avoided, fmpq(0)) | dict.fromkeys(targets, fmpq(int(kind == "reach")))
    numbers = {node: i for i, node in enumerate(node for node in range(n) if node not in known)}
    nodes = [_node(step, numbers, known) for node, step in enumerate(steps) if step is not None and node in numbers]
    start = part["initial"].whole(n)
    is_never_negative = all(reward >= 0 for reward in paid)
    each = [numbers.get(node) for node in range(n)]
    return TableChain(kind, complement, discount, nodes, numbers.get(start), known.get(start), is_never_negative, each)


def _check_elsewhere(kind: str, steps: list[_Step | None], targets: set[int], place: str) -> None:
    """Require that nodes where the table is left are those of a probability; they may lead to all targets."""
    here = {node for node, step in enumerate(steps) if step is not None and step.row == ANY}
    require(not here or kind == "reach", f"{place}: only a probability has bounds where the table is left")
    for node in here:
        steps[node] = _Step(fmpq(0), sorted(targets), ANY, [])


def _node(step: _Step, numbers: dict[int, int], known: dict[int, Exact]) -> Node:
    if step.row == ANY:
        return Node(step.reward, ANY, [], [None, None], [fmpq(1), fmpq(0)])
    return Node(
        step.reward,
        step.row,
        step.numbers,
        [numbers.get(s) for s in step.successors],
        [known.get(s, fmpq(0)) for s in step.successors],
    )


def _step(row: Part, n: int, counts: Counts) -> _Step | None:
    if row.value is None:
        return None
    reward, successors = row[0].number(), [node.whole(n) for node in row[1]]
    if row[2].value == "any":
        require(reward == 0 and not successors, f"{row.place}: it is not known what comes after the table is left")
        return _Step(reward, [], ANY, [])
    if type(row[2].value) is list:
        require(sum(len(number.text()) for number in row[2]) <= _MOST_DIGITS, f"{row.place}: there are too many digits")
        numbers = [number.fraction() for number in row[2]]
        require(len(numbers) == len(successors), f"{row.place}: each successor needs a probability")
        require(sum(numbers, start=fmpq(0)) == 1, f"{row.place}: the probabilities do not sum to one")
        return _Step(reward, successors, None, numbers)
    number = row[2].whole(len(counts.seen))
    fits = len(counts.seen[number][0]) == len(successors)
    require(fits, f"{row.place}: each place of the unknown row {number} needs a successor")
    return _Step(reward, successors, number, [])
