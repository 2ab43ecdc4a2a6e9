"""Theorem 2: P_I ⊇ P_Λ ⊇ P_R ⊇ P_U and P_Θ ⊇ P_Λ, as sets and as values; P_I and P_Θ are incomparable.

Points of the region are exact: mixtures of its vertices, which are found in rational numbers. At such a point a policy
has one value, also in rational numbers, which no tolerance helps to lie between bounds.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from exact_values import chain_values, merge, step_rewards
from known_intervals import with_ends
from random_pmdps import Problem, exact_vertices, random_counts, random_point, random_problem
from row_models import listed
from tiers import size

import plumdp as pl
from plumdp.certifying.pipeline import conclude, relax
from plumdp.confidence.bounds import ExpressionBounds, expression_bounds
from plumdp.confidence.sets import Evidence, whole_set
from plumdp.data.counts import TransitionCounts
from plumdp.learning.learn import learn
from plumdp.learning.learned import Learned
from plumdp.model.events import find_events
from plumdp.model.objectives import Reach, Reward
from plumdp.region.build import build_region
from plumdp.region.conflict import Conflict
from plumdp.relaxation.relax import expression_wise, interval_wise, parameter_wise
from plumdp.solver.evaluate import evaluate
from plumdp.solver.solve import solve

pytestmark = pytest.mark.slow

N_CASES = size(40, 240)
PRECISION = 1e-6
ROUNDING = 1e-12  # what rounding outward may add to an interval
RELAXATIONS = ["interval", "parameter", "expression", "rectangular"]
PART_OF = {"interval": "expression", "parameter": "expression", "expression": "rectangular"}


@dataclass(frozen=True, eq=False)
class Case:
    """A random model, what was learned of it from random counts, and some points of the region."""

    number: int
    problem: Problem
    learned: Learned
    vertices: list
    points: list  # two vertices and two points between them
    policy: np.ndarray  # a random one
    relaxed: dict  # name → IntervalMDP

    @property
    def model(self):
        return self.problem.model

    @property
    def objectives(self):
        """Both directions of a probability in every other case, and of a reward in the others."""
        for direction in ("max", "min"):
            if self.number % 2:
                yield Reward(self.problem.reward, direction, self.problem.target)
            else:
                yield Reach(self.problem.target, np.zeros_like(self.problem.target), direction)


@pytest.fixture(scope="module")
def cases():
    """Return random cases; a region that is empty is so in rational numbers too."""
    found = [random_case(number) for number in range(N_CASES)]
    assert sum(case is None for case in found) <= 2  # by Theorem 1 one in a thousand
    return [case for case in found if case is not None]


def random_case(number):
    rng = np.random.default_rng([5, number])
    problem = random_problem(rng)
    learned = learn(problem.model, random_counts(rng, problem), confidence_set="interval")
    (bounds,), graph = learned.bounds.of_kind(ExpressionBounds), problem.model.graph
    vertices = exact_vertices(problem.model.space, bounds.events.polynomials, bounds.event_lower, bounds.event_upper)
    if isinstance(learned.region, Conflict):
        assert vertices == []
        return None
    points = [vertices[0], vertices[-1], *(random_point(rng, vertices) for _ in range(2))]
    policy = rng.integers(graph.first_choice[:-1], graph.first_choice[1:])
    relaxed = {name: relax(learned, name) for name in RELAXATIONS}
    return Case(number, problem, learned, vertices, points, policy, relaxed)


def exact_probabilities(model, point):
    return model.expressions.evaluate_exact(model.space, point)


# As sets


@pytest.mark.parametrize("relaxation", RELAXATIONS)
def test_every_point_of_the_region_lies_in_each_relaxation(cases, relaxation):
    """P_U is a part of all of them, in exact arithmetic: what nature may do in a row is what one point gives it."""
    for case in cases:
        imdp = case.relaxed[relaxation]
        for point in case.points:
            for f, value in enumerate(exact_probabilities(case.model, point)):
                assert Fraction(imdp.lower[f]) <= value <= Fraction(imdp.upper[f]), (case.number, point, f)


def test_nature_at_a_choice_has_just_the_points_of_the_region(cases):
    """Sets with the same extent in every direction have the same hull: here in random directions, up to rounding.

    Nature's vertices are floats, and where many half-spaces almost meet in one point they may be off by 1e-12 or so.
    """
    rng = np.random.default_rng(6)
    for case in cases:
        rows = case.relaxed["rectangular"].region
        natures = rows.constants + rows.vertices.vertices @ rows.coefficients.T  # (n_vertices, n_expressions)
        exact = np.array([exact_probabilities(case.model, vertex) for vertex in case.vertices], dtype=float)
        directions = rng.normal(size=(natures.shape[1], 30))
        extents = [(points @ directions).max(axis=0) for points in (natures, exact)]
        np.testing.assert_allclose(*extents, rtol=0, atol=1e-9, err_msg=f"case {case.number}")


def test_the_rows_of_the_rectangular_relaxation_lie_in_the_expression_wise_intervals(cases):
    """What nature's vertices give each expression, and with them all mixtures of vertices; up to rounding."""
    for case in cases:
        imdp = case.relaxed["rectangular"]
        values = imdp.region.constants + imdp.region.vertices.vertices @ imdp.region.coefficients.T
        assert (values >= imdp.lower - 1e-9).all(), case.number
        assert (values <= imdp.upper + 1e-9).all(), case.number


