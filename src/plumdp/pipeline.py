"""From a model, counts and an objective to a policy with a guarantee: the paper on one screen. Read this first.

The seven stages, the folder of each, and what it implements of the paper:

1. model: the transitions of an MDP as expressions of unknown parameters (Section 2.1)
2. data: how often each transition was seen (Section 2.3)
3. confidence: what the counts say about the probabilities, tied by their expressions (Sections 2.3, 2.4, 3.4)
4. region: all parameters that explain it, or a proof that none do (Section 3, Theorem 1; products 3.2, emptiness 3.3)
5. relaxation: what nature may do at each choice (Section 3.1, Theorem 2)
6. solver: the best policy against nature at its worst, and bounds on its value (Section 2.2)
7. result: what may be claimed of the policy, and what the claim rests on (Theorem 1)

``learn`` takes stages 3 and 4, ``conclude`` 5 to 7, and ``certify`` all of them.
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
from plumdp.model.language.property import as_objective
from plumdp.model.objective import Objective
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.policy import Policy, check_policy
from plumdp.region.conflict import Conflict
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.relaxation.relax import RELAXATIONS, Relaxation, tolerating
from plumdp.result.certificate import Certificate
from plumdp.valuation import best_valuation, value_policy


@renamed_keywords(sets="confidence_set", intervals="interval_method", paper="as_published")
def certify(
    model: ParametricMDP,
    counts: TransitionCounts | Log,
    objective: Objective | str,
    *,
    confidence: float = 0.999,
    relaxation: Relaxation = "rectangular",
    confidence_set: Sets = "interval",
    interval_method: Intervals | None = None,
    events: Events | None = None,
    as_published: bool = False,
    policy: Policy | None = None,
    precision: float = 1e-6,
    misfit: float = 0.0,
) -> Certificate:
    """Return a policy and bounds on its value that hold with the given confidence (Theorem 1 of the paper).

    The policy is the best against the worst that the relaxation allows, or the one that is given. The objective may be
    given as text, see ``parse_property``. ``confidence_set`` says what is drawn around the data. ``interval_method``
    and ``events`` are for those who want other intervals than the narrowest valid ones (see ``expression_bounds``).
    ``as_published=True`` draws what the paper publishes, for comparison: without guarantee. With ``misfit=0.01`` the
    bounds stay valid if every row of the model is off by at most 0.01 in total variation.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> certificate = certify(study.model, counts, study.objective)
    >>> certificate.status, certificate.lower < certificate.upper
    ('certified', True)
    """
    require_model("certify", model)  # stage 1; the counts are stage 2
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
    return conclude(learned, objective, relaxation=relaxation, policy=policy, precision=precision)


@renamed_keywords(sets="confidence_set", intervals="interval_method", paper="as_published")
def compare(
    model: ParametricMDP,
    counts: TransitionCounts | Log,
    objective: Objective | str,
    *,
    confidence: float = 0.999,
    relaxations: Sequence[Relaxation] | None = None,
    confidence_set: Sets = "interval",
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
    interval     0.173 0.433
    parameter    0.182 0.374
    expression   0.255 0.341
    rectangular  0.262 0.333
    coupled      0.271 0.324
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
    found: list[Certificate] = []
    for relaxation in relaxations_for(confidence_set) if relaxations is None else relaxations:
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
    has_intervals = SETS[confidence_set].has_intervals
    return tuple(name for name, each in RELAXATIONS.items() if has_intervals or not each.needs_intervals)


def conclude(
    learned: Learned,
    objective: Objective | str,
    *,
    relaxation: Relaxation = "rectangular",
    policy: Policy | None = None,
    precision: float = 1e-6,
) -> Certificate:
    """Return a policy for an objective, and bounds on its value, that follow from what was learned from the data.

    Nature at its worst makes the policy, and bounds its value on one side; nature at its best bounds it on the other.
    All certificates from one ``learn`` hold jointly with its confidence, whichever of them you choose in the end.

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
    clock = Clock(dict(learned.seconds))
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
    return make_certificate(learned, objective, relaxation, valued, clock.laps, is_given=policy is not None)


def relax(learned: Learned, relaxation: Relaxation) -> IntervalMDP:
    """Return what nature may do; if no parameters explain the data, what the graph alone allows."""
    model, bounds, region = learned.model, learned.bounds, learned.region
    if relaxation not in tuple(RELAXATIONS):
        raise DataError(f"relaxation={relaxation!r}: choose one of {', '.join(map(repr, RELAXATIONS))}")
    if isinstance(region, Conflict):
        lower, upper = untied_bounds(learned.counts, error=learned.fallback * learned.error)
        return IntervalMDP(model.graph, np.arange(model.graph.n_transitions, dtype=np.int32), lower, upper)
    has_points = "expression" in RELAXATIONS[relaxation].looser  # of which a misfit leaves the intervals
    built = RELAXATIONS["expression" if learned.misfit and has_points else relaxation].build(model, bounds, region)
    return tolerating(built, learned.misfit)
