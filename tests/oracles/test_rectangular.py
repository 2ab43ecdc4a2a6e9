"""Nature that picks points of a region, against exact games in which it picks one of the region's vertices.

At each choice nature's best point is a vertex of the region, so that the vertices, found in rational numbers by trying
all bases, make a game with finitely many moves. Small games are solved by going through all pairs of strategies, larger
ones, in which the goal is always reached, by improving strategies until nobody can. Everything is exact.

Bounds on the side that nature pulls to are those of certificates: they hold without any tolerance. On the other side
nature's vertices are floats, which may lie outside of the region by 1e-12 or so.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, product

import numpy as np
import pytest
from exact_values import (
    BEST,
    backup,
    best_choice,
    chain_values,
    choice_reward,
    choices_that_matter,
    merge,
    nature_direction,
    policy_key,
    settled_states,
    state_reward,
    step_rewards,
)
from random_pmdps import Problem, exact_vertices, random_intervals, random_problem
from tiers import size

import plumdp as pl
from plumdp.model.objectives import Reach, Reward
from plumdp.model.parametric import RewardStructure
from plumdp.region.build import build_region
from plumdp.region.conflict import Conflict
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.relaxation.relax import rectangular
from plumdp.solver.evaluate import evaluate
from plumdp.solver.solve import solve

pytestmark = pytest.mark.slow

PRECISION = 1e-7
INNER = 1e-9  # what nature's vertices may be off, in values
MOST_CHAINS = 300
SENSES = [(direction, nature) for direction in ("max", "min") for nature in ("robust", "optimistic")]


@dataclass(frozen=True, eq=False)
class Case:
    """A random model with nature's region, and what the vertices of the exact region give each choice."""

    problem: Problem
    imdp: IntervalMDP
    corners: list  # (n_choices): distinct distributions, successor → positive probability
    bounds: tuple  # lower and upper for each expression


def random_case(rng, *, most_chains=math.inf, **options):
    """Return a random case with at most so many pairs of a policy and a nature."""
    while True:
        problem = random_problem(rng, **options)
        bounds = random_intervals(rng, problem)
        model = problem.model
        region = build_region(model.space, model.expressions, *bounds)
        vertices = exact_vertices(model.space, model.expressions.polynomials, *bounds)
        assert not isinstance(region, Conflict)
        corners = [distributions(model, choice, vertices) for choice in range(model.graph.n_choices)]
        if n_chains(model.graph, corners) <= most_chains:
            return Case(problem, rectangular(model, region), corners, bounds)


def distributions(model, choice, points):
    """Return the distinct distributions of a choice at some points."""
    graph = model.graph
    transitions = range(graph.first_transition[choice], graph.first_transition[choice + 1])
    row = [(int(graph.successor[t]), None, None) for t in transitions]
    polynomials = [model.expressions.polynomials[model.expression[t]] for t in transitions]
    found = dict.fromkeys(tuple(f.evaluate(point) for f in polynomials) for point in points)
    return [merge(row, probabilities) for probabilities in found]


def n_chains(graph, corners):
    per_state = zip(graph.first_choice[:-1], graph.first_choice[1:], strict=True)
    return math.prod(sum(len(corners[c]) for c in range(a, b)) for a, b in per_state)


# The exact game


def policy_values(case, objective, nature):
    """Return policy → exact value of each state if nature does its best against it, going through all natures."""
    imdp, best = case.imdp, BEST[nature_direction(objective, nature)]
    settled = settled_states(imdp, objective)
    found = {}
    for policy in product(*choices_that_matter(imdp, settled)):
        earned = step_rewards(objective, policy)
        moves = [case.corners[c][:1] if settled[s] else case.corners[c] for s, c in enumerate(policy)]
        of_natures = [chain_values(chain, objective, earned) for chain in product(*moves)]
        found[policy] = [best(of_state) for of_state in zip(*of_natures, strict=True)]
    return found


