"""The enumeration of exact_values against hand calculations, and against Storm on random models that Storm accepts."""

import math
from fractions import Fraction

import numpy as np
import pytest
from exact_values import INFINITY, exact_values, first_step_values, policy_values, vertices
from random_models import model_of, random_case
from tiers import size

from plumdp.model.objectives import Reach, Reward
from plumdp.model.parametric import RewardStructure

pytestmark = pytest.mark.slow

GOAL, TRAP = [[(1, 1, 1)]], [[(2, 1, 1)]]  # states 1 and 2 of the small models, state 0 being the start


def mask(n_states, *states):
    return np.isin(np.arange(n_states), states)


def reach(imdp, direction, *, target=(1,), avoid=(), **options):
    n_states = imdp.graph.n_states
    return Reach(mask(n_states, *target), mask(n_states, *avoid), direction, **options)


def earn(imdp, direction, *, state=None, choice=None, target=None, **options):
    reward = RewardStructure(*(None if part is None else np.array(part, float) for part in (state, choice)))
    return Reward(reward, direction, None if target is None else mask(imdp.graph.n_states, *target), **options)


def four(imdp, make, *, state=0):
    """Return the values of one state: max robust, max optimistic, min robust, min optimistic."""
    return [
        exact_values(imdp, make(direction), nature)[state]
        for direction in ("max", "min")
        for nature in ("robust", "optimistic")
    ]


def test_a_coin_of_nature_has_its_bounds_as_values():
    """The goal has probability 1/4 to 1/2, the rest goes to the trap: 1/4 against the agent, 1/2 with it; min reversed.

    Never to reach the goal (G !goal) is one minus that: at best 3/4, at worst 1/2.
    """
    imdp = model_of([[[(1, 0.25, 0.5), (2, 0.5, 0.75)]], GOAL, TRAP])
    low, high = Fraction(1, 4), Fraction(1, 2)
    assert four(imdp, lambda d: reach(imdp, d)) == [low, high, high, low]
    assert four(imdp, lambda d: reach(imdp, d, complement=True)) == [1 - high, 1 - low, 1 - low, 1 - high]
    assert exact_values(imdp, reach(imdp, "max"), "robust") == [low, 1, 0]


def test_the_agent_prefers_a_sure_chance_only_against_nature():
    """Choice 0: goal 1/4 to 1/2; choice 1: goal 3/8. Against nature 3/8 > 1/4, with it 1/2 > 3/8; min likewise."""
    imdp = model_of([[[(1, 0.25, 0.5), (2, 0.5, 0.75)], [(1, 0.375, 0.375), (2, 0.625, 0.625)]], GOAL, TRAP])
    assert four(imdp, lambda d: reach(imdp, d)) == [Fraction(3, 8), Fraction(1, 2), Fraction(3, 8), Fraction(1, 4)]
    robust = policy_values(imdp, reach(imdp, "max"), "robust")
    assert {policy: values[0] for policy, values in robust.items()} == {(0, 2, 3): 0.25, (1, 2, 3): 0.375}


def test_a_loop_that_nature_need_not_leave():
    """State 0 loops or goes to the goal, both with [0, 1].

    Nature may stay forever: probability 0, infinite cost. With p = 1 one step suffices.
    """
    imdp = model_of([[[(0, 0, 1), (1, 0, 1)]], GOAL])
    assert four(imdp, lambda d: reach(imdp, d)) == [0, 1, 1, 0]
    assert four(imdp, lambda d: reach(imdp, d, complement=True)) == [0, 1, 1, 0]
    assert four(imdp, lambda d: earn(imdp, d, state=[1, 0], target=[1])) == [1, INFINITY, INFINITY, 1]


