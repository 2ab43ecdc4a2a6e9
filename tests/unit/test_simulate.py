"""Runs are what the model, the policy and numpy's own random words say, however many threads share the work."""

import os
import re
import subprocess
import sys
from fractions import Fraction
from inspect import signature

import numpy as np
import pytest
from both_ways import from_compiled_code
from refusals import refused

import plumdp as pl
from plumdp.base.progress import shown_by_others
from plumdp.data import kernels
from plumdp.data.pilots import planned_moments
from plumdp.data.runs import make_plan, running_sums
from plumdp.data.simulate import _n_workers, simulate
from plumdp.data.trajectories import Trajectories, record, recorded_blocks

FAMILIES = ("aircraft:20,10", "betting:25", "engagement:50", "rover:10,10", "glider:11,9", "parallel:5")


@pytest.fixture(scope="module", params=FAMILIES)
def study(request):
    return pl.case_study(request.param)


@pytest.fixture(scope="module")
def betting():
    return pl.case_study("betting:25")


@pytest.fixture(scope="module")
def urn():
    """One ball of 40 is drawn and kept; the balls 0, 17 and 39 are in the urn only if p is below 1."""
    (p,) = pl.parameters("p")
    rare = (0, 17, 39)
    total = sum(ball for ball in range(40) if ball not in rare)

    def step(state):
        if state.ball >= 0:
            return {"keep": [(1, state)]}
        chances = [(1 - p) / 3 if ball in rare else p * Fraction(ball, total) for ball in range(40)]
        return {"draw": [(chance, state._replace(ball=ball)) for ball, chance in enumerate(chances)]}

    return pl.explore(step, {"ball": -1}, space=pl.ParameterSpace.unit("p"))


def slow_runs(model, point, trajectories, *, seed, max_steps, weights=None, stop=()):
    """Yield the transitions of each run, by whole-number and rational arithmetic on the words of numpy's Philox."""
    graph = model.graph
    probability = [Fraction(p) for p in model.probabilities(point)[model.expression]]
    shares = None if weights is None else [Fraction(w) for w in weights]
    key = np.random.default_rng(seed).integers(0, 2**64, size=2, dtype=np.uint64)
    for run in range(trajectories):
        words = iter(np.random.Philox(key=key, counter=[0, run, 0, 0]).random_raw(2 * max_steps).tolist())
        state, taken = graph.initial_state, []
        while len(taken) < max_steps and state not in stop:
            first, end = graph.first_choice[state], graph.first_choice[state + 1]
            word, n_choices = next(words), int(end - first)
            choice = slow_draw(shares, first, word) if shares else first + ((word * n_choices) >> 64)
            taken.append(int(slow_draw(probability, graph.first_transition[choice], next(words))))
            state = graph.successor[taken[-1]]
        yield taken


def slow_draw(probability, first, word):
    rest = Fraction(word >> 11, 2**53)
    while rest >= probability[first]:
        rest -= probability[first]
        first += 1
    return first


def mixed_policy(graph, seed=3):
    """Return random probabilities, of which many are 0."""
    weights = np.random.default_rng(seed).integers(0, 3, graph.n_choices).astype(float)
    weights[graph.first_choice[:-1]] += 1
    return weights / np.repeat(np.add.reduceat(weights, graph.first_choice[:-1]), np.diff(graph.first_choice))


def by_run(runs):
    """Return the transitions of each run as lists."""
    cuts = np.flatnonzero(np.diff(runs.episode)) + 1
    return [part.tolist() for part in np.split(runs.transition, cuts)]


# --- random words

FILL_WORDS, HIGH_PRODUCT, DRAW = map(from_compiled_code, (kernels.fill_words, kernels._high_product, kernels._draw))


def test_random_words_are_those_of_numpys_philox():
    rng = np.random.default_rng(5)
    for _ in range(20):
        key = rng.integers(0, 2**64, size=2, dtype=np.uint64)
        runs = np.array([0, 1, 2**63, 2**64 - 1, *rng.integers(0, 2**64, 3, dtype=np.uint64).tolist()], dtype=np.uint64)
        blocks = np.empty((6, 4, len(runs)), dtype=np.uint64)
        for block in range(len(blocks)):
            FILL_WORDS(key, block, runs, blocks[block])
        for i, run in enumerate(runs.tolist()):
            counter = np.array([0, run, 0, 0], dtype=np.uint64)
            theirs = np.random.Philox(key=key, counter=counter).random_raw(24)
            assert blocks[:, :, i].ravel().tolist() == theirs.tolist()


