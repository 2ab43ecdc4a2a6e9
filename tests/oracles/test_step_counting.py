"""Policies that count steps are the best ones by exact backward induction, and their exact values are in the bracket.

Models are those of ``point_cases``. At night there are 2,000 models for each of both claims.
"""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import exact_values
import numpy as np
import pytest
from coupled_points import rows_at
from point_cases import random_data, random_graph, random_model
from random_objectives import random_objective
from random_pmdps import random_point
from set_points import points_of_set
from tiers import size

import plumdp as pl
from plumdp.base.errors import WhyNot
from plumdp.model import memory
from plumdp.model.objectives import Reach, Reward, digest
from plumdp.model.question import ask
from plumdp.relaxation.intervals import instantiate
from plumdp.solver.coupled.gradient import policy_gradient
from plumdp.stages import solve


def best_value(graph, rows, objective):
    """Return the best value over all policies that count steps, given the probability of each transition."""
    pick = max if objective.direction == "max" else min
    if isinstance(objective, Reach) and objective.complement:
        pick = min if pick is max else max  # of what the complement is taken
    return _induction(graph, rows, objective, lambda step, state, of_choices: pick(of_choices))


def value_of(graph, rows, objective, place):
    """Return the value of the policy that takes choice number ``place(step, state)`` of the state at each step."""
    return _induction(graph, rows, objective, lambda step, state, of_choices: of_choices[place(step, state)])


def places_of(policy, n_steps):
    """Return the function of step and state that a table with a step counter stands for, by its columns alone."""
    graph = policy.graph
    (name,) = graph.memory.names
    small = graph.memory.graph
    names = [each for each in graph.states if each != name]
    states = {tuple(small.states[each][s].item() for each in names): s for s in range(small.n_states)}
    table = {}
    columns = policy.columns()
    for row, action in enumerate(columns["action"].tolist()):
        state = states[tuple(columns[each][row].item() for each in names)]
        own = small.action[small.first_choice[state] : small.first_choice[state + 1]].tolist()
        table[int(columns[name][row]), state] = own.index(small.action_names.index(action))
    return lambda step, state: table.get((step, state), table.get((n_steps, state), 0))


def _induction(graph, rows, objective, choose):
    n_steps, n = objective.n_steps, graph.n_states
    values = _at(objective, [Fraction(0)] * n, n_steps)
    for step in range(n_steps - 1, -1, -1):
        after = values
        moved = [
            choose(step, s, [_worth(graph, rows, objective, c, s, after) for c in _own(graph, s)]) for s in range(n)
        ]
        values = _at(objective, moved, step)
    value = values[graph.initial_state]
    return 1 - value if isinstance(objective, Reach) and objective.complement else value


def _own(graph, state):
    return range(graph.first_choice[state], graph.first_choice[state + 1])


def _worth(graph, rows, objective, choice, state, after):
    transitions = range(graph.first_transition[choice], graph.first_transition[choice + 1])
    mean = sum((rows[t] * after[graph.successor[t]] for t in transitions), Fraction(0))
    if isinstance(objective, Reach):
        return mean
    paid = exact_values.state_reward(objective, state) + exact_values.choice_reward(objective, choice)
    return paid + (objective.discount or 1) * mean


def _at(objective, values, step):
    """Return the values at a step, straight from the definition, given those if the run goes on."""
    if not isinstance(objective, Reach):
        over = np.zeros(len(values), bool) if objective.target is None else objective.target
        return [Fraction(0) if over[s] else v for s, v in enumerate(values)]
    first, last = objective.steps
    won = [bool(objective.target[s]) and first <= step for s in range(len(values))]
    lost = [bool(objective.avoid[s]) or step == last for s in range(len(values))]
    return [Fraction(int(won[s])) if won[s] or lost[s] else v for s, v in enumerate(values)]


N_SOLVED, N_CERTIFIED, N_FEW, N_STORM = size(100, 2000), size(15, 2000), size(15, 600), size(40, 600)
KINDS = ("steps", "window", "steps and rewards", "globally in steps", "discounted steps", "rewards until in steps")


