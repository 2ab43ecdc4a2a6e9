"""Bounds on values at every point of a region, which is cut into boxes, best first, each with an expansion of its own.

The boxes are in the coordinates of a ball around the region, along axes across which rows differ most.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plumdp.base.errors import WhyNot
from plumdp.base.rounding import UNDERFLOW, UNIT
from plumdp.model.graph import FloatArray
from plumdp.model.objectives import Kind, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, check_policy
from plumdp.region.ball import Ball, ball_around, turned
from plumdp.region.boxes import Boxes, Quadratic, Slack
from plumdp.region.cutting import TOGETHER, Cuttable, cut
from plumdp.region.shapes import Region
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.coupled.bounds import Proof
from plumdp.solver.coupled.box_expansions import BoxTerm, sum_on_boxes
from plumdp.solver.coupled.by_cycles import cycles_of
from plumdp.solver.coupled.forms import forms_on
from plumdp.solver.coupled.terms import term_of
from plumdp.solver.problem import Problem
from plumdp.solver.reduce import reduce

_MAX_DIMENSION = 8
_MAX_NODES = 50_000
_MAX_STEPS = 5_000  # each of which takes a third of a millisecond, however small the model is
_MOST_PIECES = 4_000
_MOST_WORK = 6e7  # products of two numbers, about: three seconds, as a certificate values up to three policies
_WITH_SLACKS = 6  # times as much work, as no other bounds know of sets that cut the region
_OF_ANY_BOX = 3e4  # products that take as long as what each box takes anyway
_MOST_NUMBERS = 4e6  # of boxes that are expanded at once


def find_by_pieces(
    model: ParametricMDP,
    policy: Policy,
    objective: Objective,
    region: Region,
    uncertain: IntervalMDP,
    *,
    less: Policy | None = None,
    slacks: Sequence[Slack] = (),
) -> Proof | WhyNot:
    """Return bounds on a policy's value, less that of another one, at every point of a region, or why there are none.

    ``uncertain`` is a relaxation of the model, whose tolerance the bounds tolerate. ``slacks`` are those of other sets
    that cut the region.
    """
    d = model.space.dimension
    if not 1 <= d <= _MAX_DIMENSION:
        return WhyNot(f"the region is cut into boxes of 1 to {_MAX_DIMENSION} parameters")
    ball, terms, added = ball_around(region, d), list[BoxTerm](), 0.0
    for weight, each in ((1.0, policy), *(() if less is None else ((-1.0, less),))):
        found = _term(weight, Problem(model, objective, check_policy(model.graph, each)), uncertain, ball.centre)
        if isinstance(found, WhyNot):
            return found
        term, constant = found
        added += constant
        terms += [term] if term.term.chain.n_open else []
    if not terms:
        return Proof(added, added, 0.0, 0.0, 0.0, "known")
    if max(each.term.chain.n_open for each in terms) > _MAX_NODES:
        return WhyNot(f"the region is cut into boxes for chains of up to {_MAX_NODES:,} open states")
    if (objective.n_steps or 0) > _MAX_STEPS:
        return WhyNot(f"the region is cut into boxes for up to {_MAX_STEPS:,} steps")
    ball, widths = _across_rows(terms, ball)
    lengths, d_cubed = [len(each.term.chain.successor) for each in terms], len(widths) ** 3
    work = sum(n * (each.term.objective.n_steps or 1) for n, each in zip(lengths, terms, strict=True)) * d_cubed

    def expand(boxes: Boxes) -> Quadratic:
        q = sum_on_boxes(terms, boxes)
        return q._replace(value=q.value + added, error=q.error + 2 * UNIT * (np.abs(q.value) + abs(added)))

    budget = _MOST_WORK * (_WITH_SLACKS if slacks else 1) / 2  # as each box was made with another one
    most = int(min(_MOST_PIECES, budget / (work + _OF_ANY_BOX)))
    together = int(np.clip(_MOST_NUMBERS / (max(lengths) * d_cubed), 1, TOGETHER))
    cover, inner = cut(Cuttable(expand, region, ball, widths, most, together, slacks))
    lower, upper = float(cover.low.min()), float(cover.high.max())
    if not -np.inf < lower <= upper < np.inf:
        return WhyNot("no pieces of the region were found that bound the approximation error")
    is_known = bool(np.isfinite(inner).all())
    statistics = min(max(inner[1] - inner[0], 0.0), upper - lower) if is_known else 0.0
    kind = f"second order in {len(cover.low):,} pieces"
    return Proof(lower, upper, statistics, upper - lower - statistics, 0.0, kind, cover=(ball, cover))


def _term(
    weight: float, problem: Problem[ParametricMDP], uncertain: IntervalMDP, point: FloatArray
) -> tuple[BoxTerm, float] | WhyNot:
    """Return a policy's value as a term and a number to be added, or why it cannot be expanded."""
    reduced = reduce(problem)
    simple, relaxed = reduced.problem, reduced.like(uncertain)
    if problem.objective.kind is not Kind.AVERAGE:
        term = term_of(simple, relaxed)
        if isinstance(term, WhyNot):
            return term
        constant = (weight if reduced.sign < 0 else 0.0) + weight * reduced.sign * (term.known or 0.0)
        return BoxTerm(weight * reduced.sign, term), constant
    assert simple.policy is not None
    cycles = cycles_of(simple.mdp, simple.policy, simple.objective, point)
    if isinstance(cycles, WhyNot):
        return cycles
    term = term_of(Problem(cycles.model, cycles.total(0.0), cycles.policy), cycles.relaxed(relaxed))
    if isinstance(term, WhyNot):
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
