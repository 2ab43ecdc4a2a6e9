"""Minari data sets: what is written is read again, the pilot is what came first, and selections are refused."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import plumdp as pl

minari = pytest.importorskip("minari")
pytest.importorskip("h5py")
import gymnasium  # noqa: E402
from gymnasium import spaces  # noqa: E402
from minari.data_collector import EpisodeBuffer  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def datasets(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(tmp_path_factory.mktemp("minari")))
        yield


@pytest.fixture(scope="module")
def betting():
    return pl.case_study("betting:5")


@pytest.fixture(scope="module")
def runs(betting):
    return pl.record(betting.model, betting.true_point, 400, rng=3, max_steps=9)


@pytest.fixture(scope="module")
def written(betting, runs):
    return pl.write_minari(runs, "betting/uniform-v0", betting.model, reward="money")


@pytest.fixture(scope="module")
def door():
    """A model with a text and a truth value, and a state without exit."""
    (p,) = pl.parameters("p")

    def step(s):
        if s.place == "in":
            return {"rest": [(1, s)]}
        return {"push": [(p, s._replace(place="in")), (1 - p, s._replace(is_hot=True))]}

    return pl.explore(step, {"place": "outside", "is_hot": False}, space=pl.ParameterSpace.unit("p"))


def made(name, episodes, observation_space, action_space):
    """Return a data set with observations and actions of another face."""
    buffers = [
        EpisodeBuffer(
            observations=observations,
            actions=actions,
            rewards=[0.0] * n,
            terminations=[False] * n,
            truncations=[False] * n,
        )
        for observations, actions, n in episodes
    ]
    with warnings.catch_warnings(action="ignore"):  # of Minari: it misses an author and so on
        return minari.create_dataset_from_buffers(
            name, buffers, observation_space=observation_space, action_space=action_space
        )


def test_runs_are_the_same_after_writing_and_reading(betting, runs, written):
    log = pl.read_minari("betting/uniform-v0", betting.model)
    assert log.counts.counts.tolist() == runs.counts().counts.tolist()
    assert (log.counts.sampling, log.report.matched, log.report.rejected) == ("adaptive", len(runs), 0)
    assert (written.total_episodes, written.total_steps) == (400, len(runs))


def test_bets_are_placed_by_the_first_episodes(betting, runs, written):
    """After 16, 64 and 256 of 400; the largest that is at most an eighth, 50, is 16."""
    first = [np.bincount(runs.transition[runs.episode < n], minlength=len(runs.counts().counts)) for n in (16, 64, 256)]
    for sampling, end in (("adaptive", "power of four"), ("trajectories", "planned")):
        pilot = pl.read_minari(written, betting.model, sampling=sampling).counts.pilot
        assert [moment.tolist() for moment in pilot.moments] == [seen.tolist() for seen in first]
        assert pilot.counts.tolist() == first[0].tolist()
        assert (pilot.end, pilot.lengths) == (end, (16, 64, 256))
        assert "numbered in the order in which they were made" in pilot.rests_on
    assert pl.read_minari(written, betting.model, order=None).counts.pilot is None
    assert pl.read_minari(written, betting.model, pilot=False).counts.pilot is None


def test_an_episode_tells_what_as_env_would_have_told(betting, runs, written):
    """The environment, sent the actions of a run, ends as the data set says and earns the same rewards."""
    episode, graph = written[7], betting.model.graph
    own = runs.transition[runs.episode == 7]
    assert len(episode) == len(own) == 9
    choices = graph.choice_of_transition()[own]
    states = [*graph.state_of_choice()[choices], graph.successor[own[-1]]]
    assert episode.observations["money"].tolist() == graph.states["money"][states].tolist()
    assert episode.actions.tolist() == graph.action[choices].tolist()
    expected = betting.model.rewards["money"]
    parts = [a[i] for a, i in ((expected.state, states[:-1]), (expected.choice, choices)) if a is not None]
    assert episode.rewards.tolist() == sum(parts).tolist()
    assert episode.terminations.tolist() == [False] * 8 + [True]  # after the last bet, all that is left is "done"
    assert not episode.truncations.any()


def test_texts_and_truth_values_go_there_and_back(door):
    stop = door.graph.states["place"] == "in"
    runs = pl.record(door, {"p": "1/2"}, 60, rng=1, max_steps=3, stop=stop)
    dataset = pl.write_minari(runs, "door/knocks-v0", door, author="A", description="D")
    assert pl.read_minari(dataset, door).counts.counts.tolist() == runs.counts().counts.tolist()
    ends = {(bool(e.terminations[-1]), bool(e.truncations[-1]), e.observations["place"][-1]) for e in dataset}
    assert ends == {(True, False, "in"), (False, True, "outside")}


def test_a_foreign_data_set_is_read_through_observe_and_act(door):
    """Observations are pairs of a code and a temperature, actions two numbers; "rest" is there, too."""
    hot = np.array([[0.0, 20.0], [0.0, 90.0], [1.0, 90.0], [1.0, 90.0]], dtype=np.float32)
    push, rest = np.array([[1, 0]] * 2, dtype=np.int8), np.array([[0, 0]], dtype=np.int8)
    episodes = [(hot, np.concatenate([push, rest]), 3)] * 2
    dataset = made("door/foreign-v0", episodes, spaces.Box(0, 99, (2,)), spaces.MultiBinary(2))

    def observe(pair):
        return ("in" if pair[0] else "outside", bool(pair[1] > 50))

    log = pl.read_minari(dataset, door, observe=observe, act={"push": (1, 0), "rest": (0, 0)})
    assert log.counts.counts.sum() == 6
    with pytest.raises(pl.DataError, match=r"(?s)2 of 6 rows do not fit .* unknown action: 2 rows; '\(0, 0\) of the"):
        pl.read_minari(dataset, door, observe=observe, act={"push": (1, 0)})
    report = pl.read_minari(dataset, door, observe=observe, act={"push": (1, 0)}, on_unmatched="report").report
    assert (report.matched, report.unreadable, report.contradicting) == (4, 2, 0)


def test_numbers_are_the_only_variable_and_steps_that_cannot_be_contradict_the_model():
    (p,) = pl.parameters("p")
    moves = {0: [(p, 1), (1 - p, 0)], 1: [(1, 1)]}
    model = pl.explore(
        lambda s: {"go" if s.x == 0 else "done": [(q, s._replace(x=x)) for q, x in moves[s.x]]},
        {"x": 0},
        space=pl.ParameterSpace.unit("p"),
    )
    good, bad = np.array([0, 0, 1]), np.array([0, 1, 0])
    episodes = [(good, np.array([0, 0]), 2), (bad, np.array([0, 0]), 2)]
    dataset = made("numbers/mixed-v0", episodes, spaces.Discrete(3), spaces.Discrete(1))
    log = pl.read_minari(dataset, model, on_unmatched="report")
    assert (log.counts.total, log.report.contradicting) == (3, 1)
    assert "(x=1) 'go' → (x=0) (1×)" in str(log)


def test_data_sets_that_were_combined_have_no_order(betting, written):
    other = pl.write_minari(
        pl.record(betting.model, betting.true_point, 300, rng=4, max_steps=5), "betting/other-v0", betting.model
    )
    both = minari.combine_datasets([other, written], "betting/both-v0")
    counts = pl.read_minari(both, betting.model).counts
    assert counts.pilot is None
    assert counts.total == other.total_steps + written.total_steps


def test_a_selection_by_outcome_is_refused_and_a_random_one_must_be_said(betting, written):
    rich = written.filter_episodes(lambda episode: episode.observations["money"][-1] > 10)
    n = len(rich)
    with pytest.raises(pl.DataError) as caught:
        pl.read_minari(rich, betting.model)
    assert 0 < n < 400
    assert str(caught.value) == (
        f"these are {n} of the 400 episodes of betting/uniform-v0: if they were selected by how they went, no bound "
        "holds; give all, or say is_random_part=True if nobody looked at them"
    )
    half, _ = minari.split_dataset(written, [200, 200], seed=1)
    first = pl.read_minari(half, betting.model, is_random_part=True).counts
    assert 0 < first.total < written.total_steps
    assert first.pilot.end == "power of four"


def test_a_certificate_from_a_data_set_is_that_of_the_same_counts(betting, runs, written):
    """The same data, counted by another path, must give the same bounds."""
    log = pl.read_minari(written, betting.model, sampling="trajectories")
    found = pl.certify(betting.model, log.counts, betting.objective, confidence=0.9)
    expected = pl.certify(betting.model, runs.counts(), betting.objective, confidence=0.9)
    assert (found.lower, found.upper) == (expected.lower, expected.upper)


class Untold(gymnasium.Env):
    """An environment, which is not a data set."""


MISUSES = {
    "environment": (
        lambda m, r, d: pl.read_minari(Untold(), m),
        "read_minari takes a Minari data set or the name of one, not Untold",
    ),
    "not there": (
        lambda m, r, d: pl.read_minari("betting/nothing-v0", m),
        "there is no Minari data set 'betting/nothing-v0' on this machine; "
        "minari.download_dataset('betting/nothing-v0') fetches one that is public",
    ),
    "one action twice": (
        lambda m, r, d: pl.read_minari(d, m, act=lambda name: 0),
        "act gives 0 for 'bet0' and for 'bet1', which a data set cannot tell apart",
    ),
    "broken observe": (
        lambda m, r, d: pl.read_minari(d, m, observe=lambda seen: seen.money),
        "episode 0, step 0: observe fails at the observation {'money': np.int64(10), 'step': np.int64(0)}: "
        "AttributeError: 'dict' object has no attribute 'money'",
    ),
    "a share": (
        lambda m, r, d: pl.read_minari(d, m, pilot=0.1),
        "pilot=0.1: choose True, or False to place no bets; it is not a share of the data, as bets are placed after "
        "16, 64, … runs, however many there are",
    ),
    "no version": (
        lambda m, r, d: pl.write_minari(r, "betting/uniform", m),
        "dataset_id='betting/uniform': Minari's names are like 'betting/uniform-v0', with a version",
    ),
    "there already": (
        lambda m, r, d: pl.write_minari(r, "betting/uniform-v0", m),
        "there is a Minari data set 'betting/uniform-v0' already; choose another name or version",
    ),
    "counts": (
        lambda m, r, d: pl.write_minari(r.counts(), "betting/counts-v0", m),
        "write_minari takes runs such as record(model, point, ...) gives, not TransitionCounts",
    ),
    "reward": (
        lambda m, r, d: pl.write_minari(r, "betting/joy-v0", m, reward="joy"),
        "there is no reward structure 'joy'; the model has 'money'",
    ),
}


@pytest.mark.parametrize(("call", "message"), MISUSES.values(), ids=MISUSES)
def test_misuse_is_refused_with_a_sentence(betting, runs, written, call, message):
    with pytest.raises((pl.DataError, pl.ModelError)) as caught:
        call(betting.model, runs, written)
    assert str(caught.value) == message


def test_without_minari_the_missing_extra_is_named():
    code = """
import sys
sys.modules["minari"] = None
import plumdp as pl
try:
    pl.read_minari("x-v0", pl.case_study("betting:5").model)
except pl.MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Minari data sets need Minari: pip install 'plumdp[minari]'\n"
