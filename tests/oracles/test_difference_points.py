"""The exact difference of two policies' values lies within its bounds, at every point of the confidence set.

Models, data, questions and sets are random, as in ``test_points``; policies choose or draw. At night there are 10,000
points.
"""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import count
from math import inf

import numpy as np
import pytest
from coupled_points import mixed_value, rows_at
from drawn_weights import random_weights, shares_of
from misfit_rows import moved_at_random
from point_cases import SETS, random_case
from random_objectives import ALL_KINDS
from set_points import points_of_set
from tiers import size

import plumdp as pl
from plumdp.certifying import difference as of_policies
from plumdp.certifying.difference import difference
from plumdp.solver.coupled import terms
from plumdp.solver.coupled.brackets import Approximation
from plumdp.solver.coupled.gradient import policy_gradient

N_POINTS, PER_CASE = size(36, 10_000), 12
DISCOUNTED = [kind for kind in ALL_KINDS if "discount" in kind]


def random_policies(rng, graph, *, may_draw):
    """Return two policies that agree in some states, each of which may draw."""
    first = rng.integers(graph.first_choice[:-1], graph.first_choice[1:])
    second = np.where(rng.random(len(first)) < 0.7, first, graph.first_choice[:-1])
    return [random_weights(rng, graph) if may_draw and rng.random() < 0.3 else each for each in (first, second)]


def shares(graph, policy):
    """Return the exact probability of each choice."""
    if policy.dtype.kind == "f":
        return shares_of(graph, policy)
    return [Fraction(int(choice in {*policy.tolist()})) for choice in range(graph.n_choices)]


def misses(seed, seen):
    """Yield the differences outside of their bounds, at points of a random case; count what was looked at."""
    case, rng = random_case(seed), np.random.default_rng([seed, 2])
    model, graph = case.model, case.model.graph
    policies = random_policies(rng, graph, may_draw=case.kind not in DISCOUNTED)
    learned = pl.learn(
        model,
        case.counts,
        objectives=[case.objective],
        confidence=case.confidence,
        confidence_set=case.confidence_set,
        misfit=case.misfit,
    )
    if learned.conflict is not None:
        return
    found = difference(learned, case.objective, *policies, precision=case.precision)
    seen.update(["models", f"set: {case.confidence_set}", f"objective: {case.kind}"])
    seen["coupled"] += not found.not_coupled
    gap = found.first.upper - found.first.lower + found.second.upper - found.second.lower
    seen["narrower by half"] += found.upper - found.lower < gap / 2 < inf
    slope = np.subtract(*(policy_gradient(model, each, case.objective, learned.likely_point)[1] for each in policies))
    exact = [shares(graph, policy) for policy in policies]
    for point in points_of_set(rng, learned, [slope] if np.isfinite(slope).all() else [], PER_CASE):
        rows = rows_at(model, point)
        if case.misfit:
            rows = moved_at_random(rng, graph, rows, case.misfit)
        one, other = (mixed_value(graph, rows, each, case.objective) for each in exact)
        seen["points"] += 1
        if inf in (one, other):  # then no number is the difference
            continue
        seen["finite"] += 1
        if not found.lower <= one - other <= found.upper:
            yield seed, found.lower, float(one - other), found.upper


@pytest.mark.slow
def test_differences_lie_within_their_bounds_at_points_of_confidence_sets(capsys):
    seen = Counter()
    for seed in count():
        assert [*misses(seed, seen)] == []
        if seen["points"] >= N_POINTS:
            break
    wanted = ["coupled", "narrower by half", "finite"]
    if N_POINTS > 1000:
        wanted += [f"set: {name}" for name in SETS] + [f"objective: {kind}" for kind in ALL_KINDS]
        with capsys.disabled():
            print("\n" + "\n".join(f"{n:9,} {what}" for what, n in sorted(seen.items())))
    assert [what for what in wanted if not seen[what]] == []


def test_the_remainder_over_steps_is_about_the_expressions_of_the_model():
    """The first policy reaches no target; the chain of the second one has only some of the model's expressions."""
    seen = Counter()
    assert [*misses(116, seen)] == []
    assert seen["objective: window"]
    assert seen["coupled"]


def expressions_are_numbered_anew(patch):
    """Nature moves expressions of a chain within the bounds of others of the model."""
    right = terms.step_errors
    patch.setattr(terms, "step_errors", lambda chain, *rest: right(chain.with_own_expressions()[0], *rest))


def remainders_cancel(patch):
    """The remainders of both policies are subtracted as the slopes are."""
    right = Approximation.__sub__

    def wrong(self, other):
        return Approximation(*list(vars(right(self, other)).values())[:3], self.below - other.below, 0.0, 0.0)

    patch.setattr(Approximation, "__sub__", wrong)


def policies_change_places(patch):
    """The difference is that of the second policy less the first."""
    right = of_policies.prove
    patch.setattr(
        of_policies,
        "prove",
        lambda sought, apart: right(replace(sought, policy=sought.less, less=sought.policy), apart),
    )


@pytest.mark.slow
@pytest.mark.parametrize("plant", [remainders_cancel, policies_change_places, expressions_are_numbered_anew])
def test_a_planted_error_is_found(plant, monkeypatch):
    plant(monkeypatch)
    assert any([*misses(seed, Counter())] for seed in [116, 7, *range(60)])
