"""Life tables by one bet: fair in exact enumerations, cuts that break it, and ends by a slow search."""

from fractions import Fraction as Q
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from tiers import size

import plumdp as pl
from plumdp.confidence import life_bets
from plumdp.confidence.life_bets import log_factors, risk_ends, sizes_of
from plumdp.data.returns import Lives

H = Q(1, 2)
# S0 is a or b, then c, then the end if S0 was a, and nothing else: the past matters, and what is asked is the end
PATHS = [(("a", "c", "end"), H), (("b", "c", "ok"), H)]
CUTS = {  # the chance that the step from t is observed, if all before were, and whether the factors stay fair
    "nothing": (lambda path, t: Q(1), True),
    "by the step alone": (lambda path, t: (Q(2, 3), Q(1, 4))[t], True),
    "at 0 by the state then occupied": (lambda path, t: H if t == 0 and path[0] == "b" else Q(1), False),
    "at 1 by the state that all are in": (lambda path, t: H if t == 1 else Q(1), True),
    "at 1 by the past": (lambda path, t: H if t == 1 and path[0] == "b" else Q(1), False),
    "within step 1 unless the event came first": (lambda path, t: H if t == 1 and path[2] == "ok" else Q(1), False),
}


def factors(at_risk, happened, sizes, q):
    """Return both factors of one run."""
    one = (np.array([each], dtype=float) for each in (at_risk, happened, sizes))
    return np.exp(log_factors(q, *one))


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("sizes", [(0.3, 0.3), (0.05, 0.8)])
def test_factors_have_mean_one_unless_cuts_look_at_the_run(cut, sizes):
    """Six kinds of cuts, over all paths and all steps in which a run may be cut off; hazards are 0 and a half."""
    observed, is_fair = CUTS[cut]
    q, means = -np.log1p(-np.array([0.0, 0.5])), np.zeros(2)
    for path, chance in PATHS:
        for last in range(3):  # steps that were observed
            weight = chance
            for t in range(min(last + 1, 2)):
                weight *= observed(path, t) if t < last else 1 - observed(path, t)
            happened = [0, int(last == 2 and path[2] == "end")]
            means += float(weight) * factors([int(last > t) for t in range(2)], happened, sizes, q)
    assert np.allclose(means, 1, atol=1e-12) == is_fair
    assert is_fair or means.max() > 1.004


def test_a_product_over_the_rows_of_states_is_not_fair_along_a_run():
    """Two steps, each with the law of a half, go alike in each run: bets on one are fair, and their product is not."""
    q, sizes = np.full(2, np.log(2)), np.log([1.5, 1.5])
    one, both = (np.mean([factors(n, [k * each for each in n], sizes, q)[0] for k in (0, 1)]) for n in ([1, 0], [1, 1]))
    assert np.isclose(one, 1)
    assert np.isclose(both, 26 / 25)


def test_sizes_that_know_the_past_of_their_run_are_not_fair():
    """Larger ones for runs that began in a, which all fail: what a state tells is no bet on those who are at risk."""
    q, mean = -np.log1p(-np.array([0.0, 0.5])), 0.0
    for path, chance in PATHS:
        size = 0.4 if path[0] == "a" else 0.1
        mean += float(chance) * factors([1, 1], [0, int(path[2] == "end")], [size, size], q)[0]
    assert mean > 1.03


def test_units_that_differ_have_the_factors_of_their_mean():
    """Half of the units fail with a chance of 0.1 in a step, half with 0.6; steps that are seen are drawn apart."""
    chances, steps, mean = np.array([0.1, 0.6]), 3, np.zeros(2)
    alive = ((1 - chances[:, None]) ** np.arange(steps + 1)).mean(axis=0)
    q = -np.log(alive[1:] / alive[:-1])
    for chance in chances:
        for seen, share in enumerate((0.2, 0.3, 0.4, 0.1)):
            for fails in range(steps + 1):
                weight = chance * (1 - chance) ** fails if fails < steps else (1 - chance) ** steps
                happened = [int(t == fails and t < seen) for t in range(steps)]
                at_risk = [int(t < seen and t <= fails) for t in range(steps)]
                mean += 0.5 * share * weight * factors(at_risk, happened, (0.2, 0.5, 0.9), q)
    assert np.allclose(mean, 1, atol=1e-12)


