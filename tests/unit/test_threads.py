"""Bounds and policies do not depend on the number of threads, which is asked for by an option or in the environment."""

import json
import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from command_line import plumdp

import plumdp as pl
from plumdp.base import threads
from plumdp.base.errors import DataError
from plumdp.certifying import pipeline
from plumdp.data.duckdb_engine import connect
from plumdp.data.simulate import _n_workers
from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver import layout
from plumdp.solver.evaluate import evaluate_all

NUMBERS = (1, 2, 3)


@pytest.fixture
def all_is_large(monkeypatch):
    """Let small models be divided as large ones are."""
    monkeypatch.setattr(threads, "LARGE", 0)
    monkeypatch.setattr(layout, "_CHUNK", 5)


def random_model(rng, n_states=40, *, is_acyclic):
    """Return intervals on a random graph in which rows have one to five successors; the last two states are ends."""
    first_choice, first, successor, lower, upper = [0], [0], [], [], []
    for state in range(n_states):
        for _ in range(1 if state >= n_states - 2 else rng.integers(1, 4)):
            after = np.arange(state + 1 if is_acyclic else 0, n_states)
            to = (
                [state]
                if state >= n_states - 2
                else rng.choice(after, min(len(after), rng.integers(1, 6)), replace=False)
            )
            middle = rng.dirichlet(np.ones(len(to)))
            width = rng.choice([0.0, 0.05, 1.0]) if len(to) > 1 else 0.0
            successor += list(to)
            lower += list(np.maximum(middle - width, 0))
            upper += list(np.minimum(middle + width, 1))
            first.append(len(successor))
        first_choice.append(len(first) - 1)
    return IntervalMDP.from_arrays(first_choice, first, successor, np.array(lower), np.array(upper))


def objectives_of(imdp, rng):
    """Yield reachability, also within some steps, and rewards, until an end and discounted."""
    is_last = np.arange(imdp.graph.n_states) == imdp.graph.n_states - 1
    costs = RewardStructure(rng.choice([0.0, 1.0, 2.5], imdp.graph.n_states), None)
    for direction in ("max", "min"):
        yield pl.model.Reach(is_last, np.zeros_like(is_last), direction)
        yield pl.model.Reach(is_last, np.zeros_like(is_last), direction, steps=(0, 7))
        yield pl.model.Reward(costs, direction, discount=0.9)
        yield pl.model.Reward(
            costs, direction, target=is_last | (np.arange(imdp.graph.n_states) == imdp.graph.n_states - 2)
        )


def bits(solution):
    """Return every bit of a solution."""
    return solution.lower.tobytes(), solution.upper.tobytes(), solution.policy.tobytes(), solution.status


@pytest.mark.night
@pytest.mark.parametrize("is_acyclic", [True, False])
def test_solutions_are_equal_to_the_last_bit_for_any_number_of_threads(all_is_large, is_acyclic):
    rng = np.random.default_rng(5)
    for _ in range(2):
        imdp = random_model(rng, is_acyclic=is_acyclic)
        for objective in objectives_of(imdp, rng):
            for nature in ("robust", "optimistic"):
                found = [pl.stages.solve(imdp, objective, nature=nature, threads=number) for number in NUMBERS]
                assert len({bits(solution) for solution in found}) == 1


@pytest.mark.slow
def test_values_of_a_policy_are_equal_to_the_last_bit_for_any_number_of_threads(all_is_large):
    rng = np.random.default_rng(6)
    for is_acyclic in (True, False):
        imdp = random_model(rng, is_acyclic=is_acyclic)
        for objective in objectives_of(imdp, rng):
            policy, found = pl.stages.solve(imdp, objective).policy, []
            for number in NUMBERS:
                with threads.thread_limit(number):
                    sides = evaluate_all([imdp, imdp], policy, objective, ("robust", "optimistic"))
                found.append(tuple(bits(side) for side in sides))
            assert len(set(found)) == 1


@pytest.mark.night
@pytest.mark.parametrize(
    ("name", "relaxation"),
    [("betting:8", "expression"), ("aircraft:5,4,1", "rectangular"), ("rover:3,3,2", "coupled")],
)
def test_certificates_of_case_studies_are_equal_for_any_number_of_threads(all_is_large, name, relaxation):
    study = pl.case_study(name)
    counts = pl.simulate(study.model, study.true_point, 200, rng=1, max_steps=study.max_steps)
    found = set()
    for number in NUMBERS:
        with threads.thread_limit(number):
            one = pl.certify(study.model, counts, study.objective, relaxation=relaxation)
        found.add((one.lower, one.upper, one.policy.choice.tobytes()))
    assert len(found) == 1


