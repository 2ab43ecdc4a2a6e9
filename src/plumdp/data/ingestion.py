"""What became of the rows of a log: a tally while it is read, a report at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.data.columns import ACTION, LogForm, next_columns, state_columns
from plumdp.data.counts import CountArray
from plumdp.data.matching import KINDS, Kind, Matcher, row_counts
from plumdp.data.tables import Block
from plumdp.data.values import shown
from plumdp.model.graph import Graph, Indices
from plumdp.model.text import one_line

_NAMED = 3  # offenders of each kind
_FOLLOWED = 100_000  # different offenders of each kind; of more, the rare ones are forgotten
_REMARKS: dict[Kind, str] = {
    "impossible transition": "the model has no such edge, so it may be wrong",
    "repeated step": 'if each file numbers its episodes anew, give partitions="files"',
}


@dataclass(frozen=True)
class BrokenEpisode:
    """A run that lacks steps or has some of them twice."""

    episode: Any
    n_rows: int
    n_steps: int  # different ones
    first: float
    last: float

    @property
    def has_gap(self) -> bool:
        """Whether the steps are not all those from the first to the last."""
        return self.n_steps != self.last - self.first + 1

    @property
    def has_repeats(self) -> bool:
        """Whether a step occurs twice."""
        return self.n_rows > self.n_steps

    def __str__(self) -> str:
        rows = "1 row" if self.n_rows == 1 else f"{self.n_rows:,} rows"
        return f"episode {self.episode} has {rows} and {self.n_steps:,} of the steps {self.first:g} to {self.last:g}"


@dataclass(frozen=True)
class IngestionReport:
    """What became of the rows of a log; each row is of one kind. ``worst`` names what most rejected rows are about."""

    form: LogForm
    rows: Mapping[Kind, int]  # of every kind
    worst: Mapping[Kind, Sequence[str]]

    @property
    def total(self) -> int:
        """The number of rows; of ready-made counts, the number of rows that were counted."""
        return sum(self.rows.values())

    @property
    def matched(self) -> int:
        """The number of rows that are transitions of the model."""
        return self.rows["matched"]

    @property
    def rejected(self) -> int:
        """The number of rows that are neither matched nor the last of a run."""
        return self.total - self.matched - self.rows["last row"]

    @property
    def headline(self) -> str:
        """The numbers in one line."""
        last = f", {self.rows['last row']:,} last rows of runs" if self.rows["last row"] else ""
        return f"{self.total:,} rows of {self.form}: {self.matched:,} matched{last}, {self.rejected:,} rejected"

    def __repr__(self) -> str:
        return one_line(self, self.headline)

    def __str__(self) -> str:
        return "\n".join([self.headline, *self.reasons()])

    def reasons(self) -> list[str]:
        """Return a line for each kind of rejected rows."""
        lines = []
        for kind in KINDS[2:]:
            if self.rows[kind]:
                details = [", ".join(self.worst.get(kind, ())), _REMARKS.get(kind, "")]
                rows = "1 row" if self.rows[kind] == 1 else f"{self.rows[kind]:,} rows"
                lines.append("; ".join([f"  {kind}: {rows}", *filter(None, details)]))
        return lines


class Tally:
    """The counts of transitions and of kinds of rows, while a log is read block by block."""

    def __init__(self, graph: Graph) -> None:
        self.counts: CountArray = np.zeros(graph.n_transitions, dtype=np.int64)
        self._rows = np.zeros(len(KINDS), dtype=np.int64)
        self._matcher = Matcher(graph)
        self._offenders: dict[Kind, Counter[tuple[Any, ...]]] = {}
        state, after = state_columns(graph), next_columns(graph)
        self._about: dict[Kind, list[str]] = {
            "unknown state": state,
            "unknown next state": after,
            "unknown action": [ACTION],
            "impossible transition": [*state, ACTION, *after],
        }
        self._variables = [*graph.states]

    def add(self, block: Block) -> None:
        """Add the rows of a block."""
        kinds, transition = self._matcher.match(block)
        n = row_counts(block)
        is_matched = transition >= 0
        np.add.at(self.counts, transition[is_matched], n[is_matched])
        np.add.at(self._rows, kinds, n)
        for kind, columns in self._about.items():
            self._follow(kind, [block[name] for name in columns], np.flatnonzero(kinds == KINDS.index(kind)), n)

    def report(self, form: LogForm, broken: Sequence[BrokenEpisode]) -> IngestionReport:
        """Return the report; ``broken`` are examples of episodes with gaps or repeated steps."""
        worst: dict[Kind, Sequence[str]] = {
            kind: [f"{self._name(kind, values)} ({n:,}×)" for values, n in _most_common(found)]
            for kind, found in self._offenders.items()
        }
        worst["gap in steps"] = [str(episode) for episode in broken if episode.has_gap][:_NAMED]
        worst["repeated step"] = [str(episode) for episode in broken if episode.has_repeats][:_NAMED]
        return IngestionReport(form, dict(zip(KINDS, self._rows.tolist(), strict=True)), worst)

    @property
    def has_broken_episodes(self) -> bool:
        """Whether there are gaps or repeated steps."""
        return bool(self._rows[[KINDS.index("gap in steps"), KINDS.index("repeated step")]].any())

    def _follow(self, kind: Kind, columns: list[npt.NDArray[Any]], which: Indices, n: CountArray) -> None:
        if not len(which):
            return
        found = self._offenders.setdefault(kind, Counter())
        rows = zip(*(column[which].tolist() for column in columns), strict=True)
        for values, times in zip(rows, n[which].tolist(), strict=True):
            found[values] += times
        if len(found) > _FOLLOWED:
            self._offenders[kind] = Counter(dict(found.most_common(_FOLLOWED // 10)))

    def _name(self, kind: Kind, values: tuple[Any, ...]) -> str:
        if kind == "unknown action":
            return _quoted(values[0])
        size = len(self._variables)
        move = f" {_quoted(values[size])} → {self._valuation(values[size + 1 :])}" if len(values) > size else ""
        return self._valuation(values[:size]) + move

    def _valuation(self, values: Sequence[Any]) -> str:
        pairs = zip(self._variables, values, strict=True)
        return f"({', '.join(f'{name}={shown(value)}' for name, value in pairs)})"


def _most_common(found: Counter[tuple[Any, ...]]) -> list[tuple[tuple[Any, ...], int]]:
    """Return those with the most rows, the same ones in whatever order an engine gives the rows."""
    return sorted(found.items(), key=lambda item: (-item[1], str(item[0])))[:_NAMED]


def _quoted(value: Any) -> str:
    return repr(value) if isinstance(value, str) else shown(value)
