"""The solver against enumeration in rational numbers, on thousands of small models full of traps, and on slow chains.

The exact value must lie between the certified bounds, compared as fractions and without any tolerance.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from both_ways import kernels_run_both_ways
from exact_values import BEST, all_outcomes, first_step_values, policy_key, policy_values, settled_states
from random_models import model_of, random_case
from tiers import size

from plumdp.model.objectives import Reach, Reward
from plumdp.model.parametric import RewardStructure
from plumdp.solver.solve import solve

pytestmark = pytest.mark.slow

N_MODELS = size(60, 510)  # of each of eight kinds, each in four senses
PRECISION = 1e-6
SENSES = [(direction, nature) for direction in ("max", "min") for nature in ("robust", "optimistic")]


def random_steps(case, rng):
    """Return a reach within a window of steps, which may be the next step, or its complement."""
    first = int(rng.integers(0, 3))
    window = (first, first + int(rng.integers(0, 5)))
    return Reach(case.target, case.avoid, "max", window, complement=bool(rng.integers(2)))


def random_cumulative(case, rng):
    """Return a reward over 0 to 7 steps, sometimes discounted."""
    discount = Fraction(3, 4) if rng.random() < 0.3 else None
    return Reward(case.reward, "max", steps=int(rng.integers(0, 8)), discount=discount)


KINDS = {
    "reach": lambda case, rng: Reach(case.target, np.zeros_like(case.avoid), "max"),
    "until": lambda case, rng: Reach(case.target, case.avoid, "max"),
    "globally": lambda case, rng: Reach(case.target, case.avoid, "max", complement=True),
    "steps": random_steps,
    "reward": lambda case, rng: Reward(case.reward, "max", case.target),
    "total": lambda case, rng: Reward(case.reward, "max"),
    "cumulative": random_cumulative,
    "discounted": lambda case, rng: Reward(case.reward, "max", discount=Fraction(str(rng.choice([0.5, 0.9, 0.95])))),
}


def exact_in_all_senses(imdp, objective):
    """Yield objective, nature, exact values, and a function from a policy to the values it attains."""
    outcomes = all_outcomes(imdp, objective) if objective.steps is None else None
    for direction, nature in SENSES:
        sense = replace(objective, direction=direction)
        if outcomes is None:
            values, of_choice = first_step_values(imdp, sense, nature)
            yield sense, nature, values, lambda policy, of_choice=of_choice: [of_choice[choice] for choice in policy]
        else:
            attained = policy_values(imdp, sense, nature, outcomes)
            values = [BEST[direction](of_state) for of_state in zip(*attained.values(), strict=True)]
            yield (
                sense,
                nature,
                values,
                lambda policy, sense=sense, attained=attained: attained[policy_key(imdp, sense, policy)],
            )


def violations(solution, exact, attained=None, settled=None, *, precision=PRECISION):
    """Return what is wrong with a solution, state by state, given the exact values and those its policy attains."""
    wrong = []
    for s, value in enumerate(exact):
        lower, upper = float(solution.lower[s]), float(solution.upper[s])
        if math.isinf(value) and not (lower == upper == math.inf):
            wrong.append(f"state {s}: [{lower}, {upper}], but the value is infinite")
        elif not math.isinf(value):
            wrong += [f"state {s}: {text}" for text in finite_violations(lower, upper, value, precision)]
        if attained is not None and not settled[s] and is_far(attained[s], value):
            wrong.append(f"state {s}: the policy attains {float(attained[s])} of {float(value)}")
    return wrong


def finite_violations(lower, upper, value, precision):
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return [f"[{lower}, {upper}], but the value is {float(value)}"]
    found = []
    if not Fraction(lower) <= value <= Fraction(upper):
        found.append(f"{value} = {float(value)} does not lie in [{lower!r}, {upper!r}]")
    if upper - lower > 2 * precision * max(1, value):
        found.append(f"[{lower}, {upper}] is wide; the value is {float(value)}")
    return found


def is_far(attained, value):
    if math.isinf(value) or math.isinf(attained):
        return attained != value
    return abs(attained - value) > 1e-5 * max(1, value)


def over_before_the_first_step(imdp, objective):
    """Return per state whether its choice is of no consequence: the run is over there, or no step is counted."""
    if isinstance(objective, Reward) or objective.steps is None:
        return [steps_are_over(objective) or over for over in settled_states(imdp, objective)]
    first, _ = objective.steps
    over = objective.avoid | (objective.target & (first == 0)) | steps_are_over(objective)
    return over.tolist()


def steps_are_over(objective):
    return objective.steps in (0, (0, 0))


def describe(imdp, objective, nature):
    """Return everything needed to try the model again by hand."""
    graph = imdp.graph
    states = [
        [
            [
                (int(graph.successor[t]), float(imdp.lower[imdp.expression[t]]), float(imdp.upper[imdp.expression[t]]))
                for t in range(graph.first_transition[c], graph.first_transition[c + 1])
            ]
            for c in range(graph.first_choice[s], graph.first_choice[s + 1])
        ]
        for s in range(graph.n_states)
    ]
    return f"model_of({states})\n{objective}\nnature={nature!r}"


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_contain_the_exact_value_and_the_policy_attains_it(kind):
    failures = failures_of(kind, N_MODELS)
    assert not failures, f"{len(failures)} of {4 * N_MODELS} fail, for instance\n" + "\n\n".join(failures[:3])


@pytest.mark.parametrize("kind", KINDS)
def test_so_it_is_with_kernels_as_plain_python_which_write_the_same_bits(kind):
    with kernels_run_both_ways() as compared:
        assert failures_of(kind, size(4, 12)) == []
    assert sum(compared.values()) > 100


def failures_of(kind, n_models):
    """Return what is wrong with the solutions of random models."""
    rng = np.random.default_rng([30, list(KINDS).index(kind), 0])
    failures = []
    for _ in range(n_models):
        case = random_case(rng)
        for objective, nature, exact, attains in exact_in_all_senses(case.imdp, KINDS[kind](case, rng)):
            solution = solve(case.imdp, objective, nature=nature, precision=PRECISION)
            settled = over_before_the_first_step(case.imdp, objective)
            wrong = violations(solution, exact, attains(solution.policy), settled)
            if wrong or solution.status != "converged":
                failures.append(
                    "\n".join([*wrong, f"status {solution.status}", describe(case.imdp, objective, nature)])
                )
    return failures


@pytest.mark.parametrize("kind", ["reach", "globally", "reward"])
def test_bounds_contain_the_exact_value_when_more_is_asked_for_than_floats_can_give(kind):
    """With a precision of 1e-13 and probabilities down to 2^-30 every error of rounding counts.

    Bounds may stay apart; but none may pass the exact value.
    """
    rng = np.random.default_rng([31, list(KINDS).index(kind), 0])
    failures = []
    for _ in range(size(50, 400)):
        case = random_case(rng, tiny=(0.5, 30), most_chains=100)
        for objective, nature, exact, _ in exact_in_all_senses(case.imdp, KINDS[kind](case, rng)):
            solution = solve(case.imdp, objective, nature=nature, precision=1e-13, max_sweeps=1000)
            wrong = [s for s, value in enumerate(exact) if not solution.lower[s] <= value <= solution.upper[s]]
            if wrong:
                found = [(float(solution.lower[s]), exact[s], float(solution.upper[s])) for s in wrong]
                failures.append(f"states {wrong}: {found}\n{describe(case.imdp, objective, nature)}")
    assert not failures, f"{len(failures)} of 1600 fail, for instance\n" + "\n\n".join(failures[:3])


def contains(solution, state, value):
    return solution.lower[state] <= value <= solution.upper[state]


def test_a_lower_bound_is_not_taken_over_unverified():
    """States 0 and 1 may keep each other company and leave with 2^-19 only; from state 2 the reward is 1/4 + 5/16 x.

    So x = 4/11 in all of them. Equations solved in floats are off by 2^19 roundings: more than the precision asked for.
    """
    tiny = 2.0**-19
    imdp = model_of(
        [
            [[(1, 0.5, 0.5), (0, 0.5, 0.5)]],
            [[(0, 0, 1), (2, tiny, 1)]],
            [[(1, 0.3125, 0.3125), (3, 0.3125, 0.3125), (4, 0.375, 0.375)]],
            [[(3, 1, 1)]],
            [[(4, 1, 1)]],
        ]
    )
    reward = RewardStructure(np.array([0, 0, 0.25, 0, 0]), None)
    objective = Reward(reward, "max", np.array([False, False, False, True, True]))
    solution = solve(imdp, objective, nature="optimistic", precision=1e-13)
    assert all(contains(solution, state, Fraction(4, 11)) for state in range(3))


@pytest.mark.parametrize("exponent", [30, 41, 45, 50])
def test_what_is_missing_to_one_is_a_chance_however_small(exponent):
    """State 0 loops with at most 1 - 2^-e, so the goal has at least 2^-e: probability 1, and 2^e steps at most.

    State 3 goes to the goal with at most 1 - 2^-e, so it may miss it: probability below 1, infinite reward.
    """
    most = 1 - 2.0**-exponent
    states = [[[(0, 0, most), (1, 0, 1)]], [[(1, 1, 1)]], [[(2, 1, 1)]], [[(1, 0, most), (2, 0, 1)]]]
    imdp, target = model_of(states), np.array([False, True, False, False])
    steps = Reward(RewardStructure(np.array([1.0, 0, 0, 1]), None), "min", target)
    assert contains(solve(imdp, Reach(target, ~target & False, "max"), nature="robust"), 0, 1)
    assert contains(solve(imdp, Reach(target, ~target & False, "max"), nature="optimistic"), 3, Fraction(most))
    assert contains(solve(imdp, steps, nature="robust"), 0, 2**exponent)
    assert solve(imdp, steps, nature="optimistic").upper[3] == math.inf


# Slow chains, where a small change does not mean that the end is near


def gambler(n, *, most=0.5):
    """Return a walk on 0 … n, up with 1/2 to ``most``; both ends hold the walker."""
    inner = [[[(s + 1, 0.5, most), (s - 1, 1 - most, 0.5)]] for s in range(1, n)]
    imdp = model_of([[[(0, 1, 1)]], *inner, [[(n, 1, 1)]]])
    return imdp, Reach(np.arange(n + 1) == n, np.zeros(n + 1, bool), "max")


def two_arms(n):
    """Return a start (state 0) with two arms of n fair coins; tails goes back to the start, heads on to the arm's end.

    The target is the end of one arm, state n; state 2n is the end of the other.
    """
    start = [[(1, 0.5, 0.5), (n + 1, 0.5, 0.5)]]
    arms = [[[(s + 1, 0.5, 0.5), (0, 0.5, 0.5)]] if s % n else [[(s, 1, 1)]] for s in range(1, 2 * n + 1)]
    return model_of([start, *arms]), Reach(np.arange(2 * n + 1) == n, np.zeros(2 * n + 1, bool), "max")


def two_arms_values(n):
    """Return the exact values: 1/2 at the start by symmetry; after k heads on an arm, 1/2 ± 2^(k-n) / 2."""
    half = Fraction(1, 2)
    return [half, *(half + Fraction(1, 2 ** (n - k + 1)) * sign for sign in (1, -1) for k in range(1, n + 1))]


def ladder(n, direction):
    """Return a walk on 0 … n that pays 1 per step and goes up with 1/2 to 3/4, else down; from 0 always up."""
    rungs = [[[(s + 1, 0.5, 0.75), (s - 1, 0.25, 0.5)]] for s in range(1, n)]
    imdp = model_of([[[(1, 1, 1)]], *rungs, [[(n, 1, 1)]]])
    return imdp, Reward(RewardStructure(np.ones(n + 1), None), direction, np.arange(n + 1) == n)


class PlainIteration:
    """What the peers do: value iteration from 0 until no value changes by the precision, taken for the error."""

    def __init__(self, imdp, objective, precision=PRECISION):
        graph = imdp.graph
        probability = imdp.lower[imdp.expression]
        assert (probability == imdp.upper[imdp.expression]).all()
        values = objective.target.astype(float)
        while True:
            new = np.where(objective.target, 1, graph.sum_by_choice(probability * values[graph.successor]))
            change = np.abs(new - values).max()
            values = new
            if change < precision:
                break
        self.lower, self.upper = values - precision, values + precision


@pytest.mark.parametrize(("n", "most"), [(200, 0.5), (1000, 0.5), (1000, 0.75)])
def test_a_fair_gambler_is_bracketed(n, most):
    """The walk from s of n ends at n with probability s/n, at best for nature; the middle has 1/2."""
    solution = solve(*gambler(n, most=most), nature="robust", precision=PRECISION)
    assert violations(solution, [Fraction(s, n) for s in range(n + 1)]) == []
    assert solution.upper[n // 2] - solution.lower[n // 2] <= PRECISION


def test_two_arms_of_twenty_coins_are_bracketed():
    """The mean number of steps is about two million."""
    imdp, objective = two_arms(20)
    solution = solve(imdp, objective, nature="robust", precision=PRECISION)
    assert violations(solution, two_arms_values(20)) == []
    assert solution.upper[0] - solution.lower[0] <= PRECISION


@pytest.mark.parametrize(
    ("model", "exact"),
    [(gambler(200), [Fraction(s, 200) for s in range(201)]), (two_arms(20), two_arms_values(20))],
    ids=["gambler", "two arms"],
)
def test_plain_value_iteration_fails_this_test(model, exact):
    """The negative control: its bounds miss the exact value although the last change was below the precision."""
    assert any("does not lie in" in text for text in violations(PlainIteration(*model), exact))


def test_plain_value_iteration_passes_this_test_on_a_fast_chain():
    """The negative control fails for the right reason: where the error shrinks fourfold per step, all is well."""
    imdp = model_of([[[(0, 0.25, 0.25), (1, 0.375, 0.375), (2, 0.375, 0.375)]], [[(1, 1, 1)]], [[(2, 1, 1)]]])
    objective = Reach(np.array([False, True, False]), np.zeros(3, bool), "max")
    exact = [Fraction(1, 2), Fraction(1), Fraction(0)]
    assert violations(PlainIteration(imdp, objective), exact, precision=1.1 * PRECISION) == []


def test_a_ladder_of_a_hundred_thousand_mean_steps_is_bracketed():
    """With probability 1/2, from rung s to the next takes 2s + 1 steps: n² - s² to the top, 100489 from the ground.

    Nature against a minimiser takes 1/2. With it, 3/4: from rung s to the next e(s) = 4/3 + e(s-1)/3 = 2 - 3^-s steps.
    """
    n = 317
    slow = [Fraction(n * n - s * s) for s in range(n + 1)]
    fast = [sum((2 - Fraction(1, 3**k) for k in range(s, n)), Fraction(0)) for s in range(n + 1)]
    for direction, nature, exact in (
        ("min", "robust", slow),
        ("max", "optimistic", slow),
        ("min", "optimistic", fast),
        ("max", "robust", fast),
    ):
        solution = solve(*ladder(n, direction), nature=nature, precision=PRECISION)
        assert violations(solution, exact) == []
        assert ((solution.upper - solution.lower)[:-1] <= PRECISION * solution.upper[:-1]).all()
