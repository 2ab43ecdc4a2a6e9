"""Sets for rows that are off by a tolerance: one coin against an adversary, exactly; bets on trees; what is refused."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from constraints import half_spaces_of, strips_of
from hypothesis import given, settings
from hypothesis import strategies as st
from row_models import row_model
from scipy.integrate import quad
from tiers import covering, examples, size

import plumdp as pl
from plumdp.confidence import tolerant
from plumdp.confidence.bets import Direction, half_space
from plumdp.confidence.binomial import beta_binomial, tolerant_interval, widened
from plumdp.confidence.constants import excluded_numbers, find_fixed_numbers
from plumdp.confidence.likelihood import LevelSet, LinearConstraints, Range, likelihood_set
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.tolerant import (
    range_of_bets,
    tolerant_bounds,
    tolerant_set,
    tolerant_shares,
)
from plumdp.data.counts import Pilot, PilotEnd, TransitionCounts
from plumdp.fit.model_fit import smallest_tolerance
from plumdp.learning import model_tests
from plumdp.learning.learn import learn
from plumdp.region.conflict import Conflict

p, q = pl.parameters("p", "q")
LINE, SQUARE = pl.ParameterSpace.unit("p"), pl.ParameterSpace.unit("p", "q")
MODELS = {
    "coin": row_model([[p, 1 - p]], LINE),
    "die": row_model([[p / 2, p / 4 + q / 2, 1 - 3 * p / 4 - q / 2]], SQUARE),
    "tree": row_model([[p * q, p * (1 - q), 1 - p]], SQUARE),
    "both": row_model([[p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)], [q, 1 - q]], SQUARE),
    "twice": row_model([[p * p, p * (1 - p), 1 - p]], LINE),
    "constants": row_model([[p / 2, (1 - p) / 2, Fraction(1, 4), Fraction(1, 4)]], LINE),
    "root without parameters": row_model([[p / 2, (1 - p) / 2, q / 2, (1 - q) / 2]], SQUARE),
}


# One coin whose probability an adversary moves within the tolerance


@cache
def excluded(chance, model_tolerance, error, n_throws, *, is_widened=True):
    """Return for each number of throws and of heads whether the interval leaves out the chance."""
    result = []
    for n in range(1, n_throws + 1):
        ends = tolerant_interval(np.arange(n + 1), np.full(n + 1, n), error)
        lower, upper = widened(*ends, model_tolerance if is_widened else 0.0)
        result.append((lower > chance) | (upper < chance))
    return result


def crossing_probability(is_out, chance, model_tolerance):
    """Return how often a coin is ever out, if an adversary picks each throw's probability within the model tolerance.

    It is linear in the probability of one throw, so that the adversary picks an end.
    """
    values = is_out[-1].astype(float)
    for out in reversed(is_out[:-1]):
        tails, heads = values[:-1], values[1:]
        best = [
            p * heads + (1 - p) * tails for p in (max(chance - model_tolerance, 0), min(chance + model_tolerance, 1))
        ]
        values = np.where(out, 1.0, np.maximum(*best))
    return max(
        p * values[1] + (1 - p) * values[0]
        for p in (max(chance - model_tolerance, 0), min(chance + model_tolerance, 1))
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chance", "model_tolerance", "error"), covering([0.003, 0.2, 0.5, 0.95], [0.0, 0.01, 0.1], [0.3, 0.05])
)
def test_an_opponent_who_moves_the_coin_excludes_the_truth_no_more_often_than_the_error(chance, model_tolerance, error):
    found = crossing_probability(excluded(chance, model_tolerance, error, size(150, 400)), chance, model_tolerance)
    assert found <= error
    assert found > error / 100 or chance < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("chance", [0.2, 0.5])
def test_intervals_that_are_not_widened_are_caught(chance):
    """With a model tolerance of a tenth and the other end of the tolerance, all coins are out in the end."""
    is_out = excluded(chance, 0.1, 0.05, 400, is_widened=False)
    assert crossing_probability(is_out, chance, 0.1) > 0.5


@pytest.mark.parametrize(("successes", "trials"), [(0, 20), (3, 20), (17, 20), (40, 1000), (500, 1000)])
@pytest.mark.parametrize("error", [0.5, 0.1, 1e-4])
def test_at_the_ends_the_mixture_beyond_them_has_reached_one_over_the_error(successes, trials, error):
    """Its integral by quadrature, at points just outside; an end of 0 or 1 claims nothing."""
    lower, upper = map(float, tolerant_interval(successes, trials, error))
    for end, sides in ((lower, (lower, 1.0)), (upper, (0.0, upper))):
        if 0 < end < 1:
            at = successes * np.log(end) + (trials - successes) * np.log1p(-end)
            share = successes / trials

            def integrand(angle, at=at):  # w = sin², so that Beta(½, ½) is uniform in the angle
                w = np.sin(angle) ** 2
                with np.errstate(divide="ignore"):
                    powers = (successes * np.log(w) if successes else 0.0) + (
                        (trials - successes) * np.log1p(-w) if trials > successes else 0.0
                    )
                return np.exp(powers - at) * 2 / np.pi

            ends = [float(np.arcsin(np.sqrt(x))) for x in sides]
            inner = float(np.arcsin(np.sqrt(np.clip(share, *sides))))
            total = quad(integrand, ends[0], inner)[0] + quad(integrand, inner, ends[1])[0]
            assert total >= (1 - 1e-6) / error


def test_an_end_with_too_little_of_the_posterior_claims_nothing():
    lower, upper = tolerant_interval([10, 500], [20, 1000], 0.999)
    inner, outer = beta_binomial([10, 500], [20, 1000], 0.9 * 0.999)
    assert ((lower == 0) | (lower == inner)).all()
    assert ((upper == 1) | (upper == outer)).all()


# Bets


def outcome_gains(model, table, factors, point):
    """Return for each transition the gain H at a point, and its probability, in fractions."""
    exact = [Fraction(x) for x in factors.tolist()]
    means = {}
    for f, group, e in zip(table.outcomes, table.group.tolist(), exact, strict=True):
        means[group] = means.get(group, Fraction(0)) + f.evaluate(point) * e
    gains = []
    for tied in table.tied.tolist():
        gain = Fraction(1)
        for way in range(table.first[tied], table.first[tied + 1]):
            j = int(table.counts_for[way])
            gain *= exact[j] / means[int(table.group[j])]
        gains.append(gain)
    return gains, [model.expressions.polynomials[f].evaluate(point) for f in model.expression.tolist()]


def largest_expectation(row, gains, model_tolerance):
    """Return the largest expectation of gains under rows that are off by the model tolerance."""
    order, left, row = sorted(range(len(row)), key=lambda i: gains[i]), Fraction(model_tolerance), list(row)
    for i in order[:-1]:
        taken = min(row[i], left)
        row[i], row[order[-1]], left = row[i] - taken, row[order[-1]] + taken, left - taken
    return sum((p * gain for p, gain in zip(row, gains, strict=True)), Fraction(0))


@settings(max_examples=examples(60))
@given(
    st.sampled_from(sorted(MODELS)),
    st.integers(1, 99),
    st.integers(1, 99),
    st.sampled_from([0.001, 0.01, 0.1, 0.5]),
    st.integers(0, 2**32 - 1),
)
def test_the_expected_gain_of_rows_that_are_off_is_at_most_what_is_charged(name, a, b, model_tolerance, seed):
    model = MODELS[name]
    table, rng = likelihood_table(model), np.random.default_rng(seed)
    factors = np.where(table.is_class[table.group], np.exp(rng.uniform(-0.5, 0.5, len(table.outcomes))), 1.0)
    ranges = range_of_bets(model.graph, table, factors)
    point = {"p": Fraction(a, 100), "q": Fraction(b, 100)}
    gains, rows = outcome_gains(model, table, factors, point)
    for choice, (first, last) in enumerate(pairwise(model.graph.first_transition.tolist())):
        assert sum(x * y for x, y in zip(rows[first:last], gains[first:last], strict=True)) == 1
        worst = largest_expectation(rows[first:last], gains[first:last], model_tolerance)
        assert worst <= 1 + Fraction(model_tolerance) * Fraction(ranges[choice])


def test_the_range_of_one_coin_is_what_a_hand_calculation_says():
    """Factors 1.2 and 0.8: Z is at least 0.8, so that H differs by at most 0.4 / 0.8."""
    model = MODELS["coin"]
    table = likelihood_table(model)
    factors = np.array([1.2 if f == p else 0.8 for f in table.outcomes])
    found = range_of_bets(model.graph, table, factors)
    assert found[0] == pytest.approx(0.5, abs=1e-7)
    assert not found[1:].any()


@pytest.mark.slow
@pytest.mark.parametrize("is_moved", [True, False])
def test_an_opponent_who_moves_the_coin_wins_bets_no_more_often_than_the_error(is_moved):
    """By dynamic programming; a half-space that is not moved is caught."""
    model, chance, model_tolerance, error, n_throws = MODELS["coin"], 0.4, 0.05, 0.1, 150
    table = likelihood_table(model)
    factors = np.array([1.25 if f == p else 0.85 for f in table.outcomes])
    ranges = range_of_bets(model.graph, table, factors)[:1]
    is_out = []
    for n in range(1, n_throws + 1):
        heads = np.arange(n + 1.0)
        seen = np.array([heads if f == p else n - heads for f in table.outcomes]).T
        cuts = [half_space(table, row, factors, near=np.array([chance]), error=error) for row in seen]
        visits = Range(1.0, np.array([float(n)]), ranges)
        left = LinearConstraints.of(cuts, 1, error, ranges=((visits,),) * len(cuts)).widened(model_tolerance * is_moved)
        is_out.append(left.rows[:, 0] * chance > left.offsets)
    found = crossing_probability(is_out, chance, model_tolerance)
    assert bool(found <= error) is is_moved
    assert found > error / 20


def test_bets_on_classes_that_may_be_negative_are_left_out():
    """The node q / 2, 1 - q / 2 is a pair of probabilities up to q = 2; the other node, p and 1 - p, is one anyhow."""
    space = pl.ParameterSpace.box({"p": (0, 1), "q": (0, 2)})
    model = row_model([[p * q / 2, p * (1 - q / 2), 1 - p]], space)
    table = likelihood_table(model)
    assert tolerant.safe_groups(model, table).all()
    shifted = replace(model, space=pl.ParameterSpace.box({"p": (0, 1), "q": (0, 3)}))
    is_safe = tolerant.safe_groups(shifted, table)
    assert not is_safe.all()
    assert is_safe.any()


# Sets


def data(model, point, runs=2000, pilot=True, seed=1):
    return pl.simulate(model, point, runs, rng=seed, max_steps=30, pilot=pilot)


@pytest.mark.slow
def test_sets_grow_with_the_misfit():
    study = pl.case_study("parallel:5")
    counts = data(study.model, study.true_point)
    measured = tolerant_set(
        study.model, counts, error=0.01, directions=lambda at: [pl_direction(len(study.model.space.names))]
    )
    sets = [measured.widened(model_tolerance) for model_tolerance in (0.0, 1e-6, 0.01, 0.1)]
    assert len(half_spaces_of(sets[0]).offsets) == 4  # on both sides, at the last two moments
    assert not sets[0].of_kind(LevelSet)
    for (one, in_one), (other, in_other) in pairwise((half_spaces_of(each), strips_of(each)) for each in sets):
        assert (one.offsets < other.offsets).all()
        assert (one.rows == other.rows).all()
        assert (in_one.event_lower >= in_other.event_lower).all()
        assert (in_one.event_upper <= in_other.event_upper).all()
        assert (in_one.lower >= in_other.lower).all()
        assert (in_one.upper <= in_other.upper).all()


def pl_direction(d):
    return Direction(np.ones(d))


@pytest.mark.night
def test_without_a_misfit_half_spaces_are_those_of_the_likelihood_set():
    study = pl.case_study("aircraft:20,10")
    # with a model tolerance there are no tests of memory, which would have a share of the error
    counts = replace(data(study.model, study.true_point), contexts=())
    options = {"error": 0.01, "directions": lambda at: [pl_direction(len(at))]}
    ours, theirs = (
        half_spaces_of(tolerant_set(study.model, counts, **options)),
        half_spaces_of(likelihood_set(study.model, counts, **options)),
    )
    assert (ours.rows == theirs.rows).all()
    assert (ours.offsets == theirs.offsets).all()


def test_the_share_of_intervals_does_not_depend_on_how_the_data_ended():
    """With an empty pilot, of data that might have had one, intervals have the share that they have with a pilot."""
    study = pl.case_study("betting:5")
    counts = data(study.model, study.true_point, pilot=False)
    none = np.zeros_like(counts.counts)
    ends = {
        "no order": None,
        "empty": Pilot(none, PilotEnd.POWER_OF_FOUR),
        "some": Pilot(counts.counts // 20, PilotEnd.POWER_OF_FOUR),
        "planned": Pilot(counts.counts // 20),
    }
    errors = {
        name: strips_of(
            tolerant_set(
                study.model,
                replace(counts, pilot=pilot, contexts=()),
                error=0.925,
                directions=lambda at: [pl_direction(len(at))],
            )
        ).error
        for name, pilot in ends.items()
    }
    assert errors == pytest.approx({"no order": 0.925, "empty": 0.125, "some": 0.125, "planned": 0.125})


def test_bets_intervals_of_events_and_of_single_choices_have_the_error_together():
    budget = tolerant_shares(has_bets=True, has_drifts=True)
    shares = tuple(budget[name] for name in ("half_spaces", "intervals", "single_choices"))
    assert shares == (Fraction(80, 100), Fraction(10, 100), Fraction(25, 1000))
    assert sum(shares) == budget.confidence_set == Fraction(925, 1000)


def two_coins():
    """Return a model in which two actions throw a coin p, and a third one p / 2."""
    return row_model([[p, 1 - p], [p, 1 - p], [p / 2, 1 - p / 2]], LINE)


def counts_of(model, *rows):
    seen = np.zeros(model.graph.n_transitions, dtype=np.int64)
    seen[: sum(map(len, rows))] = np.concatenate(rows)
    return TransitionCounts(model.graph, seen, "adaptive")


def test_a_row_that_is_off_by_more_than_the_misfit_is_found_even_if_the_sum_of_rows_is_not():
    model = two_coins()
    counts = counts_of(model, (4000, 6000), (6000, 4000), (2500, 7500))
    assert learn(model, counts, model_tolerance=0.02).conflict is not None
    assert learn(model, counts, model_tolerance=0.12).conflict is None
    assert 0.05 < smallest_tolerance(model, counts, error=0.001) < 0.1


def test_a_model_that_is_right_needs_no_misfit():
    model = two_coins()
    assert smallest_tolerance(model, counts_of(model, (500, 500), (510, 490), (245, 755)), error=0.01) == 0


def test_the_smallest_misfit_is_the_least_of_two_digits_without_a_conflict():
    model, error = two_coins(), 0.001
    counts = counts_of(model, (4500, 5500), (5500, 4500), (2500, 7500))
    found = smallest_tolerance(model, counts, error=error)
    assert float(f"{found:.1e}") == found > 0
    assert (
        learn(model, counts, model_tolerance=found, confidence=1 - error, confidence_set="likelihood").conflict is None
    )
    below = float(f"{found - 10 ** (np.floor(np.log10(found)) - 1):.1e}")
    assert (
        learn(model, counts, model_tolerance=below, confidence=1 - error, confidence_set="likelihood").conflict
        is not None
    )


def test_bets_for_the_smallest_misfit_know_nothing_of_later_stages(monkeypatch):
    """Two heads have the value p², whose slope where a stage begins is 2p, whatever the slope at the last moment is."""

    def step(s):
        if s.won == 2 or s.out:
            return {"stay": [(1, s)]}
        return {"toss": [(p, s._replace(won=s.won + 1)), (1 - p, s._replace(out=1))]}

    model = pl.explore(step, {"won": 0, "out": 0}, space=LINE, labels={"won": lambda s: s.won == 2})
    point, taken = {"p": 0.5}, []
    right = pl.simulate(model, point, 1000, rng=1, max_steps=2)
    wrong = right.counts.copy()
    graph = model.graph
    second = graph.first_transition[graph.first_choice[np.argmax(graph.states["won"] == 1)]]
    wrong[second : second + 2] += [1000, 0]  # heads only, later
    monkeypatch.setattr(model_tests, "smallest_tolerance", lambda *_, directions, **__: taken.append(directions) or 0.0)
    counts = TransitionCounts(graph, wrong, "adaptive", right.pilot)
    assert learn(model, counts, objectives=['P=? [ F "won" ]']).conflict is not None
    for at in (0.2, 0.7):
        assert taken[0](np.array([at]))[0].gradient == pytest.approx([2 * at])


def test_a_constant_that_is_off_by_more_than_the_misfit_is_excluded_and_shares_are_not_tested():
    half = Fraction(1, 2)
    model = row_model([[half, half], [p / 2, p / 2, 1 - p]], LINE)
    fixed, counts = find_fixed_numbers(model), counts_of(model, (5600, 4400), (100, 900, 100))
    assert len(fixed) == 2
    assert len(fixed.constants_only()) == 1
    options = {"error": 0.01, "confidence": 0.99}
    assert len(excluded_numbers(model, fixed, counts, **options)) == 2
    (text,) = excluded_numbers(model, fixed, counts, model_tolerance=0.02, **options)
    assert "the model says 0.5, seen 5,600 of 10,000 times" in text
    assert text.endswith("with confidence 99 %, if rows are off by at most 0.02)")
    assert excluded_numbers(model, fixed, counts, model_tolerance=0.06, **options) == ()
    assert isinstance(learn(model, counts, model_tolerance=0.02).region, Conflict)
    assert smallest_tolerance(model, counts, error=0.01) == pytest.approx(0.035, abs=0.01)


def test_constants_keep_the_tests_of_their_classes():
    quarter = Fraction(1, 4)
    rows = [[quarter, p / 2, p / 4, quarter + (1 - p) * 3 / 4 - quarter], [quarter, q / 2, q / 2, 1 - q - quarter]]
    model = row_model([*rows, [quarter, p / 2, q / 2, 1 - quarter - p / 2 - q / 2]], SQUARE)
    fixed = find_fixed_numbers(model)
    kept = fixed.constants_only()
    assert len(kept) == (fixed.group == -1).sum() < len(fixed)
    assert (kept.transition == fixed.transition[fixed.group == -1]).all()
    is_pooled = fixed.pooled[fixed.group == -1] >= 0
    assert ((kept.pooled >= 0) == is_pooled).all()
    assert set(kept.pooled[is_pooled]) == set(range(kept.n_pooled))


# The option


def problem():
    study = pl.case_study("betting:5")
    return study, data(study.model, study.true_point)


@pytest.mark.night
def test_certificates_say_what_they_tolerate():
    study, counts = problem()
    options = {"confidence_set": "likelihood", "relaxation": "coupled"}
    found = pl.certify(study.model, counts, study.objective, model_tolerance=0.01, **options)
    assert found.rests_on.model_tolerance == found.to_dict()["model_tolerance"] == 0.01
    assert (
        "model_tolerance",
        "the bounds allow for rows that are off by 0.01 in total variation",
    ) in found.page().facts
    assert dict(found.page().facts)["model test"].endswith("; with a model tolerance, changes over time are not tested")
    said = (
        "the model is correct for some values of its parameters, up to 0.01 for each state and action (in total "
        "variation)"
    )
    assert said in found.rests_on.assumptions
    right = pl.certify(study.model, counts, study.objective, **options)
    assert right.rests_on.model_tolerance == 0
    assert not any("model_tolerance" in label for label, _ in right.page().facts)
    assert found.lower < right.lower < right.upper < found.upper


@pytest.mark.night
def test_no_misfit_is_the_same_as_saying_nothing():
    study, counts = problem()
    for kind in ("interval", "likelihood", "l1"):
        plain, zero = (
            pl.certify(study.model, counts, study.objective, confidence_set=kind, **options)
            for options in ({}, {"model_tolerance": 0})
        )
        assert (plain.lower, plain.upper, plain.how.confidence_set) == (zero.lower, zero.upper, zero.how.confidence_set)


def test_intervals_alone_have_the_whole_error():
    model = two_coins()
    found = tolerant_bounds(model, counts_of(model, (500, 500), (510, 490), (245, 755)), error=0.01)
    assert found.error == 0.01
    assert found.guarantee == "finite-sample, anytime"
