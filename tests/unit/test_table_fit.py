"""The test of a table finds ties that are wrong and rows that change, and its evidence is fair."""

from fractions import Fraction
from itertools import product
from math import comb, exp

import numpy as np
import pytest

import plumdp as pl
from plumdp.fit import time_tests
from plumdp.tables import fit
from plumdp.tables.fit import table_fit

TOSS = 'Pmax=? [ F "won" ]'


def table(*, row=None, known=False):
    """Two coins, one after the other, that are tied if their row has a name."""

    def step(s):
        if s.at >= 2:
            return {"stay": [(1, s)]}
        ahead, lost = s._replace(at=s.at + 1), s._replace(at=3)
        if known and s.at == 0:
            return {"toss": [(Fraction(1, 3), ahead), (Fraction(2, 3), lost)]}
        return {"toss": pl.unknown(ahead, lost, row=row)}

    return pl.explore(step, {"at": 0}, labels={"won": lambda s: s.at == 2})


def counts_of(model, first, second, **options):
    """Return counts of wins and losses of both coins."""
    counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
    starts = model.graph.first_transition
    counts[starts[0] : starts[1]], counts[starts[1] : starts[2]] = first, second
    return pl.TransitionCounts(model.graph, counts, "adaptive", **options)


def expectations(heads, sizes):
    """Return the expected evidence against two stages of one coin, and against two tied coins, at the truth."""
    tied, free = table(row="coin"), table()
    over_time = by_choice = 0.0
    for wins in product(*(range(size + 1) for size in sizes)):
        pairs = [[won, size - won] for won, size in zip(wins, sizes, strict=True)]
        chance = np.prod([comb(sum(pair), pair[0]) * heads ** pair[0] * (1 - heads) ** pair[1] for pair in pairs])
        first, last = (free.rows.sum_by_place(counts_of(free, pair, [0, 0]).counts).astype(float) for pair in pairs)
        over_time += chance * exp(time_tests.over_time([first], [1.0], first + last, free.rows.first)[0][0])
        by_choice += chance * exp(fit._against_ties(tied, counts_of(tied, *pairs))[0])
    return over_time, by_choice


@pytest.mark.parametrize("heads", [0.02, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("sizes", [(1, 1), (3, 5), (6, 2)])
def test_evidence_has_an_expectation_of_at_most_one_at_the_truth(heads, sizes):
    over_time, by_choice = expectations(heads, sizes)
    assert 0.05 < over_time <= 1
    assert by_choice == pytest.approx(over_time, rel=1e-9)


def test_an_average_in_place_of_the_largest_probability_would_not_be_fair(monkeypatch):
    average = time_tests.log_average
    best = "less_best"
    monkeypatch.setattr(time_tests, best, lambda apart, size, counts, first: apart - average(counts, first)[0])
    assert max(expectations(0.5, (6, 6))) > 1.01


def test_coins_that_are_tied_and_differ_contradict_the_model_and_others_do_not():
    tied = table(row="coin")
    found = pl.certify(tied, counts_of(tied, [600, 400], [300, 700]), TOSS)
    assert found.status == "model rejected"
    assert "the data contradict that tied rows are the same: rows tied to that of" in found.claim.reason
    assert found.beside.p_value < 1e-9
    assert found.lower < 0.6 * 0.3 < found.upper  # by the graph alone
    same = pl.certify(tied, counts_of(tied, [600, 400], [610, 390]), TOSS)
    assert (same.status, same.beside.p_value) == ("certified", 1.0)
    free = table()
    assert table_fit(free, counts_of(free, [600, 400], [300, 700])).p_value == 1.0


def test_a_coin_that_changes_over_time_contradicts_the_model():
    model = table()
    pilot = counts_of(model, [90, 10], [50, 50]).counts
    changed = counts_of(model, [90 + 300, 10 + 700], [550, 550], pilot=pilot)
    found = table_fit(model, changed)
    assert found.p_value < 1e-9
    assert found.tests[0].kind == "time"
    assert (
        "leads to at=1 was about 0.9, and about 0.3 from about step 201 on"
        in pl.certify(model, changed, TOSS).claim.reason
    )
    assert table_fit(model, counts_of(model, [890, 110], [550, 550], pilot=pilot)).p_value == 1.0


def test_numbers_that_a_table_fixes_are_tested():
    model = table(known=True)
    assert pl.certify(model, counts_of(model, [333, 667], [50, 50]), TOSS).status == "certified"
    found = pl.certify(model, counts_of(model, [500, 500], [50, 50]), TOSS)
    assert found.status == "model rejected"
    assert "1/3" in found.claim.reason