def test_a_value_may_be_any_fraction():
    """State 0 earns 3 and goes to state 1 with [0, 1/4], to the goal with [1/4, 1], else it loops (at most 1/2).

    State 1 earns 1 and goes to the goal with [0, 1] or back to state 0 with [0, 1]; all transitions are possible.
    Write p, q, r = 1 - p - q for the moves of state 0 to state 1, the goal, itself. Minimal: p → 0, q = 1: 3. Maximal:
    state 1 returns with probability → 1, so x1 = 1 + x0 and x0 = 3 + p (1 + x0) + r x0, x0 = (3 + p) / q with
    q = 1/4 and p as large as possible, 1/4: x0 = 13.
    """
    states = [[[(1, 0, 0.25), (2, 0.25, 1), (0, 0, 0.5)]], [[(2, 0, 1), (0, 0, 1)]], [[(2, 1, 1)]]]
    imdp = model_of(states)
    assert four(imdp, lambda d: earn(imdp, d, state=[3, 1, 0], target=[2])) == [3, 13, 13, 3]


def test_a_zero_lower_bound_is_not_always_removable_nor_a_positive_upper_bound_possible():
    """Goal [0, 1] and trap [0, 3/4] leave the goal 1/4 at least; trap [1, 1] leaves the goal [0, 1/2] nothing."""
    imdp = model_of([[[(1, 0, 1), (2, 0, 0.75)]], GOAL, TRAP, [[(1, 0, 0.5), (2, 1, 1)]]])
    assert four(imdp, lambda d: reach(imdp, d)) == [Fraction(1, 4), 1, 1, Fraction(1, 4)]
    assert four(imdp, lambda d: reach(imdp, d), state=3) == [0, 0, 0, 0]
    assert vertices([(1, Fraction(0), Fraction(1)), (2, Fraction(0), Fraction(3, 4))]) == [
        {1: Fraction(1, 4), 2: Fraction(3, 4)},
        {1: Fraction(1)},
    ]


def test_an_end_component_has_no_probability_of_its_own():
    """States 0 and 3 may pass to each other forever; state 0 may also toss a fair coin between goal and trap.

    x = 1 solves the equations, but the goal has 1/2 at most, and 0 at least.
    """
    imdp = model_of([[[(3, 1, 1)], [(1, 0.5, 0.5), (2, 0.5, 0.5)]], GOAL, TRAP, [[(0, 1, 1)]]])
    for state in (0, 3):
        assert four(imdp, lambda d: reach(imdp, d), state=state) == [0.5, 0.5, 0, 0]


def test_nature_may_hold_the_agent_in_an_end_component():
    """Choice 0 of state 0 loops [0, 1] or goes to the goal [0, 1]; choice 1 goes to the goal with 1/8, else it is lost.

    Nature against a maximiser keeps choice 0 looping, so choice 1 is best: 1/8.
    """
    states = [[[(0, 0, 1), (1, 0, 1)], [(1, 0.125, 0.125), (2, 0.875, 0.875)]], GOAL, TRAP]
    unknown = model_of(states)
    assert four(unknown, lambda d: reach(unknown, d)) == [Fraction(1, 8), 1, Fraction(1, 8), 0]


def test_waiting_for_free_is_not_arriving():
    """State 0 may wait for nothing, or pay 3 and go to the goal (state 1).

    Until the goal: waiting forever costs infinity, so the minimum is 3 and the maximum infinite. In total: waiting
    forever is free, so the minimum is 0 and the maximum 3.
    """
    imdp = model_of([[[(0, 1, 1)], [(1, 1, 1)]], GOAL])
    until = four(imdp, lambda d: earn(imdp, d, choice=[0, 3, 0], target=[1]))
    assert until == [INFINITY, INFINITY, 3, 3]
    assert four(imdp, lambda d: earn(imdp, d, choice=[0, 3, 0])) == [3, 3, 0, 0]


