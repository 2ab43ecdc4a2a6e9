"""What pictures are drawn from: outlines around regions, rows of expressions, drawings, and telling variables."""

import numpy as np
import pytest
from constraints import half_spaces_of, likelihood_of, strips_of

import plumdp as pl
from plumdp.explaining.finding import (
    clipped,
    count_expressions,
    directions_around,
    expression_rows,
    expression_weights,
    outlines,
)
from plumdp.result.telling_variables import telling_variables


def learned_study(name, runs, **options):
    study = pl.case_study(name)
    counts = pl.simulate(study.model, study.true_point, runs, rng=1, max_steps=study.max_steps)
    return study, pl.learn(study.model, counts, objectives=[study.objective], **options)


@pytest.fixture(scope="module")
def glider():
    return learned_study("glider:3,3,2,2", 300)


@pytest.fixture(scope="module")
def aircraft():
    return learned_study("aircraft:5,5,2", 1_000)


@pytest.fixture(scope="module")
def betting():
    return learned_study("betting:5", 500)


def explaining_points(learned, n=400):
    """Return points of the space that the likelihood, the half-spaces and the strips allow, by their definitions."""
    found, space, rng = likelihood_of(learned.bounds), learned.model.space, np.random.default_rng(1)
    sides, strips = half_spaces_of(learned.bounds), strips_of(learned.bounds)
    d = space.dimension
    low, high = learned.region.lower[:d], learned.region.upper[:d]
    points = np.vstack(
        [learned.estimate, rng.uniform(low, high, (n, d)), low + (high - low) * rng.beta(0.3, 0.3, (n, d))]
    )
    kept = []
    for point in points:
        chances = found.table.constants + found.table.coefficients @ point
        events = [
            float(f.evaluate(dict(zip(space.names, map(_exact, point), strict=True))))
            for f in strips.events.polynomials
        ]
        rows, offsets = space.inequalities
        is_inside = (space.lower <= point).all() and (point <= space.upper).all() and (rows @ point <= offsets).all()
        is_seen = found.outcome_counts > 0
        is_inside &= bool((sides.rows @ point <= sides.offsets).all() and (chances[is_seen] > 0).all())
        is_inside &= bool(
            (np.array(events) >= strips.event_lower).all() and (np.array(events) <= strips.event_upper).all()
        )
        if is_inside and (found.outcome_counts[is_seen] * np.log(chances[is_seen])).sum() >= found.threshold:
            kept.append(point)
    assert len(kept) > 50
    return np.array(kept)


def _exact(value):
    from fractions import Fraction

    return Fraction(float(value))


def is_within(polygon, point):
    """Return whether a point is in a convex polygon whose corners go around to the left, without any tolerance."""
    corners = np.array(polygon)
    edges, to = np.roll(corners, -1, axis=0) - corners, np.asarray(point) - corners
    return bool((edges[:, 0] * to[:, 1] - edges[:, 1] * to[:, 0] >= 0).all())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["glider", "aircraft"])
def test_no_point_that_explains_the_data_is_outside_of_an_outline(name, request):
    study, learned = request.getfixturevalue(name)
    found, names = outlines(learned), study.model.space.names
    assert len(found) == len(names) * (len(names) - 1) // 2
    points = explaining_points(learned)
    for outline in found:
        place = [names.index(each) for each in outline.names]
        for point in points[:, place]:
            assert is_within(outline.region, point)
            assert is_within(outline.space, point)
            assert is_within(outline.ellipse, point)
            assert all(np.dot(cut.normal, point) <= cut.offset for cut in outline.cuts)


@pytest.mark.slow
@pytest.mark.parametrize("confidence_set", ["interval", "l1", "ellipsoid"])
def test_outlines_of_other_sets_hold_the_points_that_their_half_spaces_allow(confidence_set):
    _, learned = learned_study("glider:3,3,2,2", 300, confidence_set=confidence_set)
    (outline,) = outlines(learned)
    region = learned.region
    points = np.random.default_rng(1).uniform(region.lower[:2], region.upper[:2], (2_000, 2))
    walls = getattr(region, "polytope", region)
    lifted = np.array([[_product(name, point) for name in walls.names] for point in points])
    inside = points[(walls.rows @ lifted.T <= walls.offsets[:, None]).all(axis=0)]
    assert len(inside) > 100
    assert all(is_within(outline.region, point) for point in inside)


def _product(name, point):
    """Return the value of a variable of the region: a parameter of the glider, or a product such as h*v^2."""
    values = dict(zip("hv", point.tolist(), strict=True))
    powers = [part.partition("^") for part in name.split("*")]
    return np.prod([values[base] ** int(power or 1) for base, _, power in powers])


def test_an_outline_touches_the_box_of_the_region(glider):
    (outline,) = outlines(glider[1])
    corners = np.array(outline.region)
    for k in (0, 1):
        width = outline.box[k][1] - outline.box[k][0]
        assert corners[:, k].min() == pytest.approx(outline.box[k][0], abs=1e-6 * width)
        assert corners[:, k].max() == pytest.approx(outline.box[k][1], abs=1e-6 * width)


