"""Learning while acting: bounds that close in, data that are what they say, and going on after a crash."""

import io
import os
import pickle
import signal
import subprocess
import sys
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from row_models import listed

import plumdp as pl
from plumdp.certifying.pipeline import relax
from plumdp.data.observing import self_loops
from plumdp.data.simulators import gym_environment
from plumdp.model.question import ask
from plumdp.online import loop
from plumdp.online.loop import OnlineState
from plumdp.solver.layout import SweepLayout

STUDY = "aircraft:6,4,1"


def final(records):
    *_, last = records
    return last


@pytest.fixture(scope="module")
def study():
    return pl.case_study(STUDY)


def environment(study, seed=1):
    return pl.online.simulator(study.model, study.true_point, rng=seed, max_steps=7)


@pytest.fixture(scope="module")
def whole(study):
    """Return the last record of 400 episodes without a break."""
    return final(pl.learn_online(study.model, environment(study), study.objective, episodes=400, spacing=4.0))


def test_with_a_number_of_steps_the_bound_is_that_of_one_choice_per_state():
    """Half a chance for a sure goal in one step, one for a step closer: the best first choice changes with the steps.

    ``solve`` may choose anew at each step, the policy of a record may not: its value must be at least the bound.
    """
    (p,) = pl.parameters("p")

    go = [(p, 2), (1 - p, 1)]
    rows = {0: {"try": go, "walk": [(p / 2, 2), (1 - p / 2, 0)]}, 1: {"try": go, "walk": [(1, 0)]}}
    model = listed(rows, labels={"goal": 2})
    objective = pl.parse_property('Pmax=? [ F<=3 "goal" ]', model)
    simulator = pl.online.simulator(model, {"p": 0.5}, rng=1, max_steps=3)
    for record in pl.learn_online(model, simulator, objective, episodes=2000):
        assert record.bound <= record.true_value
    assert record.bound > 0.8 * record.true_value


def test_the_episodes_are_those_of_the_sampler_under_the_same_policy(study):
    """Without any choice the policy does not matter: counts must be those of ``simulate``."""
    graph = study.model.graph
    weights = np.zeros(graph.n_choices)
    policy = graph.first_choice[:-1]
    weights[policy] = 1.0
    seen = np.zeros(graph.n_transitions, dtype=np.int64)
    environment(study).run(weights, 0, 300, seen)
    counts = pl.simulate(study.model, study.true_point, 300, rng=1, max_steps=7, policy=policy)
    assert (counts.counts == seen).all()


@pytest.mark.slow
def test_learning_goes_on_after_a_break_as_if_there_had_been_none(study, whole, tmp_path):
    def records(**options):
        return pl.learn_online(study.model, environment(study), study.objective, episodes=400, spacing=4.0, **options)

    broken = records(checkpoint=tmp_path / "state.npz")
    for _ in range(5):
        next(broken)
    broken.close()
    resumed = final(records(checkpoint=tmp_path / "state.npz"))
    assert (resumed.episodes, resumed.bound) == (whole.episodes, whole.bound)
    assert resumed.optimistic_bound == whole.optimistic_bound
    assert (resumed.policy.choice == whole.policy.choice).all()
    assert len(OnlineState.load(tmp_path / "state.npz").moments) == 4


class Interrupted:
    """An environment in which Ctrl-C is pressed once, in the middle of an episode that has been counted in part."""

    def __init__(self, environment, episode):
        self.environment, self.episode = environment, episode
        self.true_value = environment.true_value

    def run(self, weights, first, last, seen):
        if first <= self.episode < last:
            seen[:5] += 1
            raise KeyboardInterrupt
        self.environment.run(weights, first, last, seen)


@pytest.mark.slow
@pytest.mark.parametrize("episode", [0, 7, 333])
def test_an_interruption_within_an_episode_neither_loses_nor_doubles_it(study, whole, tmp_path, episode):
    def records(environment, **options):
        return pl.learn_online(study.model, environment, study.objective, episodes=400, spacing=4.0, **options)

    with pytest.raises(KeyboardInterrupt):
        final(records(Interrupted(environment(study), episode), checkpoint=tmp_path / "state.npz"))
    resumed = final(records(environment(study), checkpoint=tmp_path / "state.npz"))
    assert (resumed.steps, resumed.bound) == (whole.steps, whole.bound)
    assert resumed.optimistic_bound == whole.optimistic_bound
    assert (resumed.policy.choice == whole.policy.choice).all()


