"""Data as an opponent collects them who knows the truth of a model: several ways, each a list of growing counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf

import numpy as np
from opponent_models import Case

import plumdp as pl
from plumdp.data import pilots
from plumdp.data.counts import TransitionCounts
from plumdp.errors import DataError

KINDS = ("alike", "one", "furthest off")


def batches(case: Case, ends: Sequence[int], rng: np.random.Generator, kind: str = "") -> list[np.ndarray]:
    """Return what was seen (n_transitions) until each of some numbers of visits; the opponent chooses what is visited.

    It visits all rows alike; or from some time on a single one; or that which is furthest off its probabilities.
    """
    kind, n_rows = kind or rng.choice(KINDS), len(case.rows)
    turn, one = ends[-1] * rng.random() ** 2, rng.integers(n_rows)
    seen, found = np.zeros(len(case.chances), dtype=np.int64), []
    for start, end in pairwise([0, *ends]):
        share = np.full(n_rows, 1 / n_rows)
        if kind == "one" and start >= turn:
            share = np.eye(n_rows)[one]
        elif kind == "furthest off" and rng.random() < 0.7:
            share = np.eye(n_rows)[np.argmax(deviations(case, seen))]
        seen = seen + draw(case, rng.multinomial(end - start, share), rng)
        found.append(seen)
    return found


def draw(case: Case, visits: Iterable[int], rng: np.random.Generator) -> np.ndarray:
    """Return how often each transition is seen in so many visits of each row."""
    seen = np.zeros(len(case.chances), dtype=np.int64)
    for row, n in zip(case.rows, visits, strict=True):
        seen[row] = rng.multinomial(n, case.chances[row])
    return seen


def deviations(case: Case, seen: np.ndarray) -> np.ndarray:
    """Return for each row the sum of (seen - expected)² / expected, with a little more expected."""
    found = []
    for row in case.rows:
        expected = seen[row].sum() * case.chances[row]
        found.append(float(((seen[row] - expected) ** 2 / (expected + 0.5)).sum()))
    return np.array(found)


def random_ends(rng: np.random.Generator) -> list[int]:
    """Return after how many visits batches end: from a few to some hundreds or thousands."""
    last = rng.choice([150, 600, 2500])
    return np.unique(np.geomspace(6, last, 30).astype(np.int64)).tolist()


def no_order(case: Case, rng: np.random.Generator) -> list[TransitionCounts]:
    """Data without an order, which are added up; whatever can be counted twice, is."""
    parts = np.diff(batches(case, random_ends(rng), rng), axis=0, prepend=0)
    total, found = TransitionCounts(case.model.graph, 0 * parts[0], "adaptive"), []
    for part in parts:
        batch = TransitionCounts(case.model.graph, part, "adaptive")
        total = total + batch
        total = once_more(total, total if rng.random() < 0.5 else batch)
        found.append(total)
    return found


def once_more(total: TransitionCounts, part: TransitionCounts) -> TransitionCounts:
    """Return the counts with a part of them counted twice, or as they are if that is refused."""
    try:
        return total + part
    except DataError:
        return total


def open_end(case: Case, rng: np.random.Generator, expected: float | None = None) -> list[TransitionCounts]:
    """A log that grows, read anew at each look; sometimes, from some time on, the rest is added to what was read."""
    ends, nothing = random_ends(rng), np.zeros(len(case.chances), dtype=np.int64)
    cuts = sorted({*ends, *pilots.moments_of(ends[-1])})
    seen = dict(zip(cuts, batches(case, cuts, rng), strict=True))
    last_read = rng.choice(ends) if rng.random() < 0.3 else inf
    found: list[TransitionCounts] = []
    for n in ends:
        if n <= last_read:
            moments = [seen[moment] for moment in pilots.moments_of(n)]
            read = TransitionCounts(
                case.model.graph, seen[n], "adaptive", pilots.open_pilot(moments, n, nothing, expected=expected)
            )
            found.append(read)
        else:
            rest = TransitionCounts(case.model.graph, seen[n] - read.counts, "adaptive")
            found.append(once_more(read + rest, read))
    return found


def badly_expected(case: Case, rng: np.random.Generator) -> list[TransitionCounts]:
    """The same with a number of visits that somebody expected, mostly wrong."""
    return open_end(case, rng, expected=500 * 8.0 ** rng.integers(-3, 4))


def planned(case: Case, rng: np.random.Generator) -> list[TransitionCounts]:
    """A planned number of runs or visits, and then more of them, which are added."""
    return planned_runs(case, rng) if case.visited is None and rng.random() < 0.6 else planned_visits(case, rng)


def planned_visits(case: Case, rng: np.random.Generator, kind: str = "") -> list[TransitionCounts]:
    n, graph = int(rng.choice([40, 160, 700])), case.model.graph
    moments = pilots.moments_of(n)
    cuts = [*moments, *(n * np.geomspace(1, 8, 15)).astype(np.int64).tolist()]
    seen = batches(case, cuts, rng, kind)
    first = seen[len(moments)]
    kept = pilots.planned_pilot(seen[: len(moments)], n)
    total = TransitionCounts(graph, first, "adaptive", kept)
    later = [TransitionCounts(graph, each - first, "adaptive") for each in seen[len(moments) + 1 :]]
    return [total, *(once_more(total + more, more) for more in later)]


def planned_runs(case: Case, rng: np.random.Generator) -> list[TransitionCounts]:
    """Runs from ``simulate``, in one or two planned parts; then the opponent changes the policy."""
    graph, n = case.model.graph, int(rng.choice([20, 70, 300]))
    n_choices = np.diff(graph.first_choice)

    def runs(size: int, *, policy="uniform", pilot=False):
        options = {"max_steps": case.horizon, "stop": case.stop, "policy": policy, "pilot": pilot}
        return pl.simulate(case.model, case.truth, size, rng=int(rng.integers(2**32)), **options)

    total = runs(n, pilot=True)
    if rng.random() < 0.3:
        total = total.planned_sum(runs(n, pilot=True))
    found = [total]
    for _ in range(14):
        policy = graph.first_choice[:-1] + rng.integers(n_choices)
        more = runs(max(n // 4, 1), policy="uniform" if rng.random() < 0.3 else policy)
        total = once_more(total + more, more)
        found.append(total)
    return found


def independent(case: Case, rng: np.random.Generator) -> list[TransitionCounts]:
    """Numbers of samples of each row that were fixed beforehand: there is one end."""
    visits = rng.choice([0, 5, 40, 300], size=len(case.rows))
    visits[rng.integers(len(visits))] = rng.choice([30, 1000])
    return [TransitionCounts(case.model.graph, draw(case, visits, rng), "independent")]
