"""What is prepared for one question serves the next one: the same bits as without it, whatever the bounds became."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from constraints import half_spaces_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_models import model_of, random_bounds, random_case, random_masks, random_reward
from tiers import examples, size

import plumdp as pl
from plumdp.data.counts import Pilot
from plumdp.model.objectives import Reach, Reward
from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver import prepared as prepared_module
from plumdp.solver.evaluate import evaluate_all
from plumdp.solver.game import Backward
from plumdp.solver.layout import SweepLayout
from plumdp.solver.prepared import prepare

NATURES = ("robust", "optimistic")
seeds = st.integers(0, 2**32 - 1)


def acyclic_model(rng):
    """Return a model of 3 to 9 states whose transitions follow a random order of the states; the last ones rest."""
    n_states, n_sinks = int(rng.integers(3, 10)), int(rng.integers(1, 3))
    place = rng.permutation(n_states)
    states = [[] for _ in range(n_states)]
    for i in range(n_states):
        for _ in range(rng.integers(1, 4) if i < n_states - n_sinks else 1):
            later = np.arange(i + 1, n_states) if i < n_states - n_sinks else np.array([i])
            successors = rng.choice(later, min(len(later), int(rng.integers(1, 4))), replace=False)
            lower, upper = random_bounds(rng, len(successors), positive=False, tiny=(0.1, 16))
            states[place[i]].append(list(zip(place[successors].tolist(), lower.tolist(), upper.tolist(), strict=True)))
    return model_of(states)


def any_model(rng):
    """Return a model with or without cycles, and objectives of all kinds."""
    imdp = acyclic_model(rng) if rng.random() < 0.5 else random_case(rng).imdp
    own = np.arange(imdp.graph.n_transitions, dtype=np.int32)
    imdp = IntervalMDP(imdp.graph, own, imdp.lower[imdp.expression], imdp.upper[imdp.expression])
    target, avoid = random_masks(rng, imdp.graph.n_states, 1)
    reward, direction = random_reward(rng, imdp.graph, 1), str(rng.choice(["max", "min"]))
    paid = RewardStructure(None, rng.integers(0, 3, imdp.graph.n_choices) / 2)
    objectives = [
        Reach(target, avoid, direction),
        Reach(target, avoid, direction, complement=True),
        Reward(reward, direction, target=target),
        Reward(paid, direction),
        Reward(paid, direction, discount="0.5"),
        Reach(target, avoid, direction, steps=(0, 3)),
    ]
    return imdp, objectives


def with_other_bounds(rng, imdp):
    """Return the model with new bounds on every row: they may become zero or one, or meet, or be zero no more."""
    lower, upper = imdp.lower.copy(), imdp.upper.copy()
    first = imdp.graph.first_transition
    positive = bool(rng.random() < 0.4)
    for a, b in pairwise(first):
        if rng.random() < 0.7:
            lower[a:b], upper[a:b] = random_bounds(rng, b - a, positive=positive, tiny=(0.1, 16))
            if rng.random() < 0.2:  # one transition is certain, and the others are impossible
                lower[a:b] = upper[a:b] = 0.0
                lower[a] = upper[a] = 1.0
    return replace(imdp, lower=lower, upper=upper)


def same_bits(one, other):
    return (
        (one.status, one.sweeps) == (other.status, other.sweeps)
        and one.lower.tobytes() == other.lower.tobytes()
        and one.upper.tobytes() == other.upper.tobytes()
        and one.policy.tolist() == other.policy.tolist()
    )


def differences(seed):
    """Yield for each of several questions on one graph whether what was prepared for another one changed the answer."""
    rng = np.random.default_rng(seed)
    imdp, objectives = any_model(rng)
    models = [imdp, *(with_other_bounds(rng, imdp) for _ in range(2))]
    objective = objectives[rng.integers(len(objectives))]
    shared = prepare(models[0], objective, str(rng.choice(NATURES)))
    for model in models[::-1]:
        for nature in NATURES:
            fresh = pl.stages.solve(model, objective, nature=nature)
            yield not same_bits(pl.stages.solve(model, objective, nature=nature, prepared=shared), fresh)
            following = prepare(model, objective, nature, like=shared)
            yield not same_bits(pl.stages.solve(model, objective, nature=nature, prepared=following), fresh)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(seeds)
@example(4)
def test_a_shared_preparation_gives_the_bits_of_a_fresh_one(seed):
    assert not any(differences(seed))


@pytest.mark.parametrize("mutant", ["decisions whatever the bounds", "layouts whatever is undecided"])
def test_a_mutant_that_shares_where_it_must_not_is_caught(mutant, monkeypatch):
    if mutant == "decisions whatever the bounds":
        monkeypatch.setattr(prepared_module, "is_decided_alike", lambda *_: True)
    else:
        monkeypatch.setattr(SweepLayout, "is_of", lambda *_: True)
    assert any(any(differences(seed)) for seed in range(40))


@pytest.mark.slow
def test_a_bound_that_becomes_zero_decides_states_anew():
    """State 0 goes to the goal with at least a half; then nature may drop that, and the rest."""
    sure = IntervalMDP.from_arrays([0, 1, 2, 3], [0, 2, 3, 4], [1, 2, 1, 2], [0.5, 0.25, 1, 1], [0.75, 0.5, 1, 1])
    goal = np.array([False, True, False])
    objective, steps = Reach(goal, ~goal & False, "max"), Reward(RewardStructure(np.ones(3), None), "min", target=goal)
    unsure = replace(sure, lower=np.array([0.0, 0.25, 1, 1]), upper=np.array([0.75, 1.0, 1, 1]))
    never = replace(sure, lower=np.array([0.0, 1.0, 1, 1]), upper=np.array([0.0, 1.0, 1, 1]))
    prepared = prepare(sure, objective)
    values = [pl.stages.solve(model, objective, prepared=prepared) for model in (sure, unsure, never)]
    assert values[0].lower[0] <= 0.5 <= values[0].upper[0] <= 0.5 + 1e-12
    assert [(found.lower[0], found.upper[0]) for found in values[1:]] == [(0.0, 0.0), (0.0, 0.0)]
    certain = replace(sure, lower=np.array([1.0, 0.0, 1, 1]), upper=np.array([1.0, 0.0, 1, 1]))
    prepared = prepare(certain, steps)
    assert pl.stages.solve(certain, steps, prepared=prepared).upper[0] <= 1 + 1e-12
    assert pl.stages.solve(sure, steps, prepared=prepared).lower[0] == np.inf


@settings(max_examples=examples(40))
@given(seeds)
def test_acyclic_models_are_solved_in_order_as_they_are_by_components(seed):
    rng = np.random.default_rng(seed)
    imdp = acyclic_model(rng)
    target, avoid = random_masks(rng, imdp.graph.n_states, 1)
    reward, direction = random_reward(rng, imdp.graph, 1), str(rng.choice(["max", "min"]))
    for objective in (Reach(target, avoid, direction), Reward(reward, direction, target=target)):
        for nature in NATURES:
            ordered = pl.stages.solve(imdp, objective, nature=nature)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Backward, "_acyclic", (None, np.zeros(imdp.graph.n_states, dtype=np.bool_)))
                searched = pl.stages.solve(imdp, objective, nature=nature)
            assert ordered.lower.tobytes() == searched.lower.tobytes()
            assert ordered.upper.tobytes() == searched.upper.tobytes()


@settings(max_examples=examples(40))
@given(seeds)
def test_a_scan_has_successors_first_and_cycles_have_none(seed):
    """The oracle takes away states without successors among the undecided ones, until none is left or all have some."""
    rng = np.random.default_rng(seed)
    graph = (acyclic_model(rng) if rng.random() < 0.5 else random_case(rng).imdp).graph
    is_undecided = rng.random(graph.n_states) < 0.8
    source = graph.state_of_choice()[graph.choice_of_transition()].tolist()
    edges = {(s, t) for s, t in zip(source, graph.successor.tolist(), strict=True) if s != t}
    left = set(np.flatnonzero(is_undecided).tolist())
    while ends := {s for s in left if not any((s, t) in edges for t in left)}:
        left -= ends
    scan = Backward(graph, is_undecided).scan
    assert (scan is None) == bool(left)
    if scan is not None:
        place = {state: i for i, state in enumerate(scan.tolist())}
        assert sorted(place) == np.flatnonzero(is_undecided).tolist()
        assert all(place[t] < place[s] for s, t in edges if s in place and t in place)


@pytest.mark.slow
def test_a_policy_is_valued_in_the_order_of_its_model():
    """With or without what was prepared for the model, and if that was for an objective with other ends."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        imdp, objectives = any_model(rng)
        policy = np.array([rng.integers(a, b) for a, b in pairwise(imdp.graph.first_choice)])
        for objective in objectives:
            alone = evaluate_all([imdp], policy, objective, NATURES)
            for other in objectives:
                within = evaluate_all([imdp], policy, objective, NATURES, within=prepare(imdp, other))
                assert all(same_bits(a, b) for a, b in zip(within, alone, strict=True))


