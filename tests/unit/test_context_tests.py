"""Tests of memory: units that differ are found and named, right models are not, and wrong ties are not taken for it."""

import numpy as np
import pytest
from row_models import row_model

import plumdp as pl
from plumdp.base.vocabulary import Status
from plumdp.data.context_counts import contexts_of
from plumdp.data.contexts import VALUES, Context, ContextKind
from plumdp.data.counts import Pilot
from plumdp.fit.context_tests import weight_of
from plumdp.fit.remembered import find_remembered
from plumdp.learning.model_tests import REMEMBERS

(hazard,) = pl.parameters("hazard")
ASKED = 'P=? [ F<=12 status="failed" ]'


def unit(chances, name="run"):
    """Return a chain of a unit that works or has failed for good, given its row."""

    def step(s):
        if s.status == "failed":
            return {"stay": [(1, s)]}
        return {name: chances(s._replace(status="failed"), s)}

    return step, {"status": "works"}


MODEL = pl.explore(*unit(lambda fails, on: [(hazard, fails), (1 - hazard, on)]), space=pl.ParameterSpace.unit("hazard"))
FREE = pl.explore(*unit(lambda fails, on: pl.unknown(fails, on)))


def counted(model, rates, *, n=1500, n_pilot=64, seed=1):
    """Return the counts of units for twelve steps, whose hazards are these in turn."""
    rng, graph = np.random.default_rng(seed), model.graph
    row = graph.first_choice[graph.initial_state]
    first = int(graph.first_transition[row])
    fails = first + int(np.argmax(graph.successor[first : first + 2] != graph.initial_state))
    failed = rng.random((n, 12)) < np.resize(rates, n)[:, None]
    lasts = np.where(failed.any(axis=1), failed.argmax(axis=1) + 1, 12)
    run = np.repeat(np.arange(n), lasts)
    taken = np.concatenate([failed[i, :last] for i, last in enumerate(lasts)])
    transition = np.where(taken, fails, 2 * first + 1 - fails)
    seen, early = (np.bincount(transition[run < m], minlength=graph.n_transitions) for m in (n, n_pilot))
    contexts = contexts_of(graph, run, transition, n_pilot)
    return pl.TransitionCounts(graph, seen, "adaptive", Pilot(early, ratio=n / n_pilot - 1), contexts=contexts)


@pytest.mark.parametrize("model", [MODEL, FREE], ids=["parameter", "table"])
def test_units_of_two_kinds_are_found_and_named_and_no_bound_is_claimed(model):
    certificate = pl.certify(model, counted(model, [0.05, 0.3]), ASKED, confidence=0.95)
    assert certificate.status == Status.REJECTED
    assert not certificate.claim.claims_bounds
    assert certificate.beside.p_value < 1e-6
    assert certificate.headline == f"Model rejected: {REMEMBERS}. Nothing is claimed."
    assert "times as often" in certificate.claim.reason


@pytest.mark.parametrize("model", [MODEL, FREE], ids=["parameter", "table"])
def test_units_that_are_alike_are_not_found(model):
    for seed in range(3):
        certificate = pl.certify(model, counted(model, [0.15], seed=seed), ASKED, confidence=0.95)
        assert certificate.status == Status.CERTIFIED
        assert certificate.beside.p_value == 1


def test_bounds_with_contexts_are_at_most_3_per_cent_wider():
    counts = counted(MODEL, [0.15])
    plain = pl.TransitionCounts(counts.graph, counts.counts, "adaptive", counts.pilot)
    told, before = (pl.certify(MODEL, each, ASKED, confidence=0.95) for each in (counts, plain))
    assert 1 < (told.upper - told.lower) / (before.upper - before.lower) <= 1.03


def test_rows_that_are_wrongly_tied_are_not_said_to_remember():
    """They differ, and are visited at different steps, but each by itself has one law: the graph alone has bounds."""
    (p,) = pl.parameters("p")

    def step(s):
        on, off = (s._replace(at=s.at + 1, won=won) for won in (1, 0))
        return {"toss": [(p, on), (1 - p, off)]} if s.at < 2 else {"stay": [(1, s)]}

    model = pl.explore(step, {"at": 0, "won": 0}, space=pl.ParameterSpace.unit("p"))
    rng, graph = np.random.default_rng(1), model.graph
    states = {(int(a), int(w)): i for i, (a, w) in enumerate(zip(graph.states["at"], graph.states["won"], strict=True))}
    run, taken = [], []
    for i in range(2000):
        at = (0, 0)
        for chance in (0.3, 0.6):
            after = (at[0] + 1, int(rng.random() < chance))
            choice = graph.first_choice[states[at]]
            row = range(*graph.first_transition[choice : choice + 2])
            run.append(i)
            taken.append(next(t for t in row if graph.successor[t] == states[after]))
            at = after
    seen = np.bincount(taken, minlength=graph.n_transitions)
    counts = pl.TransitionCounts(graph, seen, "adaptive", contexts=contexts_of(graph, np.array(run), np.array(taken)))
    learned = pl.learn(model, counts, confidence=0.99)
    assert learned.fit.p_of_memory == 1
    assert not learned.conflict.is_of_memory
    assert learned.conflict.leaves_bounds


