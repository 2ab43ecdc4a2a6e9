"""The values of learned rewards in a log: their columns, what a query sums up of them, and values that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError
from plumdp.data.mapping_language import Term, parse_mapping
from plumdp.data.seen import SQUARES, CountArray
from plumdp.model.graph import Indices
from plumdp.model.learned_rewards import LearnedRewards

_Block: TypeAlias = Mapping[str, npt.NDArray[Any]]

_VALUE = "reward of the step "  # before the name of a learned reward; no variable is called so
_SUMS = ("", " squared, first part", " squared, second part")  # after it: columns of sums, in the order of ``Seen``
_LEAST, _MOST, _LACKING = " at least", " at most", " lacking"  # after it: of rows that are alike; how many have none


class Rewards(NamedTuple):
    """The learned rewards of a model, each with the number of units that a value of one is read as."""

    per_unit: Mapping[str, int]
    is_needed: bool  # whether nothing but their values tells of some parameter

    def sources(self, column: Mapping[str, str]) -> dict[str, Term]:
        """Return the columns of values as the nearest whole numbers of units, given what they are called in the log."""
        return {
            _VALUE + name: parse_mapping(f"floor(value * {n} + 0.5)").renamed({"value": column[name]})
            for name, n in self.per_unit.items()
        }


def value_columns(columns: Iterable[str]) -> dict[str, str]:
    """Return which of some columns have values of learned rewards, by the names of these."""
    return {name: name.removeprefix(_VALUE) for name in columns if name.startswith(_VALUE)}


def value_sql(columns: Mapping[str, str]) -> dict[str, str]:
    """Return columns of values as whole numbers, null where there is none or a far too large one."""
    return {name: f"TRY_CAST({columns[name]} AS INTEGER)" for name in value_columns(columns)}


def sums_sql(name: str, value: str, times: str, *, is_warehouse: bool) -> dict[str, str]:
    """Return what a query sums up of a column of values, of which each row counts so many times.

    DuckDB has sums of 128 bits, which are taken apart at the end; elsewhere, each square is.
    """
    square = f"CAST({value} AS BIGINT) * {value}"
    second = f"MOD({square}, {SQUARES})"
    total = f"sum(CAST({square} AS HUGEINT) * ({times}))" if times != "1" else f"sum({square})"
    parts = [f"CAST({total} // {SQUARES} AS BIGINT)", f"CAST({total} % {SQUARES} AS BIGINT)"]
    if is_warehouse:
        each = [f"CAST(({square} - {second}) / {SQUARES} AS BIGINT)", second]
        parts = [f"CAST(sum({part} * ({times})) AS BIGINT)" for part in each]
    sums = [f"CAST(sum({value} * ({times})) AS BIGINT)" if times != "1" else f"CAST(sum({value}) AS BIGINT)", *parts]
    return {
        **{name + suffix: part for suffix, part in zip(_SUMS, sums, strict=True)},
        name + _LEAST: f"min({value})",
        name + _MOST: f"max({value})",
        name + _LACKING: f"count(*) - count({value})",
    }


def add_sums(rewards: CountArray, names: Iterable[str], block: _Block, rows: Indices, transition: Indices) -> None:
    """Add the sums in some rows of a block to those (n_learned, 3, n_transitions) of learned rewards."""
    for sums, name in zip(rewards, names, strict=True):
        for total, suffix in zip(sums, _SUMS, strict=True):
            np.add.at(total, transition, np.ma.filled(block[_VALUE + name + suffix], 0).astype(np.int64)[rows])


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
            f"the data contradict the model: {where}: the value of {self.name} is {shown}, and the space of the "
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
