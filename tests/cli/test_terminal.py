"""A terminal, through a pseudo-terminal: a line at once, before anything heavy is imported; nothing in a pipe."""

import os
import re
import subprocess
import sys

import pytest
from command_line import plumdp

from plumdp.cli import COMMANDS

pty = pytest.importorskip("pty")

LOOSE = 30.0  # seconds: for the slowest of machines; the order of what is printed is what matters


def on_terminal(code, *arguments):
    """Return all that a program writes to a terminal of 40 columns, and its exit code."""
    reader, writer = pty.openpty()
    environment = {**os.environ, "COLUMNS": "40", "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=writer,
        env=environment,
    )
    os.close(writer)
    written = b""
    while chunk := _read(reader):
        written += chunk
    os.close(reader)
    return written.decode(), process.wait(timeout=LOOSE)


def _read(reader):
    try:
        return os.read(reader, 65536)
    except OSError:  # the other side is closed
        return b""


REPORTING = """
import sys

class Heavy:
    def find_spec(self, name, path=None, target=None):
        if name in ("numpy", "numba", "duckdb", "scipy"):
            sys.meta_path.remove(self)
            sys.__stderr__.write("<heavy>")
            sys.__stderr__.flush()

sys.meta_path.insert(0, Heavy())
from plumdp.cli import main
main()
"""


@pytest.mark.slow
def test_something_is_said_before_anything_heavy_is_imported():
    """There is no such model, so that the command ends as soon as it has looked for it."""
    written, code = on_terminal(REPORTING, "certify", "nowhere", "log.csv")
    assert code == 2
    assert written.startswith("\r\x1b[2Kplumdp certify: loading …")
    assert "<heavy>" in written
    assert "there is no such file, and no case study of this name" in written


EACH = """
import sys
from plumdp.cli import COMMANDS, main

for name in COMMANDS:
    try:
        main([name, "--no-such-option"])
    except SystemExit as ended:
        print(f"<{ended.code}>", flush=True)
"""


@pytest.mark.night
def test_every_command_says_at_once_that_it_works():
    written, code = on_terminal(EACH)
    assert code == 0
    parts = written.split("<2>\r\n")
    assert len(parts) == len(COMMANDS) + 1
    for name, part in zip(COMMANDS, parts, strict=False):
        assert part.startswith(f"\r\x1b[2Kplumdp {name}: loading …")
        assert "error:" in part.rpartition("\x1b[2K")[2]


@pytest.mark.night
def test_a_result_pushes_the_line_aside(tmp_path):
    counts = str(tmp_path / "counts.parquet")
    run = "from plumdp.cli import main; main()"
    made, code = on_terminal(run, "simulate", "betting:5", "--form", "counts", "-n", "500", "-o", counts)
    assert code == 0
    assert made.rpartition("\x1b[2K")[2].startswith(f"{counts}: 3,000 steps of 500 runs, counted")
    written, code = on_terminal(run, "certify", "betting:5", counts)
    assert code == 0
    lines = [line.removeprefix("\r") for line in written.split("\x1b[2K")]
    assert [line.strip() for line in lines[:3]] == ["", "plumdp certify: loading …", "reading the model betting:5"]
    result = lines[-1]
    plain = " ".join(re.sub(r"\x1b\[\dm", "", result).split())
    assert plain.startswith("Certified: under the recommended policy, the expected “money” until ")
    assert "\x1b[2K" not in result


@pytest.mark.slow
def test_nothing_but_the_result_is_written_to_a_pipe(tmp_path):
    counts = str(tmp_path / "counts.parquet")
    run = [sys.executable, "-m", "plumdp"]
    assert plumdp("simulate", "betting:5", "--form", "counts", "-n", "500", "-o", counts).code == 0
    done = subprocess.run([*run, "certify", "betting:5", counts], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.startswith("Certified: under the recommended policy, the ")
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout
