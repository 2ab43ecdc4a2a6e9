"""Bounds on values at every point of a region, which is cut into boxes, best first, each with an expansion of its own.

The boxes are in the coordinates of a ball around the region, along axes across which rows differ most. Those that hold
an end of the bracket are halved until what is not explained by points of the region is a small share of the width. They
cover the region whenever that stops, so that the bounds hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumdp.base.progress import Teller
from plumdp.base.rounding import UNDERFLOW, UNIT, UP
from plumdp.model.graph import FloatArray
from plumdp.model.objectives import Kind, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, check_policy
from plumdp.region.ball import Ball, ball_around, turned
from plumdp.region.shapes import Region
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.coupled.bounds import MATTERS, Proof
from plumdp.solver.coupled.box_bounds import Cover, on_boxes
from plumdp.solver.coupled.box_expansions import BoxTerm, Quadratic, sum_on_boxes
from plumdp.solver.coupled.by_cycles import cycles_of
from plumdp.solver.coupled.forms import Boxes, forms_on, linear_range
from plumdp.solver.coupled.terms import term_of
from plumdp.solver.problem import Problem
from plumdp.solver.reduce import reduce

_NEGLIGIBLE = 1e-7  # remainder, absolute or relative
_MAX_DIMENSION = 8
_MAX_NODES = 50_000
_MAX_STEPS = 5_000  # each of which takes a third of a millisecond, however small the model is
_MOST_PIECES = 4_000
_MOST_WORK = 6e7  # products of two numbers, about: three seconds, as a certificate values up to three policies
_OF_ANY_BOX = 3e4  # products that take as long as what each box takes anyway
_PAYS = 0.95  # share of the width that twice as many boxes may leave; if it is more, halving goes no further
_UNTIL_FINITE = 512  # boxes, after which the bounds must be finite
_TOGETHER = 64  # boxes that are expanded at once, unless they take too much memory
_MOST_NUMBERS = 4e6  # of boxes that are expanded at once


@dataclass(frozen=True, eq=False)
class _Sum:
    """A weighted sum of values, plus a number, over a region."""

    terms: tuple[BoxTerm, ...]
    added: float
    region: Region
    ball: Ball
    widths: FloatArray  # (d): how far rows reach along the axes of the ball

    def expand(self, boxes: Boxes) -> Quadratic:
        """Return the sum on boxes."""
        q = sum_on_boxes(self.terms, boxes)
        return q._replace(value=q.value + self.added, error=q.error + 2 * UNIT * (np.abs(q.value) + abs(self.added)))

    def bounded(self, lower: FloatArray, upper: FloatArray) -> Cover:
        """Return bounds on the sum in boxes."""
        middle = (lower + upper) / 2
        boxes = Boxes(self.ball, middle, np.maximum(upper - middle, middle - lower) * UP + UNDERFLOW)
        parts = []
        for start in range(0, len(middle), self.together):
            some = boxes[start : start + self.together]
            with np.errstate(all="ignore"):  # what is not a number bounds nothing
                q, within = self.expand(some), on_boxes(self.region, some)
                (high, far), (low, near) = within.upper(q), within.upper(q.times(-1.0))
                is_told = q.error <= np.abs(q.slope).sum(1) + np.abs(q.value)  # else it says nothing about points
                across = some.reach * self.widths
                score = np.abs(q.curvature).sum(2) + q.error[:, None] * (across / across.sum(1, keepdims=True))
            score = np.where(np.isfinite(score).all(1)[:, None], score, across)
            near, far = (np.where(is_told, end, -np.inf) for end in (near, far))
            parts.append((-low, high, -near, far, score.argmax(1)))
        return Cover(lower, upper, *(np.concatenate(each) for each in zip(*parts, strict=True)))

    @property
    def together(self) -> int:
        """The number of boxes that are expanded at once."""
        largest = max(len(each.term.chain.successor) for each in self.terms)
        return int(np.clip(_MOST_NUMBERS / (largest * len(self.widths) ** 3), 1, _TOGETHER))

    @property
    def most(self) -> int:
        """The number of boxes that may cover the region, each of which was made with another one."""
        sizes = (len(each.term.chain.successor) * (each.term.objective.n_steps or 1) for each in self.terms)
        return int(min(_MOST_PIECES, _MOST_WORK / 2 / (sum(sizes) * len(self.widths) ** 3 + _OF_ANY_BOX)))

    def first(self) -> tuple[FloatArray, FloatArray]:
        """Return the ends of a box that holds the region."""
        ends = [linear_range(self.region, self.ball, axis) for axis in np.eye(len(self.widths))]
        return np.array([[end.lower for end in ends]]), np.array([[end.upper for end in ends]])


def find_by_pieces(
    model: ParametricMDP,
    policy: Policy,
    objective: Objective,
    region: Region,
    uncertain: IntervalMDP,
    *,
    less: Policy | None = None,
) -> Proof | str:
    """Return bounds on a policy's value, less that of another one, at every point of a region, or why there are none.

    ``uncertain`` is a relaxation of the model, whose misfit the bounds tolerate.
    """
    d = model.space.dimension
    if not 1 <= d <= _MAX_DIMENSION:
        return f"the region is cut into boxes of 1 to {_MAX_DIMENSION} parameters"
    ball, terms, added = ball_around(region, d), list[BoxTerm](), 0.0
    for weight, each in ((1.0, policy), *(() if less is None else ((-1.0, less),))):
        found = _term(weight, Problem(model, objective, check_policy(model.graph, each)), uncertain, ball.centre)
        if isinstance(found, str):
            return found
        term, constant = found
        added += constant
        terms += [term] if term.term.chain.n_open else []
    if not terms:
        return Proof(added, added, 0.0, 0.0, 0.0, "known")
    if max(each.term.chain.n_open for each in terms) > _MAX_NODES:
        return f"the region is cut into boxes for chains of up to {_MAX_NODES:,} open states"
    if (objective.n_steps or 0) > _MAX_STEPS:
        return f"the region is cut into boxes for up to {_MAX_STEPS:,} steps"
    ball, widths = _across_rows(terms, ball)
    return _search(_Sum(tuple(terms), added, region, ball, widths))


def _term(
    weight: float, problem: Problem[ParametricMDP], uncertain: IntervalMDP, point: FloatArray
) -> tuple[BoxTerm, float] | str:
    """Return a policy's value as a term and a number to be added, or why it cannot be expanded."""
    reduced = reduce(problem)
    simple, relaxed = reduced.problem, reduced.like(uncertain)
    if problem.objective.kind is not Kind.AVERAGE:
        term = term_of(simple, relaxed)
        if isinstance(term, str):
            return term
        constant = (weight if reduced.sign < 0 else 0.0) + weight * reduced.sign * (term.known or 0.0)
        return BoxTerm(weight * reduced.sign, term), constant
    assert simple.policy is not None
    cycles = cycles_of(simple.mdp, simple.policy, simple.objective, point)
    if isinstance(cycles, str):
        return cycles
    term = term_of(Problem(cycles.model, cycles.total(0.0), cycles.policy), cycles.relaxed(relaxed))
    if isinstance(term, str):
        return term
    chain = term.chain
    begins = np.flatnonzero(cycles.starts[chain.state[: chain.n_open]])
    steps = cycles.steps[cycles.policy[chain.state[: chain.n_open]]]
    return BoxTerm(weight, term, steps, int(begins[0])), 0.0


def _across_rows(terms: Sequence[BoxTerm], ball: Ball) -> tuple[Ball, FloatArray]:
    """Return a ball with axes along which rows differ most, and how far they do."""

    def spreads(about: Ball) -> FloatArray:
        every = [(each.term.model.expressions, np.unique(each.term.chain.expression)) for each in terms]
        return np.vstack([forms_on(table, used, about, order=1).spreads for table, used in every])

    slopes = spreads(ball)
    about = turned(ball, np.linalg.eigh(slopes.T @ slopes)[1])
    return about, np.sqrt((spreads(about) ** 2).sum(axis=0)) + UNDERFLOW


def _search(total: _Sum) -> Proof | str:
    """Return the bounds of boxes that are halved, those with the outermost ends first."""
    cover, teller = total.bounded(*total.first()), Teller("cutting the region", "pieces")
    looked, width = 1, np.inf  # the number of boxes when it was last seen whether halving pays, and the width then
    while True:
        inner = float(cover.near.min()), float(cover.far.max())
        is_known = bool(np.isfinite(inner).all())
        about = inner if is_known else (0.0, 0.0)
        room = max(MATTERS / 2 * (about[1] - about[0]), _NEGLIGIBLE * (1 + max(map(abs, about))))
        excess = np.maximum(cover.high - about[1], about[0] - cover.low)
        order = np.argsort(-excess, kind="stable")
        wide = order[((excess > room) & (cover.low <= cover.high))[order]]
        if not len(wide) or len(cover.low) >= total.most:
            break
        if len(cover.low) >= 2 * max(looked, _TOGETHER):
            looked, last, width = len(cover.low), width, float(cover.high.max() - cover.low.min())
            if not width <= _PAYS * last and (looked > _UNTIL_FINITE or last < np.inf):
                break
        teller.tell(len(cover.low))
        chosen = wide[: min(max(_TOGETHER // 2, len(wide) // 4), total.most - len(cover.low))]
        rest, new = np.setdiff1d(np.arange(len(excess)), chosen), total.bounded(*cover.take(chosen).halves())
        new.near[0], new.far[0] = min(new.near[0], inner[0]), max(new.far[0], inner[1])  # no value is forgotten
        both = zip(*(vars(each).values() for each in (cover.take(rest), new)), strict=True)
        cover = Cover(*(np.concatenate(pair) for pair in both))
    lower, upper = float(cover.low.min()), float(cover.high.max())
    if not -np.inf < lower <= upper < np.inf:
        return "no pieces of the region were found that bound the remainder"
    statistics = min(max(inner[1] - inner[0], 0.0), upper - lower) if is_known else 0.0
    kind = f"second order in {len(cover.low):,} pieces"
    return Proof(lower, upper, statistics, upper - lower - statistics, 0.0, kind, cover=(total.ball, cover))
