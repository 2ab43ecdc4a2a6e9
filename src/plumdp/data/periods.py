"""Steps that are dates as whole numbers of periods, so that missing ones are gaps; and how dates are spaced."""

from __future__ import annotations

import re

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import Steps
from plumdp.data import mapping_language as term
from plumdp.model.text import number_of

_MICROSECONDS = {"s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6, "w": 7 * 86400 * 10**6}
_NAMES = (("d", "day"), ("h", "hour"), ("min", "minute"), ("s", "second"))
_WORDS = ("consecutive", "ordered", "monthly", "weekly", "daily")
_EVERY = re.compile(r"every=([1-9][0-9]{0,8})(s|min|h|d|w)")


def require_steps(given: Steps | None) -> None:
    """Refuse another word than those that say what steps are."""
    if given is not None and given not in _WORDS and not (isinstance(given, str) and _EVERY.fullmatch(given)):
        words = ", ".join(map(repr, _WORDS))
        raise DataError(
            Option("steps", given), f": choose one of {words}, 'every=30d' (or s, min, h, w), or leave it out"
        )


def is_period(steps: Steps | None) -> bool:
    """Return whether steps are dates that are counted in periods."""
    return steps is not None and steps not in ("consecutive", "ordered")


def period_of(steps: Steps | None) -> int:
    """Return the microseconds of a period that begins with each run; 0 for those of the calendar.

    >>> period_of("every=30d") == 30 * 24 * 3600 * 10**6, period_of("monthly")
    (True, 0)
    """
    every = _EVERY.fullmatch(steps or "")
    return int(every[1]) * _MICROSECONDS[every[2]] if every else 0


def in_periods(steps: Steps, column: str) -> term.MappingTerm:
    """Return the number of the period that a date is in; in each run, it grows by one from period to period.

    Months, weeks (from Monday on) and days are those of the calendar. Other periods begin at the first date of the run,
    if all others are whole numbers of them later: then it does not matter from when on they are numbered.
    """
    time = term.column(column, "time")
    if steps == "monthly":
        return term.MappingTerm(f"(12e0 * {term.date_part('year', time)} + {term.date_part('month', time)})")
    days = term.MappingTerm(term.date_part("days", time))
    if steps == "daily":
        return days
    of, every = (days, 7) if steps == "weekly" else (moment_of(column), period_of(steps))
    return term.MappingTerm(term.rounded("floor", f"({of.sql} / {term.number(every)})"))


def moment_of(column: str) -> term.MappingTerm:
    """Return a date or time as microseconds."""
    return term.MappingTerm(term.date_part("microseconds", term.column(column, "time")))


def spacing_in_words(usual: float, share: float) -> str:
    """Return the number of intervals between dates that are about twice as long as usual, in microseconds.

    >>> spacing_in_words(30 * 86400e6, 0.0291)
    '2.91 % of the intervals are about twice the usual 30 days'
    """
    unit, name = next(((u, n) for u, n in _NAMES if usual >= _MICROSECONDS[u]), _NAMES[-1])
    n = f"{usual / _MICROSECONDS[unit]:.3g}"
    return f"{100 * share:.3g} % of the intervals are about twice the usual {n} {name}{'' if n == '1' else 's'}"


def not_dates(steps: Steps, column: str, kind: str) -> DataError:
    """Return the error for steps that are not dates."""
    return DataError(
        Option("steps", steps), f": column {column} has the type {kind}, but periods are counted by dates; leave it out"
    )


def not_there(steps: Steps) -> DataError:
    """Return the error for a query, which cannot refuse dates that are not whole numbers of a period."""
    return DataError(
        Option("steps", steps),
        ": a query cannot tell whether dates are whole periods after the first date of their run; choose 'monthly', "
        "'weekly' or 'daily', or number the steps",
    )


def not_whole(steps: Steps, n: int, run: object, date: str) -> DataError:
    """Return the error for dates that are not whole numbers of a period after the first of their run."""
    return DataError(
        Option("steps", steps),
        f": {number_of(n, 'step')} {'does' if n == 1 else 'do'} not come a whole number of periods after the first of "
        f"the run, such as {date} in run {run}; choose 'monthly', 'weekly' or 'daily', for periods of the "
        "calendar, or round the dates",
    )
