"""Sums of data of a table that may end at will: the pilot grows with them, at ends of parts that the past decides."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import plumdp as pl
from plumdp.data import counts as of_counts
from plumdp.data.counts import ADDED, N_TABLE_PILOTS, PilotEnd, TransitionCounts
from plumdp.data.pilots import moments_for, open_pilot
from plumdp.data.seen import Seen

ASKED = 'Pmax=? [ F "goal" ]'


@cache
def walk():
    """Return a walk of three unknown rows."""

    def step(s):
        return {"stay": [(1, s)]} if s.x in (0, 4) else {"go": pl.unknown(s._replace(x=s.x + 1), s._replace(x=s.x - 1))}

    return pl.explore(step, {"x": 2}, labels={"goal": lambda s: s.x == 4})


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
