"""``Log``: what ``read_log`` returns, the counts of a log and the report on its rows; nothing here reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from math import inf

from plumdp.base.errors import DataError, Option
from plumdp.data.counts import TransitionCounts
from plumdp.data.report import IngestionReport
from plumdp.data.run_record import WholeRuns
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import html_table, number_of, one_line


@dataclass(frozen=True, eq=False)
class Log:
    """A log that was read: the counts of matched rows, and a report on every row."""

    counts: TransitionCounts
    read_runs: Callable[[ParametricMDP], WholeRuns] | None = None  # the same log once more, as whole runs

    def capped(self, cap: float | None) -> Log:
        """Return the log, of whose whole runs none earns or costs more than an amount that was fixed before them.

        What is more counts as this amount, so that values by whole runs are those of such returns.
        """
        if cap is not None and not 0 < cap < inf:
            raise DataError(Option("run_cap", cap), ": give an amount above 0")
        if cap is None or self.read_runs is None:
            return self
        read = self.read_runs
        return replace(self, read_runs=lambda model: replace(read(model), cap=cap))

    @property
    def report(self) -> IngestionReport:
        """What became of every row."""
        report = self.counts.report
        if report is None:
            raise DataError("these counts do not come from a log: nothing is known about rows")
        return report

    def __repr__(self) -> str:
        return one_line(self, self.report.summary, number_of(self.counts.total, "step"))

    def __str__(self) -> str:
        return str(self.report)

    def _repr_html_(self) -> str:
        report = self.report
        rows = [(kind, f"{n:,}", ", ".join(report.worst.get(kind, ()))) for kind, n in report.rows.items() if n]
        return f"<p><b>{escape(report.summary)}</b></p>{html_table(rows, ('rows', 'number', 'examples'))}"
