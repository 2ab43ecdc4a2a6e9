"""Certificates from the likelihood with one point for all states: what must not change them, what they survive and say.

Models throw one or two coins, so that every number has a meaning that can be checked by hand.
"""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from constraints import half_spaces_of, likelihood_of, strips_of
from row_models import listed
from shorthand import compare

import plumdp as pl
from plumdp.certifying import valuation
from plumdp.certifying.pipeline import certify, conclude
from plumdp.certifying.policy_search import Candidate
from plumdp.certifying.valuation import Valuation, promises_more
from plumdp.data.counts import PilotEnd
from plumdp.learning.learn import learn
from plumdp.model.objectives import Reward
from plumdp.model.parametric import RewardStructure
from plumdp.solver.coupled.bounds import Proof
from plumdp.solver.problem import SolverStatus

p, q, u, v = pl.parameters("p", "q", "u", "v")
LIMIT = {"confidence_set": "likelihood", "relaxation": "coupled"}
LADDER = ["interval", "parameter", "expression", "rectangular", "coupled"]
UNIT, SQUARE = pl.ParameterSpace.unit("p"), pl.ParameterSpace.unit("p", "q")


def throws(first, second, space):
    """Return a model that throws a coin in state 0 and another in state 1; the goal is state 2, a trap is state 3."""
    rows = {at: {"throw": [(f, at + 1), (1 - f, 3)]} for at, f in enumerate((first, second))}
    return listed(rows, space, labels={"goal": 2, "trap": 3}, rewards={"throws": lambda s: s.at < 2})


def array_of(model, pairs):
    """Return how often each transition was taken, given successes and failures of the throw in states 0 and 1."""
    counts, graph = np.zeros(model.graph.n_transitions, dtype=np.int64), model.graph
    for at, pair in enumerate(pairs):
        state = int(np.flatnonzero(graph.states["at"] == at)[0])
        first = graph.first_transition[graph.first_choice[state]]
        counts[first : first + 2] = pair
    return counts


def counts_of(model, pairs, pilot=None):
    early = None if pilot is None else array_of(model, pilot)
    return pl.TransitionCounts(model.graph, array_of(model, pairs), "trajectories", early)


def goal(model, direction="max"):
    return pl.parse_property(f'P{direction}=? [ F "goal" ]', model)


def bounds(certificate):
    return certificate.lower, certificate.upper


SEEN, EARLY = [(3000, 1000), (1200, 1800)], [(300, 100), (120, 180)]
ALIKE, ALIKE_EARLY = [(3000, 1000), (2250, 750)], [(300, 100), (225, 75)]  # for two throws of one coin


# What changes nothing


def certified(first, second, space, *, early=EARLY, **options):
    model = throws(first, second, space)
    return certify(model, counts_of(model, SEEN, early), goal(model), **LIMIT, **options)


@pytest.mark.parametrize("early", [EARLY, None])
def test_renaming_and_reordering_parameters_changes_nothing_but_rounding(early):
    one = certified(p, q, SQUARE, early=early)
    other = certified(v, u, pl.ParameterSpace.unit("u", "v"), early=early)
    assert bounds(one) == pytest.approx(bounds(other), abs=1e-9)
    assert one.beside.estimate["p"] == pytest.approx(other.beside.estimate["v"], abs=1e-9)


def test_splitting_a_parameter_into_two_that_occur_only_as_a_sum_changes_nothing_but_little():
    """The same triangle of sums: p up to 1 in both; one more direction, of which the value is independent.

    The law of u + v that a space as a prior has differs from that of p; after a pilot this hardly matters.
    """
    model, split = throws(p, p, UNIT), throws(u + v, u + v, pl.ParameterSpace.box({"u": (0, "1/2"), "v": (0, "1/2")}))
    one, other = (certify(m, counts_of(m, ALIKE, ALIKE_EARLY), goal(m), **LIMIT) for m in (model, split))
    assert bounds(one) == pytest.approx(bounds(other), rel=1e-3)
    assert one.beside.estimated_value == pytest.approx(other.beside.estimated_value, rel=1e-3)