def test_what_is_prepared_for_another_graph_or_objective_does_no_harm():
    rng = np.random.default_rng(7)
    (one, objectives), (other, others) = any_model(rng), any_model(rng)
    for objective in objectives:
        fresh = pl.stages.solve(one, objective)
        for wrong in (prepare(other, others[0]), *(prepare(one, another) for another in objectives)):
            assert same_bits(pl.stages.solve(one, objective, prepared=wrong), fresh)


@pytest.mark.slow
@pytest.mark.parametrize("confidence_set", ["likelihood", "interval"])
def test_what_was_learned_before_changes_no_bit_of_another_certificate(confidence_set):
    study = pl.case_study("betting:25")
    counts = pl.simulate(study.model, study.true_point, 500, rng=1, max_steps=26)
    options = {"confidence_set": confidence_set, "objectives": [study.objective]}
    before = pl.learn(study.model, counts, **options)
    pl.conclude(before, study.objective, relaxation="expression")
    again, fresh = (pl.learn(study.model, counts, confidence=0.9, **options, **like) for like in ({"like": before}, {}))
    found = [pl.conclude(learned, study.objective, relaxation="expression") for learned in (again, fresh)]
    assert (found[0].lower, found[0].upper) == (found[1].lower, found[1].upper)
    assert found[0].policy.choice.tolist() == found[1].policy.choice.tolist()
    assert (again.fit.p_value, again.error) == (fresh.fit.p_value, fresh.error)


