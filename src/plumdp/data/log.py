"""``Log``: what ``read_log`` returns, the counts of a log and the report on its rows; nothing here reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from plumdp.base.errors import DataError
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
