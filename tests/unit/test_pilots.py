"""Pilots: sizes and weights, what sums keep of them, files, words, and why a share of a chosen length is none."""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_models import LAMP
from pyarrow import parquet

import plumdp as pl
from plumdp.data.counts import Pilot, PilotEnd, TransitionCounts
from plumdp.data.files import _checksum, read_counts, write_counts
from plumdp.data.log_pilots import LogPilot
from plumdp.data.pilots import SMALLEST, pilot_assumption, pilot_share, planned_size, power_of_two_pilot
from plumdp.experiments.layered import layered_model

N = LAMP.graph.n_transitions
ONES = np.ones(N, dtype=np.int64)


def counted(times, sampling="trajectories", pilot=None):
    return TransitionCounts(LAMP.graph, times * ONES, sampling, pilot)


def state(pilot):
    return None if pilot is None else (pilot.counts.tolist(), pilot.end, pilot.weight, pilot.ratio, pilot.rests_on)


# sizes


@pytest.mark.parametrize(
    ("n_runs", "n_parameters", "share"),
    [(4_999, 1, 0.1), (5_000, 1, 0.05), (10**6, 4, 0.05), (10**6, 5, 0.1), (10**6, 20, 0.1), (100, 21, 0.2)],
)
def test_the_share_grows_with_the_parameters_and_shrinks_with_the_runs(n_runs, n_parameters, share):
    assert pilot_share(n_runs, n_parameters) == share


@given(st.integers(1, 10**9), st.integers(1, 60), st.none() | st.floats(0, 1, exclude_max=True))
def test_a_planned_pilot_leaves_main_data(n_runs, n_parameters, share):
    assert 0 <= planned_size(n_runs, n_parameters, share) < n_runs


@given(st.integers(0, 2**62))
def test_a_power_of_two_is_the_largest_that_is_at_most_a_tenth(n):
    size, weight = power_of_two_pilot(n)
    sizes = [2**i for i in range(4, 63) if 10 * 2**i <= n]
    assert size == max(sizes, default=0)
    expected = Fraction(9, 10 * len(sizes) * (len(sizes) + 1)) if sizes else Fraction(1, 10)
    assert weight == pytest.approx(float(expected), rel=1e-15)


def test_all_pilots_that_data_may_end_with_use_together_no_more_than_the_whole_error():
    """Exactly as the floats are: one pilot for each size that some end has, the empty one of short data among them.

    9/10 · Σ 1/(k(k + 1)) for k = 1, …, 59 is 9/10 · (1 − 1/60); with 1/10 it is less than 1 by 3/200.
    """
    weights = {}
    for n in [*range(2000), *(10 * 2**i + more for i in range(4, 63) for more in (-1, 0, 1))]:
        size, weight = power_of_two_pilot(n)
        assert weights.setdefault(size, weight) == weight
    assert [*weights] == [0, *(2**i for i in range(4, 63))]
    assert sum(map(Fraction, weights.values())) == pytest.approx(1 - 3 / 200, rel=1e-12)
    assert sum(map(Fraction, weights.values())) <= 1


def test_no_pilot_of_a_log_that_may_have_stopped_at_will_may_use_more_than_the_weight_of_its_size():
    """Whoever ends the log before there is a pilot must not have the whole error, as if that had been planned."""
    by_rows = LogPilot("rows", PilotEnd.POWER_OF_TWO, None, "time")
    for n in (0, 1, 159, 160, 5000):
        size, weight = power_of_two_pilot(n)
        pilot = by_rows.pilot(ONES if size else 0 * ONES, n, size)
        assert (pilot.end, pilot.weight) == (PilotEnd.POWER_OF_TWO, weight)
    planned = LogPilot("runs", PilotEnd.PLANNED, None, None)
    assert planned.pilot(0 * ONES, 3, 0) is None


# counts and pilots


