"""The reader of UMB archives (unified Markov binary), which returns the arrays of an explicit model."""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.edge import most_bytes
from plumdp.base.errors import ModelError, fault_of
from plumdp.base.json_values import parsed, read_as
from plumdp.model.graph import BoolArray, FloatArray, IntArray

_KNOWN = re.compile(r"index\.json|[a-z-]+\.bin|(actions|annotations|valuations)/.+\.bin")
_LARGEST, _WIDEST = 2**31 - 1, 64  # of an index; bits of a state variable


@dataclass(frozen=True, eq=False)
class UmbModel:
    """An explicit model with the arrays of the archive."""

    first_choice: IntArray  # (n_states + 1)
    first_transition: IntArray  # (n_choices + 1)
    successor: IntArray  # (n_transitions)
    probability: FloatArray  # (n_transitions), or (n_transitions, 2): lower and upper bounds
    initial_states: IntArray
    action: IntArray  # (n_choices)
    action_names: tuple[str, ...]  # empty, if there are none in the archive
    states: Mapping[str, npt.NDArray[Any]]
    labels: Mapping[str, BoolArray]
    rewards: Mapping[str, Mapping[str, FloatArray]]  # name → "states", "choices" or "branches" → values


def read_umb(path: Path, *, skip: frozenset[str] = frozenset()) -> UmbModel:
    """Return the arrays of an archive, compressed or not, without the state variables to skip."""
    index, files = read_archive(path)
    try:
        return _model(index, files, skip)
    except ModelError:
        raise
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, MemoryError) as error:
        raise _damaged(error) from None


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the index of an archive, compressed or not, and the content of its files that may be asked for."""
    files: dict[str, bytes] = {}
    try:
        left = most = most_bytes(path)
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                left -= member.size + tarfile.BLOCKSIZE
                if left < 0:
                    raise ModelError(f"it unpacks to more than {most:,} bytes")
                if member.name in files:
                    raise ModelError(f"{member.name} is in it twice")
                if member.isfile() and _KNOWN.fullmatch(member.name):
                    files[member.name] = archive.extractfile(member).read()  # type: ignore[union-attr]
        return parsed(files["index.json"]), files
    except ModelError:
        raise
    except (tarfile.TarError, zlib.error, EOFError, OSError, LookupError, ValueError, MemoryError) as error:
        raise _damaged(error) from None


def _damaged(error: Exception) -> ModelError:
    return ModelError(f"this is not a UMB archive, or it is damaged: {fault_of(error)}")


def _model(index: Mapping[str, Any], files: Mapping[str, bytes], skip: frozenset[str]) -> UmbModel:
    system = index["transition-system"]
    _require_mdp(system)
    n_states, n_choices = (read_as(int, system[name], name) for name in ("#states", "#choices"))
    if n_states > 8 * len(files["state-is-initial.bin"]) or n_choices > len(files["branch-to-target.bin"]) // 8:
        raise ModelError(f"{n_states:,} states and {n_choices:,} choices are more than its files have")
    first_choice = _offsets(files.get("state-to-choices.bin"), n_states)
    annotations = index.get("annotations", {})
    return UmbModel(
        first_choice,
        _offsets(files.get("choice-to-branches.bin"), n_choices),
        _indices(files["branch-to-target.bin"], "<u8"),
        _numbers(files["branch-to-probability.bin"], system["branch-probability-type"]),
        np.flatnonzero(_bits(files["state-is-initial.bin"], n_states)).astype(np.int32),
        _actions(files, n_choices),
        _action_names(files),
        _valuations(index, files, n_states, skip),
        {
            info.get("alias", name): _bits(files[f"annotations/aps/{name}/states/values.bin"], n_states)
            for name, info in annotations.get("aps", {}).items()
        },
        {
            info.get("alias", "" if name == "default" else name): {
                part: _numbers(files[f"annotations/rewards/{name}/{part}/values.bin"], info["type"])
                for part in info["applies-to"]
            }
            for name, info in annotations.get("rewards", {}).items()
        },
    )


def _require_mdp(system: Mapping[str, Any]) -> None:
    """Refuse what is neither a Markov decision process nor a chain in discrete time."""
    for name, allowed, what in (
        ("time", ("discrete",), "it is not in discrete time"),
        ("#players", (0, 1), "it is a game of several players"),
        ("#observations", (0,), "its states are observed in part"),
    ):
        if system.get(name, allowed[0]) not in allowed:
            raise ModelError(f"{what}; give a Markov decision process or a chain in discrete time")


def _numbers(data: bytes, kind: Mapping[str, Any]) -> FloatArray:
    """Return numbers (n), or the bounds of intervals (n, 2), as doubles.

    Fractions are rounded to the nearest double.
    """
    name = kind["type"]
    width = 2 if name.endswith("-interval") else 1
    scalar, size = name.removesuffix("-interval"), {"double": 64, "rational": 128}
    if scalar not in size or kind.get("size", width * size[scalar]) != width * size[scalar]:
        raise ModelError(f"numbers of type {name} and {kind.get('size')} bits cannot be read; write doubles")
    if scalar == "double":
        values = np.frombuffer(data, "<f8")
    else:  # a signed numerator, then an unsigned denominator
        parts = zip(np.frombuffer(data, "<i8")[::2].tolist(), np.frombuffer(data, "<u8")[1::2].tolist(), strict=True)
        values = np.array([numerator / denominator for numerator, denominator in parts])
    return values.reshape(-1, 2) if width == 2 else values


def _offsets(data: bytes | None, n: int) -> IntArray:
    """Return the offsets of a group per item, where every item has exactly one if the file is left out."""
    return np.arange(n + 1, dtype=np.int32) if data is None else _indices(data, "<u8")


def _indices(data: bytes, kind: str) -> IntArray:
    """Return numbers of states, choices or branches, which have 32 bits here."""
    wide = np.frombuffer(data, kind)
    if len(wide) and int(wide.max()) > _LARGEST:
        raise ModelError(f"index {int(wide.max()):,} is beyond {_LARGEST:,}, the largest one")
    return wide.astype(np.int32)


def _bits(data: bytes, n: int) -> BoolArray:
    return np.unpackbits(np.frombuffer(data, np.uint8), count=n, bitorder="little").astype(np.bool_)


def _actions(files: Mapping[str, bytes], n_choices: int) -> IntArray:
    data = files.get("actions/choices/values.bin")
    return np.zeros(n_choices, dtype=np.int32) if data is None else _indices(data, "<u4")


def _action_names(files: Mapping[str, bytes]) -> tuple[str, ...]:
    if "actions/choices/strings.bin" not in files:
        return ()
    return _strings(files["actions/choices/string-mapping.bin"], files["actions/choices/strings.bin"])


def _strings(offsets: bytes, text: bytes) -> tuple[str, ...]:
    ends = np.frombuffer(offsets, "<u8").tolist()
    return tuple(text[start:end].decode() for start, end in pairwise(ends))


def _valuations(
    index: Mapping[str, Any], files: Mapping[str, bytes], n_states: int, skip: frozenset[str]
) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of the bit-packed state valuations."""
    if "valuations" not in index:
        return {}
    classes = index["valuations"]["states"]["classes"]
    if len(classes) != 1:
        raise ModelError("the states have valuations of several kinds, which cannot be read")
    rows = np.frombuffer(files["valuations/states/valuations.bin"], np.uint8)
    packed = rows.reshape(n_states, -1) if len(rows) else np.zeros((n_states, 0), np.uint8)
    columns: dict[str, npt.NDArray[Any]] = {}
    position = 0
    for entry in classes[0]["variables"]:
        if "padding" in entry:
            position += entry["padding"]
            continue
        name, kind = read_as(str, entry["name"], "the name of a state variable"), entry["type"]["type"]
        size = entry["type"].get("size", 64)
        if not 1 <= size <= _WIDEST:
            raise ModelError(f"state variable {name} has {size} bits; at most {_WIDEST} can be read")
        if name not in skip:
            columns[name] = _column(name, kind, _bit_field(packed, position, size), size, entry.get("offset", 0))
        position += size
    return columns


def _column(name: str, kind: str, code: npt.NDArray[np.uint64], size: int, offset: int) -> npt.NDArray[Any]:
    if kind == "bool":
        return code.astype(np.bool_)
    if kind not in ("uint", "int"):
        raise ModelError(f"state variable {name} is of type {kind}; use integers or Booleans")
    value = code.astype(np.int64)
    if kind == "int" and size < 64:
        value = np.where(value >= 1 << (size - 1), value - (1 << size), value)
    value += offset
    column = value.astype(np.int32)
    if (column != value).any():
        raise ModelError(f"state variable {name} leaves the range of 32-bit integers")
    return column


def _bit_field(packed: npt.NDArray[np.uint8], start: int, size: int) -> npt.NDArray[np.uint64]:
    """Return ``size`` bits from bit ``start`` of each row, least significant first."""
    value = np.zeros(len(packed), dtype=np.uint64)
    for byte in range(start // 8, (start + size + 7) // 8):
        shift = 8 * byte - start  # where this byte's lowest bit belongs
        part = packed[:, byte].astype(np.uint64)
        value |= part << np.uint64(shift) if shift >= 0 else part >> np.uint64(-shift)
    return value & np.uint64((1 << size) - 1)
