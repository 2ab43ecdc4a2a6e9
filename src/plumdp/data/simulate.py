"""Counts from runs of a model under a policy: the same seed gives the same counts on any number of threads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from queue import SimpleQueue
from threading import Event
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.progress import tell_share, working
from plumdp.base.threads import n_threads
from plumdp.data import kernels
from plumdp.data.context_counts import ContextCounter
from plumdp.data.contexts import MOST_TRANSITIONS
from plumdp.data.counts import CountArray, Sampling, TransitionCounts
from plumdp.data.pilots import is_wanted, moments_for, pilot_size, planned_pilot
from plumdp.data.runs import Rng, make_plan, require_positive, split
from plumdp.data.same_files import new_parts
from plumdp.data.seen import SQUARES, Seen
from plumdp.data.time_parts import Recorder, runs_of_parts
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy
from plumdp.model.space import Point

_MAX_COUNT_BYTES = 1 << 30  # of all threads together, unless the caller says how many threads
_LONGEST = 1 << 22  # steps of a run whose contexts are counted, for which it is kept as a whole
_WAVE = 64  # blocks per thread that wait for their turn at once


@working("simulating")
def simulate(
    model: ParametricMDP,
    point: Point,
    trajectories: int,
    *,
    rng: Rng,
    max_steps: int,
    policy: Policy = "uniform",
    stop: npt.ArrayLike | None = None,
    pilot: bool = True,
    threads: int | None = None,
) -> TransitionCounts:
    """Return the transition counts of simulated runs from the initial state, with the model at a point.

    What had been seen after 4, 16, … runs, and ever closer to the end, is kept as well, unless ``pilot`` is False: bets
    are placed by it. The number of runs is fixed beforehand, by this call. Data that are to grow are added: ``a + b``
    keeps the bets of ``a``. The counts of a model that is stored on disk are those of its distinct rows, and count as
    "adaptive".

    Parameters
    ----------
    model
        The parametric model.
    point
        The value of each parameter. Transitions are drawn with their probability up to k · 2^-52, for k successors, and
        a learned reward has its lowest or its highest value.
    trajectories
        The number of runs.
    rng
        A seed or a generator, which alone decides the result.
    max_steps
        After how many steps a run is censored.
    policy
        Any ``Policy``, by default uniform choices.
    stop
        A mask of states in which runs end; other absorbing states are stepped through.
    pilot
        False places no bets.
    threads
        By default PLUMDP_THREADS, or all cores.

    Returns
    -------
    TransitionCounts
        How often each transition was taken.

    Examples
    --------
    >>> from plumdp import case_study
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 1000, rng=1, max_steps=25)
    >>> counts.total, counts.sampling
    (25000, 'trajectories')
    """
    plan = make_plan(model, point, trajectories, rng, max_steps, policy, stop, by_row=True)
    is_table, n = model.counted.is_table, plan.trajectories
    graph = model.counted.graph
    moments = moments_for(n, is_table=is_table, n_transitions=graph.n_transitions) if is_wanted(pilot) else ()

    n_workers, n_pilot = _n_workers(threads, graph.n_transitions), pilot_size(n) if moments else 0
    has_contexts = graph is model.graph and graph.n_transitions <= MOST_TRANSITIONS and plan.max_steps <= _LONGEST
    counters: SimpleQueue[ContextCounter] = SimpleQueue()
    for _ in range(n_workers * has_contexts):
        counters.put(ContextCounter(graph))

    def add(block: range, counts: CountArray) -> Iterator[None]:
        segments = []
        for runs, steps in plan.walk(block):
            kernels.count(steps, counts)
            if has_contexts:
                segments.append((runs - np.uint64(block.start), steps))
            yield
        if segments:
            counter = counters.get()
            counter.add_walks(len(block), segments, is_pilot=block.stop <= n_pilot)
            counters.put(counter)

    size = min(plan.block_size, -(-plan.trajectories // n_workers))  # of a block: no thread is left without one
    ends = runs_of_parts(n, moments, graph.n_transitions)
    stages, recorder = [np.zeros(graph.n_transitions, dtype=np.int64) for _ in range(len(moments) + 1)], Recorder(ends)
    for start, end in pairwise([0, *sorted({*ends, *moments}), n]):
        part = _sum_over(split(start, end, size), add, graph.n_transitions, n_workers, n)
        stages[bisect_right(moments, start)] += part
        seen_here = np.flatnonzero(part)
        recorder.add(bisect_right(ends, start), seen_here, part[seen_here])
    parts = _with_rewards(model.counted, point, stages, np.random.default_rng(plan.key))
    del stages, part
    for i in range(1, len(parts)):  # each part is freed as it is added up: a model may have 10^7 transitions
        parts[i] = parts[i - 1] + parts[i]
    *seen, all_seen = parts
    kept = planned_pilot(seen, n, sizes=moments) if moments else None
    sampling: Sampling = "trajectories" if graph is model.graph else "adaptive"
    new = new_parts(int(all_seen.counts.sum()), key=plan.seed, is_simulated=True)
    time = recorder.parts(n) if moments else None
    contexts = ContextCounter.sum([counters.get() for _ in range(n_workers)]) if has_contexts else ()
    told: dict[str, Any] = {"contexts": contexts, "no_contexts": None if has_contexts else "size"}
    told |= {"parts": new, "rewards": all_seen.rewards, "time": time}
    return TransitionCounts(graph, all_seen.counts, sampling, kept, **told)


def _with_rewards(model: ParametricMDP, point: Point, parts: list[CountArray], rng: np.random.Generator) -> list[Seen]:
    """Return counts with learned rewards, each of which is its lowest or its highest value."""
    seen = [Seen.nothing(len(part), len(model.learned_rewards)) for part in parts]
    probability = model.probabilities(point) if model.learned_rewards else np.zeros(0)
    for j, learned in enumerate(model.learned_rewards.values()):
        coin = learned.coin[model.graph.choice_of_transition()]
        low, span = (np.where(coin >= 0, units[coin], 0) for units in learned.units)
        of_coin = np.where(coin >= 0, probability[learned.expression[coin, 0]], 0.0)
        for each, part in zip(seen, parts, strict=True):
            highest = rng.binomial(part, of_coin)
            for value, times in ((low, part - highest), (low + span, highest)):
                each.rewards[j] += times * np.array([value, *np.divmod(value**2, SQUARES)])
    return [Seen(part, each.rewards) for part, each in zip(parts, seen, strict=True)]


def _n_workers(threads: int | None, n_transitions: int) -> int:
    """Return the number of threads: unless it is given, fewer if their counts would take too much memory."""
    if threads is None:
        return max(1, min(n_threads(), _MAX_COUNT_BYTES // max(1, 8 * n_transitions)))
    require_positive("threads", threads)
    return threads


def _sum_over(
    blocks: list[range],
    add: Callable[[range, CountArray], Iterator[None]],
    n_transitions: int,
    threads: int,
    n_runs: int,
) -> CountArray:
    """Return the sum of what ``add`` counts for each block; each thread counts in an array of its own.

    Which share of all runs is done is told. ``add`` yields now and then, so that an interruption need not
    wait for the end of a block.
    """
    totals = [np.zeros(n_transitions, dtype=np.int64) for _ in range(threads)]
    idle: SimpleQueue[CountArray] = SimpleQueue()
    for total in totals:
        idle.put(total)
    interrupted = Event()

    def work(block: range) -> int:
        total = idle.get()
        try:
            for _ in add(block, total):
                if interrupted.is_set():
                    break
        finally:
            idle.put(total)
        return block.stop

    with ThreadPoolExecutor(threads) as pool:
        try:
            for wave in split(0, len(blocks), _WAVE * threads):
                for done in pool.map(work, blocks[wave.start : wave.stop]):
                    tell_share("simulating", done, n_runs)
        except BaseException:
            interrupted.set()
            pool.shutdown(cancel_futures=True)
            raise
    for total in totals[1:]:
        totals[0] += total
    return totals[0]
