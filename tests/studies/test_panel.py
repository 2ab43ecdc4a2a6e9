"""The study of looks that are steps apart: looks have the outcomes that it states, and its sets hold the truth."""

import numpy as np
import pytest
from tiers import size

from studies import panel


@pytest.mark.parametrize("name", ["maintenance, gaps 1 to 3", "illness and death"])
def test_looks_have_the_outcomes_that_the_study_states(name):
    """Of n looks, the share of an outcome is at most 5 standard deviations from a power of single steps."""
    chain = panel.CHAINS[name]
    frame, matrix = chain.log(20_000, np.random.default_rng(1)), chain.matrix()
    for (before, gap), looks in frame.groupby(["x", "gap"]):
        chances, n = np.linalg.matrix_power(matrix, gap)[before], len(looks)
        seen = np.bincount(looks.next_x, minlength=len(chances)) / n
        assert (np.abs(seen - chances) <= 5 * np.sqrt(chances * (1 - chances) / n) + 1e-12).all()
        if chain.is_exact:
            first = np.linalg.matrix_power(matrix, 1)[before, -1]
            share = (looks.after[looks.next_x == chain.last] == 1).sum() / n
            assert abs(share - first) < 5 * (first / n) ** 0.5


@pytest.mark.night
def test_sets_of_looks_hold_the_truth():
    assert panel.misses(panel.CHAINS["panel"], 60, 0.01, range(size(1, 20))) == 0
