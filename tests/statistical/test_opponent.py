"""What plumdp says is wrong in at most a tenth of all games against an adversary; with an error planted, in more.

The adversary knows the truth, changes the policy, and looks and stops when it suits (``opponent``). ``./check`` plays a
few games; ``PLUMDP_OPPONENT_GAMES=2000`` plays the whole protocol and prints a table. Seeds are fixed, so that a test
passes always or never; a right package would fail with probability at most 10⁻⁴.
"""

import os
from math import comb

import opponent_coin as coin
import pytest
from evidence import Evidence
from opponent import CASES, ERROR, Opponent, Protocol, play_until_refuted
from opponent_data import no_order, planned_visits
from tiers import size
from twin_outcomes import equal_outcomes_are_merged_once

from plumdp.base.error_budget import ErrorBudget
from plumdp.confidence import likelihood
from plumdp.confidence.estimates import law_of_pilot
from plumdp.data import counts, pilots

pytestmark = pytest.mark.slow

GAMES = os.environ.get("PLUMDP_OPPONENT_GAMES")


@pytest.mark.night
def test_nothing_that_is_said_is_wrong_in_more_than_a_tenth_of_the_games(capsys):
    protocol = Protocol(int(GAMES or size(8, 13)))
    if GAMES:
        with capsys.disabled():
            print(f"\n{protocol.report()}")
    assert not protocol.refuted()


def test_evidence_is_fair():
    """With a probability of a tenth, the expectation after 12 games is one."""
    chances = [comb(12, k) * ERROR**k * (1 - ERROR) ** (12 - k) for k in range(13)]
    assert sum(chance * Evidence(k, 12, ERROR).wealth for k, chance in enumerate(chances)) == pytest.approx(1)


# Mutants, each with the games that find it out. Half-spaces of coins may use their share of the error and no more


def every_look_is_a_planned_end(patch):
    patch.setattr(coin, "read_added", coin.read_as_planned)


def horizons_have_no_weights(patch):
    """Whatever scale of the bets suits the data best is used at its full error."""
    find = likelihood.find_horizons
    patch.setattr(likelihood, "find_horizons", lambda *data: (h := find(*data))._replace(log_weight=0 * h.log_weight))


def moments_depend_on_the_end(patch):
    """Bets are placed after an eighth of the data."""
    patch.setattr(pilots, "moments_of", lambda n, per_run=1: (n // 8,))


def half_spaces_have_ten_times_their_share(patch):
    divide = ErrorBudget.error_in_set

    def more(budget, part, error):
        return divide(budget, part, error) * (10 if part == "half_spaces" else 1)

    patch.setattr(ErrorBudget, "error_in_set", more)


def bets_are_placed_by_all_data(patch):
    """The coins that look best in hindsight are those that were lucky."""
    find = likelihood.find_stages

    def in_hindsight(table, data, space):
        point = law_of_pilot(table, table.pool(data.counts), space).mean
        return [stage._replace(point=point) for stage in find(table, data, space)]

    patch.setattr(likelihood, "find_stages", in_hindsight)


def counts_are_added_twice(patch):
    patch.setattr(counts, "refuse_same_parts", lambda *_: None)


def play_case(name, data, n_games):
    adversary = Opponent(CASES[name].__wrapped__())  # built anew, with the mutant
    return play_until_refuted(lambda rng: any(adversary.play(data(adversary.case, rng), 0.0, rng)), n_games)


PLAYS = {
    "one coin": lambda: coin.play_one(coin.read_open, coin.OPEN_SHARE, 1200),
    "one coin, added to": lambda: coin.play_one(coin.read_added, coin.PLANNED_SHARE, 200),
    "many coins": lambda: coin.play_many(100),
    "one cell": lambda: play_case("twins", lambda *game: planned_visits(*game, kind="one"), 8),
    "repeated": lambda: play_case("one row", no_order, 8),
}
MUTANTS = [
    (every_look_is_a_planned_end, "one coin, added to"),
    (horizons_have_no_weights, "one coin"),
    (moments_depend_on_the_end, "one coin"),
    (half_spaces_have_ten_times_their_share, "one coin"),
    (horizons_have_no_weights, "one coin, added to"),
    (bets_are_placed_by_all_data, "many coins"),
    (equal_outcomes_are_merged_once, "one cell"),
    (counts_are_added_twice, "repeated"),
]


@pytest.mark.parametrize("play", PLAYS)
def test_games_do_not_refute_the_package_as_it_is(play):
    evidence = PLAYS[play]()
    assert not evidence.is_refuted
    assert evidence.happened > 0 or "one coin" not in play  # half-spaces of coins are narrow


@pytest.mark.parametrize(("mutant", "play"), MUTANTS, ids=lambda value: getattr(value, "__name__", value))
def test_a_mutant_is_found_out(mutant, play, monkeypatch):
    mutant(monkeypatch)
    assert PLAYS[play]().is_refuted


def test_every_game_finds_a_mutant():
    assert {play for _, play in MUTANTS} == set(PLAYS)
