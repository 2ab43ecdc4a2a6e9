"""How far the true values V of a table are from those of its frequencies V̂, in all nodes and jointly.

This is Statement 3 of docs/proofs/tables.md. With the frequencies P of known rows, and no row in nodes that
are not known, D = V - V̂ is -G δ, G being the inverse of I - discount · P in ball arithmetic. Bounds on δ bound D, and
these bound δ; started from bounds that hold, every round holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from sys import float_info
from typing import Any

from flint import arb, arb_mat

from .arithmetic import root, square, sums, upper_end
from .reading import Ball, Exact, Part, Rejected, require
from .table_chain import TableChain
from .table_rows import Plan, RowBounds

MOST_NODES = 800  # of which an inverse is found within a minute
_ROUNDS = 150
_STALLS = 0.002  # a mean fall of logarithms below which the iteration ends


@dataclass(frozen=True)
class ValueDeviation:
    """|D| <= distance, σ(D) <= deviation and |δ| <= size for all true values."""

    chain: TableChain
    plan: Plan
    rows: RowBounds
    inverse: Any  # G, a matrix of balls
    values: list[Ball]  # V̂
    of_values: list[Ball]  # σ(V̂)
    largest_range: list[Ball]  # of the discounted true values ahead
    distance: list[Ball]
    deviation: list[Ball]
    size: list[Ball]

    @property
    def of_truth(self) -> list[Ball]:
        """Bounds on σ(V): at most half of the range."""
        each = zip(self.of_values, self.deviation, self.largest_range, strict=True)
        return [(of_frequencies + more).min(whole / 2) for of_frequencies, more, whole in each]

    @property
    def of_ball(self) -> list[Ball]:
        """What a row of the ball contributes to δ at most, for each unit of the ball."""
        rows = self.rows
        return [
            mu * each / arb(n).sqrt() if inside else arb(0)
            for mu, each, n, inside in zip(rows.mu, self.of_truth, rows.visits, rows.in_ball, strict=True)
        ]

    def functional(self, weight: Sequence[Ball]) -> Ball:
        """Return a bound on |Σ weight · δ|: the largest parts row by row, others by the ball; how many is tried."""
        of_ball = [abs(a) * b for a, b in zip(weight, self.of_ball, strict=True)]
        by_row = [upper_end(abs(a) * z) for a, z in zip(weight, self.size, strict=True)]
        order = sorted(range(len(by_row)), key=lambda s: -float(by_row[s]))
        n, best = len(order), arb("inf")
        for n_rows in {0, n // 100, n // 30, n // 10, n // 3, n}:
            rest = order[n_rows:]
            outside = [by_row[s] for s in rest if not self.rows.in_ball[s]]
            by_ball = self.rows.radius * norm([of_ball[s] for s in rest])
            best = best.min(sums([by_row[s] for s in order[:n_rows]]) + sums(outside) + by_ball)
        return upper_end(best)


def norm(numbers: Sequence[Ball]) -> Ball:
    """Return a bound on the Euclidean length of nonnegative numbers, from above."""
    return root(sums([square(x) for x in numbers]))


def deviation_of(probability: Sequence[Ball], ahead: Sequence[Ball], discount: Exact) -> Ball:
    """Return the standard deviation of discounted values ahead under a probability, from above."""
    mean = sums([p * v for p, v in zip(probability, ahead, strict=True)])
    variance = sums([p * square(v - mean) for p, v in zip(probability, ahead, strict=True)])
    return upper_end(arb(discount) * root(variance))


def column(numbers: Sequence[Ball]) -> Any:
    """Return numbers as a matrix with one column."""
    return arb_mat(len(numbers), 1, list(numbers))


def times(matrix: Any, numbers: Sequence[Ball]) -> list[Ball]:
    """Return the product of a matrix and a vector, from above."""
    return [upper_end(x) for x in (matrix * column(numbers)).entries()]


def moves_of(chain: TableChain, probability: Sequence[Sequence[Ball]]) -> list[list[Ball]]:
    """Return the probabilities of open successors as a matrix, with zeros in rows that have none."""
    n = len(chain.nodes)
    moves = [[arb(0)] * n for _ in range(n)]
    for s, (node, row) in enumerate(zip(chain.nodes, probability, strict=True)):
        for successor, p in zip(node.successors, row, strict=False):
            if successor is not None:
                moves[s][successor] += p
    return moves


def read_deviation(
    part: Part, chain: TableChain, plan: Plan, rows: RowBounds, lower: list[Exact], upper: list[Exact | None]
) -> ValueDeviation:
    """Return bounds on D, started from bounds on the true values that the witness may round outward."""
    n, discount = len(chain.nodes), arb(chain.discount)
    require(n <= MOST_NODES, f"verify knows bets on chains of tables with up to {MOST_NODES:,} open nodes")
    low, high = part["start"]["lower"].numbers(n), part["start"]["upper"].numbers(n)
    is_low = all(a <= b for a, b in zip(low, lower, strict=True))
    is_high = all(b is not None and a >= b for a, b in zip(high, upper, strict=True))
    require(is_low and is_high, f"{part.place}: the iteration starts from bounds that are not proved")
    identity = arb_mat([[int(i == j) for j in range(n)] for i in range(n)])
    try:
        inverse = (identity - discount * arb_mat(moves_of(chain, rows.frequency))).inv()
    except ZeroDivisionError:
        raise Rejected("the frequencies of known rows have no proved solution") from None
    right = [arb((a + b) / 2) for a, b in zip(low, high, strict=True)]
    for s, node in enumerate(chain.nodes):
        if rows.is_known[s]:
            closed = sums([p * arb(value) for p, value in zip(rows.frequency[s], node.known, strict=False)])
            right[s] = arb(node.reward) + discount * closed
    values = (inverse * column(right)).entries()
    of_values = [
        deviation_of(p, [arb(value) for value in node.ahead(values)], chain.discount)
        for node, p in zip(chain.nodes, plan.reference, strict=True)
    ]
    ranges = [arb(chain.discount * (max(node.ahead(high)) - min(node.ahead(low)))) for node in chain.nodes]
    ends = zip(map(arb, low), map(arb, high), values, strict=True)
    far = [upper_end((b - v).max(v - a).max(arb(0))) for a, b, v in ends]
    spread = _deviations(chain, plan, far)
    first = ValueDeviation(chain, plan, rows, inverse, values, of_values, ranges, far, spread, far)
    return _iterated(replace(first, size=_sizes(first, far)), far)


def _deviations(chain: TableChain, plan: Plan, distance: Sequence[Ball]) -> list[Ball]:
    """Return bounds on σ(D), given bounds on |D|: roots of mean squares, D being 0 in closed nodes."""
    result = []
    for node, row in zip(chain.nodes, plan.reference, strict=True):
        ahead = node.ahead(distance, arb(0))
        mean_square = sums([p * square(d) for p, d in zip(row, ahead, strict=True)])
        result.append(upper_end(arb(chain.discount) * root(mean_square)))
    return result


def _sizes(near: ValueDeviation, start: Sequence[Ball]) -> list[Ball]:
    """Return bounds on |δ|, given bounds on σ(D)."""
    each = zip(near.rows.is_known, near.rows.beta, near.of_truth, near.largest_range, start, strict=True)
    return [upper_end((beta * truth).min(whole)) if is_known else far for is_known, beta, truth, whole, far in each]


def _iterated(near: ValueDeviation, start: list[Ball]) -> ValueDeviation:
    """Return the bounds after rounds of Statement 3, until it stalls."""
    chain, plan, rows, n = near.chain, near.plan, near.rows, len(near.chain.nodes)
    entries = near.inverse.tolist()
    size_of_inverse = arb_mat([[abs(x) for x in row] for row in entries])
    squares = arb_mat([[x * x for x in row] for row in entries])
    reference = arb_mat(moves_of(chain, plan.reference))
    means, mean_squares = (reference * near.inverse).tolist(), (reference * squares).tolist()
    gamma = arb(chain.discount)
    variance = [
        [upper_end(square(gamma) * (q - square(m))).max(arb(0)) for m, q in zip(*pair, strict=True)]
        for pair in zip(means, mean_squares, strict=True)
    ]
    spread_squares = arb_mat(variance)
    spreads = arb_mat([[root(x) for x in row] for row in variance])
    for _ in range(_ROUNDS):
        before = near.deviation
        of_ball = [upper_end(square(rows.radius * x)) for x in near.of_ball]
        rest = [arb(0) if inside else z for inside, z in zip(rows.in_ball, near.size, strict=True)]
        distance = least(
            near.distance,
            times(size_of_inverse, near.size),
            added(times(squares, of_ball), times(size_of_inverse, rest)),
        )
        deviation = least(
            before,
            times(spreads, near.size),
            added(times(spread_squares, of_ball), times(spreads, rest)),
            _deviations(chain, plan, distance),
        )
        near = replace(near, distance=distance, deviation=deviation)
        near = replace(near, size=least(near.size, _sizes(near, start)))
        if sum(map(_size, before)) - sum(map(_size, deviation)) < _STALLS * n:
            break
    return near


def _size(number: Ball) -> float:
    """Return about the logarithm of a number."""
    return log(float(number) + float_info.min)


def added(squares: Sequence[Ball], others: Sequence[Ball]) -> list[Ball]:
    """Return the roots of squares plus other numbers, from above."""
    return [upper_end(root(a) + b) for a, b in zip(squares, others, strict=True)]


def least(*vectors: Sequence[Ball]) -> list[Ball]:
    """Return the least number of each place."""
    result = list(vectors[0])
    for vector in vectors[1:]:
        result = [a.min(b) for a, b in zip(result, vector, strict=True)]
    return result
