"""Seconds of plain Python are added up over processes in one file; without it nothing but time is lost."""

import json

import pytest

from plumdp.base.tally import FILE, Tally, read


def tally_in(*folders):
    return Tally(lambda: folders)


def process(folder, **seconds):
    """Do what a process does that runs kernels for some seconds each."""
    tally = tally_in(folder)
    found = {name: tally.seconds(name) for name in seconds}
    for name, value in seconds.items():
        tally.add(name, value)
    tally.write()
    return found


def test_seconds_add_up_over_processes(tmp_path):
    assert process(tmp_path, a=0.25) == {"a": 0.0}
    assert process(tmp_path, a=0.5, b=1.0) == {"a": 0.25, "b": 0.0}
    assert process(tmp_path, a=0.0, b=0.0) == {"a": 0.75, "b": 1.0}


def test_a_kernel_that_is_compiled_begins_anew(tmp_path):
    process(tmp_path, a=2.0, b=1.0)
    tally = tally_in(tmp_path)
    assert tally.seconds("a") == 2.0
    tally.forget("a")
    tally.write()
    assert read(tmp_path / FILE) == {"b": 1.0}


def test_two_processes_at_once_both_count(tmp_path):
    one, other = tally_in(tmp_path), tally_in(tmp_path)
    for tally in (one, other):
        assert tally.seconds("a") == 0.0
        tally.add("a", 1.0)
    one.write()
    other.write()
    assert read(tmp_path / FILE) == {"a": 2.0}


@pytest.mark.parametrize("damaged", ["", "{", "[1, 2]", '{"a": "x"}', "\0\0", '"text"'])
def test_a_damaged_file_counts_as_empty_and_is_replaced(tmp_path, damaged):
    (tmp_path / FILE).write_text(damaged)
    assert process(tmp_path, a=1.0) == {"a": 0.0}
    assert json.loads((tmp_path / FILE).read_text()) == {"a": 1.0}


def test_the_first_folder_that_can_be_written_to_is_taken(tmp_path):
    (tmp_path / "file").write_text("")
    tally = tally_in(tmp_path / "file", tmp_path / "new" / "folder")
    tally.add("a", 1.0)
    tally.write()
    assert read(tmp_path / "new" / "folder" / FILE) == {"a": 1.0}
    assert tally_in(tmp_path / "file", tmp_path / "new" / "folder").seconds("a") == 1.0


def test_without_a_folder_nothing_is_kept_and_nothing_fails(tmp_path):
    (tmp_path / "file").write_text("")
    assert process(tmp_path / "file", a=1.0) == {"a": 0.0}
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_process_that_ran_nothing_writes_nothing(tmp_path):
    process(tmp_path)
    assert list(tmp_path.iterdir()) == []