def test_a_slow_exit_costs_the_inverse_of_its_probability():
    """Each step costs 1 (state) + 1/2 (choice), the exit has 1/4 to 1/2: between 3 and 6. Targets are free."""
    imdp = model_of([[[(0, 0.5, 0.75), (1, 0.25, 0.5)]], GOAL])
    assert four(imdp, lambda d: reach(imdp, d)) == [1, 1, 1, 1]
    assert four(imdp, lambda d: earn(imdp, d, state=[1, 9], choice=[0.5, 9], target=[1])) == [3, 6, 6, 3]


def test_totals_are_infinite_where_a_reward_recurs():
    """State 0 earns 2 and goes to a free sink (state 1) or with [0, 1/2] to a sink that earns 1 (state 2).

    Nature alone decides: it removes the paying sink (total 2), or not (infinite).
    A transient reward is finite: with a loop of 1/2 to 3/4 instead, 2 / (1 - p) lies between 4 and 8.
    """
    states = [[[(1, 0.5, 1), (2, 0, 0.5)]], [[(1, 1, 1)]], [[(2, 1, 1)]], [[(3, 0.5, 0.75), (1, 0.25, 0.5)]]]
    unknown = model_of(states)
    rewards = [2, 0, 1, 2]
    assert four(unknown, lambda d: earn(unknown, d, state=rewards)) == [2, INFINITY, INFINITY, 2]
    assert four(unknown, lambda d: earn(unknown, d, state=rewards), state=3) == [4, 8, 8, 4]


def test_discounted_and_bounded_rewards():
    """A step earns 2, then the run goes on with probability 1/4 to 3/4 and otherwise rests unpaid.

    Three steps: 2 + 2p + 2p² lies between 21/8 and 37/8. Discount 1/2: 2 / (1 - p/2) lies between 16/7 and 16/5.
    Both, two steps: 2 + 2p/2 lies between 9/4 and 11/4. No step, nothing.
    """
    imdp = model_of([[[(0, 0.25, 0.75), (1, 0.25, 0.75)]], GOAL])
    half = Fraction(1, 2)
    for options, low, high in (
        ({"steps": 0}, 0, 0),
        ({"steps": 1}, 2, 2),
        ({"steps": 3}, Fraction(21, 8), Fraction(37, 8)),
        ({"discount": half}, Fraction(16, 7), Fraction(16, 5)),
        ({"discount": half, "steps": 2}, Fraction(9, 4), Fraction(11, 4)),
    ):
        assert four(imdp, lambda d, o=options: earn(imdp, d, state=[2, 0], **o)) == [low, high, high, low]


def test_windows_of_steps():
    """State 0 goes to the goal (state 1) with 1/4 to 1/2, else stays; the goal goes back to state 0 for sure.

    F<=2 from 0: 1 - (1-p)², between 7/16 and 3/4. X: p. At step exactly 2 from state 0: the goal must not be
    entered in step 1, (1-p) p, with p chosen anew each step: from 1/2 * 1/4 to 3/4 * 1/2. From the goal: F<=k is 1,
    X is 0, F=2 is p.
    """
    imdp = model_of([[[(0, 0.5, 0.75), (1, 0.25, 0.5)]], [[(0, 1, 1)]]])
    quarter, half = Fraction(1, 4), Fraction(1, 2)
    for steps, low, high in (
        ((0, 0), 0, 0),
        ((0, 2), Fraction(7, 16), Fraction(3, 4)),
        ((1, 1), quarter, half),
        ((2, 2), half * quarter, (1 - quarter) * half),
    ):
        assert four(imdp, lambda d, w=steps: reach(imdp, d, steps=w)) == [low, high, high, low]
        one_minus = four(imdp, lambda d, w=steps: reach(imdp, d, steps=w, complement=True))
        assert one_minus == [1 - high, 1 - low, 1 - low, 1 - high]
    for steps, low, high in (((0, 2), 1, 1), ((1, 1), 0, 0), ((2, 2), quarter, half)):
        assert four(imdp, lambda d, w=steps: reach(imdp, d, steps=w), state=1) == [low, high, high, low]


