"""Coupled bounds: orders of the remainder, refusals, and cases with an answer of their own."""

from fractions import Fraction

import numpy as np
import pytest
from both_ways import from_compiled_code
from hypothesis import given
from hypothesis import strategies as st
from row_models import listed

import plumdp as pl
from plumdp.base.errors import ModelError, WhyNot
from plumdp.model.objectives import Reach, Reward
from plumdp.model.parametric import RewardStructure
from plumdp.region.ball import ball_around, ball_around_box
from plumdp.region.build import build_region
from plumdp.region.ellipsoid import Ellipsoid, build_ellipsoid
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.relaxation.relax import expression_wise, rectangular
from plumdp.solver.coupled.bounds import find_coupled_bounds
from plumdp.solver.coupled.brackets import (
    Expandable,
    as_brackets,
    expandable,
    setting_of,
)
from plumdp.solver.coupled.chain import policy_chain
from plumdp.solver.coupled.expansion import TaylorExpansion, first_order, residual_bounds, second_order
from plumdp.solver.coupled.forms import extreme_eigenvalues, packed
from plumdp.solver.coupled.gradient import policy_gradient
from plumdp.solver.coupled.remainder import error_model
from plumdp.solver.coupled.residual_kernels import spectral_norm
from plumdp.solver.evaluate import evaluate


def ladder(space, up, rungs=4, loop=0):
    """Return a model that climbs with a probability and falls into a trap else; ``loop`` is the chance to stay."""

    rows = {}
    for at in range(rungs):
        moves = [(up[at % len(up)], at + 1), (1 - up[at % len(up)], -1)]
        rows[at] = {"go": [*(((1 - loop) * f, to) for f, to in moves), *([(loop, at)] if loop else [])]}
    return listed(rows, space, labels={"top": rungs})


def patience():
    """Return a model that stays with probability 1 - v, and ends with probability v."""
    (v,) = pl.parameters("v")

    return listed({0: {"go": [(v, 1), (1 - v, 0)]}}, "v", labels={"end": 1})


def ellipsoid(model, centre, radius):
    """Return a round region about a point, cut by the space."""
    whole = build_region(model.space, (), (), ())
    return build_ellipsoid(np.array(centre, dtype=float), np.eye(len(centre)), radius, within=whole)


def top_of(model, **options):
    return Reach(model.labels["top"], np.zeros_like(model.labels["top"]), "max", **options)


def test_remainder_falls_by_four_and_by_eight_when_the_radius_is_halved():
    """Of first and of second order in the radius squared and cubed (Taylor); the climb is p q p q."""
    p, q = pl.parameters("p", "q")
    model = ladder(pl.ParameterSpace.unit("p", "q"), [p, q])
    rest = {}
    for radius in (0.02, 0.01):
        region = ellipsoid(model, [0.6, 0.7], radius)
        chain = policy_chain(model, model.graph.first_choice[:-1], top_of(model))
        uncertain = rectangular(model, region)
        setting, errors = setting_of(model, chain, region, uncertain), error_model(chain, uncertain)
        equations = setting.equations()
        both = as_brackets(expandable(setting).approximations(errors, 1e-12, orders=(1, 2)), setting)
        assert [each.low.kind for each in both] == ["first order", "second order"]
        quadratic = abs(setting_curvature(setting, equations))
        rest[radius] = both[0].remainder, both[1].remainder - quadratic
    assert rest[0.02][0] / rest[0.01][0] == pytest.approx(4, rel=0.1)
    assert rest[0.02][1] / rest[0.01][1] == pytest.approx(8, rel=0.1)


def setting_curvature(setting, equations):
    """Return what the quadratic part at the start adds to a bracket of second order."""
    first = first_order(setting.chain, setting.forms, equations)
    quadratic = residual_bounds(setting.chain, setting.forms, first).quadratic
    second = second_order(setting.chain, equations, first, quadratic)
    start = setting.chain.initial
    return sum(float(side[0]) for side in extreme_eigenvalues(second.curvatures[start : start + 1], 2))