def test_a_parameter_that_nothing_depends_on_changes_nothing():
    models = throws(p, p, UNIT), throws(p, p, SQUARE)
    one, other = (certify(m, counts_of(m, ALIKE, ALIKE_EARLY), goal(m), **LIMIT) for m in models)
    assert bounds(one) == pytest.approx(bounds(other), abs=1e-9)
    assert other.rests_on.parameters["q"] == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("early", [EARLY, None])
def test_halving_the_error_never_narrows(early):
    """Sets never do; brackets by at most a hundredth, as second order is tried only where the remainder matters."""
    model = throws(p, q, SQUARE)
    last = None
    for k in range(10):
        asked = {"confidence": 1 - 0.2 / 2**k, "objectives": [goal(model)]}
        learned = learn(model, counts_of(model, SEEN, early), confidence_set="likelihood", **asked)
        found, (lower, upper) = learned.bounds, bounds(conclude(learned, goal(model), relaxation="coupled"))
        if last is not None:
            before, (lower_before, upper_before) = last
            slack = 0.01 * (upper_before - lower_before)
            assert lower <= lower_before + slack
            assert upper >= upper_before - slack
            assert likelihood_of(found).threshold < likelihood_of(before).threshold
            assert (strips_of(found).event_lower < strips_of(before).event_lower).all()
            assert (strips_of(found).event_upper > strips_of(before).event_upper).all()
        last = found, (lower, upper)


# What must not raise


PILOTS = {
    "empty": [(0, 0), (0, 0)],
    "all": SEEN,
    "never the second coin": [(300, 100), (0, 0)],
    "all of the second coin": [(300, 100), SEEN[1]],
    "one throw": [(1, 0), (0, 0)],
}


@pytest.mark.parametrize("early", PILOTS.values(), ids=PILOTS)
@pytest.mark.parametrize("direction", ["max", "min"])
def test_any_pilot_gives_a_certificate_with_the_frequencies_inside(early, direction):
    model = throws(p, q, SQUARE)
    found = certify(model, counts_of(model, SEEN, early), goal(model, direction), **LIMIT)
    assert found.status == "certified"
    assert found.lower < 0.75 * 0.4 < found.upper


def test_data_that_may_have_ended_at_will_have_wider_bounds_than_planned_ones():
    """They pay for the lengths that the data might have had; a right guess of the length wins most of it back."""
    model = throws(p, q, SQUARE)
    planned = counts_of(model, SEEN, EARLY)
    whole = float(planned.total)
    kinds = {"end": PilotEnd.POWER_OF_FOUR, "expected": None}, {"end": PilotEnd.POWER_OF_FOUR, "expected": whole}
    ends = [planned, *(replace(planned, pilot=replace(planned.pilot, **kind)) for kind in kinds)]
    fixed, at_will, expected = (bounds(certify(model, counts, goal(model), **LIMIT)) for counts in ends)
    width = {name: high - low for name, (low, high) in zip("fae", (fixed, at_will, expected), strict=True)}
    # planned data have their bets at few moments here, and open data more of the error for blocks against the space
    assert 0.95 * width["f"] < width["e"] < 1.15 * width["f"]
    assert 0.99 * width["f"] < width["a"] < 1.25 * width["f"]


@pytest.mark.parametrize("early", [None, [(300, 100), (0, 0)]])
def test_a_parameter_that_was_never_seen_has_the_range_of_the_space(early):
    model = throws(p, q, pl.ParameterSpace.box({"p": (0, 1), "q": ("1/8", "3/4")}))
    found = certify(model, counts_of(model, [(3000, 1000), (0, 0)], early), goal(model), **LIMIT)
    assert found.rests_on.parameters["q"] == (0.125, 0.75)
    assert found.lower == pytest.approx(found.rests_on.parameters["p"][0] / 8, abs=1e-3)
    assert found.upper == pytest.approx(found.rests_on.parameters["p"][1] * 3 / 4, abs=1e-3)


@pytest.mark.parametrize("n", [40, 400, 4000])
@pytest.mark.parametrize("share", [0, 0.1])
def test_a_coin_that_never_shows_one_side_has_a_certificate_that_contains_the_truth(n, share):
    """Tails are so rare, once in 100,000 throws, that they were not seen; the bound falls about as 1/n."""
    model, early = throws(p, p, UNIT), int(share * n)
    counts = counts_of(model, [(n, 0), (n, 0)], [(early, 0), (early, 0)] if early else None)
    found = certify(model, counts, goal(model), **LIMIT)
    assert found.status == "certified"
    assert 1 - 20 / n < found.lower <= (1 - 1e-5) ** 2 <= found.upper <= 1
    assert all(
        np.isfinite(x)
        for x in (*found.beside.estimate.values(), found.beside.estimated_value, *found.beside.gap.values())
    )


