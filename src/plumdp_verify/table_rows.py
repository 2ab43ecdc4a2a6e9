"""Bets on rows of a table: what the pilot fixed of them, and how far temporal differences are from zero at most.

These are Statements 1 and 2 of docs/proofs/tables.md, in ball arithmetic. A temporal difference of the true
values V has mean zero. In a unit that the pilot fixed, its mean over the visits of a row is at most beta (row by row),
and over all rows of the ball their squares sum to at most the square of a radius.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flint import arb, fmpq

from .arithmetic import curvature, max_of, root, square, upper_end
from .reading import Ball, Part, require
from .table_chain import ANY, TableChain, TableCounts

_MOST_SIZES = 10
_ROUNDS = 8


@dataclass(frozen=True)
class Plan:
    """What was fixed by the pilot, in the order of open nodes, and the logarithms of one over errors."""

    kept: set[int]
    reference: list[list[Ball]]  # R
    largest: list[Ball]  # X: no temporal difference is larger, in units of the deviation under R
    sizes: list[list[Ball]]  # of bets on single rows
    spread: list[Ball]  # τ
    cut: list[Ball]
    mixed: set[int]
    log_rows: Ball
    log_ball: Ball
    log_side: Ball


@dataclass(frozen=True)
class RowBounds:
    """|δ| <= beta σ(V) in each known row, and δ = y mu σ(V) / √visits with |y| <= radius over all rows of the ball."""

    visits: list[int]
    frequency: list[list[Ball]]  # of known rows; no entries in others
    is_known: list[bool]
    beta: list[Ball]  # 0 in rows of known numbers
    psi: list[Ball]
    in_ball: list[bool]
    mu: list[Ball]
    radius: Ball


def nodes_of(part: Part, n: int) -> set[int]:
    """Return open nodes, each given once."""
    found = [node.whole(n) for node in part]
    require(len(set(found)) == len(found), f"{part.place}: a node is given twice")
    return set(found)


def read_plan(part: Part, chain: TableChain) -> Plan:
    """Return what was fixed by the pilot, with bets that are never negative."""
    n, errors = len(chain.nodes), part["errors"]
    kept, mixed = nodes_of(part["kept"], n), nodes_of(part["mixed"], n)
    tied = chain.tied()
    counted = {s for nodes in tied.values() for s in nodes}
    require(kept | mixed <= counted, f"{part.place}: bets are on rows that are unknown, and counted")
    alone = {nodes[0] for nodes in tied.values() if len(nodes) == 1}
    require(mixed <= alone, f"{part.place}: a mixture over nodes that share a row is not fair")
    for name in ("reference", "sizes"):
        require(len(part[name]) == n, f"{part.place}: each open node needs {name}")
    given = [row.numbers(len(node.successors)) for row, node in zip(part["reference"], chain.nodes, strict=True)]
    require(all(min(row) > 0 for row in given), f"{part.place}: a reference is not positive")
    reference = [[p / sum(row) for p in row] for row in given]
    largest = [arb(2 / min(row)).sqrt() for row in reference]
    n_sizes = len(part["sizes"][0]) if n else 0
    require(0 < n_sizes <= _MOST_SIZES, f"{part.place}: there are no sizes of bets, or too many")
    sizes = [row.balls(n_sizes) for row in part["sizes"]]
    spread, cut = part["spread"].balls(n), part["cut"].balls(n)
    for s in kept:
        fits = all(bool(u > 0) and bool(u * largest[s] <= 0.5) for u in sizes[s])
        require(fits, f"node {s}: a bet on a single row is too large")
    for s in mixed:
        fits = bool(spread[s] > 0) and bool(cut[s] > 0) and bool(cut[s] * largest[s] < 1)
        require(fits, f"node {s}: bets of the mixture are too large")
    n_bets = 2 * n_sizes * max(len(kept), 1)
    logs = [(m / arb(errors[name].number())).log() for name, m in (("rows", n_bets), ("ball", 1), ("side", 1))]
    return Plan(kept, [[arb(p) for p in row] for row in reference], largest, sizes, spread, cut, mixed, *logs)


def read_row_bounds(part: Part, chain: TableChain, counts: TableCounts, plan: Plan) -> RowBounds:
    """Return the bounds on rows that follow from what was seen after the pilot."""
    n = len(chain.nodes)
    known, ball = nodes_of(part["known"], n), nodes_of(part["ball"], n)
    seen = [[] if node.row in (None, ANY) else counts.after_pilot(node.row) for node in chain.nodes]
    visits = [sum(each) for each in seen]
    for s in known:
        is_kept = chain.nodes[s].row is None or (s in plan.kept and visits[s] > 0)
        require(is_kept, f"node {s}: its row is not one that bets were placed on, or was never visited")
    require(ball <= known & plan.mixed, f"{part.place}: a row of the ball is not one of the mixture")
    frequency, beta, psi = [list[Ball]() for _ in range(n)], [arb(0)] * n, [arb(1)] * n
    for s in known:
        is_unknown = chain.nodes[s].row is not None
        exact = [fmpq(k, visits[s]) for k in seen[s]] if is_unknown else chain.nodes[s].numbers
        frequency[s] = [arb(p) for p in exact]
        psi[s] = max_of([p / r for p, r in zip(frequency[s], plan.reference[s], strict=True)])
        beta[s] = _beta(plan, s, visits[s], psi[s]) if is_unknown else arb(0)
    mu, radius = _ball(plan, ball, visits, beta, psi)
    is_known, in_ball = ([s in nodes for s in range(n)] for nodes in (known, ball))
    return RowBounds(visits, frequency, is_known, beta, psi, in_ball, mu, radius)


def _square(plan: Plan, s: int, beta: Ball, psi: Ball) -> Ball:
    """Return a bound b on the mean square of temporal differences, in units of their deviation."""
    return (psi + square(beta)).min(square(plan.largest[s]))


def _beta(plan: Plan, s: int, visits: int, psi: Ball) -> Ball:
    beta = upper_end(plan.largest[s])
    for _ in range(_ROUNDS):  # every iterate is a bound
        for u in plan.sizes[s]:
            bent = curvature(u * plan.largest[s]) * _square(plan, s, beta, psi)
            beta = upper_end(beta.min(plan.log_rows / (u * visits) + u * bent / 2))
    return beta


def _ball(
    plan: Plan, ball: set[int], visits: Sequence[int], beta: Sequence[Ball], psi: Sequence[Ball]
) -> tuple[list[Ball], Ball]:
    """Return mu of each row of the ball, and its radius."""
    mu, total = [arb(0)] * len(visits), 2 * plan.log_ball
    for s in sorted(plan.mixed):
        bent, n, tau = curvature(plan.cut[s] * plan.largest[s]), visits[s], plan.spread[s]
        if s not in ball:  # it costs at most this, by Jensen's inequality
            total += square(tau) * bent * n * square(plan.largest[s])
            continue
        peak = n * beta[s] * square(tau)
        require(bool(peak <= plan.cut[s]), f"node {s}: bets of the mixture are too small for the ball")
        inside = _normal((plan.cut[s] - peak) / tau) - _normal((-plan.cut[s] - peak) / tau)
        require(bool(inside > 0), f"node {s}: the mixture has no mass in the ball")
        h = bent * n * _square(plan, s, beta[s], psi[s])
        total += (square(tau) * h).log1p() - 2 * inside.log()
        mu[s] = root((1 / square(tau) + h) / n)
    return mu, root(total)


def _normal(x: Ball) -> Ball:
    """Return the distribution function of the standard normal law."""
    return (-x / arb(2).sqrt()).erfc() / 2
