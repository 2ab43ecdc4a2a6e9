"""Counts as Parquet files: only what was seen, with the fingerprint of the model, the sampling and the report."""

from __future__ import annotations

import glob
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import UnionType
from typing import Any

import numpy as np

from plumdp.base.errors import DataError, Option, require_kind, require_path
from plumdp.base.json_values import parsed, read_as
from plumdp.base.vocabulary import NoContexts
from plumdp.data.contexts import Context
from plumdp.data.counts import HasCounts, Pilot, TransitionCounts, counts_of, other_model, sums_in, with_number
from plumdp.data.duckdb_engine import Block, column_types, columns_of, connect, metadata_of, write_parquet
from plumdp.data.names import literal
from plumdp.data.report import report_from
from plumdp.data.same_files import DataPart
from plumdp.data.seen import CountArray, Seen
from plumdp.data.time_parts import TimeParts
from plumdp.model.graph import Graph, HasGraph, Indices

_CONTENT = "counts of transitions"
SO_FAR = "plumdp-carried-counts"  # which ``count_on`` keeps
_AGAIN = "count the log again"
_COLUMNS = {"transition": "INTEGER", "n": "BIGINT"}
_ABOUT: dict[str, type | UnionType] = {
    "fingerprint": str, "states": int, "transitions": int, "sampling": str, "report": dict | None, "parts": list,
    "checksum": str,
}  # fmt: skip
_ABOUT_PILOT: dict[str, type | UnionType] = {
    "end": str, "ratio": float | int, "rests_on": str, "lengths": list, "expected": float | int | None,
    "n_pilots": int,
}  # fmt: skip
_ABOUT_TIME: dict[str, type | UnionType] = {"n": int, "ends": list, "names": list, "rests_on": str, "n_added": int}


def write_counts(counts: TransitionCounts | HasCounts, path: str | Path) -> None:
    """Write counts, or those of a log, to a Parquet file that any program can read.

    Its columns are ``transition``, ``n``, and what was seen first.

    Parameters
    ----------
    counts
        The counts, or a log.
    path
        The Parquet file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 1000, rng=1, max_steps=25)
    >>> with TemporaryDirectory() as folder:
    ...     write_counts(counts, Path(folder) / "counts.parquet")
    ...     read_counts(study.model, Path(folder) / "counts.parquet").total
    25000
    """
    counts = counts_of(counts)
    graph = counts.graph
    seen = np.flatnonzero(counts.counts)
    block: Block = {"transition": seen.astype(np.int32), "n": counts.counts[seen]}
    if counts.pilot is not None:
        block["pilot"] = counts.pilot.counts[seen]
        block |= {f"moment_{i}": moment[seen] for i, moment in enumerate(counts.pilot.moments, start=1)}
    block |= {name: sums[seen] for name, sums in reward_columns(counts).items()}
    if counts.time is not None:
        block |= {f"time_{i}": n[seen] for i, n in enumerate(counts.time.seen_in_parts(graph.n_transitions), start=1)}
    for i, context in enumerate(counts.contexts):
        place = np.searchsorted(seen, context.transition)
        for name, n in (("context", context.count), ("first", context.pilot)):
            cells = np.zeros((len(context.values), len(seen)), dtype=np.int64)
            cells[context.value, place] = n
            block |= {f"{name}_{i}_{value}": row for value, row in enumerate(cells)}
    about = {
        "content": _CONTENT,
        "fingerprint": graph.fingerprint,
        "states": graph.n_states,
        "transitions": graph.n_transitions,
        **{name: each for name, each in words_of(counts).items() if each is not None or name == "report"},
    }
    write_parquet(path, [block], metadata={"plumdp": json.dumps(about | {"checksum": _checksum(about, block)})})


def read_counts(model: HasGraph, path: str | Path) -> TransitionCounts:
    """Return the counts that ``write_counts`` wrote for this model; those of another model are refused.

    Parameters
    ----------
    model
        The model that the counts are of.
    path
        The file, which has a checksum.

    Returns
    -------
    TransitionCounts
        What was written.

    Raises
    ------
    DataError
        If the file is of another model, damaged or changed.

    Examples
    --------
    >>> from plumdp import case_study
    >>> read_counts(case_study("betting:25").model, "nowhere.parquet")
    Traceback (most recent call last):
    plumdp.base.errors.DataError: nowhere.parquet: there is no such file
    """
    require_kind(model, HasGraph, "read_counts takes a parametric MDP (explore or read_model gives one)")
    require_path("read_counts", path)
    if not Path(path).is_file():
        raise DataError(f"{path}: there is no such file")
    try:
        return _read(path, model.counted_graph)
    except DataError as error:
        raise DataError(f"{path}: ", *error.args) from None