def test_a_claim_without_residuals_is_refused_where_a_run_may_stay_forever():
    """With w = 1 the residual of x = v + (1 - v) x is zero at every v, also at v = 0, where the value is 0."""
    model = patience()
    region = ellipsoid(model, [0.25], 0.25)
    objective = Reach(model.labels["end"], np.zeros_like(model.labels["end"]), "max")
    chain = policy_chain(model, model.graph.first_choice[:-1], objective)
    uncertain = rectangular(model, region)
    setting, errors = setting_of(model, chain, region, uncertain), error_model(chain, uncertain)
    guess = TaylorExpansion(np.ones(chain.n_nodes), np.zeros((chain.n_nodes, 1)), np.zeros((chain.n_nodes, 0)))
    residuals = residual_bounds(setting.chain, setting.forms, guess)
    assert residuals.above.max() < 1e-13  # rounding alone
    assert Expandable(setting, setting.equations(), guess).approximation(guess, residuals, errors, 1e-6) is None
    assert errors.largest_sums(np.zeros(chain.n_open), 0.0, 1e-6)[chain.initial] == np.inf
    found = find_coupled_bounds(model, model.graph.first_choice[:-1], objective, region, rectangular(model, region))
    assert found == WhyNot("nature may keep a run from ending, so that nothing bounds the approximation error")


def test_the_same_run_is_certain_to_end_away_from_zero():
    model = patience()
    region = ellipsoid(model, [0.5], 0.25)
    objective = Reach(model.labels["end"], np.zeros_like(model.labels["end"]), "max")
    found = find_coupled_bounds(model, model.graph.first_choice[:-1], objective, region, rectangular(model, region))
    assert found.upper == 1
    assert found.lower == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("loop", [0, Fraction(1, 3)])
def test_one_parameter_and_a_monotone_value_agree_with_the_rectangular_relaxation(loop):
    """Both players of the relaxation then want the same end of the interval: p⁴ at 0.6 ± 0.001."""
    (p,) = pl.parameters("p")
    model = ladder(pl.ParameterSpace.unit("p"), [p], loop=loop)
    region, policy = ellipsoid(model, [0.6], 0.001), model.graph.first_choice[:-1]
    uncertain = rectangular(model, region)
    found = find_coupled_bounds(model, policy, top_of(model), region, uncertain)
    worst, best = (evaluate(uncertain, policy, top_of(model), nature=nature) for nature in ("robust", "optimistic"))
    width = 0.601**4 - 0.599**4
    assert found.lower == pytest.approx(worst.lower[0], abs=0.005 * width)
    assert found.upper == pytest.approx(best.upper[0], abs=0.005 * width)
    assert found.lower <= 0.599**4 + 1e-12
    assert found.upper >= 0.601**4 - 1e-12


def test_coupled_bounds_are_tighter_where_states_pull_in_different_directions():
    """The climb is p (1 - p): flat at p = 1/2 for one point, but not if each state has its own."""
    (p,) = pl.parameters("p")
    model = ladder(pl.ParameterSpace.unit("p"), [p, 1 - p], rungs=2)
    region, policy = ellipsoid(model, [0.5], 0.1), model.graph.first_choice[:-1]
    uncertain = rectangular(model, region)
    found = find_coupled_bounds(model, policy, top_of(model), region, uncertain)
    assert (found.lower, found.upper) == pytest.approx((0.24, 0.25), abs=0.011)
    worst, best = (evaluate(uncertain, policy, top_of(model), nature=nature) for nature in ("robust", "optimistic"))
    assert (worst.lower[0], best.upper[0]) == pytest.approx((0.16, 0.36), abs=1e-6)


@pytest.mark.slow
def test_splitting_a_parameter_into_a_sum_changes_nothing():
    (p,) = pl.parameters("p")
    a, b = pl.parameters("a", "b")
    one = ladder(pl.ParameterSpace.unit("p"), [p, 1 - p / 2])
    box = pl.ParameterSpace.box({"a": (0, Fraction(1, 2)), "b": (0, Fraction(1, 2))})
    two = ladder(box, [a + b, 1 - (a + b) / 2])
    radius, found = 0.01, []
    for model, centre, r in ((one, [0.5], radius), (two, [0.25, 0.25], radius / np.sqrt(2))):
        region = ellipsoid(model, centre, r)
        found.append(find_coupled_bounds(model, [0, 1, 2, 3, 4, 5], top_of(model), region, rectangular(model, region)))
    assert found[0].lower == pytest.approx(found[1].lower, rel=1e-9)
    assert found[0].upper == pytest.approx(found[1].upper, rel=1e-9)
    assert found[0].remainder == pytest.approx(found[1].remainder, rel=1e-5)


