"""Builds the ``Certificate`` of a policy from bounds on its value, with its status and its assumptions in words."""

from __future__ import annotations

import platform
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp import __version__
from plumdp.base.combinations import why_not
from plumdp.base.errors import Option
from plumdp.base.vocabulary import EPISODE, Guarantee, NoBets, Relaxation, Status
from plumdp.certifying.approximation import approximate, hidden_by_memory
from plumdp.certifying.valuation import Valuation
from plumdp.confidence.estimates import left_out_choices
from plumdp.confidence.sets import NOT_PRESPECIFIED
from plumdp.data.counts import TransitionCounts, data_provenance
from plumdp.data.pilots import ROWS_PER_RUN, SIZES
from plumdp.data.quality import DataQuality
from plumdp.data.same_files import ANEW
from plumdp.learning.assumptions import with_memory
from plumdp.learning.learned import Learned
from plumdp.learning.methods import SETS
from plumdp.model.graph import read_only
from plumdp.model.objectives import Objective, digest
from plumdp.model.policy import policy_weights
from plumdp.model.question import Question
from plumdp.model.text import cut, number_of
from plumdp.model.unmodelled_exits import out_of_table_of
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.relaxation.relax import RELAXATIONS, untied_set_of
from plumdp.result.certificate import Certificate
from plumdp.result.claim import Beside, Claim, How, RestsOn, contradicted
from plumdp.result.policy_table import PolicyTable
from plumdp.solver.qualitative import make_game

_ROUNDING = 1e-9  # of a value at a point, relative
_ROUNDED = 1e-9  # further below 0 than this no rounding goes
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
    assuming: tuple[str, ...] = (),
) -> Certificate:
    """Return the certificate of a policy from bounds on its value.

    ``is_given`` says that the user gave the policy, and ``left_out`` which parts of the region the relaxation ignored.
    ``limit`` is a value that no policy beats, if the policy that was found has the worst value, and ``assuming`` what
    is assumed of the policy.
    """
    model, objective, marks = question.model, question.objective, [part.mark for part in learned.counts.parts]
    valued = within_range(question, valued)
    policy = PolicyTable(model.graph, valued.policy, frozenset([learned.counts.fingerprint, *marks]))
    bound = valued.lower if objective.direction == "max" else valued.upper
    ends = [valued.lower, valued.upper] if limit is None else [valued.lower, valued.upper, limit]
    is_contradicted = learned.conflict is not None
    reason, beside = _explained(learned, question, valued, bound, is_given)
    claim = Claim(
        lower=valued.lower,
        upper=valued.upper,
        policy=policy,
        objective=objective.text,
        direction=objective.direction,
        confidence=1 - learned.error,
        guarantee=Guarantee.ANYTIME if is_contradicted else learned.bounds.guarantee,
        status=status_of(learned, objective, min(ends), max(ends), is_given=is_given),
        reason=reason,
        unit=getattr(objective, "unit", ""),  # probabilities have none
    )
    how = How(
        relaxation="untied" if is_contradicted else relaxation,
        confidence_set=untied_set_of(model) if is_contradicted else learned.bounds.method,
        solver=valued.solver,
        seconds=seconds,
        not_coupled=valued.not_coupled.reason,
        left_out=left_out,
        not_in_likelihood=_not_in_likelihood(learned),
        budget=learned.budget.parts(),
        options={
            **learned.options,
            "objectives": [asked.text for asked in learned.questions],
            "with_memory": [asked.remembers for asked in learned.questions],
            "prespecified": [asked.prespecified for asked in learned.questions],
            "whole_runs": [
                asked.runs is not None and ("apart" if asked.is_beside_practice else True)
                for asked in learned.questions
            ],
            "relaxation": relaxation,
            "precision": precision,
            "policy": "given" if is_given else "found",
            "practice": bool(assuming),
            "memory": question.remembers,
        },
    )
    rests_on = RestsOn(
        assumptions=(*_assumptions(learned, objective, beside), *assuming),
        parameters=learned.parameters,
        provenance={
            "plumdp": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "model": learned.model.graph.fingerprint,
            "expressions": learned.model.fingerprint,
            "counts": learned.counts.fingerprint,
            "parts": " ".join(part.mark for part in learned.counts.parts if part.is_known),
            "objective": digest(objective),
            "steps": f"{learned.counts.total}",
            **data_provenance(learned.counts),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        },
        model_tolerance=learned.model_tolerance,
        jointly=_other_objectives(learned, question),
    )
    beside = replace(
        beside,
        gap=_parts_of_gap(valued),
        p_value=None if learned.fit is None else learned.fit.p_value,
        visible_error=learned.visible_error,
        remark=_remark(policy, question),
    )
    certificate = Certificate(claim, how, rests_on, beside)
    if learned.conflict is not None and not learned.conflict.leaves_bounds:
        return with_data(_unclaimed(certificate, claim.status, claim.reason), learned.counts)
    may_prespecify = is_given and valued.not_coupled.code == NOT_PRESPECIFIED.code
    # if there is a reason, the graph alone explains it
    narrower = () if claim.reason else to_narrow(learned, certificate, may_prespecify=may_prespecify)
    return with_data(replace(certificate, how=replace(how, narrower=narrower)), learned.counts)


