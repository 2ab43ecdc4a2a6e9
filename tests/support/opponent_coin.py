"""One coin, whose throws are looked at when they are most misleading: how often half-spaces ever exclude the truth.

The bets of half-spaces are made for one end of the data, and there are many: an error that is small at each of them
adds up. A game is a sequence of throws with many looks; the opponent asks for the half-spaces where the number of heads
is furthest off. These are the ones of ``likelihood_set``, with the likelihood itself left out to save time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from unittest.mock import patch

import numpy as np
from coin_model import COIN
from opponent import ERROR, Evidence

from plumdp.confidence import likelihood
from plumdp.confidence.bets import Direction
from plumdp.confidence.groundwork import Groundwork
from plumdp.data import pilots
from plumdp.data.counts import Pilot, TransitionCounts
from plumdp.shares import CONFIDENCE_SET

CHANCE = 0.5
KNOWN = Groundwork(COIN)
LOOKS = tuple(range(100, 3300, 40))
LONG = tuple(np.geomspace(128, 10**8, 250).astype(np.int64).tolist())
_PLANNED = 100  # throws, to which others are added
_TRIED, _LEAST_OFF = 2, 2.2  # looks of a game at which half-spaces are asked for, and standard deviations

Throws = Callable[[int], np.ndarray]
"""From a number of throws to what was seen then."""


def seen(heads: int, n: int) -> np.ndarray:
    """Return counts of the transitions of the model, of so many heads in n throws."""
    found = np.zeros(COIN.graph.n_transitions, dtype=np.int64)
    found[:2] = heads, n - heads
    return found


@dataclass(frozen=True)
class Reading:
    """How the data at a look become counts, and which throws have to be known besides those of the looks."""

    counts: Callable[[Throws, int], TransitionCounts]
    share: float  # of the error that half-spaces have
    times: Callable[[int], tuple[int, ...]]


def _open(at: Throws, n: int) -> TransitionCounts:
    moments = [at(moment) for moment in pilots.moments_of(n)]
    return TransitionCounts(COIN.graph, at(n), "adaptive", pilots.open_pilot(moments, n, seen(0, 0)))


def _added(at: Throws, n: int) -> TransitionCounts:
    kept = pilots.planned_pilot([at(moment) for moment in pilots.moments_of(_PLANNED)], _PLANNED)
    first = TransitionCounts(COIN.graph, at(_PLANNED), "adaptive", kept)
    return first + TransitionCounts(COIN.graph, at(n) - first.counts, "adaptive")


def _share(at: Throws, n: int) -> TransitionCounts:
    return TransitionCounts(COIN.graph, at(n), "adaptive", Pilot(at(n // 20), ratio=19.0))


OPEN = Reading(_open, 0.5 * ERROR, lambda n: pilots.moments_of(n))
ADDED = Reading(_added, 0.8 * ERROR, lambda _: (*pilots.moments_of(_PLANNED), _PLANNED))
AS_A_SHARE = Reading(_share, 0.8 * ERROR, lambda n: (n // 20,))  # wrong: as if each look had been the planned end


def excludes_truth(counts: TransitionCounts) -> bool:
    """Return whether the half-spaces exclude the true chance."""
    with patch.object(likelihood, "log_evidence", lambda *_: -inf):
        found = likelihood.likelihood_set(
            COIN, counts, error=CONFIDENCE_SET * ERROR, directions=lambda _: [Direction(np.ones(1))], known=KNOWN
        )
    return bool((found.rows[:, 0] * CHANCE > found.offsets).any())


def play(reading: Reading, n_games: int, *, looks: tuple[int, ...] = LOOKS, seed: int = 1) -> Evidence:
    """Return in how many games the half-spaces ever exclude the truth; games end if that is refuted."""
    rng, evidence = np.random.default_rng(seed), Evidence(reading.share)
    times = np.unique([*looks, *(t for n in looks for t in reading.times(n))])
    for _ in range(n_games):
        heads = dict(
            zip(times.tolist(), np.cumsum(rng.binomial(np.diff(times, prepend=0), CHANCE)).tolist(), strict=True)
        )
        off = {n: abs(heads[n] - n * CHANCE) / (n * CHANCE * (1 - CHANCE)) ** 0.5 for n in looks}
        worst = sorted((n for n in looks if off[n] >= _LEAST_OFF), key=off.__getitem__)[: -_TRIED - 1 : -1]
        evidence.see(any(excludes_truth(reading.counts(lambda n: seen(heads[n], n), n)) for n in worst))
        if evidence.is_refuted:
            break
    return evidence
