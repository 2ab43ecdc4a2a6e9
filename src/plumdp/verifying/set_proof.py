"""Writes the set of parameters for a checker: thresholds of likelihoods, bets and intervals, with what proves them."""

from __future__ import annotations

from itertools import pairwise
from math import log2
from typing import Any, cast

import numpy as np

from plumdp.base.error_budget import SetPart, equal_parts
from plumdp.confidence.bounds import ExpressionBounds
from plumdp.confidence.estimates import marginal_precision
from plumdp.confidence.event_counts import is_tried_once
from plumdp.confidence.evidence import best_proof
from plumdp.confidence.laws import Law, law_of_pilot, law_of_space
from plumdp.confidence.likelihood import LikelihoodSet
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.confidence.tied_rows import find_tied_rows
from plumdp.data.counts import TransitionCounts
from plumdp.learning.learned import Learned
from plumdp.model.events import Events
from plumdp.model.graph import FloatArray
from plumdp.model.parametric import ParametricMDP
from plumdp.verifying.counted import places_of_outcomes

INTERVALS = {"beta-binomial": "beta-binomial", "Clopper–Pearson": "clopper-pearson", "Hoeffding": "hoeffding"}
_LIKELIHOODS: tuple[SetPart, SetPart] = ("likelihood_against_space", "likelihood_after_pilot")


def set_part(learned: Learned) -> dict[str, Any]:
    """Return the set of parameters, without what is found about it later: quotients, tangents and a ball."""
    found, model, counts = learned.bounds, learned.model, learned.counts
    likely = cast("LikelihoodSet", found) if learned.kind == "likelihood" else None
    strips = {"likelihood": likely and likely.strips, "interval": found}.get(learned.kind)
    part = "intervals" if likely else "whole_set"
    return {
        "space_law": space_law(model, learned.table),
        "likelihoods": likelihood_parts(model, counts, likely) if likely else [],
        "bets": bets_part(counts, likely) if likely else None,
        "intervals": intervals_part(model, counts, cast("ExpressionBounds", strips), part) if strips else None,
        "tangents": [],
    }


def likelihood_parts(model: ParametricMDP, counts: TransitionCounts, found: LikelihoodSet) -> list[dict[str, Any]]:
    """Return each likelihood with its law, and the proof of its evidence."""
    table, pilot, space, parts = found.table, counts.pilot, law_of_space(model), []
    for part in _LIKELIHOODS:
        error = found.budget.error_in_set(part, found.error)
        if error and part == "likelihood_against_space":
            parts.append(_likelihood(table, "all", space, table.pool(counts.counts), error))
        elif error and pilot is not None and pilot.total:
            law = law_of_pilot(table, table.pool(pilot.counts), space)
            parts.append(_likelihood(table, "main", law, table.pool(counts.main), error * pilot.weight))
    return [part for part in parts if part is not None]


def space_law(model: ParametricMDP, table: LikelihoodTable) -> dict[str, Any]:
    """Return the law of the space, in the coordinates of a likelihood."""
    law = law_of_space(model)
    precision = marginal_precision(law.precision, table.basis)
    return {"mean": law.mean.tolist(), "basis": table.basis.tolist(), "precision": precision.tolist()}


def _likelihood(table: LikelihoodTable, data: str, law: Law, seen: FloatArray, error: float) -> dict[str, Any] | None:
    proof = best_proof(table, seen, law.mean, law.precision) if seen.any() else None
    return proof and {
        "data": data,
        "error": error,
        "mean": law.mean.tolist(),
        "basis": table.basis.tolist(),
        "precision": marginal_precision(law.precision, table.basis).tolist(),
        "point": proof.point.tolist(),
        "widths": proof.widths.tolist(),
    }


def bets_part(counts: TransitionCounts, found: LikelihoodSet) -> dict[str, Any] | None:
    """Return the bets across the directions that were announced."""
    bets, pilot = found.bets, counts.pilot
    if bets is None or pilot is None or not bets.n_directions:
        return None
    first = 6 * pilot.lengths[0] if pilot.expected is None else pilot.expected
    horizons = [round(log2(length / first)) for length in bets.lengths.tolist()]
    sides = []
    for side in bets.sides:
        used = [m for m, share in enumerate(side.shares.tolist()) if share > 0]
        sides.append(
            {
                "direction": side.direction,
                "horizons": [horizons[m] for m in used],
                "shares": side.shares[used].tolist(),
                "steps": side.steps[:, used].tolist(),
                "near": side.near.tolist(),
            }
        )
    error = equal_parts(found.budget.error_in_set("half_spaces", found.error), bets.n_directions)
    return {"directions": bets.n_directions, "error": error, "points": bets.points.tolist(), "list": sides}


def intervals_part(
    model: ParametricMDP, counts: TransitionCounts, bounds: ExpressionBounds, part: str
) -> dict[str, Any]:
    """Return the intervals of events with the rows that try them; those that rows of a witness merge are left out."""
    method = next(name for words, name in INTERVALS.items() if bounds.method.startswith(words))
    can_be_once = counts.sampling == "trajectories" and method != "beta-binomial"
    once = is_tried_once(model.graph, bounds.events) if can_be_once else np.zeros(len(bounds.events), dtype=np.bool_)
    ends = bounds.event_lower.tolist(), bounds.event_upper.tolist(), once.tolist()
    found = [
        {"polynomial": str(f), "trials": tried, "once": is_once, "lower": low, "upper": high}
        for f, tried, low, high, is_once in zip(
            bounds.events.polynomials, _trials(model, bounds.events), *ends, strict=True
        )
        if tried is not None and (low > 0 or high < 1)
    ]
    error = equal_parts(bounds.error, len(bounds.events))
    return {"part": part, "method": method, "error": error, "number": len(bounds.events), "list": found}


def _trials(model: ParametricMDP, events: Events) -> list[list[Any] | None]:
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
