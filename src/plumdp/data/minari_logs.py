"""Minari data sets, read as logs and written from runs: the only importer of Minari."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, MissingExtra, ModelError, Option
from plumdp.data.columns import ACTION, COUNT, needed_columns, next_columns, state_columns
from plumdp.data.counts import Sampling, TransitionCounts, require_same_graph
from plumdp.data.duckdb_tables import Block
from plumdp.data.ingestion import Tally
from plumdp.data.log_pilots import pilot_of_log
from plumdp.data.logs import Log
from plumdp.data.observing import Act, Observe, Places, ask, env_actions, self_loops
from plumdp.data.report import refusal
from plumdp.data.same_files import Part
from plumdp.data.trajectories import Trajectories
from plumdp.model.graph import Graph, Indices, owners_of, read_only
from plumdp.model.parametric import ParametricMDP, require_model

_TOGETHER = 256  # episodes that are matched at once
_NAME = re.compile(r"(?:[-\w][-\w/]*[-\w]/)?[-\w]+-v\d+")  # as Minari has it


def read_minari(
    dataset: Any,
    model: ParametricMDP,
    *,
    observe: Observe | None = None,
    act: Act | None = None,
    sampling: Sampling = "adaptive",
    order: Literal["runs"] | None = "runs",
    pilot: bool = True,
    on_unmatched: Literal["error", "report"] = "error",
    is_random_part: bool = False,
) -> Log:
    """Return how often each transition of the model is in a Minari data set, and what became of each step.

    Parameters
    ----------
    dataset
        A ``MinariDataset``, or the name of one on this machine; nothing is downloaded.
    observe, act
        As in ``sample_env``: from an observation to the state variables, and from the name of an action to the action
        in the data set. They may be left out where ``sample_env`` needs none.
    sampling, pilot, on_unmatched
        As in ``read_log``.
    order
        "runs", the default, says that episodes are numbered in the order in which they were made, each after the one
        before had ended, as Minari's collector numbers them; the first are then the pilot, and results that use it say
        what they rest on. None says nothing, and so it is for data sets that were combined from others.
    is_random_part
        Whether a data set that is only a part of its episodes, such as one of ``minari.split_dataset``, was selected
        without looking at them. Episodes that were filtered by how they went prove nothing, and are refused.

    >>> import os
    >>> from tempfile import TemporaryDirectory
    >>> from unittest.mock import patch
    >>> from plumdp import case_study, record
    >>> study = case_study("betting:25")
    >>> runs = record(study.model, study.true_point, 20, rng=1, max_steps=25)
    >>> with TemporaryDirectory() as folder, patch.dict(os.environ, MINARI_DATASETS_PATH=folder):
    ...     dataset = write_minari(runs, "betting/uniform-v0", study.model)
    ...     print(read_minari("betting/uniform-v0", study.model))
    500 rows of transitions: 500 matched, 0 rejected
    """
    require_model("read_minari", model)
    if on_unmatched not in ("error", "report"):
        raise DataError(Option("on_unmatched", on_unmatched), ": choose 'error' or 'report'")
    graph, opened = model.graph, _opened(dataset)
    needed_columns(graph, "transitions")  # raises an error if two of them have one name
    episodes = _episodes(opened, is_random_part)
    known_order = None if opened.combined_datasets else order
    planned = pilot_of_log("transitions", sampling, known_order, has_runs=True, wanted=pilot)
    sizes = () if planned is None else planned.moments(len(episodes))
    places, names = Places(graph, observe), _names(opened, graph, act)
    tally = Tally(graph)
    moments = []
    for start, end in pairwise([0, *sizes, len(episodes)]):
        for block in _blocks(opened, episodes[start:end], places, names):
            tally.add(block)
        moments.append(tally.counts.copy())
    report = tally.report("transitions", [])
    if report.total != opened.total_steps:
        raise DataError(f"{opened.id} says that it has {opened.total_steps:,} steps, but {report.total:,} can be read")
    if report.rejected and on_unmatched == "error":
        raise DataError(*refusal(report))
    kept = None if planned is None else planned.pilot(moments[:-1], len(episodes), np.zeros_like(tally.counts))
    digest = blake2b(f"{opened.id} {episodes.tolist()}".encode() + tally.counts.tobytes(), digest_size=16)
    part = Part(f"the Minari data set {opened.id}", digest.hexdigest())
    return Log(TransitionCounts(graph, read_only(tally.counts), sampling, kept, report, (part,)))


def write_minari(
    runs: Trajectories,
    dataset_id: str,
    model: ParametricMDP,
    *,
    reward: str | None = None,
    description: str | None = None,
    author: str | None = None,
) -> Any:
    """Write runs of a model, such as ``record`` makes, as a new Minari data set, and return it.

    Observations, actions and rewards are those of ``as_env``: a dict of the state variables, the position of the action
    in ``model.graph.action_names``, and what the reward structure called ``reward`` gives, or else 0. A run that ended
    in a state without exit is terminated, any other is truncated. Minari decides where the data are (the folder
    ``MINARI_DATASETS_PATH``, or else ``.minari`` at home); a name that is there already is refused.

    >>> import os
    >>> from tempfile import TemporaryDirectory
    >>> from unittest.mock import patch
    >>> from plumdp import case_study, record
    >>> study = case_study("betting:25")
    >>> runs = record(study.model, study.true_point, 3, rng=1, max_steps=25)
    >>> with TemporaryDirectory() as folder, patch.dict(os.environ, MINARI_DATASETS_PATH=folder):
    ...     dataset = write_minari(runs, "betting/uniform-v0", study.model, author="A. N. Author")
    ...     dataset.total_episodes, dataset.total_steps, dataset[0].observations["money"][:2].tolist()
    (3, 75, [10, 9])
    """
    require_model("write_minari", model)
    if not isinstance(runs, Trajectories):
        raise DataError(f"write_minari takes runs such as record(model, point, ...) gives, not {type(runs).__name__}")
    require_same_graph(model.graph, runs.graph)
    earned = _earned(runs, model, reward)
    if not len(runs):
        raise DataError("there are no steps to write")
    minari = _minari()
    _require_new(minari, dataset_id)
    from plumdp.data.environment import spaces_of

    observations, actions = spaces_of(model.graph)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of Minari, about metadata that are left out
        return minari.create_dataset_from_buffers(
            dataset_id,
            [*_buffers(runs, earned)],
            observation_space=observations,
            action_space=actions,
            algorithm_name="plumdp",
            description=description,
            author=author,
        )


def _minari() -> Any:
    try:
        import minari
    except ImportError:
        raise MissingExtra("Minari data sets need Minari: pip install 'plumdp[minari]'") from None
    return minari


def _opened(dataset: Any) -> Any:
    """Return a data set that is given itself or by its name."""
    minari = _minari()
    if isinstance(dataset, minari.MinariDataset):
        return dataset
    if not isinstance(dataset, str):
        raise DataError(f"read_minari takes a Minari data set or the name of one, not {type(dataset).__name__}")
    try:
        return minari.load_dataset(dataset)
    except FileNotFoundError:
        advice = f"minari.download_dataset({dataset!r}) fetches one that is public"
        raise DataError(f"there is no Minari data set {dataset!r} on this machine; {advice}") from None
    except ImportError as error:
        raise MissingExtra(f"Minari cannot read {dataset!r}: {error}") from None
    except (OSError, ValueError, LookupError, AssertionError) as error:
        raise DataError(f"Minari cannot read {dataset!r}: {error}") from None


def _require_new(minari: Any, dataset_id: str) -> None:
    if not (isinstance(dataset_id, str) and _NAME.fullmatch(dataset_id)):
        raise DataError(f"dataset_id={dataset_id!r}: Minari's names are like 'betting/uniform-v0', with a version")
    try:
        minari.load_dataset(dataset_id)
    except FileNotFoundError:
        return
    raise DataError(f"there is a Minari data set {dataset_id!r} already; choose another name or version")


def _episodes(opened: Any, is_random_part: bool) -> Indices:
    """Return the numbers of the episodes in their order."""
    numbers: Indices = np.unique(opened.episode_indices)
    if len(numbers) < len(opened.episode_indices):
        raise DataError(f"{opened.id} has some of its episodes twice; give each of them once")
    total = opened.storage.total_episodes
    if len(numbers) < total and not is_random_part:
        raise DataError(
            f"these are {len(numbers):,} of the {total:,} episodes of {opened.id}: if they were selected by how they "
            "went, no bound holds; give all, or say is_random_part=True if nobody looked at them"
        )
    return numbers


def _names(opened: Any, graph: Graph, act: Act | None) -> dict[Any, str]:
    """Return the name of the model's action for each action in a data set."""
    names: dict[Any, str] = {}
    sent = dict(zip(graph.action_names, env_actions(opened, graph, act), strict=True))
    for name, action in sent.items():
        if action is not None and names.setdefault(_key(action), name) != name:
            other = names[_key(action)]
            raise DataError(f"act gives {action!r} for {other!r} and for {name!r}, which a data set cannot tell apart")
    if act is not None:
        for name in [name for name, action in sent.items() if action is None]:
            with suppress(Exception):  # what only loops was not asked for, and need not be there
                names.setdefault(_key(ask(act, name)), name)
    return {action: name for action, name in names.items() if action is not None}


