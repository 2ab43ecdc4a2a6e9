"""Rewards with unknown means are verified from sums over their values, and tampering with these is found."""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from flint import arb, ctx, fmpq
from paid_models import COST, machine, runs_of
from support.tampering import rejected
from support.verified_results import witnessed

import plumdp
from plumdp.decisions import verify
from plumdp_verify.bets import _more

MACHINE = machine()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rewards") / "result"
    runs = pd.DataFrame(runs_of(np.random.default_rng(1), 500))
    counts = plumdp.read_log(MACHINE, runs, columns={"cost": "price"}, sampling="trajectories").counts
    witnessed(folder, COST, model=MACHINE, counts=counts)
    return folder


@pytest.mark.slow
def test_learned_rewards_are_verified_and_their_sums_said_to_be_trusted(saved):
    report = verify(saved)
    assert report.broken is None, report.broken
    assert report.trusted[-1].startswith("the sums of rewards: that values lie within their ranges")
    assert len(json.loads((saved / "witness.json").read_text())["rewards"]) == 2


def test_bets_win_no_more_than_single_values_do():
    """By what each of some random values wins, in balls; if all values are equal, nothing is lost."""
    ctx.prec, rng = 128, np.random.default_rng(2)
    for n in (1, 5, 50):
        values = [Fraction(int(k), 64) for k in rng.integers(0, 65, n)]
        for factors in ((0.7, 1.6), (1.2, 0.9)):
            one, other = map(arb, factors)
            won = sum(((other + ball(x) * (one - other)).log() for x in values), start=arb(0))
            total, mixed = sum(values), sum(x * (1 - x) for x in values)
            coins = ball(total) * one.log() + ball(n - total) * other.log()
            more = _more((exact(total), one), (exact(n - total), other), exact(mixed)) if mixed else arb(0)
            assert not coins + more > won
            assert more >= 0
            assert n > 1 or not mixed or (coins + more - won).contains(0)


def exact(number):
    return fmpq(Fraction(number).numerator, Fraction(number).denominator)


def ball(number):
    return arb(exact(number))


def test_tampering_is_rejected_in_its_layer(saved):
    rejected("rewards", saved)
