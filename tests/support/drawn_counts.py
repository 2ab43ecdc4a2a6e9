"""Small models, and counts drawn row by row from probabilities that need not be those of the model."""

import numpy as np

import plumdp as pl
from plumdp.data.counts import Pilot


def walk(length: int = 6):
    """Return a walk on a line: "fast", "slow" and "odd" go right with probabilities p, p/2 + q/4 and p/4 + q/2.

    ``mood`` flips whenever the walk steps right, so that it is correlated with the place and says nothing else.
    """
    p, q = pl.parameters("p", "q")

    def step(s):
        right = s._replace(x=min(s.x + 1, length), mood=not s.mood)
        left = s._replace(x=max(s.x - 1, 0))
        again = [("0.75", s._replace(x=0)), ("0.25", s._replace(x=length // 2))]
        return {
            "fast": [(p, right), (1 - p, left)],
            "slow": [(p / 2 + q / 4, right), (1 - p / 2 - q / 4, left)],
            "odd": [(p / 4 + q / 2, right), (1 - p / 4 - q / 2, left)],
            "restart": again,
        }

    return pl.explore(step, {"x": 1, "mood": False}, space=pl.ParameterSpace.unit("p", "q"))


def chances(model, point) -> np.ndarray:
    """Return the probability of each transition at a point."""
    return model.probabilities(point)[model.expression].copy()


def moved(model, probability, shift):
    """Return probabilities with so much (n_choices) moved from the second to the first transition of each choice."""
    first = model.graph.first_transition[:-1]
    rows = np.flatnonzero(np.asarray(shift))
    found = probability.copy()
    found[first[rows]] += np.asarray(shift)[rows]
    found[first[rows] + 1] -= np.asarray(shift)[rows]
    return found


def draw(model, probability, visits, seed, *, pilot=0.05, early=None):
    """Return counts of so many visits of every choice, the pilot included; ``early`` are the probabilities in it."""
    rng, graph = np.random.default_rng(seed), model.graph
    n_pilot = round(pilot * visits)
    parts = []
    for n, own in ((n_pilot, probability if early is None else early), (visits - n_pilot, probability)):
        counts = np.zeros(graph.n_transitions, dtype=np.int64)
        for first, last in zip(graph.first_transition[:-1], graph.first_transition[1:], strict=True):
            counts[first:last] = rng.multinomial(n, own[first:last])
        parts.append(counts)
    kept = Pilot(parts[0], ratio=(visits - n_pilot) / n_pilot) if n_pilot else None
    return pl.TransitionCounts(graph, parts[0] + parts[1], "independent", kept)


def value_of_choice(model, name):
    """Return the value of a state variable at each choice."""
    return model.graph.states[name][model.graph.state_of_choice()].astype(float)
