"""Ratios of measurements: turns, the shortest times, medians of pairs; with a clock that only the work moves."""

import subprocess
import sys

import pytest

pytest.importorskip("resource")  # how measurements ask for processor time and memory: not on Windows

from worked_clock import Work

from studies import building, timing


def test_both_sides_take_turns():
    clock = Work()
    timing.compare(clock.of("ours", 1, 1), clock.of("theirs", 1, 1), repeats=2, clock=clock)
    assert clock.order == ["ours", "theirs"] * 2


def test_a_slow_minute_that_meets_both_sides_leaves_the_ratio_alone():
    """Three rounds of 2 s against 1 s; in the second the machine is four times slower for both."""
    clock = Work()
    found = timing.compare(clock.of("ours", 2, 8, 2), clock.of("theirs", 1, 4, 1), repeats=3, clock=clock)
    assert found.pairs == (2, 2, 2)
    assert (found.least, found.median, found.spread) == (2, 2, (2, 2))


def test_the_least_ratio_is_that_of_the_shortest_times():
    """Ours 3, 4, 6 and theirs 2, 1, 2: shortest 3 and 1, pairs 1.5, 4 and 3."""
    found = timing.Ratio((3, 4, 6), (2, 1, 2))
    assert (found.least, found.median, found.spread) == (3, 3, (1.5, 4))
    assert (found + timing.Ratio((1,), (1,))).least == 1


def test_the_shortest_of_several_calls_is_taken():
    clock = Work()
    assert timing.seconds_of(clock.of("ours", 3, 1, 2), repeats=3, clock=clock) == 1


def test_processor_time_does_not_count_waiting():
    found = timing.compare(lambda: sum(range(200_000)), lambda: sum(range(200_000)), repeats=1)
    assert 0 < found.least < 100
    assert timing.process_seconds([sys.executable, "-c", "import time; time.sleep(0.3)"]) < 0.29


@pytest.mark.night
def test_a_file_measures_in_a_process_of_its_own(tmp_path):
    (tmp_path / "plumdp").mkdir()
    (tmp_path / "plumdp" / "__init__.py").write_text("raise SystemExit('another package')")
    found = timing.in_own_process(building.__file__, "case_study", "betting:3")
    assert found["seconds"] > 0
    with pytest.raises(subprocess.CalledProcessError):
        timing.in_own_process(building.__file__, "case_study", "betting:3", source=str(tmp_path))


def test_measurements_that_took_turns_are_compared_round_by_round():
    rounds = timing.take_turns({"a": lambda: {"seconds": 2.0}, "b": lambda: {"seconds": 4.0}}, 3)
    assert timing.ratio_of(rounds["a"], rounds["b"]).pairs == (0.5, 0.5, 0.5)
    assert timing.fastest([{"seconds": 2}, {"seconds": 1}]) == {"seconds": 1}
    with pytest.raises(ValueError, match=r"shorter|longer"):
        assert timing.Ratio((1.0,), (1.0, 2.0)).pairs