@pytest.mark.parametrize(
    ("n_parameters", "n_runs", "share"), [(4, 400, 0.1), (4, 5000, 0.05), (8, 5000, 0.1), (21, 5000, 0.2)]
)
def test_every_source_of_runs_takes_the_same_share_by_default(n_parameters, n_runs, share):
    """Counts, recorded runs, the episodes of an environment, and logs of all of them: every run is three steps."""
    made = layered_model("sparse", n_parameters, n_rows=30, n_layers=3, width=8)
    model, point = made.model, made.true_point
    options = {"rng": 1, "max_steps": 3}
    runs = pl.record(model, point, n_runs, **options)
    frame = pd.DataFrame(runs.columns("trajectories"))
    found = [
        pl.simulate(model, point, n_runs, **options),
        runs.counts(),
        pl.read_log(frame, model, sampling="trajectories").counts,
        pl.read_log(pd.DataFrame(runs.columns()), model, sampling="trajectories").counts,
    ]
    if n_runs < 1000:  # one step at a time takes long
        found.append(pl.sample_env(pl.as_env(model, point, max_steps=3), "uniform", n_runs, model, rng=1))
    assert [counts.pilot.total for counts in found] == [round(3 * share * n_runs)] * len(found)
    assert {counts.pilot.end for counts in found} == {PilotEnd.PLANNED}


def test_an_array_is_a_planned_pilot_and_main_is_the_rest():
    counts = counted(5, pilot=2 * ONES)
    assert state(counts.pilot) == ([2] * N, PilotEnd.PLANNED, 1.0, 19.0, "")
    assert counts.main.tolist() == [3] * N
    assert counted(5).main.tolist() == [5] * N
    assert not counts.main.flags.writeable


def test_representations_say_how_long_the_pilot_is():
    assert repr(counted(5, pilot=2 * ONES)).endswith(f"trajectories, with a pilot of {2 * N} steps)")
    assert f"{2 * N} steps (planned)" in counted(5, pilot=2 * ONES)._repr_html_()
    assert repr(Pilot(ONES, "power of two", 0.45)) == f"Pilot({N} steps, power of two)"
    assert repr(counted(5, "adaptive", EMPTY)).endswith("adaptive, with an empty pilot)")
    assert "0 steps (power of two)" in counted(5, "adaptive", EMPTY)._repr_html_()