def random_asked(rng, model, kind):
    """Return an objective with a number of steps."""
    n = int(rng.choice([2, 3, 5, 9]))
    if kind == "discounted steps":
        return replace(random_objective(rng, model, "losses in steps"), discount="0.9", steps=n)
    if kind == "rewards until in steps":
        return replace(random_objective(rng, model, "reward"), steps=n)
    asked = random_objective(rng, model, kind)
    return replace(asked, steps=n if isinstance(asked, Reward) else (min(asked.steps[0], n), n))


def random_counted(seed):
    """Return a model with choices, a point, and an objective with a number of steps."""
    rng = np.random.default_rng([seed, 3])
    while True:
        model, point = random_model(rng, is_slow=False) if rng.random() < 0.5 else graph_and_point(rng)
        if model.graph.n_choices > model.graph.n_states:
            break
    return rng, model, point, random_asked(rng, model, KINDS[seed % len(KINDS)])


def counted(seed):
    """Return the same, and the question with a counter."""
    rng, model, point, objective = random_counted(seed)
    question = ask(objective, model)
    assert question.model.graph.memory is not None
    return rng, model, point, objective, question


def graph_and_point(rng):
    model = random_graph(rng, is_slow=False)
    return model, random_point(rng, model.space.vertices)


def wrong_optimum(seed):
    """Return the best value with a counter and the exact one, if they differ, or that of its policy does."""
    _, model, point, objective, question = counted(seed)
    rows = rows_at(model, point)
    best = best_value(model.graph, rows, objective)
    solution = solve(instantiate(question.model, point), question.objective, precision=1e-9)
    low, high = float(solution.lower[0]), float(solution.upper[0])
    table = pl.PolicyTable(question.model.graph, solution.policy)
    attained = value_of(model.graph, rows, objective, places_of(table, objective.n_steps))
    is_right = low - 1e-8 <= best <= high + 1e-8 and abs(attained - best) < 1e-8
    return None if is_right else (seed, low, float(best), high, float(attained))


@pytest.mark.slow
def test_the_best_policy_with_a_counter_is_the_best_of_all_that_count_steps():
    assert [wrong for seed in range(N_SOLVED) if (wrong := wrong_optimum(seed))] == []


def outside(seed, seen):
    """Yield the exact values of the certified policy that are outside of its bounds, at points of the set."""
    rng, model, point, objective, question = counted(seed)
    counts, confidence = random_data(rng, model, point), float(rng.choice([0.5, 0.999]))
    confidence_set = str(rng.choice(["likelihood", "likelihood", "interval"]))
    learned = pl.learn(model, counts, objectives=[objective], confidence=confidence, confidence_set=confidence_set)
    if learned.conflict is not None:
        return
    found = pl.conclude(learned, objective)
    place = places_of(found.policy, objective.n_steps)
    slope = policy_gradient(question.model, found.policy, question.objective, learned.likely_point)[1]
    seen["certified"] += found.upper - found.lower < 0.5
    seen["coupled"] += not found.how.not_coupled
    for at in points_of_set(rng, learned, [slope], 6):
        exact = value_of(model.graph, rows_at(model, at), objective, place)
        seen["points"] += 1
        if not found.lower <= exact <= found.upper:
            yield seed, found.lower, float(exact), found.upper


@pytest.mark.slow
def test_exact_values_of_certified_policies_lie_within_their_bounds_at_points_of_confidence_sets():
    seen = Counter()
    assert [wrong for seed in range(N_CERTIFIED) for wrong in outside(seed, seen)] == []
    assert seen["points"] > 3 * N_CERTIFIED
    assert min(seen["coupled"], seen["certified"]) > N_CERTIFIED / 4


@pytest.fixture
def few_choices(monkeypatch):
    """Every product with all choices is said to be too large."""
    monkeypatch.setattr("plumdp.model.question.with_memory", lambda model, objective: WhyNot("it is too large"))


def outside_of_few(seed, seen):
    """Yield the exact values of a policy that is sought on few choices that are outside of its bounds."""
    rng, model, point, objective = random_counted(seed)
    counts = random_data(rng, model, point)
    learned = pl.learn(model, counts, objectives=[objective], confidence=0.5)
    if learned.conflict is not None:
        return
    found = pl.conclude(learned, objective)
    place = places_of(found.policy, objective.n_steps)
    likely = dict(zip(model.space.names, map(Fraction, learned.likely_point.tolist()), strict=True))
    rows = rows_at(model, likely)
    attained, best = value_of(model.graph, rows, objective, place), best_value(model.graph, rows, objective)
    seen["good"] += abs(attained - best) <= 0.1 * (found.upper - found.lower)
    seen["points"] += 1
    for at in points_of_set(rng, learned, [np.ones(model.space.dimension)], 4):
        exact = value_of(model.graph, rows_at(model, at), objective, place)
        if not found.lower <= exact <= found.upper:
            yield seed, found.lower, float(exact), found.upper


