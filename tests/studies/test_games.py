"""Games against an opponent who stops at the worst moment: a few of each kind, and a wrong claim that is found out."""

import pytest
from evidence import until_refuted
from tiers import size

from plumdp.confidence import run_bets
from studies import games

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", games.KINDS)
def test_games_are_lost_no_more_often_than_the_error_allows(kind):
    n = size(3, 300)
    assert not until_refuted(games.played(kind, 0.1, n), rate=0.1).is_refuted


def test_a_third_of_the_goal_is_found_out(monkeypatch):
    """Bets on whole runs that need a third of what they should win lose more games."""
    end = run_bets._lower_end
    monkeypatch.setattr(run_bets, "_lower_end", lambda value, least, side, *rest: end(value, least, 3 * side, *rest))
    assert until_refuted(games.played("runs", 0.1, 400), rate=0.1).is_refuted
