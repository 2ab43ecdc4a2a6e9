"""Average rewards in the long run: against exact chains, all policies, Storm, and single points of a region."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
import stormpy
from coupled_points import points_of, random_ellipsoid, rows_at
from tiers import size

import plumdp
from plumdp.base.errors import ModelError, WhyNot
from plumdp.data.returns import range_of_returns
from plumdp.exchange.read_intervals import model_at
from plumdp.model.objectives import Reward
from plumdp.model.parametric import RewardStructure
from plumdp.region.build import build_region
from plumdp.relaxation.relax import expression_wise, rectangular
from plumdp.solver.coupled import box_expansions, by_cycles
from plumdp.solver.coupled.bounds import find_coupled_bounds
from plumdp.solver.coupled.brackets import Approximation
from plumdp.solver.coupled.gradient import policy_gradient
from plumdp.solver.coupled.pieces import find_by_pieces
from plumdp.stages import evaluate, instantiate, solve

pytestmark = pytest.mark.slow
N_DIFFERENCES = size(12, 600)


def random_model(rng, *, comes_back=True):
    """Return a model of a few states and two parameters; from every state some step may lead back to the first one."""
    n = int(rng.integers(2, 6))
    p, q = plumdp.parameters("p", "q")
    first = [p, q, Fraction(1, 3), p * q, 1 - p, (p + q) / 2]

    def row(state):
        chance = first[rng.integers(len(first))]
        back = int(rng.integers(n)) if not comes_back or rng.random() < 0.3 else 0
        other = int(rng.choice([each for each in range(n) if each != back]))
        return [(chance, {"s": back}), (1 - chance, {"s": other})]

    rows = {s: {f"a{k}": row(s) for k in range(rng.integers(1, 4))} for s in range(n)}
    return plumdp.explore(
        lambda state: {name: [(f, state._replace(**to)) for f, to in each] for name, each in rows[state.s].items()},
        {"s": 0},
        space=plumdp.ParameterSpace.box({"p": (0.1, 0.9), "q": (0.1, 0.9)}),
    )


def random_reward(rng, graph):
    return RewardStructure(rng.integers(-3, 4, graph.n_states) / 4, rng.integers(0, 5, graph.n_choices) / 4)


def exact_average(model, policy, objective, rows):
    """Return the average of a chain by a distribution that its steps leave as it is, or None if there are several."""
    graph, reward = model.graph, objective.terms(model.graph).reward
    reached, queue = {graph.initial_state}, [graph.initial_state]
    while queue:
        choice = policy[queue.pop()]
        for t in range(*graph.first_transition[choice : choice + 2]):
            if rows[t] and int(graph.successor[t]) not in reached:
                reached.add(int(graph.successor[t]))
                queue.append(int(graph.successor[t]))
    states = sorted(reached)
    place = {state: i for i, state in enumerate(states)}
    matrix = [[Fraction(-(i == j)) for j in range(len(states))] for i in range(len(states))]
    for state in states:
        for t in range(*graph.first_transition[policy[state] : policy[state] + 2]):
            matrix[place[int(graph.successor[t])]][place[state]] += rows[t]
    equations = [[*row, Fraction(0)] for row in matrix] + [[Fraction(1)] * (len(states) + 1)]
    for column in range(len(states)):  # by elimination
        pivot = next((i for i in range(column, len(equations)) if equations[i][column]), None)
        if pivot is None:
            return None
        equations[column], equations[pivot] = equations[pivot], equations[column]
        top = equations[column] = [value / equations[column][column] for value in equations[column]]
        for i, row in enumerate(equations):
            if i != column and row[column]:
                equations[i] = [a - row[column] * b for a, b in zip(row, top, strict=True)]
    share = [equations[i][-1] for i in range(len(states))]
    return sum(x * Fraction(float(reward[policy[state]])) for x, state in zip(share, states, strict=True))


def all_policies(graph):
    return product(*(range(a, b) for a, b in zip(graph.first_choice[:-1], graph.first_choice[1:], strict=True)))


@pytest.mark.parametrize("seed", range(size(40, 1000)))
def test_the_solver_finds_the_best_of_all_policies(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, comes_back=seed % 4 > 0)
    point = {"p": Fraction(int(rng.integers(20, 80)), 100), "q": Fraction(int(rng.integers(20, 80)), 100)}
    objective = Reward(random_reward(rng, model.graph), rng.choice(["max", "min"]), average=True)
    rows = rows_at(model, point)
    values = [exact_average(model, policy, objective, rows) for policy in all_policies(model.graph)]
    mdp = instantiate(model, point)
    solution = solve(mdp, objective, max_sweeps=2_000)
    low, high = solution.lower[0], solution.upper[0]
    if None in values:  # several recurrent classes: bounds hold of those that have one
        values = [value for value in values if value is not None]
        is_max = objective.direction == "max"
        assert all(float(value) <= high + 1e-12 if is_max else float(value) >= low - 1e-12 for value in values)
        return
    best = float(max(values) if objective.direction == "max" else min(values))
    assert low - 1e-12 <= best <= high + 1e-12
    assert high - low <= 1.0001e-6 * max(1, abs(low))  # the precision is relative above 1
    mine = float(exact_average(model, solution.policy, objective, rows))
    assert abs(mine - best) <= 2e-6
    of_policy = evaluate(mdp, solution.policy, objective)
    assert of_policy.lower[0] - 1e-12 <= mine <= of_policy.upper[0] + 1e-12


@pytest.mark.parametrize("seed", range(size(12, 1000)))
def test_bounds_hold_at_every_point_of_a_region(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    objective = Reward(random_reward(rng, model.graph), "max", average=True)
    region = random_ellipsoid(rng, model.space, widest=0.15)
    policy = np.array([rng.integers(a, b) for a, b in pairwise(model.graph.first_choice.tolist())])
    uncertain = (rectangular if seed % 2 else expression_wise)(model, region)
    bounds = find_coupled_bounds(model, policy, objective, region, uncertain)
    on_pieces = find_by_pieces(model, policy, objective, region, uncertain)
    against = [evaluate(uncertain, policy, objective, nature=nature) for nature in ("robust", "optimistic")]
    for point in points_of(rng, model, region, 12):
        value = exact_average(model, policy, objective, rows_at(model, point))
        if value is None:
            assert isinstance(bounds, WhyNot)
            assert isinstance(on_pieces, WhyNot)
            continue
        for found in (bounds, on_pieces):
            assert isinstance(found, WhyNot) or Fraction(found.lower) <= value <= Fraction(found.upper)
        assert Fraction(float(against[0].lower[0])) <= value <= Fraction(float(against[1].upper[0]))


def _misses(patch):
    """Return how many models have an exact value outside of the coupled bounds, with an error planted."""
    misses = 0
    with pytest.MonkeyPatch.context() as monkeypatch:
        patch(monkeypatch)
        for seed in range(10):
            rng = np.random.default_rng(seed)
            model = random_model(rng)
            objective = Reward(random_reward(rng, model.graph), "max", average=True)
            region = random_ellipsoid(rng, model.space, widest=0.15)
            policy = model.graph.first_choice[:-1]
            bounds = find_coupled_bounds(model, policy, objective, region, rectangular(model, region))
            values = (
                exact_average(model, policy, objective, rows_at(model, p)) for p in points_of(rng, model, region, 8)
            )
            misses += not isinstance(bounds, WhyNot) and any(
                value is not None and not Fraction(bounds.lower) <= value <= Fraction(bounds.upper) for value in values
            )
    return misses


def dividing_by_too_much(monkeypatch):
    """The lower end is divided by a length that no cycle has."""
    monkeypatch.setattr(
        "plumdp.solver.coupled.bounds.average_of",
        lambda less, excess, length: (less + excess[0] / 1e3, less + excess[1]),
    )


def counting_from_the_start(monkeypatch):
    """Rewards before the first visit count as if they belonged to the cycle."""
    real = by_cycles.cycles_of

    def cycles_of(model, policy, objective, point):
        cycles = real(model, policy, objective, point)
        if not isinstance(cycles, WhyNot):
            earned = objective.terms(model.graph).earned.at(cycles.model.graph.memory.choice)
            cycles = replace(cycles, earned=earned)
        return cycles

    monkeypatch.setattr("plumdp.solver.coupled.bounds.cycles_of", cycles_of)


@pytest.mark.parametrize("planted", [dividing_by_too_much, counting_from_the_start])
def test_a_planted_error_is_found(planted):
    assert _misses(planted) > 0


@pytest.mark.parametrize("seed", range(size(6, 1000)))
def test_storm_agrees(seed, tmp_path):
    rng = np.random.default_rng(seed)
    model, point = random_model(rng), {"p": Fraction(1, 4), "q": Fraction(2, 5)}
    earned = RewardStructure(None, rng.integers(0, 9, model.graph.n_choices) / 4)
    model = replace(model, rewards={"earned": earned})
    plumdp.exchange.write_interval_model(model_at(model, point), tmp_path / "model.umb")
    formula = stormpy.parse_properties('R{"earned"}max=? [ LRA ]')[0]
    built = stormpy.build_model_from_umb(str(tmp_path / "model.umb"))
    theirs = stormpy.model_checking(built, formula).get_value_vector()[0]
    ours = solve(instantiate(model, point), plumdp.parse_property('R{"earned"}max=? [ LRA ]', model))
    assert ours.lower[0] - 1e-5 <= theirs <= ours.upper[0] + 1e-5


def test_states_that_take_turns_have_an_average():
    model = plumdp.explore(lambda s: {"go": [(1, s._replace(x=1 - s.x))]}, {"x": 0}, labels={"one": lambda s: s.x == 1})
    objective = plumdp.parse_property('LRA=? [ "one" ]', model)
    exact = solve(instantiate(model, {}), objective)
    assert exact.lower[0] <= 0.5 <= exact.upper[0] <= exact.lower[0] + 1e-6


def test_sweeps_end_where_runs_may_end_up_in_several_sets_of_states():
    """From the first state runs go to states that earn 0, 1 or 2 forever: no number is the average of all."""
    third = Fraction(1, 3)
    model = plumdp.explore(
        lambda s: {"go": [(third, s._replace(x=x)) for x in (1, 2, 3)] if s.x == 0 else [(1, s)]},
        {"x": 0},
        space=plumdp.ParameterSpace.box({}),
        rewards={"r": lambda s: float(max(s.x - 1, 0))},
    )
    found = solve(instantiate(model, {}), Reward(model.rewards["r"], "max", average=True))
    assert found.lower[0] <= 1 <= found.upper[0]
    assert found.sweeps < 5000


def test_the_gradient_is_that_of_the_average():
    rng = np.random.default_rng(1)
    model = random_model(rng)
    objective = Reward(random_reward(rng, model.graph), "max", average=True)
    policy, step = model.graph.first_choice[:-1], Fraction(1, 10**6)
    point = {"p": Fraction(2, 5), "q": Fraction(1, 2)}
    value, gradient = policy_gradient(model, policy, objective, np.array([0.4, 0.5]))
    assert value == pytest.approx(float(exact_average(model, policy, objective, rows_at(model, point))))
    for name, slope in zip(("p", "q"), gradient, strict=True):
        ends = [
            exact_average(model, policy, objective, rows_at(model, {**point, name: point[name] + d}))
            for d in (step, -step)
        ]
        assert slope == pytest.approx(float((ends[0] - ends[1]) / (2 * step)), abs=1e-6)


def test_differences_hold_at_points_of_the_region():
    model = random_model(np.random.default_rng(3))
    objective = Reward(random_reward(np.random.default_rng(3), model.graph), "max", average=True)
    truth = {"p": Fraction(2, 5), "q": Fraction(1, 2)}
    learned = plumdp.learn(model, plumdp.simulate(model, truth, 200, rng=1, max_steps=50))
    first, last = model.graph.first_choice[:-1], model.graph.first_choice[1:] - 1
    values = [exact_average(model, policy, objective, rows_at(model, truth)) for policy in (first, last)]
    bounds = plumdp.difference(learned, objective, first, last)
    assert bounds.lower <= values[0] - values[1] <= bounds.upper
    assert bounds.not_coupled == ""


def wrong_difference(seed, seen, find=find_coupled_bounds):
    """Return the exact differences of two averages outside of their coupled bounds, at points of a region."""
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    objective = Reward(random_reward(rng, model.graph), "max", average=True)
    region = random_ellipsoid(rng, model.space, widest=0.1)
    uncertain, ends = rectangular(model, region), [*pairwise(model.graph.first_choice.tolist())]
    policies = [np.array([rng.integers(a, b) for a, b in ends]) for _ in range(2)]
    bounds = find(model, policies[0], objective, region, uncertain, less=policies[1])
    if isinstance(bounds, WhyNot):
        return []
    alone = [find(model, policy, objective, region, uncertain) for policy in policies]
    seen["bounded"] += 1
    seen["narrower"] += bounds.upper - bounds.lower < sum(each.upper - each.lower for each in alone)
    wrong = []
    for point in points_of(rng, model, region, 8):
        values = [exact_average(model, policy, objective, rows_at(model, point)) for policy in policies]
        if not Fraction(bounds.lower) <= values[0] - values[1] <= Fraction(bounds.upper):
            wrong.append((seed, bounds, [*map(float, values)]))
    return wrong


@pytest.mark.parametrize("find", [find_coupled_bounds, find_by_pieces])
def test_coupled_differences_of_averages_hold_at_every_point_of_a_region(find):
    seen = Counter()
    assert [wrong for seed in range(N_DIFFERENCES) for wrong in wrong_difference(seed, seen, find)] == []
    assert seen["bounded"] > N_DIFFERENCES / 2
    assert seen["narrower"] > 0.8 * seen["bounded"]


def test_a_difference_with_cycles_that_are_too_long_is_found(monkeypatch):
    right = Approximation.divided_by
    monkeypatch.setattr(Approximation, "divided_by", lambda self, number: right(self, 10 * number))
    assert any(wrong_difference(seed, Counter()) for seed in range(N_DIFFERENCES))


def test_an_average_on_pieces_with_cycles_that_are_too_long_is_found(monkeypatch):
    """State 0 is left with probability p and state 1 at once, so that it has p / (1 + p) of the time.

    Errors are divided by a length that no cycle has.
    """
    p = plumdp.parameters("p")[0]

    def step(s):
        return {"go": [(p, s._replace(x=1)), (1 - p, s)] if s.x == 0 else [(1, s._replace(x=0))]}

    space = plumdp.ParameterSpace.box({"p": ("1/10", "9/10")})
    model = plumdp.explore(step, {"x": 0}, space=space, rewards={"one": lambda s: s.x})
    objective, region = Reward(model.rewards["one"], "max", average=True), build_region(space, (), (), ())
    sought = model, [0, 1], objective, region, rectangular(model, region)
    exact = Fraction(1, 11), Fraction(9, 19)

    def holds():
        found = find_by_pieces(*sought)
        return found.lower <= exact[0] and exact[1] <= found.upper

    assert holds()
    growth = box_expansions._BoxRows.growth
    monkeypatch.setattr("plumdp.solver.coupled.pieces._MOST_PIECES", 8)
    assert holds()
    is_length = iter([False, False, False, True] * 100)  # margins are asked for three times
    monkeypatch.setattr(
        box_expansions._BoxRows, "growth", lambda self, m: growth(self, m) - (1 - 1e-3 if next(is_length) else 0)
    )
    assert not holds()


def test_a_policy_that_draws_has_the_average_of_its_mixed_rows():
    model = random_model(np.random.default_rng(5))
    graph, objective = model.graph, Reward(random_reward(np.random.default_rng(5), model.graph), "max", average=True)
    point = {"p": Fraction(2, 5), "q": Fraction(1, 2)}
    n_choices, owner = np.diff(graph.first_choice), graph.state_of_choice()
    matrix, earned = np.zeros((graph.n_states, graph.n_states)), np.zeros(graph.n_states)
    np.add.at(earned, owner, objective.terms(graph).reward / n_choices[owner])
    source = owner[graph.choice_of_transition()]
    np.add.at(matrix, (source, graph.successor), np.array(rows_at(model, point), dtype=float) / n_choices[source])
    share = np.linalg.matrix_power(matrix / 2 + np.eye(graph.n_states) / 2, 10_000)[0]
    drawn = evaluate(instantiate(model, point), "uniform", objective)
    assert drawn.lower[0] - 1e-9 <= share @ earned <= drawn.upper[0] + 1e-9
    assert drawn.upper[0] - drawn.lower[0] <= 1e-5


def test_returns_of_runs_refuse_averages():
    model = random_model(np.random.default_rng(1))
    objective = Reward(random_reward(np.random.default_rng(1), model.graph), "max", average=True)
    certificate = plumdp.certify(
        model, plumdp.simulate(model, {"p": 0.4, "q": 0.5}, 50, rng=1, max_steps=20), objective
    )
    with pytest.raises(ModelError, match="an average in the long run is not the mean of what single runs earn"):
        range_of_returns(objective, model, model.graph, certificate.policy, None)


@pytest.mark.parametrize("policy", ["only", "drawn"])
def test_learned_rewards_have_averages(policy):
    p, pay = plumdp.parameters("p", "pay")
    model = plumdp.explore(
        lambda s: {"go": [(p, s._replace(x=1)), (1 - p, s)]} if s.x == 0 else {"back": [(1, s._replace(x=0))]},
        {"x": 0},
        space=plumdp.ParameterSpace.box({"p": (0.1, 0.9), "pay": (0, 4)}),
        choice_rewards={"cost": lambda s, action: pay if action == "go" else 1},
    )
    objective, rng = plumdp.parse_property('R{"cost"}=? [ S ]', model), np.random.default_rng(7)
    region = random_ellipsoid(rng, model.space, widest=0.1)
    chosen = model.graph.first_choice[:-1] if policy == "only" else np.ones(2)
    uncertain = rectangular(model, region)
    bounds = find_coupled_bounds(model, chosen, objective, region, uncertain)
    ends = [evaluate(uncertain, chosen, objective, nature=nature) for nature in ("robust", "optimistic")]
    low, high = min(float(end.lower[0]) for end in ends), max(float(end.upper[0]) for end in ends)
    points = points_of(rng, model, region, 40)
    assert len(points) > 10
    for point in points:
        value = (point["pay"] + point["p"]) / (1 + point["p"])
        assert Fraction(bounds.lower) <= value <= Fraction(bounds.upper)
        assert Fraction(low) <= value <= Fraction(high)