@pytest.mark.night
def test_an_interruption_within_an_update_ends_learning_at_the_update_before(study, whole, tmp_path, monkeypatch):
    """The solver keeps its bounds when interrupted; a run that went on with them would be another run."""

    def records(**options):
        return pl.learn_online(study.model, environment(study), study.objective, episodes=400, spacing=4.0, **options)

    broken = records(checkpoint=tmp_path / "state.npz")
    for _ in range(6):
        before = next(broken)

    def press(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SweepLayout, "sweep", press)
        with pytest.raises(KeyboardInterrupt):
            next(broken)
    assert OnlineState.load(tmp_path / "state.npz").episodes == before.episodes
    resumed = final(records(checkpoint=tmp_path / "state.npz"))
    assert (resumed.steps, resumed.bound) == (whole.steps, whole.bound)
    assert resumed.optimistic_bound == whole.optimistic_bound


SCRIPT = """
import sys
import plumdp as pl
from plumdp.certifying.pipeline import relax
study = pl.case_study("aircraft:6,4,1")
environment = pl.online.simulator(study.model, study.true_point, rng=1, max_steps=7)
options = {"episodes": 400, "spacing": 4.0, "checkpoint": sys.argv[1]}
for record in pl.learn_online(study.model, environment, study.objective, **options):
    print(record.episodes, record.bound, flush=True)
    if record.episodes > 100:
        sys.stdin.readline()  # waits to be ended, unless there is nothing to read from
"""


COMMAND = [sys.executable, "-c", SCRIPT]
IN_ONE_GO = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "check": True}


@pytest.mark.night
@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
def test_a_killed_process_loses_nothing(tmp_path, how, whole):
    """End it somewhere in the middle; a new process ends with the result of this one, which was never ended."""
    if sys.platform == "win32":
        pytest.skip("sends a signal")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    process = subprocess.Popen([*COMMAND, str(tmp_path / "state.npz")], **pipes)
    for line in process.stdout:
        if int(line.split()[0]) > 100:
            break
    os.kill(process.pid, getattr(signal, how))
    assert process.wait() != 0
    process.stdin.close()
    process.stdout.close()
    assert 100 < OnlineState.load(tmp_path / "state.npz").episodes < 400
    resumed = subprocess.run([*COMMAND, str(tmp_path / "state.npz")], **IN_ONE_GO)
    assert resumed.stdout.splitlines()[-1] == f"{whole.episodes} {whole.bound}"


def with_words_of_the_sampler(env, key):
    """Return an environment that draws successors with the random words that the sampler of a model takes for them."""
    gymnasium = pytest.importorskip("gymnasium")

    class SameWords(gymnasium.Wrapper):
        episode = -1

        def reset(self, *, seed=None, options=None):
            self.episode += 1
            outcome = self.env.reset(seed=seed, options=options)
            self.env.np_random = np.random.Generator(np.random.Philox(key=key, counter=[0, self.episode, 0, 0]))
            return outcome

        def step(self, action):
            self.env.np_random.bit_generator.random_raw()  # the word with which the sampler draws the choice
            return self.env.step(action)

    return SameWords(env)


@pytest.mark.night
def test_learning_in_gymnasium_is_learning_in_the_sampler_if_the_random_words_are_the_same(study, monkeypatch):
    """Without exploration and plans only successors are drawn, so that all records must be equal.

    A run in the environment ends where the model only stays, so that the sampler's runs must end there, too.
    """
    monkeypatch.setattr(loop, "plan_next", lambda *_: None)
    graph = study.model.graph
    is_stuck = np.logical_and.reduceat(self_loops(graph), graph.first_choice[:-1])

    def records(environment):
        found = pl.learn_online(study.model, environment, study.objective, episodes=200)
        return [(r.episodes, r.steps, r.bound, r.optimistic_bound, r.policy.choice.tolist()) for r in found]

    sampler = pl.online.simulator(study.model, study.true_point, rng=1, max_steps=7, stop=is_stuck)
    env = with_words_of_the_sampler(pl.data.as_env(study.model, study.true_point, max_steps=7), sampler.plan.key)
    assert records(gym_environment(study.model, env, rng=1)) == records(sampler)


