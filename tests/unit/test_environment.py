"""A model as a Gymnasium environment, and counts from the runs of environments."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from refusals import refused
from tiers import size

import plumdp as pl
from plumdp.data.observing import self_loops
from plumdp.data.pilots import planned_moments
from plumdp.data.simulators import as_env, gym_environment, sample_env

gymnasium = pytest.importorskip("gymnasium")
spaces = gymnasium.spaces
check_env = pytest.importorskip("gymnasium.utils.env_checker").check_env

FAMILIES = ("aircraft:20,10", "betting:25", "engagement:50", "rover:10,10", "glider:11,9", "parallel:5")


@pytest.fixture(scope="module", params=FAMILIES)
def study(request):
    return pl.case_study(request.param)


@pytest.fixture(scope="module")
def betting():
    return pl.case_study("betting:25")


@pytest.fixture(scope="module")
def door():
    """A model with variables of all three kinds: a door, locked or not, behind which one can be."""
    (p,) = pl.parameters("p")

    def step(s):
        if s.place == "in":
            return {"rest": [(1, s)]}
        stay = s._replace(tries=min(s.tries + 1, -1))
        actions = {"push": [(p, s._replace(place="in")), (1 - p, stay)]} if s.is_open else {}
        return actions | {"turn": [(p / 2, s._replace(is_open=not s.is_open)), (1 - p / 2, stay)]}

    return pl.explore(
        step,
        {"place": "outside", "is_open": False, "tries": -3},
        space=pl.ParameterSpace.unit("p"),
        rewards={"effort": lambda s: 1.0 if s.place == "outside" else 0.0},
        choice_rewards={"effort": lambda s, action: 0.5 if action == "push" else 0.0},
    )


class Coin(gymnasium.Env):
    """Betting 0 or 1 with another face: observations are texts, actions 7 and 8, as a foreign simulator has them."""

    observation_space = spaces.Text(20)
    action_space = spaces.Discrete(2, start=7)

    def __init__(self, rounds, *, win=1):
        self.rounds, self.win = rounds, win

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.money, self.round = 10, 0
        return f"{self.money}/{self.round}", {}

    def step(self, action):
        self.round += 1
        if action == 8:
            self.money += self.win if self.np_random.random() < 0.55 else -1
        return f"{self.money}/{self.round}", 0.0, self.round == self.rounds, False, {}


def observe(text):
    money, step = text.split("/")
    return {"money": int(money), "step": int(step)}


def zero_or_one(model):
    """Return the policy that bets 0 or 1 with equal probability, and the environment's action for each name."""
    graph = model.graph
    names = np.array(graph.action_names)[graph.action]
    weights = np.isin(names, ["bet0", "bet1", "end", "done"]).astype(float)
    weights /= np.repeat(np.add.reduceat(weights, graph.first_choice[:-1]), np.diff(graph.first_choice))
    return weights, lambda name: {"bet0": 7, "bet1": 8}.get(name)


# --- as_env


def test_gymnasiums_own_checker_has_nothing_to_say(study):
    """Warnings are errors here. The checker also takes actions that the state does not have."""
    check_env(as_env(study.model, study.true_point, max_steps=study.max_steps))


def test_the_checker_also_accepts_texts_and_booleans(door):
    env = as_env(door, {"p": "0.5"}, max_steps=30, reward="effort")
    check_env(env)
    observation, info = env.reset(seed=1)
    assert observation == {"place": "outside", "is_open": 0, "tries": -3}
    assert info["action_mask"].tolist() == [1, 0, 0]
    assert door.graph.action_names == ("turn", "push", "rest")


def test_environments_can_be_made_in_numbers_from_the_spec(betting):
    env = as_env(betting.model, betting.true_point)
    several = gymnasium.make_vec(env.spec, num_envs=3)
    observation, _ = several.reset(seed=1)
    assert observation["money"].tolist() == [10, 10, 10]


def test_a_seed_decides_the_run(betting):
    def moneys(seed):
        env = as_env(betting.model, betting.true_point)
        env.reset(seed=seed)
        return [int(env.step(1)[0]["money"]) for _ in range(25)]

    assert moneys(1) == moneys(1)
    assert moneys(1) != moneys(2)


