"""What may be claimed of a policy: the certificate, its status, and in words what it rests on."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from plumdp import __version__
from plumdp.certifying.valuation import Valuation
from plumdp.confidence.full_likelihood import left_out_choices
from plumdp.confidence.sets import Guarantee
from plumdp.data.counts import Sampling, TransitionCounts
from plumdp.learning.learned import Learned
from plumdp.learning.methods import SETS
from plumdp.learning.storage import storage_of
from plumdp.model.graph import IntArray, read_only
from plumdp.model.objective import Objective, digest
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import Question
from plumdp.model.text import cut, number_of
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.relaxation.relax import Relaxation
from plumdp.result.certificate import Certificate, Status
from plumdp.result.data_quality import DataQuality, data_provenance
from plumdp.result.policy_table import PolicyTable
from plumdp.solver.coupled.gradient import policy_gradient
from plumdp.solver.qualitative import make_game

_ROUNDING = 1e-9  # of a value at a point, relative
_LONGEST_ROW = 120  # characters
_COUNTS_NO_STEPS = "one action per state, whatever the step; a policy that counts steps may do better"


def make_certificate(
    learned: Learned,
    question: Question,
    relaxation: Relaxation,
    valued: Valuation,
    seconds: dict[str, float],
    *,
    precision: float,
    is_given: bool = False,
    limit: float | None = None,
    left_out: str = "",
) -> Certificate:
    """Return what is claimed of a policy from bounds on its value.

    ``is_given`` says that the policy is the user's own rather than the best one, ``left_out`` what the relaxation cut.
    ``limit`` is what no policy beats, if the policy that was found has the worst value: others may still do better.
    """
    model, objective = question.model, question.objective
    bound = valued.lower if objective.direction == "max" else valued.upper
    others = [valued.lower, valued.upper] if limit is None else [valued.lower, valued.upper, limit]
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
        status=status_of(learned, objective, min(others), max(others), is_given=is_given),
        parameters=learned.parameters,
        solver=valued.solver,
        seconds=seconds,
        provenance={
            "plumdp": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "model": model.graph.fingerprint,
            "expressions": model.fingerprint,
            "counts": learned.counts.fingerprint,
            "objective": digest(objective),
            "steps": f"{learned.counts.total}",
            **data_provenance(learned.counts),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        },
        **_explained(learned, question, valued, bound, is_given),
        gap=_parts_of_gap(valued),
        jointly=_others(learned, question),
        p_value=None if learned.fit is None else learned.fit.p_value,
        not_coupled=valued.not_coupled,
        remark=_remark(model, objective),
        misfit=learned.misfit,
        budget=learned.budget.parts(),
        left_out=left_out,
        not_in_likelihood=_not_in_likelihood(learned),
        options={
            **learned.options,
            "objectives": [asked.objective.text for asked in learned.questions],
            "relaxation": relaxation,
            "precision": precision,
            "policy": "given" if is_given else "found",
        },
    )
    return with_data(certificate, learned.counts)


def _remark(model: ParametricMDP, objective: Objective) -> str:
    """Return what a policy with one action per state gives away: what is best may depend on the steps that are left."""
    n_steps, has_choices = objective.n_steps, model.graph.n_choices > model.graph.n_states
    return _COUNTS_NO_STEPS if n_steps is not None and n_steps > 1 and has_choices else ""


def _not_in_likelihood(learned: Learned) -> str:
    """Return how many steps have no part in the likelihood that the region is made of, and why, in words."""
    if learned.conflict is not None or SETS[learned.kind].as_tests is None or not learned.table.left_out:
        return ""
    table, visits = learned.table, learned.counts.visits
    n_steps = int(visits[left_out_choices(table)].sum())
    row = min((", ".join(map(str, row)) for row in table.left_out), key=len)
    share = f"{n_steps:,} of {number_of(learned.counts.total, 'step')} ({100 * n_steps / max(visits.sum(), 1):.3g} %)"
    why = f"the log-likelihood of rows such as ({cut(row, _LONGEST_ROW)}) need not be concave"
    return f"{share}: {why}, so that they count by intervals of their probabilities alone" if n_steps else ""


def _others(learned: Learned, question: Question) -> tuple[str, ...]:
    """Return the properties that were announced besides this one, if anything is proved: one region holds for all."""
    if learned.bounds.guarantee == Guarantee.NONE:
        return ()
    this = (question.model, digest(question.objective))
    others = [each.objective for each in learned.questions if (each.model, digest(each.objective)) != this]
    return tuple(other.text or "an objective without a text" for other in others)


def _explained(learned: Learned, question: Question, valued: Valuation, bound: float, is_given: bool) -> dict[str, Any]:
    """Return why a model is contradicted; or an infinite bound, if the graph says so, and what the estimate says."""
    if learned.conflict is not None:
        return {"reason": str(learned.conflict)}
    if not storage_of(question.model).has_points:
        return {"reason": ""}
    reason = _endless(question.model, question.objective, bound, valued.policy, is_given)
    return {"reason": reason, **_estimated(learned, question, valued)}


def _estimated(learned: Learned, question: Question, valued: Valuation) -> dict[str, Any]:
    """Return where the data are most likely, and what the policy is worth there, if the set has an estimate.

    Nothing is said of a point outside of the region, nor of a value outside of the bounds.
    """
    if not learned.has_estimate or not learned.model.space.names or learned.shown_estimate is None:
        return {}
    value, _ = policy_gradient(question.model, valued.policy, question.objective, learned.shown_estimate)
    shown = shown_value(float(value), valued.lower, valued.upper)
    point = dict(zip(learned.model.space.names, learned.shown_estimate.tolist(), strict=True))
    return {} if shown is None else {"estimate": point, "estimated_value": shown}


def shown_value(value: float, lower: float, upper: float) -> float | None:
    """Return the value at an estimate as it may be shown: within bounds, up to rounding, and finite; or None."""
    held = min(max(value, lower), upper)
    return held if np.isfinite(value) and abs(held - value) <= _ROUNDING * max(1.0, abs(value)) else None


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
            not_in_likelihood="",
            budget=(),
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
    yield from () if report is None else report.assuming
    if quality.unreadable:
        left_out = _left_out(quality.unreadable)
        yield f"whether a row of the log can be read does not depend on where its step led ({left_out})"


def _left_out(n: int) -> str:
    return f"{number_of(n, 'row')} {'was' if n == 1 else 'were'} left out"


def _not_excluded(certificate: Certificate) -> str:
    """Return why nothing is certified, where neither the graph nor a lack of data explains it; or nothing to add."""
    if certificate.lower == certificate.upper:
        worst = certificate.printed_bounds[0]
        return f"the policy found has the worst value, {worst}; others may do better, but the data do not show it"
    if certificate.direction == "max" or certificate.upper < np.inf:
        return ""
    return "what the data leave open does not exclude runs that never reach the target, so no finite bound is proved"


def status_of(learned: Learned, objective: Objective, lower: float, upper: float, *, is_given: bool = False) -> Status:
    """Return what may be said of bounds on the value of a policy: of the user's own, or of one that was found."""
    if learned.bounds.guarantee == Guarantee.NONE:
        return Status.NO_GUARANTEE
    if learned.conflict is not None:
        return Status.CONTRADICTED
    is_low, is_high = (
        replace(objective, direction=direction).is_vacuous(bound)
        for direction, bound in (("max", lower), ("min", upper))
    )
    if is_given:  # each bound is an answer to someone who asks what a policy is worth
        return Status.VACUOUS if is_low and is_high else Status.CERTIFIED
    says_nothing = is_low if objective.direction == "max" else is_high
    return Status.VACUOUS if says_nothing and lower < upper else Status.CERTIFIED


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


