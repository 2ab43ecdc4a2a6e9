"""Premises from the side that could make claims false: who stops when it suits, pooled units, unlucky pilots."""

import numpy as np
import pandas as pd
import pytest
from evidence import until_refuted
from tiers import size

import plumdp as pl
from plumdp.confidence.life_bets import risk_ends
from plumdp.confidence.run_bets import mean_ends
from plumdp.data.returns import Lives
from studies import premises

LOOKS = (16, 20, 25, 32, 40, 50, 64, 80, 100, 128, 160)


def normal_ends(lower, upper, error, _):
    """Return a normal interval at 50 %, which holds at one look, and not at many."""
    assert error == 0.5
    middle, half = lower.mean(), 0.674 * lower.std(ddof=1) / np.sqrt(len(lower))
    return middle - half, middle + half


def is_capped_mean_missed(seed, ends=mean_ends):
    """Return whether the mean of costs that are capped is outside at the moment that suits an opponent who looks.

    A run costs nothing, or what is drawn from a law with a long tail, of which the cap cuts a part. The last run of
    each look is still going on: it has cost nothing so far, and may cost as much as the cap.
    """
    rng = np.random.default_rng(seed)
    share, cap = rng.choice([0.02, 0.1, 0.5]), rng.choice([1.0, 3.0])
    cost = np.where(rng.random(max(LOOKS)) < share, np.minimum(rng.exponential(1.0, max(LOOKS)), cap), 0.0) / cap
    true = share * (1 - np.exp(-cap)) / cap
    for n in LOOKS:
        open_run = np.arange(n) == n - 1
        low, high = ends(np.where(open_run, 0.0, cost[:n]), np.where(open_run, 1.0, cost[:n]), 0.5, 100.0)
        if not low <= true <= high:
            return True
    return False


@pytest.mark.slow
def test_capped_runs_hold_against_who_stops_when_it_suits():
    assert not until_refuted((is_capped_mean_missed(seed) for seed in range(size(30, 400))), rate=0.5).is_refuted


def test_who_stops_when_it_suits_finds_out_a_normal_interval():
    assert until_refuted((is_capped_mean_missed(seed, normal_ends) for seed in range(200)), rate=0.5).is_refuted


def is_risk_missed(seed, n):
    """Return whether a life table misses the risk of units of two kinds at one of three looks, the last at n runs."""
    rng, steps = np.random.default_rng(seed), 12
    hazard = rng.choice([0.02, 0.1], n)
    fails, cut = np.minimum(rng.geometric(hazard), steps + 1), np.where(rng.random(n) < 0.4, rng.integers(1, 12, n), 12)
    true = 1 - ((1 - np.array([0.02, 0.1])) ** steps).mean()
    for k in (n // 10, n // 2, n):
        low, high = risk_ends(Lives(np.minimum(fails, cut)[:k], (fails <= cut)[:k], steps, complement=False), 0.5, n)
        if not low <= true <= high:
            return True
    return False


@pytest.mark.slow
def test_life_tables_of_many_runs_hold_at_every_look():
    assert not until_refuted((is_risk_missed(seed, 10_000) for seed in range(size(4, 200))), rate=0.5).is_refuted


def test_life_tables_of_many_runs_are_narrow():
    """Ten thousand units have a bracket a third as wide as a thousand."""
    rng = np.random.default_rng(1)
    fails = np.minimum(rng.geometric(0.05, 10_000), 13)
    widths = []
    for n in (1_000, 10_000):
        low, high = risk_ends(Lives(np.minimum(fails, 12)[:n], fails[:n] <= 12, 12, complement=False), 0.05, n)
        widths.append(high - low)
    assert widths[1] < 0.36 * widths[0]


FAILS, STEPS = {"mild": (0.2, 0.3), "strong": (0.05, 0.6)}, 6


def machine_model():
    def step(state):
        after = pl.unknown(state._replace(state="ok"), state._replace(state="bad"))
        return {"run": after, "mend": after} if state.state == "ok" else {"mend": after}

    def cost(state, action):
        return 5.0 * (state.state == "bad") + 1.0 * (action == "mend")

    return pl.explore(step, {"state": "ok"}, choice_rewards={"cost": cost})


MACHINE = machine_model()


def rule(state):
    return "run" if state.state == "ok" else "mend"


def bad_after(state, action, p):
    return 0.1 if state == "bad" else p if action == "run" else p / 4


def cost_of_rule(p):
    bad, total = 0.0, 0.0
    for _ in range(STEPS):
        total += 6.0 * bad
        bad = bad * 0.1 + (1 - bad) * p
    return total


def machines(n, brands, rng):
    """Return the log of machines of two brands, which it does not name; a quarter of those that work are mended."""
    rows = []
    for machine in range(n):
        p, state = brands[rng.integers(2)], "ok"
        for t in range(STEPS + 1):
            action = "mend" if state == "bad" or rng.random() < 0.25 else "run"
            rows.append((machine, t, state, None if t == STEPS else action))
            state = "bad" if rng.random() < bad_after(state, action, p) else "ok"
    return pd.DataFrame(rows, columns=["episode", "step", "state", "action"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAILS)
def test_brands_that_are_pooled_are_found_or_their_bracket_holds(kind):
    """A rule by tilted bets, of which the model's premise is false: mild brands are missed by less than a bracket."""
    true, silent, rejected = np.mean([cost_of_rule(p) for p in FAILS[kind]]), 0, 0
    n = size(6, 60)
    for seed in range(n):
        log = machines(400, FAILS[kind], np.random.default_rng(seed))
        counts = pl.read_log(MACHINE, log, sampling="trajectories")
        asked = f'R{{"cost"}}min=? [ C<={STEPS} ]'
        found = pl.certify(MACHINE, counts, asked, policy=rule, prespecified=True, confidence=0.95)
        rejected += found.status == "model rejected"
        silent += found.status == "certified" and not found.lower <= true <= found.upper
    assert silent <= 0.08 * n
    assert rejected >= 0.9 * n * (kind == "strong")


def is_wrongly_contradicted(seed):
    """Return whether a right model is contradicted after a pilot in which all fail at once, or nobody ever does."""
    rng = np.random.default_rng(seed)
    ends = premises.draw("alike", 400, rng)
    ends[:16] = np.where(np.arange(16) % 2, premises.STEPS, 0)  # as if there were two kinds of units
    return rejects(premises.counted(ends))


def rejects(counts):
    return pl.learn(premises.MODEL, counts, objectives=[premises.ASKED], confidence=0.95).conflict is not None


@pytest.mark.slow
def test_an_unlucky_pilot_does_not_contradict_a_right_model():
    """What the pilot suggests is bet on afterwards, and lost: a pilot is no evidence but for its own few steps."""
    counts = premises.counted(np.where(np.arange(400) % 2, premises.STEPS, 0))
    assert rejects(counts)  # if it goes on so
    games = (is_wrongly_contradicted(seed) for seed in range(size(8, 200)))
    assert not until_refuted(games, rate=0.05).is_refuted
