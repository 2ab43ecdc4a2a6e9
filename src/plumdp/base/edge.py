"""What crosses the edge: texts of files on their way to a screen or a page, and files, each replaced as a whole."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TextIO, TypeVar

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
        raise unwritable(target, error) from None
    finally:
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)


MOST_BYTES, _MOST_TIMES = 2**29, 100  # of what a file unpacks to: so many bytes, or times its size
_ASIDE = ".plumdp-"  # before the names of folders with what is not complete


def is_left(name: str) -> bool:
    """Return whether a file or folder of this name was left by a writer that was killed."""
    return name.startswith(_ASIDE)


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file as a whole or not at all."""
    with replacing(path) as fresh:
        fresh.write_bytes(content.encode() if isinstance(content, str) else content)


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
