"""Models whose support is known: nature keeps every transition possible, so nothing can be stopped forever."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from exact_values import can_reach
from random_models import model_of, random_case
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

import plumdp as pl
from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.known_support import end_components

GOAL, TRAP = [[(1, 1, 1)]], [[(2, 1, 1)]]  # states 1 and 2 of the small models
SENSES = [(direction, nature) for direction in ("max", "min") for nature in ("robust", "optimistic")]


def mask(imdp, *states):
    return np.isin(np.arange(imdp.graph.n_states), states)


def reach(imdp, direction, *, target=(1,), avoid=(), **options):
    return pl.model.Reach(mask(imdp, *target), mask(imdp, *avoid), direction, **options)


def earn(imdp, direction, choice, *, target=None, **options):
    reward = RewardStructure(None, np.array(choice, dtype=np.float64))
    return pl.model.Reward(reward, direction, None if target is None else mask(imdp, *target), **options)


def brackets(solution, state, value):
    """Return whether the bounds contain the value, and tightly."""
    lower, upper = solution.lower[state], solution.upper[state]
    return lower == value == upper or (lower <= value <= upper and upper - lower <= 1e-6 * max(1, value))


def both(states):
    return model_of(states), model_of(states, known_support=True)


def test_a_loop_is_left_one_day_if_leaving_is_possible():
    """State 0 loops or goes to the goal, both with [0, 1]: surely reached if that is possible, else perhaps never."""
    unknown, known = both([[[(0, 0, 1), (1, 0, 1)]], GOAL])
    assert pl.stages.solve(unknown, reach(unknown, "max")).upper.tolist() == [0, 1]
    assert pl.stages.solve(known, reach(known, "max")).lower.tolist() == [1, 1]
    assert pl.stages.solve(known, reach(known, "min"), nature="optimistic").lower.tolist() == [1, 1]
    assert pl.stages.solve(known, reach(known, "max", complement=True), nature="optimistic").upper.tolist() == [0, 0]


@pytest.mark.slow
def test_one_way_out_is_as_good_as_another_but_for_where_it_leads():
    """States 0 and 3 may pass to each other; 0 leaves for the goal with 1/4 or so, 3 with 1/2; else they are lost.

    So both have 1/2: state 0 goes to state 3, though nature would rather not let it.
    """
    _, known = both(
        [
            [[(1, 0.25, 0.25), (2, 0.75, 0.75)], [(0, 0, 1), (3, 0, 1)]],
            GOAL,
            TRAP,
            [[(1, 0.5, 0.75), (2, 0.25, 0.5)], [(0, 0, 1), (3, 0, 1)]],
        ]
    )
    solution = pl.stages.solve(known, reach(known, "max"))
    assert brackets(solution, 0, 0.5)
    assert brackets(solution, 3, 0.5)
    assert solution.policy[[0, 3]].tolist() == [1, 4]


def test_a_transition_that_may_lead_to_infinity_does_so():
    """Choice 0 costs 5 and leads to goal or trap, both with [0, 1]; choice 1 costs 9 and leads to the goal.

    Nature could help by dropping the trap: 5. If the trap is possible, choice 0 misses the goal sometimes: 9.
    """
    unknown, known = both([[[(1, 0, 1), (2, 0, 1)], [(1, 1, 1)]], GOAL, TRAP])
    costs = [5, 9, 0, 0]
    assert brackets(pl.stages.solve(unknown, earn(unknown, "min", costs, target=(1,)), nature="optimistic"), 0, 5)
    solution = pl.stages.solve(known, earn(known, "min", costs, target=(1,)), nature="optimistic")
    assert brackets(solution, 0, 9)
    assert solution.policy[0] == 1
    assert pl.stages.solve(known, earn(known, "max", costs, target=(1,))).lower[0] == np.inf


@pytest.mark.parametrize("nature", ["robust", "optimistic"])
def test_waiting_for_free_is_no_way_to_save_the_fare(nature):
    """States 0 and 3 pass to each other for nothing; the fare to the goal is 7 from state 0, 3 from state 3."""
    _, known = both([[[(0, 0, 1), (3, 0, 1)], [(1, 1, 1)]], GOAL, TRAP, [[(0, 0, 1), (3, 0, 1)], [(1, 1, 1)]]])
    solution = pl.stages.solve(known, earn(known, "min", [0, 7, 0, 0, 0, 3], target=(1,)), nature=nature)
    assert brackets(solution, 0, 3)
    assert brackets(solution, 3, 3)
    assert solution.policy[[0, 3]].tolist() == [0, 5]


def test_a_loop_of_nature_without_reward_earns_nothing_but_delays_nothing():
    """State 0 earns 2 and goes to state 3, which loops or goes to the goal, both with [0, 1], for nothing.

    Against everybody 2: nature may stay in state 3 as long as it likes, but not forever. If it can, the goal may be
    missed and the reward is infinite.
    """
    unknown, known = both([[[(3, 1, 1)]], GOAL, TRAP, [[(3, 0, 1), (1, 0, 1)]]])
    for direction, nature in SENSES:
        assert brackets(pl.stages.solve(known, earn(known, direction, [2, 0, 0, 0], target=(1,)), nature=nature), 0, 2)
    assert pl.stages.solve(unknown, earn(unknown, "min", [2, 0, 0, 0], target=(1,))).upper[0] == np.inf


def test_total_rewards_may_be_refused_by_staying():
    """States 0 and 3 pass to each other for nothing. State 0 may also earn 4 and go to the goal or to 3, a half each.

    So it earns 4 twice on average, 8, or stays and earns 0. State 4 earns 1 and loops or goes on to state 0, both with
    [0, 1]: 1 more if nature wants it small; if it wants it large there is no end to it.
    """
    _, known = both(
        [
            [[(0, 0, 1), (3, 0, 1)], [(1, 0.5, 0.5), (3, 0.5, 0.5)]],
            GOAL,
            TRAP,
            [[(0, 0, 1), (3, 0, 1)]],
            [[(4, 0, 1), (0, 0, 1)]],
        ]
    )
    rewards = [0, 4, 0, 0, 0, 1]
    expected = {("max", "robust"): (8, 9), ("max", "optimistic"): (8, np.inf)}
    expected |= {("min", "robust"): (0, np.inf), ("min", "optimistic"): (0, 1)}
    for (direction, nature), (waiting, starting) in expected.items():
        solution = pl.stages.solve(known, earn(known, direction, rewards), nature=nature)
        assert brackets(solution, 0, waiting)
        assert brackets(solution, 4, starting)


@pytest.mark.parametrize("upper", [0.0, 0.5])
def test_what_cannot_have_a_chance_is_no_known_support(upper):
    """The trap has [1, 1], so the goal gets nothing, whatever its upper bound."""
    imdp = model_of([[[(1, 0, upper), (2, 1, 1)]], GOAL, TRAP], known_support=True)
    for direction, nature in SENSES:
        assert pl.stages.solve(imdp, reach(imdp, direction), nature=nature).upper[0] == 0


def test_given_and_drawn_policies_are_worth_what_known_support_makes_of_them():
    """Choice 0 loops or goes to the goal, choice 1 to goal or trap with 1/2 each, choice 2 to the trap.

    Choice 0 gives 1. Choices 0 and 1 with equal weights: the loop is left through both, at worst through choice 1 only.
    """
    states = [[[(0, 0, 1), (1, 0, 1)], [(1, 0.5, 0.5), (2, 0.5, 0.5)], [(2, 1, 1)]], GOAL, TRAP]
    imdp = model_of(states, known_support=True)
    assert brackets(pl.stages.evaluate(imdp, [0, 3, 4], reach(imdp, "max")), 0, 1)
    assert brackets(pl.stages.evaluate(imdp, [0.5, 0.5, 0, 1, 1], reach(imdp, "max")), 0, 0.5)
    assert brackets(pl.stages.evaluate(imdp, [0.5, 0.5, 0, 1, 1], reach(imdp, "max"), nature="optimistic"), 0, 0.75)


@pytest.mark.parametrize("options", [{"steps": 9}, {"discount": Fraction(1, 2)}])
def test_over_few_steps_or_with_a_discount_the_support_is_no_matter(options):
    rng = np.random.default_rng(5)
    for _ in range(20):
        case = random_case(rng)
        for direction, nature in SENSES:
            objective = pl.model.Reward(case.reward, direction, **options)
            unknown = pl.stages.solve(case.imdp, objective, nature=nature)
            known = pl.stages.solve(replace(case.imdp, known_support=True), objective, nature=nature)
            assert known.lower.tolist() == unknown.lower.tolist()
            assert known.upper.tolist() == unknown.upper.tolist()


def ring(n):
    """Return a ring of n states to step around or wait in, both with [0, 1], and two ways out: at 0 and half-way round.

    The way out at 0 leads to the goal with 1/4, the other with 1/2; else to the trap. Goal and trap are n and n + 1.
    """
    step = [[[(s, 0, 1), ((s + 1) % n, 0, 1)]] for s in range(n)]
    step[0].append([(n, 0.25, 0.25), (n + 1, 0.75, 0.75)])
    step[n // 2].append([(n, 0.5, 0.5), (n + 1, 0.5, 0.5)])
    return model_of([*step, [[(n, 1, 1)]], [[(n + 1, 1, 1)]]], known_support=True)


def test_a_large_end_component_is_left_by_its_best_way_from_everywhere():
    """All of the ring has 1/2, and the policy attains it."""
    n = 20_000
    imdp = ring(n)
    objective = reach(imdp, "max", target=(n,))
    solution = pl.stages.solve(imdp, objective)
    worth = pl.stages.evaluate(imdp, solution.policy, objective)
    for bounds in (solution, worth):
        assert (bounds.lower[:n] <= 0.5).all()
        assert (bounds.upper[:n] >= 0.5).all()
        assert (bounds.upper - bounds.lower <= 1e-6).all()


@pytest.mark.parametrize("max_sweeps", [1, 5, 1000])
def test_bounds_hold_however_early_the_solver_stops(max_sweeps):
    """A walk goes down twice as often as up at worst, waiting or not: from s to n with (2^s - 1) / (2^n - 1)."""
    n = 40
    inner = [[[(s - 1, 0.25, 0.5), (s, 0, 0.5), (s + 1, 0.25, 0.5)]] for s in range(1, n)]
    imdp = model_of([[[(0, 1, 1)]], *inner, [[(n, 1, 1)]]], known_support=True)
    solution = pl.stages.solve(imdp, reach(imdp, "max", target=(n,)), max_sweeps=max_sweeps)
    for s in range(n + 1):
        assert solution.lower[s] <= Fraction(2**s - 1, 2**n - 1) <= solution.upper[s]
    assert solution.status == "converged" or max_sweeps < 1000


# End components against all sets of states


def rows_within(graph, states, allowed):
    """Return the allowed choices of the states that lead to none but them."""
    return [
        choice
        for choice in np.flatnonzero(allowed & np.isin(graph.state_of_choice(), list(states))).tolist()
        if set(successors(graph, choice)) <= states
    ]


def successors(graph, choice):
    return graph.successor[graph.first_transition[choice] : graph.first_transition[choice + 1]].tolist()


def is_end_component(graph, states, allowed):
    edges = [{} for _ in range(graph.n_states)]
    for choice in rows_within(graph, states, allowed):
        edges[int(graph.state_of_choice()[choice])].update(dict.fromkeys(successors(graph, choice)))
    nowhere = [False] * graph.n_states
    return all(edges[s] for s in states) and all(states <= can_reach(edges, [s], nowhere) for s in states)


@pytest.mark.slow
def test_end_components_are_the_largest_sets_in_which_the_agent_can_stay_and_go_everywhere():
    rng = np.random.default_rng(12)
    n_found = 0
    for _ in range(300):
        graph = random_case(rng).imdp.graph
        allowed = rng.random(graph.n_choices) < 0.8
        sets = [set(s) for size in range(1, graph.n_states + 1) for s in combinations(range(graph.n_states), size)]
        all_components = [states for states in sets if is_end_component(graph, states, allowed)]
        maximal = [states for states in all_components if not any(states < other for other in all_components)]
        component, inner = end_components(graph, allowed)
        found = [set(np.flatnonzero(component == k).tolist()) for k in range(component.max() + 1)]
        assert sorted(map(sorted, found)) == sorted(map(sorted, maximal))
        assert np.flatnonzero(inner).tolist() == sorted(c for s in maximal for c in rows_within(graph, s, allowed))
        n_found += len(found)
    assert n_found > 300


def random_graph(rng, n):
    """Return a graph of n states in a row, with two choices each that lead one to three states near by."""
    size = rng.integers(1, 4, 2 * n)
    state = np.repeat(np.repeat(np.arange(n), 2), size)
    successor = np.clip(state + rng.integers(-8, 9, len(state)), 0, n - 1)
    first = np.concatenate([[0], np.cumsum(size)])
    bounds = np.zeros(len(state)), np.ones(len(state))
    return IntervalMDP.from_arrays(np.arange(0, 2 * n + 1, 2), first, successor, *bounds).graph


def components_by_rounds(graph, allowed):
    """Return the rows within end components: in turn connect the states strongly and drop the rows that leave."""
    inner, state = allowed.copy(), graph.state_of_choice()
    while True:
        kept = inner[graph.choice_of_transition()]
        edges = state[graph.choice_of_transition()][kept], graph.successor[kept]
        matrix = csr_array((np.ones(len(edges[0])), edges), shape=(graph.n_states, graph.n_states))
        _, part = connected_components(matrix, directed=True, connection="strong")
        has_rows = np.bincount(state[inner], minlength=graph.n_states) > 0
        stays = (part[graph.successor] == part[state][graph.choice_of_transition()]) & has_rows[graph.successor]
        new = inner & np.logical_and.reduceat(stays, graph.first_transition[:-1])
        if (new == inner).all():
            return inner
        inner = new


@pytest.mark.parametrize("share", [0.9, 0.97, 0.995])
def test_end_components_of_larger_graphs_are_those_found_round_by_round(share):
    rng = np.random.default_rng(14)
    for _ in range(30):
        graph = random_graph(rng, 1000)
        allowed = rng.random(graph.n_choices) < share
        component, inner = end_components(graph, allowed)
        assert (inner == components_by_rounds(graph, allowed)).all()
        rows = np.flatnonzero(inner)
        assert ((component >= 0) == np.isin(np.arange(graph.n_states), graph.state_of_choice()[rows])).all()
        within = inner[graph.choice_of_transition()]
        of_source = component[graph.state_of_choice()][graph.choice_of_transition()]
        assert (of_source[within] == component[graph.successor][within]).all()


@pytest.mark.slow
def test_what_falls_off_an_end_component_piece_by_piece_takes_no_round_each():
    """States may wait in pairs, or go two up or nine down; below lies a trap. Only the pairs stay, from below upwards.

    One round for each of the hundred thousand pairs would take the better part of an hour.
    """
    n = 200_000
    s = np.arange(n)
    successor = np.stack([s ^ 1, s, np.minimum(s + 2, n - 1), np.maximum(s - 9, 0)], axis=1).ravel()
    bounds = np.zeros(4 * n), np.ones(4 * n)
    graph = IntervalMDP.from_arrays(2 * np.arange(n + 1), 2 * np.arange(2 * n + 1), successor, *bounds).graph
    component, inner = end_components(graph, np.repeat((s >= 10) & (s < n - 1), 2))
    assert (component[:10] == -1).all()
    assert (component[n - 2 :] == -1).all()
    assert (component[10 : n - 2 : 2] == component[11 : n - 2 : 2]).all()
    assert len(np.unique(component)) == n // 2 - 6 + 1
    assert not inner[1::2].any()
