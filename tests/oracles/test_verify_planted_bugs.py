"""False certificates that errors in other rooms make are rejected by ``verify``, whose code does not have the error.

Each test plants an error, certifies a small model with it, and has the result verified. Without the error the same
result is verified.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from paid_models import COST, machine, runs_of
from row_models import listed, row_model
from support.twin_outcomes import equal_outcomes_are_merged_once
from support.verified_results import COST as STEPS
from support.verified_results import compared, small_counts, witnessed

import plumdp
from plumdp.base.error_budget import ErrorBudget
from plumdp.certifying import difference, valuation
from plumdp.confidence import bets, binomial, bounds, evidence, likelihood, staged_bets
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.confidence.reward_coins import Pooled, RewardCoins
from plumdp.data.counts import Pilot, TransitionCounts
from plumdp.decisions import verify
from plumdp.learning import learn
from plumdp.solver.at_points import PointSolver
from plumdp.solver.coupled import brackets
from plumdp.verifying import set_proof
from plumdp.verifying.verify import look_again

pytestmark = pytest.mark.slow


def narrower(found, share=0.05):
    """Return bounds without a share of their width on both sides."""
    off = share * (found.upper - found.lower)
    return replace(found, lower=found.lower + off, upper=found.upper - off)


def coupled_bounds_are_too_narrow(patch):
    honest = valuation.find_coupled_bounds
    patch.setattr(valuation, "find_coupled_bounds", lambda *args, **kwargs: narrower(honest(*args, **kwargs)))


def the_solver_forgets_nature(patch):
    """Values against nature are those at some point between the bounds."""
    honest = valuation.evaluate_all

    def evaluate(*args, **kwargs):
        worst, best = honest(*args, **kwargs)
        middle = (worst.lower + best.upper) / 2
        return replace(worst, lower=middle, upper=middle), replace(best, lower=middle, upper=middle)

    patch.setattr(valuation, "evaluate_all", evaluate)


def the_range_of_the_slope_is_halved(patch):
    honest = brackets.Setting.linear_range

    def half(setting, slope):
        found = honest(setting, slope)
        return replace(found, lower=found.lower / 2, upper=found.upper / 2)

    patch.setattr(brackets.Setting, "linear_range", half)


def the_evidence_is_too_large(patch):
    honest = likelihood.log_evidence
    patch.setattr(likelihood, "log_evidence", lambda *args: honest(*args) + 8)


def bets_win_more_than_they_do(patch):
    honest = staged_bets.common_half_space

    def cut(*args, bound, **kwargs):
        return honest(*args, bound=bound - 5, **kwargs)

    patch.setattr(staged_bets, "common_half_space", cut)


def bets_look_at_all_data(patch):
    """The estimate of every stage is that of the end."""
    honest = likelihood.find_stages

    def stages(table, counts, space):
        last = evidence.find_estimate(table, table.pool(counts.counts), prior=space)
        return [stage._replace(point=last) for stage in honest(table, counts, space)]

    patch.setattr(likelihood, "find_stages", stages)


def sizes_do_not_follow_from_what_was_won(patch):
    honest = staged_bets._renewed_size
    patch.setattr(staged_bets, "_renewed_size", lambda *args: 1.1 * honest(*args))


def counts_count_twice(patch):
    honest = LikelihoodTable.pool
    patch.setattr(LikelihoodTable, "pool", lambda table, counts: 2 * honest(table, counts))


def every_part_has_the_whole_error(patch):
    patch.setattr(ErrorBudget, "error_in_set", lambda budget, part, error: min(50 * error, 0.5) * bool(budget[part]))


def intervals_have_the_whole_error(patch):
    patch.setattr(bounds, "equal_parts", lambda error, n: 0.2)


def intervals_are_those_of_a_fixed_number(patch):
    """Clopper–Pearson intervals whatever the sampling, and much too narrow."""

    def narrow(successes, trials, error):
        share = successes / np.maximum(trials, 1)
        off = np.sqrt(share * (1 - share) / np.maximum(trials, 1))
        return share - off, share + off

    patch.setattr(binomial, "beta_binomial", narrow)


def every_event_is_tried_once(patch):
    patch.setattr(bounds, "is_tried_once", lambda graph, events: np.ones(len(events), dtype=bool))
    patch.setattr(set_proof, "is_tried_once", lambda graph, events: np.ones(len(events), dtype=bool))


def the_slope_of_the_rival_has_the_wrong_sign(patch):
    honest = brackets.Approximation.__sub__

    def minus(one, other):
        return replace(honest(one, other), slope=one.slope + other.slope)

    patch.setattr(brackets.Approximation, "__sub__", minus)


def equal_ends_are_subtracted(patch):
    """The lower end of the rival's bracket is subtracted from the lower end, and the upper from the upper."""
    honest = difference.difference_of

    def of_ends(learned, question, one, other, **kwargs):
        found = honest(learned, question, one, other, **kwargs)
        ends = sorted((one.lower - other.lower, one.upper - other.upper))
        return replace(found, lower=max(found.lower, ends[0]), upper=min(found.upper, ends[1]))

    patch.setattr(difference, "difference_of", of_ends)


def values_win_more_than_they_do(patch):
    honest = bets.log_gains

    def more(table, seen, factors, *rest):
        return honest(table, seen, factors, *rest) + 2e-3 * seen * (factors.ndim > 1)  # not once more for each of many

    patch.setattr(bets, "log_gains", more)


