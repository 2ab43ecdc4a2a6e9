"""Counts in files: what is written is read back, and counts of another model are refused."""

import json
from dataclasses import replace
from functools import reduce
from hashlib import blake2b

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from log_models import LAMP, runs
from pyarrow import parquet
from refusals import refused
from tiers import examples

import plumdp as pl
from plumdp.data.counts import TransitionCounts
from plumdp.data.duckdb_engine import write_parquet
from plumdp.data.files import read_counts, write_counts
from plumdp.data.pilots import planned_moments

STUDY = pl.case_study("betting:25")
N = LAMP.graph.n_transitions


@settings(max_examples=examples(25))
@given(
    npst.arrays(np.int64, N, elements=st.integers(0, 2**53 // N) | st.just(0)),
    st.sampled_from(["independent", "trajectories", "adaptive"]),
    st.booleans(),
)
def test_counts_survive_a_file(tmp_path_factory, counts, sampling, has_pilot):
    path = tmp_path_factory.mktemp("counts") / "counts.parquet"
    written = TransitionCounts(LAMP.graph, counts, sampling, counts // 3 if has_pilot else None)
    write_counts(written, path)
    read = read_counts(LAMP, path)
    assert np.array_equal(read.counts, counts)
    assert read.sampling == sampling
    assert (read.pilot is None) is (not has_pilot)
    if has_pilot:
        assert np.array_equal(read.pilot.counts, counts // 3)


def test_simulated_counts_with_a_pilot_survive_a_file(tmp_path):
    counts = pl.simulate(STUDY.model, STUDY.true_point, 2000, rng=1, max_steps=25)
    write_counts(counts, tmp_path / "counts.parquet")
    read = read_counts(STUDY.model, str(tmp_path / "counts.parquet"))
    assert np.array_equal(read.counts, counts.counts)
    assert np.array_equal(read.pilot.counts, counts.pilot.counts)
    assert [moment.tolist() for moment in read.pilot.moments] == [moment.tolist() for moment in counts.pilot.moments]
    assert (read.pilot.lengths, read.pilot.expected) == (planned_moments(2000), 2000)
    assert read.pilot.ratio == 2000 / 64 - 1
    assert read.parts == counts.parts


def test_other_programs_can_read_the_counts(tmp_path):
    counts = np.zeros(N, dtype=np.int64)
    counts[[1, 4]] = 7, 2**40
    write_counts(TransitionCounts(LAMP.graph, counts, "independent"), tmp_path / "counts.parquet")
    assert pd.read_parquet(tmp_path / "counts.parquet").to_dict("list") == {"transition": [1, 4], "n": [7, 2**40]}


def test_counts_of_another_model_are_refused(tmp_path):
    path = tmp_path / "counts.parquet"
    write_counts(TransitionCounts(LAMP.graph, np.zeros(N, dtype=np.int64), "independent"), path)
    with pytest.raises(pl.DataError) as caught:
        read_counts(STUDY.model, path)
    here, there = STUDY.model.graph.fingerprint[:8], LAMP.graph.fingerprint[:8]
    assert str(caught.value) == (
        f"{path}: the counts belong to another model: that one has {LAMP.graph.n_states} states, {N} transitions and "
        f"the fingerprint {there}, this one 3,625, 27,703 and {here}"
    )


@pytest.mark.parametrize("content", ["a log", "no Parquet", "nothing"])
def test_a_file_of_something_else_is_no_file_of_counts(content, tmp_path):
    path = tmp_path / "counts.parquet"
    if content == "a log":
        write_parquet(path, [{"transition": np.arange(3), "n": np.ones(3)}])
    else:
        path.write_text(content.removeprefix("nothing"), encoding="utf-8")
    with pytest.raises(pl.DataError) as caught:
        read_counts(STUDY.model, path)
    assert str(caught.value) == f"{path}: this is not a file of counts; logs are read with read_log"


# files that were changed or damaged


AGAIN = "count the log again"
SEEN = np.array([1, 4, 5], dtype=np.int32)
TIMES = np.array([7, 2**40, 3], dtype=np.int64)
GOOD = {"transition": SEEN, "n": TIMES}


def counts_file(path):
    counts = np.zeros(N, dtype=np.int64)
    counts[SEEN] = TIMES
    write_counts(TransitionCounts(LAMP.graph, counts, "trajectories"), path)
    return path


def refusal(path):
    with pytest.raises(pl.DataError) as caught:
        read_counts(LAMP, path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def test_counts_that_were_changed_are_refused_with_what_is_wrong(tmp_path):
    path = counts_file(tmp_path / "counts.parquet")
    about = parquet.read_schema(path).metadata

    def read_with(columns):
        parquet.write_table(pyarrow.table(columns).replace_schema_metadata(about), path)
        raise pl.DataError(refusal(path).removesuffix(f": {AGAIN}"))

    refused("results:counts_columns", globals(), pl.DataError, read_with=read_with)


def test_columns_written_by_another_program_are_read_if_nothing_was_changed(tmp_path):
    path = counts_file(tmp_path / "counts.parquet")
    expected = read_counts(LAMP, path).counts
    parquet.write_table(pyarrow.table(GOOD).replace_schema_metadata(parquet.read_schema(path).metadata), path)
    assert np.array_equal(read_counts(LAMP, path).counts, expected)


def test_a_description_that_was_changed_is_refused_with_what_is_wrong(tmp_path):
    path = counts_file(tmp_path / "counts.parquet")
    about = json.loads(parquet.read_schema(path).metadata[b"plumdp"])

    def read_about(content):
        parquet.write_table(pyarrow.table(GOOD).replace_schema_metadata({b"plumdp": content.encode()}), path)
        raise pl.DataError(refusal(path).removesuffix(f": {AGAIN}"))

    refused("results:counts_about", globals(), pl.DataError, read_about=read_about, about=about)
    for key in ("sampling", "fingerprint", "states", "transitions", "report", "parts", "checksum"):
        with pytest.raises(pl.DataError, match=rf"^the file does not say its {key}$"):
            read_about(json.dumps({name: about[name] for name in about if name != key}))


@pytest.fixture(scope="module")
def good_file(tmp_path_factory):
    """The bytes of a file of counts, and where a damaged one may be written."""
    path = counts_file(tmp_path_factory.mktemp("damaged") / "counts.parquet")
    return path.read_bytes(), path


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(st.data())
def test_a_damaged_file_is_refused_or_read_as_it_was(good_file, data):
    good, path = good_file
    whole = bytearray(good)
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)) | st.just(len(whole)))])
    try:
        read = read_counts(LAMP, path)
    except pl.DataError as error:
        assert str(error).startswith(f"{path}: ")  # noqa: PT017
    else:
        assert read.sampling == "trajectories"
        assert (read.counts[SEEN].tolist(), read.total) == (TIMES.tolist(), TIMES.sum())


