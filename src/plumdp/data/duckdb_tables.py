"""Files as tables of DuckDB: which files are meant, their formats, and the lines that cannot be read."""

from __future__ import annotations

import atexit
import csv
import glob
import math
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from threading import Event, Thread
from typing import Any

from plumdp.base.edge import require_unpackable
from plumdp.base.errors import DataError
from plumdp.base.progress import tell_share
from plumdp.data.duckdb_engine import Block, column_types, columns_of, connect
from plumdp.data.duckdb_errors import COPIES, name_of_copy, reason_in_our_words
from plumdp.data.names import PLACE_OF_ROW, literal, quoted
from plumdp.data.same_files import EXAMPLES, TABLES
from plumdp.data.snapshots import copy_of_table, refuse_parts
from plumdp.data.text_formats import PLAIN_TEXT, TextFormat, is_utf_8, write_events, write_utf_8

_FORMATS = {"parquet": "parquet", "pq": "parquet", "csv": "csv", "tsv": "csv", "txt": "csv", "xes": "xes"} | (
    dict.fromkeys(("json", "jsonl", "ndjson"), "json")
)
_PACKED = ("gz", "zst")
_TEXT = "'VARCHAR'"
UNION = " UNION ALL BY NAME "
FILE = "file of the row"  # the column that names it, where it is asked for


def find_files(source: str | Path | Sequence[str | Path]) -> list[str]:
    """Return the files that paths, folders and patterns such as ``flights/*.parquet`` stand for, in order."""
    if isinstance(source, str | Path):
        return _find(str(source))
    files = [file for path in source for file in _find(str(path))]
    if not files:
        raise DataError("the list of files is empty")
    return files


def example_file(path: str) -> str:
    """Return the file of an example that comes with plumdp, for ``example:NAME``; any other path unchanged."""
    name = path.removeprefix("example:")
    if name == path:
        return path
    files = {file.stem: str(file) for file in sorted(EXAMPLES.iterdir()) if file.suffix in (".csv", ".parquet")}
    if name in files:
        return files[name]
    raise DataError(f"{path}: there is no such example; there are {' and '.join(f'example:{each}' for each in files)}")


def _find(path: str) -> list[str]:
    path = example_file(path)
    if "://" in path:
        return _find_far(path) if "*" in path else [path]
    if copy := path if path in TABLES else copy_of_table(path, write_table):
        return [copy]
    if Path(path).is_file():
        files = [path]
    elif Path(path).is_dir():
        files = [str(file) for file in Path(path).iterdir() if _suffix(str(file)) in _FORMATS]
    else:
        files = [file for file in glob.glob(path, recursive=True) if Path(file).is_file()]
    if not files:
        raise DataError(f"{path}: there is no such file, nor a folder of Parquet, CSV or JSON files")
    refuse_parts(path, files)
    return in_natural_order(files)


def copy_of_stream(rows: Any) -> str:
    """Return a Parquet file with rows that are handed over once, as Arrow; it is deleted at the end."""
    folder = tempfile.mkdtemp(prefix=COPIES)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_table(rows, copy := str(Path(folder) / "rows handed over as Arrow.parquet"))
    return copy


def write_table(rows: Any, file: str) -> None:
    """Write what hands itself over as Arrow to a Parquet file."""
    with connect() as connection:
        connection.register("rows_of_table", rows)
        connection.execute(f"COPY (SELECT * FROM rows_of_table) TO {literal(file)} (FORMAT parquet)")


def _find_far(pattern: str) -> list[str]:
    """Return the files far away that a pattern stands for, each by its name, so that none is counted twice."""
    with connect() as connection:
        rows = connection.execute(f"SELECT file FROM glob({literal(pattern)})").fetchall()
    if not rows:
        raise DataError(f"{pattern}: there are no such files")
    return in_natural_order(file for (file,) in rows)