def test_expression_wise_intervals_lie_in_those_of_the_data_and_of_the_parameters(cases):
    for case in cases:
        model, region = case.model, case.learned.region
        inner = expression_wise(model, region)
        for outer in (interval_wise(model, case.learned.bounds), parameter_wise(model, region)):
            assert (outer.lower <= inner.lower + ROUNDING).all(), case.number
            assert (inner.upper <= outer.upper + ROUNDING).all(), case.number


def test_intervals_cross_only_if_the_region_is_empty(cases):
    for case in cases:
        for imdp in case.relaxed.values():
            assert (imdp.lower <= imdp.upper).all(), case.number


def test_a_region_that_is_too_small_is_noticed(cases):
    """The negative control: with the ends of all events' intervals moved inwards by 1e-4, vertices stick out."""
    n_noticed = 0
    for case in cases[:50]:
        (bounds,), space = case.learned.bounds.of_kind(ExpressionBounds), case.model.space
        inner = bounds.event_lower + 1e-4, bounds.event_upper - 1e-4
        region = build_region(space, bounds.events.polynomials, *inner)
        imdp = relax(replace(case.learned, region=region), "expression")
        values = np.array([exact_probabilities(case.model, vertex) for vertex in case.vertices], dtype=float)
        n_noticed += bool((values < imdp.lower - 1e-5).any() or (values > imdp.upper + 1e-5).any())
    assert n_noticed > 25


# As values


def outward(solution, objective, nature):
    """Return the values on the side that nature pulls to, with which a certificate is made."""
    return solution.upper if (objective.direction == "max") == (nature == "optimistic") else solution.lower


def is_no_worse(inner, outer, objective, nature):
    """Return where the bound over a smaller set is at least as good as over a larger one, up to the precision."""
    slack = 2 * PRECISION * np.maximum(1, np.where(np.isfinite(outer), np.abs(outer), 1))
    is_above = (objective.direction == "max") == (nature == "optimistic")
    return inner <= outer + slack if is_above else inner >= outer - slack


