"""Pilots: moments, sizes and weights, sums, files, words, and why a share of a chosen length is not one."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_models import LAMP
from pyarrow import parquet
from refusals import refused

import plumdp as pl
from plumdp.data.counts import ADDED, Pilot, PilotEnd, TransitionCounts
from plumdp.data.files import _checksum, read_counts, write_counts
from plumdp.data.log_pilots import LogPilot
from plumdp.data.pilots import (
    ROWS_PER_RUN,
    SIZES,
    drawn_pilot,
    moments_for,
    moments_of,
    open_pilot,
    pilot_assumption,
    pilot_size,
    planned_moments,
    planned_pilot,
)
from plumdp.data.seen import Seen
from studies.layered import layered_model

N = LAMP.graph.n_transitions
ONES = np.ones(N, dtype=np.int64)


def counted(times, sampling="trajectories", pilot=None):
    return TransitionCounts(LAMP.graph, times * ONES, sampling, pilot)


def state(pilot):
    if pilot is None:
        return None
    moments = [moment.tolist() for moment in pilot.moments]
    about = (pilot.end, pilot.weight, pilot.ratio, pilot.rests_on)
    return (pilot.counts.tolist(), *about, moments, pilot.lengths, pilot.expected)


# moments and sizes


@given(st.integers(0, 2**62), st.integers(0, 2**62), st.sampled_from([1, ROWS_PER_RUN]))
def test_the_moments_of_data_are_the_first_moments_of_longer_data(n, more, per_run):
    """Otherwise whoever ends the data would choose when bets are placed."""
    moments, later = moments_of(n, per_run), moments_of(n + more, per_run)
    assert moments == later[: len(moments)]
    assert all(n <= moment for moment in later[len(moments) :])


@given(st.integers(0, 10**7), st.sampled_from([1, ROWS_PER_RUN]))
def test_a_pilot_is_the_largest_moment_that_is_at_most_an_eighth(n, per_run):
    moments = [per_run * 2**i for i in (4, 6, 8, 10, 12, 14)]
    assert pilot_size(n, per_run) == max((moment for moment in moments if moment <= n / 8), default=0)


def test_all_pilots_that_data_may_end_with_use_together_no_more_than_the_whole_error():
    """Exactly, whatever the end; nothing is chosen by the empty pilot of short data, so that it uses none of it."""
    ends = [*range(2000), *(8 * 16 * 4**i + more for i in range(8) for more in (-1, 0, 1)), 10**9]
    sizes = {pilot_size(n) for n in ends} - {0}
    weight = Fraction(1, 6)
    assert Pilot(ONES, PilotEnd.POWER_OF_FOUR).weight == float(weight)
    assert len(sizes) * weight == 1


def test_a_log_that_may_have_stopped_at_will_never_has_the_whole_error():
    """Not even one that ended before there was a pilot, as if that had been planned."""
    by_rows = LogPilot("rows", PilotEnd.POWER_OF_FOUR, "time")
    for n in (0, 1, 256, 257, 2048, 50_000):
        seen = [Seen(ONES * (i + 1)) for i in range(len(moments_of(n, 16)))]
        pilot = by_rows.pilot(seen, n, Seen(0 * ONES))
        assert (pilot.end, pilot.weight, pilot.ratio) == (PilotEnd.POWER_OF_FOUR, 1 / 6, 16)
        assert len(pilot.moments) == len(seen)
    planned = LogPilot("runs", PilotEnd.PLANNED, None)
    assert planned.pilot((), 4, 0 * ONES) is None


def test_data_of_a_planned_length_bet_from_the_first_moment_on_and_know_their_length():
    """100 runs: bets after 16 and 64 of them, but neither leaves seven times as much, so that the pilot is empty."""
    pilot = planned_pilot([Seen(ONES), Seen(4 * ONES)], 100, sizes=(16, 64))
    assert (pilot.total, pilot.lengths, pilot.expected) == (0, (16, 64), 100)
    pilot = planned_pilot([Seen(ONES), Seen(4 * ONES)], 128, sizes=(16, 64))
    assert (pilot.counts.tolist(), pilot.ratio, pilot.expected) == ([1] * N, 7, 128)


def shares_of_pilots(*, is_table, n_pilots=lambda pilot: pilot.n_pilots):
    """Return the shares of the error of all pilots that whoever ends the data may choose from, by their size."""
    shares = {}
    for n in (8 * 16 * 4**i for i in range(20)):
        moments = [Seen(m * ONES) for m in moments_for(n, is_table=is_table, is_planned=False)]
        pilot = open_pilot(moments, n, Seen(0 * ONES), is_table=is_table)
        shares[pilot.total] = Fraction(1, n_pilots(pilot))
        assert pilot.weight == 1 / pilot.n_pilots
    return shares


@pytest.mark.parametrize(("is_table", "n_pilots"), [(True, 12), (False, 6)])
def test_the_shares_of_all_pilots_that_an_end_may_choose_sum_to_the_error(is_table, n_pilots):
    """Each is the largest of 16, 64, … runs that is at most an eighth."""
    shares = shares_of_pilots(is_table=is_table)
    assert (len(shares), sum(shares.values())) == (n_pilots, 1)


def test_pilots_of_a_table_with_the_weight_of_others_are_found():
    assert sum(shares_of_pilots(is_table=True, n_pilots=lambda _: 6).values()) == 2


@pytest.mark.slow
def test_counts_that_were_read_for_a_table_keep_their_weight_with_parameters(tmp_path):
    """Twelve pilots at a sixth of the error each would be twice the error for whoever picks the end."""
    study = pl.case_study("betting:5")
    pl.data.write_runs(study.model, study.true_point, 200, tmp_path / "runs.parquet", rng=2, max_steps=7)
    table = pl.model.free_rows(study.model)
    as_table, as_coins = (
        pl.read_log(each, tmp_path / "runs.parquet", order="runs").counts for each in (table, study.model)
    )
    assert (as_table.pilot.weight, as_coins.pilot.weight) == (1 / 12, 1 / 6)
    write_counts(as_table, tmp_path / "counts.parquet")
    read = read_counts(study.model, tmp_path / "counts.parquet")
    more = pl.simulate(study.model, study.true_point, 10, rng=1, max_steps=7)
    assert [each.pilot.weight for each in (read, as_table + more)] == [1 / 12, 1 / 12]
    few, many = (pl.certify(study.model, each, study.objective, confidence=0.95) for each in (as_coins, as_table))
    assert many.upper - many.lower >= few.upper - few.lower


# independent samples without an order


@given(st.lists(st.integers(0, 500), min_size=N, max_size=N))
def test_a_drawn_pilot_is_a_sixteenth_of_the_visits_of_each_choice_in_moments_that_grow(times):
    """Of n visits, n/16 rounded down or up; a quarter of that is drawn before, and a quarter of the quarter."""
    counts = TransitionCounts(LAMP.graph, np.array(times), "independent")
    pilot = drawn_pilot(counts)
    if pilot is None:
        return
    first = LAMP.graph.first_transition[:-1]
    visits, drawn = (np.add.reduceat(seen, first) for seen in (counts.counts, pilot.counts))
    assert (drawn >= visits // 16).all()
    assert (drawn <= -(-visits // 16)).all()
    assert state(pilot) == state(drawn_pilot(counts))  # nobody can try another draw
    assert (pilot.end, pilot.expected) == (PilotEnd.PLANNED, counts.total)
    assert all((earlier <= later).all() for earlier, later in pairwise([*pilot.moments, counts.counts]))


def test_a_drawn_pilot_has_the_shares_of_its_choice():
    """A million visits of "go", three in ten of which moved: the draw is hypergeometric.

    The standard deviation of 62,500 draws is sqrt(62,500 · 0.3 · 0.7 · 15/16) = 111.
    """
    times = 0 * ONES
    start = int(LAMP.graph.first_transition[0])
    times[start : start + 2] = 300_000, 700_000
    drawn = drawn_pilot(TransitionCounts(LAMP.graph, times, "independent")).counts
    assert drawn.sum() == 62_500
    assert abs(drawn[start] - 0.3 * 62_500) < 4 * 111


@pytest.mark.parametrize("n", [10**9 // 2 - 1, 10**9 // 2, 2**40])
def test_more_visits_than_can_be_drawn_from_have_no_pilot(n):
    pilot = drawn_pilot(TransitionCounts(LAMP.graph, n * ONES, "independent"))
    assert (pilot is None) is (n > 10**9 // 2 - 1)


@pytest.mark.parametrize("sampling", ["trajectories", "adaptive"])
def test_nothing_is_drawn_from_data_whose_visits_depend_on_outcomes(sampling):
    assert drawn_pilot(counted(1000, sampling)) is None
    assert drawn_pilot(counted(1000, "independent", ONES)) is None  # which came first is known


# counts and pilots


def test_every_source_of_runs_has_seen_the_same_number_of_steps_at_each_moment():
    """Counts, recorded runs, the episodes of an environment, and logs of all of them: every run is three steps."""
    made = layered_model("sparse", 4, n_rows=30, n_layers=3, width=8)
    model, point, n_runs = made.model, made.true_point, 300
    options = {"rng": 1, "max_steps": 3}
    runs = pl.data.record(model, point, n_runs, **options)
    found = [
        pl.simulate(model, point, n_runs, **options),
        runs.counts(),
        pl.read_log(model, pd.DataFrame(runs.columns("trajectories")), sampling="trajectories").counts,
        pl.read_log(model, pd.DataFrame(runs.columns()), sampling="trajectories").counts,
        pl.data.sample_env(model, pl.data.as_env(model, point, max_steps=3), n_runs, rng=1),
    ]
    for counts in found:
        pilot = counts.pilot
        assert [moment.sum() for moment in pilot.moments] == [3 * n for n in planned_moments(300)]
        assert (pilot.total, pilot.ratio, pilot.end, pilot.expected) == (3 * 16, 300 / 16 - 1, PilotEnd.PLANNED, 300)


def test_an_array_is_a_planned_pilot_and_main_is_the_rest():
    counts = counted(5, pilot=2 * ONES)
    assert state(counts.pilot) == ([2] * N, PilotEnd.PLANNED, 1.0, 19.0, "", [[2] * N], (2 * N,), 20 * 2 * N)
    assert counts.main.tolist() == [3] * N
    assert counted(5).main.tolist() == [5] * N
    assert not counts.main.flags.writeable


def test_representations_say_how_long_the_pilot_is():
    assert repr(counted(5, pilot=2 * ONES)).endswith(f"trajectories, with a pilot of {2 * N} steps)")
    assert f"{2 * N} steps (planned)" in counted(5, pilot=2 * ONES)._repr_html_()
    assert repr(Pilot(ONES, "power of four")) == f"Pilot({N} steps, power of four)"
    assert repr(counted(5, "adaptive", EMPTY)).endswith("adaptive, with an empty pilot)")
    assert "0 steps (power of four)" in counted(5, "adaptive", EMPTY)._repr_html_()


def test_what_is_not_a_pilot_is_refused():
    refused("logs:pilots", globals(), pl.DataError)


# sums

POWER = Pilot(
    ONES,
    PilotEnd.POWER_OF_FOUR,
    16.0,
    "rows are in order of time",
    moments=(ONES, 2 * ONES),
    lengths=(256, 1024),
    expected=5000,
)
EMPTY = Pilot(0 * ONES, PilotEnd.POWER_OF_FOUR, 16.0, "rows are in order of time")
PLANNED, OTHER = Pilot(ONES, ratio=9.0), Pilot(3 * ONES, ratio=1.0)


def before_others(pilot):
    """Return a pilot that says that it was seen before what was added, if bets were placed by it."""
    said = {None: None, EMPTY: EMPTY, POWER: f"{POWER.rests_on}; {ADDED}", PLANNED: ADDED}[pilot]
    return replace(pilot, rests_on=said) if isinstance(said, str) else said


@pytest.mark.parametrize("first", [None, PLANNED, POWER, EMPTY])
@pytest.mark.parametrize("second", [None, OTHER, POWER, EMPTY])
@pytest.mark.parametrize("sampling", ["independent", "trajectories", "adaptive"])
def test_a_sum_keeps_the_first_pilot_and_says_that_it_was_first_and_the_second_is_main_data(first, second, sampling):
    """An empty pilot stays empty, with its weight: without it, short data would have the whole error again."""
    total = counted(5, sampling, first) + counted(7, sampling, second)
    assert state(total.pilot) == state(before_others(first))
    assert state((total + counted(1)).pilot) == state(total.pilot)
    assert total.main.tolist() == [12 if first in (None, EMPTY) else 11] * N


BOTH = "both parts were planned before looking at either, and neither depends on the other"


@pytest.mark.parametrize("one", ["independent", "trajectories", "adaptive"])
@pytest.mark.parametrize("other", ["independent", "trajectories", "adaptive"])
def test_only_planned_pilots_of_fixed_designs_add_up(one, other):
    """3 of 4 steps of both pilots have a planned ratio of 1, the others of 9: (1·9 + 3·1)/4 = 3."""
    total = counted(5, one, PLANNED).planned_sum(counted(7, other, OTHER))
    if "adaptive" in (one, other):
        assert state(total.pilot) == state(PLANNED)
    else:
        assert state(total.pilot) == ([4] * N, PilotEnd.PLANNED, 1.0, 3.0, BOTH, [[4] * N], (4 * N,), 4 * 4 * N)
    for first, second in ((PLANNED, EMPTY), (EMPTY, PLANNED), (EMPTY, EMPTY), (None, EMPTY), (EMPTY, None)):
        assert state(counted(5, one, first).planned_sum(counted(7, other, second)).pilot) == state(first)
    for first, second in ((PLANNED, POWER), (POWER, PLANNED), (PLANNED, None), (None, PLANNED), (None, None)):
        assert state(counted(5, one, first).planned_sum(counted(7, other, second)).pilot) == state(first)


def test_the_ratio_of_a_sum_does_not_look_at_the_main_data():
    sums = [counted(n, pilot=PLANNED).planned_sum(counted(2 * n, pilot=OTHER)) for n in (3, 1000)]
    assert sums[0].pilot.ratio == sums[1].pilot.ratio
    assert state((counted(1, pilot=PLANNED) + counted(1000)).pilot) == state(before_others(PLANNED))


# files


@pytest.mark.parametrize("pilot", [POWER, PLANNED, EMPTY, Pilot(0 * ONES, ratio=1 / 3, rests_on="it's “said”")])
def test_a_pilot_survives_a_file(tmp_path, pilot):
    write_counts(counted(5, "adaptive", pilot), tmp_path / "counts.parquet")
    assert state(read_counts(LAMP, tmp_path / "counts.parquet").pilot) == state(pilot)


def test_what_a_pilot_is_of_survives_a_file_that_says_it_in_words(tmp_path):
    planned = counted(5, "trajectories", PLANNED).planned_sum(counted(7, "trajectories", OTHER))
    for counts, said in ((planned, (False, True)), (planned + counted(5, "adaptive", None), (True, True))):
        write_counts(counts, tmp_path / "counts.parquet")
        read = read_counts(LAMP, tmp_path / "counts.parquet").pilot
        assert said == (read.is_added, read.is_planned_sum) == (counts.pilot.is_added, counts.pilot.is_planned_sum)


def test_the_empty_pilot_of_nothing_survives_a_file(tmp_path):
    write_counts(counted(0, "adaptive", EMPTY), tmp_path / "counts.parquet")
    assert state(read_counts(LAMP, tmp_path / "counts.parquet").pilot) == state(EMPTY)


def rewritten(path, change):
    """Write the file again, with a description that was changed and a checksum that fits it."""
    table = parquet.read_table(path)
    about = change(json.loads(table.schema.metadata[b"plumdp"]))
    about.pop("checksum")
    block = {name: table[name].to_numpy() for name in table.column_names}
    text = json.dumps(about | {"checksum": _checksum(about, block)})
    parquet.write_table(table.replace_schema_metadata({b"plumdp": text.encode()}), path)


@pytest.mark.parametrize(("pilot", "weight"), [(POWER, 1 / 12), (PLANNED, 1)])
def test_a_file_that_does_not_say_how_many_pilots_there_might_have_been_is_read_on_the_safe_side(
    tmp_path, pilot, weight
):
    path = tmp_path / "counts.parquet"
    write_counts(counted(5, "adaptive", pilot), path)
    rewritten(path, lambda about: about | {"pilot": {k: v for k, v in about["pilot"].items() if k != "n_pilots"}})
    assert read_counts(LAMP, path).pilot.weight == weight


def without_description(about):
    return {key: value for key, value in about.items() if key != "pilot"}


def with_description(about):
    return about | {"pilot": {"end": "planned", "ratio": 1, "rests_on": "", "lengths": [], "expected": None}}


@pytest.mark.parametrize(("pilot", "change"), [(PLANNED, without_description), (None, with_description)])
def test_a_pilot_without_its_description_is_not_taken_for_a_planned_one(tmp_path, pilot, change):
    path = tmp_path / "counts.parquet"
    write_counts(counted(5, "adaptive", pilot), path)
    rewritten(path, change)
    with pytest.raises(pl.DataError) as caught:
        read_counts(LAMP, path)
    assert str(caught.value) == (
        f"{path}: the file has a column pilot or says what its pilot is, but not both: count the log again"
    )


@pytest.mark.parametrize(
    "said",
    [
        [],
        {},
        {"end": "planned"},
        {"end": "planned", "weight": 1.0, "ratio": 1, "rests_on": ""},
        {"end": "planned", "ratio": "1", "rests_on": "", "lengths": [1.0], "expected": None},
    ],
)
def test_a_description_of_a_pilot_that_cannot_be_read_is_refused(tmp_path, said):
    path = tmp_path / "counts.parquet"
    write_counts(counted(5, "adaptive", POWER), path)
    rewritten(path, lambda about: about | {"pilot": said})
    with pytest.raises(pl.DataError, match="what the file says about its pilot cannot be read: count the log again"):
        read_counts(LAMP, path)


def test_an_expected_length_that_was_changed_is_refused(tmp_path):
    path = tmp_path / "counts.parquet"
    write_counts(counted(5, "adaptive", POWER), path)
    table = parquet.read_table(path)
    about = json.loads(table.schema.metadata[b"plumdp"])
    about["pilot"]["expected"] = 10_000
    parquet.write_table(table.replace_schema_metadata({b"plumdp": json.dumps(about).encode()}), path)
    with pytest.raises(pl.DataError, match="the counts are not those that were written"):
        read_counts(LAMP, path)


# words


def test_the_assumption_says_when_bets_were_placed_and_what_the_order_rests_on():
    placed = "the data that came first decided how later ones are used, at moments that do not depend on the end"
    assert pilot_assumption(PLANNED) == (
        f"the first {N} steps of the data decided how the others are used, before these were looked at"
    )
    renewed = replace(PLANNED, moments=(ONES, 200 * ONES), lengths=(16, 64))
    assert pilot_assumption(renewed) == (
        f"earlier data decided how later ones are used: the first {N} steps to begin with, {200 * N:,} in the end"
    )
    assert pilot_assumption(POWER) == (
        f"{placed}; rows are in order of time; you expected 5,000 runs, or rows, before there were any"
    )
    assert pilot_assumption(replace(POWER, expected=None)) == f"{placed}; rows are in order of time"
    assert not pilot_assumption(EMPTY)  # nothing was chosen by it


# why a share of a length that was chosen by looking is not a pilot


def ever_missed(heads, ends, sizes, weights, *, ratio, error=0.1):
    """Return whether a coin of 1/2 is excluded, at any of the ends, by the bets that the pilot of that end chose.

    For a pilot with the estimate p, an end with error e = error · weight and main data of a planned number m = ratio ·
    size, either side bets u = z/p on heads and −z/(1 − p) on tails, z = ±sqrt(2 ln(2/e) p(1 − p)/m), clipped at ±1/2.
    For each fixed size, exp(Σ u)/Z(1/2)^n over the main data is a martingale from 1; it excludes 1/2 at 2/e.
    """
    p, wall = (heads[sizes] + 0.5) / (sizes + 1), np.log(2 / (error * weights))
    z = np.sqrt(2 * wall * p * (1 - p) / (ratio * sizes))
    seen, n = heads[ends] - heads[sizes], ends - sizes
    on_heads, on_tails = (np.clip(np.outer([1, -1], bet), -0.5, 0.5) for bet in (z / p, -z / (1 - p)))
    gained = seen * on_heads + (n - seen) * on_tails - n * np.log((np.exp(on_heads) + np.exp(on_tails)) / 2)
    return bool((gained >= wall).any())


@pytest.mark.slow
def test_a_share_of_a_length_chosen_by_an_opponent_misses_and_powers_of_four_with_weights_do_not():
    """400 coins at error 0.1, the worst end of about 600: with a valid pilot at most 56 miss (binomial, 1 %)."""
    rng, n, repetitions = np.random.default_rng(14), 200_000, 400
    ends = np.unique(np.geomspace(40, n, 800).astype(int))
    late = ends[ends >= 8 * SIZES[1]]
    sizes, ones = np.array([pilot_size(end) for end in late.tolist()]), np.ones(len(ends))
    missed = dict.fromkeys(("a tenth", "powers with weights", "fixed"), 0)
    for _ in range(repetitions):
        heads = np.concatenate([[0], np.cumsum(rng.integers(0, 2, n, dtype=np.int8), dtype=np.int64)])
        missed["a tenth"] += ever_missed(heads, ends, ends // 10, ones, ratio=9)
        missed["powers with weights"] += ever_missed(heads, late, sizes, ones[: len(late)] / 6, ratio=16)
        missed["fixed"] += ever_missed(heads, ends[ends > 1000], np.array([1000]), np.ones(1), ratio=13)
    assert missed["a tenth"] > 0.25 * repetitions
    assert missed["powers with weights"] <= 56
    assert missed["fixed"] <= 56
