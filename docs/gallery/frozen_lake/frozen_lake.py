"""FrozenLake of Gymnasium: learn how slippery the ice is while walking on it, with a guarantee at any time.

python frozen_lake.py [EPISODES]
"""

import sys

import gymnasium

import plumdp as pl

env = gymnasium.make("FrozenLake-v1", is_slippery=True, max_episode_steps=1000)
ice = "".join(cell.decode() for cell in env.unwrapped.desc.ravel())
moves = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}  # in the environment's order
names = [*moves]
to_left, to_right = pl.parameters("to_left", "to_right")


def after(x: int, y: int, name: str) -> dict[str, int]:
    """Return the place after a step that was not slipped."""
    down, right = moves[name]
    return {"x": min(max(x + right, 0), 3), "y": min(max(y + down, 0), 3)}


def step(s):
    """Return where each action may lead from a place on the ice."""
    if ice[4 * s.y + s.x] in "HG":  # a hole, or the goal
        return {"done": [(1, s)]}
    turns = ((to_left, 1), (1 - to_left - to_right, 0), (to_right, -1))
    return {
        name: [(chance, s._replace(**after(s.x, s.y, names[(i + turn) % 4]))) for chance, turn in turns]
        for i, name in enumerate(names)
    }


model = pl.explore(step, {"x": 0, "y": 0}, space=pl.ParameterSpace.simplex("to_left", "to_right"))
episodes = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
see = lambda cell: {"x": cell % 4, "y": cell // 4}  # noqa: E731
records = list(pl.learn_online(model, env, "Pmax=? [ F x=3 & y=3 ]", episodes=episodes, rng=1, observe=see))
print(f"worth at least {records[-1].bound:.3f}; no policy is worth more than {records[-1].optimistic_bound:.3f}")
records[-1].policy.to_csv("policy.csv")
