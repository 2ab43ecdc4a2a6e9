"""Reads UMB archives (unified Markov binary): the arrays of an explicit model, as a whole."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.errors import ModelError
from plumdp.model.graph import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class UmbModel:
    """An explicit model as it is in the archive."""

    first_choice: IntArray  # (n_states + 1)
    first_transition: IntArray  # (n_choices + 1)
    successor: IntArray  # (n_transitions)
    probability: FloatArray  # (n_transitions)
    initial_states: IntArray
    action: IntArray  # (n_choices)
    states: Mapping[str, npt.NDArray[Any]]
    labels: Mapping[str, BoolArray]
    rewards: Mapping[str, Mapping[str, FloatArray]]  # name → "states" or "choices" → values


def read_umb(path: Path, *, skip: frozenset[str] = frozenset()) -> UmbModel:
    """Return the arrays of an uncompressed archive, without the state variables to skip."""
    with tarfile.open(path, "r:") as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}  # type: ignore[union-attr]
    index = json.loads(files["index.json"])
    system = index["transition-system"]
    n_states, n_choices = system["#states"], system["#choices"]
    first_choice = _offsets(files.get("state-to-choices.bin"), n_states)
    annotations = index.get("annotations", {})
    return UmbModel(
        first_choice,
        _offsets(files.get("choice-to-branches.bin"), n_choices),
        np.frombuffer(files["branch-to-target.bin"], "<u8").astype(np.int32),
        np.frombuffer(files["branch-to-probability.bin"], "<f8"),
        np.flatnonzero(_bits(files["state-is-initial.bin"], n_states)).astype(np.int32),
        _actions(files, n_choices),
        _valuations(index, files, n_states, skip),
        {
            info.get("alias", name): _bits(files[f"annotations/aps/{name}/states/values.bin"], n_states)
            for name, info in annotations.get("aps", {}).items()
        },
        {
            info.get("alias", "" if name == "default" else name): {
                part: np.frombuffer(files[f"annotations/rewards/{name}/{part}/values.bin"], "<f8")
                for part in info["applies-to"]
            }
            for name, info in annotations.get("rewards", {}).items()
        },
    )


def _offsets(data: bytes | None, n: int) -> IntArray:
    """Return the offsets of a group per item; where the file is left out every item has exactly one."""
    return np.arange(n + 1, dtype=np.int32) if data is None else np.frombuffer(data, "<u8").astype(np.int32)


def _bits(data: bytes, n: int) -> BoolArray:
    return np.unpackbits(np.frombuffer(data, np.uint8), count=n, bitorder="little").astype(np.bool_)


def _actions(files: Mapping[str, bytes], n_choices: int) -> IntArray:
    data = files.get("actions/choices/values.bin")
    return np.zeros(n_choices, dtype=np.int32) if data is None else np.frombuffer(data, "<u4").astype(np.int32)


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
        name, kind = entry["name"], entry["type"]["type"]
        size = entry["type"].get("size", 64)
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
