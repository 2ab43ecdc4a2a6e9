"""Intervals for a probability: what they are, in exact arithmetic, and that rounding only widens them."""

from fractions import Fraction
from itertools import cycle, product
from math import factorial

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import binom
from tiers import TIER, examples

from plumdp.confidence.binomial import beta_binomial, clopper_pearson, likelihood_interval

METHODS = [clopper_pearson, beta_binomial]
errors = st.floats(1e-12, 0.5)


@st.composite
def counts(draw, most=10**12):
    """Return successes and trials, rare and frequent ones included."""
    trials = draw(st.integers(0, 40) | st.integers(0, most))
    few = draw(st.integers(0, min(trials, 10)))
    return draw(st.sampled_from([few, trials - few]) | st.integers(0, trials)), trials


@pytest.fixture(autouse=True)
def _many_digits():
    before, ctx.prec = ctx.prec, 400
    yield
    ctx.prec = before


def money(k, n, p):
    """Return, exactly, what one unit becomes by betting (i + 1/2) / (j + 1) after i successes in j trials against p."""
    won = [Fraction(2 * i + 1, 2) for i in range(k)] + [Fraction(2 * i + 1, 2) for i in range(n - k)]
    return np.prod(won, initial=Fraction(1)) / (factorial(n) * p**k * (1 - p) ** (n - k))


@given(st.integers(0, 60), st.integers(0, 60), errors)
def test_beta_binomial_ends_are_where_the_money_reaches_one_over_error(successes, failures, error):
    """Products of fractions against the closed form; 1e-10 inside the ends the money is still too little."""
    k, n, goal = successes, successes + failures, 1 / Fraction(error)
    lower, upper = (Fraction(float(end)) for end in beta_binomial(k, n, error))
    assert (lower == 0) == (k == 0)
    assert (upper == 1) == (k == n)
    if k > 0:
        assert money(k, n, lower) >= goal > money(k, n, lower * (1 + Fraction(1, 10**10)))
    if k < n:
        assert money(k, n, upper) >= goal > money(k, n, upper * (1 - Fraction(1, 10**10)))


def log_money(k, n, p):
    k, n = arb(k), arb(n)
    half = arb(1) / 2
    gain = (k + half).lgamma() + (n - k + half).lgamma() - (n + 1).lgamma() - arb.pi().log()
    return gain - k * p.log() - (n - k) * (1 - p).log()


@given(counts(), errors)
def test_beta_binomial_ends_are_outside_for_any_number_of_trials(pair, error):
    """In ball arithmetic with 120 digits, up to 10^12 trials."""
    k, n = pair
    lower, upper = (float(end) for end in beta_binomial(k, n, error))
    goal = (1 / arb(error)).log()
    assert lower == 0 or log_money(k, n, arb(lower)) >= goal
    assert upper == 1 or log_money(k, n, arb(upper)) >= goal
    inside = 1e-10 + 2e-12 / max(upper - lower, 1e-12)  # relative to the width: ends are widened by 1e-12
    lower, upper = lower + inside * (upper - lower), upper - inside * (upper - lower)
    assert k == 0 or log_money(k, n, arb(lower)) < goal
    assert k == n or log_money(k, n, arb(upper)) < goal


@pytest.mark.slow
@settings(max_examples=examples(50))  # ball arithmetic takes its time
@given(counts(10**10), errors)
def test_clopper_pearson_ends_have_tails_of_at_most_half_the_error(pair, error):
    """P(X >= k) at the lower end and P(X <= k) at the upper end, as incomplete beta functions in ball arithmetic."""
    k, n = pair
    lower, upper = (float(end) for end in clopper_pearson(k, n, error))
    assert (lower == 0) == (k == 0)
    assert (upper == 1) == (k == n) or upper > 1 - 1e-11
    least = 0.95 * error / 2 if n <= 10**9 else 0
    if k > 0:
        assert least < arb(lower).beta_lower(k, n - k + 1, True) <= error / 2
    if upper < 1:
        tail = (1 - arb(upper)).beta_lower(n - k, k + 1, True)
        assert tail <= error / 2
        assert tail > least or upper > 1 - 1e-6  # close to 1 the widening by 1e-12 is felt


def tails(k, n, lower, upper):
    """Return P(X >= k) at the lower and P(X <= k) at the upper end, in ball arithmetic that does not cancel."""
    return beta_share(lower, k, n - k + 1) if k else 0, 1 - beta_share(
        upper, k + 1, n - k
    ) if k < n and upper < 1 else 0


def beta_share(p, a, b):
    return arb(p).beta_lower(a, b, True) if p < 0.5 else 1 - (1 - arb(p)).beta_lower(b, a, True)


MANY = [10**9, 10**11, 10**12, 10**12 + 1, 10**14, 10**15, 2**53 + 1, 10**17]
BY_DAY = [10**9, 10**12, 10**12 + 1, 2**53 + 1]


