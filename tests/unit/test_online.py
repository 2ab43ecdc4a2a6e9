"""Learning while acting: bounds that close in, data that are what they say, and going on after a crash."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import plumdp as pl
from plumdp.online import OnlineState

STUDY = "aircraft:20,10"


def final(records):
    *_, last = records
    return last


@pytest.fixture(scope="module")
def study():
    return pl.benchmark(STUDY)


def environment(study, seed=1):
    return pl.simulator(study.model, study.true_point, rng=seed, max_steps=21)


def test_the_bound_stays_below_the_value_of_its_policy_and_closes_in(study):
    truth = pl.instantiate(study.model, study.true_point)
    best = pl.solve(truth, study.objective).upper[0]
    records = list(pl.learn_online(study.model, environment(study), study.objective, episodes=3000))
    assert [r.episodes for r in records] == sorted({r.episodes for r in records})
    assert records[0].episodes == 0
    assert records[-1].episodes == 3000
    for record in records[:: max(1, len(records) // 8)]:
        assert record.bound <= pl.evaluate(truth, record.policy, study.objective).upper[0]
        assert record.hope >= best - 1e-6
    assert records[-1].bound > records[0].bound
    assert records[-1].hope < records[0].hope


def test_bounds_never_get_worse(study):
    """Intervals that hold at all times are intersected, so that the region only shrinks."""
    bounds = [r.bound for r in pl.learn_online(study.model, environment(study), study.objective, episodes=1500)]
    assert (np.diff(bounds) >= -1e-6).all()


def test_the_episodes_are_those_of_the_sampler_under_the_same_policy(study):
    """Without any choice the policy does not matter: counts must be those of ``simulate``."""
    graph = study.model.graph
    weights = np.zeros(graph.n_choices)
    policy = graph.first_choice[:-1]
    weights[policy] = 1.0
    seen = np.zeros(graph.n_transitions, dtype=np.int64)
    never = np.full(graph.n_choices, np.iinfo(np.int64).max)
    assert environment(study).run(weights, 0, 300, never, seen) == 300
    counts = pl.simulate(study.model, study.true_point, 300, rng=1, max_steps=21, policy=policy)
    assert (counts.counts == seen).all()


def test_a_run_stops_after_the_episode_in_which_a_limit_is_reached(study):
    graph = study.model.graph
    weights = 1.0 / np.diff(graph.first_choice)[graph.state_of_choice()]
    limits = np.full(graph.n_choices, 5, dtype=np.int64)
    seen = np.zeros(graph.n_transitions, dtype=np.int64)
    following = environment(study).run(weights, 0, 10_000, limits, seen)
    visits = pl.TransitionCounts(graph, seen, "adaptive").visits
    assert visits.max() >= 5
    before = np.zeros_like(seen)
    environment(study).run(weights, 0, following - 1, np.full_like(limits, 10**9), before)
    assert pl.TransitionCounts(graph, before, "adaptive").visits.max() < 5


def test_learning_goes_on_after_a_break_as_if_there_had_been_none(study, tmp_path):
    def records(**options):
        return pl.learn_online(study.model, environment(study), study.objective, episodes=800, **options)

    whole = final(records())
    broken = records(checkpoint=tmp_path / "state.npz")
    for _ in range(20):
        next(broken)
    resumed = final(records(checkpoint=tmp_path / "state.npz"))
    assert (resumed.episodes, resumed.bound, resumed.hope) == (whole.episodes, whole.bound, whole.hope)
    assert (resumed.policy == whole.policy).all()


SCRIPT = """
import sys
import plumdp as pl
study = pl.benchmark("aircraft:20,10")
environment = pl.simulator(study.model, study.true_point, rng=1, max_steps=21)
for record in pl.learn_online(study.model, environment, study.objective, episodes=2000, checkpoint=sys.argv[1]):
    print(record.episodes, record.bound, flush=True)
"""


def test_a_killed_process_loses_nothing(tmp_path):
    """Kill -9 somewhere in the middle; a new process ends with the result of one that was never killed."""
    command = [sys.executable, "-c", SCRIPT]
    whole = subprocess.run([*command, str(tmp_path / "whole.npz")], capture_output=True, text=True, check=True)
    process = subprocess.Popen([*command, str(tmp_path / "state.npz")], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if int(line.split()[0]) > 100:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert 100 < OnlineState.load(tmp_path / "state.npz").episodes < 2000
    resumed = subprocess.run([*command, str(tmp_path / "state.npz")], capture_output=True, text=True, check=True)
    assert resumed.stdout.splitlines()[-1] == whole.stdout.splitlines()[-1]


def test_the_published_construction_says_that_it_has_no_guarantee(study):
    """With Clopper–Pearson intervals the bound is tighter and nothing vouches for it."""
    honest = final(pl.learn_online(study.model, environment(study), study.objective, episodes=500))
    paper = final(pl.learn_online(study.model, environment(study), study.objective, episodes=500, paper=True))
    assert (honest.status, paper.status) == ("certified", "no guarantee")


@pytest.mark.parametrize("options", [{"growth": 1.0}, {"spacing": 0.5}, {"exploration": 1.5}])
def test_misuse_is_refused(study, options):
    with pytest.raises(pl.DataError, match="growth must be above 1, spacing at least 1, and exploration a share"):
        next(pl.learn_online(study.model, environment(study), study.objective, episodes=5, **options))
