"""Counts contexts of a log: its steps are read run by run, as short keys of their rows that the first scan kept.

What a key stands for is known from the blocks that were counted, so that the same rows are matched in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plumdp.base.vocabulary import NoContexts
from plumdp.data import kernels
from plumdp.data.columns import (
    ACTION,
    CONTEXT,
    COUNT,
    PAST,
    PAST_ACTION,
    PAST_PLACE,
    PLACE,
    next_columns,
    past_columns,
    state_columns,
)
from plumdp.data.context_counts import KINDS, ContextCounter, past_tables
from plumdp.data.contexts import MOST_TRANSITIONS, MOST_VALUES, Context, ContextKind
from plumdp.data.counts import Pilot
from plumdp.data.duckdb_engine import Block
from plumdp.data.ingestion import TransitionCounter
from plumdp.data.log_pilots import Moments
from plumdp.data.matching import row_counts
from plumdp.data.steps import HASHES, LogFacts, LogSteps
from plumdp.model.graph import BoolArray, Graph, Indices

Keys = npt.NDArray[np.uint64]
_PLACES = {"last": 0, "step": 1, "apart": 2}  # of a row in its run, by whether a next row follows and is one step later


def contexts_of_log(
    facts: LogFacts,
    tally: TransitionCounter,
    moments: Moments | None,
    pilot: Pilot | None,
    *,
    is_drawn: bool,
    are_observations: bool,
) -> tuple[tuple[Context, ...], NoContexts | None]:
    """Return the contexts of a log that was counted, or why there are none.

    ``is_drawn`` says that samples of each choice were drawn by themselves, so that their order means nothing.
    """
    relation = facts.relation
    reason: NoContexts | None = (
        "observations" if are_observations else "independent" if is_drawn else _why_none(relation, tally)
    )
    if reason is not None:
        return (), reason
    if tally.pasts:
        return _of_pasts(relation.graph, tally, pilot)
    number = _moment_of(pilot)
    size = 0 if number is None or moments is None or pilot is None else int(pilot.lengths[number])
    counter, legend, open_runs = ContextCounter(relation.graph), _Legend(facts, tally), facts.open_runs
    for first, steps in _whole_runs(facts.past_pages(moments, size)):
        found = legend.read(steps)
        if open_runs is None:
            counter.add(first, *found)
            continue
        names = steps.run[first[:-1]]
        past = open_runs.pasts.find(names)
        counter.add(first, *found, past, open_runs.pasts)
        open_runs.keep(names, first, *found[:-1], past)
    return _checked(counter, tally, pilot, "unplaced" if relation.form == "transitions" else "changed")


def _why_none(relation: LogSteps, tally: TransitionCounter) -> NoContexts | None:
    """Return why no contexts are counted, as far as it is known before the log is read again."""
    is_placed = relation.is_followed and tally.n_rows
    if is_placed and relation.graph.n_transitions > MOST_TRANSITIONS:
        return "size"
    if not (is_placed or tally.pasts):
        return "order"
    return "ties" if tally.has_repeated_steps else None


def _of_pasts(
    graph: Graph, tally: TransitionCounter, pilot: Pilot | None
) -> tuple[tuple[Context, ...], NoContexts | None]:
    """Return the contexts that an engine counted."""
    state, after, past = state_columns(graph), next_columns(graph), past_columns(graph)
    number = _moment_of(pilot)
    counter = ContextCounter(graph)
    place, rank, _ = past_tables(graph)
    for block in tally.pasts:
        transition, *_ = tally.find(block)
        value = np.array(block[PAST], dtype=np.int64)
        last = {ACTION: block[ACTION], **{name: block[name] for name in state}}
        last |= {name: block[each] for name, each in zip(after, past, strict=True)}
        before = {ACTION: block[PAST_ACTION], **{name: block[each] for name, each in zip(state, past, strict=True)}}
        before |= {name: block[each] for name, each in zip(after, state, strict=True)}
        for kind, earlier, table in ((ContextKind.LAST, last, place), (ContextKind.PREVIOUS, before, rank)):
            rows = np.flatnonzero((block[CONTEXT] == str(kind)) & (value > 0))
            there = {name: each[rows] for name, each in {**earlier, PLACE: block[PAST_PLACE]}.items()}
            taken = tally.find(there)[0]
            value[rows] = np.where(taken < 0, MOST_VALUES - 1, table[taken])
        kinds = np.array([KINDS.index(ContextKind(kind)) for kind in block[CONTEXT].tolist()], dtype=np.int64)
        n = row_counts(block)
        in_pilot = np.zeros_like(n) if number is None else tally.times(block, number)[0]
        kept = (transition >= 0) & (value >= 0)
        for part, times in enumerate((n - in_pilot, in_pilot)):
            np.add.at(counter.cells[part], (transition[kept], kinds[kept], value[kept]), times[kept])
    return _checked(counter, tally, pilot, "unplaced")


def _checked(
    counter: ContextCounter, tally: TransitionCounter, pilot: Pilot | None, reason: NoContexts
) -> tuple[tuple[Context, ...], NoContexts | None]:
    """Return the contexts if they are of all steps that were counted, and of all in the pilot; otherwise the reason."""
    contexts = *ContextCounter.sum([counter]), *tally.known_contexts(_moment_of(pilot))
    counts = tally.seen.counts
    seen = counts, np.zeros_like(counts) if pilot is None else pilot.counts
    is_same = all(np.array_equal(*pair) for pair in zip(contexts[0].sums(len(counts)), seen, strict=True))
    return (contexts, None) if is_same else ((), reason)


def _moment_of(pilot: Pilot | None) -> int | None:
    """Return the number of the first moment with as many steps as the pilot, where it ends; None if there is none."""
    if pilot is None or not pilot.total:
        return None
    return next(i for i, seen in enumerate(pilot.moments) if (seen == pilot.counts).all())


class _Steps(NamedTuple):
    """Rows of runs in order."""

    run: npt.NDArray[Any]  # keys, as those of rows
    step: npt.NDArray[Any]  # floats
    key: npt.NDArray[Any]
    is_pilot: npt.NDArray[Any]


def _whole_runs(blocks: Iterator[Block]) -> Iterator[tuple[Indices, _Steps]]:
    """Yield blocks of whole runs, and where each of them begins, and the last one ends."""
    rest: list[_Steps] = []
    for block in blocks:
        run, step, *others = block.values()
        steps = _Steps(run.view(np.uint64), step.astype(np.float64, copy=False), *others)
        if rest:
            steps = _Steps(*map(np.concatenate, zip(*rest, steps, strict=True)))
        is_new = np.append(True, steps.run[1:] != steps.run[:-1])
        is_other = is_new | np.append(True, steps.step[1:] != steps.step[:-1])
        if not is_other.all():  # copies of a row
            is_new, steps = is_new[is_other], _Steps(*(column[is_other] for column in steps))
        first = np.flatnonzero(is_new)
        rest = [_Steps(*(column[first[-1] :] for column in steps))]
        if len(first) > 1:
            yield first, _Steps(*(column[: first[-1]] for column in steps))
    for steps in rest:
        yield np.array([0, len(steps.run)]), steps


class _Legend:
    """What the keys of rows stand for, by the rows that were counted."""

    def __init__(self, facts: LogFacts, tally: TransitionCounter) -> None:
        relation = facts.relation
        graph = relation.graph
        blocks = [*facts.legend()]
        matched = [(*tally.find(block), _place_of(block)) for block in blocks]
        transition, state_code, choice, place = (np.concatenate(each) for each in zip(*matched, strict=True))
        found = {name: np.concatenate([block[name] for block in blocks]) for name in HASHES}
        keys, first = np.unique(found["hash of own"], return_index=True)
        # states by their values, as those which the model does not have differ as well
        states, self._rows = np.unique(np.append(found["hash of state"], found["hash of after"])), _table(keys)
        number = np.searchsorted(states, found["hash of state"])
        code = np.where(state_code >= 0, state_code, graph.n_states + number)
        self._about = np.stack([code[first], choice[first], number[first], transition[first]])
        self._n_states = len(states) if relation.form == "trajectories" else 0  # else rows show where they lead
        after_number = np.where(place > 0, np.searchsorted(states, found["hash of after"]), 0)
        pair = (np.searchsorted(keys, found["hash of own"]) * self._n_states + after_number) * len(_PLACES) + place
        pairs, first = np.unique(pair.astype(np.uint64), return_index=True)
        self._pairs = _table(pairs), transition[first]

    def read(self, steps: _Steps) -> tuple[Indices, Indices, Indices, BoolArray]:
        """Return state, choice, transition, and whether it is in the pilot, of each step of whole runs."""
        found, is_pilot = np.empty((3, len(steps.run)), dtype=np.int64), np.empty(len(steps.run), dtype=np.bool_)
        kernels.read_steps(tuple(steps), self._rows, self._about, self._pairs, self._n_states, found, is_pilot)
        state, choice, transition = found
        return state, choice, transition, is_pilot


def _place_of(block: Block) -> Indices:
    words = block.get(PLACE, np.full(len(block[COUNT]), "step"))
    return np.array([_PLACES.get(word, 0) for word in words.tolist()], dtype=np.int64)


def _table(keys: Keys) -> tuple[Keys, Indices]:
    """Return a hash table that finds the numbers of keys, each of which is there once."""
    size = 1 << max(4, (2 * len(keys)).bit_length())
    slots, numbers = np.zeros(size, dtype=np.uint64), np.full(size, -1, dtype=np.int64)
    kernels.fill_table(keys, slots, numbers)
    return slots, numbers
