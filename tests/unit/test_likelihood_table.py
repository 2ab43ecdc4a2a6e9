"""The likelihood as a table: what counts for what, against the product of the row's own probabilities."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import log, prod

import numpy as np
import pytest
from constraints import across_outcomes_of, half_spaces_of, likelihood_of
from random_products import random_product_problem
from row_models import row_model
from tank import tank

import plumdp as pl
from plumdp.confidence import likelihood as method
from plumdp.confidence.bets import Direction
from plumdp.confidence.likelihood import likelihood_budget, likelihood_set
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.sets import ModelCache
from plumdp.data.counts import Pilot, PilotEnd
from plumdp.region.ellipsoid import Ellipsoid
from plumdp.region.likelihood_region import build_likelihood_region
from studies.layered import layered_model

a, b, c, d = pl.parameters("a", "b", "c", "d")
UNIT = pl.ParameterSpace.unit("a", "b", "c", "d")

STUDIES = ("rover:10,10", "parallel:5", "glider:11,9", "engagement:20", "aircraft:20,10", "betting:25")


def log_likelihood(table, seen, values):
    """Return Σ seen ln f at an exact point."""
    at = {name: Fraction(x) for name, x in zip(table.names, values, strict=True)}
    return sum(k * log(f.evaluate(at)) for k, f in zip(seen, table.outcomes, strict=True) if k)


@pytest.mark.parametrize(
    "rows",
    [
        [[a * b, a * (1 - b), 1 - a], [a, 1 - a]],
        [[a * b * c, a * b * (1 - c), a * (1 - b), (1 - a) * d, (1 - a) * (1 - d)]],
        [[a**2, 2 * a * (1 - a), (1 - a) ** 2], [a * (1 - b**2), a * b**2, 1 - a]],
        [[a / 2, a / 2, (1 - a) / 3, 2 * (1 - a) / 3], [a * b / 2, a * (1 - b) / 2, (1 - a) / 2, Fraction(1, 2)]],
    ],
    ids=["coins", "tree", "factors", "repeated and known"],
)
def test_the_table_has_the_likelihood_of_the_rows_up_to_a_constant(rows):
    """For every sequence of two outcomes of each row, the likelihood ratio of two points is the product's own."""
    model = row_model(rows, UNIT)
    table, n = likelihood_table(model), sum(map(len, rows))
    one, other = np.array([0.3, 0.2, 0.6, 0.7]), np.array([0.55, 0.8, 0.1, 0.45])
    expressions = [model.expressions.polynomials[f] for f in model.expression[:n]]
    for chosen in product(range(n), repeat=2):
        counts = np.bincount(chosen, minlength=model.graph.n_transitions)
        seen = table.pool(counts)
        points = [dict(zip(UNIT.names, map(Fraction, v), strict=True)) for v in (one, other)]
        exact = prod(expressions[t].evaluate(points[0]) / expressions[t].evaluate(points[1]) for t in chosen)
        found = log_likelihood(table, seen, one) - log_likelihood(table, seen, other)
        assert found == pytest.approx(log(exact), abs=1e-12)


def test_classes_are_laws_and_are_pooled_over_rows():
    model = row_model([[a * b, a * (1 - b), 1 - a], [(1 - b) * c, (1 - b) * (1 - c), b], [a / 2, a / 2, 1 - a]], UNIT)
    table = likelihood_table(model)
    assert table.is_class.all()
    assert sorted(sorted(map(str, law)) for law in laws(table)) == [["-a + 1", "a"], ["-b + 1", "b"], ["-c + 1", "c"]]
    counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
    counts[:9] = [5, 7, 11, 13, 17, 19, 23, 29, 31]
    seen = dict(zip(map(str, table.outcomes), table.pool(counts).tolist(), strict=True))
    assert seen["a"] == 5 + 7 + 23 + 29
    assert seen["-a + 1"] == 11 + 31
    assert seen["b"] == 5 + 19
    assert seen["-b + 1"] == 7 + 13 + 17


def laws(table):
    return [[f for f, g in zip(table.outcomes, table.group, strict=True) if g == r] for r in range(len(table.is_class))]


def test_rows_that_are_neither_have_hidden_paths_and_are_listed():
    rows = [[a * b, 1 - a * b], [a**2, 1 - a**2], [c, 1 - c]]
    table = likelihood_table(row_model(rows, UNIT))
    assert {frozenset(row) for row in table.paths.rows} == {frozenset(rows[0])}
    assert not table.left_out
    assert table.is_class.tolist().count(False) == 1  # 1 - a² is (1 - a)(1 + a), whose factors are positive
    counts = np.ones(len(table.tied), dtype=np.int64)
    assert table.pool(counts).sum() == 2 + 2 + 2


