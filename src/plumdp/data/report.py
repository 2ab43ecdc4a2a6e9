"""The report on the rows of a log: the kinds of rows, the number of each, and the rejected ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from plumdp.base.errors import DataError, Option
from plumdp.base.json_values import json_value, read_as
from plumdp.base.vocabulary import Assumption, Censoring, Group, LogForm, NoBets, NumberHint
from plumdp.data.censoring import CensoredRuns, told
from plumdp.data.same_files import ANEW, LogFile
from plumdp.model.text import number_of, one_line

Kind: TypeAlias = Literal[
    "matched",
    "last row",
    "censored",
    "copy",
    "outside the table",
    "unknown state",
    "unknown next state",
    "unknown action",
    "impossible transition",
    "unreadable state",
    "gap in steps",
    "repeated step",
    "no episode or step",
    "broken line",
]
"""What a row of a log is: a transition of the model, the last of a run, a copy of another row, or why it was rejected.

A run is censored if its last row has an action of the model whose outcome is not shown. A copy has the run, the step
and all values that are read of a row which is counted. An unknown state is one that the log shows and the model does
not have; of an unreadable one, a value is missing or is not a value of its variable. Outside of a table that was made
of other data is a row whose state and action these data do not have. A broken line of a text file is not even a row.
"""

KINDS: tuple[Kind, ...] = get_args(Kind)
_NOT_REJECTED: tuple[Kind, ...] = ("matched", "last row", "censored", "copy", "outside the table")
REJECTED: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind not in _NOT_REJECTED)
CONTRADICTING: tuple[Kind, ...] = ("unknown state", "unknown next state", "impossible transition")
"""What the graph of the model says cannot happen. The other rejected rows show nothing that can be told."""

NAMED = 3  # offenders of each kind
_NO_REPORT = "the report of what became of the rows of the log is not one: count the log again"
SINGLE_ROWS = "each run has one row, and a step ends in the next row: give all files of these runs to one count"
_REMARKS: dict[Kind, str] = {
    "impossible transition": "the model lacks it: add it, or correct the log",
    "no episode or step": "steps are numbers, or dates and times such as 2024-01-31 07:00:00",
}


@dataclass(frozen=True)
class RepeatedStep:
    """A step of a run with several rows that differ."""

    episode: Any
    step: Any
    n_rows: int
    pair: str = ""  # two of them, in words

    def __str__(self) -> str:
        step = f"{self.step:g}" if isinstance(self.step, float) else self.step
        pair = f": {self.pair}" if self.pair else ""
        return f"episode {self.episode}, step {step} ({self.n_rows:,} rows{pair})"


@dataclass(frozen=True)
class BrokenEpisode:
    """A run that lacks steps."""

    episode: Any
    n_rows: int
    n_steps: int  # different ones
    first: float
    last: float

    def __str__(self) -> str:
        rows = number_of(self.n_rows, "row")
        return f"episode {self.episode} has {rows} and {self.n_steps:,} of the steps {self.first:g} to {self.last:g}"


@dataclass(frozen=True)
class IngestionReport:
    """The report on the rows of a log; each row is of one kind. ``worst`` names what most rejected rows are about.

    ``files`` are those that were read, and ``read`` is when that was. ``hints`` say what may be meant by the first.
    ``censoring`` is what somebody said of the runs that were censored, if anything. ``assuming`` is what else was taken
    for granted of the log.
    """

    form: LogForm | Literal["several forms"]
    rows: Mapping[Kind, int]  # of every kind
    worst: Mapping[Kind, tuple[str, ...]]
    files: tuple[LogFile, ...] = field(default=(), compare=False)
    read: str = field(default="", compare=False)  # date and time, in UTC
    hints: Mapping[Kind, str] = field(default_factory=dict, compare=False)  # what may be meant
    censoring: Censoring | None = None
    assuming: tuple[str, ...] = ()
    no_bets: NoBets | None = field(default=None, compare=False)  # why there are none, if they were wanted
    out_of_table: int = 0  # matched rows that left a table, by transitions that it does not have
    censored_runs: CensoredRuns = field(default_factory=CensoredRuns)  # of runs, where their steps have an order

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
        """The number of rows that are not matched, nor the last of a run, nor copies of others."""
        return sum(self.rows[kind] for kind in REJECTED)

    @property
    def n_runs(self) -> int:
        """The number of runs that have a last row; none in a log of transitions."""
        return self.rows["last row"] + self.rows["censored"]

    @property
    def has_single_rows(self) -> bool:
        """Whether the log has one row of each run, so that it shows no step."""
        return self.total == self.n_runs > 0

    @property
    def contradicting(self) -> int:
        """The number of rows that show what the model says cannot happen."""
        return sum(self.rows[kind] for kind in CONTRADICTING)

    @property
    def unreadable(self) -> int:
        """The number of rejected rows that do not show which transition was taken."""
        return self.rejected - self.contradicting

    @property
    def summary(self) -> str:
        """The numbers of rows that were matched and rejected, in one line."""
        censoring = f" ({self.rows['censored']:,} censored)" if self.rows["censored"] else ""
        last = f", {number_of(self.n_runs, 'end')} of runs{censoring}" if self.n_runs else ""
        copies = f", {number_of(self.rows['copy'], 'exact duplicate')} left out" if self.rows["copy"] else ""
        n_outside = self.rows["outside the table"]
        outside = f", {n_outside:,} outside of the table" if n_outside else ""
        rows, left = number_of(self.total, "log row"), f" ({self.departures})" if self.departures else ""
        return f"{rows}: {self.matched:,} matched{left}{last}{copies}{outside}, {self.rejected:,} rejected"

    @property
    def departures(self) -> str:
        """The number of steps that left the table, in words, or nothing."""
        if not self.out_of_table:
            return ""
        part = f"{100 * self.out_of_table / self.matched:.2g} %"
        share = f"{self.out_of_table:,} of {number_of(self.matched, 'step')} ({part})"
        return f"{share} left the table, by transitions that it does not have"

    def __repr__(self) -> str:
        return one_line(self, self.summary)

    def __str__(self) -> str:
        assuming = (f"assuming that {sentence}" for sentence in self.assuming)
        cut = [told(steps)] if (steps := self.censored_runs.notable()) else []
        return "\n".join([self.summary, *(f"  {line}" for line in (*self.reasons(), *cut, *assuming))])

    def __add__(self, other: IngestionReport) -> IngestionReport:
        """Return the report of both logs, with some of the worst rows of each."""
        rows: dict[Kind, int] = {kind: self.rows[kind] + other.rows[kind] for kind in KINDS}
        worst: dict[Kind, tuple[str, ...]] = {}
        for kind in KINDS:
            pairs = zip_longest(self.worst.get(kind, ()), other.worst.get(kind, ()))
            named = dict.fromkeys(text for pair in pairs for text in pair if text is not None)
            worst |= {kind: tuple(named)[:NAMED]} if named else {}
        files = tuple(dict.fromkeys((*self.files, *other.files)))
        form = self.form if self.form == other.form else "several forms"
        hints = {**other.hints, **self.hints}
        censoring = self.censoring or other.censoring
        assuming = tuple(dict.fromkeys((*self.assuming, *other.assuming)))
        read, went = max(self.read, other.read), self.out_of_table + other.out_of_table
        censored_runs = self.censored_runs + other.censored_runs
        return IngestionReport(
            form, rows, worst, files, read, hints, censoring, assuming, self.no_bets, went, censored_runs
        )

    def reasons(self, kinds: Sequence[Kind] = REJECTED) -> list[str]:
        """Return a line for each kind of rejected rows."""
        lines = []
        for kind in kinds:
            if self.rows[kind]:
                details = [", ".join(self.worst.get(kind, ())), _REMARKS.get(kind, ""), self.hints.get(kind, "")]
                lines.append("; ".join([f"{kind}: {number_of(self.rows[kind], 'row')}", *filter(None, details)]))
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the report ready for JSON, with the kinds that there are."""
        told = {each.name: json_value(getattr(self, each.name)) for each in fields(self)}
        told["in_brief"] = Assumption.in_brief(self.assuming)
        told |= {name: {kind: each for kind, each in told[name].items() if each} for name in ("rows", "worst")}
        kept = ("form", "rows", "worst", *(("files",) if self.read else ()))
        return {name: each for name, each in told.items() if each or name in kept}


