"""What crosses the edge: texts of files on their way to screens, pages and spreadsheets, and whole files."""

from __future__ import annotations

import csv
import ctypes
import gzip
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, BinaryIO, TextIO, TypeVar

from plumdp.base.errors import DataError, visible

_T = TypeVar("_T")


class Visible:
    """A stream on which control characters are seen and do nothing; ``controlled`` is the one that takes them."""

    def __init__(self, stream: TextIO) -> None:
        self.controlled = stream

    def write(self, text: str) -> int:
        """Write a text."""
        return self.controlled.write(visible(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.controlled, name)


def controlled(stream: TextIO) -> TextIO:
    """Return the stream for texts that were made visible already."""
    return stream.controlled if isinstance(stream, Visible) else stream


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give the place of a new file or folder, which takes the name of the path at the end; or nothing changes.

    The place is in a folder with a name of its own, closed to others, beside the path: two writers never share it, and
    links that lie there are not followed. Devices, such as ``/dev/stdout``, are written directly.
    """
    target = Path(path)
    if re.match(r"/(dev|proc)/(?!shm/)", str(target.absolute())):
        yield target
        return
    aside = None
    try:
        aside = Path(mkdtemp(prefix=_ASIDE, dir=target.parent))
        yield aside / target.name
        _put(aside / target.name, target)
    except OSError as error:
        if any(map(is_left, target.parts)):  # of a folder that is written itself: its own place is told
            raise
        raise unwritable(target, error) from None
    finally:
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)


MOST_BYTES, _MOST_TIMES = 2**29, 100  # of what a file unpacks to: so many bytes, or times its size
_DEFLATED, _COMPRESSED = 1032, 2  # bytes for which gzip needs one, at best; the kind of a block of zstd
_ASIDE = ".plumdp-"  # before the names of folders with what is not complete


def is_left(name: str) -> bool:
    """Return whether a file or folder of this name was left by a writer that was killed."""
    return name.startswith(_ASIDE)


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file as a whole or not at all."""
    with replacing(path) as fresh:
        fresh.write_bytes(content.encode() if isinstance(content, str) else content)


SHEET = ".sheet.csv"  # at the end of the names of files for spreadsheets
_CELL = r"(^|[;,\t|\r\n])"  # where a cell may begin, with whatever separator a spreadsheet reads it
_RUNS = re.compile(_CELL + r"(?=[\t\r\n]|\s*['=+\-@\uff1d\uff0b\uff0d\uff20])")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:[.,][0-9]+)*(?:[eE][-+]?[0-9]+)?")


def is_sheet(path: str | Path) -> bool:
    """Return whether a file is for spreadsheets, such as ``policy.sheet.csv``: no cell in it runs."""
    return str(path).lower().endswith(SHEET)


def inert(cell: object) -> object:
    """Return a cell with an apostrophe before all that a spreadsheet would run; a number is one.

    >>> inert("=1+1"), inert("-1.5"), inert(-1.5), inert("go"), inert("go;@x")
    ("'=1+1", '-1.5', -1.5, 'go', "go;'@x")
    """
    return cell if not isinstance(cell, str) or _NUMBER.fullmatch(cell) else _RUNS.sub(r"\1'", cell)


def meant(cell: str) -> str:
    """Return the text of which ``inert`` made a cell."""
    return re.sub(f"{_CELL}'", r"\1", cell)


