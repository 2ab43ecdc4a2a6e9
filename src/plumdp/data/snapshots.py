"""Tables in formats whose Parquet files also hold rows that were deleted or replaced, read at one version.

A folder with ``_delta_log`` is a table of Delta Lake, one with ``metadata/*.metadata.json`` a table of Iceberg. Which
rows of their files count is known to the libraries of these formats alone, so that a copy is made through them.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, TypeAlias

from plumdp.base.errors import DataError
from plumdp.data.duckdb_errors import COPIES
from plumdp.data.same_files import TABLES, VERSION, LogFile

Format: TypeAlias = Literal["Delta Lake", "Iceberg"]
DELTA: Format = "Delta Lake"
ICEBERG: Format = "Iceberg"
_LIBRARIES = {DELTA: "deltalake", ICEBERG: "pyiceberg"}
_METADATA = "metadata/*.metadata.json"
_COPIES: dict[tuple[str, str], str] = {}


def format_of(folder: Path) -> Format | None:
    """Return the format of the table that a folder is, or nothing."""
    if (folder / "_delta_log").is_dir():
        return DELTA
    return ICEBERG if any(folder.glob(_METADATA)) else None


def copy_of_table(path: str, write: Callable[[Any, str], None]) -> str:
    """Return a Parquet file with the rows of a table, which a path is the folder or a metadata file of, or nothing.

    ``write`` writes what PyArrow can read to a file.
    """
    place = Path(path)
    kind = ICEBERG if place.is_file() and place.match(f"*/{_METADATA}") else format_of(place)
    if not kind:
        return ""
    opened = _delta if kind == DELTA else _iceberg
    try:
        version, identity, rows = opened(place)
        key = str(place.resolve()), identity
        if key not in _COPIES:
            folder = tempfile.mkdtemp(prefix=COPIES)
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            root = (place if place.is_dir() else place.parents[1]).resolve()
            copy, marked = str(Path(folder) / f"{root.name}.parquet"), blake2b(identity.encode(), digest_size=16)
            write(rows(), copy)
            about = f"{path}, {version} of a table of {kind}"
            _COPIES[key], TABLES[copy] = copy, (kind, LogFile(about, None, None, marked.hexdigest(), VERSION))
        return _COPIES[key]
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


def _delta(folder: Path) -> tuple[str, str, Callable[[], Any]]:
    """Return the version of a table, what it has that no other version has, and how to get its rows."""
    from deltalake import DeltaTable

    table = DeltaTable(str(folder))
    version = table.version()
    rows = getattr(table, "scan", table.to_pyarrow_dataset)  # older versions refuse what they do not know
    return f"version {version}", f"{table.metadata().id} {version}", rows


def _iceberg(place: Path) -> tuple[str, str, Callable[[], Any]]:
    """Return the same of a table of Iceberg, by its metadata file, or by the one with the highest number."""
    from pyiceberg.table import StaticTable

    file = place
    if place.is_dir() and not (place / "metadata" / "version-hint.text").is_file():
        number = {each: int(each.name.removeprefix("v").split("-")[0].split(".")[0]) for each in place.glob(_METADATA)}
        last = [each for each, n in number.items() if n == max(number.values())]
        if len(last) > 1:
            raise DataError(f"{place}: which is the last version of this table is not known; give one of {last[0]} …")
        file = last[0]
    table = StaticTable.from_metadata(str(file))
    snapshot = table.current_snapshot()
    version = "no snapshot" if snapshot is None else f"snapshot {snapshot.snapshot_id}"
    return version, f"{table.metadata.table_uuid} {version}", lambda: table.scan().to_arrow_batch_reader()