def test_factors_that_change_sign_in_the_space_are_left_out():
    """(a - 1/2)² is at least zero, but its factor is not: for points below 1/2 its logarithm would not exist."""
    f = (a - Fraction(1, 2)) ** 2
    table = likelihood_table(row_model([[f, 1 - f], [b, 1 - b]], UNIT))
    assert len(table.left_out) == 1
    above = pl.ParameterSpace.box({"a": ("1/2", 1), "b": (0, 1)})
    assert not likelihood_table(row_model([[f, 1 - f], [b, 1 - b]], above)).left_out


def test_a_visit_is_seen_even_if_its_outcome_is_known():
    table = likelihood_table(row_model([[a**2 / 2, (1 - a**2) / 2, Fraction(1, 2)]], UNIT))
    for transition in range(3):
        counts = np.zeros(len(table.tied), dtype=np.int64)
        counts[transition] = 1
        assert table.visits(table.pool(counts)).max() > 0


def test_rover_has_rank_one_and_a_split_parameter_changes_nothing():
    assert likelihood_table(pl.case_study("rover:10,10").model).basis.shape == (4, 1)
    one = likelihood_table(row_model([[a, b, 1 - a - b], [a * c, a * (1 - c), 1 - a]], UNIT))
    rows = [[a + d, b, 1 - a - b - d], [(a + d) * c, (a + d) * (1 - c), 1 - a - d]]
    two = likelihood_table(row_model(rows, UNIT))
    assert one.basis.shape == two.basis.shape == (4, 3)
    assert np.abs(two.basis.T @ two.basis - np.eye(3)).max() < 1e-14
    assert np.abs(two.coefficients - two.coefficients @ two.basis @ two.basis.T).max() < 1e-14


def test_ranks_that_floats_cannot_tell_are_exact():
    """1e-17 a + b and b differ by less than a float can show, and yet have rank two."""
    tiny = Fraction(1, 10**17)
    table = likelihood_table(row_model([[tiny * a + b / 2, 1 - tiny * a - b / 2], [b / 2, 1 - b / 2]], UNIT))
    assert table.basis.shape == (4, 2)
    assert len(set(table.direction.tolist())) == 2


@pytest.mark.parametrize("name", STUDIES)
def test_all_rows_of_the_case_studies_are_part_of_the_likelihood(name):
    study = pl.case_study(name)
    table = likelihood_table(study.model)
    assert not table.left_out
    assert table.is_class.all()
    sums = [sum(law, 0 * law[0]) for law in laws(table)]
    assert all(total == 1 for total in sums)
    values, error = table.values(table.middle)
    assert (values - error > 0).all()
    exact = [
        float(f.evaluate(dict(zip(table.names, map(Fraction, table.middle), strict=True)))) for f in table.outcomes
    ]
    assert (np.abs(values - exact) <= error).all()


def test_visits_of_random_models_are_those_of_their_classes():
    rng = np.random.default_rng(3)
    for _ in range(20):
        problem = random_product_problem(rng)
        table = likelihood_table(problem.model)
        seen = table.pool(problem.counts.counts)
        assert (seen == np.round(seen)).all()
        if not table.left_out and table.is_class.all():
            assert table.visits(seen).sum() == seen.sum() >= 0


def test_blocks_are_parameters_that_no_group_ties():
    rows = [[a, 1 - a], [(a + b) / 2, 1 - (a + b) / 2], [c, 1 - c]]
    table = likelihood_table(row_model(rows, UNIT))
    found = {tuple(table.names[i] for i in block): set(np.flatnonzero(is_about)) for block, is_about in table.blocks}
    ties = {f: {j for j, g in enumerate(table.outcomes) if set(g.names) & set(f)} for f in ("ab", "c")}
    assert found == {("a", "b"): ties["ab"], ("c",): ties["c"]}


# Shares of the error, and half-spaces across all outcomes when there are many parameters


@pytest.fixture(scope="module")
def made():
    return layered_model("sparse", 24, n_rows=60, n_layers=8, width=20)


def truth(made):
    return np.array([float(made.true_point[name]) for name in made.model.space.names])


@cache
def learned(made, *, pilot=True, seed):
    counts = pl.simulate(made.model, made.true_point, 2_000, rng=seed, max_steps=made.max_steps, pilot=pilot)
    return likelihood_set(made.model, counts, directions=lambda point: [Direction(np.ones(len(point)))])


def pilots(n_transitions):
    """Return what may be known of the order of data: nothing, a planned length, also of few data, or none."""
    some, none = np.ones(n_transitions, dtype=np.int64), np.zeros(n_transitions, dtype=np.int64)
    few = Pilot(none, moments=(some,), lengths=(16.0,), expected=100.0)
    return {"none": None, "planned": Pilot(some), "few": few, "open": Pilot(some, PilotEnd.POWER_OF_FOUR)}


