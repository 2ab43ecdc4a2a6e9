"""Writes the likelihood of a model as a product of affine probabilities, pooled over rows with the same outcomes.

ln likelihood(v) = Σ count[j] ln f[j](v), where every f[j] is affine, so that it is concave. Rows are of these kinds:

* A row whose outcomes are all affine is one class.
* A tree of coins (``coin_trees``) has one class for each node.
* A row of which every outcome is a constant times affine factors that are at least zero on the space, such as a²,
  2 a (1 - a), (1 - a)², is one group of factors. As ln f = constant + Σ power ln factor, the likelihood has the same
  shape, but factors do not sum to one, and nothing can be bet on them.
* Any other row has no part in the table. If each outcome is a sum over hidden paths (``path_sums``), the row is one of
  ``paths``, whose likelihood is bounded on boxes of parameters (``path_likelihood``). Otherwise it is left out.

State and action alone decide which rows have a part, so that the rest is the likelihood of a predictable part of the
steps.

Classes with the same polynomials are one class, whatever rows they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise
from math import fsum, gcd, lcm
from typing import NamedTuple, TypeAlias

import numpy as np
from flint import fmpz_mat

from plumdp.base.errors import ModelError
from plumdp.base.kinds import Kinds
from plumdp.base.rounding import UNIT, sum_once
from plumdp.base.vocabulary import Trait
from plumdp.confidence.coin_trees import Factorise, TreeNode, affine_factors, find_tree
from plumdp.confidence.path_sums import PathSum, find_path_sums, total
from plumdp.confidence.reward_coins import Pooled, RewardCoins
from plumdp.confidence.space_moments import is_nonnegative, moments
from plumdp.confidence.tied_rows import TiedRows, find_tied_rows, integers
from plumdp.data.seen import CountArray, Seen
from plumdp.model.expressions.polynomial import Polynomial, parameters, whole_terms
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import BoolArray, FloatArray, Indices, IntArray, ranges, read_only
from plumdp.model.learned_rewards import LearnedRewards
from plumdp.model.parametric import ParametricMDP, RowClasses
from plumdp.model.space import ParameterSpace, independent_blocks
from plumdp.model.text import number_of, one_line

_MANY_TERMS = 2_000  # of weighted slopes that are mostly not zero: from here on they are summed as arrays
MANY = 20  # parameters, beyond which sets have half-spaces across all outcomes, and none across each parameter
_Way: TypeAlias = list[tuple[int, int]]  # outcomes of the table that an outcome of a row counts for, and how often

_ONE = Polynomial(1)
_Direction: TypeAlias = tuple[tuple[int, int], ...]  # places and whole numbers that are not zero; empty for constants


class Entries(NamedTuple):
    """Nonzero coefficients, parameter by parameter."""

    first: list[int]  # (d + 1)
    outcome: Indices  # (n_entries)
    coefficient: FloatArray  # (n_entries)


@dataclass(frozen=True, eq=False)
class AffineOutcomes:
    """Outcomes with affine probabilities ``constants + coefficients @ point``, in groups.

    The outcomes of a group that is a class exclude each other and sum to one. In every group, an outcome is seen
    whenever the group is visited.
    """

    constants: FloatArray  # (n), to the nearest float
    coefficients: FloatArray  # (n, d), to the nearest float
    group: IntArray  # (n): the group of each outcome
    is_class: BoolArray  # (n_groups): whether its outcomes exclude each other and sum to one
    sizes: FloatArray  # (n): largest sum of absolute values of terms in the box of the space, which bounds rounding

    def visits(self, outcome_counts: FloatArray) -> FloatArray:
        """Return the visits of each class (n_groups), and for groups of factors the number of factors seen."""
        return np.bincount(self.group, outcome_counts, len(self.is_class)).astype(np.float64, copy=False)

    def by_group(self, values: FloatArray) -> FloatArray:
        """Return the sums (..., n_groups) of values of outcomes (..., n) over the outcomes of each group."""
        n, n_rows = len(self.is_class), values.size // max(len(self.group), 1)
        sums = np.bincount(self.numbered(n_rows), values.ravel(), n_rows * n)
        return sums.reshape(*values.shape[:-1], n).astype(np.float64, copy=False)

    def numbered(self, n_rows: int) -> Indices:
        """Return a number (n_rows · n) for the group of each outcome in each of some rows."""
        return (np.arange(n_rows)[:, None] * len(self.is_class) + self.group).ravel()

    def chances(self, point: FloatArray) -> FloatArray:
        """Return about the probability of each outcome at a point."""
        return np.asarray(self.constants + self.coefficients @ point)

    def values(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the probability of each outcome at a point, and a bound on the rounding error of that.

        Coefficients are nearest floats, and sums have d + 1 terms, so that each term is rounded at most d + 3 times.
        """
        size = np.abs(self.constants) + np.abs(self.coefficients) @ np.abs(point)
        return self.chances(point), (len(point) + 8) * UNIT * size

    @cached_property
    def entries(self) -> Entries:
        """The nonzero coefficients; most outcomes depend on few of many parameters."""
        parameter, outcome = np.nonzero(self.coefficients.T)
        first = np.searchsorted(parameter, np.arange(self.coefficients.shape[1] + 1))
        return Entries(first.tolist(), outcome, self.coefficients[outcome, parameter])

    def weighted_slopes(self, weights: FloatArray) -> FloatArray:
        """Return ``weights @ coefficients`` (d), where each sum is rounded once."""
        first, outcome, coefficient = self.entries
        if 2 * len(outcome) > self.coefficients.size > _MANY_TERMS:
            return sum_once(weights[:, None] * self.coefficients)
        terms = (weights[outcome] * coefficient).tolist()
        return np.array([fsum(terms[start:end]) for start, end in pairwise(first)])

    def split(self, outcome: Indices, group: Indices) -> AffineOutcomes:
        """Return some of the outcomes, each as often as it is given, in the given groups."""
        n_groups = int(group.max(initial=-1)) + 1
        is_class = np.zeros(n_groups, dtype=np.bool_)
        is_class[group] = self.is_class[self.group[outcome]]
        constants, coefficients = read_only(self.constants[outcome]), read_only(self.coefficients[outcome])
        return AffineOutcomes(
            constants, coefficients, integers(group), read_only(is_class), read_only(self.sizes[outcome])
        )


