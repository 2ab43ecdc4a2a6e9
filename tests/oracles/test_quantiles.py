"""Least budgets, rewards until a mission is done, and rewards of one state, against brute force in rationals.

At night there are 200 quantiles, with all budgets tried one by one at points of confidence sets.
"""

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from coupled_points import rows_at
from mission_cases import LABELS, holds, over_histories, random_mission_model, trace_of, written
from point_cases import random_data
from set_points import points_of_set
from tiers import size

import plumdp as pl
from plumdp.certifying import quantile as module
from plumdp.decisions import quantile
from plumdp.model.missions import automaton
from plumdp.model.question import ask
from plumdp.relaxation.intervals import instantiate
from plumdp.stages import solve

pytestmark = pytest.mark.slow

N_QUANTILES, N_REWARDS = size(4, 200), size(30, 1000)
LARGEST = 40  # half units or steps, more than any history has


def random_quantile(rng):
    """Return the text of a question, and what a run is worth with a budget, in half units of fuel or in steps."""
    stay, goal = rng.choice([*LABELS, "true"]), rng.choice(LABELS)
    name = str(rng.choice(["fuel", "step"]))
    shown = {"fuel": '{"fuel"}', "step": ""}[name]
    sign, number = str(rng.choice([">=", "<=", ">", "<"])), Fraction(int(rng.integers(1, 10)), 10)
    direction = str(rng.choice(["", "max", "min"]))
    operator = str(rng.choice(["U", "G"]))
    keep = "true" if stay == "true" else f'"{stay}"'
    path = f'{keep} U{shown}<=B "{goal}"' if operator == "U" else f'G{shown}<=B "{goal}"'
    text = f"quantile(B, P{direction}{sign}{number} [ {path} ])"
    return text, name, sign, number, direction, operator, str(stay), str(goal)


def spent(model, history, taken, name):
    """Yield what was spent before each state of a history, in half units of fuel or in steps."""
    reward, total = model.rewards["fuel"], 0
    for step, state in enumerate(history):
        yield total
        if step < len(taken):
            total += 1 if name == "step" else int(2 * (reward.state[state] + reward.choice[taken[step]]))


def is_done(model, history, taken, most, name, operator, stay, goal):
    """Return whether a run comes to the goal while it stays and within the budget, or (G) is always there till then."""
    for names, total in zip(trace_of(model, history), spent(model, history, taken, name), strict=True):
        if total > most:
            return operator == "G"
        if operator == "G" and goal not in names:
            return False
        if operator == "U" and goal in names:
            return True
        if operator == "U" and stay != "true" and stay not in names:
            return False
    return operator == "G"


def kept_with(model, rows, case):
    """Return for each budget whether the threshold is kept, by the best value of all policies that know the history."""
    _, name, sign, number, direction, operator, stay, goal = case
    is_best_max = sign in (">", ">=")
    pick = max if (direction or ("max" if is_best_max else "min")) == "max" else min
    compare = {">=": Fraction.__ge__, "<=": Fraction.__le__, ">": Fraction.__gt__, "<": Fraction.__lt__}[sign]
    kept = []
    for most in range(LARGEST):
        best = over_histories(
            model,
            rows,
            lambda history, taken: is_done(model, history, taken, most, name, operator, stay, goal),  # noqa: B023
            lambda _, own, value_of: pick(map(value_of, own)),
        )
        kept.append(compare(best, number))
    return kept


def wrong_quantile(seed, seen):
    """Return a question, what was found, and the true budget, if that is outside at some point of the set."""
    rng = np.random.default_rng([seed, 51])
    model, case = random_mission_model(rng), random_quantile(rng)
    point = {name: Fraction(int(rng.integers(1, 10)), 10) for name in ("p", "q")}
    learned = pl.learn(model, random_data(rng, model, point))
    if learned.conflict is not None:
        return None
    found = quantile(learned, case[0])
    for at in points_of_set(rng, learned, [], 2):
        kept = kept_with(model, rows_at(model, at), case)
        seen.append(found.possible)
        if not is_right(found, kept):
            return case[0], found, kept
    return None


def is_right(found, kept):
    """Return whether the true budget is within the bounds, given with which ones of half units or steps it is kept."""
    if found.question.is_least:
        true = kept.index(True) if True in kept else inf
    else:
        true = inf if all(kept) else kept.index(False) - 1
    if true == (inf if found.question.is_least else -1):
        return (found.most if found.question.is_least else found.least) is None and found.possible != "yes"
    if true != inf:  # budgets between two multiples of the unit are worth as much as the smaller one
        true = true // (2 * found.unit) * found.unit if found.question.name == "fuel" else true
    low, high = found.least, found.most
    return found.possible != "no" and (low is None or low <= true) and (high is None or true <= high)


def test_the_true_budget_lies_between_the_ends_at_points_of_confidence_sets():
    seen = []
    assert [wrong for seed in range(N_QUANTILES) if (wrong := wrong_quantile(seed, seen))] == []
    assert len(seen) >= N_QUANTILES
    assert seen.count("yes") > len(seen) / 4