@pytest.mark.parametrize("name", ["h?.parquet", "h*.parquet", "h[01].parquet", "it's.parquet"])
def test_a_file_of_counts_whose_name_looks_like_a_pattern_is_read_by_itself(name, tmp_path):
    for other in ("h0.parquet", "h1.parquet"):
        write_counts(TransitionCounts(LAMP.graph, np.ones(N, dtype=np.int64), "independent"), tmp_path / other)
    assert read_counts(LAMP, counts_file(tmp_path / name)).total == TIMES.sum()


# numbers beyond 2^53


TOO_MANY = (
    "{} sum to {:,}, but no more than 2^53 = 9,007,199,254,740,992 steps can be counted exactly; check that these are "
    "numbers of steps, or give a part of the data that nobody chose by looking at it"
)


def counts_from(*first, dtype=np.int64, **options):
    counts = np.zeros(N, dtype=dtype)
    counts[: len(first)] = first
    return TransitionCounts(LAMP.graph, counts, "independent", **options)


OVERFLOWS = {
    "entry": (lambda: counts_from(2**64 - 50, dtype=np.uint64), "counts", 2**64 - 50),
    "choice": (lambda: counts_from(2**52, 2**52 + 1), "counts", 2**53 + 1),
    "entries of uint64": (lambda: counts_from(2**63, 2**63, 2**63, dtype=np.uint64), "counts", 3 * 2**63),
    "sum": (lambda: counts_from(2**52) + counts_from(0, 2**52 + 1), "counts", 2**53 + 1),
    "planned sum": (lambda: counts_from(2**53).planned_sum(counts_from(1)), "counts", 2**53 + 1),
    "pilot": (
        lambda: counts_from(1, pilot=np.full(N, 2**62, dtype=np.int64)),
        "pilot",
        N * 2**62,
    ),
}


@pytest.mark.parametrize("case", OVERFLOWS)
def test_more_steps_than_can_be_counted_are_refused(case):
    make, name, total = OVERFLOWS[case]
    with pytest.raises(pl.DataError) as caught:
        make()
    assert str(caught.value) == TOO_MANY.format(name, total)


def test_as_many_steps_as_can_be_counted_are_counted():
    counts = counts_from(2**52, 2**52)
    assert counts.total == counts.visits.sum() == 2**53


