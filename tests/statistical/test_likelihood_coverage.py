"""Regions of large likelihood at all times: the exact probability that they ever miss, by dynamic programming."""

from dataclasses import replace

import numpy as np
import pytest
from row_models import row_model
from tiers import size

import plumdp as pl
from plumdp.confidence.evidence import log_evidence
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.space_moments import moments

(p,) = pl.parameters("p")
SPACE = pl.ParameterSpace.unit("p")
COIN = likelihood_table(row_model([[p, 1 - p]], SPACE))
THROWS = size(20, 30)
ERROR = 0.1


def all_evidence(table):
    """Return the bound for each number of heads and of tails."""
    mean, covariance = moments(SPACE)
    found = np.full((THROWS + 1, THROWS + 1), np.nan)
    for heads in range(THROWS + 1):
        for tails in range(THROWS + 1 - heads):
            found[heads, tails] = log_evidence(table, np.array([heads, tails], float), mean, np.linalg.inv(covariance))
    return found


def ever_missed(evidence, chance):
    """Return the probability that ℓ(chance) < evidence + ln error at some time, for an end of the data at any time."""
    alive, missed = np.zeros((THROWS + 1, THROWS + 1)), 0.0
    alive[0, 0] = 1
    for n in range(1, THROWS + 1):
        for heads in range(n + 1):
            tails = n - heads
            mass = (alive[heads - 1, tails] * chance if heads else 0) + (
                alive[heads, tails - 1] * (1 - chance) if tails else 0
            )
            height = heads * np.log(chance) + tails * np.log1p(-chance)
            is_missed = height < evidence[heads, tails] + np.log(ERROR)
            missed += mass * is_missed
            alive[heads, tails] = mass * (not is_missed)
    return missed


@pytest.mark.slow
def test_the_likelihood_of_a_coin_misses_no_more_often_than_it_says_however_the_data_end():
    evidence = all_evidence(COIN)
    misses = [ever_missed(evidence, chance) for chance in (0.01, 0.1, 0.3, 0.5, 0.8, 0.97)]
    assert max(misses) <= ERROR
    assert max(misses) >= ERROR / 20  # it does have power


@pytest.mark.slow
def test_evidence_that_forgets_outcomes_never_seen_misses_too_often():
    forgetful = replace(COIN, group=np.arange(2, dtype=np.int32), is_class=np.ones(2, dtype=np.bool_))
    evidence = all_evidence(forgetful)
    assert max(ever_missed(evidence, chance) for chance in (0.3, 0.5, 0.8, 0.97)) > ERROR
