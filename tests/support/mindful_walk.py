"""A walk between walls under two actions and in two lights, whose steps may depend on more than they should."""

import numpy as np

import plumdp as pl
from plumdp.data.run_record import WholeRuns

N, STEPS = 4, 60  # places to walk in, and steps of a run


def walk():
    """Return a table: from each place one step left, none, or one right; the light may change at each step."""

    def step(s):
        ends = [max(s.x - 1, 0), s.x, min(s.x + 1, N - 1)]
        rows = pl.unknown(*dict.fromkeys(s._replace(x=x, light=light) for light in (0, 1) for x in ends))
        return {"walk": rows, "run": rows}

    return pl.explore(step, {"x": 1, "light": 0}, labels={"end": lambda s: s.x == N - 1})


def play(model, rng, n_runs, *, by_light=0.0, by_action=0.0, by_past=0.0, steps=STEPS):
    """Return runs in which the chance of a step to the right, a quarter, is larger by these after the one or other."""
    places = zip(model.graph.states["x"].tolist(), model.graph.states["light"].tolist(), strict=True)
    index = {pair: i for i, pair in enumerate(places)}
    x, light, action, past = np.ones(n_runs, int), np.zeros(n_runs, int), rng.integers(0, 2, n_runs), np.zeros(n_runs)
    states, actions = [], []
    for _ in range(steps + 1):
        states.append([index[pair] for pair in zip(x.tolist(), light.tolist(), strict=True)])
        actions.append(action)
        right = 0.25 + by_light * light + by_action * action + by_past * past
        draw, before = rng.random(n_runs), x
        x = np.clip(x + np.where(draw < right, 1, np.where(draw < right + 0.35, -1, 0)), 0, N - 1)
        past = (x > before).astype(float)
        light, action = rng.integers(0, 2, n_runs), rng.integers(0, 2, n_runs)
    actions[-1] = np.full(n_runs, -1)
    return runs_of(np.array(states).T, np.array(actions).T)


def runs_of(states, actions):
    """Return runs of one length, given states and actions (n_runs, n_steps + 1)."""
    n_runs, length = states.shape
    first = np.arange(n_runs + 1) * length
    return WholeRuns(
        np.arange(n_runs), first, np.tile(np.arange(length), n_runs), states.ravel(), actions.ravel(), False
    )


def counts_of_runs(model, runs):
    """Return how often each transition is in runs."""
    graph = model.graph
    state_of, choice_of = graph.state_of_choice(), graph.choice_of_transition()
    edges = {
        (int(state_of[c]), int(graph.action[c]), int(s)): t
        for t, (c, s) in enumerate(zip(choice_of, graph.successor, strict=True))
    }
    steps = zip(runs.state[:-1].tolist(), runs.action[:-1].tolist(), runs.state[1:].tolist(), strict=True)
    seen = [edges[step] for step in steps if step[1] >= 0]
    return pl.TransitionCounts(graph, np.bincount(seen, minlength=graph.n_transitions), "adaptive")
