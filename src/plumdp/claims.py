"""What may be claimed of a policy: the certificate, its status, and in words what it rests on."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from plumdp import __version__
from plumdp.confidence.sets import Guarantee
from plumdp.data.counts import Sampling, TransitionCounts
from plumdp.learning import Learned
from plumdp.model.graph import IntArray, read_only
from plumdp.model.objective import Objective, digest
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import number_of
from plumdp.region.conflict import Conflict
from plumdp.region.shapes import Region
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.relaxation.relax import Relaxation
from plumdp.result.certificate import Certificate, Status
from plumdp.result.data_quality import DataQuality, data_provenance
from plumdp.result.folder import digest_of_counts
from plumdp.result.policy_table import PolicyTable
from plumdp.solver.coupled.gradient import policy_gradient
from plumdp.solver.qualitative import make_game
from plumdp.storage import storage_of
from plumdp.valuation import Valuation

_COUNTS_NO_STEPS = "one action per state, whatever the step; a policy that counts steps may do better"


def make_certificate(
    learned: Learned,
    objective: Objective,
    relaxation: Relaxation,
    valued: Valuation,
    seconds: dict[str, float],
    *,
    is_given: bool = False,
    left_out: str = "",
) -> Certificate:
    """Return what is claimed of a policy from bounds on its value.

    ``is_given`` says that the policy is the user's own rather than the best one, ``left_out`` what the relaxation cut.
    """
    model = learned.model
    bound = valued.lower if objective.direction == "max" else valued.upper
    is_contradicted, is_proved = learned.conflict is not None, learned.bounds.guarantee != Guarantee.NONE
    certificate = Certificate(
        lower=valued.lower,
        upper=valued.upper,
        policy=PolicyTable(model.graph, valued.policy),
        objective=objective.text,
        direction=objective.direction,
        confidence=1 - learned.error,
        relaxation="untied" if is_contradicted else relaxation,
        confidence_set=storage_of(model).untied_set if is_contradicted else learned.bounds.method,
        guarantee=Guarantee.ANYTIME if is_contradicted and is_proved else learned.bounds.guarantee,
        assumptions=_assumptions(learned),
        status=status_of(learned, objective, bound),
        parameters=_box(learned.region, model.space.dimension),
        solver=valued.solver,
        seconds=seconds,
        provenance={
            "plumdp": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "model": model.graph.fingerprint,
            "expressions": model.fingerprint,
            "counts": digest_of_counts(learned.counts),
            "steps": f"{learned.counts.total}",
            **data_provenance(learned.counts),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        },
        **_explained(learned, objective, valued, bound, is_given),
        gap=_parts_of_gap(valued),
        jointly=_others(learned, objective),
        p_value=None if learned.fit is None else learned.fit.p_value,
        not_coupled=valued.not_coupled,
        remark=_remark(model, objective),
        misfit=learned.misfit,
        left_out=left_out,
    )
    return with_data(certificate, learned.counts)


def _remark(model: ParametricMDP, objective: Objective) -> str:
    """Return what a policy with one action per state gives away: what is best may depend on the steps that are left."""
    n_steps, has_choices = objective.n_steps, model.graph.n_choices > model.graph.n_states
    return _COUNTS_NO_STEPS if n_steps is not None and n_steps > 1 and has_choices else ""


def _others(learned: Learned, objective: Objective) -> tuple[str, ...]:
    """Return the properties that were announced besides this one, if anything is proved: one region holds for all."""
    if learned.bounds.guarantee == Guarantee.NONE:
        return ()
    this = digest(objective)
    return tuple(other.text or "an objective without a text" for other in learned.objectives if digest(other) != this)


def _explained(
    learned: Learned, objective: Objective, valued: Valuation, bound: float, is_given: bool
) -> dict[str, Any]:
    """Return why a model is contradicted; or an infinite bound, if the graph says so, and what the estimate says."""
    if learned.conflict is not None:
        return {"reason": str(learned.conflict)}
    if not storage_of(learned.model).has_points:
        return {"reason": ""}
    reason = _endless(learned.model, objective, bound, valued.policy, is_given)
    return {"reason": reason, **_estimated(learned, objective, valued)}


def _estimated(learned: Learned, objective: Objective, valued: Valuation) -> dict[str, Any]:
    """Return where the data are most likely, and what the policy is worth there, if the set has an estimate."""
    if not learned.has_estimate or not learned.model.space.names:
        return {}
    value, _ = policy_gradient(learned.model, valued.policy, objective, learned.estimate)
    if not np.isfinite(value):
        return {}
    point = dict(zip(learned.model.space.names, learned.estimate.tolist(), strict=True))
    return {"estimate": point, "estimated_value": float(value)}


def _parts_of_gap(valued: Valuation) -> dict[str, float]:
    """Return what the distance of the bounds is made of, where one point for all states says so.

    Statistics is what the data leave open to first order, the remainder what higher orders may add; relaxation is what
    bounds against nature add to the former, at an end where these are the tighter ones.
    """
    found = valued.coupled
    if found is None:
        return {}
    rest, parts = valued.upper - valued.lower, {}
    for name in ("statistics", "remainder", "rounding"):
        parts[name] = float(min(max(getattr(found, name), 0.0), rest))  # rounding may leave a part below zero
        rest -= parts[name]
    return parts | {"relaxation": float(rest)}


def with_data(certificate: Certificate, counts: TransitionCounts) -> Certificate:
    """Return the certificate with what must be said of its data; none of its bounds if they contradict the graph."""
    quality = DataQuality(counts.total, counts.report)
    if quality.contradicting:
        return replace(
            certificate,
            lower=-np.inf,
            upper=np.inf,
            guarantee=Guarantee.NONE,
            assumptions=(),
            status=Status.CONTRADICTED,
            reason=quality.contradiction,
            parameters={},
            data_quality=quality,
            estimate={},
            estimated_value=None,
            gap={},
            jointly=(),
            p_value=None,
        )
    return replace(
        certificate,
        assumptions=(*certificate.assumptions, *_about_data(counts, quality)),
        reason=certificate.reason
        or ((quality.absence or _not_excluded(certificate)) if certificate.status == Status.VACUOUS else ""),
        data_quality=quality,
    )


def _about_data(counts: TransitionCounts, quality: DataQuality) -> Iterator[str]:
    """Yield what must be true of data, unless plumdp made them itself and counted every step."""
    report = quality.report
    n_cut_off, n_copies = (0, 0) if report is None else (report.rows["cut off"], report.rows["copy"])
    ends = (
        f"{n_cut_off:,} of {0 if report is None else report.n_runs:,} runs end before the outcome of their last action"
    )
    is_said = report is not None and report.cut_off is not None
    if not all(part.is_simulated for part in counts.parts):
        yield f"{_COMPLETE} ({ends})" if n_cut_off and not is_said else _COMPLETE
    if is_said:
        yield f"that {ends} has nothing to do with that outcome (you said so)"
    if n_copies:
        yield f"rows of the log with the same run, step and values are copies of one row ({_left_out(n_copies)})"
    if quality.unreadable:
        left_out = _left_out(quality.unreadable)
        yield f"whether a row of the log can be read does not depend on where its step led ({left_out})"


def _left_out(n: int) -> str:
    return f"{number_of(n, 'row')} {'was' if n == 1 else 'were'} left out"


def _not_excluded(certificate: Certificate) -> str:
    """Return why a bound on a cost is infinite that neither the graph nor a lack of data explains."""
    if certificate.direction == "max" or certificate.upper < np.inf:
        return ""
    return "what the data leave open does not exclude runs that never reach the target, so no finite bound is proved"


def status_of(learned: Learned, objective: Objective, bound: float) -> Status:
    """Return what may be said of the bound that a policy was made for."""
    if learned.bounds.guarantee == Guarantee.NONE:
        return Status.NO_GUARANTEE
    if learned.conflict is not None:
        return Status.CONTRADICTED
    return Status.VACUOUS if objective.is_vacuous(bound) else Status.CERTIFIED


def _endless(model: ParametricMDP, objective: Objective, bound: float, policy: IntArray, is_given: bool) -> str:
    """Return why a bound is infinite, if the graph alone says so and not a lack of data."""
    if bound < np.inf or objective.cap < np.inf or objective.target is None:
        return ""
    graph, is_own = model.graph, is_given or objective.direction == "max"
    if is_own:  # other choices stay where they are, so that only those of the policy can lead to the target
        taken = np.isin(graph.choice_of_transition(), policy)
        stay = graph.state_of_choice()[graph.choice_of_transition()]
        graph = replace(graph, successor=read_only(np.where(taken, graph.successor, stay)))
    possible = IntervalMDP(graph, np.zeros_like(model.expression), np.ones(1), np.ones(1))
    game = make_game(possible, replace(objective, direction="min"), "robust")
    if game.known[graph.initial_state] < np.inf:
        return ""
    who = "this policy does not surely reach the target" if is_own else "no policy reaches the target with certainty"
    return f"{who}, so its expected reward is infinite, as long as every transition of the model can happen"


def _box(region: Region | Conflict, n_parameters: int) -> dict[str, tuple[float, float]]:
    """Return the bounds of the parameters, which come before products of them; none if there are no parameters left."""
    if isinstance(region, Conflict):
        return {}
    columns = zip(region.names, region.lower, region.upper, strict=True)
    return {name: (float(low), float(high)) for name, low, high in list(columns)[:n_parameters]}


_COMPLETE = "which steps are in the data does not depend on where they led: none is missing because of its outcome"
_ANYTIME = (
    "nothing about when you stopped: valid even if you looked at the data while collecting it and stopped when you "
    "liked"
)
_SAMPLED: dict[Sampling, str] = {
    "independent": "you fixed the number of samples of each choice before you looked at any data",
    "trajectories": "runs are independent, all under one policy, and you fixed their number before you looked at any",
    "adaptive": "neither what was sampled nor when you stopped depended on what the data showed; nobody has said so",
}


def _assumptions(learned: Learned) -> tuple[str, ...]:
    """Return what the confidence rests on, in words."""
    structure = (
        "the model has every transition that can happen, and where a step leads depends on state and action alone"
    )
    tied = "the probabilities in the model are right for some values of its parameters"
    if learned.misfit:
        tied = (
            "for some values of its parameters, the probabilities in the model are right up to "
            f"{learned.misfit:g} for each state and action (in total variation)"
        )
    bounds = learned.bounds
    if learned.conflict is not None or bounds.guarantee == Guarantee.ANYTIME:
        sampled = _ANYTIME
    elif bounds.guarantee == Guarantee.ASYMPTOTIC:
        planned = _SAMPLED[learned.counts.sampling]
        sampled = (
            f"{planned}, and there are so many that approximations for large samples hold (no number is proved to be "
            "enough)"
        )
    else:
        sampled = _SAMPLED[learned.counts.sampling]
    known = (structure, tied, sampled) if learned.conflict is None else (structure, sampled)
    return (*known, *learned.rests_on)
