"""Advises where the next data help most, by the choices and classes that narrow a certificate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import TypeAlias

import numpy as np

from plumdp.base.combinations import Trait, refuse
from plumdp.base.errors import DataError, Option
from plumdp.base.progress import working
from plumdp.certifying.claims import shown_value
from plumdp.certifying.pipeline import conclude
from plumdp.confidence.estimates import law_of_space
from plumdp.data.report import IngestionReport
from plumdp.data.runs import require_positive
from plumdp.explaining.design import Design, RootLaw, ValueQuestion, plan_sampling, table_question
from plumdp.explaining.expected_runs import ExpectedRewards, RunLaw, law_of, seen_runs
from plumdp.explaining.predicted_width import Predictor
from plumdp.learning.learned import Learned, of_learned
from plumdp.model.graph import FloatArray, Graph, IntArray, read_only
from plumdp.model.policy import Policy, memory_of, normalised, policy_weights
from plumdp.model.question import Asked, Question, ask, narrowed_to
from plumdp.result.advice import (
    ADVISED,
    CERTIFIED,
    GIVEN,
    LIKE_THESE,
    NOTICEABLE,
    UNIFORM,
    Advice,
    Prediction,
)
from plumdp.solver.coupled.gradient import policy_gradient

Predicts: TypeAlias = Predictor | RootLaw

_LEAST_SLOPE = 1e-9  # part of a gradient that the likelihood depends on, relative to all of it; less is rounding


@of_learned
@working("finding where more data help")
def advise(
    learned: Learned,
    objective: Asked,
    *,
    runs: int | None = None,
    width: float | None = None,
    policy: Policy | None = None,
    sampling: Policy | None = None,
    max_steps: int | None = None,
) -> Advice:
    """Return advice on the data that narrow the bounds on a policy's value most, with predicted widths.

    All widths are about one policy; a certificate from more data may choose another, whose bounds are better.

    Parameters
    ----------
    learned
        What ``learn`` returned.
    objective
        The question, or its text.
    runs
        The number of runs that you plan, by default as many as there are.
    width
        The distance of the bounds that you want, by default half of what it is now.
    policy
        The policy whose value is bounded, by default that of the certificate from these data.
    sampling
        A policy of your own that runs may be sampled by, as choice numbers or a probability for each choice.
    max_steps
        The number of steps after which new runs are cut off, by default such that they are as long as those so far.

    Returns
    -------
    Advice
        Predicted widths, the sampling policy, and where new runs help most.

    Raises
    ------
    DataError
        If the model has gaps, or nothing was learned of its parameters.

    Examples
    --------
    >>> from plumdp import case_study, learn, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6)
    >>> learned = learn(study.model, counts, confidence_set="likelihood", objectives=[study.objective])
    >>> advice = advise(learned, study.objective)
    >>> more = simulate(study.model, study.true_point, 1_000, rng=2, max_steps=6, policy=advice.sampling)
    >>> [p.sampling for p in advice.predictions]
    ['like these', 'uniform', 'certified policy', 'advised']
    """
    refuse({Trait.EVERY_STEP, *learned.model.traits}, "advise")
    model, asked = learned.model, ask(objective, learned.model, memory=policy is None or memory_of(policy))
    _require_sense(learned, runs, max_steps)
    certificate = conclude(learned, asked, relaxation="coupled", policy=policy)
    asked = narrowed_to(asked, certificate.policy.graph)
    chosen, now = np.asarray(certificate.policy), certificate.upper - certificate.lower
    target = _target(width, now)
    question, predictor, value, unseen = _design(learned, asked, chosen, now)
    law, n_runs = _law_of_runs(learned, question.probability, max_steps)
    n_planned = int(runs or (n_runs or max(1, learned.counts.total // law.max_steps)))
    certified = certificate.policy if asked.model is model else None
    policies = dict(_policies(model.graph, certified, sampling))
    per_run = {name: question.expected(law.visits(weights)) for name, weights in policies.items()}
    if n_runs is not None:
        per_run = {LIKE_THESE: question.expected(learned.counts.visits / n_runs)} | per_run
        policies[LIKE_THESE] = normalised(model.graph, learned.counts.visits.astype(np.float64))
    predictions = [predictor.predict(name, expected, n_planned) for name, expected in per_run.items()]
    seen = learned.counts.counts.astype(np.float64)
    information = question.information(seen)
    plan, planned = _best_plan(question, law, information, predictor, n_planned)
    plan, planned = _no_worse(plan, planned, predictions, policies, is_blind=unseen > NOTICEABLE)
    per_run[ADVISED] = question.expected(law.visits(plan))
    return Advice(
        graph=model.graph,
        objective=asked.objective.text,
        width=now,
        target=target,
        value=None if value is None else shown_value(value, certificate.lower, certificate.upper),
        policy=chosen,
        n_steps=learned.counts.total,
        n_runs=n_runs,
        max_steps=law.max_steps,
        rate=read_only(question.rates(information)),
        visits=read_only(learned.counts.visits.astype(np.float64)),
        visits_per_run=read_only(law.visits(plan)),
        sampling=plan,
        classes=question.classes(seen, per_run[ADVISED]),
        predictions=tuple(_no_wider(prediction, now) for prediction in (*predictions, planned)),
        enough=_enough(predictor, target, {name: per_run[name] for name in (LIKE_THESE, ADVISED) if name in per_run}),
        unseen=unseen,
        directly=question.directly(seen, target / now if isfinite(now) and now else 1.0),
    )


def _require_sense(learned: Learned, runs: int | None, max_steps: int | None) -> None:
    """Refuse options and data for which no advice is possible."""
    for name, number in (("runs", runs), ("max_steps", max_steps)):
        if number is not None:
            require_positive(name, number)
    if learned.conflict is not None:
        raise DataError("the data reject the model: more of them do not narrow the bounds; certify says why")


def _target(wanted: float | None, now: float) -> float:
    """Return the width that is wanted, or refuse one that the bounds have already."""
    if wanted is None:
        return now / 2
    if not 0 < wanted < now:
        raise DataError(
            Option("width", wanted), f": the bounds are {now:.3g} apart now; give a number between 0 and that"
        )
    return float(wanted)


def _design(
    learned: Learned, asked: Question, policy: Policy, width: float
) -> tuple[Design, Predicts, float | None, float]:
    """Return the value to be narrowed, who predicts its width, its estimate, and the unseen share of its gradient."""
    if learned.model.counted.is_table:
        table = table_question(learned, asked, policy)
        information = table.information(learned.counts.counts.astype(np.float64))
        return table, RootLaw(table, information, width), table.value, 0.0
    question, value, unseen = _question(learned, asked, policy)
    predictor = Predictor(learned, asked, policy, question.table, width)
    return question, predictor, None if learned.shown_estimate is None else value, unseen


def _law_of_runs(learned: Learned, probability: FloatArray, max_steps: int | None) -> tuple[RunLaw, int | None]:
    """Return the law of new runs, and the number of runs so far or None if the data are not runs."""
    law = law_of(learned.counts, probability)
    runs = seen_runs(law, learned.counts)
    if max_steps is None:
        max_steps = _logged_length(learned.counts.report) if runs is None else runs.max_steps
    if max_steps is None:
        option = Option("max_steps")
        raise DataError("the data are not runs from the initial state: say with ", option, " how long a run may be")
    return replace(law, max_steps=int(max_steps)), None if runs is None else runs.n_runs


def _logged_length(report: IngestionReport | None) -> int | None:
    """Return the rounded mean length of the runs of a log, also if some of its rows were left out, or None."""
    if report is None or not report.n_runs:
        return None
    return max(1, round((report.total - report.n_runs - report.rows["copy"]) / report.n_runs))


def _policies(graph: Graph, certified: Policy | None, given: Policy | None) -> Iterator[tuple[str, FloatArray]]:
    """Yield the names and weights of policies without memory that runs may be sampled by."""
    yield UNIFORM, normalised(graph, np.ones(graph.n_choices))
    if certified is not None:
        yield CERTIFIED, policy_weights(graph, certified)
    if given is not None:
        yield GIVEN, policy_weights(graph, given)


def _best_plan(
    question: Design, law: RunLaw, information: FloatArray, predictor: Predicts, runs: int
) -> tuple[FloatArray, Prediction]:
    """Return the best policy for new runs beside the data or instead of them, whichever is predicted to be better."""
    beside = plan_sampling(question, law, information, runs)
    instead = plan_sampling(question, law, np.zeros_like(information), runs, start=beside)
    together = predictor.together(ADVISED, question.expected(law.visits(beside)), runs)
    alone = predictor.alone(ADVISED, question.expected(law.visits(instead)), runs)
    return (beside, together) if together.width <= alone.width else (instead, alone)


def plan_next(learned: Learned, question: Question, policy: IntArray, runs: int) -> FloatArray | None:
    """Return the weights of a policy for new runs, beside those so far, that narrow the value of a policy most.

    None if no data narrow it, or nothing can be planned.
    """
    if learned.conflict is not None:
        return None
    try:
        is_table = learned.model.counted.is_table
        design: Design = (table_question if is_table else _value_question)(learned, question, policy)
        law, _ = _law_of_runs(learned, design.probability, None)
    except DataError:
        return None
    return plan_sampling(design, law, design.information(learned.counts.counts.astype(np.float64)), runs)


def _value_question(learned: Learned, asked: Question, policy: Policy) -> ValueQuestion:
    return _question(learned, asked, policy)[0]


def _no_worse(
    plan: FloatArray,
    planned: Prediction,
    predictions: Sequence[Prediction],
    policies: Mapping[str, FloatArray],
    *,
    is_blind: bool,
) -> tuple[FloatArray, Prediction]:
    """Return the plan, or the policy of the runs so far if that is predicted to be better.

    A plan that is blind to some rows, as these have no part in the likelihood, gives way to any better policy.
    """
    others = [prediction for prediction in predictions if is_blind or prediction.sampling == LIKE_THESE]
    best = min(others, key=lambda prediction: prediction.width, default=planned)
    if not best.width < planned.width:
        return plan, planned
    return read_only(policies[best.sampling]), replace(best, sampling=ADVISED)


def _no_wider(prediction: Prediction, width: float) -> Prediction:
    """Return a prediction no wider than the bounds are now, as these stay valid."""
    return prediction if prediction.width <= width else replace(prediction, width=width, is_alone=False)


def _enough(predictor: Predicts, target: float, per_run: Mapping[str, FloatArray]) -> tuple[Prediction, ...]:
    """Return predictions of how many runs of each kind bring the bounds to a width, if they have one."""
    if not isfinite(predictor.width) or predictor.width == 0:
        return ()
    tried = (predictor.runs_for(name, expected, target) for name, expected in per_run.items())
    enough = [prediction for prediction in tried if prediction is not None]
    # the advised policy is shown only if it needs fewer runs
    return tuple(prediction for prediction in enough if prediction is enough[0] or prediction.runs < enough[0].runs)


def _question(learned: Learned, asked: Question, policy: Policy) -> tuple[ValueQuestion, float, float]:
    """Return the value to be narrowed, its estimate, and the share of its gradient that is not in the likelihood."""
    model, point = learned.model, learned.likely_point
    value, gradient = policy_gradient(asked.model, policy, asked.objective, point)
    if not isfinite(value):
        raise DataError(
            "the value of the policy is infinite at the estimate: it has no gradient, and no data narrow it"
        )
    if not gradient.any():
        raise DataError("the value of the policy does not depend on the parameters: no data narrow it")
    table, n = learned.bet_table, len(point)
    at = table.lifted(point)
    basis = table.basis_near(at)[:n]
    inside = basis @ (basis.T @ gradient)
    if np.abs(inside).max() < _LEAST_SLOPE * np.abs(gradient).max():
        raise DataError("the value depends only on rows that the likelihood ignores: no advice can be planned")
    probability = model.expressions.chances(point)[model.expression]
    rewards = ExpectedRewards.of(learned, table)
    slope, prior = (np.pad(part, (0, len(at) - n)) for part in (inside, law_of_space(model).precision))
    question = ValueQuestion(model.graph, table, at, probability, slope, prior, rewards)
    unseen = float(np.linalg.norm(gradient - inside) / np.linalg.norm(gradient))
    return question, value, unseen