def test_the_product_of_words_is_exact_in_its_upper_half():
    rng = np.random.default_rng(6)
    edges = [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1]
    pairs = [(a, b) for a in edges for b in edges] + rng.integers(0, 2**64, (1000, 2), dtype=np.uint64).tolist()
    for a, b in pairs:
        assert int(HIGH_PRODUCT(np.uint64(a), np.uint64(b))) == (a * b) >> 64


# --- runs


def test_runs_are_those_of_slow_exact_arithmetic_on_numpys_words(study):
    arguments = (study.model, study.true_point, 20)
    runs = record(*arguments, rng=11, max_steps=33)
    assert by_run(runs) == list(slow_runs(*arguments, seed=11, max_steps=33))


@pytest.mark.slow
def test_a_mixed_policy_draws_its_choices_as_slow_exact_arithmetic_does(betting):
    weights = mixed_policy(betting.model.graph)
    arguments = (betting.model, betting.true_point, 20)
    runs = record(*arguments, rng=12, max_steps=27, policy=weights)
    assert by_run(runs) == list(slow_runs(*arguments, seed=12, max_steps=27, weights=weights))
    assert (weights[runs.choice] > 0).all()


def test_a_deterministic_policy_is_followed(study):
    graph = study.model.graph
    policy = graph.first_choice[1:] - 1
    counts = simulate(study.model, study.true_point, 500, rng=1, max_steps=40, policy=policy)
    assert counts.total == 500 * 40
    assert set(np.flatnonzero(counts.visits)) <= set(policy.tolist())


@pytest.mark.night
def test_long_rows_are_searched_as_slow_arithmetic_does_and_nothing_of_probability_zero_is_drawn(urn):
    runs = record(urn, {"p": 1}, 3000, rng=13, max_steps=2)
    assert by_run(runs) == list(slow_runs(urn, {"p": 1}, 3000, seed=13, max_steps=2))
    drawn = set(urn.graph.states["ball"][urn.graph.successor[runs.transition]].tolist())
    assert drawn == set(range(1, 39)) - {17}


INF = float("inf")
CUMULATED = {
    "the sum is below 1": ([0.1] * 10, [*np.cumsum([0.1] * 10)[:9], INF]),
    "zeros at the end": ([0.25, 0.75, 0.0, 0.0], [0.25, INF, INF, INF]),
    "zeros at the start": ([0.0, 0.0, 1.0], [0.0, 0.0, INF]),
    "zeros between": ([0.5, 0.0, 0.5, 0.0], [0.5, 0.5, INF, INF]),
    "one": ([1.0], [INF]),
    "one and zeros": ([1.0, 0.0, 0.0], [INF, INF, INF]),
    "tiny and last": ([1 - 2**-53, 2**-53, 0.0], [1 - 2**-53, INF, INF]),
    "sum above 1": ([0.7, 0.3 + 1e-12, 1e-13], [0.7, 0.7 + (0.3 + 1e-12), INF]),
}


@pytest.mark.parametrize("case", CUMULATED)
def test_running_sums_are_infinite_from_the_last_positive_probability_on(case):
    """Between two other groups, whose sums begin and end with them."""
    probability, expected = CUMULATED[case]
    n = len(probability)
    first = np.array([0, 2, 2 + n, 4 + n], dtype=np.int32)
    sums = running_sums(first, np.array([0.5, 0.5, *probability, 0.125, 0.875]))
    assert sums.tolist() == [0.5, INF, *expected, 0.125, INF]


DRAWN = {
    "below the first": ([0.25, 0.75, 0.0], 0.25 - 2**-53, 0),
    "at a boundary": ([0.25, 0.75, 0.0], 0.25, 1),
    "the largest word": ([0.25, 0.75, 0.0], 1 - 2**-53, 1),
    "the largest word, and a sum below it": ([0.1] * 9 + [0.1 - 1e-9] + [0.0] * 5, 1 - 2**-53, 9),
    "zero is not drawn by 0": ([0.0, 0.0, 0.5, 0.5], 0.0, 2),
    "zero is not drawn at its boundary": ([0.5, 0.0, 0.0, 0.5], 0.5, 3),
    "long, at a boundary": ([2**-5] * 32 + [0.0] * 3, 17 * 2**-5, 17),
    "long, below a boundary": ([2**-5] * 32 + [0.0] * 3, 17 * 2**-5 - 2**-53, 16),
    "long, the largest word": ([2**-5] * 32 + [0.0] * 3, 1 - 2**-53, 31),
    "long, 0": ([0.0] * 20 + [1.0], 0.0, 20),
}


