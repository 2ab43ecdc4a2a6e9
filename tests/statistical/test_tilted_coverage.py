"""Brackets by tilted bets miss at most as often as they say, at an error of one half, whenever somebody stops.

Runs of a small copy of the pumps: good, worn and failed, with rare failures that the pilot may not have seen. The
opponent looks after several numbers of runs, also more than were planned, and calls it a miss if any bracket is wrong.
"""

import numpy as np
import pytest
from evidence import until_refuted
from table_cases import make_table, values_at
from tiers import size

from plumdp.tables import tilted
from plumdp.tables.bracket import BetMoments, Errors
from plumdp.tables.tilted import tilted_bounds

HALF = Errors(of_side=0.2, rows=0.05, ball=0.05)
STEPS, PLANNED = 8, 120
COSTS = (0.0, 900.0, 2600.0)


def pumps():
    """Return the chain of the policy that replaces what is not good, over eight weeks, with one row for each state."""
    n = 3 * STEPS
    after = lambda node, to: n if node // 3 + 1 == STEPS else 3 * (node // 3 + 1) + to  # noqa: E731
    rows = [[(after(node, to), 3 * (node % 3) + to) for to in range(3)] for node in range(n)]
    rows = [row if len({s for s, _ in row}) == 3 else [(n + i, p) for i, (_, p) in enumerate(row)] for row in rows]
    return make_table(rows, known=(0.0, 0.0, 0.0), reward=np.tile(COSTS, STEPS))


def is_missed(seed):
    """Play a game, and return whether a bracket misses the value at any look."""
    rng, table = np.random.default_rng(seed), pumps()
    rare = rng.choice([0.003, 0.02, 0.1])
    rows = np.array([[0.85 - rare, 0.15, rare], [0.9 - rare, 0.1, rare], [0.7, 0.3 - rare, rare]])
    value = values_at(table, rows.ravel()[table.place])[table.chain.initial]
    counts, cumulative = np.zeros(9), []
    looks = (10, 40, 70, 90, PLANNED, 200)
    for before, after in zip((0, *looks), looks, strict=False):
        for _ in range(after - before):
            state = 0
            for _ in range(STEPS):
                to = int(rng.choice(3, p=rows[state]))
                counts[3 * state + to] += 1
                state = to
        cumulative.append(counts.copy())
        if len(cumulative) > 1:
            lengths = tuple(float(each) for each in looks[: len(cumulative) - 1])
            found = tilted_bounds(table, BetMoments(tuple(cumulative), lengths, float(PLANNED)), HALF)
            if not found.low.value <= value <= found.high.value:
                return True
    return False


@pytest.mark.night
def test_brackets_miss_no_more_often_than_they_say():
    games = (is_missed(seed) for seed in range(size(20, 400)))
    assert not until_refuted(games, rate=0.5).is_refuted


@pytest.mark.slow
def test_bets_that_won_nothing_yet_are_found_out(monkeypatch):
    """The opponent takes the end for that of bets that need to win far less, and nothing for the remainder."""
    end = tilted._end

    def early(shape, views, moments, errors, sign):
        found = end(shape, views, moments, Errors(0.97, errors.rows, errors.ball), sign)
        return tilted.End(found.value - sign * 1.5 * found.curvature, 0.0, 0.0, 0.0, 1.0, ())

    monkeypatch.setattr(tilted, "_end", early)
    assert until_refuted((is_missed(seed) for seed in range(80)), rate=0.5).is_refuted
