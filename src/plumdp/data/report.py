"""What became of the rows of a log: the kinds of rows, how many there were of each, and which were rejected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Literal, TypeAlias, get_args

from plumdp.data.columns import LogForm
from plumdp.data.log_files import LogFile, log_file_from
from plumdp.errors import DataError
from plumdp.model.text import number_of, one_line

Kind: TypeAlias = Literal[
    "matched",
    "last row",
    "unknown state",
    "unknown next state",
    "unknown action",
    "impossible transition",
    "unreadable state",
    "gap in steps",
    "repeated step",
    "no episode or step",
]
"""What a row of a log is: a transition of the model, the last of a run, or why it was not matched.

An unknown state is one that the log shows and the model does not have; of an unreadable one, a value is missing or is
not a value of its variable.
"""

KINDS: tuple[Kind, ...] = get_args(Kind)
CONTRADICTING: tuple[Kind, ...] = ("unknown state", "unknown next state", "impossible transition")
"""What the graph of the model says cannot happen. The other rejected rows show nothing that can be told."""

NAMED = 3  # offenders of each kind
_SEVERAL = "several forms"
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
    """What became of the rows of a log; each row is of one kind. ``worst`` names what most rejected rows are about.

    ``files`` are those that were read, and ``read`` is when that was. ``hints`` say what may be meant by the first.
    """

    form: LogForm | Literal["several forms"]
    rows: Mapping[Kind, int]  # of every kind
    worst: Mapping[Kind, Sequence[str]]
    files: tuple[LogFile, ...] = field(default=(), compare=False)
    read: str = field(default="", compare=False)  # date and time, in UTC
    hints: Mapping[Kind, str] = field(default_factory=dict, compare=False)  # what may be meant

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
    def contradicting(self) -> int:
        """The number of rows that show a state or a transition which the model says cannot happen."""
        return sum(self.rows[kind] for kind in CONTRADICTING)

    @property
    def unreadable(self) -> int:
        """The number of rejected rows that do not show which transition was taken."""
        return self.rejected - self.contradicting

    @property
    def summary(self) -> str:
        """The numbers of rows that were matched and rejected, in one line."""
        last = f", {self.rows['last row']:,} last rows of runs" if self.rows["last row"] else ""
        rows = number_of(self.total, "row")
        return f"{rows} of {self.form}: {self.matched:,} matched{last}, {self.rejected:,} rejected"

    def __repr__(self) -> str:
        return one_line(self, self.summary)

    def __str__(self) -> str:
        return "\n".join([self.summary, *(f"  {reason}" for reason in self.reasons())])

    def __add__(self, other: IngestionReport) -> IngestionReport:
        """Return the report of both logs; of what each names as worst, some of either."""
        rows: dict[Kind, int] = {kind: self.rows[kind] + other.rows[kind] for kind in KINDS}
        worst: dict[Kind, Sequence[str]] = {}
        for kind in KINDS:
            pairs = zip_longest(self.worst.get(kind, ()), other.worst.get(kind, ()))
            named = dict.fromkeys(text for pair in pairs for text in pair if text is not None)
            worst |= {kind: [*named][:NAMED]} if named else {}
        files = tuple(dict.fromkeys((*self.files, *other.files)))
        form = self.form if self.form == other.form else "several forms"
        hints = {**other.hints, **self.hints}
        return IngestionReport(form, rows, worst, files, max(self.read, other.read), hints)

    def reasons(self, kinds: Sequence[Kind] = KINDS[2:]) -> list[str]:
        """Return a line for each kind of rejected rows."""
        lines = []
        for kind in kinds:
            if self.rows[kind]:
                details = [", ".join(self.worst.get(kind, ())), self.hints.get(kind, ""), _REMARKS.get(kind, "")]
                rows = "1 row" if self.rows[kind] == 1 else f"{self.rows[kind]:,} rows"
                lines.append("; ".join([f"{kind}: {rows}", *filter(None, details)]))
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the report ready for JSON, with the kinds that there are."""
        return {
            "form": self.form,
            "rows": {kind: n for kind, n in self.rows.items() if n},
            "worst": {kind: [*texts] for kind, texts in self.worst.items() if texts},
            **({"files": [file.to_dict() for file in self.files], "read": self.read} if self.read else {}),
            **({"hints": dict(self.hints)} if self.hints else {}),
        }


def refusal(report: IngestionReport) -> str:
    """Return the message of an error about rejected rows."""
    head = f"{report.rejected:,} of {report.total:,} rows do not fit the model:"
    advice = 'correct the log or the model, or count the other rows with on_unmatched="report"'
    return "\n".join([head, *(f"  {reason}" for reason in report.reasons()), advice])


def report_from(given: Any) -> IngestionReport:
    """Return the report that ``IngestionReport.to_dict`` made this of; anything else is refused."""
    if not (
        isinstance(given, dict)
        and {"form", "rows", "worst"} <= given.keys() <= {"form", "rows", "worst", "files", "read", "hints"}
        and isinstance(given.get("files", []), list)
        and isinstance(given.get("read", ""), str)
        and isinstance(given.get("hints", {}), dict)
        and given.get("hints", {}).keys() <= {*KINDS}
        and all(isinstance(hint, str) for hint in given.get("hints", {}).values())
        and given["form"] in (*get_args(LogForm), _SEVERAL)
        and all(isinstance(given[part], dict) and given[part].keys() <= {*KINDS} for part in ("rows", "worst"))
        and all(type(n) is int and n >= 0 for n in given["rows"].values())
        and all(
            isinstance(texts, list) and all(isinstance(text, str) for text in texts)
            for texts in given["worst"].values()
        )
    ):
        raise DataError("the report of what became of the rows of the log is not one")
    rows = {kind: given["rows"].get(kind, 0) for kind in KINDS}
    files = tuple(map(log_file_from, given.get("files", [])))
    return IngestionReport(given["form"], rows, given["worst"], files, given.get("read", ""), given.get("hints", {}))
