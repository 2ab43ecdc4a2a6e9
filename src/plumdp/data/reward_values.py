"""The values of learned rewards in a log: their columns, what a query sums up of them, and values that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError
from plumdp.data.mapping_language import MappingTerm, column, number
from plumdp.data.seen import SQUARES, CountArray
from plumdp.model.graph import Graph, Indices
from plumdp.model.learned_rewards import LearnedRewards
from plumdp.model.parametric import ParametricMDP

_Block: TypeAlias = Mapping[str, npt.NDArray[Any]]

_VALUE = "reward of the step "  # before the name of a learned reward; no variable is called so
_SUMS = ("", " squared, first part", " squared, second part")  # after it: columns of sums, in the order of ``Seen``
_LEAST, _MOST, _LACKING = " at least", " at most", " lacking"  # after it: of rows that are alike; how many have none
_NAMES = ("_sum", "_squares_1", "_squares_2", "_least", "_most", "_lacking")  # the same in ready-made counts
_KEPT = tuple(zip((*_SUMS, _LEAST, _MOST, _LACKING), _NAMES, strict=True))
_LARGEST = 2**31 - 1  # units; far more than any range has


class Rewards(NamedTuple):
    """The learned rewards of a model, each with the number of units that a value of one is read as."""

    per_unit: Mapping[str, int]
    is_needed: bool  # whether nothing but their values tells of some parameter

    @staticmethod
    def of(model: ParametricMDP) -> Rewards:
        """Return the learned rewards of a model, which a log must have if some parameter is in no row."""
        learned, polynomials = model.learned_rewards, model.expressions.polynomials
        numbers = {int(f) for each in learned.values() for f in each.expression.ravel()}
        names = {name for f in numbers for name in polynomials[f].names}
        used = np.unique(model.expression).tolist() if learned else []
        of_rows = {name for f in used for name in polynomials[f].names}
        return Rewards({name: each.per_unit for name, each in learned.items()}, is_needed=not names <= of_rows)

    def columns(self, others: Container[str]) -> dict[str, str]:
        """Return the names of the columns of values in a log that has others besides."""
        return {name: f"reward_{name}" if name in others else name for name in self.per_unit}

    def sources(self, columns: Mapping[str, str]) -> dict[str, MappingTerm]:
        """Return values in units, given the columns that have them."""
        return {
            _VALUE + name: MappingTerm(f"({column(columns[name], 'number')} * {number(n)})")
            for name, n in self.per_unit.items()
        }

    def kept_columns(self, sizes: Iterable[int]) -> dict[str, str]:
        """Return the names of the columns of sums in ready-made counts, of all runs and of the first so many.

        The unit is part of the name, so that sums in other units are not taken for these.
        """
        first = {f"{suffix}{_first(n)}": f"{kept}_first_{n}" for n in sizes for suffix, kept in _KEPT[:3]}
        return {
            f"{_VALUE}{name}{suffix}": f"{name}_in_{n}ths{kept}"
            for name, n in self.per_unit.items()
            for suffix, kept in (*_KEPT, *first.items())
        }


def _first(size: int) -> str:
    """Return the end of the name of a sum over the first so many runs."""
    return f" of the first {size}"


def value_columns(columns: Iterable[str]) -> dict[str, str]:
    """Return which of some columns have values of learned rewards, by the names of these."""
    return {name: name.removeprefix(_VALUE) for name in columns if name.startswith(_VALUE)}


def with_values(columns: Mapping[str, str], *, is_warehouse: bool = False) -> dict[str, str]:
    """Return columns with values as the nearest whole numbers, null where there is none or a far too large one.

    DuckDB rounds where it casts; others may cut off.
    """
    nearest = f"CASE WHEN {{0}} BETWEEN -{_LARGEST} AND {_LARGEST} THEN CAST(floor({{0}} + 0.5) AS BIGINT) END"
    form = nearest if is_warehouse else "TRY_CAST({0} AS INTEGER)"
    return {**columns, **{name: form.format(columns[name]) for name in value_columns(columns)}}


def range_sql(name: str, value: str) -> dict[str, str]:
    """Return the SQL of the range of a column of values."""
    counted = {_LEAST: f"min({value})", _MOST: f"max({value})", _LACKING: f"count(*) - count({value})"}
    return {name + suffix: function for suffix, function in counted.items()}


def sums_sql(name: str, value: str, times: str, *, is_warehouse: bool, first: int | None = None) -> dict[str, str]:
    """Return the SQL of the sums of a column of values, each row of which counts so many times.

    The name says if it is a sum over the ``first`` runs. DuckDB has sums of 128 bits, which are taken apart at the end;
    elsewhere, each square is.
    """
    square = f"CAST({value} AS BIGINT) * {value}"
    second = f"MOD({square}, {SQUARES})"
    total = f"sum({square})" if times == "1" else f"sum(CAST({square} AS HUGEINT) * ({times}))"
    parts = [f"CAST({total} // {SQUARES} AS BIGINT)", f"CAST({total} % {SQUARES} AS BIGINT)"]
    if is_warehouse:
        each = [f"CAST(({square} - {second}) / {SQUARES} AS BIGINT)", second]
        parts = [f"CAST(sum({part} * ({times})) AS BIGINT)" for part in each]
    value = value if times == "1" else f"{value} * ({times})"
    of_runs = "" if first is None else _first(first)
    sums = zip(_SUMS, [f"CAST(sum({value}) AS BIGINT)", *parts], strict=True)
    return {f"{name}{suffix}{of_runs}": part for suffix, part in sums}


def add_sums(
    rewards: CountArray,
    names: Iterable[str],
    block: _Block,
    rows: Indices,
    transition: Indices,
    first: int | None = None,
) -> None:
    """Add the sums in some rows of a block, or those over the first runs, to sums (n_learned, 3, n_transitions)."""
    of_runs = "" if first is None else _first(first)
    for sums, name in zip(rewards, names, strict=True):
        for total, suffix in zip(sums, _SUMS, strict=True):
            values = np.ma.filled(block[f"{_VALUE}{name}{suffix}{of_runs}"], 0).astype(np.int64)
            np.add.at(total, transition, values[rows])


def add_values(
    sums: CountArray,
    name: str,
    learned: LearnedRewards,
    graph: Graph,
    transition: Indices,
    values: Sequence[Any],
    where: str,
) -> None:
    """Add values of a learned reward, one for each step, to its sums (3, n_transitions); refuse one that cannot be."""
    coin = learned.coin[graph.choice_of_transition()[transition]]
    scaled = np.array([float(value) for value in values]) * learned.per_unit
    low, span = (units[coin] for units in learned.units)
    units = np.rint(np.clip(np.nan_to_num(scaled, nan=_LARGEST), -_LARGEST, _LARGEST)).astype(np.int64)
    outside = np.flatnonzero((coin >= 0) & ((units < low) | (units > low + span)))
    for i in outside[:1].tolist():
        ends = learned.low[coin[i]], learned.low[coin[i]] + learned.span[coin[i]]
        raise RewardFault(name, i, scaled[i], ends, learned.per_unit).refusal(f"{where}, step {i}")
    units = np.where(coin >= 0, units, 0)
    for total, part in zip(sums, (units, *np.divmod(units**2, SQUARES)), strict=True):
        np.add.at(total, transition, part)


class RewardFault(NamedTuple):
    """A value of a learned reward that is missing, or is not in the range that the model has for it."""

    name: str
    row: int  # of a block
    value: Any
    ends: tuple[Fraction, Fraction]
    per_unit: int

    @property
    def where(self) -> dict[str, Any]:
        """The value, by the name of its column."""
        return {_VALUE + self.name: self.value}

    def refusal(self, where: str) -> DataError:
        """Return the error, given where the value is."""
        shown = "missing or far too large" if self.value is None else f"{self.value / self.per_unit:.10g}"
        low, high = (f"{float(end):.10g}" for end in self.ends)
        return DataError(
            f"the data reject the model: {where}: the value of {self.name} is {shown}, and the space of the "
            f"parameters says that it is a number from {low} to {high}"
        )


def find_fault(
    rewards: Mapping[str, LearnedRewards], block: _Block, choice: Indices, plain: Callable[[Any], Any]
) -> RewardFault | None:
    """Return the first value in a block that is missing or out of its range, given the choice of each row, or -1."""
    for name, learned in rewards.items():
        column, coin = _VALUE + name, np.where(choice < 0, -1, learned.coin[choice])
        low, span = (units[coin] for units in learned.units)
        least, most = (block[column + side] for side in (_LEAST, _MOST))
        for wrong, values in (
            (block[column + _LACKING] > 0, [None] * len(coin)),
            (least < low, least),
            (most > low + span, most),
        ):
            rows = np.flatnonzero((coin >= 0) & np.ma.filled(wrong, False))
            if len(rows):
                i, lowest = int(rows[0]), learned.low[coin[rows[0]]]
                ends = lowest, lowest + learned.span[coin[i]]
                return RewardFault(name, i, plain(values[i]), ends, learned.per_unit)
    return None