@pytest.mark.slow
def test_what_was_learned_about_another_model_is_refused():
    one, other = pl.case_study("betting:25"), pl.case_study("betting:25")
    counts = [pl.simulate(study.model, study.true_point, 20, rng=1, max_steps=26) for study in (one, other)]
    with pytest.raises(pl.DataError, match="another model"):
        pl.learn(other.model, counts[1], like=pl.learn(one.model, counts[0]))


def rings():
    """Return a model in which two slow rings are as good as each other where p = q: ties are decided by the start."""
    p, q = pl.parameters("p", "q")
    slow = Fraction(1, 100)

    def step(state):
        if state.k == 0:
            return {"A": [(1, state._replace(k=1))], "B": [(1, state._replace(k=2))]}
        if state.k > 2:
            return {"stay": [(1, state)]}
        good, (won, lost) = p if state.k == 1 else q, (state._replace(k=k, i=0) for k in (3, 4))
        on, back = state._replace(i=1 - state.i), state._replace(k=0, i=0)
        half = (1 - slow) / 2
        return {"on": [(slow * good, won), (slow * (1 - good), lost), (half, on), (half, back)]}

    return pl.explore(step, {"k": 0, "i": 0}, space=pl.ParameterSpace.unit("p", "q"))


def counts_of_rings(model, main, pilot):
    """Return counts in which each ring has seen so many good and bad ends in each of its states, for main and pilot."""
    graph = model.graph
    before = graph.states["k"][graph.state_of_choice()[graph.choice_of_transition()]]
    after, seen = graph.states["k"][graph.successor], []
    for ends in (main, pilot):
        counts = np.zeros(graph.n_transitions, dtype=np.int64)
        for ring, (won, lost) in enumerate(ends, start=1):
            is_ring = before == ring
            counts[is_ring] = 99 * (won + lost) // 2
            counts[is_ring & (after == 3)], counts[is_ring & (after == 4)] = won, lost
        seen.append(counts)
    return pl.TransitionCounts(graph, seen[0] + seen[1], "adaptive", Pilot(seen[1]))


@pytest.mark.parametrize("better", ["A", "B"])
@pytest.mark.parametrize("is_concluded", [False, True])
def test_half_spaces_are_those_of_the_pilot_whatever_was_learned_before(better, is_concluded):
    """Both rings tie at the pilot's estimate, and earlier main data made the solver prefer one of them."""
    model = rings()
    objective = pl.parse_property("Pmax=? [ F k=3 ]", model)
    many = [(900, 100), (100, 900)] if better == "A" else [(100, 900), (900, 100)]
    before = pl.learn(model, counts_of_rings(model, many, [(31, 30), (30, 30)]), objectives=[objective])
    if is_concluded:
        pl.conclude(before, objective)
    now = counts_of_rings(model, [(300, 200), (150, 350)], [(25, 25), (25, 25)])
    fresh, again = (pl.learn(model, now, objectives=[objective], **like) for like in ({}, {"like": before}))
    assert half_spaces_of(fresh.bounds).rows.tobytes() == half_spaces_of(again.bounds).rows.tobytes()
    assert half_spaces_of(fresh.bounds).offsets.tobytes() == half_spaces_of(again.bounds).offsets.tobytes()
    one, other = (pl.conclude(learned, objective) for learned in (fresh, again))
    assert (one.lower, one.upper, one.policy.choice.tolist()) == (
        other.lower,
        other.upper,
        other.policy.choice.tolist(),
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(size(4, 8)))
def test_what_is_learned_after_something_else_is_the_same_bit_for_bit(seed):
    rng = np.random.default_rng(seed)
    study = pl.case_study(["aircraft:6,4,1", "betting:5", "parallel:2,1", "engagement:5"][seed % 4])
    points = [{name: rng.uniform(0.2, 0.8) for name in study.model.space.names} for _ in range(2)]
    one, other = (
        pl.simulate(study.model, study.true_point if i else _moved(study, points[i]), 300, rng=seed + i, max_steps=10)
        for i in range(2)
    )
    before = pl.learn(study.model, one, objectives=[study.objective])
    pl.conclude(before, study.objective)
    again, fresh = (
        pl.learn(study.model, other, objectives=[study.objective], **like) for like in ({"like": before}, {})
    )
    assert half_spaces_of(again.bounds).rows.tobytes() == half_spaces_of(fresh.bounds).rows.tobytes()
    assert half_spaces_of(again.bounds).offsets.tobytes() == half_spaces_of(fresh.bounds).offsets.tobytes()


def _moved(study, point):
    """Return a point of the space between the true one and another."""
    inside = {name: (float(study.true_point[name]) + point[name]) / 2 for name in point}
    return {name: Fraction(value).limit_denominator(1000) for name, value in inside.items()}