def test_a_value_that_does_not_depend_on_the_parameters_is_known():
    """Two wrong throws or two right ones lead on: 1/2 whatever p, hence a gradient of zero and no half-spaces."""

    guess = {"guess": [(Fraction(1, 2), 3), (Fraction(1, 2), 4)]}
    model = listed({0: {"throw": [(p, 1), (1 - p, 2)]}, 1: guess, 2: guess}, UNIT, labels={"goal": 3})
    counts = pl.simulate(model, {"p": 0.3}, 1000, rng=1, max_steps=2)
    found = certify(model, counts, goal(model), **LIMIT)
    assert found.lower == pytest.approx(0.5, abs=1e-6)
    assert found.upper == pytest.approx(0.5, abs=1e-6)
    assert not half_spaces_of(learn(model, counts, confidence_set="likelihood", objectives=[goal(model)]).bounds).texts


@pytest.mark.parametrize("space", [pl.ParameterSpace.unit(), UNIT])
def test_a_model_without_unknown_numbers_has_its_value(space):
    model = throws(Fraction(1, 2), Fraction(1, 3), space)
    for pairs, early in ([(500, 500), (300, 600)], [(50, 50), (30, 60)]), ([(0, 0), (0, 0)], None):
        found = certify(model, counts_of(model, pairs, early), goal(model), **LIMIT)
        assert found.status == "certified"
        assert found.lower <= Fraction(1, 6) <= found.upper
        assert found.upper - found.lower < 1e-9


@pytest.mark.parametrize("space", [pl.ParameterSpace.unit(), UNIT])
def test_a_model_of_one_state_has_its_value(space):
    model = pl.explore(lambda s: {"stay": [(1, s)]}, {"at": 0}, space=space, labels={"goal": lambda s: s.at == 0})
    counts = pl.TransitionCounts(model.graph, np.array([5]), "trajectories", np.array([2]))
    assert bounds(certify(model, counts, goal(model), **LIMIT)) == (1, 1)
    assert bounds(certify(model, counts, 'Pmax=? [ G !"goal" ]', **LIMIT)) == (0, 0)


def waiting():
    """Return a model that may wait forever in front of the goal, or throw a coin until it comes up."""
    rows = {0: {"throw": [(p, 1), (1 - p, 0)], "wait": [(1, 0)]}}
    return listed(rows, UNIT, labels={"goal": 1}, rewards={"steps": lambda s: s.at == 0})


