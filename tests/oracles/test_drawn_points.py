"""The exact value of a policy that draws lies within its bounds, at every point of the confidence set.

Its rows are mixtures: the oracle mixes rows and rewards of its choices in fractions, and solves one chain. Models, data
and questions are random, as in ``test_points``, with all sets and relaxations, and rows that are off by a misfit. At
night there are 10,000 points.
"""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import count, islice
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
from plumdp.certifying.pipeline import compare, relax
from plumdp.relaxation.relax import RELAXATIONS
from plumdp.solver import reduce as reductions
from plumdp.solver.coupled.bounds import find_coupled_bounds
from plumdp.solver.coupled.gradient import policy_gradient

N_POINTS = size(50, 10_000)
PER_CASE = 12
DISCOUNTED = [kind for kind in ALL_KINDS if "discount" in kind]


def misses(seed, seen):
    """Yield the values of a policy outside of its bounds, at points of a random case; count what was looked at."""
    case, rng = random_case(seed), np.random.default_rng([seed, 1])
    if case.kind in DISCOUNTED:
        return
    graph = case.model.graph
    weights = random_weights(rng, graph)
    learned = pl.learn(
        case.model,
        case.counts,
        objectives=[case.objective],
        confidence=case.confidence,
        confidence_set=case.confidence_set,
        misfit=case.misfit,
    )
    if learned.conflict is not None:
        return
    found = compare(learned, case.objective, policy=weights, precision=case.precision)
    alone = find_coupled_bounds(
        case.model, weights, case.objective, learned.region, relax(learned, "coupled"), precision=case.precision
    )
    brackets = [(one.relaxation, one.lower, one.upper) for one in found]
    if not isinstance(alone, str):
        brackets.append(("coupled alone", alone.lower, alone.upper))
    seen.update(["models", f"set: {case.confidence_set}", f"objective: {case.kind}", *(name for name, *_ in brackets)])
    seen["models with draws"] += found[-1].policy.n_drawn > 0
    slope = policy_gradient(case.model, weights, case.objective, learned.likely_point)[1]
    shares, steepest = shares_of(graph, weights), [slope] if np.isfinite(slope).all() else []
    for point in points_of_set(rng, learned, steepest, PER_CASE):
        rows = rows_at(case.model, point)
        if case.misfit:
            rows = moved_at_random(rng, graph, rows, case.misfit)
        value = mixed_value(graph, rows, shares, case.objective)
        seen["points"] += 1
        seen["infinite values"] += value == inf
        for name, lower, upper in brackets:
            seen["comparisons"] += 1
            if not lower <= value <= upper:
                yield seed, name, lower, float(value), upper


@pytest.mark.slow
def test_values_of_policies_that_draw_lie_within_their_bounds_at_points_of_confidence_sets(capsys):
    seen = Counter()
    for seed in count():
        assert [*misses(seed, seen)] == []
        if seen["points"] >= N_POINTS:
            break
    wanted = ["coupled alone", "models with draws", *RELAXATIONS]
    if N_POINTS > 1000:
        wanted += [f"set: {name}" for name in SETS] + ["infinite values"]
        wanted += [f"objective: {kind}" for kind in ALL_KINDS if kind not in DISCOUNTED]
        with capsys.disabled():
            print("\n" + "\n".join(f"{n:9,} {what}" for what, n in sorted(seen.items())))
    assert [what for what in wanted if not seen[what]] == []


def one_weight_is_wrong(patch):
    """Of two actions that are drawn in a state, the second is taken a tenth less often than the policy says."""
    right = reductions.exact_shares

    def wrong(graph, weights, taken):
        shares, owner = right(graph, weights, taken), graph.state_of_choice()[taken].tolist()
        for second in range(1, len(shares)):
            if owner[second] == owner[second - 1]:
                shares[second - 1] += shares[second] / 10
                shares[second] *= Fraction(9, 10)
        return shares

    patch.setattr(reductions, "exact_shares", wrong)


def weights_of_coupled_bounds_are_turned(patch):
    """The coupled bracket has the probabilities of draws in another order; the other relaxations have them right."""
    right = reductions.DrawSteps.model
    patch.setattr(
        reductions.DrawSteps,
        "model",
        lambda draws, model: right(replace(draws, probability=draws.probability[::-1]), model),
    )


@pytest.mark.parametrize("error", [one_weight_is_wrong, weights_of_coupled_bounds_are_turned])
def test_a_planted_error_of_draws_is_found(error, monkeypatch):
    error(monkeypatch)
    assert [*islice((wrong for seed in range(20) for wrong in misses(seed, Counter())), 1)] != []
