"""Bare Gymnasium environments: read without or with ``observe`` and ``act``, never asked to stay, misuse refused."""

from collections import namedtuple

import numpy as np
import pytest
from refusals import refused

import plumdp as pl
from plumdp.data.observing import self_loops
from plumdp.data.simulators import gym_environment

gymnasium = pytest.importorskip("gymnasium")
spaces = gymnasium.spaces

SPACE = pl.ParameterSpace.unit("p")


def walk_model():
    """Return a walk on the cells 0 to 3 with one variable: "go" moves on with probability p, "wait" does nothing."""
    (p,) = pl.parameters("p")

    def step(s):
        if s.cell == 3:
            return {"done": [(1, s)]}
        return {"go": [(p, s._replace(cell=s.cell + 1)), (1 - p, s)], "wait": [(1, s)]}

    return pl.explore(step, {"cell": 0}, space=SPACE)


def grid_model():
    """Return a model with two variables and the actions "right" and "up", which move with probability p."""
    (p,) = pl.parameters("p")

    def step(s):
        if s.x == 2 or s.y == 2:
            return {"done": [(1, s)]}
        right, up = s._replace(x=s.x + 1), s._replace(y=s.y + 1)
        return {"right": [(p, right), (1 - p, up)], "up": [(p, up), (1 - p, right)]}

    return pl.explore(step, {"x": 0, "y": 0}, space=SPACE)


class Walk(gymnasium.Env):
    """The walk with whole numbers as observations; it never ends by itself, and each action it is sent is kept."""

    observation_space, action_space = spaces.Discrete(4), spaces.Discrete(1)

    def __init__(self):
        self.sent = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = 0
        return self.cell, {}

    def step(self, action):
        self.sent.append(action)
        assert action == 0
        assert self.cell < 3, "a step after the end"
        self.cell += int(self.np_random.random() < 0.7)
        return self.cell, 0.0, False, False, {}


class Grid:
    """Not a Gymnasium class at all: tuples as observations, texts as actions, and a reset without a seed."""

    def __init__(self, rng=1):
        self.rng = np.random.default_rng(rng)

    def reset(self):
        self.x = self.y = 0
        return (self.x, self.y), {}

    def step(self, action):
        is_right = (action == "→") == (self.rng.random() < 0.8)
        self.x, self.y = self.x + is_right, self.y + (not is_right)
        return (self.x, self.y), 0.0, self.x == 2 or self.y == 2, False, {}


ARROWS = {"right": "→", "up": "↑"}
GOAL, CORNER = "Pmax=? [ F cell=3 ]", "Pmax=? [ F x=2 ]"


def final(records):
    *_, last = records
    return last


@pytest.fixture(scope="module")
def walk():
    return walk_model()


@pytest.fixture(scope="module")
def grid():
    return grid_model()


def test_whole_numbers_are_the_only_variable_and_self_loops_are_never_sent(walk):
    """The only action that is sent is "go", so that one discrete action of the environment suffices without act."""
    env = Walk()
    counts = pl.data.sample_env(walk, env, 200, rng=1)
    assert walk.graph.action_names == ("go", "wait", "done")
    assert len(env.sent) == counts.total
    assert not counts.visits[self_loops(walk.graph)].any()
    assert counts.counts[walk.graph.successor == 3].sum() == 200  # each episode ends in the last cell, not before
    assert abs(600 / counts.total - 0.7) < 0.1  # three successes in each


def test_an_episode_ends_where_the_policy_only_stays(walk):
    env, graph = Walk(), walk.graph
    waits_at_one = [c if i != 1 else c + 1 for i, c in enumerate(graph.first_choice[:-1].tolist())]
    counts = pl.data.sample_env(walk, env, 50, rng=1, policy=waits_at_one)
    assert counts.counts[(graph.successor == 1) & ~self_loops(graph)[graph.choice_of_transition()]].sum() == 50
    assert counts.visits[graph.first_choice[1] :].sum() == 0


@pytest.mark.slow
def test_learning_takes_the_environment_itself_as_gym_environment_does_with_the_seed_0(walk):
    def numbers(records):
        return [(r.episodes, r.steps, r.bound, r.optimistic_bound, r.policy.choice.tolist()) for r in records]

    default = gym_environment(walk, Walk(), rng=0)
    assert numbers(pl.learn_online(walk, Walk(), GOAL, episodes=9)) == numbers(
        pl.learn_online(walk, default, GOAL, episodes=9)
    )


