"""Logs as they were exported: how texts in them are written, and which of their runs are meant."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import Decimal, Remembered
from plumdp.data.names import quoted
from plumdp.data.text_formats import PLAIN, PLAIN_TEXT, TextFormat

if TYPE_CHECKING:
    from plumdp.data.log_format import StateMaps
    from plumdp.data.remembering import Remembering

FIRST_RUNS, _PLACE = "first_runs", "place_among_rows"


@dataclass(frozen=True)
class FirstRuns:
    """The runs of a log that come first, or all others: by their first steps, by their numbers, or in its order."""

    n: int
    run: str  # the column that names the run of a row; without one, rows are meant
    step: str = ""  # the column whose least value in a run says when it began, if it has dates
    others: bool = False  # whether the other runs are meant
    means: str = ""  # the column whose means in the first runs are taken for known
    of: tuple[str, ...] = ()  # the files whose first runs are meant, if these are others than those that are read


def first_runs_sql(part: FirstRuns, table: str) -> str:
    """Return the query for the names of the runs that come first, in a column ``run``."""
    text = f"CAST({quoted(part.step)} AS VARCHAR)"
    date = f"TRY_CAST({text} AS TIMESTAMPTZ)"
    began = f"CASE WHEN {text} LIKE '%-%-%' THEN {date} END" if part.step else "NULL"  # a number is not a date
    rows = f"SELECT {quoted(part.run)} AS run, {began} AS began, row_number() OVER () AS place FROM {table}"
    number = "TRY_CAST(run::VARCHAR AS DOUBLE)"
    runs = f"SELECT run, min(began) AS began, min(place) AS place, {number} AS number FROM ({rows}) GROUP BY run"
    numbers = "CASE WHEN bool_and(number NOTNULL) OVER () THEN number END"
    named = f"SELECT *, {numbers} AS in_order FROM ({runs}) WHERE run NOTNULL"
    # of runs that began together, names and an order of rows that outcomes may have made decide nothing
    drawn = "CASE WHEN began NOTNULL THEN md5(CAST(run AS VARCHAR)) END"
    return f"SELECT run FROM ({named}) ORDER BY began NULLS LAST, {drawn}, in_order, place LIMIT {part.n}"


def unit_sql(by: str) -> str:
    """Return the name of the unit of a row as SQL; it is empty if it is missing."""
    return f"coalesce(CAST({quoted(by)} AS VARCHAR), '')"


def part_sql(part: FirstRuns, table: str) -> str:
    """Return the rows of the runs that are meant, once the table of first runs is made."""
    if not part.run:
        rows = f"(SELECT *, row_number() OVER () AS {_PLACE} FROM {table})"
        return f"(SELECT * EXCLUDE ({_PLACE}) FROM {rows} WHERE {_PLACE} {'>' if part.others else '<='} {part.n})"
    run, first = quoted(part.run), f"SELECT run FROM {FIRST_RUNS}"
    if part.of:  # which may write numbers otherwise; to take two names for one leaves out more, whatever happened
        run, first = (f"coalesce(TRY_CAST({name} AS DOUBLE)::VARCHAR, trim({name}::VARCHAR))" for name in (run, "run"))
        first = f"SELECT {first} FROM {FIRST_RUNS}"
    is_first = f"coalesce({run} IN ({first}), FALSE)"
    return f"(SELECT * FROM {table} WHERE {'NOT ' if part.others else ''}{is_first})"


@dataclass(frozen=True, eq=False)
class RawLog:
    """A log that is read otherwise than UTF-8 text with decimal points, or in part; made by ``raw_log``."""

    source: Any
    text: TextFormat = PLAIN_TEXT
    part: FirstRuns | None = None
    memory: Remembering | None = None  # of its states, if tables have one
    unit: tuple[str, str] | None = None  # the column that names units, and the one whose rows are meant
    said: frozenset[str] = frozenset()  # what of the text somebody said, which ``start`` does not guess

    def only(self, by: str, unit: str) -> RawLog:
        """Return the rows of one unit, by its name in a column."""
        return replace(self, unit=(by, unit))

    def first(self, n: int, *, run: str, step: str = "") -> RawLog:
        """Return the first n runs: those that began first, if the column ``step`` has dates.

        Runs that began at the same date come in the order of hashes of their names, which says nothing of how they
        went. Without dates, runs with numbers come in their order, and others as they appear in the log. Without
        the name of a column, the first n rows are meant.
        """
        if not n > 0:
            raise DataError(f"first={n!r}: give a number of runs, at least 1")
        return replace(self, part=FirstRuns(n, run, step))

    def others(self, n: int, *, run: str, step: str = "", means: str = "", of: Sequence[str] = ()) -> RawLog:
        """Return the runs that ``first`` leaves out, and rows without a run.

        ``means`` is a column whose means in the first runs the table has as costs or rewards, which results repeat.
        ``of`` are the files whose first runs are left out, by their names, if the log is another one, or more.
        """
        part = FirstRuns(n, run, step, others=True, means=means, of=tuple(of))
        return replace(self.first(n, run=run, step=step), part=part)

    def remember(
        self,
        what: Remembered,
        *,
        run: str,
        step: str,
        states: StateMaps | Sequence[str] | str = (),
        action: str = "",
    ) -> RawLog:
        """Return the log with a column of what each state remembers of its run, one more variable of its tables.

        Its value is known before the outcome of a step, and what follows on a state in one step of a run may follow in
        any. The log needs a row for each state of a run.

        Parameters
        ----------
        what: "visits", how often the run was in the state before (0, 1, 2 for 2 or 3, 4 for 4 to 7, and so on);
            "previous", the action before; "time", the steps since the state was entered, in the variable ``since``;
            "step", the steps of the run so far.
        run, step: the columns that name the run of a row, and that put the rows of a run in order.
        states, action: the columns that make up a state, or expressions, as in ``read_log``, and that of actions;
            "visits" and "time" need the first, and "previous" the second.

        >>> import pandas as pd
        >>> from plumdp import LogFormat
        >>> from plumdp.data import model_from_log, raw_log
        >>> frame = pd.DataFrame({"unit": [1, 1, 1], "day": [0, 1, 2], "at": ["new", "old", "old"], "action": "go"})
        >>> log = raw_log(frame).remember("time", run="unit", step="day", states="at")
        >>> columns = {"episode": "unit", "step": "day"}
        >>> model_from_log(log, LogFormat(columns=columns, states="at"), initial="new").graph.states["since"][:4]
        array([0, 1, 0, 1], dtype=int32)
        """
        from plumdp.data.remembering import Remembering

        named = [states] if isinstance(states, str) else states
        terms = named if isinstance(named, Mapping) else {name: quoted(name) for name in named}
        return replace(self, memory=Remembering(what, run, step, dict(terms), action))


def raw_log(source: Any, *, encoding: str = "", decimal: Decimal | None = None, date_format: str = "") -> RawLog:
    """Return a log for ``read_log`` and others whose texts have another encoding, decimal sign or format of dates.

    Parameters
    ----------
    source
        Files or a data frame, as in ``read_log``.
    encoding
        That of text files, such as "cp1252", by the names that Python has for them; by default UTF-8.
    decimal
        "," reads the texts 4.180,50 and 4180,5 as numbers; by default ".".
    date_format
        How texts write dates, as in ``strptime``: "%d.%m.%Y" reads 17.05.2021.

    Returns
    -------
    RawLog
        The log; ``remember`` adds a variable to its states.

    Examples
    --------
    >>> import pandas as pd
    >>> from plumdp import LogFormat
    >>> from plumdp.data import model_from_log, raw_log
    >>> frame = pd.DataFrame({"episode": [1, 1], "step": ["30.09.2024", "01.10.2024"], "x": ["0", "1.000"]})
    >>> log = raw_log(frame.assign(action="go"), decimal=",", date_format="%d.%m.%Y")
    >>> model_from_log(log, LogFormat(states="x"), initial=0).graph.states["x"][:2]
    array([   0, 1000], dtype=int32)
    """
    given = {"encoding": encoding, "decimal": decimal, "date_format": date_format}
    said, encoding, decimal = frozenset(filter(given.get, given)), encoding or PLAIN, decimal or "."
    try:
        codecs.lookup(encoding)
    except (LookupError, TypeError):
        unknown = ": Python knows no encoding of this name; take for example 'cp1252' or 'utf-16'"
        raise DataError(Option("encoding", encoding), unknown) from None
    if decimal not in (".", ","):
        raise DataError(Option("decimal", decimal), ": choose '.' or ','")
    if date_format and "%" not in date_format:
        raise DataError(Option("date_format", date_format), ": write it as in '%d.%m.%Y', which reads 17.05.2021")
    inner = source if isinstance(source, RawLog) else RawLog(source)
    return replace(inner, text=TextFormat(encoding, decimal, date_format), said=said)


def as_raw(source: Any) -> RawLog:
    """Return a log with what is said about how it is read."""
    return source if isinstance(source, RawLog) else RawLog(source)