def test_parts_of_the_bounds_add_up():
    p, q = pl.parameters("p", "q")
    model = ladder(pl.ParameterSpace.unit("p", "q"), [p, q])
    region = ellipsoid(model, [0.6, 0.7], 0.05)
    for objective in (top_of(model), top_of(model, steps=(0, 4))):
        found = find_coupled_bounds(model, model.graph.first_choice[:-1], objective, region, rectangular(model, region))
        parts = found.statistics + found.remainder + found.rounding
        assert parts == pytest.approx(found.upper - found.lower, rel=1e-9)
        assert min(found.statistics, found.remainder) > 0
        assert found.rounding < 1e-10


def test_complement_is_one_minus_the_probability():
    (p,) = pl.parameters("p")
    model = ladder(pl.ParameterSpace.unit("p"), [p])
    region, policy = ellipsoid(model, [0.6], 0.01), model.graph.first_choice[:-1]
    uncertain = rectangular(model, region)
    found = find_coupled_bounds(model, policy, top_of(model), region, uncertain)
    other = find_coupled_bounds(model, policy, top_of(model, complement=True), region, uncertain)
    assert (other.lower, other.upper) == pytest.approx((1 - found.upper, 1 - found.lower), abs=1e-15)


def test_what_is_not_covered_has_a_reason():
    (p,) = pl.parameters("p")
    model = ladder(pl.ParameterSpace.unit("p"), [p])
    region = ellipsoid(model, [0.6], 0.01)
    uncertain, policy = rectangular(model, region), model.graph.first_choice[:-1]
    reward = RewardStructure(np.ones(model.graph.n_states), None)
    to_the_top = Reward(reward, "min", target=model.labels["top"])
    assert "cannot reach the target" in find_coupled_bounds(model, policy, to_the_top, region, uncertain).reason
    forever = Reward(reward, "min")
    assert "runs of the policy need not end" in find_coupled_bounds(model, policy, forever, region, uncertain).reason
    untied = IntervalMDP(
        model.graph,
        np.arange(model.graph.n_transitions, dtype=np.int32),
        np.zeros(model.graph.n_transitions),
        np.ones(model.graph.n_transitions),
    )
    assert "not one of the model's" in find_coupled_bounds(model, policy, top_of(model), region, untied).reason


def test_a_run_that_is_over_at_the_start_has_a_known_value():
    (p,) = pl.parameters("p")
    model = ladder(pl.ParameterSpace.unit("p"), [p])
    region, policy = ellipsoid(model, [0.6], 0.01), model.graph.first_choice[:-1]
    everywhere = np.ones(model.graph.n_states, dtype=bool)
    for steps in (None, (0, 3)):
        objective = Reach(everywhere, ~everywhere, "max", steps=steps)
        found = find_coupled_bounds(model, policy, objective, region, rectangular(model, region))
        assert (found.lower, found.upper, found.kind) == (1, 1, "known")
        assert policy_gradient(model, policy, objective, np.array([0.6])) == (1, np.zeros(1))


def test_the_gradient_of_a_policy_that_draws_is_that_of_its_mixture():
    """A third of the time the coin is thrown twice: the value is 2/3 p + 1/3 p², and its slope 2/3 + 2/3 p."""
    (p,) = pl.parameters("p")

    def step(s):
        top, end = s._replace(at=2), s._replace(at=3)
        if s.at > 1:
            return {"stay": [(1, s)]}
        moves = {"once": [(p, top), (1 - p, end)]}
        return moves if s.at else moves | {"twice": [(p, s._replace(at=1)), (1 - p, end)]}

    model = pl.explore(step, {"at": 0}, space=pl.ParameterSpace.unit("p"), labels={"top": lambda s: s.at == 2})
    policy = pl.PolicyTable.from_actions(model.graph, {0: {"once": 2 / 3, "twice": 1 / 3}})
    for complement, sign in ((False, 1), (True, -1)):
        value, slope = policy_gradient(model, policy, top_of(model, complement=complement), np.array([0.6]))
        assert value == pytest.approx(0.52 if sign > 0 else 0.48)
        assert slope == pytest.approx([sign * (2 / 3 + 0.4)])


def test_gradient_refuses_what_it_cannot_take():
    (p,) = pl.parameters("p")
    model = ladder(pl.ParameterSpace.unit("p"), [p])
    with pytest.raises(ModelError, match="a point has 1 numbers"):
        policy_gradient(model, model.graph.first_choice[:-1], top_of(model), np.array([0.6, 0.5]))


compiled_norm = from_compiled_code(spectral_norm)


