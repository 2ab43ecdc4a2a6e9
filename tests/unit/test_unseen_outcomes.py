"""Likelihood sets and half-spaces where outcomes or parameters were never seen: finite, and with the true point."""

from fractions import Fraction
from math import inf, log

import numpy as np
import pytest
from bet_tables import place_bets
from row_models import row_model

import plumdp as pl
from plumdp.confidence.bets import half_space
from plumdp.confidence.estimates import SPACE_AS_DATA, information, law_of_pilot, law_of_space, with_pseudo_counts
from plumdp.confidence.evidence import log_evidence
from plumdp.confidence.likelihood_table import likelihood_table

p, q = pl.parameters("p", "q")
SPACE = pl.ParameterSpace.unit("p", "q")
MODEL = row_model([[p, 1 - p], [q, 1 - q]], SPACE)
TABLE = likelihood_table(MODEL)
ERROR = 0.1


def seen_as(heads_of_p, tails_of_p, heads_of_q, tails_of_q):
    """Return how often each outcome was seen, in the order of the table."""
    counts = {p: heads_of_p, 1 - p: tails_of_p, q: heads_of_q, 1 - q: tails_of_q}
    return np.array([counts[f] for f in TABLE.outcomes], dtype=float)


def both_half_spaces(pilot, seen, gradient):
    """Return the half-spaces on both sides of a direction, as a likelihood set makes them."""
    space = law_of_space(MODEL)
    law = law_of_pilot(TABLE, pilot, space)
    ahead = 9 * information(TABLE, pilot, law.mean) + SPACE_AS_DATA * space.precision
    for side in (1, -1):
        factors = place_bets(TABLE, law.mean, ahead, np.array(gradient), error=ERROR / 2, side=side)
        yield half_space(TABLE, seen, factors, near=law.mean, error=ERROR / 2)


@pytest.mark.parametrize("n", [40, 400, 4000])
@pytest.mark.parametrize("gradient", [(1.0, 0.0), (0.0, 1.0), (-2.0, 1.0)])
def test_a_coin_that_never_shows_one_side_has_half_spaces_and_evidence(n, gradient):
    """The chance of tails is 10^-5; p was thrown in pilot and main data and never came up tails."""
    truth = np.array([1 - 1e-5, 0.5])
    pilot, seen = seen_as(n // 10, 0, n // 20, n // 20), seen_as(n, 0, n // 2, n // 2)
    law = law_of_pilot(TABLE, pilot, law_of_space(MODEL))
    evidence = log_evidence(TABLE, seen, *law)
    assert -inf < evidence
    assert n * log(truth[0]) + n * log(0.5) >= evidence + log(ERROR)
    for found in both_half_spaces(pilot, seen, gradient):
        assert np.isfinite([*found.row, found.offset]).all()
        assert found.row @ truth <= found.offset


UNSEEN = {
    "in the pilot": (seen_as(30, 10, 0, 0), seen_as(300, 100, 250, 250)),
    "in the main data": (seen_as(30, 10, 20, 20), seen_as(300, 100, 0, 0)),
    "in either": (seen_as(30, 10, 0, 0), seen_as(300, 100, 0, 0)),
    "at all": (seen_as(0, 0, 0, 0), seen_as(0, 0, 0, 0)),
}


@pytest.mark.parametrize("where", UNSEEN)
@pytest.mark.parametrize("gradient", [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)])
def test_a_parameter_that_was_never_seen_is_no_reason_to_fail(where, gradient):
    pilot, seen = UNSEEN[where]
    truth = np.array([0.75, 0.5])
    law = law_of_pilot(TABLE, pilot, law_of_space(MODEL))
    likelihood = seen @ np.log(TABLE.values(truth)[0])
    assert likelihood >= log_evidence(TABLE, seen, *law) + log(ERROR) > -inf
    for found in both_half_spaces(pilot, seen, gradient):
        assert np.isfinite([*found.row, found.offset]).all()
        assert found.row @ truth <= found.offset


@pytest.mark.parametrize("where", ["in the main data", "in either", "at all"])
def test_half_spaces_say_nothing_about_a_parameter_without_main_data(where):
    pilot, seen = UNSEEN[where]
    for found in both_half_spaces(pilot, seen, (1.0, 1.0)):
        assert found.row[1] == 0


def test_an_outcome_that_many_rows_share_counts_once_if_it_was_never_seen():
    """Each of forty rows shows p with an offset of its own, and another coin shows q, but neither was ever seen."""
    rows = [[f, 1 - f] for k in range(40) for f in [Fraction(k, 1000) + (1 - Fraction(k, 1000)) * p]]
    table = likelihood_table(row_model([*rows, [q, 1 - q]], SPACE))
    is_rare = table.coefficients.sum(axis=1) > 0
    seen = np.where(is_rare, 0.0, 100.0)
    pseudo = with_pseudo_counts(table, seen, 1.0)[is_rare]
    of_q = table.coefficients[is_rare, table.names.index("q")] != 0
    assert pseudo[of_q] == pytest.approx([1])
    assert pseudo[~of_q] == pytest.approx(np.full(40, 1 / 40))
    assert law_of_pilot(table, seen, law_of_space(row_model([*rows, [q, 1 - q]], SPACE))).mean[0] < 0.001