BAD = {
    "shape": (
        lambda: counted(5, pilot=Pilot(np.ones(3, int))),
        f"pilot has shape (3,), but the model has {N} transitions",
    ),
    "larger": (
        lambda: counted(1, pilot=2 * ONES),
        "the pilot is a part of the counts, so none of its counts can be larger",
    ),
    "fractions": (lambda: counted(1, pilot=0.5 * ONES), "pilot must be whole numbers, not float64"),
    "negative": (lambda: Pilot(-ONES), "pilot has negative entries"),
    "end": (lambda: Pilot(ONES, "a share"), "end='a share': choose one of 'planned', 'power of two'"),
    "whole error for a power of two": (
        lambda: Pilot(ONES, PilotEnd.POWER_OF_TWO),
        "weight=1.0: a pilot with the end 'power of two' may use a share of the error above 0 and at most 0.45; "
        "power_of_two_pilot gives the share for each size",
    ),
    "more than the smallest power of two": (
        lambda: Pilot(ONES, PilotEnd.POWER_OF_TWO, 0.5),
        "weight=0.5: a pilot with the end 'power of two' may use a share of the error above 0 and at most 0.45; "
        "power_of_two_pilot gives the share for each size",
    ),
    "too much": (
        lambda: Pilot(ONES, weight=1.5),
        "weight=1.5: a pilot with the end 'planned' may use a share of the error above 0 and at most 1; "
        "power_of_two_pilot gives the share for each size",
    ),
    "ratio": (
        lambda: Pilot(ONES, ratio=0),
        "ratio=0: it is the planned amount of main data per step of the pilot, above 0",
    ),
    "no ratio": (
        lambda: Pilot(ONES, ratio=float("nan")),
        "ratio=nan: it is the planned amount of main data per step of the pilot, above 0",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_not_a_pilot_is_refused(case):
    make, message = BAD[case]
    with pytest.raises(pl.DataError) as caught:
        make()
    assert str(caught.value) == message


# sums

POWER = Pilot(ONES, PilotEnd.POWER_OF_TWO, 0.15, 13.0, "rows are in order of time")
EMPTY = Pilot(0 * ONES, PilotEnd.POWER_OF_TWO, 0.1, 13.0, "rows are in order of time")
PLANNED, OTHER = Pilot(ONES, ratio=9.0), Pilot(3 * ONES, ratio=1.0)


@pytest.mark.parametrize("first", [None, PLANNED, POWER, EMPTY])
@pytest.mark.parametrize("second", [None, OTHER, POWER, EMPTY])
@pytest.mark.parametrize("sampling", ["independent", "trajectories", "adaptive"])
def test_a_sum_keeps_the_first_pilot_as_it_was_and_the_second_is_main_data(first, second, sampling):
    """An empty pilot stays empty, with its weight: without it, short data would have the whole error again."""
    total = counted(5, sampling, first) + counted(7, sampling, second)
    assert state(total.pilot) == state(first)
    assert total.main.tolist() == [12 if first in (None, EMPTY) else 11] * N


@pytest.mark.parametrize("one", ["independent", "trajectories", "adaptive"])
@pytest.mark.parametrize("other", ["independent", "trajectories", "adaptive"])
def test_only_planned_pilots_of_fixed_designs_add_up(one, other):
    """3 of 4 steps of both pilots have a planned ratio of 1, the others of 9: (1·9 + 3·1)/4 = 3."""
    total = counted(5, one, PLANNED).planned_sum(counted(7, other, OTHER))
    if "adaptive" in (one, other):
        assert state(total.pilot) == state(PLANNED)
    else:
        assert state(total.pilot) == ([4] * N, PilotEnd.PLANNED, 1.0, 3.0, "")
    for first, second in ((PLANNED, EMPTY), (EMPTY, PLANNED), (EMPTY, EMPTY), (None, EMPTY), (EMPTY, None)):
        assert state(counted(5, one, first).planned_sum(counted(7, other, second)).pilot) == state(first)
    for first, second in ((PLANNED, POWER), (POWER, PLANNED), (PLANNED, None), (None, PLANNED), (None, None)):
        assert state(counted(5, one, first).planned_sum(counted(7, other, second)).pilot) == state(first)


def test_the_ratio_of_a_sum_does_not_look_at_the_main_data():
    sums = [counted(n, pilot=PLANNED).planned_sum(counted(2 * n, pilot=OTHER)) for n in (3, 1000)]
    assert sums[0].pilot.ratio == sums[1].pilot.ratio
    assert state((counted(1, pilot=PLANNED) + counted(1000)).pilot) == state(PLANNED)


# files


@pytest.mark.parametrize("pilot", [POWER, PLANNED, EMPTY, Pilot(0 * ONES, ratio=1 / 3, rests_on="it's “said”")])
def test_a_pilot_survives_a_file(tmp_path, pilot):
    write_counts(counted(5, "adaptive", pilot), tmp_path / "counts.parquet")
    assert state(read_counts(tmp_path / "counts.parquet", LAMP).pilot) == state(pilot)


def test_the_empty_pilot_of_nothing_survives_a_file(tmp_path):
    write_counts(counted(0, "adaptive", EMPTY), tmp_path / "counts.parquet")
    assert state(read_counts(tmp_path / "counts.parquet", LAMP).pilot) == state(EMPTY)


def rewritten(path, change):
    """Write the file again, with a description that was changed and a checksum that fits it."""
    table = parquet.read_table(path)
    about = change(json.loads(table.schema.metadata[b"plumdp"]))
    about.pop("checksum")
    block = {name: table[name].to_numpy() for name in table.column_names}
    text = json.dumps(about | {"checksum": _checksum(about, block)})
    parquet.write_table(table.replace_schema_metadata({b"plumdp": text.encode()}), path)


def test_an_old_file_with_nothing_but_the_column_has_a_planned_pilot(tmp_path):
    path = tmp_path / "counts.parquet"
    write_counts(counted(5, "adaptive", POWER), path)
    rewritten(path, lambda about: {key: value for key, value in about.items() if key != "pilot"})
    assert state(read_counts(path, LAMP).pilot) == ([1] * N, PilotEnd.PLANNED, 1.0, 19.0, "")


@pytest.mark.parametrize(
    "said", [[], {}, {"end": "planned"}, {"end": "planned", "weight": "1", "ratio": 1, "rests_on": ""}]
)
def test_a_description_of_a_pilot_that_cannot_be_read_is_refused(tmp_path, said):
    path = tmp_path / "counts.parquet"
    write_counts(counted(5, "adaptive", POWER), path)
    rewritten(path, lambda about: about | {"pilot": said})
    with pytest.raises(pl.DataError, match="what the file says about its pilot cannot be read: count the log again"):
        read_counts(path, LAMP)


def test_a_weight_that_was_changed_is_refused(tmp_path):
    path = tmp_path / "counts.parquet"
    write_counts(counted(5, "adaptive", POWER), path)
    table = parquet.read_table(path)
    about = json.loads(table.schema.metadata[b"plumdp"])
    about["pilot"]["weight"] = 0.45
    parquet.write_table(table.replace_schema_metadata({b"plumdp": json.dumps(about).encode()}), path)
    with pytest.raises(pl.DataError, match="the counts are not those that were written"):
        read_counts(path, LAMP)


# words


def test_the_assumption_says_how_the_end_was_decided_and_what_the_order_rests_on():
    assert pilot_assumption(PLANNED) == (
        f"the pilot ({N} steps) was set aside without looking at the other data, and its size was fixed beforehand"
    )
    assert pilot_assumption(POWER) == (
        f"the pilot ({N} steps) is the first part of the data, and its size is one of 16, 32, 64, … runs or rows; the "
        "data may have ended because of what they showed, so what was chosen by this pilot uses only 0.15 of the error"
        "; rows are in order of time"
    )
    assert pilot_assumption(EMPTY) == (
        "the pilot is empty (fewer than 160 runs or rows, or it is not clear which came first); the data may have "
        "ended because of what they showed, so only 0.1 of the error is used: the rest is for ends with a pilot; rows "
        "are in order of time"
    )
    without_steps = Pilot(0 * ONES, PilotEnd.POWER_OF_TWO, 0.45)
    assert pilot_assumption(without_steps).startswith("the pilot (0 steps) is the first part of the data, and its size")


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


def test_a_share_of_a_length_chosen_by_an_opponent_misses_and_powers_of_two_with_weights_do_not():
    """400 coins at error 0.1, the worst end of about 600: with a valid pilot at most 56 miss (binomial, 1 %)."""
    rng, n, repetitions = np.random.default_rng(14), 200_000, 400
    ends = np.unique(np.geomspace(40, n, 800).astype(int))
    late = ends[ends >= 10 * SMALLEST]
    sizes, weights = np.array([power_of_two_pilot(end) for end in late.tolist()]).T
    sizes, ones = sizes.astype(int), np.ones(len(ends))
    missed = dict.fromkeys(("a tenth", "powers without weights", "powers with weights", "fixed"), 0)
    for _ in range(repetitions):
        heads = np.concatenate([[0], np.cumsum(rng.integers(0, 2, n, dtype=np.int8), dtype=np.int64)])
        missed["a tenth"] += ever_missed(heads, ends, ends // 10, ones, ratio=9)
        missed["powers without weights"] += ever_missed(heads, late, sizes, ones[: len(late)], ratio=13)
        missed["powers with weights"] += ever_missed(heads, late, sizes, weights, ratio=13)
        missed["fixed"] += ever_missed(heads, ends[ends > 1000], np.array([1000]), np.ones(1), ratio=13)
    assert missed["a tenth"] > 0.25 * repetitions
    assert missed["powers without weights"] > 0.2 * repetitions
    assert missed["powers with weights"] <= 56
    assert missed["fixed"] <= 56
