"""Tilted bets are fair, exactly, and no rows that they and the sets of rows allow have values outside of the bracket.

The mean of (1 + x) exp(-p · x) is at most one. In fractions, exp(m) is replaced by its Taylor polynomial of degree 3,
which is below it everywhere, so that the mean of the quotient is at most one as well, and more if anything is wrong.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import factorial, prod

import numpy as np
import pytest
from table_cases import ERRORS, all_batches, draw, make_table, row_of_place
from tiers import size

from plumdp.tables import tilted
from plumdp.tables.bracket import BetMoments, Errors
from plumdp.tables.chain import OpenChain, regular_equations
from plumdp.tables.tilted import RowSets, shape_of, tilted_bounds

# a run is in node 0, then maybe in node 1, and then over; with ties both have one row
TWO_ROWS = make_table([[(1, 0), (2, 1), (3, 2)], [(2, 3), (3, 4)]])
TIED = make_table([[(1, 0), (2, 1), (3, 2)], [(2, 0), (2, 1), (3, 2)]])
CHAINS = {  # true probabilities of places, visits of each row in the pilot and in two batches, and how many are planned
    "two rows": (TWO_ROWS, [Fraction(n, 12) for n in (4, 6, 2, 9, 3)], [(1, 1), (1, 1), (1, 1)], 20),
    "tied rows": (TIED, [Fraction(n, 10) for n in (5, 4, 1)], [(2,), (2,), (2,)], 20),
    "a pilot of one run, and large bets": (TWO_ROWS, [Fraction(n, 12) for n in (2, 1, 9, 6, 6)], [(1, 0), (2, 2)], 4),
}


def taylor(m):
    """Return a number below exp(m)."""
    return sum(m**i / factorial(i) for i in range(4))


def stages_of(table, moments, errors=ERRORS):
    """Return the stages by sign that ``tilted_bounds`` makes of data, and its bounds."""
    seen, make = {}, tilted.tilted_stages

    def made(shape, views, moments, log_error, sign, *args):
        found = make(shape, views, moments, log_error, sign, *args)
        seen[sign] = found[0]
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tilted, "tilted_stages", made)
        bounds = tilted_bounds(table, moments, errors)
    return seen, bounds


def won(table, truth, stage, *, tilt=True):
    """Return at least what the bets of a stage won, in fractions."""
    payoff = [Fraction(float(x)) for x in stage.payoff]
    assert min(payoff) > -1
    rows = row_of_place(table)
    mean = {row: sum(p * x for p, x, r in zip(truth, payoff, rows, strict=True) if r == row) for row in {*rows}}
    factors = [(1 + x) / (taylor(mean[row]) if tilt else 1) for x, row in zip(payoff, rows, strict=True)]
    return prod((f ** int(k) for f, k in zip(factors, stage.counts, strict=True)), start=Fraction(1))


def expectations(name, **options):
    """Return the exact expectation of the product of both sides' bets over all data of a chain."""
    table, truth, visits, planned = CHAINS[name]
    means = {-1: Fraction(0), 1: Fraction(0)}
    for batches in product(*(list(all_batches(table, truth, each)) for each in visits)):
        cumulative = np.cumsum([counts for counts, _ in batches], axis=0)
        ALL[:] = [cumulative[-1]]
        lengths = tuple(float(i + 1) for i in range(len(batches) - 1))
        stages, _ = stages_of(table, BetMoments(tuple(cumulative), lengths, float(planned)))
        chance = prod((each for _, each in batches), start=Fraction(1))
        for sign, of_side in stages.items():
            assert (sum(stage.counts for stage in of_side) == cumulative[-1] - cumulative[0]).all()
            means[sign] += chance * prod((won(table, truth, stage, **options) for stage in of_side), start=Fraction(1))
    return means


