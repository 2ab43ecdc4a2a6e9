"""The solver beyond its values: policies given and drawn, interruptions, limits, proofs, and what it refuses."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from random_models import model_of
from refusals import refused
from support.verified_results import small_model

import plumdp
import plumdp as pl
from plumdp.base.progress import shown_by_others
from plumdp.exchange.read_intervals import model_at
from plumdp.model.objectives import Reach, Reward
from plumdp.model.parametric import RewardStructure
from plumdp.model.question import as_objective
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.at_points import PointSolver
from plumdp.solver.component import Component, prove
from plumdp.solver.evaluate import evaluate_all
from plumdp.solver.layout import lay_out
from plumdp.solver.problem import Solution, SolverStatus, status_at
from plumdp.solver.qualitative import make_game


def mask(n, *members):
    result = np.zeros(n, dtype=np.bool_)
    result[list(members)] = True
    return result


def reach(n, *target, direction="max", **options):
    return pl.model.Reach(mask(n, *target), mask(n), direction, **options)


def steps(n, *target, direction="min"):
    return pl.model.Reward(RewardStructure(np.ones(n), None), direction, target=mask(n, *target))


@pytest.fixture
def fork():
    """State 0 may go (to 1 with 0.5 to 0.75, else to 2) or wait (to 0); 1 and 2 hold."""
    return IntervalMDP.from_arrays(
        [0, 2, 3, 4], [0, 2, 3, 4, 5], [1, 2, 0, 1, 2], [0.5, 0.25, 1, 1, 1], [0.75, 0.5, 1, 1, 1]
    )


@pytest.fixture
def walk():
    """A fair walk on 0 … 20 with uncertainty: up with 0.45 to 0.55; both ends hold."""
    n = 21
    inner = range(1, n - 1)
    successor = [0, *(t for s in inner for t in (s + 1, s - 1)), n - 1]
    first = [0, *range(1, 2 * (n - 2) + 2, 2), 2 * (n - 2) + 2]
    bounds = [1.0, *[0.45] * (2 * (n - 2)), 1.0], [1.0, *[0.55] * (2 * (n - 2)), 1.0]
    return IntervalMDP.from_arrays(np.arange(n + 1), first, successor, *bounds)


def test_robust_and_optimistic_values_are_the_ends_of_the_interval(fork):
    robust, optimistic = (pl.stages.solve(fork, reach(3, 1), nature=nature) for nature in ("robust", "optimistic"))
    assert robust.lower[0] <= 0.5 <= robust.upper[0] < 0.5 + 1e-6
    assert 0.75 - 1e-6 < optimistic.lower[0] <= 0.75 <= optimistic.upper[0]
    assert robust.policy[0] == 0


def test_the_property_says_which_nature_unless_the_caller_does(fork):
    optimistic = reach(3, 1, nature="optimistic")
    assert pl.stages.solve(fork, optimistic).lower[0] > 0.7
    assert pl.stages.solve(fork, optimistic, nature="robust").upper[0] < 0.6


def test_a_given_policy_is_worth_what_it_is_worth(fork):
    go, wait = (pl.stages.evaluate(fork, [choice, 2, 3], reach(3, 1)) for choice in (0, 1))
    assert go.lower[0] <= 0.5 <= go.upper[0] < 0.5 + 1e-6
    assert (wait.lower[0], wait.upper[0]) == (0.0, 0.0)


def test_a_drawn_policy_is_the_mean_of_its_choices_within_two_steps(fork):
    """Go with 1/4, else wait: within one step 1/4 of 0.5, within two 1/4 + 3/4 * 1/4 of it."""
    draw = [0.25, 0.75, 1.0, 1.0]
    for last, expected in ((1, 0.125), (2, 0.21875)):
        solution = pl.stages.evaluate(fork, draw, reach(3, 1, steps=(0, last)))
        assert solution.lower[0] <= expected <= solution.upper[0] <= expected + 1e-12
    for_ever = pl.stages.evaluate(fork, draw, reach(3, 1))
    assert for_ever.lower[0] <= 0.5 <= for_ever.upper[0] < 0.5 + 1e-6
    assert len(for_ever.lower) == 3
    assert for_ever.policy.tolist() == [1, 2, 3]


def test_a_drawn_policy_earns_state_and_choice_rewards(fork):
    """Each round costs 1, waiting 2 more; a round goes with 1/4: four rounds, three of them waiting: 4 + 3 * 2 = 10."""
    reward = RewardStructure(np.array([1.0, 0, 0]), np.array([0, 2.0, 0, 0]))
    solution = pl.stages.evaluate(fork, [0.25, 0.75, 1.0, 1.0], pl.model.Reward(reward, "min", target=mask(3, 1, 2)))
    assert solution.lower[0] <= 10 <= solution.upper[0] <= 10 * (1 + 1e-6)


def test_an_end_component_does_not_hold_its_upper_bound_up():
    """States 1, 2, 4 and 5 may pass to each other forever; the one way out reaches the goal with 0.88 at best.

    The bounds are decimals, so that sums round: equal values must not creep up sweep by sweep.
    """
    imdp = IntervalMDP.from_arrays(
        [0, 1, 3, 4, 5, 6, 7],
        [0, 1, 3, 6, 8, 9, 11, 13],
        [0, 3, 0, 5, 4, 1, 4, 1, 3, 4, 5, 1, 2],
        [1, 0.4, 0.12, 0.13, 0.3, 0.24, 0.16, 0.2, 1, 0.28, 0.57, 0.24, 0.25],
        [1, 1, 0.48, 0.53, 0.57, 0.55, 0.78, 0.39, 1, 0.6, 0.69, 0.53, 0.84],
    )
    solution = pl.stages.solve(imdp, pl.model.Reach(mask(6, 3), mask(6, 0), "max"), nature="optimistic")
    assert solution.status == "converged"
    assert solution.lower[1] <= 0.88 <= solution.upper[1]


def test_infinite_values_are_infinite_and_not_large(fork):
    """The target 1 is missed with probability 1/4 at least."""
    solution = pl.stages.solve(fork, steps(3, 1))
    assert (solution.lower[0], solution.upper[0], solution.status) == (np.inf, np.inf, "converged")


@pytest.fixture
def rounded():
    """State 0 goes to 1, 2 and 3 with 0.7, 0.2 and 0.1, whose floats sum to just below one; all three hold."""
    return IntervalMDP.from_arrays(
        [0, 1, 2, 3, 4], [0, 3, 4, 5, 6], [1, 2, 3, 1, 2, 3], *[[0.7, 0.2, 0.1, 1, 1, 1]] * 2
    )


@pytest.mark.parametrize("nature", ["robust", "optimistic"])
@pytest.mark.parametrize("direction", ["max", "min"])
def test_what_rounding_leaves_out_of_a_row_leads_nowhere(rounded, direction, nature):
    """No target is never reached; the reward 1 of state 0 is earned once; the target 1 is missed with 0.3."""
    never = pl.stages.solve(rounded, pl.model.Reach(mask(4), mask(4), direction), nature=nature)
    assert never.upper.tolist() == [0, 0, 0, 0]
    once = RewardStructure(np.array([1.0, 0, 0, 0]), None)
    total = pl.stages.solve(rounded, pl.model.Reward(once, direction), nature=nature)
    assert total.lower[0] <= 1 <= total.upper[0] <= 1 + 1e-6
    until = pl.stages.solve(rounded, pl.model.Reward(once, direction, target=mask(4, 1)), nature=nature)
    assert until.lower.tolist() == [np.inf, 0, np.inf, np.inf]


def test_an_interruption_leaves_bounds(walk, monkeypatch):
    """Robust value of the middle: with up 0.45, r = 0.55/0.45, (1 - r^10)/(1 - r^20) = 1/(1 + r^10)."""
    exact = 1 / (1 + Fraction(55, 45) ** 10)
    calls = iter(range(1000))

    def interrupted(self, *arguments, sweep=Component.sweep, **options):
        if next(calls) == 7:
            raise KeyboardInterrupt
        return sweep(self, *arguments, **options)

    monkeypatch.setattr(Component, "sweep", interrupted)
    solution = pl.stages.solve(walk, reach(21, 20))
    assert solution.status.startswith("interrupted")
    assert Fraction(solution.lower[10]) <= exact <= Fraction(solution.upper[10]) == 1


def ladder(rows_of_state):
    """Return the MDP in which ``rows_of_state[s]`` are dicts from successors to probabilities."""
    rows = [row for rows in rows_of_state for row in rows]
    probability = [p for row in rows for p in row.values()]
    return IntervalMDP.from_arrays(
        np.cumsum([0, *map(len, rows_of_state)]), np.cumsum([0, *map(len, rows)]), [t for row in rows for t in row],
        probability, probability,
    )  # fmt: skip


def test_runs_so_long_that_rounding_takes_more_than_the_precision_are_still_bounded():
    """Up with 1/4, down with 3/4 (at the bottom: stay): climbing takes 3^n steps and more.

    One level up from s takes t(s) = 4 + 3 t(s - 1) steps, and 4 from the bottom.
    """
    n = 24
    mdp = ladder([[{min(s + 1, n): 0.25, max(s - 1, 0): 0.75}] for s in range(n)] + [[{n: 1.0}]])
    level, expected = 4, 4
    for _ in range(n - 1):
        level = 4 + 3 * level
        expected += level
    solution = pl.stages.solve(mdp, steps(n + 1, n))
    assert solution.lower[0] <= expected <= solution.upper[0]
    assert solution.upper[0] < 1.1 * solution.lower[0]
    assert solution.sweeps < 1000


def test_runs_longer_than_any_number_of_sweeps_are_given_up():
    """The way out has probability 2^-52 in every step; its inverse is the value."""
    out = 2.0**-52
    mdp = ladder([[{1: 0.5, 0: 0.5}], [{0: 1 - out, 2: out}], [{2: 1.0}]])
    solution = pl.stages.solve(mdp, steps(3, 2))
    assert solution.lower[0] <= 3 * 2.0**52 <= solution.upper[0]
    assert solution.sweeps < 1000


def test_where_the_way_turns_round_is_found_without_changing_one_state_at_a_time():
    """From state s both ends of a line are s and n - s moves away, and each move takes two steps."""
    n = 3000
    inner = [[{s - 1: 0.5, s: 0.5}, {s + 1: 0.5, s: 0.5}] for s in range(1, n)]
    solution = pl.stages.solve(ladder([[{0: 1.0}], *inner, [{n: 1.0}]]), steps(n + 1, 0, n), nature="optimistic")
    expected = 2 * np.minimum(np.arange(n + 1), n - np.arange(n + 1))
    assert solution.status == "converged"
    assert (solution.lower <= expected).all()
    assert (expected <= solution.upper).all()
    assert solution.sweeps < 1000


def test_the_policy_of_infinite_rewards_attains_them():
    """State 1 may wait forever or go to 0 or 3, evenly; 0 leads to 1, 2 to 1 or to the target 3.

    Going is no reason for an infinite value of 1: with it the target is certain.
    """
    mdp = ladder([[{1: 1.0}], [{0: 0.5, 3: 0.5}, {1: 1.0}], [{3: 1.0}, {1: 1.0}], [{3: 1.0}]])
    objective = steps(4, 3, direction="max")
    solution = pl.stages.solve(mdp, objective)
    worth = pl.stages.evaluate(mdp, solution.policy, objective)
    assert solution.lower.tolist() == worth.lower.tolist() == [np.inf, np.inf, np.inf, 0]


@pytest.mark.parametrize("nature", ["robust", "optimistic"])
@pytest.mark.parametrize("objective", [reach(21, 20), steps(21, 0, 20), reach(21, 20, complement=True)])
def test_where_the_solver_starts_makes_no_difference_to_what_it_proves(walk, objective, nature):
    """From its own solution, from one of another nature, and from nonsense."""
    plain = pl.stages.solve(walk, objective, nature=nature)
    nonsense = replace(plain, lower=np.random.default_rng(1).random(21) * 1e6)
    for start in (plain, pl.stages.solve(walk, objective, nature="optimistic"), nonsense):
        solution = pl.stages.solve(walk, objective, nature=nature, start=start)
        assert solution.status == "converged"
        assert (solution.lower <= plain.upper).all()
        assert (plain.lower <= solution.upper).all()


def test_a_start_of_another_model_is_refused(walk, fork):
    with pytest.raises(pl.ModelError, match="a policy is 21 choice numbers"):
        pl.stages.solve(walk, reach(21, 20), start=pl.stages.solve(fork, reach(3, 1)))


def test_a_state_whose_bounds_meet_has_converged_whatever_others_have():
    bounds = np.array([0.5, np.inf, 0.1]), np.array([0.5, np.inf, 0.9])
    solution = Solution(*bounds, np.zeros(3, dtype=np.int32), SolverStatus.OPEN, 1)
    assert [status_at(solution, state, 1e-6) for state in range(3)] == ["converged", "converged", SolverStatus.OPEN]
    interrupted = replace(solution, status=SolverStatus.INTERRUPTED)
    assert status_at(interrupted, 0, 1e-6) == SolverStatus.INTERRUPTED


@pytest.mark.parametrize("max_sweeps", [1, 2, 5, 30])
def test_a_limit_on_sweeps_leaves_bounds(walk, max_sweeps):
    exact = 1 / (1 + Fraction(55, 45) ** 10)
    solution = pl.stages.solve(walk, reach(21, 20), max_sweeps=max_sweeps)
    assert Fraction(solution.lower[10]) <= exact <= Fraction(solution.upper[10])
    assert solution.status.startswith("open")


@pytest.mark.parametrize("objective", [reach(21, 20), steps(21, 0, 20), steps(21, 0, 20, direction="max")])
@pytest.mark.parametrize("share", [1e-3, 1e-6])
def test_only_true_bounds_can_be_proved(walk, objective, share):
    """Candidates on the wrong side must be refused or moved to the right one, whoever proposes them."""
    value = pl.stages.solve(walk, objective, precision=1e-9)
    for side in (-1.0, 1.0):
        board = lay_out(make_game(walk, objective, "robust"))
        low, high = board.known.copy(), board.known.copy()
        low[: board.n_undecided] = 0.0
        high[: board.n_undecided] = 1.0 if isinstance(objective, pl.model.Reach) else np.inf
        ((start, end, _),) = board.parts
        component = Component(board, start, end, low, high, board.first_row.copy(), high[0])
        exact = (value.lower if side < 0 else value.upper)[board.state][start:end]
        prove(component, low if side < 0 else high, exact * (1 - side * share), side)
        assert (board.by_state(low) <= value.upper).all()
        assert (board.by_state(high) >= value.lower).all()


def test_misuse_is_refused_with_its_reason(fork):
    refused("solver:refused", globals(), m=fork)


# Every way through solve can be started


def tangled():
    """Return three states that nature may hold for long, a goal and a trap, with two choices each."""
    states = [
        [[(0, 0.0, 0.9), (1, 0.05, 0.5), (3, 0.0, 0.1)], [(2, 0.5, 0.9), (4, 0.1, 0.5)]],
        [[(0, 0.3, 0.7), (3, 0.1, 0.2), (4, 0.1, 0.5)], [(1, 0.5, 0.9), (2, 0.1, 0.5)]],
        [[(2, 0.2, 0.6), (0, 0.1, 0.8), (3, 0.0, 0.3)], [(3, 0.4, 0.6), (4, 0.4, 0.6)]],
        [[(3, 1, 1)]],
        [[(4, 1, 1)]],
    ]
    return model_of(states)


GOAL = np.arange(5) == 3
PAID = RewardStructure(None, np.array([1.0, 2.0, 0.5, 1.0, 0.0, 3.0, 0.0, 0.0]))
WAYS = {
    "reach": (tangled(), Reach(GOAL, np.zeros(5, bool), "max")),
    "complement": (tangled(), Reach(GOAL, np.zeros(5, bool), "min", complement=True)),
    "steps": (tangled(), Reach(GOAL, np.zeros(5, bool), "max", (0, 4))),
    "reward until": (tangled(), Reward(PAID, "min", GOAL | (np.arange(5) == 4))),
    "discount": (tangled(), Reward(PAID, "min", discount=Fraction(9, 10))),
}


@pytest.mark.parametrize("way", ["reach", "reward until", "steps"])
def test_solve_tells_which_share_is_done_up_to_the_end(way, monkeypatch):
    monkeypatch.setattr("plumdp.base.progress._SECONDS", 0.0)
    told = []
    with shown_by_others(told.append):
        pl.stages.solve(*WAYS[way])
    shares = [int(text.removeprefix("solving: ").removesuffix(" %")) for text in told]
    assert shares[-1] == 100
    assert shares == sorted(shares)


@pytest.mark.parametrize("way", WAYS)
def test_a_start_saves_sweeps_and_is_not_trusted(way):
    """From its own solution a problem takes no more sweeps; from nonsense it ends with bounds that overlap."""
    imdp, objective = WAYS[way]
    cold = pl.stages.solve(imdp, objective)
    warm = pl.stages.solve(imdp, objective, start=cold)
    last = imdp.graph.first_choice[1:] - 1
    misled = pl.stages.solve(
        imdp, objective, start=replace(cold, lower=np.full(5, 0.3), upper=np.full(5, 0.3), policy=last)
    )
    assert warm.sweeps <= cold.sweeps
    for other in (warm, misled):
        assert (other.lower <= cold.upper).all()
        assert (cold.lower <= other.upper).all()
        assert other.status == cold.status == "converged"


def test_a_discounted_problem_starts_from_the_values_of_a_similar_one():
    imdp, objective = WAYS["discount"]
    assert (
        pl.stages.solve(imdp, objective, start=pl.stages.solve(imdp, objective)).sweeps
        < pl.stages.solve(imdp, objective).sweeps / 2
    )


@pytest.mark.parametrize("way", WAYS)
def test_the_values_of_a_policy_may_start_from_others_which_are_not_trusted(way):
    """From the values that the policy was found with, and from nonsense, bounds overlap with those from nothing."""
    imdp, objective = WAYS[way]
    found = pl.stages.solve(imdp, objective)
    nonsense = replace(found, lower=np.full(5, 0.3), upper=np.full(5, 0.3))
    cold = evaluate_all([imdp], found.policy, objective, ("robust", "optimistic"))
    for start in (found, nonsense):
        warm = evaluate_all([imdp], found.policy, objective, ("robust", "optimistic"), start=start)
        for one, other in zip(warm, cold, strict=True):
            assert (one.lower <= other.upper).all()
            assert (other.lower <= one.upper).all()
            assert one.status == other.status == "converged"
            assert (one.policy == found.policy).all()


# The policy that is proposed at a point is the best one there, for all kinds of objectives


ASKED = (
    'Rmin=? [ F "end" ]',
    'Rmax=? [ F "end" ]',
    'Pmin=? [ F "goal" ]',
    'Pmax=? [ F "goal" ]',
    'Pmin=? [ F<=5 "goal" ]',
)


@pytest.mark.parametrize("text", ASKED)
def test_the_policy_at_a_point_attains_the_best_value(text):
    model = small_model()
    objective, point = as_objective(text, model), {"p": 0.6, "q": 0.3}
    policy = PointSolver(model, objective).policy_at(np.array(list(point.values())))
    known = model_at(model, point)
    best = plumdp.stages.solve(known, objective)
    found = plumdp.stages.evaluate(known, plumdp.PolicyTable(model.graph, policy), objective)
    start = model.graph.initial_state
    assert found.lower[start] == pytest.approx(best.lower[start], rel=1e-5)
