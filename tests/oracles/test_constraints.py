"""Policies within thresholds, against all policies of small random models, one by one."""

from itertools import product

import numpy as np
import pytest
from random_pmdps import random_counts, random_problem
from tiers import size

import plumdp as pl
from plumdp.base.errors import ModelError
from plumdp.base.vocabulary import Verdict
from plumdp.certifying.constraints import Constrained, certify_within
from plumdp.certifying.thresholds import decide

pytestmark = pytest.mark.slow

N_MODELS = size(6, 2000)
OBJECTIVE, CHANCE = 'R{"earned"}max=? [ C<=6 ]', 'P{side}{number} [ F "goal" ]'


def chance(model, at, policy):
    """Return the chance of the goal under a policy, in a model at a point."""
    objective = pl.parse_property('Pmax=? [ F "goal" ]', model)
    return round(float(pl.stages.evaluate(at, policy, objective).lower[model.graph.initial_state]), 3)


def all_policies(graph, most=np.inf):
    """Return each choice of one action in every state, or none of too many."""
    if np.prod(np.diff(graph.first_choice)) > most:
        return []
    return [np.array(each) for each in product(*map(range, graph.first_choice[:-1], graph.first_choice[1:]))]


def random_case(seed):
    """Return what was learned about a random model with few policies, and a threshold that some of them keep within."""
    rng = np.random.default_rng(seed)
    while True:
        problem = random_problem(rng, n_states=(3, 5))
        graph = problem.model.graph
        at = pl.stages.instantiate(problem.model, problem.point)
        chances = sorted({chance(problem.model, at, policy) for policy in all_policies(graph, 8)})
        if len(chances) > 1:
            break
    counts = random_counts(rng, problem, most=20_000)
    place = int(rng.integers(len(chances) - 1))
    text = CHANCE.format(side=rng.choice(["<=", ">="]), number=round(np.mean(chances[place : place + 2]), 6))
    learned = pl.learn(problem.model, counts, objectives=[OBJECTIVE], confidence=0.9)
    return learned, text


def feasible_bounds(learned, text):
    """Yield the bound of the objective for each policy that is certified to keep within the threshold."""
    for policy in all_policies(learned.model.graph):
        if decide(learned, text, policy=policy, memory=False).verdict == Verdict.YES:
            yield pl.conclude(learned, OBJECTIVE, policy=policy, memory=False).lower


def failure(seed):
    """Return in words what is wrong with the answer for a random case, or nothing."""
    learned, text = random_case(seed)
    if learned.conflict is not None:
        return ""
    found = certify_within(learned, OBJECTIVE, subject_to=[text])
    certified = [*feasible_bounds(learned, text)]
    width = found.certificate.upper - found.certificate.lower
    if not certified:
        return "a policy is called feasible that is not" if found.is_feasible else ""
    if not found.is_feasible:
        return "no policy is found though one is certified"
    return "a better one is certified" if max(certified) > found.certificate.lower + width + 1e-9 else ""


@pytest.mark.slow
def test_no_certified_policy_within_the_threshold_is_much_better():
    assert [(seed, text) for seed, text in enumerate(map(failure, range(N_MODELS))) if text] == []


@pytest.mark.slow
def test_a_search_that_forgets_the_threshold_is_found(monkeypatch):
    monkeypatch.setattr("plumdp.certifying.constraints._PolicySearch._missing", lambda *_: -1.0)
    monkeypatch.setattr("plumdp.certifying.constraints._MOST_CERTIFIED", 1)
    assert any(map(failure, range(N_MODELS)))


def is_called_rightly(seed):
    """Return whether the policy that is returned is called feasible if and only if its certificate says so."""
    learned, text = random_case(seed)
    found = certify_within(learned, OBJECTIVE, subject_to=[text])
    again = decide(learned, text, policy=found.policy, memory=False)
    assert [answer.verdict for answer in found.answers] == [again.verdict]
    assert text in found.sentence or found.impossible
    return (again.verdict == Verdict.YES) == found.is_feasible


def test_a_policy_that_is_called_feasible_is_so_at_every_point_of_the_region():
    assert all(map(is_called_rightly, range(2)))


def test_thresholds_that_are_kept_by_the_wrong_bound_are_found(monkeypatch):
    """What is called feasible keeps its thresholds at some points of the region, not at all."""

    def missing(search, policy, slack=1.0):
        judged = zip(search._thresholds, search._weighing.judged(policy)[1:], strict=True)
        return max(float(each.number) - (2 * one.value - one.bound) for each, one in judged)

    def is_feasible(self):
        return all(
            each.question.holds_for(each.certificate.upper if ">" in each.question.text else each.certificate.lower)
            for each in self.answers
        )

    monkeypatch.setattr(Constrained, "is_feasible", property(is_feasible))
    monkeypatch.setattr("plumdp.certifying.constraints._PolicySearch._missing", missing)
    assert not all(map(is_called_rightly, range(N_MODELS)))


def test_a_threshold_for_all_policies_is_refused():
    learned, _ = random_case(0)
    with pytest.raises(ModelError, match="about all policies"):
        certify_within(learned, OBJECTIVE, subject_to=['Pmax<=0.5 [ F "goal" ]'])
    with pytest.raises(ModelError, match="at least one threshold"):
        certify_within(learned, OBJECTIVE, subject_to=[])