@dataclass(frozen=True, eq=False)
class LikelihoodTable(AffineOutcomes):
    """The outcomes of a model, and how counts of its transitions are pooled."""

    names: tuple[str, ...]
    outcomes: tuple[Polynomial, ...]  # (n), exact
    direction: IntArray  # (n): equal exactly for coefficients that are multiples of each other; -1 for constants
    basis: FloatArray  # (d, k): orthonormal, of the span of all coefficients; its rank k is exact
    lower: FloatArray  # (d): the box of the space
    upper: FloatArray  # (d)
    middle: FloatArray  # (d): a point inside the space, at which all outcomes have positive probabilities
    left_out: tuple[tuple[Polynomial, ...], ...]  # outcomes of the rows that are not part of any likelihood
    rows: RowClasses  # of the model
    tied_place: IntArray  # (n_places): outcome of a class of tied rows plus one, or 0 if there is none
    first: IntArray  # (n_tied + 2)
    counts_for: IntArray  # (n_ways): the outcomes of this table that an outcome of tied rows counts for
    multiple: FloatArray  # (n_ways): how often it counts for these
    coins: tuple[RewardCoins, ...] = ()  # of the learned rewards of the model, one for each of its reward structures
    paths: PathRows | None = None  # rows whose outcomes are sums over hidden paths, if there are any
    lifts: ExpressionTable | None = None  # the last parameters, as functions of the others, if outcomes are parameters

    def __repr__(self) -> str:
        rank = f"rank {self.basis.shape[1]} in {', '.join(self.names)}"
        return one_line(self, number_of(len(self.outcomes), "outcome"), number_of(len(self.is_class), "group"), rank)

    def pool(self, counts: CountArray | FloatArray) -> FloatArray:
        """Return the count of each outcome (n), given those of transitions, exact up to 2^53 steps."""
        tied = np.bincount(self.tied_place, self.rows.sum_by_place(counts), len(self.first) - 1)
        weights = np.repeat(tied, np.diff(self.first)) * self.multiple
        return np.bincount(self.counts_for, weights, len(self.outcomes)).astype(np.float64)

    def pool_seen(self, seen: Seen) -> Pooled:
        """Return the count of each outcome, among them those of coins that stand for learned rewards."""
        pooled = Pooled(self.pool(seen.counts), np.zeros(len(self.is_class)))
        for number, coins in enumerate(self.coins[: len(seen.rewards)]):
            shown = coins.shown(seen, number)
            _add(pooled.outcome_counts, coins.outcome.ravel(), shown.outcome_counts.ravel())
            _add(pooled.mixed, self.group[coins.outcome[:, 0]], shown.mixed)
        return pooled

    def pool_by_choice(self, counts: CountArray) -> CellCounts:
        """Return the count of each outcome at each choice, given those of transitions, exact up to 2^53."""
        transition = np.flatnonzero(counts != 0)
        return self.pool_by_cell(transition, self.rows.place_of(transition)[0], counts[transition])

    def pool_by_cell(self, transition: Indices, cell: Indices, counts: CountArray) -> CellCounts:
        """Return the count of each outcome in each cell, given how often transitions were seen in cells."""
        tied = self.tied_place[self.rows.place_of(transition)[1]]
        first, last = self.first[tied], self.first[tied + 1]
        way = ranges(first, last)
        owner = np.repeat(cell, last - first).astype(np.int64)
        amount = np.repeat(counts, last - first) * self.multiple[way]
        return _pooled(owner, self.counts_for[way], amount, len(self.outcomes))

    def lifted(self, point: FloatArray) -> FloatArray:
        """Return a point with the values of those parameters that are functions of others."""
        return point if self.lifts is None else np.append(point, self.lifts.evaluate(point[None, :])[:, 0])

    def in_parameters(self, outcome: Polynomial) -> Polynomial:
        """Return an outcome in the parameters of the model alone."""
        if self.lifts is None:
            return outcome
        constant, slopes = outcome.affine_terms()
        known = dict(zip(self.names[-len(self.lifts) :], self.lifts.polynomials, strict=True))
        return sum((c * known.get(name, *parameters(name)) for name, c in slopes.items()), Polynomial(constant))

    def basis_near(self, point: FloatArray) -> FloatArray:
        """Return directions (d, k) in which the parameters may change at a point, up to second order."""
        if self.lifts is None:
            return self.basis
        n = len(self.names) - len(self.lifts)
        basis = np.vstack([np.eye(n), self.lifts.value_and_gradient(point[:n])[1]])
        is_used = self.coefficients[:, :n].any(axis=0) | (self.lifts.monomials > 0).any(axis=0)
        return np.asarray(basis[:, is_used])

    @property
    def n_tied(self) -> int:
        """The number of choices with tied rows, also those left out, as dividing an error among too many is safe."""
        is_tied = np.logical_or.reduceat(self.tied_place > 0, self.rows.first[:-1])
        return int(self.rows.n_choices[is_tied].sum())

    @property
    def axes(self) -> FloatArray:
        """Directions across which sets have half-spaces around them: those of the parameters, unless they are many."""
        d = len(self.names)
        return np.eye(d if d <= MANY else 0, d)

    @cached_property
    def blocks(self) -> list[tuple[Indices, BoolArray]]:
        """The parameters of each block that no group ties to others, and which outcomes (n) are in groups about it."""
        is_about = np.zeros((len(self.is_class), len(self.names)))
        np.maximum.at(is_about, self.group, self.coefficients != 0)
        blocks = [
            (parameters, is_about[self.group][:, parameters].sum(axis=1) > 0)
            for parameters, _ in independent_blocks(is_about)
        ]
        return [block for block in blocks if block[1].any()]

    @cached_property
    def tied(self) -> IntArray:
        """The outcome of a class of tied rows that each transition is (n_transitions), plus one, or 0 if it is none."""
        return read_only(self.rows.by_transition(self.tied_place))