def in_natural_order(files: Iterable[str]) -> list[str]:
    """Return files by name, folder by folder, with the numbers in names as numbers.

    >>> in_natural_order(["day-10.csv", "day-2-late.csv", "day-2.csv", "archive/day-30.csv"])
    ['archive/day-30.csv', 'day-2.csv', 'day-2-late.csv', 'day-10.csv']
    """
    return sorted(files, key=lambda file: ([_natural(part) for part in Path(file).parts], file))


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Return the sort key of a name: its end comes before numbers, by their size, and these before words."""
    pieces = [piece for piece in re.split(r"([0-9]+|\.)", name) if piece]
    return [(0, int(piece), "") if piece.isdecimal() else (-1 if piece == "." else 1, 0, piece) for piece in pieces]


def scan(connection: Any, files: Sequence[str], *, text: TextFormat = PLAIN_TEXT, with_file: bool = False) -> str:
    """Return the SQL source of files of one format; all but Parquet as text, that no value be refused.

    ``with_file`` adds a column ``FILE``, with the file that a row is of.
    """
    formats = sorted({_format(file) for file in files})
    if len(formats) > 1:
        raise DataError(f"files of several formats ({', '.join(formats)}): read one after the other")
    named = f", filename = {literal(FILE)}" if with_file else ""
    for file in files:
        if file in TABLES and not Path(file).exists():
            TABLES[file].write(file)
        require_unpackable(file)
    copies = [_copy(connection, file, formats[0], text.encoding) for file in files]
    if formats[0] in ("parquet", "xes"):
        table = f"read_parquet({_listed(copies)}, union_by_name = true{named})"
    else:
        table = (_scan_csv if formats == ["csv"] else _scan_json)(connection, copies, named, text)
    if with_file and copies != [*files]:
        pairs = zip(copies, files, strict=True)
        names = " ".join(f"WHEN {literal(copy)} THEN {literal(file)}" for copy, file in pairs)
        table = f"(SELECT * REPLACE (CASE {quoted(FILE)} {names} END AS {quoted(FILE)}) FROM {table})"
    return text.plain(table, {} if text.is_plain else column_types(connection, table))


def _copy(connection: Any, file: str, kind: str, encoding: str) -> str:
    """Return the file that DuckDB reads instead of one that it cannot read: text in UTF-8, or events as a table."""
    if kind == "parquet" or (kind != "xes" and is_utf_8(encoding)):
        return file
    if "://" in file or file.lower().endswith(".zst"):
        raise DataError(f"{file}: only files of this computer, plain or packed by gzip, are converted; copy it first")
    state = Path(file).stat()
    return _converted(connection, file, kind, encoding, (state.st_size, state.st_mtime_ns))


_COPIES: dict[tuple[Any, ...], str] = {}


def _converted(connection: Any, file: str, kind: str, encoding: str, state: tuple[int, int]) -> str:
    key = (os.getpid(), str(Path(file).resolve()), kind, encoding, *state)
    if key not in _COPIES:
        folder = tempfile.mkdtemp(prefix=COPIES)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        copy = str(Path(folder) / Path(file).name.removesuffix(".gz"))
        if kind == "xes":
            rows = f"{copy}.jsonl"
            names = write_events(file, rows)
            table = f"read_json({_listed([rows])}, format = 'newline_delimited', columns = {_as_text(names)})"
            copy = f"{copy}.parquet"
            connection.execute(f"COPY (SELECT * FROM {table}) TO {literal(copy)} (FORMAT parquet)")
            Path(rows).unlink()
        else:
            write_utf_8(file, copy, encoding)
        _COPIES[key] = copy
    return _COPIES[key]


def numbered_scan(connection: Any, files: Sequence[str], text: TextFormat = PLAIN_TEXT) -> str:
    """Return the SQL source of ``scan`` with ``PLACE_OF_ROW``: the number of the file, and of the row in it.

    Rows of text files have no numbers of their own; those of each file are numbered as they are read, in their order.
    """
    if {_format(file) for file in files} == {"parquet"}:
        options = f"union_by_name = true, filename = {literal(FILE)}, file_row_number = true"
        number = " ".join(f"WHEN {quoted(FILE)} = {literal(file)} THEN {i}" for i, file in enumerate(files))
        place = f"{{'file': CASE {number} END, 'row': file_row_number + 1}} AS {PLACE_OF_ROW}"
        rows = f"read_parquet({_listed(files)}, {options})"
        table = f"(SELECT * EXCLUDE ({quoted(FILE)}, file_row_number), {place} FROM {rows})"
        return text.plain(table, {} if text.is_plain else column_types(connection, table))
    parts = [
        f"SELECT *, {{'file': {i}, 'row': row_number() OVER ()}} AS {PLACE_OF_ROW} "
        f"FROM {scan(connection, [file], text=text)}"
        for i, file in enumerate(files)
    ]
    return f"({UNION.join(parts)})"


def has_rows(connection: Any, text: TextFormat, file: str) -> bool:
    """Return whether a file has a row."""
    return bool(connection.execute(f"SELECT 1 FROM {scan(connection, [file], text=text)} LIMIT 1").fetchall())


def text_bytes(files: Sequence[str]) -> float:
    """Return the size of text files, which take long to read; 0 for Parquet, infinity if it is not known."""
    if not files or _format(files[0]) == "parquet":
        return 0.0
    is_known = all("://" not in file and not file.lower().endswith(_PACKED) for file in files)
    return float(sum(Path(file).stat().st_size for file in files)) if is_known else math.inf


def _scan_csv(connection: Any, files: Sequence[str], named: str, text: TextFormat) -> str:
    """Nothing is left to DuckDB's guesses, which may take lines for comments; files of one header are read at once."""
    by_header: dict[str, list[str]] = {}
    for file in files:
        by_header.setdefault(_first_line(connection, file), []).append(file)
    parts = []
    for header, alike in by_header.items():
        separator = max(",;\t|", key=header.count)
        names = _names(alike[0], header, separator)
        options = f"delim = {literal(separator)}, quote = '\"', escape = '\"', header = true, auto_detect = false"
        options += ", store_rejects = true" if text.skips else ""
        rows = f"SELECT * FROM read_csv({_listed(alike)}, columns = {_as_text(names)}, {options}{named})"
        again = " AND ".join(f"{quoted(name)} = {literal(name)}" for name in names)  # the first line of another file
        parts.append(f"{rows} WHERE ({again}) IS NOT TRUE" if text.skips else rows)
    return f"({UNION.join(parts)})"


