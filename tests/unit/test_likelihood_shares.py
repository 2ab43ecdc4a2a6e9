"""Shares of the error, and half-spaces across all outcomes when there are many parameters."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from constraints import across_outcomes_of, half_spaces_of, likelihood_of
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


@pytest.fixture(scope="module")
def made():
    return layered_model("sparse", 24, n_rows=60, n_layers=8, width=20)


def truth(made):
    return np.array([float(made.true_point[name]) for name in made.model.space.names])


def learned(made, *, pilot=True, runs=2_000, seed=1):
    counts = pl.simulate(made.model, made.true_point, runs, rng=seed, max_steps=made.max_steps, pilot=pilot)
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
    assert (budget["intervals"] > Fraction(1, 40)) is (name == "tank")
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
    found = learned(made)
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
    found = learned(made)
    region = build_likelihood_region(made.model.space, made.model.expressions, found.constraints)
    box = made.model.space.lower, made.model.space.upper
    bare = replace(region, lower=box[0], upper=box[1], rows=region.rows[:0], offsets=region.offsets[:0])
    slopes = np.ascontiguousarray(likelihood_of(found).table.coefficients[likelihood_of(found).table.direction >= 0])
    inside, outside = (-one.minimise(-slopes) - one.minimise(slopes) for one in (region, bare))
    assert (inside <= outside * (1 + 1e-9)).all()
    assert np.median(inside / outside) < 0.75


def test_without_a_pilot_there_are_no_bets(made):
    found = learned(made, pilot=False)
    assert (len(half_spaces_of(found).offsets), len(across_outcomes_of(found).offsets), found.directions) == (0, 0, ())