@pytest.mark.slow
@pytest.mark.usefixtures("few_choices")
def test_policies_that_are_sought_on_few_choices_have_values_within_their_bounds_and_are_nearly_always_good():
    seen = Counter()
    assert [wrong for seed in range(N_FEW) for wrong in outside_of_few(seed, seen)] == []
    assert seen["points"] > N_FEW / 2
    assert seen["good"] > 0.8 * seen["points"]


def test_a_product_of_all_choices_is_the_whole_product():
    for seed in range(6):
        _, model, _, objective, question = counted(seed)
        keep = np.ones((objective.n_steps + 1, model.graph.n_choices), dtype=bool)
        product, lifted = memory.count_steps(model, objective, keep=keep)
        assert product.graph.fingerprint == question.model.graph.fingerprint
        assert digest(lifted) == digest(question.objective)


def counts_one_step_too_few(patch):
    """The run is over one step before the deadline."""
    right = memory._unbounded
    patch.setattr(memory, "_unbounded", lambda objective, graph, n_steps: right(objective, graph, n_steps - 1))


def starts_at_one(patch):
    """The counter has counted a step before the first one."""
    right = memory.remember
    patch.setattr(memory, "remember", lambda *given, words, allow: right(*given, initial=1))


def window_begins_late(patch):
    """A target in the first step of the window does not count."""
    right = memory._unbounded

    def wrong(objective, graph, n_steps):
        if isinstance(objective, Reach):
            objective = replace(objective, steps=(min(objective.steps[0] + 1, n_steps), n_steps))
        return right(objective, graph, n_steps)

    patch.setattr(memory, "_unbounded", wrong)


@pytest.mark.slow
@pytest.mark.parametrize("plant", [counts_one_step_too_few, starts_at_one, window_begins_late])
def test_a_counter_that_is_off_by_one_is_found(plant, monkeypatch):
    plant(monkeypatch)
    assert any(wrong_optimum(seed) for seed in range(40))
    if plant is not window_begins_late:  # which changes the values of few policies
        assert any([*outside(seed, Counter())] for seed in range(60))


FORMULAS = {
    "steps": 'P{d}=? [ !"avoid" U<={last} "target" ]',
    "window": 'P{d}=? [ !"avoid" U[{first},{last}] "target" ]',
    "steps and rewards": 'R{{"r"}}{d}=? [ C<={last} ]',
}


def as_drn(model, point, objective):
    """Return a model at a point in Storm's format."""
    graph = model.graph
    is_reach = isinstance(objective, Reach)
    labels = {"target": objective.target, "avoid": objective.avoid} if is_reach else {}
    rewards = (
        np.zeros(graph.n_states) if is_reach else objective.reward.state,
        np.zeros(graph.n_choices) if is_reach else objective.reward.choice,
    )
    import storm_models

    return storm_models.as_drn(graph, model.probabilities(point)[model.expression], labels, *rewards)


def test_storm_agrees_at_points(tmp_path):
    pytest.importorskip("stormpy")
    import storm_models

    n_compared = 0
    for seed in range(N_STORM):
        _, model, point, objective, question = counted(seed)
        text = FORMULAS.get(KINDS[seed % len(KINDS)])
        labels = isinstance(objective, Reward) or (objective.target.any() and objective.avoid.any())
        paid = isinstance(objective, Reach) or (objective.terms(model.graph).reward > 0).any()
        if text is None or not labels or not paid:
            continue
        first = objective.steps[0] if isinstance(objective, Reach) else 0
        asked = text.format(d=objective.direction, first=first, last=objective.n_steps)
        value = storm_models.storm_value(as_drn(model, point, objective), tmp_path / "model.drn", asked)
        known = solve(instantiate(question.model, point), question.objective, precision=1e-9)
        n_compared += 1
        assert value == pytest.approx(float(known.lower[0]), rel=1e-6, abs=1e-8), asked
    assert n_compared > N_STORM / 8
