"""Counts as Parquet files: only what was seen, with the fingerprint of the model and how it was sampled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from plumdp.data.counts import CountArray, TransitionCounts, other_model
from plumdp.data.tables import Block, connect, literal, metadata_of, write_parquet
from plumdp.errors import DataError
from plumdp.model.graph import Graph, Indices
from plumdp.model.parametric import ParametricMDP

_CONTENT = "counts of transitions"


def write_counts(counts: TransitionCounts, path: str | Path) -> None:
    """Write counts to a Parquet file that any program can read: ``transition``, ``n`` and, if there is one, ``pilot``.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import benchmark, simulate
    >>> study = benchmark("betting:25")
    >>> counts = simulate(study.model, study.true_point, 1000, rng=1, max_steps=25)
    >>> with TemporaryDirectory() as folder:
    ...     write_counts(counts, Path(folder) / "counts.parquet")
    ...     read_counts(Path(folder) / "counts.parquet", study.model).total
    25000
    """
    graph = counts.graph
    seen = np.flatnonzero(counts.counts)
    block: Block = {"transition": seen.astype(np.int32), "n": counts.counts[seen]}
    if counts.pilot is not None:
        block["pilot"] = counts.pilot[seen]
    about = {
        "content": _CONTENT,
        "fingerprint": graph.fingerprint,
        "states": graph.n_states,
        "transitions": graph.n_transitions,
        "sampling": counts.sampling,
    }
    write_parquet(path, [block], metadata={"plumdp": json.dumps(about)})


def read_counts(path: str | Path, model: ParametricMDP) -> TransitionCounts:
    """Return the counts that ``write_counts`` wrote for this model; those of another model are refused.

    >>> from plumdp import benchmark
    >>> read_counts("nowhere.parquet", benchmark("betting:25").model)
    Traceback (most recent call last):
    plumdp.errors.DataError: nowhere.parquet: there is no such file
    """
    if not Path(path).is_file():
        raise DataError(f"{path}: there is no such file")
    about = _about(path)
    if about.get("content") != _CONTENT:
        raise DataError(f"{path}: this is no file of counts; logs are read with read_log")
    if about["fingerprint"] != model.graph.fingerprint:
        difference = other_model(model.graph, about["states"], about["transitions"], about["fingerprint"])
        raise DataError(f"{path}: {difference}")
    with connect() as connection:
        columns = connection.execute(f"SELECT * FROM read_parquet({literal(str(path))})").fetchnumpy()
    transition = columns.pop("transition")
    dense = {name: _dense(model.graph, transition, n) for name, n in columns.items()}
    return TransitionCounts(model.graph, dense["n"], about["sampling"], dense.get("pilot"))


def is_counts_file(path: str | Path) -> bool:
    """Return whether a file is one that ``write_counts`` wrote."""
    return Path(path).is_file() and Path(path).suffix == ".parquet" and _about(path).get("content") == _CONTENT


def _about(path: str | Path) -> dict[str, Any]:
    about: dict[str, Any] = json.loads(metadata_of(path).get("plumdp", "{}"))
    return about


def _dense(graph: Graph, transition: Indices, n: CountArray) -> CountArray:
    counts = np.zeros(graph.n_transitions, dtype=np.int64)
    counts[transition] = n
    return counts
