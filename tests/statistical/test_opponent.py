"""What plumdp says is wrong in at most a tenth of all games against an opponent; with an error planted, in more.

The opponent knows the truth, changes the policy, and looks and stops when it suits (``opponent``). ``./check`` plays a
few games with each case and regime; ``PLUMDP_OPPONENT_GAMES=2000`` plays the whole protocol and prints a table. Seeds
are fixed, so that a test passes always or never; a right package would fail with a probability of at most 10⁻⁴.
"""

import os
from itertools import pairwise

import numpy as np
import opponent_coin as coin
import pytest
from coin_model import COIN
from opponent import CASES, ERROR, Evidence, Opponent, Protocol
from opponent_data import no_order, planned_visits
from opponent_models import doors, twins
from twin_outcomes import equal_outcomes_are_merged_once

import plumdp as pl
from plumdp.confidence import likelihood
from plumdp.confidence.laws import law_of_pilot
from plumdp.data import counts, pilots
from plumdp.errors import DataError

pytestmark = pytest.mark.slow

GAMES = os.environ.get("PLUMDP_OPPONENT_GAMES")


def test_nothing_that_is_said_is_wrong_in_more_than_a_tenth_of_the_games(capsys):
    protocol = Protocol()
    protocol.play(int(GAMES or 24))
    if GAMES:
        with capsys.disabled():
            print(f"\n{protocol.report()}")
    assert not protocol.refuted


def test_evidence_is_fair_and_finds_what_happens_too_often():
    """With a rate of a tenth, the mean over all sequences of 12 games is one; half as much more is found in the end."""
    evidence, mean = Evidence(ERROR), 0.0
    for k, ways in enumerate(binomials(12)):
        evidence.n, evidence.happened = 12, k
        mean += ways * ERROR**k * (1 - ERROR) ** (12 - k) * evidence.fortune
    assert mean == pytest.approx(1)
    evidence.n, evidence.happened = 2000, 300
    assert evidence.is_refuted
    evidence.happened = 200
    assert not evidence.is_refuted


def binomials(n):
    row = [1]
    for _ in range(n):
        row = [1, *(a + b for a, b in pairwise(row)), 1]
    return row


# One coin, and half-spaces alone: the share of the error that they have is all that they may use


@pytest.mark.parametrize("looks", [coin.LOOKS, coin.LONG], ids=["80 looks", "250 looks"])
@pytest.mark.parametrize("reading", [coin.OPEN, coin.ADDED], ids=["open", "added"])
def test_half_spaces_of_a_coin_ever_exclude_the_truth_with_at_most_their_share(reading, looks):
    evidence = coin.play(reading, 200, looks=looks)
    assert 0 < evidence.happened
    assert not evidence.is_refuted


def test_throws_that_are_read_at_each_look_as_if_their_number_had_been_planned_are_found_out():
    assert coin.play(coin.AS_A_SHARE, 200, looks=coin.LONG).is_refuted


def horizons_have_no_weights(patch):
    """Whatever scale of the bets suits the data best is used at its full error."""
    found = likelihood.find_horizons
    patch.setattr(likelihood, "find_horizons", lambda *data: (h := found(*data))._replace(log_weight=0 * h.log_weight))


def moments_depend_on_the_end(patch):
    """Bets are placed after an eighth of the data."""
    patch.setattr(pilots, "moments_of", lambda n, per_run=1: (n // 8,))


def half_spaces_have_ten_times_their_share(patch):
    found = likelihood.shares_of

    def more(*data, **asked):
        shares = found(*data, **asked)
        return shares._replace(half_spaces=10 * shares.half_spaces)

    patch.setattr(likelihood, "shares_of", more)


@pytest.mark.parametrize(
    "mutant", [horizons_have_no_weights, moments_depend_on_the_end, half_spaces_have_ten_times_their_share]
)
def test_half_spaces_of_a_coin_that_use_more_than_their_share_are_found_out(mutant, monkeypatch):
    mutant(monkeypatch)
    assert coin.play(coin.OPEN, 400, looks=coin.LONG).is_refuted


# All of what is learned


def games(case, data, n_games):
    """Return in how many games a set or a test is wrong, until that is too often."""
    opponent, evidence = Opponent(case), Evidence()
    for game in range(n_games):
        rng = np.random.default_rng(game)
        evidence.see(opponent.wins_at_worst(data(case, rng), rng))
        if evidence.is_refuted:
            break
    return evidence


def test_equal_outcomes_that_are_merged_once_are_found_out(monkeypatch):
    """Bets on drifts are unfair as soon as the opponent visits one cell more often than the pilot did."""
    equal_outcomes_are_merged_once(monkeypatch)
    assert games(twins(), lambda *game: planned_visits(*game, kind="one"), 20).is_refuted


def test_bets_that_are_placed_by_all_data_are_found_out(monkeypatch):
    """The policy that looks best in hindsight is one whose coins were lucky."""
    find_stages = likelihood.find_stages

    def in_hindsight(table, data, space):
        point = law_of_pilot(table, table.pool(data.counts), space).mean
        return [stage._replace(point=point) for stage in find_stages(table, data, space)]

    monkeypatch.setattr(likelihood, "find_stages", in_hindsight)
    assert games(doors(5, 4), lambda *game: planned_visits(*game, kind="alike"), 60).is_refuted


def test_counts_that_are_added_twice_are_found_out(monkeypatch):
    monkeypatch.setattr(counts, "refuse_same_parts", lambda *_: None)
    assert games(CASES["one_row"](), no_order, 20).is_refuted


def test_whatever_the_opponent_adds_twice_is_refused(tmp_path):
    """Files, copies of files and counts, alone or as parts of sums."""
    day, copy = tmp_path / "day.csv", tmp_path / "copy.csv"
    for file in (day, copy):
        file.write_text("x,action,next_x\n" + "0,go,1\n" * 9)
    read = [pl.read_log(file, COIN).counts for file in (day, day, copy)]
    thrown = pl.simulate(COIN, {"p": 0.5}, 40, rng=1, max_steps=1)
    total = read[0] + thrown
    for again in (*read, thrown, total):
        with pytest.raises(DataError, match="would be counted twice"):
            total + again
        with pytest.raises(DataError, match="would be counted twice"):
            again.planned_sum(total)
    assert total.total == 49
