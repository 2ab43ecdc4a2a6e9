"""Writes Minari data sets as logs that ``read_log`` reads; the only importer of Minari."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from plumdp.base.errors import DataError, MissingExtra, needs
from plumdp.data.columns import needed_columns
from plumdp.data.duckdb_tables import write_parquet
from plumdp.data.observing import Act, Observe, Places, ask, env_actions
from plumdp.model.graph import Graph, Indices
from plumdp.model.parametric import ParametricMDP, require_model


def convert_minari(
    model: ParametricMDP,
    dataset: Any,
    path: str | Path,
    *,
    observe: Observe | None = None,
    act: Act | None = None,
    is_random_part: bool = False,
) -> None:
    """Write the episodes of a Minari data set to a Parquet file of trajectories, which ``read_log`` reads.

    Say ``read_log(model, path, order="runs")`` if the episodes are numbered in the order in which they were made, each
    after the one before had ended, as Minari's collector numbers them. Episodes of data sets that were combined from
    others have names instead of numbers, as they are in no such order.

    Parameters
    ----------
    dataset
        A ``MinariDataset``, or the name of one on this machine; nothing is downloaded.
    observe, act
        As in ``sample_env``: from an observation to the state variables, and from the name of an action to the action
        in the data set. They may be left out where ``sample_env`` needs none.
    is_random_part
        Whether a data set that is only a part of its episodes, such as one of ``minari.split_dataset``, was selected
        without looking at them. Episodes that were filtered by how they went prove nothing, and are refused.

    >>> from plumdp import case_study
    >>> convert_minari(case_study("betting:25").model, "betting/nothing-v0", "log.parquet")
    Traceback (most recent call last):
    plumdp.base.errors.DataError: there is no Minari data set 'betting/nothing-v0' on this machine; \
minari.download_dataset('betting/nothing-v0') fetches one that is public
    """
    require_model("convert_minari", model)
    opened = _opened(dataset)
    numbers = _episodes(opened, is_random_part)
    places, names = Places(model.graph, observe), _names(opened, model.graph, act)
    rows = [row for episode in opened.iterate_episodes(numbers) for row in _rows(episode, places, names)]
    n_steps = len(rows) - len(numbers)  # the last row of each episode has no action
    if n_steps != opened.total_steps:
        raise DataError(f"{opened.id} says that it has {opened.total_steps:,} steps, but {n_steps:,} can be read")
    columns = needed_columns(model.graph, "trajectories")
    block = {name: np.array([row[i] for row in rows]) for i, name in enumerate(columns)}
    if opened.combined_datasets:
        block[columns[0]] = np.array([f"episode {number}" for number in block[columns[0]]])
    write_parquet(path, [block])


def _opened(dataset: Any) -> Any:
    """Return a data set that is given itself or by its name."""
    with needs("Minari data sets need Minari: pip install 'plumdp[minari]'"):
        import minari
    if isinstance(dataset, minari.MinariDataset):
        return dataset
    if not isinstance(dataset, str):
        raise DataError(f"convert_minari takes a Minari data set or the name of one, not {type(dataset).__name__}")
    try:
        return minari.load_dataset(dataset)
    except FileNotFoundError:
        advice = f"minari.download_dataset({dataset!r}) fetches one that is public"
        raise DataError(f"there is no Minari data set {dataset!r} on this machine; {advice}") from None
    except ImportError as error:
        raise MissingExtra(f"Minari cannot read {dataset!r}: {error}") from None
    except (OSError, ValueError, LookupError, AssertionError) as error:
        raise DataError(f"Minari cannot read {dataset!r}: {error}") from None


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


def _rows(episode: Any, places: Places, names: dict[Any, str]) -> Iterator[tuple[Any, ...]]:
    """Yield number, step, state variables and action of each observation; the last one has no action."""
    observations, keys = [*_items(episode.observations)], [_key(action) for action in _items(episode.actions)]
    if len(observations) != len(keys) + 1:
        raise DataError(
            f"episode {episode.id} has {len(keys)} actions and {len(observations)} observations, but there must be one "
            "observation more"
        )
    taken = [*(names.get(key, f"{key!r} of the data set") for key in keys), None]
    for step, (shown, action) in enumerate(zip(observations, taken, strict=True)):
        yield episode.id, step, *places.values(shown, f"episode {episode.id}, step {step}"), action


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
