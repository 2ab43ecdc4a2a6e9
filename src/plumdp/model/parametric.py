"""The parametric MDP, a graph with one expression on each edge, over a declared parameter space, and its distinct rows.

Models have few distinct rows, sequences of expressions, beside their choices. Results that depend on the expressions of
a row are found once for each distinct row, in its *places*, which are the transitions of one choice that has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.base.vocabulary import Trait, having
from plumdp.model import kernels
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import (
    BoolArray,
    FloatArray,
    Graph,
    Indices,
    IntArray,
    offset_type,
    own_array,
    owners,
    owners_of,
    ranges,
    read_only,
    update_digest,
)
from plumdp.model.learned_rewards import LearnedRewards
from plumdp.model.space import ParameterSpace, Point
from plumdp.model.text import html_table, number_of, one_line


@dataclass(frozen=True, eq=False)
class RowClasses:
    """Row ``r`` has the places ``first[r]`` up to ``first[r + 1]``, in the order of the transitions of its choices."""

    first_transition: IntArray  # (n_choices + 1), of the graph
    number: IntArray  # (n_choices): the row of each choice
    representative: IntArray  # (n_rows): the first choice that has it

    def __len__(self) -> int:
        return len(self.representative)

    @cached_property
    def first(self) -> IntArray:
        """The offsets (n_rows + 1) of the places of each row."""
        starts = self.first_transition
        return offsets_of(starts[self.representative + 1] - starts[self.representative])

    @cached_property
    def n_choices(self) -> IntArray:
        """The number of choices that have each row (n_rows)."""
        return read_only(np.bincount(self.number, minlength=len(self)).astype(np.int32))

    @property
    def transition(self) -> Indices:
        """The transition at each place, of the choice that represents the row."""
        starts = self.first_transition
        return ranges(starts[self.representative], starts[self.representative + 1])

    def place_of(self, transitions: Indices) -> tuple[IntArray, Indices]:
        """Return choice and place of some transitions, which are in order."""
        first = self.first_transition
        is_few = 8 * len(transitions) < len(first)  # then each is looked up
        choice = owners_of(first, transitions) if is_few else owners(first)[transitions]
        return choice, transitions + (self.first[self.number[choice]] - first[choice])

    def sum_by_place(self, counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the sums (n_places) of numbers on transitions, exact for whole numbers, most of which may be zero."""
        counted = np.flatnonzero(counts != 0)
        total = np.zeros(self.first[-1], dtype=counts.dtype)
        np.add.at(total, self.place_of(counted)[1], counts[counted])
        return total

    def sum_by_row(self, by_place: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the sums (n_rows) over the places of each row."""
        return np.add.reduceat(by_place, self.first[:-1]) if len(self) else by_place

    def by_transition(self, of_place: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each transition the value that is given for its place."""
        starts = self.first_transition
        first = self.first[:-1][self.number]
        return of_place[ranges(first, first + np.diff(starts))]

    def by_choice(self, first: IntArray, items: npt.NDArray[Any]) -> tuple[IntArray, npt.NDArray[Any]]:
        """Return offsets and items of choices, given those of rows, where row r has those from ``first[r]`` on."""
        start, end = first[:-1][self.number], first[1:][self.number]
        return offsets_of(end - start), items[ranges(start, end)]


def offsets_of(sizes: Indices) -> IntArray:
    """Return the offsets at which groups of the given sizes start, and the end of the last one."""
    offsets = np.zeros(len(sizes) + 1, dtype=offset_type(int(np.sum(sizes, dtype=np.int64))))
    np.cumsum(sizes, out=offsets[1:])
    return read_only(offsets)


def find_row_classes(first: IntArray, items: IntArray) -> RowClasses:
    """Return the distinct rows, ``items[first[r]]`` up to ``items[first[r + 1]]``."""
    n_rows = len(first) - 1
    slots = np.full(1 << max(4, (2 * n_rows).bit_length()), kernels.EMPTY, dtype=np.int32)
    number, representative = np.empty(n_rows, dtype=np.int32), np.empty(n_rows, dtype=np.int32)
    n_distinct = kernels.row_classes(read_only(first.view()), read_only(items.view()), slots, number, representative)
    return RowClasses(first, read_only(number), read_only(representative[:n_distinct].copy()))


_ROUNDING = 1e-9  # what probabilities of a table may be off one, or off those of a tied row


@dataclass(frozen=True, eq=False)
class RewardStructure:
    """The reward of a step, that of its state plus that of its choice, either of which may be absent (zero).

    Rewards of choices may be unknown; what these are at least is then that of the choice, and data tell the rest.
    """

    state: FloatArray | None  # (n_states)
    choice: FloatArray | None  # (n_choices)
    learned: LearnedRewards | None = None
    out_of_table: tuple[float, float] | None = None  # what a step earns outside of a table, at least and at most

    def __repr__(self) -> str:
        parts = (("state", self.state), ("choice", self.choice))
        return one_line(self, *(number_of(len(v), f"{name} reward") for name, v in parts if v is not None))

    def at(self, choices: Indices) -> RewardStructure:
        """Return the rewards of choices on a model that has only these, as often as they are given."""
        learned = None if self.learned is None else self.learned.of_choices(self.learned.coin[choices])
        return RewardStructure(self.state, None if self.choice is None else self.choice[choices], learned)

    def without(self, choices: BoolArray) -> RewardStructure:
        """Return rewards of choices alone, with none for some of them."""
        learned = None if self.learned is None else self.learned.of_choices(np.where(choices, -1, self.learned.coin))
        return RewardStructure(self.state, None if self.choice is None else np.where(choices, 0, self.choice), learned)

    def __post_init__(self) -> None:
        for part in ("state", "choice"):
            values = getattr(self, part)
            if values is not None:
                object.__setattr__(self, part, _rewards(part, values))


@dataclass(frozen=True, eq=False)
class Lift:
    """The tie of a model to the one that data count, by which each choice has the row of a choice there.

    The rows of a product with memory are those of the model without it, and the rows of a model on disk are those of a
    small model that has each of them once. What data say of the parameters is about the counted rows alone.
    """

    counted: ParametricMDP
    choice: Indices  # (n_choices): the choice there that has the same row

    def __repr__(self) -> str:
        return one_line(self, number_of(len(self.choice), "choice"), number_of(self.counted.graph.n_choices, "row"))


@dataclass(frozen=True, eq=False)
class ParametricMDP:
    """A model whose structure is known, with rows of expressions in unknown parameters, and rows that are free."""

    graph: Graph
    declared_space: ParameterSpace  # as the user gave it
    space: ParameterSpace  # the same, cut by 0 <= f <= 1 for every affine expression f
    expressions: ExpressionTable
    expression: IntArray  # (n_transitions), index into expressions
    labels: Mapping[str, BoolArray]  # label → (n_states)
    rewards: Mapping[str, RewardStructure]
    constants: Mapping[str, bool | int | Fraction]  # what properties may refer to by name
    lift: Lift | None = None  # to the model whose transitions are counted, if that is another one
    source: ParametricMDP | None = None  # that this is a view of, see ``views``
    gaps: IntArray | None = (
        None  # (n_choices): steps until the next observation, if choices are observations, see ``gaps``
    )
    ends: tuple[int, ...] = ()  # of observations: states whose step of entry is known

    def __repr__(self) -> str:
        graph = self.graph
        unknown = f" in {', '.join(self.space.names)}" if self.space.names else ""
        expressions = number_of(len(self.expressions), "expression") + unknown
        if self.has_free_rows:
            rows = number_of(int(self.is_free_row.sum()), "unknown row")
            expressions = rows if self.is_table else f"{rows}, parameters {', '.join(self.space.names)}"
        return one_line(
            self, number_of(graph.n_states, "state"), number_of(graph.n_transitions, "transition"), expressions
        )

    def _repr_html_(self) -> str:
        graph, table = self.graph, self.expressions
        rows = {
            "states": f"{graph.n_states:,}",
            "choices": f"{graph.n_choices:,}",
            "transitions": f"{graph.n_transitions:,}",
            "variables": ", ".join(graph.states),
            "parameters": "; ".join(self.space.describe()[:20]),
            "expressions": f"{len(table):,}, of which {int(table.is_unknown.sum()):,} {_how_unknown(self)}",
            "labels": ", ".join(
                f'"{name}" ({number_of(int(mask.sum()), "state")})' for name, mask in self.labels.items()
            ),
            "rewards": ", ".join(f'"{name}"' for name in self.rewards),
        }
        return html_table([(what, value) for what, value in rows.items() if value])

    @property
    def counted(self) -> ParametricMDP:
        """The model whose transitions data count, which is itself, or the one that its rows are lifted from."""
        return self if self.lift is None else self.lift.counted

    @property
    def counted_graph(self) -> Graph:
        """The graph whose transitions data count: its own, unless its choices are looks."""
        return self.graph if self.counted.gaps is None else self.counted.graph

    @cached_property
    def asked_expressions(self) -> ExpressionTable:
        """The expressions that questions are about: of a model whose choices are observations the first, else all."""
        if self.gaps is None:
            return self.expressions
        single = self.graph.transitions_of(np.flatnonzero(self.gaps == 1))
        n = int(self.expression[single].max()) + 1
        return ExpressionTable.build(self.expressions.polynomials[:n], self.space.names)

    @cached_property
    def rows(self) -> RowClasses:
        """The distinct sequences of expressions of its choices."""
        return find_row_classes(self.graph.first_transition, self.expression)

    @property
    def learned_rewards(self) -> dict[str, LearnedRewards]:
        """The rewards that are expressions in unknown parameters, by name."""
        return {name: each.learned for name, each in self.rewards.items() if each.learned is not None}

    @property
    def is_table(self) -> bool:
        """Whether rows of the model are simply unknown (free), and nothing in it has parameters."""
        return self.has_free_rows and not self.space.names

    @property
    def has_free_rows(self) -> bool:
        """Whether rows of the model are simply unknown (free), perhaps beside rows with parameters."""
        return self.expressions.n_free > 0

    @property
    def traits(self) -> frozenset[Trait]:
        """What may not go together with something that is asked of it."""
        counted = self.counted
        return having(
            self.graph.levels is not None and Trait.DISK,
            counted.is_table and (Trait.TABLE if counted.source is None else Trait.VIEW),
            counted.gaps is not None and Trait.GAPS,
            bool(self.learned_rewards or counted.learned_rewards) and Trait.LEARNED_REWARDS,
            self.lift is not None and Trait.LIFTED,
            self.graph.memory is not None and Trait.MEMORY,
        )

    @property
    def no_points(self) -> str:
        """Why there are no values at points of the parameters, for estimates and differences, or an empty text."""
        if self.counted.is_table:
            return "in a table of unknown rows there are bets on values, and none on differences"
        return "" if self.graph.levels is None else "a model that is stored on disk is solved within intervals"

    @cached_property
    def is_free_row(self) -> BoolArray:
        """For each distinct row of ``rows`` whether it is free (n_rows)."""
        is_free = np.zeros(len(self.rows), dtype=np.bool_)
        if self.has_free_rows:
            free = self.expression >= len(self.expressions.polynomials)
            is_free[self.rows.number[self.graph.choice_of_transition()[free]]] = True
        return read_only(is_free)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of graph, parameter space, and the expression of each transition, which a guarantee rests on.

        That of a view is the one of its model.
        """
        if self.source is not None and self.source.graph is self.graph:
            return self.source.fingerprint
        digest = blake2b(self.graph.fingerprint.encode(), digest_size=16)
        for space in (self.space, self.declared_space):
            digest.update(repr((space.names, space.bounds, [str(side) for side in space.constraints])).encode())
        digest.update(repr((self.expressions.names, [str(f) for f in self.expressions.polynomials])).encode())
        if self.has_free_rows:
            digest.update(f"{self.expressions.n_free} free".encode())
        update_digest(digest, self.expression)
        return digest.hexdigest()

    @property
    def nbytes(self) -> int:
        """The memory of all arrays."""
        rewards = [part for r in self.rewards.values() for part in (r.state, r.choice) if part is not None]
        of_expressions = self.expression.nbytes + self.expressions.nbytes
        return self.graph.nbytes + of_expressions + sum(array.nbytes for array in (*self.labels.values(), *rewards))

    def probabilities(self, point: Point) -> FloatArray:
        """Return the value of each expression at a point, to the nearest float, all of which must lie in [0, 1].

        A point of a model with free rows is an array of one probability for each transition. If there are parameters,
        too, it is the pair of their values and of such an array, of which rows with expressions are ignored.
        """
        if not self.has_free_rows:
            return self._of_polynomials(point)
        if not self.space.names:
            return _table_probabilities(self, point, self._of_polynomials({}))
        if not isinstance(point, tuple) or len(point) != 2:
            raise ModelError(
                f"this model has the parameters {', '.join(self.space.names)}, and rows that are unknown: give a pair "
                "as the point, values of the parameters, and an array with a probability for each of its "
                f"{self.graph.n_transitions:,} transitions"
            )
        of_parameters: Any = point[0]
        known, n = self._of_polynomials(of_parameters), len(self.expressions.polynomials)
        given = np.array(point[1], dtype=np.float64)
        if given.shape == (self.graph.n_transitions,):
            given = np.where(self.expression < n, np.append(known, 0.0)[np.minimum(self.expression, n)], given)
        return _table_probabilities(self, given, known)

    def _of_polynomials(self, point: Point) -> FloatArray:
        """Return the value of each polynomial at a point, to the nearest float."""
        polynomials = self.expressions.polynomials
        at = self.space.point(point)
        values = [polynomial.evaluate(at) for polynomial in polynomials]
        for polynomial, value in zip(polynomials, values, strict=True):
            if not 0 <= value <= 1:
                where = ", ".join(f"{name}={float(v):g}" for name, v in at.items())
                raise ModelError(
                    f"at {where} the expression {polynomial} is {float(value):g}, which is not a probability"
                )
        return np.array([value.numerator / value.denominator for value in values])


def _table_probabilities(model: ParametricMDP, point: Point, known: FloatArray) -> FloatArray:
    """Return the value of each expression that one probability for each transition gives, checked."""
    graph, expression, n_known = model.graph, model.expression, len(model.expressions.polynomials)
    is_pair = isinstance(point, tuple) and len(point) == 2 and isinstance(point[0], Mapping)
    given = None if is_pair or isinstance(point, Mapping) else np.asarray(point)
    if given is None or given.shape != (graph.n_transitions,) or given.dtype.kind not in "iuf":
        what = "a pair" if is_pair else "a mapping" if given is None else f"{given.dtype} of shape {given.shape}"
        raise ModelError(
            f"rows of this model are unknown: give an array with a probability for each of its "
            f"{graph.n_transitions:,} transitions as the point, not {what}"
        )
    values = np.empty(len(model.expressions))
    values[:n_known] = known
    values[expression[::-1]] = np.where(expression < n_known, values[expression], given)[::-1]  # the first of each row
    is_wrong = ~((given >= 0) & (given <= 1) & (np.abs(given - values[expression]) <= _ROUNDING))
    if is_wrong.any():
        t = int(np.argmax(is_wrong))
        where = graph.describe_choice(graph.choice_of(t))
        is_number = 0 <= given[t] <= 1
        how = "it is known to be" if expression[t] < n_known else "in the row it is tied to, it is"
        why = f"{how} {values[expression[t]]:g}" if is_number else "that is not a probability"
        raise ModelError(f"{where}, successor ({graph.describe_state(int(graph.successor[t]))}): {given[t]:g}; {why}")
    sums = graph.sum_by_choice(values[expression])
    if (np.abs(sums - 1) > _ROUNDING).any():
        choice = int(np.argmax(np.abs(sums - 1)))
        raise ModelError(f"{graph.describe_choice(choice)}: the probabilities sum to {sums[choice]:g}, not 1")
    return values


def _how_unknown(model: ParametricMDP) -> str:
    if not model.has_free_rows:
        return "depend on parameters"
    free = f"are the unknown probabilities of {number_of(int(model.is_free_row.sum()), 'row')}"
    return free if model.is_table else f"depend on parameters or {free}"


def require_model(function: str, model: object) -> None:
    """Refuse a value that is not a parametric MDP, and say what to write instead."""
    if not isinstance(model, ParametricMDP):
        hint = "its .model" if isinstance(getattr(model, "model", None), ParametricMDP) else "explore or read_model"
        raise ModelError(f"{function} takes a parametric MDP ({hint} gives one), not {type(model).__name__}")


def _rewards(part: str, values: npt.ArrayLike) -> FloatArray:
    """Return the rewards of a part as finite floats of our own."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise ModelError(f"{part} rewards: give one number for each {part}, not {array.dtype} of shape {array.shape}")
    rewards: FloatArray = own_array(array, np.float64)
    if not np.isfinite(rewards).all():
        first = int(np.argmax(~np.isfinite(rewards)))
        raise ModelError(f"{part} rewards must be finite numbers; that of {part} {first} is {rewards[first]}")
    return rewards
