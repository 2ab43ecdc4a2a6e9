"""The model and the counts that a result follows from, as one file of arrays: whoever has it can certify again.

The file is NumPy's: arrays, and one text in JSON. Reading it runs nothing of what is in it.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt

from plumdp.base.combinations import Trait, refuse
from plumdp.base.edge import most_bytes
from plumdp.base.errors import DataError, ModelError, fault_of
from plumdp.base.json_values import parsed
from plumdp.data.counts import TransitionCounts
from plumdp.data.files import counts_from, reward_columns, words_of
from plumdp.data.seen import Seen
from plumdp.model.check import validate
from plumdp.model.expressions.polynomial import exact
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.expressions.terms import polynomial_from, polynomial_terms, space_from, space_terms
from plumdp.model.gaps import gaps_of, looked_at
from plumdp.model.graph import Graph, IntArray, read_only
from plumdp.model.learned_rewards import LearnedRewards
from plumdp.model.parametric import ParametricMDP, RewardStructure
from plumdp.relaxation.intervals import IntervalMDP

Arrays = dict[str, npt.NDArray[Any]]

_GRAPH = ("first_choice", "first_transition", "successor", "action")
PROBLEMS = (  # of files that others may have written
    *(OSError, ValueError, LookupError, TypeError, ArithmeticError, AttributeError, RecursionError, EOFError),
    *(NotImplementedError, BadZipFile, zlib.error, MemoryError),
)
_KINDS = "state|label|state reward|choice reward|moment|coin|coin expression|context"
_KNOWN = re.compile(rf"({'|'.join(_GRAPH)}|expression|counts|pilot|time|about|({_KINDS}) \d+|reward_\d+_\d+)\.npy")
_MOST_MEMBERS = 10_000


def write_data(path: Path | IO[bytes], model: ParametricMDP, counts: TransitionCounts) -> None:
    """Write a model and the counts of its transitions; a model on disk is too large for that, and is refused."""
    refuse({Trait.COPIED, *model.traits})
    graph, pilot = model.graph, counts.pilot
    arrays: Arrays = {name: getattr(graph, name) for name in _GRAPH} | {"expression": model.expression}
    arrays |= {f"state {i}": values for i, values in enumerate(graph.states.values())}
    arrays |= {f"label {i}": values for i, values in enumerate(model.labels.values())}
    for i, reward in enumerate(model.rewards.values()):
        parts = {f"state reward {i}": reward.state, f"choice reward {i}": reward.choice}
        arrays |= {name: values for name, values in parts.items() if values is not None}
    arrays["counts"] = counts.counts
    if pilot is not None:
        arrays |= {"pilot": pilot.counts} | {f"moment {i}": moment for i, moment in enumerate(pilot.moments)}
    arrays |= reward_columns(counts)
    if counts.time is not None:
        arrays["time"] = counts.time.entries
    arrays |= {f"context {i}": np.array(each.cells) for i, each in enumerate(counts.contexts)}
    for i, reward in enumerate(model.rewards.values()):
        if reward.learned is not None:
            arrays |= {f"coin {i}": reward.learned.coin, f"coin expression {i}": reward.learned.expression}
    about = {
        "initial_state": graph.initial_state,
        "action_names": graph.action_names,
        "states": list(graph.states),
        "labels": list(model.labels),
        "rewards": list(model.rewards),
        "learned": [None if r.learned is None else _terms(r.learned) for r in model.rewards.values()],
        "out_of_table": _given(model),
        "constants": {name: [type(value).__name__, str(value)] for name, value in model.constants.items()},
        "spaces": [space_terms(space) for space in (model.declared_space, model.space)],
        "expressions": [polynomial_terms(f) for f in model.expressions.polynomials],
        "n_free": model.expressions.n_free,
        "observations": [gaps_of(model), model.counted.ends],
        **words_of(counts),
    }
    text = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    everything: Any = arrays | {"about": text}
    np.savez_compressed(path, **everything)


def read_data(path: Path, *, most: int | None = None) -> tuple[ParametricMDP, TransitionCounts]:
    """Return the model and the counts in a file; one that is damaged, or is no such file, is refused.

    So is one with other arrays, or with more than so many bytes when it is unpacked.
    """
    try:
        _require_few_bytes(path, most_bytes(path) if most is None else most)
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: read_only(archive[name]) for name in archive.files}
        about = parsed(arrays.pop("about").tobytes())
        model = _model(about, arrays)
        return model, _counts(about, arrays, model.counted.graph)
    except PROBLEMS as error:
        raise DataError(f"{path} is not what plumdp writes: {fault_of(error)}") from None


def difference(path: Path, model: ParametricMDP, counts: TransitionCounts) -> str:
    """Return the name of something in a file that is not of this model and these counts, or nothing.

    What is said of the counts in words may differ: where they were read from, and why the pilot came first.
    """
    own = BytesIO()
    write_data(own, model, counts)
    own.seek(0)
    with np.load(path) as file, np.load(own) as other:
        names, parts = sorted({*file.files, *other.files} - {"about"}), (file, other)
        same = {name: all(name in part for part in parts) and np.array_equal(file[name], other[name]) for name in names}
        about, told = (json.loads(part["about"].tobytes()) for part in parts)
    if not {"contexts", "no_contexts"} & about.keys():  # those of older files
        same, told = ({name: each[name] for name in each if "context" not in name} for each in (same, told))
    same |= {name: about.get(name) == value for name, value in told.items() if name not in ("report", "parts", "pilot")}
    return next((name for name, is_same in same.items() if not is_same), "")


def _require_few_bytes(path: Path, most: int) -> None:
    """Refuse an archive by the sizes that it declares; no more than these are unpacked, in ways that keep to them."""
    with ZipFile(path) as archive:
        members = archive.infolist()
    size, names = sum(member.file_size for member in members), {member.filename for member in members}
    unknown = sorted(name for name in names if not _KNOWN.fullmatch(name))
    if unknown or len(names) < len(members) or len(members) > _MOST_MEMBERS:
        raise DataError(f"it holds {unknown[0]}" if unknown else "it holds too many arrays, or one several times")
    if size > most:
        raise DataError(f"it holds {size:,} bytes, and {most:,} are more than enough for this model")
    if any(member.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for member in members):
        raise DataError("it is compressed in another way")


def _model(about: Mapping[str, Any], arrays: Arrays) -> ParametricMDP:
    """Return the model, checked as one that was built from a text is."""
    polynomials = tuple(polynomial_from(*terms) for terms in about["expressions"])
    n_free = int(about.get("n_free", 0))
    graph, expression = _graph(about, arrays, len(polynomials) + n_free)
    declared, space = (space_from(*terms) for terms in about["spaces"])
    none: list[Any] = [None] * len(about["rewards"])
    learned, given = about.get("learned", none), about.get("out_of_table") or none
    rewards = {
        name: RewardStructure(
            arrays.get(f"state reward {i}"),
            arrays.get(f"choice reward {i}"),
            _learned(i, learned[i], arrays),
            given[i] and (float(given[i][0]), float(given[i][1])),
        )
        for i, name in enumerate(about["rewards"])
    }
    model = ParametricMDP(
        graph,
        declared,
        space,
        replace(ExpressionTable.build(polynomials, space.names), n_free=n_free),
        expression,
        {name: arrays[f"label {i}"] for i, name in enumerate(about["labels"])},
        rewards,
        {name: _constant(*value) for name, value in about["constants"].items()},
    )
    errors = [str(issue) for issue in validate(model) if issue.severity == "error"]
    if errors:
        raise ModelError(errors[0])
    gaps, ends = (tuple(map(int, each)) for each in about.get("observations", ((), ())))
    return looked_at(model, gaps, ends) if gaps else model


def _given(model: ParametricMDP) -> list[list[str] | None] | None:
    """Return the bounds for steps outside of a table; infinity has no number in JSON."""
    ends = [
        None if each.out_of_table is None else [repr(float(end)) for end in each.out_of_table]
        for each in model.rewards.values()
    ]
    return ends if any(ends) else None


def _terms(learned: LearnedRewards) -> list[Any]:
    return [[str(each) for each in ends] for ends in (learned.low, learned.span)] + [learned.per_unit]


def _learned(i: int, terms: list[Any] | None, arrays: Arrays) -> LearnedRewards | None:
    if terms is None:
        return None
    low, span = (tuple(map(exact, ends)) for ends in terms[:2])
    return LearnedRewards(arrays[f"coin {i}"], arrays[f"coin expression {i}"], low, span, int(terms[2]))


def _graph(about: Mapping[str, Any], arrays: Arrays, n_expressions: int) -> tuple[Graph, IntArray]:
    """Return the graph and the expression of each transition, checked by the constructor for arrays of users."""
    checked = IntervalMDP.from_arrays(
        arrays["first_choice"],
        arrays["first_transition"],
        arrays["successor"],
        np.zeros(n_expressions),
        np.ones(n_expressions),
        expression=arrays["expression"],
        initial_state=about["initial_state"],
        states={name: arrays[f"state {i}"] for i, name in enumerate(about["states"])},
        action=arrays["action"],
        action_names=tuple(about["action_names"]),
    )
    return checked.graph, checked.expression


def _counts(about: Mapping[str, Any], arrays: Arrays, graph: Graph) -> TransitionCounts:
    n_moments = None if about["pilot"] is None else len(about["pilot"]["lengths"])
    names = ["counts", *([] if n_moments is None else ["pilot", *(f"moment {i}" for i in range(n_moments))])]
    seen = [Seen.from_columns(arrays[name], i, arrays) for i, name in enumerate(names)]
    cells = [arrays[f"context {i}"] for i in range(len(about.get("contexts", ())))]
    return counts_from(graph, about, seen, None if about.get("time") is None else arrays["time"], cells)


def _constant(kind: str, text: str) -> bool | int | Fraction:
    return text == "True" if kind == "bool" else int(text) if kind == "int" else exact(text)
