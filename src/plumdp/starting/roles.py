"""What columns seem to be: run, order, action, reward or state, by their names and by what is in them.

How a file writes letters, numbers and dates is judged by its first rows. SQL says what values a column has, and what
follows on what in a run.
"""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from math import log, sqrt
from typing import Any

from plumdp.base.edge import require_unpackable
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Decimal
from plumdp.data.mapping_language import bins, parse_mapping
from plumdp.data.mapping_sql import NUMBERS, is_time, mapped_sql
from plumdp.data.names import quoted
from plumdp.data.open_logs import files_of, open_log
from plumdp.data.raw_logs import RawLog

_WORDS = {
    "run": "episode run case trace trajectory session patient subject machine pump equipment unit asset device vehicle "
    "customer ticket claim game rollout serial fall geraet anlage maschine kunde engine id",
    "step": "step t time timestamp date datum month day week visit cycle tick seq sequence turn round index zeit monat "
    "tag iteration hour minute shift quarter period woche stunde schicht",
    "action": "action act cmd command decision treatment therapy drug arm massnahme tool move control choice aktion "
    "entscheidung",
    "reward": "reward rew cost costs kosten price preis minutes duration utility eq5d qaly profit loss energy dauer "
    "minuten euro eur usd amount betrag token tokens",
    "chance": "prob probs probability chance propensity pscore logp logprob logprobs",
    "flag": "terminated terminal done truncated",
}
_GOOD = ("reward", "rew", "utility", "eq5d", "qaly", "profit")  # more is better
_HARM = (
    "ill sick dead died death fail failed failure broken defect defective crash crashed lost churned cancelled error "
    "relapse bad schlecht krank tot defekt ausfall ausgefallen kaputt verloren"
)
_FIRST = {"run": ("episode", "run", "case", "trace"), "step": ("step", "timestamp"), "action": ("action",)}
FEW_RUNS, _FEW_ROWS = 4, 1.5  # runs that a log has at least, and rows of a run on average


