"""The origins of data, files and other parts of counts, so that none is counted twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b, file_digest, sha256
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args
from uuid import uuid4

from plumdp.base.errors import DataError
from plumdp.model.text import listing, number_of

_PART = 1_000_000  # bytes at either end of a file that are hashed
EXAMPLES = Path(__file__).parent / "tables"  # logs that come with plumdp
_LISTED = 100  # files; more are described together

Hashed: TypeAlias = Literal[
    "all of it",
    "its first and last million bytes",
    "nothing: the file is not on this computer",
    "names, sizes and dates of all of them, not their content",
    "the identity and the version of the table",
]
WHOLE, ENDS, FAR, MANY, VERSION = get_args(Hashed)


@dataclass(frozen=True)
class LogFile:
    """A file of a log, or many of them together; ``hashed`` says what the hash is of."""

    name: str
    size: int | None  # bytes; None if the file is far away
    modified: str | None  # date and time, in UTC
    hash: str  # BLAKE2b; empty if nothing was hashed
    hashed: str

    @property
    def number(self) -> int:
        """How many files these are, which the name of many begins with."""
        return int(self.name.partition(" ")[0].replace(",", "")) if self.hashed == MANY else 1

    def __str__(self) -> str:
        if self.size is None:
            return f"{self.name} (hashed: {self.hashed})"
        return f"{self.name}: {self.size:,} bytes, changed {self.modified}, hash {self.hash} of {self.hashed}"


class TableCopy(NamedTuple):
    """A Parquet file with rows of a table: those at one version, or those that were added after another one."""

    kind: str  # the format of the table
    file: LogFile  # what it is a copy of; the hash has ``table``, ``since`` and ``until``
    place: Path
    table: str  # a hash of the identity of the table
    since: int  # the version before, by a number that grows; -1 if there is none
    until: int
    write: Callable[[str], None]  # the file, which is made when it is first read


TABLES: dict[str, TableCopy] = {}
"""Copies of tables, by their files."""
_VERSIONS = re.compile(r"([0-9a-f]+):(-?\d+):(\d+) None")  # the key of what a table had


def describe_files(files: Sequence[str]) -> tuple[LogFile, ...]:
    """Return the descriptions of the files of a log.

    Small files are hashed as a whole, others at both ends, as reading 20 GB once more would take minutes; size and date
    tell of most changes in between.
    """
    if len(files) > _LISTED and not any("://" in file or file in TABLES for file in files):
        return (_together(files),)
    return tuple(_describe(file) for file in files)


def _describe(file: str) -> LogFile:
    if file in TABLES:
        return TABLES[file].file
    if "://" in file:
        return LogFile(file, None, None, "", FAR)
    size, modified = _about(file)
    state = blake2b(digest_size=16)
    with Path(file).open("rb") as stream:
        state.update(stream.read(2 * _PART if size <= 2 * _PART else _PART))
        if size > 2 * _PART:
            stream.seek(size - _PART)
            state.update(stream.read(_PART))
    name = f"example:{Path(file).stem}" if Path(file).parent == EXAMPLES else file  # as it was typed
    return LogFile(name, size, modified, state.hexdigest(), WHOLE if size <= 2 * _PART else ENDS)


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


_FIRST = " first "  # between the key of data and how many runs or rows of these came first
OF_FRAME = "frame "  # how the keys of data frames begin
ANEW = "if each file numbers its runs anew, count each file by itself, and add the counts"
AT_ONCE = "read both at once, as one data frame in which each run has a name of its own"
_START = 1 << 16  # bytes that are compared first: most files of one size differ there


@dataclass(frozen=True)
class DataPart:
    """Data that counts are made of: what people call them, and a key that they have wherever they are counted."""

    name: str
    key: str  # a hash of what a file or a data frame holds, or of a seed; otherwise a random number
    is_file: bool = False
    is_simulated: bool = False  # plumdp ran it and counted every step

    @property
    def origin(self) -> str:
        """The key of the data that it is the first part of, or its own."""
        return self.key.partition(_FIRST)[0]

    @property
    def mark(self) -> str:
        """A hash of the origin: what policies keep of it.

        If it is not all of it, how many runs or rows came first, and of which parts together, if of several, are added.
        """
        origin, is_first, n = self.key.partition(_FIRST)
        return _mark(origin) + (f":{n.replace(' ', ':')}" if is_first else "")

    def of_unit(self, unit: str) -> DataPart:
        """Return the rows of one unit in it, which are data of their own."""
        return replace(self, name=f"{unit} in {self.name}", key=f"{self.key} unit {unit}")

    @property
    def versions(self) -> tuple[str, int, int] | None:
        """If it is of a table: a hash of its identity, and after which version its rows were added, until which one."""
        found = _VERSIONS.fullmatch(self.origin)
        return None if found is None else (found[1], int(found[2]), int(found[3]))

    def overlaps(self, other: DataPart) -> bool:
        """Return whether both have data in common."""
        one, two = self.versions, other.versions
        if one is None or two is None:
            return self.origin == other.origin
        return one[0] == two[0] and one[1] < two[2] and two[1] < one[2]

    @property
    def is_known(self) -> bool:
        """Whether its key is the same for whoever counts it again."""
        return self.is_file or self.is_frame or self.is_simulated

    @property
    def is_frame(self) -> bool:
        """Whether it is a data frame."""
        return self.key.startswith(OF_FRAME)


def marks_in(text: str) -> set[str]:
    """Return the marks of the origins that a certificate names as its parts.

    >>> sorted(marks_in("a1 b2:400.0 b2:7.0:c3"))
    ['a1', 'b2']
    """
    return {mark.partition(":")[0] for mark in text.split()}


def first_of(parts: Sequence[DataPart], words: str, n: float) -> tuple[DataPart, ...]:
    """Return the first n runs or rows of all parts together, as a part of each; ``words`` says which they are."""
    name = f"{words} of {listing([part.name for part in parts])}"
    keys = (f"{part.origin}{_FIRST}{n!r} {together(parts)}".strip() for part in parts)
    return tuple(replace(part, name=name, key=key) for part, key in zip(parts, keys, strict=True))


def together(parts: Sequence[DataPart]) -> str:
    """Return a mark of several parts in their order, or nothing for one."""
    return _mark(" ".join(part.origin for part in parts)) if len(parts) > 1 else ""


def _mark(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


def part_of_file(file: LogFile) -> DataPart:
    """Return a file of a log as a part of counts; of one far away, only the name is known."""
    if file.hashed == FAR:
        return DataPart(f"{file.name} (known by its name only)", file.name, is_file=True)
    return DataPart(f"{file.name} (hash {file.hash[:8]})", f"{file.hash} {file.size}", is_file=True)


def new_parts(steps: int, *, key: str = "", is_simulated: bool = False) -> tuple[DataPart, ...]:
    """Return data that come from no file as a part of counts; nothing if there are no steps.

    ``key`` is that of a data frame, or of the random numbers of a simulation, whatever the number of its runs. Without
    one, no other counts have this part.
    """
    name = number_of(steps, "simulated step") if is_simulated else f"{number_of(steps, 'step')} not read from a file"
    return (DataPart(name, key or uuid4().hex, is_simulated=is_simulated),) if steps else ()


def refuse_same_parts(parts: Sequence[DataPart], others: Sequence[DataPart]) -> None:
    """Refuse to add counts that have data in common."""
    keys, of_tables = {part.origin for part in others}, [part for part in others if part.versions]
    both = [part for part in parts if part.origin in keys or (part.versions and any(map(part.overlaps, of_tables)))]
    if not both:
        return
    if both[0].is_simulated:
        seed = "both counts have runs of one seed, which are the same runs, or depend on one another"
        raise DataError(f"{seed}: {both[0].name}; simulate one of them with another seed")
    it = "it" if len(both) == 1 and both[0].is_file else "them"
    alike = "; if they are different data that happen to look alike, "
    is_data = both[0].is_file or both[0].is_frame
    raise DataError(
        f"both counts contain {listing([part.name for part in both], most=3)}, which would be counted twice; add {it} "
        f"once{f'{alike}{AT_ONCE}' if is_data else ''}"
    )


def refuse_same_files(files: Sequence[str]) -> None:
    """Refuse a file that is named twice, or under two names; of files far away (``s3://…``), only names are seen."""
    for first, second, *_ in _alike([files], _place):
        same = f"{first} is named twice" if first == second else f"{first} and {second} are the same file"
        raise DataError(f"{same}, so that it would be counted twice; name it once")


def refuse_copies(files: Sequence[str], has_rows: Callable[[str], bool]) -> None:
    """Refuse files with the same content, unless they have no rows. Only files of the same size are read for that."""
    groups = [[file for file in files if "://" not in file]]
    for key in (_size, _start, _hash):
        groups = _alike(groups, key)
    for first, second, *_ in groups:
        if has_rows(first):
            raise DataError(
                f"{first} and {second} have the same content, which would be counted twice; leave out one if it is a "
                f"copy; if they are different runs that look alike, {AT_ONCE}"
            )


def _alike(groups: Iterable[Sequence[str]], key: Callable[[str], Hashable]) -> list[list[str]]:
    return [alike for group in groups for alike in _grouped(group, key) if len(alike) > 1]


def _grouped(files: Sequence[str], key: Callable[[str], Hashable]) -> list[list[str]]:
    groups: dict[Hashable, list[str]] = {}
    for file in files:
        groups.setdefault(key(file), []).append(file)
    return [*groups.values()]


def _place(file: str) -> Hashable:
    """Return the identity of a file, the same for all of its names and links."""
    if "://" in file or file in TABLES:
        return file
    about = Path(file).stat()
    return (about.st_dev, about.st_ino) if about.st_ino else str(Path(file).resolve())


def _size(file: str) -> int:
    return Path(file).stat().st_size


def _start(file: str) -> bytes:
    with Path(file).open("rb") as stream:
        return sha256(stream.read(_START)).digest()


def _hash(file: str) -> bytes:
    with Path(file).open("rb") as stream:
        return file_digest(stream, "sha256").digest()
