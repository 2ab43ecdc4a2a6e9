"""Reads interval models by the ending of the file name, such as UMB archives, and PRISM files through Storm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, ModelError
from plumdp.base.vocabulary import Relaxation
from plumdp.certifying.pipeline import relax
from plumdp.exchange.read_drn import read_drn
from plumdp.learning.learned import Learned, of_learned
from plumdp.model.expressions.polynomial import Number
from plumdp.model.graph import FloatArray, IntArray, owners, read_only
from plumdp.model.parametric import ParametricMDP, RewardStructure, require_model
from plumdp.model.readers.storm import read_prism_intervals
from plumdp.model.readers.umb import UmbModel, read_umb
from plumdp.model.space import Point
from plumdp.model.unmodelled_exits import out_of_table_of
from plumdp.relaxation.intervals import IntervalMDP, instantiate
from plumdp.relaxation.intervals import IntervalModel as IntervalModel


def read_umb_model(path: str | Path) -> IntervalModel:
    """Return the model of a UMB archive, compressed or not: probabilities are numbers or intervals."""
    return _named(Path(path), lambda: model_of(read_umb(Path(path))))


def read_prism_model(path: str | Path, *, constants: Mapping[str, Number] | None = None) -> IntervalModel:
    """Return the model of a PRISM file with intervals such as ``[0.5,0.8] : (x'=1)``, built by Storm."""
    umb, known = read_prism_intervals(Path(path), constants or {})
    return replace(_named(Path(path), lambda: model_of(umb)), constants=known)


def _named(file: Path, read: Callable[[], IntervalModel]) -> IntervalModel:
    try:
        return read()
    except ModelError as error:
        raise ModelError(f"{file}: {error}") from None


def model_of(umb: UmbModel) -> IntervalModel:
    """Return the interval model of an archive's arrays, checked."""
    if len(umb.initial_states) != 1:
        raise ModelError(f"{len(umb.initial_states)} initial states; there must be exactly one")
    both = umb.probability if umb.probability.ndim == 2 else np.stack([umb.probability] * 2, axis=1)
    mdp = IntervalMDP.from_arrays(
        umb.first_choice,
        umb.first_transition,
        umb.successor,
        both[:, 0],
        both[:, 1],
        initial_state=int(umb.initial_states[0]),
        states=umb.states or None,
        action=umb.action,
        action_names=umb.action_names or ("",),
    )
    labels = {name: read_only(mask) for name, mask in umb.labels.items() if name != "deadlock" or mask.any()}
    labels.pop("init", None)
    rewards = {name: _reward(name, parts, umb.first_transition) for name, parts in umb.rewards.items()}
    return IntervalModel(mdp, labels, rewards)


def _reward(name: str, parts: Mapping[str, FloatArray], first_transition: IntArray) -> RewardStructure:
    exact = {part: _exact(name, values) for part, values in parts.items()}
    choice = exact.get("choices")
    if "branches" in exact:
        folded = _by_choice(name, exact["branches"], first_transition)
        choice = folded if choice is None else choice + folded
    return RewardStructure(exact.get("states"), choice)


def _by_choice(name: str, values: npt.NDArray[Any], first_transition: IntArray) -> npt.NDArray[Any]:
    """Return rewards of transitions as rewards of choices, which they must be the same in."""
    choice = values[first_transition[:-1]]
    if (values != choice[owners(first_transition)]).any():
        raise ModelError(f"reward {name!r} depends on the successor; rewards are of states or choices only")
    return choice


def _exact(name: str, values: FloatArray) -> FloatArray:
    """Return rewards, which must be numbers."""
    if values.ndim == 1:
        return values
    if (values[:, 0] != values[:, 1]).any():
        raise ModelError(f"reward {name!r}: rewards that are intervals cannot be read; give numbers")
    return values[:, 0]


INTERVAL_READERS: Mapping[str, Callable[[Path], IntervalModel]] = {
    ".umb": read_umb_model,
    ".drn": read_drn,
}
LANGUAGES = (".prism", ".nm", ".pm", ".sm")  # read by Storm, with constants


def read_interval_model(path: str | Path, *, constants: Mapping[str, Number] | None = None) -> IntervalModel:
    """Return the interval MDP in a file, with its labels and rewards; the file's ending names the format.

    Parameters
    ----------
    path
        ``.umb`` (compressed or not), ``.drn``, or a PRISM file (``.prism``, ``.nm``, ``.pm``) with intervals such as
        ``[0.5,0.8] : (x'=1)``. Probabilities that are plain numbers are intervals of width 0.
    constants
        Values of constants that a PRISM file leaves undefined.

    Returns
    -------
    IntervalModel
        The intervals, labels and rewards.

    Raises
    ------
    ModelError
        If the file is not an interval model.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "coin.drn"
    ...     rows = "state 0 init\\naction flip\\n0 : [0.4, 0.6]\\n1 : [0.4, 0.6]\\nstate 1\\naction stay\\n1 : 1\\n"
    ...     _ = file.write_text(f"@type: MDP\\n@nr_states\\n2\\n@model\\n{rows}")
    ...     model = read_interval_model(file)
    >>> model.graph.n_states, model.graph.action_names
    (2, ('flip', 'stay'))
    """
    file = Path(path)
    if not file.is_file():
        raise ModelError(f"{file}: there is no such file")
    ending = file.suffix.lower()
    if ending in LANGUAGES:
        return read_prism_model(file, constants=constants)
    if ending == ".tra":
        raise ModelError(f"{file}: .tra files are not read; give a .umb file, which PRISM 4.10 or later can export")
    reader = INTERVAL_READERS.get(ending)
    if reader is None:
        endings = ", ".join((*INTERVAL_READERS, *LANGUAGES))
        shown = f"that ends in {file.suffix}" if file.suffix else "without an ending"
        raise ModelError(f"{file}: there is no reader of interval models for a file {shown}; the endings are {endings}")
    if constants:
        raise ModelError(f"{file}: constants are for PRISM files; a file that ends in {ending} has none")
    return reader(file)


@of_learned
def interval_model(learned: Learned, *, relaxation: Relaxation = "rectangular") -> IntervalModel:
    """Return the interval model that was learned from data, with the labels and rewards of the model.

    With the confidence of what was learned, the true probabilities lie in its intervals. ``solve`` also uses the region
    inside the intervals; a file holds the intervals alone, so that another tool finds the wider bounds of the
    relaxation "expression". If the data reject the model, the intervals rest on the graph alone.

    Parameters
    ----------
    learned
        What ``learn`` returned.
    relaxation
        What the intervals are of, as in ``certify``.

    Returns
    -------
    IntervalModel
        The intervals, labels and rewards.

    Raises
    ------
    DataError
        If the model is a table from a log that runs may leave: no intervals say what holds there.

    Examples
    --------
    >>> from plumdp import case_study, learn, simulate
    >>> from plumdp.stages import solve
    >>> study = case_study("betting:5")
    >>> learned = learn(study.model, simulate(study.model, study.true_point, 1000, rng=1, max_steps=6))
    >>> model = interval_model(learned)
    >>> bool(solve(model, study.objective).lower[0] > 0)
    True
    >>> model
    IntervalModel(225 states, 624 choices, 1,023 transitions, labels 'end', rewards 'money')
    """
    model = learned.model
    if out_of_table_of(model.counted) is not None:
        raise DataError(
            "runs may leave this table, and no intervals tell another tool what may hold where they go: ask certify or "
            "decide"
        )
    return IntervalModel(relax(learned, relaxation), model.labels, model.rewards, model.constants)


def model_at(model: ParametricMDP, point: Point) -> IntervalModel:
    """Return the model at a point of its parameters, as intervals of width 0, with labels and rewards.

    >>> from plumdp import case_study
    >>> study = case_study("betting:5")
    >>> model_at(study.model, study.true_point)
    IntervalModel(225 states, 624 choices, 1,023 transitions, labels 'end', rewards 'money')
    """
    require_model("model_at", model)
    return IntervalModel(instantiate(model, point), model.labels, model.rewards, model.constants)