@pytest.mark.parametrize("case", DRAWN)
def test_a_word_draws_the_first_outcome_whose_running_sum_is_above_it(case):
    probability, uniform, expected = DRAWN[case]
    sums = running_sums(np.array([0, 1, 1 + len(probability)], dtype=np.int32), np.array([1.0, *probability]))
    word = np.uint64(int(uniform * 2**53) << 11)
    assert DRAW(sums, 1, len(sums), word) == 1 + expected


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 8, 9, 40])
def test_the_largest_word_draws_the_last_positive_probability(size):
    """Ten times 0.1 is below 1 as floats add: the sum must not decide that nothing is drawn."""
    probability = np.append(np.full(size, 1 / size), [0.0, 0.0])
    cumulative = np.empty(size + 2)
    kernels.cumulate(np.array([0, size + 2]), probability, cumulative)
    assert DRAW(cumulative, 0, size + 2, np.uint64(2**64 - 1)) == size - 1
    assert DRAW(cumulative, 0, size + 2, np.uint64(0)) == 0


# --- where runs end


@pytest.mark.parametrize("max_steps", [1, 2, 63, 64, 65, 131])
def test_runs_without_stop_states_have_exactly_so_many_steps(max_steps):
    study = pl.case_study("glider:11,9")
    runs = record(study.model, study.true_point, 300, rng=2, max_steps=max_steps)
    assert np.bincount(runs.episode).tolist() == [max_steps] * 300
    longer = record(study.model, study.true_point, 300, rng=2, max_steps=max_steps + 70)
    assert by_run(runs) == [run[:max_steps] for run in by_run(longer)]


def test_runs_end_on_reaching_a_stop_state_and_only_there_or_after_the_last_step():
    study = pl.case_study("glider:11,9")
    graph, stop = study.model.graph, np.zeros(99, dtype=bool)
    stop[[20, 35, 50]] = True
    runs = record(study.model, study.true_point, 2000, rng=3, max_steps=150, stop=stop)
    unstopped = by_run(record(study.model, study.true_point, 2000, rng=3, max_steps=150))
    lengths = []
    for cut, whole in zip(by_run(runs), unstopped, strict=True):
        reached = np.flatnonzero(stop[graph.successor[whole]])
        assert cut == whole[: reached[0] + 1 if len(reached) else 150]
        lengths.append(len(cut))
    assert min(lengths) < 64 < max(lengths[:-1]) == 150
    counts = simulate(study.model, study.true_point, 2000, rng=3, max_steps=150, stop=stop)
    assert counts.total == sum(lengths)
    assert counts.counts.tolist() == runs.counts().counts.tolist()


def test_absorbing_states_are_counted_up_to_the_last_step(betting):
    """Betting ends after 25 rounds and one step to the end, so 14 of 40 steps are in the absorbing state."""
    counts = simulate(betting.model, betting.true_point, 100, rng=1, max_steps=40)
    graph = betting.model.graph
    is_done = graph.action[graph.choice_of_transition()] == graph.action_names.index("done")
    assert counts.total == 100 * 40
    assert counts.counts[is_done].sum() == 100 * 14


def test_an_initial_stop_state_leaves_nothing_to_count(betting):
    stop = np.ones(betting.model.graph.n_states, dtype=bool)
    arguments = {"rng": 1, "max_steps": 5, "stop": stop}
    assert simulate(betting.model, betting.true_point, 10, **arguments).total == 0
    runs = record(betting.model, betting.true_point, 10, **arguments)
    assert [len(column) for form in ("transitions", "trajectories") for column in runs.columns(form).values()] == [
        0
    ] * 12
    assert stop.flags.writeable


# --- counts


@pytest.mark.night
def test_counts_do_not_depend_on_the_number_of_threads_and_are_those_of_the_recorded_runs(study):
    arguments = (study.model, study.true_point, 5000)
    options = {"rng": 21, "max_steps": study.max_steps + 1}
    parts = [simulate(*arguments, **options, threads=threads) for threads in (1, 2, 3, None)]
    recorded = record(*arguments, **options).counts().counts.tolist()
    moments = planned_moments(5000, n_transitions=study.model.graph.n_transitions)
    kept = [n for n in moments if n in (4, 16, 64, 256, 1024, 4096, moments[-1])]
    first_runs = [simulate(*arguments[:2], n, **options).counts.tolist() for n in kept]
    for part in parts:
        assert part.counts.tolist() == recorded
        assert part.pilot.lengths == moments
        assert [part.pilot.moments[moments.index(n)].tolist() for n in kept] == first_runs
        assert part.pilot.counts.tolist() == first_runs[3]  # 256 runs are the largest moment up to an eighth
        assert (part.pilot.end, part.pilot.weight, part.pilot.ratio) == ("planned", 1, 5000 / 256 - 1)
        assert part.sampling == "trajectories"