@pytest.mark.slow
@given(st.integers(1, 12), st.integers(0, 10**6))
def test_norms_of_matrices_are_never_too_small(d, seed):
    rng = np.random.default_rng(seed)
    matrix = (
        rng.normal(size=(d, d)) * 10 ** rng.uniform(-8, 8, (d, 1)) if seed % 2 else np.outer(*rng.normal(size=(2, d)))
    )
    matrix = matrix + matrix.T
    values = np.linalg.eigvalsh(matrix)
    size = np.abs(values).max()
    above, below = extreme_eigenvalues(packed(matrix[None]), d, exact=bool(seed % 3))
    assert above[0] >= max(values[-1], 0) - 1e-12 * size
    assert below[0] >= max(-values[0], 0) - 1e-12 * size
    for is_sharp in (True, False):
        norm = compiled_norm(matrix[np.triu_indices(d)], d, is_sharp, np.empty((3, d, d)))
        assert size * (1 - 1e-12) <= norm <= 1.000001 * np.linalg.norm(matrix)
        assert not is_sharp or norm <= 1.000001 * d ** (1 / 8) * size


def test_the_ball_of_an_ellipsoid_is_the_ellipsoid():
    p, q = pl.parameters("p", "q")
    model = ladder(pl.ParameterSpace.unit("p", "q"), [p, q])
    ball = ball_around(ellipsoid(model, [0.6, 0.7], 0.05), 2)
    assert ball.centre.tolist() == [0.6, 0.7]
    assert np.linalg.svd(ball.factor)[1] == pytest.approx([0.05, 0.05], rel=1e-6)


def test_a_box_of_width_zero_has_a_ball():
    ball = ball_around_box(np.array([0.5, 0.1]), np.array([0.5, 0.3]))
    assert ball.factor[0, 0] > 0
    assert ball.factor[1, 1] == pytest.approx(0.1 * np.sqrt(2))


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("reach", [0.25, 0.2])
def test_one_state_that_nature_can_hold_is_enough_to_refuse(at, reach):
    """One rung of the ladder is left with probability v only: at v = 0 the run stays there, and the value jumps."""
    v, p = pl.parameters("v", "p")

    def step(state):
        if state.at in (-1, 3):
            return {"stay": [(1, state)]}
        f, other = (v, state) if state.at == at else (p, state._replace(at=-1))
        return {"go": [(f, state._replace(at=state.at + 1)), (1 - f, other)]}

    model = pl.explore(step, {"at": 0}, space=pl.ParameterSpace.unit("v", "p"), labels={"top": lambda s: s.at == 3})
    region, policy = ellipsoid(model, [0.25, 0.5], reach), model.graph.first_choice[:-1]
    for uncertain in (rectangular(model, region), expression_wise(model, region)):
        found = find_coupled_bounds(model, policy, top_of(model), region, uncertain)
        assert isinstance(found, WhyNot) == (reach == 0.25)


def test_a_region_about_a_point_at_which_runs_never_end_has_a_reason():
    """At v = 0 the run stays for good: x = x has no single solution."""
    model = patience()
    region = ellipsoid(model, [0.0], 0.25)
    objective = Reach(model.labels["end"], np.zeros_like(model.labels["end"]), "max")
    found = find_coupled_bounds(model, model.graph.first_choice[:-1], objective, region, rectangular(model, region))
    assert isinstance(found, WhyNot)


def test_a_model_without_parameters_has_its_value():
    model = ladder(pl.ParameterSpace.box({}), [Fraction(1, 2)])
    region = build_region(model.space, (), (), ())
    found = find_coupled_bounds(model, model.graph.first_choice[:-1], top_of(model), region, rectangular(model, region))
    assert (found.lower, found.upper) == pytest.approx((1 / 16, 1 / 16), abs=1e-12)
    assert found.lower <= 1 / 16 <= found.upper


def test_the_ball_of_an_ellipsoid_of_parameters_and_products_is_its_shadow():
    rng = np.random.default_rng(1)
    root, names = rng.normal(size=(3, 3)), ("p", "q", "p*q")
    box = np.full(3, 10.0)
    region = Ellipsoid(names, -box, box, np.zeros(3), root, 0.5, np.zeros((0, 3)), np.zeros(0))
    ball = ball_around(region, 2)
    x = rng.normal(size=(3, 1000))
    shadows = 0.5 * (root @ (x / np.linalg.norm(x, axis=0)))[:2]
    lengths = np.linalg.norm(np.linalg.solve(ball.factor, shadows - ball.centre[:, None]), axis=0)
    assert 0.99 < lengths.max() <= 1