def test_steps_earn_what_state_and_choice_give(door):
    env = as_env(door, {"p": 1}, reward="effort")
    env.reset(seed=3)
    earned, is_open = [], 0
    while not is_open:
        observation, reward, *_ = env.step(0)
        is_open = observation["is_open"]
        earned.append(reward)
    assert set(earned) == {1.0}
    assert env.step(1)[1] == 1.5
    assert env.step(2)[1] == 0.0


def test_runs_terminate_in_stop_states_and_are_truncated_after_the_last_step(door):
    env = as_env(door, {"p": 1}, max_steps=4, stop=door.graph.states["place"] == "in")
    env.action_space.seed(1)
    ends = set()
    for seed in range(30):
        _, info = env.reset(seed=seed)
        for step in range(1, 5):
            action = env.action_space.sample(info["action_mask"])
            observation, _, terminated, truncated, info = env.step(action)
            assert terminated == (observation["place"] == "in")
            assert truncated == (step == 4 and not terminated)
            if terminated or truncated:
                break
        ends.add((terminated, truncated))
        with pytest.raises(pl.DataError, match=r"the run is over: call reset\(\) before the next step"):
            env.step(0)
    assert ends == {(True, False), (False, True)}


def test_an_action_that_the_state_does_not_have_changes_nothing_or_is_refused(door):
    env = as_env(door, {"p": "0.5"}, reward="effort")
    before, _ = env.reset(seed=1)
    after, reward, terminated, truncated, info = env.step(1)
    assert (after, reward, terminated, truncated) == (before, 0.0, False, False)
    assert info["action_mask"].tolist() == [1, 0, 0]
    env = as_env(door, {"p": "0.5"}, unavailable="error")
    env.reset(seed=1)
    with pytest.raises(pl.DataError) as caught:
        env.step(1)
    assert str(caught.value) == (
        "state (place=outside, is_open=false, tries=-3): action 1 ('push') is not available, only 0 ('turn')"
    )


def test_misuse_is_refused_with_a_sentence(door):
    errors = pl.ModelError, pl.DataError
    refused("environments:made", lambda changes: as_env(door, {"p": "0.5"}, **eval(changes)), errors)


@pytest.mark.slow
def test_without_gymnasium_the_missing_extra_is_named():
    code = """
import sys
sys.modules["gymnasium"] = None
import plumdp as pl
from plumdp.base.errors import MissingExtra
from plumdp.data.simulators import as_env
study = pl.case_study("betting:25")
try:
    as_env(study.model, study.true_point)
except MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "environments need Gymnasium: pip install 'plumdp[gym]'\n"


# --- sample_env


def test_counts_are_those_of_the_steps_that_the_environment_made(study):
    """The environment's own story, kept by a wrapper, gives the same counts through the valuations."""
    graph, story = study.model.graph, []

    class Story(gymnasium.Wrapper):
        def reset(self, **options):
            observation, info = self.env.reset(**options)
            story.append([(None, tuple(observation.values()))])
            return observation, info

        def step(self, action):
            observation, *rest = self.env.step(action)
            story[-1].append((action, tuple(observation.values())))
            return observation, *rest

    env = Story(as_env(study.model, study.true_point, max_steps=20, unavailable="error"))
    counts = sample_env(study.model, env, 30, rng=5)
    state_of = {tuple(row): i for i, row in enumerate(zip(*(c.tolist() for c in graph.states.values()), strict=True))}
    expected = np.zeros(graph.n_transitions, dtype=int)
    for run in story:
        for (_, before), (action, after) in pairwise(run):
            source, target = state_of[before], state_of[after]
            choices = range(graph.first_choice[source], graph.first_choice[source + 1])
            (choice,) = [c for c in choices if graph.action[c] == action]
            edges = range(graph.first_transition[choice], graph.first_transition[choice + 1])
            expected[[t for t in edges if graph.successor[t] == target]] += 1
    is_stuck = np.logical_and.reduceat(self_loops(graph), graph.first_choice[:-1])
    assert len(story) == 30
    assert all(len(run) == 21 or is_stuck[state_of[run[-1][1]]] for run in story)  # else they went on for 20 steps
    assert counts.total == sum(len(run) - 1 for run in story)
    assert not counts.visits[self_loops(graph)].any()
    assert counts.counts.tolist() == expected.tolist()
    assert counts.sampling == "adaptive"  # nobody has said that the number of episodes was fixed beforehand


