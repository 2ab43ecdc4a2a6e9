"""What had been seen at many moments: the same from whatever counts the data, and through files and sums."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from coin_model import COIN
from row_models import listed
from tiers import size

import plumdp as pl
from plumdp.base.errors import DataError
from plumdp.data import counts as of_counts
from plumdp.data.counts import ADDED, N_TABLE_PILOTS, PilotEnd, TransitionCounts
from plumdp.data.files import read_counts, write_counts
from plumdp.data.pilots import moments_for, open_pilot
from plumdp.data.seen import Seen
from plumdp.data.simulators import as_env, sample_env
from plumdp.data.time_parts import FILED, TimeParts, boundaries_of, parts_at
from plumdp.data.trajectories import record
from plumdp.result.data_file import read_data, write_data

ASKED = 'Pmax=? [ F "goal" ]'


@cache
def walk():
    """Return a walk of three unknown rows."""
    return listed({x: {"go": [x + 1, x - 1]} for x in (1, 2, 3)}, None, at="x", start=2, labels={"goal": 4})


@cache
def days(n_days, n_runs, seed=1):
    """Return what each run of some days showed (n_days, n_runs, n_transitions)."""
    rng, graph = np.random.default_rng(seed), walk().graph
    seen = np.zeros((n_days, n_runs, graph.n_transitions), dtype=np.int64)
    for day in range(n_days):
        for run in range(n_runs):
            x = graph.initial_state
            while graph.first_choice[x + 1] > graph.first_choice[x] and len(graph.transitions_of(np.array([x]))) > 1:
                t = int(rng.choice(graph.transitions_of(np.array([x])), p=[0.6, 0.4]))
                seen[day, run, t] += 1
                x = int(graph.successor[t])
    return seen


def log(runs):
    """Return counts of runs in their order, which may have ended at will."""
    n, total = len(runs), np.cumsum(runs, axis=0)
    moments = [Seen(total[size - 1]) for size in moments_for(n, is_table=True, is_planned=False)]
    pilot = open_pilot(moments, n, Seen(0 * total[0]), is_table=True)
    return TransitionCounts(walk().graph, total[-1], "adaptive", pilot)


def test_the_pilot_of_a_sum_of_days_grows_with_it():
    sums = sum(map(log, days(40, 25)))
    pilot = sums.pilot
    assert (pilot.end, pilot.n_pilots) == (PilotEnd.POWER_OF_FOUR, N_TABLE_PILOTS)
    assert ADDED in pilot.rests_on
    ends = [tuple(end) for end in np.cumsum(days(40, 25).sum(1), axis=0)]
    assert [ends.index(tuple(moment)) + 1 for moment in pilot.moments[1:]] == [3, 10, 39]  # about 64, 256, 1,024 runs
    assert 8 * pilot.total <= sums.total < 40 * pilot.total
    assert pilot.first_bets in (1, 2)


def moments_differ():
    """Return whether the moments until the end of some days depend on how long the next one is."""
    parts = [*map(log, days(40, 25))]
    for n in range(1, 13):
        until = sum(parts[:n])
        found = [(until + later).pilot.moments for later in (parts[12], sum(parts[13:]))]
        if len(found[0]) != len(found[1]) or not all(map(np.array_equal, *found)):
            return True
    return False


def test_moments_are_decided_by_what_came_before():
    assert not moments_differ()


def test_a_moment_before_many_data_is_found(monkeypatch):
    before = of_counts._before

    def mistaken(first, other):
        pilot = before(first, other)
        if other.total < first.total or np.array_equal(pilot.moments[-1], first.counts):
            return pilot
        moments, lengths = (*pilot.moments, first.counts), (*pilot.lengths, 2 * pilot.lengths[-1])
        return replace(pilot, moments=moments, lengths=lengths, rewards=(*pilot.rewards, pilot.rewards[-1]))

    monkeypatch.setattr(of_counts, "_before", mistaken)
    assert moments_differ()


@pytest.mark.slow
def test_a_sum_of_days_is_about_as_narrow_as_one_log():
    parts = days(30, 60)
    found = [
        pl.certify(walk(), counts, ASKED, confidence=0.95)
        for counts in (log(parts.reshape(-1, parts.shape[-1])), sum(map(log, parts)))
    ]
    one, several = (each.upper - each.lower for each in found)
    assert several < 1.15 * one


N = COIN.graph.n_transitions
AT = {"p": 0.3}
NOTHING = np.zeros((3, 0), dtype=np.int64)


def at_ends(counts):
    """Return what had been seen after so many base parts."""
    seen = np.cumsum([*counts.time.seen_in_parts(N)], axis=0)
    return {end: each.tolist() for end, each in zip(counts.time.ends, seen, strict=True)}


def thrown(n, seed=1):
    return pl.simulate(COIN, AT, n, rng=seed, max_steps=1)


def log_of(outcomes):
    """Return a log of runs, each with one throw."""
    rows = [
        (run, step, x, "go" if step == 0 else None) for run, o in enumerate(outcomes) for step, x in ((0, 0), (1, o))
    ]
    return pd.DataFrame(rows, columns=["episode", "step", "x", "action"])


OUTCOMES = np.random.default_rng(5).integers(1, 3, size(120, 1000))


def seen_after(n):
    return pl.read_log(COIN, log_of(OUTCOMES[:n])).counts.counts.tolist()


@pytest.mark.parametrize("n", [1, 2, 17, 100, 1250, 10**6])
def test_boundaries_are_inside_in_order_and_hold_all_pilots(n):
    ends = boundaries_of(n)
    assert ends == sorted({*ends})
    assert all(0 < end < n for end in ends)
    assert {4**k for k in range(10) if 4**k < n} <= {*ends}
    assert n == 1 or ends[-1] == n - 1
    assert len(ends) < 31 + 2 * n.bit_length()


def test_parts_of_a_simulation_are_what_shorter_simulations_show():
    """Runs depend on their number and the seed alone."""
    counts = thrown(200)
    assert at_ends(counts) == {end: thrown(16 * end).counts.tolist() for end in boundaries_of(13)}
    recorded = record(COIN, AT, 200, rng=1, max_steps=1).counts()
    assert at_ends(recorded) == at_ends(counts)
    sampled = sample_env(COIN, as_env(COIN, AT, max_steps=1), 40, rng=1, max_steps=1)
    assert [*at_ends(sampled)] == boundaries_of(3)


def test_parts_of_a_log_are_what_its_first_runs_show():
    counts = pl.read_log(COIN, log_of(OUTCOMES), order="runs").counts
    assert at_ends(counts) == {end: seen_after(16 * end) for end in boundaries_of(-(-len(OUTCOMES) // 16))}
    assert counts.time.names[0] == "run 17"
    assert not counts.time.rests_on


def test_rows_in_time_have_parts_where_bets_are_placed():
    n = 600
    moves = pd.DataFrame({"x": 0, "action": "go", "next_x": np.random.default_rng(1).integers(1, 3, n)})
    counts = pl.read_log(COIN, moves, order="time").counts
    assert at_ends(counts) == {1: pl.read_log(COIN, moves[:256]).counts.counts.tolist()}
    assert counts.time.names == ("row 257",)


def test_data_without_an_order_have_no_parts():
    assert pl.read_log(COIN, log_of(OUTCOMES)).counts.time is None
    assert replace(thrown(100), pilot=None).time is None


def test_an_order_without_boundaries_survives_a_file(tmp_path):
    counts = pl.read_log(COIN, log_of(OUTCOMES[:10]), order="runs").counts
    write_counts(counts, tmp_path / "counts.parquet")
    assert (
        read_counts(COIN, tmp_path / "counts.parquet").time.words
        == counts.time.words
        == TimeParts(1, (), (), NOTHING).words
    )


def test_parts_survive_files(tmp_path):
    counts = thrown(100) + thrown(40, seed=2)
    write_counts(counts, tmp_path / "counts.parquet")
    read = read_counts(COIN, tmp_path / "counts.parquet")
    assert read.fingerprint == counts.fingerprint
    assert (read.time.words, at_ends(read)) == (counts.time.words, at_ends(counts))
    moved = replace(counts.time, ends=(*counts.time.ends[:-1], counts.time.ends[-1] + 1), n=counts.time.n + 1)
    assert replace(counts, time=moved).fingerprint != counts.fingerprint
    write_data(tmp_path / "data.npz", COIN, counts)
    assert read_data(tmp_path / "data.npz")[1].fingerprint == counts.fingerprint


def test_parts_of_a_sum_are_those_of_the_left_then_those_of_the_right():
    first, second = thrown(40), thrown(50, seed=2)
    both = (first + second).time
    assert both.n == 3 + 4
    assert both.ends == (1, 2, 3, 4, 5, 6)
    assert both.names[2:4] == ("counts number 2", "run 17 of counts number 2")
    assert both.rests_on == FILED
    late = np.cumsum([*both.seen_in_parts(N)], axis=0)
    assert late[2].tolist() == first.counts.tolist()
    assert late[3].tolist() == (first.counts + thrown(16, seed=2).counts).tolist()


def test_what_is_added_without_an_order_is_one_part():
    """The share of the error must not depend on what is added, which may depend on the data on the left."""
    first, second = thrown(40), replace(thrown(50, seed=2), pilot=None)
    assert (first + second).time.ends == (1, 2, 3)
    assert (first + second).time.n == 4
    assert (second + first).time is None
    assert first.planned_sum(thrown(50, seed=3)).time is None
    nothing = replace(thrown(1, seed=4), counts=np.zeros(N, dtype=np.int64), contexts=())
    assert (first + nothing).time is first.time


def test_a_long_sum_keeps_few_boundaries_and_all_data():
    parts = TimeParts(0, (), (), NOTHING)
    total, one = np.zeros(2, dtype=np.int64), np.array([1, 2])
    for _ in range(100):
        parts, total = parts.then(total, parts_at([16], [one], 32), ""), total + 2 * one
    assert parts.n == 200
    assert len(parts.ends) == len(boundaries_of(200))
    seen = np.cumsum([*parts.seen_in_parts(2)], axis=0)
    assert np.array_equal(seen, np.array(parts.ends)[:, None] * one)


def test_parts_that_are_not_parts_are_refused():
    with pytest.raises(DataError, match="boundaries in order"):
        TimeParts(3, (2, 1), ("a", "b"), NOTHING)
    with pytest.raises(DataError, match="none of theirs can be larger"):
        replace(thrown(40), time=TimeParts(3, (1,), ("run 17",), np.array([[0], [0], [99]])))