def improved_values(case, objective, nature):
    """Return the exact value of each state, by improving strategies (Hoffman and Karp, 1966).

    In turn nature answers the agent's policy as well as it can, and the agent improves its policy. At the end no move
    of either is better; in games that end almost surely, or are discounted, only one vector of values is like that.
    """
    imdp, graph = case.imdp, case.imdp.graph
    sign = 1 if objective.direction == "max" else -1
    natures_sign = 1 if nature_direction(objective, nature) == "max" else -1
    policy, move = graph.first_choice[:-1].tolist(), [0] * graph.n_choices
    while True:
        chain = [case.corners[c][move[c]] for c in policy]
        values = chain_values(chain, objective, step_rewards(objective, policy))
        options = [[expected(row, values) for row in rows] for rows in case.corners]
        best_move = [improve(options[c], move[c], natures_sign) for c in range(graph.n_choices)]
        if any(best_move[c] != move[c] for c in policy):
            move = best_move
            continue
        move = best_move
        worth = choice_values(imdp, objective, [options[c][move[c]] for c in range(graph.n_choices)])
        new = [
            a + improve(worth[a:b], c - a, sign)
            for a, b, c in zip(graph.first_choice[:-1].tolist(), graph.first_choice[1:].tolist(), policy, strict=True)
        ]
        if new == policy:
            return values
        policy = new


def expected(row, values):
    return sum((p * values[j] for j, p in row.items()), Fraction(0))


def improve(options, current, sign):
    """Return the place of the best option, the current one if it is as good."""
    best = max(range(len(options)), key=lambda i: sign * options[i])
    return best if sign * options[best] > sign * options[current] else current


def choice_values(imdp, objective, expectations):
    """Return what each choice earns, plus the (discounted) expectation of what comes next."""
    if isinstance(objective, Reach):
        return expectations
    discount = 1 if objective.discount is None else objective.discount
    return [
        state_reward(objective, state) + choice_reward(objective, choice) + discount * expectations[choice]
        for choice, state in enumerate(imdp.graph.state_of_choice())
    ]


def first_step_values(case, objective, nature):
    """Return the exact values over finitely many steps: both may change their mind at each."""
    n_states = case.imdp.graph.n_states
    if isinstance(objective, Reward):
        values = [Fraction(0)] * n_states
        for _ in range(objective.steps):
            values = best_choice(case.imdp, objective, backup(case.imdp, objective, nature, case.corners, values))
        return values
    first, last = objective.steps
    values = [Fraction(int(there)) for there in objective.target]
    for step in range(last - 1, -1, -1):
        going_on = best_choice(case.imdp, objective, backup(case.imdp, objective, nature, case.corners, values))
        counts = objective.target & (step >= first)
        values = [
            Fraction(1) if counts[s] else Fraction(0) if objective.avoid[s] else going_on[s] for s in range(n_states)
        ]
    return values


# What may be wrong with a solution


def violations(solution, exact, objective, nature, *, must_close):
    """Return what is wrong with bounds, state by state; nothing is added to them on the side that nature pulls to."""
    rises = nature_direction(objective, nature) == "max"
    slack = [INNER * max(1, value) if math.isfinite(value) else 0 for value in exact]
    wrong = []
    for s, value in enumerate(exact):
        lower, upper = float(solution.lower[s]), float(solution.upper[s])
        if not lower - (slack[s] if rises else 0) <= value <= upper + (0 if rises else slack[s]):
            wrong.append(f"state {s}: {float(value)!r} is not in [{lower!r}, {upper!r}]")
        if must_close and not is_narrow(lower, upper):
            wrong.append(f"state {s}: [{lower}, {upper}] is wide, the value is {float(value)}")
    return wrong


def is_narrow(lower, upper):
    return lower == upper or upper - lower <= 2 * PRECISION * max(1, abs(lower))


def describe(case, objective, nature):
    """Return what is needed to see a case again."""
    graph, names = case.imdp.graph, case.problem.model.expressions.polynomials
    rows = [
        f"{graph.describe_choice(c)}: "
        + ", ".join(
            f"{names[case.imdp.expression[t]]} → {graph.successor[t]}"
            for t in range(graph.first_transition[c], graph.first_transition[c + 1])
        )
        for c in range(graph.n_choices)
    ]
    intervals = [f"{f} in [{a}, {b}]" for f, a, b in zip(names, *case.bounds, strict=True)]
    return "\n".join([*rows, *intervals, f"{objective}", f"{nature}"])


def kinds(case, rng):
    """Return an objective of each kind without a bound on steps."""
    target, nothing = case.problem.target, np.zeros_like(case.problem.target)
    avoid = rng.random(len(target)) < 0.2
    return {
        "reach": Reach(target, nothing, "max"),
        "until": Reach(target, avoid, "max"),
        "globally": Reach(target, nothing, "max", complement=True),
        "reward": Reward(case.problem.reward, "max", target),
        "total": Reward(case.problem.reward, "max"),
    }


