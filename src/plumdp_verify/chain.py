"""The Markov chain of the policy: rewards, successors and exact probabilities, and where runs are over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from flint import fmpq

from .polynomials import Polynomial, add, constant, parse
from .reading import Exact, Part, require

KINDS = ("reach", "until", "total", "discounted")


@dataclass(frozen=True)
class Step:
    """What a state of the chain is worth in one step, and where it leads."""

    reward: Polynomial
    successors: list[int]
    expressions: list[int]


@dataclass(frozen=True)
class Chain:
    """The chain of a policy.

    ``kind`` says what a run is worth: one if it reaches a target before a state to avoid ("reach"); its rewards until
    a target, infinite if it may miss it ("until"); all its rewards ("total"); or these, discounted ("discounted").
    """

    kind: str
    complement: bool  # whether one minus the value is asked for
    discount: Exact
    initial: int
    expressions: list[Polynomial]
    steps: list[Step | None]  # None where the run is over
    known: dict[int, Exact]  # values of the states in which nothing is open any more, whatever the parameters are

    @cached_property
    def open(self) -> list[int]:
        """The states whose values depend on the parameters."""
        return [node for node in range(len(self.steps)) if node not in self.known]

    def open_steps(self) -> Iterator[tuple[int, Step]]:
        """Yield the open states with their steps."""
        for node in self.open:
            step = self.steps[node]
            if step is not None:
                yield node, step

    @property
    def is_never_negative(self) -> bool:
        """Whether no run is worth less than zero, as no reward depends on parameters or is negative."""
        rewards = [step.reward for step in self.steps if step is not None]
        return all(not any(exponents) and number >= 0 for reward in rewards for exponents, number in reward.items())

    @property
    def range(self) -> tuple[Exact | None, Exact | None]:
        """The least and the largest value that there is, whatever the parameters are; None if there is no such bound.

        One minus a probability is within the same bounds.
        """
        return fmpq(0) if self.is_never_negative else None, fmpq(1) if self.kind == "reach" else None

    @property
    def is_acyclic(self) -> bool:
        """Whether no run comes back to an open state, so that all runs end."""
        entering = dict.fromkeys(self.open, 0)
        edges: dict[int, list[int]] = {node: [] for node in self.open}
        for node, step in self.open_steps():
            edges[node] += [s for s in step.successors if s in entering]
        for successors in edges.values():
            for successor in successors:
                entering[successor] += 1
        free = [node for node, n in entering.items() if n == 0]
        n_done = 0
        while free:
            n_done += 1
            for successor in edges[free.pop()]:
                entering[successor] -= 1
                if entering[successor] == 0:
                    free.append(successor)
        return n_done == len(entering)


def read_chain(part: Part, names: list[str]) -> Chain:
    """Return the chain, after exact checks that every row sums to one and that runs are over where it says so."""
    kind, complement, discount = _read_kind(part)
    expressions = [parse(text.text(), names) for text in part["expressions"]]
    n = len(part["rows"])
    steps = [_step(row, n, len(expressions), names) for row in part["rows"]]
    targets = _read_targets(part, kind, steps)
    _check_rows(steps, expressions, len(names), part.place)
    known = _known_values(kind, steps, targets, part.place)
    return Chain(kind, complement, discount, part["initial"].whole(n), expressions, steps, known)


def _read_kind(part: Part) -> tuple[str, bool, Exact]:
    """Return what a run is worth, whether one minus that is asked for, and the discount."""
    kind, complement = part["kind"].text(), part["complement"].truth()
    require(kind in KINDS, f"{part.place}: verify does not know values of the kind {kind!r}")
    require(not complement or kind == "reach", f"{part.place}: one minus a reward is not a value")
    discount = part["discount"].fraction()
    fits = 0 < discount < 1 if kind == "discounted" else discount == 1
    require(fits, f"{part.place}: the discount does not fit the kind")
    return kind, complement, discount


def _read_targets(part: Part, kind: str, steps: Sequence[Step | None]) -> set[int]:
    """Return the targets, after checks that runs are over in them and in states to avoid, and that rewards fit."""
    targets, avoided = ({node.whole(len(steps)) for node in part[name]} for name in ("target", "avoid"))
    ends = {node for node, step in enumerate(steps) if step is None}
    is_end = ends == targets | avoided and not targets & avoided
    require(is_end, f"{part.place}: runs must be over in targets and states to avoid, and nowhere else")
    require(kind == "reach" or not avoided, f"{part.place}: only a probability has states to avoid")
    require(kind != "total" or not targets, f"{part.place}: these rewards have no target")
    for node, step in enumerate(steps):
        is_free = kind != "reach" or step is None or not step.reward
        require(is_free, f"{part.place}: state {node} has a reward, and a probability has none")
    return targets


def _step(row: Part, n: int, n_expressions: int, names: list[str]) -> Step | None:
    if row.value is None:
        return None
    successors = [node.whole(n) for node in row[1]]
    expressions = [f.whole(n_expressions) for f in row[2]]
    require(len(successors) == len(expressions), f"{row.place}: each successor needs a probability")
    reward = parse(row[0].text(), names) if type(row[0].value) is str else constant(row[0].number(), len(names))
    return Step(reward, successors, expressions)


def _check_rows(steps: list[Step | None], expressions: list[Polynomial], n: int, place: str) -> None:
    """Require that rows sum to one exactly."""
    checked = set()
    for node, step in enumerate(steps):
        if step is None:
            continue
        key = tuple(sorted(step.expressions))
        if key not in checked:
            total = add(*(expressions[f] for f in key))
            require(total == constant(fmpq(1), n), f"{place}: the probabilities of state {node} do not sum to one")
            checked.add(key)


def _known_values(kind: str, steps: Sequence[Step | None], targets: set[int], place: str) -> dict[int, Exact]:
    """Return the values of states in which runs are over, and zero where nothing counts any more on any transition."""
    known = {s: fmpq(int(kind == "reach" and s in targets)) for s, step in enumerate(steps) if step is None}
    if kind == "discounted":
        return known
    ahead = set(targets) if kind != "total" else {s for s, step in enumerate(steps) if step and step.reward}
    before: list[list[int]] = [[] for _ in steps]
    for node, step in enumerate(steps):
        for successor in step.successors if step else ():
            before[successor].append(node)
    stack = list(ahead)
    while stack:
        for node in before[stack.pop()]:
            if node not in ahead:
                ahead.add(node)
                stack.append(node)
    never = [node for node, step in enumerate(steps) if step and node not in ahead]
    require(kind != "until" or not never, f"{place}: a state cannot reach the target, so that the value is infinite")
    return known | dict.fromkeys(never, fmpq(0))
