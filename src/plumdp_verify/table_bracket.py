"""From bets on temporal differences to the bracket: Statement 5 of docs/proofs/tables.md.

F(V), the logarithm of the product of all bets of a side, is below ln(1 / error) at the true values. About V̂

    F(V)  >=  F(V̂) + F'(V̂) (V - V̂) - q / 2,

and F'(V̂) is ± scale (first node + miss), where miss · (V - V̂) and q are bounded by how far V is from V̂.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from flint import arb, fmpq

from .arithmetic import curvature, max_of, square, sums, upper_end
from .claim import Claim
from .reading import Ball, Exact, Part, Rejected, require
from .table_chain import TableChain, TableCounts
from .table_deviation import ValueDeviation, column

_ROUNDING = fmpq(1, 10**12)
_LARGEST = arb(0.5)  # payoff at the true values, in size


def check_ends(claim: Claim, chain: TableChain, low: Sequence[Ball | Exact], high: Sequence[Ball | Exact]) -> Claim:
    """Return the claim with the bracket that is proved: the same, or one with an end that is wider by 10^-12 of itself.

    ``low`` and ``high`` are numbers that the value is proved not to be below, and above.
    """
    lower, upper = claim.lower, claim.upper
    if chain.complement:
        lower, upper = (None if end is None else 1 - end for end in (upper, lower))
    if lower is not None and (lower > 0 or not chain.is_never_negative):
        lower = -_proved(-lower, [-arb(end) for end in low], "lower")
    if upper is not None and (chain.kind != "reach" or upper < 1):
        upper = _proved(upper, [arb(end) for end in high], "upper")
    if chain.complement:
        lower, upper = (None if end is None else 1 - end for end in (upper, lower))
    return replace(claim, lower=lower, upper=upper)


def _proved(end: Exact, bounds: Sequence[Ball], name: str) -> Exact:
    """Return an upper end that some bound proves, the given one or one that leaves room for rounding."""
    for proved in (end, end + _ROUNDING * abs(end)):
        if any(bool(bound <= arb(proved)) for bound in bounds):
            return proved
    raise Rejected(f"the {name} end does not follow")


@dataclass(frozen=True)
class TableStage:
    """Weights of the nodes that were fixed at a moment, and what was seen until the next one, by unknown rows."""

    weight: list[Ball]
    seen: dict[int, list[int]]


def read_stages(part: Part, chain: TableChain, counts: TableCounts) -> list[TableStage]:
    """Return the stages of one side until some moment: at each of them the bets have won no more than they may."""
    require(0 < len(part["weights"]) <= counts.n_stages, f"{part.place}: stages need weights, from the first one on")
    n, rows = len(chain.nodes), chain.tied()
    return [
        TableStage(weights.balls(n), {row: counts.of_stage(row, b) for row in rows})
        for b, weights in enumerate(part["weights"])
    ]


def end_by_bets(part: Part, stages: Sequence[TableStage], near: ValueDeviation, sign: int) -> Ball:
    """Return a bound on the value of the first node, from above (sign 1) or below (sign -1), by the bets of a side."""
    scale, start = arb(part["scale"].number()), near.chain.initial
    require(bool(scale > 0), f"{part.place}: the scale is not positive")
    assert start is not None
    _check_small(stages, near)
    log_product, gradient, q = _expand(stages, near)
    miss = [slope / (sign * scale) - (s == start) for s, slope in enumerate(gradient)]
    # miss · D = -weight · δ
    weight = (near.inverse.transpose() * column(miss)).entries()
    missed = near.functional(weight)
    won = (near.plan.log_side - log_product) / scale
    return near.values[start] + sign * (won + q / (2 * scale) + missed)


def _check_small(stages: Sequence[TableStage], near: ValueDeviation) -> None:
    """Require that no payoff is larger than one half at the true values, which are near V̂."""
    ranges = []
    for s, node in enumerate(near.chain.nodes):
        ahead = [arb(v) for v in node.ahead(near.values)]
        furthest = sorted(node.ahead(near.distance, arb(0)), key=float)[-2:]
        both = sums(furthest) * arb(near.chain.discount) * (1 + arb(_ROUNDING))  # as floats may tie
        reach = both.min(near.plan.largest[s] * near.deviation[s])
        own = arb(near.chain.discount) * (max_of(ahead) + max_of([-v for v in ahead]))
        ranges.append(upper_end((own + reach).min(near.largest_range[s])))
    for stage in stages:
        for row, nodes in near.chain.tied().items():
            most = sums([abs(stage.weight[s]) * ranges[s] for s in nodes])
            require(bool(most <= _LARGEST), f"unknown row {row}: a bet may have been too large")


def _expand(stages: Sequence[TableStage], near: ValueDeviation) -> tuple[Ball, list[Ball], Ball]:
    """Return the logarithm of the product of bets at V̂, its gradient, and q from above."""
    nodes, gamma, is_known = near.chain.nodes, arb(near.chain.discount), near.rows.is_known
    log_product, gradient, by_reach = arb(0), [arb(0)] * len(nodes), arb(0)
    of_square = [[arb(0)] * len(node.successors) for node in nodes]
    for stage, tied, place, n in _seen_places(stages, near):
        payoff, furthest, total = arb(0), arb(0), arb(0)
        reach = {}
        for s in tied:
            node, w = nodes[s], stage.weight[s]
            after, closed = node.successors[place], arb(node.known[place])
            ahead = closed if after is None else near.values[after]
            payoff += w * (arb(node.reward) + gamma * ahead - near.values[s])
            reach[s] = near.distance[s] + gamma * (arb(0) if after is None else near.distance[after])
            furthest += abs(w) * reach[s]
            total += abs(w)
        factor = 1 + payoff
        require(bool(factor > 0), "a bet loses all at the frequencies")
        log_product += n * factor.log()
        t = (1 - _LARGEST / factor).max(arb(0)).min(furthest / factor)
        each = upper_end(n * curvature(t) / square(factor))
        for s in tied:
            w, after = stage.weight[s], nodes[s].successors[place]
            slope = n * w / factor
            gradient[s] -= slope
            if after is not None:
                gradient[after] += gamma * slope
            # (Σ w x)² <= Σ|w| Σ |w| x² for the payoffs of tied rows
            together = upper_end(each * abs(w) * total)
            if is_known[s]:
                of_square[s][place] += together
            else:
                by_reach += together * square(reach[s])
    largest = [_largest(of_square[s], near.rows.frequency[s]) if is_known[s] else arb(0) for s in range(len(nodes))]
    squares = zip(largest, _variances(near), near.size, strict=True)
    first = upper_end(sums([f * (variance + size * size) for f, variance, size in squares]))
    return log_product, gradient, upper_end(first + by_reach)


def _seen_places(
    stages: Sequence[TableStage], near: ValueDeviation
) -> Iterator[tuple[TableStage, list[int], int, int]]:
    """Yield each stage, the nodes of an unknown row, a place of it, and how often that was seen, if it was."""
    for stage in stages:
        for row, nodes in near.chain.tied().items():
            for place, n in enumerate(stage.seen[row]):
                if n:
                    yield stage, nodes, place, n


def _largest(of_square: Sequence[Ball], frequency: Sequence[Ball]) -> Ball:
    """Return the largest weight of a square over its frequency; what was never seen has no weight."""
    return upper_end(max_of([x if p.is_zero() else x / p for x, p in zip(of_square, frequency, strict=True)]))


def _variances(near: ValueDeviation) -> list[Ball]:
    """Return bounds on the variance of the discounted D ahead under the frequencies, of each known row."""
    result = []
    for s, node in enumerate(near.chain.nodes):
        ahead = node.ahead(near.distance, arb(0))
        by_distance = sums([p * d * d for p, d in zip(near.rows.frequency[s], ahead, strict=False)])
        by_distance *= square(arb(near.chain.discount))
        result.append(upper_end((near.rows.psi[s] * square(near.deviation[s])).min(by_distance)))
    return result
