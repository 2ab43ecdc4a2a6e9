"""From counts to a certificate: what each status means, what the claim rests on, and what is refused."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from constraints import strips_of
from row_models import listed
from shorthand import compare, said

import plumdp as pl
from plumdp.certifying.pipeline import certify, conclude
from plumdp.confidence.binomial import beta_binomial, clopper_pearson
from plumdp.confidence.sets import Evidence
from plumdp.learning.learn import learn
from plumdp.model.objectives import Reach, Reward
from plumdp.model.question import ask
from plumdp.region.conflict import Conflict
from plumdp.region.find import find_region

p, q = pl.parameters("p", "q")
RELAXATIONS = ["interval", "parameter", "expression", "rectangular", "coupled"]
STRUCTURE = (
    "the model has every transition that can happen, and where a step leads depends only on the state and the "
    "action, both in the data and when the policy is used"
)
TIED = "the model is correct for some values of its parameters"
CHOSEN = (
    "the model (with parameters, ties and bins), the confidence and all other options were chosen before looking at "
    "these data"
)
ONCE = "no step is in the data twice, for instance in two overlapping files or under another run's name"
COMPLETE = "no step is missing because of its outcome"


def two_coins():
    """Return a model that throws the same coin twice: state 0, then state 1; the goal is state 2, a trap is state 3."""
    rows = {at: {"throw": [(p, at + 1), (1 - p, 3)]} for at in (0, 1)}
    return listed(rows, labels={"goal": 2}, rewards={"throws": lambda s: s.at < 2})


def counts_of(model, sampling="independent", **by_state):
    """Return counts of successes and failures of the throw in each state: ``s0=(30, 70)``."""
    counts, graph = np.zeros(model.graph.n_transitions, dtype=np.int64), model.graph
    for name, pair in by_state.items():
        state = int(np.flatnonzero(graph.states["at"] == int(name[1:]))[0])
        first = graph.first_transition[graph.first_choice[state]]
        counts[first : first + 2] = pair
    return pl.TransitionCounts(graph, counts, sampling)


def goal(model, direction="max"):
    target = model.labels["goal"]
    return Reach(target, np.zeros_like(target), direction, text=f'P{direction}=? [ F "goal" ]')


NOT_COMPARED = ("policy", "seconds", "provenance", "source")


def same(one, other):
    """Return whether two certificates say the same, but for the time they took and the date."""
    is_equal = [value == said(other)[name] for name, value in said(one).items() if name not in NOT_COMPARED]
    is_equal += [one.rests_on.provenance | {"date": ""} == other.rests_on.provenance | {"date": ""}]
    return all(is_equal) and (one.policy.choice == other.policy.choice).all()


# The three statuses


@pytest.mark.parametrize("relaxation", RELAXATIONS)
def test_the_bounds_of_two_throws_are_the_squares_of_those_of_one(relaxation):
    """Both states throw one coin: 600 successes of 1000, at an error of 0.925 · 0.01; both throws at their worst."""
    model = two_coins()
    counts = counts_of(model, s0=(290, 210), s1=(310, 190))
    options = {"confidence": 0.99, "confidence_set": "interval", "relaxation": relaxation}
    certificate = certify(model, counts, goal(model), **options)
    lower, upper = clopper_pearson(np.array([600]), np.array([1000]), 0.925 * (1 - 0.99))
    assert certificate.status == "certified"
    assert certificate.lower == pytest.approx(lower[0] ** 2, abs=1e-9)
    assert certificate.upper == pytest.approx(upper[0] ** 2, abs=1e-9)
    assert certificate.rests_on.parameters["p"] == pytest.approx((lower[0], upper[0]))
    assert certificate.how.relaxation == relaxation
    assert certificate.confidence == pytest.approx(0.99)
    assert certificate.policy.action(at=0) == "throw"
    assert certificate.how.solver == "converged"


@pytest.mark.parametrize(("direction", "says_nothing"), [("max", "lower"), ("min", "upper")])
def test_without_data_nothing_is_certified(direction, says_nothing):
    model = two_coins()
    certificate = certify(model, counts_of(model), goal(model, direction))
    assert certificate.status == "inconclusive"
    assert (certificate.lower, certificate.upper) == (0, 1)
    assert getattr(certificate, says_nothing) == certificate.claim.bound


def test_a_cost_that_is_proved_to_be_infinite_is_certified():
    """The trap is possible, from where the goal is out of reach: the number of throws until the goal is infinite."""
    model = two_coins()
    costs = Reward(model.rewards["throws"], "min", model.labels["goal"])
    certificate = certify(model, counts_of(model, s0=(5, 5)), costs)
    assert certificate.status == "certified"
    assert certificate.lower == certificate.upper == float("inf")


@pytest.mark.parametrize("sets", ["interval", "likelihood"])
@pytest.mark.parametrize("relaxation", RELAXATIONS)
def test_one_coin_with_two_frequencies_contradicts_the_model(relaxation, sets):
    """p and 1 - p/2 cannot both be near 0.9; without expressions, each row has a beta-binomial interval of its own.

    Of the error 1 % a share of 5 % was kept for this case, divided by two rows.
    """
    rows = {at: {"throw": [(f, at + 1), (1 - f, 3)]} for at, f in enumerate((p, 1 - p / 2))}
    model = listed(rows, labels={"goal": 2})
    counts = counts_of(model, "adaptive", s0=(900, 100), s1=(910, 90))
    options = {"confidence": 0.99, "confidence_set": sets, "relaxation": relaxation}
    certificate = certify(model, counts, goal(model), **options)
    assert certificate.status == "model rejected"
    assert certificate.how.relaxation == "untied"
    assert "no parameters fit " in certificate.claim.reason
    assert "p in [0.8" in certificate.claim.reason
    assert "1/2*p" in certificate.claim.reason
    assert certificate.rests_on.assumptions == (STRUCTURE, CHOSEN, ONCE, COMPLETE)
    assert certificate.claim.guarantee == "finite-sample, anytime"
    assert certificate.rests_on.parameters == {}
    lower, upper = beta_binomial(np.array([900, 910]), np.array([1000, 1000]), 0.05 * (1 - 0.99) / 2)
    assert certificate.lower == pytest.approx(lower.prod(), abs=1e-9)
    assert certificate.upper == pytest.approx(upper.prod(), abs=1e-9)
    assert str(certificate).startswith("Model rejected")


def test_two_rows_with_one_expression_and_clashing_frequencies_are_pooled_and_only_tests_of_rows_tell():
    """One expression is one event, so that all its trials count together: no intervals exclude each other."""
    model = two_coins()
    learned = learn(model, counts_of(model, s0=(900, 100), s1=(100, 900)), confidence_set="interval")
    assert strips_of(learned.bounds).successes.tolist() == [1000]
    assert isinstance(learned.region, Conflict)
    assert learned.region.constraints == ()
    assert learned.fit.p_value < 1e-100


# What the claim rests on


@pytest.mark.parametrize(
    ("sampling", "guarantee", "sampled"),
    [
        (
            "independent",
            "finite-sample, fixed N",
            "you fixed the number of samples of each state and action before looking at any",
        ),
        ("trajectories", "finite-sample, anytime", None),
        ("adaptive", "finite-sample, anytime", None),
    ],
)
def test_assumptions_fit_data_and_intervals(sampling, guarantee, sampled):
    model = two_coins()
    counts = counts_of(model, sampling, s0=(60, 40))
    certificate = certify(model, counts, goal(model), confidence_set="interval")
    assert certificate.claim.guarantee == guarantee
    untested = f"{STRUCTURE} (not tested: the order of steps within runs is not known)"
    assert certificate.rests_on.assumptions == (untested, TIED, CHOSEN, *filter(None, [sampled]), ONCE, COMPLETE)


def test_provenance_names_versions_the_model_and_the_size_of_the_data():
    model = two_coins()
    provenance = certify(model, counts_of(model, s0=(60, 40)), goal(model)).rests_on.provenance
    assert provenance["plumdp"] == pl.__version__
    assert provenance["model"] == model.graph.fingerprint
    assert provenance["steps"] == "100"
    assert provenance["numpy"] == np.__version__


@pytest.mark.slow
def test_the_same_data_give_the_same_certificate():
    model = two_coins()
    for relaxation in RELAXATIONS:
        one, other = (
            certify(two_coins(), counts_of(model, s0=(60, 40), s1=(3, 1)), goal(model), relaxation=relaxation)
            for _ in range(2)
        )
        assert same(one, other)


def test_more_confidence_gives_wider_bounds():
    model = two_coins()
    counts = counts_of(model, s0=(60, 40))
    narrow, wide = (certify(model, counts, goal(model), confidence=c) for c in (0.9, 0.999999))
    assert wide.lower < narrow.lower <= narrow.upper < wide.upper


# Policies


def gamble():
    """Return a start with two ways to the goal: a throw of p, and one of q that may be repeated."""
    return listed({0: {"once": [(p, 1), (1 - p, 2)], "again": [(q, 1), (1 - q, 0)]}}, "p q", labels={"goal": 1})


def gamble_counts(model):
    return pl.TransitionCounts(model.graph, np.array([700, 300, 500, 500, 0, 0]), "adaptive")


def test_a_given_policy_is_valued_as_it_is():
    """Once: p itself. Again and again: the goal is certain as long as q is positive."""
    model = gamble()
    counts = gamble_counts(model)
    once, again = (np.array([first, 2, 3]) for first in (0, 1))
    learned = learn(model, counts, objectives=[goal(model)], confidence_set="interval")
    certificate = conclude(learned, goal(model), policy=once, precision=1e-9)
    lower, upper = beta_binomial(np.array([700]), np.array([1000]), 0.925 * (1 - 0.999) / 2)
    assert (certificate.lower, certificate.upper) == (pytest.approx(lower[0]), pytest.approx(upper[0]))
    assert certificate.policy.action(at=0) == "once"
    assert certify(model, counts, goal(model), policy=again).lower == pytest.approx(1)
    assert certify(model, counts, goal(model)).policy.action(at=0) == "again"


def test_a_bound_over_steps_without_memory_is_one_for_the_policy_that_is_returned():
    """In two steps: again and then once is best, but a policy without memory cannot change its mind.

    The returned policy takes the first step's choice at both, which is worth 1 - (1 - q)².
    """
    model = gamble()
    objective = replace(goal(model), steps=(0, 2))
    counts = gamble_counts(model)
    learned = learn(model, counts, objectives=[objective])
    counting = conclude(learned, objective, precision=1e-9)
    assert [counting.policy.action(at=0, step=step) for step in (0, 1)] == ["again", "once"]
    forgetting = ask(objective, model, memory=False)
    certificate = conclude(learn(model, counts, objectives=[forgetting]), forgetting, precision=1e-9)
    assert certificate.policy.action(at=0) == "again"
    assert certificate.lower < counting.lower
    region = learn(model, counts, objectives=[ask(objective, model, memory=False)]).region
    low, high = Fraction(region.lower[1]), Fraction(region.upper[1])
    assert certificate.lower == pytest.approx(float(1 - (1 - low) ** 2), abs=1e-6)
    assert certificate.upper == pytest.approx(float(1 - (1 - high) ** 2), abs=1e-6)


# What is taken if nothing is named


def test_the_likelihood_and_coupled_bounds_are_the_default():
    model = gamble()
    counts, named = gamble_counts(model), {"confidence_set": "likelihood", "relaxation": "coupled"}
    default = certify(model, counts, goal(model))
    assert same(default, certify(model, counts, goal(model), **named))
    assert (default.how.confidence_set, default.how.relaxation) == (
        "likelihood against the space with half-spaces across the gradient",
        "coupled",
    )
    assert same(default, conclude(learn(model, counts, objectives=[goal(model)]), goal(model)))
    assert same(default, compare(model, counts, goal(model))[-1])


# Compare


@pytest.mark.slow
def test_compare_gives_what_certify_gives_relaxation_by_relaxation():
    model = two_coins()
    counts = counts_of(model, s0=(60, 40), s1=(30, 10))
    certificates = compare(model, counts, goal(model), confidence=0.99)
    assert [certificate.how.relaxation for certificate in certificates] == RELAXATIONS
    for certificate in certificates:
        alone = certify(model, counts, goal(model), confidence=0.99, relaxation=certificate.how.relaxation)
        assert same(certificate, alone)


def test_compare_takes_some_relaxations_and_one_policy():
    model = gamble()
    once = np.array([0, 2, 3])
    found = compare(model, gamble_counts(model), goal(model), relaxations=["rectangular"], policy=once)
    assert [(one.how.relaxation, one.policy.action(at=0)) for one in found] == [("rectangular", "once")]


@pytest.mark.parametrize("sets", ["interval", "likelihood"])
def test_one_set_serves_many_objectives(sets):
    model = two_coins()
    learned = learn(model, counts_of(model, s0=(60, 40)), confidence_set=sets)
    best, worst = conclude(learned, goal(model)), conclude(learned, goal(model, "min"))
    assert (best.lower, best.upper) == (pytest.approx(worst.lower, abs=1e-6), pytest.approx(worst.upper, abs=1e-6))


# Products of parameters


def products():
    """Return a model of two coins p and q, thrown at once: the goal is that both show heads."""

    row = [p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)]
    return listed({0: {"throw": [(f, i + 1) for i, f in enumerate(row)]}}, "p q", labels={"goal": 1})


def products_counts(model):
    return pl.TransitionCounts(model.graph, np.array([4200, 2800, 1800, 1200, 0, 0, 0, 0]), "adaptive")


@pytest.mark.parametrize("sets", ["ellipsoid", "l1"])
def test_sets_of_products_of_parameters_are_certified_and_nested(sets):
    """Heads with 0.7 and 0.6: both with 0.42, which all relaxations must allow."""
    model = products()
    relaxations = ["parameter", "expression", "rectangular"]
    found = compare(
        model, products_counts(model), goal(model), confidence_set=sets, relaxations=relaxations, precision=1e-9
    )
    for certificate in found:
        assert certificate.status == "certified"
        assert 0.35 < certificate.lower < 0.42 < certificate.upper < 0.49
    for wide, narrow in pairwise(found):
        assert wide.lower - 1e-9 <= narrow.lower
        assert narrow.upper <= wide.upper + 1e-9


# Models at the edge


@pytest.mark.parametrize("relaxation", RELAXATIONS)
def test_a_model_without_unknowns_needs_no_data(relaxation):
    model = listed({0: {"go": [(Fraction(1, 3), i) for i in (1, 2, 3)]}}, "", labels={"goal": 1})
    counts = pl.TransitionCounts(model.graph, np.zeros(model.graph.n_transitions, dtype=np.int64), "adaptive")
    certificate = certify(model, counts, goal(model), relaxation=relaxation)
    assert certificate.status == "certified"
    assert certificate.lower <= Fraction(1, 3) <= certificate.upper
    assert certificate.upper - certificate.lower < 1e-6
    assert certificate.rests_on.parameters == {}


def test_a_region_of_one_point_is_known():
    model = two_coins()
    learned = learn(model, counts_of(model, s0=(1, 1)), confidence_set="interval")
    point = strips_of(learned.bounds).moved_to(np.array([0.5]), np.array([0.5]))
    evidence = Evidence.of("interval", point, learned.budget)
    region = find_region(model, evidence.constraints)
    known = replace(learned, bounds=evidence, region=region)
    for relaxation in ("expression", "rectangular", "parameter", "coupled"):
        certificate = conclude(known, goal(model), relaxation=relaxation)
        assert certificate.lower <= 0.25 <= certificate.upper
        assert certificate.upper - certificate.lower < 3e-6


# Misuse


def test_counts_of_another_model_are_refused():
    model, other = two_coins(), gamble()
    message = (
        f"^the counts belong to another model: that one has 3 states, 6 transitions and the fingerprint "
        f"{other.graph.fingerprint[:8]}, this one 4, 6 and {model.graph.fingerprint[:8]}$"
    )
    with pytest.raises(pl.DataError, match=message):
        certify(model, gamble_counts(other), goal(model))
