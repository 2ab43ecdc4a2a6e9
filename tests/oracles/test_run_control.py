"""One bet on each run is fair, exactly, and what it does not exclude is in the bracket.

Practice remembers what it did, so that its runs have no Markov property but in the rows that it shares with the rule.
What is won is calculated again here, in fractions, from the numbers that a bet consists of.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import log, prod

import numpy as np
import pytest
from controlled_runs import NOTHING, VARIES, all_runs, as_data, chain, true_difference, value_of
from tiers import size

from plumdp.confidence.bounded_means import Tally, mean_bounds
from plumdp.tables import control
from plumdp.tables.control import difference_by_runs

TRUTH = [Fraction(n, 12) for n in (9, 3, 7, 3, 2)]
STEPS = 3
WIDE = {-1.0: Fraction(1, 2), 14.0: Fraction(1, 2)}
MOST = Fraction(control._LARGEST_LOSS)


def sides(table, *data, n_steps=STEPS):
    """Return both sides of a bracket, with the bets that they place, and the bracket."""
    seen = {}
    with pytest.MonkeyPatch.context() as patch:
        end = control._Side._end_of

        def made(self, bets, aim):
            seen[self._sign] = self, bets
            return end(self, bets, aim)

        patch.setattr(control._Side, "_end_of", made)
        found = difference_by_runs(table, *data)
    return seen, found


def exact(bet):
    """Return the numbers of a bet as fractions."""
    names = ("size", "guard", "doubts", "expected", "top")
    lists = ("score", "rate", "mean", "doubt", "least", "worst")
    one = {name: Fraction(float(getattr(bet, name))) if np.isfinite(getattr(bet, name)) else 10**9 for name in names}
    return one | {name: [Fraction(float(each)) for each in getattr(bet, name)] for name in lists}


def won(side, bet, run, truth, means, value, *, counts=()):
    """Return by what a bet multiplies the capital in a run, at true rows, means, and mean of practice."""
    cost, steps, *_ = run
    b, sign, most = exact(bet), side._sign, side._runs.most
    total, doubts, n = Fraction(0), Fraction(0), [0, 0]
    for place, paid in steps:
        k = int(place > 1)
        if total + b["least"][k] + b["worst"][k] < -b["guard"] or doubts + b["doubt"][k] > b["doubts"]:
            continue
        if place in counts:
            continue  # a mistake: left out for its outcome
        total += b["score"][place] + b["rate"][k] * (Fraction(paid) - b["mean"][k])
        doubts += b["doubt"][k]
        n[k] += 1
    rows = ((0, 1), (2, 3, 4))
    mean = [
        sum(truth[j] * b["score"][j] for j in row) + b["rate"][k] * (means[k] - b["mean"][k])
        for k, row in enumerate(rows)
    ]
    top = Fraction(float(most[0]))
    share = Fraction(float(bet.share(most[:1])[0]))
    far = max(abs(m) / d if d else 10**12 * abs(m) for m, d in zip(mean, b["doubt"], strict=True))
    if share * (b["size"] * (top + sign * value) + b["guard"] + far * b["doubts"]) > MOST:
        return Fraction(1)  # is not placed, as it could lose too much at this table
    factor = 1 + share * (
        b["size"] * (-sign * value + sign * Fraction(cost)) + total - sum(x * y for x, y in zip(n, mean, strict=True))
    )
    assert factor > 0
    return factor


def expectation(n_steps, n_runs, paid=NOTHING, planned=None, **options):
    """Return the exact mean of what both sides' bets win over all data of some runs, one of them the pilot."""
    runs, table, means = list(all_runs(TRUTH, n_steps, paid)), chain(n_steps), {-1: Fraction(0), 1: Fraction(0)}
    value = sum(Fraction(cost) * chance for cost, _, chance in runs)
    mean = [Fraction(0), sum(Fraction(more) * share for more, share in paid.items())]
    for data in product(runs, repeat=n_runs):
        seen, _ = sides(table, *as_data(data, n_steps, paid), 0.5, float(planned or n_runs))
        chance = prod((c for *_, c in data), start=Fraction(1))
        for sign, (side, bets) in seen.items():
            stages = list(zip(bets, side._ends[:-1], side._ends[1:], strict=True))
            factors = [won(side, bet, run, TRUTH, mean, value, **options) for bet, i, j in stages for run in data[i:j]]
            means[sign] += chance * prod(factors, start=Fraction(1))
    return means