@pytest.mark.parametrize(
    "observe",
    [tuple, lambda o: {"y": o[1], "x": o[0], "more": 7}, np.array, lambda o: namedtuple("Place", "y x")(o[1], o[0])],
    ids=["tuple", "dict", "array", "named tuple"],
)
@pytest.mark.parametrize("act", [ARROWS, ARROWS.__getitem__], ids=["dict", "function"])
def test_observe_gives_variables_in_their_order_or_by_name(grid, observe, act):
    """The environment knows neither seeds nor spaces; equal numbers of its own generator must give equal counts."""
    expected = pl.data.sample_env(grid, gym_environment(grid, Grid(3), observe=tuple, act=ARROWS), 40, rng=2)
    counts = pl.data.sample_env(grid, gym_environment(grid, Grid(3), observe=observe, act=act), 40, rng=2)
    assert counts.counts.tolist() == expected.counts.tolist()
    record = final(pl.learn_online(grid, gym_environment(grid, Grid(3), observe=observe, act=act), CORNER, episodes=30))
    assert (record.episodes, record.true_value) == (30, None)
    assert record.policy((1, 1), observe=observe) == record.policy({"x": 1, "y": 1}) == record.policy.action(x=1, y=1)


class OldReset(Walk):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class OldStep(Walk):
    def step(self, action):
        cell, reward, over, _, info = super().step(action)
        return cell, reward, over, info


class Twice(Walk):
    num_envs = 2


def broken(observation):
    return observation.cell


def sample(env, model, **options):
    env = gym_environment(model, env, **options) if options else env
    pl.data.sample_env(model, env, 3, rng=1, policy=model.graph.first_choice[:-1])


def learn(env, model, **options):
    env = gym_environment(model, env, **options) if options else env
    list(pl.learn_online(model, env, GOAL, episodes=3, exploration=1e-9))


@pytest.mark.parametrize("run", [sample, learn])
def test_misuse_is_refused_with_a_sentence(walk, run):
    refused("environments:bare", lambda changes: run(**{"env": Walk(), "model": walk} | eval(changes)), pl.DataError)


def test_what_cannot_be_guessed_is_asked_for(grid):
    refused(
        "environments:grid",
        lambda given: pl.data.sample_env(grid, gym_environment(grid, Grid(), **eval(given)), 3, rng=1),
        pl.DataError,
    )


def test_a_policy_that_draws_is_followed_under_the_condition_that_it_moves():
    """Of "go" with 0.2, "back" with 0.3 and "stay" with 0.5, the environment sees "go" in two of five steps."""
    (p,) = pl.parameters("p")

    def step(s):
        if s.cell:
            return {"done": [(1, s)]}
        ahead = [(p, s._replace(cell=1)), (1 - p, s._replace(cell=2))]
        return {"stay": [(1, s)], "go": ahead, "back": ahead[::-1]}

    model = pl.explore(step, {"cell": 0}, space=SPACE)
    env = pl.data.as_env(model, {"p": "1/2"}, unavailable="error")
    weights = np.array([0.5, 0.2, 0.3, 1.0, 1.0])
    counts = pl.data.sample_env(model, env, 2000, rng=1, policy=weights)
    assert counts.total == 2000
    assert abs(counts.visits[1] / 2000 - 0.4) < 5 * (0.24 / 2000) ** 0.5
    assert counts.visits[1] + counts.visits[2] == 2000


def test_episodes_without_a_step_are_episodes(walk):
    """Learning would never end if a policy that waits at the start were run until it has made a step."""
    env, graph = Walk(), walk.graph
    weights = np.array([graph.action_names[action] != "go" for action in graph.action], dtype=float)
    seen = np.zeros(graph.n_transitions, dtype=np.int64)
    gym_environment(walk, env, rng=1).run(weights, 7, 40, seen)
    assert (seen.sum(), env.sent) == (0, [])
    assert pl.data.sample_env(walk, env, 5, rng=1, policy=graph.first_choice[:-1] + (np.arange(4) < 3)).total == 0