LOG_SETS = float(np.log(2 / (ERRORS.rows + ERRORS.ball)))
ALL = []  # all data of the moment, for mutants that look at them


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAINS)
def test_the_expectation_of_tilted_bets_is_at_most_one(name):
    means = expectations(name)
    assert min(means.values()) > 0.5
    assert max(means.values()) <= 1


def test_the_mean_of_one_visit_is_at_most_one_whatever_the_payoffs():
    """Two outcomes with payoffs above -1, of any probability, and with any mean m above -1."""
    for m in (Fraction(n, 50) for n in range(-49, 101)):
        for p in (Fraction(1, 100), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10)):
            a, b = m + (1 - p) * (1 + m) / (2 * p), m - (1 + m) / 2
            assert b > -1
            assert p * a + (1 - p) * b == m
            assert (p * (1 + a) + (1 - p) * (1 + b)) / taylor(m) <= 1


def payoffs_have_seen_all_data(patch):
    aim = tilted.aim_of
    view = {}

    def mistaken(shape, given, *args):
        counts = ALL[0]
        view["all"] = tilted.view_at(shape, BetMoments((counts / 2, counts), (1.0,), 2.0), 1, LOG_SETS)
        return aim(shape, view["all"], *args)

    patch.setattr(tilted, "aim_of", mistaken)
    means_have_seen_all_data(patch)


def means_have_seen_all_data(patch):
    """The middle of the payoffs is that of the frequencies of all data."""
    frequencies = OpenChain.frequencies
    patch.setattr(OpenChain, "frequencies", lambda self, counts: frequencies(self, ALL[0]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "name", "options"),
    [
        (payoffs_have_seen_all_data, "a pilot of one run, and large bets", {}),
        (means_have_seen_all_data, "a pilot of one run, and large bets", {}),
        (lambda patch: None, "a pilot of one run, and large bets", {"tilt": False}),
    ],
)
def test_a_planted_look_ahead_or_a_tilt_left_out_is_found(plant, name, options, monkeypatch):
    plant(monkeypatch)
    assert max(expectations(name, **options).values()) > 1


@pytest.mark.parametrize("name", ["two rows", "tied rows"])
def test_the_mixture_of_a_row_has_the_mean_one_over_the_true_probability(name):
    """The logarithm of the quotient is what the set lacks of the error, plus the distance of the truth."""
    table, truth, (pilot, later, _), _ = CHAINS[name]
    shape, p = shape_of(table), np.array([float(x) for x in truth])
    rows, log_error = row_of_place(table), 3.0
    for before, _ in all_batches(table, truth, pilot):
        means = np.zeros(table.n_places)
        for counts, chance in all_batches(table, truth, [2 * each for each in later]):
            sets = shape.sets(counts, before, log_error)
            for node in table.one_of_each:
                at = np.flatnonzero(rows == table.place[table.chain.first[node]])
                seen = counts[at]
                share = np.where(seen > 0, seen / max(seen.sum(), 1), 1)
                distance = (seen * np.log(share / p[at])).sum()
                means[at] += float(chance) * np.exp(log_error + seen.sum() * np.log(sets.shrink[node]) + distance)
        assert means == pytest.approx(np.ones(table.n_places), rel=1e-6)
        assert (means <= 1).all()


def layered(rng, n_rows=3, n_steps=5):
    """Return a chain that counts steps, with one row for each state, and the true probabilities of places."""
    n = n_rows * n_steps
    leads = [rng.choice(n_rows, size=int(rng.integers(2, 4)), replace=False) for _ in range(n_rows)]
    is_reward, ends = rng.random() < 0.5, [int(rng.integers(2, 4)) if rng.random() < 0.6 else 0 for _ in range(n_rows)]
    rows = []
    for node in range(n):
        step, state = divmod(node, n_rows)
        begin = sum(len(leads[i]) + (ends[i] > 0) for i in range(state))
        row = [
            (n + 1 if step + 1 == n_steps else (step + 1) * n_rows + int(to), begin + i)
            for i, to in enumerate(leads[state])
        ]
        rows.append([*row, *([(n + ends[state] - 2, begin + len(row))] if ends[state] else [])])
    reward = np.tile(rng.uniform(0, 3, n_rows), n_steps) if is_reward else None
    table = make_table(rows, known=(3.0 if is_reward else 1.0, 0.0), reward=reward)
    truth = np.zeros(table.n_places)
    for first in np.unique(row_of_place(table)):
        at = np.flatnonzero(row_of_place(table) == first)
        truth[at] = np.maximum(rng.dirichlet(np.full(len(at), 1.0)), 0.01)
        truth[at] /= truth[at].sum()
    return table, truth