def test_an_array_that_changes_later_does_not_change_counts():
    array = np.ones(N, dtype=np.int64)
    counts = TransitionCounts(LAMP.graph, array[:], "independent")
    array[:] = -1
    assert counts.total == N


# sums


def test_a_sum_is_adaptive_unless_both_parts_were_planned():
    """Whoever adds data because of what the first showed has looked."""
    for one in ("independent", "trajectories", "adaptive"):
        for other in ("independent", "trajectories", "adaptive"):
            a, b = (TransitionCounts(LAMP.graph, np.ones(N, dtype=np.int64), s) for s in (one, other))
            assert (a + b).sampling == "adaptive"
            planned = {one, other}
            weaker = "adaptive" if "adaptive" in planned else "trajectories" if "trajectories" in planned else one
            assert a.planned_sum(b).sampling == weaker
            assert np.array_equal(a.planned_sum(b).counts, (a + b).counts)


def refused_sum(*counts):
    with pytest.raises(pl.DataError) as caught:
        sum(counts)
    with pytest.raises(pl.DataError) as planned:
        reduce(TransitionCounts.planned_sum, counts)
    assert str(planned.value) == str(caught.value)
    return str(caught.value)


def kept(counts, path):
    """Return counts after they were written to a file."""
    write_counts(counts, path)
    return read_counts(LAMP, path)


def simulated(seed):
    return pl.simulate(LAMP, {"p": 0.6}, 10, rng=seed, max_steps=5)


def test_sum_adds_up_a_list_of_counts():
    parts = [simulated(seed) for seed in range(3)]
    assert np.array_equal(sum(parts).counts, np.sum([each.counts for each in parts], axis=0))
    assert sum(parts).sampling == "adaptive"
    for other in (1, None, np.zeros(N, dtype=np.int64)):
        with pytest.raises(TypeError, match=r"^unsupported operand type\(s\) for \+"):
            parts[0] + other


AGAIN_ONCE = "both counts contain {}, which would be counted twice; add them once"
OF_ONE_SEED = (
    "both counts have runs of one seed, which are the same runs, or depend on one another: {}; simulate one of them "
    "with another seed"
)


def test_the_same_counts_are_not_added_twice(tmp_path):
    a, b = simulated(1), simulated(2)
    twice = OF_ONE_SEED.format("50 simulated steps")
    read = kept(a, tmp_path / "a.parquet")
    for counts in ((a, a), (a, b, a), (b, a, a), (a, b, read), (read, kept(a + b, tmp_path / "both.parquet"))):
        assert refused_sum(*counts) == twice
    assert refused_sum(a + b, a + b) == twice
    recorded = pl.data.record(LAMP, {"p": 0.6}, 10, rng=3, max_steps=5)
    assert refused_sum(recorded.counts(), recorded.counts(pilot=False)) == twice
    array = TransitionCounts(LAMP.graph, np.ones(N, dtype=np.int64), "independent")
    assert refused_sum(array, b, replace(array, sampling="adaptive")) == AGAIN_ONCE.format(
        f"{N} steps not read from a file"
    )


def test_runs_of_one_seed_are_not_added_whatever_their_number_and_policy(tmp_path):
    """The first of two thousand runs are those of a thousand, and one stream of numbers makes runs depend."""
    a, longer = simulated(1), pl.simulate(LAMP, {"p": 0.6}, 30, rng=1, max_steps=5)
    other = pl.simulate(LAMP, {"p": 0.6}, 10, rng=1, max_steps=3, policy=LAMP.graph.first_choice[:-1])
    recorded = pl.data.record(LAMP, {"p": 0.6}, 10, rng=1, max_steps=5).counts()
    for second in (simulated(1), longer, other, recorded, kept(longer, tmp_path / "longer.parquet")):
        assert refused_sum(a, second) == OF_ONE_SEED.format("50 simulated steps")
    rng = np.random.default_rng(1)
    assert (simulated(rng) + simulated(rng)).total == 100
    env = pl.data.as_env(LAMP, {"p": 0.6}, max_steps=5)
    sampled = [pl.data.sample_env(LAMP, env, 10, rng=seed) for seed in (1, 1, 2)]
    assert refused_sum(*sampled[:2]).startswith("both counts have runs of one seed")
    assert (sampled[1] + sampled[2]).total == 100


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_data_frame_is_not_added_twice_in_whatever_order_its_rows_are(kind):
    frame = pd.DataFrame(runs(LAMP, {"p": 0.6}, 40)[0]["transitions"])
    as_kind = {"pandas": lambda f: f, "polars": polars.from_pandas, "arrow": pyarrow.Table.from_pandas}[kind]
    one, half = (pl.read_log(LAMP, as_kind(each)).counts for each in (frame, frame.head(50)))
    again = pl.read_log(LAMP, as_kind(frame.sample(frac=1, random_state=1).assign(remark="x"))).counts
    twice = AGAIN_ONCE.format(f"{one.total} steps not read from a file")
    assert refused_sum(one, again) == (
        f"{twice}; if they are different data that happen to look alike, read both at once, as one data frame in "
        "which each run has a name of its own"
    )
    assert (one + half).total == one.total + 50  # nobody looks for single rows: the certificate says so


