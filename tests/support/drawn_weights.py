"""Random policies that draw their actions, and the exact probabilities that their floats mean."""

from collections import Counter
from fractions import Fraction

import numpy as np


def random_weights(rng, graph):
    """Return probabilities of choices: some zero, some tiny, some equal, and some whose floats do not sum to one."""
    weights = np.zeros(graph.n_choices)
    for first, end in zip(graph.first_choice[:-1], graph.first_choice[1:], strict=True):
        own = rng.choice([0, 1e-9, 0.1, 0.3, 1], end - first) * rng.choice([1, rng.random()], end - first)
        own[rng.integers(end - first)] += 0.1
        weights[first:end] = own / own.sum()
    return weights


def shares_of(graph, weights):
    """Return the exact probabilities that are meant: floats divided by their sum."""
    exact = [Fraction(weight) for weight in weights.tolist()]
    owner = graph.state_of_choice().tolist()
    sums = Counter()
    for state, share in zip(owner, exact, strict=True):
        sums[state] += share
    return [share / sums[state] for state, share in zip(owner, exact, strict=True)]