def refusal(
    report: IngestionReport, n_files: int = 1, rejected: str | Path | None = None, *, are_observations: bool = False
) -> tuple[str | Option, ...]:
    """Return the message of an error about rejected rows of a log in so many files that were read as one.

    ``rejected`` is the file that they were written to, if there is one.
    """
    lines = [f"{report.rejected:,} of {report.total:,} rows do not fit the model:"]
    lines += [f"  {reason}" for reason in report.reasons()]
    advice: list[str | Option] = []
    if report.rows["repeated step"] and n_files > 1:
        lines.append(ANEW)
    elif report.no_bets == "shared names":
        lines.append("give different runs different names, and number the steps of each run")
    if isinstance(report.hints.get("unknown action"), NumberHint):
        advice += ["say which actions 0, 1, 2, … are with ", Option("actions", ["left", "stay", "right"]), "\n"]
    if report.rows["gap in steps"] and not are_observations:
        advice += ["if steps only order the rows of a run, and none is missing, say ", Option("steps", "ordered"), "\n"]
        advice += ["if nobody saw the steps between two rows, read gaps: ", Option("with_gaps(model, [1, 2, 3])"), "\n"]
    advice += ["correct the log or the model, or count the other rows with ", Option("on_unmatched", "report"), "; "]
    if rejected is None:
        advice += [Option("rejected", "rejected.csv"), " writes all of these rows to a file"]
    else:
        advice += [f"all of these rows are in {rejected}"]
    return "\n".join([*lines, ""]), *advice


