"""Finds a policy that is good for one objective and is certified to keep within thresholds of others.

Multipliers turn the constraints into costs: for each of a few multipliers, policies are improved at an estimate of the
parameters by what a choice is worth to the objective plus the multiplier times what it is worth to the constraints.
That only proposes. All values are bounded on one region, so that any of the policies may be picked, and the
certificates of the objective and of all constraints hold jointly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.base.progress import working
from plumdp.base.threads import one_blas_thread
from plumdp.base.vocabulary import Verdict
from plumdp.certifying.pipeline import conclude
from plumdp.certifying.policy_search import Candidate, judge_of, worths_at
from plumdp.certifying.thresholds import Answer, decide
from plumdp.confidence.space_moments import moments
from plumdp.learning.learned import Learned, require_learned
from plumdp.learning.storage import storage_of
from plumdp.model.graph import FloatArray, Graph, IntArray
from plumdp.model.language.threshold import Threshold, parse_threshold
from plumdp.model.question import Asked, Question, ask
from plumdp.region.ball import ball_around
from plumdp.region.conflict import Conflict
from plumdp.result.certificate import Certificate, outward, percent
from plumdp.result.policy_table import PolicyTable
from plumdp.solver.at_points import move_inside

_MULTIPLIERS = (0.0, *(2.0**k for k in range(-8, 13, 2)))  # in units in which both sides are about as large
_HALVINGS = 4  # between the last multiplier that breaks a constraint and the first that keeps all
_ROUNDS = 12  # improvements of a policy for one multiplier
_MOST_ALTERNATIVES = 100  # choices besides the first of each state, up to which these are tried one by one
_MOST_CERTIFIED = 4  # policies whose values are bounded


@dataclass(frozen=True, eq=False)
class Constrained:
    """A policy, bounds on its value, and whether it is certified to keep within each threshold.

    All of it holds jointly. If no policy was certified to keep within all thresholds, it is the one that comes closest.
    """

    certificate: Certificate
    answers: tuple[Answer, ...]  # about this policy, one for each threshold
    impossible: tuple[str, ...] = ()  # thresholds that no policy keeps within, at any parameters of the region

    @property
    def is_feasible(self) -> bool:
        """Whether the policy is certified to keep within all thresholds."""
        return all(answer.verdict == Verdict.YES for answer in self.answers)

    @property
    def policy(self) -> PolicyTable:
        """The policy to follow."""
        return self.certificate.policy

    @property
    def sentence(self) -> str:
        """What is certified of the policy, in words."""
        share = f"with confidence {percent(self.certificate.confidence)}"
        if self.is_feasible:
            is_max = self.certificate.direction == "max"
            bound = f"at {'least' if is_max else 'most'} {outward(self.certificate.bound, -1 if is_max else 1)}"
            return f"The policy found keeps within {_listed(self.answers)}, and its value is {bound}, {share}."
        if self.impossible:
            return f"No policy keeps within {' and '.join(self.impossible)}, {share}."
        missing = _listed([answer for answer in self.answers if answer.verdict != Verdict.YES])
        return f"Not yet known: no policy is certified to keep within all thresholds; what is missing is {missing}."

    def __repr__(self) -> str:
        return f"Constrained({'feasible' if self.is_feasible else 'not known to be feasible'}, {self.certificate!r})"

    def __str__(self) -> str:
        parts = [f"  {answer.question.text}: {answer.sentence}" for answer in self.answers]
        return "\n".join([self.sentence, *parts, str(self.certificate)])

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(self.sentence)}</b></p>{self.certificate._repr_html_()}"

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {
            "schema": "plumdp/constrained/1",
            "is_feasible": self.is_feasible,
            "sentence": self.sentence,
            "certificate": self.certificate.to_dict(),
            "subject_to": [answer.to_dict() for answer in self.answers],
        }


def _listed(answers: Sequence[Answer]) -> str:
    return " and ".join(answer.question.text for answer in answers)


@working("looking for a policy within thresholds")
@one_blas_thread()
def certify_within(
    learned: Learned, objective: Asked, *, subject_to: Sequence[str], precision: float = 1e-6
) -> Constrained:
    """Return the policy with the best certified value of those that are certified to keep within thresholds.

    Policies choose one action in each state. Announce the objective and those of the thresholds to ``learn``, so that
    the region is narrow where all of them depend on the parameters.

    >>> from plumdp import case_study, learn, simulate
    >>> study = case_study("aircraft:20,10")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=21)
    >>> asked = ['Pmin=? [ F "collision" ]', 'Pmin=? [ F<=10 "collision" ]']
    >>> learned = learn(study.model, counts, objectives=asked)
    >>> found = certify_within(learned, asked[0], subject_to=['P<=0.75 [ F<=10 "collision" ]'])
    >>> found.is_feasible
    True
    """
    require_learned("certify_within", learned)
    question = ask(objective, learned.model, memory=False)
    thresholds = [_threshold(text, learned) for text in subject_to]
    if not thresholds:
        raise ModelError("subject_to: give at least one threshold, such as 'P<=0.01 [ F \"failed\" ]'")
    others = [ask(each.objective, learned.model, memory=False) for each in thresholds]
    if isinstance(learned.region, Conflict) or not storage_of(question.model).has_points:
        best = conclude(learned, question, precision=precision)
        return _answered(learned, best, thresholds, others, precision)
    found: list[Constrained] = []
    for policy in _Search(learned, question, thresholds, others).policies()[:_MOST_CERTIFIED]:
        certificate = conclude(learned, question, policy=policy, precision=precision)
        found.append(_answered(learned, certificate, thresholds, others, precision))
    best_of = max(found, key=_rank)
    if best_of.is_feasible:
        return best_of
    alone = [decide(learned, each, memory=False, precision=precision) for each in thresholds]
    impossible = tuple(each.question.text for each in alone if each.verdict == Verdict.NO)
    return Constrained(best_of.certificate, best_of.answers, impossible)


def _threshold(text: str, learned: Learned) -> Threshold:
    threshold = parse_threshold(text, learned.model)
    if threshold.is_negated:
        raise ModelError(f"{text}: this asks about all policies; write it without max and min, as it is about one")
    return threshold


def _answered(
    learned: Learned,
    certificate: Certificate,
    thresholds: Sequence[Threshold],
    questions: Sequence[Question],
    precision: float,
) -> Constrained:
    """Return what is certified of the policy of a certificate."""
    of_policy = [conclude(learned, each, policy=certificate.policy, precision=precision) for each in questions]
    pairs = zip(thresholds, of_policy, strict=True)
    return Constrained(certificate, tuple(decide(learned, each, certificate=bounds) for each, bounds in pairs))


def _rank(found: Constrained) -> tuple[int, float]:
    """Return what a policy is ranked by: how many thresholds it is certified to keep within, and then its bound."""
    sign = 1 if found.certificate.direction == "max" else -1
    return sum(answer.verdict == Verdict.YES for answer in found.answers), sign * found.certificate.bound


class _Search:
    """Proposes policies by multipliers at the centre of the region, and ranks them by estimates of their bounds."""

    def __init__(
        self, learned: Learned, question: Question, thresholds: Sequence[Threshold], others: Sequence[Question]
    ) -> None:
        region = learned.region
        assert not isinstance(region, Conflict)
        model = question.model
        ball = ball_around(region, model.space.dimension)
        self._model, self._thresholds = model, thresholds
        self._point = move_inside(model, ball.centre, moments(model.space)[0])
        self._objectives = [each.objective for each in (question, *others)]
        self._judges = [judge_of(model, each, region, self._point) for each in self._objectives]
        self._best = [learned.at_points(each).policy_at(self._point) for each in (question, *others)]
        self._seen: dict[bytes, tuple[IntArray, list[Candidate]]] = {}
        self._known: dict[bytes, list[FloatArray]] = {}

    def policies(self) -> list[IntArray]:
        """Return policies, first those whose estimates keep within all thresholds, by their estimated bounds."""
        for policy in self._best:
            self._consider(policy)
        for start in self._best:
            kept, policy = [], start
            for multiplier in _MULTIPLIERS:
                policy = self._improved(policy, multiplier)
                kept.append(self._keeps(self._consider(policy)))
            if True in kept[1:]:
                first = kept.index(True, 1)
                self._bisect(_MULTIPLIERS[first - 1], _MULTIPLIERS[first], policy)
        self._climb()
        return [policy for policy, _ in sorted(self._seen.values(), key=self._worth, reverse=True)]

    def _climb(self) -> None:
        """Change the action of one state of the best policy at a time, as long as that helps, on small models.

        Policies that choose are points, and multipliers find only those at corners of the hull of these.
        """
        graph = self._model.graph
        if graph.n_choices - graph.n_states > _MOST_ALTERNATIVES:
            return
        for _ in range(_ROUNDS):
            best = policy, judged = max(self._seen.values(), key=self._worth)
            for state in judged[0].states.tolist():
                for choice in range(graph.first_choice[state], graph.first_choice[state + 1]):
                    other = policy.copy()
                    other[state] = choice
                    self._consider(other)
            if max(self._seen.values(), key=self._worth) is best:
                return

    def _bisect(self, breaks: float, keeps: float, policy: IntArray) -> None:
        for _ in range(_HALVINGS):
            middle = (breaks + keeps) / 2
            policy = self._improved(policy, middle)
            breaks, keeps = (breaks, middle) if self._keeps(self._consider(policy)) else (middle, keeps)

    def _consider(self, policy: IntArray) -> list[Candidate]:
        key = policy.tobytes()
        if key not in self._seen:
            self._seen[key] = policy, [judge(policy) for judge in self._judges]
        return self._seen[key][1]

    def _keeps(self, judged: Sequence[Candidate]) -> bool:
        return self._missing(judged) <= 0

    def _missing(self, judged: Sequence[Candidate]) -> float:
        """Return by how much the estimated bounds miss the thresholds, the largest of all; not above 0 if none does."""
        signs = (1 if each.objective.direction == "max" else -1 for each in self._thresholds)
        pairs = zip(self._thresholds, signs, judged[1:], strict=True)
        return max(sign * float(each.number) - candidate.bound for each, sign, candidate in pairs)

    def _worth(self, entry: tuple[IntArray, list[Candidate]]) -> tuple[bool, float, float]:
        judged = entry[1]
        keeps = self._keeps(judged)
        return keeps, judged[0].bound if keeps else -self._missing(judged), judged[0].value

    def _improved(self, policy: IntArray, multiplier: float) -> IntArray:
        """Return a policy that is as good as can be for the objective plus the multiplier times all constraints."""
        graph, before = self._model.graph, {policy.tobytes()}
        for _ in range(_ROUNDS):
            own, *others = self._worths(policy)
            total = own / _size(graph, own) + multiplier * sum(each / _size(graph, each) for each in others)
            policy = _best_choices(graph, total, policy)
            if policy.tobytes() in before:
                break
            before.add(policy.tobytes())
        return policy

    def _worths(self, policy: IntArray) -> list[FloatArray]:
        """Return what each choice is worth to the objective and to each constraint if a policy goes on."""
        key = policy.tobytes()
        if key not in self._known:
            self._known[key] = [worths_at(self._model, each, self._point, policy) for each in self._objectives]
        return self._known[key]


def _size(graph: Graph, worths: FloatArray) -> float:
    """Return how much choices of one state differ at most, which is the unit of a multiplier."""
    first = graph.first_choice[:-1]
    return max(float((np.maximum.reduceat(worths, first) - np.minimum.reduceat(worths, first)).max()), 1e-12)


def _best_choices(graph: Graph, worths: FloatArray, policy: IntArray) -> IntArray:
    """Return the best choice of each state, that of a policy if no other is better by more than rounding."""
    order = np.lexsort((-worths, graph.state_of_choice()))
    best = order[graph.first_choice[:-1]]
    gains = worths[best] - worths[policy]
    return np.where(gains > 1e-9, best, policy).astype(np.int32)