ERRORS = (0.1, 1e-3, 1e-9)
WITH_ERRORS = list(product(MANY, ERRORS)) if TIER == "night" else list(zip(BY_DAY, cycle(ERRORS), strict=False))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "error"), WITH_ERRORS)
def test_clopper_pearson_is_not_too_narrow_for_astronomic_numbers_of_trials(n, error):
    """At 10^9 trials already, SciPy's inverse of the beta function is far off for rare events."""
    for k in (0, 1, 30, 1000, n // 10**4, n // 3, n - n // 4, n - 1000, n):
        lower, upper = (float(end) for end in clopper_pearson(k, n, error))
        assert Fraction(lower) <= Fraction(k, n) <= Fraction(upper)
        assert all(tail <= error / 2 for tail in tails(k, n, lower, upper))
        spread = 2 * np.sqrt(2 * np.log(2 / error)) * np.sqrt((k + 1) / n * ((n - k + 1) / n) / n)
        assert upper - lower <= 1.2 * spread + 20 * np.log(2 / error) / n + 5e-12  # not far from two Gaussian tails


@pytest.mark.parametrize("n", [10**12 + 1, 10**15, 10**18, 2**63 - 1])
@pytest.mark.parametrize("error", [0.1, 1e-3, 1e-9])
def test_beyond_a_million_million_trials_the_ends_have_the_tails_of_chernoff(n, error):
    """N kl(K/N, end) is at least ln(2 / error), so that a tail is at most error / 2; and hardly more."""
    goal = (2 / arb(error)).log()
    for k in (1, 30, 1000, n // 10**4, n // 3, n - n // 4, n - 1000, n - 1):
        lower, upper = (float(end) for end in clopper_pearson(k, n, error))
        for end in (end for end in (lower, upper) if end < 1):
            excess = k * (arb(k) / n / end).log() + (n - k) * (arb(n - k) / n / (1 - arb(end))).log() - goal
            assert excess >= 0
            assert excess < 1e-2 or min(k, n - k) * 10**3 < n  # floats close to 1 are far apart


@pytest.mark.parametrize("n", [*MANY, 10**18, 2**63 - 1])
def test_beta_binomial_ends_are_outside_for_astronomic_numbers_of_trials(n):
    goal = (1 / arb(1e-3)).log()
    for k in (0, 1, 1000, n // 10**6, n // 3, n - n // 4, n - 1000, n - 1, n):
        lower, upper = (float(end) for end in beta_binomial(k, n, 1e-3))
        assert lower == 0 or log_money(k, n, arb(lower)) >= goal
        assert upper == 1 or log_money(k, n, arb(upper)) >= goal


@pytest.mark.parametrize("error", [1e-29, 1e-31, 1e-200])
def test_clopper_pearson_is_not_too_narrow_at_tiny_errors(error):
    ctx.prec = 800
    for k, n in ((9_999_000, 10**7), (3, 10**6), (10, 20)):
        lower, upper = (float(end) for end in clopper_pearson(k, n, error))
        assert all(tail <= error / 2 for tail in tails(k, n, lower, upper))


@given(counts(10**4), errors)
def test_newton_agrees_with_bisection_from_the_plain_formula(pair, error):
    k, n = pair
    level = gammaln(k + 0.5) + gammaln(n - k + 0.5) - gammaln(n + 1) - np.log(np.pi) + np.log(error)

    def is_inside(p):
        return k * np.log(p) + (n - k) * np.log1p(-p) > level

    def end(outside, inside):
        for _ in range(200):
            middle = (outside + inside) / 2
            outside, inside = (outside, middle) if is_inside(middle) else (middle, inside)
        return outside

    best = min(max(k / max(n, 1), 1e-300), 1 - 1e-16)
    lower, upper = beta_binomial(k, n, error)
    assert lower == pytest.approx(end(0, best) if k else 0, abs=3e-12 + 1e-15 * n)
    assert upper == pytest.approx(end(1, best) if k < n else 1, abs=3e-12 + 1e-15 * n)


@given(st.integers(1, 200), st.integers(1, 200), errors)
def test_a_uniform_prior_gives_the_interval_of_robbins(successes, failures, error):
    """With prior Beta(1, 1) it is {p: P(X = k) >= error / (n + 1)} for X binomial (Robbins 1970)."""
    k, n = successes, successes + failures
    radius = np.log((n + 1) / error) + binom.logpmf(k, n, k / n)
    lower, upper = likelihood_interval(k, n, radius)
    assert binom.pmf(k, n, [lower, upper]) == pytest.approx(error / (n + 1), rel=1e-8)
    assert lower < k / n < upper


@pytest.mark.parametrize("method", METHODS)
@given(pair=counts(10**9), error=errors)
def test_intervals_hold_the_observed_share_and_mirror_each_other(method, pair, error):
    k, n = pair
    lower, upper = method(k, n, error)
    assert 0 <= lower <= (k / n if n else 0) <= upper <= 1
    mirrored_lower, mirrored_upper = method(n - k, n, error)
    assert lower == pytest.approx(1 - mirrored_upper, abs=1e-11)
    assert upper == pytest.approx(1 - mirrored_lower, abs=1e-11)


@pytest.mark.parametrize("method", METHODS)
@given(pair=counts(10**9), error=errors)
def test_a_smaller_error_gives_a_wider_interval(method, pair, error):
    lower, upper = method(*pair, [error, error / 2])
    assert lower[1] <= lower[0]
    assert upper[0] <= upper[1]


@pytest.mark.parametrize("method", METHODS)
def test_more_successes_never_lower_an_end(method):
    for n in (1, 7, 100, 10**6):
        k = np.unique(np.linspace(0, n, 50).astype(int))
        lower, upper = method(k, n, 1e-6)
        assert (np.diff(lower) >= 0).all()
        assert (np.diff(upper) >= 0).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("error", [0.999, 1e-100, 1e-300])
def test_extreme_errors_neither_fail_nor_leave_the_unit_interval(method, error):
    n = np.array([0, 1, 1, 2, 1000, 1000, 1000, 10**15])
    k = np.array([0, 0, 1, 1, 0, 1, 999, 10**15 // 3])
    lower, upper = method(k, n, error)
    assert ((lower >= 0) & (lower <= k / np.maximum(n, 1)) & (k / np.maximum(n, 1) <= upper) & (upper <= 1)).all()
    assert (lower[0], upper[0]) == (0, 1)
