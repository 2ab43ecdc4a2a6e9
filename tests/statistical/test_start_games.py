"""The whole path from rows to a certificate holds: start, split, table and evidence, played at the truth."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from tiers import size

import plumdp as pl
from plumdp.data.raw_logs import RawLog

ERROR, GAMES = 0.1, size(8, 250)
TICKETS = 10_000
DESK = {
    ("new", "fast"): {"closed": 0.5, "open": 0.38, "lost": 0.1, "strange": 0.02},
    ("new", "slow"): {"closed": 0.4, "open": 0.56, "lost": 0.03, "strange": 0.01},
    ("open", "fast"): {"closed": 0.55, "open": 0.3, "lost": 0.13, "strange": 0.02},
    ("open", "slow"): {"closed": 0.5, "open": 0.46, "lost": 0.04},
    ("strange", "fast"): {"lost": 0.7, "closed": 0.3},
    ("strange", "slow"): {"lost": 0.9, "open": 0.1},
}


def lottery(rng, runs=40):
    """Return runs of two rows, the second of which has one of many numbers, all alike."""
    drawn = rng.integers(1, TICKETS + 1, size=runs)
    rows = [(run, t, drawn[run] if t else 0) for run in range(runs) for t in (0, 1)]
    return pd.DataFrame(rows, columns=["run", "t", "ticket"])


def desk(rng, runs=120):
    rows = []
    for run in range(runs):
        state, t = "new", 0
        while state not in ("closed", "lost"):
            action = str(rng.choice(["fast", "slow"]))
            rows.append((run, t, state, action))
            after = DESK[state, action]
            state, t = str(rng.choice([*after], p=[*after.values()])), t + 1
        rows.append((run, t, state, None))
    return pd.DataFrame(rows, columns=["case", "step", "status", "action"])


def true_value(policy):
    """Return the probability that a policy closes a case; what is done in states that it lacks does not matter here."""
    value = {"closed": 1.0, "lost": 0.0, "new": 0.0, "open": 0.0, "strange": 0.0}
    named = dict(zip(policy.graph.states["status"].tolist(), range(policy.graph.n_states), strict=True))
    for _ in range(200):
        for state in ("new", "open", "strange"):
            number = named.get(state)
            action = None if number is None else policy.action(status=state)
            outcomes = DESK[state, action if action in ("fast", "slow") else "slow"]
            value[state] = sum(chance * value[after] for after, chance in outcomes.items())
    return value["new"]


def plays_lottery(seed):
    """Return whether the chance of the numbers that the first runs name is outside of the bounds."""
    found = pl.start(lottery(np.random.default_rng(seed)))
    named = [int(number) for number in found.model.graph.states["ticket"][:-3] if number]
    asked = f"Pmax=? [ F<=1 {' | '.join(f'ticket={number}' for number in named)} ]"
    certificate = pl.certify(found.model, found.log, asked, confidence=1 - ERROR)
    return not certificate.lower <= len(named) / TICKETS <= certificate.upper


def plays_desk(seed):
    found = pl.start(desk(np.random.default_rng(seed)), goal='status="closed"')
    certificate = pl.certify(found.model, found.log, found.objective, confidence=1 - ERROR)
    return not certificate.lower <= true_value(certificate.policy) <= certificate.upper


@pytest.mark.slow
@pytest.mark.parametrize("play", [plays_lottery, plays_desk])
def test_certificates_of_tables_from_first_runs_hold(play):
    failures = sum(play(seed) for seed in range(GAMES))
    assert binom.sf(failures - 1, GAMES, ERROR) > 1e-3


@pytest.mark.slow
def test_a_planted_split_that_keeps_the_first_runs_as_evidence_is_found(monkeypatch):
    """Each number that the first runs name was seen, so that they seem to be far likelier than they are."""
    monkeypatch.setattr(RawLog, "others", lambda raw, n, **options: raw)
    failures = sum(plays_lottery(seed) for seed in range(4))
    assert failures == 4
