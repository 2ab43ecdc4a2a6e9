"""Writes the set of parameters for a checker: thresholds of likelihoods, bets and intervals, with what proves them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import log2
from typing import Any

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.confidence.binomial import tolerant_interval
from plumdp.confidence.bounds import ExpressionBounds
from plumdp.confidence.estimates import law_of_space, marginal_precision
from plumdp.confidence.evidence import best_proof
from plumdp.confidence.likelihood import LevelSet, LinearConstraints
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.confidence.observations import is_tried_once
from plumdp.confidence.sets import Evidence
from plumdp.confidence.staged_bets import FIRST_HORIZON, Bets
from plumdp.data.counts import Pilot, TransitionCounts
from plumdp.learning.learned import Learned
from plumdp.model.parametric import ParametricMDP
from plumdp_verify.counts import CountedRows
from plumdp_verify.intervals import ANYTIME, FIXED, TOLERANT, event_trials, trials_of
from plumdp_verify.polynomials import parse
from plumdp_verify.reading import Part

RENEWED = "renewed"  # the name of the horizon of bets that are renewed for a planned length
_INTERVALS = {
    "beta-binomial": ANYTIME,
    "Clopper–Pearson": "clopper-pearson",
    "tolerant": TOLERANT,
}


def set_part(learned: Learned, data: CountedRows | None) -> dict[str, Any]:
    """Return the set of parameters, without what is found about it later: tangents.

    ``data`` is what a checker reads of the counts, if it accepts them.
    """
    parts: dict[str, Any] = {"bets": None, "intervals": None, "likelihoods": [], "tangents": []}
    parts["space_law"] = space_law(learned.model, learned.table)
    return parts | KINDS[learned.kind](learned, learned.bounds, data) | studies_part(learned)


def _likelihood_set(learned: Learned, found: Evidence, data: CountedRows | None) -> dict[str, Any]:
    likelihoods = map(_likelihood, found.of_kind(LevelSet))
    return {
        "likelihoods": [part for part in likelihoods if part is not None],
        "bets": bets_part(learned.counts.pilot, found.of_kind(LinearConstraints)[0]),
        "intervals": _intervals(learned, found.of_kind(ExpressionBounds)[0], data, "intervals"),
    }


def _intervals(learned: Learned, found: ExpressionBounds, data: CountedRows | None, part: str) -> dict[str, Any]:
    """Return intervals of events. If rows may be off, they are from the trials of all rows, before widening."""
    if not learned.misfit:
        return intervals_part(learned.model, learned.counts, found, data, part)
    error = learned.budget.error_in_set("intervals", learned.budget.error_of_set(learned.error))
    lower, upper = tolerant_interval(found.successes, found.trials, equal_parts(error, len(found.events)))
    before = replace(found, event_lower=lower, event_upper=upper, error=error, method="tolerant")
    return intervals_part(learned.model, learned.counts, before, data, "intervals")


KINDS: dict[str, Callable[[Learned, Any, CountedRows | None], dict[str, Any]]] = {
    "likelihood": _likelihood_set,
    "interval": lambda learned, found, data: {
        "intervals": _intervals(learned, found.of_kind(ExpressionBounds)[0], data, "whole_set")
    },
}
"""The parts of a witness that say how a set follows from rows, as they are written and as a checker reads them."""


def intervals_part(
    model: ParametricMDP, counts: TransitionCounts, found: ExpressionBounds, data: CountedRows | None, part: str
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
            written.append(item | _earlier(found, event, counted))
    return written


def _earlier(found: ExpressionBounds, event: int, tried: list[int]) -> dict[str, Any]:
    """Return the successes and trials of ends that an earlier update gave, by name, as a part of an interval."""
    given = [] if found.ends is None else found.ends[:, :, event].tolist()
    earlier = {name: counts for name, counts in zip(("lower", "upper"), given, strict=False) if counts != tried}
    return {"earlier": earlier} if earlier else {}


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
    """Return the bets across the directions that were announced."""
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


def studies_part(learned: Learned) -> dict[str, Any]:
    """Return the part of evidence from other studies, each with its interval, or nothing if there are none."""
    studies = [
        {
            "text": study.text,
            "polynomial": str(study.expression),
            "successes": study.successes,
            "trials": study.trials,
            "lower": study.interval(study.error)[0],
            "upper": study.interval(study.error)[1],
        }
        for study in learned.studies
    ]
    return {"studies": {"error": learned.studies[0].error, "list": studies}} if studies else {}
