"""Games of a watch: how often it gives false alarms, how soon right ones, and whether certificates about now hold."""

import numpy as np
import pytest
from coin_model import COIN
from tiers import size
from watch_games import COIN_ROWS

from plumdp.data.seen import Seen
from plumdp.watching.detectors import ValueBets
from plumdp.watching.plan import Plan, WatchState
from plumdp.watching.rows import watched_rows
from plumdp.watching.stream import Stream
from plumdp.watching.watch import since_part

pytestmark = pytest.mark.slow

QUIET = 25


def watched(plan, rates, rng, n=10, *, acknowledges=False, values=None):
    """Return the parts of alarms of a coin with a rate for each part, which may depend on what came before."""
    state, heads, alarms = WatchState.begin(plan), n // 2, []
    for number, rate in enumerate(rates):
        size_of_part = (n // 2 if heads * 10 > size_of(n) else n) if values is None else n
        heads = int(rng.binomial(size_of_part, rate(heads) if callable(rate) else rate))
        losses = None if values is None else np.array([1.0] * heads + [0.0] * (size_of_part - heads))
        state = state.add(f"{number}", "", Seen(np.array([heads, size_of_part - heads])), losses)
        if state.open_alarms:
            alarms.append(number + 1)
            if not acknowledges:
                break
            state = state.acknowledge()
    return alarms


def size_of(n):
    return 2 * n


def test_false_alarms_of_a_learned_reference_are_at_most_one_in_quiet_parts_also_with_restarts():
    """Parts are shorter after many heads, so that their sizes depend on what was seen."""
    rng, n = np.random.default_rng(1), 4 * QUIET
    plan = Plan(COIN_ROWS, QUIET)
    games = [len(watched(plan, [0.3] * n, rng, acknowledges=True)) for _ in range(size(20, 1000))]
    assert np.mean(games) <= n / QUIET


def test_run_lengths_of_a_known_reference_are_at_least_quiet_and_not_much_more():
    rng = np.random.default_rng(2)
    reference = np.array([0.3, 0.7]), np.array([0.3, 0.7])
    plan = Plan(COIN_ROWS, QUIET, reference)
    lengths = [(watched(plan, [0.3] * 8 * QUIET, rng) or [8 * QUIET])[0] for _ in range(size(60, 2000))]
    spread = np.std(lengths) / np.sqrt(len(lengths))
    assert np.mean(lengths) >= QUIET - 2 * spread


def test_thresholds_that_are_too_low_are_found(monkeypatch):
    """A planted error: of two alarms, each is given at a fifth of quiet."""
    rng, limit = np.random.default_rng(3), 0.3
    plan = Plan(COIN_ROWS, QUIET, (np.array([limit, 1 - limit]), np.array([limit, 1 - limit])), limit)

    def first():
        alarms = watched(plan, [limit] * 6 * QUIET, rng, values=True)
        return (alarms or [6 * QUIET])[0]

    right = [first() for _ in range(size(40, 1000))]
    monkeypatch.setattr(Plan, "thresholds", property(lambda plan: {"rows": QUIET / 5, "value": QUIET / 5}))
    wrong = [first() for _ in range(size(40, 1000))]
    assert np.mean(right) >= QUIET
    assert np.mean(wrong) < QUIET


@pytest.mark.parametrize("moves", ["improving", "neutral"])
def test_a_value_that_moves_and_never_falls_gives_at_most_one_alarm_in_quiet_parts(moves):
    """A neutral system has the limit at every moment, and a law of outcomes that depends on what came before."""
    rng, limit, n = np.random.default_rng(4), 0.3, 4 * QUIET

    def alarms():
        bets, number = ValueBets.against(limit), 0
        for part in range(n):
            mean = limit * (1 - part / (2 * n)) if moves == "improving" else limit
            share = rng.random() if number % 2 else 1.0  # losses are 0 or 1, or of any size, with one mean
            losses = rng.random(10) < mean if share == 1.0 else np.minimum(2 * mean * rng.random(10), 1.0)
            bets = bets.add(f"{part}", losses.astype(np.float64))
            if bets.evidence >= np.log(QUIET):
                number, bets = number + 1, ValueBets.against(limit)
        return number

    assert np.mean([alarms() for _ in range(size(20, 200))]) <= n / QUIET


def divergence(p, q):
    return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))