def _assumptions(learned: Learned, objective: Objective, beside: Beside) -> tuple[str, ...]:
    """Return what bounds rest on, the first premise with how well it was tested."""
    found = learned.assumptions_about(rewards=objective.cap > 1)
    if learned.conflict is not None:
        return found
    is_run = learned.model.graph.is_chain and objective.cap <= 1 and learned.fit is not None
    hidden = hidden_by_memory(learned, beside.estimated_value, beside.approximate) if is_run else None
    return with_memory(found, learned.counts, hidden)


def within_range(question: Question, valued: Valuation) -> Valuation:
    """Return a valuation whose bounds are values that there can be, as rounding outward may have gone beyond 0 or 1."""
    objective, may_be_0 = question.objective, -_ROUNDED < valued.lower < 0 and out_of_table_of(question.model) is None
    is_never_negative = objective.cap < np.inf
    if may_be_0 and not is_never_negative:
        is_never_negative = bool((objective.terms(question.model.graph).reward >= 0).all())
    lower = max(valued.lower, 0.0) if is_never_negative else valued.lower
    return replace(valued, lower=lower, upper=min(valued.upper, objective.cap))


def _unclaimed(certificate: Certificate, status: Status, reason: str) -> Certificate:
    """Return a certificate without bounds, and without what only bounds make worth saying."""
    none = replace(certificate.claim, lower=-np.inf, upper=np.inf, status=status, reason=reason, claims_bounds=False)
    return replace(
        certificate,
        claim=contradicted(none, certificate.how, certificate.rests_on),
        how=replace(certificate.how, not_in_likelihood="", narrower=(), budget=()),
        rests_on=replace(certificate.rests_on, parameters={}, jointly=()),
        beside=replace(certificate.beside, estimate={}, estimated_value=None, approximate=None, gap={}),
    )


def without_bounds(certificate: Certificate, contradiction: str) -> Certificate:
    """Return a certificate that claims nothing but that what it assumes cannot all be true."""
    return _unclaimed(certificate, Status.PREMISES, contradiction)


def _remark(policy: PolicyTable, question: Question) -> str:
    """Return a remark on a policy with memory, or on one without if the best action may depend on the steps left.

    The remark on a policy that draws is how often it does.
    """
    if policy.n_drawn:
        return f"draws its action in {policy.n_drawn:,} of {number_of(len(policy), 'state')}"
    if policy.graph.memory is not None:
        return policy.graph.memory.words
    n_steps, has_choices = question.objective.n_steps, policy.graph.n_choices > policy.graph.n_states
    if n_steps is None or n_steps < 2 or not has_choices:
        return ""
    return _COUNTS_NO_STEPS + (f" ({question.forgets})" if question.forgets else "")


def _not_in_likelihood(learned: Learned) -> str:
    """Return, in words, the number of steps that have no part in the likelihood of the region, and the reason."""
    if learned.conflict is not None or not SETS[learned.kind].has_level_set:
        return ""
    table, visits, has_paths = learned.table, learned.counts.visits, bool(learned.budget["paths"])
    rows = (*table.left_out, *(() if has_paths or table.paths is None else table.paths.rows))
    if not rows:
        return ""
    n_steps = int(visits[left_out_choices(table, but_paths=has_paths)].sum())
    row = min((", ".join(map(str, row)) for row in rows), key=len)
    share = f"{n_steps:,} of {number_of(learned.counts.total, 'step')} ({100 * n_steps / max(visits.sum(), 1):.3g} %)"
    why = f"the log-likelihood of rows such as ({cut(row, _LONGEST_ROW)}) need not be concave"
    return f"{share}: {why}, so only intervals of their probabilities are used" if n_steps else ""


def _other_objectives(learned: Learned, question: Question) -> tuple[str, ...]:
    """Return the other pre-specified objectives, whose certificates hold jointly as they rest on one region."""
    others = [asked.objective for asked in learned.questions if asked.digest != question.digest]
    return tuple(other.text or "an objective without a text" for other in others)


def _explained(
    learned: Learned, question: Question, valued: Valuation, bound: float, is_given: bool
) -> tuple[str, Beside]:
    """Return the reason for a contradiction, or for an infinite bound if the graph explains it, and the estimate."""
    if learned.conflict is not None:
        return str(learned.conflict), Beside()
    is_known = learned.with_points(question.model) is not None
    reason = _reason_for_infinite_bound(question, bound, valued.policy, is_given=is_given) if is_known else ""
    return reason, _estimated(learned, question, valued)


