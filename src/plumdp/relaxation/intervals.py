"""Interval MDPs, which are graphs whose transitions have probabilities between two bounds, looked up per expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.base.rounding import ULP
from plumdp.model.graph import BoolArray, FloatArray, Graph, IntArray, own_array, read_only
from plumdp.model.parametric import ParametricMDP, RewardStructure
from plumdp.model.space import Point
from plumdp.model.text import html_table, number_of, one_line

_AS_IF_ROUNDED = 1e-4  # a sum this close to 1 is not a mistake but numbers with few digits


class RowNature(Protocol):
    """A region as the rows of choices see it, through the values of expressions at its points."""

    @property
    def tables(self) -> tuple[Any, ...]:
        """All arrays, as the solver's kernels take them."""

    def with_constants(self, values: FloatArray) -> RowNature:
        """Return the region with known probabilities as further expressions."""


@runtime_checkable
class Shortened(Protocol):
    """A region from which something was left out when it was prepared for rows."""

    @property
    def left_out(self) -> str:
        """A description of what was left out to save time, empty if nothing was."""


@dataclass(frozen=True, eq=False)
class IntervalMDP:
    """A graph with bounds for each expression, where transition ``t`` has those of ``expression[t]``.

    A bound is known up to the rounding of one float. Where a lower bound is 0, nature may remove the edge.
    """

    graph: Graph
    expression: IntArray  # (n_transitions)
    lower: FloatArray  # (n_expressions)
    upper: FloatArray  # (n_expressions)
    region: RowNature | None = None  # if given, nature picks points of it at each choice
    model_tolerance: float = 0.0  # how far rows may be off from what the expressions say: the bounds allow for it

    def __repr__(self) -> str:
        graph = self.graph
        sizes = ((graph.n_states, "state"), (graph.n_transitions, "transition"), (len(self.lower), "interval"))
        region = "" if self.region is None else f"within a {type(self.region).__name__}"
        return one_line(self, *(number_of(n, thing) for n, thing in sizes), region)

    @property
    def is_point(self) -> bool:
        """Whether each probability has one value, so that the model is a plain MDP."""
        return bool((self.lower == self.upper).all())

    @staticmethod
    def from_arrays(
        first_choice: npt.ArrayLike,
        first_transition: npt.ArrayLike,
        successor: npt.ArrayLike,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike,
        *,
        expression: npt.ArrayLike | None = None,
        initial_state: int = 0,
        states: Mapping[str, npt.ArrayLike] | None = None,
        action: npt.ArrayLike | None = None,
        action_names: tuple[str, ...] = ("",),
    ) -> IntervalMDP:
        """Return the interval MDP of your own arrays, which are checked.

        Bounds are per transition, or per expression if expressions are given.

        >>> imdp = IntervalMDP.from_arrays([0, 1, 2], [0, 2, 3], [0, 1, 1], [0.1, 0.5, 1], [0.5, 0.9, 1])
        >>> imdp.graph.n_states, imdp.upper[imdp.expression[0]]
        (2, np.float64(0.5))
        """
        choices, transitions = _offsets("first_choice", first_choice), _offsets("first_transition", first_transition)
        n_states, n_choices = len(choices) - 1, len(transitions) - 1
        targets = _integers("successor", successor)
        columns = {"state": np.arange(n_states)} if states is None else states
        graph = Graph(
            choices,
            transitions,
            targets,
            initial_state,
            {name: own_array(values) for name, values in columns.items()},
            _integers("action", np.zeros(n_choices) if action is None else action),
            action_names,
        )
        number = np.arange(len(targets)) if expression is None else expression
        imdp = IntervalMDP(graph, _integers("expression", number), _floats(lower), _floats(upper))
        _check_shapes(imdp)
        return check_rows(imdp)

    def has_fixed_support(self) -> bool:
        """Return whether no transition can vanish that can have a probability at all."""
        return bool(((self.lower > 0) | (self.upper == 0)).all())

    @property
    def left_out(self) -> str:
        """A description of what was left out when the region was prepared for rows, empty if nothing was."""
        return self.region.left_out if isinstance(self.region, Shortened) else ""

    @property
    def nbytes(self) -> int:
        """The memory of all arrays."""
        return self.graph.nbytes + self.expression.nbytes + self.lower.nbytes + self.upper.nbytes


def instantiate(model: ParametricMDP, point: Point) -> IntervalMDP:
    """Return the Markov decision process at a point of the space, as intervals with lower = upper.

    Parameters
    ----------
    model
        The parametric model.
    point
        The value of each parameter.

    Returns
    -------
    IntervalMDP
        Each probability is the exact value of its expression, rounded to the nearest float.

    Examples
    --------
    >>> from plumdp import case_study
    >>> study = case_study("betting:25")
    >>> mdp = instantiate(study.model, study.true_point)
    >>> bool((mdp.lower == mdp.upper).all())
    True
    """
    probability = read_only(model.probabilities(point))
    return IntervalMDP(model.graph, model.expression, probability, probability)


def check_rows(imdp: IntervalMDP) -> IntervalMDP:
    """Return the model, or refuse bounds that are not an interval in [0, 1] and rows that no distribution fits."""
    fault = first_fault(imdp)
    if fault is not None:
        raise ModelError(fault[1])
    return imdp


