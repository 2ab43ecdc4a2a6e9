"""Predicts how wide a certificate will be after more runs, by the certificate that expected counts would give.

New runs can be used in two ways, one of which must be chosen before they are looked at. They are used *together* with
the data if they are added to these, whose pilot stays the first one, with bets that were planned for less data. They
are used *alone* if they are certified by themselves, with their own pilot. The first is better for a few more runs, the
second for many, or if they are sampled in another way. Either is calculated as if the new runs had shown exactly what
is expected at the estimate, with all that pilots, intervals and remainders cost. A prediction is not a bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import ceil, inf, isfinite, sqrt
from typing import Any

from plumdp.base.errors import DataError
from plumdp.base.progress import working
from plumdp.base.vocabulary import Standing
from plumdp.certifying.difference import Difference
from plumdp.certifying.pipeline import relax
from plumdp.certifying.valuation import Sought, best_ends, prove, value_policy
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.confidence.sets import Counted, ModelCache
from plumdp.data.counts import TransitionCounts
from plumdp.data.pilots import planned_moments, planned_pilot
from plumdp.data.seen import Seen
from plumdp.explaining.design import table_question
from plumdp.explaining.expected_runs import ExpectedRewards, law_of, seen_runs, whole_counts
from plumdp.learning.learned import Learned, of_learned, value_directions
from plumdp.learning.methods import SETS
from plumdp.model.graph import FloatArray
from plumdp.model.policy import Policy, memory_of
from plumdp.model.question import Asked, Question, ask
from plumdp.region.conflict import Conflict
from plumdp.region.find import find_region
from plumdp.result.advice import LIKE_THESE, Prediction
from plumdp.result.headlines import plain_margin
from plumdp.result.printing import plain_number
from plumdp.solver.coupled.gradient import policy_gradient

_TRIES = 8
_NEAR = 0.02  # relative distance from the width that was asked for
_ONE_WAY = 1.5  # factor within which both ways need not be tried again
MOST_RUNS = 10**12


@dataclass(frozen=True, eq=False)
class Predictor:
    """Predicts widths from what was learned, for the policy that is certified or for its difference to a rival."""

    learned: Learned
    question: Question
    policy: Policy  # choices (n_states), or probabilities (n_choices)
    table: LikelihoodTable
    width: float  # of the certificate now
    rival: Policy | None = None  # if there is one, widths are those of the difference

    def predict(self, sampling: str, per_run: FloatArray, runs: int) -> Prediction:
        """Return the better of both ways to use a number of runs, given expected counts of transitions per run."""
        return min(self.together(sampling, per_run, runs), self.alone(sampling, per_run, runs), key=lambda p: p.width)

    def together(self, sampling: str, per_run: FloatArray, runs: int) -> Prediction:
        """Return the prediction for new runs that are added to the data."""
        return Prediction(sampling, runs, self._width(self._together(per_run, runs)), is_alone=False)

    def alone(self, sampling: str, per_run: FloatArray, runs: int) -> Prediction:
        """Return the prediction for new runs that are certified by themselves."""
        return Prediction(sampling, runs, self._width(self._alone(per_run, runs)), is_alone=True)

    def runs_for(self, sampling: str, per_run: FloatArray, width: float) -> Prediction | None:
        """Return a prediction of how many runs make the certificate so narrow, or None if more than 10^12 are needed.

        Widths fall about like the root of the number of runs. Each try corrects the last one by that rule, and stays
        between numbers that were too small and large enough. Near the width, only the better way is tried again.
        """
        low, high = 0.0, float(MOST_RUNS)
        runs = self.learned.counts.total / max(float(per_run.sum()), 1e-9) * (self.width / width) ** 2
        runs = min(max(runs, 1.0), MOST_RUNS / 2) if isfinite(runs) else 1000.0
        best: Prediction | None = None
        predict = self.predict
        for _ in range(_TRIES):
            prediction = predict(sampling, per_run, round(runs))
            ratio = prediction.width / width
            if 1 / _ONE_WAY < ratio < _ONE_WAY:
                predict = self.alone if prediction.is_alone else self.together
            low, high = (runs, high) if ratio > 1 else (low, runs)
            if ratio < 1 + _NEAR:
                best = prediction if best is None or prediction.runs < best.runs else best
                if ratio > 1 - _NEAR:
                    break
            runs = _next_try(runs, ratio, low, high)
            if not low < runs < high:
                break
        return best

    def _together(self, per_run: FloatArray, runs: int) -> TransitionCounts:
        old = self.learned.counts
        seen = self._seen(runs * per_run)
        new = TransitionCounts(old.graph, seen.counts, "trajectories", rewards=seen.rewards)
        return replace(old + new, report=None)

    def _seen(self, expected: FloatArray) -> Seen:
        """Return the expected counts, as whole numbers."""
        return ExpectedRewards.of(self.learned, self.table).seen(whole_counts(expected, self.table.tied))

    def _alone(self, per_run: FloatArray, runs: int) -> TransitionCounts:
        graph = self.learned.model.graph
        sizes = planned_moments(runs, n_transitions=graph.n_transitions)
        lengths = [end - start for start, end in pairwise([0, *sizes, runs])]
        *moments, seen = accumulate(self._seen(length * per_run) for length in lengths)
        pilot = planned_pilot(moments, runs, sizes=sizes)
        return TransitionCounts(graph, seen.counts, "trajectories", pilot, rewards=seen.rewards)

    def _width(self, counts: TransitionCounts) -> float:
        """Return the distance of the bounds that counts would give, or infinity if they give none."""
        learned, question = self.learned, self.question
        solvers = {(question.model, question.objective): learned.at_points(question)}
        cache, directions = learned.cache or ModelCache(learned.model), value_directions([question], solvers)
        given = Counted(cache, counts, learned.error, (question,), directions)
        given = replace(given, has_paths=bool(learned.budget["paths"]))
        measured = SETS[learned.kind].make(given)
        region = find_region(learned.model, measured.constraints)
        ahead = replace(learned, counts=counts, bounds=measured, region=region, solvers=solvers, fit=None)
        if ahead.conflict is not None:
            return inf
        return self._width_of(ahead, question)

    def _width_of(self, ahead: Learned, question: Question) -> float:
        region, uncertain = ahead.region, relax(ahead, "coupled", question.model)
        if self.rival is None or isinstance(region, Conflict):
            valued = value_policy(ahead, uncertain, self.policy, question, is_coupled=True)
            width = valued.upper - valued.lower
        else:
            proofs, _ = prove(Sought(ahead, question, uncertain, self.policy, self.rival), {})
            lower, upper = best_ends(proofs.values()) if proofs else (-inf, inf)
            width = upper - lower
        return width if isfinite(width) else inf


def _next_try(runs: float, ratio: float, low: float, high: float) -> float:
    """Return the number of runs to try next, given how much too wide the last try was."""
    proposed = runs * min(max(ratio**2 if isfinite(ratio) else 10.0, 0.01), 100.0)
    least, most = max(1.0, 1.02 * low), high / 1.02
    if least <= proposed <= most:
        return proposed
    return sqrt(max(low, 1.0) * high) if high < MOST_RUNS else min(max(proposed, 2 * low), MOST_RUNS / 2)


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
            Standing.BETTER: f"{first} is better",
            Standing.WORSE: f"{second} is better",
            Standing.SAME: f"both are the same within {margin}",
            Standing.NOT_WORSE: f"{first} is not worse by more than {margin}",
        }
        told = [(each, verdicts[key]) for key, each in self.predictions.items() if each is not None]
        if not told:
            return "Even 10^12 runs like these are predicted not to decide."
        told.sort(key=lambda pair: pair[0].runs)
        only = {each: ", if you certify from these only" * each.is_alone for each, _ in told}
        last = only[told[0][0]] if len({*only.values()}) == 1 else ""  # said once if it is so of all
        unit = [" more runs like these would show", *[""] * len(told)]
        ends = ["" if last else only[each] for each, _ in told]
        parts = [f"about {p.amount}{of} that {so}{end}" for (p, so), of, end in zip(told, unit, ends, strict=False)]
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
    to each other than the estimate is to where the verdict would be wrong, so fewer runs will often do. In a table, it
    is one bound that comes so near to the estimate, with half a normal interval to spare.

    Parameters
    ----------
    learned
        What ``learn`` returned.
    objective
        The question, or its text.
    difference
        What ``difference`` returned.

    Returns
    -------
    DecidingRuns or None
        None if it is known which policy is better, or that they are the same within the margin, or if nothing can be
        predicted.

    Examples
    --------
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
    side = 1 if question.objective.direction == "max" else -1
    n_runs = _n_runs(learned, probability)
    if n_runs is None:
        return None
    room = {Standing.BETTER: gain, Standing.WORSE: -gain, Standing.SAME: margin - abs(gain)}
    room |= {Standing.NOT_WORSE: margin + gain} if margin else {}
    wanted = {key: width for key, width in room.items() if width > 0 and key not in difference.verdicts}
    width = difference.upper - difference.lower
    if learned.model.counted.is_table or question.model is not learned.model:
        low, high = difference.approximate or (0.0, 0.0)
        least, most = sorted(side * (end - side * gain) for end in (difference.lower, difference.upper))
        off = {Standing.BETTER: -least, Standing.NOT_WORSE: -least, Standing.WORSE: most}
        apart = {key: off[key] + (high - low) / 2 if key in off else width for key in wanted}
        predictions = {key: _by_root(n_runs, apart[key] / target, target) for key, target in wanted.items()}
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
        probability = model.expressions.chances(point)[model.expression]
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
