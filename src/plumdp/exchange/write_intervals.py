"""Writes interval models as UMB archives (unified Markov binary) for Storm and PRISM, in bulk and bit-exact."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.edge import replacing
from plumdp.base.errors import ModelError
from plumdp.model.graph import BoolArray, FloatArray, Graph
from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP, IntervalModel, require_interval_model

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
    IntervalModel(imdp, labels, rewards)  # refuses labels and rewards that do not fit
    if "init" in labels:
        raise ModelError("the label 'init' means the initial state in UMB; give yours another name")
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
    with replacing(path) as fresh, tarfile.open(fresh, "w:") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = content.nbytes
            archive.addfile(entry, io.BytesIO(np.ascontiguousarray(content).data))


def text_column(file: Path, name: str, graph: Graph) -> list[str]:
    """Return the values of a state variable as words: numbers, ``true`` and ``false``, or texts without separators."""
    values = graph.states[name]
    texts = [str(value).lower() for value in values.tolist()] if values.dtype.kind == "b" else [*map(str, values)]
    for text in set(texts) | {name}:
        if any(mark in text for mark in "(),&=:[]\n\t") or text != text.strip():
            problem = f"state variable {name}: {text!r} has marks that separate values in this format"
            raise ModelError(f"{file}: {problem}; choose another one")
    return texts


INTERVAL_WRITERS: Mapping[str, Callable[[IntervalModel, Path], None]] = {
    ".umb": lambda model, path: write_umb(model.mdp, path, labels=model.labels, rewards=model.rewards),
}


def write_interval_model(model: IntervalModel | IntervalMDP, path: str | Path) -> None:
    """Write an interval model for Storm or PRISM, in the format that the file's name ends in; bounds stay bit by bit.

    Other tools know no regions: they are written as intervals, which allow nature more.

    Parameters
    ----------
    model
        The intervals, with or without labels and rewards.
    path
        The file, whose name ends in ``.umb``, a UMB archive.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from plumdp.exchange import read_interval_model
    >>> mdp = IntervalMDP.from_arrays([0, 1, 2], [0, 2, 3], [0, 1, 1], [0.1, 0.5, 1], [0.5, 0.9, 1])
    >>> with TemporaryDirectory() as folder:
    ...     write_interval_model(mdp, Path(folder) / "model.umb")
    ...     read_interval_model(Path(folder) / "model.umb").mdp.upper
    array([0.5, 0.9, 1. ])
    """
    model = require_interval_model("write_interval_model", model)
    unknown = [name for name, reward in model.rewards.items() if reward.learned is not None]
    if unknown:
        raise ModelError(f"rewards {', '.join(map(repr, unknown))} depend on parameters, which no such file can say")
    writer_for(path)(model, Path(path))


def writer_for(path: str | Path) -> Callable[[IntervalModel, Path], None]:
    """Return the function that writes a file with this name."""
    writer = INTERVAL_WRITERS.get(Path(path).suffix.lower())
    if writer is None:
        endings = ", ".join(INTERVAL_WRITERS)
        raise ModelError(f"{path}: interval models are written to files that end in {endings}")
    return writer
