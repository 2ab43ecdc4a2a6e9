"""Differences by advantages alone, against exact values at points of confidence sets of small random models."""

from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from coupled_points import rows_at, value_of_rows
from random_pmdps import random_counts, random_problem
from set_points import points_of_set
from tiers import size

import plumdp as pl
from plumdp.base.errors import WhyNot
from plumdp.certifying.pipeline import relax
from plumdp.model.objectives import Reach, Reward
from plumdp.region.ball import ball_around, linear_range
from plumdp.solver.coupled import terms
from plumdp.solver.coupled.brackets import bracket_of
from plumdp.solver.coupled.terms import term_of
from plumdp.solver.problem import Problem

pytestmark = pytest.mark.slow
N_POINTS = size(40, 10_000)


def misses(seed):
    """Yield whether each of some exact differences is outside of a bracket; none if there is no bracket."""
    rng = np.random.default_rng([seed, 8])
    problem = random_problem(rng, n_states=(3, 6), least=Fraction(1, 50), sure=True)
    model, graph = problem.model, problem.model.graph
    learned = pl.learn(model, random_counts(rng, problem, most=300), confidence=0.9)
    if learned.conflict is not None:
        return
    objective = [
        Reach(graph.states["at"] == 1, np.zeros(graph.n_states, dtype=bool), "max"),
        Reward(problem.reward, "max", target=problem.target),
        Reward(problem.reward, "min", discount=Fraction(9, 10)),
    ][rng.integers(3)]
    first, other = (rng.integers(graph.first_choice[:-1], graph.first_choice[1:]) for _ in range(2))
    second = np.where(rng.random(graph.n_states) < 0.5, first, other)
    ball = ball_around(learned.region, model.space.dimension)
    uncertain = relax(learned, "coupled")
    both = [term_of(Problem(model, objective, policy), uncertain) for policy in (first, second)]
    if any(isinstance(each, WhyNot) for each in both):
        return
    guesses = terms.advantage_approximations(*both, learned.region, ball, precision=1e-6)
    found = [each for each in guesses if each is not None]
    brackets = [bracket_of(each, linear_range(learned.region, ball, each.slope)) for each in found]
    for point in points_of_set(rng, learned, [], 8) if brackets else ():
        one, rival = (value_of_rows(graph, rows_at(model, point), each, objective) for each in (first, second))
        yield any(not each.low.value <= one - rival <= each.high.value for each in brackets)


def has_missed(n_points):
    """Return whether some difference is outside of its bracket, among so many points at least."""
    seen = 0
    for seed in count():
        for is_missed in misses(seed):
            if is_missed:
                return True
            seen += 1
        if seen >= n_points:
            return False
    raise AssertionError


def test_exact_differences_lie_within_brackets_by_advantages():
    assert not has_missed(N_POINTS)


def rows_are_taken_for_the_same(patch):
    """Policies that differ are taken to have the same rows everywhere."""
    right = terms._does_the_same
    patch.setattr(terms, "_does_the_same", lambda *given: np.ones_like(right(*given)))


def the_rival_has_no_remainder(patch):
    """The value of the second policy is taken for its expansion."""
    right = terms._bounded
    patch.setattr(terms, "_bounded", lambda *given: ((guess, 0 * low, 0 * high) for guess, low, high in right(*given)))


@pytest.mark.parametrize("plant", [rows_are_taken_for_the_same, the_rival_has_no_remainder])
def test_a_planted_error_is_found(plant, monkeypatch):
    plant(monkeypatch)
    assert has_missed(40 * N_POINTS)


def test_policies_with_the_same_rows_have_the_difference_zero():
    """Two names of one action, for rewards with a discount and over a number of steps."""
    p = pl.parameters("p")[0]
    rows = [(p, {"x": 0}), (1 - p, {"x": 1})]
    model = pl.explore(
        lambda s: {name: [(f, s._replace(**to)) for f, to in rows] for name in ("one", "two")},
        {"x": 0},
        space=pl.ParameterSpace.unit("p"),
        rewards={"x": lambda s: s.x},
    )
    learned = pl.learn(model, pl.simulate(model, {"p": 0.4}, 20, rng=1, max_steps=5))
    found = pl.difference(learned, 'R{"x"}max=? [ C{0.9} ]', "one", "two")
    assert -1e-9 < found.lower <= 0 <= found.upper < 1e-9
    found = pl.difference(learned, 'R{"x"}max=? [ C<=5 ]', "one", "two")
    assert -1e-9 < found.lower <= 0 <= found.upper < 1e-9