def _names(file: str, header: str, separator: str) -> list[str]:
    """Return the names of columns, with numbers for those that have none, as in tables written with their index."""
    names = [name.strip() for name in next(csv.reader([header], delimiter=separator))]
    given = [name for name in names if name]
    if len(given) <= len(names) / 2:
        raise DataError(
            f"{file}: the first line must name the columns, but it is {header}: delete the lines above the names"
        )
    if all(re.fullmatch(r"[-+.,\d]+", name) for name in given):
        raise DataError(f"{file}: the first line is {header}, a row; put a line with the names of the columns above it")
    if len({*given}) < len(given):
        raise DataError(f"{file}: several columns have the same name in the first line {header}")
    return [name or f"column{i + 1}" for i, name in enumerate(names)]


def keeps_order(table: str) -> bool:
    """Return whether a scan reads the rows of files in the order of the files; not if their headers differ."""
    return UNION not in table


def _first_line(connection: Any, file: str) -> str:
    """Return the names of the columns as they stand in a CSV file, which may be packed or far away."""
    options = (
        "columns = {'line': 'VARCHAR'}, header = false, auto_detect = false, delim = '\x01', quote = '', escape = ''"
    )
    lines = connection.execute(f"SELECT line FROM read_csv({_listed([file])}, {options}) LIMIT 1").fetchall()
    if not lines or lines[0][0] is None:
        raise DataError(f"{file}: the first line must name the columns, but it is empty")
    header: str = lines[0][0]
    return header.removeprefix("\ufeff").rstrip("\r")


def _scan_json(connection: Any, files: Sequence[str], named: str, _: TextFormat) -> str:
    columns = connection.execute(f"DESCRIBE SELECT * FROM read_json({_listed(files)}, union_by_name = true)").fetchall()
    return f"read_json({_listed(files)}, columns = {_as_text([name for name, *_ in columns])}{named})"


def broken_lines(connection: Any) -> list[tuple[str, int, str]]:
    """Return file, line and reason of all lines that scans of this connection left out.

    They have too many or too few values. After anything else, such as an open quotation mark, nobody knows how many
    rows were left out with it, and the file is refused.
    """
    tables = "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'reject_errors'"
    if connection.execute(tables).fetchall() == [(0,)]:
        return []
    errors = "reject_errors JOIN reject_scans USING (scan_id, file_id)"
    is_one = "error_type IN ('MISSING COLUMNS', 'TOO MANY COLUMNS') AND NOT contains(csv_line, chr(10))"
    columns = f"file_path, line, any_value(error_message) AS reason, bool_and({is_one}) AS is_one"
    found = []
    for file, line, reason, is_line in connection.execute(
        f"SELECT {columns} FROM {errors} GROUP BY file_path, line ORDER BY is_one, file_path, line"
    ).fetchall():
        words = reason_in_our_words(reason)
        if not is_line:
            raise DataError(f"{name_of_copy(file)}, line {line:,}: {words}")
        found.append((name_of_copy(file), int(line), words))
    return found


def _listed(files: Sequence[str]) -> str:
    """Return the files as SQL writes them; what looks like a pattern in a name is meant as it stands."""
    return f"[{', '.join(literal(file if '://' in file else glob.escape(file)) for file in files)}]"


def _as_text(names: Sequence[str]) -> str:
    return f"{{{', '.join(f'{literal(name)}: {_TEXT}' for name in names)}}}"


def _format(file: str) -> str:
    suffix = _suffix(file)
    if suffix not in _FORMATS:
        endings = ", ".join(f".{known}" for known in _FORMATS)
        raise DataError(f"{file}: the name must end in {endings} (or these and .gz); save it as one of these")
    return _FORMATS[suffix]


def is_data(file: str) -> bool:
    """Return whether a file has rows, by the end of its name."""
    return _suffix(file) in _FORMATS


def _suffix(file: str) -> str:
    parts = file.lower().rsplit(".", 2)
    return parts[-2] if len(parts) == 3 and parts[-1] in _PACKED else parts[-1]


@contextmanager
def watched(connection: Any, doing: str) -> Iterator[None]:
    """Tell meanwhile which share of its query the connection has done."""
    done = Event()

    def watch() -> None:
        while not done.wait(0.2):
            tell_share(doing, max(0.0, min(100.0, connection.query_progress())), 100)

    watcher = Thread(target=copy_context().run, args=(watch,), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def read_parquet(files: Sequence[str | Path]) -> Block:
    """Return the columns of Parquet files that fit into memory, one file after the other."""
    with connect() as connection:
        return columns_of(connection.execute(f"SELECT * FROM {scan(connection, [str(file) for file in files])}"))
