"""Changes over time are found and named, and no bound follows from them; what did not change keeps its certificate."""

from dataclasses import replace
from math import log

import numpy as np
import pytest
from cell_models import cell_model
from coin_model import COIN
from row_models import row_model
from shorthand import check_model, compare
from time_games import read_over_time

import plumdp as pl
from plumdp.base.vocabulary import Status
from plumdp.certifying.pipeline import relax
from plumdp.confidence.estimates import law_of_pilot, law_of_space
from plumdp.confidence.evidence import log_evidence
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.tolerant import tolerant_shares
from plumdp.data.counts import ADDED, Pilot
from plumdp.data.time_parts import FILED, parts_at
from plumdp.fit.model_fit import fit_model
from plumdp.fit.time_tests import SeenOverTime, _terms, pilots_of, weight_of
from plumdp.learning.model_tests import CHANGED
from plumdp.model.expressions.polynomial import Polynomial

(p,) = pl.parameters("p")
HEADS = 'P=? [ F "heads" ]'
rng = np.random.default_rng(1)
OUTCOMES = rng.random(4000) < np.where(np.arange(4000) < 2000, 0.1, 0.2)
CHANGED_COIN = read_over_time(OUTCOMES)
SAME_COIN = read_over_time(rng.random(4000) < 0.15)


def test_a_coin_that_changes_is_found_and_no_bound_is_claimed(tmp_path):
    """At the truth, the likelihood of the change is 4,000/4 · 0.1² / (2 · 0.15 · 0.85) = 39 nats above that of none."""
    found = pl.certify(COIN, CHANGED_COIN, HEADS)
    assert found.beside.p_value < 1e-6
    assert found.status == Status.REJECTED
    assert found.headline == f"Model rejected: {CHANGED}. Nothing is claimed."
    assert (found.lower, found.upper, found.claim.printed_bounds) == (-np.inf, np.inf, ("none", "none"))
    assert found.rests_on.parameters == {}
    text = str(found)
    assert "p was about 0.1, and about 0.2 from about run 2,0" in text or "from about run 1,9" in text
    assert "depends on state and action alone" not in text
    assert "model_tolerance" not in found.claim.reason
    pl.write_result(found, tmp_path / "result")
    read = pl.read_result(tmp_path / "result")
    assert (read.headline, read.claim.claims_bounds, read.to_dict()["lower"]) == (found.headline, False, None)


def test_what_did_not_change_has_the_same_bounds_as_without_a_test_over_time():
    with_time, without = (pl.certify(COIN, each, HEADS) for each in (SAME_COIN, replace(SAME_COIN, time=None)))
    assert (with_time.lower, with_time.upper) == (without.lower, without.upper)
    assert with_time.beside.p_value == without.beside.p_value == 1
    shares = dict(with_time.how.budget)
    assert shares["tests of changes over time"] == shares["tests of drifts"] == shares["tests of rows"]
    assert "tests of changes over time" not in dict(without.how.budget)


def test_all_that_follows_from_data_that_changed_is_true_of_every_coin():
    learned, policy = pl.learn(COIN, CHANGED_COIN), COIN.graph.first_choice[:-1]
    gain = pl.difference(learned, HEADS, policy, policy)
    assert (gain.lower, gain.upper) == (-np.inf, np.inf)
    assert all(not each.claim.claims_bounds for each in compare(COIN, CHANGED_COIN, HEADS))
    assert pl.decide(learned, 'P>=0.05 [ F "heads" ]').verdict == "inconclusive"
    relaxed, thrown = relax(learned, "expression"), COIN.graph.first_transition[0]
    of_throw = relaxed.expression[thrown : thrown + 2]
    assert (relaxed.lower[of_throw].tolist(), relaxed.upper[of_throw].tolist()) == ([0, 0], [1, 1])


def test_the_check_of_a_model_names_the_change():
    check = check_model(COIN, CHANGED_COIN)
    assert check.diagnosis[0] == CHANGED
    assert "(estimates)" in check.diagnosis[1]


