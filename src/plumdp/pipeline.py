"""From a model, counts and an objective to a policy with a guarantee: the paper on one screen. Read this first.

The seven stages, the folder of each, and what it implements of the paper:

1. model: the transitions of an MDP as expressions of unknown parameters (Section 2.1)
2. data: how often each transition was seen (Section 2.3)
3. confidence: what the counts say about the probabilities, tied by their expressions (Sections 2.3, 2.4, 3.4)
4. region: all parameters that explain it, or a proof that none do (Section 3, Theorem 1; products 3.2, emptiness 3.3)
5. relaxation: what nature may do at each choice (Section 3.1, Theorem 2)
6. solver: the best policy against nature at its worst, and bounds on its value (Section 2.2)
7. result: what may be claimed of the policy, and what the claim rests on (Theorem 1)

``learn`` takes stages 3 and 4, ``conclude`` 5 to 7, and ``certify`` all of them (several objectives: ``certify_all``).

What is taken if nothing is named: likelihood sets (``learning.default_set`` says when intervals), and coupled bounds
(``default_relaxation`` says when rectangular ones).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from plumdp.claims import make_certificate
from plumdp.confidence.bounds import Intervals
from plumdp.confidence.untied import untied_bounds
from plumdp.data.counts import TransitionCounts
from plumdp.data.logs import Log
from plumdp.deprecated import renamed_keywords
from plumdp.errors import DataError
from plumdp.learning import SETS, Clock, Learned, Sets, learn
from plumdp.model.events import Events
from plumdp.model.language.property import as_objective, as_objectives
from plumdp.model.objective import Objective
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.policy import Policy, check_policy
from plumdp.region.conflict import Conflict
from plumdp.region.shapes import Polytope
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.relaxation.relax import RELAXATIONS, Relaxation, tolerating
from plumdp.result.certificate import Certificate
from plumdp.sources import LearnedSource
from plumdp.threads import at_most, one_blas_thread
from plumdp.valuation import best_valuation, value_policy


@renamed_keywords(sets="confidence_set", intervals="interval_method", paper="as_published")
def certify(
    model: ParametricMDP,
    counts: TransitionCounts | Log,
    objective: Objective | str,
    *,
    confidence: float = 0.999,
    relaxation: Relaxation | None = None,
    confidence_set: Sets | None = None,
    interval_method: Intervals | None = None,
    events: Events | None = None,
    as_published: bool = False,
    policy: Policy | None = None,
    precision: float = 1e-6,
    misfit: float = 0.0,
    threads: int | None = None,
) -> Certificate:
    """Return a policy and bounds on its value that hold with the given confidence (Theorem 1 of the paper).

    Parameters
    ----------
    objective
        What is asked, or its text (see ``parse_property``). For several questions there is ``certify_all``.
    confidence
        How sure the bounds must be.
    relaxation
        What nature may do. By default the policy is sought, and valued, with one point for all states ("coupled").
    confidence_set
        What is drawn around the data. By default the likelihood; intervals if one of the next three options is given.
    interval_method, events
        For other intervals than the narrowest valid ones, see ``expression_bounds``.
    as_published
        Draw what the paper publishes, for comparison: without guarantee, and rectangular unless you name a relaxation.
    misfit
        The bounds stay valid if every row of the model is off by at most this much in total variation.
    policy
        Value this policy in place of the best one.
    precision
        How far the solver's bounds may be apart.
    threads
        How many threads a large model is solved with; by default PLUMDP_THREADS, or all cores. It changes no bit.

    Examples
    --------
    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> certificate = certify(study.model, counts, study.objective)
    >>> certificate.status, certificate.lower < certificate.upper
    ('certified', True)
    """
    require_model("certify", model)  # stage 1; the counts are stage 2
    objective = as_objective(objective, model)
    with at_most(threads):
        learned = learn(
            model,
            counts,
            confidence=confidence,
            confidence_set=confidence_set,
            interval_method=interval_method,
            events=events,
            as_published=as_published,
            objectives=[objective],
            misfit=misfit,
        )
        return conclude(learned, objective, relaxation=relaxation, policy=policy, precision=precision)


def certify_all(
    model: ParametricMDP,
    counts: TransitionCounts | Log,
    objectives: Sequence[Objective | str],
    *,
    confidence: float = 0.999,
    relaxation: Relaxation | None = None,
    confidence_set: Sets | None = None,
    interval_method: Intervals | None = None,
    events: Events | None = None,
    as_published: bool = False,
    misfit: float = 0.0,
    precision: float = 1e-6,
) -> list[Certificate]:
    """Return a certificate for each objective, each with a policy of its own, that hold jointly with the confidence.

    All follow from one ``learn``, to which all objectives are announced; options are those of ``certify``. So you may
    look at all of them and report the one that you like best.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("aircraft:20,10")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=21)
    >>> for one in certify_all(study.model, counts, ['Pmin=? [ F "collision" ]', study.objective]):
    ...     print(f"{one.objective:32} {one.lower:.3f} {one.upper:.3f}, with {len(one.jointly)} other")
    Pmin=? [ F "collision" ]         0.702 0.720, with 1 other
    Pmax=? [ !"collision" U "goal" ] 0.280 0.298, with 1 other
    """
    require_model("certify_all", model)
    asked = as_objectives(objectives, model)
    if not asked:
        raise DataError("objectives: there are none; give at least one property, such as 'Pmax=? [ F \"goal\" ]'")
    learned = learn(
        model,
        counts,
        confidence=confidence,
        confidence_set=confidence_set,
        interval_method=interval_method,
        events=events,
        as_published=as_published,
        objectives=asked,
        misfit=misfit,
    )
    return [conclude(learned, objective, relaxation=relaxation, precision=precision) for objective in asked]


@renamed_keywords(sets="confidence_set", intervals="interval_method", paper="as_published")
def compare(
    model: ParametricMDP,
    counts: TransitionCounts | Log,
    objective: Objective | str,
    *,
    confidence: float = 0.999,
    relaxations: Sequence[Relaxation] | None = None,
    confidence_set: Sets | None = None,
    interval_method: Intervals | None = None,
    events: Events | None = None,
    as_published: bool = False,
    policy: Policy | None = None,
    precision: float = 1e-6,
    misfit: float = 0.0,
) -> list[Certificate]:
    """Return a certificate for each relaxation from the same data, each with its own policy unless one is given.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("aircraft:20,10")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=21)
    >>> for certificate in compare(study.model, counts, study.objective):
    ...     print(f"{certificate.relaxation:12} {certificate.lower:.3f} {certificate.upper:.3f}")
    interval     0.138 0.490
    parameter    0.211 0.360
    expression   0.272 0.307
    rectangular  0.276 0.302
    coupled      0.281 0.298
    """
    require_model("compare", model)
    objective = as_objective(objective, model)
    learned = learn(
        model,
        counts,
        confidence=confidence,
        confidence_set=confidence_set,
        interval_method=interval_method,
        events=events,
        as_published=as_published,
        objectives=[objective],
        misfit=misfit,
    )
    return compare_learned(learned, objective, relaxations=relaxations, policy=policy, precision=precision)


def compare_learned(
    learned: Learned,
    objective: Objective | str,
    *,
    relaxations: Sequence[Relaxation] | None = None,
    policy: Policy | None = None,
    precision: float = 1e-6,
) -> list[Certificate]:
    """Return a certificate for each relaxation from what was learned, as ``compare`` does."""
    if relaxations is None:
        relaxations = _relaxations(has_intervals=learned.bounds.intervals is not None)
        if learned.model.distinct is not None:
            relaxations = [name for name in relaxations if not _picks_points(name)]
    found: list[Certificate] = []
    for relaxation in relaxations:
        new = conclude(learned, objective, relaxation=relaxation, policy=policy, precision=precision)
        found.append(new if policy is None else _cut_to_looser(new, found))
    return found


def _cut_to_looser(certificate: Certificate, others: Sequence[Certificate]) -> Certificate:
    """Return a certificate for a policy with bounds never wider than those of looser relaxations for the same policy.

    Its own could be wider by what the solver leaves open: all of them hold, so their intersection does.
    """
    names = () if certificate.relaxation == "untied" else RELAXATIONS[certificate.relaxation].looser
    looser = [other for other in others if other.relaxation in names]
    lower = max([certificate.lower, *(other.lower for other in looser)])
    upper = min([certificate.upper, *(other.upper for other in looser)])
    return replace(certificate, lower=lower, upper=upper)


def relaxations_for(confidence_set: Sets) -> tuple[Relaxation, ...]:
    """Return the relaxations that there are; a set without intervals of its own has no interval-wise one."""
    return _relaxations(has_intervals=SETS[confidence_set].has_intervals)


def _relaxations(*, has_intervals: bool) -> tuple[Relaxation, ...]:
    return tuple(name for name, each in RELAXATIONS.items() if has_intervals or not each.needs_intervals)


def default_relaxation(learned: Learned) -> Relaxation:
    """Return the relaxation that is taken if none is named: coupled, or for published sets the paper's tightest.

    Models that are stored on disk are solved level by level, within intervals.
    """
    if learned.model.distinct is not None:
        return "expression"
    return "rectangular" if learned.as_published else "coupled"


@one_blas_thread()
def conclude(
    learned: Learned,
    objective: Objective | str,
    *,
    relaxation: Relaxation | None = None,
    policy: Policy | None = None,
    precision: float = 1e-6,
) -> Certificate:
    """Return a policy for an objective, and bounds on its value, that follow from what was learned from the data.

    Nature at its worst makes the policy, and bounds its value on one side; nature at its best bounds it on the other.
    If no relaxation is named, bounds are coupled, and those of published sets rectangular. All certificates from one
    ``learn`` hold jointly with its confidence, whichever of them you choose in the end.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> learned = learn(study.model, simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26))
    >>> best = conclude(learned, study.objective)
    >>> timid = conclude(learned, study.objective, policy=study.model.graph.first_choice[:-1])
    >>> best.lower > timid.lower, timid.confidence
    (True, 0.999)
    """
    objective = as_objective(objective, learned.model)
    if policy is not None and check_policy(learned.model.graph, policy).dtype.kind == "f":
        raise DataError("a certificate has one action per state: give choice numbers; evaluate values drawn policies")
    relaxation, clock = relaxation or default_relaxation(learned), Clock(dict(learned.seconds))
    uncertain = relax(learned, relaxation)  # stage 5: what nature may do (Section 3.1)
    clock.lap("relaxation")
    is_coupled = RELAXATIONS[relaxation].is_coupled and learned.conflict is None
    if policy is not None:
        valued = value_policy(learned, uncertain, policy, objective, is_coupled=is_coupled, precision=precision)
    else:  # stage 6: the best policy against nature at its worst (Section 2.2); the claim is about what is returned
        robust = learned.at_points(objective).robust(uncertain, precision)
        if is_coupled:
            valued = best_valuation(learned, uncertain, robust, objective, precision=precision)
        else:
            valued = value_policy(learned, uncertain, robust.policy, objective, precision=precision)
    clock.lap("solver")
    # stage 7: what may be claimed (Theorem 1)
    certificate = make_certificate(
        learned,
        objective,
        relaxation,
        valued,
        clock.laps,
        is_given=policy is not None,
        left_out=_left_out(learned, uncertain),
    )
    if learned.model.distinct is not None:
        return certificate
    return replace(certificate, source=LearnedSource(learned, objective, policy is not None, precision))


def _left_out(learned: Learned, uncertain: IntervalMDP) -> str:
    """Return what was cut to save time, in words: half-spaces of the region, and of what rows see of it."""
    region = learned.region if isinstance(learned.region, Polytope) else None
    return "; ".join(text for text in ("" if region is None else region.left_out, uncertain.left_out) if text)


def _picks_points(relaxation: Relaxation) -> bool:
    """Return whether nature picks points of the region in a relaxation, rather than probabilities within intervals."""
    return "expression" in RELAXATIONS[relaxation].looser


def relax(learned: Learned, relaxation: Relaxation) -> IntervalMDP:
    """Return what nature may do; if no parameters explain the data, what the graph alone allows."""
    model, bounds, region = learned.model, learned.bounds, learned.region
    if relaxation not in tuple(RELAXATIONS):
        raise DataError(f"relaxation={relaxation!r}: choose one of {', '.join(map(repr, RELAXATIONS))}")
    is_stored, has_points = model.distinct is not None, _picks_points(relaxation)
    if is_stored and has_points:
        raise DataError(
            f"relaxation={relaxation!r}: a model that is stored on disk is solved within intervals; choose 'expression'"
        )
    if isinstance(region, Conflict) and is_stored:  # next to nothing of so many transitions was seen
        same = np.broadcast_to(np.int32(0), model.graph.n_transitions)
        return IntervalMDP(model.graph, same, np.zeros(1), np.ones(1))
    if isinstance(region, Conflict):
        lower, upper = untied_bounds(learned.counts, error=learned.fallback * learned.error)
        return IntervalMDP(model.graph, np.arange(model.graph.n_transitions, dtype=np.int32), lower, upper)
    # of points of the region a misfit leaves the intervals
    built = RELAXATIONS["expression" if learned.misfit and has_points else relaxation].build(model, bounds, region)
    return tolerating(built, learned.misfit)
