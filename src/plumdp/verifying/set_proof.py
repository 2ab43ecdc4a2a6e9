"""Writes counts and the set of parameters for a checker: rows, classes, likelihoods, bets and intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from math import log2
from typing import Any

import numpy as np

from plumdp.base.error_budget import ErrorBudget, equal_parts
from plumdp.base.errors import DataError
from plumdp.confidence.bounds import ExpressionBounds
from plumdp.confidence.coin_trees import TreeNode, find_tree
from plumdp.confidence.estimates import law_of_space, marginal_precision
from plumdp.confidence.evidence import best_proof
from plumdp.confidence.likelihood import LevelSet, LinearConstraints, order_of
from plumdp.confidence.likelihood_table import LikelihoodTable, merge_equal
from plumdp.confidence.observations import is_tried_once
from plumdp.confidence.reward_coins import RewardCoins
from plumdp.confidence.sets import Evidence
from plumdp.confidence.staged_bets import FIRST_HORIZON, Bets
from plumdp.confidence.tied_rows import TiedRows, find_tied_rows
from plumdp.data.counts import Pilot, TransitionCounts
from plumdp.data.seen import SQUARES, Seen
from plumdp.learning.learned import Learned
from plumdp.model.expressions.polynomial import Polynomial, parameters
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace
from plumdp_verify.counts import CountedRows
from plumdp_verify.intervals import ANYTIME, FIXED, event_trials, trials_of
from plumdp_verify.polynomials import parse
from plumdp_verify.reading import Part


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


RENEWED = "renewed"  # the name of the horizon of bets that are renewed for a planned length
_INTERVALS = {
    "beta-binomial": ANYTIME,
    "Clopper–Pearson": "clopper-pearson",
}


def set_part(learned: Learned, data: CountedRows | None) -> dict[str, Any]:
    """Return the set of parameters, without what is found about it later: tangents.

    ``data`` is what a checker reads of the counts, if it accepts them.
    """
    parts: dict[str, Any] = {"bets": None, "intervals": None, "likelihoods": [], "tangents": []}
    parts["space_law"] = space_law(learned.model, learned.table)
    return parts | KINDS[learned.kind](learned, learned.bounds, data)


def _likelihood_set(learned: Learned, found: Evidence, data: CountedRows | None) -> dict[str, Any]:
    likelihoods = map(_likelihood, found.of_kind(LevelSet))
    return {
        "likelihoods": [part for part in likelihoods if part is not None],
        "bets": bets_part(learned.counts.pilot, found.of_kind(LinearConstraints)[0]),
        "intervals": _intervals_part(learned, found, data, "intervals"),
    }


KINDS: dict[str, Callable[[Learned, Any, CountedRows | None], dict[str, Any]]] = {
    "likelihood": _likelihood_set,
    "interval": lambda learned, found, data: {"intervals": _intervals_part(learned, found, data, "whole_set")},
}
"""The parts of a witness that say how a set follows from rows, as they are written and as a checker reads them."""


def _intervals_part(learned: Learned, evidence: Evidence, data: CountedRows | None, part: str) -> dict[str, Any]:
    """Return the intervals of events with the rows that try them; others than a checker counts are left out.

    There are none if a checker does not accept the counts.
    """
    found, sampling = evidence.of_kind(ExpressionBounds)[0], learned.counts.sampling
    method = next(name for words, name in _INTERVALS.items() if found.method.startswith(words))
    can_be_once = sampling == "trajectories" and method in FIXED
    once = (
        is_tried_once(learned.model.graph, found.events) if can_be_once else np.zeros(len(found.events), dtype=np.bool_)
    )
    written = [] if data is None else _written(found, once.tolist(), data)
    error = equal_parts(found.error, len(found.events))
    return {"part": part, "method": method, "error": error, "number": len(found.events), "list": written}


def _written(found: ExpressionBounds, once: list[bool], data: CountedRows) -> list[dict[str, Any]]:
    """Return the intervals whose trials are those that a checker counts."""
    tries, written, lower, upper = event_trials(data), list[dict[str, Any]](), found.event_lower, found.event_upper
    for event in np.flatnonzero((lower > 0) | (upper < 1)).tolist():
        text = str(found.events.polynomials[event])
        rows = tries.of(parse(text, data.names), data)
        trials = [[row, sorted(chosen)] for row, chosen in sorted(rows.items())]
        counted = [found.successes[event].item(), found.trials[event].item()]
        if trials and counted == list(trials_of(data, Part(trials, text), rows)):
            item = {"polynomial": text, "trials": trials, "once": once[event]}
            item |= {"lower": lower[event].item(), "upper": upper[event].item()}
            written.append(item)
    return written


def space_law(model: ParametricMDP, table: LikelihoodTable) -> dict[str, Any]:
    """Return the law of the space, in the coordinates of a likelihood."""
    law = law_of_space(model)
    precision = marginal_precision(law.precision, table.basis)
    return {"mean": law.mean.tolist(), "basis": table.basis.tolist(), "precision": precision.tolist()}


def _likelihood(found: LevelSet) -> dict[str, Any] | None:
    """Return a likelihood with its law, and the proof of its evidence, if it has any."""
    table, law, seen = found.table, found.law, found.outcome_counts
    proof = best_proof(table, seen, law.mean, law.precision) if seen.any() else None
    return proof and {
        "data": "main" if found.is_of_main else "all",
        "block": [*found.block],
        "error": found.error,
        "mean": law.mean.tolist(),
        "basis": table.basis.tolist(),
        "precision": marginal_precision(law.precision, table.basis).tolist(),
        "point": proof.point.tolist(),
        "widths": proof.widths.tolist(),
    }


def bets_part(pilot: Pilot | None, found: LinearConstraints) -> dict[str, Any] | None:
    """Return the bets across the directions that were pre-specified."""
    bets = found.bets
    if bets is None or pilot is None or not bets.n_directions:
        return None
    horizons, sides = _names_of_horizons(bets, pilot), []
    for side in bets.sides:
        used = [m for m, share in enumerate(side.shares.tolist()) if share > 0]
        sides.append(
            {
                "direction": side.direction,
                "sign": side.sign,
                "until": side.until,
                "horizons": [horizons[m] for m in used],
                "shares": side.shares[used].tolist(),
                "steps": side.steps[: side.until, used].tolist(),
                "units": side.units[: side.until].tolist(),
                "near": side.near.tolist(),
            }
        )
    error = equal_parts(found.error, bets.n_directions)
    return {"directions": bets.n_directions, "error": error, "points": bets.points.tolist(), "list": sides}


def _names_of_horizons(bets: Bets, pilot: Pilot) -> list[int | str]:
    """Return for each horizon the number of doublings of the first one, or the word for a planned length."""
    lengths, is_renewed = bets.horizons.length.tolist(), bets.horizons.is_renewed
    doubled = [round(log2(each / length_of_horizon(0, pilot))) for each in lengths[int(is_renewed) :]]
    return [RENEWED, *doubled] if is_renewed else [*doubled]


def length_of_horizon(name: int | str, pilot: Pilot) -> float:
    """Return the length of the data that bets of a horizon are made for."""
    if name == RENEWED and pilot.expected is not None:
        return pilot.expected
    return FIRST_HORIZON * pilot.lengths[0] * 2.0 ** int(name)