@pytest.mark.parametrize("kind", ["interval", "l1", "ellipsoid", "likelihood"])
def test_every_set_is_tested_over_time(kind):
    assert not pl.certify(COIN, CHANGED_COIN, HEADS, confidence_set=kind).claim.claims_bounds


def test_rows_that_may_be_off_are_not_tested_over_time():
    """At every time, a coin of 0.15 that may be off by 0.1 explains it."""
    found = pl.certify(COIN, CHANGED_COIN, HEADS, model_tolerance=0.1)
    assert found.status != Status.REJECTED
    assert found.lower < 0.1 < 0.2 < found.upper
    assert not tolerant_shares(has_bets=True, has_drifts=True)["time"]


def unknown_coin(s):
    return {"stay": [(1, s)]} if s.x else {"go": pl.unknown(s._replace(x=1), s._replace(x=2))}


TABLE = pl.explore(unknown_coin, {"x": 0}, labels={"heads": lambda s: s.x == 1})


def test_a_row_of_a_table_that_changes_is_named_and_no_bound_is_claimed():
    counts = replace(CHANGED_COIN, graph=TABLE.graph)
    found = pl.certify(TABLE, counts, HEADS)
    assert found.beside.p_value < 1e-6
    assert not found.claim.claims_bounds
    assert "state (x=0), action 'go' leads to x=1 was about 0." in found.claim.reason
    assert "(estimates)" in found.claim.reason
    assert pl.certify(TABLE, replace(SAME_COIN, graph=TABLE.graph), HEADS).status == Status.CERTIFIED


def test_stages_of_a_table_without_parts_are_tested_as_well():
    """The moments at which bets are placed are enough to tell a change from 0.2 to 0.8."""
    heads = rng.random(4000) < np.where(np.arange(4000) < 2000, 0.2, 0.8)
    counts = replace(read_over_time(heads), graph=TABLE.graph, time=None)
    found = pl.certify(TABLE, counts, HEADS, confidence=0.99)
    assert found.beside.p_value < 1e-6
    assert not found.claim.claims_bounds


TIED = cell_model([[[p, 1 - p]], [[p, 1 - p]]], pl.ParameterSpace.unit("p"))


def visits(first, second, n=400):
    """Return counts of two rows with heads at their rates, the first visited in the first half, or both throughout."""
    graph = TIED.graph
    starts = [
        graph.first_transition[c] for c in range(graph.n_choices) if graph.action_names[graph.action[c]] == "row 0"
    ]
    parts = []
    for (one, at_one), (other, at_other) in zip(first, second, strict=True):
        counts = np.zeros(graph.n_transitions, dtype=np.int64)
        for start, times, rate in ((starts[0], one, at_one), (starts[1], other, at_other)):
            counts[start : start + 2] = round(times * rate), times - round(times * rate)
        parts.append(counts)
    seen = np.cumsum(parts, axis=0)
    ends = [16 * (i + 1) for i in range(len(parts) - 1)]
    time = parts_at(ends, seen[:-1], 16 * len(parts))
    return pl.TransitionCounts(graph, seen[-1], "adaptive", Pilot(seen[0], "power of four"), time=time)


def test_tied_rows_that_differ_and_are_visited_alike_have_bounds_on_the_graph_alone():
    alike = visits([(300, 0.1)] * 8, [(300, 0.2)] * 8)
    learned = pl.learn(TIED, alike)
    assert learned.fit.p_value < 1e-6
    assert learned.fit.p_of_time == 1
    assert learned.conflict is not None
    assert not learned.conflict.is_over_time


def test_tied_rows_that_differ_and_are_visited_one_after_the_other_say_nothing_about_now():
    """Nothing changes, but no test of the likelihood can tell: the words leave both open."""
    learned = pl.learn(TIED, visits([(600, 0.1)] * 4 + [(0, 0.1)] * 4, [(0, 0.2)] * 4 + [(600, 0.2)] * 4))
    assert learned.fit.p_value < 1e-6
    assert learned.conflict.is_over_time
    assert "or tied rows differ" in learned.conflict.findings[0]


