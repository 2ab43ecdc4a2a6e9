"""Objectives of all kinds, with random goals, rewards and states to avoid."""

import numpy as np

from plumdp.model.objectives import Reach, Reward
from plumdp.model.parametric import RewardStructure

KINDS = ("reach", "until", "globally", "reward", "total", "discount", "steps", "steps and rewards")
ALL_KINDS = (*KINDS, "window", "globally in steps", "losses in steps", "discounted losses")


def random_objective(rng, model, kind):
    """Return an objective of a kind, with a random goal, rewards and states to avoid."""
    n, start = model.graph.n_states, model.graph.initial_state
    goal = model.labels["goal"].copy() if "goal" in model.labels and rng.random() < 0.7 else rng.random(n) < 0.3
    goal[start] &= rng.random() < 0.1
    avoid, direction = (rng.random(n) < 0.2) & ~goal, str(rng.choice(["max", "min"]))
    paid = rng.integers(0, 3, model.graph.n_choices) / 2
    reward = RewardStructure(rng.integers(0, 3, n) / 2, paid)
    outside = RewardStructure(None, np.where(goal[model.graph.state_of_choice()], 0.0, paid))
    return {
        "reach": lambda: Reach(goal, np.zeros_like(goal), direction),
        "until": lambda: Reach(goal, avoid, direction),
        "globally": lambda: Reach(goal, avoid, direction, complement=True),
        "reward": lambda: Reward(reward, direction, target=goal),
        "total": lambda: Reward(outside, direction),
        "discount": lambda: Reward(reward, direction, discount="0.9"),
        "steps": lambda: Reach(goal, avoid, direction, steps=(0, 4)),
        "steps and rewards": lambda: Reward(reward, direction, steps=4),
        "window": lambda: Reach(goal, avoid, direction, steps=window(rng)),
        "globally in steps": lambda: Reach(goal, avoid, direction, steps=(0, window(rng)[1]), complement=True),
        "losses in steps": lambda: Reward(losses(rng, model), direction, steps=window(rng)[1]),
        "discounted losses": lambda: Reward(losses(rng, model), direction, discount=str(rng.choice([0.5, 0.9, 0.999]))),
    }[kind]()


def window(rng):
    """Return the first and the last step of a window: at the start or later, of one step or several."""
    first = int(rng.integers(0, 3))
    return first, first + int(rng.choice([0, 1, 3, 8]))


def losses(rng, model):
    """Return rewards of choices, some of them negative."""
    return RewardStructure(None, rng.choice([-1.0, -0.3, 0.0, 2.5], model.graph.n_choices))