WORDS = [
    (ContextKind.VISITS, 2, "after 2 or more earlier visits in its run"),
    (ContextKind.STEP, 3, "from step 3 of a run on"),
    (ContextKind.SINCE, 1, "after 1 or more steps in the same state"),
    (ContextKind.LAST, 0, "where it was not visited before in its run"),
    (ContextKind.LAST, 1, "where its last visit in the run led to (status="),
    (ContextKind.PREVIOUS, 0, "where its run begins"),
    (ContextKind.PREVIOUS, 1, "where state (status=works), action 'run' led there"),
]


@pytest.mark.parametrize(("kind", "value", "words"), WORDS)
@pytest.mark.parametrize("is_inside", [True, False])
def test_what_is_remembered_is_said_with_both_figures_and_numbers(kind, value, words, is_inside):
    """The row fails in 30 of 100 visits where the value is this one or a later one, and in 10 of 100 elsewhere."""
    fails = int(np.argmax(MODEL.graph.successor[:2] != MODEL.graph.initial_state))
    seen = np.zeros((8, MODEL.graph.n_transitions), dtype=np.int64)
    is_ordered = kind in (ContextKind.VISITS, ContextKind.STEP, ContextKind.SINCE)
    other = value - 1 if is_ordered else value + 1
    seen[value, [fails, 1 - fails]] = (30, 70) if is_inside else (10, 90)
    seen[other, [fails, 1 - fails]] = (10, 90) if is_inside else (30, 70)
    context = Context.of(kind, seen, 0 * seen)
    found, own = find_remembered(MODEL, [context])
    told = found.words(MODEL, own)
    assert found.shares == (0.3, 0.1)
    assert "leads to (status=failed) 3 times as often" in told
    assert told.endswith("(0.3 against 0.1, 100 and 100 visits)")
    if is_inside:
        assert words in told


def test_a_column_that_is_known_is_named():
    seen = np.zeros((2, MODEL.graph.n_transitions), dtype=np.int64)
    seen[:, :2] = [[30, 70], [10, 90]]
    context = Context.of(ContextKind.KNOWN, seen, 0 * seen, name="site", values=("north", "south"))
    found, own = find_remembered(MODEL, [context])
    assert "site is " in found.words(MODEL, own)


def test_nothing_is_remembered_without_visits():
    empty = [Context.of(kind, *np.zeros((2, 8, MODEL.graph.n_transitions), dtype=np.int64)) for kind in VALUES]
    assert find_remembered(MODEL, empty) is None
    model = row_model([[hazard, 1 - hazard]], pl.ParameterSpace.unit("hazard"))
    nothing = np.zeros(model.graph.n_transitions, dtype=np.int64)
    contexts = tuple(Context.of(kind, *np.zeros((2, 8, len(nothing)), dtype=np.int64)) for kind in VALUES)
    counts = pl.TransitionCounts(model.graph, nothing, "adaptive", nothing, contexts=contexts)
    assert pl.learn(model, counts).fit.p_value == 1


def test_weights_of_pilots_sum_to_at_most_one():
    one, sizes = np.ones(1, dtype=np.int64), (4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0)
    for expected in (None, 1.0, 300.0, 1e9):
        ends = [
            Pilot(one, "power of four", moments=(0 * one,) * i + (one,), lengths=sizes[: i + 1], expected=expected)
            for i in range(1, 7)
        ]
        assert sum(map(weight_of, ends)) <= 1 + 1e-12


def test_the_first_assumption_says_what_memory_could_hide_or_why_it_was_not_tested():
    """By Hausman's variance: 1,500 runs tell a risk of 0.858 to 0.009, their rows to 0.0078."""
    counts = counted(MODEL, [0.15])
    told = pl.certify(MODEL, counts, ASKED, confidence=0.95).rests_on.assumptions[0]
    hidden = float(told.partition("less than about ")[2].partition(" ")[0])
    assert 0.01 < hidden < 0.025
    assert told.endswith("would hardly show: an estimate)")
    plain = pl.TransitionCounts(counts.graph, counts.counts, "adaptive", counts.pilot)
    silent = pl.certify(MODEL, plain, ASKED, confidence=0.95).rests_on.assumptions[0]
    assert silent.endswith("(not tested: the order of steps within runs is not known)")