def test_everything_that_certifies_is_done_with_the_threads_that_were_asked_for(monkeypatch):
    study, seen = pl.case_study("betting:3"), []
    counts = pl.simulate(study.model, study.true_point, 50, rng=1, max_steps=4)
    learn, conclude = pipeline.learn, pipeline.conclude
    monkeypatch.setattr(
        pipeline, "learn", lambda *args, **more: seen.append(threads.n_threads()) or learn(*args, **more)
    )
    monkeypatch.setattr(
        pipeline, "conclude", lambda *args, **more: seen.append(threads.n_threads()) or conclude(*args, **more)
    )
    monkeypatch.setenv(threads.VARIABLE, "7")
    pl.certify(study.model, counts, study.objective)
    assert len(seen) >= 2
    assert set(seen) == {7}


def test_simulating_and_reading_use_the_threads_that_were_asked_for(monkeypatch):
    monkeypatch.setenv(threads.VARIABLE, "3")
    assert _n_workers(None, 1000) == 3
    assert _n_workers(5, 1000) == 5
    with threads.thread_limit(2), connect() as connection:
        assert _n_workers(None, 1000) == 2
        assert connection.execute("SELECT current_setting('threads')").fetchone() == (2,)


@pytest.mark.slow
def test_a_command_has_the_threads_of_the_environment_and_the_same_result(tmp_path, monkeypatch):
    counts, found = str(tmp_path / "counts.parquet"), []
    for number in NUMBERS:
        monkeypatch.setenv(threads.VARIABLE, str(number))
        ended = plumdp("simulate", "rover:3,3,2", "-n", "200", "--form", "counts", "-o", counts, "--force")
        assert ended.code == 0, ended.err
        ended = plumdp("certify", "rover:3,3,2", counts, "--json")
        content = json.loads(ended.out)
        found.append((content["lower"], content["upper"], content["provenance"]["counts"]))
    assert len(set(found)) == 1
    monkeypatch.setenv(threads.VARIABLE, "0")
    ended = plumdp("certify", "rover:3,3,2", counts)
    assert (ended.code, ended.out) == (2, "")


def test_the_number_is_the_option_or_the_variable_or_that_of_the_cores(monkeypatch):
    monkeypatch.delenv(threads.VARIABLE, raising=False)
    assert threads.n_threads() == threads.usable_cores() >= 1
    monkeypatch.setenv(threads.VARIABLE, "5")
    assert threads.n_threads() == 5
    with threads.thread_limit(3):
        assert threads.n_threads() == 3
        with threads.thread_limit(None):
            assert threads.n_threads() == 3
    assert threads.n_threads() == 5


def test_where_a_process_is_not_told_its_cores_all_are_counted(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert threads.usable_cores() == os.cpu_count()


@pytest.mark.parametrize("number", ["0", "-1", "many", "1.5"])
def test_a_number_of_threads_that_is_none_is_refused(monkeypatch, number):
    monkeypatch.setenv(threads.VARIABLE, number)
    with pytest.raises(DataError, match=f"PLUMDP_THREADS='{number}': give the number of threads, 1 or more"):
        threads.n_threads()
    with pytest.raises(DataError, match="threads=0: give the number of threads"), threads.thread_limit(0):
        pass


def test_a_process_of_a_pool_uses_one_thread(monkeypatch):
    monkeypatch.delenv(threads.VARIABLE, raising=False)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(threads.n_threads).result() == 1


def test_calls_at_once_run_at_the_same_time_and_share_the_threads(all_is_large):
    both = threading.Barrier(2, timeout=30)

    def call():
        both.wait()
        return threads.n_threads()

    with threads.thread_limit(5):
        assert threads.run_parallel([call, call], work=1) == [2, 2]


def test_small_work_is_done_on_one_thread():
    with threads.thread_limit(4), threads.run_serially_behind(threads.LARGE - 1) as then:
        assert threads.run_parallel([threading.get_ident] * 2, threads.LARGE - 1) == [threading.get_ident()] * 2
        found = []
        then(lambda: found.append(threading.get_ident()))
        assert found == [threading.get_ident()]


def test_calls_that_follow_are_made_in_turn_on_another_thread(all_is_large):
    found = []
    with threads.thread_limit(2), threads.run_serially_behind(1) as then:
        for number in range(20):
            then(lambda number=number: found.append((number, threading.get_ident())))
    assert [number for number, _ in found] == list(range(20))
    assert threading.get_ident() not in {thread for _, thread in found}


def test_what_a_following_call_raises_reaches_the_caller(all_is_large):
    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), threads.thread_limit(2), threads.run_serially_behind(1) as then:
        then(fail)


def test_an_interrupt_ends_calls_that_follow(all_is_large):
    with pytest.raises(KeyboardInterrupt), threads.thread_limit(2), threads.run_serially_behind(1):
        raise KeyboardInterrupt


def test_an_interrupt_reaches_all_calls_that_run_at_once(all_is_large, monkeypatch):
    started = threading.Barrier(3, timeout=30)

    def call():
        started.wait()
        try:
            while True:
                threads.check_interrupt()
        except KeyboardInterrupt:
            return "interrupted"

    def interrupted_wait(futures):
        started.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr(threads, "wait", interrupted_wait)
    with threads.thread_limit(2):
        assert threads.run_parallel([call, call], work=1) == ["interrupted", "interrupted"]