def write_rows(path: str | Path, names: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file, with names in the first line; every text is ``inert`` if the file is for spreadsheets."""
    with replacing(path) as fresh, fresh.open("w", newline="", encoding="utf-8") as file:
        for row in chain([names], rows):
            csv.writer(file).writerow(map(inert, row) if is_sheet(path) else row)


def unwritable(target: Path, error: OSError) -> DataError:
    """Return the error for a place at which writing failed."""
    return DataError(f"{target} cannot be written: {error.strerror or error}")


def _put(fresh: Path, target: Path) -> None:
    """Give what was written its name, once it is on disk; an old folder takes its place, if the system swaps them."""
    for each in (fresh, *fresh.rglob("*")):
        _sync(each)
    if not fresh.is_dir() or not target.is_dir():
        fresh.replace(target)
    elif not _swap(fresh, target):
        old = target.replace(fresh.with_name("old"))
        try:
            fresh.replace(target)
        except OSError:
            old.replace(target)
            raise
    _sync(target.parent)


def _sync(path: Path) -> None:
    """Wait until a file or a folder is on disk; not every system lets one wait for folders."""
    with suppress(OSError if path.is_dir() else PermissionError):
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _swap(one: Path, other: Path) -> bool:
    """Exchange the names of two folders in one step, so that readers find either, and return whether that was done."""
    names = [os.fsencode(each.absolute()) for each in (one, other)]
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        if hasattr(library, "renameat2"):  # of Linux; -100 is the working directory, 2 means an exchange
            return bool(library.renameat2(-100, names[0], -100, names[1], 2) == 0)
        return bool(library.renamex_np(*names, 2) == 0)  # of macOS
    return False


def most_bytes(packed: Path) -> int:
    """Return how many bytes a packed file may have when it is unpacked; results and models are far below."""
    return max(MOST_BYTES, _MOST_TIMES * packed.stat().st_size)


def read_whole(file: Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file that others may have written, unless it is larger than all that is read at once."""
    if (size := file.stat().st_size) > most:
        raise DataError(f"{file} has {size:,} bytes; at most {most:,} are read")
    return file.read_bytes()


def require_unpackable(file: str) -> None:
    """Refuse a packed log of this computer that unpacks to much more than logs do; zstd is taken at its most."""
    path, ending = Path(file), file.lower().rpartition(".")[2]
    if "://" not in file and ending in ("gz", "zst") and path.is_file():
        state = path.stat()
        most = most_bytes(path)
        if _unpacked(file, most, (state.st_size, state.st_mtime_ns)) > most:
            unpack, few = ("gunzip" if ending == "gz" else "unzstd"), f"{most:,} bytes"
            raise DataError(f"{file}: it may unpack to more than {few}; if you trust it, {unpack} it, and read that")


@lru_cache
def _unpacked(file: str, most: int, state: tuple[int, int]) -> int:
    """Return the bytes of a packed file, counted until they are more than the most; 0 if they cannot be too many."""
    total = 0
    if state[0] * _DEFLATED <= most and file.lower().endswith("gz"):
        return 0
    with (
        open(file, "rb") as packed,
        suppress(EOFError, IndexError, OSError, ValueError, zlib.error),
    ):  # whose reader refuses it
        for size in _sizes_of_blocks(packed) if file.lower().endswith("zst") else _sizes_of_pieces(packed):
            total += size
            if total > most:
                break
    return total


def _sizes_of_pieces(packed: BinaryIO) -> Iterator[int]:
    with gzip.open(packed) as stream:
        while piece := stream.read(1 << 20):
            yield len(piece)


def _sizes_of_blocks(packed: BinaryIO) -> Iterator[int]:
    """Yield the most that each block of zstd unpacks to (RFC 8878, 3.1.1), without unpacking any."""
    while magic := int.from_bytes(packed.read(4), "little"):
        if magic >> 4 == 0x184D2A5:  # a frame to be skipped
            packed.seek(int.from_bytes(packed.read(4), "little"), 1)
            continue
        about = packed.read(1)[0]
        is_single = about >> 5 & 1
        packed.seek((not is_single) + (0, 1, 2, 4)[about & 3] + (is_single, 2, 4, 8)[about >> 6], 1)
        is_last = 0
        while not is_last:
            first, *others = packed.read(3)
            size = (first | others[0] << 8 | others[1] << 16) >> 3
            is_last, kind = first & 1, first >> 1 & 3
            yield size if kind < _COMPRESSED else 1 << 17
            packed.seek(1 if kind == 1 else size, 1)  # one byte that is repeated, or the block
        packed.seek(about & 4, 1)


def read_steadily(folder: Path, read: Callable[[], _T]) -> _T:
    """Return what a function reads from a folder; it reads again if another folder took the name meanwhile."""
    while True:
        before = _identity(folder)
        try:
            found = read()
        except DataError:
            if _identity(folder) == before:
                raise
            continue
        if _identity(folder) == before:
            return found


def _identity(folder: Path) -> tuple[int, ...]:
    try:
        state = folder.stat()
    except OSError:
        return ()
    return state.st_dev, state.st_ino, state.st_ctime_ns
