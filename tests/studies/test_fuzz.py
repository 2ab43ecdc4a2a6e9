"""Every reader returns something of a damaged file, or refuses it in words, and none takes long."""

import random
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from tiers import size

from studies.fuzz import again, fuzz, mutated, problem, readers

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGPROF"), reason="needs timers")
OF_RESULTS = ("certificate.json", "witness.json", "data.npz")  # which take longer, as all of a result is read


@pytest.mark.slow
def test_readers_refuse_mutations_of_their_files_in_words(tmp_path):
    others = [name for name in readers(tmp_path) if name not in OF_RESULTS]
    assert len(others) == 10
    assert fuzz(others, size(10, 1000)) + fuzz(OF_RESULTS, size(2, 100)) == []


@pytest.mark.slow
def test_files_that_were_read_badly_once_are_refused_in_words():
    kept = sorted(Path(__file__).with_name("kept").glob("*/*"))
    assert {file.parent.name for file in kept} == {"plumdp.toml", "certificate.json"}
    assert again((file.parent.name, file.read_bytes()) for file in kept) == []


def test_mutations_differ_and_other_errors_are_told(tmp_path):
    content = bytes(range(200))
    assert len({mutated(content, random.Random(seed)) for seed in range(100)} - {content}) > 90
    assert problem(lambda file: file.read_bytes(), tmp_path / "nowhere").startswith("FileNotFoundError")
    assert problem(len, "a file") == ""


def test_no_reader_catches_that_it_takes_too_long(monkeypatch):
    def read(_):
        while True:
            with suppress(Exception):
                sum(range(1000))

    monkeypatch.setattr("studies.fuzz.SECONDS", 0.1)
    assert problem(read, Path("a file")) == "TooLong: it took more than 0.1 s"
