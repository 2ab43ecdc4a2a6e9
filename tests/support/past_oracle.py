"""Contexts of the steps of runs as a plain loop over rows finds them, on a model with rows of many outcomes."""

from collections import Counter

import numpy as np
import pandas as pd

from plumdp.data.contexts import VALUES, ContextKind
from plumdp.model.table_model import table_model

# of state 0 and action a there are eight outcomes, and state 1 has ten choices that may lead there
STEPS = [(0, "a", after) for after in range(8)] + [(0, "b", 1), *((x, "a", 1) for x in range(1, 8)), (1, "a", 0)]
STEPS += [(2, "b", 1), (1, "b", 2), (1, "b", 3), *((x, "a", 0) for x in range(2, 8))]
MODEL = table_model(*zip(*STEPS, strict=True), initial=0)
GRAPH = MODEL.graph


def the_model():
    graph = GRAPH
    choice = graph.choice_of_transition()
    state = graph.states["state"]
    source = state[graph.state_of_choice()[choice]]
    words = np.array(graph.action_names, dtype=object)[graph.action[choice]]
    return {key: i for i, key in enumerate(zip(source.tolist(), words, state[graph.successor].tolist(), strict=True))}


EDGES = the_model()
CHOICES = {(x, action): GRAPH.choice_of(i) for (x, action, _), i in EDGES.items()}
BEFORE = {x: sorted(GRAPH.choice_of(i) for (*_, after), i in EDGES.items() if after == x) for x in range(8)}


def log_of(n, rng, *, n_odd=0):
    """Return runs as rows (run, step, x, action); of some, values are not the model's, or rows are missing."""
    rows = []
    for run in range(n):
        x = 0
        for step in range(int(rng.integers(1, 60))):
            action = str(rng.choice([word for state, word in CHOICES if state == x]))
            rows.append([run, step, x, action])
            x = int(rng.choice([after for s, a, after in EDGES if (s, a) == (x, action)]))
        rows.append([run, step + 1, x, None])
    for place in rng.choice(len(rows), n_odd, replace=False):
        column = int(rng.integers(2, 4))
        rows[place][column] = {2: int(rng.integers(0, 12)), 3: str(rng.choice(["a", "b", "z"]))}[column]
    gone = {*rng.choice(len(rows), n_odd // 2, replace=False).tolist()}
    return pd.DataFrame([row for i, row in enumerate(rows) if i not in gone], columns=["run", "step", "x", "action"])


def bins(n, firsts):
    return VALUES[ContextKind.VISITS][sum(n >= first for first in firsts) - 1]


def place_of(i):
    return ("first", "second", "third", "fourth", "fifth", "sixth")[i] if i < 6 else "another"


def by_hand(rows, known=""):
    """Return how often each kind and value came before each transition, as a plain loop over runs sees it."""
    found = Counter()
    for _, run in rows.groupby("run"):
        steps = run.sort_values("step").to_dict("records")
        visits, last, taken, since = Counter(), {}, None, 0
        for i, row in enumerate(steps):
            follows = i + 1 < len(steps) and steps[i + 1]["step"] == row["step"] + 1
            key = (row["x"], row["action"])
            transition = EDGES.get((*key, steps[i + 1]["x"])) if follows else None
            since = since + 1 if i and steps[i - 1]["x"] == row["x"] else 0
            if transition is not None:
                rank = None if taken is None else BEFORE[row["x"]].index(GRAPH.choice_of(taken))
                values = {
                    "visits": bins(visits[key], (0, 1, 2, 4, 8, 16, 32, 64)),
                    "last": last.get(key, "none"),
                    "previous": "none" if i == 0 else "another" if rank is None else place_of(rank),
                    "step": VALUES[ContextKind.STEP][sum(i >= first for first in (0, 1, 2, 3, 4, 8, 16, 32)) - 1],
                    "since": bins(since, (0, 1, 2, 4, 8, 16, 32, 64)),
                }
                values |= {"known": str(row[known])} if known else {}
                found.update((kind, value, transition) for kind, value in values.items())
            visits[key] += 1
            first = GRAPH.first_transition[CHOICES[key]] if key in CHOICES else 0
            last[key] = "another" if transition is None else place_of(transition - first)
            taken = transition
    return found


def cells(contexts, *, of_pilot=False):
    """Return the cells of contexts as a counter."""
    found = Counter()
    for each in contexts:
        counts = each.pilot if of_pilot else each.count
        for value, transition, n in zip(each.value, each.transition, counts, strict=True):
            found[str(each.kind), each.values[value], int(transition)] += int(n)
    return +found
