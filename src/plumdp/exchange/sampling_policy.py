"""Reads policies to sample by: a probability for each choice, as ``advise`` writes them, or one action per state."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from plumdp.base.errors import DataError, ModelError
from plumdp.model.graph import FloatArray, Graph
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.policy import policy_weights
from plumdp.result.policy_readers import rows_of_choices
from plumdp.result.policy_table import read_policy


def read_sampling(model: ParametricMDP | Graph, path: str | Path) -> FloatArray:
    """Return the probability with which a policy in a file takes each choice; ``simulate`` takes it as it is.

    The file is a sampling policy of ``advise``, a CSV file with a row for each state and action and their
    ``probability``; or any file that ``read_policy`` reads, with one action per state.

    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import PolicyTable, case_study, simulate
    >>> study = case_study("betting:5")
    >>> with TemporaryDirectory() as folder:
    ...     first = PolicyTable(study.model.graph, study.model.graph.first_choice[:-1])
    ...     first.to_csv(Path(folder) / "policy.csv")
    ...     weights = read_sampling(study.model, Path(folder) / "policy.csv")
    >>> simulate(study.model, study.true_point, 100, rng=1, max_steps=6, policy=weights).total
    600
    """
    graph = model if isinstance(model, Graph) else model.graph
    if not isinstance(model, Graph):
        require_model("read_sampling", model)
    share = "probability" if "probability" not in graph.states else "chosen_probability"
    if Path(path).suffix.lower() != ".csv" or share not in _header(path):
        return policy_weights(graph, read_policy(model, path))
    choice, (texts,) = rows_of_choices(path, graph, [share])
    if len(np.unique(choice)) < len(choice):
        raise DataError(f"{path}: a state and an action have two rows; each may have one")
    weights = np.zeros(graph.n_choices)
    weights[choice] = [_probability(path, number, text) for number, text in enumerate(texts.tolist(), 1)]
    try:
        return policy_weights(graph, weights)
    except ModelError as error:
        raise DataError(f"{path}: {error}") from None


def _header(path: str | Path) -> list[str]:
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            return next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as a policy: {error}") from None


def _probability(path: str | Path, row: int, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"{path}: row {row}: {text!r} is not a probability") from None
