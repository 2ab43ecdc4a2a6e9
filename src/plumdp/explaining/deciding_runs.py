"""Predicts how many more runs tell which of two policies is better."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from plumdp.base.progress import working
from plumdp.base.vocabulary import Verdict
from plumdp.certifying.difference import Difference
from plumdp.explaining.expected_runs import run_law, seen_runs
from plumdp.explaining.predicted_width import Predictor
from plumdp.learning.learned import Learned, require_learned
from plumdp.model.policy import memory_of
from plumdp.model.question import Asked, Question, ask
from plumdp.result.advice import LIKE_THESE, Prediction
from plumdp.result.printing import plain_number
from plumdp.solver.coupled.gradient import policy_gradient


@dataclass(frozen=True)
class DecidingRuns:
    """How many more runs tell which of two policies is better: estimates, none of which is a bound."""

    gain: float  # by which the first policy is better at the estimate, less than zero if it is worse
    prediction: Prediction | None  # of the number of runs; None if more than 10^12 are needed
    names: tuple[str, str]

    @property
    def sentence(self) -> str:
        """The number of runs in words."""
        better, size = self.names[self.gain < 0], plain_number(abs(self.gain), 0, is_probability=False)
        if not self.gain or self.prediction is None:
            return "No number of runs like these up to 10^12 is predicted to tell."
        alone = ", if you certify from these only" if self.prediction.is_alone else ""
        runs = f"about {self.prediction.amount} more runs like these would tell{alone}"
        return f"At the estimate {better} is better by {size}; if that is so, {runs}."

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        prediction = None if self.prediction is None else self.prediction.to_dict()
        return {"estimated_gain": self.gain, "prediction": prediction, "sentence": self.sentence}


@working("predicting how many runs would tell")
def runs_to_tell(learned: Learned, objective: Asked, difference: Difference) -> DecidingRuns | None:
    """Return how many more runs, sampled like these, are predicted to tell which of two policies is better.

    They make the bounds on the difference closer to each other than the values of both are at the estimate, so that
    the bounds exclude zero. Returns None if the answer is known, or if nothing can be predicted: the data contradict
    the model or are not runs from the initial state, or a value is infinite at the estimate.

    >>> from plumdp import case_study, difference, learn, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 200, rng=1, max_steps=6)
    >>> learned = learn(study.model, counts, objectives=[study.objective])
    >>> unknown = difference(learned, study.objective, "bet1", "bet0", names=("a small bet", "none"))
    >>> print(runs_to_tell(learned, study.objective, unknown).prediction.amount)
    1,600
    """
    require_learned("runs_to_tell", learned)
    question = ask(objective, learned.model, memory=memory_of(difference.first.policy, difference.second.policy))
    n_runs = _n_runs(learned, question) if difference.verdict == Verdict.UNKNOWN and difference.is_claim else None
    if n_runs is None:
        return None
    point, one, other = learned.likely_point, difference.first.policy, difference.second.policy
    values = [policy_gradient(question.model, policy, question.objective, point)[0] for policy in (one, other)]
    sign = 1 if question.objective.direction == "max" else -1
    gain = sign * (values[0] - values[1])
    if not isfinite(gain):
        return None
    width = difference.upper - difference.lower
    predictor = Predictor(learned, question, one, learned.table, width, rival=other)
    expected = learned.counts.visits[learned.model.graph.choice_of_transition()] / n_runs
    per_run = learned.model.expressions.evaluate(point[None, :])[:, 0].clip(0, 1)[learned.model.expression] * expected
    prediction = predictor.runs_for(LIKE_THESE, per_run, abs(gain)) if gain else None
    return DecidingRuns(gain, prediction, difference.names)


def _n_runs(learned: Learned, question: Question) -> int | None:
    """Return the number of runs in the data, or None if it is not known or nothing can be predicted of new ones."""
    if question.model is not learned.model or learned.model.lift is not None or learned.model.no_points:
        return None
    runs = seen_runs(run_law(learned.model, learned.counts, learned.likely_point), learned.counts)
    if runs is not None:
        return runs.n_runs
    report = learned.counts.report
    return None if report is None else report.n_runs or None
