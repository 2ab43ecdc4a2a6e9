"""The evidence from below: never above quadrature, not far below it, and finite where outcomes were never seen."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import inf, log

import numpy as np
import pytest
from bet_tables import place_bets
from flint import acb, arb, ctx
from row_models import row_model
from scipy.special import logsumexp
from tiers import size

import plumdp as pl
from plumdp.confidence.bets import half_space
from plumdp.confidence.estimates import (
    SPACE_AS_DATA,
    estimate,
    estimate_inside,
    find_estimate,
    information,
    law_of_pilot,
    law_of_space,
    with_pseudo_counts,
)
from plumdp.confidence.evidence import curvature_above, log_evidence
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.space_moments import moments

p, q = pl.parameters("p", "q")
LINE, SQUARE = pl.ParameterSpace.unit("p"), pl.ParameterSpace.unit("p", "q")
COIN = likelihood_table(row_model([[p, 1 - p]], LINE))
COINS = [[p, 1 - p], [q, 1 - q], [(p + q) / 2, 1 - (p + q) / 2]]
FACTORS = [[p * (1 - q**2), p * q**2, 1 - p], [q**2, 2 * q * (1 - q), (1 - q) ** 2]]


def space_prior(space):
    mean, covariance = moments(space)
    return mean, np.linalg.inv(covariance)


def quadrature(table, seen, mean, precision, points, cell):
    """Return the logarithm of the evidence: a sum over a grid of points (n, d), where no outcome of a group that was
    seen has a negative probability."""
    values = table.constants + points @ table.coefficients.T
    is_seen = (np.bincount(table.group, seen, len(table.is_class)) > 0)[table.group]
    points, values = (part[(values[:, is_seen] > 0).all(axis=1)] for part in (points, values))
    off = points - mean
    density = np.linalg.slogdet(precision / (2 * np.pi))[1] / 2 - ((off @ precision) * off).sum(axis=1) / 2
    return logsumexp(np.log(values[:, seen > 0]) @ seen[seen > 0] + density) + np.log(cell)


def on_a_line(seen, mean, precision, n=400_000):
    points = ((np.arange(n) + 0.5) / n)[:, None]
    return quadrature(COIN, np.array(seen, dtype=float), mean, precision, points, 1 / n)


def integral(heads, tails, mean, precision, n=60):
    """Return the logarithm of the evidence of a coin in ball arithmetic, by integrals over pieces about its largest
    part; what is left out makes it smaller."""
    share = (heads + 1) / (heads + tails + 2)
    spread = (share * (1 - share) / (heads + tails + 1)) ** 0.5
    top = heads * arb(share).log() + tails * (1 - arb(share)).log()

    def density(x, _):
        return (heads * x.log() + tails * (1 - x).log() - top - arb(precision) * (x - arb(mean)) ** 2 / 2).exp()

    ends = [x for k in range(-n, n + 1) if 1e-12 < (x := share + k * spread * 12 / n) < 1 - 1e-15]
    pieces = [acb.integral(density, acb(a), acb(b), rel_tol=arb(2) ** -60) for a, b in pairwise(ends)]
    return sum(pieces, acb(0)).real.log() + top + (arb(precision) / (2 * arb.pi())).log() / 2


@pytest.mark.parametrize(
    "counts", [(10, 10), (999, 1), (10**6, 3 * 10**5), (10**9, 10**3), (10**12, 10**4)], ids=lambda counts: f"{counts}"
)
def test_evidence_is_below_the_integral_also_where_floats_are_coarse(counts):
    """ℓ has 12 digits before the point in the last case; the integral is enclosed by ball arithmetic with 200 bits."""
    before, ctx.prec = ctx.prec, 200
    try:
        exact = integral(*counts, 0.5, 12.0)
        found = log_evidence(COIN, np.array(counts, dtype=float), np.array([0.5]), np.array([[12.0]]))
        assert arb(found) < exact
        assert arb(found) > exact - 0.5
    finally:
        ctx.prec = before


def in_the_plane(table, seen, mean, precision, n=700):
    low, high = -1.5, 2.5  # the prior goes on beyond the space, and counts where only a sum was seen
    axis = low + (np.arange(n) + 0.5) * (high - low) / n
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    return quadrature(table, seen, mean, precision, points, ((high - low) / n) ** 2)


@pytest.mark.parametrize("heads", [0, 1, 3, 10, 100, 500, 990, 1000])
def test_evidence_of_a_coin_is_just_below_quadrature(heads):
    mean, precision = space_prior(LINE)
    seen = np.array([heads, 1000 - heads], dtype=float)
    exact = on_a_line(seen, mean, precision)
    assert exact - 0.5 <= log_evidence(COIN, seen, mean, precision) <= exact + 1e-6


@pytest.mark.parametrize("n", [1, 2, 5, 40, 400, 4000])
def test_a_coin_that_never_shows_one_side_has_evidence(n):
    mean, precision = space_prior(LINE)
    for seen in (np.array([n, 0.0]), np.array([0.0, n])):
        exact = on_a_line(seen, mean, precision)
        assert exact - 0.5 <= log_evidence(COIN, seen, mean, precision) <= exact + 1e-6


@pytest.mark.slow
def test_evidence_with_the_prior_of_a_pilot_is_just_below_quadrature():
    """The pilot is a twentieth of the data, and may not have seen one of the sides."""
    rng = np.random.default_rng(5)
    for chance in (0.5, 0.1, 0.01):
        for _ in range(5):
            mean, precision = space_prior(LINE)
            pilot = np.array([k := float(rng.binomial(50, chance)), 50 - k])
            start, pseudo = estimate_inside(COIN, pilot, prior=(mean, precision))
            unseen = np.where(pilot > 0, pilot, pseudo)
            prior = start, information(COIN, unseen, start) + precision
            seen = np.array([k := float(rng.binomial(950, chance)), 950 - k])
            exact = on_a_line(seen, *prior)
            assert exact - 0.8 <= log_evidence(COIN, seen, *prior) <= exact + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("rows", [COINS, FACTORS], ids=["coins", "factors"])
def test_evidence_in_the_plane_is_never_above_quadrature(rows):
    table = likelihood_table(row_model(rows, SQUARE))
    rng, missed = np.random.default_rng(2), []
    mean, precision = space_prior(SQUARE)
    for _ in range(size(6, 15)):
        counts = rng.multinomial(int(400 ** rng.random()), rng.dirichlet(np.ones(len(table.outcomes))))
        counts[rng.random(len(counts)) < 0.3] = 0
        if counts.any():
            seen = counts.astype(float)
            exact = in_the_plane(table, seen, mean, precision)
            missed.append(exact - log_evidence(table, seen, mean, precision))
    assert min(missed) >= -1e-3
    assert max(missed) < 2.5
    assert np.median(missed) < 0.6


def test_without_the_check_of_outcomes_never_seen_evidence_is_too_large():
    """The mutant forgets that tails may not have a negative probability; quadrature over the space tells."""
    mean, precision = space_prior(LINE)
    forgetful = replace(COIN, group=np.arange(2, dtype=np.int32), is_class=np.ones(2, dtype=np.bool_))
    seen = np.array([1000.0, 0.0])
    exact = on_a_line(seen, mean, precision)
    assert log_evidence(COIN, seen, mean, precision) <= exact
    assert log_evidence(forgetful, seen, mean, precision) > exact + 1


def test_a_parameter_never_seen_is_averaged_out():
    """What was seen of p alone has the evidence of a coin, whatever else there is."""
    table = likelihood_table(row_model(COINS, SQUARE))
    seen = np.where([f in (p, 1 - p) for f in table.outcomes], 100.0, 0.0)
    found = log_evidence(table, seen, *space_prior(SQUARE))
    assert found == pytest.approx(log_evidence(COIN, np.array([100.0, 100.0]), *space_prior(LINE)), abs=1e-6)


def test_a_parameter_that_is_split_in_two_changes_nothing_but_the_prior():
    """With q + r in place of p, the prior of the sum is that of p; the rest of it is averaged out."""
    r, s = pl.parameters("r", "s")
    table = likelihood_table(row_model([[r + s, 1 - r - s]], pl.ParameterSpace.simplex("r", "s")))
    mean, covariance = moments(pl.ParameterSpace.simplex("r", "s"))
    of_sum = np.array([mean.sum()]), np.array([[1 / covariance.sum()]])
    for seen in (np.array([700.0, 300.0]), np.array([60.0, 0.0])):
        found = log_evidence(table, seen, mean, np.linalg.inv(covariance))
        assert found == pytest.approx(log_evidence(COIN, seen, *of_sum), abs=1e-6)


def test_nothing_seen_and_nothing_unknown_have_the_evidence_of_their_numbers():
    mean, precision = space_prior(LINE)
    assert log_evidence(COIN, np.zeros(2), mean, precision) == 0


def test_fifty_parameters_and_rare_outcomes_have_finite_evidence():
    names = [f"w{i}" for i in range(50)]
    weights = pl.parameters(*names)
    rare = [[w / 2000, w / 40, 1 - w / 2000 - w / 40] for w in weights]
    space = pl.ParameterSpace.unit(*names)
    table = likelihood_table(row_model(rare, space))
    rng = np.random.default_rng(1)
    law = np.array([float(f.evaluate(dict.fromkeys(names, Fraction(3, 10)))) for f in table.outcomes])
    seen = np.concatenate([rng.multinomial(2000, law[table.group == g]) for g in range(50)]).astype(float)
    assert (seen == 0).any()
    found = log_evidence(table, seen, *space_prior(space))
    values = table.values(estimate(table, seen, pseudo=0.1))[0]
    largest = seen[seen > 0] @ np.log(values[seen > 0])
    assert largest - 150 < found < largest


def test_estimates_of_rare_outcomes_are_maxima_or_none():
    """A coin that always came up heads has none with c = 0, and (N + c)/(N + 2c)-like ones otherwise."""
    seen = np.array([400.0, 0.0])
    assert find_estimate(COIN, seen) is None
    assert find_estimate(COIN, seen, pseudo=1.0) == pytest.approx([400 / 401])
    assert estimate_inside(COIN, seen)[1] == 1
    assert estimate(COIN, np.array([1.0, 1999.0])) == pytest.approx([1 / 2000])


def test_estimates_leave_directions_that_were_not_seen():
    table = likelihood_table(row_model(COINS, SQUARE))
    only = np.where([f in (p, 1 - p) for f in table.outcomes], 10.0**9, 0.0)
    assert estimate(replace(table, middle=np.array([0.2, 0.7])), only) == pytest.approx([0.5, 0.7])
    both = np.where([f in ((p + q) / 2, 1 - (p + q) / 2) for f in table.outcomes], 10.0**9, 0.0)
    assert estimate(replace(table, middle=np.array([0.2, 0.3])), both) == pytest.approx([0.45, 0.55])


@pytest.mark.parametrize(
    "name", ["rover:10,10", "parallel:5", "glider:11,9", "engagement:20", "aircraft:20,10", "betting:25"]
)
def test_case_studies_have_evidence_near_their_largest_likelihood(name):
    study = pl.case_study(name)
    table = likelihood_table(study.model)
    for n in (20, 2000):
        seen = table.pool(pl.simulate(study.model, study.true_point, n, rng=1, max_steps=40).counts)
        point = estimate(table, seen, pseudo=0.1)
        largest = seen[seen > 0] @ np.log(table.values(point)[0][seen > 0])
        assert largest - 30 < log_evidence(table, seen, *space_prior(study.model.space)) < largest + 1


def test_the_factor_of_the_quadratic_bound_is_never_too_small():
    """κ(t) = 2 Σ t^m / (m + 2), a series that is summed here in exact order."""
    t = np.concatenate([np.logspace(-9, -2, 50), np.linspace(0.005, 0.9, 100)])
    exact = 2 * np.array([sum(x**m / (m + 2) for m in range(400, -1, -1)) for x in t])
    assert (curvature_above(t) >= exact).all()
    assert (curvature_above(t) <= exact * (1 + 1e-8)).all()


# Likelihood sets and half-spaces where outcomes or parameters were never seen


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