@dataclass(frozen=True)
class ColumnProfile:
    """What a scan tells of a column."""

    name: str
    n_rows: int
    n_present: int
    n_distinct: int  # about
    n_numbers: int
    n_whole: int
    n_times: int

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers."""
        return self.n_numbers >= 0.95 * max(self.n_present, 1)

    @property
    def is_whole(self) -> bool:
        """Whether its values are whole numbers."""
        return self.n_whole >= 0.99 * max(self.n_present, 1)

    @property
    def is_time(self) -> bool:
        """Whether its values are dates or times."""
        return not self.is_number and self.n_times >= 0.95 * max(self.n_present, 1)

    @property
    def is_chance(self) -> bool:
        """Whether it seems to be the chance with which the action was drawn."""
        return self.is_number and self.hint("chance") > 0

    def hint(self, role: str) -> int:
        """Return the weight of its name for a role, from 0 to 3."""
        words, known = words_of(self.name), _WORDS[role].split()
        if any(word in _FIRST.get(role, ()) for word in words):
            return 3 if len(words) == 1 or role != "run" or "id" in words or "name" in words else 2
        found = [word for word in words if word in known]
        return 0 if not found else 1 if found == ["id"] else 2


def run_candidates(columns: Sequence[ColumnProfile]) -> list[str]:
    """Return columns that may name the run of a row, the likeliest first."""
    able = [
        each
        for each in columns
        if FEW_RUNS <= each.n_distinct <= each.n_rows / _FEW_ROWS
        and each.n_present >= 0.9 * each.n_rows
        and not each.is_time
        and (each.is_whole or not each.is_number)
        and not (each.hint("step") or each.hint("action") or each.hint("reward"))
    ]
    hinted = [each for each in able if each.hint("run")]
    others = [each for each in able if not each.hint("run") and each.n_distinct >= 10]
    ranked = sorted(hinted, key=lambda each: (-each.hint("run"), -each.n_distinct))
    return [each.name for each in ranked or sorted(others, key=lambda each: (each.is_number, -each.n_distinct))]


def order_candidates(columns: Sequence[ColumnProfile], run: str) -> list[str]:
    """Return columns that may put the rows of a run in order, the likeliest first."""
    able = [each for each in columns if each.name != run and (each.is_time or each.is_whole) and each.n_distinct > 1]
    hinted = [each for each in able if each.hint("step")]
    times = [each for each in able if each.is_time and each not in hinted]
    counters = [each for each in able if not each.is_time and each not in hinted and not each.hint("action")]
    counters.sort(key=lambda each: each.name.startswith("column"))  # numbers of rows without a name come last
    ranked = sorted(hinted, key=lambda each: (-each.hint("step"), not each.is_time, -each.n_distinct))
    return [each.name for each in (*ranked, *times, *counters)]


def action_of(columns: Sequence[ColumnProfile], last_only: Sequence[str], most: int) -> str:
    """Return the column of actions, if any. Those in ``last_only`` are missing only in ends of runs."""
    able = [each for each in columns if 1 <= each.n_distinct <= most and (each.is_whole or not each.is_number)]
    able = [each for each in able if not (each.is_chance or each.hint("flag"))]
    hinted = sorted((each for each in able if each.hint("action")), key=lambda each: -each.hint("action"))
    return next((each.name for each in (*hinted, *(each for each in able if each.name in last_only))), "")


def rewards_of(columns: Sequence[ColumnProfile]) -> list[str]:
    """Return the columns that may be rewards or costs."""
    return [each.name for each in columns if each.is_number and each.hint("reward") and each.n_distinct > 1]


def is_gain(name: str) -> bool:
    """Return whether the name of a column says that more of it is better.

    >>> is_gain("reward"), is_gain("Kosten (EUR)")
    (True, False)
    """
    return any(word in _GOOD for word in words_of(name))


def is_harm(formula: str) -> bool:
    """Return whether a formula of states says that something bad happened.

    >>> is_harm('status="ill"'), is_harm('status="closed"')
    (True, False)
    """
    return any(word in _HARM.split() for word in words_of(formula))


def is_persistent(pairs: Mapping[tuple[str, str], int]) -> bool:
    """Return whether values before and after a step depend on each other, by how often each pair was seen.

    The statistic of the likelihood ratio is compared with its mean plus four standard deviations; if there are too few
    pairs for that, they may.

    >>> is_persistent({("a", "a"): 90, ("a", "b"): 10, ("b", "a"): 10, ("b", "b"): 90})
    True
    >>> is_persistent({("a", "a"): 51, ("a", "b"): 49, ("b", "a"): 48, ("b", "b"): 52})
    False
    """
    total, before, after = sum(pairs.values()), dict[str, int](), dict[str, int]()
    for (one, other), n in pairs.items():
        before[one], after[other] = before.get(one, 0) + n, after.get(other, 0) + n
    freedom = (len(before) - 1) * (len(after) - 1)
    ratio = 2 * sum(n * log(n * total / (before[one] * after[other])) for (one, other), n in pairs.items())
    return freedom > 0 and (total < 5 * freedom or ratio > freedom + 4 * sqrt(2 * freedom))


DATE_FORMATS = tuple(
    f"{date}{time}"
    for date in ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d.%m.%y", "%d %b %Y", "%b %d, %Y")
    for time in ("", " %H:%M", " %H:%M:%S")
)
_COMMA = re.compile(r"[+-]?(\d{1,3}([. \u00a0\u202f']\d{3})+|\d+),\d+|[+-]?\d{1,3}(\.\d{3}){2,}")
_LINE = 1 << 20  # bytes of a line that are read at once
_MOST = 300  # values of a column that are tried


def encoding_of(files: Sequence[str]) -> str:
    """Return the encoding of text files: UTF-8, UTF-16, or else that of Western Windows."""
    for file in files:
        if not _is_text(file):
            continue
        with _opened(file) as stream:
            first = stream.read(1 << 20)
            if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return "utf-16"
            decoder, chunk = codecs.getincrementaldecoder("utf-8")(), first
            try:
                while chunk:
                    decoder.decode(chunk)
                    chunk = stream.read(1 << 20)
            except UnicodeDecodeError:
                return "cp1252" if not re.search(rb"[\x81\x8d\x8f\x90\x9d]", first) else "latin-1"
    return "utf-8"


def repeated_names(files: Sequence[str]) -> int:
    """Return the number of lines that repeat the first line of a text file, as in concatenated files."""
    n = 0
    for file in filter(_is_text, files):
        with _opened(file) as stream:
            lines = iter(partial(stream.readline, _LINE), b"")
            first = next(lines, b"").strip()
            n += sum(line.strip() == first for line in lines)
    return n


def _is_text(file: str) -> bool:
    return "://" not in file and bool(re.search(r"\.(csv|tsv|txt)(\.gz)?$", file.lower()))


def _opened(file: str) -> Any:
    require_unpackable(file)
    return (gzip.open if file.lower().endswith(".gz") else open)(file, "rb")


def decimal_of(columns: Mapping[str, Sequence[str]]) -> Decimal:
    """Return the decimal sign of a file, given some values of its columns.

    >>> decimal_of({"cost": ["35,00", "4.180,50"], "date": ["17.05.2021"]}), decimal_of({"cost": ["35.00", "4,180.50"]})
    (',', '.')
    """
    for values in columns.values():
        present = _some(values)
        with_comma = sum(bool(_COMMA.fullmatch(value)) for value in present)
        is_number = all(_COMMA.fullmatch(value) or re.fullmatch(r"[+-]?[\d.]+", value) for value in present)
        if with_comma and is_number:
            return ","
    return "."


def date_format_of(columns: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """Return the format of dates, empty if there are none or DuckDB reads them, and a second possible format.

    >>> date_format_of({"day": ["17.05.2021", "01.02.2021"], "at": ["b", "a"]})
    ('%d.%m.%Y', '')
    >>> date_format_of({"day": ["03/04/2021", "01/02/2021"]})
    ('%d/%m/%Y', '%m/%d/%Y')
    """
    for values in columns.values():
        present = _some(values)
        fitting = [form for form in DATE_FORMATS if present and all(_is_date(value, form) for value in present)]
        if fitting:
            return fitting[0], fitting[1] if len(fitting) > 1 else ""
    return "", ""


def _some(values: Sequence[str]) -> list[str]:
    """Return values that are spread over all, which may be sorted."""
    present = [value.strip() for value in values if value.strip()]
    return present[:: max(1, len(present) // _MOST)]


def _is_date(value: str, form: str) -> bool:
    try:
        return datetime.strptime(value, form).year > 0
    except ValueError:
        return False


def words_of(name: str) -> list[str]:
    """Return the words in the name of a column.

    >>> words_of("PatientID"), words_of("case:concept:name"), words_of("Maßnahme")
    (['patient', 'id'], ['case', 'concept', 'name'], ['massnahme'])
    """
    plain = name.replace("ß", "ss").replace("ä", "ae").replace("ö", "oe").replace("ü", "ue")
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])[A-Z0-9]*|[A-Z]?[a-z]+|\d+", plain)]


def variable_of(name: str) -> str:
    """Return a name for a state variable that properties can use.

    >>> variable_of("Complete Timestamp"), variable_of("concept:name"), variable_of("2nd")
    ('Complete_Timestamp', 'concept_name', 'v2nd')
    """
    word = re.sub(r"\W+", "_", name).strip("_") or "value"
    return word if word.isidentifier() else f"v{word}"


def columns_of(term: str, columns: Collection[str]) -> list[str]:
    """Return the columns that a term names: itself if it is one, or those of an expression."""
    return [term] if term in columns else [*parse_mapping(term).columns()]


def column_term(name: str) -> str:
    """Return a column as the language of mappings writes it."""
    try:
        probe = parse_mapping(f"if(lower({name}) = '' and {name} < 1 and ({name}) = 1 and {name}, {name}, 1)")
        is_word = probe.columns() == [name]  # SQL has words that are names in some places only
    except DataError:
        is_word = False
    return name if is_word else quoted(name)


_SAMPLE = 20_000  # rows by which it is judged how texts are written
_TABLE = "looked_at"
_END = "the end of the run"


@dataclass(frozen=True, eq=False)
class LoadedRows:
    """Rows of a log in a table of DuckDB, and its columns."""

    connection: Any
    table: str
    types: Mapping[str, str]  # of columns
    n_copies: int = 0  # of rows that were left out

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query in which {rows} is the table."""
        found: list[tuple[Any, ...]] = self.connection.execute(query.replace("{rows}", self.table)).fetchall()
        return found

    def profiles(self, columns: Sequence[str]) -> list[ColumnProfile]:
        """Return the statistics of columns from one scan."""
        if not columns:
            return []
        parts = ", ".join(part for name in columns for part in _aggregates(quoted(name), self.types[name]))
        ((n, *numbers),) = self.rows(f"SELECT count(*), {parts} FROM {{rows}}")
        size = len(numbers) // len(columns)
        each = (numbers[i * size : (i + 1) * size] for i in range(len(columns)))
        return [ColumnProfile(name, n, *map(int, found)) for name, found in zip(columns, each, strict=True)]

    def values(self, term: str, most: int = 1000) -> dict[str, int]:
        """Return the most frequent values of a term as texts, and how often each occurs."""
        value = f"trim(CAST({term} AS VARCHAR))"
        query = f"SELECT {value} AS value, count(*) AS n FROM {{rows}} WHERE {value} <> '' GROUP BY value"
        return {value: int(n) for value, n in self.rows(f"{query} ORDER BY n DESC, value LIMIT {most}")}

    def sql(self, variable: str, term: str | Sequence[float], *, after: bool = False) -> str:
        """Return a variable, or its value after the step, as SQL, from an expression of mappings or edges of bins."""
        node = parse_mapping(term) if isinstance(term, str) else bins(variable, term)
        node = node.renamed({name: f"next_{name}" for name in node.columns()}) if after else node
        return f"({mapped_sql(node, self.types)})"

    def flag(self, name: str) -> str:
        """Return a column of truth values as SQL; nothing if it has others."""
        sql = self.sql(name, f"case when {column_term(name)} then 1 else 0 end")
        return sql if self.number(f"count({quoted(name)}) - count({sql})") == 0 else ""

    def number(self, what: str) -> float:
        """Return a number that is selected from all rows."""
        ((found,),) = self.rows(f"SELECT {what} FROM {{rows}}")
        return float(found or 0)