@pytest.mark.parametrize(("direction", "value"), [("min", 10), ("max", np.inf)])
def test_objectives_with_policies_that_never_end_have_finite_or_infinite_bounds_as_they_should(direction, value):
    model = waiting()
    counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
    counts[:2] = 1000, 9000
    data = pl.TransitionCounts(model.graph, counts, "trajectories", counts // 10)
    cost = Reward(model.rewards["steps"], direction, model.labels["goal"])
    found = certify(model, data, cost, **LIMIT)
    assert found.lower <= value <= found.upper
    assert (found.upper < 15) == (direction == "min")
    forever = certify(model, data, cost, policy=model.graph.first_choice[:-1] + np.array([1, 0]), **LIMIT)
    assert bounds(forever) == (np.inf, np.inf)
    assert forever.beside.gap == {}
    assert "Infinity" not in json.dumps(forever.to_dict())
    assert "NaN" not in json.dumps(forever.to_dict())


def test_a_value_that_is_proved_to_be_infinite_is_certified():
    model = throws(p, p, UNIT)
    cost = Reward(model.rewards["throws"], "min", model.labels["goal"])
    found = certify(model, counts_of(model, ALIKE, ALIKE_EARLY), cost, **LIMIT)
    assert (found.status, found.lower, found.upper, found.beside.gap) == ("certified", np.inf, np.inf, {})
    assert "no policy reaches the target with certainty" in str(found)


@pytest.mark.slow
def test_a_gradient_that_is_not_a_number_is_not_followed(monkeypatch):
    """Estimates may overflow where equations are nearly singular: then the robust policy and its bounds remain."""
    model = throws(p, q, SQUARE)
    counts = counts_of(model, SEEN, EARLY)
    plain = bounds(certify(model, counts, goal(model), confidence_set="likelihood", relaxation="rectangular"))
    for value, slope in ((np.nan, np.nan), (0.5, np.nan), (0.5, np.inf), (np.inf, 0.0)):
        monkeypatch.setattr(
            "plumdp.certifying.policy_search.find_gradient",
            lambda *_, x=value, g=slope: (x, np.full(2, g), np.arange(4)),
        )
        found = bounds(certify(model, counts, goal(model), **LIMIT))
        assert found[0] <= 0.3 <= found[1]
        assert found[1] - found[0] < 2 * (plain[1] - plain[0])


# Data that contradict the model


def test_a_model_that_ties_two_coins_wrongly_is_contradicted_in_words():
    """p and 1 - p/2 cannot both be 0.9; half-spaces across the value and intervals say so."""
    model = throws(p, 1 - p / 2, UNIT)
    found = certify(model, counts_of(model, [(900, 100), (910, 90)], [(90, 10), (91, 9)]), goal(model), **LIMIT)
    assert (found.status, found.how.relaxation, found.beside.gap, found.beside.estimate) == (
        "model rejected",
        "untied",
        {},
        {},
    )
    assert 'the half-space that bets on the value of Pmax=? [ F "goal" ] left' in found.claim.reason
    assert found.lower <= 0.9 * 0.91 <= found.upper


def test_a_space_without_the_truth_is_contradicted_by_strips_or_likelihood():
    model = throws(p, p, pl.ParameterSpace.box({"p": ("1/10", "3/10")}))
    for pairs, early in ([(900, 100), (500, 100)], [(90, 10), (50, 10)]), ([(900, 100), (500, 100)], None):
        found = certify(model, counts_of(model, pairs, early), goal(model), **LIMIT)
        assert found.status == "model rejected"
        assert "; no parameters fit p in [" in found.claim.reason


def test_three_coins_on_a_line_contradict_each_other_where_intervals_do_not():
    """p, q and (p + q)/2 off the middle by so little that intervals still meet, which the likelihood does not."""

    coins = enumerate((p, q, (p + q) / 2))
    model = listed({at: {"throw": [(f, at + 1), (1 - f, 4)]} for at, f in coins}, SQUARE, labels={"goal": 3})
    counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
    first = [
        model.graph.first_transition[model.graph.first_choice[np.flatnonzero(model.graph.states["at"] == k)[0]]]
        for k in range(3)
    ]
    for start, pair in zip(first, [(5000, 5000), (5000, 5000), (6000, 4000)], strict=True):
        counts[start : start + 2] = pair
    found = certify(model, pl.TransitionCounts(model.graph, counts, "trajectories"), goal(model), **LIMIT)
    assert found.status == "model rejected"
    assert "; no parameters fit " in found.claim.reason


def test_a_log_that_contradicts_the_graph_leaves_no_estimate():
    model = throws(p, q, SQUARE)
    rows = {"at": [0, 1, 0], "action": ["throw"] * 3, "next_at": [1, 2, 2]}
    log = pl.read_log(model, pd.DataFrame(rows), on_unmatched="report")
    assert log.report.contradicting == 1
    found = certify(model, log, goal(model), **LIMIT)
    assert found.status == "model rejected"
    assert (found.beside.estimate, found.beside.estimated_value, found.beside.gap) == ({}, None, {})
    assert "width" not in dict(found.page().facts)


# Objectives, pre-specified and not


def test_each_objective_that_is_prespecified_has_two_half_spaces_and_others_hold_as_well():
    model = throws(p, q, SQUARE)
    counts = counts_of(model, SEEN, EARLY)
    asked = [goal(model), Reward(model.rewards["throws"], "min", text="number of throws")]
    learned = learn(model, counts, confidence_set="likelihood", objectives=asked)
    assert len(half_spaces_of(learned.bounds).texts) == 4
    assert sum("goal" in text for text in half_spaces_of(learned.bounds).texts) == 2
    assert sum("number of throws" in text for text in half_spaces_of(learned.bounds).texts) == 2
    third = pl.parse_property('Pmin=? [ F "trap" ]', model)
    for objective, value in zip([*asked, third], [0.75 * 0.4, 1 + 0.75, 1 - 0.75 * 0.4], strict=True):
        found = conclude(learned, objective, relaxation="coupled")
        assert found.status == "certified"
        assert found.lower < value < found.upper
    alone = learn(model, counts, confidence_set="likelihood", objectives=asked[:1])
    one, both = (conclude(each, asked[0], relaxation="coupled") for each in (alone, learned))
    assert one.upper - one.lower < both.upper - both.lower


def test_without_objectives_or_without_a_pilot_there_are_no_half_spaces():
    model = throws(p, q, SQUARE)
    for early, objectives in (EARLY, []), (None, [goal(model)]):
        learned = learn(model, counts_of(model, SEEN, early), confidence_set="likelihood", objectives=objectives)
        assert half_spaces_of(learned.bounds).texts == ()
        found = conclude(learned, goal(model), relaxation="coupled")
        assert found.status == "certified"
        assert found.lower < 0.3 < found.upper


# What certificates show


def test_a_certificate_prints_estimate_width_shares_and_the_pilot():
    found = certified(p, q, SQUARE)
    page = found.page()
    facts, details = dict(page.facts), dict(page.details)
    assert facts["estimate"].startswith("30 % at the most likely parameters")
    assert facts["not certified"].endswith("by the normal approximation")
    assert "statistics" in details["width"]
    shares = [float(part.split(" %")[0]) for part in details["width"].split(": ")[1].split(", ")]
    assert sum(shares) == pytest.approx(100, abs=0.5)
    assert any(text.startswith("the first 700 steps of the data decided") for text in found.rests_on.assumptions)
    asked = "the objectives were chosen before looking at the data"
    assert asked in found.rests_on.assumptions
    assert not any("bets" in text for text in certified(p, q, SQUARE, early=None).rests_on.assumptions)
    model = throws(p, q, SQUARE)
    whatever = learn(model, counts_of(model, SEEN, EARLY), confidence_set="likelihood")
    assert asked not in conclude(whatever, goal(model), relaxation="coupled").rests_on.assumptions
    saved = json.loads(json.dumps(found.to_dict()))
    assert saved["estimate"] == pytest.approx({"p": 0.75, "q": 0.4}, abs=0.01)
    assert saved["estimated_value"] == pytest.approx(0.3, abs=0.01)
    assert sum(saved["gap"].values()) == pytest.approx(saved["upper"] - saved["lower"])


@pytest.mark.parametrize("kind", ["interval", "likelihood"])
def test_shares_of_the_width_are_never_negative_and_sum_to_one(kind):
    """Also where the width is rounding alone: parameters whose space is one point, and known numbers."""
    spaces = SQUARE, pl.ParameterSpace.box({"p": ("3/10", "3/10"), "q": ("2/5", "2/5")})
    for space, pairs in zip(spaces, (SEEN, [(300, 700), (400, 600)]), strict=True):
        model = throws(p, q, space)
        found = certify(model, counts_of(model, pairs), goal(model), confidence_set=kind, relaxation="coupled")
        assert min(found.beside.gap.values()) >= 0
        assert sum(found.beside.gap.values()) == pytest.approx(found.upper - found.lower, rel=1e-9)


def test_compare_shows_the_ladder_from_interval_to_coupled():
    model = throws(p, q, SQUARE)
    policy = model.graph.first_choice[:-1]
    found = compare(model, counts_of(model, SEEN, EARLY), goal(model), confidence_set="likelihood", policy=policy)
    assert [each.how.relaxation for each in found] == LADDER
    expression, rectangular, coupled = (bounds(each) for each in found[2:])
    assert expression[0] <= rectangular[0] <= coupled[0] <= coupled[1] <= rectangular[1] <= expression[1]
    assert coupled[1] - coupled[0] < 0.95 * (rectangular[1] - rectangular[0])


# Which policy


def two_ways():
    """Return a model with a choice at the start: a coin p that was thrown often, or a coin q that was thrown rarely."""

    def step(state):
        if state.at:
            return {"stay": [(1, state)]}
        ways = {"often": p, "rarely": q}
        return {way: [(f, state._replace(at=1)), (1 - f, state._replace(at=2))] for way, f in ways.items()}

    return pl.explore(step, {"at": 0}, space=SQUARE, labels={"goal": lambda s: s.at == 1})


def test_a_search_that_proposes_bad_policies_alone_costs_nothing(monkeypatch):
    """Whatever a search says of them: the bound is that of the robust policy, if that is better."""
    model = two_ways()
    counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
    counts[:4] = 500, 500, 6, 4
    data = pl.TransitionCounts(model.graph, counts, "trajectories")
    bad = Candidate(model.graph.first_choice[:-1] + np.array([1, 0, 0]), 0.9, 0.9, np.zeros(2), np.arange(3))
    robust = certify(model, data, goal(model), confidence_set="likelihood")
    assert robust.policy.action(at=0) == "often"
    monkeypatch.setattr("plumdp.certifying.valuation.search_policies", lambda *_: [bad])
    found = certify(model, data, goal(model), **LIMIT)
    assert found.policy.action(at=0) == "often"
    assert found.lower >= robust.lower


@pytest.mark.parametrize(("lower", "upper"), [(1.0, np.inf), (np.inf, np.inf)])
def test_a_candidate_is_worth_a_proof_if_nothing_bounds_the_cost_of_the_one_before(lower, upper):
    cost = Reward(RewardStructure(np.ones(2), None), "min", target=np.array([False, True]))
    endless = Valuation(np.array([0, 2]), lower, upper, SolverStatus.CONVERGED)
    promising, hopeless = (
        Candidate(np.array([1, 2]), bound, -1.0, np.zeros(1), np.arange(2)) for bound in (-2.0, -np.inf)
    )
    assert promises_more(promising.bound, endless, cost)
    assert not promises_more(hopeless.bound, endless, cost)


def test_brackets_that_do_not_meet_leave_those_against_nature(monkeypatch):
    """Only an empty region has such brackets: every answer is right there, and none may end in an error."""
    study = pl.case_study("betting:5")
    counts = pl.simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6)
    learned = pl.learn(study.model, counts, confidence_set="likelihood")
    plain = pl.conclude(learned, study.objective, relaxation="rectangular")
    far = Proof(plain.upper + 1, plain.upper + 2, 1.0, 0.0, 0.0, "first order")
    monkeypatch.setattr(valuation, "find_coupled_bounds", lambda *args, **options: far)
    found = pl.conclude(learned, study.objective, relaxation="coupled", policy=plain.policy)
    assert (found.lower, found.upper) == (plain.lower, plain.upper)