def drawn(n, rng, n_steps=12, hazard=0.05):
    fails = np.minimum(rng.geometric(hazard, n), n_steps + 1)
    cut = np.where(rng.random(n) < 0.4, rng.integers(1, n_steps, n), n_steps)
    return Lives(np.minimum(fails, cut), fails <= cut, n_steps, complement=False)


@pytest.mark.parametrize("seed", range(3))
def test_ends_are_those_of_a_search_over_all_hazards(seed):
    """Below the least sum of q that is not excluded, and above the largest, and by little."""
    n, n_steps, error = 150, 4, 0.05
    lives = drawn(n, np.random.default_rng(seed), n_steps)
    goal = -np.log(error / 2)
    blocks = [0, *life_bets._renewals(n), n]
    seen = np.array([lives.seen(a, b) for a, b in pairwise(blocks)])
    sizes = np.array([sizes_of(lives.seen(0, a), a, goal, n) for a in blocks[:-1]])
    ends = risk_ends(lives, error, n)
    for side, sign in ((0, 1), (1, -1)):
        inside = {
            "type": "ineq",
            "fun": lambda q, side=side: goal - log_factors(q, seen[:, 0], seen[:, 1], sizes)[side],
        }
        start = np.full(n_steps, 0.05)
        found = minimize(lambda q, sign=sign: sign * q.sum(), start, constraints=inside, bounds=[(0, 5)] * n_steps)
        value = -np.expm1(-found.x.sum())
        assert 0 <= sign * (value - ends[side]) + 1e-6 < 2e-3


def test_sizes_look_at_earlier_runs_alone():
    lives, goal = drawn(100, np.random.default_rng(1)), 3.7
    other = Lives(np.where(np.arange(100) < 60, lives.steps, 1), lives.is_ended & (np.arange(100) < 60), 12, False)
    assert np.array_equal(sizes_of(lives.seen(0, 60), 60, goal, 200), sizes_of(other.seen(0, 60), 60, goal, 200))
    assert life_bets._renewals(100) == life_bets._renewals(1000)[:5] == [16, 24, 36, 54, 81]


@pytest.mark.night
def test_as_few_as_said_miss():
    rng, true, missed, games = np.random.default_rng(4), 1 - 0.95**12, 0, size(40, 100)
    for _ in range(games):
        low, high = risk_ends(drawn(60, rng), 0.3, 60)
        missed += not low <= true <= high
    assert missed <= 0.3 * games


def test_a_chain_with_runs_that_were_censored_has_a_life_table():
    rng, rows = np.random.default_rng(1), []
    for unit in range(300):
        chance, cut = (0.05 if unit % 2 else 0.15), int(rng.integers(1, 30))
        for step in range(13):
            rows.append((unit, step, "works", None if step in (cut, 12) else "run"))
            if step in (cut, 12):
                break
            if rng.random() < chance:
                rows.append((unit, step + 1, "failed", None))
                break
    log = dict(zip(("episode", "step", "status", "action"), zip(*rows, strict=True), strict=True))
    (hazard,) = pl.parameters("hazard")

    def step(state):
        failed = state._replace(status="failed")
        return {"run": [(hazard, failed), (1 - hazard, state)]} if state.status == "works" else {"stay": [(1, state)]}

    model = pl.explore(step, {"status": "works"}, space=pl.ParameterSpace.unit("hazard"))
    found = {}
    for censoring in ("unrelated", "independent"):
        read = pl.read_log(model, pd.DataFrame(log), pl.LogFormat(censoring=censoring), order="runs", expected=300)
        found[censoring] = [
            pl.certify(model, read, f'P=? [ {asked}<=12 status="{status}" ]', confidence=0.95).claim.rungs[0]
            for asked, status in (("F", "failed"), ("G", "works"))
        ]
    table, kept = found["independent"]
    assert (table.ground, found["unrelated"][0].ground) == ("life table", "whole runs")
    assert table.lower < 1 - (0.95**12 + 0.85**12) / 2 < table.upper
    assert table.upper - table.lower < 0.7 * (found["unrelated"][0].upper - found["unrelated"][0].lower)
    assert any("when runs are censored has nothing to do with anything" in each for each in table.premises)
    assert (kept.lower, kept.upper) == pytest.approx((1 - table.upper, 1 - table.lower))
