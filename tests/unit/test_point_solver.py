"""The policy that is proposed at a point is the best one there, for all kinds of objectives."""

import numpy as np
import pytest
from support.verified_results import small_model

import plumdp
from plumdp.model.language.property import as_objective
from plumdp.solver.at_points import PointSolver

ASKED = (
    'Rmin=? [ F "end" ]',
    'Rmax=? [ F "end" ]',
    'Pmin=? [ F "goal" ]',
    'Pmax=? [ F "goal" ]',
    'Pmin=? [ F<=5 "goal" ]',
)


@pytest.mark.parametrize("text", ASKED)
def test_the_policy_at_a_point_attains_the_best_value(text):
    model = small_model()
    objective, point = as_objective(text, model), {"p": 0.6, "q": 0.3}
    policy = PointSolver(model, objective).policy_at(np.array(list(point.values())))
    known = plumdp.exchange.model_at(model, point)
    best = plumdp.stages.solve(known, objective)
    found = plumdp.stages.evaluate(known, plumdp.PolicyTable(model.graph, policy), objective)
    start = model.graph.initial_state
    assert found.lower[start] == pytest.approx(best.lower[start], rel=1e-5)