def test_equal_counts_of_different_data_and_empty_counts_add_up(tmp_path):
    one, other = (TransitionCounts(LAMP.graph, np.ones(N, dtype=np.int64), "independent") for _ in range(2))
    assert (
        (one + other).total == (kept(one, tmp_path / "1.parquet") + kept(other, tmp_path / "2.parquet")).total == 2 * N
    )
    nothing = TransitionCounts(LAMP.graph, np.zeros(N, dtype=np.int64), "independent")
    assert sum([nothing, nothing, one, nothing, kept(nothing, tmp_path / "0.parquet")]).total == N


def logged(folder, **sizes):
    """Write a file of transitions for each name, with so many rows, and return the counts of all files."""
    names, row = "place_x,lit,mode,action,next_place_x,next_lit,next_mode\n", "0,false,rest,go,1,false,work\n"
    for name, n in sizes.items():
        (folder / f"{name}.csv").write_text(names + n * row)
    return pl.read_log(LAMP, [folder / f"{name}.csv" for name in sizes]).counts


def test_a_file_that_was_counted_already_is_not_added_again(tmp_path):
    """A day that is read again, under its name or another, alone or among others, or from its file of counts."""
    first, second, copy = logged(tmp_path, day_1=3), logged(tmp_path, day_2=4), logged(tmp_path, copy=3)
    total = kept(first + second, tmp_path / "total.parquet")
    digest = blake2b((tmp_path / "day_1.csv").read_bytes(), digest_size=16).hexdigest()[:8]
    message = (
        f"both counts contain {tmp_path}/day_1.csv (hash {digest}), which would be counted twice; add it once; if they "
        "are different data that happen to look alike, read both at once, as one data frame in which each "
        "run has a name of its own"
    )
    for counts in (
        (first, first),
        (first, logged(tmp_path, day_1=3)),
        (first, copy),
        (first, second, copy),
        (total, copy),
        (total, logged(tmp_path, day_3=5, day_1=3)),
        (kept(first, tmp_path / "1.parquet"), kept(copy, tmp_path / "2.parquet")),
    ):
        assert refused_sum(*counts) == message
    assert (total + logged(tmp_path, day_3=5)).total == 12


def test_files_without_rows_are_not_the_same_data(tmp_path):
    nothing = logged(tmp_path, empty=0)
    assert (nothing + nothing).total == 0
    assert (logged(tmp_path, day_1=3, empty=0) + logged(tmp_path, day_2=4, empty=0)).total == 7


# writing any columns


def test_blocks_become_one_file_in_their_order(tmp_path):
    blocks = [
        {
            "number": np.arange(4) + 10 * k,
            "masked": np.ma.masked_array(np.arange(4.0), np.arange(4) == k),
            "truth": np.arange(4) < k,
            "text": np.array(["a", None, "ü'\"", f"k{k}"], dtype=object) if k else np.array([None] * 4, dtype=object),
            "fixed": np.array(["x", "yy", "z", f"{k}"]),
        }
        for k in range(3)
    ]
    write_parquet(tmp_path / "it's.parquet", iter(blocks))
    frame = pd.read_parquet(tmp_path / "it's.parquet")
    assert frame.number.tolist() == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]
    assert frame.masked.isna().tolist() == [i == k for k in range(3) for i in range(4)]
    assert frame.masked.fillna(-1).tolist() == [-1 if i == k else i for k in range(3) for i in range(4)]
    assert frame.truth.tolist() == [i < k for k in range(3) for i in range(4)]
    assert frame.text.fillna("none").tolist() == ["none"] * 4 + ["a", "none", "ü'\"", "k1", "a", "none", "ü'\"", "k2"]
    assert frame.fixed.tolist() == ["x", "yy", "z", "0", "x", "yy", "z", "1", "x", "yy", "z", "2"]


def test_no_block_is_nothing_to_write(tmp_path):
    with pytest.raises(pl.DataError, match="there is no block to write"):
        write_parquet(tmp_path / "log.parquet", [])
