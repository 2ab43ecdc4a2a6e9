"""Sizes that are renewed for a pre-specified number of throws know the past and that number alone.

The adversary knows the truth, and ends the data when that is best for him: on plan, early or late. What he can win on
average is found exactly, over all throws of a coin; half-spaces are asked for in games.
"""

from fractions import Fraction
from functools import cache
from math import comb

import numpy as np
import pytest
from coin_model import COIN
from evidence import until_refuted
from tiers import size

from plumdp.confidence import likelihood
from plumdp.confidence.bets import Direction, factors_along
from plumdp.confidence.estimates import law_of_space
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.staged_bets import find_stages
from plumdp.data.counts import Pilot, TransitionCounts
from plumdp.data.pilots import planned_moments

THROWS, GAMES, N_LOOKS = 60, size(10, 2_000), 6
FIRST, LAST, LATER = 4, size(8, 11), 30  # throws of all that there can be
TABLE, SPACE = likelihood_table(COIN), law_of_space(COIN)


def place(heads, planned, error, moments=None):
    """Return counts and bets of throws of a coin, given the heads after each, of a number that was planned."""
    end = len(heads)
    ends = [*(moment for moment in moments or planned_moments(planned) if moment < end), end]
    seen = np.zeros((len(ends), COIN.graph.n_transitions), dtype=np.int64)
    seen[:, 0] = np.asarray(heads)[np.array(ends) - 1]
    seen[:, 1] = ends - seen[:, 0]
    pilot = Pilot(seen[0], moments=tuple(seen[:-1]), lengths=tuple(map(float, ends[:-1])), expected=float(planned))
    counts, near = TransitionCounts(COIN.graph, seen[-1], "adaptive", pilot), np.array([seen[-1, 0] / end])
    return counts, likelihood.place_bets(TABLE, SPACE, near, counts, lambda _: [Direction(np.ones(1))], error)


def steps(heads, planned):
    """Return the steps (S) of the bets that are renewed, on each side."""
    return {each.sign: each.steps[:, 0, 0] for each in place(heads, planned, 0.05)[1].bets.sides}


@pytest.mark.parametrize("end", [5, 30, 200, 399, 400, 401, 4_000])
def test_the_sizes_of_bets_are_the_same_wherever_the_data_end(end):
    heads = (np.random.default_rng(1).random(10**5) < 0.3).cumsum()
    known, found = steps(heads, 400), steps(heads[:end], 400)
    assert len(np.unique(np.abs(known[1]))) > 20  # renewed at most moments
    assert all((found[side] == known[side][: len(found[side])]).all() for side in (1, -1))


@cache
def wealth(throws, planned, moments=None):
    """Return what renewed bets on both sides of a fair coin have made of one, in fractions, given all throws."""
    counts, placed = place(np.cumsum(throws), planned, 0.1, moments)
    total = Fraction(0)
    for of_side in {each.sign: each.steps[:, 0] for each in placed.bets.sides}.values():
        won = Fraction(1)
        for stage, step in zip(find_stages(TABLE, counts, SPACE), of_side, strict=True):
            one, other = map(Fraction, factors_along(TABLE, stage.point, step[None])[0, :2].tolist())
            heads, tails = map(int, stage.outcome_counts[:2])
            won *= one**heads * other**tails / ((one + other) / 2) ** (heads + tails)
        total += won / 2
    return total


def mean(n, worth):
    """Return the average over n throws of a fair coin of what does not depend on their order."""
    firsts = ((1,) * heads + (0,) * (n - heads) for heads in range(n + 1))
    return sum(Fraction(comb(n, sum(throws)), 2**n) * worth(throws) for throws in firsts)


@pytest.mark.slow
@pytest.mark.parametrize("planned", [6, LAST, 100])
def test_no_time_to_end_is_worth_more_than_one(planned):
    """Found backwards from the last throw: at each, the adversary ends the data or goes on."""

    def best(throws):
        here = wealth(throws, planned) if len(throws) > FIRST else Fraction(1)
        if len(throws) == LAST:
            return here
        return max(here, (best((*throws, 0)) + best((*throws, 1))) / 2)

    assert mean(FIRST, best) == 1


@pytest.mark.slow
def test_a_plan_that_is_the_length_of_the_log_is_worth_more_than_one():
    """After 30 throws, whoever ends the log has the bets for 30, and whoever will throw 300 times has those for 300."""

    def worth(*plans):
        def of(first):
            def most(later):
                return max(wealth((*first, *later), planned, (FIRST,)) for planned in plans)

            return mean(LATER - FIRST, most)

        return mean(FIRST, of)

    assert worth(30) == worth(300) == 1
    assert worth(30, 300) > Fraction(11, 10)


@pytest.mark.slow
@pytest.mark.parametrize("error", [0.5, 0.05])
@pytest.mark.parametrize("planned", [10, 60, 600])
def test_the_truth_is_excluded_as_seldom_as_is_promised(planned, error):
    def game(rng):
        heads = (rng.random(THROWS) < 0.5).cumsum()
        off = np.abs(2 * heads - np.arange(1, THROWS + 1)) / np.sqrt(np.arange(1, THROWS + 1))
        looks = {THROWS, *(8 + np.argsort(off[8:])[-N_LOOKS:] + 1).tolist()}
        made = (each.left for end in looks for each in place(heads[:end], planned, error)[1].placed)
        return any(each.row[0] / 2 > each.offset for each in made)

    assert not until_refuted((game(np.random.default_rng([1, i])) for i in range(GAMES)), rate=error).is_refuted
