"""Refuses files that would be counted twice: the same file under two names, and copies of a file."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

from plumdp.errors import DataError

_START = 1 << 16  # bytes that are compared first: most files of one size differ there
_CHUNK = 1 << 20


def refuse_same_files(files: Sequence[str]) -> None:
    """Refuse a file that is named twice, or under two names; of files far away (``s3://…``), only names are seen."""
    for first, second, *_ in _alike([files], _place):
        same = f"{first} is named twice" if first == second else f"{first} and {second} are the same file"
        raise DataError(f"{same}, so that it would be counted twice; name it once")


def refuse_copies(files: Sequence[str], has_rows: Callable[[str], bool]) -> None:
    """Refuse files with the same content, unless they have no rows. Only files of the same size are read for that."""
    groups = [[file for file in files if "://" not in file]]
    for key in (_size, partial(_hash, limit=_START), _hash):
        groups = _alike(groups, key)
    for first, second, *_ in groups:
        if has_rows(first):
            raise DataError(
                f"{first} and {second} have the same content, so that it would be counted twice; leave out one of them "
                "if it is a copy. If they are different runs that happen to look alike, or if each file numbers its "
                'episodes anew, give partitions="files"'
            )


def _alike(groups: Iterable[Sequence[str]], key: Callable[[str], Hashable]) -> list[list[str]]:
    return [alike for group in groups for alike in _grouped(group, key) if len(alike) > 1]


def _grouped(files: Sequence[str], key: Callable[[str], Hashable]) -> list[list[str]]:
    groups: dict[Hashable, list[str]] = {}
    for file in files:
        groups.setdefault(key(file), []).append(file)
    return [*groups.values()]


def _place(file: str) -> Hashable:
    """Return what two names of one file have in common, links included."""
    if "://" in file:
        return file
    about = Path(file).stat()
    return (about.st_dev, about.st_ino) if about.st_ino else str(Path(file).resolve())


def _size(file: str) -> int:
    return Path(file).stat().st_size


def _hash(file: str, limit: int | None = None) -> bytes:
    digest = sha256()
    with Path(file).open("rb") as stream:
        while chunk := stream.read(_CHUNK if limit is None else limit):
            digest.update(chunk)
            if limit is not None:
                break
    return digest.digest()