@pytest.mark.night
def test_learning_in_gymnasium_certifies_and_can_be_resumed(study, tmp_path):
    def records(**options):
        env = pl.data.as_env(study.model, study.true_point, max_steps=7)
        episodes = gym_environment(study.model, env, rng=3)
        options |= {"episodes": 300, "exploration": 0.2, "confidence": 0.9}
        return pl.learn_online(study.model, episodes, study.objective, **options)

    whole = final(records())
    truth = pl.stages.instantiate(study.model, study.true_point)
    assert whole.bound <= pl.stages.evaluate(truth, whole.policy, study.objective).upper[0]
    assert whole.gap < 0.8 * next(records()).gap
    assert whole.true_value is None
    broken = records(checkpoint=tmp_path / "state.npz")
    for _ in range(5):
        next(broken)
    resumed = final(records(checkpoint=tmp_path / "state.npz"))
    assert (resumed.steps, resumed.bound) == (whole.steps, whole.bound)
    assert resumed.optimistic_bound == whole.optimistic_bound


def test_what_does_not_fit_the_model_is_named_as_it_is_for_counts(study):
    """An environment with other probabilities is fine, one with another action order leads elsewhere."""
    actions = list(study.model.graph.action_names)
    swapped = {name: k for k, name in enumerate(reversed(actions))}
    env = pl.data.as_env(study.model, study.true_point, max_steps=7)
    episodes = gym_environment(study.model, env, rng=1, act=swapped.get)
    with pytest.raises(pl.DataError, match=r"^episode \d+, step \d+: state .* led to .*, which is (not one|no state)"):
        final(pl.learn_online(study.model, episodes, study.objective, episodes=50, exploration=1.0))


# On the ground of certify


def records_of(study, n, **options):
    options = {"exploration": 1.0, "spacing": 3.0} | options
    return pl.learn_online(study.model, environment(study), study.objective, episodes=n, **options)


def require_moments(study, records):
    """Check that bets are placed by what was seen after 4, 16, 64 episodes, whenever one looks."""
    for record in records:
        pilot = record.learned.counts.pilot
        assert pilot.end == "power of four"
        assert pilot.lengths == tuple(size for size in (4, 16, 64) if size < record.episodes)
        for n, seen in zip(pilot.lengths, pilot.moments, strict=True):
            made = pl.simulate(study.model, study.true_point, int(n), rng=1, max_steps=7)  # uniform, as explored
            assert (made.counts == seen).all()


@pytest.mark.slow
def test_bets_are_placed_at_moments_that_do_not_depend_on_the_end(study):
    require_moments(study, records_of(study, 20))
    require_moments(study, [final(records_of(study, 100))])


@pytest.mark.slow
def test_planted_moments_that_depend_on_the_end_are_found(study, monkeypatch):
    """Counts at the end are taken for those at each moment."""
    right = loop.open_pilot

    def wrong(moments, n, nothing, **options):
        return right(moments[-1:] * len(moments), n, nothing, **options)

    monkeypatch.setattr(loop, "open_pilot", wrong)
    with pytest.raises(AssertionError):
        require_moments(study, records_of(study, 20))


@pytest.mark.slow
def test_records_are_those_of_certify_and_hold(study):
    truth = pl.stages.instantiate(study.model, study.true_point)
    best = pl.stages.solve(truth, study.objective).upper[0]
    for record in records_of(study, 300, spacing=4.0, exploration=0.1):
        assert record.bound <= record.true_value
        assert record.optimistic_bound >= best - 1e-6
        assert record.gap == record.optimistic_bound - record.bound
        assert record.certificate.how.relaxation == "coupled"
    again = pl.certify(study.model, record.learned.counts, ask(study.objective, study.model, memory=False))
    assert again.claim.bound == pytest.approx(record.bound, abs=1e-9)


