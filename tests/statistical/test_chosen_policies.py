"""The value of a policy that all data chose is missed seldom enough, and bets on it, as if pre-specified, are found
out.

In each of some states in a row, all actions are alike. The policy that takes the action which went best in all data is
what offline reinforcement learning would find. Each of its rows looks better than it is, and so does their product.
"""

import numpy as np
import pytest
from evidence import until_refuted
from row_models import listed
from tiers import size

import plumdp as pl
from plumdp.data.counts import TransitionCounts
from plumdp.data.pilots import planned_pilot, table_moments
from plumdp.data.seen import Seen

pytestmark = pytest.mark.slow
N_STATES, N_ACTIONS, RUNS, GAMES = size(30, 40), size(3, 5), size(30_000, 100_000), size(6, 200)
MOMENTS = table_moments(RUNS, is_planned=True)
STAYS = 0.98
REACH = 'Pmax=? [ F "goal" ]'


def row_of_states():
    """Return a walk along states, in each of which any action leads on or out."""

    rows = {x: {f"a{i}": [x + 1, N_STATES + 1] for i in range(N_ACTIONS)} for x in range(N_STATES)}
    return listed(rows, None, at="x", labels={"goal": N_STATES})


MODEL = row_of_states()
GRAPH = MODEL.graph


def transitions():
    """Return the transition of each state, action and outcome (out, on)."""
    x, found = GRAPH.states["x"], np.zeros((N_STATES, N_ACTIONS, 2), dtype=np.int64)
    for choice in range(GRAPH.n_choices):
        state = x[GRAPH.state_of_choice()[choice]]
        if state < N_STATES:
            action = int(GRAPH.action_names[GRAPH.action[choice]][1:])
            for t in range(*GRAPH.first_transition[choice : choice + 2]):
                found[state, action, int(x[GRAPH.successor[t]] == state + 1)] = t
    return found


def play(seed):
    """Return data of uniform choices."""
    rng, of = np.random.default_rng(seed), transitions()
    action, on = rng.integers(N_ACTIONS, size=(RUNS, N_STATES)), rng.random((RUNS, N_STATES)) < STAYS
    taken = of[np.arange(N_STATES), action, on.astype(int)]
    is_there = np.cumprod(np.column_stack([np.ones(RUNS, dtype=bool), on[:, :-1]]), axis=1).astype(bool)
    none = np.zeros((0, 3, GRAPH.n_transitions), dtype=np.int64)
    *first, whole = (
        Seen(np.bincount(taken[:n][is_there[:n]], minlength=GRAPH.n_transitions), none) for n in (*MOMENTS, RUNS)
    )
    return TransitionCounts(GRAPH, whole.counts, "trajectories", planned_pilot(first, RUNS, sizes=MOMENTS))


def best_by(counts):
    """Return the policy that takes what went best in the data."""
    seen = counts.counts[transitions()]
    best = (seen[..., 1] / np.maximum(seen.sum(axis=-1), 1)).argmax(axis=1)
    return lambda state: f"a{best[state.x]}" if state.x < N_STATES else "stay"


def misses(seed, error, chosen_by=lambda counts: counts, **options):
    """Return whether the certificate of the chosen policy misses its value, which is that of all policies."""
    counts = play(seed)
    policy = best_by(chosen_by(counts))
    found = pl.certify(MODEL, counts, REACH, policy=policy, confidence=1 - error, **options)
    return not found.lower <= STAYS**N_STATES <= found.upper


@pytest.mark.parametrize("error", [0.5, 0.1])
def test_a_policy_that_all_data_chose_is_missed_seldom_enough(error):
    games = (misses(seed, error) for seed in range(GAMES))
    assert not until_refuted(games, rate=error).is_refuted


def test_bets_on_a_policy_that_all_data_chose_are_found():
    games = (misses(seed, 0.1, prespecified=True) for seed in range(GAMES))
    assert until_refuted(games, rate=0.1).is_refuted


def test_bets_on_a_policy_that_data_before_the_first_bets_chose_miss_seldom_enough():
    first = TransitionCounts.before_bets
    games = (misses(seed, 0.1, first, prespecified=True) for seed in range(GAMES))
    assert not until_refuted(games, rate=0.1).is_refuted