def test_a_triangle_is_cut_out_exactly():
    """Three half-planes of the unit square: x + y <= 1 leaves the corners (0, 0), (1, 0) and (0, 1)."""
    normal = np.array([[1.0, 1.0]]) / np.sqrt(2)
    corners = clipped(
        (np.zeros(2), np.ones(2)), np.vstack([directions_around(4), normal]), np.array([1, 1, 0, 0, 0.5**0.5])
    )
    hull = {tuple(corner) for corner in corners.round(6).tolist()}
    assert hull == {(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)} | {corner for corner in hull if sum(corner) == pytest.approx(1)}
    assert all(is_within(corners, point) for point in [(0, 0), (1, 0), (0, 1), (0.5, 0.5)])


def test_a_single_parameter_is_a_strip(betting):
    _, learned = betting
    (outline,) = outlines(learned)
    assert outline.names == ("p", "")
    assert outline.box[0] == (learned.region.lower[0], learned.region.upper[0])
    assert outline.box[0][0] <= outline.estimate[0] <= outline.box[0][1]


def test_bounds_of_expressions_hold_at_all_points_that_explain_the_data(glider):
    study, learned = glider
    policy = pl.conclude(learned, study.objective).policy
    values = {
        str(f): own
        for f, own in zip(
            study.model.expressions.polynomials,
            study.model.expressions.evaluate(explaining_points(learned, 100)),
            strict=True,
        )
    }
    rows = expression_rows(learned, study.objective, policy)
    assert rows
    for row in rows:
        assert (row.lower <= values[row.text]).all()
        assert (values[row.text] <= row.upper).all()
        assert row.lower <= row.estimate <= row.upper


def test_trials_and_successes_are_those_of_all_choices_with_the_expression(betting):
    """Counted once more, transition by transition: a choice tries f if one of its transitions has f."""
    study, learned = betting
    model, graph, counts = study.model, study.model.graph, learned.counts
    policy = pl.conclude(learned, study.objective).policy
    rows = expression_rows(learned, study.objective, policy)
    assert len(rows) == count_expressions(learned) > 20
    texts = [str(f) for f in model.expressions.polynomials]
    for row in rows:
        has_it = model.expression == texts.index(row.text)
        choices = set(graph.choice_of_transition()[has_it].tolist())
        assert row.trials == sum(int(counts.visits[choice]) for choice in choices)
        assert row.successes == int(counts.counts[has_it].sum())


def test_weights_of_expressions_are_derivatives():
    """Two coins after another win with probability p q: the derivative in p is q, and in q it is p, by hand."""
    p, q = pl.parameters("p", "q")

    def step(state):
        if state.at in (2, 3):
            return {"stay": [(1, state)]}
        coin = p if state.at == 0 else q
        return {"toss": [(coin, state._replace(at=state.at + 1)), (1 - coin, state._replace(at=3))]}

    model = pl.explore(step, {"at": 0}, space=pl.ParameterSpace.unit("p", "q"), labels={"won": lambda s: s.at == 2})
    objective = pl.parse_property('Pmax=? [ F "won" ]', model)
    policy, point = model.graph.first_choice[:-1], np.array([0.25, 0.625])
    texts = [str(f) for f in model.expressions.polynomials]
    expected = {"p": 0.625, "-p + 1": 0.625, "q": 0.25, "-q + 1": 0.25, "1": 0.0}
    weights = expression_weights(model, policy, objective, point)
    assert weights == pytest.approx([expected[text] for text in texts])


def test_the_variable_that_decides_the_action_comes_first():
    def step(state):
        return {name: [(1, state._replace(a=(state.a + 1) % 3, b=(state.b + (state.a == 0)) % 4))] for name in "xy"}

    model = pl.explore(step, {"a": 0, "b": 0, "one": 1}, space=pl.ParameterSpace.unit("p"))
    by_b = model.graph.first_choice[:-1] + (model.graph.states["b"] % 2)
    assert telling_variables(pl.PolicyTable(model.graph, by_b)) == ("b", "a", "one")
    by_a = model.graph.first_choice[:-1] + (model.graph.states["a"] == 1)
    assert telling_variables(pl.PolicyTable(model.graph, by_a)) == ("a", "b", "one")


def test_a_contradicted_model_has_neither_region_nor_expressions(betting):
    study, _ = betting
    graph = study.model.graph
    high, low = (pl.simulate(study.model, {"p": p}, 2_000, rng=1, max_steps=6).counts for p in ("0.9", "0.2"))
    odd = (graph.state_of_choice() % 2)[graph.choice_of_transition()] == 1
    learned = pl.learn(study.model, pl.TransitionCounts(graph, np.where(odd, high, low), "adaptive"))
    assert learned.conflict is not None
    assert outlines(learned) == ()
    assert expression_rows(learned, study.objective, graph.first_choice[:-1]) == ()
