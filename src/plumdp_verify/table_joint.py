"""How far the true values of a table are from those of its frequencies, over all rows together.

This is Statement 4 of the page "Tables of unknown rows": ‖d‖² = Σ (σ(D) / unit)² over known rows, and

    ‖d‖  <=  radius · first + far + second · ‖d‖,

with norms of the inverse G that are the roots of largest eigenvalues. These are bounded by powers: the largest
eigenvalue of a positive semidefinite matrix M is at most the k-th root of the trace of M^k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from flint import arb, arb_mat

from .arithmetic import max_of, root, square, sums, upper_end
from .reading import Ball, Part, require
from .table_deviation import ValueDeviation, column, in_ball, moves_of, norm, times
from .table_rows import nodes_of

MOST_NODES = 300  # of which eigenvalues are bounded within a minute
_POWERS = 12
_ENOUGH = 1.004  # a power that improves a bound by less is the last
_MIXED = 0.1  # share of the contraction's own norm in that of a weight


@dataclass(frozen=True)
class Joint:
    """A bound on the norm of σ(D) / unit over all known rows, by rows of the core."""

    near: ValueDeviation
    core: list[bool]
    unit: list[Ball]
    relative: Ball

    def functional(self, weight: Sequence[Ball]) -> Ball:
        """Return a bound on |Σ weight · δ|: the largest parts row by row, the others by the ball and this norm."""
        near, rows, of_values = self.near, self.near.rows, in_ball(self.near.rows, self.near.of_values)

        def by_ball(rest: Sequence[int]) -> Ball:
            of_deviation = [abs(weight[s]) * rows.beta[s] * self.unit[s] for s in rest if rows.in_ball[s]]
            of_ball = rows.radius * norm([abs(weight[s]) * of_values[s] for s in rest])
            return of_ball + self.relative * norm(of_deviation)

        return near.partly_by_rows(weight, by_ball)

    def square(self, weight: Sequence[Ball]) -> Ball:
        """Return a bound on Σ weight · (variance of discounted D ahead, by the frequencies, + δ²), of known rows."""
        near, rows, n = self.near, self.near.rows, len(weight)
        spread, of_reference = (self._norm(p, weight) for p in (rows.frequency, near.plan.reference))
        # a contraction in a norm close to that of the weight itself
        bent = [w * psi for w, psi in zip(weight, rows.psi, strict=True)]
        share = _MIXED * sums([b * u * u for b, u in zip(bent, self.unit, strict=True)]) / n
        if share > 0:
            inner = [upper_end(b + share / (u * u)) for b, u in zip(bent, self.unit, strict=True)]
            units = [1 / w.sqrt() for w in inner]
            own = _relative(near, self.core, inner, units)
            if own is not None:
                spread, of_reference = spread.min(own), of_reference.min(own)
        beta = [b if inside else arb(0) for b, inside in zip(rows.beta, self.core, strict=True)]
        sizes = [beta[s] * near.of_values[s] if self.core[s] else near.size[s] for s in range(n)]
        mean = _weighted(weight, sizes) + of_reference * max_of(beta)
        mean = mean.min(_weighted(weight, near.size))
        return upper_end(spread * spread + mean * mean)

    def _norm(self, probability: Sequence[Sequence[Ball]], weight: Sequence[Ball]) -> Ball:
        near = self.near
        first, second = _norms(near, probability, weight, self.core, self.unit)
        far = _far(near, probability, weight, self.core)
        return upper_end(near.rows.radius * first + far + second * self.relative)


def _weighted(weight: Sequence[Ball], sizes: Sequence[Ball]) -> Ball:
    return root(sums([w * square(x) for w, x in zip(weight, sizes, strict=True)]))


def read_joint(part: Part, near: ValueDeviation) -> Joint:
    """Return the bound in the norm of all known rows, with the sharper bounds of single rows that follow."""
    n, rows = len(near.chain.nodes), near.rows
    require(n <= MOST_NODES, f"verify knows norms of tables with up to {MOST_NODES:,} open nodes")
    chosen = nodes_of(part["core"], n)
    core = [s in chosen for s in range(n)]
    fits = all(rows.is_known[s] and near.chain.nodes[s].row is not None for s in chosen)
    fits = fits and all(core[s] for s in range(n) if rows.in_ball[s])
    require(fits, f"{part.place}: the core has known rows that were counted, and those of the ball")
    unit = part["unit"].balls(n)
    require(all(bool(u > 0) for u in unit), f"{part.place}: a unit is not positive")
    weight = [1 / (u * u) if known else arb(0) for u, known in zip(unit, rows.is_known, strict=True)]
    relative = _relative(near, core, weight, unit)
    require(relative is not None, f"{part.place}: the norm of all rows does not contract")
    each = zip(near.deviation, unit, rows.is_known, strict=True)
    deviation = [d.min(relative * u) if is_known else d for d, u, is_known in each]
    return Joint(replace(near, deviation=deviation), core, unit, relative)


def _relative(near: ValueDeviation, core: Sequence[bool], weight: Sequence[Ball], unit: Sequence[Ball]) -> Ball | None:
    """Return a bound on √(Σ weight σ(D)²), or None if nothing is proved; units are one over roots of weights."""
    first, second = _norms(near, near.plan.reference, weight, core, unit)
    if not second < 1:
        return None
    far = _far(near, near.plan.reference, weight, core)
    return upper_end((near.rows.radius * first + far) / (1 - second))


def _norms(
    near: ValueDeviation,
    probability: Sequence[Sequence[Ball]],
    weight: Sequence[Ball],
    core: Sequence[bool],
    unit: Sequence[Ball],
) -> tuple[Ball, Ball]:
    """Return bounds on the norms of what the ball, and what σ(D) / unit in the core, contribute to D."""
    form = _form(near, probability, weight)
    of_core = [b * u if inside else arb(0) for b, u, inside in zip(near.rows.beta, unit, core, strict=True)]
    return _largest_root(form, in_ball(near.rows, near.of_values)), _largest_root(form, of_core)


def _form(near: ValueDeviation, probability: Sequence[Sequence[Ball]], weight: Sequence[Ball]) -> Any:
    """Return the matrix of Σ weight · variance of discounted values ahead of each row, as a function of δ."""
    moves, inverse = arb_mat(moves_of(near.chain, probability)), near.inverse
    of_state, means = (moves.transpose() * column(weight)).entries(), moves * inverse
    squares = inverse.transpose() * _scaled(of_state, inverse)
    return (squares - means.transpose() * _scaled(weight, means)) * square(arb(near.chain.discount))


def _scaled(weight: Sequence[Ball], matrix: Any) -> Any:
    """Return a matrix whose rows are multiplied by weights."""
    return arb_mat([[w * x for x in row] for w, row in zip(weight, matrix.tolist(), strict=True)])


def _largest_root(form: Any, scale: Sequence[Ball]) -> Ball:
    """Return a bound on the root of the largest eigenvalue of a positive semidefinite form with scaled coordinates."""
    used = [s for s, a in enumerate(scale) if not a.is_zero()]
    if not used:
        return arb(0)
    power = arb_mat([[scale[i] * form[i, j] * scale[j] for j in used] for i in used])
    best, k = upper_end(power.trace()), 1
    for _ in range(_POWERS):
        power, k = power * power, 2 * k
        bound = upper_end(power.trace()).root(k)
        is_last = not float(bound) * _ENOUGH < float(best)
        best = best.min(bound)
        if is_last:
            break
    return root(best)


def _far(
    near: ValueDeviation, probability: Sequence[Sequence[Ball]], weight: Sequence[Ball], core: Sequence[bool]
) -> Ball:
    """Return a bound on the norm of what other rows contribute, by the sum of their sizes."""
    rest = [size.min(near.rows.beta[s] * near.of_values[s]) if core[s] else size for s, size in enumerate(near.size)]
    rest = [arb(0) if inside else size for inside, size in zip(near.rows.in_ball, rest, strict=True)]
    distance, total = times(arb_mat([[abs(x) for x in row] for row in near.inverse.tolist()]), rest), arb(0)
    for node, p, w in zip(near.chain.nodes, probability, weight, strict=True):
        total += w * sums([q * x * x for q, x in zip(p, node.ahead(distance, arb(0)), strict=False)])
    return upper_end(arb(near.chain.discount) * root(total))