@pytest.mark.night
def test_fewer_episodes_are_needed_than_with_intervals():
    study = pl.case_study("betting:25")
    simulator = pl.online.simulator(study.model, study.true_point, rng=1, max_steps=26)
    records = pl.learn_online(study.model, simulator, study.objective, episodes=1024, spacing=4.0)
    *_, earlier, last = records
    assert earlier.episodes == 256
    learned = pl.learn(study.model, last.learned.counts, confidence_set="interval")
    bound = pl.conclude(learned, study.objective, relaxation="rectangular").claim.bound
    best = pl.stages.solve(relax(learned, "rectangular"), study.objective, nature="optimistic")
    assert earlier.gap < best.upper[study.model.graph.initial_state] - bound


@pytest.mark.slow
def test_runs_that_the_model_does_not_explain_contradict_it():
    """Both actions have p, and the runs have 0.2 and 0.8."""
    p, q = pl.parameters("p", "q")

    def model(one, other):
        def step(state):
            if state.x:
                return {"stay": [(1, state)]}
            rows = {"one": one, "other": other}
            return {name: [(f, state._replace(x=1)), (1 - f, state._replace(x=2))] for name, f in rows.items()}

        return pl.explore(step, {"x": 0}, space=pl.ParameterSpace.unit("p", "q"), labels={"up": lambda s: s.x == 1})

    simulator = pl.online.simulator(model(p, q), {"p": 0.2, "q": 0.8}, rng=1, max_steps=1)
    options = {"episodes": 500, "spacing": 5.0, "exploration": 1.0}
    record = final(pl.learn_online(model(p, p), simulator, 'Pmax=? [ F "up" ]', **options))
    assert record.status == "model rejected"
    assert record.bound <= 0.8 <= record.optimistic_bound


class TwoDoors:
    """Two doors of unknown chances, 0.8 and 0.5."""

    def __init__(self, graph):
        self.graph = graph

    def run(self, weights, first, last, seen):
        for number in range(first, last):
            rng = np.random.default_rng(number)
            door = int(rng.choice(2, p=weights[:2]))
            seen[self.graph.first_transition[door] + (rng.random() >= (0.8, 0.5)[door])] += 1

    def true_value(self, policy, objective):
        return (0.8, 0.5)[int(policy[0])]


@pytest.mark.slow
def test_tables_are_learned_while_acting():
    table = listed({0: {"left": [1, 2], "right": [1, 2]}}, None, at="x", labels={"open": 1})
    options = {"episodes": 256, "spacing": 4.0, "exploration": 0.1}
    records = [*pl.learn_online(table, TwoDoors(table.graph), 'Pmax=? [ F "open" ]', **options)]
    assert all(record.bound <= record.true_value for record in records)
    assert records[-1].bound > 0.6
    assert records[-1].optimistic_bound >= 0.8


@pytest.mark.parametrize("options", [{"spacing": 0.5}, {"exploration": 1.5}])
def test_misuse_of_options_is_refused(study, options):
    with pytest.raises(pl.DataError, match="spacing must be at least 1, and exploration a share"):
        next(pl.learn_online(study.model, environment(study), study.objective, episodes=5, **options))


def test_a_mission_is_refused(study):
    mission = 'Pmax=? [ (F "goal") & (F "collision") ]'
    with pytest.raises(pl.DataError, match="this needs memory, and learn_online follows policies without any"):
        next(pl.learn_online(study.model, environment(study), mission, episodes=5))


def test_a_confidence_that_is_none_is_refused(study):
    with pytest.raises(pl.DataError, match="confidence=1: give a number between 0 and 1"):
        next(pl.learn_online(study.model, environment(study), study.objective, episodes=5, confidence=1))


@pytest.mark.night
def test_half_of_the_episodes_narrow_the_bounds():
    """On the rover, the policy with the best bound is not the optimistic one."""
    study = pl.case_study("rover:10,10")
    gaps = []
    for plans in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not plans:
                patch.setattr(loop, "plan_next", lambda *_: None)
            simulator = pl.online.simulator(study.model, study.true_point, rng=1, max_steps=study.max_steps + 1)
            records = pl.learn_online(study.model, simulator, study.objective, episodes=2048, exploration=0.1)
            gaps.append(final(records).gap)
    assert gaps[0] < 0.85 * gaps[1]


# Checkpoints


P, Q = pl.parameters("p", "q")