def _aggregates(column: str, kind: str) -> Iterator[str]:
    text = f"trim(CAST({column} AS VARCHAR))"
    present, number, moment = f"nullif({text}, '')", f"TRY_CAST({text} AS DOUBLE)", f"TRY_CAST({text} AS TIMESTAMP)"
    if kind in NUMBERS:  # numbers and dates as texts and back would take most of the time
        present, number, moment = column, f"CAST({column} AS DOUBLE)", "NULL"
    elif is_time(kind):
        present, number, moment = column, "NULL::DOUBLE", column
    yield f"count({present})"
    yield f"approx_count_distinct({present})"
    yield f"count(CASE WHEN isfinite({number}) THEN 1 END)"
    yield f"count(CASE WHEN isfinite({number}) AND {number} = floor({number}) THEN 1 END)"
    yield f"count({moment})"


@contextmanager
def look_at(raw: RawLog, *, keep: bool = False, once: bool = False) -> Iterator[LoadedRows]:
    """Give the rows of a log; ``keep``: after they are read once; ``once``: without copies of rows."""
    with open_log(*files_of(raw)) as log:
        log = log.keep(log.columns, is_read_again=False)
        found = LoadedRows(log.connection, log.table, log.types)
        if keep:
            log.run(_TABLE, f"SELECT {'DISTINCT ' * once}* FROM {log.table}")
            kept = replace(found, table=_TABLE)
            found = replace(kept, n_copies=round(found.number("count(*)") - kept.number("count(*)")) if once else 0)
        yield found