def test_a_seed_is_the_generator_with_that_seed_and_a_generator_moves_on(betting):
    def counts(rng):
        return simulate(betting.model, betting.true_point, 50, rng=rng, max_steps=25).counts.tolist()

    generator = np.random.default_rng(4)
    assert counts(4) == counts(generator)
    assert counts(4) != counts(generator)


@pytest.mark.parametrize(
    ("trajectories", "n_pilot", "first"),
    [
        (5, 0, (4,)),
        (17, 0, (4, 16)),
        (127, 0, (4, 16, 64)),
        (128, 16, (4, 16, 64)),
        (511, 16, (4, 16, 64, 256)),
        (512, 64, (4, 16, 64, 256)),
    ],
)
def test_the_pilot_is_the_largest_power_of_four_up_to_an_eighth_of_the_runs(betting, trajectories, n_pilot, first):
    lengths = planned_moments(trajectories)
    assert {*first} <= {*lengths}
    pilot = simulate(betting.model, betting.true_point, trajectories, rng=1, max_steps=25).pilot
    assert (pilot.total, pilot.lengths, pilot.expected) == (25 * n_pilot, lengths, trajectories)
    assert [moment.sum() for moment in pilot.moments] == [25 * length for length in lengths]


@pytest.mark.parametrize(("trajectories", "wanted"), [(1, True), (4, True), (5000, False)])
def test_few_runs_have_no_pilot_and_nor_have_runs_of_which_none_is_wanted(betting, trajectories, wanted):
    assert simulate(betting.model, betting.true_point, trajectories, rng=1, max_steps=25, pilot=wanted).pilot is None


def test_recorded_runs_have_the_pilot_of_the_simulation(study):
    arguments, options = (study.model, study.true_point, 500), {"rng": 9, "max_steps": study.max_steps + 1}
    counted, recorded = simulate(*arguments, **options), record(*arguments, **options)
    pilot = recorded.counts().pilot
    assert [moment.tolist() for moment in pilot.moments] == [moment.tolist() for moment in counted.pilot.moments]
    assert (pilot.ratio, pilot.expected) == (counted.pilot.ratio, counted.pilot.expected) == (500 / 16 - 1, 500)
    assert recorded.counts(pilot=False).pilot is None


def test_what_had_been_seen_at_a_moment_is_the_same_however_many_runs_are_simulated(study):
    options = {"rng": 9, "max_steps": study.max_steps + 1}
    few, many = (simulate(study.model, study.true_point, n, **options).pilot for n in (70, 700))
    seen = [dict(zip(each.lengths, (moment.tolist() for moment in each.moments), strict=True)) for each in (few, many)]
    assert all(seen[0][n] == seen[1][n] for n in (4, 16, 64))


def test_a_pilot_does_not_change_the_counts(study):
    arguments, options = (study.model, study.true_point, 700), {"rng": 8, "max_steps": study.max_steps + 1}
    plain, counts = simulate(*arguments, **options, pilot=False), simulate(*arguments, **options)
    assert counts.counts.tolist() == plain.counts.tolist() == (counts.main + counts.pilot.counts).tolist()


def test_few_runs_on_many_threads_and_many_steps_in_one_run(betting):
    assert simulate(betting.model, betting.true_point, 2, rng=1, max_steps=25, threads=5).total == 50
    assert simulate(betting.model, betting.true_point, 3, rng=1, max_steps=200_001).total == 3 * 200_001


def test_threads_are_fewer_if_their_counts_would_take_too_much_memory():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert _n_workers(None, 1000) == cores
    assert _n_workers(None, 10**9) == 1
    assert _n_workers(7, 10**9) == 7


# --- long runs


