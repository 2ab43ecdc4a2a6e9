"""Logs of a model that is seen now and then, and what counts of its observations rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import AFTER, Steps
from plumdp.data.columns import ACTION, NEXT_AFTER, ONLY_ACTION, UNKNOWN
from plumdp.data.duckdb_engine import Block
from plumdp.data.mapping_language import MappingTerm, text
from plumdp.data.mappings import StateMapping
from plumdp.data.report import Kind
from plumdp.model.gaps import action_after, is_chain
from plumdp.model.graph import BoolArray
from plumdp.model.parametric import ParametricMDP
from plumdp.model.values import Codes, whole

HINTS: dict[Kind, str] = {  # why rows of observations are refused
    "repeated step": "a unit is seen once in a step, and its next observation is at least one step later: choose "
    "shorter steps, or correct these",
    "unreadable state": "a row tells the state, and the next observation comes when it was planned; of ends whose step "
    "is known, none comes later, and only a partial observation may lack the state",
}


def require_differences(steps: Steps | None) -> None:
    """Refuse steps that only order rows: their differences are the gaps between observations."""
    if steps == "ordered":
        raise DataError(
            Option("steps", steps), ": the differences of steps are the gaps between observations; leave it out"
        )


def observations_in(mapping: StateMapping, model: ParametricMDP) -> StateMapping:
    """Return a mapping whose actions last until the next observation; a chain has one, whatever the log calls it."""
    names, counted = mapping.action_names, model.counted
    assert counted.gaps is not None
    if is_chain(model.graph):
        return replace(mapping, action=MappingTerm(text(ONLY_ACTION), "text"), action_names={})
    of_observations = {}
    for called, number in names.items():
        for gap in np.unique(counted.gaps).tolist():
            name = action_after(model.graph.action_names[number], gap)
            if name in counted.graph.action_names:
                of_observations[action_after(called, gap)] = counted.graph.action_names.index(name)
    return replace(mapping, action_names=of_observations)


@dataclass(frozen=True, eq=False)
class PartialObservations:
    """What partial observations see: ends, and one state for whatever has not ended."""

    is_partial: BoolArray  # (n_actions)
    has_ended: BoolArray  # (n_states): ends, and ends that were entered before the observation

    @classmethod
    def of(cls, counted: ParametricMDP) -> PartialObservations | None:
        """Return those of the model whose choices are observations; None if it knows no ends."""
        if not counted.ends or counted.gaps is None:
            return None
        graph, after = counted.graph, counted.graph.states[AFTER]
        has_ended = after > 0
        has_ended[[*counted.ends]] = True
        is_partial = np.zeros(len(graph.action_names), dtype=np.bool_)
        is_partial[graph.action[counted.gaps < 0]] = True
        return cls(is_partial, has_ended)

    def are_planned(self, block: Block, state: Codes) -> BoolArray:
        """Return where what has not ended was to be observed, also after a gap that the model does not have."""
        planned = [not str(action).endswith(f"{UNKNOWN} steps") for action in block[ACTION].tolist()]
        return np.array(planned, dtype=np.bool_) & ~self.has_ended[state]

    def seen(self, block: Block, columns: Sequence[str], action: Codes, after: Codes, is_unknown: BoolArray) -> None:
        """Put the state of what has not ended where a partial observation came as it was planned, and no end was seen.

        It may show nothing at all. A look at another step than was planned shows nothing that is known not to happen.
        """
        entered = {value: 0 if value is None else whole(value) for value in {*_values(block[NEXT_AFTER])}}
        timely = np.array([entered[value] == 0 for value in _values(block[NEXT_AFTER])], dtype=np.bool_)
        variables = [_values(block[name]) for name in columns if name != NEXT_AFTER]
        blank = np.array(
            [all(value is None for value in values) for values in zip(*variables, strict=True)], dtype=np.bool_
        )
        is_alive = np.where(after >= 0, ~self.has_ended[after], blank)
        is_alive &= timely & (action >= 0) & self.is_partial[action]
        after[is_alive], is_unknown[is_alive] = len(self.has_ended) - 1, False
        is_unknown[~timely] = False


def _values(column: npt.NDArray[Any]) -> list[Any]:
    """Return the values of a column, None for those that are missing or blank."""
    return [None if v != v or (isinstance(v, str) and not v.strip()) else v for v in column.tolist()]
