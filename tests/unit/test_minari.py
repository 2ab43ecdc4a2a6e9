"""Minari data sets: what Minari wrote is read again, the pilot is what came first, and selections are refused."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from refusals import refused

import plumdp as pl
from plumdp.data.pilots import planned_moments

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
    return pl.data.record(betting.model, betting.true_point, 400, rng=3, max_steps=9)


@pytest.fixture(scope="module")
def written(betting, runs):
    return stored("betting/uniform-v0", runs, betting.model)


@pytest.fixture
def read(tmp_path):
    """Read a data set through the file that it is converted to; other options are of ``read_log``."""

    def read_log(dataset, model, *, observe=None, act=None, is_random_part=False, **options):
        path = tmp_path / "log.parquet"
        pl.data.convert_minari(model, dataset, path, observe=observe, act=act, is_random_part=is_random_part)
        return pl.read_log(model, path, **options)

    return read_log


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


def stored(name, runs, model):
    """Return runs of a model as a data set: observations and actions are those of ``as_env``, as in the docs."""
    graph, env = model.graph, pl.data.as_env(model, dict.fromkeys(model.space.names, "1/2"))
    episodes = []
    for number in np.unique(runs.episode):
        taken = runs.transition[runs.episode == number]
        choices = graph.choice_of_transition()[taken]
        states = [*graph.state_of_choice()[choices], graph.successor[taken[-1]]]
        is_text = {variable: values.dtype.kind == "U" for variable, values in graph.states.items()}
        seen = {v: c[states].tolist() if is_text[v] else c[states].astype(int) for v, c in graph.states.items()}
        episodes.append((seen, graph.action[choices].astype(int), len(taken)))
    return made(name, episodes, env.observation_space, env.action_space)


@pytest.mark.slow
def test_runs_are_the_same_after_writing_and_reading(betting, runs, written, read):
    log = read("betting/uniform-v0", betting.model)
    assert log.counts.counts.tolist() == runs.counts().counts.tolist()
    assert (log.counts.sampling, log.report.matched, log.report.rejected) == ("adaptive", len(runs), 0)
    assert (written.total_episodes, written.total_steps) == (400, len(runs))


@pytest.mark.slow
def test_bets_are_placed_by_the_first_episodes(betting, runs, written, read):
    """After 4, 16, 64 and 256 of 400, and later if that was planned; the largest of 16, 64, … up to an eighth is 16."""
    ends = {"adaptive": ("power of four", (4, 16, 64, 256)), "trajectories": ("planned", planned_moments(400))}
    for sampling, (end, lengths) in ends.items():
        first = [np.bincount(runs.transition[runs.episode < n], minlength=len(runs.counts().counts)) for n in lengths]
        pilot = read(written, betting.model, sampling=sampling, order="runs").counts.pilot
        assert [moment.tolist() for moment in pilot.moments] == [seen.tolist() for seen in first]
        assert pilot.counts.tolist() == first[1].tolist()
        assert (pilot.end, pilot.lengths) == (end, lengths)
        assert "numbered in the order in which they were made" in pilot.rests_on
    assert read(written, betting.model).counts.pilot is None


@pytest.mark.slow
def test_texts_and_truth_values_go_there_and_back(door, read):
    stop = door.graph.states["place"] == "in"
    runs = pl.data.record(door, {"p": "1/2"}, 60, rng=1, max_steps=3, stop=stop)
    dataset = stored("door/knocks-v0", runs, door)
    assert read(dataset, door).counts.counts.tolist() == runs.counts().counts.tolist()


def test_a_foreign_data_set_is_read_through_observe_and_act(door, read):
    """Observations are pairs of a code and a temperature, actions two numbers; "rest" is there, too."""
    hot = np.array([[0.0, 20.0], [0.0, 90.0], [1.0, 90.0], [1.0, 90.0]], dtype=np.float32)
    push, rest = np.array([[1, 0]] * 2, dtype=np.int8), np.array([[0, 0]], dtype=np.int8)
    episodes = [(hot, np.concatenate([push, rest]), 3)] * 2
    dataset = made("door/foreign-v0", episodes, spaces.Box(0, 99, (2,)), spaces.MultiBinary(2))

    def observe(pair):
        return ("in" if pair[0] else "outside", bool(pair[1] > 50))

    log = read(dataset, door, observe=observe, act={"push": (1, 0), "rest": (0, 0)})
    assert log.counts.counts.sum() == 6
    with pytest.raises(pl.DataError, match=r"(?s)2 of 8 rows do not fit .* unknown action: 2 rows; '\(0, 0\) of the"):
        read(dataset, door, observe=observe, act={"push": (1, 0)})
    report = read(dataset, door, observe=observe, act={"push": (1, 0)}, on_unmatched="report").report
    assert (report.matched, report.unreadable, report.contradicting) == (4, 2, 0)


def test_numbers_are_the_only_variable_and_steps_that_cannot_be_contradict_the_model(read):
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
    log = read(dataset, model, on_unmatched="report")
    assert (log.counts.total, log.report.contradicting) == (3, 1)
    assert "(x=1) 'go' → (x=0) (1×, row 5, episode 1)" in str(log)


def test_data_sets_that_were_combined_have_no_order(betting, written, read):
    runs = pl.data.record(betting.model, betting.true_point, 300, rng=4, max_steps=5)
    other = stored("betting/other-v0", runs, betting.model)
    both = minari.combine_datasets([other, written], "betting/both-v0")
    assert read(both, betting.model).counts.total == other.total_steps + written.total_steps
    with pytest.raises(pl.DataError, match="its values are not all numbers, so that they do not tell which run was"):
        read(both, betting.model, order="runs")


@pytest.mark.slow
def test_a_selection_by_outcome_is_refused_and_a_random_one_must_be_said(betting, written, read):
    rich = written.filter_episodes(lambda episode: episode.observations["money"][-1] > 10)
    n = len(rich)
    with pytest.raises(pl.DataError) as caught:
        read(rich, betting.model)
    assert 0 < n < 400
    assert str(caught.value) == (
        f"these are {n} of the 400 episodes of betting/uniform-v0: if they were selected by how they went, no bound "
        "holds; give all, or say is_random_part=True if nobody looked at them"
    )
    half, _ = minari.split_dataset(written, [200, 200], seed=1)
    first = read(half, betting.model, is_random_part=True, order="runs").counts
    assert 0 < first.total < written.total_steps
    assert first.pilot.end == "power of four"


@pytest.mark.slow
def test_a_certificate_from_a_data_set_is_that_of_the_same_counts(betting, runs, written, read):
    """The same data, counted by another path, must give the same bounds."""
    log = read(written, betting.model, sampling="trajectories")
    found = pl.certify(betting.model, log.counts, betting.objective, confidence=0.9)
    expected = pl.certify(betting.model, runs.counts(), betting.objective, confidence=0.9)
    assert (found.lower, found.upper) == (expected.lower, expected.upper)


class Untold(gymnasium.Env):
    """An environment, which is not a data set."""


def test_misuse_is_refused_with_a_sentence(betting, written):
    names = {"model": betting.model, "written": written, "NOWHERE": "nowhere.parquet"}  # nothing is written
    refused("logs:minari", globals(), pl.DataError, **names)


@pytest.mark.slow
def test_without_minari_the_missing_extra_is_named():
    code = """
import sys
sys.modules["minari"] = None
import plumdp as pl
from plumdp.base.errors import MissingExtra
try:
    pl.data.convert_minari(pl.case_study("betting:5").model, "x-v0", "log.parquet")
except MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Minari data sets need Minari: pip install 'plumdp[minari]'\n"
