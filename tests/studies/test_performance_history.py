"""The check of ratios against the baseline: it fails on a planted slow-down, and not on noise; and the history."""

import pytest

pytest.importorskip("resource")  # how measurements ask for processor time and memory: not on Windows

from worked_clock import Work

from studies import history, ratios


def cases(clock, *seconds, yardstick=1.0):
    """Return one case whose own side takes the given seconds, one after the other, and the last forever."""
    left = iter(seconds)

    def ours():
        nonlocal last
        last = next(left, last)
        clock.now += last

    def theirs():
        clock.now += yardstick

    last = seconds[-1]
    return {"work": lambda: (ours, theirs)}


def grown(*seconds, baseline=2.0, **options):
    clock = Work()
    return history.grown(cases(clock, *seconds, **options), {"work": baseline}, clock=clock)


def test_a_slow_down_by_more_than_half_is_found():
    """Ours takes 3.1 s against 1 s; the baseline is 2."""
    assert list(grown(3.1)) == ["work"]


def test_a_slow_down_by_less_than_half_passes():
    assert not grown(2.9)


def test_a_slower_machine_is_not_a_slow_down():
    """Everything takes seven times as long."""
    assert not grown(14.0, yardstick=7.0)


def test_disturbed_rounds_are_measured_again_before_the_check_fails():
    """The first seven rounds are disturbed, all later ones are not."""
    assert not grown(*[5.0] * 7, 2.0)


def test_one_undisturbed_round_shows_that_nothing_became_slower():
    """Ours takes 4 s in all rounds but one, in which it takes 2 s: the machine was busy, and the work is as it was."""
    assert not grown(4.0, 2.0, 4.0)
    assert list(grown(4.0, 4.0, 4.0)) == ["work"]


def test_a_ratio_without_a_baseline_does_not_fail_the_check():
    clock = Work()
    assert not history.grown(cases(clock, 9.0), {}, clock=clock)


@pytest.mark.slow
def test_the_command_fails_on_a_real_slow_down_that_is_planted(tmp_path, capsys, monkeypatch):
    """Work that is done six times in place of once, on the real clock."""
    monkeypatch.setattr(history, "BASELINE", tmp_path / "baseline.json")
    monkeypatch.setattr(ratios, "SMALL", {"sum / sum": lambda: (count, count)})
    assert history.main(["--baseline"]) == 0
    assert history.main(["--check"]) == 0
    assert history.main(["--check", "--planted", "6"]) == 1
    assert "sum / sum" in capsys.readouterr().out.splitlines()[-1]


def count():
    return sum(range(100_000))


@pytest.mark.night
def test_the_history_keeps_every_run_and_shows_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(ratios, "SMALL", {"sum / sum": lambda: (count, count)})
    for _ in range(2):
        assert history.main(["--folder", str(tmp_path)]) == 0
    runs = history.read_history(tmp_path)
    assert {*runs} == {"date", "commit", "machine", "name", "ratio", "median", "least", "most", "repeats"}
    assert len(runs["ratio"]) == 2
    assert 0 < runs["least"][0] <= runs["median"][0] <= runs["most"][0]
    assert history.main(["--folder", str(tmp_path), "--show", "--picture", str(tmp_path / "history.png")]) == 0
    assert "sum / sum" in capsys.readouterr().out
    assert (tmp_path / "history.png").stat().st_size > 5_000


def test_the_machine_is_described_without_its_name(monkeypatch):
    monkeypatch.setattr("platform.node", lambda: "secret")
    assert "secret" not in history.machine()


@pytest.mark.parametrize("name", ratios.SMALL)
def test_every_ratio_of_the_small_set_has_a_baseline(name):
    assert name in history.read_baseline("Linux x86_64")
