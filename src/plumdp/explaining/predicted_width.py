"""Predicts how wide a certificate will be after more runs, by the certificate that expected counts would give.

New runs can be used in two ways, one of which must be chosen before they are looked at. They are used *together* with
the data if they are added to these, whose pilot stays the first one, with bets that were planned for less data. They
are used *alone* if they are certified by themselves, with their own pilot. The first is better for a few more runs, the
second for many, or if they are sampled in another way. Either is calculated as if the new runs had shown exactly what
is expected at the estimate, with all that pilots, intervals and remainders cost. A prediction is not a bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import inf, isfinite, sqrt

from plumdp.certifying.pipeline import relax
from plumdp.certifying.valuation import Sought, best_ends, prove, value_policy
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.confidence.sets import Counted, ModelCache
from plumdp.data.counts import TransitionCounts
from plumdp.data.pilots import planned_moments, planned_pilot
from plumdp.data.seen import Seen
from plumdp.explaining.expected_runs import ExpectedRewards, whole_counts
from plumdp.learning.directions import value_directions
from plumdp.learning.learned import Learned
from plumdp.learning.methods import SETS
from plumdp.model.graph import FloatArray
from plumdp.model.policy import Policy
from plumdp.model.question import Question
from plumdp.region.conflict import Conflict
from plumdp.region.find import find_region
from plumdp.result.advice import Prediction

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
        given = Counted(cache, counts, learned.error, (question,), directions, has_studies=bool(learned.studies))
        given = replace(given, has_paths=bool(learned.budget["paths"]))
        measured = SETS[learned.kind](given)
        constraints = (*measured.constraints, *learned.studies)
        region = find_region(learned.model.space, learned.model.asked_expressions, constraints)
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
