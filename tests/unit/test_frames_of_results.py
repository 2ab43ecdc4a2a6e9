"""Policies and counts as data frames, which are read again as what they were."""

import numpy as np
import pytest

import plumdp as pl

STUDY = pl.case_study("rover:4,4,2")
COUNTS = pl.simulate(STUDY.model, STUDY.true_point, 200, rng=1, max_steps=20)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_frame_of_counts_has_what_was_counted(kind):
    frame = getattr(COUNTS, f"to_{kind}")()
    again = pl.read_log(STUDY.model, frame, form="counts")
    assert np.array_equal(again.counts.counts, COUNTS.counts)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("given", ["uniform", None])
def test_a_frame_of_a_policy_is_that_policy(kind, given):
    policy = pl.certify(STUDY.model, COUNTS, STUDY.objective, policy=given, memory=False).policy
    frame = getattr(policy, f"to_{kind}")()
    again = pl.certify(STUDY.model, COUNTS, STUDY.objective, policy=frame, memory=False).policy
    assert np.array_equal(again.choice, policy.choice)
    assert given is None or np.allclose(again.weights, policy.weights)