def seen_at(table, truth, rng, visits=(20, 60, 100, 30)):
    """Return data in batches, each row with about so many visits."""
    firsts = np.unique(row_of_place(table)).tolist()
    batches = [draw(table, truth[table.place], {f: rng.integers(1, n + 1) for f in firsts}, rng) for n in visits]
    lengths = np.cumsum(visits).astype(float)
    return BetMoments(tuple(np.cumsum(batches, axis=0)), tuple(lengths[:-1]), float(lengths[-1]))


def tables_allowed(table, truth, moments, rng, errors, n):
    """Yield rows (n_places) that neither the sets nor the bets exclude, many of them at the edge."""
    stages, _ = stages_of(table, moments, errors)
    shape, rows = shape_of(table), row_of_place(table)
    later = moments.counts[-1] - moments.counts[0]
    log_sets = np.log(len(table.one_of_each) / (errors.rows + errors.ball))
    sets = shape.sets(later, moments.counts[0], log_sets)
    seen = {first: np.flatnonzero(rows == first) for first in np.unique(rows)}
    shrink = {table.place[table.chain.first[node]]: sets.shrink[node] for node in table.one_of_each}

    def is_allowed(p):
        for first, at in seen.items():
            visits = max(later[at].sum(), 1.0)
            share = later[at] / visits
            inside = (share * np.log(np.where(share > 0, p[at] / np.where(share > 0, share, 1), 1.0))).sum()
            if inside < np.log(max(shrink[first], 1e-300)):
                return False
        for of_side in stages.values():
            log = 0.0
            for stage in of_side:
                visits = np.bincount(rows, stage.counts, table.n_places)[rows]
                log += (stage.counts * np.log1p(stage.payoff)).sum() - (visits * p * stage.payoff).sum()
            if log >= np.log(1 / errors.of_side):
                return False
        return True

    start = np.zeros(table.n_places)
    for at in seen.values():
        start[at] = (later[at] + 0.3) / (later[at] + 0.3).sum()
    for _ in range(n):
        direction, low, high = rng.normal(size=table.n_places), 0.0, 6.0
        for _ in range(9):
            middle = (low + high) / 2
            p = start * np.exp(middle * direction)
            p = p / np.bincount(rows, p, table.n_places)[rows]
            low, high = (middle, high) if is_allowed(p) else (low, middle)
        p = start * np.exp(low * direction)
        p = p / np.bincount(rows, p, table.n_places)[rows]
        if is_allowed(p):
            yield p


def value_and_visits(table, p):
    equations = regular_equations(table, p[table.place])
    return equations.values()[table.chain.initial], equations.solve_transposed(table.start)


LOOSE = Errors(of_side=0.3, rows=0.1, ball=0.1)


def violations(seeds, n=40):
    """Return how many tables were tried, and how many have values outside of the bracket."""
    tried = outside = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        table, truth = layered(rng)
        moments = seen_at(table, truth, rng)
        errors = (ERRORS, LOOSE)[seed % 2]
        found = tilted_bounds(table, moments, errors)
        for p in tables_allowed(table, truth, moments, rng, errors, n):
            value, _ = value_and_visits(table, p)
            tried += 1
            outside += not found.low.value <= value <= found.high.value
    return tried, outside