def values_count_ten_times(patch):
    honest = RewardCoins.shown
    patch.setattr(RewardCoins, "shown", lambda *args: Pooled(*(10 * each for each in honest(*args))))


def difference_of_steps(folder):
    """Save the difference of two policies, of which one needs more steps if p is larger, and the other fewer.

    With 1,000 runs, what follows from the wrong sign is false at points of the set; with 300 it is true, and proved.
    """
    compared(folder, "near", "twice", STEPS, counts=small_counts(1000))


def learned_rewards(folder):
    model = machine()
    runs = pd.DataFrame(runs_of(np.random.default_rng(1), 500))
    counts = plumdp.read_log(model, runs, plumdp.LogFormat(columns={"cost": "price"}), sampling="trajectories").counts
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(learn.TESTS, "model", lambda learned, fixed: learned)  # which the error may contradict by chance
        witnessed(folder, COST, model=model, counts=counts)


MADE = {  # results, with the errors that are planted and the layer that rejects each of them
    witnessed: {
        coupled_bounds_are_too_narrow: "bracket",
        the_solver_forgets_nature: "bracket",
        the_range_of_the_slope_is_halved: "bracket",
        the_evidence_is_too_large: "set",
        bets_win_more_than_they_do: "bracket",
        bets_look_at_all_data: "bets",
        sizes_do_not_follow_from_what_was_won: "bets",
        counts_count_twice: "bets",
        every_part_has_the_whole_error: "budget",
    },
    partial(witnessed, confidence_set="interval"): {
        intervals_have_the_whole_error: "set",
        intervals_are_those_of_a_fixed_number: "set",
        every_event_is_tried_once: "set",
    },
    difference_of_steps: {
        the_slope_of_the_rival_has_the_wrong_sign: "bracket",
        equal_ends_are_subtracted: "bracket",
    },
    learned_rewards: {values_win_more_than_they_do: "bracket", values_count_ten_times: "bets"},
}
PLANTED = {plant: (make, layer) for make, planted in MADE.items() for plant, layer in planted.items()}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_error_is_found_in_its_layer(tmp_path, monkeypatch, plant):
    make, layer = PLANTED[plant]
    with monkeypatch.context() as patch:
        plant(patch)
        make(tmp_path / "result")
    broken = verify(tmp_path / "result").broken
    assert broken is not None
    assert broken.layer == layer, broken


def test_without_an_error_the_results_are_verified(tmp_path):
    for i, make in enumerate((witnessed, partial(witnessed, confidence_set="interval"), difference_of_steps)):
        make(tmp_path / f"{i}")
        assert verify(tmp_path / f"{i}").broken is None


def backoff():
    """A row of which two outcomes are merged twice: p/8, p/8, p/4, p/2 and 1 - p."""
    (p,) = plumdp.parameters("p")

    space = plumdp.ParameterSpace.box({"p": (0.05, 0.95)})
    return row_model({"go": (p / 8, p / 8, p / 4, p / 2, 1 - p)}, space, labels={"goal": 4})


def test_bets_on_twin_outcomes_are_found(tmp_path, monkeypatch):
    model = backoff()
    counts = plumdp.simulate(model, {"p": 0.3}, 3000, rng=1, max_steps=5)
    witnessed(tmp_path / "honest", model=model, counts=counts)
    assert verify(tmp_path / "honest").broken is None
    with monkeypatch.context() as patch:
        equal_outcomes_are_merged_once(patch)
        patch.setitem(learn.TESTS, "model", lambda learned, fixed: learned)  # which the error may contradict by chance
        witnessed(tmp_path / "twins", model=backoff(), counts=counts)
    broken = verify(tmp_path / "twins").broken
    assert (broken.layer, str(broken)[:10]) == ("counts", "classes[0]")
    assert "two outcomes have the same probability" in str(broken)


def tied():
    """Two actions that are as good as each other in the pilot, of which one is better in the end."""
    p, q = plumdp.parameters("p", "q")

    model = listed({0: {"a": [(p, 1), (1 - p, 2)], "b": [(q, 1), (1 - q, 2)]}}, "p q", at="x", labels={"goal": 1})
    pilot, counts = (np.zeros(model.graph.n_transitions, dtype=int) for _ in range(2))
    pilot[:4], counts[:4] = 20, (420, 420, 520, 320)
    return model, TransitionCounts(model.graph, counts, "adaptive", Pilot(pilot, ratio=9.0))


def test_a_solver_that_was_used_on_later_data_is_found(tmp_path, monkeypatch):
    """At a tie of the pilot, it keeps the policy that later data have shown to be better, and so bets for it."""
    model, counts = tied()
    honest = PointSolver.policy_at
    for name, layer in (("fresh", None), ("reused", "directions")):
        with monkeypatch.context() as patch:
            if name == "reused":
                patch.setattr(PointSolver, "policy_at", lambda solver, point: honest(solver, np.array([0.5, 0.62])))
            witnessed(tmp_path / name, model=model, counts=counts, confidence=0.9, keeps_data=True)
        report = verify(tmp_path / name)
        look_again(tmp_path / name, report)
        assert (None if report.broken is None else report.broken.layer) == layer, report.broken
