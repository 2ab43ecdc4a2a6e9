"""Certificates of three objectives from one set hold jointly, also if an adversary stops at the worst and reports it.

Three coins, and three objectives that are worth the chance of one coin each: as far from each other as objectives can
be, so that dividing the error among them is needed. The adversary knows the truth, throws any coin as often as it
likes, and stops when the bracket that it will report is wrong; so a repetition is missed if, at any number of throws of
any coin, a half-space excludes the truth. Seeds are fixed, so that a test passes always or never.
"""

from functools import cache
from math import log

import numpy as np
import pytest
from bet_tables import place_bets
from coverage_game import critical_value
from row_models import listed
from shorthand import certify_all
from tiers import size

import plumdp as pl
from plumdp.confidence.estimates import SPACE_AS_DATA, information, law_of_pilot, law_of_space
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.data.counts import Pilot

pytestmark = pytest.mark.slow

ERROR = 0.1
HALF_SPACES = 0.8 * ERROR  # what half-spaces have of a certificate's error
NAMES, TRUTH = ("p", "q", "r"), np.array([0.5, 0.2, 0.08])
TEXTS = [f'Pmax=? [ F "{name}" ]' for name in NAMES]
N_REPETITIONS, N_PILOT, N_MAIN = size(400, 1000), 100, 1500


def three_coins():
    """Return a model whose action decides which of three coins is thrown; each has a label for its heads."""
    coins = dict(zip(NAMES, pl.parameters(*NAMES), strict=True))

    rows = {name: [(f, i + 1), (1 - f, 4)] for i, (name, f) in enumerate(coins.items())}
    return listed({0: rows}, " ".join(NAMES), labels={name: i + 1 for i, name in enumerate(NAMES)})


MODEL = three_coins()
TABLE = likelihood_table(MODEL)


def counts_of(heads, throws):
    """Return counts (n_transitions) of so many heads of each coin (3) in so many throws (3)."""
    found = np.zeros(MODEL.graph.n_transitions, dtype=np.int64)
    for choice, coin in enumerate(NAMES):
        assert MODEL.graph.action_names[MODEL.graph.action[choice]] == coin
        first = MODEL.graph.first_transition[choice]
        found[first : first + 2] = heads[choice], throws[choice] - heads[choice]
    return found


@cache
def throws():
    """Return heads of each coin in the pilot (repetitions, 3), and throw by throw after it (repetitions, 3, N_MAIN)."""
    rng = np.random.default_rng(1)
    pilot = rng.binomial(N_PILOT, TRUTH, (N_REPETITIONS, 3))
    return pilot, rng.random((N_REPETITIONS, 3, N_MAIN)) < TRUTH[:, None]


@cache
def processes(share):
    """Return what bets have won at the truth (repetitions, 3, 2, N_MAIN), if each half-space has such an error."""
    pilots, heads = throws()
    won = np.empty((N_REPETITIONS, 3, 2, N_MAIN))
    for i, (pilot, thrown) in enumerate(zip(pilots, heads, strict=True)):
        seen = TABLE.pool(counts_of(pilot, [N_PILOT] * 3))
        law = law_of_pilot(TABLE, seen, law_of_space(MODEL))
        ahead = N_MAIN / N_PILOT * information(TABLE, seen, law.mean) + SPACE_AS_DATA * law_of_space(MODEL).precision
        for coin in range(3):
            for side in (0, 1):
                bets = place_bets(TABLE, law.mean, ahead, np.eye(3)[coin], error=share, side=1 - 2 * side)
                won[i, coin, side] = np.cumsum(np.where(thrown[coin], *gains(bets, coin)))
    return won


def gains(bets, coin):
    """Return what a bet gains on heads and on tails of a coin: ln e - ln Z at the truth."""
    (heads,), (tails,) = (np.flatnonzero(TABLE.coefficients[:, coin] == slope) for slope in (1, -1))
    mean = bets[heads] * TRUTH[coin] + bets[tails] * (1 - TRUTH[coin])
    return log(bets[heads] / mean), log(bets[tails] / mean)


def missed(share):
    """Return in which repetitions a half-space at such an error ever excludes the truth."""
    return (processes(share) >= -log(share)).any(axis=(1, 2, 3))


def test_brackets_of_three_objectives_hold_jointly_against_an_opponent():
    found = missed(HALF_SPACES / 6).sum()
    assert 0 < found < critical_value(N_REPETITIONS, HALF_SPACES)


def test_an_error_that_is_not_divided_among_objectives_is_found():
    assert missed(HALF_SPACES / 2).sum() >= critical_value(N_REPETITIONS, HALF_SPACES)


def test_certificates_miss_only_where_the_game_says_so():
    """At the worst moment of the repetitions that come closest; likelihood and strips are part of the set as well."""
    pilots, heads = throws()
    won = processes(HALF_SPACES / 6)
    worst = won.max(axis=(1, 2, 3)).argsort()[-12:]
    n_missed = 0
    for i in worst.tolist():
        throw = int(won[i].max(axis=(0, 1)).argmax()) + 1
        pilot = Pilot(counts_of(pilots[i], [N_PILOT] * 3), ratio=N_MAIN / N_PILOT)
        main = counts_of(heads[i, :, :throw].sum(axis=1), [throw] * 3)
        counts = pl.TransitionCounts(MODEL.graph, pilot.counts + main, "adaptive", pilot)
        found = certify_all(MODEL, counts, TEXTS, confidence=1 - ERROR)
        for coin, each in enumerate(found):
            assert each.policy.action(at=0) == NAMES[coin]
            assert len(each.rests_on.jointly) == 2
            if not each.lower <= TRUTH[coin] <= each.upper:
                n_missed += 1
                assert won[i, coin, :, :throw][:, -1].max() >= log(6 / HALF_SPACES) - 1e-6
    assert n_missed > 0  # otherwise nothing was looked at