def test_the_share_of_runs_that_are_done_grows(betting, monkeypatch):
    monkeypatch.setattr("plumdp.base.progress._SECONDS", 0.0)
    seen = []
    with shown_by_others(seen.append):
        simulate(betting.model, betting.true_point, 30_000, rng=1, max_steps=25, threads=2)
    shares = [int(re.fullmatch(r"simulating: (\d+) %", text)[1]) for text in seen if text != "simulating"]
    assert len(shares) > 3
    assert shares == sorted(shares)
    assert shares[-1] == 100


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_a_run_without_end_can_be_interrupted():
    code = """
import os, signal, sys, threading, time
import plumdp as pl
from plumdp.data.simulate import simulate
study = pl.case_study("betting:25")
simulate(study.model, study.true_point, 10, rng=1, max_steps=10)  # compiled before it is interrupted

def calls(frame):
    return [] if frame is None else [frame.f_code.co_name, *calls(frame.f_back)]

def interrupt():  # as soon as the workers have their blocks, and the main thread waits for a result
    while "result" not in calls(sys._current_frames()[threading.main_thread().ident]):
        pass
    time.sleep(0.2)  # Python would not see a signal from just before it waits, and people press the keys once more
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    simulate(study.model, study.true_point, 100, rng=1, max_steps=10**12, threads=2)
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "interrupted\n"


# --- misuse


def test_misuse_is_refused_with_a_sentence(betting):
    arguments = {"trajectories": 10, "max_steps": 5, "rng": 1, "point": betting.true_point}
    errors = pl.ModelError, pl.DataError
    refused("environments:simulated", lambda changes: simulate(betting.model, **arguments | eval(changes)), errors)


def test_what_decides_the_runs_is_said_in_the_same_way_wherever_runs_are_made():
    shared = ("model", "point", "trajectories", "rng", "max_steps", "policy", "stop")
    said = [[signature(make).parameters[name] for name in shared] for make in (simulate, record, pl.data.write_runs)]
    assert said[0] == said[1] == said[2]


# --- the runs as a table


@pytest.mark.slow
def test_blocks_are_the_recorded_runs_cut_between_runs():
    study = pl.case_study("engagement:50")
    options = {"rng": 5, "max_steps": 1000, "stop": study.model.labels["target"]}
    whole = record(study.model, study.true_point, 4000, **options)
    plan = make_plan(study.model, study.true_point, 4000, options["rng"], 1000, "uniform", options["stop"])
    blocks = list(recorded_blocks(plan))
    assert len(blocks) > 2
    for name in ("episode", "step", "transition"):
        assert np.concatenate([getattr(block, name) for block in blocks]).tolist() == getattr(whole, name).tolist()
    episodes = [set(block.episode.tolist()) for block in blocks]
    assert sum(map(len, episodes)) == len(set.union(*episodes)) == 4000


def test_rows_with_next_state_say_what_each_step_did(study):
    graph = study.model.graph
    runs = record(study.model, study.true_point, 50, rng=6, max_steps=30)
    columns = runs.columns("transitions")
    own = {name: f"state_{name}" if name in ("step", "action") else name for name in graph.states}
    assert list(columns) == ["episode", "step", *own.values(), "action", *(f"next_{name}" for name in graph.states)]
    state_of = graph.state_of_choice()
    for row, (transition, choice) in enumerate(zip(runs.transition.tolist(), runs.choice.tolist(), strict=True)):
        assert graph.first_transition[choice] <= transition < graph.first_transition[choice + 1]
        assert columns["action"][row] == graph.action_names[graph.action[choice]]
        for name, values in graph.states.items():
            assert columns[own[name]][row] == values[state_of[choice]]
            assert columns[f"next_{name}"][row] == values[graph.successor[transition]]
    assert columns["episode"].tolist() == [run for run in range(50) for _ in range(30)]
    assert columns["step"].tolist() == list(range(30)) * 50


def test_rows_by_state_are_those_with_next_state_and_one_more_at_the_end_of_each_run():
    study = pl.case_study("engagement:50")
    graph = study.model.graph
    runs = record(study.model, study.true_point, 200, rng=7, max_steps=80, stop=study.model.labels["target"])
    columns, pairs = runs.columns("trajectories"), runs.columns("transitions")
    names = [f"state_{name}" if name == "action" else name for name in graph.states]
    assert list(columns) == ["episode", "step", *names, "action"]
    expected = []
    for row in range(len(runs)):
        step = int(pairs["step"][row])
        before = tuple(pairs[name][row].item() for name in names)
        expected.append((pairs["episode"][row].item(), step, *before, pairs["action"][row]))
        if row + 1 == len(runs) or pairs["episode"][row + 1] != pairs["episode"][row]:
            after = tuple(pairs[f"next_{name}"][row].item() for name in graph.states)
            expected.append((pairs["episode"][row].item(), step + 1, *after, None))
    assert list(zip(*(column.tolist() for column in columns.values()), strict=True)) == expected
    assert len(expected) == len(runs) + 200


def test_an_unknown_form_is_refused(betting):
    none = np.zeros(0, dtype=np.int32)
    with pytest.raises(pl.DataError, match="form='wide': choose one of 'transitions', 'trajectories'"):
        Trajectories(betting.model.graph, none, none, none).columns("wide")
