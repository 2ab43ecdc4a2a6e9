"""The test of memory: its evidence is fair, and results are told."""

from itertools import product
from math import exp

import numpy as np
import pytest
from mindful_walk import counts_of_runs, play, runs_of, walk
from shorthand import check_model

import plumdp as pl
from plumdp.fit import memory
from plumdp.fit.memory import MemoryTest, memory_test

COIN = (0.3, 0.8)  # of a step to the second state, from either


def two_states():
    """Return a chain of two states, each of which may lead to both."""
    return pl.explore(lambda s: {"go": pl.unknown(s._replace(x=0), s._replace(x=1))}, {"x": 0})


def expected_evidence(monkeypatch, length):
    """Return the exact expectation of the evidence against a chain without memory, over all of its runs of a length."""
    model, total, seen = two_states(), 0.0, []
    monkeypatch.setattr(memory, "p_value_of", lambda evidence: seen.append(evidence) or 1.0)
    for ends in product((0, 1), repeat=length):
        states = np.array([[0, *ends]])
        chance = np.prod([COIN[s] if t else 1 - COIN[s] for s, t in zip(states[0], ends, strict=False)])
        actions = np.append(np.zeros(length, dtype=int), -1)[None, :]
        memory_test(model, runs_of(states, actions))
        total += chance * exp(seen[-1])
    return total


def test_evidence_of_memory_has_an_expectation_of_at_most_one(monkeypatch):
    assert 0.2 < expected_evidence(monkeypatch, 8) <= 1


@pytest.mark.slow
def test_a_planted_look_ahead_into_what_comes_next_is_found(monkeypatch):
    """Parts by the state that a step leads to, in place of the one before it."""
    by_past = memory._by_past
    ahead = lambda graph, choice, transition, past, *rest: by_past(  # noqa: E731
        graph, choice, transition, graph.successor[transition], *rest
    )
    monkeypatch.setattr(memory, "_by_past", ahead)
    assert expected_evidence(monkeypatch, 8) > 1.2


def test_a_p_value_is_rounded_up():
    assert "(p = 0.0011, 2 rows compared" in MemoryTest(0.00104, 2, "").sentence(0.99)


def test_memory_contradicts_the_model_at_half_of_the_error_and_is_explained():
    model, rng = walk(), np.random.default_rng(2)
    plain, mindful = play(model, rng, 100), play(model, rng, 100, by_past=0.35)
    check = check_model(model, counts_of_runs(model, mindful), runs=mindful)
    assert check.is_contradicted
    assert check.p_value == check.memory.p_value == 2 * memory_test(model, mindful).p_value
    assert check.headline.endswith("no rows explain the data.")
    assert "because         the data contradict that the next state depends on state and action alone" in str(check)
    assert "try             add what matters of the step before to the state" in str(check)
    assert not check_model(model, counts_of_runs(model, plain), runs=plain).is_contradicted