@pytest.mark.slow
@pytest.mark.parametrize(("paid", "n_runs"), [(NOTHING, size(2, 3)), (VARIES, 2)])
def test_bets_on_runs_are_fair_with_a_pilot_of_one_run(paid, n_runs):
    """All data of two or three runs: bets depend on runs that came before alone."""
    assert expectation(2, n_runs, paid, planned=4) == {-1: 1, 1: 1}


@pytest.mark.slow
def test_leaving_out_steps_for_their_outcomes_is_found():
    means = expectation(2, 2, planned=4, counts=(1, 4))
    assert max(abs(each - 1) for each in means.values()) > Fraction(1, 1000)


@pytest.mark.parametrize("end", [4, 30])
def test_the_first_runs_alone_choose_the_first_bets(end):
    """Whatever comes later, also if there are more or fewer runs than were planned."""
    made, runs = [], list(all_runs(TRUTH, STEPS, VARIES))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        later = [runs[i] for i in rng.integers(len(runs), size=end)]
        seen, _ = sides(chain(STEPS), *as_data([*runs[:5], *later], STEPS, VARIES), 0.1, 40.0)
        made.append([bets[0] for _, bets in seen.values()])
    for other in made[1:]:
        for one, two in zip(made[0], other, strict=True):
            assert all(np.array_equal(getattr(one, name), getattr(two, name)) for name in vars(one))


def some_data(seed, n, paid, n_steps=6):
    rng, runs = np.random.default_rng(seed), list(all_runs(TRUTH, n_steps, paid))
    chance = np.array([float(c) for *_, c in runs])
    return as_data([runs[i] for i in rng.choice(len(runs), size=n, p=chance / chance.sum())], n_steps, paid)


def excluded(side, bets, p, mean, at):
    """Return the logarithm of what was won at rows, means and a mean of practice, by the product's own sums."""
    log_won, sign = 0.0, side._sign
    for bet, start, stop in zip(bets, side._ends, side._ends[1:], strict=False):
        runs = side._runs.part(start, stop)
        total, n = bet.sums(runs)
        score = bet.score[:-1]
        means = np.array([p[:2] @ score[:2], p[2:] @ score[2:]]) + bet.rate * (np.array([0.0, mean]) - bet.mean)
        far = float(np.max(np.abs(means) / np.maximum(bet.doubt, 1e-300), where=means != 0, initial=0.0))
        share = bet.share(runs.most)
        if (share * (bet.size * (runs.most + sign * at) + bet.guard + far * bet.doubts)).max() > float(MOST):
            continue
        log_won += float(np.log1p(share * (bet.size * (-sign * at - runs.value) + total - n @ means)).sum())
    return log_won


def rows_allowed(side, rng, n, paid, error):
    """Yield rows and a mean reward within the sets of a side, many of them at the edge."""
    sets, seen, least, width = side._views[-1].sets, side._table, min(paid), max(paid) - min(paid)
    limits = (0.0, 0.0)
    if width:
        seen_of = Tally.of((side._runs.paid[side._runs.kind == 1] - least) / width)
        limits = [least + width * each for each in mean_bounds(seen_of, seen_of, error / 15)]  # a fifth, of three sets
    for _ in range(n):
        p = np.zeros(5)
        for row, node in (((0, 1), 0), ((2, 3, 4), 1)):
            share = sets.frequency[seen.one_of_each[node]][: len(row)]
            direction, low, high = rng.choice([-1, 1]) * np.arange(len(row)) + 0.3 * rng.normal(size=len(row)), 0.0, 6.0
            for _ in range(12):
                step = (low + high) / 2
                tried = (share + 1e-3) * np.exp(step * direction)
                tried /= tried.sum()
                inside = (share * np.log(np.where(share > 0, tried / np.where(share > 0, share, 1), 1.0))).sum()
                low, high = (
                    (step, high) if inside >= log(max(sets.shrink[seen.one_of_each[node]], 1e-300)) else (low, step)
                )
            tried = (share + 1e-3) * np.exp(low * direction)
            p[list(row)] = tried / tried.sum()
        inside = all(
            (s * np.log(np.where(s > 0, q / np.where(s > 0, s, 1), 1.0))).sum() >= log(max(sets.shrink[node], 1e-300))
            for node, q, s in (
                (n, p[r], sets.frequency[n][: len(p[r])])
                for n, r in ((seen.one_of_each[0], slice(0, 2)), (seen.one_of_each[1], slice(2, 5)))
            )
        )
        if inside:
            yield p, rng.choice(limits)


