"""From a model, counts and an objective to a policy with a guarantee: the paper on one screen. Read this first.

The seven stages, the folder of each, and what it implements of the paper:

1. model: the transitions of an MDP as expressions of unknown parameters (Section 2.1)
2. data: how often each transition was seen (Section 2.3)
3. confidence: what the counts say about the probabilities, tied by their expressions (Sections 2.3, 2.4)
4. region: all parameters that explain it, or a proof that none do (Section 3, Theorem 1; products 3.2, emptiness 3.3)
5. relaxation: what nature may do at each choice (Section 3.1, Theorem 2)
6. solver: the best policy against nature at its worst, and bounds on its value (Section 2.2)
7. result: what may be claimed of the policy, and what the claim rests on (Theorem 1)

``learn`` takes stages 3 and 4, ``conclude`` 5 to 7, and ``certify`` all of them.

What is taken if nothing is named: likelihood sets (``default_set`` says when intervals, and when the model is seen as a
table of unknown rows), and coupled bounds (``default_relaxation`` says when rectangular ones).

A policy that counts steps reaches few pairs of a state and a step. So the best choices at each step are found without
the product, by one pass over the model for each step: at the centre of the region, towards where the bound of the
policy there is attained, and against nature in intervals. The product has these choices only. All bounds are proved on
it as on any other: they are about the policy that is returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from plumdp.base.combinations import Trait, refuse
from plumdp.base.compiled import Clock
from plumdp.base.errors import DataError, Option
from plumdp.base.progress import working
from plumdp.base.threads import one_blas_thread
from plumdp.base.vocabulary import Relaxation, Status
from plumdp.certifying.claims import make_certificate
from plumdp.certifying.policy_search import worst_point
from plumdp.certifying.rungs import by_model_alone, ends_about, on_rungs
from plumdp.certifying.valuation import Valuation, best_of_all, best_valuation, value_policy
from plumdp.confidence.space_moments import moments
from plumdp.data.counts import TransitionCounts
from plumdp.data.log import Log
from plumdp.data.practice import about_practice, known_policy
from plumdp.data.run_record import WholeRuns
from plumdp.learning.learn import learn
from plumdp.learning.learned import Learned, of_learned
from plumdp.learning.methods import Sets
from plumdp.model.graph import Graph
from plumdp.model.memory import no_choices
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.policy import Policy, as_choices, check_policy
from plumdp.model.question import Asked, Question, ask, is_practice, may_narrow, memory_for, narrowed
from plumdp.region.ball import ball_around
from plumdp.region.conflict import Conflict
from plumdp.region.shapes import Polytope
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.relaxation.relax import RELAXATIONS, relaxations_of, tolerating, untied
from plumdp.result.certificate import Certificate, Certificates
from plumdp.solver.at_points import move_inside
from plumdp.solver.coupled.gradient import policy_gradient


@working("certifying")
def certify(
    model: ParametricMDP,
    counts: TransitionCounts | Log,
    objective: Asked,
    *,
    relaxation: Relaxation | None = None,
    policy: Policy | None = None,
    prespecified: bool = False,
    confidence: float = 0.999,
    confidence_set: Sets | None = None,
    model_tolerance: float = 0.0,
) -> Certificate:
    """Return a policy and bounds on its value that hold with the given confidence (Theorem 1 of the paper).

    It is ``learn`` and ``conclude``, which have the options that are rare.

    Parameters
    ----------
    model
        The parametric model.
    counts
        The data: what ``read_log``, ``simulate`` or ``read_counts`` returned.
    objective
        The question, or its text (see ``parse_property``); a ``Question`` may have whole runs under its policy. For
        several, ``learn`` once and ``conclude`` each.
    relaxation
        How the adversary may vary the parameters. By default one point holds for the whole run ("coupled").
    policy
        Value this policy instead of the best one: a ``PolicyTable``, a function of the state that returns the name of
        an action or probabilities of several, or any other ``Policy``. It may have been made by looking at these data.
        "practice" is what the data do: each action as often as they take it in the same state.
    prespecified
        State that you chose the policy before looking at these data, or from ``counts.before_bets()`` only. Then bets
        are placed on its value, which narrows bounds, those of a table by much; the certificate repeats it.
    confidence
        Probability that all statements hold simultaneously.
    confidence_set
        The kind of set around the data: "interval" or "likelihood"; "table" sees rows as unknown. By default the
        likelihood, or a table if the model has unknown rows, or many parameters that tie no rows.
    model_tolerance
        Largest total-variation error of every row of the model that the bounds tolerate. Sets are "interval" or
        "likelihood", which here means half-spaces and intervals, without a likelihood.

    Returns
    -------
    Certificate
        The policy, both bounds on its value, and what they rest on.

    Raises
    ------
    ModelError
        If the objective does not fit the model.
    DataError
        If options or data exclude each other.

    Examples
    --------
    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> certificate = certify(study.model, counts, study.objective)
    >>> certificate.status, certificate.lower < certificate.upper
    ('certified', True)
    """
    if isinstance(model, Learned):
        raise DataError("certify takes a model and counts, not Learned: write conclude(learned, objective)")
    require_model("certify", model)  # stage 1; the counts are stage 2
    question = ask(objective, model, memory=_may_count(model, True, policy))
    if policy is not None or prespecified:  # a ``Question`` may have a policy of its own, and its runs
        question = prespecifying(question, policy, prespecified=prespecified, runs=question.runs)
    learned = learn(
        model,
        counts,
        objectives=[question],
        confidence=confidence,
        confidence_set=confidence_set,
        model_tolerance=model_tolerance,
    )
    return conclude(learned, question, relaxation=relaxation, policy=policy)


def prespecifying(
    question: Question, policy: Policy | None, *, prespecified: bool = True, runs: WholeRuns | None = None
) -> Question:
    """Return the question with the policy that is given, if its user says that the data did not choose it."""
    word = Trait.PRESPECIFIED if prespecified else Trait.NOT_PRESPECIFIED
    about = Trait.NO_POLICY if policy is None else is_practice(policy) and Trait.PRACTICE
    refuse({word, about, runs is not None and Trait.RUNS})
    return replace(question, policy=policy, runs=runs) if prespecified or is_practice(policy) else question


def comparing(
    question: Question, policy: Policy | None, rival: Policy, *, prespecified: bool, runs: WholeRuns | None = None
) -> list[Question]:
    """Return the questions to pre-specify to ``learn`` about two policies, the best and its rival if none is given.

    In a table, bets are placed on their difference, and else on the value of each. Practice needs nobody's word, as it
    is that of the first data, and other policies are told if their user says that the data did not choose them.
    """
    is_of_practice = all(each is None or is_practice(each) for each in (policy, rival))
    refuse({prespecified and Trait.PRESPECIFIED, is_of_practice and Trait.PRACTICE})
    if not prespecified:
        known = [each if is_practice(each) else None for each in (policy, rival)]
        return [replace(question, policy=known[0], against=known[1])] if any(known) else [question]
    both = replace(question, policy=policy, against=rival, runs=runs)
    return [both] if question.model.counted.is_table else [*both.apart()]


@of_learned
@working("comparing relaxations")
def compare(
    learned: Learned,
    objective: Asked,
    *,
    relaxations: Sequence[Relaxation] | None = None,
    policy: Policy | None = None,
    memory: bool = True,
    precision: float = 1e-6,
) -> list[Certificate]:
    """Return a certificate for each relaxation from the same data, each with its own policy unless one is given.

    Parameters
    ----------
    learned
        What ``learn`` returned.
    objective
        The question, or its text.
    relaxations
        Those that are compared; by default all that there are for the confidence set, from loose to tight.
    policy, memory, precision
        As in ``conclude``.

    Returns
    -------
    list of Certificate
        One for each relaxation, in the same order.

    Examples
    --------
    >>> from plumdp import case_study, simulate
    >>> study = case_study("aircraft:20,10")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=21)
    >>> learned = learn(study.model, counts, objectives=[study.objective])
    >>> for certificate in compare(learned, study.objective):
    ...     print(f"{certificate.how.relaxation:12} {certificate.lower:.3f} {certificate.upper:.3f}")
    interval     0.138 0.490
    parameter    0.211 0.360
    expression   0.272 0.306
    rectangular  0.276 0.302
    coupled      0.282 0.296
    """
    if relaxations is None:
        relaxations = relaxations_of(learned.model, learned.bounds)
    question = ask(objective, learned.model, memory=_may_count(learned.model, memory, policy))
    if policy is not None and not is_practice(policy):
        policy = check_policy(question.model.graph, policy)  # a function is asked once
    certificates = Certificates()
    for relaxation in relaxations:
        new = by_model_alone(conclude(learned, question, relaxation=relaxation, policy=policy, precision=precision))
        certificates.append(new if policy is None else _cut_to_looser(new, certificates))
    return certificates


def _cut_to_looser(certificate: Certificate, others: Sequence[Certificate]) -> Certificate:
    """Return a certificate for a policy with bounds never wider than those of looser relaxations for the same policy.

    Its own could be wider by what the solver leaves open: all of them hold, so their intersection does.
    """
    names = () if certificate.how.relaxation == "untied" else RELAXATIONS[certificate.how.relaxation].looser
    looser = [other for other in others if other.how.relaxation in names]
    lower = max([certificate.lower, *(other.lower for other in looser)])
    upper = min([certificate.upper, *(other.upper for other in looser)])
    if certificate.status == Status.INCONCLUSIVE and any(other.status == Status.CERTIFIED for other in looser):
        certificate = replace(certificate, claim=replace(certificate.claim, status=Status.CERTIFIED, reason=""))
    return replace(certificate, claim=replace(certificate.claim, lower=lower, upper=upper))


def default_relaxation(learned: Learned) -> Relaxation:
    """Return the relaxation that is taken if none is named: the tightest."""
    return relaxations_of(learned.model, learned.bounds)[-1]


def _may_count(model: ParametricMDP, memory: bool, policy: Policy | None) -> bool | Graph:
    """Return whether a question is about policies with memory, or the graph of a given one that has some."""
    return memory if policy is None else memory_for(model, policy)


@of_learned
@working("finding a policy and its bounds")
@one_blas_thread()
def conclude(
    learned: Learned,
    objective: Asked,
    *,
    relaxation: Relaxation | None = None,
    policy: Policy | None = None,
    memory: bool = True,
    precision: float = 1e-6,
) -> Certificate:
    """Return a policy for an objective, and bounds on its value, that follow from what was learned from the data.

    All certificates from one ``learn`` hold jointly with its confidence, whichever of them you choose in the end, and
    whoever chose the policy.

    Parameters
    ----------
    learned
        What ``learn`` returned.
    objective
        The question, or its text; a ``Question`` with a policy is about the value of that.
    relaxation, policy
        As in ``certify``.
    memory
        Whether the policy may count steps, if the objective bounds them; False asks for one action per state. A policy
        that you give has memory if it was found with memory.
    precision
        Gap between the bounds at which the solver stops.

    Returns
    -------
    Certificate
        The policy, both bounds on its value, and what they rest on.

    Raises
    ------
    ModelError
        If the objective does not fit the model.

    Examples
    --------
    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> learned = learn(study.model, simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26))
    >>> best = conclude(learned, study.objective)
    >>> timid = conclude(learned, study.objective, policy=study.model.graph.first_choice[:-1])
    >>> best.lower > timid.lower, timid.confidence
    (True, 0.999)
    """
    whole = question = ask(objective, learned.model, memory=_may_count(learned.model, memory, policy))
    policy = question.policy if policy is None else policy
    if policy is None and question.against is not None:
        raise DataError("the question is about a difference: ask for the difference of two policies, or name one here")
    assuming = about_practice(question, learned.counts, policy)
    if policy is not None:
        policy = known_policy(question, learned.counts, policy)
    relaxation, clock = relaxation or default_relaxation(learned), Clock(dict(learned.seconds))
    uncertain = of_all = relax(learned, relaxation, whole.model)  # stage 5: what nature may do (Section 3.1)
    if policy is None:
        question = worth_a_look(learned, whole, of_all)
        uncertain = of_all if question is whole else relax(learned, relaxation, question.model)
    clock.lap("relaxation")
    is_coupled = RELAXATIONS[relaxation].is_coupled and learned.conflict is None
    if policy is not None:
        valued = value_policy(learned, uncertain, policy, question, is_coupled=is_coupled, precision=precision)
    else:  # stage 6: the best policy against nature at its worst (Section 2.2); the claim is about what is returned
        robust = learned.at_points(question).robust(uncertain, precision)
        if is_coupled:
            valued = best_valuation(learned, uncertain, robust, question, precision=precision)
        else:
            valued = value_policy(learned, uncertain, robust.policy, question, precision=precision)
    limit = None
    is_worst = valued.lower == valued.upper and question.objective.is_vacuous(valued.lower)
    if policy is None and learned.conflict is None and is_worst:
        limit = best_of_all(of_all, whole.objective, precision=precision)
    if question is not whole:
        question, valued = on_its_own(whole, question, valued)
    clock.lap("solver")
    certificate = make_certificate(  # stage 7: what may be claimed (Theorem 1)
        learned,
        question,
        relaxation,
        valued,
        clock.laps,
        precision=precision,
        is_given=policy is not None,
        limit=limit,
        left_out=_left_out(learned, uncertain),
        assuming=assuming,
    )
    policies = [as_choices(question.model.graph, valued.policy)]
    ends = ends_about(learned, question, policies, of_practice=bool(assuming) and not question.model.graph.is_chain)
    return certificate if ends is None else on_rungs(learned, certificate, ends, question.objective)


def _left_out(learned: Learned, uncertain: IntervalMDP) -> str:
    """Return what could narrow bounds and is not used, such as half-spaces that were cut to save time, in words."""
    region = learned.region if isinstance(learned.region, Polytope) else None
    cut = "" if region is None else region.left_out
    return "; ".join(text for text in (cut, uncertain.left_out) if text)


def relax(learned: Learned, relaxation: Relaxation, model: ParametricMDP | None = None) -> IntervalMDP:
    """Return the relaxation of a model, by default of the one that was learned from.

    If no parameters explain the data, it is what the graph alone allows.
    """
    model = learned.model if model is None else model
    region = learned.region
    if relaxation not in tuple(RELAXATIONS):
        raise DataError(Option("relaxation", relaxation), f": choose one of {', '.join(map(repr, RELAXATIONS))}")
    refuse(RELAXATIONS[relaxation].traits | model.traits, relaxation=relaxation)
    if isinstance(region, Conflict):
        counts = learned.counts
        if not region.leaves_bounds:  # whatever all data say of a row that changed, it need not be so now
            counts = TransitionCounts(counts.graph, np.zeros_like(counts.counts), "adaptive")
        return untied(model, counts, learned.budget.error_of("graph_alone", learned.error))
    # of points of the region a model tolerance leaves the intervals
    picks_points = RELAXATIONS[relaxation].picks_points
    method = RELAXATIONS["expression" if learned.model_tolerance and picks_points else relaxation]
    return tolerating(method.build(model, learned.bounds, region), learned.model_tolerance)


def worth_a_look(learned: Learned, question: Question, uncertain: IntervalMDP) -> Question:
    """Return a question whose product is too large on the choices that are worth a look, and others unchanged."""
    region, model, solver = learned.region, question.model, learned.at_points(question)
    if not may_narrow(question) or isinstance(region, Conflict):
        return question
    ball, middle = ball_around(region, model.space.dimension), moments(model.space)[0]
    centre, keep = move_inside(model, ball.centre, middle), no_choices(model, question.objective)
    solver.keep_best(solver.at(centre), keep)
    first = narrowed(question, keep)
    if first is question:
        return question
    _, gradient = policy_gradient(first.model, first.model.graph.first_choice[:-1], first.objective, centre)
    worst = worst_point(gradient, question.objective, region, ball)
    for point in (worst, (worst + ball.centre) / 2):
        solver.keep_best(solver.at(move_inside(model, point, middle)), keep)
    solver.keep_best(replace(uncertain, region=None), keep)
    few = narrowed(question, keep)
    return first if few is question else few


def on_its_own(question: Question, few: Question, valued: Valuation) -> tuple[Question, Valuation]:
    """Return the question on the product of one policy alone, which has the same value there, and its valuation.

    ``question`` has too large a product, and ``few`` is that on the choices worth a look.
    """
    graph, keep = few.model.graph, no_choices(question.model, question.objective)
    memory = graph.memory
    assert memory is not None
    keep[graph.states[memory.names[0]], memory.choice[valued.policy]] = True
    alone = narrowed(question, keep)
    return alone, replace(valued, policy=alone.model.graph.first_choice[:-1])