@dataclass(frozen=True, eq=False)
class PathRows:
    """Rows whose outcomes are sums over hidden paths, constants times powers of factors that are at least zero.

    Of the factors nothing is seen. Their expected numbers bound the likelihood, but are not bet on.
    """

    rows: tuple[tuple[Polynomial, ...], ...]  # (n_rows): their outcomes
    table: LikelihoodTable  # with the factors of each of these rows as one more group, behind all others
    factors: IntArray  # (n_factors): outcomes of that table, which are different polynomials
    outcome: IntArray  # (n_outcomes): in the order of ``tied_place``, so that its counts are those of transitions
    row: IntArray  # (n_outcomes): the row of each
    first: IntArray  # (n_outcomes + 1): of the paths of each
    constants: tuple[Fraction, ...]  # (n_paths)
    exponents: FloatArray  # (n_paths, n_factors): how often a path has each factor
    members: IntArray  # (n_rows, n_factors): the outcome of the table that is the factor in the group of a row, or -1
    visit: IntArray  # (n_rows): the factor one in the group of a row, for its visits
    bets: LikelihoodTable  # with the outcomes of these rows as classes, whose probabilities are further parameters

    def pool(self, seen: Seen) -> tuple[FloatArray, FloatArray]:
        """Return the count of each outcome of the table, and of each outcome of these rows."""
        table = self.table
        tied = np.bincount(table.tied_place, table.rows.sum_by_place(seen.counts), len(table.first) - 1)
        return table.pool_seen(seen).outcome_counts, tied[self.outcome].astype(np.float64)