@pytest.mark.slow
def test_what_had_been_seen_after_some_episodes_is_kept_and_changes_no_counts(betting):
    """Whoever runs fewer episodes from the same seed sees the same first ones."""

    def counts(episodes, *, pilot):
        env = as_env(betting.model, betting.true_point, max_steps=size(4, 25))
        return sample_env(betting.model, env, episodes, rng=3, pilot=pilot)

    sampled = counts(130, pilot=True)
    moments = planned_moments(130)
    assert moments[:2] == (4, 16)
    plain, *first = (counts(episodes, pilot=False) for episodes in (130, *moments))
    assert sampled.counts.tolist() == plain.counts.tolist()
    assert [moment.tolist() for moment in sampled.pilot.moments] == [part.counts.tolist() for part in first]
    assert sampled.pilot.counts.tolist() == first[moments.index(16)].counts.tolist()
    assert (sampled.pilot.end, sampled.pilot.weight, sampled.pilot.expected) == ("planned", 1, 130)
    assert sampled.pilot.ratio == 130 / 16 - 1
    assert {plain.pilot, counts(4, pilot=True).pilot} == {None}
    assert sampled.sampling == "adaptive"
    with pytest.raises(pl.DataError, match=r"^pilot=0\.1: choose True, or False to place no bets"):
        counts(130, pilot=0.1)


def test_a_policy_is_followed_and_max_steps_ends_episodes(betting):
    graph = betting.model.graph
    env = as_env(betting.model, betting.true_point)
    policy = graph.first_choice[1:] - 1
    counts = sample_env(betting.model, env, 40, rng=1, max_steps=7, policy=policy)
    assert counts.total == 280
    assert set(np.flatnonzero(counts.visits)) <= set(policy.tolist())


def test_the_same_seed_gives_the_same_counts(betting):
    def counts(seed):
        env = as_env(betting.model, betting.true_point, max_steps=25)
        return sample_env(betting.model, env, 20, rng=seed).counts.tolist()

    assert counts(1) == counts(1)
    assert counts(1) != counts(2)


def test_a_foreign_environment_is_read_through_observe_and_act(betting):
    weights, act = zero_or_one(betting.model)
    counts = sample_env(
        betting.model, gym_environment(betting.model, Coin(25), observe=observe, act=act), 400, rng=1, policy=weights
    )
    graph = betting.model.graph
    taken = np.bincount(graph.action, counts.visits, len(graph.action_names)).astype(int)
    assert taken[:2].sum() == counts.total == 400 * 25
    money = graph.states["money"]
    gain = money[graph.successor] - money[graph.state_of_choice()[graph.choice_of_transition()]]
    wins, losses = counts.counts[gain == 1].sum(), counts.counts[gain == -1].sum()
    assert wins + losses == taken[1]
    assert abs(wins / taken[1] - 0.55) < 5 * (0.25 / taken[1]) ** 0.5


def test_what_does_not_fit_the_model_is_named(betting):
    policy = betting.model.graph.first_choice[:-1].copy()
    policy[0] = 1  # bet 1 in the first round
    _, act = zero_or_one(betting.model)

    def run(changes):
        given = {"env": Coin(25), "episodes": 50, "observe": observe, "act": act} | eval(changes)
        how = {name: given.pop(name) for name in ("env", "observe", "act")}
        sample_env(betting.model, gym_environment(betting.model, **how), policy=policy, rng=1, **given)

    refused("environments:runs", run, pl.DataError)


def test_choices_with_one_action_name_are_refused():

    class Two(dict):
        """A step with two choices under one name, as commands without a name have in PRISM."""

        def items(self):
            return [("", [(1, s)]) for s in self["targets"]]

        def __len__(self):
            return 2

    model = pl.explore(lambda s: Two(targets=[s, s._replace(x=1)]), {"x": 0}, space=pl.ParameterSpace.unit("p"))
    message = r"state \(x=0\), action '' stands for several choices, which an environment cannot tell apart"
    with pytest.raises(pl.ModelError, match=message):
        as_env(model, {"p": 1})
    with pytest.raises(pl.ModelError, match=message):
        sample_env(model, None, 1, rng=1)