KINDS = ["reach", "until", "globally", "reward", "total"]


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_contain_the_value_of_the_exact_game_and_the_policy_attains_them(kind):
    """All kinds of trouble: nature may drop transitions, on some faces of the region only; the goal may be missed."""
    rng = np.random.default_rng([20, KINDS.index(kind)])
    failures = []
    for _ in range(60):
        case = random_case(rng, most_chains=MOST_CHAINS, n_states=(3, 5))
        objective = kinds(case, rng)[kind]
        for direction, nature in SENSES:
            sense = replace(objective, direction=direction)
            of_policy = policy_values(case, sense, nature)
            exact = [BEST[direction](of_state) for of_state in zip(*of_policy.values(), strict=True)]
            solution = solve(case.imdp, sense, nature=nature, precision=PRECISION)
            wrong = violations(solution, exact, sense, nature, must_close=case.imdp.has_fixed_support())
            attained = of_policy[policy_key(case.imdp, sense, solution.policy)]
            wrong += attainment(solution, attained, exact, sense, nature)
            if wrong:
                failures.append("\n".join([*wrong, solution.status, describe(case, sense, nature)]))
    assert not failures, f"{len(failures)} of 240 fail, for instance\n" + "\n\n".join(failures[:3])


def attainment(solution, attained, exact, objective, nature):
    """Return where a policy fails to attain the bound that it is certified with, or is far from the best."""
    wrong, sign = [], 1 if objective.direction == "max" else -1
    bounds = solution.lower if sign > 0 else solution.upper
    for s, (mine, best, bound) in enumerate(zip(attained, exact, bounds.tolist(), strict=True)):
        slack = INNER * max(1, abs(bound)) if nature == "optimistic" and math.isfinite(bound) else 0
        if sign * mine < sign * bound - slack:
            wrong.append(f"state {s}: the policy attains {float(mine)!r}, which is not as good as {bound!r}")
        if solution.status == "converged" and mine != best and abs(mine - best) > 10 * PRECISION * max(1, best):
            wrong.append(f"state {s}: the policy attains {float(mine)} of {float(best)}")
    return wrong


def test_the_models_have_long_rows_and_zero_lower_bounds():
    """What the tests above go through is not all easy."""
    rng = np.random.default_rng(20)
    cases = [random_case(rng, most_chains=MOST_CHAINS, n_states=(3, 5)) for _ in range(60)]
    longer = [np.diff(case.imdp.graph.first_transition).max() > len(case.problem.model.space.names) for case in cases]
    assert sum(longer) > 30
    assert 15 < sum(case.imdp.has_fixed_support() for case in cases) < 45


# Larger models, in which the goal is always reached


@pytest.mark.parametrize("kind", ["until", "reward", "discounted"])
def test_values_of_models_that_end_almost_surely(kind):
    rng = np.random.default_rng([21, len(kind)])
    for _ in range(size(8, 40)):
        case = random_case(rng, n_states=(4, 8), least=Fraction(1, 100), sure=True)
        for direction, nature in SENSES:
            objective = {
                "until": Reach(case.problem.target, np.arange(case.imdp.graph.n_states) == 1, direction),
                "reward": Reward(case.problem.reward, direction, case.problem.target),
                "discounted": Reward(case.problem.reward, direction, discount=Fraction(9, 10)),
            }[kind]
            solution = solve(case.imdp, objective, nature=nature, precision=PRECISION)
            exact = improved_values(case, objective, nature)
            wrong = violations(solution, exact, objective, nature, must_close=True)
            assert not wrong, "\n".join([*wrong, describe(case, objective, nature)])