@pytest.mark.parametrize("empty", [0, 3, 7])
def test_days_without_data_change_nothing(empty):
    days = [(300, 0.1)] * 8
    days[empty] = (0, 0.1)
    assert fit_model(TIED, visits(days, [(0, 0.1)] * 8)).p_value == 1
    all_days = visits(days, [(300, 0.1)] * 8)
    assert fit_model(TIED, all_days).p_value == 1


def test_a_class_that_was_never_seen_and_a_space_without_parameters_are_no_problem():
    known = row_model([[Polynomial(1) / 2, Polynomial(1) / 2]], pl.ParameterSpace.unit())
    counts = np.array([500, 500] + [0] * (known.graph.n_transitions - 2))
    time = parts_at([16], [counts // 2], 32)
    seen = pl.TransitionCounts(known.graph, counts, "adaptive", Pilot(counts // 5), time=time)
    assert fit_model(known, seen).p_value == 1


def test_days_that_are_added_in_order_are_tested_and_say_what_that_rests_on():
    outcomes = OUTCOMES
    days = [read_over_time(outcomes[start : start + 500]) for start in range(0, 4000, 500)]
    found = pl.certify(COIN, sum(days), HEADS)
    assert found.beside.p_value < 1e-6
    assert "counts number 5" in found.claim.reason
    assert any(ADDED in each for each in found.rests_on.assumptions)
    assert sum(FILED in each for each in found.rests_on.assumptions) == 1
    assert not any(FILED in each for each in pl.certify(COIN, days[0], HEADS).rests_on.assumptions)
    short = read_over_time(outcomes[:10]) + read_over_time(outcomes[10:20])
    assert any(ADDED in each for each in pl.certify(COIN, short, HEADS).rests_on.assumptions)


@pytest.mark.slow
def test_the_order_of_each_log_that_is_added_is_said_once():
    """Boundaries inside of the second counts rest on the order of its runs, of whatever kind the first counts are."""
    order = "the runs were numbered as they were made"
    simulated, read = pl.simulate(COIN, {"p": 0.3}, 500, rng=1, max_steps=1), read_over_time(OUTCOMES[:500])
    read = replace(read, pilot=replace(read.pilot, rests_on=order))
    for counts in (read, simulated + read, read + simulated):
        assert sum(order in each for each in pl.certify(COIN, counts, HEADS).rests_on.assumptions) == 1
    assert not any(order in each for each in pl.certify(COIN, simulated, HEADS).rests_on.assumptions)


def test_a_boundary_whose_pilot_was_not_kept_has_the_next_one_at_its_own_weight():
    """Without its pilot a term is left out, and never replaced at the same weight."""
    table, space = likelihood_table(COIN), law_of_space(COIN)
    seen = SeenOverTime.of(table, CHANGED_COIN.time, table.pool(CHANGED_COIN.counts))
    assert pilots_of(128)[:2] == [(16, 0.5), (4, 0.25)]
    kept = np.array([end != 16 for end in seen.ends])
    fewer = replace(
        seen,
        before=seen.before[kept],
        **{n: tuple(np.array(getattr(seen, n))[kept].tolist()) for n in ("ends", "names")},
    )
    (_, _, lost), (_, gained, after) = ([*_terms(each, each.ends.index(128), space)][1] for each in (seen, fewer))
    assert (seen.total - lost).sum() == 16 * 16
    assert (seen.total - after).sum() == 4 * 16
    at = dict(zip(seen.ends, seen.before, strict=True))
    first = log_evidence(table, at[128] - at[4], *law_of_pilot(table, at[4], space))
    last = log_evidence(table, seen.total - at[128], *space)
    assert gained == pytest.approx(first + last + log(weight_of(128) / 2 / 4))
