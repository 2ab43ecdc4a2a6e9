"""Which files a log was read from: names, sizes, dates, and a hash of what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from types import UnionType
from typing import Any

from plumdp.base.errors import DataError

_PART = 1_000_000  # bytes at either end of a file that are hashed
_LISTED = 100  # files; more are described together

WHOLE, ENDS, FAR, MANY = (
    "all of it",
    "its first and last million bytes",
    "nothing: the file is not on this computer",
    "names, sizes and dates of all of them, not their content",
)


@dataclass(frozen=True)
class LogFile:
    """A file of a log, or many of them together; ``hashed`` says what the hash is of."""

    name: str
    size: int | None  # bytes; None if the file is far away
    modified: str | None  # date and time, in UTC
    hash: str  # BLAKE2b; empty if nothing was hashed
    hashed: str

    def __str__(self) -> str:
        if self.size is None:
            return f"{self.name} (hashed: {self.hashed})"
        return f"{self.name}: {self.size:,} bytes, changed {self.modified}, hash {self.hash} of {self.hashed}"

    def to_dict(self) -> dict[str, Any]:
        """Return the same ready for JSON."""
        return asdict(self)


def describe_files(files: Sequence[str]) -> tuple[LogFile, ...]:
    """Return what is known of the files of a log.

    Small files are hashed as a whole, others at both ends, as reading 20 GB once more would take minutes; size and date
    tell of most changes in between.
    """
    if len(files) > _LISTED and not any("://" in file for file in files):
        return (_together(files),)
    return tuple(_describe(file) for file in files)


def _describe(file: str) -> LogFile:
    if "://" in file:
        return LogFile(file, None, None, "", FAR)
    size, modified = _about(file)
    state = blake2b(digest_size=16)
    with Path(file).open("rb") as stream:
        state.update(stream.read(2 * _PART if size <= 2 * _PART else _PART))
        if size > 2 * _PART:
            stream.seek(size - _PART)
            state.update(stream.read(_PART))
    return LogFile(file, size, modified, state.hexdigest(), WHOLE if size <= 2 * _PART else ENDS)


def _together(files: Sequence[str]) -> LogFile:
    listed = [(file, *_about(file)) for file in files]
    state = blake2b("\n".join(f"{file} {size} {date}" for file, size, date in listed).encode(), digest_size=16)
    name = f"{len(files):,} files from {files[0]} to {files[-1]}"
    return LogFile(name, sum(size for _, size, _ in listed), max(date for *_, date in listed), state.hexdigest(), MANY)


def _about(file: str) -> tuple[int, str]:
    about = Path(file).stat()
    return about.st_size, datetime.fromtimestamp(about.st_mtime, UTC).isoformat(timespec="seconds")


def now() -> str:
    """Return the date and time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def log_file_from(given: Any) -> LogFile:
    """Return the file that ``LogFile.to_dict`` made this of; anything else is refused."""
    kinds = {"name": str, "size": int | None, "modified": str | None, "hash": str, "hashed": str}
    return LogFile(**checked_record(given, kinds, "the files of the log"))


def checked_record(given: Any, kinds: Mapping[str, type | UnionType], subject: str) -> Mapping[str, Any]:
    """Return what was read of JSON if it has exactly these entries, of these kinds; anything else is refused."""
    if not (
        isinstance(given, Mapping)
        and given.keys() == kinds.keys()
        and all(isinstance(given[key], kind) for key, kind in kinds.items())
    ):
        raise DataError(f"what is said of {subject} cannot be read")
    return given