def violations(seeds, n=20):
    """Return how many tables were tried, and how many have differences outside that are not excluded."""
    tried = outside = 0
    for seed in seeds:
        paid = (NOTHING, WIDE)[seed % 2]
        data, rng = some_data(seed, (60, 200)[seed // 2 % 2], paid), np.random.default_rng(seed)
        error = (0.2, 0.5)[seed % 3 == 0]
        seen, (low, high) = sides(chain(6), *data, error, 200.0)
        for sign, (side, bets) in seen.items():
            end = high if sign > 0 else -low
            if not np.isfinite(end):
                continue
            for p, mean in rows_allowed(side, rng, n, paid, error):
                value = value_of(side._table, p, mean)
                tried += 1  # a mean of practice with which the difference would lie a little outside
                outside += excluded(side, bets, p, mean, value - sign * (end + 1e-6)) < side._log_error
    return tried, outside


def test_differences_that_nothing_excludes_are_in_the_bracket():
    tried, outside = violations(range(size(8, 60)))
    assert tried > 60
    assert outside == 0


@pytest.mark.parametrize("seed", range(2))
def test_mean_scores_within_the_sets_are_no_larger_than_bets_allow_for(seed):
    paid, rng = (NOTHING, WIDE)[seed], np.random.default_rng(seed)
    seen, _ = sides(chain(6), *some_data(seed, 60, paid), 0.5, 200.0)
    for side, bets in seen.values():
        for (p, mean), bet in product(rows_allowed(side, rng, 20, paid, 0.5), bets):
            score, most = bet.score[:-1], side._doubt(-1, bet, np.zeros(5), bet.mean)
            means = np.array([p[:2] @ score[:2], p[2:] @ score[2:]]) + bet.rate * (np.array([0.0, mean]) - bet.mean)
            assert (np.abs(means) <= most * (1 + 1e-9) + 1e-12).all()


def no_remainder(patch):
    aim = control.aim_of
    patch.setattr(control, "aim_of", lambda *args: replace(aim(*args), remainder=0.0))


def nothing_lost(patch):
    """What the direction of the bets missed is left out."""
    patch.setattr(control._Side, "_rows_beyond", lambda self, b, target, chance: 0 * self._row_sums(chance * target))


def means_are_known(patch):
    patch.setattr(control, "mean_bounds", lambda lower, upper, error: 2 * (np.average(lower.value, weights=lower.n),))


@pytest.mark.parametrize("plant", [no_remainder, nothing_lost, means_are_known])
def test_a_planted_error_leaves_out_what_is_not_excluded(plant, monkeypatch):
    plant(monkeypatch)
    assert violations(range(size(8, 24)))[1] > 0


@pytest.mark.parametrize("paid", [NOTHING, VARIES])
def test_a_bracket_of_many_runs_is_narrower_than_without_scores_of_steps(paid, monkeypatch):
    data, truth = some_data(5, 600, paid), true_difference(chain(6), TRUTH, 6, paid)
    low, high = difference_by_runs(chain(6), *data, 0.05, 600.0)
    assert low <= truth <= high
    monkeypatch.setattr(control, "_GUARDS", np.array([1e-9]))
    least, most = difference_by_runs(chain(6), *data, 0.05, 600.0)
    assert least <= truth <= most
    assert high - low < 0.9 * (most - least)
