"""Bounds on the difference of two policies in a table by intervals alone, from runs of both that move together.

Let both policies run side by side from the initial state. Where they are at rows that are the same, whatever the table
is, one outcome moves both; where both draw, they draw the same action as often as they can; else they move by
themselves. Each run has the law of its policy, so the difference of both values is the mean of what the first earns
less what the second earns. Against a nature that picks the rows of each pair of nodes anew within their intervals, that
mean is bounded by induction. What both policies have in common cancels before nature has a say in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plumdp.base.rounding import UNIT
from plumdp.model.graph import BoolArray, FloatArray, Indices
from plumdp.tables.chain import OpenChain

_MOST_ENTRIES = 10_000_000  # outcomes of pairs of rows
_MOST_SWEEPS, _STALLS = 100, 1e-6  # of the largest number, by which a sweep has to lower the bound
_NOTHING = np.iinfo(np.int64).min  # the label of what a row lacks of the longest


@dataclass(frozen=True, eq=False)
class CoupledChain:
    """The chain of a policy with intervals of its rows, and numbers that are the same where probabilities are."""

    table: OpenChain
    low: FloatArray  # (n_transitions)
    high: FloatArray  # (n_transitions)
    label: Indices  # (n_transitions)
    lower: FloatArray  # (n): bounds on the values of open nodes
    upper: FloatArray  # (n)

    @cached_property
    def at_most(self) -> FloatArray:
        """Upper bounds on the values of all nodes."""
        return np.append(self.upper, self.table.chain.known)

    @cached_property
    def at_least(self) -> FloatArray:
        """Lower bounds on the values of all nodes."""
        return np.append(self.lower, self.table.chain.known)

    def rows(self, width: int) -> tuple[Indices, FloatArray, FloatArray, Indices]:
        """Return successors, both ends and labels of all rows (n, width); what is missing has the probability zero."""
        place = self.table.chain.first[:-1, None] + np.arange(width)
        is_there = np.arange(width) < self.table.n_successors[:, None]
        place = np.where(is_there, place, self.table.chain.first[:-1, None])
        low, high = (np.where(is_there, each[place], 0.0) for each in (self.low, self.high))
        return self.table.successor[place], low, high, np.where(is_there, self.label[place], _NOTHING)


@dataclass(frozen=True, eq=False)
class _Block:
    """Pairs of nodes that nature moves by two draws: what a step earns, and the intervals of both draws."""

    own: Indices  # (n): which of all pairs
    reward: FloatArray  # (n)
    low: FloatArray  # (n, first draws): nature picks these first
    high: FloatArray  # (n, first draws)
    then: Indices  # (n, first draws, second draws): the pair that follows
    then_low: FloatArray  # (n, first draws, second draws)
    then_high: FloatArray  # (n, first draws, second draws)


def largest_difference(one: CoupledChain, other: CoupledChain) -> float | None:
    """Return an upper bound on the value of one chain less that of another, or None if it is not finite or too long.

    Bounds on the values of all nodes say how far the difference is off at most in each pair of nodes. Every bound that
    an application of the induction gives is one again, so that they may be taken in any order, and as often as one
    likes.
    """
    walked = _walk(one, other)
    if walked is None:
        return None
    (x, y), blocks = walked
    found = np.nextafter(one.at_most[x] - other.at_least[y], np.inf)
    if not np.isfinite(found).all():
        return None
    scale = max(float(np.abs(each).max(initial=0.0)) for each in (found, *(block.reward for block in blocks)))
    widest = max((max(block.then.shape[1:]) for block in blocks), default=1)
    unit = 64 * (widest + 4) * UNIT  # two sums of so many products, whose numbers are off by some units each
    for _ in range(_MOST_SWEEPS):
        before = found[0]
        for block in reversed(blocks):
            then = found[block.then]
            margin = unit * (np.abs(then).max() + np.abs(block.reward).max())  # bounds may outgrow all that is known
            second = _most(block.then_low, block.then_high, then)
            ahead = _most(block.low, block.high, second)
            found[block.own] = np.minimum(found[block.own], block.reward + one.table.discount * ahead + margin)
        if not before - found[0] > _STALLS * scale:
            break
    return float(found[0])


def _most(low: FloatArray, high: FloatArray, values: FloatArray) -> FloatArray:
    """Return the largest mean of values along the last axis that intervals of their probabilities allow."""
    order = np.argsort(-values, axis=-1, kind="stable")
    low, high, values = (np.take_along_axis(each, order, axis=-1) for each in (low, high, values))
    free, room = 1 - low.sum(axis=-1, keepdims=True), high - low
    filled = np.clip(free - (np.cumsum(room, axis=-1) - room), 0.0, room)
    return np.asarray(((low + filled) * values).sum(axis=-1))


def _walk(one: CoupledChain, other: CoupledChain) -> tuple[Indices, list[_Block]] | None:
    """Return all pairs that runs may meet (2, n), the first one first, and the open ones in blocks; None if too many.

    If one run is over, what the other is worth is bounded already.
    """
    width = int(max(each.table.n_successors.max(initial=1) for each in (one, other)))
    base, first = other.table.chain.n_nodes, (one.table.chain.initial, other.table.chain.initial)
    number, codes, blocks, done, entries = {first[0] * base + first[1]: 0}, list[int](), list[_Block](), 0, 0
    while done < len(number):
        codes += [*number][done:]
        own, done = np.arange(done, len(number)), len(number)
        x, y = np.divmod(np.array(codes)[own], base)
        is_open = (x < one.table.n) & (y < other.table.n)
        for block in _blocks(one, other, own[is_open], x[is_open], y[is_open], width):
            entries += block.then.size
            if entries > _MOST_ENTRIES:
                return None
            ahead, place = np.unique(block.then, return_inverse=True)
            for code in ahead.tolist():
                number.setdefault(code, len(number))
            then = np.array([number[code] for code in ahead.tolist()])[place].reshape(block.then.shape)
            blocks.append(_Block(**{**vars(block), "then": then}))
    return np.stack(np.divmod(np.array(codes), base)), blocks


def _blocks(
    one: CoupledChain, other: CoupledChain, own: Indices, x: Indices, y: Indices, width: int
) -> Iterator[_Block]:
    """Yield where pairs of open nodes lead, with codes of pairs for their numbers."""
    (ways, low, high, label), (others, least, most, its_label) = (each.rows(width) for each in (one, other))
    base, reward = other.table.chain.n_nodes, one.table.chain.reward[x] - other.table.chain.reward[y]
    is_same: BoolArray = (label[x] == its_label[y]).all(axis=1)
    is_drawn = ~(is_same | one.table.is_free[x] | other.table.is_free[y])

    def block(kind: BoolArray, low: FloatArray, high: FloatArray, then: Indices, *ends: FloatArray) -> _Block:
        return _Block(own[kind], reward[kind], low, high, then, *(np.broadcast_to(end, then.shape) for end in ends))

    if is_same.any():  # the same row: one outcome moves both
        a, b = x[is_same], y[is_same]
        sure = np.ones((len(a), 1))
        pair = ways[a] * base + others[b]
        yield block(is_same, sure, sure, pair[:, None], low[a][:, None], high[a][:, None])
    if is_drawn.any():
        drawn = [_drawn(one, other, s, t) for s, t in zip(x[is_drawn], y[is_drawn], strict=True)]
        longest, sure = max(len(share) for _, share in drawn), np.ones((len(drawn), 1))
        pairs, shares = (
            np.array([np.pad(each[k], (0, longest - len(each[k])), constant_values=fill) for each in drawn])[:, None]
            for k, fill in ((0, drawn[0][0][0]), (1, 0.0))
        )
        yield block(is_drawn, sure, sure, pairs, shares, shares)
    alone = ~(is_same | is_drawn)
    if alone.any():
        a, b = x[alone], y[alone]
        pair = ways[a][:, None] * base + others[b][:, :, None]
        yield block(alone, least[b], most[b], pair, low[a][:, None], high[a][:, None])


def _drawn(one: CoupledChain, other: CoupledChain, x: int, y: int) -> tuple[Indices, FloatArray]:
    """Return codes of pairs and their probabilities, of two rows of known numbers.

    They lead to the same state as often as they can, and else by themselves.
    """
    a, b = (slice(*each.table.chain.first[node : node + 2]) for each, node in ((one, x), (other, y)))
    ways, others = one.table.successor[a], other.table.successor[b]
    is_same = one.table.chain.state[ways][:, None] == other.table.chain.state[others]
    share, rest = one.table.number[a], other.table.number[b]
    both = np.where(is_same, np.minimum(share[:, None], rest), 0.0)
    left, its = np.maximum(share - both.sum(axis=1), 0.0), np.maximum(rest - both.sum(axis=0), 0.0)
    by_themselves = np.outer(left, its) / left.sum() if left.sum() > 0 else 0.0
    code = ways[:, None].astype(np.int64) * other.table.chain.n_nodes + others
    return code.ravel(), (both + by_themselves).ravel()
