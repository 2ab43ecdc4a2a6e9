"""Small tables of unknown rows with data, and results of them with witnesses."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

import plumdp
from plumdp.certifying.pipeline import prespecifying
from plumdp.data import model_from_log
from plumdp.model.question import ask
from plumdp.verifying.witness import propose_witness
from studies.free_rows import table_of

PROPERTY = 'Pmax=? [ F "goal" ]'
WEIGHTS = np.array([4.0, 3.0, 2.0, 1.0])  # of the places of a row, in proportion


@cache
def walk(*, is_tied=False, size=6, pays=1.0):
    """A walk with two actions in each state, of which one row is known; with ties, every second row is the same."""

    def step(s):
        if s.x in (0, size):
            return {"stay": [(1, s)]}
        up, down = s._replace(x=s.x + 1), s._replace(x=s.x - 1)
        if s.x == 2:
            return {"go": [("2/5", up), ("3/5", down)]}
        name = f"row {s.x % 2}" if is_tied else None
        return {"go": plumdp.unknown(up, down, s, row=name), "other": plumdp.unknown(down, up)}

    return plumdp.explore(
        step,
        {"x": size // 2},
        labels={"goal": lambda s: s.x == size, "end": lambda s: s.x in (0, size)},
        rewards={"": lambda s: pays if 0 < s.x < size else 0.0},
    )


@cache
def counts_of(model, runs=2_000, seed=1, *, end="end"):
    """Return runs under uniform choices, from rows that are alike where they have as many places."""
    graph, point = model.graph, np.ones(model.graph.n_transitions)
    known = {f: float(p.constant) for f, p in enumerate(model.expressions.polynomials)}
    for first, last in zip(graph.first_transition[:-1], graph.first_transition[1:], strict=True):
        numbers = [known.get(int(f), weight) for f, weight in zip(model.expression[first:last], WEIGHTS, strict=False)]
        point[first:last] = np.array(numbers) / sum(numbers)
    return plumdp.simulate(model, point, runs, rng=seed, max_steps=300, stop=model.labels[end])


def without_order(counts):
    """Return counts of which nobody knows what came first, so that there are no bets."""
    return replace(counts, pilot=None, sampling="adaptive")


@cache
def few_rows():
    """A table of ten rows, of which some are in the ball, with its data."""
    model, point = table_of("sparse:12")
    return model, plumdp.simulate(model, point, 8_000, rng=1, max_steps=400, stop=model.labels["deadlock"])


def proposed(model, counts, text=PROPERTY, *, policy=None, memory=True, confidence=0.95):
    """Return what was learned, the certificate, its witness, and the first step that the checker does not accept."""
    asked = prespecifying(ask(text, model, memory=memory), policy, prespecified=policy is not None)
    learned = plumdp.learn(model, counts, objectives=[asked], confidence=confidence)
    certificate = plumdp.conclude(learned, asked, policy=policy)
    return learned, certificate, *propose_witness(learned, certificate)


def saved(folder, model, counts, text=PROPERTY, **options):
    """Save a certificate with its witness and data, and return the certificate."""
    learned, certificate, text_of_witness, _ = proposed(model, counts, text, **options)
    plumdp.write_result(certificate, folder, witness=text_of_witness, model=model, counts=learned.counts)
    return certificate


@cache
def from_log(runs=2_000, *, has_order=False):
    """A table from the first 30 runs of a walk that may jump two steps, and the counts of later ones."""
    rng, rows = np.random.default_rng(1), []
    for run in range(30 + runs):
        x = 3
        while 0 < x < 6:
            after = int(rng.choice([x + 1, x - 1, x, min(x + 2, 6)], p=[0.45, 0.3, 0.24, 0.01]))
            rows.append((run, x, "go", after))
            x = after
    log = pd.DataFrame(rows, columns=["episode", "x", "action", "next_x"])
    early, late = log[log.episode < 30].drop(columns="episode"), log[log.episode >= 30]
    ends = {"goal": lambda s: s.x == 6, "end": lambda s: (s.x == 0) | (s.x == 6)}
    model = model_from_log(early, states="x", initial=3, ends=ends["end"], labels=ends)
    counts = plumdp.read_log(model, late, order="runs").counts
    return model, counts if has_order else without_order(counts)