def _blocks(opened: Any, episodes: Indices, places: Places, names: dict[Any, str]) -> Iterator[Block]:
    """Yield the steps of some episodes, several at once, as rows of a log."""
    graph = places.graph
    for start in range(0, len(episodes), _TOGETHER):
        together = episodes[start : start + _TOGETHER]
        rows = [_rows(episode, places, names) for episode in opened.iterate_episodes(together)]
        states = [[row[0][variable] for row in rows] for variable in range(len(graph.states))]
        before = [np.concatenate([values[:-1] for values in column]) for column in states]
        after = [np.concatenate([values[1:] for values in column]) for column in states]
        action = np.concatenate([row[1] for row in rows])
        yield {
            **dict(zip(state_columns(graph), before, strict=True)),
            ACTION: action,
            **dict(zip(next_columns(graph), after, strict=True)),
            COUNT: np.ones(len(action), dtype=np.int64),
        }


def _rows(
    episode: Any, places: Places, names: dict[Any, str]
) -> tuple[list[npt.NDArray[Any]], npt.NDArray[np.object_]]:
    """Return the state variables of an episode, one value more than there are steps, and the names of its actions."""
    keys = [_key(action) for action in _items(episode.actions)]
    taken = np.array([names.get(key, f"{key!r} of the data set") for key in keys] + [None], dtype=object)[:-1]
    columns = _columns(episode, places)
    if any(len(column) != len(taken) + 1 for column in columns):
        raise DataError(
            f"episode {episode.id} has {len(taken)} actions and {len(columns[0])} observations, but there must be one "
            "observation more"
        )
    return columns, taken