def _estimated(learned: Learned, question: Question, valued: Valuation) -> Beside:
    """Return the point at which the data are most likely, and the policy's value there with its normal interval.

    A value outside of the bounds is not returned, nor one of a set without an estimate.
    """
    found = approximate(learned, question, valued.policy)
    shown = None if found is None else shown_value(found.value, valued.lower, valued.upper)
    if found is None or shown is None:
        return Beside()
    point = None if learned.model.counted.is_table else learned.shown_estimate
    estimate = {} if point is None else dict(zip(learned.model.space.names, point.tolist(), strict=True))
    return Beside(estimate, shown, found.interval)


def shown_value(value: float, lower: float, upper: float) -> float | None:
    """Return the value at an estimate if it is finite and within the bounds up to rounding, or None."""
    inside = min(max(value, lower), upper)
    return inside if np.isfinite(value) and abs(inside - value) <= _ROUNDING * max(1.0, abs(value)) else None


def _parts_of_gap(valued: Valuation) -> dict[str, float]:
    """Return the parts of the distance of the bounds, if there are coupled bounds.

    Statistics is the uncertainty of the parameters to first order, and the approximation error what higher orders may
    add. Relaxation is what bounds against nature add, at an end where these are tighter than the coupled ones.
    """
    if valued.coupled is None:
        return {}
    remaining, parts = valued.upper - valued.lower, {}
    proof = valued.coupled
    of = {"statistics": proof.statistics, "approximation error": proof.remainder, "rounding": proof.rounding}
    for name, part in of.items():
        parts[name] = float(min(max(part, 0.0), remaining))  # rounding may leave it below zero
        remaining -= parts[name]
    return parts | {"relaxation": float(remaining)}


def with_data(certificate: Certificate, counts: TransitionCounts) -> Certificate:
    """Return the certificate with the quality of its data, and without bounds if these contradict the graph."""
    quality = DataQuality(counts.total, counts.report)
    certificate = replace(certificate, rests_on=replace(certificate.rests_on, data_quality=quality))
    if quality.contradicting:
        found = _unclaimed(certificate, Status.REJECTED, quality.contradiction)
        untested = replace(found.beside, p_value=None, visible_error=None)
        return replace(found, claim=replace(found.claim, guarantee=Guarantee.NONE), beside=untested)
    claim = certificate.claim
    is_vacuous = claim.status == Status.INCONCLUSIVE
    reason = claim.reason or ((quality.absence or _not_excluded(claim)) if is_vacuous else "")
    return replace(
        certificate, claim=contradicted(replace(claim, reason=reason), certificate.how, certificate.rests_on)
    )


def _not_excluded(claim: Claim) -> str:
    """Return the reason why nothing is certified, if neither the graph nor a lack of data is one, or an empty text."""
    if claim.lower == claim.upper:
        worst = claim.printed_bounds[0]
        return f"the recommended policy has the worst value, {worst}; others may do better, but the data do not show it"
    if claim.direction == "max" or claim.upper < np.inf:
        return ""
    return "the data do not exclude that some runs never reach the target, so no finite bound is proved"


def status_of(learned: Learned, objective: Objective, lower: float, upper: float, *, is_given: bool = False) -> Status:
    """Return the status of bounds on the value of a policy, which the user gave or which was found."""
    if learned.conflict is not None:
        return Status.REJECTED
    if learned.model.is_table and not learned.counts.total:  # all was stated, or seen in first runs
        return Status.INCONCLUSIVE
    is_low, is_high = (
        replace(objective, direction=direction).is_vacuous(bound)
        for direction, bound in (("max", lower), ("min", upper))
    )
    if is_given:  # whoever asks for the value of a policy is answered by either bound
        return Status.INCONCLUSIVE if is_low and is_high else Status.CERTIFIED
    says_nothing = is_low if objective.direction == "max" else is_high
    return Status.INCONCLUSIVE if says_nothing and lower < upper else Status.CERTIFIED


def _reason_for_infinite_bound(question: Question, bound: float, policy: npt.NDArray[Any], *, is_given: bool) -> str:
    """Return the reason why a bound is infinite whatever the data, if the graph has one, or an empty text."""
    model, objective = question.model, question.objective
    if bound < np.inf or objective.cap < np.inf or objective.target is None:
        return ""
    graph, is_one_policy = model.graph, is_given or objective.direction == "max"
    if is_one_policy:  # all other choices are made loops, so that only those of the policy can lead to the target
        taken = policy_weights(graph, policy)[graph.choice_of_transition()] > 0
        stay = graph.state_of_choice()[graph.choice_of_transition()]
        graph = replace(graph, successor=read_only(np.where(taken, graph.successor, stay)))
    possible = IntervalMDP(graph, np.zeros_like(model.expression), np.ones(1), np.ones(1))
    game = make_game(possible, replace(objective, direction="min"), "robust")
    if game.known[graph.initial_state] < np.inf:
        return ""
    one, all_ = "this policy does not surely reach the target", "no policy reaches the target with certainty"
    who = one if is_one_policy else all_
    return f"{who}, so its expected reward is infinite, as long as every transition of the model can happen"