@pytest.mark.parametrize("has_directions", [True, False])
@pytest.mark.parametrize("order", ["none", "planned", "few", "open"])
@pytest.mark.parametrize("name", ["betting:5", "many", "tank"])
def test_shares_sum_to_what_is_given_whatever_is_known_and_asked(name, order, has_directions, made):
    model = {"many": lambda: made.model, "tank": tank}.get(name, lambda: pl.case_study(name).model)()
    known = pilots(model.graph.n_transitions)[order]
    budget = likelihood_budget(ModelCache(model), known, has_directions=has_directions)
    assert budget.confidence_set == Fraction(37, 40)
    assert (budget["half_spaces"] > 0) is (has_directions and order != "none")
    assert (budget["outcome_half_spaces"] > 0) is (name == "many" and has_directions and order != "none")
    has_pilot = order == "planned" or (order == "open" and (name == "many" or not has_directions))
    assert (budget["likelihood_after_pilot"] > 0) is has_pilot
    assert (budget["likelihood_against_space"] > 0) is (order != "planned")
    assert (budget["intervals"] > Fraction(1, 40)) is (name == "tank")  # without a likelihood of hidden paths
    assert (budget["drifts"] > 0) is (order != "none")


@pytest.mark.slow
@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("has_pilot", [True, False])
def test_the_sets_of_all_ends_of_the_data_have_the_error_together(is_open, has_pilot, monkeypatch):
    """What each set is asked for; data with an open end, and few parameters, rest on no pilot."""
    study, asked = pl.case_study("betting:25"), {}
    counts = pl.simulate(study.model, study.true_point, 2000 if has_pilot else 100, rng=1, max_steps=26)
    if is_open:
        counts = replace(counts, pilot=replace(counts.pilot, end=PilotEnd.POWER_OF_FOUR))

    n_seen = likelihood_table(study.model).pool(counts.counts).sum()

    def recorded(own, name):
        def function(*arguments, **options):
            error = options.get("error", arguments[-1])
            is_all = name == "likelihood" and arguments[1].sum() == n_seen
            asked[{"likelihood": "space" if is_all else "pilot"}.get(name, name)] = error
            return own(*arguments, **options)

        return function

    for name, own in (("half-spaces", "staged_half_spaces"), ("strips", "_strips"), ("likelihood", "_threshold")):
        monkeypatch.setattr(method, own, recorded(getattr(method, own), name))
    likelihood_set(study.model, counts, error=0.01, directions=lambda point: [Direction(np.ones(1))])
    assert asked.keys() == {"half-spaces", "strips", "pilot" if has_pilot and not is_open else "space"}
    assert sum(asked.values()) == pytest.approx(0.01)


@pytest.mark.slow
def test_many_parameters_have_half_spaces_across_every_direction_of_an_outcome(made):
    found = learned(made, seed=1)
    n_directions = int(likelihood_of(found).table.direction.max()) + 1
    assert likelihood_of(found).table.basis.shape[1] == 24
    assert len(across_outcomes_of(found).offsets) == 2 * n_directions
    assert len(half_spaces_of(found).offsets) in (2, 3, 4)  # at the end, and at the best moment


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_the_true_point_is_in_all_half_spaces_and_in_the_region(seed, made):
    """At an error of one in a thousand, five draws that miss would be five too many."""
    found, point = learned(made, seed=seed), truth(made)
    assert (across_outcomes_of(found).rows @ point <= across_outcomes_of(found).offsets).all()
    assert (half_spaces_of(found).rows @ point <= half_spaces_of(found).offsets).all()
    region = build_likelihood_region(made.model.space, made.model.expressions, found.constraints)
    assert isinstance(region, Ellipsoid)
    assert (region.rows @ point <= region.offsets).all()
    directions = np.random.default_rng(seed).normal(size=(200, 24))
    assert (region.minimise(directions) <= directions @ point).all()


@pytest.mark.slow
def test_half_spaces_across_outcomes_make_their_ranges_narrower(made):
    found = learned(made, seed=1)
    region = build_likelihood_region(made.model.space, made.model.expressions, found.constraints)
    box = made.model.space.lower, made.model.space.upper
    bare = replace(region, lower=box[0], upper=box[1], rows=region.rows[:0], offsets=region.offsets[:0])
    slopes = np.ascontiguousarray(likelihood_of(found).table.coefficients[likelihood_of(found).table.direction >= 0])
    inside, outside = (-one.minimise(-slopes) - one.minimise(slopes) for one in (region, bare))
    assert (inside <= outside * (1 + 1e-9)).all()
    assert np.median(inside / outside) < 0.75


def test_without_a_pilot_there_are_no_bets(made):
    found = learned(made, pilot=False, seed=1)
    assert (len(half_spaces_of(found).offsets), len(across_outcomes_of(found).offsets), found.directions) == (0, 0, ())
