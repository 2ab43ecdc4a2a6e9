"""What counts of looks rest on: models that are seen now and then."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from plumdp.data.counts import TransitionCounts
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import listing, number_of

_PLANNED = (
    "how many steps pass until the next look, and what is done meanwhile, was decided by what looks had shown before, "
    "not by what happened since: a look that was made early, or a death that was reported before the next look, is in "
    "the data with the gap that was planned"
)
_MISSING = "no look is missing because of what it would have shown: no unit was lost because of where it was, and "
_PENDING = "at the end of the data all looks that were still to come are left out, whatever is known of them"
_PARTIAL = (
    "at the end of the data all looks that were still to come are partial looks on a day that was fixed before, "
    "whether a unit has ended or not, or all are left out"
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
    n = np.bincount(np.abs(gaps), counts.visits)
    seen = listing(
        [f"{100 * n[gap] / n.sum():.3g} % after {number_of(gap, 'step')}" for gap in np.flatnonzero(n).tolist()]
    )
    yield f"{_PLANNED} ({seen})" if seen else _PLANNED
    yield _MISSING + (_PARTIAL if model.counted.ends else _PENDING)
    yield from () if int((gaps == 1).sum()) == model.counted.graph.n_states else (_BETWEEN,)
    yield _UNITS
    yield from (_BY_UNIT,) if counts.pilot is not None else ()