def require_outcomes(report: IngestionReport, *, any_observation: bool = False, may_go_on: bool = False) -> None:
    """Refuse a log in which most runs end before the outcome of their last action, unless somebody vouches for it.

    Of planned observations, none may be missing. ``may_go_on`` says that the runs may go on in later files.
    """
    n = report.rows["censored"]
    if report.censoring is not None or 2 * n <= report.n_runs * (not any_observation):
        return
    if any_observation:
        lost = f"{number_of(n, 'unit')} {'was' if n == 1 else 'were'} lost: no row shows a planned observation. "
        cut = (
            "If the data end on a day that was fixed before, plan that day as a partial observation, also of the dead. "
        )
        vouch = "If they were lost for reasons that have nothing to do with where they were, say "
        raise DataError(lost, cut, vouch, Option("censoring", "unrelated"))
    if may_go_on:
        raise DataError(
            f"{n:,} of {report.n_runs:,} runs are open: their last row has an action, and no row shows the state after "
            "it. Nothing was counted. If files end at times that do not depend on where runs are, such as midnight, "
            "and a step takes as long wherever it leads, say ",
            Option("censoring", "unrelated"),
            "; or begin with the files of more days at once",
        )
    if report.has_single_rows:
        raise DataError(f"the log shows no step: {SINGLE_ROWS}")
    raise DataError(
        f"{n:,} of {report.n_runs:,} runs end before the outcome of their last action: their last row has "
        "an action, and no row shows the state after it. If the outcome decided what was logged, as with a recorder "
        "that never writes the state in which a run ends, every result is wrong. Add a row with the last state of each "
        "run, and no action. If the runs were censored for reasons that have nothing to do with that outcome, such as "
        "a limit on the number of steps, or if the last action was never carried out, say ",
        Option("censoring", "unrelated"),
    )


def report_from(given: Any) -> IngestionReport:
    """Return the report that ``IngestionReport.to_dict`` made this of; anything else is refused."""
    try:
        report: IngestionReport = read_as(IngestionReport, given)
        in_brief = read_as(tuple[tuple[Group, str] | None, ...], given.get("in_brief", [None] * len(report.assuming)))
        report = replace(report, assuming=tuple(Assumption.again(report.assuming, in_brief)))
    except (DataError, ValueError):
        raise DataError(_NO_REPORT) from None
    if not {*report.rows, *report.worst, *report.hints} <= {*KINDS} or report.out_of_table > report.rows.get(
        "matched", 0
    ):
        raise DataError(_NO_REPORT)
    return replace(report, rows={kind: report.rows.get(kind, 0) for kind in KINDS})
