"""Places for the states of a small model, in layers by distance from the initial state, ordered to cross few lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from plumdp.model.graph import FloatArray

_SWEEPS = 12


def layered_layout(n_states: int, initial: int, edges: Iterable[tuple[int, int]]) -> tuple[list[list[int]], FloatArray]:
    """Return the states of each layer in order, and their places (n_states, 2), position and number of the layer.

    Layers are distances from the initial state. States that cannot be reached come last. Within a layer, states are
    ordered by the mean place of their neighbours, down and up several times, which leaves few crossings.

    >>> layers, places = layered_layout(4, 0, [(0, 1), (0, 2), (1, 3), (2, 3)])
    >>> layers, places.tolist()
    ([[0], [1, 2], [3]], [[0.0, 0.0], [-0.5, 1.0], [0.5, 1.0], [0.0, 2.0]])
    """
    pairs = sorted({(a, b) for a, b in edges if a != b})
    layers = layers_from(initial, pairs)
    others = sorted({*range(n_states)}.difference(*layers))
    layers += [others] if others else []
    number = {state: k for k, layer in enumerate(layers) for state in layer}
    near: list[list[int]] = [[] for _ in range(n_states)]
    for a, b in pairs:
        if number[a] != number[b]:
            near[a].append(b)
            near[b].append(a)
    best, fewest = layers, _crossings(layers, pairs, number)
    for sweep in range(_SWEEPS):
        layers = _swept(layers, near, number, is_down=sweep % 2 == 0)
        now = _crossings(layers, pairs, number)
        if now < fewest:
            best, fewest = layers, now
    places = np.zeros((n_states, 2))
    for k, layer in enumerate(best):
        for i, state in enumerate(layer):
            places[state] = i - (len(layer) - 1) / 2, k
    return best, places


def layers_from(initial: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return the states that can be reached from a state, by their distance from it."""
    after: dict[int, list[int]] = {}
    for a, b in pairs:
        after.setdefault(a, []).append(b)
    reached, layers = {initial}, [[initial]]
    while layers[-1]:
        layers.append(list(dict.fromkeys(b for a in layers[-1] for b in after.get(a, ()) if b not in reached)))
        reached.update(layers[-1])
    return layers[:-1]


def _swept(
    layers: list[list[int]], near: Sequence[Sequence[int]], number: dict[int, int], *, is_down: bool
) -> list[list[int]]:
    """Return the layers, each ordered by the mean place of neighbours in those that were ordered before it."""
    new = [list(layer) for layer in layers]
    at = {state: i / max(1, len(layer) - 1) for layer in new for i, state in enumerate(layer)}
    for k in range(1, len(new)) if is_down else range(len(new) - 2, -1, -1):
        means = {}
        for state in new[k]:
            places = [at[other] for other in near[state] if (number[other] < k) == is_down]
            means[state] = sum(places) / len(places) if places else at[state]
        new[k].sort(key=means.__getitem__)
        at |= {state: i / max(1, len(new[k]) - 1) for i, state in enumerate(new[k])}
    return new


def _crossings(layers: list[list[int]], pairs: Sequence[tuple[int, int]], number: dict[int, int]) -> int:
    """Return the number of lines between neighbouring layers that cross."""
    at = {state: i for layer in layers for i, state in enumerate(layer)}
    between: dict[int, list[tuple[int, int]]] = {}
    for a, b in pairs:
        if abs(number[a] - number[b]) == 1:
            upper, lower = (a, b) if number[a] < number[b] else (b, a)
            between.setdefault(number[upper], []).append((at[upper], at[lower]))
    total = 0
    for lines in between.values():
        ends = np.array(sorted(lines))
        for i in range(len(ends)):
            total += int(((ends[i + 1 :, 0] > ends[i, 0]) & (ends[i + 1 :, 1] < ends[i, 1])).sum())
    return total