def test_values_of_rows_that_nothing_excludes_are_in_the_bracket():
    tried, outside = violations(range(size(12, 200)))
    assert tried > 100
    assert outside == 0


def no_remainder(patch):
    aim = tilted.aim_of
    patch.setattr(tilted, "aim_of", lambda *args: replace(aim(*args), remainder=0.0))


def the_other_exposure(patch):
    """D is the least visits where the remainder takes it for the most."""
    visits = tilted.ChainShape.visits
    patch.setattr(tilted.ChainShape, "visits", lambda *args: tuple(each * 0.9 for each in visits(*args)[::-1]))


def nothing_missed(patch):
    largest = RowSets.largest

    def mistaken(self, ahead, rows=None):
        if ahead.ndim > 2:
            return largest(self, ahead, rows)
        return (self.frequency * ahead).sum(axis=-1)

    patch.setattr(RowSets, "largest", mistaken)


@pytest.mark.parametrize("plant", [no_remainder, the_other_exposure, nothing_missed])
def test_a_planted_error_puts_values_outside_of_the_bracket(plant, monkeypatch):
    plant(monkeypatch)
    assert violations(range(size(12, 40)))[1] > 0


@pytest.mark.parametrize("seed", range(size(6, 60)))
def test_means_and_visits_of_rows_within_their_sets_keep_to_their_bounds(seed):
    rng = np.random.default_rng(seed)
    table, truth = layered(rng)
    moments = seen_at(table, truth, rng)
    shape = shape_of(table)
    log_error = np.log(len(table.one_of_each) / (ERRORS.rows + ERRORS.ball))
    sets = shape.sets(moments.counts[-1] - moments.counts[0], moments.counts[0], log_error)
    most, least = shape.visits(sets)
    ahead = table.ahead(rng.normal(size=table.n))
    largest = sets.largest(ahead[shape.column])
    for p in tables_allowed(table, truth, moments, rng, ERRORS, 30):
        _, visits = value_and_visits(table, p)
        assert (visits <= most + 1e-12).all()
        assert (visits >= least - 1e-12).all()
        assert (table.sums(p[table.place] * ahead) <= largest + 1e-12).all()


def test_the_largest_mean_of_two_outcomes_is_that_at_the_end_of_their_interval():
    """With q = (0, 1) the mean is p, and the set an interval of p, whose upper end bisection finds."""
    table = make_table([[(1, 0), (2, 1)]])
    for share, shrink in [(0.3, 0.9), (0.02, 0.99), (0.0, 0.7), (1.0, 0.5), (0.5, 0.999999)]:
        sets = RowSets(table, np.array([[1 - share, share]]), np.array([shrink]))
        low, high = share, 1.0
        for _ in range(80):
            p = (low + high) / 2
            inside = sum(s * np.log(x / s) for s, x in ((1 - share, 1 - p), (share, p)) if s > 0)
            low, high = (p, high) if inside >= np.log(shrink) else (low, p)
        found = float(sets.largest(np.array([[0.0, 1.0]]))[0])
        assert low <= found <= low + 1e-4 * max(low - share, 1e-3)


def test_chains_that_come_back_and_differences_have_no_tilted_bets():
    assert shape_of(make_table([[(0, 0), (1, 1)]])) is None
    assert shape_of(make_table([[(1, 0), (2, 1)], [(0, 2), (3, 3)]])) is None


def test_a_policy_that_meets_no_unknown_row_is_worth_its_value():
    """Unknown rows are elsewhere in the model."""
    table = replace(make_table([[(1, None), (2, None)]], numbers={0: [0.25, 0.75]}), n_places=1)
    bounds = tilted_bounds(table, BetMoments((np.zeros(1),) * 2, (1.0,), 4.0), ERRORS)
    assert bounds.low.value == pytest.approx(0.25)
    assert bounds.low.value <= 0.25 <= bounds.high.value == pytest.approx(0.25)