def one_more_is_refuted(patch):
    """The budget next to those with which the threshold is not kept counts as one of them."""
    right = module._swept

    def wrong(learned, asked, *given):
        yes, no = right(learned, asked, *given)
        return yes, np.append(True, no[:-1]) if asked.is_least else np.append(no[1:], True)

    patch.setattr(module, "_swept", wrong)


def sides_are_swapped(patch):
    """What is certified counts as refuted."""
    right = module._swept
    patch.setattr(module, "_swept", lambda *given: right(*given)[::-1])


@pytest.mark.parametrize("plant", [sides_are_swapped, one_more_is_refuted])
def test_a_wrong_sweep_is_found(plant, monkeypatch):
    plant(monkeypatch)
    assert any(wrong_quantile(seed, []) for seed in range(30))


# Rewards until a mission is done


def random_mission(rng):
    """Return a formula whose first prefix on which it holds says that it holds of all that follows."""
    one, two, three = (("label", str(name)) for name in rng.permutation(LABELS))
    return (
        ("F", ("&", one, ("F", two, None)), None),
        ("&", ("F", one, None), ("F", two, None)),
        ("U", one, ("&", two, ("F", three, None)), None),
        ("|", ("F", ("&", one, ("X", two)), None), ("F", ("&", two, three), None)),
        ("F", ("&", one, ("F", two, (0, 2))), None),
    )[int(rng.integers(5))]


def earned(model, rows, formula, pick):
    """Return the expected reward until a formula holds of the history, infinite if it may never hold."""
    graph, reward = model.graph, model.rewards["fuel"]

    def value(history):
        s = history[-1]
        if holds(formula, trace_of(model, history), is_finite=True):
            return Fraction(0)
        own = range(graph.first_choice[s], graph.first_choice[s + 1])
        ways = [range(graph.first_transition[c], graph.first_transition[c + 1]) for c in own]
        if all(graph.successor[t] == s for way in ways for t in way):
            longer = [*history, s, s, s]  # nothing new is met any more; what takes steps is met by then
            for n in range(1, 4):
                if holds(formula, trace_of(model, longer[: len(history) + n]), is_finite=True):
                    return n * Fraction(reward.state[s] + reward.choice[own[0]])
            return inf
        return pick(
            Fraction(reward.state[s])
            + Fraction(reward.choice[c])
            + sum(rows[t] * value([*history, int(graph.successor[t])]) for t in way)
            for c, way in zip(own, ways, strict=True)
        )

    return value([graph.initial_state])


def wrong_reward(seed):
    rng = np.random.default_rng([seed, 52])
    model, formula = random_mission_model(rng), random_mission(rng)
    if any(states.all() for states in model.labels.values()):
        return None
    point = {name: Fraction(int(rng.integers(1, 10)), 10) for name in ("p", "q")}
    direction = "max" if seed % 2 else "min"
    question = ask(f'R{{"fuel"}}{direction}=? [ {written(formula)} ]', model)
    found = solve(instantiate(question.model, point), question.objective, precision=1e-9)
    start = question.model.graph.initial_state
    low, high = float(found.lower[start]), float(found.upper[start])
    true = earned(model, rows_at(model, point), formula, max if direction == "max" else min)
    return (
        None
        if low - 1e-7 <= true <= high + 1e-7 and (low == inf) == (true == inf)
        else (seed, written(formula), low, true)
    )


def test_rewards_until_a_mission_is_done_are_those_of_histories():
    assert [wrong for seed in range(N_REWARDS) if (wrong := wrong_reward(seed))] == []


def a_step_late(patch):
    """A mission counts as done one step after it is."""
    right = automaton.Automaton.asked_of

    def wrong(self, model, mission):
        return right(self, model, mission) if mission.reward is None else _late(right, self, model, mission)

    patch.setattr(automaton.Automaton, "asked_of", wrong)


def _late(right, self, model, mission):
    product, asked = right(self, model, mission)
    over = product.graph.states["mission"] == "over"
    return product, type(asked)(asked.reward, asked.direction, target=over, text=asked.text)


def test_a_mission_that_ends_a_step_late_is_found(monkeypatch):
    a_step_late(monkeypatch)
    assert any(wrong_reward(seed) for seed in range(40))


# The reward of one state


def test_the_reward_after_k_steps_is_that_of_all_policies_that_count():
    """By backward induction in rationals."""
    for seed in range(size(8, 300)):
        rng = np.random.default_rng([seed, 53])
        model, k = random_mission_model(rng, is_acyclic=False), int(rng.integers(0, 5))
        point = {name: Fraction(int(rng.integers(1, 10)), 10) for name in ("p", "q")}
        graph, rows, pick = model.graph, rows_at(model, point), max if seed % 2 else min
        value = [Fraction(each) for each in model.rewards["fuel"].state]
        for _ in range(k):
            value = [
                pick(
                    sum(rows[t] * value[graph.successor[t]] for t in range(*graph.first_transition[c : c + 2]))
                    for c in range(*graph.first_choice[s : s + 2])
                )
                for s in range(graph.n_states)
            ]
        question = ask(f'R{{"fuel"}}{pick.__name__}=? [ I={k} ]', model)
        found = solve(instantiate(question.model, point), question.objective, precision=1e-9)
        assert float(found.lower[0]) - 1e-8 <= value[graph.initial_state] <= float(found.upper[0]) + 1e-8, seed
