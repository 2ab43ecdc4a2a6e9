"""Writes the set of parameters for a checker: thresholds of likelihoods, bets and intervals, with what proves them."""

from __future__ import annotations

from dataclasses import replace
from math import log2
from typing import Any, cast

from plumdp.base.error_budget import SetPart, equal_parts
from plumdp.confidence.binomial import tolerant_interval
from plumdp.confidence.bounds import ExpressionBounds
from plumdp.confidence.estimates import marginal_precision
from plumdp.confidence.evidence import best_proof
from plumdp.confidence.laws import Law, law_of_pilot, law_of_space
from plumdp.confidence.likelihood import LikelihoodSet
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.data.counts import TransitionCounts
from plumdp.learning.learned import Learned
from plumdp.learning.studies import error_of_each
from plumdp.model.graph import FloatArray
from plumdp.model.parametric import ParametricMDP

INTERVALS = {"beta-binomial": "beta-binomial", "Clopper–Pearson": "clopper-pearson"}
_METHODS = INTERVALS | {"tolerant": "tolerant"}  # the last of rows that may be off
_LIKELIHOODS: tuple[SetPart, SetPart] = ("likelihood_against_space", "likelihood_after_pilot")


def set_part(learned: Learned, content: dict[str, Any]) -> dict[str, Any]:
    """Return the set of parameters, given the part of a witness that is about the data."""
    model, counts, found = learned.model, learned.counts, learned.bounds
    likely = cast("LikelihoodSet", found) if learned.kind == "likelihood" else None
    strips = cast("ExpressionBounds", found) if likely is None else likely.strips
    part = "intervals" if likely is not None or learned.misfit else "whole_set"
    if learned.misfit and strips is not None:
        strips = _before_widening(strips, learned)
    return {
        "space_law": space_law(model, learned.table),
        "likelihoods": [] if likely is None else likelihood_parts(model, counts, likely),
        "bets": None if likely is None else bets_part(counts, likely),
        "intervals": None if strips is None else intervals_part(strips, content, part),
        "tangents": [],
        **studies_part(learned),
    }


def _before_widening(strips: ExpressionBounds, learned: Learned) -> ExpressionBounds:
    """Return intervals from the trials of all rows, before they are widened by a misfit."""
    error = learned.budget.error_in_set("intervals", learned.budget.error_of_set(learned.error))
    lower, upper = tolerant_interval(strips.successes, strips.trials, equal_parts(error, len(strips.events)))
    return replace(strips, event_lower=lower, event_upper=upper, error=error, method="tolerant")


def likelihood_parts(model: ParametricMDP, counts: TransitionCounts, found: LikelihoodSet) -> list[dict[str, Any]]:
    """Return each likelihood with its law, and the proof of its evidence."""
    table, pilot, space, parts = found.table, counts.pilot, law_of_space(model), []
    for part in _LIKELIHOODS:
        error = found.budget.error_in_set(part, found.error)
        if error and part == "likelihood_against_space":
            parts.append(_likelihood(table, "all", space, table.pool_seen(counts.seen).outcome_counts, error))
        elif error and pilot is not None and pilot.total:
            before, main = (table.pool_seen(each).outcome_counts for each in (pilot.seen, counts.seen - pilot.seen))
            law = law_of_pilot(table, before, space)
            parts.append(_likelihood(table, "main", law, main, error * pilot.weight))
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


def studies_part(learned: Learned) -> dict[str, Any]:
    """Return the part of evidence from other studies, each with its interval, or nothing if there are none."""
    error = error_of_each(learned)
    studies = [
        {
            "text": study.text,
            "polynomial": str(study.expression),
            "successes": study.successes,
            "trials": study.trials,
            "lower": study.interval(error)[0],
            "upper": study.interval(error)[1],
        }
        for study in learned.studies
    ]
    return {"studies": {"error": error, "list": studies}} if studies else {}


def intervals_part(bounds: ExpressionBounds, counted: dict[str, Any], part: str) -> dict[str, Any]:
    """Return the intervals of events that classes of the witness try, with as many trials; others are left out.

    An event is a member of a class, or all members but one.
    """
    classes, seen = counted["classes"], _seen_members(counted)
    later = {c for row in counted["rows"] for way in row["ways"] or () for c, _ in way[1:]}
    barred = later if bounds.method == "tolerant" else set()  # where a visit is not one of a whole row
    tries: dict[str, list[list[Any]]] = {}
    for number, members in enumerate(classes):
        for i, text in enumerate(members):
            tries.setdefault(text, []).append([number, [i]])
    ends = zip(
        *(bounds.events.polynomials, bounds.event_lower.tolist(), bounds.event_upper.tolist()),
        *(bounds.successes.tolist(), bounds.trials.tolist()),
        strict=True,
    )
    found = []
    for event, (polynomial, low, high, *tried) in enumerate(ends):
        trials = list(tries.get(str(polynomial), []))
        used = {number for number, _ in trials}
        for number, (i,) in tries.get(str(polynomial.complement), []):
            if number not in used:
                trials.append([number, [j for j in range(len(classes[number])) if j != i]])
        sums = [sum(sum(seen[c][i] for i in members) for c, members in trials), sum(sum(seen[c]) for c, _ in trials)]
        is_barred = any(number in barred for number, _ in trials)
        if polynomial.is_affine and sums == tried and (low > 0 or high < 1) and not is_barred:
            written = {"polynomial": str(polynomial), "trials": trials, "lower": low, "upper": high}
            found.append(written | _earlier(bounds, event, tried))
    error = equal_parts(bounds.error, len(bounds.events))
    return {
        "part": part,
        "method": _METHODS[bounds.method],
        "error": error,
        "number": len(bounds.events),
        "list": found,
    }


def _earlier(bounds: ExpressionBounds, event: int, tried: list[int]) -> dict[str, Any]:
    """Return the successes and trials of ends that an earlier update gave, by name, as a part of an interval."""
    given = [] if bounds.ends is None else bounds.ends[:, :, event].tolist()
    earlier = {name: counts for name, counts in zip(("lower", "upper"), given, strict=False) if counts != tried}
    return {"earlier": earlier} if earlier else {}


def _seen_members(counted: dict[str, Any]) -> list[list[int]]:
    """Return how often each member of each class was drawn."""
    seen = [[0] * len(members) for members in counted["classes"]]
    for row in counted["rows"]:
        for way, n in zip(row["ways"] or [], row["seen"]["all"], strict=False):
            for number, member in way:
                seen[number][member] += n
    return seen
