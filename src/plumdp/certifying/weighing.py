"""Proposes policies that are good for weighted sums of objectives, at the centre of a region. Nothing here is proved.

To each policy belongs one point, that of its values in all objectives. The best policies for weighted sums of two are
corners of the hull of these points, which are found from the outside in: the policy that is best for the weights across
the line through two corners is a corner between them, or there is none (Aneja and Nair 1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.base.rounding import UNDERFLOW
from plumdp.certifying.policy_search import Candidate, judge_of, worths_at
from plumdp.confidence.space_moments import moments
from plumdp.learning.learned import Learned
from plumdp.model.graph import FloatArray, Graph, IntArray
from plumdp.model.question import Question
from plumdp.region.ball import ball_around
from plumdp.region.conflict import Conflict
from plumdp.solver.at_points import move_inside

_ROUNDS = 12  # improvements of a policy for one weighted sum
_ROUNDING = 1e-9  # share of the largest values that is no gain


class Weighing:
    """Estimates of the values of policies in several objectives on one model, and policies for weighted sums."""

    def __init__(self, learned: Learned, questions: Sequence[Question]) -> None:
        region, self.model = learned.region, questions[0].model
        assert not isinstance(region, Conflict)
        centre = ball_around(region, self.model.space.dimension).centre
        self._point = move_inside(self.model, centre, moments(self.model.space)[0])
        self._objectives = [question.objective for question in questions]
        self._judges = [judge_of(self.model, each, region, self._point) for each in self._objectives]
        self.best = [learned.at_points(question).policy_at(self._point) for question in questions]
        self._judged: dict[bytes, list[Candidate]] = {}
        self._known: dict[bytes, list[FloatArray]] = {}

    def judged(self, policy: npt.NDArray[Any]) -> list[Candidate]:
        """Return the estimates of a policy's value and bound in each objective; larger is better."""
        key = policy.tobytes()
        if key not in self._judged:
            self._judged[key] = [judge(policy) for judge in self._judges]
        return self._judged[key]

    def values(self, policy: npt.NDArray[Any]) -> FloatArray:
        """Return the estimated values (n_objectives); larger is better."""
        return np.array([candidate.value for candidate in self.judged(policy)])

    @cached_property
    def units(self) -> FloatArray:
        """How much choices of one state differ at most in each objective (n_objectives), if a best policy goes on."""
        of_policies = [[_spread(self.model.graph, each) for each in self._worths(policy)] for policy in self.best]
        return np.asarray(np.maximum(np.max(of_policies, axis=0), 1e-12))

    def improved(self, policy: IntArray, weights: FloatArray) -> IntArray:
        """Return a policy that is as good as can be for a weighted sum of all objectives, by policy iteration."""
        before = {policy.tobytes()}
        for _ in range(_ROUNDS):
            total = sum(weight * each for weight, each in zip(weights, self._worths(policy), strict=True))
            policy = _best_choices(self.model.graph, np.asarray(total), policy)
            if policy.tobytes() in before:
                break
            before.add(policy.tobytes())
        return policy

    def corner(self, one: IntArray, other: IntArray, axes: FloatArray) -> IntArray | None:
        """Return a policy beyond the line through two others in a plane, or None if none is found.

        ``axes`` (2, n_objectives) has the weights of both sums. In the first the first policy is better, in the second
        the other one.
        """
        (x, y), (less, more) = (axes @ self.values(policy) for policy in (one, other))
        weights = (more - y) * axes[0] + (x - less) * axes[1]
        if not np.isfinite(weights).all() or more <= y or x <= less:
            return None
        found = self.improved(one, weights)
        values, line = weights @ self.values(found), weights @ self.values(one)
        return found if values > line + _ROUNDING * max(abs(line), float(np.abs(weights @ self.units))) else None

    def _worths(self, policy: IntArray) -> list[FloatArray]:
        """Return the value of each choice for each objective if a policy goes on."""
        key = policy.tobytes()
        if key not in self._known:
            self._known[key] = [worths_at(self.model, each, self._point, policy) for each in self._objectives]
        return self._known[key]


def require_same_model(questions: Sequence[Question]) -> None:
    """Refuse questions on different products, such as those of missions, as they have no policies in common."""
    other = next((each for each in questions if each.model is not questions[0].model), None)
    if other is not None:
        texts = f"{questions[0].text or 'the first objective'} and {other.text or 'another one'}"
        raise ModelError(f"{texts}: one remembers more than the state, so that they have no policies in common")


def _spread(graph: Graph, worths: FloatArray) -> float:
    """Return the largest difference between choices of one state."""
    first = graph.first_choice[:-1]
    return float((np.maximum.reduceat(worths, first) - np.minimum.reduceat(worths, first)).max())


def _best_choices(graph: Graph, worths: FloatArray, policy: IntArray) -> IntArray:
    """Return the best choice of each state, that of a policy if no other is better by more than rounding."""
    order = np.lexsort((-worths, graph.state_of_choice()))
    best = order[graph.first_choice[:-1]]
    gains = worths[best] - worths[policy]
    return np.where(gains > _ROUNDING * max(_spread(graph, worths), UNDERFLOW), best, policy).astype(np.int32)