@pytest.mark.parametrize(("reference", "most"), [("known", 1.15), ("learned", 1.8)])
def test_delays_are_close_to_the_limit(reference, most):
    """From 0.10 to 0.20 with 20 throws a part, at most one false alarm in 1,000 parts; ln(1,000)/KL is 7.8 parts."""
    rng, quiet = np.random.default_rng(5), 100 if reference == "known" else 1000
    within = (np.array([0.1, 0.9]), np.array([0.1, 0.9])) if reference == "known" else None
    delays = []
    for _ in range(size(30, 400)):
        state = WatchState.begin(Plan(COIN_ROWS, 1000, within))
        stream = state.stream
        for number in range(quiet):
            heads = int(rng.binomial(20, 0.1))
            stream = stream.add(f"{number}", Seen(np.array([heads, 20 - heads])))
        for number in range(quiet, quiet + 100):
            heads = int(rng.binomial(20, 0.2))
            stream = stream.add(f"{number}", Seen(np.array([heads, 20 - heads])))
            if state.plan.of_rows(stream).log_sum >= np.log(state.plan.thresholds["rows"]):
                break
        delays.append(number + 1 - quiet)
    bound = np.log(1000) / (20 * divergence(0.2, 0.1))
    assert np.mean(delays) <= most * bound + 2 * np.std(delays) / np.sqrt(len(delays))


def misses_ever(rng, change, n, every):
    """Return whether a certificate with confidence one half from some start after a change ever misses."""
    stream = Stream(watched_rows(COIN))
    first, wrong = COIN.graph.first_transition[0], False
    for number in range(n):
        rate = 0.3 if number < change else 0.6
        counts = np.zeros(COIN.graph.n_transitions, dtype=np.int64)
        heads = int(rng.binomial(4, rate))
        counts[first : first + 2] = heads, 4 - heads
        stream = stream.add(f"part {number + 1}", Seen(counts))
        if number >= change and number % every == 0:
            valid = [i for i, end in enumerate(stream.ends) if end >= change]
            found = [since_part(COIN, stream, i, 'P=? [ F "heads" ]', None, 0.5, is_chosen=True) for i in valid]
            wrong |= any(not each.lower <= rate <= each.upper for each in found)
    return wrong


def misses_after_alarms(rng, n=16, rate=0.5):
    """Return whether a certificate with confidence one half ever misses if every false alarm is acknowledged."""
    known = np.array([0.5, 0.5])
    state, wrong, n_begun = WatchState.begin(Plan(watched_rows(COIN), 1.2, (known, known))), False, 1
    first = COIN.graph.first_transition[0]
    for number in range(n):
        counts = np.zeros(COIN.graph.n_transitions, dtype=np.int64)
        heads = int(rng.binomial(8, rate))
        counts[first : first + 2] = heads, 8 - heads
        state = state.add(f"{number}", "", Seen(counts), None)
        if state.open_alarms or number == n - 1:  # all starts since the last beginning
            for i in range(len(state.stream.parts)):
                found = since_part(
                    COIN, state.stream, i, 'P=? [ F "heads" ]', None, 0.5, is_chosen=True, share=state.share
                )
                wrong |= not found.lower <= rate <= found.upper
            state, n_begun = state.acknowledge(), n_begun + 1
    return wrong, n_begun


def test_certificates_of_all_starts_hold_at_once_also_after_acknowledged_alarms():
    rng = np.random.default_rng(7)
    games = [misses_after_alarms(rng) for _ in range(size(2, 200))]
    assert np.mean([wrong for wrong, _ in games]) <= 0.5
    assert np.mean([n_begun for _, n_begun in games]) > 4


def test_certificates_of_all_starts_after_a_change_hold_at_once():
    rng = np.random.default_rng(6)
    games = [misses_ever(rng, int(rng.integers(2, 8)), 14, 3) for _ in range(size(2, 150))]
    assert np.mean(games) <= 0.5
