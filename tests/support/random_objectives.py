"""Objectives of all kinds, with random goals, rewards and states to avoid."""

import numpy as np

import plumdp as pl
from plumdp.model.objective import Reach, Reward

KINDS = ("reach", "until", "globally", "reward", "total", "discount", "steps", "steps and rewards")


def random_objective(rng, model, kind):
    """Return an objective of a kind, with a random goal, rewards and states to avoid."""
    n, start = model.graph.n_states, model.graph.initial_state
    goal = model.labels["goal"].copy() if "goal" in model.labels and rng.random() < 0.7 else rng.random(n) < 0.3
    goal[start] &= rng.random() < 0.1
    avoid, direction = (rng.random(n) < 0.2) & ~goal, str(rng.choice(["max", "min"]))
    paid = rng.integers(0, 3, model.graph.n_choices) / 2
    reward = pl.RewardStructure(rng.integers(0, 3, n) / 2, paid)
    outside = pl.RewardStructure(None, np.where(goal[model.graph.state_of_choice()], 0.0, paid))
    return {
        "reach": lambda: Reach(goal, np.zeros_like(goal), direction),
        "until": lambda: Reach(goal, avoid, direction),
        "globally": lambda: Reach(goal, avoid, direction, complement=True),
        "reward": lambda: Reward(reward, direction, target=goal),
        "total": lambda: Reward(outside, direction),
        "discount": lambda: Reward(reward, direction, discount="0.9"),
        "steps": lambda: Reach(goal, avoid, direction, steps=(0, 4)),
        "steps and rewards": lambda: Reward(reward, direction, steps=4),
    }[kind]()
