"""Data as an adversary collects them who knows the truth of a model: several ways, each a list of growing counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf

import numpy as np
from opponent_models import Case

import plumdp as pl
from plumdp.base.errors import DataError
from plumdp.data import pilots
from plumdp.data.counts import Pilot, TransitionCounts
from plumdp.data.seen import Seen


def batches(case: Case, ends: Sequence[int], rng: np.random.Generator, kind: str = "") -> list[np.ndarray]:
    """Return what was seen (n_transitions) until each of some numbers of visits; the adversary chooses what is visited.

    It visits all rows alike; or from some time on a single one; or the one that is furthest off its probabilities.
    """
    kind, n_rows = kind or rng.choice(["alike", "one", "furthest off"]), len(case.rows)
    turn, one = ends[-1] * rng.random() ** 2, rng.integers(n_rows)
    seen, result = np.zeros(len(case.chances), dtype=np.int64), []
    for start, end in pairwise([0, *ends]):
        share = np.full(n_rows, 1 / n_rows)
        if kind == "one" and start >= turn:
            share = np.eye(n_rows)[one]
        elif kind == "furthest off" and rng.random() < 0.7:
            share = np.eye(n_rows)[np.argmax(deviations(case, seen))]
        seen = seen + draw(case, rng.multinomial(end - start, share), rng)
        result.append(seen)
    return result


def draw(case: Case, visits: Iterable[int], rng: np.random.Generator) -> np.ndarray:
    """Return how often each transition is seen in so many visits of each row."""
    seen = np.zeros(len(case.chances), dtype=np.int64)
    for row, n in zip(case.rows, visits, strict=True):
        seen[row] = rng.multinomial(n, case.chances[row])
    return seen


def deviations(case: Case, seen: np.ndarray) -> np.ndarray:
    """Return for each row the sum of (seen - expected)² / expected, with a little more expected."""
    expected = [seen[row].sum() * case.chances[row] for row in case.rows]
    return np.array([((seen[row] - e) ** 2 / (e + 0.5)).sum() for row, e in zip(case.rows, expected, strict=True)])


def counts_of(case: Case, seen: np.ndarray, pilot: Pilot | None = None) -> TransitionCounts:
    """Return counts of data that were collected at will."""
    return TransitionCounts(case.model.graph, seen, "adaptive", pilot)


def once_more(total: TransitionCounts, part: TransitionCounts) -> TransitionCounts:
    """Return the counts with a part of them counted twice, or unchanged if that is refused."""
    try:
        return total + part
    except DataError:
        return total


def random_ends(rng: np.random.Generator) -> list[int]:
    """Return after how many visits batches end: from a few to some hundreds or thousands."""
    return np.unique(np.geomspace(6, rng.choice([150, 600, 2500]), 30).astype(np.int64)).tolist()


def no_order(case: Case, rng: np.random.Generator) -> list[TransitionCounts]:
    """Return data without an order, which are added up; whatever can be counted twice, is."""
    parts = [counts_of(case, part) for part in np.diff(batches(case, random_ends(rng), rng), axis=0, prepend=0)]
    result = parts[:1]
    for part in parts[1:]:
        total = result[-1] + part
        result.append(once_more(total, total if rng.random() < 0.5 else part))
    return result


def open_end(case: Case, rng: np.random.Generator, expected: float | None = None) -> list[TransitionCounts]:
    """Return a log that grows, read anew at each look; sometimes, from some time on, the rest is added to it."""
    ends = random_ends(rng)
    cuts = sorted({*ends, *pilots.moments_of(ends[-1])})
    seen = dict(zip(cuts, batches(case, cuts, rng), strict=True))
    last_read = rng.choice(ends) if rng.random() < 0.3 else inf
    result: list[TransitionCounts] = []
    for n in ends:
        if n <= last_read:
            moments = [seen[moment] for moment in pilots.moments_of(n)]
            read = counts_of(
                case, seen[n], pilots.open_pilot([*map(Seen, moments)], n, Seen(0 * seen[n]), expected=expected)
            )
            result.append(read)
        else:
            result.append(once_more(read + counts_of(case, seen[n] - read.counts), read))
    return result


def badly_expected(case: Case, rng: np.random.Generator) -> list[TransitionCounts]:
    """Return the same with a number of visits that somebody expected, mostly wrong."""
    return open_end(case, rng, expected=500 * 8.0 ** rng.integers(-3, 4))


def planned(case: Case, rng: np.random.Generator) -> list[TransitionCounts]:
    """Return a planned number of runs or visits, and then more of them, which are added."""
    return planned_runs(case, rng) if case.visited is None and rng.random() < 0.6 else planned_visits(case, rng)


def planned_visits(case: Case, rng: np.random.Generator, kind: str = "") -> list[TransitionCounts]:
    """Return a planned number of visits, and more after them."""
    n = int(rng.choice([40, 160, 700]))
    moments = pilots.planned_moments(n)
    seen = batches(case, [*moments, *(n * np.geomspace(1, 8, 15)).astype(np.int64).tolist()], rng, kind)
    kept, first = seen[: len(moments)], seen[len(moments)]
    total = counts_of(case, first, pilots.planned_pilot([*map(Seen, kept)], n, sizes=moments))
    later = [counts_of(case, each - first) for each in seen[len(moments) + 1 :]]
    return [total, *(once_more(total + more, more) for more in later)]


def planned_runs(case: Case, rng: np.random.Generator) -> list[TransitionCounts]:
    """Return runs from ``simulate``, in one or two planned parts; then the adversary changes the policy."""
    graph, n = case.model.graph, int(rng.choice([20, 70, 300]))

    def runs(size: int, **options) -> TransitionCounts:
        return pl.simulate(case.model, case.truth, size, rng=int(rng.integers(2**32)), max_steps=30, **options)

    total = runs(n, pilot=True)
    result = [total.planned_sum(runs(n, pilot=True)) if rng.random() < 0.3 else total]
    for _ in range(14):
        policy = graph.first_choice[:-1] + rng.integers(np.diff(graph.first_choice))
        more = runs(max(n // 4, 1), policy="uniform" if rng.random() < 0.3 else policy, pilot=False)
        result.append(once_more(result[-1] + more, more))
    return result


def independent(case: Case, rng: np.random.Generator) -> list[TransitionCounts]:
    """Return numbers of samples of each row that were fixed beforehand: there is one end."""
    visits = rng.choice([0, 5, 40, 300], size=len(case.rows))
    visits[rng.integers(len(visits))] = rng.choice([30, 1000])
    return [TransitionCounts(case.model.graph, draw(case, visits, rng), "independent")]