def sample(raw: RawLog) -> dict[str, list[str]]:
    """Return values of columns in the first rows, each once."""
    with look_at(raw) as look:
        names = ", ".join(f"list(DISTINCT CAST({quoted(name)} AS VARCHAR))" for name in look.types)
        few = f"(SELECT * FROM {look.table} LIMIT {_SAMPLE})"
        ((*lists,),) = look.rows(f"SELECT {names} FROM {few}")
    kept = (sorted(value for value in values or [] if value is not None) for values in lists)
    return dict(zip(look.types, kept, strict=True))


def pairs_of(look: LoadedRows, term: str, order: str) -> dict[tuple[str, str], int]:
    """Return the number of times that each value of a term was followed by each other one, or by the run's end."""
    value = f"trim(CAST({term} AS VARCHAR))"
    after = f"CASE WHEN lead(1) OVER ({order}) IS NULL THEN '{_END}' ELSE lead({value}) OVER ({order}) END"
    both = f"SELECT {value} AS one, {after} AS other FROM {{rows}}"
    query = f"SELECT one, other, count(*) FROM ({both}) WHERE one <> '' AND other <> '' GROUP BY ALL"
    return {(one, other): int(n) for one, other, n in look.rows(query)}


def in_runs(run: str, step: str) -> str:
    """Return the window of a run in its order."""
    text = quoted(step)
    return f"PARTITION BY {quoted(run)} ORDER BY TRY_CAST({text} AS DOUBLE), {moment_of(step)}"


def moment_of(step: str) -> str:
    """Return a column of dates or times as SQL, those of a zone in UTC."""
    return f"TRY_CAST(TRY_CAST({quoted(step)}::VARCHAR AS TIMESTAMPTZ) AS TIMESTAMP)"
