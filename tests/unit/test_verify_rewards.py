"""Rewards with unknown means are verified from sums over their values, and tampering with these is found."""

import json
import shutil
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from flint import arb, ctx, fmpq
from paid_models import COST, machine, runs_of
from support.verified_results import broken_by, witnessed

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


def of_first(part, change):
    """Change number, sum and sum of squares of the first reward in a part of the data."""

    def tamper(witness):
        number, *sums = witness["rewards"][0]["seen"][part]
        new = change(number, *map(Fraction, sums))
        witness["rewards"][0]["seen"][part] = [new[0], *map(str, new[1:])]

    return tamper


def with_trials(witness):
    """Add an interval of the mean of a reward, from its values as if they were trials."""
    paid = witness["rewards"][0]
    polynomial = witness["classes"][paid["class"]][paid["member"]]
    trials = [[paid["class"], [paid["member"]]]]
    item = {"polynomial": polynomial, "trials": trials, "lower": 0.1, "upper": 1.0}
    witness["set"]["intervals"]["list"][0] = item


TAMPERING = {
    "more than one each": ("counts", of_first("all", lambda n, x, y: (n, n + 1, y))),
    "squares above their roots": ("counts", of_first("all", lambda n, x, y: (n, x, x + 1))),
    "a variance below zero": ("counts", of_first("all", lambda n, x, y: (n, x, x * x / n - Fraction(1, 1000)))),
    "a pilot with more than all data": ("counts", of_first("pilot", lambda n, x, y: (n + 10**6, x, y))),
    "values between moments that cannot be": (
        "counts",
        of_first("moment 1", lambda n, x, y: (n, x + n - x, x + n - x)),
    ),
    "another mean of all values": (
        "counts",
        of_first("all", lambda n, x, y: (n, x + Fraction(n, 20), y + Fraction(n, 20))),
    ),
    "another mean of early values": ("bets", of_first("moment 0", lambda n, x, y: (n, x / 2, y / 2))),
    "values that vary more": ("counts", of_first("all", lambda n, x, y: (n, x, y + (x - y) / 4))),
    "values of another class": ("bets", lambda w: w["rewards"][0].update({"class": w["rewards"][1]["class"] - 1})),
    "the other member": ("bets", lambda w: w["rewards"][0].update(member=1 - w["rewards"][0]["member"])),
    "a third member": ("counts", lambda w: w["rewards"][0].update(member=2)),
    "a class that is not there": ("counts", lambda w: w["rewards"][0].update({"class": 99})),
    "a part that is missing": ("counts", lambda w: w["rewards"][0]["seen"].pop("pilot")),
    "a sum that is a float": ("counts", lambda w: w["rewards"][0]["seen"]["all"].__setitem__(1, 0.5)),
    "no rewards": ("bets", lambda w: w.pop("rewards")),
    "values as trials": ("set", with_trials),
    "a lower cost": ("values", lambda w: w["chain"]["rows"][0].__setitem__(0, "repair + 1/2")),
}


@pytest.mark.parametrize("kind", TAMPERING)
def test_tampering_is_rejected_in_its_layer(saved, tmp_path, kind):
    layer, change = TAMPERING[kind]
    folder = shutil.copytree(saved, tmp_path / "result")
    assert broken_by(folder, lambda witness, _: change(witness)) == layer
