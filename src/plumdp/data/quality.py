"""The quality of data: the number of steps, and what became of the rows of the log."""

from __future__ import annotations

from dataclasses import dataclass

from plumdp.data.report import CONTRADICTING, SINGLE_ROWS, IngestionReport
from plumdp.model.text import number_of


@dataclass(frozen=True)
class DataQuality:
    """The number of steps that a claim rests on, and the report of the log they come from, if they come from one.

    >>> print(DataQuality(12_345, None))
    12,345 steps
    """

    steps: int
    report: IngestionReport | None

    @property
    def contradicting(self) -> int:
        """The number of rows that show what the graph of the model says cannot happen."""
        return 0 if self.report is None else self.report.contradicting

    @property
    def contradiction(self) -> str:
        """What these rows show, or nothing."""
        return "" if self.report is None else "; ".join(self.report.reasons(CONTRADICTING))

    @property
    def unreadable(self) -> int:
        """The number of rows that were left out because they do not show which transition was taken."""
        return 0 if self.report is None else self.report.unreadable

    @property
    def absence(self) -> str:
        """Why there are no data, or nothing if there are some."""
        if self.steps:
            return ""
        if self.report is None:
            return "there are no data (all counts are 0)"
        if not self.report.total:
            return "there are no data (the log has 0 rows)"
        if self.report.has_single_rows:
            return f"there are no data ({SINGLE_ROWS})"
        return f"there are no data (none of the {self.report.total:,} rows of the log is a transition of the model)"

    def __str__(self) -> str:
        steps = number_of(self.steps, "step")
        if self.report is None:
            return steps
        return self.report.summary if self.report.matched == self.steps else f"{steps}; {self.report.summary}"