def test_states_to_avoid_end_the_run():
    """The run 0 → 1 → 2 → 2 …, where states 1 and 2 are targets and state 1 is also to be avoided.

    Without steps, a target counts although it is to be avoided: 1 from everywhere. In the window [2, 3] the run from 0
    fails in state 1 at step 1; from state 1 it fails at once; from state 2 it is in the target. In [1, 1] state 0
    succeeds in state 1 and state 1 fails at step 0. If only state 2 is a target, state 1 blocks state 0.
    """
    imdp = model_of([[[(1, 1, 1)]], [[(2, 1, 1)]], [[(2, 1, 1)]]])
    for target, steps, expected in (
        ((1, 2), None, [1, 1, 1]),
        ((1, 2), (2, 3), [0, 0, 1]),
        ((1, 2), (1, 1), [1, 0, 1]),
        ((1, 2), (0, 0), [0, 1, 1]),
        ((2,), None, [0, 0, 1]),
        ((2,), (0, 5), [0, 0, 1]),
    ):
        objective = reach(imdp, "max", target=target, avoid=(1,), steps=steps)
        assert exact_values(imdp, objective, "robust") == expected
    without = reach(imdp, "max", target=(1, 2), steps=(2, 3))
    assert exact_values(imdp, without, "robust") == [1, 1, 1]


def test_the_first_choice_may_differ_from_the_later_ones():
    """State 0: a sure step to state 3 and from there to the goal, or a coin of 1/2 that leads there in one step.

    With two steps left the way through state 3 is worth 1; with one step left it is worth 0, and the coin 1/2.
    """
    imdp = model_of([[[(3, 1, 1)], [(1, 0.5, 0.5), (2, 0.5, 0.5)]], GOAL, TRAP, [[(1, 1, 1)]]])
    for last, expected in ((1, [0, 0.5]), (2, [1, 0.5])):
        values, of_choice = first_step_values(imdp, reach(imdp, "max", steps=(0, last)), "robust")
        assert of_choice[:2] == expected
        assert values[0] == max(expected)


def test_transitions_to_one_successor_add_up():
    """Goal [1/4, 1/2] and goal [0, 1/4], trap [1/4, 3/4]: the goal has 1/4 to 3/4 in all."""
    imdp = model_of([[[(1, 0.25, 0.5), (1, 0, 0.25), (2, 0.25, 0.75)]], GOAL, TRAP])
    assert four(imdp, lambda d: reach(imdp, d)) == [Fraction(1, 4), Fraction(3, 4), Fraction(3, 4), Fraction(1, 4)]


# Storm

FORMULAS = {
    "reach": ('P{d}=? [ F "target" ]', lambda c, d: Reach(c.target, np.zeros_like(c.avoid), d)),
    "until": ('P{d}=? [ !"avoid" U "target" ]', lambda c, d: Reach(c.target, c.avoid, d)),
    "globally": (
        'P{d}=? [ G !"target" ]',
        lambda c, d: Reach(c.target, np.zeros_like(c.avoid), d, complement=True),
    ),
    "bounded": ('P{d}=? [ !"avoid" U<=3 "target" ]', lambda c, d: Reach(c.target, c.avoid, d, (0, 3))),
    "next": ('P{d}=? [ X "target" ]', lambda c, d: Reach(c.target, np.zeros_like(c.avoid), d, (1, 1))),
    "reward": ('R{{"r"}}{d}=? [ F "target" ]', lambda c, d: Reward(c.reward, d, c.target)),
    "cumulative": ('R{{"r"}}{d}=? [ C<=4 ]', lambda c, d: Reward(c.reward, d, steps=4)),
}