@pytest.mark.slow
@pytest.mark.parametrize("n_weights", [2, 3])
def test_factors_that_are_negative_in_part_of_the_space_do_not_mislead_the_search(n_weights):
    """One of several outcomes, and for the first of them a coin: no row says that the weights sum to at most 1."""
    names = tuple("abc"[:n_weights])
    *weights, heads = pl.parameters(*names, "heads")
    rest = 1 - sum(weights)

    def step(state):
        if state.at:
            return {"stay": [(1, state)]}
        chances = [rest * heads, rest * (1 - heads), *weights]
        return {"go": [(chance, state._replace(at=i + 1)) for i, chance in enumerate(chances)]}

    def bounds(constraints):
        space = pl.ParameterSpace.box(dict.fromkeys((*names, "heads"), (0, 1)), constraints=constraints)
        model = pl.explore(step, {"at": 0}, space=space, labels={"won": lambda s: s.at == 1})
        counts = pl.simulate(model, {**dict.fromkeys(names, 0.2), "heads": 0.7}, 5_000, rng=1, max_steps=1)
        found = pl.certify(model, counts, 'Pmax=? [ F "won" ]')
        assert (found.status, found.beside.p_value) == ("certified", 1.0)
        return found.lower, found.upper

    truth, (low, high), (least, most) = 0.7 * (1 - 0.2 * n_weights), bounds([]), bounds([rest])
    assert low <= truth <= high
    assert high - low <= 1.1 * (most - least)  # what was not declared costs little