Advice: TypeAlias = tuple[str | Option, ...]

_ALIASED = 4  # times as wide as the usual interval: bounds may hold two kinds of chains
_BETS = "; then the first data decide how bets are placed"
_FIXED = ", or ", Option("sampling", "trajectories"), f" if the number of runs was fixed beforehand{_BETS}"
_NO_BETS: dict[NoBets, Advice] = {
    "order": (
        *("say ", Option("order", "runs"), " if its runs are numbered as they were made, one after another, or "),
        *(Option("order", "time"), " if its rows are in order", *_FIXED),
    ),
    "overlap": ("say ", Option("order", "time"), " if the rows of the log are in the order of time", *_FIXED),
    "unnamed runs": ("name the run of each row, with ", Option("columns", {EPISODE: ...}), _BETS),
    "shared names": (
        f"give different runs different names, as rows with the same run and step contradict each other; {ANEW}{_BETS}",
    ),
    "few": (
        f"collect more than {SIZES[0]} runs, or {ROWS_PER_RUN * SIZES[0]} rows if these are in order; the first bets "
        "are placed then",
    ),
}


def to_narrow(learned: Learned, certificate: Certificate, *, may_prespecify: bool = False) -> Advice:
    """Return the most useful step towards narrower bounds, or nothing if none is known to help.

    Bets are worth most, then one point for all states; a model tolerance costs width that no data win back.
    """
    smallest = certificate.how.options["precision"] * max(1.0, abs(certificate.lower))  # that the solver tells apart
    is_narrow = certificate.upper - certificate.lower <= smallest
    if certificate.status not in (Status.CERTIFIED, Status.INCONCLUSIVE) or is_narrow:
        return ()
    pilot, report = learned.counts.pilot, learned.counts.report
    absence = DataQuality(learned.counts.total, report).absence
    if absence and (report is None or report.no_bets != "shared names"):
        return (f"give data: {absence}",)
    has_bets, gaps = pilot is not None and pilot.moments, learned.model.counted.gaps
    apart = 1 if gaps is None else int(np.gcd.reduce(gaps[learned.counts.visits > 0]))
    usual = certificate.beside.approximate or (-np.inf, np.inf)
    if apart > 1 and certificate.upper - certificate.lower > _ALIASED * (usual[1] - usual[0]):
        return (
            f"get some observations one step apart, as after gaps that are all multiples of {apart} steps a chain that "
            "turns back often may look like one that seldom does",
        )
    if SETS[learned.kind].has_bets and not has_bets and report is not None and report.no_bets is not None:
        return _NO_BETS[report.no_bets]
    if may_prespecify:
        return (
            "say ",
            Option("prespecified", True),
            " if these data did not choose the policy; then bets are placed on it",
        )
    is_coupled = certificate.how.relaxation in ("coupled", "untied") or certificate.how.not_coupled
    if not is_coupled and not why_not(*RELAXATIONS["coupled"].traits, *learned.model.traits):
        return "ask for ", Option("relaxation", "coupled"), ", with one point for all states"
    if certificate.rests_on.model_tolerance:
        return (
            "allow for less, with a smaller ",
            Option("model_tolerance"),
            ", if you are sure of it: no amount of data wins back what it costs",
        )
    if pilot is not None and pilot.moments and not pilot.is_planned and pilot.expected is None and report is not None:
        return (
            "for the next data, fix the number of runs before you look at any, and say ",
            *(Option("sampling", "trajectories"), ", or say how many you expect, with ", Option("expected", ...)),
        )
    ran = [each.runs is not None for each in learned.questions if each.has_policies and not each.practised]
    if ran and not any(ran) and learned.model.counted.is_table and certificate.how.options["policy"] == "given":
        return (
            "if each run followed one policy to its end, use the returns of whole runs too: name the column with the "
            "policy of each run, with ",
            Option("columns", {"arm": ...}),
        )
    if certificate.beside.gap.get("approximation error", 0.0) > certificate.beside.gap.get("statistics", 0.0):
        return ("collect more data: most of the width is approximation error, which shrinks faster than the data grow",)
    more = "collect more data: four times as much roughly halves the width"
    return (more,) if learned.model.counted.gaps is not None else (f"{more} (see ", Option("advise"), ")")
