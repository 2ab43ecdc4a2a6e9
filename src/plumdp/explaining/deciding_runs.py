"""Predicts how many more runs tell which of two policies is better, or whether they are the same within a margin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isfinite
from typing import Any

from plumdp.base.errors import DataError
from plumdp.base.progress import working
from plumdp.base.vocabulary import Standing
from plumdp.certifying.difference import Difference, plain_margin
from plumdp.explaining.design import table_question
from plumdp.explaining.expected_runs import law_of, seen_runs
from plumdp.explaining.predicted_width import MOST_RUNS, Predictor
from plumdp.learning.learned import Learned, of_learned
from plumdp.model.graph import FloatArray
from plumdp.model.policy import Policy, memory_of
from plumdp.model.question import Asked, Question, ask
from plumdp.result.advice import LIKE_THESE, Prediction
from plumdp.result.printing import plain_number
from plumdp.solver.coupled.gradient import policy_gradient


@dataclass(frozen=True)
class DecidingRuns:
    """The number of further runs that would decide between two policies, as estimates, not bounds."""

    gain: float  # by which the first policy is better at the estimate, less than zero if it is worse
    predictions: Mapping[Standing, Prediction | None]  # runs to each verdict; None if more than 10^12 are needed
    names: tuple[str, str]
    margin: float = 0.0

    @property
    def sentence(self) -> str:
        """The numbers of runs in words, the smallest first."""
        (first, second), margin = self.names, plain_margin(self.margin)
        verdicts = {
            Standing.BETTER: f"that {first} is better",
            Standing.WORSE: f"that {second} is better",
            Standing.SAME: f"that both are the same within {margin}",
            Standing.NOT_WORSE: f"that {first} is not worse by more than {margin}",
        }
        told = [(each, verdicts[key]) for key, each in self.predictions.items() if each is not None]
        if not told:
            return "Even 10^12 runs like these are predicted not to decide."
        told.sort(key=lambda pair: pair[0].runs)
        only = {each: ", if you certify from these only" * each.is_alone for each, _ in told}
        last = only[told[0][0]] if len({*only.values()}) == 1 else ""  # said once if it is so of all
        parts = [f"about {each.amount} {verdict}{'' if last else only[each]}" for each, verdict in told]
        parts[0] = parts[0].replace(" that ", " more runs like these would show that ", 1)
        size = plain_number(abs(self.gain), 0, is_probability=False)
        is_so = f"{first if self.gain > 0 else second} is better by {size}" if self.gain else "both are the same"
        return f"By the estimate, {is_so}; if this is true, {'; '.join(parts)}{last}."

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        predictions = {str(key): None if each is None else each.to_dict() for key, each in self.predictions.items()}
        return {"estimated_gain": self.gain, "predictions": predictions, "sentence": self.sentence}


@of_learned
@working("predicting how many runs would tell")
def runs_to_tell(learned: Learned, objective: Asked, difference: Difference) -> DecidingRuns | None:
    """Return the predicted number of further runs like these that decide which of two policies is better.

    For each verdict that is not known yet and is right at the estimate, they make the bounds on the difference closer
    to each other than the estimate is to where the verdict would be wrong. Then it follows from any bounds that hold,
    and fewer runs will often do. Where expected counts give no bounds, as in tables, widths are said to fall like the
    root of the number of runs. Returns None if it is known which policy is better, or that they are the same within the
    margin, or if nothing can be predicted: the data contradict the model or are not runs from the initial state, or a
    value is infinite at the estimate.

    >>> from plumdp import case_study, difference, learn, simulate
    >>> study = case_study("betting:5")
    >>> counts = simulate(study.model, study.true_point, 200, rng=1, max_steps=6)
    >>> learned = learn(study.model, counts, objectives=[study.objective])
    >>> unknown = difference(learned, study.objective, "bet1", "bet0", names=("a small bet", "none"))
    >>> print(runs_to_tell(learned, study.objective, unknown).predictions["better"].amount)
    1,600
    """
    question = ask(objective, learned.model, memory=memory_of(difference.first.policy, difference.second.policy))
    is_open = not {Standing.BETTER, Standing.WORSE, Standing.SAME}.intersection(difference.verdicts)
    policies = difference.first.policy, difference.second.policy
    estimate = _estimate(learned, question, policies) if is_open and difference.is_claim else None
    if estimate is None:
        return None
    (gain, probability), margin = estimate, difference.margin
    n_runs = _n_runs(learned, probability)
    if n_runs is None:
        return None
    room = {Standing.BETTER: gain, Standing.WORSE: -gain, Standing.SAME: margin - abs(gain)}
    room |= {Standing.NOT_WORSE: margin + gain} if margin else {}
    wanted = {key: width for key, width in room.items() if width > 0 and key not in difference.verdicts}
    width = difference.upper - difference.lower
    if learned.model.counted.is_table or question.model is not learned.model:
        predictions = {key: _by_root(n_runs, width / target, target) for key, target in wanted.items()}
    else:
        predictor = Predictor(learned, question, policies[0], learned.table, width, rival=policies[1])
        expected = learned.counts.visits[learned.model.graph.choice_of_transition()] / n_runs
        per_run = probability * expected
        predictions = {key: predictor.runs_for(LIKE_THESE, per_run, target) for key, target in wanted.items()}
    return DecidingRuns(gain, predictions, difference.names, margin)


def _estimate(learned: Learned, question: Question, policies: Sequence[Policy]) -> tuple[float, FloatArray] | None:
    """Return the gain of the first policy and the probabilities of transitions at the estimate, if there is one."""
    model = learned.model
    if model.counted.is_table:
        try:
            tables = [table_question(learned, question, policy) for policy in policies]
        except DataError:  # a value that no data narrow
            return None
        values, probability = [table.value for table in tables], tables[0].probability
    elif model.lift is not None or model.no_points:
        return None
    else:
        point = learned.likely_point
        values = [policy_gradient(question.model, policy, question.objective, point)[0] for policy in policies]
        probability = model.expressions.evaluate(point[None, :])[:, 0].clip(0, 1)[model.expression]
    gain = float(values[0] - values[1]) * (1 if question.objective.direction == "max" else -1)
    return (gain, probability) if isfinite(gain) else None


def _n_runs(learned: Learned, probability: FloatArray) -> int | None:
    """Return the number of runs in the data, or None if it is not known."""
    runs = seen_runs(law_of(learned.counts, probability), learned.counts)
    if runs is not None:
        return runs.n_runs
    report = learned.counts.report
    return None if report is None else report.n_runs or None


def _by_root(n_runs: int, ratio: float, width: float) -> Prediction | None:
    """Return the number of runs that narrows bounds by a ratio, if widths fall like the root of that number."""
    more = n_runs * (ratio**2 - 1)
    return Prediction(LIKE_THESE, max(ceil(more), 1), width, is_alone=False) if more <= MOST_RUNS else None
