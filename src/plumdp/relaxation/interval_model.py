"""The IntervalModel, an interval MDP with the names that properties refer to, as in files of other tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from plumdp.base.errors import ModelError
from plumdp.model.graph import BoolArray, Graph
from plumdp.model.parametric import RewardStructure
from plumdp.model.text import html_table, number_of, one_line
from plumdp.relaxation.intervals import IntervalMDP


@dataclass(frozen=True, eq=False)
class IntervalModel:
    """An interval MDP with labels and rewards, for ``solve`` with a property and for ``write_interval_model``.

    >>> import numpy as np
    >>> from plumdp.stages import solve
    >>> mdp = IntervalMDP.from_arrays([0, 1, 2, 3], [0, 2, 3, 4], [1, 2, 1, 2], [0.3, 0.5, 1, 1], [0.5, 0.7, 1, 1])
    >>> model = IntervalModel(mdp, {"goal": np.array([False, True, False])})
    >>> round(float(solve(model, 'Pmaxmin=? [ F "goal" ]').lower[0]), 3)
    0.3
    """

    mdp: IntervalMDP
    labels: Mapping[str, BoolArray] = field(default_factory=dict)  # label → (n_states)
    rewards: Mapping[str, RewardStructure] = field(default_factory=dict)
    constants: Mapping[str, bool | int | Fraction] = field(default_factory=dict)  # what properties may refer to by name

    def __post_init__(self) -> None:
        _check(self.graph, self.labels, self.rewards)

    def __repr__(self) -> str:
        graph = self.graph
        sizes = ((graph.n_states, "state"), (graph.n_choices, "choice"), (graph.n_transitions, "transition"))
        named = [f"{what} {', '.join(map(repr, names))}" for what, names in _names(self) if names]
        return one_line(self, *(number_of(n, thing) for n, thing in sizes), *named)

    def _repr_html_(self) -> str:
        graph = self.graph
        return html_table(
            [
                ("states", f"{graph.n_states:,}"),
                ("choices", f"{graph.n_choices:,}"),
                ("transitions", f"{graph.n_transitions:,}"),
                ("variables", ", ".join(graph.states)),
                ("labels", ", ".join(f'"{name}" ({int(mask.sum()):,} states)' for name, mask in self.labels.items())),
                ("rewards", ", ".join(f'"{name}"' for name in self.rewards)),
            ]
        )

    @property
    def graph(self) -> Graph:
        """The states, choices and transitions."""
        return self.mdp.graph


def require_interval_model(function: str, model: object) -> IntervalModel:
    """Return the model, or refuse a value that is not an interval model and say what to write instead."""
    if isinstance(model, IntervalMDP):
        return IntervalModel(model)
    if not isinstance(model, IntervalModel):
        hint = "read_interval_model reads one, and interval_model(learned) makes one"
        raise ModelError(f"{function} takes an interval model ({hint}), not {type(model).__name__}")
    return model


def _names(model: IntervalModel) -> list[tuple[str, list[str]]]:
    return [("labels", [*model.labels]), ("rewards", [*model.rewards])]


def _check(graph: Graph, labels: Mapping[str, BoolArray], rewards: Mapping[str, RewardStructure]) -> None:
    """Refuse labels and rewards that do not fit the graph."""
    for name, mask in labels.items():
        if mask.shape != (graph.n_states,) or mask.dtype.kind != "b":
            raise ModelError(
                f"label {name!r}: give a Boolean for each of {number_of(graph.n_states, 'state')}, "
                f"not {mask.dtype} of shape {mask.shape}"
            )
    for name, reward in rewards.items():
        for values, size, thing in (
            (reward.state, graph.n_states, "state"),
            (reward.choice, graph.n_choices, "choice"),
        ):
            if values is not None and len(values) != size:
                raise ModelError(f"reward {name!r} has {len(values)} numbers for {number_of(size, thing)}")
