"""Questions whose product with a step counter is too large, on the choices worth a look, and then on one policy.

A policy that counts steps reaches few pairs of a state and a step. So the best choices at each step are found without
the product, by one pass over the model for each step: at the centre of the region, towards where the bound of the
policy there is attained, and against nature in intervals. The product has these choices only. All bounds are proved on
it as on any other: they are about the policy that is returned.
"""

from __future__ import annotations

from dataclasses import replace

from plumdp.certifying.policy_search import worst_point
from plumdp.certifying.valuation import Valuation
from plumdp.confidence.space_moments import moments
from plumdp.learning.learned import Learned
from plumdp.model.memory import no_choices
from plumdp.model.question import Question, may_narrow, narrowed
from plumdp.region.ball import ball_around
from plumdp.region.conflict import Conflict
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.at_points import move_inside
from plumdp.solver.coupled.gradient import policy_gradient


def worth_a_look(learned: Learned, question: Question, uncertain: IntervalMDP) -> Question:
    """Return a question whose product is too large on the choices that are worth a look, and others unchanged."""
    region, model, solver = learned.region, question.model, learned.at_points(question)
    if not may_narrow(question) or isinstance(region, Conflict):
        return question
    ball, middle = ball_around(region, model.space.dimension), moments(model.space)[0]
    centre, keep = move_inside(model, ball.centre, middle), no_choices(model, question.objective)
    solver.keep_best(solver.at(centre), keep)
    first = narrowed(question, keep)
    if first is question:
        return question
    _, gradient = policy_gradient(first.model, first.model.graph.first_choice[:-1], first.objective, centre)
    worst = worst_point(gradient, question.objective, region, ball)
    for point in (worst, (worst + ball.centre) / 2):
        solver.keep_best(solver.at(move_inside(model, point, middle)), keep)
    solver.keep_best(replace(uncertain, region=None), keep)
    few = narrowed(question, keep)
    return first if few is question else few


def on_its_own(question: Question, few: Question, valued: Valuation) -> tuple[Question, Valuation]:
    """Return the question on the product of one policy alone, which has the same value there, and its valuation.

    ``question`` has too large a product, and ``few`` is that on the choices worth a look.
    """
    graph, keep = few.model.graph, no_choices(question.model, question.objective)
    memory = graph.memory
    assert memory is not None
    keep[graph.states[memory.names[0]], memory.choice[valued.policy]] = True
    alone = narrowed(question, keep)
    return alone, replace(valued, policy=alone.model.graph.first_choice[:-1])
