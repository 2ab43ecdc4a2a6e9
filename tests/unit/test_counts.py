"""Counts in files: what is written is read back, and counts of another model are refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from log_models import LAMP

import plumdp as pl
from plumdp.data.counts import TransitionCounts
from plumdp.data.files import read_counts, write_counts
from plumdp.data.tables import write_parquet

STUDY = pl.benchmark("betting:25")
N = LAMP.graph.n_transitions


@settings(max_examples=25)
@given(
    npst.arrays(np.int64, N, elements=st.integers(0, (2**63 - 1) // N) | st.just(0)),
    st.sampled_from(["independent", "trajectories", "adaptive"]),
    st.booleans(),
)
def test_counts_survive_a_file(tmp_path_factory, counts, sampling, has_pilot):
    path = tmp_path_factory.mktemp("counts") / "counts.parquet"
    written = TransitionCounts(LAMP.graph, counts, sampling, counts // 3 if has_pilot else None)
    write_counts(written, path)
    read = read_counts(path, LAMP)
    assert np.array_equal(read.counts, counts)
    assert read.sampling == sampling
    assert (read.pilot is None) is (not has_pilot)
    if has_pilot:
        assert np.array_equal(read.pilot, counts // 3)


def test_simulated_counts_with_a_pilot_survive_a_file(tmp_path):
    counts = pl.simulate(STUDY.model, STUDY.true_point, 2000, rng=1, max_steps=25, pilot=0.25)
    write_counts(counts, tmp_path / "counts.parquet")
    read = read_counts(str(tmp_path / "counts.parquet"), STUDY.model)
    assert np.array_equal(read.counts, counts.counts)
    assert np.array_equal(read.pilot, counts.pilot)
    assert np.array_equal((read + counts).counts, 2 * counts.counts)


def test_other_programs_can_read_the_counts(tmp_path):
    counts = np.zeros(N, dtype=np.int64)
    counts[[1, 4]] = 7, 2**40
    write_counts(TransitionCounts(LAMP.graph, counts, "independent"), tmp_path / "counts.parquet")
    assert pd.read_parquet(tmp_path / "counts.parquet").to_dict("list") == {"transition": [1, 4], "n": [7, 2**40]}


def test_counts_of_another_model_are_refused(tmp_path):
    path = tmp_path / "counts.parquet"
    write_counts(TransitionCounts(LAMP.graph, np.zeros(N, dtype=np.int64), "independent"), path)
    with pytest.raises(pl.DataError) as caught:
        read_counts(path, STUDY.model)
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
        read_counts(path, STUDY.model)
    assert str(caught.value) == f"{path}: this is no file of counts; logs are read with read_log"


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
