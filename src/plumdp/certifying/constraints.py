"""Finds a policy that is good for one objective and is certified to keep within thresholds of others.

Multipliers turn the constraints into costs: at an estimate of the parameters, policies are improved for the objective
plus a multiplier times all constraints. Where a larger multiplier makes them kept, the best policy draws between two
actions in one state (Altman 1999). That only proposes. All values are bounded on one region, so that any of the
policies may be picked, and the certificates of the objective and of all constraints hold jointly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.base.linear_algebra import last_that
from plumdp.base.progress import working
from plumdp.base.threads import one_blas_thread
from plumdp.base.vocabulary import Verdict
from plumdp.certifying.pipeline import conclude
from plumdp.certifying.policy_search import Weighing, require_same_model
from plumdp.certifying.thresholds import Decision, decide
from plumdp.learning.learned import Learned, of_learned
from plumdp.model.graph import FloatArray, IntArray
from plumdp.model.language.threshold import Threshold, parse_threshold
from plumdp.model.objectives import Kind
from plumdp.model.policy import policy_weights
from plumdp.model.question import Asked, Question, ask
from plumdp.result.certificate import Certificate, assumptions_of, premises_of
from plumdp.result.policy_table import PolicyTable
from plumdp.result.printing import outward, percent
from plumdp.result.show import Page, as_html, as_json, as_text

_MULTIPLIERS = (0.0, *(2.0**k for k in range(-8, 13, 2)))  # in units in which both sides are about as large
_HALVINGS = 12  # of the probability with which a policy draws one of two actions
_ROUNDS = 12  # corners between two policies, and changes of one policy by a single action
_MOST_ALTERNATIVES = 100  # choices besides the first of each state, up to which these are tried one by one
_MOST_CERTIFIED = 8  # policies whose values are bounded
_MARGIN = 1.1  # of what a proof has fallen short of an estimate, which is taken off estimates of other policies
_WORTHWHILE = 0.02  # share of the distance of value and bound that an estimate must promise


@dataclass(frozen=True, eq=False)
class Constrained:
    """A policy, bounds on its value, and whether it is certified to keep within each threshold.

    All of it holds jointly. If no policy was certified to keep within all thresholds, it is the one that comes closest.
    """

    certificate: Certificate
    answers: tuple[Decision, ...]  # about this policy, one for each threshold
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
            is_max = self.certificate.claim.direction == "max"
            bound = f"at {'least' if is_max else 'most'} {outward(self.certificate.claim.bound, -1 if is_max else 1)}"
            return f"The recommended policy respects {_listed(self.answers)}, and its value is {bound}, {share}."
        if self.impossible:
            return f"No policy respects {' and '.join(self.impossible)}, {share}."
        missing = _listed([answer for answer in self.answers if answer.verdict != Verdict.YES])
        return f"Inconclusive: no policy is certified to respect all thresholds; not certified: {missing}."

    def __repr__(self) -> str:
        return f"Constrained({'feasible' if self.is_feasible else 'not known to be feasible'}, {self.certificate!r})"

    @property
    def assumptions(self) -> list[str]:
        """What all of it rests on, in words."""
        return assumptions_of([self.certificate, *(each.certificate for each in self.answers)])

    def page(self) -> Page:
        """Return the certificate, the answer to each threshold, and their further premises."""
        known, others = premises_of([self.certificate]), premises_of(each.certificate for each in self.answers)
        points = [f"{answer.question.text}: {answer.headline}" for answer in self.answers]
        return Page(
            self.sentence, points, inside=[self.certificate], facts=[each for each in others if each not in known]
        )

    SCHEMA: ClassVar[str] = "plumdp/constrained/1"
    TOLD: ClassVar[str] = "is_feasible sentence assumptions certificate subject_to=answers"
    __str__ = as_text
    _repr_html_ = as_html
    to_dict = as_json


def _listed(answers: Sequence[Decision]) -> str:
    return " and ".join(answer.question.text for answer in answers)


@of_learned
@working("looking for a policy within thresholds")
@one_blas_thread()
def certify_within(
    learned: Learned, objective: Asked, *, subject_to: Sequence[str], precision: float = 1e-6
) -> Constrained:
    """Return the best policy that is certified to respect thresholds on other objectives.

    Policies count no steps. They may draw between two actions in one state, unless later steps count less, by a
    discount. Pre-specify all objectives to ``learn``, so that the region is narrow where they depend on the parameters.

    Parameters
    ----------
    learned
        What ``learn`` returned.
    objective
        What is to be best, or its text.
    subject_to
        Thresholds on other objectives, such as ``P<=0.1 [ F "crash" ]``.
    precision
        As in ``conclude``.

    Returns
    -------
    Constrained
        The policy and all bounds, or why there is none.

    Examples
    --------
    >>> from plumdp import case_study, learn, simulate
    >>> study = case_study("aircraft:20,10")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=21)
    >>> asked = ['Pmin=? [ F "collision" ]', 'Pmin=? [ F<=10 "collision" ]']
    >>> learned = learn(study.model, counts, objectives=asked)
    >>> found = certify_within(learned, asked[0], subject_to=['P<=0.75 [ F<=10 "collision" ]'])
    >>> found.is_feasible
    True
    """
    question = ask(objective, learned.model, memory=False)
    thresholds = [_threshold(text, learned) for text in subject_to]
    if not thresholds:
        raise ModelError("subject_to: give at least one threshold, such as 'P<=0.01 [ F \"failed\" ]'")
    others = [ask(each.objective, learned.model, memory=False) for each in thresholds]
    require_same_model([question, *others])
    if learned.with_points(question.model) is None:
        best = conclude(learned, question, precision=precision)
        return _answered(learned, best, thresholds, others, precision)
    found: list[Constrained] = []
    search = _PolicySearch(learned, question, thresholds, others)
    while len(found) < _MOST_CERTIFIED and (policy := search.next()) is not None:
        certificate = conclude(learned, question, policy=policy, precision=precision)
        found.append(_answered(learned, certificate, thresholds, others, precision))
        search.note(policy, found[-1])
    best_of = max(found, key=_rank)
    if best_of.is_feasible:
        return best_of
    alone = [decide(learned, each, memory=False, precision=precision) for each in thresholds]
    impossible = tuple(each.question.text for each in alone if each.verdict == Verdict.NO)
    return Constrained(best_of.certificate, best_of.answers, impossible)


def _threshold(text: str, learned: Learned) -> Threshold:
    threshold = parse_threshold(text, learned.model)
    if threshold.is_negated:
        raise ModelError(f"{text}: this asks about all policies; leave out max or min, to ask about one")
    return threshold


def _answered(
    learned: Learned,
    certificate: Certificate,
    thresholds: Sequence[Threshold],
    questions: Sequence[Question],
    precision: float,
) -> Constrained:
    """Return a certificate with the answer to each threshold for its policy."""
    of_policy = [conclude(learned, each, policy=certificate.policy, precision=precision) for each in questions]
    pairs = zip(thresholds, of_policy, strict=True)
    return Constrained(certificate, tuple(decide(learned, each, certificate=bounds) for each, bounds in pairs))


def _rank(found: Constrained) -> tuple[int, float]:
    """Return the rank of a policy: the number of thresholds it is certified to keep within, and then its bound."""
    n_kept = sum(answer.verdict == Verdict.YES for answer in found.answers)
    return n_kept, _signed(found.certificate, found.certificate.claim.bound)


class _PolicySearch:
    """Proposes policies by multipliers at the centre of the region, and ranks them by estimates of their bounds."""

    def __init__(
        self, learned: Learned, question: Question, thresholds: Sequence[Threshold], others: Sequence[Question]
    ) -> None:
        self._weighing = Weighing(learned, [question, *others])
        self._graph, self._thresholds = question.model.graph, thresholds
        self._may_draw = all(each.objective.kind is not Kind.DISCOUNTED for each in (question, *others))
        self._seen: dict[bytes, npt.NDArray[Any]] = {}
        self._tried: set[bytes] = set()
        self._between: list[tuple[IntArray, IntArray]] = []  # neighbours, of which the second one keeps all thresholds
        self._slack = np.zeros(len(thresholds))  # by which proofs have fallen short of estimates so far
        self._certified = -np.inf  # the best bound of a policy that is certified to keep within all thresholds
        self._weigh()
        self._climb()

    def next(self) -> npt.NDArray[Any] | None:
        """Return the policy that is most worth a proof, or None if no further one promises more than those so far."""
        for pair in self._between:
            self._draw(*pair)
        left = [policy for key, policy in self._seen.items() if key not in self._tried]
        if np.isfinite(self._certified):
            left = [policy for policy in left if self._missing(policy, 0.0) <= 0 and self._promises_more(policy)]
        if not left:
            return None
        best = max(left, key=self._worth)
        self._tried.add(best.tobytes())
        return best

    def note(self, policy: npt.NDArray[Any], found: Constrained) -> None:
        """Take notice of what was proved of a policy."""
        bounds = np.array([_signed(answer.certificate, answer.certificate.claim.bound) for answer in found.answers])
        estimates = np.array([candidate.bound for candidate in self._weighing.judged(policy)[1:]])
        with np.errstate(invalid="ignore"):
            short = np.where(np.isfinite(estimates) & np.isfinite(bounds), estimates - bounds, 0.0)
        self._slack = np.maximum(self._slack, _MARGIN * short)
        if found.is_feasible:
            self._certified = max(self._certified, _signed(found.certificate, found.certificate.claim.bound))

    def _weigh(self) -> None:
        """Look for the policy that is best for the objective where a multiplier makes all thresholds kept."""
        weighing = self._weighing
        is_own = np.arange(1 + len(self._thresholds)) == 0
        axes = np.array([is_own, ~is_own]) / weighing.units
        for start in weighing.best:
            policies = [self._consider(start)]
            for multiplier in _MULTIPLIERS:
                policies.append(self._consider(weighing.improved(policies[-1], axes[0] + multiplier * axes[1])))
            both = ((one, other) for one, other in pairwise(policies[1:]) if self._missing(other) <= 0)
            breaks, keeps = next(both, (start, start))
            if self._missing(breaks) > 0:
                self._between.append(self._narrowed(breaks, keeps, axes))

    def _narrowed(self, breaks: IntArray, keeps: IntArray, axes: FloatArray) -> tuple[IntArray, IntArray]:
        """Return two policies that differ in one state, between which the thresholds begin to be kept.

        First these are neighbours on the hull of all policies. On the way from one to the other, each changes the
        action of one more state.
        """
        for _ in range(_ROUNDS):
            found = self._weighing.corner(breaks, keeps, axes)
            if found is None:
                break
            breaks, keeps = (breaks, found) if self._missing(self._consider(found)) <= 0 else (found, keeps)
        while (differs := np.flatnonzero(breaks != keeps)).size > 1:
            middle = keeps.copy()
            middle[differs[: differs.size // 2]] = breaks[differs[: differs.size // 2]]
            breaks, keeps = (breaks, middle) if self._missing(self._consider(middle)) <= 0 else (middle, keeps)
        return breaks, keeps

    def _draw(self, breaks: IntArray, keeps: IntArray) -> None:
        """Consider the policy that draws between two and just keeps all thresholds, by estimates less the slack."""
        if not self._may_draw or self._missing(keeps) > 0:
            return
        one, other = (policy_weights(self._graph, policy) for policy in (keeps, breaks))
        share = last_that(lambda share: self._missing(one + share * (other - one)) <= 0, 0.0, 1.0, _HALVINGS)
        if share > 0:
            self._consider(one + share * (other - one))

    def _climb(self) -> None:
        """Change the action of one state of the best policy at a time, as long as that helps, on small models.

        Policies that choose are points, and multipliers find only those at corners of the hull of these.
        """
        graph = self._graph
        if graph.n_choices - graph.n_states > _MOST_ALTERNATIVES:
            return
        for _ in range(_ROUNDS):
            best = max(self._seen.values(), key=self._worth)
            for state in self._weighing.judged(best)[0].states.tolist():
                for choice in range(graph.first_choice[state], graph.first_choice[state + 1]):
                    other = best.copy()
                    other[state] = choice
                    self._consider(other)
            if max(self._seen.values(), key=self._worth) is best:
                return

    def _consider(self, policy: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return self._seen.setdefault(policy.tobytes(), policy)

    def _missing(self, policy: npt.NDArray[Any], slack: float = 1.0) -> float:
        """Return by how much the estimated bounds miss the thresholds, the largest of all; not above 0 if none does."""
        signs = (1 if each.objective.direction == "max" else -1 for each in self._thresholds)
        judged = self._weighing.judged(policy)[1:]
        parts = zip(self._thresholds, signs, judged, slack * self._slack, strict=True)
        return max(sign * float(each.number) - one.bound + float(less) for each, sign, one, less in parts)

    def _worth(self, policy: npt.NDArray[Any]) -> tuple[bool, float, float]:
        own, missing = self._weighing.judged(policy)[0], self._missing(policy)
        return missing <= 0, own.bound if missing <= 0 else -missing, own.value

    def _promises_more(self, policy: npt.NDArray[Any]) -> bool:
        own = self._weighing.judged(policy)[0]
        return own.bound > self._certified + _WORTHWHILE * abs(own.value - own.bound)


def _signed(certificate: Certificate, value: float) -> float:
    """Return a value such that a larger one is better."""
    return value if certificate.claim.direction == "max" else -value
