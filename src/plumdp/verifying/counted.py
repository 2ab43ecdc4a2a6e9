"""Writes counts for a checker: rows of the model with their probabilities, and the classes they are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from plumdp.base.error_budget import ErrorBudget
from plumdp.base.errors import DataError
from plumdp.confidence.coin_trees import TreeNode, find_tree
from plumdp.confidence.likelihood import order_of
from plumdp.confidence.likelihood_table import LikelihoodTable, merge_equal
from plumdp.confidence.reward_coins import RewardCoins
from plumdp.confidence.tied_rows import TiedRows, find_tied_rows
from plumdp.data.counts import TransitionCounts
from plumdp.data.seen import SQUARES, Seen
from plumdp.model.expressions.polynomial import Polynomial, parameters
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace


def counted_part(model: ParametricMDP, counts: TransitionCounts, table: LikelihoodTable) -> dict[str, Any]:
    """Return the parts of a witness that are about the data: their order, classes, and rows with their counts."""
    if not table.is_class.all():
        raise DataError("verify does not know rows whose outcomes are products of factors that are not drawn in turn")
    tied, pilot = find_tied_rows(model), counts.pilot
    parts = {"all": counts.counts, "pilot": np.zeros_like(counts.counts) if pilot is None else pilot.counts}
    parts |= {f"moment {s}": moment for s, moment in enumerate(() if pilot is None else pilot.moments)}
    seen = {name: tied.by_outcome(part).tolist() for name, part in parts.items()}
    classes, places, rows = _Classes(table), places_of_outcomes(tied), list[dict[str, Any]]()
    by_place = dict(zip(places, tied.outcomes, strict=True))
    for _, group in groupby(sorted(by_place), key=lambda place: place[0]):
        outcomes = [by_place[place] for place in group]
        empty = {name: [0] * len(outcomes) for name in parts}
        rows.append({"outcomes": list(map(str, outcomes)), "ways": classes.ways(outcomes), "seen": empty})
    for i, (number, position) in enumerate(places):
        for name, of_part in seen.items():
            rows[number]["seen"][name][position] += of_part[i]
    about = {
        "order": order_of(pilot),
        "sampling": counts.sampling,
        "lengths": [] if pilot is None else list(pilot.lengths),
        "expected": None if pilot is None else pilot.expected,
    }
    paid = _rewards(counts, table)
    counted = {"data": about, "classes": classes.texts, "rows": rows}
    return counted | {"rewards": paid} if paid else counted


def places_of_outcomes(tied: TiedRows) -> list[tuple[int, int]]:
    """Return the row of a witness that each outcome is of, and its position there, sorted by their texts.

    Rows may be tied by expressions that differ and whose multiples are equal; these are one row here.
    """
    places = [(-1, -1)] * len(tied.outcomes)
    number: dict[tuple[str, ...], int] = {}
    for first, last in pairwise(tied.first.tolist()):
        order = sorted(range(first, last), key=lambda i: str(tied.outcomes[i]))
        row = number.setdefault(tuple(str(tied.outcomes[i]) for i in order), len(number))
        for position, i in enumerate(order):
            places[i] = row, position
    return places


def _rewards(counts: TransitionCounts, table: LikelihoodTable) -> list[dict[str, Any]]:
    """Return the sums over values of learned rewards, in fractions of their ranges, for each coin that was thrown."""
    pilot, nothing = counts.pilot, Seen.nothing(len(counts.counts), len(counts.rewards))
    parts = {"all": counts.seen, "pilot": nothing if pilot is None else pilot.seen}
    parts |= {f"moment {s}": seen for s, seen in enumerate(() if pilot is None else pilot.seen_at_moments)}
    written = []
    for number, coins in enumerate(table.coins[: len(counts.rewards)]):
        sums = {name: coins.sums(seen, number) for name, seen in parts.items()}
        for i in np.flatnonzero(sums["all"][0]).tolist():
            mean = int(coins.outcome[i, 0])
            group = int(table.group[mean])
            member = mean - int(np.searchsorted(table.group, group))
            seen = {name: _in_range(coins, i, *(int(each[i]) for each in of_part)) for name, of_part in sums.items()}
            written.append({"class": group, "member": member, "seen": seen})
    return written


def _in_range(coins: RewardCoins, i: int, times: int, *sums: int) -> list[Any]:
    """Return the number of values, their sum and that of their squares, if they are moved to the range from 0 to 1."""
    total, first, second = sums
    low, span = int(coins.low[i]), int(coins.span[i])
    squares = SQUARES * first + second - 2 * low * total + low * low * times
    return [times, str(Fraction(total - low * times, span)), str(Fraction(squares, span * span))]


class _Classes:
    """The classes of a likelihood, and constant ones that trees have beside them."""

    def __init__(self, table: LikelihoodTable) -> None:
        groups: list[list[Polynomial]] = [[] for _ in table.is_class]
        for group, outcome in zip(table.group.tolist(), table.outcomes, strict=True):
            groups[group].append(outcome)
        self.texts = [list(map(str, members)) for members in groups]
        self._number = {frozenset(texts): i for i, texts in enumerate(self.texts)}

    def ways(self, row: Sequence[Polynomial]) -> list[list[list[int]]] | None:
        """Return the members of classes on the way to each outcome of a row, or None if it is not a tree."""
        tree = (TreeNode(tuple(range(len(row))), tuple(row)),) if all(f.is_affine for f in row) else find_tree(row)
        if tree is None:
            return None
        ways: dict[int, list[list[int]]] = {len(row) + len(tree) - 1: []}
        for number, node in reversed(list(enumerate(tree, start=len(row)))):
            for member, step in zip(node.members, self._steps(node.probabilities), strict=True):
                ways[member] = [*ways[number], step]
        return [ways[i] for i in range(len(row))]

    def _steps(self, probabilities: Sequence[Polynomial]) -> list[list[int]]:
        """Return class and member of each probability of a node."""
        merged, place = merge_equal(probabilities)
        if len(merged) == 1:  # a constant class, whose members may be equal
            merged, place = list(probabilities), list(range(len(probabilities)))
        texts = list(map(str, merged))
        number = self._number.get(frozenset(texts))
        if number is None or len(self.texts[number]) != len(texts):
            number = self._number[frozenset(texts)] = len(self.texts)
            self.texts.append(texts)
        members = self.texts[number]
        order = [members.index(text) for text in texts] if len(set(texts)) == len(texts) else list(range(len(texts)))
        return [[number, order[i]] for i in place]


def shares_part(budget: ErrorBudget) -> dict[str, str]:
    """Return the shares of the error that are spent if the model is right, by their names."""
    return {share.name: str(share.fraction) for share in (*budget.of_set, *budget.beside) if share.fraction}


def space_part(space: ParameterSpace) -> list[str]:
    """Return affine polynomials that are at least zero on the space."""
    sides: list[Any] = []
    for name, (low, high) in zip(space.names, space.bounds, strict=True):
        (p,) = parameters(name)
        sides += [p - low, high - p]
    return [str(side) for side in (*sides, *space.constraints)]