_STRUCTURE = (
    "the model has every transition that can happen, and where a step leads depends on state and action alone, in the "
    "data as where the policy is run"
)
_CHOSEN = "the model, with its parameters, ties and bins, was chosen before these data were looked at"
_COMPLETE = "which steps are in the data does not depend on where they led: none is missing because of its outcome"
_ANYTIME = (
    "nothing about when you stopped: valid even if you looked at the data while collecting it and stopped when you "
    "liked"
)
_PLANNED = (
    "how much data there would be was fixed before any were looked at; what was added to them later may have ended "
    "when you liked"
)
_SAMPLED: dict[Sampling, str] = {
    "independent": "you fixed the number of samples of each choice before you looked at any data",
    "trajectories": "runs are independent, all under one policy, and you fixed their number before you looked at any",
    "adaptive": "neither what was sampled nor when you stopped depended on what the data showed; nobody has said so",
}


def _assumptions(learned: Learned) -> tuple[str, ...]:
    """Return what the confidence rests on, in words."""
    tied = "the model is correct for some values of its parameters"
    if learned.misfit:
        tied += f", up to {learned.misfit:g} for each state and action (in total variation)"
    bounds = learned.bounds
    if bounds.guarantee == Guarantee.ANYTIME:
        sampled = _ANYTIME
    elif bounds.guarantee == Guarantee.PLANNED:
        sampled = _PLANNED
    elif bounds.guarantee == Guarantee.ASYMPTOTIC:
        planned = _SAMPLED[learned.counts.sampling]
        sampled = (
            f"{planned}, and there are so many that approximations for large samples hold (no number is proved to be "
            "enough)"
        )
    else:
        sampled = _SAMPLED[learned.counts.sampling]
    known = (_STRUCTURE, tied) if learned.conflict is None else (_STRUCTURE,)
    return (*known, _CHOSEN, sampled, *learned.rests_on)
