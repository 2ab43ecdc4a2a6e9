"""Puts what whole runs say before what the model says, each as a rung of its own, and reads them in this order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Any

import numpy.typing as npt

from plumdp.base.vocabulary import Status
from plumdp.certifying.claims import without_bounds
from plumdp.learning.learned import Learned
from plumdp.learning.run_ends import RunEnds
from plumdp.model.objectives import Objective
from plumdp.model.question import Question
from plumdp.result.certificate import Certificate
from plumdp.result.rungs import Ground, Rung, leading

_SHARED = ("lower", "upper", "status", "guarantee", "reason", "cap")  # what rungs and claims say alike
_MIXED = (
    "in the same state arms were drawn with different chances, so that rows of the model mix what these chances depend "
    "on"
)


def ends_about(
    learned: Learned, question: Question, policies: Sequence[npt.NDArray[Any]], *, of_practice: bool = False
) -> RunEnds | None:
    """Return what whole runs say of the value of a policy, or of its difference to a second one, if they were asked."""
    found = learned.bounds.of_kind(RunEnds)
    return next((each for each in found if each.is_about(question, policies, of_practice=of_practice)), None)


def with_runs_first(learned: Learned, ends: RunEnds, of_model: Rung, objective: Objective | None) -> tuple[Rung, Rung]:
    """Return the rung of whole runs and then that of the model, each as far as the other one leaves it.

    Rungs that exclude each other contradict what is assumed of the runs and of the model together: easy tasks alone
    exclude a model that is right. The model is the one at fault if somebody vouches for the runs.
    """
    runs = _of_runs(learned, ends, objective)
    of_model = replace(of_model, share=1 - runs.share)
    if ends.stand_alone and of_model.status != Status.REJECTED:
        of_model = silenced(of_model, Status.INCONCLUSIVE, _MIXED)
    if runs.status == Status.PREMISES:
        return runs, silenced(of_model, Status.PREMISES, runs.reason)
    if not runs.excludes(of_model):
        return runs, of_model
    by_runs, by_model = (f"between {each.lower:.6g} and {each.upper:.6g}" for each in (runs, of_model))
    said = f"whole runs alone say {by_runs}, and the model says {by_model}"
    if learned.counts.sampling == "trajectories":  # the user's word that runs were drawn alike, which is printed
        return runs, silenced(of_model, Status.REJECTED, said)
    why = f"{said}, so what is assumed of the runs or of the model is wrong"
    return silenced(runs, Status.PREMISES, why), silenced(of_model, Status.PREMISES, why)


def on_rungs(learned: Learned, certificate: Certificate, ends: RunEnds, objective: Objective) -> Certificate:
    """Return a certificate of the model on the rung that leads, with the others, or without bounds if none holds."""
    rungs = with_runs_first(learned, ends, of_model(certificate), objective)
    first, beside = leading(rungs), certificate.beside
    if rungs[-1].status == Status.REJECTED and beside.p_value is not None:  # as for a set that is empty (F5)
        beside = replace(beside, p_value=min(beside.p_value, learned.error))
    kept = replace(certificate, claim=replace(certificate.claim, rungs=rungs), beside=beside)
    return without_bounds(kept, first.reason) if first.status == Status.PREMISES else led_by(kept, first)


def led_by(certificate: Certificate, rung: Rung) -> Certificate:
    """Return a certificate whose bounds are those of one of its rungs."""
    claim, own = certificate.claim, {name: getattr(rung, name) for name in _SHARED}
    if rung.is_claim:
        own |= {"claims_bounds": True, "contradiction": ""}
    return replace(
        certificate,
        claim=replace(claim, ground=rung.ground, **own),
        rests_on=replace(certificate.rests_on, assumptions=rung.premises),
    )


def on_ground(certificate: Certificate, first: Rung) -> Certificate:
    """Return a certificate that rests on what a rung of something else rests on, as far as it can."""
    if first.status == Status.PREMISES:
        return without_bounds(certificate, first.reason)
    rungs = certificate.claim.rungs
    return next((led_by(certificate, each) for each in rungs if each.ground == first.ground), certificate)


def by_model_alone(certificate: Certificate) -> Certificate:
    """Return a certificate of what the model says, as relaxations of it are compared."""
    if not certificate.claim.rungs:
        return certificate
    alone = led_by(certificate, certificate.claim.rungs[-1])
    return replace(alone, claim=replace(alone.claim, rungs=()))


def of_model(certificate: Certificate) -> Rung:
    """Return what a certificate says by the model alone."""
    claim = certificate.claim
    if claim.rungs:
        return claim.rungs[-1]
    own: dict[str, Any] = {name: getattr(claim, name) for name in _SHARED}
    return Rung(Ground.ROWS, **own, share=Fraction(1), premises=certificate.rests_on.assumptions)


def _of_runs(learned: Learned, ends: RunEnds, objective: Objective | None) -> Rung:
    """Return the rung of whole runs, contradicted if they exclude each other, whatever the model is."""
    share = learned.budget["run_bets"] if learned.error else Fraction(0)
    bounds = ends.ground, ends.lower, ends.upper
    rung = Rung(*bounds, Status.CERTIFIED, ends.guarantee, share, ends.premises, cap=ends.cap)
    if ends.why_not:
        return replace(rung, status=Status.INCONCLUSIVE, reason=ends.why_not)
    if ends.lower > ends.upper:
        what = "value" if len(ends.policies) == 1 else "difference"
        return silenced(
            rung,
            Status.PREMISES,
            f"whole runs put a {what} above {ends.lower:.6g} and below {ends.upper:.6g}, so what is assumed of them is "
            "wrong: they are not alike, or their order, chances or range are not as stated",
        )
    is_low, is_high = (
        objective is not None and replace(objective, direction=direction).is_vacuous(end)
        for direction, end in (("max", ends.lower), ("min", ends.upper))
    )
    return replace(rung, status=Status.INCONCLUSIVE, reason="no run decides it") if is_low and is_high else rung


def silenced(rung: Rung, status: Status, reason: str) -> Rung:
    """Return a rung that claims nothing, and why."""
    return replace(rung, lower=-inf, upper=inf, status=status, reason=reason)
