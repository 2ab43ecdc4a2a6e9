"""Writes intervals, balls and ellipsoids of a confidence set for a checker, by the rows that a witness counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.confidence.bounds import ExpressionBounds
from plumdp.confidence.event_counts import is_tried_once
from plumdp.confidence.tied_rows import TiedRows, find_tied_rows
from plumdp.data.counts import TransitionCounts
from plumdp.model.events import Events, find_events
from plumdp.model.expressions.polynomial import Polynomial, parameters
from plumdp.model.graph import FloatArray
from plumdp.model.parametric import ParametricMDP
from plumdp.published.least_squares import RIDGE, LeastSquares
from plumdp.published.multinomial import RowBounds
from plumdp.published.observations import independent_groups
from plumdp.verifying.ball import EllipsoidForm
from plumdp.verifying.counted import places_of_outcomes
from plumdp_verify.counts import Data
from plumdp_verify.half_spaces import HalfSpace
from plumdp_verify.intervals import ANYTIME, FIXED, TOLERANT, trials_of, tries_of
from plumdp_verify.polynomials import parse
from plumdp_verify.reading import Part

_INTERVALS = {
    "beta-binomial": ANYTIME,
    "Clopper–Pearson": "clopper-pearson",
    "Hoeffding": "hoeffding",
    "tolerant": TOLERANT,
}
_BALLS = {"L1 balls, Weissman": "weissman", "L1 balls, Dirichlet mixture": "dirichlet"}
_ALL_SETS = 5  # outcomes of a row, of which all sets are looked at
_NEAREST = 400  # sets of outcomes that are written
_DIRECTIONS = 200  # across which an ellipsoid is touched

Trials = list[list[Any]]
"""Pairs of a row of a witness and the positions of some of its outcomes."""


def intervals_part(
    model: ParametricMDP, counts: TransitionCounts, found: ExpressionBounds, data: Data | None, part: str
) -> dict[str, Any]:
    """Return the intervals of events with the rows that try them; others than a checker counts are left out.

    There are none if a checker does not accept the counts.
    """
    method = next(name for words, name in _INTERVALS.items() if found.method.startswith(words))
    can_be_once = counts.sampling == "trajectories" and method in FIXED
    once = is_tried_once(model.graph, found.events) if can_be_once else np.zeros(len(found.events), dtype=np.bool_)
    written = [] if data is None else _written(found, once.tolist(), data)
    error = equal_parts(found.error, len(found.events))
    return {"part": part, "method": method, "error": error, "number": len(found.events), "list": written}


def _written(found: ExpressionBounds, once: list[bool], data: Data) -> list[dict[str, Any]]:
    """Return the intervals whose trials are those that a checker counts."""
    tries, written, lower, upper = tries_of(data), list[dict[str, Any]](), found.event_lower, found.event_upper
    for event in np.flatnonzero((lower > 0) | (upper < 1)).tolist():
        text = str(found.events.polynomials[event])
        rows = tries.of(parse(text, data.names), data)
        trials = [[row, sorted(chosen)] for row, chosen in sorted(rows.items())]
        counted = [found.successes[event].item(), found.trials[event].item()]
        if trials and counted == list(trials_of(data, Part(trials, text), rows)):
            item = {"polynomial": text, "trials": trials, "once": once[event]}
            item |= {"lower": lower[event].item(), "upper": upper[event].item()}
            written.append(item | _earlier(found, event, counted))
    return written


def _earlier(found: ExpressionBounds, event: int, tried: list[int]) -> dict[str, Any]:
    """Return the successes and trials of ends that an earlier update gave, by name, as a part of an interval."""
    given = [] if found.ends is None else found.ends[:, :, event].tolist()
    earlier = {name: counts for name, counts in zip(("lower", "upper"), given, strict=False) if counts != tried}
    return {"earlier": earlier} if earlier else {}


def _trials(model: ParametricMDP, events: Events) -> list[Trials | None]:
    """Return for each event the rows of a witness that try it, each with its outcomes, or None if these are merged."""
    tied, by_row = find_tied_rows(model), events.by_row
    places = places_of_outcomes(tied)
    happens: list[list[int]] = [[] for _ in range(by_row.rows.first[-1])]
    for place, event in enumerate(by_row.success.tolist()):
        happens[place] += [event] * (event >= 0)
    for place, event in zip(by_row.factor_place.tolist(), by_row.factor_event.tolist(), strict=True):
        happens[place].append(event)
    trials: list[dict[int, set[int]]] = [{} for _ in range(len(events))]
    merged = set()
    for first, last in pairwise(by_row.rows.first.tolist()):
        outcomes = tied.outcome_of_place[first:last].tolist()
        for event in {event for of_place in happens[first:last] for event in of_place}:
            chosen = {i for i, of_place in zip(outcomes, happens[first:last], strict=True) if event in of_place}
            others = {i for i, of_place in zip(outcomes, happens[first:last], strict=True) if event not in of_place}
            row, positions = places[min(chosen)][0], {places[i][1] for i in chosen}
            if chosen & others or trials[event].setdefault(row, positions) != positions:
                merged.add(event)
    return [
        None if event in merged else [[row, sorted(positions)] for row, positions in sorted(of_event.items())]
        for event, of_event in enumerate(trials)
    ]


def balls_part(model: ParametricMDP, found: RowBounds, rows: list[dict[str, Any]], point: FloatArray) -> dict[str, Any]:
    """Return the balls of rows, as the sets of outcomes that they bound most tightly near a point."""
    tied, seen = find_tied_rows(model), [row["seen"]["all"] for row in rows]
    reach = {places_of_outcomes(tied)[first][0]: r / 2 for first, r in zip(tied.first, found.radius, strict=False)}
    near: list[tuple[float, int, tuple[int, ...]]] = []
    for row, outcomes in enumerate(rows_of(tied)):
        if sum(seen[row]):
            values, slopes = _at(outcomes, model.space.names, point)
            off = np.array(seen[row]) / sum(seen[row]) - values
            for chosen in _sets_of_outcomes(slopes):
                length = float(np.linalg.norm(slopes[list(chosen)].sum(axis=0)))
                if length > 0:
                    near.append(((off[list(chosen)].sum() + reach[row]) / length, row, chosen))
    written = [[row, list(chosen)] for _, row, chosen in sorted(near)[:_NEAREST]]
    number = len(found.trials)
    error = equal_parts(found.error, number)
    return {"method": _BALLS[found.method], "error": error, "number": number, "list": written}


def _sets_of_outcomes(slopes: FloatArray) -> Iterator[tuple[int, ...]]:
    """Yield all sets of few outcomes; of many, single ones and those with the largest slopes in a parameter."""
    k = len(slopes)
    if k <= _ALL_SETS:
        yield from (chosen for size in range(1, k) for chosen in combinations(range(k), size))
        return
    orders = [np.argsort(column).tolist() for column in slopes.T]
    prefixes = {tuple(sorted(order[:size])) for order in orders for size in range(1, k)}
    single = {(i,) for i in range(k)}
    both = prefixes | single
    yield from sorted(both | {tuple(i for i in range(k) if i not in chosen) for chosen in both})


def ellipsoid_part(model: ParametricMDP, found: LeastSquares) -> dict[str, Any]:
    """Return what least squares counts in each row, and directions across which the ellipsoid is touched."""
    rows = rows_of(find_tied_rows(model))
    names, known, directions = model.space.names, set(map(tuple, found.exponents.tolist())), dict[str, None]()
    for f in (*parameters(*names), *(f for row in rows for f in row if not f.is_constant)):
        terms = f.terms(names)
        f -= terms.pop((0,) * len(names), 0)
        directions |= dict.fromkeys(map(str, (f, -f))) if terms.keys() <= known else {}
    groups = _groups(model, rows)
    return {"error": found.error, "ridge": RIDGE, "rows": groups, "list": list(directions)[:_DIRECTIONS]}


def ellipsoid_form(found: Any, half_spaces: Sequence[HalfSpace]) -> EllipsoidForm | None:
    """Return a confidence set as an ellipsoid, if it is one of parameters alone."""
    index = next((i for i, each in enumerate(half_spaces) if each.is_convex), None)
    return None if index is None else EllipsoidForm(index, found.centre, found.matrix, found.radius)


def _groups(model: ParametricMDP, rows: list[list[Polynomial]]) -> list[list[list[list[int]]] | None]:
    """Return for each row independent groups of affine events that tell all outcomes apart, or None."""
    groups: list[list[list[list[int]]] | None] = [None] * len(rows)
    if model.expressions.is_affine.all():
        return groups
    events = find_events(model, factors=True)
    tried: list[list[tuple[Polynomial, list[int]]]] = [[] for _ in rows]
    for polynomial, of_event in zip(events.polynomials, _trials(model, events), strict=True):
        for row, positions in of_event or ():
            tried[row] += [(polynomial, positions)] * polynomial.is_affine
    for row, outcomes in enumerate(rows):
        happens = [tuple(i in positions for _, positions in tried[row]) for i in range(len(outcomes))]
        if len(set(happens)) == len(happens):
            found = independent_groups(outcomes, [polynomial for polynomial, _ in tried[row]], happens)
            groups[row] = [[tried[row][e][1] for e in group] for group in found] if len(found) > 1 else None
    return groups


def rows_of(tied: TiedRows) -> list[list[Polynomial]]:
    """Return the outcomes of each row of a witness."""
    by_place = dict(zip(places_of_outcomes(tied), tied.outcomes, strict=True))
    rows: list[list[Polynomial]] = [[] for _ in {row for row, _ in by_place}]
    for (row, _), outcome in sorted(by_place.items(), key=lambda item: item[0]):
        rows[row].append(outcome)
    return rows


def _at(outcomes: list[Polynomial], names: tuple[str, ...], point: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return values (n) and slopes (n, d) of polynomials at a point."""
    values, slopes = np.zeros(len(outcomes)), np.zeros((len(outcomes), len(names)))
    for i, outcome in enumerate(outcomes):
        for exponents, c in outcome.terms(names).items():
            powers, number = np.array(exponents), float(c)
            values[i] += number * np.prod(point**powers)
            for j in np.flatnonzero(powers).tolist():
                less = powers - (np.arange(len(powers)) == j)
                slopes[i, j] += number * powers[j] * np.prod(point**less)
    return values, slopes