def _model(first=P, second=P / 2, space=None):
    rows = {"go": [(first, 1), (1 - first, 2)], "alt": [(second, 1), (1 - second, 2)]}
    return listed({0: rows}, space or "p q", at="x", labels={"goal": 1})


MODEL = _model()
GOAL = 'Pmax=? [ F "goal" ]'


def _run(path, model=MODEL, objective=GOAL, episodes=40, **options):
    environment = pl.online.simulator(MODEL, {"p": 0.9, "q": 0.5}, rng=1, max_steps=3)
    return list(pl.learn_online(model, environment, objective, episodes=episodes, checkpoint=path, **options))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "state.npz"
    _run(path)
    return path.read_bytes()


@pytest.fixture
def checkpoint(saved, tmp_path):
    path = tmp_path / "state.npz"
    path.write_bytes(saved)
    return path


OTHERS = {
    "a factor": {"model": _model(second=P / 4)},
    "parameters exchanged": {"model": _model(first=Q, second=Q / 2)},
    "another tie": {"model": _model(second=Q)},
    "expressions exchanged": {"model": _model(first=P / 2, second=P)},
    "a smaller space": {"model": _model(space=pl.ParameterSpace.box({"p": (0, 1), "q": (0, Fraction(1, 2))}))},
    "another objective": {"objective": 'Pmin=? [ F "goal" ]'},
    "another target": {"objective": "Pmax=? [ F x=2 ]"},
    "spacing": {"spacing": 3.0},
    "exploration": {"exploration": 0.5},
    "precision": {"precision": 1e-3},
    "confidence": {"confidence": 0.9},
}
OF_AN_EARLIER_VERSION = "model 0123, objective 4567, relaxation='rectangular', growth=2.0, confidence=0.999"


@pytest.mark.parametrize("other", OTHERS)
def test_a_checkpoint_of_any_other_run_is_refused(checkpoint, other):
    with pytest.raises(pl.DataError, match=r"state\.npz is of another run \(model .*confidence=0\.999\)"):
        _run(checkpoint, **OTHERS[other])


def test_a_checkpoint_of_an_earlier_version_is_refused_with_what_to_do(saved, checkpoint):
    ends = np.zeros(2)
    checkpoint.write_bytes(_with(purpose=OF_AN_EARLIER_VERSION, moments=np.zeros((0, 0)), event_lower=ends)(saved))
    with pytest.raises(pl.DataError, match=r"is of another run .*growth=2.*; name another file"):
        _run(checkpoint)


def test_the_same_run_goes_on_also_with_more_episodes_and_the_objective_as_an_object(checkpoint):
    objective = pl.parse_property(GOAL, MODEL)
    records = _run(checkpoint, episodes=60, objective=objective)
    assert (records[0].episodes, records[-1].episodes) == (40, 60)


class Evil:
    """Something that would leave a trace if it were loaded."""

    def __reduce__(self):
        return os.mkdir, ("executed",)


def _with(**changes):
    def forge(saved):
        with np.load(io.BytesIO(saved)) as file:
            arrays = dict(file)
        buffer = io.BytesIO()
        kept = {name: value for name, value in {**arrays, **changes}.items() if value is not None}
        np.savez(buffer, **{name: value(arrays[name]) if callable(value) else value for name, value in kept.items()})
        return buffer.getvalue()

    return forge


def _huge(saved):
    """Return the file with a header that declares 728 TiB of counts."""
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999,), }".ljust(117) + b"\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = b"\x93NUMPY\x01\x00\x76\x00" + header + b"\0" * 64 if name == "counts.npy" else old.read(name)
            new.writestr(name, content)
    return buffer.getvalue()


def _pickled(saved):
    return pickle.dumps(Evil())


def _single():
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


def test_a_damaged_or_forged_checkpoint_is_refused_by_name(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(forge):
        Path("state.npz").write_bytes(eval(forge)(saved))
        _run(Path("state.npz"), episodes=60)

    refused("checkpoints:forged", run, pl.DataError)
    assert not Path("executed").exists()


def test_a_folder_is_no_checkpoint(tmp_path):
    with pytest.raises(pl.DataError, match="is not a checkpoint of learn_online, or damaged"):
        _run(tmp_path)
