"""Decides which runs of an automaton with marks on its steps are accepted or rejected in finite time, if all are.

They are if each way that a run may go on forever is accepted as a whole or rejected as a whole, and either the accepted
ones or the rejected ones have no way out. Then nothing need be known of the model but its graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.model.graph import BoolArray, IntArray
from plumdp.model.missions.acceptance import Condition, negated, pairs_of
from plumdp.model.missions.automaton import Automaton, explored, may_reach, smallest
from plumdp.model.missions.recurrence import Recurrence, smallest_recurrence


@dataclass(frozen=True, eq=False)
class MarkedSteps:
    """A deterministic automaton whose steps have marks.

    Its last state is for letters that have no way on, which is the last mark.
    """

    after: IntArray  # (n, n_letters)
    marks: BoolArray  # (n, n_letters, n_marks): of the steps
    letter: IntArray  # (n_states)
    start: int
    names: tuple[str, ...]


def decided(automaton: MarkedSteps, condition: Condition) -> tuple[Automaton, bool] | None:
    """Return the automaton in which a run is decided in finite time, or None if there are runs that never are."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    after, start = automaton.after, automaton.start
    good = _good_steps(automaton, condition)
    if good is None:
        return None
    reached = np.zeros(len(after), dtype=np.bool_)
    found = np.array([start])
    while len(found):
        reached[found] = True
        found = np.unique(after[found])
        found = found[~reached[found]]
    source, to = np.repeat(np.arange(len(after)), after.shape[1]), after.reshape(-1)
    edges = csr_array((np.ones(len(to), dtype=np.int32), (source, to)), shape=(len(after),) * 2)
    _, component = connected_components(edges, directed=True, connection="strong")
    stays = (component[after] == component[:, None]) & reached[:, None]
    n_stays, n_good = (np.bincount(component, part.sum(axis=1)) for part in (stays, stays & good))
    if ((n_good > 0) & (n_good < n_stays)).any():
        return None
    is_good, is_bad = (reached & part[component] for part in (n_good > 0, (n_stays > 0) & (n_good == 0)))
    wins, loses = ~may_reach(after, is_bad), ~may_reach(after, is_good)
    is_opposite = bool((is_good & ~wins).any())
    if is_opposite and (is_bad & ~loses).any():
        return None
    accepted, rejected = (loses, wins) if is_opposite else (wins, loses)
    whole = Automaton(after, automaton.letter, start, accepted, rejected, automaton.names)
    return smallest(whole, is_negated=is_opposite), is_opposite


def _good_steps(automaton: MarkedSteps, condition: Condition) -> BoolArray | None:
    """Return the steps such that a run is accepted if it takes them alone forever, and rejected if it takes none.

    They are None if the condition is about several marks.
    """
    pairs, dead = pairs_of(condition), automaton.marks.shape[2] - 1
    alone = [(set(pair.never) - {dead}, pair.often) for pair in pairs]
    is_dead: BoolArray = automaton.marks[:, :, dead]
    if not pairs or alone == [(set(), ())]:
        return ~is_dead if pairs else np.zeros_like(is_dead)
    ((never, often), *others) = alone
    if others or len(never) + len(often) > 1:
        return None
    marks: BoolArray = automaton.marks[:, :, [*never, *often][0]]
    return (~marks if never else marks) & ~is_dead


def undecided(automaton: MarkedSteps, condition: Condition, *, is_max: bool) -> tuple[Recurrence, bool]:
    """Return the automaton with marks of states instead of steps, or its opposite."""
    none = (False,) * automaton.marks.shape[2]
    rows = [[tuple(marks) for marks in of_state] for of_state in automaton.marks.tolist()]
    kept, after = explored(
        (automaton.start, none),
        lambda each, letter: (int(automaton.after[each[0], letter]), rows[each[0]][letter]),
        automaton.after.shape[1],
    )
    whole = Recurrence(
        after,
        automaton.letter,
        0,
        np.array([marks for _, marks in kept]),
        pairs_of(condition if is_max else negated(condition)),
        tuple(automaton.names[state] for state, _ in kept),
    )
    return smallest_recurrence(whole), not is_max
