"""What a row remembers of its run, as it looks: the context that tells most of an outcome, with both figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumdp.data.contexts import Context, ContextKind
from plumdp.model.graph import FloatArray, Indices
from plumdp.model.parametric import ParametricMDP

_LOWEST: dict[ContextKind, tuple[int, ...]] = {
    ContextKind.VISITS: (0, 1, 2, 4, 8, 16, 32, 64),
    ContextKind.STEP: (0, 1, 2, 3, 4, 8, 16, 32),
    ContextKind.SINCE: (0, 1, 2, 4, 8, 16, 32, 64),
}
"""The least number of each value, of kinds whose values have an order."""

_OPTIONS: dict[ContextKind, str] = {
    ContextKind.VISITS: "visits",
    ContextKind.PREVIOUS: "previous",
    ContextKind.STEP: "step",
    ContextKind.SINCE: "time",
}
"""What a table made of a log may remember instead."""


@dataclass(frozen=True)
class Remembered:
    """An outcome that is more frequent in some visits of a row than in its others, by what came before them."""

    kind: ContextKind
    name: str  # the column, if there is one
    value: int  # on the one side are this value and all above it, if they have an order, and otherwise this one
    is_inside: bool  # whether the outcome is more frequent there
    transition: int  # the outcome, of the choice that represents the row
    shares: tuple[float, float]  # where it is more frequent, and elsewhere
    visits: tuple[int, int]

    @property
    def is_ordered(self) -> bool:
        """Whether the values of the context have an order."""
        return self.kind in _LOWEST

    @property
    def option(self) -> str:
        """What the states of a table made of a log would have to remember, or nothing."""
        return self.name or _OPTIONS.get(self.kind, "")

    def words(self, model: ParametricMDP, context: Context) -> str:
        """Return the difference in words, with both figures: estimates."""
        graph, (more, less), (n, others) = model.graph, self.shares, self.visits
        choice = int(graph.choice_of_transition()[self.transition])
        target = f"({graph.describe_state(int(graph.successor[self.transition]))})"
        times = f"{more / less:.2g} times as often" if less > 0 else "at times"
        figures = f"{more:.2g} against {less:.2g}, {n:,} and {others:,} visits"
        return f"{graph.describe_choice(choice)} leads to {target} {times} {self._where(model, context)} ({figures})"

    def _where(self, model: ParametricMDP, context: Context) -> str:
        """Return the visits in which the outcome is more frequent, in words."""
        if self.is_ordered:
            low, is_in = _LOWEST[self.kind][self.value], self.is_inside
            if self.kind == ContextKind.STEP:
                return f"from step {low} of a run on" if is_in else f"before step {low} of a run"
            what = "earlier visits in its run" if self.kind == ContextKind.VISITS else "steps in the same state"
            return f"after {low} or more {what}" if is_in else f"after fewer than {low} {what}"
        return f"{'where' if self.is_inside else 'unless'} {self._value(model, context)}"

    def _value(self, model: ParametricMDP, context: Context) -> str:
        """Return the value in words, of a column, of an outcome or of a choice."""
        if self.kind == ContextKind.KNOWN:
            return f"{self.name} is {context.values[self.value]}"
        is_last, graph = self.kind == ContextKind.LAST, model.graph
        if not self.value:
            return "it was not visited before in its run" if is_last else "its run begins"
        choice = int(graph.choice_of_transition()[self.transition])
        places: Indices
        if is_last:
            places = graph.successor[slice(*graph.first_transition[choice : choice + 2])]
        else:
            state = int(graph.state_of_choice()[choice])
            places = np.unique(graph.choice_of_transition()[graph.successor == state])
        if self.value > len(places) or self.value == len(context.values) - 1:
            return "its last visit led elsewhere" if is_last else "another choice led there"
        place = int(places[self.value - 1])
        if is_last:
            return f"its last visit in the run led to ({graph.describe_state(place)})"
        return f"{graph.describe_choice(place)} led there"


def find_remembered(model: ParametricMDP, contexts: Sequence[Context]) -> tuple[Remembered, Context] | None:
    """Return the difference between visits of a row that is most evident by what came before them, if there is any.

    Rows that the model ties are one. Visits are split by each value, from it on if values have an order.
    """
    best: tuple[float, Remembered, Context] | None = None
    rows = model.rows
    row_of_place = np.repeat(np.arange(len(rows)), np.diff(rows.first))
    n_places = int(rows.first[-1])
    for context in contexts:
        key = context.value * n_places + rows.place_of(context.transition)[1]
        counts = np.bincount(key, context.count, len(context.values) * n_places).astype(np.float64)
        seen = counts.reshape(-1, n_places)
        inside = np.asarray(seen[::-1].cumsum(axis=0)[::-1]) if context.kind in _LOWEST else seen
        evidence, shares, visits = _differences(inside, seen.sum(axis=0), row_of_place, len(rows))
        value, at = np.unravel_index(int(np.argmax(evidence)), evidence.shape)
        if evidence[value, at] > 0 and (best is None or evidence[value, at] > best[0]):
            both, n = shares[:, value, at].tolist(), visits[:, value, at].astype(int).tolist()
            is_inside = both[0] > both[1]
            pairs = [(a, b) if is_inside else (b, a) for a, b in (both, n)]
            what = context.kind, context.name, int(value), is_inside, int(rows.transition[at])
            best = float(evidence[value, at]), Remembered(*what, *pairs), context
    return None if best is None else best[1:]


def _differences(
    inside: FloatArray, total: FloatArray, row: Indices, n_rows: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the score of each split of visits and each place, and both shares and numbers of visits (2, …).

    Of two places that differ as much, the rarer one scores a little more, as more is said by its ratio.
    """

    def by_row(seen: FloatArray) -> FloatArray:
        return np.asarray([np.bincount(row, each, n_rows)[row] for each in seen])

    seen = np.array([inside, total - inside])
    visits = np.array([by_row(each) for each in seen])
    shares = seen / np.maximum(visits, 1)
    mean = total / np.maximum(visits.sum(axis=0), 1)
    noise = mean * (1 - mean) * (1 / np.maximum(visits, 1)).sum(axis=0)
    is_split = (visits > 0).all(axis=0) & (noise > 0)
    score = np.where(is_split, (shares[0] - shares[1]) ** 2 / np.where(is_split, noise, 1.0), 0.0)
    return score * (1 + 1e-6 * (1 - mean)), shares, visits