def _read(path: str | Path, graph: Graph) -> TransitionCounts:
    about = about_of(path)
    if about.get("content") == SO_FAR:
        with connect() as connection, TemporaryDirectory() as folder:
            file = literal(glob.escape(str(path)))
            ((content,),) = connection.execute(f"SELECT counts FROM {file} WHERE kind = 'counts'").fetchall()
            (kept := Path(folder) / "counts.parquet").write_bytes(content)
            return _read(kept, graph)
    if about.get("content") != _CONTENT:
        raise DataError("this is not a file of counts; logs are read with ", Option("read_log"))
    _check_about(about)
    if about["fingerprint"] != graph.fingerprint:
        raise DataError(other_model(graph, about["states"], about["transitions"], about["fingerprint"]))
    block = _read_block(path)
    _check_block(block, graph)
    checksum = about.pop("checksum")
    if checksum != _checksum(about, block):
        raise DataError(f"the counts are not those that were written: {_AGAIN}")
    if ("pilot" in block) != ("pilot" in about):
        # a pilot of which nothing is said may have ended at will: to take it for a planned one would be unsound
        raise DataError(f"the file has a column pilot or says what its pilot is, but not both: {_AGAIN}")
    dense = {name: _dense(graph, block["transition"], n) for name, n in block.items() if name != "transition"}
    names = ["n", *(name for name in dense if name == "pilot" or name.startswith("moment_"))]
    seen = [Seen.from_columns(dense[name], i, dense) for i, name in enumerate(names)]
    time = _time([n for name, n in dense.items() if name.startswith("time_")], about.get("time"))
    cells = [_cells(dense, i, len(said["values"])) for i, said in enumerate(about.get("contexts", ()))]
    return counts_from(graph, about, seen, time, cells)


def words_of(counts: TransitionCounts) -> dict[str, Any]:
    """Return all that counts say beside numbers, ready for JSON."""
    pilot, time, report = counts.pilot, counts.time, counts.report
    return {
        "sampling": counts.sampling,
        "pilot": None if pilot is None else {key: getattr(pilot, key) for key in _ABOUT_PILOT},
        "time": None if time is None else time.words,
        "report": None if report is None else report.to_dict(),
        "parts": [asdict(part) for part in counts.parts],
        **({"contexts": [each.words for each in counts.contexts]} if counts.contexts else {}),
        **({"no_contexts": counts.no_contexts} if counts.no_contexts not in (None, "file") else {}),
    }


def counts_from(
    graph: Graph,
    about: Mapping[str, Any],
    seen: Sequence[Seen],
    time: CountArray | None,
    cells: Sequence[CountArray] = (),
) -> TransitionCounts:
    """Return the counts that have these words, given all data, those of the pilot and at its moments, and over time.

    ``cells`` are those of each context: value, transition, count and pilot (4, n_cells).
    """
    (whole, *firsts), said, pilot = seen, about.get("pilot"), None
    if said is not None:
        told = {key: with_number(said)[key] for key in _ABOUT_PILOT}
        pilot = Pilot.of(firsts[0], **{**told, "lengths": tuple(told["lengths"])}, moments=firsts[1:])
        pilot = replace(pilot, **sums_in(pilot.rests_on))
    report = None if about["report"] is None else report_from(about["report"])
    parts = read_as(tuple[DataPart, ...], about["parts"], "parts")
    of_time = None if time is None else TimeParts.from_words(about["time"], time)
    contexts = tuple(map(Context.from_words, about.get("contexts", ()), cells))
    reason = read_as(NoContexts, about.get("no_contexts", "file"), "no_contexts")
    remembered = (contexts, None if contexts else reason)
    return TransitionCounts(
        graph, whole.counts, about["sampling"], pilot, report, parts, whole.rewards, of_time, *remembered
    )


def reward_columns(counts: TransitionCounts) -> dict[str, CountArray]:
    """Return the sums of learned rewards by names of columns, of all data, of the pilot, and of its moments."""
    of_all = (counts.rewards, *(() if counts.pilot is None else counts.pilot.rewards))
    rows = ((number, sums.reshape(-1, sums.shape[-1])) for number, sums in enumerate(of_all))
    return {f"reward_{number}_{i}": row for number, sums in rows for i, row in enumerate(sums)}


