"""Repeated experiments on small models: draw data, build bounds, and count how often the true point is missed.

A guarantee of 1 - δ is refuted by a one-sided binomial test at level 10^-6: at night, with 2000 repetitions and
δ = 0.1, if the true point is missed more than 267 times. Seeds are fixed, so that a test passes always or never.
"""

from itertools import pairwise

import numpy as np
from row_models import row_model
from scipy.stats import binom
from tiers import size

import plumdp as pl
from plumdp.confidence.bounds import expression_bounds
from plumdp.confidence.observations import pool
from plumdp.data.counts import EventCounts, TransitionCounts
from plumdp.model.events import find_events

REPETITIONS, ERROR = size(400, 2000), 0.1
CRITICAL = int(binom.isf(1e-6, REPETITIONS, ERROR))

p, q = pl.parameters("p", "q")
POINT = {"p": 0.4, "q": 0.25}


def coins():
    """Return a model of one state with eight actions: seven coins and a die with p/3 on two sides; nine events."""
    rows = [[f, 1 - f] for f in (p, q, p / 2 + 0.3, q / 2 + 0.1, p * 0.8 + q * 0.2, 0.9 - q, (p + q) / 2)]
    rows.append([p / 3, p / 3, q, 1 - 2 * p / 3 - q])
    return row_model(rows, pl.ParameterSpace.box({"p": (0, 0.75), "q": (0, 0.5)}))


def ruin(*, clock):
    """Return a gambler who bets one or all until ruined or rich; with a clock, no event can be tried twice in a run."""

    def step(state):
        if state.money in (0, 6) or state.time == 8:
            return {"stop": [(1, state)]}
        later = state._replace(time=state.time + 1 if clock else 0)
        win = p + state.time / 20 if clock else p + q * (state.money % 2)
        stakes = {"one": 1, "all": min(state.money, 6 - state.money)}
        return {
            action: [(win, later._replace(money=state.money + bet)), (1 - win, later._replace(money=state.money - bet))]
            for action, bet in stakes.items()
        }

    return pl.explore(step, {"money": 3, "time": 0}, space=pl.ParameterSpace.box({"p": (0, 0.5), "q": (0, 0.5)}))


def guesses():
    """Return a model of one bet on one of two coins, heads or tails; and the objective to win it.

    With fair coins every bet wins with probability 1/2, so that a bound is wrong as soon as any interval is.
    """

    bets = {"p heads": p, "p tails": 1 - p, "q heads": q, "q tails": 1 - q}
    model = row_model({bet: [win, 1 - win] for bet, win in bets.items()}, "p q", labels={"won": 1})
    return model, pl.parse_property('Pmax=? [ F "won" ]', model)


def samples(model, visits, rng, *shape):
    """Return an array of counts per transition, from so many samples of each choice."""
    probability = model.probabilities(POINT)[model.expression]
    rows = [probability[a:b] for a, b in pairwise(model.graph.first_transition)]
    return np.concatenate([rng.multinomial(visits, row / row.sum(), size=shape) for row in rows], axis=-1)


def independent(model, visits, rng):
    """Yield the counts of a fixed number of samples of each choice, in each repetition."""
    for counts in samples(model, visits, rng, REPETITIONS):
        yield TransitionCounts(model.graph, counts, "independent")


def steps(model, n_runs, n_steps, rng):
    """Yield the transitions that so many runs with random choices take at each step."""
    graph = model.graph
    cumulated = np.cumsum(model.probabilities(POINT)[model.expression])
    before = np.concatenate([[0], cumulated])[graph.first_transition]
    state = np.full(n_runs, graph.initial_state)
    for _ in range(n_steps):
        choice = rng.integers(graph.first_choice[state], graph.first_choice[state + 1])
        drawn = np.searchsorted(cumulated, before[choice] + rng.random(n_runs), side="right")
        transition = np.clip(drawn, graph.first_transition[choice], graph.first_transition[choice + 1] - 1)
        state = graph.successor[transition]
        yield transition


def trajectories(model, n_runs, n_steps, rng):
    """Yield the counts of so many runs with random choices, in each repetition."""
    counts = np.zeros((REPETITIONS, model.graph.n_transitions), dtype=np.int64)
    repetition = np.repeat(np.arange(REPETITIONS), n_runs)
    for transition in steps(model, len(repetition), n_steps, rng):
        np.add.at(counts, (repetition, transition), 1)
    for row in counts:
        yield TransitionCounts(model.graph, row, "trajectories")


def first_visits(model, n_runs, n_steps, rng):
    """Yield of the same runs how often each event was tried first in a run, and happened then."""
    events, choice_of = find_events(model), model.graph.choice_of_transition()
    tries = np.zeros((model.graph.n_choices, len(events)), dtype=bool)
    tries[events.choice_of_trial(), events.tried] = True
    seen = np.zeros((REPETITIONS * n_runs, len(events)), dtype=bool)
    successes = np.zeros_like(seen)
    for transition in steps(model, len(seen), n_steps, rng):
        now = tries[choice_of[transition]] & ~seen
        seen |= now
        successes |= now & (events.success[transition][:, None] == np.arange(len(events)))
    shape = (REPETITIONS, n_runs, len(events))
    for n, k in zip(seen.reshape(shape).sum(axis=1), successes.reshape(shape).sum(axis=1), strict=True):
        yield EventCounts(n, k, "independent")


def stopped(model, method, n_rounds, rng):
    """Yield counts of an adversary who knows the true point, tries all choices in turn, and stops when a bound fails.

    ``method`` gives the intervals that the adversary looks at.
    """
    events = find_events(model)
    truth = np.array([float(f.evaluate(model.space.point(POINT))) for f in events.polynomials])
    until = np.cumsum(samples(model, 1, rng, n_rounds, REPETITIONS), axis=0)
    failed = np.zeros(until.shape[:2], dtype=bool)
    for event, f in enumerate(truth):
        per_round = int((events.tried == event).sum())
        successes = until[:, :, events.success == event].sum(axis=2)
        for i in range(n_rounds):
            n = (i + 1) * per_round
            seen, place = np.unique(successes[i], return_inverse=True)
            lower, upper = method(seen, n, ERROR / len(events))
            failed[i] |= ((f < lower) | (upper < f))[place]
    stop = np.where(failed.any(axis=0), failed.argmax(axis=0), n_rounds - 1)
    for repetition, time in enumerate(stop):
        yield TransitionCounts(model.graph, until[time, repetition], "adaptive")


def count_misses(model, data, *, error=ERROR, tamper=None):
    """Return in how many repetitions some expression or event lies outside its bounds.

    ``tamper(events, counts)`` may return false counts in place of the true ones.
    """
    events, expressions = find_events(model), model.probabilities(POINT)
    truth = np.array([float(f.evaluate(model.space.point(POINT))) for f in events.polynomials])
    missed = []
    for counts in data:
        given = counts if tamper is None else tamper(events, counts)
        bounds = expression_bounds(model, given, error=error, events=events)
        by_expression = (bounds.lower <= expressions) & (expressions <= bounds.upper)
        by_event = (bounds.event_lower <= truth) & (truth <= bounds.event_upper)
        missed.append(not (by_expression.all() and by_event.all()))
    assert len(missed) == REPETITIONS
    return sum(missed)


def counted_twice(events, counts):
    """Return the counts of one who counts a success of f, and again that 1 - f failed, as two trials of f."""
    pooled = pool(events, counts)
    return EventCounts(2 * pooled.trials, 2 * pooled.successes, counts.sampling)