def _add(totals: FloatArray, index: Indices, values: FloatArray) -> None:
    """Add values to the totals of their indices, where each sum is rounded once."""
    order = np.argsort(index, kind="stable")
    kinds, first = np.unique(index[order], return_index=True)
    for kind, some in zip(kinds.tolist(), np.split(values[order], first[1:]), strict=True):
        totals[kind] = fsum([totals[kind], *some.tolist()])


class CellCounts(NamedTuple):
    """How often outcomes were seen in cells, such as choices, ordered by cell and outcome and without zeros."""

    cell: Indices  # (n)
    outcome: Indices  # (n)
    counts: FloatArray  # (n)

    def pool_by(self, cell: Indices) -> CellCounts:
        """Return the counts in larger cells, given that of each entry (n), without entries whose cell is negative."""
        kept = cell >= 0
        n_outcomes = int(self.outcome.max(initial=-1)) + 1
        return _pooled(cell[kept].astype(np.int64), self.outcome[kept], self.counts[kept], n_outcomes)


def _pooled(cell: Indices, outcome: Indices, amount: FloatArray, n_outcomes: int) -> CellCounts:
    """Return the sums of positive amounts with the same cell and outcome."""
    key = cell * n_outcomes + outcome
    size = int(key.max(initial=-1)) + 1
    if size <= 4 * len(key) + 1000:
        sums = np.bincount(key, amount, size).astype(np.float64)
        key = np.flatnonzero(sums)
        sums = sums[key]
    else:
        key, place = np.unique(key, return_inverse=True)
        sums = np.bincount(place, amount, len(key)).astype(np.float64)
    return CellCounts(key // max(n_outcomes, 1), key % max(n_outcomes, 1), sums)


def likelihood_table(model: ParametricMDP) -> LikelihoodTable:
    """Return the likelihood of a model as a table of affine outcomes.

    >>> from plumdp import case_study
    >>> likelihood_table(case_study("parallel:5").model).basis.shape  # rows are coins, with two parameters
    (2, 2)
    >>> likelihood_table(case_study("rover:10,10").model).basis.shape  # four parameters, which count as one sum
    (4, 1)
    """
    rows, groups = find_tied_rows(model), _Groups()
    of_observations = next((sums_of(model) for trait, sums_of in SUMS.items() if trait in model.traits), None)
    ways, sums, left_out = _ways(rows, model.space, groups, of_observations)
    coins = tuple(_coins(model, learned, groups) for learned in model.learned_rewards.values())
    parts = _Parts(model.space, rows, groups, ways, left_out, coins)
    if not sums:
        return _table_of(parts)
    table, bets = _table_of(parts), _with_outcomes_as_parameters(parts._replace(groups=groups.copy()), sums)
    factors = [[f for paths in of_row for path in paths for f, _ in path.factors] for of_row in sums.values()]
    members = [groups.add_factors([_ONE, *of_row]) for of_row in factors]
    return replace(table, paths=_path_rows(_table_of(parts), sums, members, bets))


class _Parts(NamedTuple):
    """What a table is made of."""

    space: ParameterSpace
    rows: TiedRows
    groups: _Groups
    ways: Sequence[_Way]  # of the outcomes of the rows, one after the other
    left_out: tuple[tuple[Polynomial, ...], ...]
    coins: tuple[RewardCoins, ...]


def _path_rows(
    table: LikelihoodTable,
    sums: dict[int, list[PathSum]],
    members: Sequence[dict[Polynomial, int]],
    bets: LikelihoodTable,
) -> PathRows:
    """Return rows as sums over paths, given those by the number of the first outcome of each, and their factors."""
    factors = {f: number for of_row in members for f, number in of_row.items() if f != _ONE}
    place = {f: i for i, f in enumerate(factors)}
    paths = [path for of_row in sums.values() for outcome in of_row for path in outcome]
    exponents = np.zeros((len(paths), len(factors)))
    for i, path in enumerate(paths):
        for f, power in path.factors:
            exponents[i, place[f]] += power
    return PathRows(
        tuple(tuple(map(total, of_row)) for of_row in sums.values()),
        table,
        integers(list(factors.values())),
        integers([first + i + 1 for first, of_row in sums.items() for i in range(len(of_row))]),
        integers([r for r, of_row in enumerate(sums.values()) for _ in of_row]),
        integers(np.cumsum([0, *(len(outcome) for of_row in sums.values() for outcome in of_row)])),
        tuple(path.constant for path in paths),
        read_only(exponents),
        integers([[of_row.get(f, -1) for f in factors] for of_row in members]),
        integers([of_row[_ONE] for of_row in members]),
        bets,
    )


def _with_outcomes_as_parameters(parts: _Parts, first: Iterable[int]) -> LikelihoodTable:
    """Return the table in which outcomes of some rows, given by the first of each, are parameters of their own.

    Bets on them are then affine, as all others are. The last outcome of a row is one minus the others.
    """
    space, rows = parts.space, parts.rows
    names, ways, lifts = list(space.names), list(parts.ways), list[Polynomial]()
    ends = dict(pairwise(rows.first.tolist()))
    for start in first:
        outcomes = rows.outcomes[start : ends[start]]
        own = [_fresh_name(names, len(lifts) + i) for i in range(len(outcomes) - 1)]
        seen = parameters(*own)
        lifts += outcomes[:-1]
        names += own
        numbers = parts.groups.add_class((*seen, 1 - sum(seen, Polynomial(0))))
        ways[start : ends[start]] = [[] if number is None else [(number, 1)] for number in numbers]
    bounds = (*space.bounds, *((Fraction(0), Fraction(1)),) * len(lifts))
    table = _table_of(parts._replace(space=replace(space, names=tuple(names), bounds=bounds), ways=ways))
    return replace(table, lifts=ExpressionTable.build(lifts, space.names))


def _fresh_name(names: Sequence[str], number: int) -> str:
    """Return a name that none of some names is equal to."""
    name = f"outcome_{number}"
    while name in names:
        name += "_"
    return name


def _table_of(parts: _Parts) -> LikelihoodTable:
    """Return the table of all groups so far."""
    space, rows, groups, ways, left_out, coins = parts
    constants, coefficients, directions = _affine_forms(groups.outcomes, space.names)
    number = {key: i for i, key in enumerate(dict.fromkeys(key for key in directions if key))}
    largest = np.maximum(np.abs(space.lower), np.abs(space.upper))
    pairs = [pair for way in ways for pair in way]
    return LikelihoodTable(
        read_only(constants),
        read_only(coefficients),
        integers(groups.group),
        read_only(np.array(groups.is_class, dtype=np.bool_)),
        read_only(np.abs(constants) + np.abs(coefficients) @ largest),
        space.names,
        tuple(groups.outcomes),
        integers([number.get(key, -1) for key in directions]),
        read_only(_orthonormal_basis(list(number), space.dimension)),
        read_only(space.lower),
        read_only(space.upper),
        _middle(space, groups.outcomes, constants, coefficients),
        left_out,
        rows.rows,
        integers(rows.outcome_of_place + 1),
        integers(np.cumsum([0, 0, *map(len, ways)])),
        integers([outcome for outcome, _ in pairs]),
        read_only(np.array([multiple for _, multiple in pairs], dtype=np.float64)),
        coins,
    )


def _coins(model: ParametricMDP, learned: LearnedRewards, groups: _Groups) -> RewardCoins:
    """Return the coins of learned rewards, whose sides are classes of the table like those of rows."""
    polynomials = model.expressions.polynomials
    outcomes = [groups.add_class(tuple(polynomials[f] for f in pair)) for pair in learned.expression.tolist()]
    of_transition = read_only(learned.coin[model.graph.choice_of_transition()])
    return RewardCoins(of_transition, *learned.units, np.array(outcomes, dtype=np.int64))


def _middle(
    space: ParameterSpace, outcomes: Sequence[Polynomial], constants: FloatArray, coefficients: FloatArray
) -> FloatArray:
    """Return the mean of the space, or of its part without negative outcomes if some outcome is not positive there.

    Expressions of rows cut the space, but factors of their products do not. With 1 - a - b as a factor, a + b may be
    more than 1. Searches begin at this point, and no bound rests on it.
    """
    mean = moments(space)[0]
    if (constants + coefficients @ mean > 0).all():
        return mean
    try:
        return moments(space.cut(outcomes))[0]
    except ModelError:  # no such part
        return mean


class _Groups:
    """Collects groups of outcomes, where groups with the same outcomes are one."""

    def __init__(self) -> None:
        self.outcomes: list[Polynomial] = []
        self.group: list[int] = []
        self.is_class: list[bool] = []
        self._number_of_member: dict[tuple[bool, frozenset[Polynomial]], dict[Polynomial, int]] = {}
        self._outcomes_of_law: dict[tuple[Polynomial, ...], list[int | None]] = {}

    def copy(self) -> _Groups:
        """Return the same groups, to which others may be added."""
        new = _Groups()
        new.outcomes, new.group, new.is_class = [*self.outcomes], [*self.group], [*self.is_class]
        new._number_of_member, new._outcomes_of_law = {**self._number_of_member}, {**self._outcomes_of_law}
        return new

    def add_class(self, probabilities: tuple[Polynomial, ...]) -> list[int | None]:
        """Return the outcome of the table for each probability of a law, or None if none depends on a parameter.

        Outcomes with equal probabilities are one outcome, and so are all with known probabilities. So no class has two
        equal polynomials, and bets that are placed outcome by outcome are placed on what is counted.
        """
        if probabilities not in self._outcomes_of_law:
            outcomes, place = merge_equal(probabilities)
            numbers = {} if len(outcomes) == 1 else self._numbers([f for f in outcomes if f], is_class=True)
            self._outcomes_of_law[probabilities] = [numbers.get(outcomes[i]) for i in place]
        return self._outcomes_of_law[probabilities]

    def add_factors(self, factors: Iterable[Polynomial]) -> dict[Polynomial, int]:
        """Return the number of each factor of the outcomes of a row."""
        return self._numbers(list(dict.fromkeys(factors)), is_class=False)

    def _numbers(self, polynomials: Sequence[Polynomial], *, is_class: bool) -> dict[Polynomial, int]:
        """Return the number of each member of a group of different polynomials, which is added if it is new."""
        key = is_class, frozenset(polynomials)
        if key not in self._number_of_member:
            self._number_of_member[key] = {f: len(self.outcomes) + i for i, f in enumerate(polynomials)}
            self.outcomes += polynomials
            self.group += [len(self.is_class)] * len(polynomials)
            self.is_class.append(is_class)
        return self._number_of_member[key]


def merge_equal(probabilities: Sequence[Polynomial]) -> tuple[list[Polynomial], list[int]]:
    """Return different probabilities, and the place among them of the sum that each given one is a part of.

    A sum of equal ones may equal another one, as in p/4, p/4, p/2, so that this is repeated until all are different.
    """
    outcomes, place = list(probabilities), list(range(len(probabilities)))
    while True:
        number: dict[Polynomial | None, int] = {}
        merged = [number.setdefault(None if f.is_constant else f, len(number)) for f in outcomes]
        if len(number) == len(outcomes):
            return outcomes, place
        sums: dict[int, Polynomial] = {}
        for i, f in zip(merged, outcomes, strict=True):
            sums[i] = sums[i] + f if i in sums else f
        outcomes, place = list(sums.values()), [merged[i] for i in place]


SUMS: Kinds[Trait, Callable[[ParametricMDP], Mapping[Polynomial, PathSum]]] = Kinds()
"""The outcomes of rows that are known to be sums over hidden paths, by the trait of models that have such rows."""


def _ways(
    rows: TiedRows, space: ParameterSpace, groups: _Groups, of_observations: Mapping[Polynomial, PathSum] | None
) -> tuple[list[_Way], dict[int, list[PathSum]], tuple[tuple[Polynomial, ...], ...]]:
    """Return the outcomes of the table that each outcome of tied rows counts for, and the rows without any.

    Those are rows whose outcomes are sums over paths, by their first outcomes, and rows that are left out. Looks after
    several steps are sums over paths, even if they are products, as nothing can be bet on factors.
    """
    factored, ways, left_out = cache(Polynomial.factors), [], []
    sums: dict[int, list[PathSum]] = {}
    for first, last in zip(rows.first[:-1].tolist(), rows.first[1:].tolist(), strict=True):
        row = rows.outcomes[first:last]
        is_affine = all(f.is_affine for f in row)  # tied rows have an outcome for all known numbers, so the sum is one
        tree = (TreeNode(tuple(range(len(row))), row),) if is_affine else find_tree(row, factored)
        way = None if tree is None else _ways_in_tree(row, tree, groups)
        if way is None and of_observations is None:
            way = _ways_of_factors(row, space, groups, factored)
        paths = find_path_sums(row, space, factored, of_observations or {}) if way is None else None
        if paths is not None:
            sums[first] = paths
        elif way is None:
            way = _ways_of_factors(row, space, groups, factored) if of_observations is not None else None
            left_out += [row] if way is None else []
        ways += way if way is not None else [[] for _ in row]
    return ways, sums, tuple(left_out)


def _ways_in_tree(row: Sequence[Polynomial], tree: Sequence[TreeNode], groups: _Groups) -> list[_Way]:
    """Return the members of nodes on the way to each outcome of a row."""
    ways: dict[int, _Way] = {len(row) + len(tree) - 1: []}
    for number, node in reversed(list(enumerate(tree, start=len(row)))):
        for member, outcome in zip(node.members, groups.add_class(node.probabilities), strict=True):
            ways[member] = ways[number] if outcome is None else [*ways[number], (outcome, 1)]
    return [ways[i] for i in range(len(row))]


def _ways_of_factors(
    row: Sequence[Polynomial], space: ParameterSpace, groups: _Groups, factored: Factorise
) -> list[_Way] | None:
    """Return the affine factors of each outcome of a row, or None if some are not affine or may be negative.

    An outcome without factors counts for the factor one, so that every visit of the row counts.
    """
    outcomes = []
    for f in row:
        factors = _nonnegative_factors(f, space, factored)
        if factors is None:
            return None
        outcomes.append(factors or [(_ONE, 1)])
    numbers = groups.add_factors(f for way in outcomes for f, _ in way)
    return [[(numbers[f], power) for f, power in way] for way in outcomes]


def _nonnegative_factors(
    f: Polynomial, space: ParameterSpace, factored: Factorise
) -> list[tuple[Polynomial, int]] | None:
    """Return the affine factors of an outcome with signs such that all are at least zero, or None without them."""
    factorised = affine_factors(f, factored)
    if factorised is None:
        return None
    constant, factors = factorised
    result = []
    for factor, power in factors:
        if is_nonnegative(factor, space):
            result.append((factor, power))
        elif is_nonnegative(-factor, space):
            result.append((-factor, power))
            constant *= (-1) ** power
        else:
            return None
    return result if constant > 0 else None


def _affine_forms(
    outcomes: Sequence[Polynomial], names: tuple[str, ...]
) -> tuple[FloatArray, FloatArray, list[_Direction]]:
    """Return constants (n) and coefficients (n, d) of affine polynomials as nearest floats, and their directions."""
    used_names, terms = whole_terms(outcomes)
    column = [names.index(name) if name in names else -1 for name in used_names]
    constants, coefficients, directions = np.zeros(len(outcomes)), np.zeros((len(outcomes), len(names))), []
    for j, terms_of_outcome in enumerate(terms):
        slopes = []
        for exponents, above, below in terms_of_outcome:
            place = next((i for i, e in zip(column, exponents, strict=True) if e), None)
            if place is None:
                constants[j] = above / below
            else:
                coefficients[j, place] = above / below
                slopes.append((place, above, below))
        directions.append(_primitive(slopes))
    return constants, coefficients, directions


def _primitive(slopes: list[tuple[int, int, int]]) -> _Direction:
    """Return the coprime whole numbers, the first positive, that slopes are a multiple of."""
    scale = lcm(*(below for _, _, below in slopes))
    whole = [(place, above * (scale // below)) for place, above, below in sorted(slopes)]
    divisor = gcd(*(number for _, number in whole))
    return tuple((place, number // (divisor if whole[0][1] > 0 else -divisor)) for place, number in whole)


def _orthonormal_basis(directions: Sequence[_Direction], d: int) -> FloatArray:
    """Return an orthonormal basis (d, k) of the span of directions, with an exact rank."""
    if not directions:
        return np.zeros((d, 0))
    rows = [[0] * d for _ in directions]
    for row, direction in zip(rows, directions, strict=True):
        for place, number in direction:
            row[place] = number
    reduced, denominator, rank = fmpz_mat(rows).rref()
    if rank == d:
        return np.eye(d)
    kept = [[float(Fraction(int(reduced[i, j]), int(denominator))) for j in range(d)] for i in range(rank)]
    return np.ascontiguousarray(np.linalg.qr(np.array(kept).T)[0])