@pytest.mark.parametrize("nature", ["robust", "optimistic"])
def test_a_smaller_set_gives_a_better_bound(cases, nature):
    """Interval, expression, rectangular; and parameter, expression: the best policy's value, and a given policy's.

    Bounds that the solver leaves open hold, but they are not the best that the set allows; few are.
    """
    n_compared, options = [], {"nature": nature, "precision": PRECISION}
    for case in cases:
        for objective in case.objectives:
            for found in (
                {name: solve(imdp, objective, **options) for name, imdp in case.relaxed.items()},
                {name: evaluate(imdp, case.policy, objective, **options) for name, imdp in case.relaxed.items()},
            ):
                for outer, inner in PART_OF.items():
                    is_converged = found[inner].status == "converged"
                    values = [outward(found[name], objective, nature) for name in (inner, outer)]
                    good = is_no_worse(*values, objective, nature)
                    assert good.all() or not is_converged, (case.number, objective, outer, *values)
                    n_compared.append(is_converged)
    assert np.mean(n_compared) > 0.9


@pytest.mark.parametrize("relaxation", RELAXATIONS)
def test_the_value_at_every_point_of_the_region_lies_between_the_bounds(cases, relaxation):
    """The last inclusion, P_R ⊇ P_U, where it matters: the certificate holds whatever the true point is."""
    for case in cases:
        for objective in case.objectives:
            certificate = conclude(case.learned, objective, relaxation=relaxation, memory=False)
            for point in case.points[1:3]:
                value = exact_value(case.model, certificate.policy.choice, objective, point)
                assert certificate.lower <= value <= certificate.upper, (case.number, objective, point)


def exact_value(model, policy, objective, point):
    """Return the exact value of a policy in the initial state, at one point of the space."""
    graph, probability = model.graph, exact_probabilities(model, point)
    chain = []
    for choice in policy:
        transitions = range(graph.first_transition[choice], graph.first_transition[choice + 1])
        row = [(int(graph.successor[t]), None, None) for t in transitions]
        chain.append(merge(row, [probability[model.expression[t]] for t in transitions]))
    earned = step_rewards(objective, policy)
    return chain_values(chain, objective, earned)[graph.initial_state]


# No inclusion is an equality, and P_I and P_Θ are incomparable: the proof's examples


def model_of(rows, space):
    """Return a model that goes through one row after the other: its first outcome leads on, the others fail."""

    rows = {
        at: {"go": [(on, at + 1), *((f, -1 - i) for i, f in enumerate(more))]} for at, (on, *more) in enumerate(rows)
    }
    return listed(rows, space, labels={"goal": len(rows)})


def with_intervals(model, intervals):
    """Return what would be learned from data that give these intervals, and nothing about other expressions."""
    nothing = TransitionCounts(model.graph, np.zeros(model.graph.n_transitions, dtype=np.int64), "independent")
    bounds = expression_bounds(model, nothing, events=find_events(model, merge_complements=False))
    by_event = [intervals.get(f, (0, 1)) for f in bounds.events.polynomials]
    event_lower, event_upper = np.array(by_event, dtype=float).T
    by_expression = [intervals.get(f, (0, 1)) for f in model.expressions.polynomials]
    bounds = with_ends(bounds.moved_to(event_lower, event_upper), *np.array(by_expression, dtype=float).T)
    region = build_region(model.space, bounds.events.polynomials, event_lower, event_upper)
    assert not isinstance(region, Conflict)
    return Learned(model, nothing, 0.001, Evidence.of("interval", bounds, whole_set()), region, {})


def interval_of(learned, relaxation, expression):
    imdp = relax(learned, relaxation)
    f = learned.model.expressions.polynomials.index(expression)
    return pytest.approx((imdp.lower[f], imdp.upper[f]), abs=ROUNDING)


def reach_values(learned, relaxation):
    """Return the least and the largest chance of the goal."""
    goal = learned.model.labels["goal"]
    objective = Reach(goal, np.zeros_like(goal), "max")
    certificate = conclude(learned, objective, relaxation=relaxation, precision=1e-9)
    return pytest.approx((certificate.lower, certificate.upper), abs=1e-8)