@pytest.mark.parametrize("kind", ["reach", "reward"])
def test_values_over_a_number_of_steps(kind):
    rng = np.random.default_rng([22, len(kind)])
    for _ in range(40):
        case = random_case(rng, n_states=(3, 6))
        steps = int(rng.integers(1, 6))
        for direction, nature in SENSES:
            objective = (
                Reach(case.problem.target, rng.random(len(case.problem.target)) < 0.2, direction, (steps // 2, steps))
                if kind == "reach"
                else Reward(case.problem.reward, direction, steps=steps)
            )
            solution = solve(case.imdp, objective, nature=nature)
            exact = first_step_values(case, objective, nature)
            wrong = violations(solution, exact, objective, nature, must_close=True)
            assert not wrong, "\n".join([*wrong, describe(case, objective, nature)])


@pytest.mark.parametrize("nature", ["robust", "optimistic"])
def test_values_of_policies_that_draw_their_choices(nature):
    """First the draw, then nature: each row of the chain is a mixture of rows that nature picks one by one."""
    rng = np.random.default_rng([23, len(nature)])
    for _ in range(size(8, 40)):
        case = random_case(rng, most_chains=MOST_CHAINS, n_states=(3, 5))
        weights = random_weights(rng, case.imdp.graph)
        for objective in (
            Reach(case.problem.target, np.zeros_like(case.problem.target), "max"),
            Reward(case.problem.reward, "min", case.problem.target),
        ):
            solution = evaluate(case.imdp, weights, objective, nature=nature, precision=PRECISION)
            exact = drawn_values(case, weights, objective, nature)
            wrong = violations(solution, exact, objective, nature, must_close=case.imdp.has_fixed_support())
            assert not wrong, "\n".join([*wrong, f"{weights}", describe(case, objective, nature)])


def random_weights(rng, graph):
    """Return the probabilities of choices, in eighths, some of them zero."""
    lengths = np.diff(graph.first_choice)
    return np.concatenate([rng.multinomial(8, np.full(n, 1 / n)) / 8 for n in lengths])


def drawn_values(case, weights, objective, nature):
    graph, best = case.imdp.graph, BEST[nature_direction(objective, nature)]
    settled = np.repeat(settled_states(case.imdp, objective), np.diff(graph.first_choice))
    moves = [rows[:1] if settled[c] or not weights[c] else rows for c, rows in enumerate(case.corners)]
    pays = choice_values(case.imdp, objective, [Fraction(0)] * graph.n_choices)
    earned = mixed(graph, weights, [{0: pay} for pay in pays])
    of_natures = [
        chain_values(mixed(graph, weights, rows), objective, [row.get(0, Fraction(0)) for row in earned])
        for rows in product(*moves)
    ]
    return [best(of_state) for of_state in zip(*of_natures, strict=True)]


def mixed(graph, weights, rows):
    """Return one row per state: those of its choices, mixed by their weights."""
    result = [{} for _ in range(graph.n_states)]
    for c, state in enumerate(graph.state_of_choice()):
        for j, p in rows[c].items():
            if weights[c]:
                result[state][j] = result[state].get(j, Fraction(0)) + Fraction(weights[c]) * p
    return result


# By hand


def explored(rows, *, space, goal):
    """Return the model of rows by state, each a list of (expression, successor); other states are sinks."""

    def step(state):
        return {"go": [(f, state._replace(at=to)) for f, to in rows.get(state.at, [(1, state.at)])]}

    return pl.explore(step, {"at": 0}, space=space, labels={"goal": lambda s: s.at == goal})


def by_name(model, values):
    """Return values by the variable of their state."""
    return dict(zip(model.graph.states["at"].tolist(), values.tolist(), strict=True))


def reach(model, direction="max"):
    return Reach(model.labels["goal"], np.zeros(model.graph.n_states, bool), direction)


def region_of(model, intervals):
    region = build_region(model.space, list(intervals), *np.array(list(intervals.values()), dtype=float).T)
    assert not isinstance(region, Conflict)
    return region


A, B, C = pl.parameters("a", "b", "c")
FOUR = {0: [(A, 1), (B, 2), (C, 4), (1 - A - B - C, 5)], 1: [(1, 3)], 2: [(1, 3)], 4: [(1, 6)], 5: [(1, 6)]}
SIMPLEX = pl.ParameterSpace.simplex("a", "b", "c")


@pytest.mark.parametrize(("direction", "nature"), SENSES)
def test_nature_cannot_drop_two_transitions_of_which_the_region_keeps_one(direction, nature):
    """a + b is known to be 1/4, a and b are not: the goal has a chance of 1/4, though each transition may vanish.

    Interval by interval both may vanish, and the goal would have a chance of 0 to 1/2.
    """
    model = explored(FOUR, space=SIMPLEX, goal=3)
    imdp = rectangular(model, region_of(model, {A + B: (0.25, 0.25)}))
    assert not imdp.has_fixed_support()
    solution = solve(imdp, reach(model, direction), nature=nature)
    assert solution.status == "converged"
    assert by_name(model, solution.lower)[0] == pytest.approx(0.25, abs=1e-6)
    assert by_name(model, solution.upper)[0] == pytest.approx(0.25, abs=1e-6)


@pytest.mark.parametrize("nature", ["robust", "optimistic"])
def test_stopping_early_breaks_no_bound_where_transitions_may_vanish(nature):
    """As above, with a loop before the goal that one sweep does not settle; from there it is reached almost surely."""
    rows = {**FOUR, 3: [(C / 2, 7), (1 - C / 2, 3)]}
    model = explored(rows, space=SIMPLEX, goal=7)
    imdp = rectangular(model, region_of(model, {A + B: (0.25, 0.25), C: (0.25, 0.5)}))
    for max_sweeps in (1, 2, 5, 100_000):
        for direction in ("max", "min"):
            solution = solve(imdp, reach(model, direction), nature=nature, max_sweeps=max_sweeps)
            assert by_name(model, solution.lower)[0] <= 0.25 + INNER
            assert by_name(model, solution.upper)[0] >= 0.25 - INNER


def test_the_cost_is_finite_at_a_point_that_avoids_the_trap_and_infinite_at_others():
    """The trap has the chance a in [0, 1/4], the goal b in [1/4, 1/2], the loop the rest; each step costs 1.

    With nature a = 0 and b = 1/2: two steps. Against it the trap is possible: infinite. Where a is known to be positive
    it is infinite with nature too.
    """
    model = explored({0: [(A, 1), (B, 2), (1 - A - B, 0)]}, space=pl.ParameterSpace.unit("a", "b"), goal=2)
    costs = RewardStructure(np.ones(model.graph.n_states), None)
    objective = Reward(costs, "min", model.labels["goal"])
    may, must = (rectangular(model, region_of(model, {A: (low, 0.25), B: (0.25, 0.5)})) for low in (0, 0.125))
    best = solve(may, objective, nature="optimistic")
    assert by_name(model, best.lower)[0] == pytest.approx(2, abs=1e-5)
    assert solve(may, objective, nature="robust").upper[0] == math.inf
    for nature in ("robust", "optimistic"):
        surely = solve(must, objective, nature=nature)
        assert by_name(model, surely.lower)[0] == by_name(model, surely.upper)[0] == math.inf


@pytest.mark.parametrize("exponent", [20, 54, 60, 100])
def test_a_chance_of_two_outcomes_may_be_as_small_as_floats_go(exponent):
    """The goal has a chance of at most 2^-e, which is lost if one minus it is rounded to one."""
    most = Fraction(1, 2**exponent)
    model = explored({0: [(A, 1), (1 - A, 2)]}, space=pl.ParameterSpace.box({"a": (0, most)}), goal=1)
    imdp = rectangular(model, region_of(model, {A: (0, 1)}))
    solution = solve(imdp, reach(model), nature="optimistic")
    assert most <= Fraction(by_name(model, solution.upper)[0]) <= most + Fraction(1, 10**14)


# The negative controls: a region that is a little too small must be noticed


def noticed(tamper):
    """Yield the cases among 40 that a wrong region gives wrong bounds for."""
    rng = np.random.default_rng(24)
    for number in range(40):
        case = random_case(rng, n_states=(4, 6), least=Fraction(1, 100), sure=True)
        wrong = []
        for direction, nature in SENSES:
            objective = Reward(case.problem.reward, direction, case.problem.target)
            solution = solve(tamper(case), objective, nature=nature, precision=PRECISION)
            exact = improved_values(case, objective, nature)
            wrong += violations(solution, exact, objective, nature, must_close=True)
        if wrong:
            yield number


def without_a_vertex(case):
    """Return nature without the first of its vertices, as if it had been overlooked."""
    rows = case.imdp.region
    table = rows.vertices
    if len(table) < 3:
        return case.imdp
    place = np.arange(-1, len(table) - 1)
    neighbours = np.where(table.neighbours > 0, place[table.neighbours], -1)[1:].astype(np.int32)
    arrays = {name: getattr(table, name)[1:] for name in ("vertices", "edges", "margin", "reach")}
    arrays["reach"] = np.zeros_like(arrays["reach"])  # the safety net for what is not known
    return replace(case.imdp, region=replace(rows, vertices=replace(table, neighbours=neighbours, **arrays)))


def tightened(case):
    """Return nature with intervals whose ends are moved inwards by 1e-5."""
    model, (lower, upper) = case.problem.model, case.bounds
    less = 1e-5 * model.expressions.is_unknown
    region = build_region(model.space, model.expressions, lower + less, upper - less)
    return case.imdp if isinstance(region, Conflict) else rectangular(model, region)


@pytest.mark.parametrize("tamper", [without_a_vertex, tightened])
def test_a_region_that_is_too_small_is_noticed(tamper):
    assert len([*islice(noticed(tamper), 10)]) == 10


def test_the_right_region_is_not():
    assert [*noticed(lambda case: case.imdp)] == []
