"""Tables in formats whose Parquet files also hold rows that were deleted or replaced, read at one version.

A folder with ``_delta_log`` is a table of Delta Lake, one with ``metadata/*.metadata.json`` a table of Iceberg. Which
rows of their files count is known to the libraries of these formats alone, so that a copy is made through them.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote

from plumdp.base.errors import DataError
from plumdp.base.json_values import parsed
from plumdp.data.duckdb_errors import COPIES
from plumdp.data.same_files import TABLES, VERSION, LogFile, TableCopy
from plumdp.model.text import number_of

Format: TypeAlias = Literal["Delta Lake", "Iceberg"]
DELTA: Format = "Delta Lake"
ICEBERG: Format = "Iceberg"
_LIBRARIES = {DELTA: "deltalake", ICEBERG: "pyiceberg"}
_METADATA = "metadata/*.metadata.json"
_COPIES: dict[tuple[str, str, int, int], str] = {}
Write: TypeAlias = Callable[[Any, str], None]


class _Opened(NamedTuple):
    """A table at a version: in words, what no other table has, a number that grows, and how to get the rows."""

    version: str
    identity: str
    until: int
    rows: Callable[[], Any]


@dataclass(frozen=True)
class Rewritten:
    """Why rows that were added to a table cannot be told from others."""

    reason: str


def format_of(folder: Path) -> Format | None:
    """Return the format of the table that a folder is, or nothing."""
    if (folder / "_delta_log").is_dir():
        return DELTA
    return ICEBERG if any(folder.glob(_METADATA)) else None


def copy_of_table(path: str, write: Write) -> str:
    """Return a Parquet file with the rows of a table, which a path is the folder or a metadata file of, or nothing.

    ``write`` writes what PyArrow can read to a file, when ``TABLES`` is asked for it.
    """
    place = Path(path)
    kind = ICEBERG if place.is_file() and place.match(f"*/{_METADATA}") else format_of(place)
    if not kind:
        return ""
    with _telling(path, kind):
        opened = (_delta if kind == DELTA else _iceberg)(place)
    return _copy(path, kind, place, opened, -1, opened.rows, write)


def rows_added(copy: str, since: int, write: Write) -> Path | Rewritten:
    """Return a Parquet file with the rows that were added to a table between a version and that of a copy."""
    place, until = TABLES[copy].place, TABLES[copy].until
    kind: Format = DELTA if TABLES[copy].kind == DELTA else ICEBERG
    with _telling(str(place), kind):
        opened = (_delta_added if kind == DELTA else _iceberg_added)(place, since, until)
    if isinstance(opened, Rewritten):
        return opened
    return Path(_copy(str(place), kind, place, opened, since, opened.rows, write))


def _copy(path: str, kind: Format, place: Path, opened: _Opened, since: int, rows: Any, write: Write) -> str:
    table = blake2b(opened.identity.encode(), digest_size=16).hexdigest()
    key = str(place.resolve()), table, since, opened.until
    if key in _COPIES:
        return _COPIES[key]
    folder = tempfile.mkdtemp(prefix=COPIES)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    root = (place if place.is_dir() else place.parents[1]).resolve()

    def written(file: str) -> None:
        with _telling(path, kind):
            write(rows(), file)

    _COPIES[key] = copy = str(Path(folder) / f"{root.name}.parquet")
    about = f"{path}, {opened.version} of a table of {kind}"
    file = LogFile(about, None, None, f"{table}:{since}:{opened.until}", VERSION)
    TABLES[copy] = TableCopy(kind, file, place, table, since, opened.until, written)
    return copy


@contextmanager
def _telling(path: str, kind: Format) -> Iterator[None]:
    """Say what is wrong with a table in our words."""
    try:
        yield
    except ImportError:
        raise DataError(
            f"{path} is a table of {kind}, whose Parquet files also hold rows that were deleted or replaced. Type "
            f"pip install {_LIBRARIES[kind]} pyarrow, which read it as it is; or write its rows to a new file, and "
            "give that"
        ) from None
    except DataError:
        raise
    except Exception as error:  # libraries have many kinds of them
        reason = f"{error}".partition("\n")[0]
        raise DataError(
            f"{path}: this table of {kind} cannot be read ({reason}); write its rows to a new file, and give that"
        ) from None


def refuse_parts(path: str, files: Sequence[str]) -> None:
    """Refuse files that belong to a table: some of their rows may have been deleted or replaced."""
    for folder in {parent for file in files for parent in Path(file).resolve().parents}:
        if format_of(folder):
            raise DataError(
                f"{path}: these files belong to the table {folder.name}, and also hold rows that were deleted or "
                "replaced; give the folder of the table, which is read at its last version"
            )


def _delta(folder: Path) -> _Opened:
    from deltalake import DeltaTable

    table = DeltaTable(str(folder))
    version = table.version()
    rows = getattr(table, "scan", table.to_pyarrow_dataset)  # older versions refuse what they do not know
    return _Opened(f"version {version}", str(table.metadata().id), version, rows)


def _delta_added(folder: Path, since: int, until: int) -> _Opened | Rewritten:
    """Return the rows of the files that each version added, by the log of the table."""
    from deltalake import DeltaTable
    from pyarrow.dataset import FileSystemDataset

    added: dict[int, set[str]] = {}
    for version in range(since + 1, until + 1):
        file = folder / "_delta_log" / f"{version:020}.json"
        if not file.is_file():
            return Rewritten(f"its log does not have version {version} any more")
        actions = [parsed(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
        if any(each["remove"].get("dataChange", True) for each in actions if "remove" in each):
            return Rewritten(f"version {version} deleted or replaced rows")
        files = [each["add"] for each in actions if "add" in each]  # those of a compaction change no data
        added[version] = {unquote(each["path"]) for each in files if each.get("dataChange", True)}

    def rows() -> Any:
        table = DeltaTable(str(folder), version=until).to_pyarrow_dataset()
        fragments = []
        for version, names in added.items():
            there = DeltaTable(str(folder), version=version).to_pyarrow_dataset().get_fragments() if names else ()
            fragments += [each for each in there if each.path in names]
        if len(fragments) < sum(map(len, added.values())):
            raise DataError(f"{folder}: files of the versions {since + 1} to {until} are not there; count it anew")
        return FileSystemDataset(fragments, table.schema, table.format, table.filesystem)

    words = f"the rows added from version {since + 1} to version {until}"
    return _Opened(words, str(DeltaTable(str(folder)).metadata().id), until, rows)


def _iceberg_table(place: Path) -> Any:
    """Return a table of Iceberg, by its metadata file, or by the one with the highest number."""
    from pyiceberg.table import StaticTable

    file = place
    if place.is_dir() and not (place / "metadata" / "version-hint.text").is_file():
        number = {each: int(each.name.removeprefix("v").split("-")[0].split(".")[0]) for each in place.glob(_METADATA)}
        last = [each for each, n in number.items() if n == max(number.values())]
        if len(last) > 1:
            raise DataError(f"{place}: which is the last version of this table is not known; give one of {last[0]} …")
        file = last[0]
    return StaticTable.from_metadata(str(file))


def _iceberg(place: Path) -> _Opened:
    table = _iceberg_table(place)
    snapshot = table.current_snapshot()
    version = "no snapshot" if snapshot is None else f"snapshot {snapshot.snapshot_id}"
    until = _number(snapshot)
    return _Opened(version, str(table.metadata.table_uuid), until, lambda: table.scan().to_arrow_batch_reader())


def _number(snapshot: Any) -> int:
    """Return a number of a snapshot that grows; tables of the first kind have none but the time."""
    return 0 if snapshot is None else snapshot.sequence_number or snapshot.timestamp_ms


def _iceberg_added(place: Path, since: int, until: int) -> _Opened | Rewritten:
    """Return the rows that snapshots appended, if those since then did nothing else but compact files."""
    table = _iceberg_table(place)
    snapshot, ids = table.current_snapshot(), []
    while snapshot is not None and _number(snapshot) > since:
        operation = snapshot.summary.operation.value if snapshot.summary else "an unknown operation"
        if operation not in ("append", "replace"):
            return Rewritten(f"snapshot {snapshot.snapshot_id} deleted or replaced rows")
        ids.append(snapshot.snapshot_id)
        snapshot = table.snapshot_by_id(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id else None
    if not ids or _number(snapshot) != since:
        return Rewritten("the snapshot that was counted is not one of its past")

    def rows() -> Any:
        before = {"from_snapshot_id_exclusive": snapshot.snapshot_id} if snapshot is not None else {}
        return table.incremental_append_scan(**before, to_snapshot_id_inclusive=ids[0]).to_arrow_batch_reader()

    version = f"the rows added by {number_of(len(ids), 'snapshot')} until {ids[0]}"
    return _Opened(version, str(table.metadata.table_uuid), until, rows)