def _time(seen: Sequence[CountArray], about: Mapping[str, Any] | None) -> CountArray | None:
    """Return the counts between boundaries as entries, if the file has them, with a column for each boundary."""
    if len(seen) != (0 if about is None else len(about["ends"])):
        raise DataError(f"the file does not have one column of time for each boundary: {_AGAIN}")
    if about is None:
        return None
    dense = np.array(seen, dtype=np.int64, ndmin=2)  # short data have no boundary
    number, transition = np.nonzero(dense)
    return np.array([number, transition, dense[number, transition]])


def _cells(dense: Mapping[str, CountArray], number: int, n_values: int) -> CountArray:
    """Return the cells of a context, which the file has as two columns for each value."""
    n, first = (np.array([dense[f"{name}_{number}_{i}"] for i in range(n_values)]) for name in ("context", "first"))
    return np.array([*np.nonzero(n), n[n > 0], first[n > 0]])


def is_counts_file(path: str | Path) -> bool:
    """Return whether a file is one that ``write_counts`` wrote, or ``count_on``."""
    if not Path(path).is_file() or Path(path).suffix != ".parquet":
        return False
    try:
        return about_of(path).get("content") in (_CONTENT, SO_FAR)
    except DataError:
        return False


def about_of(path: str | Path) -> dict[str, Any]:
    """Return the metadata that plumdp wrote to a file; empty if there is none."""
    told = metadata_of(path).get("plumdp", "{}")
    try:
        about = parsed(told)
    except DataError:
        raise DataError(f"what the file says about its counts cannot be read: {_AGAIN}") from None
    if not isinstance(about, dict):
        raise DataError(f"what the file says about its counts cannot be read: {_AGAIN}")
    return about


def _check_about(about: Mapping[str, Any]) -> None:
    """Refuse a description that lacks something, or says it in another way."""
    for key, kind in _ABOUT.items():
        if key not in about:
            raise DataError(f"the file does not say its {key}: {_AGAIN}")
        if not isinstance(about[key], kind) or isinstance(about[key], bool):
            raise DataError(f"what the file says about its {key} cannot be read: {_AGAIN}")
    for name, kinds in (("pilot", _ABOUT_PILOT), ("time", _ABOUT_TIME)):
        said = about.get(name, {})
        said = with_number(said) if name == "pilot" and isinstance(said, dict) else said
        is_said = isinstance(said, dict) and said.keys() == kinds.keys()
        if name in about and not (is_said and all(isinstance(said[key], kind) for key, kind in kinds.items())):
            raise DataError(f"what the file says about its {name} cannot be read: {_AGAIN}")


def _read_block(path: str | Path) -> Block:
    """Return the columns of the file, each of its own type and without missing values."""
    with connect() as connection:
        table = f"read_parquet({literal(glob.escape(str(path)))})"
        types = column_types(connection, table)
        n_moments = sum(name.startswith("moment_") for name in types)
        names = ["pilot", *(f"moment_{i + 1}" for i in range(n_moments))] if "pilot" in types else []
        names += [name for name in types if name.startswith(("reward_", "time_", "context_", "first_"))]
        expected = _COLUMNS | dict.fromkeys(names, "BIGINT")
        if types != expected:
            there, ours = (", ".join(f"{name} {kind}" for name, kind in each.items()) for each in (types, expected))
            raise DataError(f"the columns are {there}, but those of counts are {ours}: {_AGAIN}")
        block = columns_of(connection.execute(f"SELECT * FROM {table}"))
    for name, values in block.items():
        if np.ma.is_masked(values):
            raise DataError(f"column {name} has missing values: {_AGAIN}")
    return {name: np.ma.getdata(values) for name, values in block.items()}


def _check_block(block: Block, graph: Graph) -> None:
    """Refuse counts that are not counts of the transitions of a graph."""
    transition = block["transition"]
    sizes = (block[name] for name in block if name != "transition" and not name.startswith("reward_"))
    outside = (transition < 0) | (transition >= graph.n_transitions)
    if outside.any():
        first = int(transition[outside][0])
        raise DataError(f"there is no transition {first:,}: the model has {graph.n_transitions:,}, from 0 on: {_AGAIN}")
    if len(np.unique(transition)) < len(transition):
        raise DataError(f"some transitions have several rows: {_AGAIN}")
    if any((n < 0).any() for n in sizes):
        raise DataError(f"some counts are negative: {_AGAIN}")


def _checksum(about: Mapping[str, Any], block: Block) -> str:
    """Return a hash of all that a file says."""
    digest = sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(block):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(block[name], dtype="<i8").tobytes())
    return digest.hexdigest()


def _dense(graph: Graph, transition: Indices, n: CountArray) -> CountArray:
    counts = np.zeros(graph.n_transitions, dtype=np.int64)
    counts[transition] = n
    return counts