def first_fault(imdp: IntervalMDP) -> tuple[int, str] | None:
    """Return the first transition whose bounds or row are wrong, and a description of the fault, or None."""
    lower, upper = imdp.lower, imdp.upper
    for wrong, what in (
        (~(np.isfinite(lower) & np.isfinite(upper)), "not numbers"),
        (lower > upper, "the lower above the upper"),
        ((lower < 0) | (upper > 1), "outside [0, 1]"),
    ):
        bad = wrong[imdp.expression]
        if bad.any():
            transition = int(np.argmax(bad))
            f = imdp.expression[transition]
            where = describe_transition(imdp.graph, transition)
            return transition, f"{where}: the bounds {lower[f]:g} and {upper[f]:g} are {what}"
    least, most = imdp.graph.sum_by_choice(lower[imdp.expression]), imdp.graph.sum_by_choice(upper[imdp.expression])
    # bounds are rounded numbers: sums that miss 1 by no more fit a distribution
    slack = ULP * (np.diff(imdp.graph.first_transition) + 1)
    for wrong, sums, what in (
        (least > 1 + slack, least, "lower bounds sum to {:.17g}"),
        (most < 1 - slack, most, "upper bounds sum to only {:.17g}"),
    ):
        if wrong.any():
            choice = int(np.argmax(wrong))
            fault = f"the {what.format(sums[choice])}, so no distribution fits"
            if abs(sums[choice] - 1) < _AS_IF_ROUNDED:
                fault += "; if these are rounded numbers, write them with all their digits (17), or as intervals"
            return int(imdp.graph.first_transition[choice]), f"{imdp.graph.describe_choice(choice)}: {fault}"
    return None


def describe_transition(graph: Graph, transition: int) -> str:
    """Return a transition as text, for instance ``state (x=3), action 'up', successor (x=4)``."""
    choice = graph.choice_of(transition)
    return f"{graph.describe_choice(choice)}, successor ({graph.describe_state(int(graph.successor[transition]))})"


def _check_shapes(imdp: IntervalMDP) -> None:
    graph, n_expressions = imdp.graph, len(imdp.lower)
    if len(imdp.upper) != n_expressions:
        raise ModelError(f"{n_expressions} lower bounds, but {len(imdp.upper)} upper bounds")
    for name, last, size, things in (
        ("first_choice", graph.first_choice[-1], graph.n_choices, "choices"),
        ("first_transition", graph.first_transition[-1], graph.n_transitions, "transitions"),
    ):
        if last != size:
            raise ModelError(f"{name} ends with {last}, but there are {size} {things}")
    if len(imdp.expression) != graph.n_transitions:
        raise ModelError(f"{len(imdp.expression)} expressions for {graph.n_transitions} transitions")
    if len(graph.action) != graph.n_choices:
        raise ModelError(f"{len(graph.action)} actions for {graph.n_choices} choices")
    for name, values in graph.states.items():
        if len(values) != graph.n_states:
            raise ModelError(f"state variable {name} has {len(values)} values for {graph.n_states} states")
    for name, values, size in (
        ("successor", graph.successor, graph.n_states),
        ("expression", imdp.expression, n_expressions),
        ("action", graph.action, len(graph.action_names)),
        ("initial_state", np.array([graph.initial_state]), graph.n_states),
    ):
        if len(values) and not (values.min() >= 0 and values.max() < size):
            wrong = values[(values < 0) | (values >= size)][0]
            raise ModelError(f"{name} {wrong} is out of range: it must be at least 0 and below {size}")
    empty_states = np.flatnonzero(np.diff(graph.first_choice) == 0)
    if len(empty_states):
        raise ModelError(f"state ({graph.describe_state(int(empty_states[0]))}) has no choice; give it a self-loop")
    empty_choices = np.flatnonzero(np.diff(graph.first_transition) == 0)
    if len(empty_choices):
        raise ModelError(f"{graph.describe_choice(int(empty_choices[0]))} has no transition")


def _offsets(name: str, values: npt.ArrayLike) -> IntArray:
    offsets = _integers(name, values)
    if not len(offsets) or offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise ModelError(f"{name} must start with 0 and never decrease")
    return offsets


def _integers(name: str, values: npt.ArrayLike) -> IntArray:
    array: npt.NDArray[Any] = np.asarray(values)
    if array.ndim != 1:
        raise ModelError(f"{name} must be a one-dimensional array, not of shape {array.shape}")
    if array.dtype != np.int32:
        as_integers = array.astype(np.int32)
        if (as_integers != array).any():
            raise ModelError(f"{name} must hold 32-bit integers")
        array = as_integers
    return own_array(array)


def _floats(values: npt.ArrayLike) -> FloatArray:
    return own_array(values, np.float64)


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
        named = [
            f"{what} {', '.join(map(repr, names))}"
            for what, names in (("labels", self.labels), ("rewards", self.rewards))
            if names
        ]
        return one_line(self, *(number_of(n, thing) for n, thing in sizes), *named)

    def _repr_html_(self) -> str:
        graph = self.graph
        return html_table(
            [
                ("states", f"{graph.n_states:,}"),
                ("choices", f"{graph.n_choices:,}"),
                ("transitions", f"{graph.n_transitions:,}"),
                ("variables", ", ".join(graph.states)),
                (
                    "labels",
                    ", ".join(f'"{k}" ({number_of(int(mask.sum()), "state")})' for k, mask in self.labels.items()),
                ),
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
