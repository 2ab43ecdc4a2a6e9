"""Progress: one line where people can see it, taken away at the end, and nothing elsewhere."""

import io
import logging
import re
import subprocess
import sys
from time import sleep
from types import SimpleNamespace

import pytest

import plumdp as pl
from plumdp.base import progress
from plumdp.base.progress import Output, StatusLine, shown_by_others, tell, tell_share, working
from plumdp.reporting.read import explain_result


class Board:
    """A place that keeps what it was told."""

    def __init__(self):
        self.texts, self.n_made = [], 0

    def show(self, text):
        self.texts.append(text)

    def clear(self):
        self.texts.append("")


@pytest.fixture
def board(monkeypatch):
    """Return the place where all work is shown, almost at once."""
    board = Board()

    def place():
        board.n_made += 1
        return board

    monkeypatch.setattr(progress, "_place", place)
    monkeypatch.setattr(progress, "_PATIENCE", 0.002)
    return board


def shown_within(board, text, seconds=5.0):
    """Wait until a text is shown, and return whether it was."""
    for _ in range(int(seconds / 0.005)):
        if any(text in each for each in board.texts):
            return True
        sleep(0.005)
    return False


def test_work_is_shown_with_its_part_and_taken_away_at_the_end(board):
    with working("certifying"):
        assert shown_within(board, "certifying … 0 s")
        with working("learning"):
            assert shown_within(board, "certifying: learning … 0 s")
        tell("compiling")
        assert shown_within(board, "certifying: compiling … 0 s")
    assert board.texts[-1] == ""
    assert board.n_made == 1  # work inside other work has no line of its own
    n = len(board.texts)
    sleep(0.02)
    assert len(board.texts) == n


def test_an_error_ends_the_line_and_is_raised(board):
    with pytest.raises(ZeroDivisionError), working("certifying"):
        1 / 0  # noqa: B018
    assert board.texts[-1] == ""
    with working("again"):
        assert shown_within(board, "again")


def test_the_command_line_keeps_the_line_for_itself(board):
    told = []
    with shown_by_others(told.append), working("certifying"):
        tell("learning")
        tell_share("solving", 1, 4)
        tell_share("solving", 2, 4)  # too soon
    assert told == ["certifying", "learning", "solving: 25 %"]
    assert board.n_made == 0


def test_what_takes_long_shows_itself(board):
    study = pl.case_study("betting:5")
    counts = pl.simulate(study.model, study.true_point, 200, rng=1, max_steps=6)
    certificate = pl.certify(study.model, counts, study.objective)
    assert board.n_made == 2
    assert board.texts[-1] == ""
    assert certificate.status == "certified"
    for function in (
        *(pl.compare, pl.conclude, pl.decide, pl.learn, pl.read_log, pl.data.sample_env, pl.check_model),
        *(pl.advise, pl.explain, explain_result, pl.write_report),
    ):
        assert hasattr(function, "__wrapped__"), function.__name__


def a_notebook(kernel):
    return SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=kernel))


def test_a_line_is_shown_on_terminals_and_in_notebooks_and_nowhere_else(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert progress._place() is None  # a pipe
    monkeypatch.setattr(sys, "stderr", terminal)
    assert isinstance(progress._place(), StatusLine)
    monkeypatch.setitem(sys.modules, "IPython", a_notebook(None))
    assert isinstance(progress._place(), StatusLine)  # IPython on a terminal
    monkeypatch.setitem(sys.modules, "IPython", a_notebook("a kernel"))
    assert isinstance(progress._place(), Output)
    monkeypatch.setenv("PLUMDP_PROGRESS", "0")
    assert progress._place() is None


def test_a_notebook_has_one_place_that_is_renewed_and_left_empty(monkeypatch):
    shown = []
    handle = SimpleNamespace(update=lambda html: shown.append(("again", html)))

    def display(html, *, display_id):
        shown.append(("first", html))
        return handle

    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    output = Output()
    output.clear()
    output.show("1 < 2")
    output.show("still")
    output.clear()
    assert shown == [("first", "<small>1 &lt; 2</small>"), ("again", "<small>still</small>"), ("again", "")]


def test_a_line_is_cut_to_the_terminal_and_cleared_once(monkeypatch):
    monkeypatch.setenv("COLUMNS", "10")
    stream = io.StringIO()
    line = StatusLine(stream)
    line.clear()
    line.show("a long sentence")
    line.clear()
    line.clear()
    assert stream.getvalue() == "\r\x1b[2Ka long s…\r\x1b[2K"


# The logger


STUDY = pl.case_study("betting:5")
COUNTS = pl.simulate(STUDY.model, STUDY.true_point, 100, rng=1, max_steps=6)


def test_every_stage_of_a_certificate_is_logged_with_its_seconds(caplog):
    pl.certify(STUDY.model, COUNTS, STUDY.objective)  # what has to be compiled is compiled here
    with caplog.at_level(logging.DEBUG, logger="plumdp"):
        certificate = pl.certify(STUDY.model, COUNTS, STUDY.objective)
    lines = [record.getMessage() for record in caplog.records if record.name == "plumdp"]
    assert lines == [f"{stage}: {seconds:.3f} s" for stage, seconds in certificate.how.seconds.items()]
    assert len(lines) >= 3
    assert all(re.fullmatch(r"\w+: \d+\.\d{3} s", line) for line in lines)


@pytest.mark.night
def test_nothing_is_printed_unless_asked_for():
    code = """
import plumdp as pl
study = pl.case_study("betting:5")
pl.certify(study.model, pl.simulate(study.model, study.true_point, 100, rng=1, max_steps=6), study.objective)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