def test_parameter_wise_intervals_may_leave_those_of_the_data():
    """θ1, θ2 and (θ1 + θ2)/2 with intervals [0, 1], [0, 1] and [1/2, 1/2], in three rows: U is θ1 + θ2 = 1.

    The box around U is all of [0, 1]², over which (θ1 + θ2)/2 ranges over [0, 1]; over U it is 1/2.
    """
    a, b = pl.parameters("a", "b")
    half = (a + b) / 2
    space = pl.ParameterSpace.unit("a", "b")
    rows = [[a, (1 - a) / 2, (1 - a) / 2], [b, (1 - b) / 2, (1 - b) / 2], [half, (1 - half) / 2, (1 - half) / 2]]
    sets = with_intervals(model_of(rows, space), {half: (0.5, 0.5)})
    assert interval_of(sets, "interval", half) == (0.5, 0.5)
    assert interval_of(sets, "expression", half) == (0.5, 0.5)
    assert interval_of(sets, "parameter", half) == (0, 1)
    values = with_intervals(model_of(rows[2:], space), {half: (0.5, 0.5)})
    assert reach_values(values, "interval") == (0.5, 0.5)
    assert reach_values(values, "expression") == (0.5, 0.5)
    assert reach_values(values, "parameter") == (0, 1)


def test_intervals_of_the_data_may_leave_parameter_wise_ones():
    """θ and 1 - θ in two rows, both with the interval [0.4, 0.7]: U is [0.4, 0.6].

    P_I allows θ = 0.7 in one row and 1 - θ = 0.7 in the other, P_Θ no more than 0.6. With both rows one after the other
    the goal has a chance of 0.4² to 0.7² and to 0.6². At one point of U it is θ (1 - θ), which is 0.24 to 0.25.
    In rows of θ and 1 - θ alone the sum of one would rule out 0.7, so that each failure has two outcomes here.
    """
    (t,) = pl.parameters("t")
    rows = [[t, (1 - t) / 2, (1 - t) / 2], [1 - t, t / 2, t / 2]]
    learned = with_intervals(model_of(rows, pl.ParameterSpace.unit("t")), {t: (0.4, 0.7), 1 - t: (0.4, 0.7)})
    for f in (t, 1 - t):
        assert interval_of(learned, "interval", f) == (0.4, 0.7)
        assert interval_of(learned, "parameter", f) == (0.4, 0.6)
    assert reach_values(learned, "interval") == (0.16, 0.49)
    assert reach_values(learned, "parameter") == (0.16, 0.36)
    assert reach_values(learned, "rectangular") == (0.16, 0.36)
    objective = Reach(learned.model.labels["goal"], np.zeros(learned.model.graph.n_states, bool), "max")
    policy = learned.model.graph.first_choice[:-1]
    coupled = {exact_value(learned.model, policy, objective, {"t": Fraction(i, 100)}) for i in range(40, 61)}
    assert (min(coupled), max(coupled)) == (Fraction(24, 100), Fraction(1, 4))


def test_the_rectangular_relaxation_is_smaller_than_the_expression_wise_one():
    """A row of a, b, c and the rest, where a + b is 1/4 and a in [1/16, 3/16], and so b: both lead to the goal.

    Expression by expression the goal has a chance of 1/8 to 3/8. One point of U gives it 1/4.
    """
    a, b, c = pl.parameters("a", "b", "c")
    rows = {0: [(a, 1), (b, 2), (c, 4), (1 - a - b - c, 5)], 1: [(1, 3)], 2: [(1, 3)]}

    def step(state):
        return {"go": [(f, state._replace(at=to)) for f, to in rows.get(state.at, [(1, state.at)])]}

    def is_goal(state):
        return state.at == 3

    model = pl.explore(step, {"at": 0}, space=pl.ParameterSpace.simplex("a", "b", "c"), labels={"goal": is_goal})
    region = build_region(model.space, [a + b, a], [0.25, 0.0625], [0.25, 0.1875])
    learned = replace(with_intervals(model, {}), region=region)
    assert reach_values(learned, "expression") == (0.125, 0.375)
    assert reach_values(learned, "rectangular") == (0.25, 0.25)
