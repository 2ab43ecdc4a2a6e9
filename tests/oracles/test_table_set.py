"""All statements of the set of a table have no more than its error together, by the definition of Robbins' mixture.

Bets on outcomes with odds (K + 1/2) / (N + 1) have won C(2K, K) C(2M, M) / (4^N C(N, K) p^K (1 - p)^M) from one unit
if K of N trials succeeded and M did not. An interval whose end p has less than 1 / error of that is too narrow.
"""

from fractions import Fraction
from itertools import pairwise
from math import comb

import numpy as np
import pytest

import plumdp as pl
from plumdp.confidence import bounds
from plumdp.tables import table_set

TEXTS = ['Pmax=? [ F "goal" ]', 'Pmin=? [ F "goal" ]']


def step(s):
    """A walk in which going leads to two unknown places, and waiting, which is tied, to three."""
    if s.x in (0, 3):
        return {"stay": [(1, s)]}
    up, down = s._replace(x=s.x + 1), s._replace(x=s.x - 1)
    return {"go": pl.unknown(up, down), "wait": pl.unknown(up, s, down, row="wait")}


def error_of(successes, trials, end):
    """Return the least error at which an interval may have an end; those of 0 and 1 say nothing."""
    if end in (0, 1):
        return Fraction(0)
    failures, p = trials - successes, Fraction(end)
    has_won = Fraction(comb(2 * successes, successes) * comb(2 * failures, failures), 4**trials)
    return p**successes * (1 - p) ** failures * comb(trials, successes) / has_won


def shares_of_error(*, pilot):
    """Return the share of the error of a set that its intervals have, and that of its bets."""
    model = pl.explore(step, {"x": 1}, labels={"goal": lambda s: s.x == 3})
    point = [1 / n for n in np.diff(model.graph.first_transition).tolist() for _ in range(n)]
    counts = pl.simulate(model, np.array(point), 200, rng=1, max_steps=60, pilot=pilot)
    (found,) = pl.learn(model, counts, objectives=TEXTS).bounds.of_kind(table_set.TableSet)
    spans = pairwise(model.graph.first_transition.tolist())
    rows, spent = {tuple(model.expression[a:b].tolist()) for a, b in spans if b - a > 1}, Fraction(0)
    for row in rows:
        seen = [int(counts.counts[model.expression == f].sum()) for f in row]
        ends = [[float(each[f]) for each in (found.lower, found.upper)] for f in row]
        each = [max(error_of(k, sum(seen), end) for end in both) for k, both in zip(seen, ends, strict=True)]
        spent += max(each) if len(row) == 2 else sum(each)  # two places are one event
    errors = [each.errors for each in found.prespecified]
    on_values = sum(2 * each.of_side + each.rows + each.ball for each in errors)  # on either side
    return float(spent) / found.error, on_values / found.error


@pytest.mark.parametrize("pilot", [False, True])
def test_intervals_and_bets_have_the_error_of_the_set_together(pilot):
    of_intervals, of_bets = shares_of_error(pilot=pilot)
    assert 1 - 1e-6 < of_intervals + of_bets < 1 + 1e-12
    assert (of_bets > 0) is pilot


def intervals_are_too_narrow(patch):
    honest = bounds.beta_binomial
    patch.setattr(bounds, "beta_binomial", lambda k, n, error: honest(k, n, 100 * error))


def both_sides_have_all_of_the_error(patch):
    patch.setattr(table_set, "equal_parts", lambda error, n: error)


@pytest.mark.parametrize("plant", [intervals_are_too_narrow, both_sides_have_all_of_the_error])
def test_a_planted_error_is_found(monkeypatch, plant):
    plant(monkeypatch)
    assert sum(shares_of_error(pilot=True)) > 1.5