def _columns(episode: Any, places: Places) -> list[npt.NDArray[Any]]:
    """Return the state variables of an episode; as they are stored, if nothing needs to be made of them."""
    variables, stored = [*places.graph.states], episode.observations
    if places.observe is None and not isinstance(stored, dict) and len(variables) == 1:
        stored = {variables[0]: stored}
    if places.observe is None and isinstance(stored, dict) and all(_is_column(stored.get(v)) for v in variables):
        return [np.asarray(stored[v]) for v in variables]
    observations = [*_items(episode.observations)]
    values = [places.values(shown, f"episode {episode.id}, step {i}") for i, shown in enumerate(observations)]
    columns = np.empty((len(variables), len(values)), dtype=object)
    for row, column in zip(columns, zip(*values, strict=True), strict=True):
        row[:] = column
    return [*columns]


def _is_column(stored: Any) -> bool:
    return isinstance(stored, np.ndarray) and stored.ndim == 1 and stored.dtype.kind in "biu"


def _items(stored: Any) -> Iterator[Any]:
    """Yield observations or actions one by one; Minari stores dicts and tuples of them by their parts."""
    if isinstance(stored, dict):
        parts = zip(*(_items(part) for part in stored.values()), strict=True)
        yield from (dict(zip(stored, part, strict=True)) for part in parts)
    elif isinstance(stored, tuple):
        yield from zip(*(_items(part) for part in stored), strict=True)
    else:
        yield from stored


def _key(action: Any) -> Any:
    """Return an action as something that can be looked up."""
    if isinstance(action, np.ndarray | np.generic):
        action = action.tolist()
    if isinstance(action, dict):
        return tuple((name, _key(part)) for name, part in sorted(action.items()))
    if isinstance(action, list | tuple):
        return _key(action[0]) if len(action) == 1 else tuple(_key(part) for part in action)
    return action


def _earned(runs: Trajectories, model: ParametricMDP, reward: str | None) -> npt.NDArray[np.float64]:
    """Return what each step earns."""
    earned = np.zeros(len(runs))
    if reward is None:
        return earned
    if reward not in model.rewards:
        known = ", ".join(map(repr, model.rewards)) or "none"
        raise ModelError(f"there is no reward structure {reward!r}; the model has {known}")
    structure, choice = model.rewards[reward], runs.choice
    if structure.state is not None:
        earned += structure.state[owners_of(model.graph.first_choice, choice)]
    if structure.choice is not None:
        earned += structure.choice[choice]
    return earned


def _buffers(runs: Trajectories, earned: npt.NDArray[np.float64]) -> Iterator[Any]:
    """Yield the runs as Minari's collector would have kept them."""
    from minari.data_collector import EpisodeBuffer

    graph, choice = runs.graph, runs.choice
    source, action = owners_of(graph.first_choice, choice), graph.action[choice]
    is_stuck = np.logical_and.reduceat(self_loops(graph), graph.first_choice[:-1])
    ends = np.flatnonzero(np.append(runs.episode[1:] != runs.episode[:-1], True)) + 1
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        last = int(graph.successor[runs.transition[end - 1]])
        states = np.append(source[start:end], last)
        is_end = np.arange(start, end) == end - 1
        yield EpisodeBuffer(
            observations={name: _stored(values[states]) for name, values in graph.states.items()},
            actions=action[start:end].astype(np.int64),
            rewards=earned[start:end].tolist(),
            terminations=(is_end & is_stuck[last]).tolist(),
            truncations=(is_end & ~is_stuck[last]).tolist(),
        )


def _stored(values: npt.NDArray[Any]) -> Any:
    return values.tolist() if values.dtype.kind == "U" else values.astype(np.int64)
