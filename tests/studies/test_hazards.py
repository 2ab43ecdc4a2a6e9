"""The study of hazard ratios: its units have the risks that it states, and its sets hold them."""

import numpy as np
import pytest
from tiers import size

from studies import hazards


@pytest.mark.parametrize("n_risks", [1, 2])
def test_units_have_the_risks_that_the_study_states(n_risks):
    """Of n months at risk, a share of at most 5 standard deviations from the risk ends with an event."""
    frame = hazards.log_of(20_000, n_risks, np.random.default_rng(1))
    risks = hazards.risks_of(n_risks)[frame.month] * np.where(frame.arm == "treat", hazards.RATIO, 1.0)
    for arm in hazards.ARMS[:2]:
        for months in (frame.month < hazards.SPLIT, frame.month >= hazards.SPLIT):
            rows = months & (frame.arm == arm)
            risk, n = risks[rows].mean(), rows.sum()
            assert abs(frame.next_event[rows].mean() - risk) < 5 * (risk / n) ** 0.5


@pytest.mark.slow
def test_sets_hold_the_truth():
    assert sum(hazards.misses(60, 1, 0.01, seed) for seed in range(size(1, 20))) == 0
