"""Rewards until a mission is done, and rewards of one state, against brute force in rationals."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from coupled_points import rows_at
from mission_cases import LABELS, holds, random_mission_model, trace_of, written
from tiers import size

from plumdp.model.missions import automaton
from plumdp.model.question import ask
from plumdp.relaxation.intervals import instantiate
from plumdp.stages import solve

pytestmark = pytest.mark.slow

N_REWARDS = size(30, 1000)


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
