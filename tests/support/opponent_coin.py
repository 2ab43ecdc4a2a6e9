"""Fair coins that are looked at when they are most misleading: how often half-spaces ever exclude the truth.

The bets of half-spaces are made for one end of the data, and there are many ends: an error that is small at each of
them adds up. In a game with one coin, the adversary asks for half-spaces where the number of heads is furthest off;
with many coins, across those that were lucky. These are the half-spaces of ``likelihood_set``, with the likelihood
itself left out to save time.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from unittest.mock import patch

import numpy as np
from coin_model import COIN
from constraints import half_spaces_of
from evidence import Evidence
from opponent import ERROR, play_until_refuted
from row_models import row_model

import plumdp as pl
from plumdp.confidence import likelihood
from plumdp.confidence.bets import Direction
from plumdp.confidence.likelihood import Directions
from plumdp.confidence.sets import ModelCache
from plumdp.data import pilots
from plumdp.data.counts import Pilot, TransitionCounts
from plumdp.data.seen import Seen

PLANNED_SHARE, OPEN_SHARE = 0.8 * ERROR, 0.6 * ERROR  # that half-spaces have
LOOKS = tuple(np.geomspace(128, 10**8, 250).astype(np.int64).tolist())
_PLANNED = 100  # throws, to which others are added
_MOMENTS = pilots.planned_moments(_PLANNED)
_TIMES = np.unique(
    [(n, n // 8, n // 20, m) for n in LOOKS for m in (_PLANNED, *_MOMENTS, *pilots.SIZES)]
)  # that readings ask for
_TRIED, _LEAST_OFF = 2, 2.2  # looks of a game at which half-spaces are asked for, and standard deviations
_CACHE = ModelCache(COIN)

Throws = Callable[[int], np.ndarray]
"""From a number of throws to what was seen then."""


def read_open(at: Throws, n: int) -> TransitionCounts:
    """Return n throws that may have ended at will."""
    moments = [Seen(at(moment)) for moment in pilots.moments_of(n)]
    return TransitionCounts(COIN.graph, at(n), "adaptive", pilots.open_pilot(moments, n, Seen(0 * at(n))))


def read_added(at: Throws, n: int) -> TransitionCounts:
    """Return a planned number of throws, to which the others are added."""
    kept = pilots.planned_pilot([Seen(at(moment)) for moment in _MOMENTS], _PLANNED, sizes=_MOMENTS)
    first = TransitionCounts(COIN.graph, at(_PLANNED), "adaptive", kept)
    return first + TransitionCounts(COIN.graph, at(n) - first.counts, "adaptive")


def read_as_planned(at: Throws, n: int) -> TransitionCounts:
    """Return n throws as if this number had been planned, whenever one looks: that is wrong."""
    return TransitionCounts(COIN.graph, at(n), "adaptive", Pilot(at(n // 20), ratio=19.0))


def excludes_truth(counts: TransitionCounts, cache: ModelCache, directions: Directions) -> bool:
    """Return whether the half-spaces exclude that all coins are fair."""
    error = likelihood.likelihood_budget(cache, counts.pilot, has_directions=True).error_of_set(ERROR)
    with patch.object(likelihood, "log_evidence", lambda *_: -inf):
        made = likelihood.likelihood_set(cache.model, counts, error=error, directions=directions, cache=cache)
    sides = half_spaces_of(made)
    return bool((sides.rows.sum(axis=1) / 2 > sides.offsets).any())


def play_one(read: Callable[[Throws, int], TransitionCounts], share: float, n_games: int) -> Evidence:
    """Return in how many games with one coin the half-spaces ever exclude the truth."""

    def game(rng: np.random.Generator) -> bool:
        heads = dict(zip(_TIMES.tolist(), rng.binomial(np.diff(_TIMES, prepend=0), 0.5).cumsum().tolist(), strict=True))
        off = {n: abs(2 * heads[n] - n) / n**0.5 for n in LOOKS}
        worst = sorted((n for n in LOOKS if off[n] >= _LEAST_OFF), key=off.__getitem__)[-_TRIED:]

        def at(n: int) -> np.ndarray:
            return np.array([heads[n], n - heads[n], *[0] * (COIN.graph.n_transitions - 2)])

        return any(excludes_truth(read(at, n), _CACHE, lambda _: [Direction(np.ones(1))]) for n in worst)

    return play_until_refuted(game, n_games, rate=share)


def play_many(n_games: int, *, n_throws: int = 10**6, n_groups: int = 5, n_coins: int = 4) -> Evidence:
    """Return in how many games with groups of coins the half-spaces exclude the truth, at a planned end.

    They are asked for across the sum of the probabilities of those coins that look best, one of each group.
    """
    n = n_groups * n_coins
    names = [f"p{i:02}" for i in range(n)]
    model = row_model([[p, 1 - p] for p in pl.parameters(*names)], pl.ParameterSpace.unit(*names))
    cache, moments = ModelCache(model), pilots.planned_moments(n_throws)

    def directions(point: np.ndarray) -> list[Direction]:
        best = point.reshape(n_groups, n_coins).argmax(axis=1) + n_coins * np.arange(n_groups)
        return [Direction(np.eye(n)[best].sum(axis=0))]

    def game(rng: np.random.Generator) -> bool:
        throws = rng.multinomial(np.diff([0, *moments, n_throws]), np.full(n, 1 / n))
        heads = rng.binomial(throws, 0.5)
        thrown = np.stack([heads, throws - heads], axis=2).reshape(len(throws), -1).cumsum(axis=0)
        *kept, seen = np.pad(thrown, ((0, 0), (0, model.graph.n_transitions - 2 * n)))
        pilot = pilots.planned_pilot([*map(Seen, kept)], n_throws, sizes=moments)
        counts = TransitionCounts(model.graph, seen, "adaptive", pilot)
        return excludes_truth(counts, cache, directions)

    return play_until_refuted(game, n_games, rate=PLANNED_SHARE)
