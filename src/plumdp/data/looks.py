"""Logs of a model that is seen now and then, and what counts of its looks rest on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import Steps
from plumdp.data.columns import ONLY_ACTION
from plumdp.data.counts import TransitionCounts
from plumdp.data.mapping_language import MappingNode
from plumdp.data.mappings import StateMapping
from plumdp.model.gaps import action_after, is_chain
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import listing, number_of

_PLANNED = (
    "how many steps pass until the next look, and what is done meanwhile, was decided by what looks had shown before, "
    "not by what happened since: a look that was made early, or a death that was reported before the next look, is in "
    "the data with the gap that was planned"
)
_ENDS = (
    "no look is missing because of what it would have shown: no unit was lost because of where it was, and at the end "
    "of the data all looks that were still to come are left out, whatever is known of them"
)
_BETWEEN = "between two looks each step takes the action of the first one wherever a state has several"
_UNITS = "units (the runs of the log) move independently of each other"
_BY_UNIT = "when a unit is looked at next was decided by what was seen of that unit, not of others"


def assumptions_of_looks(model: ParametricMDP, counts: TransitionCounts) -> Iterator[str]:
    """Yield what counts of looks rest on, in words: all classes of looks are fixed before their outcomes are seen.

    A look is a step of a martingale if its gap was fixed given the past, of which it is part when it happens. If runs
    are said to be in order, looks are taken run by run, so that no gap may depend on runs that come later.
    """
    gaps = model.counted.gaps
    assert gaps is not None
    n = np.bincount(gaps, counts.visits)
    seen = listing(
        [f"{100 * n[gap] / n.sum():.3g} % after {number_of(gap, 'step')}" for gap in np.flatnonzero(n).tolist()]
    )
    yield f"{_PLANNED} ({seen})" if seen else _PLANNED
    yield _ENDS
    yield from () if int((gaps == 1).sum()) == model.counted.graph.n_states else (_BETWEEN,)
    yield _UNITS
    yield from (_BY_UNIT,) if counts.pilot is not None else ()


def require_differences(steps: Steps | None) -> None:
    """Refuse steps that only order rows: their differences are the gaps between looks."""
    if steps == "ordered":
        raise DataError(Option("steps", steps), ": the differences of steps are the gaps between looks; leave it out")


def looks_in(mapping: StateMapping, model: ParametricMDP) -> StateMapping:
    """Return a mapping whose actions are those until the next look; a chain has one, whatever the log calls it."""
    names, counted = mapping.action_names, model.counted
    assert counted.gaps is not None
    if is_chain(model.graph):
        return replace(mapping, action=MappingNode("text", value=ONLY_ACTION, kind="text"), action_names={})
    of_looks = {}
    for called, number in names.items():
        for gap in np.unique(counted.gaps).tolist():
            name = action_after(model.graph.action_names[number], gap)
            if name in counted.graph.action_names:
                of_looks[action_after(called, gap)] = counted.graph.action_names.index(name)
    return replace(mapping, action_names=of_looks)
