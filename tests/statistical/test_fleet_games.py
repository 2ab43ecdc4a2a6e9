"""Games of a fleet: how many names on a list are wrong, and how often bounds on unseen units are."""

from dataclasses import replace
from functools import cache
from math import inf, log, nan

import numpy as np
import pytest
from coin_model import COIN
from evidence import until_refuted
from scipy.stats import binom
from tiers import size
from watch_games import COIN_ROWS

import plumdp as pl
from plumdp.data.counts import TransitionCounts
from plumdp.data.seen import Seen
from plumdp.watching.fleets import Won, e_value, won_by
from plumdp.watching.plan import Plan, WatchState
from plumdp.watching.shares import _share, share_worse
from plumdp.watching.units import UnitRow, UnitTable, e_bh

pytestmark = pytest.mark.slow

UNITS, LEVEL = 1024, 1 / 8
FIRST, LAST, NIGHTS = 4, 13, 20
SCALES = np.arange(FIRST, LAST + 1)
OTHERS = np.array([s for s in range(60) if not FIRST <= s <= LAST])


def runs_of_heads(rng):
    """Return how many heads each unit begins with: by itself each has a fair coin, and none ever changes.

    Together, just as many units as are needed for a list have the same run, if any have one of its length.
    """
    weights = 0.5 ** (OTHERS + 1.0)
    runs = rng.choice(OTHERS, size=UNITS, p=weights / weights.sum())
    chosen = int(rng.random() // (0.9 * LEVEL / 2))  # each unit is chosen with probability 2^-(s + 1)
    if chosen < len(SCALES):
        scale = int(SCALES[chosen])
        n = -(-UNITS // (0.9 * LEVEL * 2**scale))
        runs[rng.choice(UNITS, int(n), replace=False)] = scale
    return runs


def lists(rng, nights):
    """Yield whether units are named, night by night, of tests that double with heads and end with tails."""
    runs = runs_of_heads(rng)
    for n in range(1, NIGHTS):
        values = {is_up: e_value(Won(n * log(2) if is_up else -inf, 1), nights) for is_up in (True, False)}
        yield bool(e_bh([values[is_up] for is_up in (runs >= n).tolist()], LEVEL))


def test_at_each_night_that_was_fixed_lists_are_wrong_no_more_often_than_the_level():
    """All units are as they were, so that each name is wrong."""
    rng, games = np.random.default_rng(1), size(150, 3000)
    named = np.array([[*lists(rng, "unlinked")] for _ in range(games)])
    assert named.any(axis=0).sum() > 3
    assert (named.mean(axis=0) <= LEVEL + 3 * np.sqrt(LEVEL / games)).all()


def test_at_a_night_chosen_by_looking_lists_are_wrong_no_more_often_than_the_level():
    rng = np.random.default_rng(2)
    assert not until_refuted((any(lists(rng, "any")) for _ in range(size(60, 2000))), rate=LEVEL).is_refuted


def test_units_that_are_linked_and_said_not_to_be_are_found():
    """A planted error: the tests of the night are taken, though past heads of some units tell of those of others."""
    rng = np.random.default_rng(3)
    assert until_refuted((any(lists(rng, "unlinked")) for _ in range(200)), rate=LEVEL).is_refuted


def stopped(rng, nights=16, n=5):
    """Return the e-value of a unit as its reference says, which stops once its sum over starts looks large."""
    half = np.array([0.5, 0.5])
    state = WatchState.begin(Plan(COIN_ROWS, 1e9, (half, half), compared="given"))
    for night in range(1, nights + 1):
        heads = int(rng.binomial(n, 0.5))
        state = state.add(f"{night}", "", Seen(np.array([heads, n - heads])), None)
        if state.sums["rows"] >= log(1.3 * night):
            break
    return e_value(won_by(state, "rows"), "fixed")


def test_a_unit_that_stops_because_of_what_it_showed_is_named_no_more_often_than_the_level():
    values = np.array([stopped(np.random.default_rng(seed)) for seed in range(size(40, 200))])
    assert values.mean() + 3 * values.std() / np.sqrt(len(values)) <= 1
    assert np.mean(values >= 2) <= 0.5  # at which one of one unit is named at a level of one half


# Unseen units


def is_missed(rng, *, n, true, failing, error, apart):
    """Return whether a bound on the share of bad units is wrong, if all certificates fail together or none does."""
    n_bad = 0 if rng.random() < failing else int(rng.binomial(n, true))
    return _share(n_bad, n, error, failing, apart=apart, looked=False) < true


def test_bounds_on_unseen_units_hold_if_certificates_fail_together():
    rng = np.random.default_rng(4)
    for failing, error in ((0.05, 0.01), (0.004, 0.1), (0.001, 0.05)):
        games = (
            is_missed(rng, n=200, true=0.3, failing=failing, error=error, apart=False) for _ in range(size(300, 4000))
        )
        assert not until_refuted(games, rate=error).is_refuted
    assert _share(0, 200, 0.05, 0.001, apart=False, looked=False) < 0.1


def test_certificates_that_fail_together_and_are_said_not_to_are_found():
    """A planted error: the bound for certificates that fail one by one, with a fault that all share."""
    rng = np.random.default_rng(5)
    games = (is_missed(rng, n=200, true=0.3, failing=0.05, error=0.01, apart=True) for _ in range(4000))
    assert until_refuted(games, rate=0.01).is_refuted


def misses_somewhere(rng, *, apart, looked, n=100, error=0.2, failing=0.001):
    """Return whether the bound is wrong at the number that is chosen by looking; values are uniform."""
    values = np.sort(rng.random(n))
    shares = [_share(k, n, error, failing, apart=apart, looked=looked) for k in range(n)]
    return any(share < value for share, value in zip(shares, values, strict=True))  # k are below the k-th value


@pytest.mark.parametrize("apart", [True, False])
def test_bounds_at_a_number_chosen_by_looking_hold(apart):
    rng = np.random.default_rng(6)
    games = (misses_somewhere(rng, apart=apart, looked=True) for _ in range(size(100, 1000)))
    assert not until_refuted(games, rate=0.2).is_refuted


def test_a_number_that_is_chosen_by_looking_and_said_to_be_fixed_is_found():
    """A planted error."""
    rng = np.random.default_rng(7)
    assert until_refuted((misses_somewhere(rng, apart=True, looked=False) for _ in range(300)), rate=0.2).is_refuted


def test_bounds_of_units_that_fail_one_by_one_hold():
    """Each certificate fails by itself, and then hides a bad unit."""
    rng = np.random.default_rng(8)

    def game(n=150, true=0.3, failing=0.05, error=0.1):
        bad = (rng.random(n) < true) & (rng.random(n) >= failing)
        return _share(int(bad.sum()), n, error, failing, apart=True, looked=False) < true

    assert not until_refuted((game() for _ in range(size(300, 4000))), rate=0.1).is_refuted


def table_of(ends, direction="max", error=1e-4):
    """Return a table of units with these certified lower (upper) ends."""
    sides = [(end, inf) if direction == "max" else (-inf, end) for end in ends]
    rows = tuple(UnitRow(f"{i}", "certified", *each, 1.0, 0, "", 0.0, "") for i, each in enumerate(sides))
    return UnitTable(rows, "", direction, 1 - error, "each", error, ())


def is_unreached(rng, *, failing, apart, direction="max", n=60, share=0.3):
    """Return whether the number for a share is wrong, of units with uniform values and ends that are the values."""
    ends = rng.random(n) if apart or rng.random() >= failing else np.full(n, 1.0 if direction == "max" else 0.0)
    found = share_worse(table_of(ends, direction, failing), share=share, confidence=0.5, apart=apart)
    return (found.than if direction == "max" else 1 - found.than) > share


@pytest.mark.parametrize("direction", ["max", "min"])
@pytest.mark.parametrize("apart", [True, False])
def test_what_a_share_of_unseen_units_reaches_holds(apart, direction):
    rng = np.random.default_rng(8)
    games = (is_unreached(rng, failing=1e-3, apart=apart, direction=direction) for _ in range(size(200, 2000)))
    assert not until_refuted(games, rate=0.5).is_refuted


@pytest.mark.parametrize(("n", "share", "confidence"), [(60, 0.3, 0.5), (200, 0.1, 0.95), (45, 0.07, 0.9)])
def test_the_end_of_a_share_is_the_last_that_the_binomial_distribution_allows(n, share, confidence):
    """Of n draws that are worse with the probability of the share, at most k are with one of at most the error."""
    ends = np.random.default_rng(9).permutation(n).astype(float)
    found = share_worse(table_of(ends, error=1e-9), share=share, confidence=confidence, apart=True)
    k = int(found.than)  # ends below it
    assert found.n_worse == k
    assert binom.cdf(k, n, share) <= 1 - confidence < binom.cdf(k + 1, n, share)


def test_units_without_bounds_are_the_worst():
    ends = [nan] * 5 + [1.0] * 55
    assert share_worse(table_of(ends), share=0.3, confidence=0.5).than == 1.0
    nothing = share_worse(table_of([nan] * 60), share=0.3)
    assert nothing.than == -inf
    assert "Too few units have bounds" in nothing.sentence


# What is claimed of many units together, at an error of one half, of 200 fleets of 200 units


N, FLEETS, TRIES, ASKED = 200, 200, 24, 0.6
RATES = {  # values and their probabilities: next to what is asked, where every yes is wrong, or spread
    "hard": (np.array([np.nextafter(ASKED, 0)]), np.ones(1)),
    "spread": (np.array([0.05, 0.3, np.nextafter(ASKED, 0), 0.9, 0.99]), np.array([0.1, 0.2, 0.3, 0.2, 0.2])),
}


@cache
def certified(together):
    """Return a table of units with each number of heads: 25 certificates are made for 200 units."""
    units = {f"{i}": TransitionCounts(COIN.graph, tosses(i % (TRIES + 1)), "adaptive") for i in range(N)}
    return pl.certify_each(COIN, units, f'P>={ASKED} [ F "heads" ]', together=together, confidence=0.5)


def tosses(heads):
    into_heads = np.array([COIN.graph.states["x"][state] == 1 for state in COIN.graph.successor.tolist()])
    is_toss = np.arange(len(into_heads)) < 2
    return np.where(is_toss, np.where(into_heads, heads, TRIES - heads), 0)


def fleets(together, name, seed, n=FLEETS):
    """Yield the rates of fleets of units, and their tables."""
    table, rng, (values, chances) = certified(together), np.random.default_rng(seed), RATES[name]
    of_heads = {int(row.unit) % (TRIES + 1): row for row in table.rows}
    for _ in range(n):
        rates = rng.choice(values, N, p=chances)
        yield rates, replace(table, rows=tuple(of_heads[heads] for heads in rng.binomial(TRIES, rates).tolist()))


def are_wrong(rates, rows):
    """Return which rows say something that is wrong: of the bounds, or of what was asked."""
    wrong_verdict = {"yes": rates < ASKED, "no": rates >= ASKED}
    is_out = np.array([not row.lower <= rate <= row.upper for rate, row in zip(rates, rows, strict=True)])
    return is_out | [row.verdict in wrong_verdict and wrong_verdict[row.verdict][i] for i, row in enumerate(rows)]


def wrong_among_rows(name):
    return [are_wrong(rates, table.rows).mean() for rates, table in fleets("each", name, 11)]


def wrong_somewhere(name):
    return [are_wrong(rates, table.rows).any() for rates, table in fleets("all", name, 12)]


def wrong_among_names(name):
    """Return the share of wrong verdicts of each list, none counting as no wrong one."""
    shares = []
    for rates, table in fleets("rate", name, 13):
        is_wrong = are_wrong(rates, table.rows) & [row.is_verdict for row in table.rows]
        shares.append(is_wrong.sum() / max(len(table.named), 1) if table.named else 0.0)
    return shares


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("wrong", [wrong_among_rows, wrong_somewhere, wrong_among_names])
def test_what_is_said_of_many_units_together_is_wrong_no_more_often_than_stated(wrong, name):
    assert np.mean(wrong(name)) <= 0.5


def worst_table(rng, error, n_wrong):
    """Return a table in which each row is wrong with this probability, and so many are at once, or none."""
    is_wrong = np.zeros(N, dtype=bool)
    if rng.random() < error * N / n_wrong:
        is_wrong[rng.choice(N, n_wrong, replace=False)] = True
    rows = tuple(UnitRow("", "yes" if wrong else "inconclusive", 0.0, 1.0, 1.0, 0, "", 0.0, "") for wrong in is_wrong)
    return UnitTable(rows, "", "max", 0.5, "rate", error, ())


@pytest.mark.parametrize(
    ("error", "n_wrong", "what", "is_kept"),
    [
        (0.5, N, lambda table: np.mean([row.is_verdict for row in table.rows]), True),  # each
        (0.5 / N, 1, lambda table: any(row.is_verdict for row in table.rows), True),  # all
        (0.5 / 20, N // 20, lambda table: bool(table.named), True),  # rate
        (0.5 / 10, N // 10, lambda table: bool(table.named), True),  # a smaller list, of rows that are wrong more often
        (0.5 / 5, N // 20, lambda table: any(row.is_verdict for row in table.rows), False),  # planted: no list at all
    ],
)
def test_rows_that_are_wrong_together_are_so_no_more_often_than_stated(error, n_wrong, what, is_kept):
    """All verdicts are wrong, and come together in the way that is worst, so that rates are those stated."""
    rng, games = np.random.default_rng(16), 400
    rate = np.mean([what(worst_table(rng, error, n_wrong)) for _ in range(games)])
    assert (rate <= 0.5 + 3 * np.sqrt(0.25 / games)) == is_kept


def share_given(table, values, chances, **options):
    """Return whether the value that all but a share of units reach is wrong; values of units are their rates."""
    return chances[values < share_worse(table, share=0.4, **options).than].sum() > 0.4


def number_given(table, values, chances, **options):
    found = share_worse(table, 0.5, **options)
    return found.share < chances[values < 0.5].sum()


def number_chosen(table, values, chances, **options):
    """Return whether the bound is wrong at any number."""
    found = [(share_worse(table, than, looked=True, **options).share, than) for than in values.tolist()]
    return any(share < chances[values < than].sum() for share, than in found)


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("is_missed", [share_given, number_given, number_chosen])
def test_what_is_said_of_unseen_units_is_wrong_no_more_often_than_stated(is_missed, apart):
    """Rows are those that hold at once, as others fail too often to bound a share."""
    tables = (table for _, table in fleets("all", "spread", 14))
    assert np.mean([is_missed(table, *RATES["spread"], confidence=0.5, apart=apart) for table in tables]) <= 0.5


def values_under(policies, rng, n=N):
    """Return the values of units under policies, one of which is best for each of them: all are 1 or 0."""
    best = rng.integers(policies, size=n)
    return (best[:, None] == np.arange(policies)).astype(float)


def share_of_best(chosen_on, bounded_on):
    """Return the bound on the share of units that a policy does not suit, which was chosen as the best on average."""
    policy = int(chosen_on.mean(axis=0).argmax())
    return share_worse(table_of(bounded_on[:, policy], error=1e-6), 0.5, confidence=0.5).share


def test_a_policy_that_was_chosen_on_some_units_has_a_bound_on_others_and_none_on_these():
    """Each of 50 policies suits one unit in 50. To choose by the units that are bounded is the planted error."""
    rng = np.random.default_rng(15)
    on_others = [share_of_best(values_under(50, rng), values_under(50, rng)) for _ in range(FLEETS)]
    on_same = [share_of_best(units, units) for units in (values_under(50, rng) for _ in range(FLEETS))]
    assert np.mean(np.array(on_others) < 0.98) <= 0.5
    assert np.mean(np.array(on_same) < 0.98) > 0.9


def test_units_whose_policies_have_a_cause_in_common_speak_of_units_with_that_cause():
    """One season of two decides what every certificate recommends: 1 or 0. So half of all units are bad, but none is
    in one of two samples, and the bound says so. It is about units of that season, as it states."""
    found = share_worse(table_of([1.0] * N, error=1e-6), 0.5, confidence=0.95)
    assert found.share < 0.5
    assert any("such as a season, is the same for units that were not looked at" in each for each in found.assumptions)
    given = replace(table_of([1.0] * N, error=1e-6), under="given")
    about = share_worse(given, 0.5, confidence=0.95)
    assert "under this policy" in about.sentence
    assert not any("season" in each for each in about.assumptions)
    assert any("chosen before looking at these units" in each for each in about.assumptions)