def direct_encoding(case):
    """Return the model as text in Storm's DRN format."""
    imdp, graph = case.imdp, case.imdp.graph
    lines = ["@type: MDP", "@value_type: double-interval", "@parameters", "", "@reward_models", "r"]
    lines += ["@nr_states", str(graph.n_states), "@nr_choices", str(graph.n_choices), "@model"]
    state_reward = np.zeros(graph.n_states) if case.reward.state is None else case.reward.state
    choice_reward = np.zeros(graph.n_choices) if case.reward.choice is None else case.reward.choice
    for s in range(graph.n_states):
        labels = ["init"] * (s == 0) + ["target"] * bool(case.target[s]) + ["avoid"] * bool(case.avoid[s])
        lines.append(f"state {s} [{state_reward[s]!s}] {' '.join(labels)}")
        for number, c in enumerate(range(graph.first_choice[s], graph.first_choice[s + 1])):
            lines.append(f"\taction {number} [{choice_reward[c]!s}]")
            transitions = range(graph.first_transition[c], graph.first_transition[c + 1])
            for t in sorted(transitions, key=lambda t: graph.successor[t]):
                e = imdp.expression[t]
                lines.append(f"\t\t{graph.successor[t]} : [{imdp.lower[e]!s}, {imdp.upper[e]!s}]")
    return "\n".join(lines) + "\n"


def earns(case):
    return any(part is not None and part.any() for part in (case.reward.state, case.reward.choice))


@pytest.fixture(scope="module")
def storm():
    stormpy = pytest.importorskip("stormpy")
    stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)
    return stormpy


def storm_values(stormpy, model, text, nature):
    environment = stormpy.Environment()
    environment.solver().min_max().precision = stormpy.Rational("1e-12")
    modes = stormpy.UncertaintyResolutionMode
    formula = stormpy.parse_property(text)  # Storm keeps no reference to it
    mode = {"robust": modes.ROBUST, "optimistic": modes.COOPERATIVE}[nature]
    try:
        result = stormpy.model_checking(model, formula, uncertainty_resolution_mode=mode, environment=environment)
    except RuntimeError as refusal:  # minimal rewards where the agent may wait for free
        if "We do not support computing upper reward bounds with interval models" not in str(refusal):
            raise
        return None
    return [float(value) for value in result.get_value_vector()]


@pytest.mark.parametrize("kind", FORMULAS)
def test_exact_values_agree_with_storm_on_random_models(storm, kind, tmp_path):
    """Storm wants positive lower bounds and iterates from below, so it is the less exact side: relative 1e-7."""
    text, make = FORMULAS[kind]
    rng, n_compared = np.random.default_rng(20), 0
    for number in range(size(50, 140)):
        case = random_case(rng, positive=True)
        if not earns(case):
            continue  # Storm takes a reward structure without rewards for a missing one
        path = tmp_path / f"{number}.drn"
        path.write_text(direct_encoding(case), encoding="utf-8")
        model = storm.build_model_from_drn[storm.Interval](str(path))
        for direction in ("max", "min"):
            for nature in ("robust", "optimistic"):
                exact = [float(v) for v in exact_values(case.imdp, make(case, direction), nature)]
                formula = text.format(d=direction).replace('!"avoid"', '!"avoid"' if case.avoid.any() else "true")
                found = storm_values(storm, model, formula, nature)
                n_compared += found is not None
                assert found is None or found == pytest.approx(exact, rel=1e-7, abs=1e-10), path.read_text()
    assert n_compared >= size(140, 400)


def test_optimistic_values_are_at_least_as_good_as_robust_ones_on_random_models():
    rng = np.random.default_rng(21)
    for _ in range(size(20, 60)):
        case = random_case(rng)
        for make in (
            lambda d, c=case: Reach(c.target, c.avoid, d),
            lambda d, c=case: Reward(c.reward, d, c.target),
            lambda d, c=case: Reward(c.reward, d),
        ):
            low, high = (exact_values(case.imdp, make("max"), nature) for nature in ("robust", "optimistic"))
            assert all(a <= b for a, b in zip(low, high, strict=True))
        discounted = Reward(case.reward, "min", discount=Fraction(7, 8))
        assert not any(math.isinf(value) for value in exact_values(case.imdp, discounted, "robust"))
