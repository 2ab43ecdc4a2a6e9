"""Counts the transitions of a log while it is read, and what became of its other rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import mul
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plumdp.data.columns import (
    ACTION,
    COUNT,
    FIRST_COUNTS,
    N_COPIES,
    N_RUNS,
    N_UNORDERED,
    PLACE,
    STAGE,
    LogForm,
    next_columns,
    state_columns,
)
from plumdp.data.counts import CountArray, exact_sum, require_countable
from plumdp.data.duckdb_tables import Block
from plumdp.data.hints import action_hint, state_hint
from plumdp.data.mappings import StateMapping
from plumdp.data.matching import Matcher, places, row_counts
from plumdp.data.report import KINDS, NAMED, BrokenEpisode, IngestionReport, Kind, RepeatedStep
from plumdp.data.values import shown
from plumdp.model.graph import Graph, Indices

_FOLLOWED = 100_000  # different offenders of each kind; of more, the rare ones are forgotten


class Offender(NamedTuple):
    """Rejected rows that are alike: the values of some columns, what they are called, and how many there are."""

    kind: Kind
    values: Mapping[str, Any]
    name: str
    n: int


class TransitionCounter:
    """The counts of transitions and of kinds of rows, while a log is read block by block.

    ``moments`` is what had been seen at each of some moments, if the blocks say so: by the stage of each row, or by the
    columns that ready-made counts have for it.
    """

    def __init__(self, graph: Graph, mapping: StateMapping | None = None, *, n_moments: int = 0) -> None:
        self._graph, self._mapping = graph, mapping or StateMapping()
        self.counts: CountArray = np.zeros(graph.n_transitions, dtype=np.int64)
        self.moments: list[CountArray] = [np.zeros_like(self.counts) for _ in range(n_moments)]
        self.n_runs: set[Any] = set()  # that ready-made counts say
        self._rows = np.zeros(len(KINDS), dtype=np.int64)
        self.n_rows = 0
        self._copied: list[Block] = []  # rows of which there are copies
        self.has_repeated_steps = False  # whether a step has several rows that differ
        self._matcher = Matcher(graph)
        self._offenders: dict[Kind, Counter[tuple[Any, ...]]] = {}
        state, after = state_columns(graph), next_columns(graph)
        self._about: dict[Kind, list[str]] = {
            "unknown state": state,
            "unknown next state": after,
            "unknown action": [ACTION],
            "impossible transition": [*state, ACTION, *after],
            "unreadable state": [*state, ACTION, *after],
        }
        self._variables = [*graph.states]

    def add(self, block: Block) -> None:
        """Add the rows of a block; those of which there are copies wait until ``settle`` is called."""
        if N_COPIES in block:
            has_copies = row_counts(block, N_COPIES) > 0
            self._copied.append({name: values[has_copies] for name, values in block.items()})
            block = {name: values[~has_copies] for name, values in block.items()}
        self._add(block)

    def settle(self) -> None:
        """Add rows of which there are copies: once; or as repeated steps, if there are others which are not alike.

        Then the same name stands for several runs, and rows that are alike may be steps of different ones.
        """
        for block in self._copied:
            n, copies = row_counts(block), row_counts(block, N_COPIES)
            total = sum(map(mul, n.tolist(), copies.tolist()))
            require_countable(self.n_rows + exact_sum(n) + total)
            if self.has_repeated_steps:
                self._add(block | {COUNT: n * (1 + copies), PLACE: np.full(len(n), "duplicate", dtype=np.object_)})
            else:
                self._add(block)
                self.n_rows += total
                self._rows[KINDS.index("copy")] += total
        self._copied = []

    def _add(self, block: Block) -> None:
        kinds, transition = self._matcher.match(block)
        n = row_counts(block)
        if PLACE in block:
            self.has_repeated_steps |= bool(n[places(block[PLACE]) == KINDS.index("repeated step")].any())
        self.n_rows += exact_sum(n)
        require_countable(self.n_rows)
        is_matched = transition >= 0
        np.add.at(self.counts, transition[is_matched], n[is_matched])
        for number, moment in enumerate(self.moments):
            np.add.at(moment, transition[is_matched], _counts_until(number, block, n)[is_matched])
        self.n_runs |= {n for name in (N_RUNS, N_UNORDERED) if name in block for n in block[name].tolist()} - {None}
        np.add.at(self._rows, kinds, n)
        for kind, columns in self._about.items():
            self._follow(
                kind, [block[name] for name in columns], np.flatnonzero((kinds == KINDS.index(kind)) & (n > 0)), n
            )

    def matched(self, blocks: Iterable[Block]) -> CountArray:
        """Return the counts of the transitions in some of the rows, which were or will be added as well."""
        counts = np.zeros_like(self.counts)
        for block in blocks:
            _, transition = self._matcher.match(block)
            is_matched = transition >= 0
            np.add.at(counts, transition[is_matched], row_counts(block)[is_matched])
        return counts

    def report(
        self,
        form: LogForm,
        broken: Sequence[BrokenEpisode] = (),
        repeated: Sequence[RepeatedStep] = (),
        find: Callable[[Sequence[Offender]], Sequence[str]] | None = None,
    ) -> IngestionReport:
        """Return the report; ``broken`` are examples of episodes with gaps, ``repeated`` are examples of such steps.

        ``find`` says in which row each of some offenders is found first, or nothing where that is not known.
        """
        offenders = [each for kind, found in self._offenders.items() for each in self._worst(kind, found)]
        worst: dict[Kind, Sequence[str]] = {kind: [] for kind in self._offenders}
        rows = find(offenders) if find is not None and offenders else [""] * len(offenders)
        for each, row in zip(offenders, rows, strict=True):
            first = f", {'first in ' if each.n > 1 else ''}{row}" if row else ""
            worst[each.kind] = [*worst[each.kind], f"{each.name} ({each.n:,}×{first})"]
        worst["gap in steps"] = [str(episode) for episode in broken]
        worst["repeated step"] = [str(step) for step in repeated]
        rows_of_kinds = dict(zip(KINDS, self._rows.tolist(), strict=True))
        return IngestionReport(form, rows_of_kinds, worst, hints=self._hints(offenders))

    @property
    def has_gaps(self) -> bool:
        """Whether steps are missing."""
        return bool(self._rows[KINDS.index("gap in steps")])

    def _follow(self, kind: Kind, columns: list[npt.NDArray[Any]], which: Indices, n: CountArray) -> None:
        if not len(which):
            return
        found = self._offenders.setdefault(kind, Counter())
        rows = zip(*(column[which].tolist() for column in columns), strict=True)
        for values, times in zip(rows, n[which].tolist(), strict=True):
            found[values] += times
        if len(found) > _FOLLOWED:
            self._offenders[kind] = Counter(dict(found.most_common(_FOLLOWED // 10)))

    def _worst(self, kind: Kind, found: Counter[tuple[Any, ...]]) -> list[Offender]:
        """Return those with the most rows, the same ones in whatever order an engine gives the rows."""
        named: Counter[str] = Counter()
        examples: dict[str, tuple[Any, ...]] = {}
        for values, n in sorted(found.items(), key=lambda item: (-item[1], str(item[0]))):
            name = self._name(kind, values)
            named[name] += n  # different values may look alike: null and NaN
            examples.setdefault(name, values)
        columns = self._about[kind]
        return [
            Offender(kind, dict(zip(columns, examples[name], strict=True)), name, n)
            for name, n in named.most_common(NAMED)
        ]

    def _hints(self, offenders: Sequence[Offender]) -> dict[Kind, str]:
        """Return what the worst offender of some kinds may be meant as."""
        hints: dict[Kind, str] = {}
        for each in reversed(offenders):
            if each.kind == "unknown action":
                hints[each.kind] = action_hint(self._graph, each.values[ACTION])
            elif each.kind in ("unknown state", "unknown next state"):
                hints[each.kind] = state_hint(self._graph, [*each.values.values()])
        return {kind: hint for kind, hint in hints.items() if hint}

    def _name(self, kind: Kind, values: tuple[Any, ...]) -> str:
        if kind == "unknown action":
            return _quoted(values[0])
        size = len(self._variables)
        move = f" {_quoted(values[size])} → {self._valuation(values[size + 1 :])}" if len(values) > size else ""
        return self._valuation(values[:size]) + move

    def _valuation(self, values: Sequence[Any]) -> str:
        pairs = zip(self._variables, values, strict=True)
        return f"({', '.join(f'{name}={self._mapping.shown(name, value)}' for name, value in pairs)})"


def _counts_until(number: int, block: Block, n: CountArray) -> CountArray:
    """Return how often each row of a block had been seen at a moment of this number."""
    if FIRST_COUNTS[number] in block:
        return row_counts(block, FIRST_COUNTS[number])
    return np.where(block[STAGE] <= number, n, 0) if STAGE in block else n


def _quoted(value: Any) -> str:
    return repr(value) if isinstance(value, str) else shown(value)
