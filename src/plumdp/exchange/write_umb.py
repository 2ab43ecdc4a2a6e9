"""Writing UMB archives (unified Markov binary): interval MDPs for Storm and PRISM, in bulk and bit-exact."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.model.graph import BoolArray, FloatArray, Graph
from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP

Files = dict[str, npt.NDArray[Any]]  # path in the archive → content

_INTERVAL = {"type": "double-interval", "size": 128}
_DOUBLE = {"type": "double", "size": 64}
_BOOL = {"type": "bool", "size": 1}


def write_umb(
    imdp: IntervalMDP,
    path: str | Path,
    *,
    labels: Mapping[str, BoolArray] = {},
    rewards: Mapping[str, RewardStructure] = {},
) -> None:
    """Write an interval MDP as an uncompressed UMB archive, with the bounds as they are, bit by bit.

    If all bounds are equal, as at a point, it is a plain MDP. Labels have one truth value per state; the name of a
    reward structure may be empty. State variables that are texts are left out; states keep their numbers.

    >>> import tempfile
    >>> from plumdp.model.readers.umb import read_umb
    >>> imdp = IntervalMDP.from_arrays([0, 1, 2], [0, 2, 3], [0, 1, 1], [0.1, 0.5, 1], [0.5, 0.9, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_umb(imdp, Path(folder) / "model.umb", labels={"goal": np.array([False, True])})
    ...     written = read_umb(Path(folder) / "model.umb")
    >>> written.successor, written.labels["goal"]
    (array([0, 1, 1], dtype=int32), array([False,  True]))
    """
    graph = imdp.graph
    _check(graph, labels, rewards)
    files = _structure(imdp) | _actions(graph)
    valuations = _add_valuations(files, graph)
    index: dict[str, Any] = {
        "format-version": 1,
        "format-revision": 0,
        "file-data": {"tool": "plumdp"},
        "transition-system": {
            "time": "discrete",
            "#players": 1,
            "#states": graph.n_states,
            "#initial-states": 1,
            "#choices": graph.n_choices,
            "#choice-actions": len(graph.action_names),
            "#branches": graph.n_transitions,
            "#branch-actions": 0,
            "#observations": 0,
            "branch-probability-type": _DOUBLE if imdp.is_point else _INTERVAL,
        },
        "annotations": {"aps": _add_labels(files, labels), "rewards": _add_rewards(files, rewards)},
        **valuations,
    }
    _write(Path(path), {"index.json": np.frombuffer(json.dumps(index, indent=2).encode(), np.uint8)} | files)


def _check(graph: Graph, labels: Mapping[str, BoolArray], rewards: Mapping[str, RewardStructure]) -> None:
    """Refuse arrays that do not fit the graph, and a label "init", which every reader adds itself."""
    parts: list[tuple[str, npt.NDArray[Any], int, str]] = [
        (f"label {name!r}", values, graph.n_states, "states") for name, values in labels.items()
    ]
    for name, reward in rewards.items():
        if reward.state is not None:
            parts.append((f"reward {name!r}", reward.state, graph.n_states, "states"))
        if reward.choice is not None:
            parts.append((f"reward {name!r}", reward.choice, graph.n_choices, "choices"))
    for what, values, size, things in parts:
        if values.shape != (size,):
            raise ModelError(f"{what} has the shape {values.shape} for {size} {things}")
    if "init" in labels:
        raise ModelError("the label 'init' means the initial state in UMB; give yours another name")


def _structure(imdp: IntervalMDP) -> Files:
    graph = imdp.graph
    is_initial = np.zeros(graph.n_states, dtype=np.bool_)
    is_initial[graph.initial_state] = True
    table = imdp.lower if imdp.is_point else np.stack([imdp.lower, imdp.upper], axis=1)
    return {
        "state-to-choices.bin": graph.first_choice.astype("<u8"),
        "state-is-initial.bin": _bits(is_initial),
        "choice-to-branches.bin": graph.first_transition.astype("<u8"),
        "branch-to-target.bin": graph.successor.astype("<u8"),
        "branch-to-probability.bin": table[imdp.expression].astype("<f8", copy=False),
    }


def _actions(graph: Graph) -> Files:
    names = [name.encode() for name in graph.action_names]
    return {
        "actions/choices/values.bin": graph.action.astype("<u4"),
        "actions/choices/string-mapping.bin": np.array([0, *accumulate(map(len, names))], dtype="<u8"),
        "actions/choices/strings.bin": np.frombuffer(b"".join(names), np.uint8),
    }


def _add_valuations(files: Files, graph: Graph) -> dict[str, Any]:
    """Add the state variables, 32 bits for a whole number and 8 for a Boolean; return their part of the index."""
    parts: list[npt.NDArray[np.uint8]] = []
    variables: list[dict[str, Any]] = []
    for name, values in graph.states.items():
        if values.dtype.kind == "b":
            parts.append(values.astype(np.uint8)[:, None])
            variables += [{"name": name, "type": _BOOL}, {"padding": 7}]
        elif values.dtype.kind in "iu":
            parts.append(values.astype("<i4")[:, None].view(np.uint8))
            variables.append({"name": name, "type": {"type": "int", "size": 32}})
    if not parts:
        return {}
    files["valuations/states/valuations.bin"] = np.concatenate(parts, axis=1)
    return {"valuations": {"states": {"unique": False, "classes": [{"variables": variables}]}}}


def _add_labels(files: Files, labels: Mapping[str, BoolArray]) -> dict[str, Any]:
    """Add the files of all labels; return their part of the index."""
    index = {}
    for i, (name, values) in enumerate(labels.items()):
        files[f"annotations/aps/{i}/states/values.bin"] = _bits(values)
        index[str(i)] = {"alias": name, "applies-to": ["states"], "type": _BOOL}
    return index


def _add_rewards(files: Files, rewards: Mapping[str, RewardStructure]) -> dict[str, Any]:
    """Add the files of all reward structures; return their part of the index."""
    index = {}
    for i, (name, reward) in enumerate(rewards.items()):
        parts: dict[str, FloatArray | None] = {"states": reward.state, "choices": reward.choice}
        present = {part: values for part, values in parts.items() if values is not None}
        for part, values in present.items():
            files[f"annotations/rewards/{i}/{part}/values.bin"] = values.astype("<f8", copy=False)
        index[str(i)] = {"alias": name, "applies-to": [*present], "type": _DOUBLE}
    return index


def _bits(values: BoolArray) -> npt.NDArray[np.uint8]:
    """Return truth values as bits, the first one lowest, filled up to whole 64-bit words."""
    packed = np.packbits(values, bitorder="little")
    return np.pad(packed, (0, -len(packed) % 8))


def _write(path: Path, files: Files) -> None:
    with tarfile.open(path, "w:") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = content.nbytes
            archive.addfile(entry, io.BytesIO(np.ascontiguousarray(content).data))
